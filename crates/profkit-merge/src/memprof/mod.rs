//! Merges heap profiles ([`merge_heap`]).
//!
//! Raw dumps are added up by call stack ([`RawContexts`]). An address is stored as the build id of its module and an
//! address in this module, so that call stacks are equal even if the runs were loaded at different addresses. The sum
//! is symbolised once and becomes a profile. Profiles are added up by call stack, too ([`MemProfSum`]).
//!
//! The memory statistics of a call stack are added as LLVM adds them (`MemInfoBlock::Merge`), in the order of inputs.
//! Totals, counts, minima and maxima do not depend on this order. The last timestamps and CPUs, and the counts of
//! overlaps and of equal CPUs, depend on it, as in LLVM. Weights are ignored, as in LLVM. Parts of merges and merges that
//! do not depend on the order of inputs have a rule for these too (`unordered.rs`); the dumps of one file are added as
//! LLVM adds them there as well.
//!
//! # Differences from LLVM
//! | situation | LLVM | profkit |
//! |---|---|---|
//! | a merge has several profiles | the second and later ones are dropped (21 and 22) | all are added |
//! | two profiles have the same context | the result has the context twice (up to 20) | the contexts are added up |
//! | maximum of accesses or sizes | the smaller value is kept (14, 15) | the larger value is kept |
mod engine;
mod place;
mod sum;
#[cfg(test)]
mod tests;
mod unordered;

pub(crate) use engine::{Heap, HeapWorker, is_heap_profile};
pub use engine::{HeapOutcome, HeapParts, merge_heap};
pub use place::{SectionChoice, SectionError, place_section};
pub use profkit_data::memprof::raw::{
    Addresses, ContextRef, Module, ModuleId, Modules, RawContexts, Skipped,
};
pub use sum::{ContextRule, MemProfSum};
pub(crate) use unordered::{HeapSum, SectionSum};
