//! Finds out, by trying it, whether something that a test needs works on this machine. A compiler's name says nothing
//! about its headers and run-time libraries.
use crate::{Llvm, heap::HEAP_FLAGS, heap::HEAP_LINK_FLAGS};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

const C: &str =
    "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return puts(\"\") < 0; }\n";
const CXX: &str = "#include <stdexcept>\n#include <string>\n#include <vector>\n\
    int main() { std::vector<std::string> all(1); try { return all.at(0).size(); } catch (std::out_of_range &) { return 1; } }\n";

/// Whether a driver with these arguments compiles and links C with the C library's headers. The answer is kept for the
/// process.
///
/// # Errors
/// What does not work, with the first line that the compiler said about it: a reason to [`skip`](crate::skip).
pub fn links_c(compiler: impl AsRef<OsStr>, arguments: &[&str]) -> Result<(), String> {
    links(compiler.as_ref(), arguments, "c", C)
}

/// [`links_c`] for C++ with the standard library's headers and exceptions.
///
/// # Errors
/// As [`links_c`].
pub fn links_cxx(compiler: impl AsRef<OsStr>, arguments: &[&str]) -> Result<(), String> {
    links(compiler.as_ref(), arguments, "c++", CXX)
}

/// Whether a release's clang links programs with counters: it has its profile run-time library.
///
/// # Errors
/// As [`links_c`].
pub fn has_profile_runtime(llvm: &Llvm) -> Result<(), String> {
    links_c(llvm.clang(), &["-fprofile-instr-generate"])
}

/// Whether a release's clang links heap-profiled C++ programs: it has the run-time library for them.
///
/// # Errors
/// As [`links_c`].
pub fn has_heap_runtime(llvm: &Llvm) -> Result<(), String> {
    links_cxx(
        llvm.clangxx(),
        &[&HEAP_FLAGS[..], &HEAP_LINK_FLAGS].concat(),
    )
}

fn links(compiler: &OsStr, arguments: &[&str], language: &str, source: &str) -> Result<(), String> {
    type Answers = HashMap<String, Result<(), String>>;
    static ANSWERS: Mutex<Option<Answers>> = Mutex::new(None);
    let name = format!(
        "{}{}",
        compiler.to_string_lossy(),
        arguments
            .iter()
            .map(|word| format!(" {word}"))
            .collect::<String>()
    );
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    answers
        .get_or_insert_default()
        .entry(format!("{language} {name}"))
        .or_insert_with(|| {
            let said = try_link(compiler, arguments, language, source);
            said.map_err(|reason| format!("{name} does not link a program in {language}: {reason}"))
        })
        .clone()
}

fn try_link(
    compiler: &OsStr,
    arguments: &[&str],
    language: &str,
    source: &str,
) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut child = Command::new(compiler)
        .args(arguments)
        .args(["-x", language, "-", "-o"])
        .arg(folder.path().join("program"))
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A compiler that does not read its input says why on stderr.
        let _ = stdin.write_all(source.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find(|line| line.contains("error"));
    Err(error
        .or(said.lines().next())
        .unwrap_or("no message")
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_work_is_named() {
        let missing = links_c("no-such-compiler", &["-O1"]).unwrap_err();
        assert!(
            missing.starts_with("no-such-compiler -O1 does not link a program in c: "),
            "{missing}"
        );
    }

    #[test]
    fn a_missing_header_and_a_missing_library_are_noticed() {
        if let Err(reason) = links_cxx("c++", &[]) {
            return crate::skip(&reason);
        }
        let header = links_cxx("c++", &["-nostdinc++"]).unwrap_err();
        assert!(header.contains("stdexcept"), "{header}");
        let library = links_cxx("c++", &["-lno-such-library"]).unwrap_err();
        assert!(library.contains("no-such-library"), "{library}");
        // The answer for the same arguments is remembered; other arguments are tried.
        assert_eq!(links_cxx("c++", &["-nostdinc++"]).unwrap_err(), header);
        assert_eq!(links_cxx("c++", &[]), Ok(()));
    }
}
