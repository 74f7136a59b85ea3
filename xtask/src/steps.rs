//! Tasks that are lists of other commands.
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use profkit_testkit::repo_root;

/// Format, lints, tests, conformance, fuzz smoke: what a change must pass.
pub fn ci(_arguments: &[String]) -> Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    )?;
    for features in [
        &["--features", "https,flamegraph"][..],
        &["--no-default-features"],
    ] {
        let clippy = [
            &["clippy", "-p", "profkit-cli"],
            features,
            &["--", "-D", "warnings"],
        ];
        cargo(&clippy.concat(), &[])?;
    }
    cargo(&["test", "--workspace"], &[])?;
    let flame_graphs = ["--features", "flamegraph", "--test", "flamegraph"];
    cargo(
        &[&["test", "-p", "profkit-cli"][..], &flame_graphs].concat(),
        &[],
    )?;
    cargo(&["xtask", "conformance"], &[])?;
    cargo(&["xtask", "fuzz-smoke"], &[])
}

/// Rewrites what `tests/cli` expects.
pub fn bless(_arguments: &[String]) -> Result<()> {
    cargo(
        &["test", "--package", "profkit-cli", "--test", "cli"],
        &[("BLESS", "1")],
    )
}

/// Runs every fuzz target over its corpus and, by default, 100,000 mutations of it.
pub fn fuzz_smoke(arguments: &[String]) -> Result<()> {
    let argument = |index, default| arguments.get(index).map_or(default, String::as_str);
    let environment = [
        ("FUZZ_MUTATIONS", argument(0, "100000")),
        ("FUZZ_SEED", argument(1, "1")),
    ];
    cargo(
        &["test", "--package", "profkit-fuzz", "--test", "smoke"],
        &environment,
    )
}

/// Builds the command, without optimising it further than tests are, and returns its path. `PROFKIT` names another
/// program to use instead: a release build, or LLVM's own tool to test the comparison itself.
pub fn built_profkit() -> Result<PathBuf> {
    if let Some(other) = std::env::var_os("PROFKIT") {
        return Ok(other.into());
    }
    cargo(&["build", "--package", "profkit-cli"], &[])?;
    Ok(target_folder().join("debug/profkit"))
}

/// Where cargo builds.
pub fn target_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| repo_root().join("target"), PathBuf::from)
}

/// Runs cargo at the root, with a line before that says what and one after that says how long.
fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
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
