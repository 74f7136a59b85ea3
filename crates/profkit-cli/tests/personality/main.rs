//! The llvm-profdata personality against llvm-profdata 22 itself: same arguments, same files, then the same exit code,
//! standard output, standard error and output files. What may differ is in docs/formats/llvm-profdata.md; a test names
//! each such difference where it meets it.
#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test support: a panic is how a test fails"
)]

mod command_line;
mod compare;
mod damage;
mod fs_afdo;
mod harness;
mod merge;
mod profiles;
mod sample;
mod show;
