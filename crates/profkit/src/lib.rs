//! Read, merge, explain and write every profile that LLVM-based compilers produce or consume.
//!
//! This crate is the way in: it has profkit's libraries under one name, and this guide. The programs in its folder
//! `examples` show each task as a whole.
//!
//! | you want to | look at | example |
//! |---|---|---|
//! | open a profile of any kind | [`open`], [`detect`](data::detect) | `read_and_print` |
//! | merge profiles | [`merge`]: `merge_instr`, `sample`, `memprof`, `mip` | `merge_in_memory` |
//! | write what an older LLVM reads | [`data::instr::indexed`] | `merge_files_for_llvm_16` |
//! | know what a merge kept and why | `merge::Report` | `what_a_merge_repaired` |
//! | find the functions and lines of addresses | `object::symbolize` | `symbolize` |
//! | join profiles to the programs that wrote them | `analysis::correlate` | `correlate` |
//! | convert sample profiles | [`data::sample`] | `sample_to_another_encoding` |
//! | see who allocates | `analysis::heap` | `heap_contexts` |
//! | know whether a profile fits a build | `analysis::matching` | `stale_for_this_binary` |
//! | know what a file is and what is wrong with it | `analysis::doctor` | |
//! | run `llvm-profdata` inside your process | `llvm::profdata` | |
//!
//! # Opening
//! [`open`] finds out by content what a file is. Readers borrow the bytes; nothing is read twice.
//!
//! ```
//! use profkit::data::instr::{InstrSource, Record};
//! use profkit::{Profile, ReadOptions, open};
//!
//! let file = b":ir\nmain\n1234\n2\n90\n10\n";
//! let Profile::InstrText(mut reader) = open(file, &ReadOptions::new())? else {
//!     panic!("this is an instrumentation profile as text");
//! };
//! let mut record = Record::default();
//! while reader.read_record(&mut record)? {
//!     println!("{}: {:?}", String::from_utf8_lossy(&record.name), record.counts);
//! }
//! # Ok::<(), profkit::Error>(())
//! ```
//!
//! No reader panics, whatever the bytes, and none allocates by a count that the file claims. An [`Error`] says where it
//! is in the file, what was found and what was expected; code decides by its kind ([`ErrorKind`]) and structure
//! ([`Structure`]), never by its words.
//!
//! # Merging
//! Inputs are slices in memory or files. A damaged input does not void a merge: what is sound is kept, and the report
//! says what was not, with a reason that code can match.
//!
//! ```
//! # #[cfg(not(feature = "merge"))] fn main() {}
//! # #[cfg(feature = "merge")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::merge::{MergeOptions, Reason, merge_instr};
//!
//! let inputs = [
//!     ("good", b":ir\nmain\n1234\n2\n90\n10\n".as_slice()),
//!     ("cut", b":ir\nmain\n1234\n2\n90\n".as_slice()),
//! ];
//! let merged = merge_instr(&inputs, &MergeOptions::new())?;
//! assert_eq!(merged.report.totals.files_kept, 1);
//! assert_eq!(merged.report.events[0].reason, Reason::Truncated);
//! # Ok(())
//! # }
//! ```
//!
//! # Writing
//! A writer takes a model, options and a sink, which can be a `Vec<u8>`. What the format cannot represent comes back as
//! losses, never silently. `merge::files::Output` is a file that appears whole or not at all.
//!
//! ```
//! # #[cfg(not(feature = "merge"))] fn main() {}
//! # #[cfg(feature = "merge")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use profkit::data::instr::indexed::{IndexedWriteOptions, write};
//! use profkit::data::instr::releases::Release;
//! use profkit::merge::{MergeOptions, merge_instr};
//!
//! let inputs = [b":ir\nmain\n1234\n2\n90\n10\n".as_slice()];
//! let merged = merge_instr(&inputs, &MergeOptions::new())?;
//! let mut bytes = Vec::new();
//! let options = IndexedWriteOptions::for_llvm(Release::new(16));
//! let losses = write(&merged.profiles[0].profile, &options, &mut bytes)?;
//! assert!(losses.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Asking
//! Modules of `analysis` take profiles or binaries and return values; they print nothing.
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
//! All but `debuginfod` are on by default. `instr`, `sample`, `memprof` and `mip` are the families of profiles that can
//! be read and written; a program that only reads one of them needs that feature alone. `merge`, `object`, `analysis`,
//! `llvm` and `instrument` bring the crates of the same names (`instrument` is [`mip`]), and with them all
//! families.
#![forbid(unsafe_code)]

#[cfg(feature = "analysis")]
pub use profkit_analysis as analysis;
pub use profkit_data as data;
#[cfg(feature = "llvm")]
pub use profkit_llvm as llvm;
#[cfg(feature = "merge")]
pub use profkit_merge as merge;
#[cfg(feature = "instrument")]
pub use profkit_mip as mip;
#[cfg(feature = "object")]
pub use profkit_object as object;

pub use profkit_data::{Error, ErrorKind, Profile, ReadOptions, Result, Structure, open};
