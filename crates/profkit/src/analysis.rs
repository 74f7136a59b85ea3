//! Answers to questions about profiles, as values.
//!
//! # Correlate
//! Programs that were built with `-profile-correlate` write raw profiles that contain only counters. A
//! [`Plan`](correlate::Plan) finds the binary of each profile. The merge then reads the functions from
//! [`Plan::joined`](correlate::Plan::joined).
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::correlate::{Binaries, Plan};
//! use profkit::merge::files::InputList;
//! use profkit::merge::{Inputs, MergeOptions, merge_instr};
//! use std::sync::Arc;
//!
//! let inputs = InputList::from_paths(["default.profraw"]);
//! let binaries = Binaries::open(&["build/".into()])?;
//! let plan = Plan::new(&inputs, &binaries);
//! for assignment in &plan.assignments {
//!     match &assignment.outcome {
//!         Ok(found) => println!("{}: {} functions", found.path.display(), found.functions),
//!         Err(error) => println!("no binary: {error}"),
//!     }
//!     for &input in &assignment.inputs {
//!         println!("  for {}", inputs.name(input));
//!     }
//! }
//! let options = MergeOptions::new().correlation(Arc::new(plan.joined));
//! let merged = merge_instr(&inputs, &options)?;
//! # let _ = merged;
//! # Ok(())
//! # }
//! ```
//!
//! # Heap contexts
//! A [`HeapProfile`](heap::HeapProfile) is a heap profile in memory, whatever the format of its file was. For
//! an indexed profile, use [`from_indexed`](heap::HeapProfile::from_indexed). For raw dumps and YAML, first
//! call [`load_heap`](heap::load_heap), which adds up its inputs, then
//! [`from_loaded`](heap::HeapProfile::from_loaded). `load_heap` fails if no input is a heap profile that can
//! be read. If some inputs can be read, the report has an event for each of the others. An indexed profile contains
//! hashes instead of names: `frame.name` is `None` if the hash, `frame.frame.function`, is not among the names of
//! `heap.profile`. LLVM's indexed profiles have no names at all; [`add_names`](heap::HeapProfile::add_names)
//! takes them from the program:
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::heap::HeapProfile;
//! use profkit::analysis::matching::BinaryFunctions;
//!
//! let mut heap = HeapProfile::from_indexed(&std::fs::read("heap.profdata")?)?;
//! let mut program = BinaryFunctions::for_names();
//! program.open("app".as_ref())?;
//! let (named, unnamed) = heap.add_names(&program);
//! println!("{named} functions have names now, {unnamed} have none");
//! # Ok(())
//! # }
//! ```
//!
//! Raw dumps contain addresses, so they need the binaries that ran. [`FrameRule`](heap::FrameRule) decides what becomes of
//! contexts of which debug info covers no frame: compilers cannot use them, so that a profile for compilers leaves them
//! out; for people they have symbols or addresses. [`unknown`](heap::LoadedHeap::unknown) has the sum of these contexts;
//! [`modules`](heap::LoadedHeap::modules) has a [`ModuleReport`](heap::ModuleReport) for each
//! binary that the dumps name. The `ModuleReport` shows the reason: its field `binary` is `None` if the binary was not
//! found.
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::correlate::Binaries;
//! use profkit::analysis::heap::{FrameRule, HeapProfile, IndexedBinaries, load_heap};
//! use profkit::merge::RunOptions;
//!
//! let dump = std::fs::read("app.memprofraw")?;
//! let binaries = Binaries::open(&["build/".into()])?;
//! // The source borrows the binaries: it cannot be made in the same expression as they are.
//! let source = IndexedBinaries::of(&binaries);
//! let loaded = load_heap(&[dump.as_slice()], &RunOptions::new(), &source, FrameRule::All)?;
//! for module in &loaded.modules {
//!     if module.binary.is_none() && module.contexts > 0 {
//!         eprintln!("no binary for {}: {} contexts have addresses in it", module.module, module.contexts);
//!     }
//! }
//! let heap = HeapProfile::from_loaded(loaded);
//! # let _ = heap;
//! # Ok(())
//! # }
//! ```
//!
//! YAML has names, so that it needs no binaries:
//!
//! ```
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::heap::{ContextOrder, FrameRule, HeapProfile, NoBinaries, load_heap, top_contexts};
//! use profkit::analysis::names;
//! use profkit::data::memprof::{Field, Thresholds};
//! use profkit::merge::RunOptions;
//!
//! let yaml = b"---
//! HeapProfileRecords:
//! - GUID: main
//!   AllocSites:
//!   - Callstack:
//!     - { Function: main, LineOffset: 1, Column: 2, IsInlineFrame: false }
//!     MemInfoBlock: { AllocCount: 3, TotalSize: 96 }
//!   CallSites: []
//! ";
//! let loaded = load_heap(&[yaml.as_slice()], &RunOptions::new(), &NoBinaries::default(), FrameRule::All)?;
//! for event in &loaded.report.events {
//!     eprintln!("{event}");
//! }
//! let heap = HeapProfile::from_loaded(loaded);
//! // Compilers use the hints for hot contexts only with `-memprof-use-hot-hints`.
//! let hot_hints = true;
//! let contexts = heap.profile.contexts();
//! for context in top_contexts(&contexts, ContextOrder::Bytes, 10) {
//!     let hotness = Thresholds::default().hotness(&context.block, hot_hints);
//!     println!("{} bytes, {hotness:?}", context.block.get(Field::TotalSize));
//!     for frame in heap.frames(context.stack) {
//!         println!("  {}", names::display(frame.name.unwrap_or(b"??")));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Is this profile stale for this binary?
//! A profile is stale if functions of the program have changed since the profile was collected: their counts are of no
//! use. [`MatchShares`](matching::MatchShares) compares the functions of a profile,
//! [`ProfileFunctions`](matching::ProfileFunctions), with those of binaries,
//! [`BinaryFunctions`](matching::BinaryFunctions), which can also come from a profile of a newer build.
//! [`ProfileFunctions::parse`](matching::ProfileFunctions::parse) reads the bytes of an indexed, raw, text,
//! sample or MIP file; [`of_instr`](matching::ProfileFunctions::of_instr) takes the result of a merge.
//!
//! There is no fixed limit: choose how large a share of the counts may be lost. Two numbers answer different questions.
//! [`counts`](matching::MatchShares::counts) starts from the profile: `counts.changed` and `counts.gone` are
//! the counts that the build cannot use because a function has another hash, or does not exist. A profile without these
//! is not stale. [`functions`](matching::MatchShares::functions) starts from the binary: `functions.changed`
//! is the number of its functions that the profile knows only with another hash, whether they ran or not.
//! [`hot_lost`](matching::MatchShares::hot_lost) lists the hot functions that do not match. The hot functions
//! are those with the largest counts, which together have 99 % of all counts. A lost function may have a likely
//! [`Successor`](matching::Successor).
//!
//! Only a binary with hashes can show that a function changed: one that was built with instrumentation or coverage
//! mapping. For other binaries only names are compared ([`Origin::Symbols`](crate::object::functions::Origin::Symbols)): a
//! changed function counts as matched. A function that was inlined everywhere counts neither as matched nor as lost: its
//! counts are in `counts.inlined`, and it is in `hot_lost` with [`Outcome::Inlined`](matching::Outcome::Inlined).
//! In an optimised binary these can be most of the counts, so decide by `counts.changed` and `counts.gone`. Such functions
//! are found in debug info. A binary that has neither hashes nor debug info does not show whether a function was inlined or
//! is gone: `counts.inlined_or_gone`. If the profile counts in clang's front end and the binary in LLVM IR, or the other way round,
//! their hashes have nothing to do with each other, and everything looks changed:
//! [`Binary::is_other_stage`](matching::Binary::is_other_stage) says so.
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::matching::{BinaryFunctions, MatchShares, ProfileFunctions};
//! use profkit::object::functions::Origin;
//!
//! let profile = ProfileFunctions::parse(&std::fs::read("old.profdata")?)?;
//! let mut binaries = BinaryFunctions::for_profile(&profile);
//! binaries.open("build/app".as_ref())?;
//! binaries.find_inlined(&profile);
//! if binaries.binaries.iter().any(|binary| binary.origin == Some(Origin::Symbols)) {
//!     println!("the binary has no hashes: changed functions are not found");
//! }
//! if binaries.binaries.iter().any(|binary| binary.is_other_stage(&profile)) {
//!     println!("the binary was instrumented in another stage: no hash can match");
//! }
//! let shares = MatchShares::new(&profile, &binaries);
//! let counts = &shares.counts;
//! if let Some(stale) = counts.percent(counts.changed + counts.gone) {
//!     println!("{stale:.1} % of all counts are of functions that changed or are gone");
//! }
//! for lost in &shares.hot_lost {
//!     println!("{:?}: {}", lost.outcome, String::from_utf8_lossy(&lost.name));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is wrong with a file
//! [`doctor::examine`] reports what a file is, which LLVM releases can use it, what is
//! damaged and what to do next.
//!
//! ```
//! # #[cfg(feature = "analysis")] {
//! use profkit::analysis::doctor::{Verdict, examine};
//!
//! let diagnosis = examine(b":ir\nmain\n1234\n2\n90\n");
//! assert_eq!(diagnosis.verdict, Verdict::Damaged);
//! println!("{}", diagnosis.damage.first[0]);
//! # }
//! ```

/// A profile with functions, of any kind.
pub mod any {
    pub use profkit_analysis::any::AnyProfile;
}

/// Several profiles read as one.
pub mod combine {
    pub use profkit_analysis::combine::{CombineError, Combined, combine, needs_binary};
}

/// The programs that wrote profiles with only counters.
pub mod correlate {
    pub use profkit_analysis::correlate::{
        Assignment, Binaries, BinaryServers, JoinedMetadata, Key, Match, Plan,
    };
}

/// What changed between two profiles.
pub mod diff {
    pub use profkit_analysis::diff::{
        BlockChange, Change, ChangeSum, ContextChange, DiffOptions, FunctionChange, HeapChanges,
        Measure, Moved, Place, ProfileDiff, Target, TargetChange,
    };
}

/// What a file is and what is wrong with it.
pub mod doctor {
    pub use profkit_analysis::doctor::{
        Advice, Counts, Diagnosis, Group, Groups, Hint, MipContents, Readers, Remarks, Support,
        Survey, Verdict, What, examine,
    };
}

/// Profiles cut down.
pub mod filter {
    pub use profkit_analysis::filter::{
        Amount, ColdRule, Filter, Filtered, Hottest, Redaction, Unit,
    };
}

/// Which functions are hot, warm or cold.
pub mod heat {
    pub use profkit_analysis::heat::{Heat, HeatCounts, HeatLimits};
}

/// Heap profiles of any form.
pub mod heap {
    pub use profkit_analysis::heap::{
        BinarySource, Completed, ContextOrder, ContextState, ContextSum, DumpLayout, DumpModule,
        FrameLoss, FrameRule, HeapDumps, HeapForm, HeapFrame, HeapMatch, HeapProfile,
        IndexedBinaries, LoadedHeap, LocationSizes, LostContext, LostFrame, ModuleReport,
        NoBinaries, OneBinary, ProgramFrames, ProgramOfFrames, SourceLocation, complete,
        is_heap_alone, load_heap, top_contexts,
    };
}

/// Instrumentation profiles of any form.
pub mod instr {
    pub use profkit_analysis::instr::{
        Fitted, Form, InstrFacts, InstrReader, InstrTable, SHARES, Share, Totals, ValueTotals,
        fit_to_release,
    };
}

/// What a profile was made of.
pub mod manifest {
    pub use profkit_analysis::manifest::{Hashed, Input, Manifest, OptionFile};
}

/// How much of a profile a build can use.
pub mod matching {
    pub use profkit_analysis::matching::{
        Binary, BinaryFunctions, CountShares, DebugInfo, FunctionShares, LostFunction, MatchShares,
        Outcome, ProfileFunctions, Successor, SuccessorReason,
    };
}

/// The numbers of functions in MIP profiles.
pub mod mip_numbers {
    pub use profkit_analysis::mip_numbers::MipNumbers;
}

/// Names of functions as people read them.
pub mod names {
    pub use profkit_analysis::names::{
        Spelling, demangle, display, instance_hint, instance_key, is_named, namespace_of, path,
        spelled, without_hash,
    };
}

/// The order in which a linker places functions.
pub mod order {
    pub use profkit_analysis::order::{
        Footprint, OrderFile, Partitioning, Startup, StartupOrder, Trace, balanced, by_mean,
        footprint,
    };
}

/// How alike two profiles are.
pub mod overlap {
    pub use profkit_analysis::overlap::{
        CannotCompare, ComparedProfile, CountSums, FunctionDifference, FunctionOverlap, HotOverlap,
        Incomparable, InstrOverlap, PairOverlap, ProfileSize, SampleOverlap,
    };
}

/// The functions with the largest numbers.
pub mod ranking {
    pub use profkit_analysis::ranking::{
        FunctionNumbers, FunctionOrder, Group, GroupBy, Groups, RankedFunction, Ranking,
    };
}

/// Sample profiles of any encoding.
pub mod samples {
    pub use profkit_analysis::samples::{HotFunctions, SampleView};
}

/// Functions chosen by name.
pub mod selection {
    pub use profkit_analysis::selection::Selection;
}

/// Profiles without the noise of their runs.
pub mod stable {
    pub use profkit_analysis::stable::{Stabilised, Stable};
}
