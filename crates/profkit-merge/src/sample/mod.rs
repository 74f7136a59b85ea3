//! Merges sample profiles: many inputs to one [`SampleProfile`](profkit_data::sample::SampleProfile), with the same
//! kind of [`Report`](crate::Report) as for instrumentation profiles.
//!
//! Readers add functions directly to the sum, so the memory used depends on the size of the result and not on the
//! number of inputs. Each worker sums up neighbouring inputs, and these sums are then added in order. Sometimes the
//! order of inputs matters: for example, if a function has different checksums in two inputs, the record of the first
//! input is kept. Such inputs are read again at the end and added one by one. In merges that do not depend on the order of
//! inputs, such functions are kept apart instead until all inputs are known.
mod engine;
mod free;
mod options;
mod ordered;
mod strategy;
#[cfg(test)]
mod tests;
mod worker;

pub use engine::{SampleConflict, SampleOutcome, merge_sample};
pub(crate) use free::{SampleSum, collect};
pub use options::SampleMergeOptions;
