//! `profkit mip instrument`: reads assembly and writes instrumented assembly.
use super::options::ModeArgs;
use crate::exit::{Failure, Result, Status};
use crate::print;
use clap::{Args, ValueEnum};
use profkit_merge::files::{Content, Output, check_outputs};
use profkit_mip::instrument::{Target, instrument};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip instrument foo.s -o foo.mip.s
  rustc -O --emit asm -o - foo.rs | profkit mip instrument - -o foo.s
  profkit mip instrument --mode calls,block --target x86_64-linux-gnu foo.s -o foo.mip.s";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InstrumentArgs {
    /// A file of assembly without preprocessor directives; - is standard input
    #[arg(value_name = "INPUT")]
    input: PathBuf,

    /// Write the instrumented assembly to this file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The target machine; by default it is recognised from the assembly
    #[arg(long, value_name = "TRIPLE")]
    target: Option<Target>,

    /// The code model that the assembly was compiled for
    ///
    /// In the large model, a 32-bit offset may not reach a record. If a code section has the flag l, as the section
    /// .ltext of clang 18 and later has, the large model is assumed even if this option is not given.
    #[arg(long, value_enum, value_name = "MODEL", default_value = "small")]
    mcmodel: CodeModel,

    /// Report on standard error how many functions were instrumented, and which were left alone and why
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    mode: ModeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CodeModel {
    /// Every model but the large one: tiny, small, kernel, medium
    #[value(aliases = ["tiny", "kernel", "medium"])]
    Small,
    /// Code and data may be anywhere in memory
    Large,
}

pub fn run(args: &InstrumentArgs) -> Result {
    check_outputs(&[("the output", Some(&args.output))], [&args.input])?;
    let mut options = args.mode.options()?;
    options.large_code_model = args.mcmodel == CodeModel::Large;
    let output = Output::new(&args.output, Content::Text)?;
    let input = crate::io::open(&args.input)?;
    let made =
        instrument(input.bytes(), input.name(), args.target, &options).map_err(Failure::input)?;
    output.write(|sink| sink.put(&made.text))?;
    if args.verbose {
        let name = input.name();
        for skipped in &made.skipped {
            let (line, function, reason) = (skipped.line, &skipped.name, &skipped.reason);
            print::say(format_args!("{name}:{line}: {function} {reason}"));
        }
        print::say(format_args!(
            "{name}: functions instrumented: {}, left alone: {}",
            made.functions,
            made.skipped_functions()
        ));
    }
    Ok(Status::Done)
}
