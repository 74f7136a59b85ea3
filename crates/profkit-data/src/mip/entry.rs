//! The entry of a map, in one form for all versions.
use super::model::Modes;

/// An entry of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEntry<'data> {
    /// The offset of the entry in the map.
    pub offset: u64,
    /// The modes of the function, which decide the layout of its record.
    pub modes: Modes,
    /// The offset of the record in the record section, in bytes, as two's complement. It is not checked. In version 8,
    /// the section begins with its header.
    pub record_offset: u64,
    /// The address of the function. In version 8, it is relative to the record section, as two's complement.
    pub address: u64,
    /// The size of the function in bytes.
    pub size: u32,
    /// The control-flow signature of the function.
    pub signature: u32,
    /// The offsets of the non-entry blocks from the function's start, as little-endian bytes.
    pub blocks: &'data [[u8; 4]],
    /// The symbol name of the function.
    pub name: &'data [u8],
}
