//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Reads recordings of Linux perf (`perf.data`): the events, the samples with their branch stacks and call chains, and
//! the mappings of processes. With the mappings it finds the binary to which an address of a process belongs.
//!
//! A recording is read in two passes over its bytes. [`Recording::open`] makes the first pass: it reads the header, the
//! events, and the records about the mappings of each process over time. [`Recording::samples`] makes the second pass
//! with several threads. It decodes the samples in any order, because sums of samples do not depend on the order.
//! Memory therefore grows with the number of mappings, and not with the number of samples.
//!
//! The crate reads files, pipes (`perf record -o - > FILE`) and folders (`perf record --threads`), in both byte orders,
//! with compressed records and without. It skips unknown records by their size, and ignores unknown flags. Only the
//! damaged records of a damaged recording are lost; [`Recording::losses`] counts the losses by their reason.
//!
//! The facts are from the kernel's `include/uapi/linux/perf_event.h` and from perf's
//! `tools/perf/Documentation/perf.data-file-format.txt`; docs/formats/perf.md has them.
//!
//! This crate opens no files and reads no symbols.
#![forbid(unsafe_code)]

pub mod collect;
mod events;
mod figures;
mod file;
pub mod limits;
mod losses;
mod process;
mod record;
mod sample;
mod survey;
pub mod text;

pub use events::{Event, Events};
pub use figures::{BinaryFigures, EventFigures, Figures, ProcessFigures};
pub use file::{Attr, Features, Form, sample_type};
pub use losses::Losses;
pub use process::{Binary, BinaryId, Located, Processes, module_name, same_module};
pub use record::{Chunk, Mapping, Record, RecordKind, Records};
pub use sample::{Branch, Branches, CallChain, Mode, Sample};
pub use survey::{Recording, Release};
