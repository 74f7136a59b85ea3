//! The reasons why inputs could not be collected.
use super::MOST_INPUTS;
use super::file::MOST_LIST_BYTES;
use crate::system_text;
use std::path::PathBuf;
use std::{fmt, io};

const LINE_HINT: &str =
    "an input is PATH or WEIGHT,PATH, where the weight is a number such as 3 or 0.25";
const LIST_HINT: &str =
    "each line is PATH or WEIGHT,PATH; empty lines and lines that begin with # are skipped";

/// An input that the user named but that does not exist.
#[derive(Debug)]
pub struct MissingInput {
    /// The line of a list file that named the input, as "LIST:7"; `None` if the input was named on the command line.
    pub at: Option<String>,
    /// The name of the input.
    pub name: String,
    /// The reason why the input cannot be read, usually that it does not exist.
    pub error: io::Error,
}

impl fmt::Display for MissingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        write!(
            f,
            "{}: cannot be read: {}",
            self.name,
            system_text(&self.error)
        )
    }
}

/// The reason why the inputs could not be collected.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListError {
    /// The text before the comma of an argument is not a valid weight. The variant holds the message.
    Weight(String),
    /// Standard input (`-`) is named twice as an input.
    StdinTwice,
    /// A list file cannot be read.
    List {
        /// The name of the list file in messages.
        name: String,
        /// The reason why the list file cannot be read.
        error: io::Error,
    },
    /// A file that was given as a list is not text.
    NotAList {
        /// The name of the file in messages.
        name: String,
    },
    /// A list file has more bytes than one of the largest number of inputs.
    TooLong {
        /// The name of the list file in messages.
        name: String,
    },
    /// There are more inputs than one merge takes.
    TooMany {
        /// The list file and the line that named one more, as "LIST:7".
        at: String,
    },
    /// A line of a list file is not valid.
    Line {
        /// The list file and the line, as "LIST:7".
        at: String,
        /// The reason why the line of the list file is not valid.
        problem: String,
    },
    /// A line of a list of ids is not valid.
    IdLine {
        /// The list and the line, as "LIST:7".
        at: String,
    },
    /// A folder cannot be read.
    Folder {
        /// The path of the folder.
        path: PathBuf,
        /// The reason why the folder cannot be read.
        error: io::Error,
    },
    /// Some of the input files that were named do not exist.
    Missing(Vec<MissingInput>),
}

impl ListError {
    /// Whether the error is in the command line; `false` if the error is in a file.
    pub fn is_usage(&self) -> bool {
        matches!(self, ListError::Weight(_) | ListError::StdinTwice)
    }

    /// Returns a suggestion to the user, if there is a step that helps.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ListError::Weight(_) => Some(LINE_HINT),
            ListError::StdinTwice => {
                Some("give `-` only once, either for one profile or for one list")
            }
            ListError::Line { .. } => Some(LIST_HINT),
            ListError::Missing(_) => {
                Some("nothing was done, because some of the named inputs cannot be read")
            }
            ListError::NotAList { .. } => Some("to merge a profile, name it without -f"),
            ListError::TooLong { .. } | ListError::TooMany { .. } => Some(
                "divide the list, make a part of each piece with `profkit merge --part`, and merge the parts",
            ),
            ListError::List { .. } | ListError::IdLine { .. } | ListError::Folder { .. } => None,
        }
    }
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListError::Weight(problem) => f.write_str(problem),
            ListError::StdinTwice => f.write_str("standard input can be read only once"),
            ListError::List { name, error } => {
                write!(f, "{name}: the list cannot be read: {}", system_text(error))
            }
            ListError::NotAList { name } => write!(
                f,
                "{name}: not a list of inputs: found binary data, expected text with a path in each line"
            ),
            ListError::TooLong { name } => write!(
                f,
                "{name}: the list is too long: expected at most {MOST_LIST_BYTES} bytes"
            ),
            ListError::TooMany { at } => write!(
                f,
                "{at}: there are too many inputs: expected at most {MOST_INPUTS}"
            ),
            ListError::Line { at, problem } => write!(f, "{at}: {problem}"),
            ListError::IdLine { at } => {
                write!(f, "{at}: expected an id, a tab, and the path of an input")
            }
            ListError::Folder { path, error } => write!(
                f,
                "{}: the folder cannot be read: {}",
                profkit_data::path_text(path),
                system_text(error)
            ),
            ListError::Missing(missing) => {
                for (number, input) in missing.iter().enumerate() {
                    let separator = if number > 0 { "\n" } else { "" };
                    write!(f, "{separator}{input}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ListError {}
