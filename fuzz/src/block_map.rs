//! Fuzzes the reader of `.llvm_bb_addr_map`, the section with the ids of machine basic blocks.
use crate::source::located;
use profkit_data::bytes::Endian;
use profkit_object::bb_addr_map;

/// Reads any bytes as the section, with each address width and byte order. An error must state its position, and a
/// block must take at least three bytes.
///
/// # Panics
/// If one of these rules does not hold.
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
