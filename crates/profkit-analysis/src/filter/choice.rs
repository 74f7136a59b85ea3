//! Chooses functions or contexts by their counts.
use super::{Amount, ColdRule, Filter, Filtered, Hottest};
use std::cmp::Reverse;

/// A function or context that may be cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'p> {
    /// Orders candidates with equal sums.
    pub name: &'p [u8],
    pub sum: u128,
    pub max: u64,
    pub kept: bool,
}

impl Candidate<'_> {
    fn amount(&self) -> Amount {
        Amount {
            units: 1,
            counts: self.sum,
        }
    }

    fn cut(&mut self, reason: &mut Amount) {
        self.kept = false;
        *reason += self.amount();
    }
}

/// The kept candidates, hottest first.
pub(super) fn ranked(all: &[Candidate<'_>]) -> Vec<usize> {
    let mut order: Vec<_> = (0..).zip(all).filter(|(_, one)| one.kept).collect();
    order.sort_by_key(|(_, one)| (Reverse(one.sum), one.name));
    order.into_iter().map(|(index, _)| index).collect()
}

/// The sum over kept candidates.
pub(super) fn kept(all: &[Candidate<'_>]) -> Amount {
    let mut sum = Amount::default();
    for one in all.iter().filter(|one| one.kept) {
        sum += one.amount();
    }
    sum
}

impl Filter {
    /// Cuts candidates by their names, and notes why.
    pub(super) fn choose_by_name(
        &self,
        all: &mut [Candidate<'_>],
        keeps: impl Fn(usize) -> bool,
        filtered: &mut Filtered,
    ) {
        if !self.selects() {
            return;
        }
        for (index, one) in all.iter_mut().enumerate() {
            if !keeps(index) {
                one.cut(&mut filtered.by_name);
            }
        }
    }

    /// Cuts cold candidates. `is_cold` is the rule of the profile's summary.
    pub(super) fn choose_cold(
        &self,
        all: &mut [Candidate<'_>],
        is_cold: impl Fn(usize) -> bool,
        filtered: &mut Filtered,
    ) {
        for (index, one) in all.iter_mut().enumerate().filter(|(_, one)| one.kept) {
            let cold = match self.cold {
                None => return,
                Some(ColdRule::Summary) => is_cold(index),
                Some(ColdRule::AtMost(largest)) => one.max <= largest,
            };
            if cold {
                one.cut(&mut filtered.cold);
            }
        }
    }

    /// Cuts candidates that are not among the hottest.
    pub(super) fn choose_hottest(&self, all: &mut [Candidate<'_>], filtered: &mut Filtered) {
        if let Some(hottest) = self.hottest {
            let total = kept(all).counts;
            let mut sum = 0;
            for (rank, index) in (0..).zip(ranked(all)) {
                let is_enough = match hottest {
                    Hottest::Count(count) => rank >= count,
                    Hottest::Millionths(share) => has_share(sum, total, share),
                };
                if let Some(one) = all.get_mut(index) {
                    sum += one.sum;
                    if is_enough {
                        one.cut(&mut filtered.not_hottest);
                    }
                }
            }
        }
    }
}

impl Filtered {
    /// Notes that these candidates do not fit into a size.
    pub(super) fn cut_after<'i>(
        &mut self,
        all: &[Candidate<'_>],
        cut: impl Iterator<Item = &'i usize>,
    ) {
        for one in cut.filter_map(|&index| all.get(index)) {
            self.by_size += one.amount();
            self.kept.units -= 1;
            self.kept.counts -= one.sum;
        }
    }
}

/// Whether a part has at least this share of a whole, in millionths.
fn has_share(part: u128, whole: u128, millionths: u32) -> bool {
    // A sum of 2^64 counts of 64 bits is below 2^128. Dividing the whole first keeps the products below that.
    let (quotient, rest) = (whole / 1_000_000, whole % 1_000_000);
    let share = u128::from(millionths);
    let wanted = quotient * share + (rest * share).div_ceil(1_000_000);
    part >= wanted
}

/// The largest number of candidates, at most `most`, that fits. Larger numbers are taken not to fit if a smaller one does
/// not. `None` if not even one fits.
pub(super) fn largest_fitting<E>(
    most: usize,
    mut fits: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle)? {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(Some(low).filter(|&low| low > 0))
}
