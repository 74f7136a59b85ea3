//! `cargo xtask thorough`: checks that take minutes each and find something rarely. CI runs one of them at a time.
use crate::mip::succeed;
use std::process::Command;

use anyhow::{Context, Result, bail};
use profkit_testkit::repo_root;

use crate::steps::{fuzz_smoke_part, sanitize};
use crate::{clients, memprof, mip, windows};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The parts to run; all if none is given
    parts: Vec<String>,
    /// Only one part, chosen by the number of commits up to HEAD: with each commit the turn goes to the next part
    #[arg(long, conflicts_with = "parts")]
    turn: bool,
}

/// A part: its name and its function.
type Part = (&'static str, fn() -> Result<()>);

const FUZZ_PARTS: usize = 4;

const PARTS: [Part; 6 + FUZZ_PARTS] = [
    ("address-sanitizer", || sanitize("address")),
    ("fuzz-1", || fuzz_smoke_part(0, FUZZ_PARTS)),
    ("clients", || clients::run(None)),
    ("fuzz-2", || fuzz_smoke_part(1, FUZZ_PARTS)),
    ("thread-sanitizer", || sanitize("thread")),
    ("mip-fuzz", || {
        mip::fuzz::run(&mip::fuzz::Arguments::few(commits()? as u64))
    }),
    ("fuzz-3", || fuzz_smoke_part(2, FUZZ_PARTS)),
    ("memprof-programs", || {
        memprof::run(&memprof::Arguments::default())
    }),
    ("windows", windows::run),
    ("fuzz-4", || fuzz_smoke_part(3, FUZZ_PARTS)),
];

/// Runs the parts that the arguments choose.
pub fn run(arguments: &Arguments) -> Result<()> {
    let chosen: Vec<Part> = match &arguments.parts[..] {
        [] if arguments.turn => vec![PARTS[commits()? % PARTS.len()]],
        [] => PARTS.to_vec(),
        names => names.iter().map(named).collect::<Result<_>>()?,
    };
    for (name, part) in chosen {
        eprintln!("── {name}");
        part().with_context(|| name.to_owned())?;
    }
    Ok(())
}

fn named(name: &String) -> Result<Part> {
    let Some(part) = PARTS.into_iter().find(|part| part.0 == name) else {
        let names = PARTS.map(|part| part.0).join(", ");
        bail!("no part {name}: there are {names}");
    };
    Ok(part)
}

fn commits() -> Result<usize> {
    let text = succeed(
        Command::new("git")
            .args(["rev-list", "--count", "HEAD"])
            .current_dir(repo_root()),
    )?;
    text.trim().parse().context("the number of commits")
}
