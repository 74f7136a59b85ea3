//! Finds out whether a tool works on this machine by using it. The presence of a compiler does not mean that its
//! headers and run-time libraries are installed.
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

/// Checks whether a compiler with these arguments compiles and links a C program that includes a header of the C
/// library. The result is remembered until the process ends.
///
/// # Errors
/// The part that does not work, and the first line that the compiler printed about it. Pass it to [`skip`](crate::skip)
/// as the reason.
pub fn links_c(compiler: impl AsRef<OsStr>, arguments: &[&str]) -> Result<(), String> {
    links(compiler.as_ref(), arguments, "c", C)
}

/// Checks the same as [`links_c`] for a C++ program, which includes the standard library's headers and uses exceptions.
///
/// # Errors
/// The same as [`links_c`].
pub fn links_cxx(compiler: impl AsRef<OsStr>, arguments: &[&str]) -> Result<(), String> {
    links(compiler.as_ref(), arguments, "c++", CXX)
}

/// Checks whether the clang of a release links programs with counters, for which it needs its profile run-time library.
///
/// # Errors
/// The same as [`links_c`].
pub fn has_profile_runtime(llvm: &Llvm) -> Result<(), String> {
    links_c(llvm.clang(), &["-fprofile-instr-generate"])
}

/// Checks whether the clang of a release links C++ programs with heap profiling, for which it needs a run-time library.
///
/// # Errors
/// The same as [`links_c`].
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
            said.map_err(|reason| {
                format!("{name} cannot link a program written in {language}: {reason}")
            })
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
        // If the compiler does not read its input, writing to it fails. The compiler has then written the reason to
        // stderr.
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
            missing.starts_with("no-such-compiler -O1 cannot link a program written in c: "),
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
        // The answer is remembered for each list of arguments separately.
        assert_eq!(links_cxx("c++", &["-nostdinc++"]).unwrap_err(), header);
        assert_eq!(links_cxx("c++", &[]), Ok(()));
    }
}
