//! Counts of what a version cannot hold.
use super::model::{Function, MipProfile};

/// Counts of what was left out of a file because its version cannot hold it. Version 9 can hold everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// The number of functions whose source location, or a part of it, was left out.
    pub locations: u64,
    /// The number of blocks for which the number of runs was left out. Only whether any run executed the block was
    /// written.
    pub block_runs: u64,
    /// The number of functions whose smallest ordinal was left out.
    pub order_minima: u64,
}

impl Losses {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The losses of writing version 8. `is_whole` returns whether the whole source location of a function is written.
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
