//! Programs of other machines: compiled, instrumented, assembled, linked by two linkers and run under qemu. What ran is
//! known from qemu's own log of every instruction, so that records are compared with the truth: which functions and
//! blocks ran, how often, in which order. Mach-O objects are read, not run.
//!
//! | file | what it is |
//! |---|---|
//! | `machine.rs` | machines and tools: how programs are built and run |
//! | `check.rs` | one program in one mode compared with what ran |
//! | `generated.rs` | the same for random programs |
//! | `aarch64.rs`, `arm.rs`, `mach_o.rs` | the tests |
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_possible_truncation
)]

mod aarch64;
mod arm;
mod check;
mod generated;
mod mach_o;
mod machine;
