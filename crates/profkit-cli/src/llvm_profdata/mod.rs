//! The llvm-profdata personality: what LLVM 22's tool does for instrumentation profiles, to the letter: its options,
//! its text, its exit codes, its bytes. docs/formats/llvm-profdata.md lists every difference with its reason.
mod command_line;
mod correlate;
mod help;
mod input;
mod inputs;
mod lines;
mod memprof;
mod merge;
mod messages;
mod output;
mod pattern;
mod sample;
mod show;
mod values;
mod yaml;

use command_line::{Commands, KIND, Outcome, Parsed, parse};
use messages::{Fault, Messages};
#[cfg(unix)]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Shown under `profkit --help`.
pub const EXAMPLE: &str = "\
Example:
  profkit llvm-profdata merge -sparse *.profraw -o out.profdata";

/// Does what LLVM's tool does with these arguments, of which the first is the program's name.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let args: Vec<Vec<u8>> = args.into_iter().map(OsString::into_encoded_bytes).collect();
    let mut wrong = Vec::new();
    let outcome = parse(&args, &mut wrong);
    // Nobody is left to be told if standard error is closed; the exit code still says it.
    let _ = io::stderr().write_all(&wrong);
    let typed = args.first().map_or(b"".as_slice(), Vec::as_slice);
    let program = String::from_utf8_lossy(&command_line::file_name(typed)).into_owned();
    match outcome {
        Outcome::Wrong => ExitCode::FAILURE,
        Outcome::Help(command, kind) => print(&help::help(&program, command, kind)),
        Outcome::Version => print(&help::version()),
        Outcome::Run(parsed) => {
            let messages = Messages::new(parsed.given_flag("color"));
            match run_command(&program, &parsed, &messages) {
                Ok(()) => ExitCode::SUCCESS,
                Err(fault) => {
                    messages.error(&fault);
                    ExitCode::FAILURE
                }
            }
        }
    }
}

fn run_command(program: &str, parsed: &Parsed, messages: &Messages) -> Result<(), Fault> {
    match parsed.command {
        Commands::ORDER => Err(Fault::later("order")),
        Commands::OVERLAP => match parsed.word(KIND) {
            Some("sample") => sample::overlap(parsed),
            _ => Err(Fault::later("overlap of instrumentation profiles")),
        },
        Commands::SHOW => show::run(program, parsed, messages),
        _ => merge::run(program, parsed, messages),
    }
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A path from the bytes of an argument or of a list of files.
pub(crate) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(OsStr::from_bytes(bytes))
    }
    #[cfg(not(unix))]
    {
        PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
    }
}
