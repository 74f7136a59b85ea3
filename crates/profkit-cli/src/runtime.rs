//! `profkit runtime`: the library that instrumented programs are linked with instead of LLVM's.
use crate::exit::{Failure, Result, Status};
use crate::print::stdout;
use clap::Args;
use profkit_merge::files::{Content, Output};
use profkit_runtime::link::{Compiler, library};
use std::io::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit runtime --for clang-19 -o libprofkit_profile.a
      clang-19 -fprofile-instr-generate main.c libprofkit_profile.a
  profkit runtime --for rustc -o libprofkit_profile.a
      RUSTFLAGS=\"-Cinstrument-coverage $(profkit runtime --for rustc -o libprofkit_profile.a)\" cargo build
  profkit runtime --for raw-10 --target aarch64-linux-gnu -o libprofkit_profile.a";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RuntimeArgs {
    /// The compiler that instruments the program: clang-13 to clang-23, rustc, or a raw version as raw-7 to raw-11
    ///
    /// A program must have the runtime of its compiler's raw version. With another one it writes no profile and says so.
    #[arg(long = "for", value_name = "COMPILER")]
    compiler: String,

    /// The machine that the runtime is for: a triple of GCC, Clang or Rust; by default this machine
    ///
    /// Released programs have the library for Linux on x86-64 built in. Otherwise the source, which is built in, is
    /// compiled with the rustc that RUSTC names, or with the rustc in PATH. That rustc needs the target's core library.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,

    /// Write the static library to this file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &RuntimeArgs) -> Result {
    let compiler: Compiler = args.compiler.parse()?;
    let version = compiler.raw_version()?;
    let output = Output::new(&args.output, Content::Binary)?;
    let bytes = library(version, args.target.as_deref())?;
    output.write(|sink| sink.put(&bytes))?;
    let mut out = stdout();
    writeln!(out, "{}", compiler.flags(&args.output).join(" "))
        .and_then(|()| out.flush())
        .map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}
