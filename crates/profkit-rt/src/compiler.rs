//! Runs rustc to compile a runtime, and finds out why that failed. Two callers use this module: the build scripts of
//! the crates that embed a runtime, and the profkit command, which compiles runtimes for other targets.
extern crate std;

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::string::String;

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

/// Writes a file of source text below a folder. Makes the folders of the file if necessary.
///
/// # Errors
/// If the file cannot be written.
pub fn put(folder: &Path, name: &str, text: &str) -> Result<(), Error> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(io(parent))?;
    }
    fs::write(&path, text).map_err(io(&path))
}

/// Reads the object file that a compiler has written.
///
/// # Errors
/// If the file cannot be read.
pub fn take(path: &Path) -> Result<std::vec::Vec<u8>, Error> {
    fs::read(path).map_err(io(path))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = std::format!("{}", path.display());
    move |error| Error::Io(path, error)
}

/// Runs a command that compiles something for a target.
///
/// # Errors
/// If the compiler cannot be started, or reports an error.
pub fn run(command: &mut Command, rustc: &OsStr, target: &str) -> Result<(), Error> {
    without_cargo(command);
    let output = command
        .output()
        .map_err(|error| Error::NoCompiler(rustc.to_string_lossy().into_owned(), error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(if lacks_target(rustc, target) {
        Error::UnknownTarget
    } else if lacks_core(rustc, target) {
        Error::NoCore
    } else {
        Error::Compiler(String::from_utf8_lossy(&output.stderr).into_owned())
    })
}

/// Removes the environment variables by which a surrounding cargo configures rustc, because they must not apply to the
/// runtime.
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
