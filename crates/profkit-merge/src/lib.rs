//! Merging profiles: many inputs to one, with a [`Report`] of what was kept, repaired and dropped.
//!
//! | profiles | call | result |
//! |---|---|---|
//! | instrumentation, with heap profiles among them | [`merge_instr`] | [`MergeOutcome`] |
//! | sample | [`sample::merge_sample`] | [`sample::SampleOutcome`] |
//! | heap alone | [`memprof::merge_heap`] | [`memprof::HeapOutcome`] |
//! | MIP | [`mip::merge_mip`] | [`mip::MipOutcome`] |
//!
//! Nothing here prints: results are values. Bytes come from an [`Inputs`]: slices in memory, or files through [`files`].
//!
//! # How it works
//! One driver merges all kinds of profiles. It opens each input once, finds out the type of the file from its content,
//! deals inputs out to workers on the threads of [`RunOptions`], joins the results of the workers, and keeps the report.
//! Each kind of merge defines what a worker does with an input and how two workers are joined. If the order of inputs
//! does not matter, a worker that is free takes the next inputs. For sample and heap profiles each worker has a range of
//! neighbouring inputs.
//!
//! A worker for instrumentation profiles has an accumulator, and one array of counter sums for each layout of raw
//! profiles. The first raw profile of a layout is read record by record. A later profile whose data records and names
//! are the same (except for addresses) is not parsed; its counters are added to the array of the layout. At the end the
//! arrays are added to the accumulators, and these to each other. Sums are commutative, and each record notes where it
//! was seen first, so neither threads nor scheduling change a result.
//!
//! Indexed inputs of more than 1 MiB at the start of the list are shared by the threads: each thread takes the names of
//! its share of the hashes from one input after the other, and nothing has to be joined at the end.
//!
//! A raw file whose names are cut off is read last. Its records have the hashes of their names, so any other input with
//! the same functions has the names.
//!
//! # Where LLVM's result depends on the order of inputs
//! | matter | LLVM | [`Policy::Tolerant`] |
//! |---|---|---|
//! | a site that holds one value twice (unknown targets, value 0) | adds in the order of the new input's list | adds largest to largest |
//! | more than 255 values at a site | cuts after every input | cuts at the end |
//! | weight of a value that is new to its site | ignored | applied, or as LLVM with [`ValueWeights::AsLlvm`] |
//! | pseudo-hot record of an input with a weight | scaled to the largest count, no longer pseudo | stays pseudo |
//! | a different number of counters, or pseudo and real counts | the writer's first record wins | the first input's record wins |
//! | temporal traces with two threads and more | differ from run to run | as LLVM with one thread |
//!
//! For sound inputs of weight 1 without such sites, both give the same bytes. [`Policy::Llvm`] does what LLVM does,
//! writer by writer. Each writer takes the fast path first; if the order of inputs would have mattered, it reads its
//! inputs again without the fast path.
//!
//! [`ValueWeights::AsLlvm`] uses LLVM's rule, order and number of writers for value sites, and these writers for traces.
//! Everything else stays tolerant.
//!
//! LLVM changed the sampling of traces beyond the reservoir between 19 and 22 ([`TraceSampling`]): since then a full
//! reservoir takes nothing from inputs with fewer traces than it has room for.

mod accumulate;
mod driver;
mod engine;
mod error;
pub mod files;
mod inputs;
mod kinds;
mod layout;
pub mod memprof;
pub mod mip;
mod options;
pub mod report;
pub mod sample;

pub use driver::{Cancelled, InputStore, Progress, RunOptions, Threads};
#[doc(hidden)]
pub use engine::merge_scheduled;
pub use engine::{MergeOutcome, MergedProfile, merge_instr};
pub use error::{KindConflict, MergeError};
pub use inputs::{InputData, Inputs};
pub use options::{MergeOptions, NameFilter, Policy, ValueWeights};
pub use profkit_data::instr::{TraceOptions, TraceSampling};
pub use profkit_data::{Weight, WeightError};
pub use report::{Action, Event, LlvmCode, LlvmFault, Reason, Report, Totals};
