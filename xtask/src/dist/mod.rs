//! `cargo xtask dist`: makes the files of a release, installs each in an empty place, and tries it out.
//!
//! | file | what it is |
//! |---|---|
//! | `profkit-VERSION-….whl` | the Python package, with the command and the library: `pip install`. Not for musl |
//! | `profkit-VERSION-TARGET.tar.gz` | the command, manual pages, completion scripts, licences; `cargo binstall` takes it |
//! | `profkit_VERSION_ARCH.deb` | the same as a Debian package |
//! | `install.sh` | fetches the archive of the system, checks it, and installs it |
//! | `SHA256SUMS` | a checksum per file |
//!
//! Two tools come from PyPI, in fixed versions: maturin, which builds the command and the wheel, and zig, whose
//! linker has the symbols of old C libraries. They are installed into a virtual environment. All files are below the
//! folder `dist` of the target folder, including those that cargo builds.
mod binstall;
mod check;
mod packages;
mod publish;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use profkit_testkit::{repo_root, target_folder};

pub use publish::publish;

/// The Python packages that are fetched from PyPI.
const TOOLS: &[&str] = &[crate::wheel::MATURIN, "ziglang==0.15.2"];
/// The oldest glibc with which the command runs. RHEL 7 has this version, and Rust's standard library needs it.
const GLIBC: &str = "2.17";

/// A system for which releases are made.
struct System {
    /// Rust's name of the system.
    target: &'static str,
    /// Debian's name of the processor architecture; `None` if no Debian package is made.
    debian: Option<&'static str>,
    /// The platform tag that maturin checks the command against, and that the Python wheel has. It names the oldest C library.
    platform: &'static str,
    /// Whether the C library is linked into the command.
    is_static: bool,
    /// The emulator for programs of this system, if the machine has another architecture.
    emulator: Option<Emulator>,
}

/// An emulator: a program that runs programs of another architecture.
struct Emulator {
    program: &'static str,
    /// The folder with the C library of the emulated architecture (Debian: `libc6-arm64-cross`).
    libraries: &'static str,
}

/// The systems for which releases are made.
const SYSTEMS: &[System] = &[
    System {
        target: "x86_64-unknown-linux-gnu",
        debian: Some("amd64"),
        platform: "manylinux2014",
        is_static: false,
        emulator: None,
    },
    System {
        target: "x86_64-unknown-linux-musl",
        debian: None,
        platform: "musllinux_1_1",
        is_static: true,
        emulator: None,
    },
    System {
        target: "aarch64-unknown-linux-gnu",
        debian: Some("arm64"),
        platform: "manylinux2014",
        is_static: false,
        emulator: Some(Emulator {
            program: "qemu-aarch64",
            libraries: "/usr/aarch64-linux-gnu",
        }),
    },
];

impl System {
    /// Whether this machine runs programs of the system without an emulator.
    fn is_here(&self) -> bool {
        self.target.starts_with(std::env::consts::ARCH)
    }
}

/// The folders of a run of this task.
struct Dist {
    system: &'static System,
    /// The folder `bin` of the virtual environment that contains the tools.
    tools: PathBuf,
    /// The folder for the files of the release.
    out: PathBuf,
    /// A folder for intermediate files.
    scratch: PathBuf,
    /// The folder in which cargo builds.
    build: PathBuf,
}

/// Makes the files of a release and tries them out. This is done for the systems in `arguments`, or else for all of
/// [`SYSTEMS`] whose standard library is installed.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut systems = Vec::new();
    for name in arguments {
        let known = SYSTEMS.iter().find(|system| system.target == name.as_str());
        let system =
            known.with_context(|| format!("no releases are made for {name}: {}", names()))?;
        ensure!(
            crate::steps::has_target(name)?,
            "there is no standard library for {name}: rustup target add {name}"
        );
        systems.push(system);
    }
    if arguments.is_empty() {
        for system in SYSTEMS {
            if crate::steps::has_target(system.target)? {
                systems.push(system);
            } else {
                println!(
                    "── not made: {0}, whose standard library is not installed (rustup target add {0})",
                    system.target
                );
            }
        }
    }
    let root = target_folder().join("dist");
    let tools = environment(&root.join("tools"), TOOLS)?;
    let out = fresh(root.join("files"))?;
    for system in systems {
        let dist = Dist {
            system,
            tools: tools.clone(),
            out: out.clone(),
            scratch: fresh(root.join(system.target))?,
            // cargo has a folder `build` there, for the profile `dist`.
            build: root.join("maturin"),
        };
        dist.make()?;
    }
    fs::copy(repo_root().join("install.sh"), out.join("install.sh"))?;
    packages::checksums(&out)?;
    check::installer(&out, &root.join("installer"))?;
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
        let start = Instant::now();
        self.program()?;
        let program = self.build.join(self.system.target).join("dist/profkit");
        println!(
            "── {}: {} bytes, built in {:.0} s",
            program.display(),
            fs::metadata(&program)?.len(),
            start.elapsed().as_secs_f64()
        );
        let libraries = check::libraries(&program, self.system, GLIBC)?;
        let tree = self.tree(&program)?;
        let archive = packages::archive(&tree, &self.out)?;
        let mut package = None;
        if let Some(architecture) = self.system.debian {
            let made = packages::deb(&tree, architecture, &libraries, &self.scratch, &self.out)?;
            package = Some(made);
        }
        let place = check::Place::new(self.system, &self.scratch);
        place.archive(&archive)?;
        binstall::check(self.system.target, &archive)?;
        if let Some(package) = &package {
            place.deb(package)?;
        }
        // Python extensions cannot be linked with a static C library.
        if self.system.is_static {
            return Ok(());
        }
        place.wheel(&self.wheel()?)
    }

    /// Makes the folder `profkit-VERSION-TARGET`, from which the archives are packed.
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
        // The manual pages and the completion scripts do not depend on the system. A command that was built for tests
        // writes them.
        let native = crate::steps::built_profkit()?;
        succeed(
            Command::new(&native)
                .arg("man")
                .arg(tree.join("share/man/man1")),
        )?;
        for command in ["profkit", "llvm-profdata"] {
            for (shell, file) in [
                (
                    "bash",
                    format!("share/bash-completion/completions/{command}"),
                ),
                ("zsh", format!("share/zsh/site-functions/_{command}")),
                (
                    "fish",
                    format!("share/fish/vendor_completions.d/{command}.fish"),
                ),
            ] {
                let output = Command::new(&native)
                    .args(["completions", shell, command])
                    .output()?;
                ensure!(
                    output.status.success(),
                    "profkit completions {shell} {command}: {}",
                    output.status
                );
                let path = tree.join(file);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, output.stdout)?;
            }
        }
        Ok(tree)
    }

    /// Builds the command by maturin: with whole-program optimisation, without symbols, and without a symbol of a C library
    /// newer than [`GLIBC`].
    fn program(&self) -> Result<()> {
        let folder = fresh(self.scratch.join("program"))?;
        succeed(
            self.maturin("dist", "arrow,cloud,embed,zstd")
                .arg("--manifest-path")
                .arg(repo_root().join("crates/profkit-cli/Cargo.toml"))
                .arg("--out")
                .arg(&folder),
        )
    }

    /// Builds the Python package in the same way, but so that a panic becomes an exception.
    fn wheel(&self) -> Result<PathBuf> {
        let mut maturin = self.maturin("wheel", "cloud,embed,zstd");
        let made = crate::wheel::built(&mut maturin, &self.scratch.join("wheel"))?;
        let kept = self.out.join(made.file_name().context("the wheel's name")?);
        fs::copy(&made, &kept)?;
        Ok(kept)
    }

    fn maturin(&self, profile: &str, features: &str) -> Command {
        let mut path = self.tools.as_os_str().to_owned();
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        let mut command = Command::new(self.tools.join("maturin"));
        command
            .args(["build", "--zig", "--locked", "--profile", profile])
            .args(["--features", features])
            .args(["--compatibility", self.system.platform])
            .args(["--target", self.system.target])
            .env("PATH", path)
            .env("CARGO_TARGET_DIR", &self.build)
            // The time of all files is the oldest one that a zip archive can hold, so that the same files give the same
            // bytes.
            .env("SOURCE_DATE_EPOCH", "315532800");
        command
    }
}

/// Makes a virtual environment with these packages of PyPI, unless it exists, and returns the folder of its programs.
pub fn environment(environment: &Path, packages: &[&str]) -> Result<PathBuf> {
    let stamp = environment.join("installed");
    let wanted = packages.join("\n");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
        succeed(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(environment),
        )?;
        succeed(
            Command::new(environment.join("bin/pip"))
                .args(["install", "--quiet", "--disable-pip-version-check"])
                .args(packages),
        )?;
        fs::write(stamp, wanted)?;
    }
    Ok(environment.join("bin"))
}

fn fresh(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Runs a command that must exit with 0.
pub fn succeed(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| shown.clone())?;
    ensure!(status.success(), "{shown}: {status}");
    Ok(())
}
