//! Errors of a merge that has no result.
use crate::driver::Cancelled;
use crate::report::{LlvmFault, Report};
use profkit_data::instr::InstrKind;
use std::fmt;

/// The reason why a merge has no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MergeError {
    /// No input was named.
    NoInputs,
    /// The inputs count different things.
    Kinds(Box<KindConflict>),
    /// No input could be used; the report says why for each.
    NothingLeft(Box<Report>),
    /// LLVM's tool ends with an error at this point: its writers cannot be joined.
    Llvm(LlvmFault),
    /// The merge was cancelled.
    Cancelled,
}

impl From<Cancelled> for MergeError {
    fn from(_: Cancelled) -> Self {
        MergeError::Cancelled
    }
}

/// Inputs that cannot be merged because they count different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindConflict {
    /// A sentence that says which kinds cannot be merged.
    pub message: &'static str,
    /// The kind of most inputs, and how many inputs have it.
    pub majority: (InstrKind, usize),
    /// The inputs of another kind: index, name, kind. At most [`KindConflict::LISTED`] of them.
    pub odd: Vec<(usize, String, InstrKind)>,
    /// The number of inputs of another kind.
    pub odd_count: usize,
    /// What the user can do.
    pub hint: &'static str,
}

impl KindConflict {
    /// The largest number of inputs of another kind that are listed.
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
    /// What the user can do, if there is a step that helps.
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
