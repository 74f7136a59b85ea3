//! The part of a merge report about records that contradict each other.
use profkit_files::Inputs;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Records that were left out because they contradict the records of earlier inputs: the same function and hash, but
/// another number of counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Mismatches {
    /// The number of records in the inputs that were left out.
    pub records: u64,
    /// The sum of their counters.
    pub counts: u128,
    /// The sum of the counters of all records, with those that were left out.
    pub all_counts: u128,
    /// Which inputs contradict each other, those with the largest sums of left out counters first: at most
    /// [`MOST_SIDES`](Self::MOST_SIDES).
    pub sides: Vec<Sides>,
    /// The number of pairs of sides that are not listed.
    pub more_sides: u64,
}

/// Two sets of inputs whose records contradict each other. Each set is named by its first input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Sides {
    /// The first input whose records were kept.
    pub kept: String,
    /// The number of inputs on this side: the largest number that have one function.
    pub kept_inputs: u64,
    /// The first input whose records were left out.
    pub dropped: String,
    /// The number of inputs on this side: the largest number that have one function.
    pub dropped_inputs: u64,
    /// The number of functions whose records contradict each other.
    pub functions: u64,
    /// The sum of the counters that were left out.
    pub counts: u128,
}

impl Mismatches {
    /// The largest number of pairs of sides that are listed.
    pub const MOST_SIDES: usize = 5;
}

/// What is known of [`Mismatches`] while the results of a merge are finished one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct MismatchSums {
    pub(crate) records: u64,
    pub(crate) counts_kept: u128,
    /// By the first inputs of those that were kept and of those that were left out.
    pub(crate) sides: BTreeMap<(usize, usize), Sides>,
}

impl MismatchSums {
    pub(crate) fn add(&mut self, sides: BTreeMap<(usize, usize), Sides>) {
        for (inputs, more) in sides {
            let sum = self.sides.entry(inputs).or_default();
            sum.kept_inputs = sum.kept_inputs.max(more.kept_inputs);
            sum.dropped_inputs = sum.dropped_inputs.max(more.dropped_inputs);
            sum.functions += more.functions;
            sum.counts += more.counts;
        }
    }

    pub(crate) fn finish(self, inputs: &dyn Inputs) -> Option<Mismatches> {
        let MismatchSums {
            records,
            counts_kept,
            sides,
        } = self;
        if sides.is_empty() {
            return None;
        }
        let counts = sides.values().map(|sides| sides.counts).sum();
        let more_sides = sides.len().saturating_sub(Mismatches::MOST_SIDES) as u64;
        let mut sides: Vec<_> = sides.into_iter().collect();
        sides.sort_by_key(|(inputs, sides)| (Reverse(sides.counts), *inputs));
        let name = |input: usize| match input < inputs.len() {
            true => inputs.name(input).into_owned(),
            false => String::new(),
        };
        let sides = sides.into_iter().take(Mismatches::MOST_SIDES);
        let sides = sides.map(|((kept, dropped), sides)| Sides {
            kept: name(kept),
            dropped: name(dropped),
            ..sides
        });
        Some(Mismatches {
            records,
            counts,
            all_counts: counts_kept + counts,
            sides: sides.collect(),
            more_sides,
        })
    }
}
