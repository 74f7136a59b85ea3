//! Finds installed LLVM releases.
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The LLVM releases with which tests compare, oldest first. Debian has packages of some of them; `.ci/llvms` lays the others
/// in the folder of `PROFKIT_LLVMS`.
pub const RELEASES: [u32; 11] = [13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23];

/// The releases of [`RELEASES`] that `.ci/llvms` lays.
pub(crate) const LAID: [u32; 5] = [17, 18, 20, 21, 23];

/// The environment variable with the folder in which `.ci/llvms` lays releases: `bin` in it has `clang-N` and the other
/// tools. If it is not set, the folder is `.cache/profkit/llvms` in the home folder.
pub const LLVMS_VARIABLE: &str = "PROFKIT_LLVMS";

/// The environment variable that CI sets to 1. A test that would be skipped because an LLVM release is missing then
/// fails instead.
pub const REQUIRE_VARIABLE: &str = "PROFKIT_REQUIRE_LLVM";

/// An installed LLVM release: its compilers and profile tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llvm {
    release: u32,
    clang: PathBuf,
    clangxx: PathBuf,
    profdata: PathBuf,
    cov: PathBuf,
}

impl Llvm {
    /// Finds an installed release by its number, with each tool where [`Llvm::tool`] finds it. `None` if one of `clang`,
    /// `clang++`, `llvm-profdata` and `llvm-cov` is missing.
    pub fn find(release: u32) -> Option<Llvm> {
        let tool = |name: &str| Llvm::tool(name, release);
        Some(Llvm {
            release,
            clang: tool("clang")?,
            clangxx: tool("clang++")?,
            profdata: tool("llvm-profdata")?,
            cov: tool("llvm-cov")?,
        })
    }

    /// Finds a tool of a release: `NAME-N` on `PATH`, the name without the number in `/usr/lib/llvm-N/bin`, or `NAME-N`
    /// where `.ci/llvms` has laid it.
    pub fn tool(name: &str, release: u32) -> Option<PathBuf> {
        let numbered = format!("{name}-{release}");
        let elsewhere = || {
            [
                Some(format!("/usr/lib/llvm-{release}/bin/{name}").into()),
                laid_folder().map(|folder| folder.join("bin").join(&numbered)),
            ]
        };
        on_path(&numbered).or_else(|| {
            elsewhere()
                .into_iter()
                .flatten()
                .find(|path| path.is_file())
        })
    }

    /// Returns the releases of [`RELEASES`] that are installed on this machine.
    pub fn installed() -> Vec<Llvm> {
        RELEASES.into_iter().filter_map(Llvm::find).collect()
    }

    /// The major number of the LLVM release.
    pub fn release(&self) -> u32 {
        self.release
    }

    /// The path of the C compiler.
    pub fn clang(&self) -> &Path {
        &self.clang
    }

    /// The path of the C++ compiler.
    pub fn clangxx(&self) -> &Path {
        &self.clangxx
    }

    /// The path of `llvm-profdata`.
    pub fn profdata(&self) -> &Path {
        &self.profdata
    }

    /// The path of `llvm-cov`.
    pub fn cov(&self) -> &Path {
        &self.cov
    }
}

fn laid_folder() -> Option<PathBuf> {
    let named = std::env::var_os(LLVMS_VARIABLE).map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/profkit/llvms")))
}

/// Prints the reason why a test is skipped.
///
/// # Panics
/// If [`REQUIRE_VARIABLE`] is 1, because a missing tool is a failure then.
pub fn skip(reason: &str) {
    assert!(
        std::env::var_os(REQUIRE_VARIABLE).is_none_or(|value| value != "1"),
        "{reason}, and {REQUIRE_VARIABLE}=1 forbids skipping"
    );
    // The test harness hides the output of `eprintln!`, so nobody would notice that the test was skipped. So the
    // message is written to stderr directly.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Returns the LLVM release with this number. If it is not installed, calls [`skip`] with the reason and returns from
/// the test. In a loop, pass `continue` as the second argument, so that a missing release only skips its own iteration.
///
/// ```
/// # use profkit_testkit::require_or_skip;
/// fn merges_like_llvm_22() {
///     let llvm = require_or_skip!(22);
///     assert_eq!(llvm.release(), 22);
/// }
/// # if std::env::var_os("PROFKIT_REQUIRE_LLVM").is_none() { merges_like_llvm_22() }
/// ```
#[macro_export]
macro_rules! require_or_skip {
    ($release:expr) => {
        $crate::require_or_skip!($release, return)
    };
    ($release:expr, $leave:tt) => {
        match $crate::Llvm::find($release) {
            Some(llvm) => llvm,
            None => {
                $crate::skip(&format!("LLVM {} is not installed", $release));
                $leave;
            }
        }
    };
}

/// Returns the value of a `Result`. If it is an error, calls [`skip`] with the error as the reason and returns from the
/// test. In a loop, pass `continue` as the second argument to skip only one iteration.
///
/// ```
/// # use profkit_testkit::{links_cxx, or_skip};
/// fn compiles_with_gcc() {
///     or_skip!(links_cxx("g++", &[]));
/// }
/// # if std::env::var_os("PROFKIT_REQUIRE_LLVM").is_none() { compiles_with_gcc() }
/// ```
#[macro_export]
macro_rules! or_skip {
    ($answer:expr) => {
        $crate::or_skip!($answer, return)
    };
    ($answer:expr, $leave:tt) => {
        match $answer {
            Ok(value) => value,
            Err(reason) => {
                $crate::skip(&reason);
                $leave;
            }
        }
    };
}

/// Returns the path of a program in the folders of `PATH`; `None` if no folder contains it.
pub fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
