//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! LLVM's profile tools, reproduced exactly with profkit's libraries: the options, texts, exit codes and output bytes
//! are the same.
//!
//! [`profdata::run`] is `llvm-profdata`, [`profgen::run`] is `llvm-profgen`. Files are opened by name, as LLVM's tool
//! opens them. Standard input, output and error are those of an [`Io`], so that a test or another front end can run the
//! tool inside its own process.
#![forbid(unsafe_code)]

mod command_line;
mod lines;
mod messages;
mod output;
pub mod profdata;
pub mod profgen;

use profkit_data::releases::Release;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{Read, Write};
use std::path::Path;

/// The LLVM release whose tools this crate reproduces.
const LLVM_VERSION: &str = "22.1.8";
/// The same release.
const LLVM_22: Release = Release::new(22);
/// The release that a tool imitates whose program has a name such as `llvm-profdata-23`.
const LLVM_23: Release = Release::new(23);
/// The name that stands for standard input, and for standard output.
const STDIN: &[u8] = b"-";

/// A tool of LLVM.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The name of the tool.
    pub name: &'static str,
    /// Runs the tool with these arguments. The first argument is the name of the program. Returns the exit code.
    pub run: fn(Vec<OsString>, &mut Io<'_>) -> u8,
}

/// `llvm-profdata`.
pub const PROFDATA: Tool = Tool {
    name: profdata::NAME,
    run: profdata::run,
};
/// `llvm-profgen`.
pub const PROFGEN: Tool = Tool {
    name: profgen::NAME,
    run: profgen::run,
};

impl Tool {
    const ALL: [Tool; 2] = [PROFDATA, PROFGEN];

    /// Returns the tool that a program with this name imitates. The file name of the program must begin with the name
    /// of the tool, as in `/usr/bin/llvm-profdata-22` and `llvm-profgen.exe`. `None` for other names.
    pub fn of_program(program: &OsStr) -> Option<Tool> {
        let name = Path::new(program).file_name()?.as_encoded_bytes();
        let mut tools = Self::ALL.into_iter();
        tools.find(|tool| name.starts_with(tool.name.as_bytes()))
    }

    /// Returns the tool with this name, which a release may follow, as in `llvm-profdata-23`.
    pub fn named(name: &OsStr) -> Option<Tool> {
        let name = name.to_str()?;
        Self::ALL.into_iter().find(|tool| {
            let rest = name.strip_prefix(tool.name);
            let release = |rest: &str| {
                rest.strip_prefix('-')
                    .and_then(|number| number.parse::<u8>().ok())
            };
            rest.is_some_and(|rest| rest.is_empty() || release(rest).is_some())
        })
    }
}

/// The release that a program of this name imitates: 23 if the name of the tool and 23 are all of it, as in
/// `llvm-profdata-23`, otherwise 22.
fn release_of(tool: &str, program: &str) -> Release {
    let number = program
        .strip_prefix(tool)
        .and_then(|rest| rest.strip_prefix('-'));
    let number = number.map(|rest| rest.strip_suffix(".exe").unwrap_or(rest));
    match number {
        Some("23") => LLVM_23,
        _ => LLVM_22,
    }
}

/// The newest version of a release that its imitation was compared with.
fn version_text(release: Release) -> &'static str {
    match release {
        LLVM_23 => "23.1.4",
        _ => LLVM_VERSION,
    }
}

/// The standard input, output and error of a run.
pub struct Io<'io> {
    stdin: &'io mut (dyn Read + 'io),
    stdout: &'io mut (dyn Write + 'io),
    stderr: &'io mut (dyn Write + 'io),
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    process_ends: bool,
}

/// Writes to standard error. If it is closed, the write fails: the exit code still shows the tool's failure.
pub(crate) fn say(stderr: &mut (dyn Write + '_), text: &[u8]) {
    let _ = stderr.write_all(text);
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

    /// Declares that the process ends after the run. Large results are then not freed, because the system takes all
    /// memory back in one step.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_names_that_select_a_tool() {
        let selected = |name: &str| Tool::of_program(OsStr::new(name)).map(|tool| tool.name);
        assert_eq!(selected("/usr/bin/llvm-profdata-22"), Some("llvm-profdata"));
        assert_eq!(selected("llvm-profgen.exe"), Some("llvm-profgen"));
        assert_eq!(selected("/opt/llvm-profdata/bin/profkit"), None);
        assert_eq!(selected("profkit"), None);
    }

    #[test]
    fn arguments_that_select_a_tool() {
        let selected = |name: &str| Tool::named(OsStr::new(name)).map(|tool| tool.name);
        assert_eq!(selected("llvm-profdata-23"), Some("llvm-profdata"));
        assert_eq!(selected("llvm-profgen"), Some("llvm-profgen"));
        assert_eq!(selected("llvm-profdata-merge"), None);
        assert_eq!(selected("llvm-profdata.txt"), None);
    }
}
