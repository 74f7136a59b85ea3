//! `cargo xtask bench`: commands of LLVM's tools and of profkit that do the same work, measured side by side.
//!
//! Every round runs each command once, so that a slow phase of the machine affects all of them; ratios are medians over
//! the rounds.
mod entries;
mod growth;
mod inputs;
mod programs;
mod shapes;
mod tables;

use crate::mip::{fresh, succeed};
use crate::steps::{built_profkit, released_profkit};
use anyhow::{Context, Result, ensure};
use entries::Entry;
use profkit_testkit::{Llvm, Measured, measure, skip, target_folder};
use shapes::Shape;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;
pub use tables::{machine, replace};

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
    /// Measure the works of the README's table, and write its figures there and to docs/performance.md
    #[arg(long, conflicts_with = "small")]
    tables: bool,
    /// Measure time and memory by the number of functions and of files, and write both to docs/performance.md
    #[arg(long)]
    growth: bool,
    /// Measure real programs, and print the numbers of the table in xtask/src/bench/shapes/mod.rs
    #[arg(long, exclusive = true)]
    shapes: bool,
    /// Measure this program, without building one
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
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
    /// What the profiles of the folder are like, if several shapes are measured.
    shape: Option<&'static Shape>,
}

impl Place {
    fn shape(&self) -> Result<&'static Shape> {
        self.shape.context("an entry without shapes")
    }

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
    /// `$THEIRS` (what this command writes, and what the other tool wrote), `$FUNCTION` (the name of a function of the profile),
    /// `$N` (how often something is repeated).
    fn expand(&self, line: &str, out: &str, theirs: &str) -> String {
        let examples = self.profkit.with_file_name("examples");
        let function = self.shape.map(|shape| shape.some_name(self));
        line.replace("$PROFKIT", &self.profkit.to_string_lossy())
            .replace("$EXAMPLES", &examples.to_string_lossy())
            .replace("$OUT", out)
            .replace("$THEIRS", theirs)
            .replace("$FUNCTION", &function.unwrap_or_default())
            .replace("$N", &self.size(200, 3).to_string())
    }
}

/// Runs the benchmarks.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.shapes {
        return shapes::measure::run();
    }
    let mut folder = target_folder().join("bench");
    let profkit = match &arguments.program {
        Some(program) => {
            fs::canonicalize(program).with_context(|| program.display().to_string())?
        }
        None if arguments.small => built_profkit()?,
        None => released_profkit()?,
    };
    if arguments.small {
        folder.push("small");
    }
    if arguments.growth {
        let place = Place {
            folder: folder.join("growth"),
            profkit,
            small: arguments.small,
            shape: None,
        };
        return growth::run(arguments, &place);
    }
    let all = entries::ALL.iter().flat_map(|entry| {
        let shapes = if entry.shaped { shapes::ALL } else { &[] };
        let shaped = shapes.iter().map(Some);
        let plain = (!entry.shaped).then_some(None);
        shaped.chain(plain).map(move |shape| (entry, shape))
    });
    let all = all.map(|(entry, shape)| {
        let mut place = Place {
            folder: folder.join(entry.folder),
            profkit: profkit.clone(),
            small: arguments.small,
            shape,
        };
        if let Some(shape) = shape {
            place.folder.push(shape.name);
        }
        (entry, place)
    });
    let wanted = |(entry, place): &(&'static Entry, Place)| {
        let (name, names) = (name_of(entry, place), &arguments.names);
        (names.is_empty() || names.iter().any(|start| name.starts_with(start.as_str())))
            && (!arguments.tables || !entry.row.is_empty())
            && !(arguments.small && entry.full_only)
    };
    let chosen: Vec<(&Entry, Place)> = all.filter(wanted).collect();
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
    if arguments.prepare {
        for (entry, place) in &chosen {
            let began = Instant::now();
            fs::create_dir_all(&place.folder)?;
            let name = name_of(entry, place);
            (entry.prepare)(place).with_context(|| format!("preparing {name}"))?;
            eprintln!("prepared {name} in {:.1} s", began.elapsed().as_secs_f64());
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
        "{:<24} {:<26} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7}",
        "benchmark", "command", "min ms", "median ms", "cpu ms", "MB/s", "peak MiB", "faults"
    );
    let runs = if arguments.small { 0 } else { arguments.runs };
    let mut measured = Vec::new();
    for (entry, place) in chosen {
        let name = name_of(entry, &place);
        let ratios = measure_entry(entry, &place, &name, runs).with_context(|| name.clone())?;
        measured.push((entry, name, ratios));
    }
    if arguments.tables {
        tables::write(&measured, arguments)?;
    }
    let missed = measured.iter().filter(|(_, _, ratios)| !ratios.met);
    let missed: Vec<&str> = missed.map(|(_, name, _)| &**name).collect();
    ensure!(
        missed.is_empty() || runs == 0,
        "missed: {}",
        missed.join(", ")
    );
    Ok(())
}

/// The name of an entry, with that of its shape.
fn name_of(entry: &Entry, place: &Place) -> String {
    match place.shape {
        Some(shape) => format!("{}/{}", entry.name, shape.name),
        None => entry.name.to_owned(),
    }
}

/// How the first command of profkit compares with the fastest one of other tools: medians over the rounds.
#[derive(Clone, Copy, Debug)]
struct Ratios {
    /// Their wall time by ours.
    wall: f64,
    /// Their processor time by ours.
    cpu: f64,
    /// Our peak memory by that of their first command.
    memory: f64,
    /// The processor time of the bare loop that takes longest by ours; 0 if the entry has none.
    bare: f64,
    /// Whether all commands of profkit reach the targets.
    met: bool,
}

/// Measures the commands of an entry and prints a line for each.
fn measure_entry(entry: &Entry, place: &Place, name: &str, runs: u32) -> Result<Ratios> {
    let (theirs, ours) = (entry.theirs.len(), entry.ours.len());
    let lines: Vec<&str> = [entry.theirs, entry.ours, entry.bare].concat();
    let outputs: Vec<String> = (0..lines.len())
        .map(|index| format!("{}.{index}.out", entry.name))
        .collect();
    let mut samples: Vec<Vec<Measured>> = lines.iter().map(|_| Vec::new()).collect();
    // Round 0 fills the page cache, and its outputs are checked.
    for round in 0..=runs {
        for ((line, out), samples) in lines.iter().zip(&outputs).zip(&mut samples) {
            let measured = one_run(
                entry.before,
                place,
                &place.expand(line, out, &outputs[0]),
                out,
            )?;
            if round > 0 || runs == 0 {
                samples.push(measured);
            }
        }
        if round == 0 && !entry.check.is_empty() {
            for out in &outputs[theirs..theirs + ours] {
                place.run(&place.expand(entry.check, out, &outputs[0]))?;
            }
        }
    }
    let fastest = |time: fn(&Measured) -> f64| -> Vec<f64> {
        let round = |round: usize| {
            let all = samples[..theirs].iter().map(|of| time(&of[round]));
            all.fold(f64::INFINITY, f64::min)
        };
        (0..samples[0].len()).map(round).collect()
    };
    let ratio = |time: fn(&Measured) -> f64, of: &[Measured]| {
        let pairs = fastest(time).into_iter().zip(of);
        median(pairs.map(|(theirs, ours)| theirs / time(ours)).collect())
    };
    let mut found = Ratios {
        wall: f64::NAN,
        cpu: f64::NAN,
        memory: f64::NAN,
        bare: 0.0,
        met: true,
    };
    for (index, (line, of)) in lines.iter().zip(&samples).enumerate() {
        let times: Vec<f64> = of.iter().map(milliseconds).collect();
        let cpu = median(of.iter().map(processor).collect());
        let faults = median(of.iter().map(|one| number(one.major_faults)).collect());
        print!(
            "{name:<24} {:<26} {:>9.2} {:>9.2} {cpu:>9.2} {:>9.0} {:>8.1} {faults:>7}",
            label(line),
            times.iter().copied().fold(f64::INFINITY, f64::min),
            median(times.clone()),
            input_bytes(place, line)? / 1e3 / cpu,
            peak_mib(of),
        );
        if index >= theirs + ours {
            found.bare = found
                .bare
                .max(cpu / median(samples[theirs].iter().map(processor).collect()));
        }
        if !(theirs..theirs + ours).contains(&index) {
            println!();
            continue;
        }
        let (wall, cpu) = (ratio(milliseconds, of), ratio(processor, of));
        let memory = peak_mib(of) / peak_mib(&samples[0]);
        if index == theirs {
            (found.wall, found.cpu, found.memory) = (wall, cpu, memory);
        }
        print!(
            " {wall:>7.1}x, {cpu:.1}x of cpu; wanted {:.2}x, memory {memory:.2} of {:.2}",
            entry.faster, entry.memory
        );
        let met = wall >= entry.faster && memory <= entry.memory;
        found.met &= met;
        println!(
            ": {}",
            if runs == 0 {
                "checked"
            } else if met {
                "met"
            } else {
                "MISSED"
            }
        );
    }
    Ok(found)
}

/// The bytes of the files of the folder that a command line names, and of those in folders and lists that it names.
fn input_bytes(place: &Place, line: &str) -> Result<f64> {
    let mut bytes = 0;
    for word in line.split(' ') {
        let path = place.folder.join(word.trim_end_matches("/*"));
        let mut files = vec![path.clone()];
        if path.is_dir() {
            files = fs::read_dir(&path)?
                .map(|entry| Ok(entry?.path()))
                .collect::<Result<_>>()?;
        } else if word.ends_with(".list") {
            files.extend(
                fs::read_to_string(&path)?
                    .lines()
                    .map(|line| place.folder.join(line)),
            );
        }
        bytes += files
            .iter()
            .filter_map(|file| Some(fs::metadata(file).ok()?.len()))
            .sum::<u64>();
    }
    Ok(number(bytes))
}

fn one_run(before: &str, place: &Place, line: &str, out: &str) -> Result<Measured> {
    // Some file systems write a replaced file to the disk immediately, and this would be measured too.
    place.run(&format!("rm -rf {out}\n{before}"))?;
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

/// The user and system time in milliseconds.
fn processor(measured: &Measured) -> f64 {
    measured.cpu.as_secs_f64() * 1e3
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
