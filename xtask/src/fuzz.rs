//! Coverage-guided fuzzing with the stable toolchain. The fuzz targets are instrumented by LLVM's own pass and run
//! under libFuzzer.
//!
//! `cargo fuzz` needs a nightly compiler because of the address sanitizer. The pass that counts edges is part of every
//! compiler.
use crate::mip::succeed;
use anyhow::{Context, Result, ensure};
use profkit_testkit::{corpus, fixture_path, fixtures_with, repo_root, target_folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of LLVM's coverage pass. They add a counter per edge and a table of the edges' addresses. They also report
/// the operands of comparisons, which help libFuzzer to find magic numbers and lengths.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Copt-level=2 \
    -Cdebug-assertions=yes -Coverflow-checks=yes";
/// The size in bytes above which inputs are not tried. Larger inputs take time, and rarely show more than small ones.
const MOST_BYTES: u32 = 64 << 10;
/// The largest size in bytes of an input that is kept in the repository.
const MOST_KEPT: u32 = 1 << 10;

struct Target {
    name: String,
    seeds: Vec<String>,
}

/// Fuzzes each target for the given number of seconds. It starts from the inputs in the repository, and from those that
/// earlier runs found.
pub fn run(seconds: u32, names: &[String]) -> Result<()> {
    let program = build()?;
    let mut failed = Vec::new();
    for target in targets(names)? {
        let artifacts = found(&target.name, "artifacts")?;
        let mut command = fuzzer(&program, &target);
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(found(&target.name, "corpus")?)
            .args(kept(&target.name)?)
            .arg(seeds(&target)?);
        println!("── {}", target.name);
        if !command.status().context("the fuzzer")?.success() {
            failed.push(format!("{} (see {})", target.name, artifacts.display()));
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Writes a small set of inputs to the repository, one file per target. The set reaches all the code that all known
/// inputs reach.
pub fn minimize(arguments: &[String]) -> Result<()> {
    let program = build()?;
    for target in targets(arguments)? {
        let chosen = found(&target.name, "chosen")?;
        fs::remove_dir_all(&chosen)?;
        fs::create_dir(&chosen)?;
        let mut command = fuzzer(&program, &target);
        command
            .args(["-set_cover_merge=1", &format!("-max_len={MOST_KEPT}")])
            .arg(&chosen)
            .arg(found(&target.name, "corpus")?)
            .args(kept(&target.name)?)
            .arg(seeds(&target)?);
        let status = command.status().context("the fuzzer")?;
        ensure!(status.success(), "{}: {status}", target.name);
        let inputs = fs::read_dir(&chosen)?.map(|entry| Ok(fs::read(entry?.path())?));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let count = inputs.len();
        let packed = corpus::pack(inputs);
        println!("── {}: {count} inputs, {} bytes", target.name, packed.len());
        let file = corpus_file(&target.name);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, packed)?;
    }
    Ok(())
}

fn fuzzer(program: &Path, target: &Target) -> Command {
    let mut command = Command::new(program);
    command
        .env("PROFKIT_FUZZ_TARGET", &target.name)
        .arg(format!("-max_len={MOST_BYTES}"))
        .args([
            "-timeout=30",
            "-rss_limit_mb=4096",
            "-print_final_stats=1",
            "-verbosity=0",
        ]);
    command
}

fn build() -> Result<PathBuf> {
    // Because the target triple is given, cargo builds build scripts and macros without the instrumentation.
    let host = host()?;
    let folder = target_folder().join("fuzz");
    let status = Command::new("cargo")
        .current_dir(repo_root())
        .args([
            "build",
            "--profile",
            "checked",
            "--package",
            "profkit-fuzz",
            "--bin",
            "coverage",
        ])
        .args(["--features", "libfuzzer", "--target", &host])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", INSTRUMENTATION)
        .status()
        .context("cargo")?;
    ensure!(status.success(), "the fuzzer cannot be built: {status}");
    Ok(folder.join(host).join("checked/coverage"))
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc -vV states no host")?.to_owned())
}

/// Returns the targets with these names, or all targets if no name is given.
fn targets(names: &[String]) -> Result<Vec<Target>> {
    let text = succeed(Command::new("cargo").current_dir(repo_root()).args([
        "run",
        "--quiet",
        "--package",
        "profkit-fuzz",
        "--bin",
        "targets",
    ]))?;
    let all: Vec<Target> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            let name = words.next()?;
            Some(Target {
                name,
                seeds: words.collect(),
            })
        })
        .collect();
    for name in names {
        ensure!(
            all.iter().any(|target| target.name == *name),
            "no target {name}"
        );
    }
    let wanted = |target: &Target| names.is_empty() || names.contains(&target.name);
    Ok(all.into_iter().filter(wanted).collect())
}

/// Returns the folder for the inputs of a target that fuzzing on this machine finds. `what` is `corpus` for inputs that
/// reach new code, or `artifacts` for inputs that fail.
fn found(target: &str, what: &str) -> Result<PathBuf> {
    let folder = target_folder().join("fuzz").join(what).join(target);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The file in the repository that contains the inputs of a target.
fn corpus_file(target: &str) -> PathBuf {
    repo_root().join(format!("fuzz/corpus/{target}.pack"))
}

/// Returns folders with the inputs that the repository has for a target. The inputs in its corpus file are unpacked
/// into a folder.
fn kept(target: &str) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    let regressions = repo_root().join("fuzz/regressions").join(target);
    if regressions.is_dir() {
        folders.push(regressions);
    }
    let file = corpus_file(target);
    if file.is_file() {
        let folder = found(target, "unpacked")?;
        for (number, input) in corpus::unpack(&fs::read(file)?)?.iter().enumerate() {
            fs::write(folder.join(number.to_string()), input)?;
        }
        folders.push(folder);
    }
    Ok(folders)
}

/// Copies the fixtures from which a target starts into a separate folder.
fn seeds(target: &Target) -> Result<PathBuf> {
    let folder = found(&target.name, "seeds")?;
    let extensions: Vec<&str> = target.seeds.iter().map(String::as_str).collect();
    for fixture in fixtures_with(&extensions) {
        fs::copy(
            fixture_path(&fixture),
            folder.join(fixture.to_string_lossy().replace('/', "-")),
        )?;
    }
    Ok(folder)
}
