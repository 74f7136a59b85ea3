//! The error for a file that cannot be instrumented.
use crate::asm::{Statement, excerpt};
use std::fmt;

/// Why a file cannot be instrumented: its name, the problem, and the line if it is in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    file: String,
    place: Option<(u32, String)>,
    problem: String,
}

/// The result type of the instrumenter.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error about a whole file.
    #[cold]
    pub fn whole(file: &str, problem: impl Into<String>) -> Self {
        Error {
            file: file.to_owned(),
            place: None,
            problem: problem.into(),
        }
    }

    /// Makes an error about one statement of a file.
    #[cold]
    pub fn at(
        file: &str,
        statement: &Statement<'_>,
        text: &[u8],
        problem: impl Into<String>,
    ) -> Self {
        let words = text.get(statement.start..statement.end).unwrap_or_default();
        Error {
            file: file.to_owned(),
            place: Some((statement.line, excerpt(words).into_owned())),
            problem: problem.into(),
        }
    }

    /// The number of the line with the problem, from 1.
    pub fn line(&self) -> Option<u32> {
        self.place.as_ref().map(|(line, _)| *line)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((line, text)) => {
                write!(f, "{}:{line}: {}, at `{text}`", self.file, self.problem)
            }
            None => write!(f, "{} {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for Error {}
