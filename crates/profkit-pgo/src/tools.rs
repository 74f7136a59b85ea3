//! The compilers.
use crate::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The releases of LLVM that are looked for, the newest first.
const RELEASES: std::ops::RangeInclusive<u32> = 13..=23;

/// A clang with its C++ driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clang {
    /// The C compiler.
    pub c: PathBuf,
    /// The C++ compiler.
    pub cxx: PathBuf,
    /// The release of LLVM.
    pub release: u32,
}

/// What compiles the build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// `None`: no clang is installed, and C and C++ are compiled as always.
    pub clang: Option<Clang>,
    /// The release of rustc's LLVM; `None` without rustc.
    pub rustc: Option<u32>,
}

impl Tools {
    /// Finds the compilers. `named` is the clang that the user wants; otherwise it is the one of `CC`, `clang`, or the newest
    /// `clang-N`. `toolchain` is that of a call of cargo, such as `+nightly`. With `like_rustc` clang is the first of these
    /// whose objects may be linked with those of rustc, if there is one.
    ///
    /// # Errors
    /// If there is none, or if the named program is no clang.
    pub fn find(
        named: Option<&OsStr>,
        toolchain: Option<&OsStr>,
        like_rustc: bool,
    ) -> Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let words = toolchain.into_iter().chain([OsStr::new("-vV")]);
        let words: Vec<&OsStr> = words.collect();
        let rustc = number_after(&said(&rustc, &words), "LLVM version: ");
        let clang = match named {
            Some(name) => match found(name) {
                Some(clang) => Some(clang),
                None => return Err(Error::NoCompiler(Some(name.to_string_lossy().into_owned()))),
            },
            None => {
                let of_environment = std::env::var_os("CC").filter(|value| !value.is_empty());
                let numbered = RELEASES
                    .rev()
                    .map(|release| format!("clang-{release}").into());
                let names = of_environment
                    .into_iter()
                    .chain(["clang".into()])
                    .chain(numbered);
                let mut all = names.filter_map(|name: OsString| found(&name)).peekable();
                let first = all.peek().cloned();
                let fits =
                    |clang: &Clang| rustc.is_none_or(|rustc| raw(clang.release) == raw(rustc));
                match like_rustc {
                    true => all.find(fits).or(first),
                    false => first,
                }
            }
        };
        match (Tools { clang, rustc }) {
            Tools {
                clang: None,
                rustc: None,
            } => Err(Error::NoCompiler(None)),
            tools => Ok(tools),
        }
    }

    /// Whether objects of clang may be linked with those of rustc: both write records of one raw version.
    #[must_use]
    pub fn can_mix(&self) -> bool {
        match (&self.clang, self.rustc) {
            (Some(clang), Some(rustc)) => raw(clang.release) == raw(rustc),
            _ => false,
        }
    }
}

/// The version of raw profiles of a release.
fn raw(release: u32) -> u32 {
    match release {
        ..=13 => 7,
        14..=17 => 8,
        18 => 9,
        19..=22 => 10,
        _ => 11,
    }
}

/// The releases whose raw profiles have the version of this one, for people.
pub(crate) fn releases_like(release: u32) -> String {
    let like: Vec<String> = RELEASES
        .filter(|&other| raw(other) == raw(release))
        .map(|other| other.to_string())
        .collect();
    like.join(", ")
}

fn said(program: &OsStr, arguments: &[&OsStr]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map_or_else(String::new, |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

fn number_after(text: &str, words: &str) -> Option<u32> {
    let (_, rest) = text.split_once(words)?;
    let digits = rest
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok()
}

fn found(name: &OsStr) -> Option<Clang> {
    let c = on_path(name)?;
    let text = said(c.as_os_str(), &[OsStr::new("--version")]);
    if text.contains("Apple clang") {
        return None;
    }
    let release = number_after(&text, "clang version ")?;
    let file = c.file_name()?.to_str()?;
    let cxx = c.with_file_name(file.replacen("clang", "clang++", 1));
    let cxx = if cxx.is_file() { cxx } else { c.clone() };
    Some(Clang { c, cxx, release })
}

/// The file that the shell would start.
pub(crate) fn on_path(name: &OsStr) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let folders = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(name));
    files.find(|path| path.is_file())
}
