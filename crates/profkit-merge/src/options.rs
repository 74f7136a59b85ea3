//! What the caller may choose.
use crate::driver::{RunOptions, Threads};
use profkit_data::instr::raw::RawMetadataSource;
use profkit_data::instr::releases::Release;
use profkit_data::remap::Remapping;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// How bad inputs are treated, and whose rules decide where LLVM's own are order-dependent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Keep whatever is sound, report the rest. The result does not depend on the number of threads, and equals that
    /// of LLVM's tool on sound inputs with weight 1, except that a site which holds one value several times (several
    /// unknown call targets) is merged independent of order, largest with largest.
    #[default]
    Tolerant,
    /// What LLVM 22's tool does, in its order: a file stops at its first bad record (what came before stays), kinds
    /// are compared as its writer does, inputs are dealt out to as many writers as it would have threads, and
    /// counts of newly seen values are not weighted.
    Llvm,
}

/// Sampling of temporal traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// How many traces are kept (`--temporal-profile-trace-reservoir-size`).
    pub reservoir_size: u64,
    /// The most functions of a trace that are kept (`--temporal-profile-max-trace-length`).
    pub max_length: u64,
}

/// How traces beyond the reservoir's size are sampled (`InstrProfWriter::addTemporalProfileTraces`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceSampling {
    /// As LLVM 17 to 19: every trace of the whole stream is equally likely to be kept.
    Llvm19,
    /// As LLVM 22: once the reservoir is full, only inputs that hold more traces than it take part.
    #[default]
    Llvm22,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            reservoir_size: 100,
            max_length: 10_000,
        }
    }
}

/// What the weight of an input does to value profiles, with [`Policy::Tolerant`]; [`Policy::Llvm`] is always
/// [`AsLlvm`](Self::AsLlvm).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueWeights {
    /// Every count of the input is multiplied. The result does not depend on the order of inputs, nor on threads.
    #[default]
    Exact,
    /// As `InstrProfWriter` of LLVM, so that the bytes are those of its tool: a value that is new to a site that was
    /// there counts once. Which these are depends on the order of inputs, and on the number of writers that they are
    /// dealt out to in turn: [`MergeOptions::run`], one by default. Each writer samples its temporal traces. If no input has another weight than 1, or one has
    /// a weight that LLVM's tool does not take (a fraction, or with [`MergeOptions::normalize`]), this is
    /// [`Exact`](Self::Exact).
    AsLlvm,
}

/// Says of a function's name whether the function stays in the result.
pub type NameFilter = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Options of [`merge_instr`](crate::merge_instr).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct MergeOptions {
    /// See [`Policy`].
    pub policy: Policy,
    /// Threads, progress, cancelling. With [`Policy::Llvm`] a number of threads is the number of writers
    /// (`--num-threads`; by default LLVM's choice). See [`ValueWeights::AsLlvm`] too.
    pub run: RunOptions,
    /// Every input counts the same: counts of an input are scaled so that their sum is the largest sum of any input
    /// (then the input's own weight applies).
    pub normalize: bool,
    /// Functions that stay in the result; all without it. LLVM's `--function` and `--no-function` (regular
    /// expressions that match anywhere in the name) are such filters, applied after merging.
    pub filter: Option<NameFilter>,
    /// New names for functions.
    pub remapping: Option<Remapping>,
    /// What weights do to value profiles.
    pub value_weights: ValueWeights,
    /// Sampling of temporal traces.
    pub traces: TraceOptions,
    /// Whose sampling.
    pub trace_sampling: TraceSampling,
    /// One result for each set of build ids.
    pub separate_by_build_id: bool,
    /// Whether names of virtual tables are kept (`--keep-vtable-symbols`).
    pub keep_vtable_names: bool,
    /// With [`Policy::Llvm`]: refuse raw and indexed versions that the llvm-profdata of this release refuses.
    pub read_as: Option<Release>,
    /// Where raw profiles without records and names get them; without it they are reported and dropped.
    pub correlation: Option<Arc<dyn RawMetadataSource + Send>>,
    /// Do not add up raw profiles of known layout without parsing them; results are the same.
    pub no_fast_path: bool,
}

impl MergeOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the number of threads; by default one per core, but no more than inputs.
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

    /// Lets every input count the same.
    #[must_use]
    pub fn normalize(mut self, normalize: bool) -> Self {
        self.normalize = normalize;
        self
    }

    /// Sets which functions stay.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Sets new names.
    #[must_use]
    pub fn remapping(mut self, remapping: Remapping) -> Self {
        self.remapping = Some(remapping);
        self
    }

    /// Sets what weights do to value profiles.
    #[must_use]
    pub fn value_weights(mut self, weights: ValueWeights) -> Self {
        self.value_weights = weights;
        self
    }

    /// Sets how traces are sampled.
    #[must_use]
    pub fn traces(mut self, traces: TraceOptions) -> Self {
        self.traces = traces;
        self
    }

    /// Sets whose sampling of traces it is.
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

    /// Refuses what the llvm-profdata of a release refuses.
    #[must_use]
    pub fn read_as(mut self, release: Option<Release>) -> Self {
        self.read_as = release;
        self
    }

    /// Sets where raw profiles without records and names get them.
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
