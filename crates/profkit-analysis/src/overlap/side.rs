//! The two instrumentation profiles of a comparison, each in memory or read in its file.
use super::compare::{Content, ProfileSize};
use crate::instr::in_place;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::indexed::{InPlace, InPlaceLookup, ReleaseBytes};
use profkit_data::instr::overlap::{CountSums, FunctionLookup, InstrIndex, Stage, records};
use profkit_data::instr::{FunctionRef, InstrKind, InstrProfile, Record, RecordRef};

/// What must be known of a profile before its records are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(super) size: ProfileSize,
    /// The sums of the functions of the first stage, and of those of the second one.
    sums: [CountSums; 2],
    totals: [u128; 2],
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
            let [first, second] = &mut self.totals;
            let of_stage = match record.func_hash.is_context_sensitive() {
                false => first,
                true => second,
            };
            *of_stage = of_stage.saturating_add(total);
        }
        let [plain, later] = &mut self.sums;
        plain.add_ref(kind, record, Stage::Plain);
        later.add_ref(kind, record, Stage::ContextSensitive);
        self.has_first |= !Stage::ContextSensitive.includes(kind, record.func_hash);
    }

    pub(super) fn has_second_only(&self) -> bool {
        self.size.functions > 0 && !self.has_first
    }

    pub(super) fn sums(&self, stage: Stage) -> CountSums {
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
        let mut figures = Figures::default();
        let records = in_place(data, release, |kind, record| {
            figures.add(kind, &record.as_ref(0));
        })?;
        Some(IndexedSide { records, figures })
    }

    pub(super) fn kind(&self) -> InstrKind {
        self.records.kind()
    }
}

/// One of two profiles that are compared.
pub(crate) struct Side<'p> {
    pub(super) kind: InstrKind,
    pub(super) figures: Figures,
    records: Records<'p>,
}

enum Records<'p> {
    InMemory(&'p InstrProfile, InstrIndex<'p>),
    InPlace(&'p InPlace<'p>),
}

impl<'p> Side<'p> {
    /// `None` if it is no instrumentation profile.
    pub(crate) fn of(content: &'p Content<'_>) -> Option<Self> {
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

    pub(crate) fn kind(&self) -> InstrKind {
        self.kind
    }

    /// The sum of the counters of the records without, and of those with, the mark of the context-sensitive stage in
    /// their hashes.
    pub(crate) fn totals(&self) -> [u128; 2] {
        self.figures.totals
    }

    /// Calls `see` with each function.
    pub(crate) fn each_function(&self, mut see: impl FnMut(&Function<'_>)) {
        match &self.records {
            Records::InMemory(profile, _) => {
                let functions = profile.tables.iter().flat_map(|table| table.functions());
                functions.for_each(|function| see(&Function::of(function)));
            }
            Records::InPlace(records) => records.each_function(|records| {
                if let Some(function) = Function::of_records(records) {
                    see(&function);
                }
            }),
        }
    }

    /// Calls `see` with the name of each function.
    pub(crate) fn each_name(&self, mut see: impl FnMut(&[u8], NameRef)) {
        match &self.records {
            Records::InMemory(profile, _) => {
                let functions = profile.tables.iter().flat_map(|table| table.functions());
                functions.for_each(|function| see(function.name(), function.name_ref()));
            }
            Records::InPlace(records) => records.each_name(see),
        }
    }

    /// Finds functions by name.
    pub(crate) fn finder(&self) -> Finder<'_> {
        match &self.records {
            Records::InMemory(_, index) => Finder::InMemory(index),
            Records::InPlace(records) => Finder::InPlace(records, Box::new(records.lookup())),
        }
    }

    /// Calls `see` with the name and each record of a stage.
    pub(super) fn each_record(
        &self,
        stage: Stage,
        mut see: impl FnMut((&[u8], NameRef), &RecordRef<'_>),
    ) {
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

    pub(super) fn look_up<T>(&self, with: impl FnOnce(&mut dyn FunctionLookup) -> T) -> T {
        match &self.records {
            Records::InMemory(_, index) => with(&mut &*index),
            Records::InPlace(records) => with(&mut records.lookup()),
        }
    }
}

/// A function of a side with all its records.
pub(crate) struct Function<'r> {
    pub(crate) name: &'r [u8],
    pub(crate) name_ref: NameRef,
    pub(crate) records: Vec<RecordRef<'r>>,
}

impl<'r> Function<'r> {
    fn of(function: FunctionRef<'r>) -> Self {
        Function {
            name: function.name(),
            name_ref: function.name_ref(),
            records: function.records().collect(),
        }
    }

    /// The first record with this function hash.
    pub(crate) fn record(&self, func_hash: FuncHash) -> Option<&RecordRef<'r>> {
        self.records
            .iter()
            .find(|record| record.func_hash == func_hash)
    }

    /// `None` if there is no record, which would have the name.
    fn of_records(records: &'r [Record]) -> Option<Self> {
        let first = records.first()?;
        Some(Function {
            name: &first.name,
            name_ref: first.name_ref,
            records: (0..)
                .zip(records)
                .map(|(order, one)| one.as_ref(order))
                .collect(),
        })
    }
}

/// Finds the functions of a side.
pub(crate) enum Finder<'s> {
    InMemory(&'s InstrIndex<'s>),
    InPlace(&'s InPlace<'s>, Box<InPlaceLookup<'s, 's>>),
}

impl Finder<'_> {
    pub(crate) fn has(&self, name: NameRef) -> bool {
        self.name(name).is_some()
    }

    /// The name with this hash, if a function has it.
    pub(crate) fn name(&self, name: NameRef) -> Option<&[u8]> {
        match self {
            Finder::InMemory(index) => Some(index.function(name)?.name()),
            Finder::InPlace(records, _) => records.name(name),
        }
    }

    pub(crate) fn function(&mut self, name: NameRef) -> Option<Function<'_>> {
        match self {
            Finder::InMemory(index) => index.function(name).map(Function::of),
            Finder::InPlace(_, lookup) => Function::of_records(lookup.function(name)?),
        }
    }
}
