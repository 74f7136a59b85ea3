//! The MemProf section of indexed profiles.
//!
//! The section is between the function table and the build ids. If bit 62 of the profile's version word is set, the
//! file has such a section. All offsets in the section count from the start of the file. The first word is the version
//! number, except in version 0, where it is an offset of at least 24.
//!
//! | version | written by LLVM | header words, in this order | parts after the header, in this order |
//! |---|---|---|---|
//! | 0 | 15 to 18; 19 by default | offsets of record table, frame payload, frame table | schema, records, frames |
//! | 1 | 19 | the number 1; the words of version 0 | as in version 0 |
//! | 2 | 19 to 22 | the number 2; the words of version 0; offsets of call stack payload, call stack table | schema, records, frames, call stacks |
//! | 3 | 19; 20 to 22 by default | the number 3; offsets of call stacks, record payload, record table | schema, frames, call stacks, records |
//! | 4 | 21, 22 | the number 4; the offsets of version 3; offset of data accesses; then the summary | schema, frames, call stacks, records, data accesses |
//!
//! Records are in a [hash table](crate::hash_table) by function. Versions 0 to 2 also have a hash table of frames by
//! id, and version 2 also has a hash table of call stacks by id. Versions 3 and 4 have an array of frames and a radix
//! tree of call stacks.
//!
//! | version | a record |
//! |---|---|
//! | 0, 1 | the number of allocation sites, and for each site: the number of its frames, their ids, a block; the number of call sites, and for each site: the number of its frames, their ids |
//! | 2 | the number of allocation sites, and for each site: the id of its call stack, a block; the number of call sites, and for each site: the id of its call stack |
//! | 3 | as in version 2, but with 32-bit indexes of call stacks in the radix tree |
//! | 4 | as in version 3, but after each call site stand the number of the functions that it calls, and their hashes |
//!
//! Sources of these facts: `MemProf.h`, `MemProf.cpp`, `InstrProfWriter.cpp` of LLVM 19, `IndexedMemProfData.cpp` of LLVM
//! 22, and files that these two releases write.
mod radix;
mod reader;
mod writer;

pub use reader::{IndexedMemProf, section_version};
pub use writer::{IndexedMemProfOptions, encode};

use crate::MemProfSection;
use crate::Result;
use crate::memprof::MemProfile;

/// The offset that is assumed for a section that is not in a file. The offset is not 0, because 0 means "none" in the
/// section's tables.
const ALONE: u64 = 8;

/// Returns the options with which a MemProf section that was copied out of its file was written: its version, its
/// fields, and whether a portable section follows.
///
/// # Errors
/// The errors of [`IndexedMemProf::parse`].
pub fn options_of(section: &MemProfSection) -> Result<IndexedMemProfOptions> {
    let bytes = alone(section)?;
    let parsed = IndexedMemProf::parse(&bytes, ALONE)?;
    let schema = parsed.schema().clone();
    Ok(IndexedMemProfOptions::for_version(parsed.version(), false)
        .schema(schema)
        .portable(section.has_portable()))
}

/// Returns the bytes of a file in which the section stands at the offset [`ALONE`].
fn alone(section: &MemProfSection) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 8];
    bytes.extend(crate::memprof_section::relocate(section, ALONE)?);
    Ok(bytes)
}

/// Reads a MemProf section that was copied out of its file. Returns the profile and the version of the section.
///
/// # Errors
/// The errors of [`IndexedMemProf::parse`] and [`IndexedMemProf::to_profile`]. Their offsets count as if the section
/// began at offset 8 of a file.
pub fn read_section(section: &MemProfSection) -> Result<(MemProfile, u32)> {
    let bytes = alone(section)?;
    let parsed = IndexedMemProf::parse(&bytes, ALONE)?;
    Ok((parsed.to_profile()?, parsed.version()))
}
