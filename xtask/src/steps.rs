//! Tasks that run other commands in sequence.
use crate::mip::succeed;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use profkit_testkit::{SLOW_VARIABLE, repo_root, target_folder};

/// Runs `.ci/run` without installing anything.
pub fn ci() -> Result<()> {
    let status = Command::new("bash")
        .args([".ci/run", "--installed"])
        .current_dir(repo_root())
        .status()
        .context("bash")?;
    ensure!(status.success(), ".ci/run: {status}");
    Ok(())
}

/// Runs all tests. Exhaustive tests run completely; `cargo test --workspace` runs only a sample of their cases.
pub fn slow(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let what: &[&str] = if words.is_empty() {
        &["--workspace"]
    } else {
        &words
    };
    cargo(&[&["test"], what].concat(), &[(SLOW_VARIABLE, "1")])
}

/// Runs the checks that are useful while working. They take two minutes after a build.
pub fn quick() -> Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["check", "--workspace", "--all-targets"], &[])?;
    cargo(&["test", "--workspace", "--lib"], &[])?;
    cargo(
        &["test", "-p", "profkit-cli", "--test", "all", "cli::"],
        &[],
    )
}

/// Builds the documentation of all crates, and checks the links of the crate `profkit`. Warnings are errors.
pub fn doc() -> Result<()> {
    let deny = [("RUSTDOCFLAGS", "-D warnings")];
    let docs = target_folder().join("doc");
    // rustdoc does not remove the pages of items that no longer exist, and the links of these pages would be checked
    // too.
    crate::links::remove_pages(&docs)?;
    cargo(&["doc", "--workspace", "--no-deps"], &deny)?;
    crate::links::check(&docs)
}

/// The target for which tests with sanitizers are built. Because the target is given, build scripts and macros are
/// built without sanitizers.
const SANITIZED_TARGET: &str = "x86_64-unknown-linux-gnu";
/// Packages with `unsafe` code or with the threads of a merge, and the arguments of `cargo test` for each.
const SANITIZED: &[(&str, &[&str])] = &[
    ("profkit-rt", &["--lib"]),
    ("profkit-merge", &["--lib"]),
    ("profkit-merge", &["--test", "all", "schedules::"]),
];

/// Runs the tests of unsafe code and of merging on several threads under the sanitizer `address` or `thread`.
///
/// Both sanitizers are part of every toolchain, but their options are not stable. The standard library is compiled with
/// them too, which needs the component rust-src. If a library was compiled without the thread sanitizer, the sanitizer
/// does not see the library's locks, and would report all accesses that these locks protect.
pub fn sanitize(sanitizer: &str) -> Result<()> {
    let libraries = sysroot()?.join("lib/rustlib/src/rust/library/std");
    if !libraries.is_dir() {
        eprintln!(
            "skipped: the standard library's source is not installed (rustup component add rust-src)"
        );
        return Ok(());
    }
    let flags = format!("-Zsanitizer={sanitizer}");
    let folder = target_folder().join(format!("{sanitizer}-sanitizer"));
    let folder = folder.to_string_lossy().into_owned();
    let environment = [
        ("RUSTC_BOOTSTRAP", "1"),
        ("RUSTFLAGS", &*flags),
        ("CARGO_TARGET_DIR", &folder),
    ];
    for (package, tests) in SANITIZED {
        let start = ["test", "-Zbuild-std", "--target", SANITIZED_TARGET];
        cargo(
            &[&start, &["-p", package][..], tests].concat(),
            &environment,
        )?;
    }
    Ok(())
}

/// Systems on which no test runs, each with the crates that must compile for it.
const TARGETS: &[(&str, &[&str])] = &[
    ("wasm32-unknown-unknown", PORTABLE),
    ("x86_64-pc-windows-gnu", &["profkit-cli"]),
    ("aarch64-apple-darwin", &["profkit-cli"]),
];
/// The libraries that need no files or processes of a system. Windows and macOS have the command too, there without `profkit pgo`
/// and what builds programs with MIP.
const PORTABLE: &[&str] = &[
    "profkit-abi",
    "profkit-data",
    "profkit-object",
    "profkit-files",
    "profkit-merge",
    "profkit-analysis",
    "profkit-perf",
    "profkit-profgen",
    "profkit-report",
    "profkit-page",
    "profkit-llvm",
    "profkit-mip",
];

/// Checks that the portable libraries compile for other systems.
pub fn targets() -> Result<()> {
    for (target, packages) in TARGETS {
        if !has_target(target)? {
            eprintln!(
                "skipped: there is no standard library for {target} (rustup target add {target})"
            );
            continue;
        }
        let mut arguments = vec!["check", "--target", target];
        for package in *packages {
            arguments.extend(["-p", package]);
        }
        cargo(&arguments, &[])?;
    }
    Ok(())
}

/// Whether the standard library of a system is installed.
pub fn has_target(target: &str) -> Result<bool> {
    let folder = sysroot()?.join("lib/rustlib").join(target).join("lib");
    Ok(folder.is_dir())
}

/// Where the toolchain is.
fn sysroot() -> Result<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let path = succeed(
        Command::new(rustc)
            .args(["--print", "sysroot"])
            .current_dir(repo_root()),
    )?;
    Ok(PathBuf::from(path.trim_end()))
}

/// Rewrites the expected outputs in `tests/cli`.
pub fn bless() -> Result<()> {
    cargo(
        &["test", "-p", "profkit-cli", "--test", "all", "cli::"],
        &[("BLESS", "1")],
    )
}

/// Runs every fuzz target on its corpus and on mutations of the corpus.
pub fn fuzz_smoke(mutations: &str, seed: &str) -> Result<()> {
    cargo(SMOKE, &[("FUZZ_MUTATIONS", mutations), ("FUZZ_SEED", seed)])
}

pub fn fuzz_smoke_part(part: usize, parts: usize) -> Result<()> {
    let chosen = format!("{part}/{parts}");
    cargo(
        SMOKE,
        &[("FUZZ_MUTATIONS", "100000"), ("FUZZ_PART", &chosen)],
    )
}

/// The fuzz targets as a test, optimised because they run for minutes.
const SMOKE: &[&str] = &[
    "test",
    "--profile",
    "checked",
    "-p",
    "profkit-fuzz",
    "--test",
    "smoke",
];

/// Builds the command as tests are built, and returns its path. The variable `PROFKIT` can name another program: one that
/// is built already, a release build, or LLVM's own tool to test the comparison itself.
pub fn built_profkit() -> Result<PathBuf> {
    if let Some(other) = std::env::var_os("PROFKIT") {
        return Ok(std::path::absolute(other)?);
    }
    cargo(&["build", "-q", "-p", "profkit-cli"], &[])?;
    Ok(target_folder().join("debug/profkit"))
}

/// Builds the command as it is released, and returns its path: what benchmarks measure.
pub fn released_profkit() -> Result<PathBuf> {
    cargo(&["build", "--profile", "dist", "-p", "profkit-cli"], &[])?;
    Ok(target_folder().join("dist/profkit"))
}

/// Runs cargo in the root of the repository. Prints the command before it runs, and its duration afterwards.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    eprintln!("── cargo {}", arguments.join(" "));
    let start = Instant::now();
    let status = Command::new("cargo")
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(repo_root())
        .status()
        .context("cargo")?;
    ensure!(status.success(), "cargo {}: {status}", arguments.join(" "));
    eprintln!("── done in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
