//! The integration tests of this crate, linked as one program: linking one for each file took most of the time of a build.
#![cfg(all(feature = "link", target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::cast_possible_truncation,
    clippy::incompatible_msrv,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod api;
mod faults;
mod hostile;
mod like_llvm;
mod programs;
mod servers;
mod shared;
mod support;
mod without_system;
