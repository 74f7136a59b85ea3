//! `cargo xtask bench-memprof`: merges and symbolises raw heap profiles of a generated C++ program (4,000 functions,
//! 10,000 contexts per dump) by profkit and by llvm-profdata-22. The tools run alternately; time and memory are given
//! as ratios.
//!
//! LLVM 22 does not add up dumps. It symbolises every dump, but each of its threads keeps only the first dump that it
//! meets. With one thread, the result is that of the first dump; with two threads, each context occurs twice. So the
//! bytes are compared for one dump. For many dumps, the size of profkit's sum is compared with that of LLVM's single
//! dump, because all runs have the same contexts.
use super::LocationSizes;
use crate::steps::released_profkit;
use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::{HEAP_FLAGS, HEAP_LINK_FLAGS, Measured, heap_dump, measure, target_folder};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const HELP: &str = "\
cargo xtask bench-memprof [--dumps N] [--rounds N]

Times `profkit merge RAW… --binaries PROGRAM` beside llvm-profdata-22. Needs clang-22 and llvm-22.
  --dumps N       raw dumps to merge (default 500)
  --rounds N      rounds (default 1: LLVM takes minutes)
";

/// The number of functions per level.
const WIDTH: usize = 500;
/// The number of levels of calls.
const LEVELS: usize = 8;
/// The number of paths through the levels of functions in the generated program. Each path is an allocation context.
const CONTEXTS: usize = 10_000;
/// The smallest allowed value of the time of LLVM's tool divided by that of profkit.
const WANTED: f64 = 10.0;
/// The largest allowed value of the memory of profkit divided by that of LLVM's tool.
const MEMORY_WANTED: f64 = 0.5;

/// Makes the files below `target/bench-memprof` (kept), measures, and prints a table.
pub fn run(args: &[String]) -> Result<()> {
    let (mut dumps, mut rounds) = (500usize, 1usize);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().context("an option wants a value");
        match arg.as_str() {
            "--dumps" => dumps = value()?.parse().context("--dumps")?,
            "--rounds" => rounds = value()?.parse().context("--rounds")?,
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    ensure!(dumps > 0 && rounds > 0, "at least one dump and one round");
    let profkit = released_profkit()?;
    let folder = target_folder().join("bench-memprof");
    inputs(&folder, dumps)?;
    let names: Vec<String> = (0..dumps)
        .map(|run| format!("raw/{run}.memprofraw"))
        .collect();
    fs::write(folder.join("list"), names.join("\n"))?;
    let merge = |ours: bool, list: &[&str], output: &str, version: u32| {
        let mut command = Command::new(if ours {
            profkit.as_path()
        } else {
            Path::new("llvm-profdata-22")
        });
        command.arg("merge").args(list).args(["-o", output]);
        command.arg(format!("--memprof-version={version}"));
        if ours {
            command.args(["-q", "--llvm", "22", "--binaries", "program"]);
        } else {
            command.arg("--profiled-binary=program");
        }
        command.env("XDG_CACHE_HOME", &folder);
        timed(command.current_dir(&folder))
    };
    let read = |name: &str| fs::read(folder.join(name));
    let mut of_one_dump = Vec::new();
    for version in [4, 3] {
        let one = ["raw/0.memprofraw"];
        merge(true, &one, "ours", version)?;
        merge(false, &one, "one", version)?;
        of_one_dump = read("one")?;
        ensure!(
            read("ours")? == of_one_dump,
            "bytes of version {version} differ"
        );
        println!(
            "version {version} of one dump: {} bytes, equal",
            of_one_dump.len()
        );
    }
    let sizes = LocationSizes::of(
        &profkit,
        &folder.join("raw/0.memprofraw"),
        &folder.join("program"),
    )?;
    println!(
        "source locations of one dump:\n{}\n{}\n",
        LocationSizes::HEAD,
        sizes.row("bench-memprof")
    );
    // With one thread, LLVM's result of several dumps is that of the first dump. So its size is printed beside that of
    // profkit's sum.
    let few: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
    let one_thread: Vec<&str> = ["-j", "1"].into_iter().chain(few.clone()).collect();
    merge(false, &one_thread, "first", 3)?;
    ensure!(
        read("first")? == of_one_dump,
        "llvm-profdata-22 -j 1 no longer drops the dumps after the first: compare its sum"
    );
    let (mut of_llvm, mut of_us, mut peaks) = (Vec::new(), Vec::new(), (0, 0));
    for _ in 0..rounds {
        let list = ["--input-files=list"];
        let theirs = merge(false, &list, "theirs", 3)?;
        let ours = merge(true, &list, "ours", 3)?;
        of_llvm.push(theirs.wall.as_secs_f64());
        of_us.push(ours.wall.as_secs_f64());
        peaks = (peaks.0.max(theirs.peak_rss), peaks.1.max(ours.peak_rss));
    }
    let size = |name: &str| Ok::<_, std::io::Error>(fs::metadata(folder.join(name))?.len());
    let (of_llvm, of_us) = (median(of_llvm), median(of_us));
    let ratio = of_llvm / of_us;
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let memory = peaks.1 as f64 / peaks.0 as f64;
    println!(
        "| dumps | llvm-profdata-22, s | profkit, s | ratio | wanted | MiB | of LLVM's | wanted | bytes | LLVM's of one dump |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    println!(
        "| {dumps} | {of_llvm:.1} | {of_us:.2} | {ratio:.1} | {WANTED:.0} | {} and {} | {memory:.2} | {MEMORY_WANTED} | {} and {} | {} |",
        peaks.0 >> 20,
        peaks.1 >> 20,
        size("theirs")?,
        size("ours")?,
        of_one_dump.len()
    );
    ensure!(
        size("ours")? == of_one_dump.len() as u64,
        "our sum has another size than one dump"
    );
    ensure!(ratio >= WANTED, "slower than promised");
    ensure!(memory <= MEMORY_WANTED, "more memory than promised");
    Ok(())
}

fn timed(command: &mut Command) -> Result<Measured> {
    let measured = measure(command)?;
    ensure!(
        measured.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&measured.stderr)
    );
    Ok(measured)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Makes the file `program` and the folder `raw` with its dumps.
fn inputs(folder: &Path, dumps: usize) -> Result<()> {
    let program = folder.join("program");
    let raw = folder.join("raw");
    if !program.is_file() {
        fs::create_dir_all(&raw)?;
        fs::write(folder.join("program.cpp"), text())?;
        let mut clang = Command::new("clang++-22");
        clang.args(HEAP_FLAGS).args(HEAP_LINK_FLAGS);
        clang.args(["program.cpp", "-o", "program"]);
        timed(clang.current_dir(folder))?;
    }
    for run in 0..dumps {
        let name = run.to_string();
        if !raw.join(format!("{name}.memprofraw")).is_file() {
            heap_dump(Command::new(&program).arg(&name), &raw, &name)?;
        }
    }
    Ok(())
}

/// The source of the program. It has levels of functions. The argument decides which of three functions of the next
/// level a function calls. The last level allocates memory through an inlined function.
fn text() -> String {
    let mut text = String::from(
        "#include <cstdlib>\n#include <cstring>\nstatic unsigned extra;\nstatic void *all[20000];\nstatic unsigned count;\n\
         static inline __attribute__((always_inline)) char *take(unsigned size) {\n  char *bytes = new char[size + extra];\n  std::memset(bytes, 1, size);\n  return bytes;\n}\n",
    );
    for level in (0..LEVELS).rev() {
        for function in 0..WIDTH {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "__attribute__((noinline)) static void f_{level}_{function}(unsigned path) {{"
            );
            if level == LEVELS - 1 {
                let _ = writeln!(
                    text,
                    "  all[count++] = take({} + path % 3);\n}}",
                    function % 97 + 8
                );
                continue;
            }
            text.push_str("  switch (path % 3) {\n");
            for choice in 0..3 {
                let next = (function * 7 + choice * 131 + level) % WIDTH;
                let label = match choice {
                    2 => "default".to_owned(),
                    choice => format!("case {choice}"),
                };
                let _ = writeln!(text, "  {label}: f_{}_{next}(path / 3); break;", level + 1);
            }
            text.push_str("  }\n}\n");
        }
    }
    let _ = write!(
        text,
        "static void (*const first[])(unsigned) = {{{}}};\nint main(int argc, char **argv) {{\n  extra = argc > 1 ? std::atoi(argv[1]) % 16 : 0;\n  for (unsigned run = 0; run < {CONTEXTS}; ++run)\n    first[run % {WIDTH}](run * 2654435761u >> 7);\n  for (unsigned at = 0; at < count; ++at)\n    delete[] static_cast<char *>(all[at]);\n  return 0;\n}}\n",
        (0..WIDTH)
            .map(|function| format!("f_0_{function}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    text
}
