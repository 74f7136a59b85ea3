//! `cargo xtask bench-correlate`: merges 500 raw profiles without metadata, which come from 20 programs, with a folder
//! of 200 binaries. One profkit command is compared with a loop over `llvm-profdata-22` that does the same. The two run
//! alternately, and their times are given as a ratio. The merged profiles are compared byte for byte.
use crate::steps::released_profkit;
use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::{Measured, measure, target_folder};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const HELP: &str = "\
cargo xtask bench-correlate [--rounds N]

Times `profkit merge RAW… --binaries FOLDER` beside a loop over llvm-profdata-22. Needs clang-22 and llvm-22.
  --rounds N      rounds (default 3)
";

const PROGRAMS: usize = 20;
/// The number of builds per program in the folder. Only one of the builds wrote the profiles.
const BUILDS: usize = 10;
/// The number of runs of each program.
const RUNS: usize = 25;
const FUNCTIONS: usize = 400;
/// The target: how many times faster profkit must be.
const WANTED: f64 = 10.0;

/// The steps that LLVM's tools need: read the build id of each binary and of each profile, merge per program, and merge
/// the results.
const LOOP: &str = r#"set -e
rm -rf work; mkdir work
llvm-readelf-22 -n bin/* 2>/dev/null | awk '/^File:/{file=$2} /Build ID/{print $3, file}' > work/ids
for raw in raw/*; do
  id=$(llvm-profdata-22 show --binary-ids "$raw" | tail -1)
  echo "$raw" >> "work/group-$id"
done
for group in work/group-*; do
  id=${group#work/group-}
  binary=$(awk -v id="$id" '$1==id{print $2}' work/ids)
  llvm-profdata-22 merge "$OPTION=$binary" -f "$group" -o "work/$id.profdata"
done
llvm-profdata-22 merge work/*.profdata -o llvm.profdata
"#;

/// Makes the files below `target/bench-correlate` (kept), measures, and prints a table.
pub fn run(args: &[String]) -> Result<()> {
    let mut rounds = 3;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => {
                let value = args.next().context("--rounds wants a value")?;
                rounds = value.parse().context("--rounds")?;
            }
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    ensure!(rounds > 0, "--rounds must be at least 1");
    let profkit = released_profkit()?;
    println!(
        "{} raw profiles of {PROGRAMS} programs, {} binaries",
        PROGRAMS * RUNS,
        PROGRAMS * BUILDS
    );
    println!(
        "| metadata | loop, ms | profkit, ms | profkit with an index, ms | peak MiB | ratio | wanted |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for (kind, option) in [("binary", "--binary-file"), ("debug-info", "--debug-info")] {
        let folder = target_folder().join("bench-correlate").join(kind);
        inputs(&folder, kind)?;
        let (mut of_llvm, mut cold, mut warm, mut peak) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for _ in 0..rounds {
            let mut command = Command::new("sh");
            command.args(["-c", LOOP]).env("OPTION", option);
            of_llvm.push(milliseconds(&timed(command.current_dir(&folder))?));
            let index = folder.join("cache");
            if index.exists() {
                fs::remove_dir_all(&index)?;
            }
            for times in [&mut cold, &mut warm] {
                let mut command = Command::new(&profkit);
                command.args(["merge", "-q", "--llvm", "22", "raw"]);
                command.args(["--binaries", "bin", "-o", "profkit.profdata"]);
                command.env("XDG_CACHE_HOME", &index);
                let measured = timed(command.current_dir(&folder))?;
                times.push(milliseconds(&measured));
                peak = peak.max(measured.peak_rss);
            }
            let ours = fs::read(folder.join("profkit.profdata"))?;
            ensure!(
                ours == fs::read(folder.join("llvm.profdata"))?,
                "{kind}: the merged profiles differ"
            );
        }
        let (of_llvm, cold, warm) = (median(of_llvm), median(cold), median(warm));
        let ratio = of_llvm / cold;
        println!(
            "| {kind} | {of_llvm:.0} | {cold:.0} | {warm:.0} | {} | {ratio:.1} | {WANTED:.0} |",
            peak >> 20
        );
        if ratio < WANTED {
            missed.push(kind);
        }
    }
    println!("outputs are equal; medians of {rounds} rounds");
    ensure!(missed.is_empty(), "slower than promised: {missed:?}");
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

fn milliseconds(measured: &Measured) -> f64 {
    measured.wall.as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Makes the folders `bin` and `raw` with the binaries and the raw profiles.
fn inputs(folder: &Path, kind: &str) -> Result<()> {
    let done = folder.join("done");
    if done.is_file() {
        return Ok(());
    }
    for name in ["bin", "raw", "make"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let make = folder.join("make");
    for program in 0..PROGRAMS {
        let source = make.join(format!("{program}.c"));
        fs::write(&source, text(program))?;
        let object = make.join(format!("{program}.o"));
        let mut clang = Command::new("clang-22");
        clang.args(["-O1", "-g", "-fprofile-generate", "-mllvm"]);
        clang.arg(format!("-profile-correlate={kind}"));
        clang.args(["-mllvm", "-disable-vp=true", "-c"]);
        timed(clang.arg(&source).arg("-o").arg(&object))?;
        for build in 0..BUILDS {
            let stamp = make.join("stamp.c");
            fs::write(&stamp, format!("int stamp = {build};\n"))?;
            let binary = folder.join(format!("bin/program-{program}-{build}"));
            let mut clang = Command::new("clang-22");
            clang.args(["-fprofile-generate", "-Wl,--build-id=sha1"]);
            timed(clang.arg(&object).arg(&stamp).arg("-o").arg(binary))?;
        }
        for run in 0..RUNS {
            let raw = folder.join(format!("raw/{program}-{run}.profraw"));
            let mut command = Command::new(folder.join(format!("bin/program-{program}-0")));
            timed(command.arg(run.to_string()).env("LLVM_PROFILE_FILE", raw))?;
        }
    }
    fs::write(done, "")?;
    Ok(())
}

/// The source of a program whose functions run as often as the program's argument says.
fn text(program: usize) -> String {
    let mut text = String::from("#include <stdlib.h>\n");
    // Writing to a string does not fail.
    for function in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "__attribute__((noinline)) int f_{program}_{function}(int x) {{ int s = 0; for (int i = 0; i < x % {}; i++) s += i & 1 ? x : {function}; return x > {function} ? s : -s; }}",
            function % 7 + 2
        );
    }
    text.push_str(
        "int main(int argc, char **argv) { int x = argc > 1 ? atoi(argv[1]) : 0, s = 0;\n",
    );
    for function in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "if (x % {} == 0) s += f_{program}_{function}(x + {function});",
            function % 5 + 1
        );
    }
    text.push_str("return s == 12345; }\n");
    text
}
