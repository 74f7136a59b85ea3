//! MIP, the machine-level profile that profkit collects itself. This crate has the instrumenter for the assembly that
//! compilers write, a compiler driver that instruments what it compiles, the runtime of such programs, and what a
//! compiler can use of a MIP profile (block clusters, sample profiles).
#![deny(missing_docs)]

pub mod asm;
pub mod cc;
pub mod create;
pub mod instrument;
pub mod runtime;
pub mod use_;
