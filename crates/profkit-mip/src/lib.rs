//! MIP, the machine-level profile that profkit collects itself: the instrumenter for compilers' assembly, a compiler
//! driver that instruments what it compiles, the runtime of such programs, and what a compiler can use of a MIP profile
//! (block clusters, sample profiles).
#![deny(missing_docs)]

pub mod asm;
pub mod cc;
pub mod create;
pub mod instrument;
pub mod runtime;
pub mod use_;
