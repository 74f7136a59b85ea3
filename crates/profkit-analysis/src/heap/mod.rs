//! Heap profiles: from the addresses of raw dumps to the functions that allocated, and what two profiles differ in.
mod changes;
mod figures;
mod load;
mod profile;
mod symbolize;

pub use changes::{ContextChange, HeapChanges, Measure, Moved};
pub use figures::{ContextOrder, ContextSum, access_density, average, top_contexts};
pub use load::{LoadedHeap, load_heap};
pub use profile::{HeapForm, HeapFrame, HeapProfile};
pub use symbolize::{
    BinarySource, IndexedBinaries, ModuleReport, NoBinaries, OneBinary, SourceLocation, Symbolized,
    symbolize,
};
