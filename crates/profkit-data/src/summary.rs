//! The profile summary: totals, maxima and how many blocks make up which share of all counts
//! (`InstrProfSummaryBuilder` in `ProfileSummaryBuilder.cpp`, `IndexedInstrProf::Summary` in `InstrProf.h`).
use profkit_abi::indexed::{self, SUMMARY_CUTOFFS};

#[cfg(test)]
mod tests;

/// A summary, read from an indexed profile or built from records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records (`TotalNumFunctions`).
    pub functions: u64,
    /// Counters (`TotalNumBlocks`).
    pub blocks: u64,
    /// The largest first counter (`MaxFunctionCount`).
    pub max_function_count: u64,
    /// The largest counter (`MaxBlockCount`).
    pub max_count: u64,
    /// The largest counter that is not a function's first (`MaxInternalBlockCount`).
    pub max_internal_count: u64,
    /// The sum of all counters modulo 2^64 (`TotalBlockCount`).
    pub total_count: u64,
    /// The detailed summary, cutoffs ascending.
    pub cutoffs: Vec<SummaryCutoff>,
}

/// How few blocks make up a share of all counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryCutoff {
    /// The share, in millionths.
    pub cutoff: u64,
    /// The least count among these blocks (`MinBlockCount`).
    pub min_count: u64,
    /// How many blocks these are (`NumBlocks`).
    pub blocks: u64,
}

/// What the two largest counts mean to the LLVM that a summary is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Markers {
    /// As the first counter they mark a pseudo-hot or pseudo-warm record, which is left out (LLVM 16 and later).
    #[default]
    PseudoRecords,
    /// 2^64 − 1 is no count anywhere and left out, but for its function; 2^64 − 2 is a count (LLVM 15 and earlier).
    InvalidCounts,
}

/// Collects counters for a [`Summary`]. Builders over parts of a profile can be [merged](Self::merge) in any order.
///
/// Memory is 16 to 24 bytes per distinct count above 65,535, and half a megabyte once any counter was added.
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
    /// How often each count below [`SMALL_COUNTS`] was seen; empty until the first.
    small: Vec<u64>,
    /// Larger counts with how often they were seen, ascending.
    runs: Vec<(u64, u64)>,
    /// Larger counts not sorted in yet.
    pending: Vec<u64>,
}

/// Counts below this are counted in an array: raising it costs 8 bytes each and, beyond the cache, time.
const SMALL_COUNTS: usize = 1 << 16;
/// How many larger counts are gathered at least before they are sorted in.
const PENDING_LEN: usize = 1 << 16;

/// Whether a record's counters are a pseudo-hot or pseudo-warm marker (`getCountPseudoKind`).
pub(crate) fn is_pseudo(counts: &[u64]) -> bool {
    matches!(
        counts.first(),
        Some(&(indexed::PSEUDO_HOT | indexed::PSEUDO_WARM))
    )
}

impl SummaryBuilder {
    /// A builder that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder that has seen nothing and takes markers as LLVM did at some time.
    pub fn with_markers(markers: Markers) -> Self {
        SummaryBuilder {
            markers,
            ..Self::default()
        }
    }

    /// Adds the counters of one record, as far as they are counts.
    pub fn add_counts(&mut self, counts: &[u64]) {
        let skipped = match self.markers {
            Markers::PseudoRecords if is_pseudo(counts) => return,
            Markers::PseudoRecords => None,
            Markers::InvalidCounts => Some(u64::MAX),
        };
        self.functions += 1;
        let Some((&first, internal)) = counts.split_first() else {
            return;
        };
        if skipped != Some(first) {
            self.max_function_count = self.max_function_count.max(first);
            self.add_count(first);
        }
        for &count in internal {
            if skipped != Some(count) {
                self.max_internal_count = self.max_internal_count.max(count);
                self.add_count(count);
            }
        }
    }

    /// Adds a function of a sample profile by how often it was entered. Its counts are added each on their own.
    pub fn add_function(&mut self, head: u64) {
        self.functions += 1;
        self.max_function_count = self.max_function_count.max(head);
    }

    /// Adds one count.
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
        if self.small.is_empty() {
            self.small = vec![0; SMALL_COUNTS];
            return self.add_count(count);
        }
        self.pending.push(count);
        if self.pending.len() >= PENDING_LEN.max(self.runs.len()) {
            self.sort_in();
        }
    }

    /// Moves `pending` into `runs`.
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

    /// Adds what another builder has seen.
    pub fn merge(&mut self, mut other: SummaryBuilder) {
        self.functions += other.functions;
        self.max_function_count = self.max_function_count.max(other.max_function_count);
        self.max_internal_count = self.max_internal_count.max(other.max_internal_count);
        if self.small.is_empty() {
            self.small = std::mem::take(&mut other.small);
        } else {
            for (seen, more) in self.small.iter_mut().zip(&other.small) {
                *seen += more;
            }
        }
        self.sort_in();
        other.sort_in();
        self.runs = merge_runs(self.runs.iter().copied(), other.runs.into_iter());
    }

    /// The largest first counter so far.
    pub fn max_function_count(&self) -> u64 {
        self.max_function_count
    }

    /// The summary with LLVM's sixteen cutoffs.
    pub fn finish(self) -> Summary {
        self.finish_with(&SUMMARY_CUTOFFS)
    }

    /// The summary with these cutoffs, in millionths, ascending.
    pub fn finish_with(mut self, cutoffs: &[u32]) -> Summary {
        self.sort_in();
        // LLVM's totals are 64-bit numbers that wrap around, and the walk below is over what wrapped.
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
            // A cutoff is below a million, so the share is no more than the total.
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

/// Two ascending lists of counts and how often each was seen, as one.
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
