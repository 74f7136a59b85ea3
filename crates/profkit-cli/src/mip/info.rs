//! `profkit mip info`: the numbers of functions and blocks, and how many of these functions and blocks were run.
use super::profile::open;
use crate::exit::{Failure, Result, Status};
use crate::print::{Format, stdout_for};
use clap::Args;
use profkit_data::mip::{Identity, ProfileVersion};
use serde::Serialize;
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

#[derive(Serialize)]
struct Info {
    schema: &'static str,
    schema_version: u32,
    format_version: u32,
    build_id: Option<String>,
    module_hash: Option<u32>,
    modes: Vec<&'static str>,
    runs: u64,
    functions: u64,
    covered_functions: u64,
    blocks: u64,
    covered_blocks: u64,
    call_edges: u64,
    located_functions: u64,
}

/// Runs `profkit mip info`.
///
/// # Errors
/// If the profile cannot be read.
pub fn run(args: &InfoArgs) -> Result {
    let opened = open(&args.profile)?;
    let profile = &opened.profile;
    let functions = &profile.functions;
    let count = |number: usize| number as u64;
    let (whole, covered) = profile.function_counts();
    let blocks = functions.iter().flat_map(|function| &function.blocks);
    let info = Info {
        schema: "profkit-mip-info",
        schema_version: 2,
        format_version: match opened.version {
            ProfileVersion::V8 => 8,
            ProfileVersion::V9 => 9,
        },
        build_id: match &profile.identity {
            Identity::BuildId(id) if !id.0.is_empty() => Some(id.to_string()),
            _ => None,
        },
        module_hash: match &profile.identity {
            Identity::ModuleHash(hash) => Some(*hash),
            Identity::BuildId(_) => None,
        },
        modes: profile.modes().names().collect(),
        runs: profile.runs,
        functions: whole,
        covered_functions: covered,
        // The entry of a function counts as a block too, but is not in the list of blocks.
        blocks: whole + count(blocks.clone().count()),
        covered_blocks: covered + count(blocks.filter(|block| block.runs > 0).count()),
        call_edges: count(profile.edges.len()),
        located_functions: count(
            functions
                .iter()
                .filter(|function| function.location.is_some())
                .count(),
        ),
    };
    let mut out = stdout_for(args.format);
    match args.format {
        Format::Text => text(&info, &profile.identity, &mut out),
        Format::Json => serde_json::to_writer_pretty(&mut out, &info)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
    }
    .and_then(|()| out.flush())
    .map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}

fn text(info: &Info, identity: &Identity, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Total Raw Profile Count: {}", info.runs)?;
    writeln!(out, "Total Machine Functions: {}", info.functions)?;
    writeln!(
        out,
        "Profiled Machine Functions: {}",
        info.covered_functions
    )?;
    writeln!(out, "Total Machine Basic Blocks: {}", info.blocks)?;
    writeln!(out, "Covered Machine Basic Blocks: {}", info.covered_blocks)?;
    writeln!(out, "Total Call Edges: {}", info.call_edges)?;
    writeln!(
        out,
        "Functions With Source Location: {}",
        info.located_functions
    )?;
    writeln!(out, "Format Version: {}", info.format_version)?;
    writeln!(out, "Profile Type: {}", info.modes.join(", "))?;
    writeln!(out, "Image: {identity}")
}
