//! `cargo xtask bench-llvm`: compares the time of LLVM's tool and of profkit on the same inputs, as a ratio. The tools
//! run alternately.
//!
//! Inputs are generated below `target/bench-llvm` (about 2 GB) and kept. Every round runs each command once, so that a
//! slow phase of the machine affects all commands. Outputs are compared byte for byte.
pub mod inputs;
mod measure;
pub mod sample;
mod works;

use crate::steps::released_profkit;
use anyhow::{Context, Result, bail};
use measure::{Sample, run_measured};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use works::Work;

/// The options of the command line.
#[derive(Debug)]
struct Options {
    rounds: usize,
    only: Vec<String>,
    json: Option<PathBuf>,
    release: PathBuf,
    /// Whether only the inputs are made, and nothing is measured.
    prepare: bool,
}

const HELP: &str = "\
cargo xtask bench-llvm [--rounds N] [--only WORK]... [--json FILE] [--profkit FILE]

Times llvm-profdata-22 and profkit on generated inputs, alternately, and prints the ratios.
  --rounds N      rounds (default 7)
  --only WORK     coverage, values, indexed, text, show, small, overlap, diff, order, match or match-binary
                  (default: all)
  --json FILE     also write every sample
  --profkit FILE  the binary to measure (default: target/dist/profkit, built first)
  --prepare       only make the inputs

Example: cargo xtask bench-llvm --only coverage --rounds 11
";

/// Runs the benchmark.
///
/// # Errors
/// If a tool is missing, a command fails, or two outputs that must be equal differ. A missed target is not an error of
/// the run; the table shows it.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.iter();
    let mut options = Options {
        rounds: 7,
        only: Vec::new(),
        json: None,
        release: PathBuf::new(),
        prepare: false,
    };
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .cloned()
                .with_context(|| format!("{arg} wants a value"))
        };
        match arg.as_str() {
            "--rounds" => options.rounds = value()?.parse().context("--rounds")?,
            "--only" => options.only.push(value()?),
            "--json" => options.json = Some(value()?.into()),
            "--profkit" => options.release = value()?.into(),
            "--prepare" => options.prepare = true,
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    if options.rounds == 0 {
        bail!("--rounds must be at least 1");
    }
    if options.release.as_os_str().is_empty() {
        options.release = released_profkit()?;
    }
    if !options.prepare {
        prepare(&options)?;
    }
    let folder = std::env::current_dir()?.join("target/bench-llvm");
    let mut works = Vec::new();
    for (name, make) in works::ALL {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            eprintln!("preparing {name}");
            works.push(
                make(&folder, &options.release).with_context(|| format!("preparing {name}"))?,
            );
        }
    }
    if works.is_empty() {
        bail!("no such work: {}\n\n{HELP}", options.only.join(", "));
    }
    if options.prepare {
        return Ok(());
    }
    let mut results = Vec::new();
    for work in &works {
        eprintln!("measuring {}", work.name);
        results.push(measure_work(work, options.rounds)?);
    }
    print_table(&works, &results);
    if let Some(path) = &options.json {
        write_json(path, &works, &results)?;
    }
    Ok(())
}

/// Makes the inputs in a separate process. Linux includes the memory of the starting process in the peak of a started
/// command, and making the inputs needs more memory than some of the measured commands.
fn prepare(options: &Options) -> Result<()> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(["bench-llvm", "--prepare", "--profkit"]);
    command.arg(&options.release);
    for work in &options.only {
        command.args(["--only", work]);
    }
    let status = command.status()?;
    if !status.success() {
        bail!("making the inputs: {status}");
    }
    Ok(())
}

/// The measurements of one row of the benchmark: a list for each command, in the order of `Work::commands`.
type Samples = Vec<Vec<Sample>>;

fn measure_work(work: &Work, rounds: usize) -> Result<Samples> {
    let mut samples: Samples = work.commands.iter().map(|_| Vec::new()).collect();
    // Round 0 is not measured. It fills the page cache, and its outputs are compared.
    for round in 0..=rounds {
        for (index, command) in work.commands.iter().enumerate() {
            let sample = run_measured(command)
                .with_context(|| format!("{}: {}", work.name, command.label))?;
            if round > 0 {
                samples[index].push(sample);
            }
        }
        if round == 0 {
            compare_outputs(work)?;
        }
    }
    Ok(samples)
}

fn compare_outputs(work: &Work) -> Result<()> {
    if !work.same_output {
        return Ok(());
    }
    let reference = &work.commands[0];
    for command in &work.commands[1..] {
        if !same_bytes(&reference.output, &command.output)? {
            bail!(
                "{}: {} and {} differ: {} and {}",
                work.name,
                reference.label,
                command.label,
                reference.output.display(),
                command.output.display()
            );
        }
    }
    Ok(())
}

/// Compares the files piece by piece. If this process held whole files, their memory would count in the peak of the
/// next command.
fn same_bytes(first: &Path, second: &Path) -> Result<bool> {
    let open = |path: &Path| File::open(path).with_context(|| path.display().to_string());
    let (mut first, mut second) = (open(first)?, open(second)?);
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut total = 0;
    loop {
        let length = first.read(&mut left)?;
        total += length;
        if length == 0 {
            return Ok(total > 0 && second.read(&mut right)? == 0);
        }
        if second.read_exact(&mut right[..length]).is_err() || left[..length] != right[..length] {
            return Ok(false);
        }
    }
}

fn print_table(works: &[Work], results: &[Samples]) {
    println!(
        "{:<10} {:<16} {:>10} {:>10} {:>9}   {:>9} {:>9}   wanted",
        "work", "command", "min ms", "median ms", "peak MiB", "ratio min", "median"
    );
    for (work, samples) in works.iter().zip(results) {
        for (index, command) in work.commands.iter().enumerate() {
            let mut wall: Vec<f64> = samples[index].iter().map(|sample| sample.wall_ms).collect();
            let (low, middle) = min_median(&mut wall);
            let peak = peak_mib(&samples[index]);
            print!(
                "{:<10} {:<16} {low:>10.2} {middle:>10.2} {peak:>9.1}",
                work.name, command.label
            );
            if index == 0 {
                println!();
                continue;
            }
            let mut ratios: Vec<f64> = samples[0]
                .iter()
                .zip(&samples[index])
                .map(|(llvm, ours)| llvm.wall_ms / ours.wall_ms)
                .collect();
            let (low, middle) = min_median(&mut ratios);
            let memory = peak / peak_mib(&samples[0]);
            let verdict = if middle >= work.wanted_ratio && memory <= work.wanted_memory {
                "met"
            } else {
                "MISSED"
            };
            println!(
                "   {low:>8.1}x {middle:>8.1}x   {}x, memory {:.2} of {:.2}: {verdict}",
                work.wanted_ratio, memory, work.wanted_memory
            );
        }
    }
}

fn peak_mib(samples: &[Sample]) -> f64 {
    samples
        .iter()
        .map(|sample| sample.peak_mib)
        .fold(0.0, f64::max)
}

fn min_median(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2])
}

fn write_json(path: &Path, works: &[Work], results: &[Samples]) -> Result<()> {
    let works: Vec<_> = works
        .iter()
        .zip(results)
        .map(|(work, samples)| {
            let commands: Vec<_> = work
                .commands
                .iter()
                .zip(samples)
                .map(|(command, samples)| {
                    let samples: Vec<_> = samples
                        .iter()
                        .map(|sample| serde_json::json!({ "wall_ms": sample.wall_ms, "peak_mib": sample.peak_mib }))
                        .collect();
                    serde_json::json!({ "command": command.label, "samples": samples })
                })
                .collect();
            serde_json::json!({
                "work": work.name, "wanted_ratio": work.wanted_ratio, "wanted_memory": work.wanted_memory,
                "commands": commands,
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&serde_json::json!({ "version": 1, "works": works }))?;
    std::fs::write(path, text).with_context(|| path.display().to_string())
}
