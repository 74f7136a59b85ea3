//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Readers and writers for the profiles of LLVM-based compilers.
//!
//! Every format has a folder with a *view* that borrows the file's bytes, a *model* that owns its data, and a *writer*.
//! This crate does not open files, start threads or print. [`open()`] opens a profile of any kind, which it recognises
//! by the content. [`detect`](detect::detect) only returns the kind of a file.
//!
//! # One shape for all formats
//!
//! - A reader is opened with `parse(bytes)`, or with `parse_with(bytes, &options)` if it has options. Sample profiles
//!   are then [read into](sample::SampleFile::read_into) a profile in memory, so that reading several files into one
//!   profile merges them.
//! - A writer is `write(&model, &options, sink)`. It returns how many parts of the model the format cannot hold (`Losses`
//!   of the family); these losses are empty if the format holds the whole model. Writers assert that every size and
//!   offset is the planned one.
//! - Options are made with `new` or `default` and changed with setters. If the caller must choose a version, `new` has
//!   a parameter for it (`GcovOptions`), or a special constructor takes it (`IndexedWriteOptions::for_llvm`).
//! - The output goes to a [`Sink`](bytes::Sink), for example a `Vec<u8>`.
//!
//! # Hostile input
//!
//! Readers do not panic, and they do not allocate memory by a count that a file states. An [`Error`] has the offset in
//! the file, the structure that was being read, what was found and what was expected.
//!
//! # Cargo features
//!
//! Each family of profiles has a feature. All are on by default:
//!
//! - `instr`: instrumentation profiles ([`instr`])
//! - `sample`: sample profiles ([`sample`])
//! - `memprof`: heap profiles ([`memprof`])
//! - `mip`: MIP profiles ([`mip`])
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(
        feature = "instr",
        feature = "sample",
        feature = "memprof",
        feature = "mip"
    )),
    allow(
        dead_code,
        reason = "the modules of the profile kinds share helpers, and each module uses only some of them"
    )
)]

#[macro_use]
mod setters;
#[cfg(any(
    feature = "instr",
    feature = "sample",
    feature = "memprof",
    feature = "mip"
))]
#[macro_use]
mod loss_counts;

pub mod bytes;
mod decimal;
pub mod detect;
mod error;
mod foreign;
#[cfg(any(feature = "instr", feature = "memprof"))]
pub mod hash_table;
pub mod ids;
pub mod index_vec;
#[cfg(feature = "instr")]
pub mod instr;
pub mod limits;
pub mod list;
#[cfg(any(feature = "instr", feature = "memprof"))]
#[doc(hidden)]
pub mod llvm_order;
mod md5_lanes;
#[cfg(feature = "memprof")]
pub mod memprof;
mod memprof_section;
#[cfg(feature = "instr")]
#[doc(hidden)]
pub mod mersenne;
#[cfg(feature = "mip")]
pub mod mip;
pub mod names;
pub mod numbers;
mod open;
mod printable;
mod quote;
pub mod releases;
#[cfg(any(feature = "instr", feature = "sample"))]
pub mod remap;
#[cfg(feature = "sample")]
pub mod sample;
mod screen;
mod share;
#[cfg(feature = "stored")]
pub mod stored;
mod structure;
pub mod summary;
#[cfg(all(feature = "instr", feature = "sample"))]
pub mod supplement;
mod system;
#[cfg(any(feature = "memprof", feature = "mip"))]
pub mod tables;
mod weight;
#[cfg(any(feature = "memprof", feature = "mip"))]
mod yaml;

pub use error::{Error, ErrorKind, Result};
pub use foreign::ForeignFile;
pub use memprof_section::{HeapSection, MemProfSection};
pub use open::{Profile, ReadOptions, open, open_as, sound_family};
pub use printable::{from_printable, path_from_bytes, path_text, printable};
pub use screen::Screen;
pub use share::share;
pub use structure::Structure;
pub use system::system_text;
pub use weight::{Weight, WeightError};
