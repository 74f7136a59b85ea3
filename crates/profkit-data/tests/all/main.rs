//! The integration tests of this crate, linked as one program: linking one for each file took most of the time of a build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod gcov_tools;
mod hashed;
mod indexed_fixtures;
mod indexed_llvm;
mod indexed_salvage;
mod llvm_23;
mod llvm_24;
mod memprof_llvm;
mod mip_fixtures;
mod raw_llvm;
mod raw_llvm_more;
mod releases;
mod sample_fixtures;
mod sample_llvm;
mod sweep;
mod text;
