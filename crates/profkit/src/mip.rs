//! MIP: assembly is instrumented, empty profiles are made of maps, and profiles become files for compilers.
//!
//! ```
//! use profkit::mip::instrument::IgnoreList;
//!
//! // Functions that are not instrumented: a pattern a line.
//! let mut ignored = IgnoreList::default();
//! ignored.add(b"fun:signal_*\n", "ignored.txt")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Empty profiles.
pub mod create {
    pub use profkit_mip::create::{CreateOptions, Created, Error, Note, NoteKind, Problem, create};
}

/// Assembly with probes.
pub mod instrument {
    pub use profkit_mip::instrument::{
        Error, Function, IgnoreList, Instrumented, Mode, Options, SkipReason, Skipped, Target,
        instrument,
    };
}

/// Files for compilers and linkers.
pub mod use_ {
    pub use profkit_mip::use_::blocks::{BlockList, HotBlocks, ListVersion, hot_blocks};
    pub use profkit_mip::use_::sample::sample_profile;
}
