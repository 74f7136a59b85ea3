//! The numbers and names that LLVM-based compilers fix for their profiles: magics, version words, variant flags,
//! section names and record layouts. The runtime, the readers and the writers all use them from here, so that each is
//! written down once. The crate has no other behaviour.
//!
//! Each item names its source. "LLVM" means llvm-project. `InstrProfData.inc` is
//! `llvm/include/llvm/ProfileData/InstrProfData.inc`; `InstrProf.h` is in the same folder.
#![no_std]
#![forbid(unsafe_code)]

pub mod indexed;
pub mod mip;
pub mod raw;
pub mod sample;
pub mod sections;
pub mod value_kind;
pub mod variant;

/// The source text of [`mip`]. With it, a user who has only the command can compile the MIP runtime for another target.
#[cfg(feature = "source")]
pub mod source {
    /// The text of the module. The runtime needs a crate named `profkit_abi` with only this module.
    pub const MIP: &str = include_str!("mip.rs");
}
