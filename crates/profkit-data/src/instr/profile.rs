use super::{FunctionTable, InstrKind, InstrSource, Record, TableBuilder};
use crate::Result;
use crate::ids::{BuildId, NameRef};
use crate::names::SymbolTable;

/// A whole instrumentation profile in memory. Merges produce it, and writers take it as input.
///
/// ```
/// use profkit_data::instr::text::{self, TextOptions};
/// use profkit_data::instr::{FunctionTable, InstrKind, InstrProfile, NewRecord};
/// use profkit_data::ids::{FuncHash, NameRef};
///
/// let mut table = FunctionTable::new();
/// let main = table.push_function(b"main", NameRef::of(b"main"), 0).unwrap();
/// let (func_hash, counts) = (FuncHash(1234), [90, 10]);
/// table.push_record(main, NewRecord { func_hash, counts: &counts, ..NewRecord::default() });
/// let profile = InstrProfile { kind: InstrKind::IR, tables: vec![table], ..InstrProfile::default() };
/// let mut out = Vec::new();
/// text::write(&profile, &TextOptions::default(), &mut out)?;
/// assert!(out.starts_with(b"# IR level Instrumentation Flag\n:ir\nmain\n"));
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct InstrProfile {
    /// The kind of the profile: whether the front end or an IR pass placed the counters, what they count, and which
    /// optional data the file has.
    pub kind: InstrKind,
    /// The functions and their records, in one or several tables. Each function name occurs in only one of the tables.
    pub tables: Vec<FunctionTable>,
    /// The names of the targets in the value profiles. Records hold hashes of these names; the text format writes the
    /// names.
    pub symbols: SymbolTable,
    /// The build ids of the programs that ran. They are sorted and have no duplicates.
    pub binary_ids: Vec<BuildId>,
    /// The temporal traces: the order in which each run first called its functions.
    pub traces: TemporalTraces,
    /// The names of the virtual tables. The list is empty unless the merge that made the profile was asked to keep
    /// these names.
    pub vtable_names: Vec<Vec<u8>>,
    /// The heap profile; `None` if there is none. Only the indexed format can hold it.
    pub memprof: Option<crate::HeapSection>,
}

/// The temporal traces of a profile. LLVM keeps a random sample of all traces (reservoir sampling), so the number of
/// traces before sampling is stored as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporalTraces {
    /// The temporal traces that were kept.
    pub traces: Vec<TemporalTrace>,
    /// The number of traces before sampling (`TemporalProfTraceStreamSize`).
    pub stream_size: u64,
}

/// One temporal trace: the functions of one run, in the order of their first calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporalTrace {
    /// The weight of the run in the profile.
    pub weight: u64,
    /// The called functions, each as the hash of its name.
    pub functions: Vec<NameRef>,
}

impl InstrProfile {
    /// Reads all records, the build ids and the traces of a reader.
    ///
    /// # Errors
    /// The first damage of the file.
    pub fn read(source: &mut impl InstrSource) -> Result<Self> {
        let mut builder = TableBuilder::default();
        let mut record = Record::default();
        while source.read_record(&mut record)? {
            builder.add(&record)?;
        }
        Ok(InstrProfile {
            kind: source.kind(),
            tables: vec![builder.table],
            binary_ids: source.binary_ids()?,
            traces: source.temporal_traces()?,
            ..InstrProfile::default()
        })
    }

    /// Returns the number of records that have uniformity bits ([`Record::uniformity`](super::Record::uniformity)). Only
    /// indexed version 14 can hold them.
    pub fn uniformity_count(&self) -> usize {
        let tables = self.tables.iter();
        tables.map(FunctionTable::uniformity_count).sum()
    }

    /// Returns the number of function records. A function has one record per function hash.
    pub fn record_count(&self) -> usize {
        self.tables.iter().map(FunctionTable::record_count).sum()
    }
}
