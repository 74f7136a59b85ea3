//! Provides static libraries of the runtime, and links programs with them. Build scripts and the profkit command use
//! this module.
mod compile;

pub use profkit_rt::compiler::Error as CompileError;

use profkit_rt::compiler::{linux_target, rustc, same_architecture};
use std::borrow::{Cow, ToOwned as _};
use std::fmt;
use std::format;
use std::io;
use std::path::Path;
use std::process::Command;
use std::string::{String, ToString as _};
use std::vec::Vec;

/// The Rust target triple of the machine for which this crate is built.
const HOST: &str = env!("PROFKIT_HOST");

/// The static libraries for the machine for which this crate is built, each with its raw version.
#[cfg(feature = "embed")]
const EMBEDDED: &[(u32, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
#[cfg(not(feature = "embed"))]
const EMBEDDED: &[(u32, &[u8])] = &[];

/// The compiler that instruments a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// clang of the major release with this number.
    Clang(u32),
    /// The rustc that the variable `RUSTC` names, or else the one in `PATH`.
    Rustc,
    /// Any compiler that writes profiles of this raw version.
    Raw(u32),
}

/// The reason why no runtime can be provided.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The name given for a compiler is unknown. The variant holds the name.
    Compiler(String),
    /// The compiler writes a raw version for which there is no runtime. The variant holds the name of the compiler.
    Version(String),
    /// The release of LLVM that rustc contains is unknown. The variant holds the output of rustc.
    Rustc(String),
    /// There is no runtime for this target. The variant holds the target's name.
    Target(String),
    /// The runtime could not be compiled.
    Compile {
        /// The target.
        target: String,
        /// The name or path of the rustc that was used.
        rustc: String,
        /// The reason.
        error: CompileError,
    },
    /// A file or folder could not be written. The variant holds its path and the reason.
    Io(String, io::Error),
}

impl Error {
    /// Whether something that does not exist was asked for, and the cause is not on this machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Error::Compiler(_) | Error::Version(_) | Error::Target(_)
        )
    }

    /// Returns a suggestion to the user; `None` if there is nothing that helps.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Compiler(_) => Some("--for clang-19, --for rustc, or --for raw-10".to_owned()),
            Error::Rustc(_) => Some(
                "say the raw version: LLVM 19 to 22 write --for raw-10, LLVM 23 --for raw-11"
                    .to_owned(),
            ),
            Error::Compile {
                target,
                rustc,
                error,
            } => match error {
                CompileError::NoCore => Some(format!(
                    "rustup target add {target}, or name a compiler that has this library: RUSTC=…"
                )),
                error => error.hint(rustc),
            },
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Compiler(name) => write!(
                f,
                "{name}: no compiler of this name is known: expected clang-13 to clang-23, rustc, or raw-7 to raw-11"
            ),
            Error::Version(name) => write!(
                f,
                "{name}: there is no profile runtime for this version: expected LLVM 13 to 23, or raw version 7 to 11"
            ),
            Error::Rustc(text) => write!(f, "rustc does not say which LLVM release it has: found {text}"),
            Error::Target(target) => write!(
                f,
                "{target}: there is no runtime for this target: expected Linux on x86-64, AArch64 or 32-bit Arm, aarch64-none-elf, or wasm32-unknown-unknown"
            ),
            Error::Compile { target, error, .. } => write!(f, "the profile runtime for {target}: {error}"),
            Error::Io(path, error) => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl std::str::FromStr for Compiler {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::Compiler(text.to_owned());
        if text == "rustc" {
            return Ok(Compiler::Rustc);
        }
        let (name, number) = text.split_once('-').ok_or_else(unknown)?;
        // The version is reduced to the major release: clang-19.1.7 becomes clang-19.
        let number = number.split('.').next().unwrap_or_default();
        let number = number.parse().map_err(|_| unknown())?;
        match name {
            "clang" | "clang++" | "llvm" => Ok(Compiler::Clang(number)),
            "raw" => Ok(Compiler::Raw(number)),
            _ => Err(unknown()),
        }
    }
}

impl Compiler {
    /// Returns the raw version that the compiler writes. Runs rustc to find out its release of LLVM.
    ///
    /// # Errors
    /// If there is no runtime for this version, or rustc cannot be run.
    pub fn raw_version(self) -> Result<u32, Error> {
        match self {
            Compiler::Raw(version) => {
                if compile::VERSIONS.contains(&version) {
                    Ok(version)
                } else {
                    Err(Error::Version(format!("raw-{version}")))
                }
            }
            Compiler::Clang(release) => {
                version_of(release).ok_or_else(|| Error::Version(format!("clang-{release}")))
            }
            Compiler::Rustc => {
                let release = llvm_of_rustc()?;
                version_of(release)
                    .ok_or_else(|| Error::Version(format!("rustc with LLVM {release}")))
            }
        }
    }

    /// The options of this compiler that link a program with the library.
    #[must_use]
    pub fn flags(self, library: &Path) -> Vec<String> {
        let shown = library.display().to_string();
        if self != Compiler::Rustc {
            return [shown].into();
        }
        let folder = match library.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.display().to_string(),
            _ => ".".to_owned(),
        };
        let name = library
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let name = name.strip_prefix("lib").map(str::to_owned).unwrap_or(name);
        [format!("-Lnative={folder}"), format!("-lstatic={name}")].into()
    }
}

/// Returns the raw version that a release of LLVM writes; `None` if there is no runtime for it.
fn version_of(release: u32) -> Option<u32> {
    match release {
        13 => Some(7),
        14..=17 => Some(8),
        18 => Some(9),
        19..=22 => Some(10),
        23 => Some(11),
        _ => None,
    }
}

/// Returns the major release of the LLVM in rustc.
fn llvm_of_rustc() -> Result<u32, Error> {
    let rustc = rustc();
    let output = Command::new(&rustc)
        .arg("-vV")
        .output()
        .map_err(|error| Error::Compile {
            target: HOST.to_owned(),
            rustc: rustc.to_string_lossy().into_owned(),
            error: CompileError::NoCompiler(rustc.to_string_lossy().into_owned(), error),
        })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("LLVM version: "))
        .and_then(|version| version.split('.').next()?.parse().ok())
        .ok_or(Error::Rustc(text))
}

/// Returns the static library of the runtime for a raw version and a target; `None` stands for this machine.
///
/// # Errors
/// If there is no runtime for the version or target, or compiling it fails.
pub fn library(version: u32, target: Option<&str>) -> Result<Cow<'static, [u8]>, Error> {
    if !compile::VERSIONS.contains(&version) {
        return Err(Error::Version(format!("raw-{version}")));
    }
    let asked = target.unwrap_or(HOST);
    let target = rust_target(asked).ok_or_else(|| Error::Target(asked.to_owned()))?;
    if same_architecture(target, HOST) && [target, HOST].iter().all(|it| it.contains("-linux")) {
        for (embedded, bytes) in EMBEDDED {
            if *embedded == version {
                return Ok(Cow::Borrowed(bytes));
            }
        }
    }
    let rustc = rustc();
    let folder = tempfile::Builder::new()
        .prefix("profkit-runtime-")
        .tempdir()
        .map_err(|error| Error::Io(std::env::temp_dir().display().to_string(), error))?;
    compile::compile(&rustc, target, version, folder.path())
        .map(Cow::Owned)
        .map_err(|error| Error::Compile {
            target: target.to_owned(),
            rustc: rustc.to_string_lossy().into_owned(),
            error,
        })
}

/// Links the program of the calling build script with the runtime for the rustc that compiles it. The build script must
/// belong to the crate of the program itself, because the libraries of other crates come later in the link than rustc's
/// own runtime.
///
/// # Errors
/// If there is no runtime for the compiler or the target, or the library cannot be written.
pub fn link_to_this_crate() -> Result<(), Error> {
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| Error::Io(name.to_owned(), io::ErrorKind::NotFound.into()))
    };
    let (folder, target) = (variable("OUT_DIR")?, variable("TARGET")?);
    let bytes = library(Compiler::Rustc.raw_version()?, Some(&target))?;
    let path = Path::new(&folder).join("libprofkit_profile.a");
    std::fs::write(&path, bytes).map_err(|error| Error::Io(path.display().to_string(), error))?;
    std::println!("cargo:rustc-link-search=native={folder}");
    std::println!("cargo:rustc-link-lib=static=profkit_profile");
    Ok(())
}

/// Returns the Rust target for a triple of GCC, Clang or Rust.
fn rust_target(triple: &str) -> Option<&'static str> {
    let architecture = triple.split('-').next().unwrap_or_default();
    if architecture == "wasm32" && (triple == "wasm32" || triple.ends_with("-unknown")) {
        return Some("wasm32-unknown-unknown");
    }
    if triple.ends_with("-none-elf") || triple.ends_with("-none") {
        let is_known = architecture == "aarch64" || architecture == "arm64";
        return is_known.then_some("aarch64-unknown-none");
    }
    linux_target(triple)
}

#[cfg(test)]
mod tests {
    use super::{library, rust_target, Compiler, Error};
    use std::path::Path;
    use std::string::ToString as _;

    #[test]
    fn compilers_have_names() {
        for (name, version) in [
            ("clang-13", 7),
            ("clang-14", 8),
            ("clang-17", 8),
            ("clang++-18", 9),
            ("clang-19.1.7", 10),
            ("clang-22", 10),
            ("clang-23", 11),
            ("raw-9", 9),
        ] {
            let compiler: Compiler = name.parse().expect(name);
            assert_eq!(compiler.raw_version().expect(name), version, "{name}");
        }
        for name in ["gcc-12", "clang", "clang-x", "raw-", ""] {
            assert!(
                matches!(name.parse::<Compiler>(), Err(Error::Compiler(_))),
                "{name}"
            );
        }
        for compiler in [Compiler::Clang(12), Compiler::Clang(24), Compiler::Raw(6)] {
            assert!(
                matches!(compiler.raw_version(), Err(Error::Version(_))),
                "{compiler:?}"
            );
        }
        assert!(Compiler::Rustc.raw_version().expect("rustc says its LLVM") >= 10);
    }

    #[test]
    #[cfg(feature = "embed")]
    fn the_built_in_libraries_are_the_compiled_ones() {
        for (version, embedded) in super::EMBEDDED {
            let folder = tempfile::tempdir().expect("a folder");
            let rustc = super::rustc();
            let compiled = super::compile::compile(&rustc, super::HOST, *version, folder.path());
            assert!(
                compiled.expect("compiled") == *embedded,
                "raw version {version}"
            );
        }
    }

    #[test]
    fn flags_name_the_library() {
        let library = Path::new("lib/libprofkit_profile.a");
        assert_eq!(
            Compiler::Clang(19).flags(library),
            ["lib/libprofkit_profile.a"]
        );
        assert_eq!(
            Compiler::Rustc.flags(library),
            ["-Lnative=lib", "-lstatic=profkit_profile"]
        );
        assert_eq!(
            Compiler::Rustc.flags(Path::new("libx.a")),
            ["-Lnative=.", "-lstatic=x"]
        );
    }

    #[test]
    fn targets_of_all_compilers_are_understood() {
        for (triple, expected) in [
            ("x86_64-pc-linux-gnu", Some("x86_64-unknown-linux-gnu")),
            (
                "x86_64-unknown-linux-musl",
                Some("x86_64-unknown-linux-gnu"),
            ),
            ("aarch64-linux-android21", Some("aarch64-unknown-linux-gnu")),
            ("arm-linux-gnueabihf", Some("armv7-unknown-linux-gnueabihf")),
            ("aarch64-none-elf", Some("aarch64-unknown-none")),
            ("aarch64-unknown-none", Some("aarch64-unknown-none")),
            ("thumbv7em-none-eabi", None),
            ("riscv64-unknown-none-elf", None),
            ("i686-linux-gnu", None),
            ("x86_64-apple-darwin", None),
            ("wasm32-unknown-unknown", Some("wasm32-unknown-unknown")),
            ("wasm32-wasip1", None),
        ] {
            assert_eq!(rust_target(triple), expected, "{triple}");
        }
        let error = library(10, Some("x86_64-apple-darwin")).expect_err("no runtime");
        assert!(error.is_usage(), "{}", error.to_string());
    }
}
