//! The `profkit` command: parses the arguments, calls the libraries, and prints text or JSON. The libraries do not
//! print.
//!
//! The arguments of a command are a `clap` struct in the command's module, listed in `cli::Command`. The `run`
//! function of the module takes that struct and returns an `exit::Status` or an `exit::Failure`.
//! Only `exit` turns these into messages and exit codes. Files are opened and written through
//! [`profkit_merge::files`].

mod call;
mod choice;
pub mod cli;
mod completions;
mod correlate;
mod diff;
mod doctor;
mod exit;
mod export;
mod fold;
mod io;
mod layout;
mod matching;
mod memprof;
mod merge;
mod mip;
mod on_demand;
mod order;
mod overlap;
#[cfg(unix)]
mod pgo;
mod print;
mod report;
mod runtime;
mod sampling;
mod show;
mod spelling;
mod table_file;
mod verify;

pub use call::{Answer, Call, call, merger};
pub use exit::{Cause, Failure};

use profkit_llvm::{Io, Tool};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Runs the command with the program's arguments. The first argument is the program's own name.
///
/// The command behaves like one of LLVM's tools if the name of the program begins with the tool's name
/// (`llvm-profdata-22`, `llvm-profgen.exe`, `llvm-mipdata`), or if the first argument after the program's name is the tool's name.
pub fn run(args: Vec<OsString>) -> ExitCode {
    ExitCode::from(exit_code(args))
}

/// Runs the command like [`run`], and returns the exit code as a number.
pub fn exit_code(args: Vec<OsString>) -> u8 {
    if let Some(tool) = args.first().and_then(|program| Tool::of_program(program)) {
        return llvm_tool(tool, args);
    }
    if args
        .first()
        .is_some_and(|program| mip::mipdata::is_program(program))
    {
        return mip::mipdata::run(&args);
    }
    #[cfg(unix)]
    if let Some(program) = args.first()
        && mip::cc::is_assembler(program)
    {
        return mip::cc::run_assembler(args);
    }
    #[cfg(unix)]
    if let Some(call) = profkit_mip_driver::cargo::Call::of_process(&args) {
        return exit::finish(mip::cargo::run_call(&call));
    }
    if let Some(tool) = args.get(1).and_then(|first| Tool::named(first)) {
        return llvm_tool(tool, args.into_iter().skip(1).collect());
    }
    if args.get(1).is_some_and(|first| first == mip::mipdata::NAME) {
        return mip::mipdata::run(args.get(1..).unwrap_or_default());
    }
    print::apply_colour(&args);
    let mut parser = on_demand::parser(&args);
    if let Err(failure) = spelling::check(&parser, &args) {
        return exit::finish(Err(failure));
    }
    match cli::Cli::parse_with_matches(&mut parser, &args) {
        Ok((cli, matches)) => cli.run(&matches),
        Err(error) if error.use_stderr() && !spelling::is_help(&error) => {
            exit::finish(Err(spelling::failure(&error, &args)))
        }
        Err(error) => exit::command_line(&error),
    }
}

/// Runs LLVM's tool on this process's standard input, output and error. The first of `args` is the name of the program
/// in messages.
fn llvm_tool(tool: Tool, args: Vec<OsString>) -> u8 {
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let terminals = (stdout.is_terminal(), stderr.is_terminal());
    let (mut stdin, mut stdout, mut stderr) = (std::io::stdin(), stdout.lock(), stderr);
    let mut io = Io::new(&mut stdin, &mut stdout, &mut stderr)
        .terminals(terminals.0, terminals.1)
        .process_ends();
    (tool.run)(args, &mut io)
}
