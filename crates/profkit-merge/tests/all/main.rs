//! The integration tests of this crate, linked as one program: linking one for each file took most of the time of a build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;
mod driver;
mod fixtures;
mod heap_parts;
mod join;
mod laws;
mod mip_parts;
mod oracle;
mod parts;
mod sample_parts;
mod schedules;
mod traces;
