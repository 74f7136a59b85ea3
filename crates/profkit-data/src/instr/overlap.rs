//! Measures how alike two instrumentation profiles are, as LLVM's `overlap` does (`OverlapStats` in `InstrProf.h`).
//!
//! A counter has a share in the sum of each profile. The overlap is the sum, over all counters, of the smaller of the
//! two shares. The overlap is 1 if all counters have the same shares. So the profiles of a longer and a shorter run of
//! the same work overlap fully.
use super::{
    FunctionRef, InstrKind, InstrProfile, InstrSource, Record, RecordRef, SiteValues, ValueData,
    ValueEntry,
};
use crate::ids::{FuncHash, NameRef};
use profkit_abi::value_kind;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// The stage of instrumentation whose functions are compared. A profile made with context-sensitive instrumentation
/// contains the functions of two stages, whose counters cannot be compared with each other. Other profiles have one
/// stage only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The functions of the first stage.
    #[default]
    Plain,
    /// The functions of the second, context-sensitive stage.
    ContextSensitive,
}

impl Stage {
    /// Whether a function with this hash belongs to the stage, in a profile of this kind.
    pub fn includes(self, kind: InstrKind, func_hash: FuncHash) -> bool {
        !kind.is_ir() || func_hash.is_context_sensitive() == (self == Stage::ContextSensitive)
    }
}

/// The sums of the counts of a profile, or of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CountSums {
    /// The number of functions in the profile, or of counters in the function.
    pub entries: u64,
    /// The sum of all counters.
    pub counts: f64,
    /// For each value kind, the sum of the counts of all values.
    pub values: [f64; value_kind::COUNT],
}

fn float(count: u64) -> f64 {
    count as f64
}

impl CountSums {
    /// The sums of one function. Sums of more than 64 bits wrap around, as in LLVM.
    pub fn of_function(counts: &[u64], values: Option<&ValueData>) -> Self {
        let mut sums = CountSums {
            entries: counts.len() as u64,
            counts: float(counts.iter().copied().fold(0, u64::wrapping_add)),
            values: [0.0; value_kind::COUNT],
        };
        let kinds = values.into_iter().flat_map(ValueData::kinds);
        for (total, (_, kind)) in sums.values.iter_mut().zip(kinds) {
            let counts = kind.entries().iter().map(|entry| entry.count);
            *total = float(counts.fold(0, u64::wrapping_add));
        }
        sums
    }

    /// Reads a profile, and adds up the counts of the functions of a stage. Reading ends at the first damaged record,
    /// as in LLVM. A caller that has to report the damage must read the profile itself.
    pub fn of_source(source: &mut dyn InstrSource, stage: Stage) -> Self {
        let mut sums = CountSums::default();
        let kind = source.kind();
        let mut record = Record::default();
        while let Ok(true) = source.read_record(&mut record) {
            sums.add(kind, &record, stage);
        }
        sums
    }

    /// Adds the counts of a record, if its function belongs to the stage. `kind` is the kind of the profile that has
    /// the record.
    pub fn add(&mut self, kind: InstrKind, record: &Record, stage: Stage) {
        if stage.includes(kind, record.func_hash) {
            self.add_function(&record.counts, Some(&record.values));
        }
    }

    /// Adds up the functions of a stage.
    pub fn of_profile(profile: &InstrProfile, stage: Stage) -> Self {
        let mut sums = CountSums::default();
        for (_, record) in records(profile) {
            sums.add_ref(profile.kind, &record, stage);
        }
        sums
    }

    /// As [`add`](Self::add), for a record of a table.
    pub fn add_ref(&mut self, kind: InstrKind, record: &RecordRef<'_>, stage: Stage) {
        if stage.includes(kind, record.func_hash) {
            self.add_function(record.counts, record.values);
        }
    }

    fn add_function(&mut self, counts: &[u64], values: Option<&ValueData>) {
        let function = CountSums::of_function(counts, values);
        self.entries += 1;
        self.counts += function.counts;
        for (sum, more) in self.values.iter_mut().zip(function.values) {
            *sum += more;
        }
    }

    /// Whether all counters are zero, so that there are no shares to compare.
    pub fn is_zero(&self) -> bool {
        self.counts < 1.0
    }
}

/// All records of a profile, with their functions.
pub fn records(profile: &InstrProfile) -> impl Iterator<Item = (FunctionRef<'_>, RecordRef<'_>)> {
    let functions = profile.tables.iter().flat_map(|table| table.functions());
    functions.flat_map(|function| function.records().map(move |record| (function, record)))
}

/// The functions of a profile by name.
#[derive(Debug)]
pub struct InstrIndex<'p> {
    functions: FxHashMap<NameRef, FunctionRef<'p>>,
    /// The records of functions with more than [`FEW`] records, by name and function hash. A search of all records of
    /// such a function would be slow.
    crowded: HashMap<(NameRef, FuncHash), RecordRef<'p>>,
}

/// The largest number of records of a function that are searched one by one. If a function has more records, a hash
/// table is used.
const FEW: usize = 32;

impl<'p> InstrIndex<'p> {
    /// Makes the index of a profile.
    pub fn new(profile: &'p InstrProfile) -> Self {
        let functions = profile.tables.iter().flat_map(|table| table.functions());
        let functions: FxHashMap<_, _> = functions
            .map(|function| (function.name_ref(), function))
            .collect();
        let mut crowded = HashMap::new();
        for (&name, function) in &functions {
            if function.records().nth(FEW).is_some() {
                for record in function.records() {
                    crowded.entry((name, record.func_hash)).or_insert(record);
                }
            }
        }
        InstrIndex { functions, crowded }
    }

    /// Whether all functions of the profile have different names. If several functions have the same name, the index
    /// finds only the last of these functions.
    pub fn is_complete(&self, profile: &InstrProfile) -> bool {
        let functions = profile.tables.iter().map(|table| table.function_count());
        self.functions.len() == functions.sum::<usize>()
    }

    /// The function of this name.
    pub fn function(&self, name: NameRef) -> Option<FunctionRef<'p>> {
        self.functions.get(&name).copied()
    }

    /// The first record of a function with this function hash.
    pub fn record(&self, function: FunctionRef<'p>, func_hash: FuncHash) -> Option<RecordRef<'p>> {
        let mut records = function.records();
        let found = (records.by_ref().take(FEW)).find(|record| record.func_hash == func_hash);
        found.or_else(|| {
            records.next()?;
            self.crowded.get(&(function.name_ref(), func_hash)).copied()
        })
    }
}

/// Finds the functions of the first profile.
pub trait FunctionLookup {
    /// Whether the profile has a function of this name.
    fn has(&mut self, name: NameRef) -> bool;

    /// The first record of the function of this name with this function hash.
    fn record(&mut self, name: NameRef, func_hash: FuncHash) -> Option<RecordRef<'_>>;

    /// The sum of the counters of all records of the function of this name.
    fn counts(&mut self, name: NameRef) -> f64;
}

impl FunctionLookup for &InstrIndex<'_> {
    fn has(&mut self, name: NameRef) -> bool {
        self.function(name).is_some()
    }

    fn record(&mut self, name: NameRef, func_hash: FuncHash) -> Option<RecordRef<'_>> {
        InstrIndex::record(self, self.function(name)?, func_hash)
    }

    fn counts(&mut self, name: NameRef) -> f64 {
        let records = self.function(name).into_iter().flat_map(|it| it.records());
        let sums = records.map(|record| CountSums::of_function(record.counts, record.values));
        sums.map(|sums| sums.counts).sum()
    }
}

/// A function record of the second profile, which is compared with the first profile.
#[derive(Clone, Copy, Debug)]
pub struct TestRecord<'r> {
    /// The hash of the function's name.
    pub name: NameRef,
    /// The function hash.
    pub func_hash: FuncHash,
    /// The counters.
    pub counts: &'r [u64],
    /// The value profile of the record; `None` if it has none.
    pub values: Option<&'r ValueData>,
}

impl<'r> TestRecord<'r> {
    /// Makes a record to compare from a record of the function of this name.
    pub fn of(name: NameRef, record: &RecordRef<'r>) -> Self {
        TestRecord {
            name,
            func_hash: record.func_hash,
            counts: record.counts,
            values: record.values,
        }
    }

    /// Makes a record to compare from a record that a reader returned.
    pub fn record(record: &'r Record) -> Self {
        TestRecord {
            name: record.name_ref,
            func_hash: record.func_hash,
            counts: &record.counts,
            values: Some(&record.values),
        }
    }
}

/// A number of functions or counters, and their shares of the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// The number of functions in the profile, or of counters in the function.
    pub entries: u64,
    /// The share of the sum of all counters, from 0 to 1.
    pub counts: f64,
    /// For each value kind, the share of the sum of all value counts, from 0 to 1.
    pub values: [f64; value_kind::COUNT],
}

/// The result of comparing a function record of the second profile with the first profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The first profile has no function of this name. The field has the sums of the record in the second profile.
    Unique(CountSums),
    /// The first profile has a function of this name, and all counters of the second profile's record are zero. LLVM
    /// counts such a function as common without comparing it.
    Idle,
    /// The first profile has a function of this name, but with a different function hash, or with different numbers of
    /// counters or value sites. The field has the sums of the record in the second profile.
    Mismatched(CountSums),
    /// Both profiles have the function. The field is the comparison of this function alone, if the caller asked for it.
    Common(Option<InstrOverlap>),
}

/// What two instrumentation profiles, or one function of them, have in common.
///
/// ```
/// use profkit_data::ids::{FuncHash, NameRef};
/// use profkit_data::instr::overlap::{InstrOverlap, Stage};
/// use profkit_data::instr::{FunctionTable, InstrProfile, NewRecord};
///
/// let profile = |counts: &[u64]| {
///     let mut table = FunctionTable::new();
///     let main = table.push_function(b"main", NameRef::of(b"main"), 0).unwrap();
///     table.push_record(main, NewRecord { func_hash: FuncHash(1), counts, ..NewRecord::default() });
///     InstrProfile { tables: vec![table], ..InstrProfile::default() }
/// };
/// let overlap = InstrOverlap::of_profiles(&profile(&[3, 1]), &profile(&[30, 10]), Stage::Plain);
/// assert_eq!((overlap.common.entries, overlap.common.counts), (1, 1.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InstrOverlap {
    /// The sums of the counts of the first profile.
    pub base: CountSums,
    /// The sums of the counts of the second profile.
    pub test: CountSums,
    /// The number of functions that both profiles have, and the overlap of their counts.
    pub common: Shares,
    /// The number of functions whose hash, number of counters or number of value sites differs, and the shares of these
    /// functions in the counts of the second profile.
    pub mismatched: Shares,
    /// The number of functions that only the second profile has, and the shares of these functions in the counts of the
    /// second profile.
    pub unique: Shares,
}

impl InstrOverlap {
    /// Begins a comparison of two profiles. `base` and `test` are the sums of the profiles.
    pub fn new(base: CountSums, test: CountSums) -> Self {
        InstrOverlap {
            base,
            test,
            ..InstrOverlap::default()
        }
    }

    /// Compares all functions of a stage in two profiles. If nothing was counted in one of the profiles, all shares are
    /// 0.
    pub fn of_profiles(base: &InstrProfile, test: &InstrProfile, stage: Stage) -> Self {
        let sums = |profile| CountSums::of_profile(profile, stage);
        let mut overlap = InstrOverlap::new(sums(base), sums(test));
        let index = InstrIndex::new(base);
        for (function, record) in records(test) {
            if stage.includes(test.kind, record.func_hash) {
                let tested = TestRecord {
                    name: function.name_ref(),
                    func_hash: record.func_hash,
                    counts: record.counts,
                    values: record.values,
                };
                overlap.add(&mut &index, &tested, false);
            }
        }
        overlap
    }

    /// Compares a function record of the second profile with the first profile, and adds the result. If `detail` is
    /// true, the function is also compared alone.
    pub fn add(
        &mut self,
        base: &mut dyn FunctionLookup,
        record: &TestRecord<'_>,
        detail: bool,
    ) -> Verdict {
        let sums = CountSums::of_function(record.counts, record.values);
        if !base.has(record.name) {
            self.unique.add_function(&sums, &self.test);
            return Verdict::Unique(sums);
        }
        if sums.is_zero() {
            self.common.entries += 1;
            return Verdict::Idle;
        }
        let twin = base.record(record.name, record.func_hash);
        let Some(twin) = twin.filter(|twin| same_sites(twin, record)) else {
            self.mismatched.add_function(&sums, &self.test);
            return Verdict::Mismatched(sums);
        };
        let inner = || InstrOverlap::new(CountSums::of_function(twin.counts, twin.values), sums);
        let mut inner = detail.then(inner);
        if twin.values.is_some() {
            for kind in 0..value_kind::COUNT {
                self.add_values(kind, &twin, record, inner.as_mut());
            }
        }
        self.common.counts += score(twin.counts, record.counts, &self.base, &self.test);
        self.common.entries += 1;
        if let Some(inner) = &mut inner {
            inner.common.counts = score(twin.counts, record.counts, &inner.base, &inner.test);
            inner.common.entries = record.counts.len() as u64;
        }
        Verdict::Common(inner)
    }

    /// Adds the overlap of the values of one kind, if both records have values of this kind. The overlap is also added
    /// to `inner`, the comparison of this function alone, if it is given.
    fn add_values(
        &mut self,
        kind: usize,
        twin: &RecordRef<'_>,
        record: &TestRecord<'_>,
        mut inner: Option<&mut InstrOverlap>,
    ) {
        let number = u32::try_from(kind).unwrap_or(u32::MAX);
        let one = twin.values.and_then(|values| values.kind(number));
        let two = record.values.and_then(|values| values.kind(number));
        let (Some(one), Some(two)) = (one, two) else {
            return;
        };
        for (one, two) in one.sites().zip(two.sites()) {
            let (one, two) = (sorted(one), sorted(two));
            let levels = [Some(&mut *self), inner.as_deref_mut()];
            for level in levels.into_iter().flatten() {
                let sums = (level.base.values.get(kind), level.test.values.get(kind));
                if let (Some(&base), Some(&test)) = sums
                    && let Some(share) = level.common.values.get_mut(kind)
                {
                    *share += site_score(&one, &two, base, test);
                }
            }
        }
    }
}

impl Shares {
    fn add_function(&mut self, function: &CountSums, profile: &CountSums) {
        self.entries += 1;
        if !profile.is_zero() {
            self.counts += function.counts / profile.counts;
        }
        let sums = function.values.iter().zip(profile.values);
        for (share, (&sum, whole)) in self.values.iter_mut().zip(sums) {
            if whole >= 1.0 {
                *share += sum / whole;
            }
        }
    }
}

/// Whether two records have equal numbers of counters, and of value sites of each kind.
fn same_sites(one: &RecordRef<'_>, two: &TestRecord<'_>) -> bool {
    let sites = |values: Option<&ValueData>, kind: u32| {
        let kind = values.and_then(|values| values.kind(kind));
        kind.map_or(0, |kind| kind.site_count())
    };
    one.counts.len() == two.counts.len()
        && (0u32..)
            .take(value_kind::COUNT)
            .all(|kind| sites(one.values, kind) == sites(two.values, kind))
}

/// Returns the smaller one of the shares `base / base_sum` and `test / test_sum`; 0 if one of the sums is 0.
fn smaller(base: u64, test: u64, base_sum: f64, test_sum: f64) -> f64 {
    if base_sum < 1.0 || test_sum < 1.0 {
        return 0.0;
    }
    let (base, test) = (float(base) / base_sum, float(test) / test_sum);
    if test < base { test } else { base }
}

fn score(base: &[u64], test: &[u64], base_sums: &CountSums, test_sums: &CountSums) -> f64 {
    let pairs = base.iter().zip(test);
    pairs.fold(0.0, |sum, (&base, &test)| {
        sum + smaller(base, test, base_sums.counts, test_sums.counts)
    })
}

fn sorted(site: SiteValues<'_>) -> Vec<ValueEntry> {
    let mut entries = site.to_vec();
    entries.sort_by_key(|entry| entry.value);
    entries
}

/// Adds up the overlap of two value sites and returns it. For each value that both sites have, the overlap is the
/// smaller of two shares: the share of its count at the site `base` in `base_sum`, and the share of its count at the
/// site `test` in `test_sum`. Both sites must be sorted by value.
fn site_score(base: &[ValueEntry], test: &[ValueEntry], base_sum: f64, test_sum: f64) -> f64 {
    let (mut base, mut test) = (base.iter().peekable(), test.iter().peekable());
    let mut sum = 0.0;
    while let (Some(one), Some(two)) = (base.peek(), test.peek()) {
        if one.value < two.value {
            base.next();
            continue;
        }
        if one.value == two.value {
            sum += smaller(one.count, two.count, base_sum, test_sum);
            base.next();
        }
        test.next();
    }
    sum
}
