//! Merging heap profiles ([`merge_heap`]).
//!
//! Raw dumps are added up by stack of addresses ([`RawContexts`]): addresses are known by build id and place in the
//! module, so that runs at other addresses meet. Symbolised once, the sum becomes a profile. Profiles are added up by
//! call stack ([`MemProfSum`]).
//!
//! Blocks are added as LLVM adds them (`MemInfoBlock::Merge`), in the order of inputs. Totals, counts, minima and maxima
//! do not depend on that order; the last timestamps and CPUs, and the counts of overlaps and same CPUs do, as in LLVM.
//! Weights do not apply, as in LLVM.
//!
//! # What differs from LLVM
//! | matter | LLVM | here |
//! |---|---|---|
//! | the second and later profiles of a merge | dropped in 21 and 22 | added |
//! | the same context in two profiles | stands there twice (up to 20) | added up |
//! | most accesses, largest size (14, 15) | the smaller one is taken | the larger one |
mod contexts;
mod engine;
mod place;
mod sum;
#[cfg(test)]
mod tests;

pub use contexts::{Addresses, ContextRef, Module, ModuleId, Modules, RawContexts, Skipped};
pub(crate) use engine::{Heap, is_heap_profile};
pub use engine::{HeapOutcome, HeapParts, merge_heap};
pub use place::{SectionChoice, SectionError, place_section};
pub use sum::{ContextRule, MemProfSum};
