//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! MIP, the machine-level profile that profkit collects itself. This crate contains three parts: the instrumenter,
//! which changes the assembly that compilers write; empty profiles of programs, to which runs are added; and the
//! conversion of MIP profiles to inputs for compilers (block clusters, sample profiles). The crate profkit-mip-driver
//! has the programs that use the instrumenter in place of a compiler, and the runtime.
#![deny(missing_docs)]

pub mod asm;
pub mod create;
pub mod instrument;
pub mod profiles;
pub mod use_;
