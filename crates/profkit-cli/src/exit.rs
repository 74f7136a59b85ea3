//! Decides exit codes and the form of error messages.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | an input was bad, or the output could not be written |
//! | 2 | the command line was wrong |
//! | 3 | a condition that the user set was not met |
//! | 128 + N | signal N ended the command: 130 for Ctrl-C, 143 for SIGTERM |
//! | any | the exit code of the compiler that `profkit mip cc` runs |
//!
//! An error is one or more lines on stderr that begin with `error: `. If the user can do something about the error, a
//! line that begins with `hint: ` follows.
use crate::print::{self, Format};
use profkit_analysis::faults::Faults;
use profkit_data::path_text;
use profkit_data::stored::{MemberError, StoredError, split_member};
use profkit_merge::MergeError;
use profkit_merge::files::{is_remote, system_text};
use profkit_report::{Document, quoted};
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of a command that ran to its end. The messages of the command have been printed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The command did everything that it was asked to do.
    Done,
    /// An input was bad, and the command has reported it.
    InputBad,
    /// A condition that the user set was not met.
    GateFailed,
    /// The command ran another program, and ends with the exit code of that program.
    Code(u8),
}

/// Why a command stopped: the messages to print, and the exit code.
#[derive(Clone, Debug)]
pub struct Failure {
    code: u8,
    messages: Vec<String>,
    hints: Vec<String>,
    cause: Option<Box<Cause>>,
}

/// What a program that calls a command can examine of a failure.
#[derive(Clone, Debug)]
pub enum Cause {
    /// A file is damaged, or is not what the command needs: its name, and the error.
    Data(String, profkit_data::Error),
    /// The operating system refused something: the name of the file, and the error.
    System(String, Arc<io::Error>),
    /// The inputs cannot be merged.
    Merge(MergeError),
}

impl Cause {
    /// An error of the operating system, which cannot be cloned.
    pub fn system(name: String, error: &io::Error) -> Self {
        let error = match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        Cause::System(name, Arc::new(error))
    }
}

pub type Result<T = Status> = std::result::Result<T, Failure>;

const INPUT_BAD: u8 = 1;
const USAGE: u8 = 2;
const GATE_FAILED: u8 = 3;

impl Failure {
    /// Makes a failure for a bad input, or for an output that could not be written: exit code 1.
    #[cold]
    pub fn input(message: impl fmt::Display) -> Self {
        Failure {
            code: INPUT_BAD,
            messages: vec![message.to_string()],
            hints: Vec::new(),
            cause: None,
        }
    }

    /// Makes a failure for bad inputs, with a message for each.
    #[cold]
    pub fn inputs(messages: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        Failure {
            code: INPUT_BAD,
            messages: messages.into_iter().map(|it| it.to_string()).collect(),
            hints: Vec::new(),
            cause: None,
        }
    }

    /// The same failure with the exit code of bad inputs, which is the only one of some tools.
    pub fn into_input(self) -> Self {
        Failure {
            code: INPUT_BAD,
            ..self
        }
    }

    /// Makes a failure for a command line that the argument parser accepted, but that is wrong: exit code 2.
    #[cold]
    pub fn usage(message: impl fmt::Display) -> Self {
        Failure {
            code: USAGE,
            ..Self::input(message)
        }
    }

    /// Makes a failure for a condition that the user set and that was not met: exit code 3.
    #[cold]
    pub fn gate(message: impl fmt::Display) -> Self {
        Failure {
            code: GATE_FAILED,
            ..Self::input(message)
        }
    }

    /// Makes a failure for a bad input file. The message begins with the name of the file, and has the name only once
    /// even if the text of `error` contains it. The hint of `error` becomes the hint of the failure.
    #[cold]
    pub fn file(name: impl fmt::Display, error: &profkit_data::Error) -> Self {
        let name = name.to_string();
        let nameless = error.clone().without_file_name(&name);
        let failure = Self::input(format_args!("{name}: {nameless}"));
        let failure = failure.with_hints(error.hint());
        failure.because(Cause::Data(name, error.clone()))
    }

    /// Makes a failure to open, read or write a file. `problem` says which step failed, for example "cannot be
    /// read".
    #[cold]
    pub fn io(problem: &str, name: impl fmt::Display, error: &io::Error) -> Self {
        let name = name.to_string();
        let failure = Self::input(format_args!("{name}: {problem}: {}", system_text(error)));
        let failure = failure.with_hints(system_hint(Path::new(&name), error));
        failure.because(Cause::system(name, error))
    }

    /// Adds what programs can examine.
    #[must_use]
    pub fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// What programs can examine; `None` if there are only messages.
    pub fn cause(&self) -> Option<&Cause> {
        self.cause.as_deref()
    }

    /// What the user can do, as sentences.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Makes the failure for the case that the program which reads our standard output has ended. Nothing is printed
    /// and the exit code is 0, because the other program may stop reading.
    #[cold]
    pub fn reader_gone() -> Self {
        Failure {
            code: 0,
            messages: Vec::new(),
            hints: Vec::new(),
            cause: None,
        }
    }

    #[cold]
    /// Makes a failure to write to standard output.
    pub fn print(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::reader_gone()
        } else {
            Self::io("cannot be written", "standard output", error)
        }
    }

    fn say(&self) {
        for message in &self.messages {
            print::say(format_args!("error: {message}"));
        }
        for hint in &self.hints {
            print::say(format_args!("hint: {hint}"));
        }
    }

    /// The messages, each without `error: `.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Adds a message: one more line that begins with `error: `.
    #[must_use]
    pub fn and(mut self, message: impl fmt::Display) -> Self {
        self.messages.push(message.to_string());
        self
    }

    /// Adds hints to the failure; the list of hints may be empty.
    #[must_use]
    pub fn with_hints(self, hints: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        hints.into_iter().fold(self, Failure::with_hint)
    }

    #[must_use]
    /// Adds a hint to the failure.
    pub fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }
}

/// Checks that a file or folder exists. A command calls this before a library function that has another message for a
/// missing file, so that all commands print the same message.
pub fn must_exist(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::io("cannot be read", path_text(path), &error)),
    }
}

/// Returns what the user can do about an error of the operating system; `None` if no step is known. `path` is the file
/// that could not be opened.
pub fn system_hint(path: &Path, error: &io::Error) -> Option<String> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return None,
    };
    let cause = error.get_ref();
    if let Some(error) = cause.and_then(|cause| cause.downcast_ref::<StoredError>()) {
        return Some(error.hint().to_owned());
    }
    if let Some(error) = cause.and_then(|cause| cause.downcast_ref::<MemberError>()) {
        let archive = split_member(path.to_str()?).last();
        let archive = archive.map_or_else(|| path_text(path), |(archive, _)| archive.to_owned());
        return Some(match error.example() {
            Some(member) => format!(
                "name one of them: {}; `profkit merge` reads all files of an archive",
                quoted(&format!("{archive}!{member}"))
            ),
            None => format!("`profkit doctor {}` says what it is", quoted(&archive)),
        });
    }
    match error.kind() {
        io::ErrorKind::NotFound if !is_remote(path) && !folder.exists() => {
            Some(format!("there is no folder `{}`", path_text(folder)))
        }
        io::ErrorKind::NotFound => Some(match nearest_name(folder, path) {
            Some(near) => format!(
                "the nearest name in the same folder is {}",
                path_text(&near)
            ),
            None => format!(
                "`profkit doctor {}` lists the profiles in this folder",
                path_text(folder)
            ),
        }),
        io::ErrorKind::IsADirectory => Some(format!(
            "this is a folder: name one file of it; `profkit doctor {}` lists its profiles",
            path_text(path)
        )),
        _ => None,
    }
}

/// Returns the file in `folder` whose name is most similar to the file name of `path`; `None` if no name is similar.
/// Only the first thousand entries of the folder are examined.
fn nearest_name(folder: &Path, path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_string_lossy();
    let files = std::fs::read_dir(folder).ok()?.take(1000).flatten();
    let names = files.map(|file| file.path()).filter(|file| file.is_file());
    let near = names.filter_map(|file| {
        let name = file.file_name()?.to_string_lossy().into_owned();
        let likeness = strsim::jaro_winkler(&wanted, &name);
        (likeness > 0.85).then_some((likeness, file))
    });
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)))?;
    Some(
        best.1
            .strip_prefix("./")
            .map_or_else(|_| best.1.clone(), Path::to_owned),
    )
}

/// The errors of a file as messages, with the name of the file.
pub fn lines_of(name: &str, faults: &Faults) -> impl Iterator<Item = String> {
    let first = faults.first.iter().map(ToString::to_string);
    let more = Some(faults.more()).filter(|more| *more > 0);
    let all = first.chain(more.map(|more| format!("and {more} more errors")));
    all.map(move |error| format!("{name}: {error}"))
}

/// The result of a command that has collected its messages: done, unless there are messages.
pub fn done_unless(failure: Failure) -> Result {
    match failure.messages.is_empty() {
        true => Ok(Status::Done),
        false => Err(failure),
    }
}

/// Prints the bounds that are not met. Returns [`Status::GateFailed`] if there are any. `bound` is the option that sets
/// the bound, with its value in percent. An answer in Markdown is read without standard error, so it says too whether the
/// bound is met.
pub fn gate(
    format: Format,
    (option, bound): (&str, Option<f64>),
    reasons: impl IntoIterator<Item = impl fmt::Display>,
) -> Result<Option<Status>> {
    let mut lines = Vec::new();
    for reason in reasons {
        let line = format!("gate: {reason}");
        print::say(&line);
        lines.push(line);
    }
    let status = (!lines.is_empty()).then_some(Status::GateFailed);
    if status.is_none()
        && let Some(bound) = bound
    {
        lines.push(format!("gate: passed: {option} {bound}"));
    }
    if format == Format::Markdown && !lines.is_empty() {
        let mut answer = Document::default();
        answer.section("Gate");
        lines.into_iter().for_each(|line| answer.line(line));
        let mut out = print::stdout_for(format);
        writeln!(out)
            .and_then(|()| answer.print(&mut out))
            .and_then(|()| out.flush())
            .map_err(|error| Failure::print(&error))?;
    }
    Ok(status)
}

/// Ends the program: prints a failure, and decides the exit code.
pub fn finish(result: Result) -> u8 {
    if let Err(failure) = &result {
        failure.say();
    }
    code(&result)
}

pub fn code(result: &Result) -> u8 {
    match result {
        Ok(Status::Done) => 0,
        Ok(Status::InputBad) => INPUT_BAD,
        Ok(Status::GateFailed) => GATE_FAILED,
        Ok(Status::Code(code)) => *code,
        Err(failure) => failure.code,
    }
}

/// Whether this process ignores a signal. A process may be started in this state. For example, shells start commands in
/// the background with SIGINT ignored.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends the program after it caught a signal, and prints why. The program ends by the same signal, so that a shell sees
/// the exit code 128 + `signal` and also ends the script that runs the command.
pub fn by_signal(failure: &Failure, signal: i32) {
    failure.say();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// Ends the program after `clap` reported a wrong command line, or printed help or the version.
pub fn command_line(error: &clap::Error) -> u8 {
    match error.print() {
        _ if error.use_stderr() => USAGE,
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => INPUT_BAD,
        _ => 0,
    }
}
