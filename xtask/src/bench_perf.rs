//! `cargo xtask bench-perf`: llvm-profgen-22, create_llvm_prof and profkit make sample profiles from the same
//! recordings. The tools run alternately; their times and memory are given as ratios.
//!
//! Recordings are made below `target/bench-perf` and stay there for later runs; `--prepare` only makes them.
use crate::steps::released_profkit;
use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::simulate::{PerfFile, Program, Simulation, Step};
use profkit_testkit::{measure, measure_with_anonymous, on_path, repo_root, target_folder};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const HELP: &str = "\
cargo xtask bench-perf [--prepare] [--rounds N] [--size MEGABYTES] [--only WORK]... [--profkit FILE] [--program FILE] [--library FILE]

Times llvm-profgen-22, create_llvm_prof (Debian's package autofdo) and profkit on recordings with branch stacks:
  lbr      the shared recording of real hardware ten times over
  program  a simulated recording of 500 MB of a large program with debug info
  large    the same with 2,000 MB. The other tools need minutes, so each runs only once
  library  a simulated recording of 2,000 MB of libLLVM, which is only counted, on one core and on all
  --prepare         only build profkit and make the recordings, which takes some minutes
  --rounds N        rounds (default 3)
  --size MEGABYTES  the size of the simulated recordings. llvm-profgen writes one and a half times as much text
  --only WORK       lbr, program, large or library (default: all)
  --profkit FILE    the binary to measure (default: target/dist/profkit, built first)
  --program FILE    the program with debug info (default: the binary to measure, as it was when the recordings were made)
  --library FILE    the library (default: libLLVM.so.22.1)

The recordings stay in target/bench-perf and are used again; remove the folder to have them made anew.

Example: cargo xtask bench-perf --prepare && cargo xtask bench-perf --rounds 3
";

/// The target: how many times faster than the other tools profkit must be.
const WANTED: f64 = 10.0;
/// The target: how many bytes of a recording a core must count per second.
const WANTED_RATE: f64 = 0.5e9;
/// The memory in MiB that profkit may use for the recording of real hardware in `shared/data/perf`. The next constant
/// is for a large simulated recording and does not count the page cache.
const WANTED_PEAK: u64 = 40;
const WANTED_ANONYMOUS: u64 = 1024;
/// The number of times that the shared recording is repeated.
const REPEATS: usize = 10;
/// The sizes of simulated recordings in megabytes.
const SIZE: u64 = 500;
const LARGE_SIZE: u64 = 2000;

struct Options {
    rounds: usize,
    size: Option<u64>,
    only: Vec<String>,
    program: Option<PathBuf>,
    library: PathBuf,
    /// The folder of the recordings.
    folder: PathBuf,
}

/// A recording, and the program that was recorded.
struct Input {
    data: PathBuf,
    binary: PathBuf,
}

/// A command that is measured, with its results.
struct Contender {
    label: &'static str,
    command: Box<dyn Fn() -> Command>,
    times: Vec<Duration>,
    /// The largest resident set. The next field is the part of it that does not come from files.
    peak: u64,
    anonymous: u64,
    /// Why the command failed, if it did.
    failure: Option<String>,
}

impl Contender {
    fn new(label: &'static str, command: impl Fn() -> Command + 'static) -> Self {
        Contender {
            label,
            command: Box::new(command),
            times: Vec::new(),
            peak: 0,
            anonymous: 0,
            failure: None,
        }
    }

    fn best(&self) -> f64 {
        let best = self.times.iter().min().copied().unwrap_or_default();
        best.as_secs_f64()
    }
}

/// A measurement: its name, the function that makes its recording, and the function that runs the tools.
struct Work {
    name: &'static str,
    make: fn(&Options, &Path) -> Result<Input>,
    run: fn(&Options, &Path, &Path, &Input) -> Result<()>,
}

const WORKS: [Work; 4] = [
    Work {
        name: "lbr",
        make: make_lbr,
        run: |options, profkit, scratch, input| {
            contest("lbr", options.rounds, profkit, scratch, input)
        },
    },
    Work {
        name: "program",
        make: |options, profkit| make_program(options, profkit, SIZE),
        run: |options, profkit, scratch, input| {
            contest("program", options.rounds, profkit, scratch, input)
        },
    },
    Work {
        name: "large",
        make: |options, profkit| make_program(options, profkit, LARGE_SIZE),
        run: |options, profkit, scratch, input| {
            contest("large", options.rounds, profkit, scratch, input)
        },
    },
    Work {
        name: "library",
        make: |options, _| {
            let size = options.size.unwrap_or(LARGE_SIZE);
            simulated(options, "library", &options.library, size)
        },
        run: library,
    },
];

/// Runs the benchmark.
///
/// # Errors
/// If a tool is missing, or profkit fails. A missed target is not an error of the run: it is printed.
pub fn run(args: &[String]) -> Result<()> {
    let mut options = Options {
        rounds: 3,
        size: None,
        only: Vec::new(),
        program: None,
        library: PathBuf::from("/usr/lib/x86_64-linux-gnu/libLLVM.so.22.1"),
        folder: target_folder().join("bench-perf"),
    };
    let (mut prepare, mut profkit) = (false, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
        match arg.as_str() {
            "--prepare" => prepare = true,
            "--rounds" => options.rounds = value()?.parse().context("--rounds")?,
            "--size" => options.size = Some(value()?.parse().context("--size")?),
            "--only" => options.only.push(value()?.clone()),
            "--profkit" => profkit = Some(PathBuf::from(value()?).canonicalize()?),
            "--program" => options.program = Some(value()?.into()),
            "--library" => options.library = value()?.into(),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    for tool in ["llvm-profgen-22", "create_llvm_prof", "perf"] {
        ensure!(on_path(tool).is_some(), "{tool} is not installed");
    }
    let known = |name: &String| WORKS.iter().any(|work| work.name == name);
    if let Some(other) = options.only.iter().find(|name| !known(name)) {
        bail!("no such work: {other}\n\n{HELP}");
    }
    let profkit = profkit.map_or_else(released_profkit, Ok)?;
    std::fs::create_dir_all(&options.folder)?;
    let scratch = tempfile::tempdir_in(&options.folder)?;
    for work in WORKS {
        if options.only.is_empty() || options.only.iter().any(|name| name == work.name) {
            let input = (work.make)(&options, &profkit).context(work.name)?;
            if !prepare {
                (work.run)(&options, &profkit, scratch.path(), &input).context(work.name)?;
            }
        }
    }
    Ok(())
}

/// Makes a recording that repeats the shared recording ten times.
fn make_lbr(options: &Options, _: &Path) -> Result<Input> {
    let shared = repo_root().join("../shared/data/perf/autofdo");
    let binary = shared.join("test.binary").canonicalize()?;
    let data = options.folder.join("lbr.data");
    if !data.exists() {
        let bytes = std::fs::read(shared.join("test.lbr")).context("the shared recordings")?;
        written(&data, |file| {
            let mut out = BufWriter::new(file);
            write_repeated(&bytes, REPEATS, &mut out)?;
            Ok(out.flush()?)
        })?;
    }
    Ok(Input { data, binary })
}

/// Makes a file. It has a temporary name until it is complete.
fn written(path: &Path, write: impl FnOnce(File) -> Result<()>) -> Result<()> {
    let part = path.with_extension("part");
    write(File::create(&part)?)?;
    Ok(std::fs::rename(part, path)?)
}

/// Writes a recording with its records repeated. The result is not built in memory, because Linux includes the peak
/// memory of this process in that of each started program.
fn write_repeated(file: &[u8], times: usize, out: &mut impl Write) -> Result<()> {
    let word = |at: usize| -> Result<usize> {
        let bytes = file.get(at..at + 8).context("the recording is too short")?;
        Ok(usize::try_from(u64::from_le_bytes(bytes.try_into()?))?)
    };
    // The header has the offset of the records at byte 40, the size of the records at byte 48, and a bit for each
    // feature from byte 72 on.
    let (start, size) = (word(40)?, word(48)?);
    let features: u32 = (0..4)
        .map(|index| Ok(word(72 + 8 * index)?.count_ones()))
        .sum::<Result<u32>>()?;
    let end = start + size;
    let more = u64::try_from(size * (times - 1))?;
    let mut head = file.get(..start).context("a header")?.to_vec();
    head[48..56].copy_from_slice(&u64::try_from(size * times)?.to_le_bytes());
    out.write_all(&head)?;
    for _ in 0..times {
        out.write_all(file.get(start..end).context("records")?)?;
    }
    // The table of features has the offset and the size of each feature. The features are after the records, so their
    // offsets grow by the size of the added records.
    let table = end + 16 * usize::try_from(features)?;
    for at in (end..table).step_by(16) {
        out.write_all(&(u64::try_from(word(at)?)? + more).to_le_bytes())?;
        out.write_all(&u64::try_from(word(at + 8)?)?.to_le_bytes())?;
    }
    out.write_all(file.get(table..).context("features")?)?;
    Ok(())
}

/// Makes a simulated recording of a program with debug info. By default the program is a copy of profkit, so that the
/// recording still fits the program after profkit is built again.
fn make_program(options: &Options, profkit: &Path, size: u64) -> Result<Input> {
    let binary = match &options.program {
        Some(program) => program.clone(),
        None => {
            let copy = options.folder.join("program");
            if !copy.exists() {
                std::fs::copy(profkit, &copy)?;
            }
            copy
        }
    };
    simulated(options, "program", &binary, options.size.unwrap_or(size))
}

fn simulated(options: &Options, name: &str, binary: &Path, size: u64) -> Result<Input> {
    let binary = binary.canonicalize()?;
    // The name states from what the recording was made.
    let stem = binary.file_stem().unwrap_or_default().to_string_lossy();
    let length = std::fs::metadata(&binary)?.len();
    let data = options
        .folder
        .join(format!("{name}-{stem}-{length}-{size}.data"));
    if !data.exists() {
        let simulation = Simulation::new(1).truth(false).anywhere(true);
        let samples = size * 1_000_000 / simulation.sample_size();
        let steps = [
            Step::Start { pid: 7, program: 0 },
            Step::Samples(samples.max(1)),
        ];
        written(&data, |file| {
            let mut file = PerfFile::new(simulation.writer(), file)?;
            let truth = simulation.run(&[Program::open(&binary)], &steps, &mut file)?;
            file.finish()?;
            println!(
                "simulated: {} samples with {} branches of {}",
                truth.samples,
                truth.entries,
                binary.display()
            );
            Ok(())
        })?;
    }
    Ok(Input { data, binary })
}

/// Measures all three tools on one recording.
fn contest(
    name: &str,
    rounds: usize,
    profkit: &Path,
    scratch: &Path,
    Input { data, binary }: &Input,
) -> Result<()> {
    let out = |label: &str| scratch.join(format!("{name}.{label}"));
    let owned = |path: &Path| path.to_path_buf();
    let mut contenders = [
        {
            let (data, binary, out, folder) =
                (owned(data), owned(binary), out("profgen"), owned(scratch));
            Contender::new("llvm-profgen-22", move || {
                let mut command = Command::new("llvm-profgen-22");
                command
                    .current_dir(&folder)
                    .arg("--format=text")
                    .arg(format!("--perfdata={}", data.display()))
                    .arg(format!("--binary={}", binary.display()))
                    .arg("-o")
                    .arg(&out);
                command
            })
        },
        {
            let (data, binary, out) = (owned(data), owned(binary), out("autofdo"));
            Contender::new("create_llvm_prof", move || {
                let mut command = Command::new("create_llvm_prof");
                command
                    .arg("--format=text")
                    .arg(format!("--profile={}", data.display()))
                    .arg(format!("--binary={}", binary.display()))
                    .arg(format!("--out={}", out.display()));
                command
            })
        },
        {
            let (data, binary, out, profkit) =
                (owned(data), owned(binary), out("profkit"), owned(profkit));
            let samples = has_sample(&profkit);
            let label = if samples {
                "profkit sample"
            } else {
                "profkit show"
            };
            Contender::new(label, move || {
                let mut command = Command::new(&profkit);
                if samples {
                    command.args(["sample", "--format=text", "-o"]).arg(&out);
                    command.arg("--binary").arg(&binary).arg(&data);
                } else {
                    command.arg("show").arg(&data);
                }
                command
            })
        },
    ];
    // The other tools need minutes for a large recording.
    let once = name == "large";
    measure_all(if once { 1 } else { rounds }, once, &mut contenders)?;
    table(name, data, &contenders)?;
    let [others @ .., own] = &contenders;
    let others = others.iter().filter(|other| other.failure.is_none());
    let least = others.map(|it| it.best() / own.best());
    let least = least.fold(f64::MAX, f64::min);
    println!(
        "{least:.1} times faster than the faster one, wanted {WANTED:.0}: {}",
        verdict(least >= WANTED)
    );
    let (what, used, most) = if name == "lbr" {
        ("peak", own.peak, WANTED_PEAK)
    } else {
        ("beyond the page cache", own.anonymous, WANTED_ANONYMOUS)
    };
    println!(
        "{:.0} MiB {what}, at most {most}: {}",
        mebibytes(used),
        verdict(used <= most << 20)
    );
    Ok(())
}

/// Whether this build of profkit can make sample profiles.
fn has_sample(profkit: &Path) -> bool {
    let help = Command::new(profkit).args(["sample", "--help"]).output();
    help.is_ok_and(|output| output.status.success())
}

/// Measures how fast a simulated recording of a library is counted, on one core and on all cores.
fn library(
    options: &Options,
    profkit: &Path,
    scratch: &Path,
    Input { data, .. }: &Input,
) -> Result<()> {
    let count = |cores: Option<&'static str>| {
        let (data, profkit) = (data.clone(), profkit.to_path_buf());
        let out = scratch.join("library.addresses");
        let samples = has_sample(&profkit);
        move || {
            let mut command = match cores {
                Some(cores) => {
                    let mut command = Command::new("taskset");
                    command.args(["-c", cores]).arg(&profkit);
                    command
                }
                None => Command::new(&profkit),
            };
            if samples {
                command.args(["sample", "--addresses"]).arg(&out).arg(&data);
            } else {
                command.arg("show").arg(&data);
            }
            command
        }
    };
    let mut contenders = [
        Contender::new("profkit, one core", count(Some("0"))),
        Contender::new("profkit, all cores", count(None)),
    ];
    measure_all(options.rounds, false, &mut contenders)?;
    table("library", data, &contenders)?;
    let rate = bytes(data)? / contenders[0].best();
    println!(
        "{:.2} GB/s a core, wanted {:.1}: {}",
        rate / 1e9,
        WANTED_RATE / 1e9,
        verdict(rate >= WANTED_RATE)
    );
    Ok(())
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn bytes(path: &Path) -> Result<f64> {
    Ok(std::fs::metadata(path)?.len() as f64)
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Runs all commands, one after the other, in each round. The times of round 0 do not count: it fills the page cache,
/// and it measures the anonymous memory of the commands, which takes time. With `once`, only the last command, which is
/// profkit's, is run in round 0; the anonymous memory of the other commands is then measured in the other rounds.
fn measure_all(rounds: usize, once: bool, contenders: &mut [Contender]) -> Result<()> {
    let last = contenders.len() - 1;
    for round in 0..=rounds {
        for (index, contender) in contenders.iter_mut().enumerate() {
            let is_own = index == last;
            if contender.failure.is_some() || once && round == 0 && !is_own {
                continue;
            }
            let mut command = (contender.command)();
            command.stdin(Stdio::null());
            let used = if round == 0 || once && !is_own {
                let (used, anonymous) =
                    measure_with_anonymous(&mut command).context(contender.label)?;
                contender.anonymous = contender.anonymous.max(anonymous);
                used
            } else {
                measure(&mut command).context(contender.label)?
            };
            if !used.status.success() {
                let text = String::from_utf8_lossy(&used.stderr).into_owned();
                ensure!(!is_own, "{command:?}: {}\n{text}", used.status);
                let first = text.lines().next_back().unwrap_or_default();
                contender.failure = Some(format!("{}: {first}", used.status));
                continue;
            }
            contender.peak = contender.peak.max(used.peak_rss);
            if round > 0 {
                contender.times.push(used.wall);
            }
        }
    }
    Ok(())
}

/// Prints the best time of each command. The last command is profkit's.
fn table(name: &str, data: &Path, contenders: &[Contender]) -> Result<()> {
    let (size, own) = (bytes(data)?, contenders.last().context("a contender")?);
    println!("{name}: {:.0} MB", size / 1e6);
    println!("| command | best, ms | MB/s | peak MiB | of that anonymous | times profkit's |");
    println!("|---|---|---|---|---|---|");
    let mut out = std::io::stdout();
    for contender in contenders {
        if let Some(failure) = &contender.failure {
            writeln!(out, "| {} | failed: {failure} | | | | |", contender.label)?;
            continue;
        }
        writeln!(
            out,
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} |",
            contender.label,
            contender.best() * 1e3,
            size / 1e6 / contender.best(),
            mebibytes(contender.peak),
            mebibytes(contender.anonymous),
            contender.best() / own.best()
        )?;
    }
    Ok(())
}
