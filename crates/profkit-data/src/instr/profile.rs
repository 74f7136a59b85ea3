use super::{FunctionTable, InstrKind};
use crate::ids::{BuildId, NameRef};
use crate::names::SymbolTable;

/// A whole instrumentation profile, as merging makes it and writers take it.
#[derive(Clone, Debug, Default)]
pub struct InstrProfile {
    /// What is counted.
    pub kind: InstrKind,
    /// The functions, in one or several tables: no name is in two of them.
    pub tables: Vec<FunctionTable>,
    /// Names of value-profile targets (the text form spells them out).
    pub symbols: SymbolTable,
    /// Build ids of the programs that were run, sorted and unique.
    pub binary_ids: Vec<BuildId>,
    /// Function orders by time of first call.
    pub traces: TemporalTraces,
    /// Names of virtual tables, where they are kept.
    pub vtable_names: Vec<Vec<u8>>,
    /// A MemProf section that is carried through unread.
    pub memprof: Option<crate::MemProfSection>,
}

/// Temporal traces with LLVM's reservoir bookkeeping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporalTraces {
    /// The sampled traces.
    pub traces: Vec<TemporalTrace>,
    /// How many traces were seen in all (`TemporalProfTraceStreamSize`).
    pub stream_size: u64,
}

/// Functions in the order of their first call, in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporalTrace {
    /// Weight of the run.
    pub weight: u64,
    /// Names of the functions, by hash.
    pub functions: Vec<NameRef>,
}

impl InstrProfile {
    /// How many records (names × hashes) there are.
    pub fn record_count(&self) -> usize {
        self.tables.iter().map(FunctionTable::record_count).sum()
    }
}
