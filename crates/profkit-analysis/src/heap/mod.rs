//! Heap profiles: finds the functions of the addresses in raw dumps, and compares profiles.
mod changes;
mod figures;
mod flame;
mod folded;
mod load;
mod locations;
mod profile;
mod symbolize;

pub use changes::{ContextChange, HeapChanges, Measure, Moved};
pub use figures::{ContextOrder, ContextSum, access_density, average, top_contexts};
pub use flame::flame_graph;
pub use folded::{FoldedStacks, HeapWeight};
pub use load::{LoadedHeap, load_heap};
pub use locations::LocationSizes;
pub use profile::{HeapForm, HeapFrame, HeapProfile, is_heap_alone};
pub use symbolize::{
    BinarySource, IndexedBinaries, ModuleReport, NoBinaries, OneBinary, SourceLocation, Symbolized,
    symbolize,
};
