//! Compares two instrumentation profiles, each in memory or read in its file.
use super::compare::{Content, FunctionDifference, PairOverlap, ProfileSize, part};
use crate::heap::is_heap_alone;
use profkit_abi::value_kind;
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{InPlace, IndexedProfile, IndexedReadOptions, ReleaseBytes};
use profkit_data::instr::overlap::{
    CountSums, FunctionLookup, InstrIndex, InstrOverlap, Stage, TestRecord, Verdict, records,
};
use profkit_data::instr::{InstrKind, InstrProfile, RecordRef};

/// What must be known of a profile before its records are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(super) size: ProfileSize,
    /// The sums of the functions of the first stage, and of those of the second one.
    sums: [CountSums; 2],
    /// Whether there are functions of the first stage.
    has_first: bool,
}

impl Figures {
    pub(super) fn of_profile(profile: &InstrProfile) -> Self {
        let mut figures = Figures::default();
        for (_, record) in records(profile) {
            figures.add(profile.kind, &record);
        }
        figures
    }

    fn add(&mut self, kind: InstrKind, record: &RecordRef<'_>) {
        self.size.functions += 1;
        if !record.is_pseudo() {
            let counts = record.counts.iter();
            let total = counts.fold(0, |sum: u128, &count| sum + u128::from(count));
            self.size.total = self.size.total.saturating_add(total);
        }
        let [plain, later] = &mut self.sums;
        plain.add_ref(kind, record, Stage::Plain);
        later.add_ref(kind, record, Stage::ContextSensitive);
        self.has_first |= !Stage::ContextSensitive.includes(kind, record.func_hash);
    }

    fn has_second_only(&self) -> bool {
        self.size.functions > 0 && !self.has_first
    }

    fn sums(&self, stage: Stage) -> CountSums {
        let [plain, later] = self.sums;
        match stage {
            Stage::Plain => plain,
            Stage::ContextSensitive => later,
        }
    }
}

/// An undamaged indexed profile that is read in its file.
#[derive(Debug)]
pub(crate) struct IndexedSide<'d> {
    records: InPlace<'d>,
    pub(super) figures: Figures,
}

impl<'d> IndexedSide<'d> {
    /// `None` for any other profile.
    pub(super) fn open(data: &'d [u8], release: Option<&'d ReleaseBytes<'d>>) -> Option<Self> {
        if detect(data) != FileKind::InstrIndexed || is_heap_alone(data) {
            return None;
        }
        let options = IndexedReadOptions::new()
            .salvage(true)
            .table_is_checked(true);
        let profile = IndexedProfile::parse_with(data, &options).ok()?;
        let kind = profile.kind();
        let mut figures = Figures::default();
        let records = InPlace::check(profile, release, |record| {
            figures.add(kind, &record.as_ref(0));
        })?;
        Some(IndexedSide { records, figures })
    }

    pub(super) fn kind(&self) -> InstrKind {
        self.records.kind()
    }
}

/// One of two profiles that are compared.
pub(super) struct Side<'p> {
    kind: InstrKind,
    figures: Figures,
    records: Records<'p>,
}

enum Records<'p> {
    InMemory(&'p InstrProfile, InstrIndex<'p>),
    InPlace(&'p InPlace<'p>),
}

impl<'p> Side<'p> {
    /// `None` if it is no instrumentation profile.
    pub(super) fn of(content: &'p Content<'_>) -> Option<Self> {
        match content {
            Content::Instr(profile) => Some(Side {
                kind: profile.kind,
                figures: Figures::of_profile(profile),
                records: Records::InMemory(profile, InstrIndex::new(profile)),
            }),
            Content::Indexed(side) => Some(Side {
                kind: side.kind(),
                figures: side.figures,
                records: Records::InPlace(&side.records),
            }),
            _ => None,
        }
    }

    pub(super) fn kind(&self) -> InstrKind {
        self.kind
    }

    /// Calls `see` with the name and each record of a stage.
    fn each(&self, stage: Stage, mut see: impl FnMut((&[u8], NameRef), &RecordRef<'_>)) {
        match &self.records {
            Records::InMemory(profile, _) => {
                for (function, record) in records(profile) {
                    if stage.includes(self.kind, record.func_hash) {
                        see((function.name(), function.name_ref()), &record);
                    }
                }
            }
            Records::InPlace(records) => records.each(|record| {
                if stage.includes(self.kind, record.func_hash) {
                    see((&record.name, record.name_ref), &record.as_ref(0));
                }
            }),
        }
    }

    fn look_up<T>(&self, with: impl FnOnce(&mut dyn FunctionLookup) -> T) -> T {
        match &self.records {
            Records::InMemory(_, index) => with(&mut &*index),
            Records::InPlace(records) => with(&mut records.lookup()),
        }
    }
}

/// What the second profile has in common with the first one, and the rows of its functions.
fn of_test(
    base: &Side<'_>,
    test: &Side<'_>,
    stage: Stage,
    detail: bool,
) -> (InstrOverlap, Vec<FunctionDifference>) {
    let mut overlap = InstrOverlap::new(base.figures.sums(stage), test.figures.sums(stage));
    let mut rows = Vec::new();
    let mut mismatched = (None, 0.0);
    base.look_up(|in_base| {
        test.each(stage, |(name, name_ref), record| {
            let before = overlap.common.counts;
            let verdict = overlap.add(in_base, &TestRecord::of(name_ref, record), detail);
            if !detail {
                return;
            }
            let name = name.to_vec();
            let share = |sums: &CountSums| Some(part(sums.counts, overlap.test.counts));
            rows.push(match &verdict {
                Verdict::Unique(sums) => FunctionDifference::new(name, None, share(sums), 0.0),
                Verdict::Mismatched(sums) => {
                    // A function may have several records, which follow each other in the second profile. Its counts in
                    // the first profile are added up only once, at the first of these records.
                    if mismatched.0 != Some(name_ref) {
                        mismatched = (Some(name_ref), in_base.counts(name_ref));
                    }
                    let there = Some(part(mismatched.1, overlap.base.counts));
                    FunctionDifference::new(name, there, share(sums), 0.0)
                }
                Verdict::Common(Some(inner)) => {
                    let base = Some(part(inner.base.counts, overlap.base.counts));
                    let common = overlap.common.counts - before;
                    let row = FunctionDifference::new(name, base, share(&inner.test), common);
                    FunctionDifference {
                        inner: Some(inner.common.counts),
                        ..row
                    }
                }
                Verdict::Idle | Verdict::Common(None) => return,
            });
        });
    });
    (overlap, rows)
}

/// The functions that only the first profile has: their number, their share, and their rows.
fn of_base(
    base: &Side<'_>,
    test: &Side<'_>,
    stage: Stage,
    detail: bool,
) -> (u64, f64, Vec<FunctionDifference>) {
    let (mut count, mut share, mut rows) = (0, 0.0, Vec::new());
    let whole = base.figures.sums(stage).counts;
    test.look_up(|in_test| {
        base.each(stage, |(name, name_ref), record| {
            if in_test.has(name_ref) {
                return;
            }
            let sums = CountSums::of_function(record.counts, record.values);
            let there = part(sums.counts, whole);
            count += 1;
            share += there;
            if detail {
                let name = name.to_vec();
                rows.push(FunctionDifference::new(name, Some(there), None, 0.0));
            }
        });
    });
    (count, share, rows)
}

pub(super) fn of_instr(base: &Side<'_>, test: &Side<'_>, detail: bool) -> PairOverlap {
    // The second, context-sensitive stage if both profiles have functions of that stage only, otherwise the first stage.
    let stage = if base.figures.has_second_only() && test.figures.has_second_only() {
        Stage::ContextSensitive
    } else {
        Stage::Plain
    };
    let ((overlap, functions), (base_only, base_only_share, more)) = rayon::join(
        || of_test(base, test, stage, detail),
        || of_base(base, test, stage, detail),
    );
    let is_zero = overlap.base.is_zero() || overlap.test.is_zero();
    let mut pair = PairOverlap {
        overlap: (!is_zero).then_some(overlap.common.counts),
        common: overlap.common.entries,
        mismatched: overlap.mismatched.entries,
        mismatched_share: overlap.mismatched.counts,
        test_only: overlap.unique.entries,
        test_only_share: overlap.unique.counts,
        base_only,
        base_only_share,
        functions,
        ..PairOverlap::default()
    };
    pair.functions.extend(more);
    const KINDS: [&str; value_kind::COUNT] = [
        "call targets",
        "sizes of memory operations",
        "virtual tables",
    ];
    let values = overlap.base.values.into_iter().zip(overlap.test.values);
    for ((name, (base, test)), share) in KINDS.into_iter().zip(values).zip(overlap.common.values) {
        if base >= 1.0 && test >= 1.0 {
            pair.details.push((name, share));
        }
    }
    let later = Stage::ContextSensitive;
    let has_later = |side: &Side<'_>| side.kind.is_ir() && !side.figures.sums(later).is_zero();
    if has_later(base) && has_later(test) {
        let (later, _) = of_test(base, test, later, false);
        pair.details
            .push(("context-sensitive counters", later.common.counts));
    }
    pair
}
