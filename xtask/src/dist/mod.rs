//! `cargo xtask dist`: the files of a release, each installed in a clean place and tried out.
//!
//! | file | what it is |
//! |---|---|
//! | `profkit-VERSION-TARGET.tar.gz` | the command, manual pages, completion scripts, licences |
//! | `profkit_VERSION_ARCH.deb` | the same as a Debian package |
//! | `profkit-VERSION-….whl` | the command as a Python package: `pip install` |
//! | `SHA256SUMS` | a checksum per file |
//!
//! Two tools come from PyPI, in the versions named here: zig, whose linker has the symbols of old C libraries, and
//! maturin, which makes wheels. They go into a virtual environment below the target folder.
mod check;
mod packages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::{repo_root, target_folder};

/// What is fetched from PyPI.
const TOOLS: &[&str] = &[
    "maturin==1.14.1",
    "cargo-zigbuild==0.23.0",
    "ziglang==0.15.2",
];
/// The oldest glibc that the command runs on: that of RHEL 7, and what Rust's standard library needs.
const GLIBC: &str = "2.17";

/// A system that releases are made for.
struct System {
    /// As Rust names it.
    target: &'static str,
    /// As Debian names the architecture; `None` where there is no package.
    debian: Option<&'static str>,
    /// Whether the C library is linked into the command.
    is_static: bool,
}

/// The systems, the default first.
const SYSTEMS: &[System] = &[
    System {
        target: "x86_64-unknown-linux-gnu",
        debian: Some("amd64"),
        is_static: false,
    },
    System {
        target: "x86_64-unknown-linux-musl",
        debian: None,
        is_static: true,
    },
    System {
        target: "aarch64-unknown-linux-gnu",
        debian: Some("arm64"),
        is_static: false,
    },
];

/// The places of a run.
struct Dist {
    system: &'static System,
    /// `bin` of the virtual environment with the tools.
    tools: PathBuf,
    /// Where the files of the release go.
    out: PathBuf,
    /// A folder for intermediate files.
    scratch: PathBuf,
}

/// Makes the files of a release for the systems named, by default the first of [`SYSTEMS`], and tries them out.
///
/// # Errors
/// If a tool cannot be had or fails, or if an installed command does not work.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut systems = Vec::new();
    for name in arguments {
        let known = SYSTEMS.iter().find(|system| system.target == name.as_str());
        systems
            .push(known.with_context(|| format!("no releases are made for {name}: {}", names()))?);
    }
    if systems.is_empty() {
        systems.extend(SYSTEMS.first());
    }
    let root = target_folder().join("dist");
    let tools = tools(&root)?;
    let out = fresh(root.join("files"))?;
    for system in systems {
        let dist = Dist {
            system,
            tools: tools.clone(),
            out: out.clone(),
            scratch: fresh(root.join(system.target))?,
        };
        dist.make()?;
    }
    packages::checksums(&out)?;
    println!("── {}", out.display());
    for entry in fs::read_dir(&out)? {
        let entry = entry?;
        println!(
            "{:>12}  {}",
            entry.metadata()?.len(),
            entry.file_name().display()
        );
    }
    Ok(())
}

fn names() -> String {
    let names: Vec<_> = SYSTEMS.iter().map(|system| system.target).collect();
    names.join(", ")
}

impl Dist {
    fn make(&self) -> Result<()> {
        let program = self.build()?;
        let tree = self.tree(&program)?;
        let archive = packages::archive(&tree, &self.out)?;
        let runs_here = self.system.target.starts_with(std::env::consts::ARCH);
        if runs_here {
            check::archive(&archive, &self.scratch)?;
        }
        if let Some(architecture) = self.system.debian {
            let package = packages::deb(&tree, architecture, &self.scratch, &self.out)?;
            if runs_here {
                check::deb(&package, &self.scratch)?;
            }
        }
        let wheel = self.wheel()?;
        if runs_here {
            check::wheel(&wheel, &self.scratch)?;
        } else {
            println!(
                "── {}: not tried out, this machine is no {}",
                self.system.target, self.system.target
            );
        }
        Ok(())
    }

    /// Builds the command: whole-program optimisation, no symbols, and symbols of no C library after [`GLIBC`].
    fn build(&self) -> Result<PathBuf> {
        let target = self.system.target;
        let linked = if self.system.is_static {
            target.to_owned()
        } else {
            format!("{target}.{GLIBC}")
        };
        let mut command = self.command("cargo-zigbuild");
        command
            .args([
                "zigbuild",
                "--profile=dist",
                "--package=profkit-cli",
                "--target",
            ])
            .arg(linked)
            .current_dir(repo_root());
        succeed(&mut command)?;
        let program = target_folder().join(target).join("dist/profkit");
        if !self.system.is_static {
            check::symbols(&program, GLIBC)?;
        }
        Ok(program)
    }

    /// The folder that archives are made of: `profkit-VERSION-TARGET`.
    fn tree(&self, program: &Path) -> Result<PathBuf> {
        let name = format!(
            "profkit-{}-{}",
            env!("CARGO_PKG_VERSION"),
            self.system.target
        );
        let tree = fresh(self.scratch.join(name))?;
        let copy = |from: &Path, to: &str| -> Result<()> {
            let to = tree.join(to);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::copy(from, &to).with_context(|| from.display().to_string())?;
            Ok(())
        };
        copy(program, "bin/profkit")?;
        for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&repo_root().join(name), name)?;
        }
        // Pages and scripts are those of the command's own machine: they do not depend on the system.
        let native = native()?;
        succeed(
            Command::new(&native)
                .arg("man")
                .arg(tree.join("share/man/man1")),
        )?;
        for (shell, file) in [
            ("bash", "share/bash-completion/completions/profkit"),
            ("zsh", "share/zsh/site-functions/_profkit"),
            ("fish", "share/fish/vendor_completions.d/profkit.fish"),
        ] {
            let output = Command::new(&native)
                .args(["completions", shell])
                .output()?;
            ensure!(
                output.status.success(),
                "profkit completions {shell}: {}",
                output.status
            );
            let path = tree.join(file);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, output.stdout)?;
        }
        Ok(tree)
    }

    /// The wheel, by maturin: `pip install profkit` gives the command and nothing to import.
    fn wheel(&self) -> Result<PathBuf> {
        let compatibility = if self.system.is_static {
            "musllinux_1_1"
        } else {
            "manylinux2014"
        };
        let folder = fresh(self.scratch.join("wheel"))?;
        let mut command = self.command("maturin");
        command
            .args([
                "build",
                "--profile=dist",
                "--zig",
                "--compatibility",
                compatibility,
                "--target",
            ])
            .arg(self.system.target)
            .arg("--manifest-path")
            .arg(repo_root().join("crates/profkit-cli/Cargo.toml"))
            .arg("--out")
            .arg(&folder);
        succeed(&mut command)?;
        for entry in fs::read_dir(&folder)? {
            let made = entry?.path();
            if made.extension().is_some_and(|extension| extension == "whl") {
                let name = made.file_name().context("the wheel's name")?;
                let kept = self.out.join(name);
                fs::copy(&made, &kept)?;
                return Ok(kept);
            }
        }
        bail!("maturin made no wheel in {}", folder.display())
    }

    /// A tool of the virtual environment, with the others on its path.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.tools.join(name));
        let mut path = self.tools.as_os_str().to_owned();
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        command
            .env("PATH", path)
            .env("CARGO_TARGET_DIR", target_folder());
        command
    }
}

/// The command as tests use it, built for this machine.
fn native() -> Result<PathBuf> {
    crate::steps::built_profkit()
}

/// A virtual environment with [`TOOLS`]; made once.
fn tools(root: &Path) -> Result<PathBuf> {
    let environment = root.join("tools");
    let stamp = environment.join("installed");
    let wanted = TOOLS.join("\n");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
        succeed(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&environment),
        )?;
        succeed(
            Command::new(environment.join("bin/pip"))
                .args(["install", "--quiet", "--disable-pip-version-check"])
                .args(TOOLS),
        )?;
        fs::write(stamp, wanted)?;
    }
    Ok(environment.join("bin"))
}

/// An empty folder.
fn fresh(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Runs a command that must exit with 0.
fn succeed(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| shown.clone())?;
    ensure!(status.success(), "{shown}: {status}");
    Ok(())
}

/// Does without installing what `cargo publish` would do, for all crates that are published, in the order of their
/// dependencies.
///
/// # Errors
/// If a crate cannot be published as it is.
pub fn publish(arguments: &[String]) -> Result<()> {
    succeed(
        Command::new("cargo")
            .args(["publish", "--dry-run", "--workspace"])
            .args(arguments)
            .current_dir(repo_root()),
    )
}
