//! Read, merge, explain and write every profile that LLVM-based compilers produce or consume.
//!
//! Start here: this crate re-exports all libraries of profkit, and this guide has a section for each task. The last
//! column of the second table links to a complete program for the task. Add the crate with
//! `profkit = { path = "…/crates/profkit" }`. The examples of single items name the crate that defines the item: where
//! one has `use profkit_data::…`, a program that depends on `profkit` writes `use profkit::data::…`. `profkit_files` is
//! in [`merge::files`].
//!
//! | module | crate | purpose |
//! |---|---|---|
//! | [`abi`] | `profkit_abi` | numbers that compilers fix: flags, versions, section names |
//! | [`data`] | `profkit_data` | every format: readers, models, writers |
//! | [`merge`] | `profkit_merge` | many inputs to one profile |
//! | [`merge::files`] | `profkit_files` | inputs and outputs that are files |
//! | [`object`] | `profkit_object` | programs and debug info: build ids, functions, symbolising |
//! | [`perf`] | `profkit_perf` | recordings of Linux perf: events, samples, branch stacks, processes |
//! | [`profgen`] | `profkit_profgen` | sample profiles from recordings and binaries |
//! | [`analysis`] | `profkit_analysis` | answers to questions about profiles |
//! | [`report`] | `profkit_report` | answers as pictures and JSON documents |
//! | [`page`] | `profkit_page` | a profile as an HTML page; files for pprof and speedscope |
//! | [`mip`] | `profkit_mip`, `profkit_mip_driver` | MIP: instrumenting assembly and whole builds, empty profiles |
//! | [`llvm`] | `profkit_llvm` | `llvm-profdata` inside your process |
//!
//! | you want to | start from | then | example |
//! |---|---|---|---|
//! | open a profile of any kind | [`open`], [`detect`](data::detect::detect), [`AnyProfile`](analysis::any::AnyProfile) | [`Profile`], [`InstrSource`](data::instr::InstrSource) | [`read_and_print`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/read_and_print.rs) |
//! | merge profiles | [`merge_instr`](merge::merge_instr) or a similar function in [`merge`] | [`MergeOutcome`](merge::MergeOutcome) | [`merge_in_memory`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/merge_in_memory.rs) |
//! | write what an older LLVM reads | [`IndexedWriteOptions::for_llvm`](data::instr::indexed::IndexedWriteOptions::for_llvm) | [`write_indexed`](merge::files::write_indexed) | [`merge_files_for_llvm_16`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/merge_files_for_llvm_16.rs) |
//! | know what a merge kept, repaired and dropped | [`Report`](merge::Report) | [`Event`](merge::Event) | [`what_a_merge_repaired`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/what_a_merge_repaired.rs) |
//! | find the functions and lines of addresses | [`ProgramFiles`](object::symbolize::ProgramFiles) | [`Symbolizer`](object::symbolize::Symbolizer) | [`symbolize`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/symbolize.rs) |
//! | find the programs that wrote profiles with only counters | [`Binaries`](analysis::correlate::Binaries) | [`Plan`](analysis::correlate::Plan) | [`correlate`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/correlate.rs) |
//! | convert sample profiles | [`sample::read`](data::sample::read) | a `write` of [`data::sample`] | [`sample_to_another_encoding`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/sample_to_another_encoding.rs) |
//! | see which functions allocate memory | [`load_heap`](analysis::heap::load_heap) | [`HeapProfile`](analysis::heap::HeapProfile), [`top_contexts`](analysis::heap::top_contexts) | [`heap_contexts`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/heap_contexts.rs) |
//! | know what changed between two profiles | [`ComparedProfile`](analysis::overlap::ComparedProfile) | [`ProfileDiff`](analysis::diff::ProfileDiff), [`HeapChanges`](analysis::diff::HeapChanges) | [`what_changed`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/what_changed.rs) |
//! | know whether a profile fits a build | [`ProfileFunctions`](analysis::matching::ProfileFunctions) | [`MatchShares`](analysis::matching::MatchShares) | [`stale_for_this_binary`](https://github.com/profkit/profkit/blob/main/crates/profkit/examples/stale_for_this_binary.rs) |
//! | know what a file is and what is wrong with it | [`doctor::examine`](analysis::doctor::examine) | [`Diagnosis`](analysis::doctor::Diagnosis) | |
//! | select functions, and sum up their counts | [`InstrReader`](data::instr::InstrReader), [`SampleView`](analysis::samples::SampleView) | [`Selection`](analysis::selection::Selection) | |
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
//! # Read and print
//! [`open`] recognises a file by its content and returns a [`Profile`], an enum with one variant per kind. An
//! [`InstrSource`](data::instr::InstrSource) reads the records of an instrumentation profile one after another. Readers
//! borrow the bytes.
//!
//! ```
//! # #[cfg(feature = "instr")] {
//! use profkit::data::instr::{InstrSource, Record};
//! use profkit::data::printable;
//! use profkit::{Profile, ReadOptions, open};
//!
//! fn print(source: &mut dyn InstrSource) -> profkit::Result<()> {
//!     let mut record = Record::default();
//!     while source.read_record(&mut record)? {
//!         println!("{}: {:?}", printable(&record.name), record.counts);
//!     }
//!     Ok(())
//! }
//!
//! let file = b":ir\nmain\n1234\n2\n90\n10\n";
//! match open(file, &ReadOptions::new())? {
//!     Profile::Instr(mut reader) => print(&mut reader)?,
//!     _ => println!("another kind: {:?}", profkit::data::detect::detect(file)),
//! }
//! # }
//! # Ok::<(), profkit::Error>(())
//! ```
//!
//! | variant | how to go on |
//! |---|---|
//! | `Instr` | an [`InstrReader`](data::instr::InstrReader) of any form; in an indexed profile, [`lookup`](data::instr::indexed::IndexedProfile::lookup) finds one function |
//! | `Sample` | [`read_into`](data::sample::SampleFile::read_into) a [`SampleProfile`](data::sample::SampleProfile), then [`functions`](data::sample::SampleProfile::functions) |
//! | `MemProf` | [`contexts`](data::memprof::MemProfile::contexts) |
//! | `MemProfRaw` | addresses only, in [`dumps`](data::memprof::raw::RawMemProf::dumps): see [Heap contexts](#heap-contexts) |
//! | `Mip` | the field [`functions`](data::mip::MipProfile::functions) |
//! | `MipRaw`, `MipMap` | no functions with counts yet: [`merge_mip`](merge::mip::merge_mip) adds raw files to a profile |
//!
//! [`InstrReader`](data::instr::InstrReader) opens an instrumentation profile of any form;
//! [`AnyProfile`](analysis::any::AnyProfile) opens every kind of profile that has functions, but not heap profiles. An indexed profile that holds only a heap profile opens without functions:
//! [`is_heap_alone`](analysis::heap::is_heap_alone) recognises it. Both read the sound parts of damaged profiles, where
//! [`open`] refuses a file whose sections are cut off. `next_record` then returns an error for each damaged record or
//! part of the file:
//!
//! ```
//! # #[cfg(feature = "instr")] {
//! use profkit::data::instr::{InstrReader, InstrSource, Record};
//!
//! let mut reader = InstrReader::open(b":ir\nmain\n1234\n2\n90\n10\n")?;
//! let mut record = Record::default();
//! while let Some(read) = reader.next_record(&mut record) {
//!     match read {
//!         Ok(()) => println!("{} counters", record.counts.len()),
//!         Err(error) => eprintln!("{error}"),
//!     }
//! }
//! # }
//! # Ok::<(), profkit::Error>(())
//! ```
//!
//! The name of a record is empty if the names are lost. If a raw profile contains only counters, reading it fails with [`ErrorKind::MissingCorrelation`]: [`InstrReader::open_correlated`](data::instr::InstrReader::open_correlated)
//! takes the functions from [`Plan::joined`](analysis::correlate::Plan::joined), see [Correlate](#correlate).
//! [`names::display`](analysis::names::display) demangles names of functions.
//!
//! Whatever the bytes are, no reader panics, and none allocates memory because of a count in the file.
//!
//! # Merge in memory
//! [`merge_instr`](merge::merge_instr) merges instrumentation profiles of any form. The result is in
//! [`profiles`](merge::MergeOutcome::profiles), which has one element unless the options ask for one profile per build
//! id.
//!
//! ```
//! # #[cfg(not(feature = "merge"))] fn main() {}
//! # #[cfg(feature = "merge")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::data::instr::indexed::{self, IndexedWriteOptions};
//! use profkit::data::releases::Release;
//! use profkit::data::instr::text::{self, TextOptions};
//! use profkit::merge::{MergeOptions, Weight, merge_instr};
//!
//! let inputs = [
//!     ("monday", Weight::ONE, b":ir\nmain\n1234\n1\n90\n".as_slice()),
//!     ("tuesday", Weight::integer(2), b":ir\nmain\n1234\n1\n5\n".as_slice()),
//! ];
//! let merged = merge_instr(&inputs, &MergeOptions::new())?;
//! let profile = &merged.profiles[0].profile;
//! let mut as_text = Vec::new();
//! text::write(profile, &TextOptions::default(), &mut as_text)?;
//! assert!(String::from_utf8(as_text)?.contains("\n100\n"));
//! let mut as_indexed = Vec::new();
//! indexed::write(profile, &IndexedWriteOptions::for_llvm(Release::new(22)), &mut as_indexed)?;
//! # Ok(())
//! # }
//! ```
//!
//! Other kinds of profiles have functions of their own: [`merge_sample`](merge::sample::merge_sample),
//! [`merge_heap`](merge::memprof::merge_heap), [`merge_mip`](merge::mip::merge_mip).
//!
//! # Merge files for LLVM 16
//! [`IndexedWriteOptions::for_llvm`](data::instr::indexed::IndexedWriteOptions::for_llvm) chooses the version that a
//! release reads. Data that this version cannot represent is left out and returned as losses; the `Display` text of the
//! losses names all of them, and [`counts`](data::instr::Losses::counts) returns them as numbers. An event of the report
//! can say that a newer version suits the profile better
//! ([`suggested_indexed_version`](merge::Report::suggested_indexed_version)).
//! [`indexed::write`](data::instr::indexed::write) writes into any sink;
//! [`IndexedPlan`](data::instr::indexed::IndexedPlan) with [`write_indexed`](merge::files::write_indexed) does the same
//! on several threads.
//!
//! Heap profiles among the inputs are not part of [`profiles`](merge::MergeOutcome::profiles), and the writer does not
//! report them as losses. They are in [`heap`](merge::MergeOutcome::heap); its documentation explains how to add them
//! to the file. If all inputs are heap profiles, the only profile in `profiles` has no functions.
//!
//! ```no_run
//! # #[cfg(not(feature = "merge"))] fn main() {}
//! # #[cfg(feature = "merge")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
//! use profkit::data::releases::Release;
//! use profkit::merge::files::{Content, InputList, Output, write_indexed};
//! use profkit::merge::{MergeOptions, merge_instr};
//! use std::path::Path;
//!
//! let inputs = InputList::collect(&["a.profraw".into(), "more/".into()], &[], None)?;
//! for note in &inputs.notes {
//!     eprintln!("{note}");
//! }
//! let options = MergeOptions::new();
//! let merged = merge_instr(&inputs, &options)?;
//! for event in &merged.report.events {
//!     eprintln!("{event}");
//! }
//! if merged.heap.is_some() {
//!     eprintln!("heap profiles are not written");
//! }
//! let profile = &merged.profiles[0].profile;
//! let plan = IndexedPlan::new(profile, &IndexedWriteOptions::for_llvm(Release::new(16)))?;
//! if !plan.losses().is_empty() {
//!     eprintln!("not written: {}", plan.losses());
//! }
//! let output = Output::new(Path::new("merged.profdata"), Content::Binary)?;
//! output.write(|sink| write_indexed(&plan, &options.run.threads, sink))?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a merge repaired
//! A damaged input does not make a merge fail. The [`Report`](merge::Report) counts the inputs in
//! [`totals`](merge::Report::totals). For everything that was repaired, dropped or remarkable it has an
//! [`Event`](merge::Event); an input can have several events. Programs can examine the file of an event, its
//! [`Action`](merge::Action) and its [`Reason`](merge::Reason); for users an event has a message and sometimes a hint.
//! The `Display` text of an event is one line.
//!
//! ```
//! # #[cfg(not(feature = "merge"))] fn main() {}
//! # #[cfg(feature = "merge")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::merge::{Action, MergeOptions, Reason, merge_instr};
//!
//! # use profkit::data::bytes::Endian;
//! # use profkit::data::ids::FuncHash;
//! # use profkit::data::instr::raw::{PointerWidth, RawDialect, RawImage, RawImageRecord};
//! # let (endian, width) = (Endian::Little, PointerWidth::Bits64);
//! # let mut image = RawImage::new(RawDialect { endian, width, version: 10, flags: profkit::abi::variant::IR });
//! # let (name, func_hash, counts) = (b"main".to_vec(), FuncHash(1234), vec![90, 10]);
//! # image.records = vec![RawImageRecord { name, func_hash, counts, ..RawImageRecord::default() }];
//! # let whole = image.to_bytes()?;
//! // `whole` has the bytes of a raw profile. The disk was full when the program wrote the second one.
//! let cut = &whole[..150];
//! let inputs = [("whole", whole.as_slice()), ("cut", cut)];
//! let report = merge_instr(&inputs, &MergeOptions::new())?.report;
//! assert_eq!((report.totals.files, report.totals.files_kept), (2, 1));
//! let event = &report.events[0];
//! assert_eq!((event.file.as_str(), event.action, event.reason), ("cut", Action::Dropped, Reason::Truncated));
//! println!("{event}");
//! # Ok(())
//! # }
//! ```
//!
//! # Symbolise addresses
//! [`ProgramFiles`](object::symbolize::ProgramFiles) opens a program and its debug files, and must live as long as the
//! [`Symbolizer`](object::symbolize::Symbolizer), which borrows them. Addresses are link-time addresses, as in the
//! symbol table of the program: subtract the load address from an address of a running process. The frames of an
//! address begin with the innermost inlined function. An address in no function has no frames. Without debug info, the
//! function is the symbol that contains the address. A symbol without a size (`_fini`) reaches up to the next symbol.
//! If the last symbol of all has no size, it has no end: every address after it gets its name.
//!
//! [`function_text`](object::symbolize::Frame::function_text) is the mangled name;
//! [`names::display`](analysis::names::display) demangles it.
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> profkit::Result<()> {
//! use profkit::analysis::names;
//! use profkit::object::debug_files::DebugFolders;
//! use profkit::object::symbolize::{Options, ProgramFiles};
//!
//! let files = ProgramFiles::open("a.out".as_ref(), &DebugFolders::default())?;
//! let symbolizer = files.symbolizer(&Options::default())?;
//! let locations = symbolizer.symbolize(&[0x1139, 0x1150]);
//! for frame in locations.stack(0) {
//!     let function = names::display(frame.function.unwrap_or(b"?"), false);
//!     println!("{function} at {}:{}", frame.file_text(), frame.line);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Correlate
//! Programs that were built with `-profile-correlate` write raw profiles that contain only counters. A
//! [`Plan`](analysis::correlate::Plan) finds the binary of each profile. The merge then reads the functions from
//! [`Plan::joined`](analysis::correlate::Plan::joined).
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::correlate::{Binaries, Plan};
//! use profkit::merge::files::InputList;
//! use profkit::merge::{Inputs, MergeOptions, merge_instr};
//! use std::sync::Arc;
//!
//! let inputs = InputList::from_paths(["default.profraw"]);
//! let binaries = Binaries::open(&["build/".into()])?;
//! let plan = Plan::new(&inputs, &binaries);
//! for assignment in &plan.assignments {
//!     match &assignment.outcome {
//!         Ok(found) => println!("{}: {} functions", found.path.display(), found.functions),
//!         Err(error) => println!("no binary: {error}"),
//!     }
//!     for &input in &assignment.inputs {
//!         println!("  for {}", inputs.name(input));
//!     }
//! }
//! let options = MergeOptions::new().correlation(Arc::new(plan.joined));
//! let merged = merge_instr(&inputs, &options)?;
//! # let _ = merged;
//! # Ok(())
//! # }
//! ```
//!
//! # Sample profile to another encoding
//! [`sample::read`](data::sample::read) adds the samples of a file of any encoding to a
//! [`SampleProfile`](data::sample::SampleProfile), so that reading several files merges them. Each encoding has a
//! module with a `write`, which returns the losses: data that were left out because the encoding cannot contain them.
//! If the meaning of the profile would change, `write` returns an error instead ([`ErrorKind::CannotRepresent`]):
//!
//! | encoding | calling contexts | pseudo probes |
//! |---|---|---|
//! | [`text`](data::sample::text) | yes; an error for releases before LLVM 13 | yes |
//! | [`ext_binary`](data::sample::ext_binary) | yes; an error with `split_layout` | yes |
//! | [`binary`](data::sample::binary), and `write_compact` | error | error |
//! | [`gcov`](data::sample::gcov), for GCC | error | the checksums are lost |
//!
//! [`nest(&mut profile, false)`](data::sample::nest) turns contexts into functions inlined into their callers, so that
//! every encoding can contain them. [`GcovOptions::new`](data::sample::gcov::GcovOptions::new) needs a version:
//! [`GcovVersion::of_gcc`](data::sample::gcov::GcovVersion::of_gcc) returns the version that a release of GCC reads.
//! LLVM reads only [`Gcc47`](data::sample::gcov::GcovVersion::Gcc47), and not versions 1 to 3.
//!
//! ```
//! # #[cfg(feature = "sample")] {
//! use profkit::data::sample::ext_binary::{self, ExtBinaryOptions};
//! use profkit::data::sample::{SampleProfile, read};
//!
//! let mut profile = SampleProfile::new();
//! let weight = 1;
//! let report = read(b"main:100:5\n 1: 3\n", &mut profile, weight);
//! assert!(report.faults.is_empty());
//! let mut bytes = Vec::new();
//! let losses = ext_binary::write(&profile, &ExtBinaryOptions::default(), &mut bytes)?;
//! assert!(losses.is_empty(), "not written: {losses}");
//! # }
//! # Ok::<(), profkit::Error>(())
//! ```
//!
//! # Heap contexts
//! A [`HeapProfile`](analysis::heap::HeapProfile) is a heap profile in memory, whatever the format of its file was. For
//! an indexed profile, use [`from_indexed`](analysis::heap::HeapProfile::from_indexed). For raw dumps and YAML, first
//! call [`load_heap`](analysis::heap::load_heap), which adds up its inputs, then
//! [`from_loaded`](analysis::heap::HeapProfile::from_loaded). `load_heap` fails if no input is a heap profile that can
//! be read. If some inputs can be read, the report has an event for each of the others. An indexed profile contains
//! hashes instead of names: `frame.name` is `None` if the hash, `frame.frame.function`, is not among the names of
//! `heap.profile`. LLVM's indexed profiles have no names at all; [`add_names`](analysis::heap::HeapProfile::add_names)
//! takes them from the program:
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::heap::HeapProfile;
//! use profkit::analysis::matching::BinaryFunctions;
//!
//! let mut heap = HeapProfile::from_indexed(&std::fs::read("heap.profdata")?)?;
//! let mut program = BinaryFunctions::for_names();
//! program.open("app".as_ref())?;
//! let (named, unnamed) = heap.add_names(&program);
//! println!("{named} functions have names now, {unnamed} have none");
//! # Ok(())
//! # }
//! ```
//!
//! Raw dumps contain addresses, so they need the binaries that ran. A context is dropped if no function of it is known.
//! [`contexts_dropped`](analysis::heap::LoadedHeap::contexts_dropped) is the number of these contexts;
//! [`modules`](analysis::heap::LoadedHeap::modules) has a [`ModuleReport`](analysis::heap::ModuleReport) for each
//! binary that the dumps name. The `ModuleReport` shows the reason: its field `binary` is `None` if the binary was not
//! found.
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::correlate::Binaries;
//! use profkit::analysis::heap::{HeapProfile, IndexedBinaries, load_heap};
//! use profkit::merge::RunOptions;
//!
//! let dump = std::fs::read("app.memprofraw")?;
//! let binaries = Binaries::open(&["build/".into()])?;
//! // The source borrows the binaries: it cannot be made in the same expression as they are.
//! let source = IndexedBinaries::of(&binaries);
//! let loaded = load_heap(&[dump.as_slice()], &RunOptions::new(), &source)?;
//! for module in &loaded.modules {
//!     if module.binary.is_none() && module.contexts > 0 {
//!         eprintln!("no binary for {}: {} contexts have addresses in it", module.module, module.contexts);
//!     }
//! }
//! let heap = HeapProfile::from_loaded(loaded);
//! # let _ = heap;
//! # Ok(())
//! # }
//! ```
//!
//! YAML has names, so that it needs no binaries:
//!
//! ```
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::heap::{ContextOrder, HeapProfile, NoBinaries, load_heap, top_contexts};
//! use profkit::analysis::names;
//! use profkit::data::memprof::{Field, Thresholds};
//! use profkit::merge::RunOptions;
//!
//! let yaml = b"---
//! HeapProfileRecords:
//! - GUID: main
//!   AllocSites:
//!   - Callstack:
//!     - { Function: main, LineOffset: 1, Column: 2, IsInlineFrame: false }
//!     MemInfoBlock: { AllocCount: 3, TotalSize: 96 }
//!   CallSites: []
//! ";
//! let loaded = load_heap(&[yaml.as_slice()], &RunOptions::new(), &NoBinaries::default())?;
//! for event in &loaded.report.events {
//!     eprintln!("{event}");
//! }
//! if loaded.contexts_dropped > 0 {
//!     eprintln!("{} contexts have no known function", loaded.contexts_dropped);
//! }
//! let heap = HeapProfile::from_loaded(loaded);
//! // Compilers use the hints for hot contexts only with `-memprof-use-hot-hints`.
//! let hot_hints = true;
//! let contexts = heap.profile.contexts();
//! for context in top_contexts(&contexts, ContextOrder::Bytes, 10) {
//!     let hotness = Thresholds::default().hotness(&context.block, hot_hints);
//!     println!("{} bytes, {hotness:?}", context.block.get(Field::TotalSize));
//!     for frame in heap.frames(context.stack) {
//!         println!("  {}", names::display(frame.name.unwrap_or(b"??"), false));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Is this profile stale for this binary?
//! A profile is stale if functions of the program have changed since the profile was collected: their counts are of no
//! use. [`MatchShares`](analysis::matching::MatchShares) compares the functions of a profile,
//! [`ProfileFunctions`](analysis::matching::ProfileFunctions), with those of binaries,
//! [`BinaryFunctions`](analysis::matching::BinaryFunctions), which can also come from a profile of a newer build.
//! [`ProfileFunctions::parse`](analysis::matching::ProfileFunctions::parse) reads the bytes of an indexed, raw, text,
//! sample or MIP file; [`of_instr`](analysis::matching::ProfileFunctions::of_instr) takes the result of a merge.
//!
//! There is no fixed limit: choose how large a share of the counts may be lost. Two numbers answer different questions.
//! [`counts`](analysis::matching::MatchShares::counts) starts from the profile: `counts.changed` and `counts.gone` are
//! the counts that the build cannot use because a function has another hash, or does not exist. A profile without these
//! is not stale. [`functions`](analysis::matching::MatchShares::functions) starts from the binary: `functions.changed`
//! is the number of its functions that the profile knows only with another hash, whether they ran or not.
//! [`hot_lost`](analysis::matching::MatchShares::hot_lost) lists the hot functions that do not match. The hot functions
//! are those with the largest counts, which together have 99 % of all counts. A lost function may have a likely
//! [`Successor`](analysis::matching::Successor).
//!
//! Only a binary with hashes can show that a function changed: one that was built with instrumentation or coverage
//! mapping. For other binaries only names are compared ([`Origin::Symbols`](object::functions::Origin::Symbols)): a
//! changed function counts as matched. A function that was inlined everywhere counts neither as matched nor as lost: its
//! counts are in `counts.inlined`, and it is in `hot_lost` with [`Outcome::Inlined`](analysis::matching::Outcome::Inlined).
//! In an optimised binary these can be most of the counts, so decide by `counts.changed` and `counts.gone`. Such functions
//! are found in debug info; without debug info, and if the compiler left no entry for a function there, it counts as
//! gone. If the profile counts in clang's front end and the binary in LLVM IR, or the other way round,
//! their hashes have nothing to do with each other, and everything looks changed:
//! [`Binary::is_other_stage`](analysis::matching::Binary::is_other_stage) says so.
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::analysis::matching::{BinaryFunctions, MatchShares, ProfileFunctions};
//! use profkit::object::functions::Origin;
//!
//! let profile = ProfileFunctions::parse(&std::fs::read("old.profdata")?)?;
//! let mut binaries = BinaryFunctions::for_profile(&profile);
//! binaries.open("build/app".as_ref())?;
//! binaries.find_inlined(&profile);
//! if binaries.binaries.iter().any(|binary| binary.origin == Some(Origin::Symbols)) {
//!     println!("the binary has no hashes: changed functions are not found");
//! }
//! if binaries.binaries.iter().any(|binary| binary.is_other_stage(&profile)) {
//!     println!("the binary was instrumented in another stage: no hash can match");
//! }
//! let shares = MatchShares::new(&profile, &binaries);
//! let counts = &shares.counts;
//! if let Some(stale) = counts.percent(counts.changed + counts.gone) {
//!     println!("{stale:.1} % of all counts are of functions that changed or are gone");
//! }
//! for lost in &shares.hot_lost {
//!     println!("{:?}: {}", lost.outcome, String::from_utf8_lossy(&lost.name));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is wrong with a file
//! [`doctor::examine`](analysis::doctor::examine) reports what a file is, which LLVM releases can use it, what is
//! damaged and what to do next.
//!
//! ```
//! # #[cfg(feature = "analysis")] {
//! use profkit::analysis::doctor::{Verdict, examine};
//!
//! let diagnosis = examine(b":ir\nmain\n1234\n2\n90\n");
//! assert_eq!(diagnosis.verdict, Verdict::Damaged);
//! println!("{}", diagnosis.damage.first[0]);
//! # }
//! ```
//!
//! # Features
//! All features but `debuginfod` are on by default. `instr`, `sample`, `memprof` and `mip` enable reading and writing
//! of one family of profiles each; a program that only reads one family needs only that feature:
//!
//! ```toml
//! [dependencies]
//! profkit = { path = "…/crates/profkit", default-features = false, features = ["instr"] }
//! ```
//!
//! The example of [Read and print](#read-and-print) needs no more than that. `merge`, `object`,
//! `analysis`, `llvm` and `instrument` add the crates of these names (`instrument` adds [`mip`]), and enable all
//! families. `perf` adds [`perf`], `profgen`
//! adds [`profgen`].
#![forbid(unsafe_code)]

#[doc(inline)]
pub use profkit_abi as abi;
#[cfg(feature = "analysis")]
#[doc(inline)]
pub use profkit_analysis as analysis;
#[doc(inline)]
pub use profkit_data as data;
#[cfg(feature = "llvm")]
#[doc(inline)]
pub use profkit_llvm as llvm;
#[cfg(feature = "merge")]
#[doc(inline)]
pub use profkit_merge as merge;
#[cfg(feature = "object")]
#[doc(inline)]
pub use profkit_object as object;
#[cfg(feature = "page")]
#[doc(inline)]
pub use profkit_page as page;
#[cfg(feature = "perf")]
#[doc(inline)]
pub use profkit_perf as perf;
#[cfg(feature = "profgen")]
#[doc(inline)]
pub use profkit_profgen as profgen;
#[cfg(feature = "report")]
#[doc(inline)]
pub use profkit_report as report;

pub use profkit_data::{Error, ErrorKind, Profile, ReadOptions, Result, Structure, open};

/// MIP: the instrumenter, empty profiles and the use of profiles (profkit-mip); the programs that take the place of a
/// compiler, and the runtime that they link (profkit-mip-driver).
#[cfg(feature = "instrument")]
pub mod mip {
    pub use profkit_mip::*;
    pub use profkit_mip_driver::{cargo, cc, runtime};
}
