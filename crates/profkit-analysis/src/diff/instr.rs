//! Compares two instrumentation profiles.
use super::{
    BlockChange, Change, DiffOptions, FunctionChange, Place, ProfileDiff, Ranks, Target,
    TargetChange, Totals, Values, blocks, keep_first, missing,
};
use crate::overlap::{CannotCompare, InstrIndex};
use profkit_abi::value_kind;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::overlap::records;
use profkit_data::instr::{FunctionRef, InstrKind, InstrProfile, RecordRef, ValueData};
use profkit_object::names::with_other_separator;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// The properties of instrumentation in which the two profiles must agree: both have the property, or neither has it.
/// Otherwise their counters cannot be compared.
const UNLIKE: [InstrKind; 4] = [
    InstrKind::IR,
    InstrKind::CONTEXT_SENSITIVE,
    InstrKind::SINGLE_BYTE_COVERAGE,
    InstrKind::FUNCTION_ENTRY_ONLY,
];

struct Side<'p> {
    index: InstrIndex<'p>,
    /// The sum of all counters of each stage: first the stage without context sensitivity, then the context-sensitive
    /// stage.
    totals: [u128; 2],
    ranks: [Ranks; 2],
}

impl<'p> Side<'p> {
    fn new(profile: &'p InstrProfile, two_stages: bool) -> Self {
        let mut sums = [Vec::new(), Vec::new()];
        for (_, record) in records(profile) {
            if let Some(sums) = sums.get_mut(stage(two_stages, record.func_hash)) {
                sums.push(sum(&record));
            }
        }
        Side {
            index: InstrIndex::new(profile),
            totals: sums.each_ref().map(|sums| sums.iter().sum()),
            ranks: sums.map(Ranks::new),
        }
    }
}

impl<'p> Side<'p> {
    /// Returns the counterpart in this profile of `of`, a function of the other profile; `None` if there is no
    /// counterpart. The names of a local function may differ in the separator: `a.c;f`, or `a.c:f` before LLVM 17.
    fn twin(&self, of: FunctionRef<'_>, other: &Side<'_>) -> Option<FunctionRef<'p>> {
        self.index.function(of.name_ref()).or_else(|| {
            let name = with_other_separator(of.name())?;
            let twin = self.index.function(NameRef::of(&name))?;
            // The names of `twin` and `of` differ only in the separator. If the other profile also has a function with
            // exactly the name of `twin`, that function is the counterpart of `twin`, and `of` has no counterpart.
            other
                .index
                .function(twin.name_ref())
                .is_none()
                .then_some(twin)
        })
    }
}

/// The index of the stage of a record with this hash: 1 for the context-sensitive stage, otherwise 0.
fn stage(two_stages: bool, hash: FuncHash) -> usize {
    usize::from(two_stages && hash.is_context_sensitive())
}

/// The counters of a record. A pseudo record has a marker in place of counts, so the result is empty.
fn counts<'p>(record: &RecordRef<'p>) -> &'p [u64] {
    if record.is_pseudo() {
        &[]
    } else {
        record.counts
    }
}

fn sum(record: &RecordRef<'_>) -> u128 {
    counts(record).iter().map(|&count| u128::from(count)).sum()
}

struct Row<'p> {
    function: FunctionRef<'p>,
    change: Change,
    stage: usize,
    hashes: [Option<FuncHash>; 2],
    counts: [Option<u128>; 2],
    moved: f64,
}

impl Row<'_> {
    fn order(&self, other: &Self) -> Ordering {
        let by_moved = other.moved.total_cmp(&self.moved);
        by_moved
            .then_with(|| self.function.name().cmp(other.function.name()))
            .then_with(|| self.stage.cmp(&other.stage))
            .then_with(|| self.hashes.cmp(&other.hashes))
    }
}

struct Comparison<'p> {
    sides: [Side<'p>; 2],
    totals: [Totals; 2],
    two_stages: bool,
    found: ProfileDiff,
    moved: [f64; 2],
    rows: Vec<Row<'p>>,
    /// For functions whose name has a different separator in the two profiles: maps the name hash in the old profile to
    /// the name hash in the new profile.
    respelled: FxHashMap<u64, u64>,
}

/// Checks that both profiles have these properties, or neither.
pub(crate) fn check_kinds(
    old: InstrKind,
    new: InstrKind,
    unlike: &[InstrKind],
) -> Result<(), CannotCompare> {
    let known = !old.is_unknown() && !new.is_unknown();
    let differs = |kind: InstrKind| old.contains(kind) != new.contains(kind);
    if known && unlike.iter().any(|&kind| differs(kind)) {
        return Err(CannotCompare::Instrumentation(old, new));
    }
    Ok(())
}

pub(super) fn diff(
    old: &InstrProfile,
    new: &InstrProfile,
    options: &DiffOptions,
) -> Result<ProfileDiff, CannotCompare> {
    check_kinds(old.kind, new.kind, &UNLIKE)?;
    let two_stages = (old.kind | new.kind).contains(InstrKind::CONTEXT_SENSITIVE);
    let (old_side, new_side) =
        rayon::join(|| Side::new(old, two_stages), || Side::new(new, two_stages));
    let totals = [0, 1].map(|stage: usize| {
        let of = |side: &Side<'_>| side.totals.get(stage).copied().unwrap_or(0);
        Totals([of(&old_side), of(&new_side)])
    });
    let mut comparison = Comparison {
        sides: [old_side, new_side],
        totals,
        two_stages,
        found: ProfileDiff::default(),
        moved: [0.0; 2],
        rows: Vec::new(),
        respelled: FxHashMap::default(),
    };
    let selection = &options.selection;
    let [old, new] = [old, new].map(|profile| {
        let tables = profile.tables.iter();
        tables
            .flat_map(|table| table.functions())
            .collect::<Vec<_>>()
    });
    comparison.found.missing = missing(selection, |one| {
        let all = || old.iter().chain(&new);
        all().any(|function| one.selects(function.name()))
    });
    let [old_side, new_side] = &comparison.sides;
    let respelled = new.iter().filter_map(|function| {
        let twin = old_side.twin(*function, new_side)?;
        let (old, new) = (twin.name_ref().0, function.name_ref().0);
        (old != new).then_some((old, new))
    });
    comparison.respelled = respelled.collect();
    for &function in new.iter().filter(|it| selection.selects(it.name())) {
        let twin = comparison.sides[0].twin(function, &comparison.sides[1]);
        comparison.function(twin, Some(function));
    }
    for &function in old.iter().filter(|it| selection.selects(it.name())) {
        if comparison.sides[1]
            .twin(function, &comparison.sides[0])
            .is_none()
        {
            comparison.function(Some(function), None);
        }
    }
    Ok(comparison.finish(options.most))
}

impl<'p> Comparison<'p> {
    /// Compares the records of a function in the two profiles. Two records with the same hash and the same number of
    /// counters are compared with each other. The other records of a stage (with or without context sensitivity) are
    /// added up, and become one row of the result.
    fn function(&mut self, old: Option<FunctionRef<'p>>, new: Option<FunctionRef<'p>>) {
        let Some(function) = new.or(old) else { return };
        let key = |record: &RecordRef<'p>| (record.func_hash, record.counts.len());
        let [old, new] = [old, new].map(|side| {
            let records = side.into_iter().flat_map(|it| it.records());
            let mut records: Vec<RecordRef<'p>> = records.collect();
            records.sort_by_key(key);
            records
        });
        let twin = |those: &[RecordRef<'p>], record: &RecordRef<'p>| {
            let found = those.binary_search_by_key(&key(record), key);
            found.ok().and_then(|index| those.get(index)).copied()
        };
        // The hash and the sum of the counters of each record without a counterpart, for each stage and each profile.
        let mut alone: [[Vec<(FuncHash, u128)>; 2]; 2] = Default::default();
        for (side, (these, those)) in [(&old, &new), (&new, &old)].into_iter().enumerate() {
            for record in these {
                match twin(those, record) {
                    Some(_) if side == 1 => {}
                    Some(twin) => self.pair(function, record, &twin),
                    None => {
                        let stage = stage(self.two_stages, record.func_hash);
                        if let Some(of_stage) = alone.get_mut(stage)
                            && let Some(alone) = of_stage.get_mut(side)
                        {
                            alone.push((record.func_hash, sum(record)));
                        }
                    }
                }
            }
        }
        for (stage, [old, new]) in alone.into_iter().enumerate() {
            // Several records whose hashes changed cannot be told apart: their sums are compared.
            if let (Some(first), Some(other)) = (old.first(), new.first()) {
                let sum = |records: &[(FuncHash, u128)]| records.iter().map(|one| one.1).sum();
                let sides = [(first.0, sum(&old)), (other.0, sum(&new))];
                self.alone(function, stage, Change::HashChanged, sides.map(Some));
                continue;
            }
            for record in old {
                self.alone(function, stage, Change::Gone, [Some(record), None]);
            }
            for record in new {
                self.alone(function, stage, Change::New, [None, Some(record)]);
            }
        }
    }

    /// Adds a row for a record, or the sum of several, that has no equal in the other profile.
    fn alone(
        &mut self,
        function: FunctionRef<'p>,
        stage: usize,
        change: Change,
        sides: [Option<(FuncHash, u128)>; 2],
    ) {
        let counts = sides.map(|side| side.map(|(_, sum)| sum));
        let totals = self.totals_of(stage);
        self.push(Row {
            function,
            change,
            stage,
            hashes: sides.map(|side| side.map(|(hash, _)| hash)),
            counts,
            moved: totals.distance(counts.map(Option::unwrap_or_default)) / 2.0,
        });
    }

    fn totals_of(&self, stage: usize) -> Totals {
        self.totals.get(stage).copied().unwrap_or_default()
    }

    fn pair(&mut self, function: FunctionRef<'p>, old: &RecordRef<'p>, new: &RecordRef<'p>) {
        self.found.common += 1;
        let stage = stage(self.two_stages, old.func_hash);
        let totals = self.totals_of(stage);
        let parts = pairs(old, new).map(|(_, counts)| counts);
        let sums = [sum(old), sum(new)];
        let mut moved = totals.moved(parts);
        if let (Some(old), Some(new)) = (old.values, new.values) {
            let [old_share, new_share] = totals.shares(sums);
            let values = [
                value_kind::INDIRECT_CALL_TARGET,
                value_kind::MEM_OP_SIZE,
                value_kind::VTABLE_TARGET,
            ];
            let values = values.map(|kind| self.values(kind, old, new).moved());
            let of_values = values.into_iter().fold(0.0, f64::max);
            moved = moved.max(of_values * old_share.midpoint(new_share));
        }
        if moved == 0.0 {
            self.found.unchanged += 1;
            return;
        }
        self.push(Row {
            function,
            change: Change::Moved,
            stage,
            hashes: [Some(old.func_hash), Some(new.func_hash)],
            counts: sums.map(Some),
            moved,
        });
    }

    fn push(&mut self, row: Row<'p>) {
        let totals = self.totals_of(row.stage);
        let shares = totals.shares(row.counts.map(Option::unwrap_or_default));
        self.found.count(row.change, shares, row.moved);
        if let Some(moved) = self.moved.get_mut(row.stage) {
            *moved += row.moved;
        }
        self.rows.push(row);
    }

    fn finish(mut self, most: usize) -> ProfileDiff {
        let stages = self.totals.into_iter().zip(self.moved);
        let counted = stages.filter(|(totals, _)| !totals.is_any_zero());
        let moved = counted.map(|(_, moved)| moved.min(1.0));
        self.found.moved = moved.reduce(f64::max);
        let mut rows = std::mem::take(&mut self.rows);
        keep_first(&mut rows, most, Row::order);
        self.found.functions = rows.iter().map(|row| self.listed(row)).collect();
        self.found
    }

    fn listed(&self, row: &Row<'p>) -> FunctionChange {
        let totals = self.totals_of(row.stage);
        let shares = totals.shares(row.counts.map(Option::unwrap_or_default));
        let mut sides = self.sides.iter().zip(row.counts);
        let mut rank = || {
            let (side, count) = sides.next()?;
            Some(side.ranks.get(row.stage)?.of(count?))
        };
        let (blocks, targets) = self.details(row).unwrap_or_default();
        FunctionChange {
            change: row.change,
            name: match row.function.name() {
                b"" => row.function.name_ref().to_string().into_bytes(),
                name => name.to_vec(),
            },
            context_sensitive: row.stage == 1,
            hashes: row.hashes.map(|hash| hash.map(|hash| hash.0)),
            counts: row.counts,
            shares: [0, 1].map(|side: usize| {
                row.counts.get(side).copied().flatten()?;
                shares.get(side).copied()
            }),
            ranks: [rank(), rank()],
            moved: row.moved,
            blocks,
            targets,
            ..FunctionChange::default()
        }
    }

    /// Returns the blocks and the call targets whose shares changed most. `None` if the change of the row is not
    /// [`Change::Moved`].
    fn details(&self, row: &Row<'p>) -> Option<(Vec<BlockChange>, Vec<TargetChange>)> {
        if row.change != Change::Moved {
            return None;
        }
        let record = |side: &Side<'p>, other: &Side<'p>, hash: Option<FuncHash>| {
            let function = side.twin(row.function, other)?;
            side.index.record(function, hash?)
        };
        let [old, new] = &self.sides;
        let (old, new) = (
            record(old, new, row.hashes[0])?,
            record(new, old, row.hashes[1])?,
        );
        let blocks = blocks(Totals([sum(&old), sum(&new)]), pairs(&old, &new));
        let mut targets = Vec::new();
        if let (Some(old), Some(new)) = (old.values, new.values) {
            for kind in [value_kind::INDIRECT_CALL_TARGET, value_kind::VTABLE_TARGET] {
                targets.extend(self.values(kind, old, new).changes(|value| match value {
                    0 if kind == value_kind::VTABLE_TARGET => Target::UnknownVTable,
                    value => self.target(value),
                }));
            }
            let sizes = self.values(value_kind::MEM_OP_SIZE, old, new);
            targets.extend(sizes.changes(Target::Size));
        }
        Some((blocks, targets))
    }

    fn values(&self, kind: u32, old: &ValueData, new: &ValueData) -> Values {
        let is_name = kind != value_kind::MEM_OP_SIZE && !self.respelled.is_empty();
        values_of(kind, old, new, |value| {
            let known = is_name.then(|| self.respelled.get(&value)).flatten();
            known.copied().unwrap_or(value)
        })
    }

    fn target(&self, value: u64) -> Target {
        let mut sides = self.sides.iter().rev();
        let named = sides.find_map(|side| side.index.function(NameRef(value)));
        named.map_or(Target::Hash(value), |function| {
            Target::Name(function.name().to_vec())
        })
    }
}

fn pairs<'p>(
    old: &RecordRef<'p>,
    new: &RecordRef<'p>,
) -> impl Iterator<Item = (Place, [u64; 2])> + use<'p> {
    let counters = counts(old).iter().zip(counts(new)).enumerate();
    counters.map(|(index, (&old, &new))| (Place::Index(index), [old, new]))
}

/// Pairs the values of two records by value site and value. A value in the old profile may be the hash of a name that
/// is spelled differently in the new profile. `renamed` returns the hash of the new spelling for such a value, and any
/// other value unchanged.
fn values_of(kind: u32, old: &ValueData, new: &ValueData, renamed: impl Fn(u64) -> u64) -> Values {
    let entries = |values: &ValueData| {
        let sites = values.kind(kind).into_iter().flat_map(|kind| kind.sites());
        let entries = sites.enumerate().flat_map(|(site, entries)| {
            let place = Place::Index(site);
            entries
                .iter()
                .map(move |entry| ((place, entry.value), entry.count))
        });
        entries.collect::<Vec<_>>()
    };
    let mut old = entries(old);
    for ((_, value), _) in &mut old {
        *value = renamed(*value);
    }
    Values::new(old, entries(new))
}
