//! Turns the errors and notes of [`profkit_merge::files`] into failures and text.
use crate::exit::{Failure, Result, system_hint};
use crate::print::{self, grouped, plural};
use profkit_merge::files::{Input, InputNote, ListError, OutputError, ReadError};
use std::io::Write;
use std::path::Path;

impl From<ReadError> for Failure {
    #[cold]
    fn from(error: ReadError) -> Self {
        Failure::io("cannot read", error.name, &error.error)
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
                return Failure::io("cannot read the list", name, error);
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

/// Returns a note about the inputs as one line of text.
pub fn input_note(note: &InputNote) -> String {
    match note {
        InputNote::OutputIsInput { name } => {
            format!("{name} is both an input and the output: it is read first, then replaced")
        }
        InputNote::OutputInFolder { path } => format!(
            "{} is left out: it is the output, found in a folder that is an input",
            profkit_data::path_text(path)
        ),
        InputNote::ReportIsInput { path } => format!(
            "{} is left out: an earlier report is in it, and this report will replace it",
            profkit_data::path_text(path)
        ),
        InputNote::DamagedArchive {
            name,
            members,
            problem,
            hint,
        } => format!(
            "{name}: {problem}; {} can be read; {hint}",
            plural(*members as u64, "member")
        ),
        InputNote::EmptyArchive { name } => format!("{name}: this archive holds no files to merge"),
        InputNote::EmptyFolder { name } => format!("{name}: this folder holds no files to merge"),
        InputNote::Repeated { path, times } => {
            let times = match times {
                2 => "twice".to_owned(),
                times => format!("{times} times"),
            };
            let path = profkit_data::path_text(path);
            format!("{path} is named {times}: its counts are added {times}")
        }
        InputNote::MoreRepeated(count) => {
            format!("… and {} more files named several times", grouped(*count))
        }
        InputNote::Same { path, other } if path == other => format!(
            "{} is named, and it is in a folder that is an input: it counts once",
            profkit_data::path_text(path)
        ),
        InputNote::Same { path, other } => format!(
            "{} is left out: it is the same file or folder as {}",
            profkit_data::path_text(path),
            profkit_data::path_text(other)
        ),
        InputNote::MoreSame(count) => {
            let count = plural(*count, "path");
            format!(
                "… and {count} more, left out because they lead to files that are already among the inputs"
            )
        }
        InputNote::PassedOver { path, what } => {
            format!(
                "{} is passed over: it is {what}",
                profkit_data::path_text(path)
            )
        }
        InputNote::MorePassedOver(count) => {
            format!("… and {} passed over", plural(*count, "path"))
        }
        // The library may add variants to this enum. A note that has no text here is still shown.
        _ => format!("{note:?}"),
    }
}
