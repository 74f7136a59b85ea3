//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Merges profiles: many inputs to one result, with a [`Report`] of what was kept, repaired and dropped.
//!
//! | profiles | function | result |
//! |---|---|---|
//! | instrumentation profiles (heap profiles may be among them) | [`merge_instr`] | [`MergeOutcome`] |
//! | sample profiles | [`sample::merge_sample`] | [`sample::SampleOutcome`] |
//! | heap profiles only | [`memprof::merge_heap`] | [`memprof::HeapOutcome`] |
//! | MIP files | [`mip::merge_mip`] | [`mip::MipOutcome`] |
//!
//! This crate prints nothing: every result is a value. The bytes of the inputs come from an [`Inputs`] object: slices
//! in memory, or files through [`files`].
//!
//! # How it works
//! One driver merges all kinds of profiles. It opens each input once, recognises the type of the file by its content,
//! distributes the inputs to workers on the threads of [`RunOptions`], joins the results of the workers, and collects
//! the report. Each kind of merge defines what a worker does with an input and how two workers are joined. If the order
//! of inputs does not matter, any free worker gets the next inputs. For sample and heap profiles each worker gets a
//! range of neighbouring inputs.
//!
//! A worker for instrumentation profiles has an accumulator, and one array of counter sums for each layout of raw
//! profiles. The first raw profile of a layout is read record by record. A later profile with the same data records and
//! names (except for addresses) takes the fast path: it is not parsed; its counters are added to the array of the
//! layout. At the end the arrays are added to the accumulators, and the accumulators to each other. Sums are
//! commutative, and each record stores the first input that contains it, so neither threads nor scheduling change a
//! result.
//!
//! Indexed inputs of 1 MiB or more at the start of the list are read by all threads together. The hashes of names are
//! divided among the threads, and each thread reads only the functions with its hashes. So the results of the threads
//! have no function in common and need not be merged.
//!
//! A raw file whose names are cut off is read last. Its records contain the hashes of the names, so the names can be
//! found in any other input with the same functions.
//!
//! # Where LLVM's result depends on the order of inputs
//! | situation | LLVM | [`Policy::Tolerant`] |
//! |---|---|---|
//! | a value site contains one value twice (unknown targets, value 0) | the counts of the value are added in their order in the new input | the largest count of the value in one input is added to its largest count in the other input |
//! | a value site has more than 255 values | the site is cut after every input | the site is cut at the end |
//! | a value is new to its value site | the weight of the input is ignored | the weight is applied; with [`ValueWeights::AsLlvm`] as in LLVM |
//! | a pseudo-hot record comes from an input with a weight | the marker (a special value of the first counter) is multiplied like a count: it becomes the largest count, and no longer marks the record | the record stays pseudo-hot |
//! | two records have different numbers of counters, or one is pseudo and one has real counts | the writer's first record is kept | the first input's record is kept |
//! | temporal traces are merged with two or more threads | the result differs from run to run | the result is that of LLVM with one thread |
//! | value data name virtual tables | the names of virtual tables are kept only with [`MergeOptions::keep_vtable_names`] | the names of those virtual tables are kept |
//!
//! For sound inputs of weight 1 to which no row of this table applies, both policies give the same bytes.
//! [`Policy::Llvm`] does what LLVM does, writer by writer. Each writer first uses the fast path. If the order of inputs
//! would have changed the result, the writer reads its inputs again without the fast path.
//!
//! [`ValueWeights::AsLlvm`] adds value sites by LLVM's rule, in LLVM's order and with LLVM's number of writers. Each of
//! these writers samples its own temporal traces. Everything else is as under the tolerant policy.
//!
//! LLVM samples temporal traces into a reservoir of limited size. LLVM 22 uses another method than LLVM 17 to 19
//! ([`TraceSampling`]): a full reservoir accepts only traces from inputs with more traces than the reservoir holds.

/// Setters of options, each with the name and the type of its field.
macro_rules! setters {
    ($($field:ident: $type:ty),* $(,)?) => {
        $(
            #[doc = concat!("Sets [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
            #[must_use]
            pub fn $field(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            }
        )*
    };
}

mod accumulate;
mod driver;
mod engine;
mod error;
pub mod families;
pub mod files;
pub mod fold;
mod join;
mod kinds;
mod layout;
pub mod memprof;
pub mod mip;
mod options;
pub mod part;
pub mod report;
pub mod sample;

pub use driver::{Cancelled, InputStore, Progress, RunOptions, Threads};
#[doc(hidden)]
pub use engine::merge_scheduled;
pub use engine::{IndexedMerge, MergeOutcome, MergedProfile, merge_indexed, merge_instr};
pub use error::{Difference, GroupConflict, InputGroup, MergeError};
pub use families::{Merged, merge};
pub use join::{Joined, JoinedPlan, RecordVisitor};
pub use options::{MergeOptions, NameFilter, Policy, ValueWeights};
pub use profkit_data::instr::{TraceOptions, TraceSampling};
pub use profkit_data::{Weight, WeightError};
pub use profkit_files::{InputData, Inputs, MappedFile, Shard};
pub use report::{Action, Event, LlvmCode, LlvmFault, Reason, Report, Totals};
