//! Tests programs of other machines: they are compiled, instrumented, assembled, linked by two linkers and run under
//! qemu. The records of a run are compared with qemu's log of every executed instruction: which functions and blocks
//! ran, how often, and in which order. Mach-O objects cannot be run, so only their code is examined.
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
