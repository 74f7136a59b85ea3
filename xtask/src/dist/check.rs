//! Installs the files of a release in clean places and tries the command there.
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use profkit_testkit::fixture_path;

use super::{fresh, succeed};

/// The archive, unpacked into an empty folder.
pub fn archive(archive: &Path, scratch: &Path) -> Result<()> {
    let folder = fresh(scratch.join("unpacked"))?;
    succeed(
        Command::new("tar")
            .args(["--strip-components=1", "--extract", "--file"])
            .arg(archive)
            .arg("--directory")
            .arg(&folder),
    )?;
    for file in [
        "share/man/man1/profkit-merge.1",
        "share/bash-completion/completions/profkit",
        "LICENSE-MIT",
    ] {
        ensure!(
            folder.join(file).is_file(),
            "{}: no {file}",
            archive.display()
        );
    }
    works(&folder.join("bin/profkit"), archive, scratch)
}

/// The Debian package, installed by dpkg into an empty root with a database of its own.
pub fn deb(package: &Path, scratch: &Path) -> Result<()> {
    let root = fresh(scratch.join("root"))?;
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(database.join(folder))?;
    }
    std::fs::write(database.join("status"), "")?;
    let mut option = std::ffi::OsString::from("--root=");
    option.push(&root);
    // The root has no libc6 to depend on; the machine has it.
    succeed(
        Command::new("dpkg")
            .arg(option)
            .args([
                "--force-depends",
                "--force-not-root",
                "--force-script-chrootless",
                "--log=/dev/null",
                "--install",
            ])
            .arg(package)
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ),
    )?;
    works(&root.join("usr/bin/profkit"), package, scratch)
}

/// The wheel, installed by pip into an empty virtual environment, without a network.
pub fn wheel(wheel: &Path, scratch: &Path) -> Result<()> {
    let environment = fresh(scratch.join("venv"))?;
    succeed(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )?;
    succeed(
        Command::new(environment.join("bin/pip"))
            .args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-index",
            ])
            .arg(wheel),
    )?;
    works(&environment.join("bin/profkit"), wheel, scratch)
}

/// The command says its version, merges the README's profiles, and is LLVM's tool under that name.
fn works(program: &Path, of: &Path, scratch: &Path) -> Result<()> {
    let folder = fresh(scratch.join("tried"))?;
    let said = printed(program, &["--version"])?;
    ensure!(
        said.starts_with(concat!("profkit ", env!("CARGO_PKG_VERSION"))),
        "{}: --version prints {said:?}",
        of.display()
    );
    let merged = folder.join("merged.profdata");
    let status = Command::new(program)
        .arg("merge")
        .arg(fixture_path("readme"))
        .arg("-o")
        .arg(&merged)
        .arg("-q")
        .env_clear()
        .status()?;
    ensure!(
        status.success(),
        "{}: profkit merge: {status}",
        of.display()
    );
    let shown = printed(program, &["show", path(&merged)?])?;
    ensure!(
        !shown.is_empty(),
        "{}: profkit show prints nothing",
        of.display()
    );
    let link = folder.join("llvm-profdata");
    std::os::unix::fs::symlink(program, &link)?;
    let shown = printed(&link, &["show", path(&merged)?])?;
    ensure!(
        shown.starts_with("Instrumentation level:"),
        "{}: as llvm-profdata it prints {shown:?}",
        of.display()
    );
    println!(
        "── {}: installed, merged a profile, showed it",
        of.display()
    );
    Ok(())
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path in UTF-8")
}

/// What the command prints when it succeeds, started without the surrounding environment.
fn printed(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .output()
        .with_context(|| program.display().to_string())?;
    ensure!(
        output.status.success(),
        "{} {arguments:?}: {}: {}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fails if a program needs a symbol of a glibc after this version.
pub fn symbols(program: &Path, newest: &str) -> Result<()> {
    let output = Command::new("objdump")
        .arg("-T")
        .arg(program)
        .output()
        .context("objdump")?;
    ensure!(output.status.success(), "objdump: {}", output.status);
    let limit = version(newest);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in text.lines() {
        let Some((_, rest)) = line.split_once("(GLIBC_") else {
            continue;
        };
        let needed = rest.split(')').next().unwrap_or_default();
        ensure!(
            version(needed) <= limit,
            "{}: needs glibc {needed}: {line}",
            program.display()
        );
    }
    Ok(())
}

fn version(text: &str) -> Vec<u32> {
    text.split('.')
        .map(|part| part.parse().unwrap_or(0))
        .collect()
}
