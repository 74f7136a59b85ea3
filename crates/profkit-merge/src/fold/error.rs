//! Why nothing was folded.
use super::PartKind;
use super::ledger::MOST_BYTES;
use crate::MergeError;
use crate::files::system_text;
use std::fmt;
use std::io;

/// The error of a fold. The ledger of the store is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum FoldError {
    /// The store could not be read or written.
    Store {
        /// The object, or the store.
        name: String,
        /// What could not be done: `read`, `written`, `listed`, `removed`.
        what: &'static str,
        /// The error of the system or the store.
        error: io::Error,
    },
    /// The ledger is damaged.
    Ledger {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The ledger is larger than one may be.
    LargeLedger {
        /// The file.
        name: String,
    },
    /// The ledger would become larger than one may be.
    TooManyParts {
        /// The file.
        name: String,
        /// The number of parts.
        parts: u64,
    },
    /// A newer profkit wrote the ledger.
    NewerLedger {
        /// The file.
        name: String,
        /// The version of the ledger.
        version: u32,
    },
    /// The ledger names a part that the store does not have.
    MissingPart {
        /// The object.
        name: String,
        /// The number of its inputs.
        inputs: u64,
    },
    /// A part is not the one that the ledger names.
    DamagedPart {
        /// The object.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The store has parts that cannot be added up.
    Kinds {
        /// The store.
        name: String,
        /// The kinds of its parts.
        found: Vec<PartKind>,
    },
    /// The store has no part.
    Empty {
        /// The store.
        name: String,
    },
    /// Other processes changed the ledger again and again.
    Busy {
        /// The ledger.
        name: String,
        /// How often it was tried.
        tries: u32,
    },
    /// The merge was cancelled, or parts do not fit each other.
    Merge(MergeError),
}

impl FoldError {
    pub(super) fn store(name: String, what: &'static str) -> impl FnOnce(io::Error) -> FoldError {
        move |error| FoldError::Store { name, what, error }
    }

    /// The error of reading a ledger.
    pub(super) fn ledger(name: String) -> impl FnOnce(io::Error) -> FoldError {
        move |error| match error.kind() {
            io::ErrorKind::FileTooLarge => FoldError::LargeLedger { name },
            _ => FoldError::store(name, "read")(error),
        }
    }

    /// Returns a suggestion to the user, if there is a step that resolves the error.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            FoldError::Ledger { .. } => {
                "restore the file, or let --repair make the ledger again from the parts".to_owned()
            }
            FoldError::LargeLedger { .. } => {
                "restore the file, or remove it: the next fold makes the ledger again from the parts"
                    .to_owned()
            }
            FoldError::TooManyParts { .. } => {
                "`profkit fold --compact` joins the parts of past days".to_owned()
            }
            FoldError::NewerLedger { .. } => {
                "use the profkit that wrote it, or a newer one".to_owned()
            }
            FoldError::MissingPart { .. } | FoldError::DamagedPart { .. } => {
                "restore the part, or let --repair take it off the ledger: its inputs are then folded again, if they are named and still there"
                    .to_owned()
            }
            FoldError::Kinds { name, found } => {
                let command = |kind: &PartKind| match kind {
                    PartKind::Mip => format!("profkit mip merge -p FOLDER {name}/parts/mip"),
                    PartKind::Heap => {
                        format!("profkit merge {name}/parts/heap --binaries FOLDER -o FILE")
                    }
                    kind => format!("profkit merge {name}/parts/{} -o FILE", kind.name()),
                };
                let commands: Vec<_> = found.iter().map(command).collect();
                format!("make a profile of each kind: {}", commands.join("; "))
            }
            FoldError::Empty { .. } => "name profiles to fold into it".to_owned(),
            FoldError::Busy { .. } => "run the command again".to_owned(),
            FoldError::Store { .. } => return None,
            FoldError::Merge(error) => return error.hint().map(|hint| hint.to_string()),
        })
    }
}

impl From<MergeError> for FoldError {
    fn from(error: MergeError) -> Self {
        FoldError::Merge(error)
    }
}

impl fmt::Display for FoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FoldError::Store { name, what, error } => {
                write!(f, "{name}: cannot be {what}: {}", system_text(error))
            }
            FoldError::Ledger { name, line, what } => {
                write!(f, "{name}: the ledger is damaged: line {line}: {what}")
            }
            FoldError::LargeLedger { name } => write!(
                f,
                "{name}: the file has more than {MOST_BYTES} bytes, so no profkit wrote it"
            ),
            FoldError::TooManyParts { name, parts } => write!(
                f,
                "{name}: a ledger of {parts} parts would have more than {MOST_BYTES} bytes"
            ),
            FoldError::NewerLedger { name, version } => write!(
                f,
                "{name}: the ledger has version {version}, and this profkit knows versions up to {}",
                super::LEDGER_VERSION
            ),
            FoldError::MissingPart { name, inputs } => write!(
                f,
                "{name}: the part is missing; it has the counts of {inputs} input{}",
                if *inputs == 1 { "" } else { "s" }
            ),
            FoldError::DamagedPart { name, what } => {
                write!(f, "{name}: the part is damaged: {what}")
            }
            FoldError::Kinds { name, found } => {
                let found: Vec<_> = found.iter().map(|kind| kind.name()).collect();
                write!(
                    f,
                    "{name}: the store has profiles of several kinds, of which there is no common profile: {}",
                    found.join(", ")
                )
            }
            FoldError::Empty { name } => write!(f, "{name}: the store is empty"),
            FoldError::Busy { name, tries } => write!(
                f,
                "{name}: other processes changed the ledger {tries} times, each time before this one could"
            ),
            FoldError::Merge(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FoldError {}
