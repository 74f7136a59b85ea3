//! `profkit mip runtime`: the static library that instrumented programs are linked with.
use crate::exit::{Failure, Result, Status};
use clap::Args;
use profkit_merge::files::{Content, Output};
use profkit_mip_driver::runtime::{self, library, object};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip runtime -o libprofkit_rt.a
  profkit mip runtime --target aarch64-linux-gnu -o libprofkit_rt.a
  RUSTC=/opt/rust/bin/rustc profkit mip runtime --target armv7-unknown-linux-gnueabihf -o rt.o";

/// Arguments of `profkit mip runtime`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RuntimeArgs {
    /// The machine that the runtime is for: a triple of GCC, Clang or Rust; by default this machine
    ///
    /// For another machine, the embedded source is compiled with the rustc that RUSTC names, or with the rustc in PATH.
    /// That rustc needs the target's core library.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,

    /// Write the runtime to this file: NAME.a for a static library, NAME.o for an object file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Runs `profkit mip runtime`.
///
/// # Errors
/// If the target has no runtime, its compiler fails, or the output cannot be written.
pub fn run(args: &RuntimeArgs) -> Result {
    let as_object = match args.output.extension().and_then(|e| e.to_str()) {
        Some("o") => true,
        Some("a") => false,
        _ => {
            return Err(Failure::usage(format_args!(
                "{}: the name must end in .a (static library) or .o (object file)",
                profkit_data::path_text(&args.output)
            )));
        }
    };
    let output = Output::new(&args.output, Content::Binary)?;
    let object = object(args.target.as_deref())?;
    output.write(|sink| {
        if as_object {
            sink.put(&object)
        } else {
            sink.put(&library(&object))
        }
    })?;
    Ok(Status::Done)
}

impl From<runtime::Error> for Failure {
    #[cold]
    fn from(error: runtime::Error) -> Self {
        let failure = if error.is_usage() {
            Failure::usage(&error)
        } else {
            Failure::input(&error)
        };
        failure.with_hints(error.hint())
    }
}
