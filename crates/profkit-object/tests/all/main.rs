//! The integration tests of this crate, linked as one program: linking one for each file took most of the time of a build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod correlate_bad;
mod debug_files;
mod declarations;
mod index;
mod names;
mod packed_symbols;
mod symbolize;
