//! `cargo xtask bench-symbolize`: `llvm-symbolizer-22` and profkit symbolise the same addresses. The tools run
//! alternately, and their times are given as a ratio. Both print text, which is compared byte for byte.
mod program;

use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::{Measured, measure};
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HELP: &str = "\
cargo xtask bench-symbolize [--rounds N] [--addresses N] [--program FILE]

Times llvm-symbolizer-22 and profkit on addresses spread evenly over a program's code, and prints both.
  --rounds N      rounds (default 3)
  --addresses N   how many addresses (default 1000000)
  --program FILE  the program (default: one of some 100 MB, made in target/bench-symbolize)
";

/// The target: how many times faster profkit must be.
const WANTED: f64 = 5.0;

/// Runs the benchmark.
///
/// # Errors
/// If a tool is missing or fails, or the outputs differ. A missed target is not an error of the run: it is printed.
pub fn run(args: &[String]) -> Result<()> {
    let (mut rounds, mut count, mut program) = (3, 1_000_000, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
        match arg.as_str() {
            "--rounds" => rounds = value()?.parse().context("--rounds")?,
            "--addresses" => count = value()?.parse().context("--addresses")?,
            "--program" => program = Some(PathBuf::from(value()?)),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    ensure!(rounds > 0, "--rounds must be at least 1");
    let folder = profkit_testkit::target_folder().join("bench-symbolize");
    let program = program.map_or_else(|| program::make(&folder), Ok)?;
    std::fs::create_dir_all(&folder)?;
    let addresses = folder.join("addresses");
    let text = addresses_of(&program, count)?;
    std::fs::write(&addresses, text)?;
    let ours = build()?;
    let llvm = || {
        let mut command = Command::new("llvm-symbolizer-22");
        command.arg(format!("--obj={}", program.display()));
        command.args([
            "--functions=linkage",
            "--inlines",
            "--no-demangle",
            "--no-debuginfod",
        ]);
        command
    };
    let profkit = || {
        let mut command = Command::new(&ours);
        command.arg(&program);
        command
    };
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let size = std::fs::metadata(&program)?.len() as f64 / 1e6;
    println!("{count} addresses of {} ({size:.0} MB)", program.display());
    let (mut of_llvm, mut of_profkit) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let mut left = one(llvm(), &addresses)?;
        if round > 0 {
            left.stdout = Vec::new();
        }
        let right = one(profkit(), &addresses)?;
        // The first round fills the page cache and is not measured.
        if round == 0 {
            ensure!(left.stdout == right.stdout, "the outputs differ");
            println!("outputs are equal: {} bytes", left.stdout.len());
            continue;
        }
        // The text is dropped here: memory that this process holds would count in the peak of the next command.
        of_llvm.push(Measured {
            stdout: Vec::new(),
            ..left
        });
        of_profkit.push(Measured {
            stdout: Vec::new(),
            ..right
        });
    }
    let (llvm_low, llvm_middle) = print("llvm-symbolizer", &of_llvm);
    let (low, middle) = print("profkit", &of_profkit);
    let ratio = llvm_middle / middle;
    let verdict = if ratio >= WANTED { "met" } else { "MISSED" };
    println!(
        "ratio: min {:.1}x, median {ratio:.1}x; wanted {WANTED}x: {verdict}",
        llvm_low / low
    );
    Ok(())
}

fn one(mut command: Command, addresses: &Path) -> Result<Measured> {
    let measured = measure(command.stdin(Stdio::from(File::open(addresses)?)))?;
    ensure!(
        measured.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&measured.stderr)
    );
    Ok(measured)
}

/// Prints a row of the table. Returns the minimum and the median of the wall time in seconds.
fn print(label: &str, runs: &[Measured]) -> (f64, f64) {
    let mut wall: Vec<f64> = runs.iter().map(|run| run.wall.as_secs_f64()).collect();
    let mut cpu: Vec<f64> = runs.iter().map(|run| run.cpu.as_secs_f64()).collect();
    wall.sort_by(f64::total_cmp);
    cpu.sort_by(f64::total_cmp);
    let peak = runs.iter().map(|run| run.peak_rss).max().unwrap_or(0) >> 20;
    let (low, middle) = (wall[0], wall[wall.len() / 2]);
    println!(
        "{label:<16} wall min {low:>7.2} s, median {middle:>7.2} s; cpu median {:>7.2} s; peak {peak} MiB",
        cpu[cpu.len() / 2]
    );
    (low, middle)
}

/// Returns addresses at equal distances in the program's `.text`, one per line.
fn addresses_of(program: &Path, count: u64) -> Result<String> {
    let output = Command::new("llvm-readelf-22")
        .args(["-S", "--wide"])
        .arg(program)
        .output()
        .context("llvm-readelf-22")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find(|line| line.contains(" .text "))
        .context("no .text section")?;
    let mut words = line
        .split_whitespace()
        .skip_while(|word| *word != "PROGBITS")
        .skip(1);
    let mut number =
        || u64::from_str_radix(words.next().unwrap_or_default(), 16).context("a section header");
    let (address, _, size) = (number()?, number()?, number()?);
    let mut lines = String::new();
    for index in 0..count {
        let _ = writeln!(lines, "{:#x}", address + index * size / count);
    }
    Ok(lines)
}

fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--profile",
        "dist",
        "--package",
        "profkit-object",
        "--example",
        "llvm_symbolizer",
    ]);
    ensure!(command.status()?.success(), "{command:?} failed");
    Ok(profkit_testkit::target_folder().join("dist/examples/llvm_symbolizer"))
}
