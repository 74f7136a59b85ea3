//! Merging instrumentation profiles: many inputs to one [`InstrProfile`](profkit_data::instr::InstrProfile), with a
//! [`Report`] of what was kept, repaired and dropped.
//!
//! Nothing here opens files or prints: bytes come from an [`Inputs`], results go back as values.
//!
//! # How it works
//! Each thread has a *lane*: an accumulator and, for each raw layout that it met, one array of counter sums. The first
//! raw profile of a layout is read record by record and registered; a later one whose data records and names are the
//! same (but for addresses) is not parsed, its counters are added to the layout's array. At the end layouts go into
//! the accumulators, and these into one another. Sums are commutative and records carry the place of their first
//! occurrence, so that neither threads nor scheduling change a result.
#![forbid(unsafe_code)]

mod accumulate;
mod engine;
mod error;
mod inputs;
mod kinds;
mod layout;
mod options;
mod remap;
pub mod report;
mod traces;
mod weight;

pub use engine::{MergeOutcome, MergedProfile, merge_instr};
pub use error::{KindConflict, MergeError};
pub use inputs::{InputData, Inputs};
pub use options::{MergeOptions, NameFilter, Policy, TraceOptions, TraceSampling};
pub use remap::{Remapping, RemappingError};
pub use report::{Action, Event, LlvmCode, LlvmFault, Reason, Report, Totals};
pub use weight::{Weight, WeightError};
