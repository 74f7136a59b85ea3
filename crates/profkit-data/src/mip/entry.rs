//! An entry of a map, whatever the version.
use super::model::Modes;

/// An entry of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEntry<'data> {
    /// Where the entry is in the map.
    pub offset: u64,
    /// What the record holds.
    pub modes: Modes,
    /// Where the record is in the record section, in bytes from its start, two's complement: nothing has checked that
    /// it is there. Of version 8 that includes the section's header.
    pub record_offset: u64,
    /// Address of the function; of version 8 relative to the record section, two's complement.
    pub address: u64,
    /// Size of the function in bytes.
    pub size: u32,
    /// Control-flow signature.
    pub signature: u32,
    /// Offsets of the non-entry blocks from the function's start, little-endian.
    pub blocks: &'data [[u8; 4]],
    /// Symbol name.
    pub name: &'data [u8],
}
