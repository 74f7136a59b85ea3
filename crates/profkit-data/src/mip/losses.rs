//! Counts the parts of a MIP profile that a version of the format cannot hold.
use super::model::{Function, MipProfile};

losses! {
    /// The number of parts that were left out of a file because its version cannot hold them. Version 9 can hold
    /// everything.
    pub struct Losses {
        /// The number of functions whose source location was left out, wholly or partly.
        locations = "source locations",
        /// The number of blocks for which the file states only whether any run executed the block. How many runs executed
        /// it was left out.
        block_runs = "numbers of runs of blocks",
        /// The number of functions whose smallest ordinal of a first call ([`Function::order_min`]) was left out.
        order_minima = "smallest ordinals of first calls",
        /// The number of functions whose number of calls is a lower bound, which the file does not state.
        lower_bounds = "marks of lower bounds",
    }
}

impl Losses {
    /// Returns the losses of writing version 8. `is_whole` returns whether the complete source location of a function
    /// is written.
    pub(super) fn of_version_8(profile: &MipProfile, is_whole: impl Fn(&Function) -> bool) -> Self {
        let mut losses = Losses::default();
        for function in &profile.functions {
            losses.locations += u64::from(function.location.is_some() && !is_whole(function));
            losses.order_minima += u64::from(function.order_min.is_some());
            losses.lower_bounds += u64::from(function.calls_at_least);
            let blocks = function.blocks.iter();
            losses.block_runs += blocks.filter(|block| block.runs > 1).count() as u64;
        }
        losses
    }
}
