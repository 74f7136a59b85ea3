//! The profile summary: totals, maxima, and the detailed summary. Each line of the detailed summary has a cutoff (a
//! share of the sum of all counts), and states how many of the hottest blocks together have this share
//! (`InstrProfSummaryBuilder` in `ProfileSummaryBuilder.cpp`, `IndexedInstrProf::Summary` in `InstrProf.h`).
use profkit_abi::indexed::{self, SUMMARY_CUTOFFS};

#[cfg(test)]
mod tests;

/// A profile summary, read from an indexed profile or computed from records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of function records (`TotalNumFunctions`).
    pub functions: u64,
    /// The number of counters (`TotalNumBlocks`).
    pub blocks: u64,
    /// The largest first counter of a function record (`MaxFunctionCount`).
    pub max_function_count: u64,
    /// The largest count of all counters (`MaxBlockCount`).
    pub max_count: u64,
    /// The largest count of a counter that is not the first of its function (`MaxInternalBlockCount`).
    pub max_internal_count: u64,
    /// The sum of all counts modulo 2^64 (`TotalBlockCount`).
    pub total_count: u64,
    /// The lines of the detailed summary, by ascending cutoff.
    pub cutoffs: Vec<SummaryCutoff>,
}

/// One line of the detailed summary. It describes the hottest blocks that together have a given share of all counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryCutoff {
    /// The cutoff of this line: a share of the sum of all counts, in millionths.
    pub cutoff: u64,
    /// The smallest count among the hottest blocks that together have the share `cutoff` of all counts
    /// (`MinBlockCount`).
    pub min_count: u64,
    /// The number of the hottest blocks that together have the share `cutoff` of all counts (`NumBlocks`).
    pub blocks: u64,
}

/// How a summary divides counts into hot, warm and cold ones (LLVM's options `-profile-summary-cutoff-hot`, `-hot-count`,
/// `-cutoff-cold` and `-cold-count`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// The share of the sum of all counts, in millionths, that the hot counts together have.
    pub hot_cutoff: u64,
    /// The share of the sum of all counts, in millionths, that the hot and warm counts together have.
    pub cold_cutoff: u64,
    /// The smallest hot count. If it is `None`, the summary supplies this count.
    pub hot_count: Option<u64>,
    /// The largest cold count. If it is `None`, the summary supplies this count.
    pub cold_count: Option<u64>,
}

impl Default for Thresholds {
    /// Returns LLVM's default thresholds: the hot counts make up 99 % of the sum of all counts, and the cold counts
    /// make up the last millionth.
    fn default() -> Self {
        Thresholds {
            hot_cutoff: 990_000,
            cold_cutoff: 999_999,
            hot_count: None,
            cold_count: None,
        }
    }
}

impl Thresholds {
    /// Returns the smallest hot count (`getHotCountThreshold`), or `None` if the summary has no line with the hot
    /// cutoff or a higher one.
    pub fn hot(&self, summary: &Summary) -> Option<u64> {
        let count = summary.count_at(self.hot_cutoff)?;
        Some(self.hot_count.unwrap_or(count))
    }

    /// Returns the largest cold count (`getColdCountThreshold`), or `None` if the summary has no line with the
    /// cold cutoff or a higher one.
    pub fn cold(&self, summary: &Summary) -> Option<u64> {
        let count = summary.count_at(self.cold_cutoff)?;
        Some(self.cold_count.unwrap_or(count))
    }
}

impl Summary {
    /// Returns the smallest count of the first line whose cutoff is at least `cutoff`, in millionths
    /// (`getEntryForPercentile`). Returns `None` if there is no such line.
    pub fn count_at(&self, cutoff: u64) -> Option<u64> {
        let mut entries = self.cutoffs.iter();
        let entry = entries.find(|entry| entry.cutoff >= cutoff)?;
        Some(entry.min_count)
    }
}

/// What a summary says about the counters of one function record, without their distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordSums {
    /// The number of counters.
    pub counters: u64,
    /// The first counter; 0 if there is none.
    pub first: u64,
    /// The largest of the other counters.
    pub max_internal: u64,
    /// The sum of all counters.
    pub sum: u128,
    /// How many counters are above 0.
    pub above_zero: u64,
}

impl RecordSums {
    /// Looks at each counter once.
    #[inline]
    pub fn of(mut counts: impl ExactSizeIterator<Item = u64>) -> Self {
        let counters = counts.len() as u64;
        let first = counts.next().unwrap_or(0);
        let mut sums = RecordSums {
            counters,
            first,
            max_internal: 0,
            sum: u128::from(first),
            above_zero: u64::from(first > 0),
        };
        for count in counts {
            if count > sums.max_internal {
                sums.max_internal = count;
            }
            sums.sum += u128::from(count);
            sums.above_zero += u64::from(count > 0);
        }
        sums
    }

    /// The largest counter.
    #[inline]
    pub fn max(&self) -> u64 {
        self.first.max(self.max_internal)
    }

    /// Whether the first counter marks the record as pseudo-hot or pseudo-warm. Such a record is no part of a summary.
    #[inline]
    pub fn is_pseudo(&self) -> bool {
        is_marker(self.first)
    }
}

impl Summary {
    /// Adds a record to everything but the cutoffs.
    #[inline]
    pub fn add_record(&mut self, record: &RecordSums) {
        self.functions += 1;
        self.blocks += record.counters;
        self.max_function_count = self.max_function_count.max(record.first);
        self.max_internal_count = self.max_internal_count.max(record.max_internal);
        self.max_count = self.max_count.max(record.max());
        // The sum modulo 2^64, so the conversion cannot fail.
        let sum = u64::try_from(record.sum & u128::from(u64::MAX)).unwrap_or(0);
        self.total_count = self.total_count.wrapping_add(sum);
    }
}

/// The meaning of the two largest possible counts, 2^64 − 1 and 2^64 − 2. The meaning depends on the LLVM release for
/// which the summary is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Markers {
    /// The meaning in LLVM 16 and later: if the first counter of a record has one of these counts, the record is
    /// pseudo-hot or pseudo-warm. Such a record is left out of the summary.
    #[default]
    PseudoRecords,
    /// The meaning in LLVM 15 and earlier: 2^64 − 1 is not a count. A counter with this value is left out of the
    /// summary, but the function of the counter is still counted. 2^64 − 2 is an ordinary count.
    InvalidCounts,
}

/// Computes a [`Summary`] from counters. Builders for parts of a profile can be [merged](Self::merge) in any order.
///
/// The builder needs 16 to 24 bytes of memory for each distinct count above 65,535, and half a megabyte after the first
/// thousand counters were added.
///
/// ```
/// use profkit_data::summary::SummaryBuilder;
///
/// let mut builder = SummaryBuilder::new();
/// builder.add_counts(&[90, 10]);
/// builder.add_counts(&[5]);
/// let summary = builder.finish();
/// assert_eq!((summary.functions, summary.blocks), (2, 3));
/// assert_eq!((summary.max_function_count, summary.total_count), (90, 105));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SummaryBuilder {
    markers: Markers,
    functions: u64,
    max_function_count: u64,
    max_internal_count: u64,
    /// The number of times that each count below [`SMALL_COUNTS`] was added. The list is empty until [`FEW_COUNTS`]
    /// counts were added.
    small: Vec<u64>,
    /// The counts of at least [`SMALL_COUNTS`] in ascending order, each with the number of times that it was added.
    runs: Vec<(u64, u64)>,
    /// Counts that were added but are not in `runs` yet: all counts as long as `small` is empty, later those of at least
    /// [`SMALL_COUNTS`].
    pending: Vec<u64>,
}

/// The limit below which counts are kept in an array that is indexed by the count. The array needs 8 bytes of memory
/// per count. With a larger limit, the array would no longer fit the cache, and adding counts would become slower.
const SMALL_COUNTS: usize = 1 << 16;
/// The number of counts to collect before the array of small counts is made. Making the array and reading it through at
/// the end costs more than all other work on a small profile.
const FEW_COUNTS: usize = 1 << 10;
/// The minimum number of counts to collect before they are sorted. (Small counts are kept in an array instead.)
const PENDING_LEN: usize = 1 << 16;

/// Whether the counters of a record mark it as pseudo-hot or pseudo-warm (`getCountPseudoKind`).
pub(crate) fn is_pseudo(counts: &[u64]) -> bool {
    counts.first().is_some_and(|&first| is_marker(first))
}

fn is_marker(count: u64) -> bool {
    matches!(count, indexed::PSEUDO_HOT | indexed::PSEUDO_WARM)
}

impl SummaryBuilder {
    /// Makes an empty builder for the summaries of LLVM 16 and later.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty builder that treats the two largest possible counts as the given LLVM releases do.
    pub fn with_markers(markers: Markers) -> Self {
        SummaryBuilder {
            markers,
            ..Self::default()
        }
    }

    /// Adds the counters of one function record. If a counter has one of the two largest possible counts, this counter
    /// or the whole record may be left out ([`Markers`]).
    pub fn add_counts(&mut self, counts: &[u64]) {
        self.add_counts_of(counts.iter().copied());
    }

    /// Does the same with counters that are not in memory as numbers.
    #[inline]
    pub fn add_counts_of(&mut self, mut counts: impl Iterator<Item = u64>) {
        let first = counts.next();
        let skipped = match self.markers {
            Markers::PseudoRecords if first.is_some_and(is_marker) => return,
            Markers::PseudoRecords => None,
            Markers::InvalidCounts => Some(u64::MAX),
        };
        self.functions += 1;
        let Some(first) = first else {
            return;
        };
        if skipped != Some(first) {
            self.max_function_count = self.max_function_count.max(first);
            self.add_count(first);
        }
        for count in counts {
            if skipped != Some(count) {
                self.max_internal_count = self.max_internal_count.max(count);
                self.add_count(count);
            }
        }
    }

    /// Adds a function of a sample profile. `head` is the number of sampled entries of the function. The caller adds
    /// the other counts of the function one by one with [`add_count`](Self::add_count).
    pub fn add_function(&mut self, head: u64) {
        self.functions += 1;
        self.max_function_count = self.max_function_count.max(head);
    }

    /// Adds one count to the summary.
    #[inline]
    pub fn add_count(&mut self, count: u64) {
        let small = usize::try_from(count)
            .ok()
            .and_then(|count| self.small.get_mut(count));
        match small {
            Some(seen) => *seen += 1,
            None => self.add_other(count),
        }
    }

    fn add_other(&mut self, count: u64) {
        self.pending.push(count);
        if self.small.is_empty() {
            if self.pending.len() >= FEW_COUNTS {
                self.small = vec![0; SMALL_COUNTS];
                self.add_again();
            }
        } else if self.pending.len() >= PENDING_LEN.max(self.runs.len()) {
            self.sort_in();
        }
    }

    /// Adds the counts in `pending` again. The array of small counts exists now, so the small counts are added to it.
    fn add_again(&mut self) {
        for count in std::mem::take(&mut self.pending) {
            self.add_count(count);
        }
    }

    fn sort_in(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_unstable();
        let pending_runs = pending.chunk_by(|one, two| one == two).filter_map(|run| {
            let &count = run.first()?;
            Some((count, run.len() as u64))
        });
        self.runs = merge_runs(self.runs.iter().copied(), pending_runs);
        pending.clear();
        self.pending = pending;
    }

    /// Adds everything that another builder contains.
    pub fn merge(&mut self, mut other: SummaryBuilder) {
        self.functions += other.functions;
        self.max_function_count = self.max_function_count.max(other.max_function_count);
        self.max_internal_count = self.max_internal_count.max(other.max_internal_count);
        if self.small.is_empty() {
            self.small = std::mem::take(&mut other.small);
            self.add_again();
        } else {
            for (seen, more) in self.small.iter_mut().zip(&other.small) {
                *seen += more;
            }
        }
        self.runs = merge_runs(self.runs.iter().copied(), other.runs.into_iter());
        for count in other.pending {
            self.add_count(count);
        }
    }

    /// Returns how many of the counts that were added are at least `least`.
    pub fn count_at_least(&mut self, least: u64) -> u64 {
        self.sort_in();
        let small = (0u64..).zip(self.small.iter().copied());
        let all = small.chain(self.runs.iter().copied());
        let counted = all.filter(|&(count, _)| count >= least);
        counted.map(|(_, seen)| seen).sum()
    }

    /// The maximum of the first counters of all records that were added so far.
    pub fn max_function_count(&self) -> u64 {
        self.max_function_count
    }

    /// Computes the summary for the sixteen cutoffs that LLVM uses.
    pub fn finish(self) -> Summary {
        self.finish_with(&SUMMARY_CUTOFFS)
    }

    /// Computes the summary for the given cutoffs, in millionths and ascending.
    pub fn finish_with(mut self, cutoffs: &[u32]) -> Summary {
        self.sort_in();
        // LLVM's total is a 64-bit number that wraps around. The cutoffs below are computed from the wrapped total.
        let (mut blocks, mut total_count, mut max_count) = (0u64, 0u64, 0);
        let mut runs = Vec::with_capacity(self.runs.len());
        let small = (0u64..).zip(self.small.iter().copied());
        runs.extend(small.filter(|&(_, seen)| seen != 0));
        runs.append(&mut self.runs);
        for &(count, seen) in &runs {
            blocks += seen;
            total_count = total_count.wrapping_add(count.wrapping_mul(seen));
            max_count = count;
        }
        let mut descending = runs.iter().rev().copied();
        let (mut walked_count, mut walked_blocks, mut last) = (0u64, 0u64, 0);
        let mut walk = |&cutoff: &u32| {
            let wanted = u128::from(total_count) * u128::from(cutoff) / 1_000_000;
            // The conversion cannot fail, because a cutoff is less than a million and the share is therefore at most
            // the total.
            let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
            while walked_count < wanted {
                let Some((count, seen)) = descending.next() else {
                    break;
                };
                walked_count = walked_count.wrapping_add(count.wrapping_mul(seen));
                walked_blocks += seen;
                last = count;
            }
            SummaryCutoff {
                cutoff: u64::from(cutoff),
                min_count: last,
                blocks: walked_blocks,
            }
        };
        let cutoffs = cutoffs.iter().map(&mut walk).collect();
        Summary {
            functions: self.functions,
            blocks,
            max_function_count: self.max_function_count,
            max_count,
            max_internal_count: self.max_internal_count,
            total_count,
            cutoffs,
        }
    }
}

/// Merges two ascending lists of counts. Each count comes with the number of times that it occurs.
fn merge_runs(
    one: impl ExactSizeIterator<Item = (u64, u64)>,
    two: impl Iterator<Item = (u64, u64)>,
) -> Vec<(u64, u64)> {
    let mut merged = Vec::with_capacity(one.len() + two.size_hint().0);
    let (mut one, mut two) = (one.peekable(), two.peekable());
    loop {
        match (one.peek(), two.peek()) {
            (Some(&(left, seen)), Some(&(right, more))) if left == right => {
                merged.push((left, seen + more));
                one.next();
                two.next();
            }
            (Some(&(left, _)), Some(&(right, _))) if left < right => merged.extend(one.next()),
            (_, Some(_)) => merged.extend(two.next()),
            (Some(_), None) => merged.extend(one.next()),
            (None, None) => return merged,
        }
    }
}
