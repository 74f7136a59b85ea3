//! Recordings of Linux perf.
//!
//! ```no_run
//! use profkit::perf::Recording;
//!
//! let bytes = std::fs::read("perf.data")?;
//! let recording = Recording::open(&bytes)?;
//! // The number of branches in all samples, counted by several threads.
//! let (branches, losses) = recording.samples(
//!     || 0,
//!     |sum, sample| *sum += sample.branches.iter().count(),
//!     |sum, other| *sum += other,
//! );
//! println!("{branches} branches");
//! # let _ = losses;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub use profkit_perf::{
    Attr, Binary, BinaryId, Branch, Branches, CallChain, Chunk, Event, Events, Features, Figures,
    Losses, Mapping, Processes, Record, Recording, Sample,
};

/// Counts of code by binary and address.
pub mod collect {
    pub use profkit_perf::collect::{
        AddressCount, BinaryCounts, BinaryKey, BranchCount, CONTEXT_MEMORY, CallStacks,
        CollectOptions, CountLosses, Counts, RangeCount, Selection, StackSample, Stacks,
        TraceCount, collect,
    };
}

/// Counts from texts.
pub mod text {
    pub use profkit_perf::text::{TextKind, TextOptions, read_text, write_addresses};
}
