//! Runs rustc to compile a runtime, and finds out why that failed. Two callers use this module: the build scripts of
//! the crates that embed a runtime, and the profkit command, which compiles runtimes for other targets.
extern crate std;

use std::borrow::ToOwned as _;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::format;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::string::String;
use std::vec::Vec;

/// The reason why a runtime could not be compiled.
#[derive(Debug)]
pub enum Error {
    /// A file in the work folder cannot be written or read.
    Io(String, std::io::Error),
    /// The compiler rustc could not be started.
    NoCompiler(String, std::io::Error),
    /// The core library for the target is not installed.
    NoCore,
    /// This release of the compiler does not support the target.
    UnknownTarget,
    /// Compiling failed for another reason. The variant holds the compiler's messages.
    Compiler(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(path, error) => write!(f, "{path}: {error}"),
            Error::NoCompiler(name, error) => write!(f, "cannot start {name}: {error}"),
            Error::NoCore => f.write_str("the compiler has no core library for the target"),
            Error::UnknownTarget => f.write_str("the compiler does not know the target"),
            Error::Compiler(text) => write!(f, "the compiler failed:\n{text}"),
        }
    }
}

impl Error {
    /// Returns a suggestion to the user. The caller knows where the core library of a target comes from.
    #[must_use]
    pub fn hint(&self, rustc: &str) -> Option<String> {
        match self {
            Error::NoCompiler(..) => Some(
                "install Rust (rustup.rs), or name its compiler: RUSTC=/path/to/rustc".to_owned(),
            ),
            Error::UnknownTarget => Some(format!(
                "{rustc} --print target-list lists the targets that it supports"
            )),
            Error::NoCore | Error::Io(..) | Error::Compiler(_) => None,
        }
    }
}

/// Returns the rustc that the user named with `RUSTC`, or else the one in `PATH`.
#[must_use]
pub fn rustc() -> OsString {
    std::env::var_os("RUSTC")
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| OsString::from("rustc"))
}

/// Returns the Rust target for a triple of GCC, Clang or Rust for Linux. The C library in the triple is ignored.
#[must_use]
pub fn linux_target(triple: &str) -> Option<&'static str> {
    if !triple.contains("-linux") || triple.ends_with("x32") || triple.contains("ilp32") {
        return None;
    }
    let architecture = triple.split('-').next().unwrap_or_default();
    match architecture {
        "x86_64" | "amd64" => Some("x86_64-unknown-linux-gnu"),
        "aarch64" | "arm64" => Some("aarch64-unknown-linux-gnu"),
        _ if architecture.ends_with("eb") || architecture.starts_with("armeb") => None,
        _ if !architecture.starts_with("arm") && !architecture.starts_with("thumb") => None,
        _ if triple.ends_with("hf") => Some("armv7-unknown-linux-gnueabihf"),
        _ => Some("armv7-unknown-linux-gnueabi"),
    }
}

/// Returns the Rust target for a triple of Clang or Rust for macOS.
#[must_use]
pub fn darwin_target(triple: &str) -> Option<&'static str> {
    let mut parts = triple.split('-');
    let architecture = parts.next().unwrap_or_default();
    let (vendor, system) = (parts.next(), parts.next().unwrap_or_default());
    // The triple of a simulator or of Catalyst has a fourth part.
    if vendor != Some("apple")
        || !(system.starts_with("macos") || system.starts_with("darwin"))
        || parts.next().is_some()
    {
        return None;
    }
    match architecture {
        "x86_64" | "x86_64h" => Some("x86_64-apple-darwin"),
        "aarch64" | "arm64" => Some("aarch64-apple-darwin"),
        _ => None,
    }
}

/// Targets of Linux with one architecture share objects, because the runtimes use no C library.
#[must_use]
pub fn same_architecture(a: &str, b: &str) -> bool {
    a.split('-').next() == b.split('-').next()
}

/// The options of rustc for every object of a runtime.
pub const FLAGS: &[&str] = &[
    "--crate-type=lib",
    "--edition=2021",
    "--emit=obj",
    "-Cpanic=abort",
    "-Ccodegen-units=1",
    "-Crelocation-model=pic",
    "-Cforce-unwind-tables=no",
    "-Cdebuginfo=0",
];

/// Compiles the objects of a runtime for a target, in a folder.
#[derive(Debug)]
pub struct Compiler<'a> {
    rustc: &'a OsStr,
    target: &'a str,
    folder: &'a Path,
    /// The argument of `--extern`: the part of profkit-abi that the runtime uses.
    abi: OsString,
}

impl<'a> Compiler<'a> {
    /// Prepares the folder, which is created if necessary. `abi` has the name and the text of each module of profkit-abi
    /// that the runtime uses, and `files` the path and the text of each source file of the runtime.
    ///
    /// # Errors
    /// If a file cannot be written, or the compiler fails.
    pub fn new(
        (rustc, target): (&'a OsStr, &'a str),
        folder: &'a Path,
        abi: &[(&str, &str)],
        files: impl IntoIterator<Item = (String, &'a str)>,
    ) -> Result<Self, Error> {
        let mut modules =
            String::from("//! The part of profkit-abi that the runtime uses.\n#![no_std]\n");
        for (name, text) in abi {
            modules.push_str(&format!("pub mod {name};\n"));
            put(folder, &format!("abi/{name}.rs"), text)?;
        }
        put(folder, "abi/lib.rs", &modules)?;
        for (path, text) in files {
            put(folder, &path, text)?;
        }
        let metadata = folder.join("libprofkit_abi.rmeta");
        let mut abi = OsString::from("profkit_abi=");
        abi.push(&metadata);
        let compiler = Compiler {
            rustc,
            target,
            folder,
            abi,
        };
        compiler.run(
            Command::new(rustc)
                .args([
                    "--crate-name=profkit_abi",
                    "--crate-type=lib",
                    "--edition=2021",
                ])
                .args(["--emit=metadata", "-Cpanic=abort", "--target", target, "-o"])
                .args([&metadata, &folder.join("abi/lib.rs")]),
        )?;
        Ok(compiler)
    }

    /// Compiles a source file of the folder. `flags` are options of rustc in addition to those that all objects have.
    /// Returns the object file.
    ///
    /// # Errors
    /// If the compiler fails.
    pub fn object(
        &self,
        name: &str,
        source: &str,
        flags: &[impl AsRef<OsStr>],
    ) -> Result<Vec<u8>, Error> {
        let object = self.folder.join(name);
        let mut command = Command::new(self.rustc);
        command
            .args(FLAGS)
            .args(["--target", self.target])
            .args(flags);
        if self.target.starts_with("aarch64") {
            // Atomic instructions instead of calls to libgcc. Old compilers do not know the option, and warn.
            command.arg("-Ctarget-feature=-outline-atomics");
        }
        command.arg("--extern").arg(&self.abi).arg("-o");
        self.run(command.args([&object, &self.folder.join(source)]))?;
        fs::read(&object).map_err(io(&object))
    }

    fn run(&self, command: &mut Command) -> Result<(), Error> {
        without_cargo(command);
        let output = command
            .output()
            .map_err(|error| Error::NoCompiler(self.rustc.to_string_lossy().into_owned(), error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(if lacks_target(self.rustc, self.target) {
            Error::UnknownTarget
        } else if lacks_core(self.rustc, self.target) {
            Error::NoCore
        } else {
            Error::Compiler(String::from_utf8_lossy(&output.stderr).into_owned())
        })
    }
}

fn put(folder: &Path, name: &str, text: &str) -> Result<(), Error> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(io(parent))?;
    }
    fs::write(&path, text).map_err(io(&path))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = format!("{}", path.display());
    move |error| Error::Io(path, error)
}

/// Variables by which a surrounding cargo configures rustc must not apply to the runtime.
fn without_cargo(command: &mut Command) {
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_LOG"] {
        command.env_remove(name);
    }
}

/// Whether the compiler prints a list of targets, and this target is not in it.
fn lacks_target(rustc: &OsStr, target: &str) -> bool {
    printed(rustc, &["--print=target-list"])
        .map_or(false, |list| !list.lines().any(|known| known == target))
}

/// Whether the compiler's library folder for the target contains no core library.
fn lacks_core(rustc: &OsStr, target: &str) -> bool {
    let Some(folder) = printed(rustc, &["--print=target-libdir", "--target", target]) else {
        return false;
    };
    let Ok(entries) = fs::read_dir(folder.trim_end_matches(['\r', '\n'])) else {
        return true;
    };
    !entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libcore-") && name.ends_with(".rlib")
    })
}

/// Returns the output of rustc, or `None` if it fails.
fn printed(rustc: &OsStr, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(rustc);
    without_cargo(command.args(arguments));
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
