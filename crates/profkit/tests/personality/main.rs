//! The llvm-profdata personality against llvm-profdata 22 itself: same arguments, same files, then the same exit code,
//! standard output, standard error and output files. What may differ is in docs/formats/llvm-profdata.md; a test names
//! each such difference where it meets it.
#![cfg(unix)]

mod command_line;
mod harness;
