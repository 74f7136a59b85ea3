//! Compares `profkit llvm-profdata` with llvm-profdata 22: with the same arguments and the same files, the exit code,
//! standard output, standard error and output files must be the same. docs/formats/llvm-profdata.md lists the allowed
//! differences; where a test meets one of them, a comment names it.
#![cfg(unix)]
mod command_line;
mod compare;
mod damage;
mod fs_afdo;
mod harness;
mod merge;
mod profiles;
mod sample;
mod show;
