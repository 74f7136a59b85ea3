//! LLVM's profile tools, reproduced exactly: the same options, texts, exit codes and bytes, on top of profkit's
//! libraries.
//!
//! [`profdata::run`] is `llvm-profdata`. Files are opened by name as the tool does; standard input, output and error
//! are those of an [`Io`], so that a test or another front end can run the tool inside its own process.
#![forbid(unsafe_code)]

pub mod profdata;

use std::fmt;
use std::io::{Read, Write};

/// The standard input, output and error of a run.
pub struct Io<'io> {
    stdin: &'io mut (dyn Read + 'io),
    stdout: &'io mut (dyn Write + 'io),
    stderr: &'io mut (dyn Write + 'io),
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    process_ends: bool,
}

impl<'io> Io<'io> {
    /// Makes an `Io` of a standard input, output and error. None of these three is treated as a terminal.
    pub fn new(
        stdin: &'io mut (dyn Read + 'io),
        stdout: &'io mut (dyn Write + 'io),
        stderr: &'io mut (dyn Write + 'io),
    ) -> Self {
        Io {
            stdin,
            stdout,
            stderr,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            process_ends: false,
        }
    }

    /// Declares which of the outputs are terminals. Binary profiles are not written to a terminal, and messages on a
    /// terminal have colours.
    #[must_use]
    pub fn terminals(mut self, stdout: bool, stderr: bool) -> Self {
        self.stdout_is_terminal = stdout;
        self.stderr_is_terminal = stderr;
        self
    }

    /// Declares that the process ends after the run. Large results are then not freed, because the system takes the
    /// memory back at once.
    #[must_use]
    pub fn process_ends(mut self) -> Self {
        self.process_ends = true;
        self
    }
}

impl fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("stdout_is_terminal", &self.stdout_is_terminal)
            .field("stderr_is_terminal", &self.stderr_is_terminal)
            .finish_non_exhaustive()
    }
}
