//! `profkit mip cargo`: runs cargo, and instruments the crates that it compiles. docs/guide/mip-cargo.md describes it for
//! users.
use super::cc::{CodeArgs, parse_again, typed_words};
use crate::exit::{Result, Status};
use crate::print;
use clap::Parser;
use profkit_mip_driver::cargo::{self, Call, Setup};
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  profkit mip cargo -- build --release
  profkit mip cargo --mode calls -- run -- input.txt
  profkit mip cargo --dependencies -- test
  profkit mip create -p program.mip target/release/program
  profkit mip cargo --dependencies --same-names --mode calls -- build --release --target-dir target/mip

The messages and the exit code are those of cargo.";

#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
pub struct CargoArgs {
    /// Instrument all crates that the program is made of, not only those of the workspace
    #[arg(long)]
    dependencies: bool,

    /// Give functions the names that they have in a build without profkit, as an order of functions for that build needs
    ///
    /// Cargo then does not see that crates of others must be compiled again: give a --target-dir of its own.
    #[arg(long, requires = "dependencies")]
    same_names: bool,

    /// The arguments of cargo: build, run, test or another command with its options
    #[arg(last = true, required = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,

    #[command(flatten)]
    code: CodeArgs,
}

pub fn run(args: &CargoArgs) -> Result {
    let setup = Setup {
        cc: args.code.setup(typed_words("cargo"))?,
        dependencies: args.dependencies,
        same_names: args.same_names,
    };
    print::notes(cargo::notes());
    Err(cargo::run(&args.arguments, &setup).into())
}

/// Does the work of the compiler, the linker or rustdoc when cargo starts this program in its place.
pub fn run_call(call: &Call) -> Result {
    let setup = call.in_folder(|| {
        let args: CargoArgs = parse_again("cargo", call.words())?;
        args.code.setup(Vec::new())
    })??;
    Ok(Status::Code(call.run(&setup)?))
}
