//! Sums over the records of a profile. The memory does not grow with the number of records.
use crate::doctor::{is_full_site, oldest_for_record};
use crate::heat::{HeatCounts, HeatLimits};
use crate::names;
use crate::ranking::{FunctionNumbers, FunctionOrder, Ranking};
use profkit_data::instr::Record;
use profkit_data::releases::Release;
use profkit_data::summary::{Summary, SummaryBuilder};
use std::cmp::Reverse;

/// Sums over all records.
#[derive(Debug, Default)]
pub struct Totals {
    /// The number of records.
    pub records: u64,
    /// The number of records with a marker, "hot" or "warm", instead of counts.
    pub pseudo_records: u64,
    /// The sum of all counters of records without a marker.
    pub sum: u128,
    /// The summary of the records without context sensitivity, and the summary of the context-sensitive records.
    stages: [SummaryBuilder; 2],
    /// The number of context-sensitive records.
    pub context_sensitive: u64,
    two_stages: bool,
    /// For each value kind, the numbers of value sites and values.
    pub values: [ValueTotals; 3],
    /// The number of records with MC/DC bitmaps.
    pub bitmap_records: u64,
    /// The size of all bitmaps in bytes.
    pub bitmap_bytes: u64,
    /// The number of records with uniformity bits, which only functions of GPU programs have.
    pub uniformity_records: u64,
    /// The functions that come first when functions are sorted by the order of the ranking.
    pub ranking: Ranking,
    /// The number of records that have counts instead of a marker, and at least one counter above 0.
    pub functions_entered: u64,
    /// The number of counters that are not 0.
    pub counters_above_zero: u64,
    /// The oldest LLVM release that can read all records from a text profile. `None` before the first record.
    pub oldest_text_reader: Option<Release>,
    /// The distribution of the counter sums of the records.
    sums: SummaryBuilder,
    /// The largest counters of the records, by stage as in `stages`.
    largest: [SummaryBuilder; 2],
    /// The numbers of hot, warm and cold functions; all 0 before [`finish`](Self::finish).
    pub heat: HeatCounts,
}

/// The shares of all counts for which [`Totals::shares`] is computed, in millionths: 90, 99 and 99.9 percent.
pub const SHARES: [u32; 3] = [900_000, 990_000, 999_000];

/// A share of all counts, and how many of the hottest functions together reach it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The share in millionths.
    pub millionths: u64,
    /// The number of functions.
    pub functions: u64,
}

impl Share {
    /// Computes, for each of [`SHARES`], how many of the hottest functions together reach this share of all counts.
    /// Among functions with equal counts, either all are included or none. The result is empty if `sum`, the sum of all
    /// counts, is 0 or needs more than 64 bits.
    pub(crate) fn of(sum: u128, counts: SummaryBuilder) -> Vec<Self> {
        if sum == 0 || u64::try_from(sum).is_err() {
            return Vec::new();
        }
        let cutoffs = counts.finish_with(&SHARES).cutoffs.into_iter();
        cutoffs
            .map(|cutoff| Share {
                millionths: cutoff.cutoff,
                functions: cutoff.blocks,
            })
            .collect()
    }
}

/// The numbers of value sites and values of one value kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueTotals {
    /// The number of sites.
    pub sites: u64,
    /// The number of sites at which a value was seen.
    pub sites_with_values: u64,
    /// The number of values at all sites.
    pub values: u64,
    /// The number of sites with as many values as LLVM's runtime or a merge keeps: others may be missing.
    pub full_sites: u64,
}

impl Totals {
    /// Makes empty totals. `ranking` keeps the first functions of an order; `two_stages` is whether the profile has
    /// context-sensitive records.
    pub fn new(ranking: Ranking, two_stages: bool) -> Self {
        Totals {
            two_stages,
            ranking,
            ..Totals::default()
        }
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record) {
        self.records += 1;
        self.oldest_text_reader = self.oldest_text_reader.max(Some(oldest_for_record(record)));
        // In a profile without context-sensitive records, the bit that marks them is an ordinary part of the hash.
        let context_sensitive = self.two_stages && record.func_hash.is_context_sensitive();
        self.context_sensitive += u64::from(context_sensitive);
        if record.is_pseudo() {
            self.pseudo_records += 1;
        } else {
            let numbers = numbers(record);
            let stage = usize::from(context_sensitive);
            if let (Some(all), Some(largest)) =
                (self.stages.get_mut(stage), self.largest.get_mut(stage))
            {
                all.add_counts(&record.counts);
                largest.add_count(numbers.max);
            }
            let sum = numbers.sum;
            self.sum += sum;
            self.functions_entered += u64::from(sum > 0);
            let above_zero = record.counts.iter().filter(|&&count| count > 0).count();
            self.counters_above_zero += above_zero as u64;
            self.sums.add_count(u64::try_from(sum).unwrap_or(u64::MAX));
            let hash = Some(record.func_hash);
            self.ranking.offer_with_hash(&record.name, hash, numbers);
        }
        for ((_, sites), totals) in record.values.kinds().zip(&mut self.values) {
            totals.sites += sites.site_count() as u64;
            totals.values += sites.entries().len() as u64;
            let with_values = sites.sites().filter(|site| !site.is_empty()).count();
            totals.sites_with_values += with_values as u64;
            let full = sites.sites().filter(|site| is_full_site(site.len()));
            totals.full_sites += full.count() as u64;
        }
        self.bitmap_records += u64::from(!record.bitmap.is_empty());
        self.bitmap_bytes += record.bitmap.len() as u64;
        self.uniformity_records += u64::from(!record.uniformity.is_empty());
    }

    /// Returns, for each of [`SHARES`], how many of the hottest functions together reach this share of all counts. The
    /// result is empty if no function ran, or if the sum of all counters needs more than 64 bits.
    pub fn shares(&self) -> Vec<Share> {
        Share::of(self.sum, self.sums.clone())
    }

    /// The summaries of the records without and with context sensitivity. The second summary is `None` if the profile
    /// has no context-sensitive records. Also sets [`heat`](Self::heat), for which each stage has limits of its own.
    pub fn finish(&mut self) -> (Summary, Option<Summary>) {
        let summaries = std::mem::take(&mut self.stages).map(SummaryBuilder::finish);
        for (summary, largest) in summaries.iter().zip(&mut self.largest) {
            self.heat.add_all(&HeatLimits::of(summary), largest);
        }
        let [first, second] = summaries;
        (first, (self.context_sensitive > 0).then_some(second))
    }
}

/// The sum of a record's counters.
pub fn counter_sum(record: &Record) -> u128 {
    record.counts.iter().map(|&count| u128::from(count)).sum()
}

/// The numbers of a record, by which functions are sorted. All are 0 for a pseudo record, which has a marker in place
/// of counts.
pub fn numbers(record: &Record) -> FunctionNumbers {
    if record.is_pseudo() {
        return FunctionNumbers::default();
    }
    FunctionNumbers {
        sum: counter_sum(record),
        max: record.counts.iter().copied().max().unwrap_or(0),
        entry: record.counts.first().copied().unwrap_or(0),
    }
}

/// Sorts records. Equal records keep their order.
pub fn sort_records(records: &mut [Record], order: FunctionOrder) {
    match order {
        FunctionOrder::Sum => records.sort_by_key(|record| Reverse(numbers(record).sum)),
        FunctionOrder::Max => records.sort_by_key(|record| Reverse(numbers(record).max)),
        FunctionOrder::Entry => records.sort_by_key(|record| Reverse(numbers(record).entry)),
        FunctionOrder::Name => {
            records.sort_by_cached_key(|record| names::display(&record.name).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_the_functions_that_make_them() {
        let mut totals = Totals::default();
        for counts in [vec![80, 10], vec![5, 0], vec![4], vec![1], vec![0, 0]] {
            totals.add(&Record {
                counts,
                ..Record::default()
            });
        }
        let shares: Vec<_> = totals
            .shares()
            .iter()
            .map(|share| share.functions)
            .collect();
        assert_eq!(shares, [1, 3, 3]);
        assert_eq!(
            (totals.functions_entered, totals.counters_above_zero),
            (4, 5)
        );
        assert!(Totals::default().shares().is_empty());
    }
}
