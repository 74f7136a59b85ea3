//! Heap profiles: which inputs are some, raw dumps symbolised against their binaries, and the sum of all.
pub mod diff;
mod flame;
mod heap;
mod inputs;
pub mod show;

pub use inputs::{Loaded, is_memprof_input, load, module_name};

use profkit_data::Result;
use profkit_data::instr::MemProfSection;
use profkit_data::memprof::MemProfile;
use profkit_data::memprof::indexed::IndexedMemProf;

/// Reads a section that was cut out of its file, and says which version it had.
///
/// # Errors
/// As [`IndexedMemProf::parse`] and [`IndexedMemProf::to_profile`]. Offsets are those of the section.
pub fn read_section(section: &MemProfSection) -> Result<(MemProfile, u32)> {
    let bytes = relocated(section)?;
    let parsed = IndexedMemProf::parse(&bytes, SECTION_BASE)?;
    Ok((parsed.to_profile()?, parsed.version()))
}

/// Where a section that stands alone begins: offset 0 means "none" in tables.
const SECTION_BASE: u64 = 8;

fn relocated(section: &MemProfSection) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 8];
    bytes.extend(profkit_data::instr::indexed::move_memprof(
        section,
        SECTION_BASE,
    )?);
    Ok(bytes)
}
