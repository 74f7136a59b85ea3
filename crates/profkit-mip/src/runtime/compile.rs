//! Compiles the source of the MIP runtime with rustc. The build script uses this file too.
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The reason why the MIP runtime could not be compiled.
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

/// Compiles the runtime in `folder`, which is created if necessary. Returns the bytes of the object file.
///
/// # Errors
/// See [`Error`].
pub fn compile(rustc: &OsStr, target: &str, folder: &Path) -> Result<Vec<u8>, Error> {
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |error| Error::Io(path, error)
    };
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io(parent))?;
        }
        fs::write(&path, text).map_err(io(&path))
    };
    put(
        "abi/lib.rs",
        "//! The part of profkit-abi that the runtime uses.\n#![no_std]\npub mod mip;\n",
    )?;
    put("abi/mip.rs", profkit_abi::source::MIP)?;
    for (name, text) in profkit_rt::source::FILES {
        put(&format!("rt/{name}"), text)?;
    }
    let metadata = folder.join("libprofkit_abi.rmeta");
    run(
        Command::new(rustc)
            .args([
                "--crate-name=profkit_abi",
                "--crate-type=lib",
                "--edition=2021",
            ])
            .args(["--emit=metadata", "-Cpanic=abort", "--target", target, "-o"])
            .args([&metadata, &folder.join("abi/lib.rs")]),
        rustc,
        target,
    )?;
    let object = folder.join("profkit_rt.o");
    let mut external = std::ffi::OsString::from("profkit_abi=");
    external.push(&metadata);
    let mut command = Command::new(rustc);
    command
        .args(profkit_rt::COMPILE_FLAGS)
        .args(["--target", target]);
    if target.starts_with("aarch64") {
        // With this option the compiler generates atomic instructions instead of calls to libgcc. Old compilers do not
        // know the option, but only warn about it.
        command.arg("-Ctarget-feature=-outline-atomics");
    }
    command.arg("--extern").arg(external).arg("-o");
    run(
        command.args([&object, &folder.join("rt/lib.rs")]),
        rustc,
        target,
    )?;
    fs::read(&object).map_err(io(&object))
}

fn run(command: &mut Command, rustc: &OsStr, target: &str) -> Result<(), Error> {
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
        .is_some_and(|list| !list.lines().any(|known| known == target))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(target: &str) -> Error {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        compile(&rustc, target, folder.path()).expect_err("no object file for such a target")
    }

    #[test]
    fn a_target_that_the_compiler_does_not_know() {
        let error = failure("no-such-target");
        assert!(matches!(error, Error::UnknownTarget), "{error}");
    }

    #[test]
    fn a_target_without_a_core_library() {
        // Every rustc supports this tier 3 target, but its core library is never distributed.
        let error = failure("msp430-none-elf");
        assert!(matches!(error, Error::NoCore), "{error}");
    }
}
