//! `profkit mip create`: creates an empty profile from a binary or a map.
use super::profile::{ImageArgs, VERSIONS, make, open, stage};
use crate::choice::choice;
use crate::exit::{Failure, Result, Status};
use crate::print;
use crate::print::plural;
use clap::Args;
use profkit_data::mip::ProfileVersion;
use profkit_data::path_text;
use profkit_merge::files::check_outputs;
use profkit_object::build_id::parse_build_id;
use std::path::PathBuf;

const EXAMPLES: &str = "\
The binary must still hold its map, so use the unstripped binary. Or extract the map before
stripping, and use that:
  objcopy --dump-section __llvm_mipmap=program.mipmap program

Examples:
  profkit mip create -p program.mip program
  profkit mip create -p program.mip --debug program.debug --build-id 8c2f…01 program.mipmap";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CreateArgs {
    /// An unstripped program or library, or the map that was extracted from one
    #[arg(value_name = "BINARY|MAP")]
    input: PathBuf,

    /// Write the profile to this file
    #[arg(short, long, value_name = "FILE")]
    profile: PathBuf,

    #[command(flatten)]
    image: ImageArgs,

    /// The build id in hexadecimal digits, for an input that does not state its own
    #[arg(long, value_name = "HEX")]
    build_id: Option<String>,

    /// Version of the profile
    #[arg(long, value_parser = choice(VERSIONS), default_value = "9", value_name = "VERSION")]
    format_version: ProfileVersion,
}

pub fn run(args: &CreateArgs) -> Result {
    let read = [&args.input].into_iter().chain(&args.image.debug);
    check_outputs(&[("the profile", Some(&args.profile))], read)?;
    let build_id = match &args.build_id {
        None => None,
        Some(text) => Some(parse_build_id(text).ok_or_else(|| {
            Failure::usage(format_args!(
                "--build-id {text}: expected pairs of hexadecimal digits"
            ))
        })?),
    };
    let made = make(&args.input, &args.image, build_id)?;
    let version = args.format_version;
    let output = stage(&args.profile, &made.profile, version)?;
    // What is there may be no profile, or be damaged. Then it has no counts that could be lost.
    let replaced = open(&args.profile).map_or(0, |old| old.profile.runs);
    output.finish()?;
    print::notes(&made.notes);
    if replaced > 0 {
        let (name, runs) = (path_text(&args.profile), plural(replaced, "run"));
        print::notes([format!("replaced {name}, which had the counts of {runs}")]);
    }
    for dropped in &made.dropped {
        print::say(format_args!("warning: {dropped}"));
    }
    let functions = plural(made.profile.function_counts().0, "function");
    let name = path_text(&args.profile);
    print::say(format_args!(
        "wrote {name}: an empty profile of {functions}"
    ));
    Ok(Status::Done)
}
