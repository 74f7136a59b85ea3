//! Turns the errors of [`profkit_merge::files`] into failures.
use crate::exit::{Failure, Result, must_exist, system_hint};
use crate::print;
use profkit_analysis::matching::BinaryFunctions;
use profkit_data::path_text;
use profkit_merge::files::{Input, ListError, OutputError, ReadError};
use profkit_mip::create;
use std::path::{Path, PathBuf};

impl From<ReadError> for Failure {
    #[cold]
    fn from(error: ReadError) -> Self {
        Failure::io("cannot be read", error.name, &error.error)
    }
}

/// Errors that say whether the command line is wrong, and what to do, as failures.
macro_rules! failures_of {
    ($($error:ty),+ $(,)?) => {$(
        impl From<$error> for Failure {
            #[cold]
            fn from(error: $error) -> Self {
                let failure = if error.is_usage() {
                    Failure::usage(&error)
                } else {
                    Failure::input(&error)
                };
                failure.with_hints(error.hint())
            }
        }
    )+};
}
failures_of!(
    OutputError,
    profkit_mip::profiles::Error,
    profkit_mip_driver::runtime::Error,
    profkit_runtime::link::Error,
);

impl From<create::Error> for Failure {
    #[cold]
    fn from(error: create::Error) -> Self {
        Failure::input(&error).with_hints(error.hint())
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
                Failure::inputs(missing).with_hints(hint)
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
pub fn open(path: &Path) -> Result<Input> {
    let input = Input::open(path)?;
    warn_of_front(&input);
    Ok(input)
}

pub fn add_binaries(functions: &mut BinaryFunctions, paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        must_exist(path)?;
        let opened = functions.open(path);
        opened.map_err(|error| Failure::file(path_text(path), &error))?;
    }
    Ok(())
}

pub fn warn_of_front(input: &Input) {
    if let Some(problem) = input.problem() {
        let name = input.name();
        print::say(format_args!(
            "warning: {name}: only the beginning is read, because {problem}"
        ));
    }
}
