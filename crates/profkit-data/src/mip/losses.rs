//! What a version cannot hold.
use super::model::{Function, MipProfile};

/// What was left out of a file because its version has no place for it. Version 9 holds everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Functions whose source location was left out, or a part of it.
    pub locations: u64,
    /// Blocks of which it is kept whether they were run, and not in how many runs.
    pub block_runs: u64,
    /// Functions whose smallest ordinal was left out.
    pub order_minima: u64,
}

impl Losses {
    /// Whether everything was written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those of version 8. `is_whole` says whether the location of a function that has one is written whole.
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
