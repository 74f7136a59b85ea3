//! The indexed instrumentation profile (.profdata), which `llvm-profdata merge` writes and compilers read. It is always
//! little-endian. [docs/formats/indexed.md] has the byte tables.
//!
//! | version | LLVM | change |
//! |---|---|---|
//! | 1 | 3.5 | the first version; a name has one function hash and its counters |
//! | 2 | 3.6, 3.7 | each record states its number of counters; a name can have several function hashes |
//! | 3 | 3.8 | value data |
//! | 4 | 3.9 to 5 | summary |
//! | 5, 6, 7 | 6 to 10, 11, 12 to 14 | same layout; function hashes of front-end profiles are computed differently |
//! | 8 | 15 | MemProf section |
//! | 9 | 16 | build ids |
//! | 10 | 17 | temporal traces |
//! | 11 | 18 | MC/DC bitmaps |
//! | 12 | 19 to 21 | vtable names and vtable value sites |
//! | 13 | 22 | same layout; function hashes of front-end profiles are computed differently |
//! | 14 | 23 | uniformity bits of GPU functions in the records; packed bitmap bytes |
//!
//! Reading:
//!
//! ```
//! use profkit_data::instr::indexed::{IndexedProfile, IndexedWriteOptions, write};
//! use profkit_data::releases::Release;
//! use profkit_data::instr::{InstrProfile, InstrSource, Record};
//!
//! let mut file = Vec::new();
//! write(&InstrProfile::default(), &IndexedWriteOptions::for_llvm(Release::new(22)), &mut file)?;
//!
//! let profile = IndexedProfile::parse(&file)?;
//! assert_eq!(profile.header().version(), 13);
//! let mut reader = profile.records();
//! let mut record = Record::default();
//! while reader.read_record(&mut record)? {
//!     println!("{} counters", record.counts.len());
//! }
//! assert!(profile.lookup(b"main")?.is_none());
//! # Ok::<(), profkit_data::Error>(())
//! ```
//!
//! [docs/formats/indexed.md]: https://github.com/profkit/profkit/blob/main/docs/formats/indexed.md
mod encoder;
mod frame;
mod header;
mod in_place;
mod reader;
mod record;
mod salvage;
mod sections;
#[cfg(test)]
mod tests;
mod writer;

pub use crate::memprof_section::{check_memprof, relocate as move_memprof};
pub use encoder::{FunctionEncoder, Summaries};
pub use frame::IndexedFrame;
pub use header::IndexedHeader;
pub use in_place::{InPlace, InPlaceLookup, Release as ReleaseBytes};
pub use reader::{IndexedProfile, IndexedReadOptions, IndexedReader};
pub use record::NameRecords;
pub(super) use record::{has_vtable_sites, known_values};
pub(super) use writer::known_flags;
pub use writer::{IndexedPlan, IndexedWriteOptions, write};
