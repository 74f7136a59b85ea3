//! Merges MIP files: raw files into the profile of their image, and several profiles of one image into one.
//!
//! All raw files of an image have the same records at the same offsets, so they are not parsed record by record.
//! Instead, a *plan* is made once from the functions of the profile. It shows which bytes of the record section are
//! coverage bytes, unary counters, or counts with ordinals. Each raw file is then added to plain arrays
//! ([`RecordSums`]), one range of bytes after the other. Every worker has arrays of its own; at the end the arrays are
//! added to each other and to the profile. All sums are commutative, so neither the order of inputs nor the number of
//! threads changes the result.
mod edges;
mod engine;
mod plan;
mod profile;
mod sums;
#[cfg(test)]
mod tests;

pub use engine::{MipMergeOptions, MipOutcome, MipTarget, merge_mip};
pub use plan::RecordPlan;
pub use profile::{Refused, add_profile};
pub use sums::RecordSums;
