//! The llvm-profdata personality.
use std::ffi::OsString;
use std::process::ExitCode;

/// Shown under `profkit --help`.
pub const EXAMPLE: &str = "\
Example:
  profkit llvm-profdata merge -sparse *.profraw -o out.profdata";

/// Does what LLVM's tool does with these arguments, of which the first is the program's name.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let _ = args;
    eprintln!("error: the llvm-profdata personality is not part of this build");
    ExitCode::FAILURE
}
