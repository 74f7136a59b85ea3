//! `profkit mip cc`: a compiler's driver whose code is instrumented. docs/mip-cc.md has the user's view.
//!
//! | file | what it is |
//! |---|---|
//! | `parse.rs` | the driver's command line, as far as it must be understood |
//! | `plan.rs` | what is run in its place: a pure function |
//! | `run.rs` | running it: programs, temporary files, signals |
//! | `bounds.rs` | what GNU ld needs so that `--gc-sections` drops dead functions |
//! | `assembler.rs` | what GCC starts as its assembler |
mod assembler;
mod bounds;
mod parse;
mod plan;
mod run;
#[cfg(test)]
mod tests;

pub use assembler::{is_assembler, run as run_assembler};

use super::options::ModeArgs;
use crate::exit::{Failure, Result, Status};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip cc -- clang -O2 -c foo.c -o foo.o
  profkit mip cc --mode calls -- g++-12 -O2 a.cc b.cc -o program
  make CC=\"profkit mip cc -- gcc\" CXX=\"profkit mip cc -- g++\"
  cmake -DCMAKE_C_COMPILER_LAUNCHER=\"profkit;mip;cc;--\" -DCMAKE_C_LINKER_LAUNCHER=\"profkit;mip;cc;--\" ..

The compiler's messages and exit code stay its own.";

/// Arguments of `profkit mip cc`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CcArgs {
    #[command(flatten)]
    mode: ModeArgs,

    /// Link this runtime (see profkit mip runtime) in place of the built-in one
    #[arg(long, value_name = "FILE", conflicts_with = "no_runtime")]
    runtime: Option<PathBuf>,

    /// Do not link the runtime
    #[arg(long)]
    no_runtime: bool,

    /// The compiler (clang, clang++, gcc, g++, by any version or path, ccache before it) and its arguments
    #[arg(last = true, required = true, value_name = "COMPILER")]
    command: Vec<OsString>,
}

/// Runs `profkit mip cc`. The exit code is the compiler's.
///
/// # Errors
/// If the command line asks for what cannot be instrumented, or instrumenting fails.
pub fn run(args: &CcArgs) -> Result {
    let at = parse::compiler_at(&args.command);
    let Some((launcher_and_compiler, words)) = args.command.split_at_checked(at + 1) else {
        return Err(Failure::usage("no compiler behind the launcher"));
    };
    let compiler = run::Compiler::new(launcher_and_compiler, at)?;
    match parse::parse(words, compiler.family) {
        Err(refusal) => {
            let failure = Failure::usage(format_args!("profkit mip cc: {refusal}"));
            Err(match refusal.hint {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            })
        }
        Ok(parse::Request::PassOn) => Err(compiler.replace_us(words)),
        Ok(parse::Request::Work(parsed)) => {
            run::run(args, &compiler, &parsed, words).map(Status::Ran)
        }
    }
}
