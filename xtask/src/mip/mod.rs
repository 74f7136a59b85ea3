//! Tasks that check MIP on generated and on real programs.
mod blocks;
mod clang_counts;
pub mod compare;
pub mod edges;
pub mod fuzz;
pub mod machines;
pub mod make;
pub mod packages;
pub mod programs;
mod size;

use anyhow::{Context, Result, bail};
use profkit_testkit::program::MipMode;
use profkit_testkit::program::counts::{self, Counts};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn mode(name: &str) -> Result<MipMode, String> {
    MipMode::named(name).ok_or_else(|| format!("no mode {name}"))
}

/// Runs a command to its end and returns its standard output.
pub fn succeed(command: &mut Command) -> Result<String> {
    let made = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    let stdout = String::from_utf8_lossy(&made.stdout).into_owned();
    if !made.status.success() {
        let stderr = String::from_utf8_lossy(&made.stderr);
        bail!(
            "{command:?}\n{}: {}\n{}",
            made.status,
            last_lines(&stdout),
            last_lines(&stderr)
        );
    }
    Ok(stdout)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}

/// Makes an empty folder; removes old contents.
pub fn fresh(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| folder.display().to_string());
        }
        _ => {}
    }
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Makes the profile of a binary and merges raw profiles into it.
fn mip_profile(profkit: &Path, binary: &Path, raws: &[PathBuf], profile: &Path) -> Result<()> {
    succeed(
        Command::new(profkit)
            .args(["mip", "create", "-p"])
            .arg(profile)
            .arg(binary),
    )?;
    succeed(
        Command::new(profkit)
            .args(["mip", "merge", "--strict", "-p"])
            .arg(profile)
            .args(raws),
    )?;
    Ok(())
}

/// Returns the JSON of `mip show`.
fn shown(profkit: &Path, profile: &Path) -> Result<serde_json::Value> {
    let text = succeed(
        Command::new(profkit)
            .args(["mip", "show", "--format", "json", "-p"])
            .arg(profile),
    )?;
    serde_json::from_str(&text).context("mip show's JSON")
}

/// Returns the number of calls of each function of a profile, from the JSON of `mip show`. With `covered`, the number
/// is 1 if the function was entered, and otherwise 0.
fn mip_counts(profkit: &Path, profile: &Path, covered: bool) -> Result<Counts> {
    let json = shown(profkit, profile)?;
    let functions = json["functions"]
        .as_array()
        .context("mip show's JSON has no functions")?;
    let mut made = Counts::new();
    for function in functions {
        let name = function["function"].as_str().context("a function's name")?;
        let key = if covered { "called_runs" } else { "calls" };
        let count = function[key]
            .as_u64()
            .with_context(|| format!("{name}: {key}"))?;
        let count = if covered { count.min(1) } else { count };
        made.entry(name.to_owned()).or_default().push(count);
    }
    Ok(counts::sorted(made))
}

/// Returns the raw MIP profiles (`.mipraw`) below a folder.
fn raws_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "mipraw")
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Makes a text that compresses like logs and prose: words of falling frequency, numbers, and repeated lines. The text
/// is the same each time.
pub fn corpus(size: usize) -> Vec<u8> {
    let mut rng = profkit_testkit::Rng::new(4711);
    let words: Vec<String> = (0..4000)
        .map(|_| {
            (0..2 + rng.below(9))
                .map(|_| char::from(b'a' + u8::try_from(rng.below(26)).unwrap_or(0)))
                .collect()
        })
        .collect();
    let mut text = String::with_capacity(size + 200);
    let mut line = 0usize;
    while text.len() < size {
        match rng.below(6) {
            0 => text.push_str(&format!(
                "{} id={:x} ",
                1_600_000_000 + line,
                rng.bits() >> 30
            )),
            1 if text.len() > 4000 => {
                let at = text.len() - 1 - rng.below(3000);
                let piece = text[at..(at + 60).min(text.len())].to_owned();
                text.push_str(&piece);
            }
            _ => {
                // The index comes from the square of a fraction, so that early words are frequent.
                let fraction = rng.below(4000);
                text.push_str(&words[fraction * fraction / 4000]);
                text.push(' ');
            }
        }
        line += 1;
        if line.is_multiple_of(9) {
            text.push('\n');
        }
    }
    text.truncate(size);
    text.into_bytes()
}
