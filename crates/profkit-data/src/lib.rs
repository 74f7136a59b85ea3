//! Readers and writers for the profiles of LLVM-based compilers.
//!
//! Every format has a *view* that borrows the file's bytes, an *owned model*, and a *writer*, side by side in one
//! folder. Nothing here opens files, starts threads or prints.
//!
//! Promise for hostile input: no reader panics, and none allocates by a count that the file claims. Every
//! [`Error`] knows its absolute offset, the structure that was being read, what was found and what was expected.
#![forbid(unsafe_code)]

pub mod bytes;
mod decimal;
pub mod detect;
mod error;
pub mod hash_table;
mod structure;

pub mod ids;
pub mod instr;
pub mod limits;
pub mod memprof;
pub mod mip;
pub mod names;
pub mod sample;
pub mod summary;
pub mod tables;
mod yaml;

pub use error::{Error, ErrorKind, Result};
pub use structure::Structure;
