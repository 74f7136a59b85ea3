//! `cargo xtask bench`: commands of LLVM's tools and of profkit that do the same work, measured side by side.
//!
//! Every round runs each command once, so that a slow phase of the machine affects all of them; ratios are medians over
//! the rounds.
mod entries;
mod inputs;
mod programs;

use crate::mip::{fresh, succeed};
use crate::steps::{built_profkit, released_profkit};
use anyhow::{Context, Result, ensure};
use entries::Entry;
use profkit_testkit::{Llvm, Measured, measure, skip, target_folder};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The benchmarks to run, by the beginnings of their names; all if none is given
    names: Vec<String>,
    /// Only check that all commands work: tiny inputs, the debug program, one run each, no targets
    #[arg(long)]
    small: bool,
    /// How many rounds are measured
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only make the inputs
    #[arg(long, hide = true)]
    prepare: bool,
}

/// Where an entry works: its folder, which is the current folder of its commands, and the program that is measured.
#[derive(Debug)]
struct Place {
    folder: PathBuf,
    profkit: PathBuf,
    small: bool,
}

impl Place {
    fn size<T>(&self, full: T, small: T) -> T {
        if self.small { small } else { full }
    }

    /// Makes a file of the folder, unless it is there already.
    fn once(&self, name: &str, make: impl FnOnce() -> Result<()>) -> Result<()> {
        let file = self.folder.join(name);
        if !file.exists() {
            make().with_context(|| name.to_owned())?;
            ensure!(file.exists(), "{name} was not made");
        }
        Ok(())
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<()> {
        let file = self.folder.join(name);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::write(&file, text).with_context(|| file.display().to_string())
    }

    /// Runs lines of shell in the folder. The first command that fails ends them.
    fn run(&self, lines: &str) -> Result<()> {
        let lines = format!("set -e\n{}", self.expand(lines, "", ""));
        succeed(self.command("sh").args(["-c", &lines])).map(drop)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null());
        // What profkit remembers between runs stays in this folder.
        command.env("XDG_CACHE_HOME", self.folder.join("cache"));
        command
    }

    /// Puts values for the names of a command line: `$PROFKIT`, `$EXAMPLES` (the folder of example programs), `$OUT` and
    /// `$THEIRS` (what this command writes, and what the other tool wrote), `$N` (how often something is repeated).
    fn expand(&self, line: &str, out: &str, theirs: &str) -> String {
        let examples = self.profkit.with_file_name("examples");
        line.replace("$PROFKIT", &self.profkit.to_string_lossy())
            .replace("$EXAMPLES", &examples.to_string_lossy())
            .replace("$OUT", out)
            .replace("$THEIRS", theirs)
            .replace("$N", &self.size(200, 3).to_string())
    }
}

/// Runs the benchmarks.
pub fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |entry: &&Entry| {
        let names = &arguments.names;
        (names.is_empty()
            || names
                .iter()
                .any(|name| entry.name.starts_with(name.as_str())))
            && !(arguments.small && entry.full_only)
    };
    let chosen: Vec<&Entry> = entries::ALL.iter().filter(wanted).collect();
    ensure!(
        !chosen.is_empty(),
        "no such benchmark; there are {}",
        entries::ALL
            .iter()
            .map(|entry| entry.name)
            .collect::<Vec<_>>()
            .join(", ")
    );
    if Llvm::find(22).is_none() {
        skip("nothing is measured: clang-22 and llvm-22 are not installed");
        return Ok(());
    }
    let (profkit, folder) = if arguments.small {
        (built_profkit()?, target_folder().join("bench/small"))
    } else {
        (released_profkit()?, target_folder().join("bench"))
    };
    let places: Vec<Place> = chosen
        .iter()
        .map(|entry| Place {
            folder: folder.join(entry.folder),
            profkit: profkit.clone(),
            small: arguments.small,
        })
        .collect();
    if arguments.prepare {
        for (entry, place) in chosen.iter().zip(&places) {
            let began = Instant::now();
            fs::create_dir_all(&place.folder)?;
            (entry.prepare)(place).with_context(|| format!("preparing {}", entry.name))?;
            eprintln!(
                "prepared {} in {:.1} s",
                entry.name,
                began.elapsed().as_secs_f64()
            );
        }
        return Ok(());
    }
    if arguments.small {
        fresh(&folder)?;
    }
    // Linux includes the memory of the starting process in the peak of a started command, and making inputs needs much. So
    // another process makes them.
    let status = Command::new(std::env::current_exe()?)
        .args(std::env::args().skip(1))
        .arg("--prepare")
        .status()?;
    ensure!(status.success(), "making the inputs: {status}");
    println!(
        "{:<24} {:<26} {:>10} {:>10} {:>9} {:>7} {:>8}",
        "benchmark", "command", "min ms", "median ms", "peak MiB", "faults", "ratio"
    );
    let runs = if arguments.small { 0 } else { arguments.runs };
    let mut missed = Vec::new();
    for (entry, place) in chosen.into_iter().zip(&places) {
        if !measure_entry(entry, place, runs).with_context(|| entry.name.to_owned())? {
            missed.push(entry.name);
        }
    }
    ensure!(missed.is_empty(), "missed: {}", missed.join(", "));
    Ok(())
}

/// Measures the commands of an entry and prints a line for each. Returns whether the targets are met.
fn measure_entry(entry: &Entry, place: &Place, runs: u32) -> Result<bool> {
    let lines: Vec<&str> = entry.theirs.iter().chain(entry.ours).copied().collect();
    let outputs: Vec<String> = (0..lines.len())
        .map(|index| format!("{}.{index}.out", entry.name))
        .collect();
    let mut samples: Vec<Vec<Measured>> = lines.iter().map(|_| Vec::new()).collect();
    // Round 0 fills the page cache, and its outputs are checked.
    for round in 0..=runs {
        for ((line, out), samples) in lines.iter().zip(&outputs).zip(&mut samples) {
            let measured = one_run(entry, place, &place.expand(line, out, &outputs[0]), out)?;
            if round > 0 || runs == 0 {
                samples.push(measured);
            }
        }
        if round == 0 && !entry.check.is_empty() {
            for out in &outputs[entry.theirs.len()..] {
                place.run(&place.expand(entry.check, out, &outputs[0]))?;
            }
        }
    }
    let theirs = entry.theirs.len();
    let fastest: Vec<f64> = (0..samples[0].len())
        .map(|round| {
            samples[..theirs]
                .iter()
                .map(|of| milliseconds(&of[round]))
                .fold(f64::INFINITY, f64::min)
        })
        .collect();
    let mut met = true;
    for (index, (line, of)) in lines.iter().zip(&samples).enumerate() {
        let times: Vec<f64> = of.iter().map(milliseconds).collect();
        let faults = median(of.iter().map(|one| number(one.major_faults)).collect());
        print!(
            "{:<24} {:<26} {:>10.2} {:>10.2} {:>9.1} {faults:>7}",
            entry.name,
            label(line),
            times.iter().copied().fold(f64::INFINITY, f64::min),
            median(times.clone()),
            peak_mib(of),
        );
        if index < theirs {
            println!();
            continue;
        }
        let ratio = median(
            fastest
                .iter()
                .zip(&times)
                .map(|(theirs, ours)| theirs / ours)
                .collect(),
        );
        let memory = peak_mib(of) / peak_mib(&samples[0]);
        print!(
            " {ratio:>7.1}x  wanted {:.2}x, memory {memory:.2} of {:.2}",
            entry.faster, entry.memory
        );
        let verdict = if runs == 0 {
            "checked"
        } else if ratio >= entry.faster && memory <= entry.memory {
            "met"
        } else {
            met = false;
            "MISSED"
        };
        println!(": {verdict}");
    }
    Ok(met)
}

fn one_run(entry: &Entry, place: &Place, line: &str, out: &str) -> Result<Measured> {
    // Some file systems write a replaced file to the disk immediately, and this would be measured too.
    place.run(&format!("rm -rf {out}\n{}", entry.before))?;
    // A shell takes a millisecond; most commands need none.
    let mut command = if line.contains(['|', '>', ';', '*', '(', '&']) {
        let mut command = place.command("sh");
        command.args(["-c", line]);
        command
    } else {
        let mut words = line.split_whitespace();
        let mut command = place.command(words.next().context("a command")?);
        command.args(words);
        command
    };
    command.env("LLVM_MIP_PROFILE_FILENAME", out);
    let measured = measure(&mut command).with_context(|| line.to_owned())?;
    ensure!(
        measured.status.success(),
        "{line}: {}\n{}",
        measured.status,
        String::from_utf8_lossy(&measured.stderr)
    );
    Ok(measured)
}

/// The program that a line runs in its folder, or its first two words that are no options; without folders.
fn label(line: &str) -> String {
    if let Some(own) = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix("./"))
    {
        return own.trim_end_matches(';').to_owned();
    }
    let words = line
        .split_whitespace()
        .filter(|word| !word.starts_with('-'));
    let words: Vec<&str> = words.take(2).collect();
    words
        .join(" ")
        .replace("$PROFKIT", "profkit")
        .replace("$EXAMPLES/", "")
}

fn milliseconds(measured: &Measured) -> f64 {
    measured.wall.as_secs_f64() * 1e3
}

fn peak_mib(runs: &[Measured]) -> f64 {
    number(runs.iter().map(|run| run.peak_rss).max().unwrap_or(0)) / f64::from(1 << 20)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes and faults of a process are far fewer than 2^52"
)]
fn number(count: u64) -> f64 {
    count as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
