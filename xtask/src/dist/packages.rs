//! Makes archives, Debian packages and checksums, with tools that every Debian system has.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{GLIBC, fresh, succeed};

/// Packs a folder as `NAME.tar.gz`. It stores no times and no owners, and sorts the names, so that the same files give
/// the same bytes.
pub fn archive(tree: &Path, out: &Path) -> Result<PathBuf> {
    let name = tree.file_name().context("the folder's name")?;
    let mut file = name.to_owned();
    file.push(".tar.gz");
    let archive = out.join(file);
    succeed(
        Command::new("tar")
            .args([
                "--sort=name",
                "--mtime=@0",
                "--owner=0",
                "--group=0",
                "--numeric-owner",
            ])
            .args(["--use-compress-program=gzip -n -9", "--create", "--file"])
            .arg(&archive)
            .arg("--directory")
            .arg(tree.parent().context("the folder's parent")?)
            .arg(name),
    )?;
    Ok(archive)
}

/// Makes a Debian package with the files of the archive below `/usr`. `libraries` are those that the command is linked
/// with.
pub fn deb(
    tree: &Path,
    architecture: &str,
    libraries: &[String],
    scratch: &Path,
    out: &Path,
) -> Result<PathBuf> {
    let version = env!("CARGO_PKG_VERSION");
    let root = fresh(scratch.join("deb"))?;
    let usr = root.join("usr");
    fs::create_dir(&usr)?;
    for part in ["bin", "share"] {
        succeed(Command::new("cp").arg("-r").arg(tree.join(part)).arg(&usr))?;
    }
    for page in fs::read_dir(usr.join("share/man/man1"))? {
        succeed(Command::new("gzip").args(["-n", "-9"]).arg(page?.path()))?;
    }
    let doc = usr.join("share/doc/profkit");
    fs::create_dir_all(&doc)?;
    let licences = [tree.join("LICENSE-MIT"), tree.join("LICENSE-APACHE")].map(fs::read_to_string);
    let [mit, apache] = licences;
    fs::write(
        doc.join("copyright"),
        format!(
            "profkit is licensed under either of the following, at your option.\n\n{}\n\n{}",
            mit?, apache?
        ),
    )?;
    fs::copy(tree.join("CHANGELOG.md"), doc.join("changelog"))?;
    succeed(
        Command::new("gzip")
            .args(["-n", "-9"])
            .arg(doc.join("changelog")),
    )?;
    let size = installed_kib(&usr)?;
    let mut depends = format!("libc6 (>= {GLIBC})");
    if libraries.iter().any(|name| name.starts_with("libgcc_s")) {
        depends.push_str(", libgcc-s1 | libgcc1");
    }
    let control = root.join("DEBIAN");
    fs::create_dir(&control)?;
    // `dpkg --verify` compares the installed files with these checksums.
    let sums = Command::new("sh")
        .args([
            "-c",
            "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum",
        ])
        .current_dir(&root)
        .output()?;
    ensure!(sums.status.success(), "md5sum: {}", sums.status);
    fs::write(control.join("md5sums"), sums.stdout)?;
    fs::write(
        control.join("control"),
        format!(
            "Package: profkit\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: profkit <profkit@localhost>\n\
             Installed-Size: {size}\nDepends: {depends}\nSection: devel\nPriority: optional\n\
             Description: {}\n Reads what every LLVM release wrote, writes what any release accepts, keeps the good\n \
             data of damaged files, and stands in for llvm-profdata.\n",
            "merge, show, check and convert the profiles of LLVM-based compilers"
        ),
    )?;
    let package = out.join(format!("profkit_{version}_{architecture}.deb"));
    succeed(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(&root)
            .arg(&package)
            .env("SOURCE_DATE_EPOCH", "0"),
    )?;
    Ok(package)
}

fn installed_kib(folder: &Path) -> Result<u64> {
    let output = Command::new("du")
        .args(["-sk", "--apparent-size"])
        .arg(folder)
        .output()?;
    ensure!(output.status.success(), "du: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let size = text
        .split_whitespace()
        .next()
        .context("du prints no size")?;
    size.parse().context("the size that du prints")
}

/// Writes `SHA256SUMS`, and checks it with `sha256sum --check`.
pub fn checksums(out: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        names.push(entry?.file_name());
    }
    names.sort();
    let output = Command::new("sha256sum")
        .args(&names)
        .current_dir(out)
        .output()?;
    ensure!(output.status.success(), "sha256sum: {}", output.status);
    fs::write(out.join("SHA256SUMS"), output.stdout)?;
    succeed(
        Command::new("sha256sum")
            .args(["--check", "--quiet", "SHA256SUMS"])
            .current_dir(out),
    )
}
