//! The `profkit` command: parses the arguments, calls the libraries, and prints text or JSON. The libraries do not
//! print.
//!
//! The arguments of a command are a `clap` struct in the command's module, listed in [`cli::Command`]. The `run`
//! function of the module takes that struct and returns a [`Status`](exit::Status) or a [`Failure`](exit::Failure).
//! Only [`exit`] turns these into messages and exit codes. Files are opened and written through
//! [`profkit_merge::files`].

pub mod cli;
pub mod correlate;
pub mod diff;
pub mod doctor;
pub mod exit;
pub mod io;
pub mod matching;
pub mod memprof;
pub mod merge;
pub mod mip;
pub mod order;
pub mod overlap;
pub mod print;
pub mod show;

mod completions;
pub mod spelling;

use profkit_llvm::{Io, profdata};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command with the program's arguments. The first argument is the program's own name.
///
/// The personality that behaves like LLVM's tool is selected by a program name that begins with `llvm-profdata`
/// (`llvm-profdata-22`, `llvm-profdata.exe`), or by `llvm-profdata` as the first argument after the name.
pub fn run(args: Vec<OsString>) -> ExitCode {
    if let Some(program) = args.first()
        && names_llvm_profdata(program)
    {
        return llvm_profdata(args);
    }
    if let Some(program) = args.first()
        && mip::cc::is_assembler(program)
    {
        return mip::cc::run_assembler(args);
    }
    if args.get(1).is_some_and(|first| first == "llvm-profdata") {
        return llvm_profdata(args.into_iter().skip(1).collect());
    }
    print::apply_colour(&args);
    if let Err(failure) = spelling::check(&args) {
        return exit::finish(Err(failure));
    }
    match cli::Cli::parse_with_matches(&args) {
        Ok((cli, matches)) => cli.run(&matches),
        Err(error) if error.use_stderr() && !spelling::is_help(&error) => {
            exit::finish(Err(spelling::failure(&error, &args)))
        }
        Err(error) => exit::command_line(&error),
    }
}

/// Runs LLVM's tool on this process's standard input, output and error.
fn llvm_profdata(args: Vec<OsString>) -> ExitCode {
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let terminals = (stdout.is_terminal(), stderr.is_terminal());
    let (mut stdin, mut stdout, mut stderr) = (std::io::stdin(), stdout.lock(), stderr);
    let mut io = Io::new(&mut stdin, &mut stdout, &mut stderr)
        .terminals(terminals.0, terminals.1)
        .process_ends();
    ExitCode::from(profdata::run(args, &mut io))
}

fn names_llvm_profdata(program: &OsStr) -> bool {
    Path::new(program)
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"llvm-profdata"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_names_that_select_the_personality() {
        let selects = |name: &str| names_llvm_profdata(OsStr::new(name));
        assert!(selects("/usr/bin/llvm-profdata-22"));
        assert!(selects("llvm-profdata.exe"));
        assert!(!selects("/opt/llvm-profdata/bin/profkit"));
        assert!(!selects("profkit"));
    }
}
