//! How much code each fuzz target reaches from its corpus: lines, by LLVM's source-based coverage, whose profiles profkit
//! merges.
use crate::bench::replace;
use crate::mip::{fresh, succeed};
use crate::steps;
use anyhow::{Context, Result, ensure};
use profkit_testkit::{Llvm, repo_root, target_folder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A target tests a file if it reaches at least this many lines of it; of others it uses a few lines only.
const FEWEST_LINES: u64 = 20;

/// How many mutations of its corpus each target gets, and how many seconds at most.
const MUTATIONS: &str = "500";
const SECONDS: &str = "20";

/// The lines of one file that have code, and of these the ones that were reached.
#[derive(Clone, Copy, Default)]
struct Lines {
    all: u64,
    reached: u64,
}

/// Measures all targets, or those that are named, and writes the table of `fuzz/README.md`.
pub fn run(names: &[String]) -> Result<()> {
    let folder = target_folder().join("fuzz-coverage");
    let profkit = steps::built_profkit()?;
    let program = build(&folder)?;
    let runs = folder.join("runs");
    let mut rows = Vec::new();
    let mut profiles = Vec::new();
    // cargo builds the package's programs for its tests.
    let targets = succeed(
        Command::new(folder.join("debug/targets"))
            .env("LLVM_PROFILE_FILE", folder.join("build/%m.profraw")),
    )?;
    let targets = targets.lines().filter_map(|line| line.split(' ').next());
    let targets: Vec<&str> = targets.collect();
    for name in names {
        ensure!(targets.contains(&&**name), "no target {name}");
    }
    for name in targets {
        if !names.is_empty() && names.iter().all(|one| one != name) {
            continue;
        }
        fresh(&runs)?;
        succeed(
            Command::new(&program)
                .current_dir(repo_root().join("fuzz"))
                .env("FUZZ_TARGET", name)
                .env("FUZZ_MUTATIONS", MUTATIONS)
                .env("FUZZ_SECONDS", SECONDS)
                .env("LLVM_PROFILE_FILE", runs.join("%p.profraw")),
        )?;
        let profile = folder.join(format!("{name}.profdata"));
        merge(&profkit, std::slice::from_ref(&runs), &profile)?;
        let row = row(name, &report(&program, &profile)?);
        println!("{row}");
        rows.push(row);
        profiles.push(profile);
    }
    if !names.is_empty() {
        return replace("fuzz/README.md", "coverage", &with_rows(&table()?, &rows)?);
    }
    let mut text =
        String::from("| target | files | their lines of code | reached |\n|---|---|---|---|\n");
    for row in rows {
        writeln!(text, "{row}")?;
    }
    let all = folder.join("all.profdata");
    merge(&profkit, &profiles, &all)?;
    writeln!(text, "{}", row("all together", &report(&program, &all)?))?;
    let rustc = succeed(Command::new("rustc").arg("--version"))?;
    let date = succeed(Command::new("date").arg("+%F"))?;
    writeln!(
        text,
        "\nMeasured {} with {}: the corpus, then {MUTATIONS} mutations or {SECONDS} seconds of them for each.",
        date.trim(),
        rustc.trim()
    )?;
    replace("fuzz/README.md", "coverage", &text)
}

/// The table as it is.
fn table() -> Result<String> {
    let text = std::fs::read_to_string(repo_root().join("fuzz/README.md"))?;
    let table = text.split_once("<!-- coverage -->\n");
    let table = table.and_then(|(_, rest)| rest.split_once("<!-- /coverage -->"));
    let (table, _) = table.context("fuzz/README.md has no table of coverage")?;
    Ok(table.to_owned())
}

/// A table in which these rows take the place of those with the same first cell.
fn with_rows(table: &str, rows: &[String]) -> Result<String> {
    let first = |row: &str| row.split('|').nth(1).map(str::to_owned);
    let mut lines: Vec<&str> = table.lines().collect();
    for row in rows {
        let old = lines.iter_mut().find(|line| first(line) == first(row));
        *old.with_context(|| format!("no row for {row}: measure all targets once"))? = row;
    }
    Ok(lines.join("\n") + "\n")
}

/// Builds the smoke test with counters of coverage, in a folder of its own, and returns the program.
fn build(folder: &Path) -> Result<PathBuf> {
    let messages = succeed(
        Command::new("cargo")
            .current_dir(repo_root())
            .args(["test", "--package", "profkit-fuzz", "--test", "smoke"])
            .args(["--no-run", "--message-format", "json", "--target-dir"])
            .arg(folder)
            .env("RUSTFLAGS", "-Cinstrument-coverage -Copt-level=1")
            // Build scripts and macros have counters too; their files go where they harm nobody.
            .env("LLVM_PROFILE_FILE", folder.join("build/%m.profraw")),
    )?;
    let program = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back();
    program.context("cargo names no test program")
}

fn merge(profkit: &Path, inputs: &[PathBuf], output: &Path) -> Result<()> {
    let mut command = Command::new(profkit);
    command
        .args(["merge", "-q"])
        .args(inputs)
        .arg("-o")
        .arg(output);
    succeed(&mut command).map(drop)
}

/// The lines of each file of the library crates.
fn report(program: &Path, profile: &Path) -> Result<BTreeMap<String, Lines>> {
    let llvm_cov = Llvm::tool("llvm-cov", 22).context("llvm-cov-22 is not installed")?;
    let json = succeed(
        Command::new(llvm_cov)
            .args(["export", "--summary-only", "--instr-profile"])
            .arg(profile)
            .arg(program),
    )?;
    let json: Value = serde_json::from_str(&json).context("llvm-cov's JSON")?;
    let crates = repo_root().join("crates");
    let files = json["data"][0]["files"].as_array();
    let files = files.context("llvm-cov's JSON has no files")?;
    let mut lines = BTreeMap::new();
    for file in files {
        let name = file["filename"].as_str().unwrap_or_default();
        let name = Path::new(name).strip_prefix(&crates).ok();
        let Some(name) = name.filter(|name| !name.starts_with("profkit-testkit")) else {
            continue;
        };
        let count = |key: &str| file["summary"]["lines"][key].as_u64();
        let (all, reached) = (count("count"), count("covered"));
        lines.insert(
            name.display().to_string(),
            Lines {
                all: all.context("a file without lines")?,
                reached: reached.context("a file without lines")?,
            },
        );
    }
    Ok(lines)
}

fn row(name: &str, files: &BTreeMap<String, Lines>) -> String {
    let mut sum = Lines::default();
    let entered = files.values().filter(|lines| lines.reached >= FEWEST_LINES);
    let mut count = 0;
    for lines in entered {
        sum.all += lines.all;
        sum.reached += lines.reached;
        count += 1;
    }
    let share = 100.0 * sum.reached as f64 / sum.all.max(1) as f64;
    format!("| {name} | {count} | {} | {share:.0} % |", sum.all)
}
