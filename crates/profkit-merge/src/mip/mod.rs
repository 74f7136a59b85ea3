//! Merging MIP: raw files into the profile of their image, and profiles of one image into one.
//!
//! Raw files of one image hold the same records at the same places, so that they are not parsed record by record: from
//! a profile's functions a *plan* is made once, which parts of the record section are coverage bytes, unary bytes or
//! counts with ordinals, and each file is added to plain arrays part by part ([`RecordSums`]). Every worker has
//! arrays of its own; at the end they are added up and go into the profile. All sums are commutative, so that neither order
//! nor threads change a result.
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
