//! Fetches source packages from Debian. From that of LLVM 19, only the folders with tests are unpacked.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use profkit_testkit::target_folder;

use crate::mip::succeed;

const PACKAGE: &str = "llvm-toolchain-19";

/// The sources list for apt. The machine's own list is not used, because it may have no source packages.
const LISTS: &str = "\
deb-src http://deb.debian.org/debian bookworm main
deb-src http://deb.debian.org/debian bookworm-updates main
deb-src http://deb.debian.org/debian-security bookworm-security main
";

const FOLDERS: [&str; 3] = [
    "llvm/test/tools/llvm-profdata",
    "llvm/test/tools/llvm-profgen",
    "compiler-rt/test/profile",
];

/// The folder below which LLVM's own tests are unpacked and run.
pub fn folder() -> PathBuf {
    target_folder().join("llvm-suite")
}

/// Fetches and unpacks the tests below [`folder`], unless an earlier call did. Returns the root of the sources.
pub fn fetched() -> Result<PathBuf> {
    let folder = folder();
    let root = folder.join("source");
    if FOLDERS.iter().all(|part| root.join(part).is_dir()) {
        return Ok(root);
    }
    let fetch = folder.join("fetch");
    if fetch.exists() {
        fs::remove_dir_all(&fetch)?;
    }
    download(PACKAGE, &fetch)?;
    let archive = fs::read_dir(&fetch)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with(".orig.tar.xz"))
        .with_context(|| format!("apt fetched no .orig.tar.xz of {PACKAGE}"))?;
    let unpacked = fetch.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    let mut tar = Command::new("tar");
    tar.arg("-xJf").arg(&archive).arg("-C").arg(&unpacked);
    tar.args(["--strip-components=1", "--wildcards"])
        .args(FOLDERS.map(|part| format!("*/{part}/*")));
    succeed(&mut tar)?;
    if root.exists() {
        // This folder is from an older version of this task, which unpacked fewer parts of the package.
        fs::remove_dir_all(&root)?;
    }
    // The folder gets its name last, so that a folder with this name is always complete.
    fs::rename(&unpacked, &root)?;
    fs::remove_dir_all(&fetch)?;
    Ok(root)
}

/// Downloads the files of a source package into a folder.
pub fn download(package: &str, folder: &Path) -> Result<()> {
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(part))?;
    }
    fs::write(folder.join("sources.list"), LISTS)?;
    apt(folder, &["update"])?;
    apt(folder, &["source", "--download-only", package])?;
    for part in ["lists", "cache"] {
        fs::remove_dir_all(folder.join(part))?;
    }
    Ok(())
}

/// Runs apt-get with its own lists and cache, so that those of the machine do not change.
fn apt(fetch: &Path, arguments: &[&str]) -> Result<()> {
    let option = |name: &str, path: &Path| format!("{name}={}", path.display());
    let mut command = Command::new("apt-get");
    command
        .current_dir(fetch)
        .arg("-qq")
        .args([
            "-o",
            &option("Dir::Etc::sourcelist", &fetch.join("sources.list")),
        ])
        .args(["-o", "Dir::Etc::sourceparts=-"])
        .args(["-o", &option("Dir::State::lists", &fetch.join("lists"))])
        .args(["-o", &option("Dir::Cache", &fetch.join("cache"))])
        .args(["-o", "APT::Sandbox::User=root"])
        .args(arguments);
    succeed(&mut command).map(drop)
}
