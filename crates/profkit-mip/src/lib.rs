//! MIP, the machine-level profile that profkit collects itself. This crate contains four parts: the instrumenter, which
//! changes the assembly that compilers write; a compiler driver that instruments the code it compiles; the runtime for
//! instrumented programs; and the conversion of MIP profiles to inputs for compilers (block clusters, sample profiles).
#![deny(missing_docs)]

pub mod asm;
pub mod cargo;
pub mod cc;
pub mod create;
pub mod instrument;
mod objects;
pub mod runtime;
pub mod use_;
