//! The finder of installed LLVM releases.
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The releases that tests compare with, oldest first. Neighbours in this list have different raw formats.
pub const RELEASES: [u32; 6] = [13, 14, 15, 16, 19, 22];

/// The variable that CI sets to 1: a test that would be skipped for a missing LLVM then fails instead.
pub const REQUIRE_VARIABLE: &str = "PROFKIT_REQUIRE_LLVM";

/// One installed LLVM release with its compilers and profile tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llvm {
    release: u32,
    clang: PathBuf,
    clangxx: PathBuf,
    profdata: PathBuf,
    cov: PathBuf,
}

impl Llvm {
    /// Finds a release: `clang-N`, `clang++-N`, `llvm-profdata-N` and `llvm-cov-N` on `PATH`, else the same without
    /// the number in `/usr/lib/llvm-N/bin`. `None` unless all four are there.
    pub fn find(release: u32) -> Option<Llvm> {
        let tool = |name: &str| {
            let numbered = format!("{name}-{release}");
            on_path(&numbered).or_else(|| {
                let path = PathBuf::from(format!("/usr/lib/llvm-{release}/bin/{name}"));
                path.is_file().then_some(path)
            })
        };
        Some(Llvm {
            release,
            clang: tool("clang")?,
            clangxx: tool("clang++")?,
            profdata: tool("llvm-profdata")?,
            cov: tool("llvm-cov")?,
        })
    }

    /// All of [`RELEASES`] that are installed.
    pub fn installed() -> Vec<Llvm> {
        RELEASES.into_iter().filter_map(Llvm::find).collect()
    }

    /// The major release number.
    pub fn release(&self) -> u32 {
        self.release
    }

    /// The C compiler.
    pub fn clang(&self) -> &Path {
        &self.clang
    }

    /// The C++ compiler.
    pub fn clangxx(&self) -> &Path {
        &self.clangxx
    }

    /// `llvm-profdata`.
    pub fn profdata(&self) -> &Path {
        &self.profdata
    }

    /// `llvm-cov`.
    pub fn cov(&self) -> &Path {
        &self.cov
    }
}

/// Prints why a test does not run.
///
/// # Panics
/// If [`REQUIRE_VARIABLE`] is 1: there, a missing tool is a failure.
pub fn skip(reason: &str) {
    assert!(
        std::env::var_os(REQUIRE_VARIABLE).is_none_or(|value| value != "1"),
        "{reason}, and {REQUIRE_VARIABLE}=1 forbids skipping"
    );
    // Not `eprintln!`: the test harness captures that, and nobody would notice.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// The LLVM release of that number, or a return from the test after [`skip`] has said why. With `continue` as second
/// argument, the next turn of a loop: one missing release does not hide the others.
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

/// The value of a `Result`, or a return from the test after [`skip`] has printed the error, which is the reason. With
/// `continue` as second argument, the next turn of a loop.
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

/// A program on `PATH`.
pub fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
