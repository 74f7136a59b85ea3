//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! The numbers and names that LLVM-based compilers define for their profiles: magic numbers, version words, variant
//! flags, section names and record layouts. The run-time library, the readers and the writers of profkit take these
//! definitions from this crate, so each definition exists only once. The crate contains no other code.
//!
//! The documentation of each item that LLVM defines names its source in LLVM. "LLVM" means llvm-project.
//! `InstrProfData.inc` is `llvm/include/llvm/ProfileData/InstrProfData.inc`; `InstrProf.h` is in the same folder.
#![no_std]
#![forbid(unsafe_code)]

pub mod indexed;
pub mod mip;
pub mod raw;
pub mod sample;
pub mod sections;
pub mod value_kind;
pub mod variant;

/// The source text of some modules. The profkit command contains these texts, so that a user without profkit's sources
/// can compile the run-time libraries for another target.
#[cfg(feature = "source")]
pub mod source {
    /// The source text of the module [`mip`](crate::mip). When the MIP run-time library is compiled for a target, this
    /// module alone takes the place of this crate, because the library needs no other module.
    pub const MIP: &str = include_str!("mip.rs");
    /// The source text of the module [`raw`](crate::raw). The run-time library that writes raw profiles is compiled with it.
    pub const RAW: &str = include_str!("raw.rs");
    /// The source text of the module [`variant`](crate::variant). The run-time library that writes raw profiles is
    /// compiled with it.
    pub const VARIANT: &str = include_str!("variant.rs");
}
