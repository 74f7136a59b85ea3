//! Which functions are hot, warm or cold: one rule for all views, the one by which LLVM's compilers decide.
//!
//! The counts of a profile (counters, lines with samples, calls of a MIP profile) are sorted. The largest ones, which
//! together make 99 % of the sum of all counts, are hot; the smallest ones, which make the last millionth, are cold. A
//! function is as hot as its largest count. Profiles that only say what ran have no such classes.
use profkit_data::summary::{Summary, SummaryBuilder, Thresholds};
use std::fmt;

/// How often a function ran, compared with the rest of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Heat {
    /// All counts of the function are 0.
    #[default]
    NeverRan,
    /// The largest count of the function is among the last millionth of all counts.
    Cold,
    /// The function is neither hot nor cold.
    Warm,
    /// The function has one of the counts that together make 99 % of all counts.
    Hot,
}

impl fmt::Display for Heat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Heat::NeverRan => "never ran",
            Heat::Cold => "cold",
            Heat::Warm => "warm",
            Heat::Hot => "hot",
        })
    }
}

/// The counts at which functions become hot and cold in one profile.
///
/// ```
/// use profkit_analysis::heat::{Heat, HeatLimits};
/// use profkit_data::summary::SummaryBuilder;
///
/// let mut counts = SummaryBuilder::new();
/// counts.add_counts(&[9_000_000, 1_000_000, 50_000, 5_000, 1]);
/// let limits = HeatLimits::of(&counts.finish());
/// let classes = [9_000_000, 50_000, 1, 0].map(|largest| limits.heat(largest));
/// assert_eq!(classes, [Heat::Hot, Heat::Warm, Heat::Cold, Heat::NeverRan]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeatLimits {
    /// The smallest count that makes a function hot.
    pub hot: u64,
    /// The largest count with which a function is cold.
    pub cold: u64,
}

impl HeatLimits {
    /// Takes the limits from the summary of a profile.
    pub fn of(summary: &Summary) -> Self {
        let thresholds = Thresholds::default();
        HeatLimits {
            hot: thresholds.hot(summary).unwrap_or(u64::MAX),
            cold: thresholds.cold(summary).unwrap_or(0),
        }
    }

    /// The class of a function with this largest count.
    pub fn heat(&self, largest: u64) -> Heat {
        match largest {
            0 => Heat::NeverRan,
            largest if largest >= self.hot => Heat::Hot,
            largest if largest <= self.cold => Heat::Cold,
            _ => Heat::Warm,
        }
    }
}

/// The number of functions in each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeatCounts {
    /// The number of hot functions.
    pub hot: u64,
    /// The number of warm functions.
    pub warm: u64,
    /// The number of cold functions that ran.
    pub cold: u64,
    /// The number of functions that never ran.
    pub never_ran: u64,
}

impl HeatCounts {
    /// Counts a function.
    pub fn add(&mut self, heat: Heat) {
        *match heat {
            Heat::Hot => &mut self.hot,
            Heat::Warm => &mut self.warm,
            Heat::Cold => &mut self.cold,
            Heat::NeverRan => &mut self.never_ran,
        } += 1;
    }

    /// Adds the functions of another part of the profile.
    pub(crate) fn add_counts(&mut self, other: &HeatCounts) {
        self.hot += other.hot;
        self.warm += other.warm;
        self.cold += other.cold;
        self.never_ran += other.never_ran;
    }

    /// Counts functions whose largest counts are in `largest`.
    pub(crate) fn add_all(&mut self, limits: &HeatLimits, largest: &mut SummaryBuilder) {
        let [all, ran, hot] = [0, 1, limits.hot.max(1)].map(|least| largest.count_at_least(least));
        let above_cold =
            largest.count_at_least(limits.cold.saturating_add(1).min(limits.hot.max(1)));
        self.hot += hot;
        self.warm += above_cold.min(ran) - hot;
        self.cold += ran - above_cold.min(ran);
        self.never_ran += all - ran;
    }
}

impl Extend<Heat> for HeatCounts {
    fn extend<I: IntoIterator<Item = Heat>>(&mut self, classes: I) {
        classes.into_iter().for_each(|heat| self.add(heat));
    }
}

impl FromIterator<Heat> for HeatCounts {
    fn from_iter<I: IntoIterator<Item = Heat>>(classes: I) -> Self {
        let mut counts = HeatCounts::default();
        counts.extend(classes);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_counted_by_class_as_one_by_one() {
        let largest = [0, 0, 1, 1, 2, 5, 70_000, 70_000, 9_000_000];
        for (hot, cold) in [(5, 1), (1, 1), (u64::MAX, 0), (2, 5), (9_000_000, 70_000)] {
            let limits = HeatLimits { hot, cold };
            let mut builder = SummaryBuilder::new();
            largest.iter().for_each(|&count| builder.add_count(count));
            let mut counts = HeatCounts::default();
            counts.add_all(&limits, &mut builder);
            let one_by_one: HeatCounts = largest.iter().map(|&one| limits.heat(one)).collect();
            assert_eq!(counts, one_by_one, "{limits:?}");
        }
    }
}
