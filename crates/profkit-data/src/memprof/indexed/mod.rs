//! The MemProf section of indexed profiles.
//!
//! It lies between the function table and the build ids; bit 62 of the profile's version word says that it is there.
//! All offsets in it are absolute in the file. Version 0 begins with an offset, which is at least 24; the others with
//! their number.
//!
//! | version | written by LLVM | header words | then |
//! |---|---|---|---|
//! | 0 | 15 to 18, 19 by default | record table, frame payload, frame table | schema, records, frames |
//! | 1 | 19 | 1, the same | the same |
//! | 2 | 19 to 22 | 2, the same, call stack payload, call stack table | schema, records, frames, call stacks |
//! | 3 | 19 to 22, 20 to 22 by default | 3, call stacks, record payload, record table | schema, frames, call stacks, records |
//! | 4 | 21, 22 | 4, the same, data access; summary | the same, data access |
//!
//! Records are in a [hash table](crate::hash_table) by function. Up to version 2 so are frames, by id, and in version 2
//! call stacks; versions 3 and 4 have an array of frames and a radix tree of call stacks.
//!
//! | version | a record |
//! |---|---|
//! | 0, 1 | allocation sites: count, each the count and ids of frames, and a block; call sites: count, each the count and ids of frames |
//! | 2 | allocation sites: count, each the id of a call stack, and a block; call sites: count, each the id of a call stack |
//! | 3 | the same with 32-bit numbers of call stacks |
//! | 4 | the same; a call site is followed by the count and hashes of the functions that it calls |
//!
//! Facts: `MemProf.h`, `MemProf.cpp`, `InstrProfWriter.cpp` of LLVM 19 and `IndexedMemProfData.cpp` of LLVM 22, and files
//! that both write.
mod radix;
mod reader;
mod writer;

pub use reader::{IndexedMemProf, section_version};
pub use writer::{IndexedMemProfOptions, encode};

use crate::MemProfSection;
use crate::Result;
use crate::memprof::MemProfile;

/// Where a section that stands alone begins: offset 0 means "none" in tables.
const ALONE: u64 = 8;

/// Reads a section that was cut out of its file, and returns the version that it has there too.
///
/// # Errors
/// As [`IndexedMemProf::parse`] and [`IndexedMemProf::to_profile`]. Offsets are those of the section, plus 8.
pub fn read_section(section: &MemProfSection) -> Result<(MemProfile, u32)> {
    let mut bytes = vec![0; 8];
    bytes.extend(crate::memprof_section::relocate(section, ALONE)?);
    let parsed = IndexedMemProf::parse(&bytes, ALONE)?;
    Ok((parsed.to_profile()?, parsed.version()))
}
