//! An entry of a MIP map. The type is the same for all versions of the format.
use super::model::Modes;

/// An entry of a map: one function of the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEntry<'data> {
    /// The offset of this entry in the map.
    pub offset: u64,
    /// The mode flags of the function, which decide the layout of its record.
    pub modes: Modes,
    /// The offset of the function's record in the record section, in bytes. A negative offset is stored in two's
    /// complement. The offset is not checked. In version 8, the record section begins with the header of MIP version 8.
    pub record_offset: u64,
    /// The address of the function. In version 8, this is the distance from the record section to the function; a
    /// negative distance is stored in two's complement.
    pub address: u64,
    /// The size of the function in bytes.
    pub size: u32,
    /// The control-flow signature of the function: a hash of its blocks and jumps.
    pub signature: u32,
    /// For each block except the entry block: its distance from the start of the function in bytes, as a little-endian
    /// number.
    pub blocks: &'data [[u8; 4]],
    /// The numbers that say how blocks without a byte in the record are inferred, as little-endian numbers in the order of
    /// `Inference::from_numbers`. Empty if all blocks have a byte.
    pub inference: &'data [[u8; 4]],
    /// The symbol name of the function.
    pub name: &'data [u8],
}
