//! A table that holds many function records in a few large buffers. Merges build such tables, and writers read them.
use super::record::{KindValues, Record, ValueData};
use crate::ids::{FuncHash, NameRef};
use crate::summary::is_pseudo;
use crate::{ErrorKind, Result};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The index of a function in a [`FunctionTable`]. Each function name has one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// The index of a function record in a [`FunctionTable`]. Each pair of function name and function hash has one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u32);

/// Functions and their records, stored in a few large buffers. A record takes about 100 bytes and the bytes of its
/// counters. No memory is allocated for a single record. Functions keep the order in which they were added.
/// [`order`](FunctionRef::order) returns the position at which a function was first seen in the inputs. If several
/// threads build tables, the caller can use these positions to put the functions of all tables into one order.
///
/// ```
/// use profkit_data::ids::{FuncHash, NameRef};
/// use profkit_data::instr::{FunctionTable, NewRecord};
///
/// let mut table = FunctionTable::new();
/// let main = table.push_function(b"main", NameRef::of(b"main"), 0).expect("there is room");
/// let record = NewRecord { func_hash: FuncHash(1234), counts: &[90, 10], ..NewRecord::default() };
/// table.push_record(main, record).expect("there is room");
/// for function in table.functions() {
///     assert!(function.has_run());
///     assert_eq!(function.records().count(), 1);
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct FunctionTable {
    name_bytes: Vec<u8>,
    counts: Vec<u64>,
    bitmaps: Vec<u8>,
    values: Vec<ValueData>,
    /// The uniformity bits of records, by the index of the record. Only functions of GPU programs have uniformity bits.
    uniformity: BTreeMap<u32, Box<[u8]>>,
    functions: Vec<FunctionEntry>,
    records: Vec<RecordEntry>,
}

#[derive(Clone, Copy, Debug)]
struct FunctionEntry {
    name_start: usize,
    name_len: u32,
    first_record: u32,
    last_record: u32,
    name_ref: NameRef,
    order: u64,
}

#[derive(Clone, Copy, Debug)]
struct RecordEntry {
    func_hash: FuncHash,
    order: u64,
    counts_start: usize,
    bitmap_start: usize,
    counts_len: u32,
    bitmap_len: u32,
    /// The index of the value profile in `values`, or `NONE` if the record has no value profile.
    values: u32,
    /// The index of the next record of the same function, or `NONE` if this is the last one.
    next: u32,
}

const NONE: u32 = u32::MAX;

/// A function record to be added with [`FunctionTable::push_record`].
#[derive(Clone, Copy, Debug, Default)]
pub struct NewRecord<'a> {
    /// The function hash: a hash of the function's control flow.
    pub func_hash: FuncHash,
    /// The counters of the function record.
    pub counts: &'a [u64],
    /// The bytes of the MC/DC bitmap of the function record.
    pub bitmap: &'a [u8],
    /// The uniformity bits of the record; empty for functions that are not of a GPU program
    /// ([`Record::uniformity`](super::Record::uniformity)).
    pub uniformity: &'a [u8],
    /// The value profile of the record; `None` if the record has no value sites.
    pub values: Option<&'a ValueData>,
    /// The position at which the record was first seen in the inputs. The caller must pass positions that increase from
    /// record to record; gaps are allowed.
    pub order: u64,
}

/// A function in a [`FunctionTable`].
#[derive(Clone, Copy, Debug)]
pub struct FunctionRef<'a> {
    table: &'a FunctionTable,
    entry: &'a FunctionEntry,
}

/// A function record in a [`FunctionTable`].
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    /// The function hash: a hash of the function's control flow.
    pub func_hash: FuncHash,
    /// The counters of the function record.
    pub counts: &'a [u64],
    /// The bytes of the MC/DC bitmap of the function record.
    pub bitmap: &'a [u8],
    /// The uniformity bits of the record; empty for functions that are not of a GPU program
    /// ([`Record::uniformity`](super::Record::uniformity)).
    pub uniformity: &'a [u8],
    /// The value profile of the record; `None` if it has no value sites.
    pub values: Option<&'a ValueData>,
    /// The position at which the record was first seen in the inputs, as given to [`FunctionTable::push_record`].
    pub order: u64,
}

impl FunctionTable {
    /// Makes a table without functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves memory for `functions` further functions with one record each. Their names have `name_bytes` bytes in
    /// total, and their records have `counts` counters in total.
    pub fn reserve(&mut self, functions: usize, name_bytes: usize, counts: usize) {
        self.functions.reserve(functions);
        self.records.reserve(functions);
        self.name_bytes.reserve(name_bytes);
        self.counts.reserve(counts);
    }

    /// Sorts the records of every function by the position at which they were first seen ([`RecordRef::order`]).
    pub fn sort_records(&mut self) {
        let mut chain: Vec<(u64, u32)> = Vec::new();
        for function in &mut self.functions {
            if function.first_record == function.last_record {
                continue;
            }
            chain.clear();
            let mut next = function.first_record;
            while let Some(record) = self.records.get(next as usize) {
                chain.push((record.order, next));
                next = record.next;
            }
            if chain.is_sorted() {
                continue;
            }
            chain.sort_unstable();
            function.first_record = chain.first().map_or(NONE, |&(_, id)| id);
            function.last_record = chain.last().map_or(NONE, |&(_, id)| id);
            let following = chain.iter().skip(1).map(|&(_, id)| id).chain([NONE]);
            for (&(_, id), next) in chain.iter().zip(following) {
                if let Some(record) = self.records.get_mut(id as usize) {
                    record.next = next;
                }
            }
        }
    }

    /// Adds a function that has no records yet. `order` is the position at which the function was first seen in the
    /// inputs. The caller must make sure that the table does not have the name yet. Returns `None` if the table is full
    /// (2^32 − 1 functions) or the name has 4 GiB or more.
    pub fn push_function(
        &mut self,
        name: &[u8],
        name_ref: NameRef,
        order: u64,
    ) -> Option<FunctionId> {
        let id = u32::try_from(self.functions.len())
            .ok()
            .filter(|&id| id != NONE)?;
        let name_len = u32::try_from(name.len()).ok()?;
        let name_start = self.name_bytes.len();
        self.name_bytes.extend_from_slice(name);
        let entry = FunctionEntry {
            name_start,
            name_len,
            first_record: NONE,
            last_record: NONE,
            name_ref,
            order,
        };
        self.functions.push(entry);
        Some(FunctionId(id))
    }

    /// Adds a record to a function, after the records that it already has. Returns `None` if the table is full or does
    /// not have the function.
    pub fn push_record(&mut self, function: FunctionId, record: NewRecord<'_>) -> Option<RecordId> {
        let id = u32::try_from(self.records.len())
            .ok()
            .filter(|&id| id != NONE)?;
        let counts_len = u32::try_from(record.counts.len()).ok()?;
        let bitmap_len = u32::try_from(record.bitmap.len()).ok()?;
        let values = match record.values.filter(|values| !values.is_empty()) {
            Some(values) => {
                self.values.push(values.clone());
                u32::try_from(self.values.len() - 1).ok()?
            }
            None => NONE,
        };
        if !record.uniformity.is_empty() {
            self.uniformity.insert(id, record.uniformity.into());
        }
        let function = self.functions.get_mut(function.0 as usize)?;
        match self.records.get_mut(function.last_record as usize) {
            Some(last) => last.next = id,
            None => function.first_record = id,
        }
        function.last_record = id;
        self.records.push(RecordEntry {
            func_hash: record.func_hash,
            order: record.order,
            counts_start: self.counts.len(),
            bitmap_start: self.bitmaps.len(),
            counts_len,
            bitmap_len,
            values,
            next: NONE,
        });
        self.counts.extend_from_slice(record.counts);
        self.bitmaps.extend_from_slice(record.bitmap);
        Some(RecordId(id))
    }

    /// The number of functions in the table.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// The number of function records in the table.
    pub fn record_count(&self) -> usize {
        self.records.len()
    }

    /// Returns the function with this index; `None` if there is none.
    pub fn function(&self, id: FunctionId) -> Option<FunctionRef<'_>> {
        Some(FunctionRef {
            table: self,
            entry: self.functions.get(id.0 as usize)?,
        })
    }

    /// Returns the function record with this index; `None` if there is none.
    pub fn record(&self, id: RecordId) -> Option<RecordRef<'_>> {
        Some(self.record_ref(id.0, self.records.get(id.0 as usize)?))
    }

    /// Returns all functions in the order in which they were added.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = FunctionRef<'_>> {
        self.functions
            .iter()
            .map(|entry| FunctionRef { table: self, entry })
    }

    /// Returns the records of a function with their indexes, in the order in which they were added.
    pub fn record_ids(&self, id: FunctionId) -> impl Iterator<Item = RecordId> + '_ {
        let mut next = self
            .functions
            .get(id.0 as usize)
            .map_or(NONE, |function| function.first_record);
        std::iter::from_fn(move || {
            let id = next;
            next = self.records.get(id as usize)?.next;
            Some(RecordId(id))
        })
    }

    /// Keeps only the functions for which `keep` returns true, with all their records.
    pub fn retain(&mut self, mut keep: impl FnMut(FunctionRef<'_>) -> bool) {
        let kept: Vec<bool> = self.functions().map(&mut keep).collect();
        if kept.iter().all(|&kept| kept) {
            return;
        }
        let mut new = FunctionTable::new();
        for (function, _) in self.functions().zip(kept).filter(|&(_, kept)| kept) {
            let order = function.order();
            // The new table has room for each function of the old one.
            let Some(id) = new.push_function(function.name(), function.name_ref(), order) else {
                continue;
            };
            for record in function.records() {
                new.push_record(id, record.to_new());
            }
        }
        *self = new;
    }

    /// Removes the values of all value sites, but not the sites. Returns the number of removed values.
    pub(super) fn clear_values(&mut self) -> u64 {
        let mut cleared = 0;
        for (_, values) in self.values.iter_mut().flat_map(ValueData::kinds_mut) {
            cleared += values.entries().len() as u64;
            let mut sites = KindValues::default();
            values.sites().for_each(|_| sites.push_site([]));
            *values = sites;
        }
        cleared
    }

    /// Returns mutable access to the counters of a record; `None` if the table has no such record.
    pub fn counts_mut(&mut self, id: RecordId) -> Option<&mut [u64]> {
        let record = self.records.get(id.0 as usize)?;
        self.counts
            .get_mut(record.counts_start..record.counts_start + record.counts_len as usize)
    }

    /// Returns mutable access to the bitmap bytes of a record; `None` if the table has no such record.
    pub fn bitmap_mut(&mut self, id: RecordId) -> Option<&mut [u8]> {
        let record = self.records.get(id.0 as usize)?;
        self.bitmaps
            .get_mut(record.bitmap_start..record.bitmap_start + record.bitmap_len as usize)
    }

    /// Adds the uniformity bits of another record of the same function and hash. A block of a GPU function stays marked
    /// as uniform (its threads nearly always entered it together) only if both records mark it. If `bits` is empty,
    /// nothing changes, because the other record does not show whether its blocks are uniform.
    pub fn add_uniformity(&mut self, id: RecordId, bits: &[u8]) {
        if bits.is_empty() {
            return;
        }
        match self.uniformity.get_mut(&id.0) {
            Some(own) => own
                .iter_mut()
                .zip(bits)
                .for_each(|(own, bits)| *own &= bits),
            None => drop(self.uniformity.insert(id.0, bits.into())),
        }
    }

    /// The number of records that have uniformity bits ([`RecordRef::uniformity`]).
    pub fn uniformity_count(&self) -> usize {
        self.uniformity.len()
    }

    /// Returns mutable access to the value profile of a record; `None` if the record has no value sites.
    pub fn values_mut(&mut self, id: RecordId) -> Option<&mut ValueData> {
        let record = self.records.get(id.0 as usize)?;
        self.values.get_mut(record.values as usize)
    }

    /// Notes that a function and one of its records were seen at position `order` of the inputs. For the function and
    /// for the record, the table keeps the smallest position.
    pub fn seen_at(&mut self, function: FunctionId, record: RecordId, order: u64) {
        if let Some(entry) = self.functions.get_mut(function.0 as usize) {
            entry.order = entry.order.min(order);
        }
        if let Some(entry) = self.records.get_mut(record.0 as usize) {
            entry.order = entry.order.min(order);
        }
    }

    /// Changes the positions of all functions and records. `new` must keep the order of any two positions.
    pub fn map_orders(&mut self, mut new: impl FnMut(u64) -> u64) {
        for entry in &mut self.functions {
            entry.order = new(entry.order);
        }
        for entry in &mut self.records {
            entry.order = new(entry.order);
        }
    }

    fn record_ref(&self, id: u32, entry: &RecordEntry) -> RecordRef<'_> {
        let counts = self
            .counts
            .get(entry.counts_start..entry.counts_start + entry.counts_len as usize);
        let bitmap = self
            .bitmaps
            .get(entry.bitmap_start..entry.bitmap_start + entry.bitmap_len as usize);
        RecordRef {
            func_hash: entry.func_hash,
            counts: counts.unwrap_or_default(),
            bitmap: bitmap.unwrap_or_default(),
            uniformity: if self.uniformity.is_empty() {
                &[]
            } else {
                self.uniformity.get(&id).map_or(&[], |bits| &**bits)
            },
            values: self.values.get(entry.values as usize),
            order: entry.order,
        }
    }
}

/// Makes a table of records in the order in which a reader returns them.
///
/// ```
/// use profkit_data::instr::{InstrReader, InstrSource, TableBuilder};
///
/// let mut reader = InstrReader::open(b"main\n1\n2\n90\n10\n")?;
/// let mut builder = TableBuilder::default();
/// for record in reader.records() {
///     builder.add(&record?)?;
/// }
/// assert_eq!(builder.table.record_count(), 1);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TableBuilder {
    /// The table. The order of its records are the numbers 0, 1, 2 …
    pub table: FunctionTable,
    functions: FxHashMap<NameRef, FunctionId>,
    order: u64,
}

impl TableBuilder {
    /// Adds a record at the end, also if the function has a record with this hash already.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] if the table is full.
    pub fn add(&mut self, record: &Record) -> Result<()> {
        let order = self.order;
        let added = self.function(record).and_then(|function| {
            let new = NewRecord {
                func_hash: record.func_hash,
                counts: &record.counts,
                bitmap: &record.bitmap,
                uniformity: &record.uniformity,
                values: Some(&record.values),
                order,
            };
            self.table.push_record(function, new)
        });
        self.order += 1;
        let full = || ErrorKind::LimitExceeded.error("the profile has too many functions");
        added.map(|_| ()).ok_or_else(full)
    }

    fn function(&mut self, record: &Record) -> Option<FunctionId> {
        if let Some(&known) = self.functions.get(&record.name_ref) {
            return Some(known);
        }
        let (name, name_ref) = (&record.name, record.name_ref);
        let function = self.table.push_function(name, name_ref, self.order)?;
        self.functions.insert(name_ref, function);
        Some(function)
    }
}

impl<'a> FunctionRef<'a> {
    /// The function's PGO name.
    pub fn name(&self) -> &'a [u8] {
        let end = self.entry.name_start + self.entry.name_len as usize;
        self.table
            .name_bytes
            .get(self.entry.name_start..end)
            .unwrap_or_default()
    }

    /// The low 64 bits of the MD5 of the function's name.
    pub fn name_ref(&self) -> NameRef {
        self.entry.name_ref
    }

    /// The position at which the function was first seen in the inputs.
    pub fn order(&self) -> u64 {
        self.entry.order
    }

    /// Whether the function ran: whether any of its records has a count or a bitmap bit that is not 0. LLVM keeps only
    /// such functions in a sparse profile (`InstrProfWriter::shouldEncodeData`).
    pub fn has_run(&self) -> bool {
        self.records().any(|record| {
            record.counts.iter().any(|&count| count > 0)
                || record.bitmap.iter().any(|&byte| byte > 0)
        })
    }

    /// Returns the records of the function, in the order in which they were added.
    pub fn records(&self) -> impl Iterator<Item = RecordRef<'a>> + use<'a> {
        let table = self.table;
        let mut next = self.entry.first_record;
        std::iter::from_fn(move || {
            let id = next;
            let entry = table.records.get(id as usize)?;
            next = entry.next;
            Some(table.record_ref(id, entry))
        })
    }
}

impl NewRecord<'_> {
    /// Whether the record is marked as pseudo-hot or pseudo-warm ([`RecordRef::is_pseudo`]).
    pub fn is_pseudo(&self) -> bool {
        is_pseudo(self.counts)
    }
}

impl<'a> RecordRef<'a> {
    /// Returns the contents of the record in the form in which [`FunctionTable::push_record`] can add them to a
    /// different table.
    pub fn to_new(&self) -> NewRecord<'a> {
        NewRecord {
            func_hash: self.func_hash,
            counts: self.counts,
            bitmap: self.bitmap,
            uniformity: self.uniformity,
            values: self.values,
            order: self.order,
        }
    }

    /// Whether the record is marked as pseudo-hot or pseudo-warm. Its first counter is then a marker and not a count.
    pub fn is_pseudo(&self) -> bool {
        is_pseudo(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_function_keep_their_order_across_others() {
        let record = |hash, counts: &'static [u64]| NewRecord {
            func_hash: FuncHash(hash),
            counts,
            order: hash,
            ..NewRecord::default()
        };
        let mut table = FunctionTable::new();
        let main = table.push_function(b"main", NameRef(1), 0).unwrap();
        let other = table.push_function(b"other", NameRef(2), 1).unwrap();
        let first = table.push_record(main, record(10, &[1, 2])).unwrap();
        table.push_record(other, record(20, &[3])).unwrap();
        table.push_record(main, record(5, &[4])).unwrap();
        table.counts_mut(first).unwrap()[1] += 40;
        let seen = |table: &FunctionTable| -> Vec<_> {
            let main = table.function(main).unwrap();
            assert_eq!(main.name(), b"main");
            main.records()
                .map(|record| (record.func_hash.0, record.counts.to_vec()))
                .collect()
        };
        assert_eq!(seen(&table), [(10, vec![1, 42]), (5, vec![4])]);
        table.sort_records();
        assert_eq!(seen(&table), [(5, vec![4]), (10, vec![1, 42])]);
        table.push_record(main, record(7, &[6])).unwrap();
        assert_eq!(
            seen(&table),
            [(5, vec![4]), (10, vec![1, 42]), (7, vec![6])]
        );
    }
}
