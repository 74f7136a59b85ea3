//! `cargo xtask publish`: checks that all crates can be published, without publishing them.
use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use profkit_testkit::{repo_root, target_folder};
use serde_json::Value;

use super::succeed;

/// Packs all crates that are to be published, and compiles each from its package, in the order of their dependencies.
/// If a crate depends on another one that is not published yet, cargo takes the other one from its package (since Rust
/// 1.90). So each crate is compiled with the crates as they will be published.
pub fn publish(arguments: &[String]) -> Result<()> {
    let crates = published()?;
    let build = target_folder().join("dist/publish");
    let packages = build.join("package");
    if packages.exists() {
        fs::remove_dir_all(&packages)?;
    }
    let start = Instant::now();
    succeed(
        Command::new("cargo")
            .args(["publish", "--dry-run", "--workspace", "--locked"])
            .args(arguments)
            .env("CARGO_TARGET_DIR", &build)
            // Only errors matter, so the code is not optimised.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .current_dir(repo_root()),
    )?;
    for name in &crates {
        let version = env!("CARGO_PKG_VERSION");
        // This is the folder into which cargo unpacks the package to compile it. The place of the package file itself
        // depends on the version of cargo.
        let package = packages.join(format!("{name}-{version}"));
        for file in ["LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            ensure!(
                package.join(file).is_file(),
                "{}: no {file}",
                package.display()
            );
        }
    }
    println!(
        "── {} crates packed and compiled from their packages in {:.0} s: {}",
        crates.len(),
        start.elapsed().as_secs_f64(),
        crates.join(", ")
    );
    Ok(())
}

/// Returns the names of the crates that are to be published. Checks that each has the facts that crates.io demands or
/// shows.
fn published() -> Result<Vec<String>> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--no-deps"])
        .current_dir(repo_root())
        .output()?;
    ensure!(output.status.success(), "cargo metadata: {}", output.status);
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut crates = Vec::new();
    for package in packages {
        // `publish = false` appears as an empty list of registries.
        if !package["publish"].is_null() {
            continue;
        }
        let name = package["name"].as_str().context("a crate without a name")?;
        for key in ["description", "license", "repository"] {
            ensure!(package[key].is_string(), "{name}: no {key} in its manifest");
        }
        crates.push(name.to_owned());
    }
    Ok(crates)
}
