//! Read, merge, explain and write every profile that LLVM-based compilers produce or consume.
//!
//! Start here: this crate has the parts of profkit that programs use, and nothing else. Each module has one page, which
//! begins with how its tasks are done. Add the crate with `profkit = { path = "…/crates/profkit" }`. What this crate shows
//! stays as it is within a major version; the other crates (such as `profkit_data`) are internal, and the examples of
//! single items name them: where one has `use profkit_data::…`, a program writes `use profkit::data::…`.
//!
//! | module | purpose |
//! |---|---|
//! | [`data`] | every format: readers, models, writers |
//! | [`merge`] | many inputs to one profile |
//! | [`object`] | programs and debug info: build ids, functions, symbolising |
//! | [`perf`] | recordings of Linux perf: events, samples, branch stacks, processes |
//! | [`profgen`] | sample profiles from recordings and binaries |
//! | [`analysis`] | answers to questions about profiles |
//! | [`page`] | a profile as an HTML page; files for pprof and speedscope |
//! | [`mip`] | MIP: instrumenting assembly, empty profiles, files for compilers |
//! | [`llvm`] | `llvm-profdata` inside your process |
//!
//! | you want to | start from | then | example |
//! |---|---|---|---|
//! | open a profile of any kind | [`open`], [`detect`](data::detect::detect), [`AnyProfile`](analysis::any::AnyProfile) | [`Profile`], [`InstrSource`](data::instr::InstrSource) | [`read_and_print`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/read_and_print.rs) |
//! | merge profiles | [`merge::merge`], or a function of [`merge`] for one family | [`Merged`](merge::Merged), [`MergeOutcome`](merge::MergeOutcome) | [`merge_in_memory`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/merge_in_memory.rs) |
//! | write what an older LLVM reads | [`IndexedWriteOptions::for_llvm`](data::instr::indexed::IndexedWriteOptions::for_llvm) | [`write_indexed`](merge::files::write_indexed) | [`merge_files_for_llvm_16`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/merge_files_for_llvm_16.rs) |
//! | know what a merge kept, repaired and dropped | [`Report`](merge::Report) | [`Event`](merge::Event) | [`what_a_merge_repaired`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/what_a_merge_repaired.rs) |
//! | find the functions and lines of addresses | [`ProgramFiles`](object::symbolize::ProgramFiles) | [`Symbolizer`](object::symbolize::Symbolizer) | [`symbolize`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/symbolize.rs) |
//! | find the programs that wrote profiles with only counters | [`Binaries`](analysis::correlate::Binaries) | [`Plan`](analysis::correlate::Plan) | [`correlate`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/correlate.rs) |
//! | convert sample profiles | [`sample::read`](data::sample::read) | a `write` of [`data::sample`] | [`sample_to_another_encoding`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/sample_to_another_encoding.rs) |
//! | see which functions allocate memory | [`load_heap`](analysis::heap::load_heap) | [`HeapProfile`](analysis::heap::HeapProfile), [`top_contexts`](analysis::heap::top_contexts) | [`heap_contexts`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/heap_contexts.rs) |
//! | know what changed between two profiles | [`ComparedProfile`](analysis::overlap::ComparedProfile) | [`ProfileDiff`](analysis::diff::ProfileDiff), [`HeapChanges`](analysis::diff::HeapChanges) | [`what_changed`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/what_changed.rs) |
//! | know whether a profile fits a build | [`ProfileFunctions`](analysis::matching::ProfileFunctions) | [`MatchShares`](analysis::matching::MatchShares) | [`stale_for_this_binary`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/stale_for_this_binary.rs) |
//! | know what a file is and what is wrong with it | [`doctor::examine`](analysis::doctor::examine) | [`Diagnosis`](analysis::doctor::Diagnosis) | |
//! | select functions, and sum up their counts | [`InstrReader`](analysis::instr::InstrReader), [`SampleView`](analysis::samples::SampleView) | [`Selection`](analysis::selection::Selection) | |
//! | order functions for a linker | [`by_mean`](analysis::order::by_mean), [`balanced`](analysis::order::balanced) | [`OrderFile`](analysis::order::OrderFile) | |
//! | run `llvm-profdata` inside your process | [`llvm::profdata`] | | |
//!
//! # Steps of a task
//! Every task has the same steps: open the inputs, call a function, examine the result and its report, write the
//! result.
//!
//! | step | in memory | with files |
//! |---|---|---|
//! | one input | `&[u8]` | `std::fs::read`, or [`Input::open`](merge::files::Input::open), which maps large files |
//! | many inputs | a slice, array or `Vec` of bytes, of `(name, bytes)` or of `(name, Weight, bytes)`: all of these implement [`Inputs`](merge::Inputs); bytes are `&[u8]` or `Vec<u8>` | [`InputList::from_paths`](merge::files::InputList::from_paths): files, `-` for standard input; [`InputList::collect`](merge::files::InputList::collect): also folders, `WEIGHT,PATH` and lists |
//! | one input for a function that takes [`Inputs`](merge::Inputs) | `&[bytes]` | [`SingleInput`](merge::files::SingleInput)`(&input)` |
//! | output | a `Vec<u8>` is a [`Sink`](data::bytes::Sink) | [`Output`](merge::files::Output), a file that is written completely or not at all |
//!
//! | error | returned by | contents that programs can examine |
//! |---|---|---|
//! | [`Error`] | every reader and writer | [`kind`](Error::kind) is an [`ErrorKind`], [`offset`](Error::offset) the byte offset in the file, [`hint`](Error::hint) the next step for the user |
//! | [`MergeError`](merge::MergeError) | [`merge_instr`](merge::merge_instr) | its variants; [`report`](merge::MergeError::report) says what was found out about the inputs. Inputs that cannot be merged with each other are the error [`Groups`](merge::MergeError::Groups): sample and instrumentation profiles, or front-end and IR profiles. A damaged input, or a file that is no profile, is not an error; it becomes an [`Event`](merge::Event) of the [`Report`](merge::Report) |
//! | [`ReadError`](merge::files::ReadError), [`ListError`](merge::files::ListError), [`OutputError`](merge::files::OutputError) | files | the system's error |
//! | [`IndexError`](object::index::IndexError) | [`Binaries::open`](analysis::correlate::Binaries::open) | the path |
//!
//! All of them implement [`std::error::Error`], so that `?` works in a function that returns `Result<(), Box<dyn
//! std::error::Error>>`. Print an error for users with `{error}`. If `main` returns an error, as in these examples,
//! Rust prints it with `{error:?}`, which is a text for programmers. A program for users has a `main` such as this one:
//!
//! ```
//! fn main() {
//!     if let Err(error) = run() {
//!         eprintln!("error: {error}");
//!         std::process::exit(1);
//!     }
//! }
//! # fn run() -> Result<(), Box<dyn std::error::Error>> { Ok(()) }
//! ```
//!
//! Do not make decisions by the text of an error; use the items that the last column of the table above names.
//!
//! # Features
//! All features but `debuginfod` are on by default.
//!
//! | feature | adds |
//! |---|---|
//! | `instr`, `sample`, `memprof`, `mip` | reading and writing one family of profiles each |
//! | `stored` | profiles in gzip, zstd, xz, tar and zip: [`data::stored`] |
//! | `merge` | [`merge`], and all families |
//! | `object` | [`object`], and all families |
//! | `analysis` | [`analysis`], with `merge` and `object` |
//! | `page` | [`page`], with `analysis` |
//! | `llvm` | [`llvm`], with `analysis` |
//! | `perf` | [`perf`] |
//! | `profgen` | [`profgen`], with `object` and `perf` |
//! | `instrument` | [`mip`], with `analysis` |
//! | `debuginfod` | binaries and debug info from debuginfod servers, over `http://` and `file://` |
//!
//! A program that only reads one family needs only that feature:
//!
//! ```toml
//! [dependencies]
//! profkit = { path = "…/crates/profkit", default-features = false, features = ["instr"] }
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "analysis")]
pub mod analysis;
pub mod data;
#[cfg(feature = "llvm")]
pub mod llvm;
#[cfg(feature = "merge")]
pub mod merge;
#[cfg(feature = "instrument")]
pub mod mip;
#[cfg(feature = "object")]
pub mod object;
#[cfg(feature = "page")]
pub mod page;
#[cfg(feature = "perf")]
pub mod perf;
#[cfg(feature = "profgen")]
pub mod profgen;

pub use profkit_data::{Error, ErrorKind, Profile, ReadOptions, Result, Structure, open};
