//! Heap profiles: from the addresses of raw dumps to the functions that allocated.
mod symbolize;

pub use symbolize::{
    BinarySource, IndexedBinaries, ModuleReport, NoBinaries, OneBinary, SourceLocation, Symbolized,
    symbolize,
};
