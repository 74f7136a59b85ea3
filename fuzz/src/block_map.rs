//! `.llvm_bb_addr_map`, the section with the ids of machine basic blocks.
use crate::source::located;
use profkit_data::bytes::Endian;
use profkit_object::bb_addr_map;

/// Reads any bytes as the section, for both widths and byte orders. Errors say where; a block takes three bytes at
/// least.
///
/// # Panics
/// If that does not hold.
pub(crate) fn block_map(data: &[u8]) {
    for endian in [Endian::Little, Endian::Big] {
        for width in [4, 8] {
            match bb_addr_map::read(data, endian, width) {
                Ok(functions) => {
                    let blocks: usize = functions.iter().map(|one| one.blocks.len()).sum();
                    assert!(functions.len() * (2 + width) + blocks * 3 <= data.len());
                }
                Err(error) => located(&error),
            }
            match bb_addr_map::read_version_0(data, endian, width) {
                Ok(functions) => {
                    let blocks: usize = functions.iter().map(|one| one.blocks.len()).sum();
                    assert!(functions.len() * (1 + width) + blocks * 3 <= data.len());
                }
                Err(error) => located(&error),
            }
        }
    }
}
