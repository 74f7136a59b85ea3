//! An index of the records of functions that have many records. Functions of real programs have few records. A file may
//! have hundreds of thousands of records with one name. If each added record were compared with all of them, the merge
//! would take hours.
use super::{Rules, Shape};
use hashbrown::HashTable;
use profkit_data::ids::FuncHash;
use profkit_data::instr::{FunctionId, FunctionTable, NewRecord, RecordId};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Functions with more records than this have an index; others are searched one by one. Unit tests use a smaller
/// number.
pub(super) const FEW: usize = if cfg!(test) { 2 } else { 32 };

#[derive(Debug, Default)]
pub(super) struct Crowded {
    functions: HashSet<FunctionId>,
    records: HashTable<(FunctionId, RecordId)>,
    hasher: RandomState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    function: FunctionId,
    func_hash: FuncHash,
    /// `None` under rules that add all records with the same hash to each other, even if their sizes differ.
    shape: Option<Shape>,
}

impl Key {
    fn of_record(rules: Rules, function: FunctionId, record: &NewRecord<'_>) -> Self {
        Key {
            function,
            func_hash: record.func_hash,
            shape: (!rules.first_shape_wins).then(|| Shape::of(record)),
        }
    }
}

impl Crowded {
    /// Returns the first record of a function to which `new` is to be added. `None` if there is no such record.
    pub(super) fn find(
        &mut self,
        table: &FunctionTable,
        rules: Rules,
        function: FunctionId,
        new: &NewRecord<'_>,
    ) -> Option<RecordId> {
        let key = Key::of_record(rules, function, new);
        if !self.functions.contains(&function) {
            let mut ids = table.record_ids(function);
            let fits = |id: &RecordId| {
                table.record(*id).is_some_and(|record| {
                    record.func_hash == key.func_hash
                        && Key::of_record(rules, function, &record.to_new()) == key
                })
            };
            let found = ids.by_ref().take(FEW).find(fits);
            if found.is_some() || ids.next().is_none() {
                return found;
            }
            self.functions.insert(function);
            for id in table.record_ids(function) {
                self.insert(table, rules, function, id);
            }
        }
        let same = |&(owner, id): &(FunctionId, RecordId)| {
            owner == function
                && table
                    .record(id)
                    .is_some_and(|record| Key::of_record(rules, function, &record.to_new()) == key)
        };
        let found = self.records.find(self.hasher.hash_one(key), same);
        found.map(|&(_, id)| id)
    }

    pub(super) fn added(
        &mut self,
        table: &FunctionTable,
        rules: Rules,
        function: FunctionId,
        id: RecordId,
    ) {
        if self.functions.contains(&function) {
            self.insert(table, rules, function, id);
        }
    }

    fn insert(&mut self, table: &FunctionTable, rules: Rules, function: FunctionId, id: RecordId) {
        let Crowded {
            records, hasher, ..
        } = self;
        let hash = |&(function, id): &(FunctionId, RecordId)| {
            table.record(id).map_or(0, |record| {
                hasher.hash_one(Key::of_record(rules, function, &record.to_new()))
            })
        };
        records.insert_unique(hash(&(function, id)), (function, id), hash);
    }
}
