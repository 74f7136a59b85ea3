//! `profkit mip info`: the numbers of functions and blocks, and how many of these functions and blocks were run.
use super::profile::open;
use crate::exit::{Result, Status};
use crate::print::{self, Format};
use clap::Args;
use profkit_report::mip::MipInfo;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip info -p program.mip
  profkit mip info -p program.mip --format json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InfoArgs {
    /// The profile
    #[arg(short, long, value_name = "FILE")]
    profile: PathBuf,

    /// Output format; docs/formats/mip-json.md describes the JSON
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

pub fn run(args: &InfoArgs) -> Result {
    let opened = open(&args.profile)?;
    let info = MipInfo::new(&opened.profile, opened.version);
    print::answer(&info, args.format)?;
    Ok(Status::Done)
}
