//! Counts the parts of a MIP profile that a version of the format cannot hold.
use super::model::{Function, MipProfile};
use crate::loss_counts::fmt_counts;
use std::fmt;

/// The number of parts that were left out of a file because its version cannot hold them. Version 9 can hold
/// everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// The number of functions whose source location was left out, wholly or partly.
    pub locations: u64,
    /// The number of blocks for which the file states only whether any run executed the block. How many runs executed
    /// it was left out.
    pub block_runs: u64,
    /// The number of functions whose smallest ordinal of a first call ([`Function::order_min`]) was left out.
    pub order_minima: u64,
}

impl Losses {
    /// Whether the file holds the whole profile: nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the counts that are not 0, each with a plural noun for messages. The iterator is empty if and only if
    /// nothing was left out.
    pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.locations, "source locations"),
            (self.block_runs, "numbers of runs of blocks"),
            (self.order_minima, "smallest ordinals of first calls"),
        ]
        .into_iter()
        .filter(|&(count, _)| count != 0)
    }

    /// Returns the losses of writing version 8. `is_whole` returns whether the complete source location of a function
    /// is written.
    pub(super) fn of_version_8(profile: &MipProfile, is_whole: impl Fn(&Function) -> bool) -> Self {
        let mut losses = Losses::default();
        for function in &profile.functions {
            losses.locations += u64::from(function.location.is_some() && !is_whole(function));
            losses.order_minima += u64::from(function.order_min.is_some());
            let blocks = function.blocks.iter();
            losses.block_runs += blocks.filter(|block| block.runs > 1).count() as u64;
        }
        losses
    }
}

/// Writes the [`counts`](Losses::counts) in one line, or `nothing` if there are none.
impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_counts(f, self.counts())
    }
}
