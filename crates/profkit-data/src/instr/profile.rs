use super::{FunctionTable, InstrKind};
use crate::ids::{BuildId, NameRef};
use crate::names::SymbolTable;

/// A whole instrumentation profile: the result of merging, and the input of writers.
#[derive(Clone, Debug, Default)]
pub struct InstrProfile {
    /// The kind of the profile: what its counters count.
    pub kind: InstrKind,
    /// The functions, in one or several tables. Each name is in one table only.
    pub tables: Vec<FunctionTable>,
    /// The names of value-profile targets. The text format writes names in place of hashes.
    pub symbols: SymbolTable,
    /// The build ids of the programs that ran, sorted and unique.
    pub binary_ids: Vec<BuildId>,
    /// The orders in which functions were first called.
    pub traces: TemporalTraces,
    /// The names of virtual tables, if they are kept.
    pub vtable_names: Vec<Vec<u8>>,
    /// A MemProf section that is copied without decoding it.
    pub memprof: Option<crate::MemProfSection>,
}

/// Temporal traces, and their number before sampling, which LLVM's reservoir sampling needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporalTraces {
    /// The traces that were kept.
    pub traces: Vec<TemporalTrace>,
    /// The number of traces that were seen in all (`TemporalProfTraceStreamSize`).
    pub stream_size: u64,
}

/// The functions of one run, in the order of their first calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporalTrace {
    /// The weight of the run.
    pub weight: u64,
    /// The functions, by the hash of their name.
    pub functions: Vec<NameRef>,
}

impl InstrProfile {
    /// The number of records. A function has one record per hash.
    pub fn record_count(&self) -> usize {
        self.tables.iter().map(FunctionTable::record_count).sum()
    }
}
