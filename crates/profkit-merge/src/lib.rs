//! Merging profiles: many inputs to one, with a [`Report`] of what was kept, repaired and dropped.
//!
//! | profiles | call | result |
//! |---|---|---|
//! | instrumentation, and heap profiles beside them | [`merge_instr`] | [`MergeOutcome`] |
//! | sample | [`sample::merge_sample`] | [`sample::SampleOutcome`] |
//! | heap alone | [`memprof::merge_heap`] | [`memprof::HeapOutcome`] |
//! | MIP | [`mip::merge_mip`] | [`mip::MipOutcome`] |
//!
//! Nothing here prints. Bytes come from an [`Inputs`]: slices in memory, or files through [`files`]. Results are values.
//!
//! # How it works
//! All kinds of profiles are merged by one driver. It opens each input once, asks its content what it is, deals inputs
//! out to workers on the threads of [`RunOptions`], joins what the workers have, and keeps the report. A kind says what a worker
//! does with an input and how two workers are joined. Inputs whose order does not matter are shared by whoever is free;
//! for sample and heap profiles each worker has inputs that follow one another.
//!
//! A worker for instrumentation profiles has an accumulator and, for each raw layout that it met, one array of counter
//! sums. The first raw profile of a layout is read record by record and registered; a later one whose data records and
//! names are the same (but for addresses) is not parsed, its counters are added to the layout's array. At the end layouts go into
//! the accumulators, and these into one another. Sums are commutative and records carry the place of their first
//! occurrence, so that neither threads nor scheduling change a result.
//!
//! Leading indexed inputs of more than 1 MiB are shared out instead: each thread takes the names of its share of the
//! hashes from one input after the other, and nothing has to be merged at the end.
//!
//! A raw file that is cut in its names is read last. A record knows the hash of its name, so that any other input that
//! has the function gives the name.
//!
//! # Where LLVM's result depends on the order of inputs
//! | matter | LLVM | [`Policy::Tolerant`] |
//! |---|---|---|
//! | a site that holds one value twice (unknown targets, value 0) | adds in the order of the newcomer's list | adds largest to largest |
//! | more than 255 values at a site | cuts after every input | cuts at the end |
//! | weight of a value that is new to its site | forgotten | applied, or as LLVM with [`ValueWeights::AsLlvm`] |
//! | pseudo-hot record of an input with a weight | scaled to the largest count, no longer pseudo | stays pseudo |
//! | another number of counters, pseudo with counts | the writer's first record wins | the first input's record wins |
//! | temporal traces with two threads and more | differ from run to run | as LLVM with one thread |
//!
//! On sound inputs of weight 1 without such sites the bytes are equal. [`Policy::Llvm`] does what LLVM does, writer by
//! writer; each writer takes the fast path first, and reads its own inputs again without it where the order would have
//! mattered.
//!
//! [`ValueWeights::AsLlvm`] gives value sites LLVM's rule, order and number of writers, and traces these writers;
//! nothing else of its policy.
//!
//! Sampling of traces beyond the reservoir changed between LLVM 19 and 22 ([`TraceSampling`]): since then a full
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
mod traces;
mod weight;

pub use driver::{Cancelled, InputStore, Progress, RunOptions, Threads};
#[doc(hidden)]
pub use engine::merge_scheduled;
pub use engine::{MergeOutcome, MergedProfile, merge_instr};
pub use error::{KindConflict, MergeError};
pub use inputs::{InputData, Inputs};
pub use options::{MergeOptions, NameFilter, Policy, TraceOptions, TraceSampling, ValueWeights};
pub use report::{Action, Event, LlvmCode, LlvmFault, Reason, Report, Totals};
pub use weight::{Weight, WeightError};
