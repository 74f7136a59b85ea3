use crate::driver::{RunOptions, Threads};
use crate::options::{NameFilter, Policy};
use profkit_data::remap::Remapping;
use profkit_data::sample::{ColdContexts, SampleLayout, SampleReadOptions};
use std::fmt;
use std::num::NonZeroUsize;

/// Options of [`merge_sample`](super::merge_sample).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SampleMergeOptions {
    /// [`Policy::Tolerant`] keeps what is sound of damaged inputs, and takes a name and its hash for one function.
    /// [`Policy::Llvm`] leaves damaged inputs out whole, lets hashes stand for functions but not for what they call or
    /// inline, and renames as LLVM's tool does: contexts, checksums and vtables of renamed profiles are lost, and
    /// discriminators of lines are cut to the bits of `read.fs_pass` in any profile. Whether the result is of FS-AFDO is
    /// up to the last input of an encoding that has no word for it, and to those after it.
    pub policy: Policy,
    /// How inputs are read.
    pub read: SampleReadOptions,
    /// Threads, progress, cancelling.
    pub run: RunOptions,
    /// New names for functions.
    pub remapping: Option<Remapping>,
    /// What is done with cold contexts.
    pub cold: Option<ColdContexts>,
    /// The layout of the result; that of the inputs without it.
    pub layout: Option<SampleLayout>,
    /// Functions that stay in the result.
    pub filter: Option<NameFilter>,
    /// Leaves out the lists of the programs' symbols.
    pub drop_symbols: bool,
    /// With [`SampleLayout::Nest`]: functions that go below a caller stay on their own too
    /// (`-generate-merged-base-profiles`).
    pub keep_bases: bool,
    /// With [`Policy::Llvm`]: a damaged input ends the merge, as LLVM's default failure mode has it.
    pub stop_at_fault: bool,
}

impl SampleMergeOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how the merge is run.
    #[must_use]
    pub fn run(mut self, run: RunOptions) -> Self {
        self.run = run;
        self
    }

    /// Sets the number of threads; by default one per core, but no more than inputs.
    #[must_use]
    pub fn threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.run.threads = Threads::new(threads);
        self
    }
}

impl fmt::Debug for SampleMergeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleMergeOptions")
            .field("policy", &self.policy)
            .field("read", &self.read)
            .field("run", &self.run)
            .field("remapping", &self.remapping)
            .field("cold", &self.cold)
            .field("layout", &self.layout)
            .field("filter", &self.filter.is_some())
            .field("drop_symbols", &self.drop_symbols)
            .field("keep_bases", &self.keep_bases)
            .field("stop_at_fault", &self.stop_at_fault)
            .finish()
    }
}
