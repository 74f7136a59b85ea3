//! The tables of speed in README.md and docs/performance.md, each between two marks.
use super::entries::Entry;
use super::{Arguments, Ratios};
use crate::mip::succeed;
use anyhow::{Context, Result};
use profkit_testkit::repo_root;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// Writes both tables.
pub fn write(measured: &[(&Entry, String, Ratios)], arguments: &Arguments) -> Result<()> {
    let mut worst =
        "| work | wall time | processor time | memory, of its |\n|---|---|---|---|\n".to_owned();
    let mut all = "| work | input | wall time | processor time | memory | limit |\n|---|---|---|---|---|---|\n".to_owned();
    for group in measured.chunk_by(|a, b| a.0.name == b.0.name) {
        let Some((entry, ..)) = group.first() else {
            continue;
        };
        let least = |of: fn(&Ratios) -> f64| {
            group
                .iter()
                .map(|(_, _, ratios)| of(ratios))
                .fold(f64::INFINITY, f64::min)
        };
        let memory = group
            .iter()
            .map(|(_, _, ratios)| ratios.memory)
            .fold(0.0, f64::max);
        let _ = writeln!(
            worst,
            "| {} | {:.1} × | {:.1} × | {:.0} % |",
            entry.row,
            least(|ratios| ratios.wall),
            least(|ratios| ratios.cpu),
            memory * 100.0
        );
        for (_, name, ratios) in group {
            let shape = name.split_once('/').map_or("", |(_, shape)| shape);
            let limit = if ratios.bare > 0.0 {
                format!("{:.2}", ratios.bare)
            } else {
                String::new()
            };
            let _ = writeln!(
                all,
                "| {} | {shape} | {:.1} × | {:.1} × | {:.0} % | {limit} |",
                entry.row,
                ratios.wall,
                ratios.cpu,
                ratios.memory * 100.0
            );
        }
    }
    let _ = writeln!(all, "\n{}", machine(arguments.runs)?);
    replace("README.md", "speed", &worst)?;
    replace("docs/performance.md", "speed", &all)
}

/// Where and how the figures were measured.
pub fn machine(runs: u32) -> Result<String> {
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model
        .and_then(|rest| rest.split_once(':'))
        .map_or("unknown", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism()?;
    let tool = succeed(Command::new("llvm-profdata-22").arg("--version"))?;
    let version = tool
        .lines()
        .find(|line| line.contains("version"))
        .unwrap_or_default();
    let rustc = succeed(Command::new("rustc").arg("--version"))?;
    let commit = succeed(
        Command::new("git")
            .args(["log", "-1", "--format=%h, %as"])
            .current_dir(repo_root()),
    )?;
    Ok(format!(
        "Machine: {model}, {cores} cores. Tools: {}; profkit at {}, built by {}. Medians of {} runs in turn.",
        version.trim(),
        commit.trim(),
        rustc.trim(),
        runs
    ))
}

/// Puts a text between the marks of a name in a file of the repository.
pub fn replace(file: &str, name: &str, text: &str) -> Result<()> {
    let path = repo_root().join(file);
    let old = fs::read_to_string(&path).with_context(|| file.to_owned())?;
    let [start, end] = ["", "/"].map(|slash| format!("<!-- {slash}{name} -->\n"));
    let marks = || format!("{file} has no marks {start}");
    let (before, rest) = old.split_once(&start).with_context(marks)?;
    let (_, after) = rest.split_once(&end).with_context(marks)?;
    fs::write(&path, format!("{before}{start}{text}{end}{after}"))?;
    println!("wrote the table of {file}");
    Ok(())
}
