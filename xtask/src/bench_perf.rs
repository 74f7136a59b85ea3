//! `cargo xtask bench-perf`: llvm-profgen-22, create_llvm_prof and profkit make sample profiles from the same
//! recordings. The tools run alternately; their times and memory are given as ratios.
//!
//! Recordings are made below `target/bench-perf` and deleted afterwards.
use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::simulate::{PerfFile, Program, Simulation, Step};
use profkit_testkit::{measure, on_path, repo_root, target_folder};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const HELP: &str = "\
cargo xtask bench-perf [--rounds N] [--size MEGABYTES] [--only WORK]... [--profkit FILE] [--program FILE] [--library FILE]

Times llvm-profgen-22, create_llvm_prof (Debian's package autofdo) and profkit on recordings with branch stacks:
  lbr      the shared recording of real hardware ten times over
  program  a simulated recording of a large program with debug info
  library  a simulated recording of libLLVM, which is only counted, on one core and on all
  --rounds N        rounds (default 3)
  --size MEGABYTES  the size of simulated recordings (default 1000). llvm-profgen writes one and a half times as much text
  --only WORK       lbr, program or library (default: all)
  --profkit FILE    the binary to measure (default: target/release/profkit, built first)
  --program FILE    the program with debug info (default: the binary to measure)
  --library FILE    the library (default: libLLVM.so.22.1)

Example: cargo xtask bench-perf --only lbr --rounds 9
";

/// The targets: how many times faster than the other tools profkit must be, and how many bytes per second a core must
/// count.
const WANTED: f64 = 10.0;
const WANTED_RATE: f64 = 0.5e9;
/// How many times the records of the recording in the repository are repeated.
const REPEATS: usize = 10;

struct Options {
    rounds: usize,
    size: u64,
    only: Vec<String>,
    profkit: Option<PathBuf>,
    program: Option<PathBuf>,
    library: PathBuf,
}

/// A command that is measured, with its results.
struct Contender {
    label: &'static str,
    command: Box<dyn Fn() -> Command>,
    times: Vec<Duration>,
    peak: u64,
}

impl Contender {
    fn new(label: &'static str, command: impl Fn() -> Command + 'static) -> Self {
        Contender {
            label,
            command: Box::new(command),
            times: Vec::new(),
            peak: 0,
        }
    }

    fn best(&self) -> f64 {
        let best = self.times.iter().min().copied().unwrap_or_default();
        best.as_secs_f64()
    }
}

/// Runs the benchmark.
///
/// # Errors
/// If a tool is missing or fails. A missed target is not an error of the run: it is printed.
pub fn run(args: &[String]) -> Result<()> {
    let mut options = Options {
        rounds: 3,
        size: 1000,
        only: Vec::new(),
        profkit: None,
        program: None,
        library: PathBuf::from("/usr/lib/x86_64-linux-gnu/libLLVM.so.22.1"),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
        match arg.as_str() {
            "--rounds" => options.rounds = value()?.parse().context("--rounds")?,
            "--size" => options.size = value()?.parse().context("--size")?,
            "--only" => options.only.push(value()?.clone()),
            "--profkit" => options.profkit = Some(PathBuf::from(value()?).canonicalize()?),
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
    let profkit = match &options.profkit {
        Some(profkit) => profkit.clone(),
        None => built()?,
    };
    let folder = target_folder().join("bench-perf");
    std::fs::create_dir_all(&folder)?;
    let scratch = tempfile::tempdir_in(&folder)?;
    type Work = fn(&Options, &Path, &Path) -> Result<()>;
    let works: [(&str, Work); 3] = [("lbr", lbr), ("program", program), ("library", library)];
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|it| it == name);
    ensure!(
        works.iter().any(|(name, _)| wanted(name)),
        "no such work: {}\n\n{HELP}",
        options.only.join(", ")
    );
    for (name, work) in works {
        if wanted(name) {
            work(&options, &profkit, scratch.path()).with_context(|| name.to_owned())?;
        }
    }
    Ok(())
}

fn built() -> Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "-p", "profkit-cli"])
        .status()?;
    ensure!(status.success(), "cargo build: {status}");
    Ok(target_folder().join("release/profkit"))
}

/// Measures the recording in the repository, with its records repeated [`REPEATS`] times.
fn lbr(options: &Options, profkit: &Path, scratch: &Path) -> Result<()> {
    let shared = repo_root().join("../shared/data/perf/autofdo");
    let bytes = std::fs::read(shared.join("test.lbr")).context("the shared recordings")?;
    let data = scratch.join("lbr.data");
    let mut out = BufWriter::new(File::create(&data)?);
    write_repeated(&bytes, REPEATS, &mut out)?;
    out.flush()?;
    drop(out);
    let binary = shared.join("test.binary").canonicalize()?;
    contest(options, profkit, scratch, "lbr", &data, &binary)?;
    Ok(std::fs::remove_file(data)?)
}

/// Writes a recording with its records repeated. The result is not built in memory, because Linux includes the peak
/// memory of this process in that of each started program.
fn write_repeated(file: &[u8], times: usize, out: &mut impl Write) -> Result<()> {
    let word = |at: usize| -> Result<usize> {
        let bytes = file.get(at..at + 8).context("the recording is too short")?;
        Ok(usize::try_from(u64::from_le_bytes(bytes.try_into()?))?)
    };
    // The header has the offset and the size of the records at 40 and 48, and the bits of the features from 72 on.
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
    // The table of features has the offset and the size of each feature. The offsets grow with the records.
    let table = end + 16 * usize::try_from(features)?;
    for at in (end..table).step_by(16) {
        out.write_all(&(u64::try_from(word(at)?)? + more).to_le_bytes())?;
        out.write_all(&u64::try_from(word(at + 8)?)?.to_le_bytes())?;
    }
    out.write_all(file.get(table..).context("features")?)?;
    Ok(())
}

/// Measures a simulated recording of a program with debug info.
fn program(options: &Options, profkit: &Path, scratch: &Path) -> Result<()> {
    let binary = options.program.as_deref().unwrap_or(profkit);
    let data = simulated(options, scratch, binary)?;
    contest(options, profkit, scratch, "program", &data, binary)?;
    Ok(std::fs::remove_file(data)?)
}

fn simulated(options: &Options, scratch: &Path, binary: &Path) -> Result<PathBuf> {
    let binary = binary.canonicalize()?;
    let path = scratch.join("simulated.data");
    let simulation = Simulation::new(1).truth(false).anywhere(true);
    let samples = options.size * 1_000_000 / simulation.sample_size();
    let mut file = PerfFile::new(simulation.writer(), File::create(&path)?)?;
    let steps = [
        Step::Start { pid: 7, program: 0 },
        Step::Samples(samples.max(1)),
    ];
    let truth = simulation.run(&[Program::open(&binary)], &steps, &mut file)?;
    file.finish()?;
    println!(
        "simulated: {} samples with {} branches of {}",
        truth.samples,
        truth.entries,
        binary.display()
    );
    Ok(path)
}

/// Measures all three tools on one recording.
fn contest(
    options: &Options,
    profkit: &Path,
    scratch: &Path,
    name: &str,
    data: &Path,
    binary: &Path,
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
    measure_all(options.rounds, &mut contenders)?;
    table(name, data, &contenders)
}

/// Whether this build of profkit can make sample profiles.
fn has_sample(profkit: &Path) -> bool {
    let help = Command::new(profkit).args(["sample", "--help"]).output();
    help.is_ok_and(|output| output.status.success())
}

/// Measures the counting of a simulated recording of a library, on one core and on all cores.
fn library(options: &Options, profkit: &Path, scratch: &Path) -> Result<()> {
    let data = simulated(options, scratch, &options.library)?;
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
    measure_all(options.rounds, &mut contenders)?;
    table("library", &data, &contenders)?;
    let rate = bytes(&data)? / contenders[0].best();
    println!(
        "{:.2} GB/s a core, wanted {:.1}: {}",
        rate / 1e9,
        WANTED_RATE / 1e9,
        verdict(rate >= WANTED_RATE)
    );
    Ok(std::fs::remove_file(data)?)
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn bytes(path: &Path) -> Result<f64> {
    Ok(std::fs::metadata(path)?.len() as f64)
}

/// Runs all commands, one after the other, in each round. Round 0 fills the page cache and is not measured.
fn measure_all(rounds: usize, contenders: &mut [Contender]) -> Result<()> {
    for round in 0..=rounds {
        for contender in &mut *contenders {
            let mut command = (contender.command)();
            let used = measure(command.stdin(Stdio::null())).context(contender.label)?;
            ensure!(
                used.status.success(),
                "{command:?}: {}\n{}",
                used.status,
                String::from_utf8_lossy(&used.stderr)
            );
            if round > 0 {
                contender.times.push(used.wall);
                contender.peak = contender.peak.max(used.peak_rss);
            }
        }
    }
    Ok(())
}

/// Prints the best time of each command. The last command is profkit's.
fn table(name: &str, data: &Path, contenders: &[Contender]) -> Result<()> {
    let (size, own) = (bytes(data)?, contenders.last().context("a contender")?);
    println!("{name}: {:.0} MB", size / 1e6);
    println!("| command | best, ms | MB/s | peak MiB | times profkit's |");
    println!("|---|---|---|---|---|");
    let mut out = std::io::stdout();
    for contender in contenders {
        let ratio = contender.best() / own.best();
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let peak = contender.peak as f64 / f64::from(1 << 20);
        writeln!(
            out,
            "| {} | {:.0} | {:.0} | {peak:.0} | {ratio:.1} |",
            contender.label,
            contender.best() * 1e3,
            size / 1e6 / contender.best(),
        )?;
    }
    if let [others @ .., own] = contenders
        && name != "library"
    {
        let least = others.iter().map(|it| it.best() / own.best());
        let least = least.fold(f64::MAX, f64::min);
        println!(
            "{least:.1} times faster than the faster one, wanted {WANTED:.0}: {}",
            verdict(least >= WANTED)
        );
    }
    Ok(())
}
