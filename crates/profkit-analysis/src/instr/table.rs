//! An instrumentation profile in memory, for questions that need all of its records at once.
use super::reader::InstrFacts;
use crate::faults::Faults;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::overlap::records;
use profkit_data::instr::{
    FunctionRef, FunctionTable, InstrProfile, InstrReader, InstrSource, NewRecord, Record,
    RecordId, RecordRef, TableBuilder,
};
use profkit_data::{Error, ErrorKind, Result};
use rustc_hash::{FxHashMap, FxHashSet};

/// The sound records of an instrumentation profile, with the facts of its header and the errors of its file.
///
/// ```
/// use profkit_analysis::instr::{InstrReader, InstrTable};
///
/// let table = InstrTable::read(InstrReader::open(b":ir\nmain\n1\n2\n90\n10\n")?);
/// let mut sum = 0;
/// table.each(|record| sum += record.counts.iter().sum::<u64>());
/// assert_eq!((sum, table.damage.count), (100, 0));
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Debug)]
pub struct InstrTable<'data> {
    /// What is known from the header.
    pub facts: InstrFacts,
    /// The records, the build ids and the traces. A raw file of several programs may have several records of one
    /// function with one hash.
    pub profile: InstrProfile,
    /// The errors of the records.
    pub damage: Faults,
    /// Why the traces are missing, if they cannot be read.
    pub traces_error: Option<Error>,
    /// Why the build ids are missing, if they cannot be read.
    pub ids_error: Option<Error>,
    reader: InstrReader<'data>,
}

impl<'data> InstrTable<'data> {
    /// Reads a profile to its end. Records that cannot be read are left out; their errors are in
    /// [`damage`](Self::damage).
    pub fn read(mut reader: InstrReader<'data>) -> Self {
        let mut builder = TableBuilder::default();
        let mut damage = Faults::default();
        let mut record = Record::default();
        while let Some(read) = reader.next_record(&mut record) {
            if let Err(error) = read.and_then(|()| builder.add(&record)) {
                damage.push(error);
            }
        }
        let mut profile = InstrProfile {
            kind: reader.kind(),
            tables: vec![builder.table],
            ..InstrProfile::default()
        };
        let (mut traces_error, mut ids_error) = (None, None);
        match reader.temporal_traces() {
            Ok(traces) => profile.traces = traces,
            Err(error) => traces_error = Some(error),
        }
        match reader.binary_ids() {
            Ok(ids) => profile.binary_ids = ids,
            Err(error) => ids_error = Some(error),
        }
        InstrTable {
            facts: InstrFacts::of(&reader),
            profile,
            damage,
            traces_error,
            ids_error,
            reader,
        }
    }

    /// Checks that the profile is not only damage.
    ///
    /// # Errors
    /// If the program is needed that holds the functions, or if there are errors and no function.
    pub fn check(&self) -> Result<()> {
        self.check_metadata()?;
        match self.damage.first.first() {
            Some(error) if self.profile.record_count() == 0 => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Checks that the program is not needed that holds the functions.
    ///
    /// # Errors
    /// The error of kind [`ErrorKind::MissingCorrelation`].
    pub fn check_metadata(&self) -> Result<()> {
        let mut errors = self.damage.first.iter();
        let missing = errors.find(|error| error.kind() == ErrorKind::MissingCorrelation);
        missing.map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Returns the name with this hash ([`InstrReader::name_of`]).
    pub fn name_of(&self, name_ref: NameRef) -> Option<&[u8]> {
        self.reader.name_of(name_ref)
    }

    /// The records in the order of the file, each with its function.
    pub fn records(&self) -> Vec<(FunctionRef<'_>, RecordRef<'_>)> {
        let mut all: Vec<_> = records(&self.profile).collect();
        let order = |(_, record): &(FunctionRef<'_>, RecordRef<'_>)| record.order;
        if !all.is_sorted_by_key(order) {
            all.sort_by_key(order);
        }
        all
    }

    /// Calls `each` with every record, in the order of the file.
    pub fn each(&self, mut each: impl FnMut(&Record)) {
        let mut record = Record::default();
        for (function, stored) in self.records() {
            record.clear();
            record.name.extend_from_slice(function.name());
            record.name_ref = function.name_ref();
            record.func_hash = stored.func_hash;
            record.counts.extend_from_slice(stored.counts);
            record.bitmap.extend_from_slice(stored.bitmap);
            record.uniformity.extend_from_slice(stored.uniformity);
            if let Some(values) = stored.values {
                record.values.clone_from(values);
            }
            each(&record);
        }
    }

    /// The profile with one record for each function and hash: the counters of equal ones are added up.
    pub fn into_united(self) -> InstrProfile {
        let mut hashes = FxHashSet::default();
        let mut repeats = |function: FunctionRef<'_>| {
            hashes.clear();
            function.records().nth(1).is_some()
                && !function.records().all(|one| hashes.insert(one.func_hash))
        };
        let mut tables = self.profile.tables.iter();
        if !tables.any(|table| table.functions().any(&mut repeats)) {
            return self.profile;
        }
        let tables = self.profile.tables.iter();
        let tables = tables.filter_map(united).collect();
        InstrProfile {
            tables,
            ..self.profile
        }
    }
}

/// The table with one record for each function and hash. It has no more functions than `table`, so it cannot be full.
fn united(table: &FunctionTable) -> Option<FunctionTable> {
    let mut sums = FunctionTable::new();
    let mut known: FxHashMap<FuncHash, RecordId> = FxHashMap::default();
    for function in table.functions() {
        let id = sums.push_function(function.name(), function.name_ref(), function.order())?;
        known.clear();
        for record in function.records() {
            if let Some(&first) = known.get(&record.func_hash) {
                let counts = sums.counts_mut(first).into_iter().flatten();
                for (sum, &count) in counts.zip(record.counts) {
                    *sum = sum.saturating_add(count);
                }
                continue;
            }
            let new = NewRecord {
                func_hash: record.func_hash,
                counts: record.counts,
                bitmap: record.bitmap,
                uniformity: record.uniformity,
                values: record.values,
                order: record.order,
            };
            known.insert(record.func_hash, sums.push_record(id, new)?);
        }
    }
    Some(sums)
}
