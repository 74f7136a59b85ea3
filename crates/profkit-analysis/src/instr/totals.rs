//! Sums over the records of a profile. The memory does not grow with the number of records.
use crate::doctor::oldest_for_record;
use profkit_data::instr::Record;
use profkit_data::instr::releases::Release;
use profkit_data::summary::{Summary, SummaryBuilder};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Sums over all records.
#[derive(Debug, Default)]
pub struct Totals {
    /// The number of records.
    pub records: u64,
    /// The number of records with a marker, "hot" or "warm", instead of counts.
    pub pseudo_records: u64,
    /// The sum of all counters of records without a marker.
    pub sum: u128,
    /// The summaries of the records without context sensitivity and of those with it.
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
    /// The functions with the largest sums.
    pub hottest: Hottest,
    /// The number of records that have counts instead of a marker, and a counter above 0.
    pub functions_entered: u64,
    /// The number of counters that are not 0.
    pub counters_above_zero: u64,
    /// The oldest release that reads all records as text.
    pub oldest_text_reader: Option<Release>,
    /// The distribution of the sums of the records.
    sums: SummaryBuilder,
}

/// The shares of all counts for which [`Totals::shares`] is computed, in millionths: 90, 99 and 99.9 percent.
pub const SHARES: [u32; 3] = [900_000, 990_000, 999_000];

/// How many of the hottest functions together make a share of all counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The share in millionths.
    pub millionths: u64,
    /// The number of functions.
    pub functions: u64,
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
}

impl Totals {
    /// Makes empty totals that keep the `hot` hottest functions. `two_stages` says whether the profile has
    /// context-sensitive records.
    pub fn new(hot: usize, two_stages: bool) -> Self {
        Totals {
            two_stages,
            hottest: Hottest {
                most: hot,
                ..Hottest::default()
            },
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
            if let Some(stage) = self.stages.get_mut(usize::from(context_sensitive)) {
                stage.add_counts(&record.counts);
            }
            let sum = counter_sum(record);
            self.sum += sum;
            self.functions_entered += u64::from(sum > 0);
            let above_zero = record.counts.iter().filter(|&&count| count > 0).count();
            self.counters_above_zero += above_zero as u64;
            self.sums.add_count(u64::try_from(sum).unwrap_or(u64::MAX));
            self.hottest.offer(sum, &record.name);
        }
        for ((_, sites), totals) in record.values.kinds().zip(&mut self.values) {
            totals.sites += sites.site_count() as u64;
            totals.values += sites.entries().len() as u64;
            let with_values = sites.sites().filter(|site| !site.is_empty()).count();
            totals.sites_with_values += with_values as u64;
        }
        self.bitmap_records += u64::from(!record.bitmap.is_empty());
        self.bitmap_bytes += record.bitmap.len() as u64;
    }

    /// How many of the hottest functions together make each of [`SHARES`]. Functions with equal sums are counted
    /// together. Returns nothing if no function ran, or if the sum of all counters needs more than 64 bits.
    pub fn shares(&self) -> Vec<Share> {
        if self.sum == 0 || u64::try_from(self.sum).is_err() {
            return Vec::new();
        }
        let cutoffs = self.sums.clone().finish_with(&SHARES).cutoffs.into_iter();
        cutoffs
            .map(|cutoff| Share {
                millionths: cutoff.cutoff,
                functions: cutoff.blocks,
            })
            .collect()
    }

    /// The summaries of the records without and with context sensitivity. The second summary is `None` if the profile
    /// has no context-sensitive records.
    pub fn finish(&mut self) -> (Summary, Option<Summary>) {
        let [first, second] = std::mem::take(&mut self.stages);
        let second = (self.context_sensitive > 0).then(|| second.finish());
        (first.finish(), second)
    }
}

/// The sum of a record's counters.
pub fn counter_sum(record: &Record) -> u128 {
    record.counts.iter().map(|&count| u128::from(count)).sum()
}

/// A function with its sum of counters. If the sums of two functions are equal, the function that was seen first is the
/// greater one.
type Hot = (u128, Reverse<u64>, Vec<u8>);

/// The functions with the largest sums.
#[derive(Debug, Default)]
pub struct Hottest {
    most: usize,
    seen: u64,
    /// The heap has the coldest function on top. Of functions with equal sums, the one that was seen last is on top.
    heap: BinaryHeap<Reverse<Hot>>,
}

impl Hottest {
    fn offer(&mut self, sum: u128, name: &[u8]) {
        self.seen += 1;
        if self.heap.len() >= self.most {
            match self.heap.peek() {
                Some(Reverse((coldest, ..))) if *coldest < sum => self.heap.pop(),
                _ => return,
            };
        }
        self.heap
            .push(Reverse((sum, Reverse(self.seen), name.to_vec())));
    }

    /// Sums and names, hottest first. If sums are equal, the function that was seen first comes first.
    pub fn into_sorted(self) -> impl Iterator<Item = (u128, Vec<u8>)> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Reverse((sum, _, name))| (sum, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_the_functions_that_make_them() {
        let mut totals = Totals::new(1, false);
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
        assert!(Totals::new(1, false).shares().is_empty());
    }

    #[test]
    fn the_hottest_are_few_and_in_order() {
        let mut hottest = Hottest {
            most: 2,
            ..Hottest::default()
        };
        for (sum, name) in [(1, "a"), (5, "b"), (5, "c"), (3, "d"), (5, "e")] {
            hottest.offer(sum, name.as_bytes());
        }
        let sorted: Vec<_> = hottest.into_sorted().collect();
        assert_eq!(sorted, [(5, b"b".to_vec()), (5, b"c".to_vec())]);
    }
}
