//! Merging sample profiles: many inputs to one [`SampleProfile`](profkit_data::sample::SampleProfile), with the same
//! [`Report`](crate::Report) as for instrumentation profiles.
//!
//! Readers add what they read to the sum directly, function by function, so that memory is that of the result and does
//! not grow with the number of inputs. Each worker has a sum of its own over inputs that follow one another; these are
//! added up in order. Where the order of inputs matters (a function whose checksums differ: the first one stays), only
//! the inputs in question are read again, one by one.
mod engine;
mod options;
mod ordered;
mod strategy;
#[cfg(test)]
mod tests;
mod worker;

pub use engine::{SampleConflict, SampleMergeError, SampleOutcome, merge_sample};
pub use options::SampleMergeOptions;
