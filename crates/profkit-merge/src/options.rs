//! The options of a merge.
use crate::driver::{RunOptions, Threads};
use profkit_data::instr::raw::RawMetadataSource;
use profkit_data::instr::releases::Release;
use profkit_data::instr::{TraceOptions, TraceSampling};
use profkit_data::remap::Remapping;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// What to do with damaged inputs, and which rules apply where LLVM's result depends on the order of inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Keeps everything that is sound, and reports the rest. The result does not depend on the number of threads.
    ///
    /// For sound inputs of weight 1 the result equals that of LLVM's tool, with one exception: a site that holds one
    /// value several times (several unknown call targets) is merged independent of the order of inputs, the largest
    /// count with the largest.
    #[default]
    Tolerant,
    /// Does what the tool of LLVM 22 does, in the same order. A file is read up to its first bad record, and the
    /// records before that stay. Kinds are compared as LLVM's writer compares them. Inputs are dealt out to as many
    /// writers as the tool would have threads. The count of a value that is new to its site is not multiplied by the
    /// weight.
    Llvm,
}

/// What the weight of an input does to value profiles, with [`Policy::Tolerant`]; [`Policy::Llvm`] is always
/// [`AsLlvm`](Self::AsLlvm).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueWeights {
    /// Every count of the input is multiplied. The result does not depend on the order of inputs or on the number of
    /// threads.
    #[default]
    Exact,
    /// As LLVM's `InstrProfWriter`, so that the result has the bytes of LLVM's tool: a value that is new to a known
    /// site is counted once, whatever the weight.
    ///
    /// Which values are new depends on the order of inputs and on the number of writers that inputs are dealt out to in
    /// turn. That number is in [`MergeOptions::run`]; the default is one. Each writer samples its own temporal traces.
    ///
    /// [`Exact`](Self::Exact) is used instead if all weights are 1, or if LLVM's tool would not accept a weight: a
    /// fraction, or any weight with [`MergeOptions::normalize`].
    AsLlvm,
}

/// Returns whether a function stays in the result, given its name.
pub type NameFilter = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Options of [`merge_instr`](crate::merge_instr).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct MergeOptions {
    /// What to do with damaged inputs, and whose rules apply.
    pub policy: Policy,
    /// Threads, progress, cancelling. With [`Policy::Llvm`] the number of threads is the number of writers
    /// (`--num-threads`; the default is LLVM's choice); see also [`ValueWeights::AsLlvm`].
    pub run: RunOptions,
    /// Whether all inputs count the same. The counts of each input are scaled until their sum equals the largest sum of
    /// any input; the input's own weight applies after that.
    pub normalize: bool,
    /// Selects the functions that stay in the result; `None` keeps all. LLVM's `--function` and `--no-function`
    /// (regular expressions that match anywhere in the name) are such filters, applied after merging.
    pub filter: Option<NameFilter>,
    /// New names for functions.
    pub remapping: Option<Remapping>,
    /// How weights apply to value profiles.
    pub value_weights: ValueWeights,
    /// How many temporal traces are kept, and how long they may be.
    pub traces: TraceOptions,
    /// Which LLVM release's sampling of temporal traces is used.
    pub trace_sampling: TraceSampling,
    /// Whether each set of build ids gets a result of its own.
    pub separate_by_build_id: bool,
    /// Whether names of virtual tables are kept (`--keep-vtable-symbols`).
    pub keep_vtable_names: bool,
    /// With [`Policy::Llvm`]: the release whose llvm-profdata decides which raw and indexed versions are rejected.
    pub read_as: Option<Release>,
    /// Where to find the records and names of raw profiles that lack them. Without a source, such profiles are reported
    /// and dropped.
    pub correlation: Option<Arc<dyn RawMetadataSource + Send>>,
    /// Switches off the fast path, which adds raw profiles of a known layout without parsing them. The results are the
    /// same.
    pub no_fast_path: bool,
}

impl MergeOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the number of threads. The default is one per core, but not more than there are inputs.
    #[must_use]
    pub fn threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.run.threads = Threads::new(threads);
        self
    }

    /// Sets how the merge is run.
    #[must_use]
    pub fn run(mut self, run: RunOptions) -> Self {
        self.run = run;
        self
    }

    /// Makes all inputs count the same.
    #[must_use]
    pub fn normalize(mut self, normalize: bool) -> Self {
        self.normalize = normalize;
        self
    }

    /// Sets which functions stay in the result.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Sets new names for functions.
    #[must_use]
    pub fn remapping(mut self, remapping: Remapping) -> Self {
        self.remapping = Some(remapping);
        self
    }

    /// Sets how weights apply to value profiles.
    #[must_use]
    pub fn value_weights(mut self, weights: ValueWeights) -> Self {
        self.value_weights = weights;
        self
    }

    /// Sets how many temporal traces are kept, and how long they may be.
    #[must_use]
    pub fn traces(mut self, traces: TraceOptions) -> Self {
        self.traces = traces;
        self
    }

    /// Sets which LLVM release's sampling of temporal traces is used.
    #[must_use]
    pub fn trace_sampling(mut self, sampling: TraceSampling) -> Self {
        self.trace_sampling = sampling;
        self
    }

    /// Makes one result for each set of build ids.
    #[must_use]
    pub fn separate_by_build_id(mut self, separate: bool) -> Self {
        self.separate_by_build_id = separate;
        self
    }

    /// Keeps the names of virtual tables.
    #[must_use]
    pub fn keep_vtable_names(mut self, keep: bool) -> Self {
        self.keep_vtable_names = keep;
        self
    }

    /// Rejects the versions that the llvm-profdata of a release rejects.
    #[must_use]
    pub fn read_as(mut self, release: Option<Release>) -> Self {
        self.read_as = release;
        self
    }

    /// Sets where to find the records and names of raw profiles that lack them.
    #[must_use]
    pub fn correlation(mut self, source: Arc<dyn RawMetadataSource + Send>) -> Self {
        self.correlation = Some(source);
        self
    }

    /// Switches the same-binary fast path off.
    #[must_use]
    pub fn no_fast_path(mut self, off: bool) -> Self {
        self.no_fast_path = off;
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
            .field("keep_vtable_names", &self.keep_vtable_names)
            .field("read_as", &self.read_as)
            .field("correlation", &self.correlation.is_some())
            .field("no_fast_path", &self.no_fast_path)
            .finish()
    }
}
