//! The accumulator of a merge. It finds functions by name and their records by hash, and adds up the counters of the
//! records.
//!
//! With [`Rules::TOLERANT`] accumulators form a commutative monoid, and the empty accumulator is its identity. Records
//! with the same name and hash may have different numbers of counters, bitmap bytes or value sites. Such records stay
//! separate until [`Accumulator::finish`], which keeps the record of the first input. With [`Rules::LLVM`] the record
//! that is added first is kept. As in LLVM's writer (`InstrProfWriter::addRecord`), a later record with a different
//! number of counters is rejected at once. If only its number of bitmap bytes or value sites differs, its counters are
//! still added.
pub(crate) mod counts;
mod crowded;
mod fault;
mod sites;
#[cfg(test)]
mod tests;

use crate::Weight;
use crate::report::{EventLog, Sides};
use crowded::Crowded;
pub(crate) use fault::{Fault, Kept};
use hashbrown::HashTable;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::{
    FunctionId, FunctionTable, KindValues, NewRecord, Record, RecordId, RecordRef, ValueData,
};
use profkit_data::llvm_order::{NumberMap, record_order};
pub(crate) use sites::{
    Scratch, SiteRule, finish as finish_values, is_long, merge_kind, scale as scale_values,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) sites: SiteRule,
    /// Whether the first record of a name and hash decides the sizes of all. Otherwise records of other sizes stay
    /// separate until all inputs are read.
    pub(crate) first_shape_wins: bool,
    /// Whether weights scale the markers of pseudo records, and merging two of them changes only the first marker.
    pub(crate) markers_are_counts: bool,
    /// Whether records of a worker that is joined come after those of this worker. Otherwise the inputs decide the
    /// order.
    pub(crate) joins_in_order: bool,
    /// Whether nothing depends on the order of inputs: of records with different sizes those that most inputs have are
    /// kept, and functions are in the order of the hashes of their names.
    pub(crate) order_free: bool,
    /// The order in which LLVM's writers pass on the records of a function.
    pub(crate) map: NumberMap,
}

impl Rules {
    /// The tolerant rules, whose result does not depend on the order of inputs.
    pub(crate) const TOLERANT: Self = Rules {
        sites: SiteRule::Canonical,
        first_shape_wins: false,
        markers_are_counts: false,
        joins_in_order: false,
        order_free: false,
        map: NumberMap::Llvm19,
    };
    /// The tolerant rules for merges that do not depend on the order of inputs.
    pub(crate) const ORDER_FREE: Self = Rules {
        order_free: true,
        ..Self::TOLERANT
    };
    /// The tolerant rules, except that value sites are added as in LLVM's writers.
    pub(crate) const AS_WRITERS: Self = Rules {
        sites: SiteRule::Llvm,
        ..Self::TOLERANT
    };
    /// The rules of LLVM's writers for adding records.
    pub(crate) const LLVM: Self = Rules {
        sites: SiteRule::Llvm,
        first_shape_wins: true,
        markers_are_counts: true,
        joins_in_order: true,
        order_free: false,
        map: NumberMap::Llvm19,
    };
}

impl Default for Rules {
    fn default() -> Self {
        Self::TOLERANT
    }
}

#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    rules: Rules,
    join: SiteRule,
    table: FunctionTable,
    index: HashTable<FunctionId>,
    crowded: Crowded,
    stats: Vec<RecordStats>,
    scratch: Scratch,
    /// The number of records that were left out because a table can hold at most 2^32 − 1 entries.
    pub(crate) refused: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordStats {
    pub(crate) seen: u64,
    /// A number that identifies the program of the added records; 0 if the program has no build id.
    pub(crate) origin: u32,
    pub(crate) collided: bool,
    pub(crate) overflowed: bool,
}

impl RecordStats {
    pub(crate) const fn once(origin: u32) -> Self {
        RecordStats {
            seen: 1,
            origin,
            collided: false,
            overflowed: false,
        }
    }

    fn absorb(&mut self, other: RecordStats) {
        self.seen = self.seen.saturating_add(other.seen);
        let differ = self.origin != 0 && other.origin != 0 && self.origin != other.origin;
        self.collided |= other.collided | differ;
        // The lower program number is kept, so that the result does not depend on the order of inputs.
        self.origin = match (self.origin, other.origin) {
            (0, one) | (one, 0) => one,
            (a, b) => a.min(b),
        };
        self.overflowed |= other.overflowed;
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) name_ref: NameRef,
    pub(crate) data: NewRecord<'a>,
    pub(crate) weight: Weight,
    pub(crate) stats: RecordStats,
    pub(crate) site_rule: SiteRule,
}

impl<'a> Incoming<'a> {
    pub(crate) fn of_record(
        record: &'a Record,
        order: u64,
        weight: Weight,
        site_rule: SiteRule,
    ) -> Self {
        Incoming {
            name: &record.name,
            name_ref: record.name_ref,
            data: NewRecord {
                func_hash: record.func_hash,
                counts: &record.counts,
                bitmap: &record.bitmap,
                uniformity: &record.uniformity,
                values: Some(&record.values),
                order,
            },
            weight,
            stats: RecordStats::once(0),
            site_rule,
        }
    }
}

fn site_counts(values: Option<&ValueData>) -> [usize; 3] {
    let count = |kind| {
        values
            .and_then(|values| values.kind(kind))
            .map_or(0, KindValues::site_count)
    };
    [count(0), count(1), count(2)]
}

/// What two records of the same name and hash must have in common to be added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Shape {
    counters: usize,
    bitmap_bytes: usize,
    pseudo: bool,
    value_sites: [usize; 3],
}

impl Shape {
    fn of(record: &NewRecord<'_>) -> Self {
        Shape {
            counters: record.counts.len(),
            bitmap_bytes: record.bitmap.len(),
            pseudo: record.is_pseudo(),
            value_sites: site_counts(record.values),
        }
    }
}

impl Accumulator {
    pub(crate) fn new(rules: Rules) -> Self {
        Accumulator {
            rules,
            join: match rules.sites {
                SiteRule::Canonical => SiteRule::Canonical,
                SiteRule::Llvm | SiteRule::LlvmJoin => SiteRule::LlvmJoin,
            },
            ..Self::default()
        }
    }

    pub(crate) fn table(&self) -> &FunctionTable {
        &self.table
    }

    /// What is known of a record but its data.
    pub(crate) fn stats_of(&self, id: RecordId) -> Option<RecordStats> {
        self.stats.get(id.0 as usize).copied()
    }

    /// Changes the positions of all records; see [`FunctionTable::map_orders`].
    pub(crate) fn renumber(&mut self, new: &dyn Fn(usize) -> usize) {
        self.table
            .map_orders(|order| order_of(new(input_of(order)), order & u64::from(u32::MAX)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.function_count() == 0
    }

    /// The function of a name and its hash.
    pub(crate) fn find(&self, hash: u64, name: &[u8]) -> Option<FunctionId> {
        let found = self.index.find(hash, |&id| {
            self.table.function(id).is_some_and(|function| {
                function.name_ref() == NameRef(hash) && function.name() == name
            })
        });
        found.copied()
    }

    pub(crate) fn reserve(&mut self, functions: usize, name_bytes: usize, counts: usize) {
        self.table.reserve(functions, name_bytes, counts);
        self.stats.reserve(functions);
        let table = &self.table;
        self.index.reserve(functions, |&id| {
            table
                .function(id)
                .map_or(0, |function| function.name_ref().0)
        });
    }

    /// `order` is that of the function's first record. `None` if the table of functions is full.
    fn function(&mut self, name: &[u8], name_ref: NameRef, order: u64) -> Option<FunctionId> {
        if let Some(id) = self.find(name_ref.0, name) {
            return Some(id);
        }
        let Accumulator { table, index, .. } = self;
        let id = table.push_function(name, name_ref, order)?;
        index.insert_unique(name_ref.0, id, |&id| {
            table
                .function(id)
                .map_or(0, |function| function.name_ref().0)
        });
        Some(id)
    }

    /// Whether there may be a record of this name and hash with value sites. For crowded functions always true.
    pub(crate) fn may_have_values(&self, incoming: &Incoming<'_>) -> bool {
        let function = self.index.find(incoming.name_ref.0, |&id| {
            self.table
                .function(id)
                .is_some_and(|function| function.name() == incoming.name)
        });
        let Some(function) = function.and_then(|&id| self.table.function(id)) else {
            return false;
        };
        let mut records = function.records();
        records
            .by_ref()
            .take(crowded::FEW)
            .any(|record| record.func_hash == incoming.data.func_hash && record.values.is_some())
            || records.next().is_some()
    }

    /// Adds what fits. Returns the first fault, as LLVM reports one per record; `None` also if a table is full.
    pub(crate) fn add(&mut self, incoming: Incoming<'_>) -> Option<Fault> {
        let Some(function) = self.function(incoming.name, incoming.name_ref, incoming.data.order)
        else {
            self.refused += incoming.stats.seen;
            return None;
        };
        let there = self
            .crowded
            .find(&self.table, self.rules, function, &incoming.data);
        match there {
            None => self.add_new(function, incoming, incoming.data.is_pseudo()),
            Some(id) => self.add_to(function, id, incoming),
        }
    }

    fn add_new(
        &mut self,
        function: FunctionId,
        incoming: Incoming<'_>,
        pseudo: bool,
    ) -> Option<Fault> {
        let Some(id) = self.table.push_record(function, incoming.data) else {
            self.refused += incoming.stats.seen;
            return None;
        };
        self.crowded.added(&self.table, self.rules, function, id);
        let mut stats = incoming.stats;
        // LLVM scales markers like counts. With weight 1, it neither scales nor checks the range.
        let scale = if self.rules.markers_are_counts {
            !incoming.weight.is_one()
        } else {
            !pseudo
        };
        if scale && let Some(counts) = self.table.counts_mut(id) {
            stats.overflowed |= counts::scale(counts, incoming.weight);
        }
        if !incoming.weight.is_one()
            && let Some(values) = self.table.values_mut(id)
        {
            stats.overflowed |= scale_values(values, incoming.weight);
        }
        // A text may list more values than a site can have. LLVM's writers cut the list even in the first record.
        if self.join == SiteRule::LlvmJoin
            && let Some(values) = self.table.values_mut(id)
            && is_long(values)
        {
            finish_values(values);
        }
        let fault = (stats.overflowed && !incoming.stats.overflowed).then_some(Fault::Overflow);
        self.stats.push(stats);
        self.table.seen_at(function, id, incoming.data.order);
        fault
    }

    fn add_to(
        &mut self,
        function: FunctionId,
        id: RecordId,
        incoming: Incoming<'_>,
    ) -> Option<Fault> {
        let mut first_fault = None;
        let mut fault = |fault: Fault| {
            first_fault.get_or_insert(fault);
        };
        let Incoming { data, weight, .. } = incoming;
        let record = self.table.record(id)?;
        if record.counts.len() != data.counts.len() {
            return Some(Fault::Counters(data.counts.len(), record.counts.len()));
        }
        let pseudo = data.is_pseudo();
        if record.is_pseudo() != pseudo {
            return Some(Fault::Pseudo);
        }
        let mut overflowed = false;
        if let Some(counts) = self.table.counts_mut(id) {
            if pseudo {
                counts::merge_pseudo(counts, data.counts, self.rules.markers_are_counts);
            } else if counts::add(counts, data.counts, weight) {
                overflowed = true;
                fault(Fault::Overflow);
            }
        }
        if !(pseudo && self.rules.markers_are_counts) {
            overflowed |= self.add_bitmap_and_values(id, &incoming, &mut fault);
        }
        if let Some(stats) = self.stats.get_mut(id.0 as usize) {
            stats.absorb(incoming.stats);
            stats.overflowed |= overflowed;
        }
        self.table.seen_at(function, id, data.order);
        first_fault
    }

    /// The numbers of counters are equal. Returns whether a count became the largest 64-bit number.
    fn add_bitmap_and_values(
        &mut self,
        id: RecordId,
        incoming: &Incoming<'_>,
        fault: &mut impl FnMut(Fault),
    ) -> bool {
        let data = &incoming.data;
        self.table.add_uniformity(id, data.uniformity);
        if let Some(bitmap) = self.table.bitmap_mut(id) {
            if bitmap.len() != data.bitmap.len() {
                fault(Fault::Bitmap(data.bitmap.len(), bitmap.len()));
                return false;
            }
            for (byte, more) in bitmap.iter_mut().zip(data.bitmap) {
                *byte |= more;
            }
        }
        let mut overflowed = false;
        let theirs = site_counts(data.values);
        let mine = site_counts(self.table.record(id).and_then(|record| record.values));
        for (kind, (theirs, mine)) in (0..).zip(theirs.into_iter().zip(mine)) {
            if theirs != mine {
                fault(Fault::ValueSites(kind, theirs, mine));
                continue;
            }
            let (Some(input), Some(this)) = (
                data.values.and_then(|values| values.kind(kind)),
                self.table
                    .values_mut(id)
                    .and_then(|values| values.kind_mut(kind)),
            ) else {
                continue;
            };
            if merge_kind(
                this,
                input,
                incoming.weight,
                incoming.site_rule,
                &mut self.scratch,
            ) {
                overflowed = true;
                fault(Fault::Overflow);
            }
        }
        overflowed
    }

    /// With [`Rules::joins_in_order`], the records that are added come after those that the accumulator has.
    pub(crate) fn merge(&mut self, other: Accumulator, mut fault: impl FnMut(Fault, &[u8])) {
        let in_order = self.rules.joins_in_order;
        if self.is_empty() && self.rules == other.rules && !in_order {
            let refused = self.refused;
            *self = other;
            self.refused = self.refused.saturating_add(refused);
            return;
        }
        let mut next_order = if in_order { self.next_order() } else { 0 };
        self.refused = self.refused.saturating_add(other.refused);
        let mut ids = Vec::new();
        let mut functions: Vec<_> = (0..).map(FunctionId).zip(other.table.functions()).collect();
        // `other` imitates one of LLVM's writers, so its functions come in the order in which it got them.
        if in_order && !functions.is_sorted_by_key(|(_, function)| function.order()) {
            functions.sort_by_key(|(_, function)| function.order());
        }
        for (id, function) in functions {
            ids.clear();
            ids.extend(other.table.record_ids(id));
            if in_order && ids.len() > 1 {
                ids = other.in_llvm_order(&ids);
            }
            for &record_id in &ids {
                let (Some(record), Some(&stats)) = (
                    other.table.record(record_id),
                    other.stats.get(record_id.0 as usize),
                ) else {
                    continue;
                };
                let order = if in_order { next_order } else { record.order };
                next_order += 1;
                let incoming = Incoming {
                    name: function.name(),
                    name_ref: function.name_ref(),
                    data: NewRecord {
                        order,
                        ..record.to_new()
                    },
                    weight: Weight::ONE,
                    stats,
                    site_rule: self.join,
                };
                if let Some(found) = self.add(incoming) {
                    fault(found, function.name());
                }
            }
        }
    }

    /// Gives functions other names: `name_of` gets the name and the order of each function. The records of functions
    /// that come to have the same name are added up.
    pub(crate) fn rename<'n>(&mut self, mut name_of: impl FnMut(&[u8], u64) -> Option<&'n [u8]>) {
        let old = std::mem::replace(self, Accumulator::new(self.rules));
        self.refused = old.refused;
        for (id, function) in (0..).map(FunctionId).zip(old.table.functions()) {
            let new = name_of(function.name(), function.order());
            for record_id in old.table.record_ids(id) {
                let (Some(record), Some(&stats)) = (
                    old.table.record(record_id),
                    old.stats.get(record_id.0 as usize),
                ) else {
                    continue;
                };
                self.add(Incoming {
                    name: new.unwrap_or(function.name()),
                    name_ref: new.map_or(function.name_ref(), NameRef::of),
                    data: record.to_new(),
                    weight: Weight::ONE,
                    stats,
                    site_rule: self.join,
                });
            }
        }
    }

    /// Sorts the records of one function into the order in which LLVM passes them from one writer to another.
    fn in_llvm_order(&self, ids: &[RecordId]) -> Vec<RecordId> {
        let hash = |&id: &RecordId| self.table.record(id).map_or(0, |record| record.func_hash.0);
        let hashes: Vec<u64> = ids.iter().map(hash).collect();
        let order = record_order(&hashes, self.rules.map);
        let id = |position: u32| ids.get(position as usize).copied();
        order.into_iter().filter_map(id).collect()
    }

    fn next_order(&self) -> u64 {
        let last = self.table.functions().map(|function| {
            let records = function.records().map(|record| record.order);
            records.max().unwrap_or(0)
        });
        last.max().map_or(0, |last| last.saturating_add(1))
    }

    /// Finishes the sum: of records of one name and hash that do not fit each other, one is kept and the others are
    /// reported.
    pub(crate) fn finish(mut self, keep: Option<Keep<'_>>, log: &mut EventLog) -> Finished {
        let mut finished = Finished {
            refused: self.refused,
            ..Finished::default()
        };
        let losers = if self.rules.first_shape_wins {
            Vec::new()
        } else {
            self.drop_other_shapes(&mut finished, log)
        };
        for id in (0..self.table.record_count()).filter_map(|id| u32::try_from(id).ok()) {
            if let Some(values) = self.table.values_mut(RecordId(id)) {
                finish_values(values);
            }
        }
        let drops = !losers.is_empty();
        let filters = keep.is_some();
        if drops || filters || self.rules.order_free {
            self.rebuild(|id| losers.binary_search(&id).is_err(), keep, &mut finished);
        } else {
            self.table.sort_records();
        }
        for stats in &self.stats {
            finished.records_merged = finished.records_merged.saturating_add(stats.seen);
            finished.collisions += u64::from(stats.collided);
            finished.overflowed += u64::from(stats.overflowed);
        }
        if finished.collisions > 0 {
            self.find_shared(&mut finished);
        }
        finished.table = self.table;
        finished
    }

    fn find_shared(&self, finished: &mut Finished) {
        for id in (0..self.table.function_count()).filter_map(|id| u32::try_from(id).ok()) {
            let id = FunctionId(id);
            let collided = |record: &RecordId| {
                let stats = self.stats.get(record.0 as usize);
                stats.is_some_and(|stats| stats.collided)
            };
            let records = self.table.record_ids(id).filter(collided);
            let sums = records.filter_map(|record| self.table.record(record).map(sum_of));
            let sums: Vec<u128> = sums.collect();
            if !sums.is_empty() {
                finished.shared.push((sums.iter().sum(), id));
            }
        }
    }

    /// Merges records of one name and hash into the first. Returns those that were merged.
    fn drop_other_shapes(&mut self, finished: &mut Finished, log: &mut EventLog) -> Vec<RecordId> {
        // In the order of inputs, so that a log with a limit keeps the same events for any number of threads.
        let mut conflicts: Vec<(u64, FunctionId, RecordId, RecordId)> = Vec::new();
        let most_seen = self.rules.order_free;
        let mut same: Vec<(FuncHash, Reverse<Option<(u64, Shape)>>, u64, RecordId)> = Vec::new();
        for function in (0..self.table.function_count()).filter_map(|id| u32::try_from(id).ok()) {
            let function = FunctionId(function);
            // Nearly all functions have one record.
            if self.table.record_ids(function).nth(1).is_none() {
                continue;
            }
            same.clear();
            same.extend(self.table.record_ids(function).filter_map(|id| {
                let record = self.table.record(id)?;
                let stats = self.stats.get(id.0 as usize)?;
                let rank = most_seen.then(|| (stats.seen, Shape::of(&record.to_new())));
                Some((record.func_hash, Reverse(rank), record.order, id))
            }));
            same.sort_unstable();
            let mut winner = None;
            for &(hash, _, order, id) in &same {
                match winner {
                    Some((winning_hash, winning)) if winning_hash == hash => {
                        conflicts.push((order, function, winning, id));
                    }
                    _ => winner = Some((hash, id)),
                }
            }
        }
        conflicts.sort_unstable();
        let mut losers = Vec::with_capacity(conflicts.len());
        for (order, function, winner, id) in conflicts {
            let dropped = self.fold(function, winner, id, order, log);
            if dropped > 0 {
                finished.records_dropped = finished.records_dropped.saturating_add(dropped);
                self.note_sides(winner, id, &mut finished.mismatched);
            }
            losers.push(id);
        }
        losers.sort_unstable();
        self.report_overflows(&losers, log);
        losers
    }

    fn note_sides(
        &self,
        winner: RecordId,
        id: RecordId,
        mismatched: &mut BTreeMap<(usize, usize), Sides>,
    ) {
        let seen = |id: RecordId| {
            let stats = self.stats.get(id.0 as usize);
            stats.map_or(0, |stats| stats.seen)
        };
        let (Some(kept), Some(dropped)) = (self.table.record(winner), self.table.record(id)) else {
            return;
        };
        let inputs = (input_of(kept.order), input_of(dropped.order));
        let sides = mismatched.entry(inputs).or_default();
        sides.kept_inputs = sides.kept_inputs.max(seen(winner));
        sides.dropped_inputs = sides.dropped_inputs.max(seen(id));
        sides.functions += 1;
        sides.counts += sum_of(dropped);
    }

    fn report_overflows(&self, losers: &[RecordId], log: &mut EventLog) {
        if !self.stats.iter().any(|stats| stats.overflowed) {
            return;
        }
        let mut overflowed: Vec<(u64, FunctionId)> = Vec::new();
        for function in (0..self.table.function_count()).filter_map(|id| u32::try_from(id).ok()) {
            let function = FunctionId(function);
            for id in self.table.record_ids(function) {
                let stats = self.stats.get(id.0 as usize);
                if stats.is_some_and(|stats| stats.overflowed)
                    && losers.binary_search(&id).is_err()
                    && let Some(record) = self.table.record(id)
                {
                    overflowed.push((record.order, function));
                }
            }
        }
        overflowed.sort_unstable();
        for (order, function) in overflowed {
            let name = self.table.function(function).map_or(&[][..], |f| f.name());
            let event = Fault::Overflow.event(input_of(order), name, Kept::First);
            log.push_ordered(order, event);
        }
    }

    /// Merges record `id` into `winner`. Returns the number of input records that were left out completely.
    fn fold(
        &mut self,
        function: FunctionId,
        winner: RecordId,
        id: RecordId,
        order: u64,
        log: &mut EventLog,
    ) -> u64 {
        let Some(record) = self.table.record(id) else {
            return 0;
        };
        let counts = record.counts.to_vec();
        let bitmap = record.bitmap.to_vec();
        let uniformity = record.uniformity.to_vec();
        let values = record.values.cloned();
        let Some(&stats) = self.stats.get(id.0 as usize) else {
            return 0;
        };
        let data = NewRecord {
            func_hash: record.func_hash,
            counts: &counts,
            bitmap: &bitmap,
            uniformity: &uniformity,
            values: values.as_ref(),
            order,
        };
        let incoming = Incoming {
            name: &[],
            name_ref: NameRef(0),
            data,
            weight: Weight::ONE,
            stats,
            site_rule: SiteRule::Canonical,
        };
        let fault = self.add_to(function, winner, incoming);
        let Some(fault) = fault.filter(|&fault| fault != Fault::Overflow) else {
            return 0;
        };
        let name = self.table.function(function).map_or(&[][..], |f| f.name());
        let kept = match self.rules.order_free {
            true => Kept::MostSeen,
            false => Kept::First,
        };
        let mut event = fault.event(input_of(order), name, kept);
        if stats.seen > 1 {
            let more = format!(" (also in {} later records)", stats.seen - 1);
            event.message.push_str(&more);
        }
        log.push_ordered(order, event);
        match fault {
            Fault::Counters(..) | Fault::Pseudo => stats.seen,
            _ => 0,
        }
    }

    fn rebuild(
        &mut self,
        stays: impl Fn(RecordId) -> bool,
        keep: Option<Keep<'_>>,
        finished: &mut Finished,
    ) {
        let mut table = FunctionTable::new();
        let mut stats = Vec::new();
        let full = "the table already held more entries";
        let order_free = self.rules.order_free;
        let mut functions: Vec<_> = (0..).map(FunctionId).zip(self.table.functions()).collect();
        if order_free {
            functions.sort_unstable_by_key(|(_, function)| (function.name_ref(), function.name()));
        }
        let mut records = Vec::new();
        for (id, function) in functions {
            if keep.is_some_and(|keep| !keep(function.name())) {
                finished.filtered += self.table.record_ids(id).count() as u64;
                finished.filtered_names += 1;
                continue;
            }
            let order = match order_free {
                true => function.name_ref().0,
                false => function.order(),
            };
            let new = table.push_function(function.name(), function.name_ref(), order);
            debug_assert!(new.is_some(), "{full}");
            let Some(new) = new else { continue };
            records.clear();
            for record_id in self.table.record_ids(id).filter(|&id| stays(id)) {
                let own = self.stats.get(record_id.0 as usize).copied();
                if let (Some(record), Some(own)) = (self.table.record(record_id), own) {
                    records.push((record.to_new(), own));
                }
            }
            if order_free {
                records.sort_unstable_by_key(|(record, _)| record.func_hash);
                let orders = records.iter_mut().map(|(record, _)| &mut record.order);
                (0..)
                    .zip(orders)
                    .for_each(|(number, order)| *order = number);
            }
            for &(record, own) in &records {
                if table.push_record(new, record).is_some() {
                    stats.push(own);
                }
            }
        }
        table.sort_records();
        self.table = table;
        self.stats = stats;
    }
}

pub(crate) type Keep<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub(crate) table: FunctionTable,
    pub(crate) filtered: u64,
    pub(crate) filtered_names: u64,
    pub(crate) records_merged: u64,
    pub(crate) records_dropped: u64,
    pub(crate) refused: u64,
    pub(crate) overflowed: u64,
    pub(crate) collisions: u64,
    /// The functions that programs of different build ids have in common, each with the sum of its counters.
    pub(crate) shared: Vec<(u128, FunctionId)>,
    /// The records that were left out, by the first inputs of those that were kept and of those that were left out. Two
    /// functions can have the same inputs.
    pub(crate) mismatched: BTreeMap<(usize, usize), Sides>,
}

/// The sum of the counters of a record.
pub(crate) fn sum_of(record: RecordRef<'_>) -> u128 {
    record.counts.iter().map(|&count| u128::from(count)).sum()
}

pub(crate) fn order_of(input: usize, record: u64) -> u64 {
    ((input as u64) << 32).saturating_add(record.min(u64::from(u32::MAX)))
}

pub(crate) fn input_of(order: u64) -> usize {
    usize::try_from(order >> 32).unwrap_or(usize::MAX)
}
