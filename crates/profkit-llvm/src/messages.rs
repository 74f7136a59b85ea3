//! The form of the errors and warnings of LLVM's tools.
use crate::{Io, LLVM_22, LLVM_VERSION, STDIN};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind, path_from_bytes};
use profkit_merge::files::{open_stored, system_text};
use profkit_merge::{InputData, LlvmCode, LlvmFault};
use std::cell::{RefCell, RefMut};
use std::io::{self, Read, Write};

const ERROR: (&str, &str) = ("error: ", "31");
const WARNING: (&str, &str) = ("warning: ", "35");
const NOTE: (&str, &str) = ("note: ", "36");

/// An error that stops the tool with exit code 1. It consists of the name of a file, a message and an optional note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    whence: Vec<u8>,
    message: Vec<u8>,
    note: &'static str,
    /// Whether the message begins with `error: `.
    labelled: bool,
}

impl Fault {
    /// Makes an error that names no file.
    pub fn new(message: impl Into<Vec<u8>>) -> Self {
        Fault {
            whence: Vec::new(),
            message: message.into(),
            note: "",
            labelled: true,
        }
    }

    /// Makes an error that names a file. `whence` is the file's name.
    pub fn of(whence: &[u8], message: impl Into<Vec<u8>>) -> Self {
        Fault {
            whence: whence.to_vec(),
            ..Self::new(message)
        }
    }

    /// Makes an error whose line does not begin with the word "error". `whence` is the text before the message.
    pub fn bare(whence: &str, message: impl Into<Vec<u8>>) -> Self {
        Fault {
            labelled: false,
            ..Self::of(whence.as_bytes(), message)
        }
    }

    /// Makes the error for a file that the system could not open, read or write.
    pub fn io(whence: &[u8], error: &io::Error) -> Self {
        Self::of(whence, system_text(error))
    }

    /// Makes the error for damage in the content of a profile.
    pub fn profile(whence: &[u8], error: &Error) -> Self {
        let fault = Self::of(whence, fault_text(&LlvmFault::from(error)));
        match error.kind() {
            ErrorKind::UnrecognizedFormat => {
                fault.with_note("Perhaps you forgot to use the --sample or --memory option?")
            }
            _ => fault,
        }
    }

    /// Makes the error for a command or an option of LLVM's tool that this release of profkit does not support.
    pub fn later(what: &str) -> Self {
        Self::new(format!(
            "{what} is not supported by this release of profkit; use llvm-profdata of LLVM {LLVM_VERSION}"
        ))
    }

    /// Adds a line to the error. The line begins with `note: `.
    #[must_use]
    pub fn with_note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}

/// Returns LLVM's text for an error. It consists of the text for the error code (`getInstrProfErrString`), a colon, and
/// LLVM's detail, if there is one.
pub fn fault_text(fault: &LlvmFault) -> String {
    let text = match fault.code {
        LlvmCode::EndOfFile => "end of File",
        LlvmCode::UnrecognizedFormat => "unrecognized instrumentation profile encoding format",
        LlvmCode::BadMagic => "invalid instrumentation profile data (bad magic)",
        LlvmCode::BadHeader => "invalid instrumentation profile data (file header is corrupt)",
        LlvmCode::UnsupportedVersion => "unsupported instrumentation profile format version",
        LlvmCode::UnsupportedHashType => "unsupported instrumentation profile hash type",
        LlvmCode::TooLarge => "too much profile data",
        LlvmCode::Truncated => "truncated profile data",
        LlvmCode::MissingCorrelationInfo => "debug info/binary for correlation is required",
        LlvmCode::UnexpectedCorrelationInfo => "debug info/binary for correlation is not necessary",
        LlvmCode::UnableToCorrelateProfile => "unable to correlate profile",
        LlvmCode::HashMismatch => "function control flow change detected (hash mismatch)",
        LlvmCode::CountMismatch => "function basic block count change detected (counter mismatch)",
        LlvmCode::BitmapMismatch => "function bitmap size change detected (bitmap size mismatch)",
        LlvmCode::CounterOverflow => "counter overflow",
        LlvmCode::ValueSiteCountMismatch => {
            "function value site count change detected (counter mismatch)"
        }
        LlvmCode::UncompressFailed => "failed to uncompress data (zlib)",
        LlvmCode::EmptyRawProfile => "empty raw profile file",
        LlvmCode::RawProfileVersionMismatch => "raw profile version mismatch",
        LlvmCode::CounterValueTooLarge => {
            "excessively large counter value suggests corrupted profile data"
        }
        _ => "malformed instrumentation profile data",
    };
    match &fault.detail {
        Some(detail) => format!("{text}: {detail}"),
        None => text.to_owned(),
    }
}

/// The standard input, output and error during a run. Messages have colours in the same cases as those of LLVM's tools.
pub struct Session<'io> {
    stdin: RefCell<&'io mut (dyn Read + 'io)>,
    stdout: RefCell<&'io mut (dyn Write + 'io)>,
    stderr: RefCell<&'io mut (dyn Write + 'io)>,
    stdout_is_terminal: bool,
    process_ends: bool,
    release: Release,
    colours: bool,
    /// The text with which errors begin: the name of the tool and a colon, or nothing.
    intro: &'static str,
}

impl<'io> Session<'io> {
    /// Starts a run that uses the standard input, output and error in `io`. `color` is the value of the option
    /// `--color`; `None` if it was not given.
    pub fn new(io: &'io mut Io<'_>, color: Option<bool>) -> Self {
        let terminal =
            io.stderr_is_terminal && std::env::var("TERM").is_ok_and(|term| shows_colours(&term));
        Session {
            stdin: RefCell::new(&mut *io.stdin),
            stdout: RefCell::new(&mut *io.stdout),
            stderr: RefCell::new(&mut *io.stderr),
            stdout_is_terminal: io.stdout_is_terminal,
            process_ends: io.process_ends,
            release: LLVM_22,
            colours: color.unwrap_or(terminal),
            intro: "",
        }
    }

    /// Makes errors begin with this text, which contains the name of the tool.
    #[must_use]
    pub fn errors_begin_with(mut self, intro: &'static str) -> Self {
        self.intro = intro;
        self
    }

    /// Imitates the tool of this release, in place of LLVM 22's.
    #[must_use]
    pub fn imitating(mut self, release: Release) -> Self {
        self.release = release;
        self
    }

    /// The release whose tool is imitated.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Reads a whole file; `-` is standard input.
    pub fn read(&self, name: &[u8]) -> Result<InputData<'static>, Fault> {
        self.read_as(name, name)
    }

    /// Reads a whole file. An error is reported with `whence` in place of the file's name.
    pub fn read_as(&self, name: &[u8], whence: &[u8]) -> Result<InputData<'static>, Fault> {
        let read = if name == STDIN {
            self.read_stdin().map(InputData::Buffer)
        } else {
            open_stored(&path_from_bytes(name), &mut Vec::new())
        };
        read.map_err(|error| Fault::io(whence, &error))
    }

    /// Reads standard input to its end.
    pub fn read_stdin(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stdin.borrow_mut().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Standard output.
    pub fn stdout(&self) -> RefMut<'_, &'io mut (dyn Write + 'io)> {
        self.stdout.borrow_mut()
    }

    /// Whether standard output is a terminal.
    pub fn stdout_is_terminal(&self) -> bool {
        self.stdout_is_terminal
    }

    /// Whether the process ends after this run of the tool.
    pub fn process_ends(&self) -> bool {
        self.process_ends
    }

    /// Writes whole lines to standard error.
    pub fn put(&self, lines: &[u8]) {
        crate::say(&mut **self.stderr.borrow_mut(), lines);
    }

    /// Prints the error that stops the tool, to standard error.
    pub fn error(&self, fault: &Fault) {
        let mut line = Vec::new();
        if fault.labelled {
            line.extend_from_slice(self.intro.as_bytes());
            self.label(&mut line, ERROR);
        }
        if !fault.whence.is_empty() {
            line.extend_from_slice(&fault.whence);
            line.extend_from_slice(b": ");
        }
        line.extend_from_slice(&fault.message);
        line.push(b'\n');
        if !fault.note.is_empty() {
            self.label(&mut line, NOTE);
            line.extend_from_slice(fault.note.as_bytes());
            line.push(b'\n');
        }
        self.put(&line);
    }

    /// Prints a warning. `whence` is the name of a file, or empty for a warning that names none.
    pub fn warning(&self, whence: &[u8], message: &str) {
        let mut line = Vec::new();
        self.label(&mut line, WARNING);
        if !whence.is_empty() {
            line.extend_from_slice(whence);
            line.extend_from_slice(b": ");
        }
        line.extend_from_slice(message.as_bytes());
        line.push(b'\n');
        self.put(&line);
    }

    /// Prints a warning that contains bytes of a file. The bytes need not be UTF-8.
    pub fn warning_bytes(&self, message: &[u8]) {
        let mut line = Vec::new();
        self.label(&mut line, WARNING);
        line.extend_from_slice(message);
        line.push(b'\n');
        self.put(&line);
    }

    fn label(&self, line: &mut Vec<u8>, (label, colour): (&str, &str)) {
        if self.colours {
            line.extend_from_slice(format!("\x1b[0;1;{colour}m{label}\x1b[0m").as_bytes());
        } else {
            line.extend_from_slice(label.as_bytes());
        }
    }
}

/// Whether LLVM assumes that a terminal with this value of TERM shows colours (`Unix/Process.inc`).
fn shows_colours(term: &str) -> bool {
    ["ansi", "cygwin", "linux"].contains(&term)
        || ["screen", "xterm", "vt100", "rxvt"]
            .iter()
            .any(|family| term.starts_with(family))
        || term.ends_with("color")
}
