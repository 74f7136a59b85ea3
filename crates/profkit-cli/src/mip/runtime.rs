//! `profkit mip runtime`: the static library that instrumented programs are linked with.
use crate::exit::{Failure, Result, Status};
use clap::Args;
use profkit_merge::files::{Content, Output};
use profkit_mip_driver::runtime::{self, variant_of};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip runtime -o libprofkit_rt.a
  profkit mip runtime --kind small --target aarch64-linux-gnu -o libprofkit_rt.a
  RUSTC=/opt/rust/bin/rustc profkit mip runtime --target armv7-unknown-linux-gnueabihf -o rt.o";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RuntimeArgs {
    /// The machine that the runtime is for: a triple of GCC, Clang or Rust; by default this machine
    ///
    /// For another machine, the embedded source is compiled with the rustc that RUSTC names, or with the rustc in PATH.
    /// That rustc needs the target's core library.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,

    /// What the runtime does: full, small (one file, without patterns, pools and signals), api (no file: the program asks
    /// for the bytes)
    #[arg(long, value_name = "KIND", value_parser = ["full", "small", "api"], default_value = "full")]
    kind: String,

    /// Write the runtime to this file: NAME.a for a static library, NAME.o for an object file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &RuntimeArgs) -> Result {
    let variant = variant_of(args.kind.as_ref()).unwrap_or_default();
    let Some(bytes) = runtime::file(&args.output, args.target.as_deref(), variant) else {
        return Err(Failure::usage(format_args!(
            "{}: the name must end in .a (static library) or .o (object file)",
            profkit_data::path_text(&args.output)
        )));
    };
    let output = Output::new(&args.output, Content::Binary)?;
    let bytes = bytes?;
    output.write(|sink| sink.put(&bytes))?;
    Ok(Status::Done)
}
