//! Checks that `cargo binstall` finds the archive of a release. The templates for it are in the manifest of the
//! command's crate.
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use profkit_testkit::repo_root;
use serde_json::Value;

/// Fills in the templates for a system as cargo-binstall does. The file name must be that of this archive, and the
/// command must be at the stated place in the archive. Whether the server has the file can only be seen after a
/// release.
pub fn check(target: &str, archive: &Path) -> Result<()> {
    let package = package()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let version = text(&package["version"]).context("no version")?;
    let repository = text(&package["repository"]).context("no repository")?;
    let binstall = &package["metadata"]["binstall"];
    ensure!(
        binstall["pkg-fmt"] == "tgz",
        "pkg-fmt is not that of the archives"
    );
    let filled = |key: &str| -> Result<String> {
        let template = text(&binstall[key]).with_context(|| format!("no {key}"))?;
        let mut filled = template.replace(' ', "");
        for (name, value) in [
            ("{repo}", repository.as_str()),
            ("{version}", &version),
            ("{target}", target),
            ("{archive-suffix}", ".tar.gz"),
            ("{bin}", "profkit"),
            ("{binary-ext}", ""),
        ] {
            filled = filled.replace(name, value);
        }
        ensure!(
            !filled.contains(['{', '}']),
            "{key}: an unknown part is left in {filled}"
        );
        Ok(filled)
    };
    let url = filled("pkg-url")?;
    let name = archive.file_name().context("the archive's name")?;
    ensure!(
        url.starts_with("https://") && url.rsplit('/').next() == name.to_str(),
        "cargo binstall would ask for {url}, and the archive is {}",
        name.display()
    );
    let program = filled("bin-dir")?;
    let listed = Command::new("tar")
        .args(["--list", "--file"])
        .arg(archive)
        .output()?;
    let members = String::from_utf8_lossy(&listed.stdout).into_owned();
    ensure!(
        members.lines().any(|member| member == program),
        "cargo binstall would look for {program} in {}",
        archive.display()
    );
    println!("── cargo binstall would take {program} from {url}");
    Ok(())
}

/// Returns cargo's metadata of the command's package.
fn package() -> Result<Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(repo_root())
        .output()?;
    ensure!(output.status.success(), "cargo metadata: {}", output.status);
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let package = packages
        .iter()
        .find(|package| package["name"] == "profkit-cli");
    package.cloned().context("no package profkit-cli")
}
