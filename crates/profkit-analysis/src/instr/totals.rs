//! Sums over the records of a profile. The memory does not grow with the number of records.
use super::shares::{Share, Sums};
use crate::doctor::{is_full_site, oldest_for_record};
use crate::heat::{HeatCounts, HeatLimits};
use crate::names;
use crate::ranking::{FunctionNumbers, FunctionOrder, Ranking};
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::instr::{InstrKind, Record};
use profkit_data::releases::Release;
use profkit_data::summary::{RecordSums, Summary, SummaryBuilder, Thresholds};
use std::cmp::Reverse;
use std::ops::Range;

/// Sums over all records.
#[derive(Debug, Default)]
pub struct Totals {
    /// The number of records.
    pub records: u64,
    /// The number of records with a marker, "hot" or "warm", instead of counts.
    pub pseudo_records: u64,
    /// The sum of all counters of records without a marker.
    pub sum: u128,
    /// The counters of the records without context sensitivity, and those of the context-sensitive records.
    stages: [Stage; 2],
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
    /// The counter sums of the records.
    sums: Sums,
    /// The numbers of hot, warm and cold functions; all 0 before [`finish`](Self::finish).
    pub heat: HeatCounts,
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

    /// Sums up an indexed profile in one pass over its bytes, without a record in memory. `ranking` makes the ranking.
    /// `visited` is called from time to time with the part of the file that will not be read again. Returns `None` if
    /// anything in the file is damaged: its records must be read one by one then, which tells what is wrong.
    ///
    /// How many functions are hot, warm and cold is decided by the summary in the file, as LLVM's compilers do. If
    /// `detailed` is true, or the file has no summary that fits its counters, the summary is computed.
    pub fn of_indexed(
        profile: &IndexedProfile<'_>,
        detailed: bool,
        ranking: impl Fn() -> Ranking,
        visited: &dyn Fn(Range<u64>),
    ) -> Option<Self> {
        let two_stages = profile.kind().contains(InstrKind::CONTEXT_SENSITIVE);
        let totals = || Totals::new(ranking(), two_stages);
        if !detailed {
            let mut totals = totals();
            let stated = [profile.summary(), profile.cs_summary()];
            for (stage, stated) in totals.stages.iter_mut().zip(stated) {
                stage.stated = stated.and_then(Stated::of);
            }
            totals.add_indexed(profile, visited)?;
            if totals.stages.iter().all(Stage::is_as_stated) {
                return Some(totals);
            }
        }
        let mut totals = totals();
        totals.add_indexed(profile, visited)?;
        Some(totals)
    }

    fn add_indexed(
        &mut self,
        profile: &IndexedProfile<'_>,
        visited: &dyn Fn(Range<u64>),
    ) -> Option<()> {
        let (mut record, mut done) = (Record::default(), 0);
        let sound = profile.scan(|mut names| {
            if names.offset() - done >= PART {
                visited(done..names.offset());
                done = names.offset();
            }
            if let Some((func_hash, counts)) = names.plain() {
                let counts = counts.iter().map(|&bytes| u64::from_le_bytes(bytes));
                self.add_counters(names.name(), Some(names.name_ref()), func_hash, counts);
                self.oldest_text_reader
                    .get_or_insert_with(|| oldest_for_record(&Record::default()));
                return true;
            }
            loop {
                match names.read_record(&mut record) {
                    Ok(true) => self.add_record(&record, Some(names.name_ref())),
                    Ok(false) => return true,
                    Err(_) => return false,
                }
            }
        });
        self.ranking.find_instances(|name| profile.name_of(name));
        sound.then_some(())
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record) {
        self.add_record(record, None);
    }

    fn add_record(&mut self, record: &Record, name_ref: Option<NameRef>) {
        let counts = record.counts.iter().copied();
        self.add_counters(&record.name, name_ref, record.func_hash, counts);
        self.oldest_text_reader = self.oldest_text_reader.max(Some(oldest_for_record(record)));
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

    /// Adds what a record has beside value sites, bitmaps and uniformity bits.
    fn add_counters(
        &mut self,
        name: &[u8],
        name_ref: Option<NameRef>,
        hash: FuncHash,
        counts: impl ExactSizeIterator<Item = u64> + Clone,
    ) {
        self.records += 1;
        // In a profile without context-sensitive records, the bit that marks them is an ordinary part of the hash.
        let context_sensitive = self.two_stages && hash.is_context_sensitive();
        self.context_sensitive += u64::from(context_sensitive);
        let sums = RecordSums::of(counts.clone());
        if sums.is_pseudo() {
            self.pseudo_records += 1;
            return;
        }
        if let Some(stage) = self.stages.get_mut(usize::from(context_sensitive)) {
            stage.add(counts, &sums);
        }
        self.sum += sums.sum;
        self.functions_entered += u64::from(sums.above_zero > 0);
        self.counters_above_zero += sums.above_zero;
        self.sums.add(u64::try_from(sums.sum).unwrap_or(u64::MAX));
        let numbers = FunctionNumbers {
            sum: sums.sum,
            max: sums.max(),
            entry: sums.first,
        };
        match name_ref {
            Some(name_ref) => self.ranking.offer_found(name, name_ref, hash, numbers),
            None => self.ranking.offer_with_hash(name, Some(hash), numbers),
        }
    }

    /// Returns, for each of [`SHARES`](super::SHARES), how many of the hottest functions together reach this share of
    /// all counts. The result is empty if no function ran, or if the sum of all counters needs more than 64 bits.
    pub fn shares(&self) -> Vec<Share> {
        self.sums.shares(self.sum)
    }

    /// The summaries of the records without and with context sensitivity. The second summary is `None` if the profile
    /// has no context-sensitive records. Also sets [`heat`](Self::heat), for which each stage has limits of its own.
    pub fn finish(&mut self) -> (Summary, Option<Summary>) {
        let heat = &mut self.heat;
        let [first, second] = std::mem::take(&mut self.stages).map(|stage| stage.finish(heat));
        (first, (self.context_sensitive > 0).then_some(second))
    }
}

/// After so many bytes, the part of the file that was read is given back.
const PART: u64 = 2 << 20;

/// The counters of one stage.
#[derive(Debug, Default)]
struct Stage {
    /// What the file states. If there is nothing, the distribution of the counters is computed.
    stated: Option<Stated>,
    /// All but the cutoffs.
    counted: Summary,
    /// All counters, and the largest counter of each record; empty if the file states the summary.
    counters: SummaryBuilder,
    largest: SummaryBuilder,
}

/// A summary in a file, and the classes of functions that follow from it.
#[derive(Debug)]
struct Stated {
    summary: Summary,
    limits: HeatLimits,
    heat: HeatCounts,
    lines: [Line; 2],
}

/// A line of the summary that decides which functions are hot or cold, and what was counted of it.
#[derive(Clone, Copy, Debug)]
struct Line {
    cutoff: u64,
    min_count: u64,
    blocks: u64,
    /// The number of counters that are not below `min_count`, their sum, and the sum of those above it.
    seen: u64,
    reached: u128,
    above: u128,
}

impl Line {
    fn add(&mut self, counts: impl Iterator<Item = u64>) {
        for count in counts.filter(|&count| count >= self.min_count) {
            self.seen += 1;
            self.reached += u128::from(count);
            if count > self.min_count {
                self.above += u128::from(count);
            }
        }
    }

    /// Whether the counters of the line are the fewest that reach its share of all counts.
    fn holds(&self, total: u64) -> bool {
        let wanted = u128::from(total) * u128::from(self.cutoff) / 1_000_000;
        self.seen == self.blocks && self.above < wanted && self.reached >= wanted
    }
}

impl Stated {
    /// Takes a summary, if it has the lines that decide which functions are hot and cold.
    fn of(summary: &Summary) -> Option<Self> {
        let wanted = Thresholds::default();
        let line = |cutoff| {
            let stated = summary.cutoffs.iter().find(|one| one.cutoff == cutoff)?;
            Some(Line {
                cutoff,
                min_count: stated.min_count,
                blocks: stated.blocks,
                seen: 0,
                reached: 0,
                above: 0,
            })
        };
        Some(Stated {
            lines: [line(wanted.hot_cutoff)?, line(wanted.cold_cutoff)?],
            limits: HeatLimits::of(summary),
            heat: HeatCounts::default(),
            summary: summary.clone(),
        })
    }
}

impl Stage {
    fn add(&mut self, counts: impl Iterator<Item = u64> + Clone, sums: &RecordSums) {
        if let Some(stated) = &mut self.stated {
            stated.heat.add(stated.limits.heat(sums.max()));
            for line in &mut stated.lines {
                if sums.max() >= line.min_count {
                    line.add(counts.clone());
                }
            }
            self.counted.add_record(sums);
        } else {
            self.counters.add_counts_of(counts);
            self.largest.add_count(sums.max());
        }
    }

    /// Whether all that was counted is as the file states it.
    fn is_as_stated(&self) -> bool {
        let Some(stated) = &self.stated else {
            return true;
        };
        let counted = Summary {
            cutoffs: stated.summary.cutoffs.clone(),
            ..self.counted.clone()
        };
        let mut lines = stated.lines.iter();
        counted == stated.summary && lines.all(|line| line.holds(counted.total_count))
    }

    /// The summary. Adds the classes of the functions to `heat`.
    fn finish(mut self, heat: &mut HeatCounts) -> Summary {
        if let Some(stated) = self.stated {
            heat.add_counts(&stated.heat);
            return stated.summary;
        }
        let summary = self.counters.finish();
        heat.add_all(&HeatLimits::of(&summary), &mut self.largest);
        summary
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
    use profkit_data::instr::InstrSource;
    use profkit_data::instr::indexed::IndexedReadOptions;

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

    /// Everything that people see of totals.
    fn seen(mut totals: Totals) -> String {
        let shares = totals.shares();
        let summaries = totals.finish();
        let first = std::mem::take(&mut totals.ranking).into_sorted();
        totals.sums = Sums::default();
        format!("{totals:?} {shares:?} {summaries:?} {first:?}")
    }

    #[test]
    fn an_indexed_profile_is_summed_up_as_record_by_record() {
        let ranking = || Ranking::new(FunctionOrder::Sum, 10, true);
        for name in profkit_testkit::fixtures_with(&["profdata"]) {
            let name = name.to_string_lossy().into_owned();
            let file = profkit_testkit::fixture(&name);
            let options = IndexedReadOptions::new().salvage(true);
            let Ok(profile) = IndexedProfile::parse_with(&file, &options) else {
                continue;
            };
            let two_stages = profile.kind().contains(InstrKind::CONTEXT_SENSITIVE);
            let (mut slow, mut record) = (Totals::new(ranking(), two_stages), Record::default());
            let (mut reader, mut faults) = (profile.records(), 0);
            while let Some(read) = reader.next_record(&mut record) {
                match read {
                    Ok(()) => slow.add(&record),
                    Err(_) => faults += 1,
                }
            }
            let slow = seen(slow);
            for detailed in [false, true] {
                match Totals::of_indexed(&profile, detailed, ranking, &|_| {}) {
                    Some(fast) => assert_eq!(seen(fast), slow, "{name}"),
                    None => assert_ne!(faults, 0, "{name}"),
                }
            }
        }
    }

    /// The file states a summary that its counters do not have.
    #[test]
    fn a_wrong_summary_in_the_file_is_not_shown() {
        let mut file = profkit_testkit::fixture("indexed/clang-22-ir-plain.profdata");
        let profile = IndexedProfile::parse(&file).unwrap();
        let total = profile.summary().unwrap().total_count;
        let right = seen(Totals::of_indexed(&profile, false, Ranking::default, &|_| {}).unwrap());
        let at = file
            .windows(8)
            .position(|word| word == total.to_le_bytes())
            .unwrap();
        file[at] ^= 1;
        let profile = IndexedProfile::parse(&file).unwrap();
        assert_ne!(profile.summary().unwrap().total_count, total);
        let found = Totals::of_indexed(&profile, false, Ranking::default, &|_| {}).unwrap();
        assert_eq!(seen(found), right);
    }
}
