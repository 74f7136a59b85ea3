//! Compares two instrumentation profiles, each in memory or read in its file.
use super::{
    BlockChange, Change, DiffOptions, FunctionChange, Place, ProfileDiff, Target, TargetChange,
    Totals, Values, blocks, keep_first, missing,
};
use crate::overlap::{CannotCompare, Finder, Function, Side};
use crate::selection::Selection;
use profkit_abi::value_kind;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::{InstrKind, RecordRef, ValueData};
use profkit_object::names::{symbol_of, with_other_separator};
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

/// The number of rows that are collected before all but the first are forgotten.
const COLLECTED: usize = 1024;

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

/// A function, or records of it, that changed.
#[derive(Default)]
struct Row {
    name: Vec<u8>,
    /// The hashes of the name in the two profiles; `None` where the profile does not have the function.
    name_refs: [Option<NameRef>; 2],
    change: Change,
    stage: usize,
    hashes: [Option<FuncHash>; 2],
    counts: [Option<u128>; 2],
    moved: f64,
}

impl Row {
    fn order(&self, other: &Self) -> Ordering {
        let by_moved = other.moved.total_cmp(&self.moved);
        by_moved
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.stage.cmp(&other.stage))
            .then_with(|| self.hashes.cmp(&other.hashes))
    }
}

/// What was found in a part of the functions.
#[derive(Default)]
struct Found {
    sums: ProfileDiff,
    /// The share of the total that moved, by stage.
    moved: [f64; 2],
    /// The functions that changed most so far. The others are forgotten on the way.
    rows: Vec<Row>,
    /// The share that moved because of the last row that stayed when the others were forgotten.
    least: f64,
}

/// A function in the two profiles.
type Pair<'f, 'r> = [Option<&'f Function<'r>>; 2];

struct Comparison<'c> {
    sides: [&'c Side<'c>; 2],
    /// The sums of all counters: first of the stage without context sensitivity, then of the context-sensitive stage.
    totals: [Totals; 2],
    two_stages: bool,
    most: usize,
    /// For functions whose name has a different separator in the two profiles: maps the name hash in the old profile to
    /// the name hash in the new profile.
    respelled: FxHashMap<u64, u64>,
}

pub(super) fn diff(
    old: &Side<'_>,
    new: &Side<'_>,
    options: &DiffOptions,
) -> Result<ProfileDiff, CannotCompare> {
    check_kinds(old.kind(), new.kind(), &UNLIKE)?;
    let two_stages = (old.kind() | new.kind()).contains(InstrKind::CONTEXT_SENSITIVE);
    let totals = [old, new].map(|side| match (two_stages, side.totals()) {
        (true, totals) => totals,
        // The bit that marks the second stage is an ordinary part of the hash.
        (false, [one, other]) => [one.saturating_add(other), 0],
    });
    let [[old_first, old_second], [new_first, new_second]] = totals;
    let mut comparison = Comparison {
        sides: [old, new],
        totals: [
            Totals([old_first, new_first]),
            Totals([old_second, new_second]),
        ],
        two_stages,
        most: options.most,
        respelled: FxHashMap::default(),
    };
    let (in_old, in_new) = (old.finder(), new.finder());
    let mut respelled = FxHashMap::default();
    new.each_name(|name, name_ref| {
        let is_local = symbol_of(name).len() < name.len();
        if is_local
            && let Some(twin) = twin((name, name_ref), &in_old, &in_new)
            && twin != name_ref
        {
            respelled.insert(twin.0, name_ref.0);
        }
    });
    comparison.respelled = respelled;
    let selection = &options.selection;
    let (found, gone) = rayon::join(
        || comparison.of_new(selection),
        || comparison.of_old(selection),
    );
    let mut diff = comparison.finish(found, gone);
    diff.missing = missing(selection, |one| {
        let mut found = false;
        for side in [old, new] {
            side.each_name(|name, _| found = found || one.selects(name));
        }
        found
    });
    Ok(diff)
}

/// Returns the name of the counterpart of a function of one profile in another; `None` if there is none. The names of a
/// local function may differ in the separator: `a.c;f`, or `a.c:f` before LLVM 17.
fn twin(
    (name, name_ref): (&[u8], NameRef),
    there: &Finder<'_>,
    here: &Finder<'_>,
) -> Option<NameRef> {
    if there.has(name_ref) {
        return Some(name_ref);
    }
    let other = NameRef::of(&with_other_separator(name)?);
    // The names differ only in the separator. If this profile also has a function with exactly the name of the other
    // one, that function is the counterpart, and this one has none.
    (there.has(other) && !here.has(other)).then_some(other)
}

impl Comparison<'_> {
    /// The index of the stage of a record with this hash: 1 for the context-sensitive stage, otherwise 0.
    fn stage(&self, hash: FuncHash) -> usize {
        usize::from(self.two_stages && hash.is_context_sensitive())
    }

    /// Compares the functions of the new profile.
    fn of_new(&self, selection: &Selection) -> Found {
        let [old, new] = self.sides;
        let (mut in_old, in_new) = (old.finder(), new.finder());
        let mut found = Found::default();
        new.each_function(|function| {
            if selection.selects(function.name) {
                let twin = twin((function.name, function.name_ref), &in_old, &in_new);
                let twin = twin.and_then(|twin| in_old.function(twin));
                self.function(&mut found, [twin.as_ref(), Some(function)]);
            }
        });
        found
    }

    /// Finds the functions of the old profile that the new one does not have.
    fn of_old(&self, selection: &Selection) -> Found {
        let [old, new] = self.sides;
        let (in_old, in_new) = (old.finder(), new.finder());
        let mut found = Found::default();
        old.each_function(|function| {
            let twin = || twin((function.name, function.name_ref), &in_new, &in_old);
            if selection.selects(function.name) && twin().is_none() {
                self.function(&mut found, [Some(function), None]);
            }
        });
        found
    }

    /// Compares the records of a function in the two profiles. Two records with the same hash and the same number of
    /// counters are compared with each other. The other records of a stage (with or without context sensitivity) are
    /// added up, and become one row of the result.
    fn function(&self, found: &mut Found, pair: Pair<'_, '_>) {
        let key = |record: &RecordRef<'_>| (record.func_hash, record.counts.len());
        let [old, new] = pair.map(|side| {
            let mut records = side.map_or_else(Vec::new, |side| side.records.clone());
            records.sort_by_key(key);
            records
        });
        // The hash and the sum of the counters of each record without a counterpart, for each stage and each profile.
        let mut alone: [[Vec<(FuncHash, u128)>; 2]; 2] = Default::default();
        for (side, (these, those)) in [(&old, &new), (&new, &old)].into_iter().enumerate() {
            for record in these {
                let twin = those.binary_search_by_key(&key(record), key);
                match twin.ok().and_then(|index| those.get(index)) {
                    Some(_) if side == 1 => {}
                    Some(twin) => self.pair(found, pair, record, twin),
                    None => {
                        if let Some(of_stage) = alone.get_mut(self.stage(record.func_hash))
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
                self.alone(found, pair, stage, Change::HashChanged, sides.map(Some));
                continue;
            }
            for record in old {
                self.alone(found, pair, stage, Change::Gone, [Some(record), None]);
            }
            for record in new {
                self.alone(found, pair, stage, Change::New, [None, Some(record)]);
            }
        }
    }

    /// Adds a row for a record, or the sum of several, that has no equal in the other profile.
    fn alone(
        &self,
        found: &mut Found,
        pair: Pair<'_, '_>,
        stage: usize,
        change: Change,
        sides: [Option<(FuncHash, u128)>; 2],
    ) {
        let counts = sides.map(|side| side.map(|(_, sum)| sum));
        let totals = self.totals_of(stage);
        let row = Row {
            change,
            stage,
            hashes: sides.map(|side| side.map(|(hash, _)| hash)),
            counts,
            moved: totals.distance(counts.map(Option::unwrap_or_default)) / 2.0,
            ..Row::default()
        };
        self.push(found, pair, row);
    }

    fn totals_of(&self, stage: usize) -> Totals {
        self.totals.get(stage).copied().unwrap_or_default()
    }

    fn pair(
        &self,
        found: &mut Found,
        pair: Pair<'_, '_>,
        old: &RecordRef<'_>,
        new: &RecordRef<'_>,
    ) {
        found.sums.common += 1;
        let stage = self.stage(old.func_hash);
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
            found.sums.unchanged += 1;
            return;
        }
        let row = Row {
            change: Change::Moved,
            stage,
            hashes: [Some(old.func_hash), Some(new.func_hash)],
            counts: sums.map(Some),
            moved,
            ..Row::default()
        };
        self.push(found, pair, row);
    }

    /// Adds a row, which has no names yet.
    fn push(&self, found: &mut Found, pair: Pair<'_, '_>, row: Row) {
        let totals = self.totals_of(row.stage);
        let shares = totals.shares(row.counts.map(Option::unwrap_or_default));
        found.sums.count(row.change, shares, row.moved);
        if let Some(sum) = found.moved.get_mut(row.stage) {
            *sum += row.moved;
        }
        let [old, new] = pair;
        let Some(function) = new
            .or(old)
            .filter(|_| self.most > 0 && row.moved >= found.least)
        else {
            return;
        };
        found.rows.push(Row {
            name: function.name.to_vec(),
            name_refs: pair.map(|side| side.map(|function| function.name_ref)),
            ..row
        });
        if found.rows.len() >= COLLECTED.max(self.most.saturating_mul(2)) {
            keep_first(&mut found.rows, self.most, Row::order);
            found.least = found.rows.last().map_or(0.0, |row| row.moved);
        }
    }

    fn finish(&self, found: Found, gone: Found) -> ProfileDiff {
        let mut diff = found.sums;
        for (change, sum) in gone.sums.changes {
            diff.changes.entry(change).or_default().add(&sum);
        }
        let moved = found.moved.into_iter().zip(gone.moved);
        let stages = self.totals.into_iter().zip(moved);
        let counted = stages.filter(|(totals, _)| !totals.is_any_zero());
        let moved = counted.map(|(_, (found, gone))| (found + gone).min(1.0));
        diff.moved = moved.reduce(f64::max);
        let mut rows = found.rows;
        rows.extend(gone.rows);
        keep_first(&mut rows, self.most, Row::order);
        let ranks = rayon::join(|| self.ranks(&rows, 0), || self.ranks(&rows, 1));
        let mut finders = self.sides.map(Side::finder);
        let listed = rows
            .iter()
            .map(|row| self.listed(row, [&ranks.0, &ranks.1], &mut finders));
        diff.functions = listed.collect();
        diff
    }

    /// The ranks of the counts of the listed functions among all of a profile.
    fn ranks(&self, rows: &[Row], side: usize) -> FewRanks {
        let mut ranks = FewRanks::new(rows.iter().filter_map(|row| {
            let count = row.counts.get(side).copied().flatten()?;
            Some((row.stage, count))
        }));
        if let Some(side) = self.sides.get(side)
            && !rows.is_empty()
        {
            side.each_function(|function| {
                for record in &function.records {
                    ranks.add(self.stage(record.func_hash), sum(record));
                }
            });
        }
        ranks.finish()
    }

    fn listed(
        &self,
        row: &Row,
        ranks: [&FewRanks; 2],
        finders: &mut [Finder<'_>; 2],
    ) -> FunctionChange {
        let totals = self.totals_of(row.stage);
        let shares = totals.shares(row.counts.map(Option::unwrap_or_default));
        let mut sides = ranks.into_iter().zip(row.counts);
        let mut rank = || {
            let (ranks, count) = sides.next()?;
            Some(ranks.of(row.stage, count?))
        };
        let name_ref = row.name_refs.iter().rev().flatten().next();
        let (blocks, targets) = self.details(row, finders).unwrap_or_default();
        FunctionChange {
            change: row.change,
            name: match (&*row.name, name_ref) {
                (b"", Some(name_ref)) => name_ref.to_string().into_bytes(),
                (name, _) => name.to_vec(),
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
    fn details(
        &self,
        row: &Row,
        finders: &mut [Finder<'_>; 2],
    ) -> Option<(Vec<BlockChange>, Vec<TargetChange>)> {
        if row.change != Change::Moved {
            return None;
        }
        let ([old_name, new_name], [old_hash, new_hash]) = (row.name_refs, row.hashes);
        let [in_old, in_new] = finders;
        let old = in_old.function(old_name?)?;
        let new = in_new.function(new_name?)?;
        let (old, new) = (old.record(old_hash?)?, new.record(new_hash?)?);
        let blocks = blocks(Totals([sum(old), sum(new)]), pairs(old, new));
        let mut targets = Vec::new();
        if let (Some(old), Some(new)) = (old.values, new.values) {
            let named = self.sides.map(Side::finder);
            for kind in [value_kind::INDIRECT_CALL_TARGET, value_kind::VTABLE_TARGET] {
                targets.extend(self.values(kind, old, new).changes(|value| match value {
                    0 if kind == value_kind::VTABLE_TARGET => Target::UnknownVTable,
                    value => target(value, &named),
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
}

/// The function that a value stands for, by the new profile if it has it.
fn target(value: u64, [old, new]: &[Finder<'_>; 2]) -> Target {
    let name = new
        .name(NameRef(value))
        .or_else(|| old.name(NameRef(value)));
    name.map_or(Target::Hash(value), |name| Target::Name(name.to_vec()))
}

/// The ranks of a few counts of each stage among all records.
#[derive(Debug, Default)]
struct FewRanks {
    /// The counts, in rising order.
    counts: [Vec<u128>; 2],
    /// For each of them, how many records have a larger count. Before [`finish`](Self::finish), only those whose count is not
    /// larger than the next one here.
    larger: [Vec<u64>; 2],
}

impl FewRanks {
    /// Takes the stages and the counts whose ranks are wanted.
    fn new(wanted: impl Iterator<Item = (usize, u128)>) -> Self {
        let mut ranks = FewRanks::default();
        for (stage, count) in wanted {
            if let Some(counts) = ranks.counts.get_mut(stage) {
                counts.push(count);
            }
        }
        for (counts, larger) in ranks.counts.iter_mut().zip(&mut ranks.larger) {
            counts.sort_unstable();
            counts.dedup();
            larger.resize(counts.len(), 0);
        }
        ranks
    }

    /// Adds a record.
    fn add(&mut self, stage: usize, count: u128) {
        if let (Some(counts), Some(larger)) = (self.counts.get(stage), self.larger.get_mut(stage))
            && let Some(below) = counts.partition_point(|&one| one < count).checked_sub(1)
            && let Some(larger) = larger.get_mut(below)
        {
            *larger += 1;
        }
    }

    /// Ends the adding of records.
    fn finish(mut self) -> Self {
        for larger in &mut self.larger {
            let mut above = 0;
            for one in larger.iter_mut().rev() {
                above += *one;
                *one = above;
            }
        }
        self
    }

    /// The rank of a count that was wanted, among the records that were added: 1 for the largest one. Equal counts have
    /// equal ranks.
    fn of(&self, stage: usize, count: u128) -> u64 {
        let found = self.counts.get(stage).zip(self.larger.get(stage));
        let larger = found.and_then(|(counts, larger)| {
            let at = counts.partition_point(|&one| one < count);
            larger.get(at).copied()
        });
        1 + larger.unwrap_or(0)
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
