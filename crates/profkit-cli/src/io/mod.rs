//! Turns the errors of [`profkit_merge::files`] into failures.
use crate::exit::{Failure, Result, system_hint};
use crate::print;
use profkit_merge::files::{Input, ListError, OutputError, ReadError};
use std::io::Write;
use std::path::Path;

impl From<ReadError> for Failure {
    #[cold]
    fn from(error: ReadError) -> Self {
        Failure::io("cannot be read", error.name, &error.error)
    }
}

impl From<OutputError> for Failure {
    #[cold]
    fn from(error: OutputError) -> Self {
        let failure = if error.is_usage() {
            Failure::usage(&error)
        } else {
            Failure::input(&error)
        };
        failure.with_hints(error.hint())
    }
}

impl From<ListError> for Failure {
    #[cold]
    fn from(error: ListError) -> Self {
        let failure = match &error {
            ListError::Missing(missing) => {
                let hint = missing
                    .first()
                    .and_then(|first| system_hint(Path::new(&first.name), &first.error));
                let mut missing = missing.iter();
                let first = missing.next().map(ToString::to_string).unwrap_or_default();
                let failure = missing.fold(Failure::input(first), Failure::and);
                failure.with_hints(hint)
            }
            ListError::List { name, error } => {
                return Failure::io("the list cannot be read", name, error);
            }
            _ if error.is_usage() => Failure::usage(&error),
            _ => Failure::input(&error),
        };
        failure.with_hints(error.hint())
    }
}

/// Opens a file. If only its first bytes can be read, a warning says why.
///
/// # Errors
/// If it cannot be opened or read.
pub fn open(path: &Path) -> Result<Input> {
    let input = Input::open(path)?;
    warn_of_front(&input);
    Ok(input)
}

/// Warns if only the first bytes of a file can be read.
pub fn warn_of_front(input: &Input) {
    if let Some(problem) = input.problem() {
        let name = input.name();
        // A failed write is ignored. It means that stderr is closed.
        let _ = writeln!(
            print::stderr(),
            "warning: {name}: only the beginning is read, because {problem}"
        );
    }
}
