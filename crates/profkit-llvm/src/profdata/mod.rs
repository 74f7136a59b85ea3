//! Reproduces llvm-profdata of LLVM 22 exactly, and of LLVM 23 under the name `llvm-profdata-23`: its options, texts, exit codes
//! and output bytes.
//! [docs/formats/llvm-profdata.md] lists every difference and its reason.
//!
//! [docs/formats/llvm-profdata.md]: https://github.com/profkit/profkit/blob/main/docs/formats/llvm-profdata.md
mod correlate;
mod help;
mod input;
mod inputs;
mod memprof;
mod merge;
mod options;
mod order;
mod overlap;
mod pattern;
mod sample;
mod show;
mod thresholds;
mod values;
mod yaml;

pub use crate::command_line::{OptionKind, OptionSpec};
#[cfg(test)]
pub(crate) use options::TOOL;

use crate::command_line::{self, Commands, Outcome, Parsed, parse};
use crate::messages::{Fault, Session};
use crate::{Io, release_of};
use options::{KIND, ORDER, OVERLAP, SHOW};
pub(crate) use profkit_data::path_from_bytes;
pub(crate) use sample::fault as sample_fault;
use std::ffi::OsString;
pub(crate) use thresholds::{no_cutoff, thresholds};

const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;

/// The name of the tool.
pub const NAME: &str = "llvm-profdata";

/// The example command line at the end of the text of `profkit llvm-profdata --help`, with its title.
pub const EXAMPLE: &str = "\
Example:
  profkit llvm-profdata merge -sparse *.profraw -o out.profdata";

/// A subcommand, as completion scripts and manual pages need it.
#[derive(Clone, Copy, Debug)]
pub struct CommandSpec {
    /// The name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    command: Commands,
}

impl CommandSpec {
    /// Returns the options of the subcommand, including hidden ones, in the order of the help text.
    pub fn options(&self) -> impl Iterator<Item = &'static OptionSpec> + use<> {
        let command = self.command;
        let options = options::TOOL.options.iter();
        options.filter(move |option| option.commands.intersects(command))
    }
}

/// Returns the subcommands in the order of the help text.
pub fn commands() -> impl Iterator<Item = CommandSpec> {
    help::SUBCOMMANDS
        .iter()
        .map(|&(command, _, about)| CommandSpec {
            name: options::TOOL.command_name(command),
            about,
            command,
        })
}

/// Whether any command of llvm-profdata has an option with this name. The name is written without dashes.
pub fn has_option(name: &str) -> bool {
    let mut options = options::TOOL.options.iter();
    options.any(|option| option.name == name)
}

/// Runs llvm-profdata with these arguments, and returns its exit code. The first argument is the program's name. `-` as
/// an input or output means the standard input or output of `io`.
///
/// ```
/// use profkit_llvm::{Io, profdata};
///
/// let (mut text, mut errors) = (Vec::new(), Vec::new());
/// let mut stdin = b":ir\nmain\n12\n2\n90\n10\n".as_slice();
/// let mut io = Io::new(&mut stdin, &mut text, &mut errors);
/// let args = ["llvm-profdata", "merge", "--text", "-", "-o", "-"];
/// assert_eq!(profdata::run(args.map(Into::into).to_vec(), &mut io), 0);
/// assert!(String::from_utf8_lossy(&text).contains("main\n# Func Hash:\n12"));
/// ```
pub fn run(args: Vec<OsString>, io: &mut Io<'_>) -> u8 {
    let args: Vec<Vec<u8>> = args.into_iter().map(OsString::into_encoded_bytes).collect();
    let mut wrong = Vec::new();
    let outcome = parse(&options::TOOL, &args, &mut wrong);
    crate::say(io.stderr, &wrong);
    let typed = args.first().map_or(b"".as_slice(), Vec::as_slice);
    let program = String::from_utf8_lossy(&command_line::file_name(typed)).into_owned();
    match outcome {
        Outcome::Wrong => FAILURE,
        Outcome::Help(command, kind) => print(io, &help::help(&program, command, kind)),
        Outcome::Version => print(io, &help::version(release_of(NAME, &program))),
        Outcome::Run(parsed) => {
            let session =
                Session::new(io, parsed.given_flag("color")).imitating(release_of(NAME, &program));
            match run_command(&program, &parsed, &session) {
                Ok(()) => SUCCESS,
                Err(fault) => {
                    session.error(&fault);
                    FAILURE
                }
            }
        }
    }
}

fn run_command(program: &str, parsed: &Parsed, session: &Session<'_>) -> Result<(), Fault> {
    match parsed.command {
        ORDER => order::run(parsed, session),
        OVERLAP => match parsed.word(KIND) {
            Some("sample") => sample::overlap(parsed, session),
            _ => overlap::run(parsed, session),
        },
        SHOW => show::run(program, parsed, session),
        _ => merge::run(program, parsed, session),
    }
}

fn print(io: &mut Io<'_>, text: &str) -> u8 {
    match io.stdout.write_all(text.as_bytes()) {
        Ok(()) => SUCCESS,
        Err(_) => FAILURE,
    }
}
