//! `cargo xtask wheel`: builds the Python wheel, installs it in a new virtual environment, and tests it there.
//!
//! The tools come from PyPI in fixed versions. All files are below the folder `wheel` of the target folder.
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use profkit_testkit::{repo_root, target_folder};

use crate::dist::{environment, succeed};

/// What builds the wheel.
pub const MATURIN: &str = "maturin==1.16.0";
/// What tests it. pyarrow is for the tables alone: the package works without it.
const TESTERS: &[&str] = &["pytest==9.2.0", "mypy==2.4.1", "pyarrow==26.0.1"];

/// What tests it on Spark. Spark warns of pandas 3.
const SPARK_TESTERS: &[&str] = &[
    "pytest==9.2.0",
    "pyspark==4.3.0",
    "pandas==2.3.3",
    "pyarrow==26.0.1",
];

/// Builds the wheel and tests it, with `spark` also on Spark. With `build_only`, its path is all that is wanted.
pub fn run(build_only: bool, spark: bool) -> Result<()> {
    let root = target_folder().join("wheel");
    let tools = environment(&root.join("tools"), &[MATURIN])?;
    let out = root.join("files");
    let mut build = Command::new(tools.join("maturin"));
    build.args(["build", "--profile=dev", "--locked"]);
    let wheel = built(&mut build, &out)?;
    println!("── {}", wheel.display());
    if build_only {
        return Ok(());
    }
    let bin = environment(&root.join("tested"), TESTERS)?;
    install(&bin, &wheel)?;
    // The stubs say what the module has, and its annotations fit them.
    succeed(Command::new(bin.join("stubtest")).arg("profkit._native"))?;
    let package = bin.join("python");
    let sources = repo_root().join("crates/profkit-py/python/profkit");
    succeed(
        Command::new(&package)
            .args(["-m", "mypy", "--config-file"])
            .arg(repo_root().join("crates/profkit-py/pyproject.toml"))
            .arg("--cache-dir")
            .arg(root.join("mypy"))
            .arg(&sources),
    )?;
    tests(&bin, &["test_profkit.py", "test_kinds.py"])?;
    if spark {
        let bin = environment(&root.join("spark"), SPARK_TESTERS)?;
        install(&bin, &wheel)?;
        tests(&bin, &["test_spark.py"])?;
    }
    Ok(())
}

/// Runs files of tests in the environment whose programs are in `bin`.
fn tests(bin: &Path, files: &[&str]) -> Result<()> {
    let folder = repo_root().join("crates/profkit-py/tests");
    succeed(
        Command::new(bin.join("python"))
            .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"])
            .args(files.iter().map(|file| folder.join(file)))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("RUST_BACKTRACE", "0"),
    )
}

/// Runs maturin, and returns the wheel that it made in the folder `out`.
pub fn built(maturin: &mut Command, out: &Path) -> Result<PathBuf> {
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    succeed(
        maturin
            .arg("--manifest-path")
            .arg(repo_root().join("crates/profkit-py/Cargo.toml"))
            .arg("--out")
            .arg(out),
    )?;
    for entry in fs::read_dir(out)? {
        let made = entry?.path();
        if made.extension() == Some(OsStr::new("whl")) {
            return Ok(made);
        }
    }
    bail!("maturin made no wheel in {}", out.display())
}

/// Installs a wheel without a network, in place of an older one.
fn install(bin: &Path, wheel: &Path) -> Result<()> {
    succeed(
        Command::new(bin.join("pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(["--no-index", "--no-deps", "--force-reinstall"])
            .arg(wheel),
    )
    .context("pip")
}
