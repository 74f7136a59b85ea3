//! The integration tests of this crate, linked as one program: linking one for each file took most of the time of a build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod autofdo;
mod contexts;
mod discriminators;
mod kernel;
mod layout;
mod llvm_profgen;
mod module;
mod perf_report;
mod probes;
mod support;
