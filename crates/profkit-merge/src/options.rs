//! The options of merges of instrumentation profiles.
use crate::driver::{RunOptions, Threads};
use profkit_data::instr::raw::RawMetadataSource;
use profkit_data::instr::{TraceOptions, TraceSampling};
use profkit_data::releases::Release;
use profkit_data::remap::Remapping;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// What to do with damaged inputs, and which rules to apply where LLVM's result depends on the order of inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Keeps everything that is sound, and reports the rest. The result does not depend on the number of threads.
    ///
    /// For sound inputs of weight 1 the result equals that of LLVM's tool, with two exceptions. The first exception: a
    /// value site may hold one value several times (for example several unknown call targets). profkit then adds the
    /// largest count of the value in one input to its largest count in the other input, so that the order of inputs
    /// does not matter. The second exception: the names of virtual tables in value data are kept, as with LLVM's option
    /// `--keep-vtable-symbols`.
    #[default]
    Tolerant,
    /// Does what llvm-profdata of LLVM 22 does, in the same order. A file is read up to its first bad record; the
    /// records before the bad one are merged. Whether the kinds of two inputs can be merged is decided as in LLVM's
    /// writer. Inputs are distributed to as many writers as LLVM's tool would have threads. If a value is new to its
    /// value site, its count is not multiplied by the weight of the input.
    Llvm,
}

/// How weights apply to value profiles under [`Policy::Tolerant`]. LLVM's policy always has [`AsLlvm`](Self::AsLlvm).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueWeights {
    /// The weight multiplies every count. The result does not depend on the order of inputs or on the threads.
    #[default]
    Exact,
    /// Weights apply as in LLVM's `InstrProfWriter`, so that the result has the same bytes as that of LLVM's tool: when
    /// a value is new to a known value site, its count is added without the weight.
    ///
    /// Which values are new depends on the order of inputs and on the number of writers; inputs are distributed to the
    /// writers in turn. The number of writers is set in [`MergeOptions::run`]; the default is one. Each writer samples
    /// its own temporal traces.
    ///
    /// [`Exact`](Self::Exact) is used instead if all weights are 1. It is also used if LLVM's tool would not accept the
    /// weights: if a weight is a fraction, or if [`MergeOptions::normalize`] is set.
    AsLlvm,
}

/// A filter of functions: returns whether the function with the given name stays in the result.
pub type NameFilter = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Options of [`merge_instr`](crate::merge_instr). They are made with [`new`](Self::new) and changed with setters. The
/// threads, the progress and the cancelling, which all merges have, are in [`run`](Self::run).
///
/// ```
/// use profkit_merge::{MergeOptions, merge_instr};
///
/// let options = MergeOptions::new().filter(|name| name.starts_with(b"main"));
/// let input = b":ir\nmain\n1\n1\n5\n\nother\n2\n1\n5\n";
/// let merged = merge_instr(&[input.as_slice()], &options)?;
/// let totals = &merged.report.totals;
/// assert_eq!((totals.functions, totals.functions_filtered), (1, 1));
/// # Ok::<(), profkit_merge::MergeError>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct MergeOptions {
    /// What to do with damaged inputs, and whether LLVM's rules are followed exactly.
    pub policy: Policy,
    /// The threads of the merge, the receiver of its progress, and the flag that cancels it. With [`Policy::Llvm`]
    /// the result is the one that llvm-profdata gives with the same number in `--num-threads`; the default is the
    /// number that llvm-profdata would choose. See also [`ValueWeights::AsLlvm`].
    pub run: RunOptions,
    /// Whether the counts of each input are scaled to the largest sum of counts of any input, before weights apply.
    pub normalize: bool,
    /// The filter that selects the functions of the result, after merging; `None` keeps all functions. LLVM's
    /// `--function` and `--no-function` are regular expressions that match anywhere in the name.
    pub filter: Option<NameFilter>,
    /// The new names to give to functions during the merge. `None` keeps all names.
    pub remapping: Option<Remapping>,
    /// How the weights of inputs apply to value profiles.
    pub value_weights: ValueWeights,
    /// The options for sampling temporal traces: how many are kept, and how long they may be.
    pub traces: TraceOptions,
    /// The LLVM release whose method of sampling temporal traces is used.
    pub trace_sampling: TraceSampling,
    /// Whether there is one result for each set of build ids.
    pub separate_by_build_id: bool,
    /// Whether the bytes of the result and of the report are a function of the set of inputs, whatever their order and
    /// however they were distributed before (the module `part` of profkit-merge). Rules of LLVM that depend on the order are then
    /// replaced: the table in docs/formats/part.md lists them. Not for [`Policy::Llvm`] and [`ValueWeights::AsLlvm`].
    pub order_free: bool,
    /// Whether contexts that a heap profile has several times with the same call stack stay apart, as llvm-profdata
    /// writes them. Otherwise each call stack becomes one context.
    pub heap_copies: bool,
    /// Whether profiles are merged although compilers named or hashed their functions differently. A function is then
    /// in the result twice, and each compiler can use one of the two. Otherwise that is an error.
    pub mixed_hashes: bool,
    /// With [`Policy::Llvm`]: whether all names of virtual tables are kept. Otherwise those in the value data always
    /// are.
    pub keep_vtable_names: bool,
    /// With [`Policy::Llvm`]: the LLVM release to imitate. What its llvm-profdata does not read is rejected.
    pub read_as: Option<Release>,
    /// The function records and names of raw profiles with only counters. Without it, they are reported and dropped.
    pub correlation: Option<Arc<dyn RawMetadataSource + Send>>,
    /// Whether every raw profile is parsed, even if another one of the same program was read. The results are the same.
    pub no_fast_path: bool,
}

impl MergeOptions {
    /// Makes the default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        policy: Policy,
        run: RunOptions,
        normalize: bool,
        value_weights: ValueWeights,
        traces: TraceOptions,
        trace_sampling: TraceSampling,
        separate_by_build_id: bool,
        order_free: bool,
        heap_copies: bool,
        mixed_hashes: bool,
        keep_vtable_names: bool,
        read_as: Option<Release>,
        no_fast_path: bool,
    }

    /// Sets the number of threads. The default is one per core, but not more than there are inputs.
    #[must_use]
    pub fn threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.run.threads = Threads::new(threads);
        self
    }

    /// Sets the filter that selects the functions of the result.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Sets the new names to give to functions.
    #[must_use]
    pub fn remapping(mut self, remapping: Remapping) -> Self {
        self.remapping = Some(remapping);
        self
    }

    /// Sets the source of function records and names for raw profiles that contain only counters.
    #[must_use]
    pub fn correlation(mut self, source: Arc<dyn RawMetadataSource + Send>) -> Self {
        self.correlation = Some(source);
        self
    }
}

impl fmt::Debug for MergeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeOptions")
            .field("policy", &self.policy)
            .field("run", &self.run)
            .field("normalize", &self.normalize)
            .field("filter", &self.filter.is_some())
            .field("remapping", &self.remapping)
            .field("value_weights", &self.value_weights)
            .field("traces", &self.traces)
            .field("trace_sampling", &self.trace_sampling)
            .field("separate_by_build_id", &self.separate_by_build_id)
            .field("order_free", &self.order_free)
            .field("mixed_hashes", &self.mixed_hashes)
            .field("keep_vtable_names", &self.keep_vtable_names)
            .field("read_as", &self.read_as)
            .field("correlation", &self.correlation.is_some())
            .field("no_fast_path", &self.no_fast_path)
            .finish()
    }
}
