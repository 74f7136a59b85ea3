//! Merges MIP files: raw files into the profile of their image, and several profiles of one image into one.
//!
//! Raw files of one image have the same records at the same places, so they are not parsed record by record. Instead,
//! the profile's functions are turned once into a *plan*: which parts of the record section are coverage bytes, unary
//! counters, or pairs of a call count and the ordinal of the first call. Each file is then added part by part to plain
//! arrays ([`RecordSums`]). Every worker has arrays of its own; at the end they are added up and written to the
//! profile. All sums are commutative, so neither the order of inputs nor the number of threads changes the result.
mod engine;
mod sum;
#[cfg(test)]
mod tests;

pub use engine::{MipMergeOptions, MipOutcome, MipTarget, merge_mip};
pub use profkit_data::mip::plan::RecordPlan;
pub use profkit_data::mip::{RecordSums, Refusal, add_profile};
pub(crate) use sum::{MipSum, collect};
