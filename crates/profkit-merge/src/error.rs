//! The errors of merges that end without a result.
use crate::driver::Cancelled;
use crate::part::PartError;
use crate::report::{LlvmFault, Report};
use crate::sample::SampleConflict;
use profkit_data::detect::Family;
use profkit_files::Inputs;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The reason why a merge has no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MergeError {
    /// The merge was given no inputs.
    NoInputs,
    /// Some inputs cannot be merged with each other. The report says what was done with each input before.
    Groups(Box<GroupConflict>, Box<Report>),
    /// No input could be used. The report in this variant gives the reason for each input.
    NothingLeft(Box<Report>),
    /// [`Policy::Llvm`](crate::Policy::Llvm): LLVM's tool would fail, because the results of its threads do not fit.
    Llvm(LlvmFault),
    /// Some sample profiles have a property that others lack, although either all inputs or none must have it.
    Kinds {
        /// The property that only some inputs have.
        what: SampleConflict,
        /// The first input that has the property: its index and name.
        with: (usize, String),
        /// The first input that lacks the property: its index and name.
        without: (usize, String),
        /// The report: what was done with each input before this error was found.
        report: Box<Report>,
    },
    /// A damaged sample profile ends the merge under [`Policy::Llvm`](crate::Policy::Llvm): its index, and the error.
    Damaged(usize, Box<profkit_data::Error>),
    /// A sample profile that cannot be read ends the merge under [`Policy::Llvm`](crate::Policy::Llvm).
    Unreadable(usize, Arc<std::io::Error>),
    /// The inputs cannot be added up whatever their order: see the module `part` of profkit-merge.
    Part(Box<PartError>),
    /// The merge was cancelled.
    Cancelled,
}

impl MergeError {
    /// Returns the report, with the reasons for each input; `None` if the merge ended before it had one.
    pub fn report(&self) -> Option<&Report> {
        match self {
            MergeError::Groups(_, report)
            | MergeError::NothingLeft(report)
            | MergeError::Kinds { report, .. } => Some(report),
            _ => None,
        }
    }

    /// Returns a suggestion to the user, if there is a step that resolves the error.
    pub fn hint(&self) -> Option<&str> {
        match self {
            MergeError::Groups(conflict, _) => Some(conflict.hint),
            MergeError::NothingLeft(report) => {
                report.events.iter().find_map(|event| event.hint.as_deref())
            }
            MergeError::Kinds { what, .. } => Some(match what {
                SampleConflict::Contexts => {
                    "convert the profiles with contexts to nested profiles first, then merge"
                }
                SampleConflict::Probes => {
                    "profiles of lines and of probes count different things: merge the profiles of each kind separately"
                }
            }),
            MergeError::Damaged(_, error) => error.hint(),
            MergeError::Part(error) => error.hint(),
            _ => None,
        }
    }
}

impl From<Cancelled> for MergeError {
    fn from(_: Cancelled) -> Self {
        MergeError::Cancelled
    }
}

impl From<PartError> for MergeError {
    fn from(error: PartError) -> Self {
        MergeError::Part(Box::new(error))
    }
}

/// Groups of inputs that cannot be merged with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConflict {
    /// The property in which the groups differ.
    pub difference: Difference,
    /// A sentence that says which profiles cannot be merged.
    pub message: &'static str,
    /// The groups, the largest one first.
    pub groups: Vec<InputGroup>,
    /// What the user can do.
    pub hint: &'static str,
}

/// The property in which groups of inputs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The groups differ in the family of their profiles: instrumentation, sample, heap or MIP profiles.
    Family,
    /// The groups differ in where the compiler put the counters: in the front end, or in the intermediate code (IR).
    Level,
    /// The groups differ in what the counters count.
    Kind,
    /// The groups differ in how compilers named and hashed functions
    /// ([`mixed_hashes`](crate::MergeOptions::mixed_hashes)).
    Hashes,
}

/// Inputs that can be merged with each other, but not with those of other groups: see [`Difference`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputGroup {
    /// A description that fits each input in the group, such as "IR profile".
    pub what: String,
    /// The family of the inputs. `None` if the groups do not differ in the family.
    pub family: Option<Family>,
    /// The number of inputs.
    pub count: u64,
    /// The names of the first inputs.
    pub examples: Vec<String>,
}

impl fmt::Display for InputGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.count {
            1 => self.what.clone(),
            _ => self.what.replacen("profile", "profiles", 1),
        };
        write!(f, "{} {what} ({}", self.count, self.examples.join(", "))?;
        let more = self.count > self.examples.len() as u64;
        f.write_str(if more { ", …)" } else { ")" })
    }
}

impl fmt::Display for GroupConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)?;
        for (number, group) in self.groups.iter().enumerate() {
            let mark = if number == 0 { ":" } else { ";" };
            write!(f, "{mark} {group}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    count: u64,
    first: BTreeSet<usize>,
}

impl Members {
    /// The number of inputs, and the first of them.
    pub(crate) fn parts(&self) -> (u64, &BTreeSet<usize>) {
        (self.count, &self.first)
    }

    pub(crate) fn of_parts(count: u64, first: BTreeSet<usize>) -> Self {
        Members { count, first }
    }

    pub(crate) fn renumber(&mut self, new: &dyn Fn(usize) -> usize) {
        self.first = self.first.iter().map(|&input| new(input)).collect();
    }

    /// The largest number of inputs that a message names.
    const NAMED: usize = 3;

    pub(crate) fn add(&mut self, input: usize) {
        self.count += 1;
        self.name(input);
    }

    fn name(&mut self, input: usize) {
        self.first.insert(input);
        if self.first.len() > Self::NAMED {
            self.first.pop_last();
        }
    }

    pub(crate) fn absorb(&mut self, other: &Members) {
        self.count = self.count.saturating_add(other.count);
        other.first.iter().for_each(|&input| self.name(input));
    }

    pub(crate) fn first(&self) -> usize {
        self.first.first().copied().unwrap_or(0)
    }

    pub(crate) fn group(&self, what: impl Into<String>, inputs: &dyn Inputs) -> InputGroup {
        let names = self
            .first
            .iter()
            .map(|&input| inputs.name(input).into_owned());
        InputGroup {
            what: what.into(),
            family: None,
            count: self.count,
            examples: names.collect(),
        }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::NoInputs => f.write_str("no input files"),
            MergeError::Groups(conflict, _) => conflict.fmt(f),
            MergeError::NothingLeft(report) => match report.totals.files {
                1 => f.write_str("the only input could not be used"),
                files => write!(f, "none of the {files} inputs could be used"),
            },
            MergeError::Kinds {
                what,
                with: (_, with),
                without: (_, without),
                ..
            } => {
                let what = match what {
                    SampleConflict::Contexts => "calling contexts",
                    SampleConflict::Probes => "pseudo probes",
                };
                write!(
                    f,
                    "sample profiles with and without {what} cannot be merged: {with} has them, {without} has none"
                )
            }
            MergeError::Damaged(_, error) => error.fmt(f),
            MergeError::Unreadable(_, error) => error.fmt(f),
            MergeError::Part(error) => error.fmt(f),
            MergeError::Llvm(fault) => {
                write!(f, "the profiles cannot be merged ({:?})", fault.code)
            }
            MergeError::Cancelled => Cancelled.fmt(f),
        }
    }
}

impl std::error::Error for MergeError {}
