use crate::driver::{RunOptions, Threads};
use crate::options::{MergeOptions, NameFilter, Policy};
use profkit_data::remap::Remapping;
use profkit_data::sample::{ColdContexts, SampleLayout, SampleReadOptions};
use std::fmt;
use std::num::NonZeroUsize;

/// Options of [`merge_sample`](super::merge_sample).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SampleMergeOptions {
    /// What to do with damaged inputs, and how to match names.
    ///
    /// [`Policy::Tolerant`] keeps the sound parts of damaged inputs, and treats a name and its hash as the same
    /// function.
    ///
    /// [`Policy::Llvm`] does what LLVM's tool does. Damaged inputs are left out completely. At the top level, a hash
    /// and a name with that hash are the same function; for called and inlined functions they are not. If functions are
    /// renamed ([`remapping`](SampleMergeOptions::remapping)), all profiles lose their contexts, checksums and vtables,
    /// and their discriminators are cut to the bits of `read.fs_pass`, even if they are not of FS-AFDO. Whether the
    /// result counts as FS-AFDO depends on the order of inputs.
    pub policy: Policy,
    /// The options for reading the inputs.
    pub read: SampleReadOptions,
    /// The threads of the merge, the receiver of its progress, and the flag that cancels it.
    pub run: RunOptions,
    /// The new names to give to functions during the merge. `None` keeps all names.
    pub remapping: Option<Remapping>,
    /// What to do with cold calling contexts; `None` keeps them.
    pub cold: Option<ColdContexts>,
    /// Where inlined functions are: nested in their callers, or on their own; `None` keeps what the inputs have.
    pub layout: Option<SampleLayout>,
    /// The filter that selects the functions of the result; `None` keeps all functions.
    pub filter: Option<NameFilter>,
    /// Whether the lists of the programs' symbols are left out of the result.
    pub drop_symbols: bool,
    /// Whether the bytes of the result and of the report are a function of the set of inputs, whatever their order and
    /// however they were distributed before (the module `part` of profkit-merge): of a function with different checksums,
    /// the one with the most samples is kept. Not for [`Policy::Llvm`].
    pub order_free: bool,
    /// With [`SampleLayout::Nest`]: whether a moved function also stays at the top (`-generate-merged-base-profiles`).
    pub keep_bases: bool,
    /// With [`Policy::Llvm`]: whether a damaged input ends the merge, as it does in LLVM's default failure mode.
    pub stop_at_fault: bool,
}

impl SampleMergeOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// The options that merges of all families have.
    pub(crate) fn like(options: &MergeOptions) -> Self {
        SampleMergeOptions {
            policy: options.policy,
            run: options.run.clone(),
            remapping: options.remapping.clone(),
            filter: options.filter.clone(),
            order_free: options.order_free,
            ..SampleMergeOptions::new()
        }
    }

    setters! {
        run: RunOptions,
        order_free: bool,
    }

    /// Sets the number of threads. The default is one per core, but not more than there are inputs.
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
            .field("order_free", &self.order_free)
            .field("drop_symbols", &self.drop_symbols)
            .field("keep_bases", &self.keep_bases)
            .field("stop_at_fault", &self.stop_at_fault)
            .finish()
    }
}
