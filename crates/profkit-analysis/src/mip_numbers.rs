//! The numbers of functions in MIP profiles, which every view shows.
use crate::heat::{Heat, HeatCounts, HeatLimits};
use crate::instr::{Share, Sums};
use crate::ranking::FunctionNumbers;
use profkit_data::mip::{Function, MipProfile};
use profkit_data::summary::SummaryBuilder;

/// What the functions of a MIP profile are compared by: the numbers of their calls if calls were counted, otherwise the
/// numbers of runs that called them.
#[derive(Clone, Debug)]
pub struct MipNumbers {
    /// Whether calls were counted.
    pub has_calls: bool,
    /// The sum over all functions.
    pub total: u128,
    /// How many of the functions with the most calls make 90, 99 and 99.9 % of all; empty if nothing was counted.
    pub shares: Vec<Share>,
    /// The numbers of hot, warm and cold functions; `None` if calls were not counted.
    pub heat: Option<HeatCounts>,
    limits: Option<HeatLimits>,
}

impl MipNumbers {
    /// Looks at all functions of a profile.
    pub fn of(profile: &MipProfile) -> Self {
        let whole = || profile.functions.iter().filter(|one| !one.is_part());
        let mut numbers = MipNumbers {
            has_calls: whole().any(|function| function.calls > 0),
            total: 0,
            shares: Vec::new(),
            heat: None,
            limits: None,
        };
        numbers.total = whole().map(|one| u128::from(numbers.count(one))).sum();
        let mut counts = SummaryBuilder::new();
        whole().for_each(|function| counts.add_count(numbers.count(function)));
        let sums: Sums = whole().map(|function| numbers.count(function)).collect();
        numbers.shares = sums.shares(numbers.total);
        if numbers.has_calls {
            numbers.limits = Some(HeatLimits::of(&counts.finish()));
            numbers.heat = whole().map(|function| numbers.heat(function)).collect();
        }
        numbers
    }

    /// The number of calls of a function, or of runs that called it. A function whose own calls were not counted has at
    /// least one call in each run that called it.
    pub fn count(&self, function: &Function) -> u64 {
        function.calls.max(function.called_runs)
    }

    /// The number of calls of a function, and whether it is only a lower bound; `None` if the profile counts no calls.
    pub fn calls(&self, function: &Function) -> Option<(u64, bool)> {
        let count = self.count(function);
        let at_least = function.has_more_calls() || count > function.calls;
        self.has_calls.then_some((count, at_least))
    }

    /// The numbers by which functions are sorted: `sum` is [`count`](Self::count), `max` the runs of the most frequent
    /// block, `entry` the number of runs that called the function.
    pub fn numbers(&self, function: &Function) -> FunctionNumbers {
        let blocks = function.blocks.iter().map(|block| block.runs);
        FunctionNumbers {
            sum: self.count(function).into(),
            max: blocks.max().unwrap_or(0).max(function.called_runs),
            entry: function.called_runs,
        }
    }

    /// The class of a function by the number of its calls; `None` if calls were not counted.
    pub fn heat(&self, function: &Function) -> Option<Heat> {
        Some(self.limits?.heat(self.count(function)))
    }
}
