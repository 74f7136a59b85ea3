//! What LLVM-based compilers fix about their profiles: magics, version words, variant flags, section names and record
//! layouts. Numbers and names only, no behaviour beyond reading a bit: the runtime, the readers and the writers all
//! take them from here, so that each is written down once.
//!
//! Sources are named per item. "LLVM" stands for llvm-project; `InstrProfData.inc` is
//! `llvm/include/llvm/ProfileData/InstrProfData.inc`, `InstrProf.h` lies beside it.
#![no_std]
#![forbid(unsafe_code)]

pub mod indexed;
pub mod mip;
pub mod raw;
pub mod sample;
pub mod sections;
pub mod value_kind;
pub mod variant;

/// The source text of [`mip`], so that the MIP runtime can be compiled for another target by who has only the command.
#[cfg(feature = "source")]
pub mod source {
    /// A crate of that name with this module alone is enough for the runtime.
    pub const MIP: &str = include_str!("mip.rs");
}
