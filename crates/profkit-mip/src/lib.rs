//! MIP, the machine-level profile that profkit collects itself: the instrumenter for compilers' assembly, and what is
//! made of a MIP profile (function orders, block clusters, sample profiles).
#![deny(missing_docs)]

pub mod asm;
pub mod diff;
pub mod instrument;
pub mod order;
pub mod use_;
