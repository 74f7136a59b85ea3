//! Turns raw dumps and YAML profiles into one profile.
use super::figures::ContextSum;
use super::symbolize::{BinarySource, FrameRule, ModuleReport, symbolize};
use profkit_data::Error;
use profkit_data::memprof::{Frame, MemProfile};
use profkit_merge::memprof::{HeapOutcome, HeapParts, merge_heap};
use profkit_merge::report::HeapDetails;
use profkit_merge::{Inputs, MergeError, Report, RunOptions, Threads};
use rustc_hash::FxHashMap;

/// The sum of heap profiles, and the report of the merge.
#[derive(Debug, Default)]
pub struct LoadedHeap {
    /// The sum of the heap profiles.
    pub profile: MemProfile,
    /// The report about the inputs.
    pub report: Report,
    /// A report about each module that the raw dumps name.
    pub modules: Vec<ModuleReport>,
    /// Which frames and contexts of the raw dumps the profile has.
    pub rule: FrameRule,
    /// All contexts of the raw dumps.
    pub total: ContextSum,
    /// The contexts of the raw dumps without any frame that debug info covers. [`FrameRule::Compiler`] leaves them out.
    pub unknown: ContextSum,
    /// For each frame that comes from no debug info: the binary that contains it.
    pub binaries: FxHashMap<Frame, String>,
}

impl LoadedHeap {
    /// Adds up the heap profiles of a merge, which are in `parts`: symbolises the raw dumps, and adds the YAML
    /// profiles. `report` is the report of the merge. The merge may also have had inputs that are not heap profiles.
    pub fn new(
        parts: &HeapParts,
        report: Report,
        threads: &Threads,
        source: &dyn BinarySource,
        rule: FrameRule,
    ) -> Self {
        let mut loaded = LoadedHeap {
            report,
            rule,
            ..LoadedHeap::default()
        };
        if parts.contexts.dumps() > 0 {
            let symbolized = threads.install(|| symbolize(&parts.contexts, source, rule));
            loaded.profile = symbolized.profile;
            loaded.modules = symbolized.modules;
            loaded.total = symbolized.total;
            loaded.unknown = symbolized.unknown;
            loaded.binaries = symbolized.binaries;
        }
        loaded.profile = parts.sum(loaded.profile);
        loaded
    }

    /// The part of the report that only merges of heap profiles have.
    pub fn details(&self) -> HeapDetails {
        self.report.heap.unwrap_or_default()
    }

    /// The number of raw dumps that were added.
    pub fn dumps(&self) -> u64 {
        self.details().dumps
    }

    /// The errors of the inputs.
    pub fn errors(&self) -> impl Iterator<Item = &Error> {
        let events = self.report.events.iter();
        events.filter_map(|event| event.error.as_ref())
    }

    /// The number of inputs that were added, completely or in part.
    pub fn kept(&self) -> u64 {
        self.report.totals.files_kept + self.report.totals.files_repaired
    }
}

/// Adds up heap profiles. First the raw dumps are added up by address, and their sum is symbolised. Then the YAML
/// profiles are added to it, in the order of the inputs.
///
/// [`LoadedHeap::report`] has an event for each input that could not be used, or could be used only in part. Indexed
/// profiles are not inputs of this function: [`HeapProfile::from_indexed`](super::HeapProfile::from_indexed) reads the
/// heap profile of an indexed profile.
///
/// ```
/// use profkit_analysis::heap::{FrameRule, NoBinaries, load_heap};
/// use profkit_data::memprof::Field;
/// use profkit_merge::RunOptions;
///
/// let yaml = b"---
/// HeapProfileRecords:
/// - GUID: main
///   AllocSites:
///   - Callstack:
///     - { Function: main, LineOffset: 1, Column: 2, IsInlineFrame: false }
///     MemInfoBlock: { AllocCount: 3, TotalSize: 96 }
///   CallSites: []
/// ";
/// // YAML names its functions; raw dumps need a source of binaries, such as `IndexedBinaries`.
/// let inputs = [yaml.as_slice(), yaml.as_slice()];
/// let loaded = load_heap(&inputs, &RunOptions::new(), &NoBinaries::default(), FrameRule::All)?;
/// assert_eq!(loaded.kept(), 2);
/// // Both inputs have the same call stack: its figures are added.
/// let contexts = loaded.profile.contexts();
/// assert_eq!(contexts.len(), 1);
/// assert_eq!(contexts[0].block.get(Field::AllocCount), 6);
/// # Ok::<(), profkit_merge::MergeError>(())
/// ```
///
/// # Errors
/// [`MergeError::NoInputs`] if there are no inputs, [`MergeError::NothingLeft`] if no input could be used. The report
/// in this error has the reason for each input. [`MergeError::Cancelled`] if the merge was cancelled.
pub fn load_heap(
    inputs: &(impl Inputs + ?Sized),
    run: &RunOptions,
    source: &dyn BinarySource,
    rule: FrameRule,
) -> Result<LoadedHeap, MergeError> {
    let HeapOutcome { parts, report } = merge_heap(inputs, run)?;
    let totals = &report.totals;
    if totals.files == 0 {
        return Err(MergeError::NoInputs);
    }
    if totals.files_kept + totals.files_repaired == 0 {
        return Err(MergeError::NothingLeft(Box::new(report)));
    }
    Ok(LoadedHeap::new(&parts, report, &run.threads, source, rule))
}
