//! `profkit mip diff`: which functions are newly called, no longer called, called earlier or called later.
use super::profile;
use crate::exit::{Failure, Result, Status};
use crate::print::{self, Format};
use clap::Args;
use profkit_analysis::mip_diff::{Difference, Moved, diff};
use profkit_analysis::names::printable;
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip diff yesterday.mip today.mip
  profkit mip diff old.mip new.mip --format json";

/// Arguments of `profkit mip diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// The old MIP profile
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The new MIP profile; it may come from another build than the old one
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// The form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs `profkit mip diff`.
///
/// # Errors
/// If a profile cannot be read, or if the output cannot be printed.
pub fn run(args: &DiffArgs) -> Result {
    let (old, new) = (
        profile::open(&args.old)?.profile,
        profile::open(&args.new)?.profile,
    );
    let difference = diff(&old, &new);
    let mut out = match args.format {
        Format::Text => print::stdout(),
        Format::Json => print::json_stdout(),
    };
    let printed = match args.format {
        Format::Text => text(&mut out, &difference),
        Format::Json => writeln!(out, "{:#}", json(&difference)),
    };
    printed
        .and_then(|()| out.flush())
        .map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}

fn text(out: &mut impl Write, difference: &Difference<'_>) -> io::Result<()> {
    let mut section = |title: &str, lines: Vec<String>| -> io::Result<()> {
        writeln!(out, "{title}: {}", lines.len())?;
        lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
    };
    let names = |names: &[&[u8]]| {
        names
            .iter()
            .map(|name| printable(name).into_owned())
            .collect()
    };
    let moved = |moved: &[Moved<'_>]| {
        let line = |moved: &Moved<'_>| {
            format!("{} ({} -> {})", printable(moved.name), moved.old, moved.new)
        };
        moved.iter().map(line).collect()
    };
    section("Newly called", names(&difference.newly_called))?;
    section("New functions called", names(&difference.added))?;
    section("No longer called", names(&difference.no_longer_called))?;
    section("Called functions that are gone", names(&difference.removed))?;
    section("Called earlier", moved(&difference.earlier))?;
    section("Called later", moved(&difference.later))?;
    writeln!(
        out,
        "Called in the same order as before: {}",
        difference.unchanged
    )
}

fn json(difference: &Difference<'_>) -> serde_json::Value {
    let names = |names: &[&[u8]]| -> Vec<String> {
        names
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    };
    let moved = |moved: &[Moved<'_>]| -> Vec<serde_json::Value> {
        let one = |moved: &Moved<'_>| serde_json::json!({"name": String::from_utf8_lossy(moved.name), "old": moved.old, "new": moved.new});
        moved.iter().map(one).collect()
    };
    serde_json::json!({
        "schema": "profkit-mip-diff",
        "schema_version": 1,
        "newly_called": names(&difference.newly_called),
        "added": names(&difference.added),
        "no_longer_called": names(&difference.no_longer_called),
        "removed": names(&difference.removed),
        "earlier": moved(&difference.earlier),
        "later": moved(&difference.later),
        "unchanged": difference.unchanged,
    })
}
