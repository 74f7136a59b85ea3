//! `profkit mip info`: the numbers of functions and blocks, and how many of these functions and blocks were run.
use super::profile::open;
use crate::exit::{Failure, Result, Status};
use crate::print::{Format, stdout_for};
use clap::Args;
use profkit_report::mip::MipInfo;
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip info -p program.mip
  profkit mip info -p program.mip --format json";

/// Arguments of `profkit mip info`.
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
    let mut out = stdout_for(args.format);
    match args.format {
        Format::Text => info.text(&mut out),
        Format::Json => serde_json::to_writer_pretty(&mut out, &info)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
    }
    .and_then(|()| out.flush())
    .map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}
