//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! MIP for whole builds: programs that take the place of a compiler ([`cc`]), of rustc and its linker ([`cargo`]), and
//! of the assembler that GCC starts. They instrument the code on its way to the assembler with
//! [`profkit_mip::instrument`], and link the [`runtime`], which this crate contains or compiles.
//!
//! In the crate `profkit`, the modules of this crate are in `profkit::mip`: `profkit::mip::cc` and so on.
#![deny(missing_docs)]

pub mod cargo;
pub mod cc;
mod objects;
pub mod runtime;
mod this_program;

pub use this_program::set_program;
