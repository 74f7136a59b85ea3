//! The file that compilers and cargo start to come back to this program.
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the file that starts this program, where that is not the file of the process: a script whose interpreter is the
/// process, for example. Only the first call has an effect.
pub fn set_program(path: PathBuf) {
    let _ = PROGRAM.set(path);
}

pub(crate) fn this_program() -> io::Result<PathBuf> {
    match PROGRAM.get() {
        Some(path) => Ok(path.clone()),
        None => std::env::current_exe(),
    }
}
