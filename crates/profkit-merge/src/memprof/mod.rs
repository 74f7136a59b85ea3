//! Merging heap profiles ([`merge_heap`]).
//!
//! Raw dumps are added up by call stack ([`RawContexts`]). An address is stored as a build id and a place in the module,
//! so that runs that were loaded at different addresses have the same stacks. The sum is symbolised once and becomes a
//! profile. Profiles are added up by call stack, too ([`MemProfSum`]).
//!
//! Blocks are added as LLVM adds them (`MemInfoBlock::Merge`), in the order of inputs. Totals, counts, minima and maxima
//! do not depend on that order. As in LLVM, the last timestamps and CPUs do, and also the counts of overlaps and same
//! CPUs; and weights do not apply.
//!
//! # What differs from LLVM
//! | matter | LLVM | here |
//! |---|---|---|
//! | the second and later profiles of a merge | dropped in 21 and 22 | added |
//! | the same context in two profiles | occurs twice (up to 20) | added up |
//! | most accesses, largest size (14, 15) | the smaller value is kept | the larger value is kept |
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
