//! Many inputs to one profile.
//!
//! # Merge in memory
//! [`merge_instr`] merges instrumentation profiles of any form. The result is in
//! [`profiles`](MergeOutcome::profiles), which has one element unless the options ask for one profile per build
//! id.
//!
//! ```
//! # #[cfg(not(feature = "merge"))] fn main() {}
//! # #[cfg(feature = "merge")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::data::instr::indexed::{self, IndexedWriteOptions};
//! use profkit::data::releases::Release;
//! use profkit::data::instr::text::{self, TextOptions};
//! use profkit::merge::{MergeOptions, Weight, merge_instr};
//!
//! let inputs = [
//!     ("monday", Weight::ONE, b":ir\nmain\n1234\n1\n90\n".as_slice()),
//!     ("tuesday", Weight::integer(2), b":ir\nmain\n1234\n1\n5\n".as_slice()),
//! ];
//! let merged = merge_instr(&inputs, &MergeOptions::new())?;
//! let profile = &merged.profiles[0].profile;
//! let mut as_text = Vec::new();
//! text::write(profile, &TextOptions::default(), &mut as_text)?;
//! assert!(String::from_utf8(as_text)?.contains("\n100\n"));
//! let mut as_indexed = Vec::new();
//! indexed::write(profile, &IndexedWriteOptions::for_llvm(Release::new(22)), &mut as_indexed)?;
//! # Ok(())
//! # }
//! ```
//!
//! Other kinds of profiles have functions of their own: [`merge_sample`](sample::merge_sample),
//! [`merge_heap`](memprof::merge_heap), [`merge_mip`](mip::merge_mip).
//!
//! # Merge files for LLVM 16
//! [`IndexedWriteOptions::for_llvm`](crate::data::instr::indexed::IndexedWriteOptions::for_llvm) chooses the version that a
//! release reads. Data that this version cannot represent is left out and returned as losses; the `Display` text of the
//! losses names all of them, and [`counts`](crate::data::instr::Losses::counts) returns them as numbers. An event of the report
//! can say that a newer version suits the profile better
//! ([`suggested_indexed_version`](Report::suggested_indexed_version)).
//! [`indexed::write`](crate::data::instr::indexed::write) writes into any sink;
//! [`IndexedPlan`](crate::data::instr::indexed::IndexedPlan) with [`write_indexed`](files::write_indexed) does the same
//! on several threads.
//!
//! If all inputs are indexed profiles, [`merge_indexed`] can join their functions while an [`IndexedFile`](files::IndexedFile)
//! is written. They are never in memory together, and the file has the same bytes.
//!
//! Heap profiles among the inputs are not part of [`profiles`](MergeOutcome::profiles), and the writer does not
//! report them as losses. They are in [`heap`](MergeOutcome::heap); its documentation explains how to add them
//! to the file. If all inputs are heap profiles, the only profile in `profiles` has no functions.
//!
//! ```no_run
//! # #[cfg(not(feature = "merge"))] fn main() {}
//! # #[cfg(feature = "merge")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
//! use profkit::data::releases::Release;
//! use profkit::merge::files::{Content, InputList, Output, write_indexed};
//! use profkit::merge::{MergeOptions, merge_instr};
//! use std::path::Path;
//!
//! let inputs = InputList::collect(&["a.profraw".into(), "more/".into()], &[], None)?;
//! for note in &inputs.notes {
//!     eprintln!("{note}");
//! }
//! let options = MergeOptions::new();
//! let merged = merge_instr(&inputs, &options)?;
//! for event in &merged.report.events {
//!     eprintln!("{event}");
//! }
//! if merged.heap.is_some() {
//!     eprintln!("heap profiles are not written");
//! }
//! let profile = &merged.profiles[0].profile;
//! let plan = IndexedPlan::new(profile, &IndexedWriteOptions::for_llvm(Release::new(16)))?;
//! if !plan.losses().is_empty() {
//!     eprintln!("not written: {}", plan.losses());
//! }
//! let output = Output::new(Path::new("merged.profdata"), Content::Binary)?;
//! output.write(|sink| write_indexed(&plan, &options.run.threads, sink))?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a merge repaired
//! A damaged input does not make a merge fail. The [`Report`] counts the inputs in
//! [`totals`](Report::totals). For everything that was repaired, dropped or remarkable it has an
//! [`Event`]; an input can have several events. Programs can examine the file of an event, its
//! [`Action`] and its [`Reason`]; for users an event has a message and sometimes a hint.
//! The `Display` text of an event is one line.
//!
//! ```
//! # #[cfg(not(feature = "merge"))] fn main() {}
//! # #[cfg(feature = "merge")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::merge::{Action, MergeOptions, Reason, merge_instr};
//!
//! # use profkit::data::bytes::Endian;
//! # use profkit::data::ids::FuncHash;
//! # use profkit::data::instr::raw::{PointerWidth, RawDialect, RawImage, RawImageRecord};
//! # let (endian, width) = (Endian::Little, PointerWidth::Bits64);
//! # let mut image = RawImage::new(RawDialect { endian, width, version: 10, flags: profkit::data::instr::raw::variant::IR });
//! # let (name, func_hash, counts) = (b"main".to_vec(), FuncHash(1234), vec![90, 10]);
//! # image.records = vec![RawImageRecord { name, func_hash, counts, ..RawImageRecord::default() }];
//! # let whole = image.to_bytes()?;
//! // `whole` has the bytes of a raw profile. The disk was full when the program wrote the second one.
//! let cut = &whole[..150];
//! let inputs = [("whole", whole.as_slice()), ("cut", cut)];
//! let report = merge_instr(&inputs, &MergeOptions::new())?.report;
//! assert_eq!((report.totals.files, report.totals.files_kept), (2, 1));
//! let event = &report.events[0];
//! assert_eq!((event.file.as_str(), event.action, event.reason), ("cut", Action::Dropped, Reason::Truncated));
//! println!("{event}");
//! # Ok(())
//! # }
//! ```
pub use profkit_merge::{
    Action, Cancelled, Difference, Event, IndexedMerge, InputGroup, Inputs, Joined, LlvmCode,
    LlvmFault, MergeError, MergeOptions, MergeOutcome, Merged, MergedProfile, NameFilter, Policy,
    Progress, Reason, RecordVisitor, Report, RunOptions, Shard, Threads, Totals, ValueWeights,
    Weight, WeightError, merge, merge_indexed, merge_instr,
};

/// Inputs and outputs that are files.
pub mod files {
    pub use profkit_merge::files::{
        Content, IndexedFile, Input, InputData, InputFile, InputList, InputNote, JoinedText,
        ListError, MappedFile, MissingInput, ObjectVersion, Output, OutputError, OutputProblem,
        Outputs, ReadError, SingleInput, Staged, Store, StoredObject, Subset, check_outputs,
        open_store, write_indexed,
    };
}

/// Stores of parts, into which new inputs are folded, each once.
pub mod fold {
    pub use profkit_merge::fold::{
        Bucket, Compacted, Every, FoldError, FoldOptions, FoldOutcome, Folded, LEDGER_NAME,
        LEDGER_VERSION, Ledger, LedgerRow, LeftOut, PartKind, PartName, Stray, StrayKind, Why,
        compact, fold, sum,
    };
}

/// Heap profiles merged.
pub mod memprof {
    pub use profkit_merge::memprof::{
        HeapOutcome, SectionChoice, SectionError, merge_heap, place_section,
    };
}

/// MIP files merged.
pub mod mip {
    pub use profkit_merge::mip::{MipMergeOptions, MipOutcome, MipTarget, merge_mip};
}

/// Sums of inputs that can be written down, and added up anywhere.
pub mod part {
    pub use profkit_merge::part::{Merger, PartError, PartFacts, VERSION, examine};
}

/// Parts of the report of a merge.
pub mod report {
    pub use profkit_merge::report::{
        Cancellation, DropLimit, EVENTS_PER_REASON, HeapDetails, MipDetails, Mismatches,
        REPORT_VERSION, SharedFunctions, Shortfall, Sides, TargetReport, Tolerance,
    };
}

/// Sample profiles merged.
pub mod sample {
    pub use profkit_merge::sample::{
        SampleConflict, SampleMergeOptions, SampleOutcome, merge_sample,
    };
}
