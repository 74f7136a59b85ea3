//! Heap profiles: finds the functions of the addresses in raw dumps, and compares profiles.
mod dumps;
mod figures;
mod load;
mod locations;
mod matching;
mod profile;
mod program;
mod site;
mod symbolize;
mod unknown;

pub use crate::diff::{ContextChange, HeapChanges, Measure, Moved};
pub use dumps::{DumpLayout, DumpModule, HeapDumps};
pub use figures::{ContextOrder, ContextSum, access_density, average, top_contexts};
pub use load::{LoadedHeap, load_heap};
pub use locations::LocationSizes;
pub use matching::{ContextState, FrameLoss, HeapMatch, LostContext, LostFrame};
pub use profile::{HeapForm, HeapFrame, HeapProfile, is_heap_alone};
pub use profkit_data::memprof::SourceLocation;
pub use program::{
    Completed, ProgramFrames, ProgramOfFrames, complete, complete_section, is_incomplete,
};
pub use symbolize::{
    BinarySource, FrameRule, IndexedBinaries, ModuleReport, NoBinaries, OneBinary, Symbolized,
    symbolize,
};
