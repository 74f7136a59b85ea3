//! The errors of merges that end without a result.
use crate::driver::Cancelled;
use crate::report::{LlvmFault, Report};
use profkit_data::instr::InstrKind;
use std::fmt;

/// The reason why a merge has no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MergeError {
    /// The merge was given no inputs.
    NoInputs,
    /// The inputs are profiles of different kinds, which cannot be merged with each other.
    Kinds(Box<KindConflict>),
    /// No input could be used. The report in this variant gives the reason for each input.
    NothingLeft(Box<Report>),
    /// [`Policy::Llvm`](crate::Policy::Llvm) only: LLVM's tool would end with this error, because the results of its
    /// threads cannot be merged.
    Llvm(LlvmFault),
    /// The merge was cancelled.
    Cancelled,
}

impl From<Cancelled> for MergeError {
    fn from(_: Cancelled) -> Self {
        MergeError::Cancelled
    }
}

/// The error for inputs of different kinds, which cannot be merged with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindConflict {
    /// A sentence that says which kinds cannot be merged.
    pub message: &'static str,
    /// The kind that most of the inputs have, and the number of these inputs.
    pub majority: (InstrKind, usize),
    /// The inputs that do not have the kind of the majority: index, name and kind of each. At most
    /// [`KindConflict::LISTED`] inputs are listed.
    pub odd: Vec<(usize, String, InstrKind)>,
    /// The number of inputs that do not have the kind of the majority.
    pub odd_count: usize,
    /// A suggestion to the user: how to resolve the conflict.
    pub hint: &'static str,
}

impl KindConflict {
    /// The largest number of inputs that [`KindConflict::odd`] lists.
    pub const LISTED: usize = 20;
}

impl fmt::Display for KindConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, count) = self.majority;
        write!(f, "{}: {count} inputs are {kind}, but", self.message)?;
        for (index, (_, name, kind)) in self.odd.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {name} is {kind}")?;
        }
        match self.odd_count - self.odd.len() {
            0 => Ok(()),
            rest => write!(f, " and {rest} more"),
        }
    }
}

impl MergeError {
    /// Returns a suggestion to the user, if there is a step that resolves the error.
    pub fn hint(&self) -> Option<&str> {
        match self {
            MergeError::Kinds(conflict) => Some(conflict.hint),
            MergeError::NothingLeft(report) => {
                report.events.iter().find_map(|event| event.hint.as_deref())
            }
            MergeError::NoInputs | MergeError::Llvm(_) | MergeError::Cancelled => None,
        }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::NoInputs => f.write_str("no input files"),
            MergeError::Kinds(conflict) => conflict.fmt(f),
            MergeError::NothingLeft(report) => {
                write!(
                    f,
                    "no profile could be used, out of {}",
                    report.totals.files
                )
            }
            MergeError::Llvm(fault) => {
                write!(f, "the profiles cannot be merged ({:?})", fault.code)
            }
            MergeError::Cancelled => Cancelled.fmt(f),
        }
    }
}

impl std::error::Error for MergeError {}
