//! MIP, the machine-level profile that profkit collects itself: the instrumenter for compilers' assembly, and what a
//! compiler can use of a MIP profile (block clusters, sample profiles).
#![deny(missing_docs)]

pub mod asm;
pub mod instrument;
pub mod use_;
