//! Reads the section `.llvm_bb_addr_map`. For each function it lists the machine basic blocks with their addresses and
//! with the ids that are used in `-fbasic-block-sections=list=`.
//!
//! clang writes the section with `-fbasic-block-address-map` (LLVM 19 and later) or `-fbasic-block-sections=labels` (13
//! to 19). In assembly, the offsets and sizes in the section are differences of labels, so they stay correct when code
//! is inserted.
//!
//! | version | LLVM | changes |
//! |---|---|---|
//! | 0 | 13, 14 | a section of another type, [`TYPE_0`]. A function has: address, number of blocks. A block has: offset from the function's start, size, flags. The id of a block is its index in the function |
//! | 1 | 15, 16 | a function begins with version and features. The offset of a block is counted from the end of the block before it |
//! | 2 | 17 to 19 | each block begins with its id |
//! | 3 | 20, 21 | if feature bit 5 is set, call sites follow the offset |
//! | 4, 5 | 22 | hashes of blocks (bit 6), and the block frequencies from the list that was given to the compiler (bit 7); the feature field has two bytes in version 5 |
//!
//! Sources: `llvm/docs/Extensions.rst`, `BBAddrMap.h`; compared with the assembly of clang 13, 14, 15, 16, 19 and 22.
use crate::binary::Image;
use crate::bounds::SectionBytes;
use object::{Object as _, ObjectSection as _};
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::{Error, ErrorKind, Result, Structure};

/// The name of the section with the block address map.
pub const SECTION: &str = ".llvm_bb_addr_map";

/// The type of the section in version 0 (`SHT_LLVM_BB_ADDR_MAP_V0`). Later versions have another type.
pub const TYPE_0: u32 = 0x6fff_4c08;

/// The versions in entries of `.llvm_bb_addr_map` that can be read. Version 0 has no version in its entries.
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=5;
/// The first version in which blocks have ids.
const IDS: u8 = 2;
/// The first version in which the feature field has two bytes.
const WIDE_FEATURES: u8 = 5;

// The bits of the feature field (LLVM `BBAddrMap::Features`).
const FUNCTION_COUNT: u16 = 1;
const BLOCK_FREQUENCIES: u16 = 1 << 1;
const BRANCH_PROBABILITIES: u16 = 1 << 2;
const SEVERAL_RANGES: u16 = 1 << 3;
const NO_BLOCKS: u16 = 1 << 4;
const CALL_SITES: u16 = 1 << 5;
const HASHES: u16 = 1 << 6;
const LISTED_FREQUENCIES: u16 = 1 << 7;
const KNOWN: u16 = (1 << 8) - 1;

/// The flags of a block, which describe its instructions (LLVM `BBAddrMap::BBEntry::Metadata`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockFlags(pub u32);

impl BlockFlags {
    /// Whether the block returns from the function.
    pub fn returns(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the block ends with a tail call: a call that does not return to this function.
    pub fn has_tail_call(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// Whether the block is a landing pad, at which the handling of an exception begins.
    pub fn is_landing_pad(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// Whether the code of the block can continue into the next block.
    pub fn falls_through(self) -> bool {
        self.0 & 1 << 3 != 0
    }
}

/// A machine basic block of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BasicBlock {
    /// The id of the block, as it is used in lists of basic block sections.
    pub id: u32,
    /// The address of the block's first byte.
    pub address: u64,
    /// The size of the block in bytes.
    pub size: u64,
    /// The flags that describe the instructions of the block.
    pub flags: BlockFlags,
}

/// A function with its machine basic blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionBlocks {
    /// The address of the function.
    pub address: u64,
    /// The version of the function's entry.
    pub version: u8,
    /// The blocks of the function, in the order of the code. If the code of the function has several address ranges
    /// (basic block sections), the blocks of the first range come first.
    pub blocks: Vec<BasicBlock>,
}

/// Reads the block maps of a program. `None` if the program has no block map.
///
/// # Errors
/// If a section cannot be read, or has a fault.
pub fn of_image(image: &Image<'_>) -> Result<Option<Vec<FunctionBlocks>>> {
    let endian = if image.is_little_endian() {
        Endian::Little
    } else {
        Endian::Big
    };
    let mut found = None;
    let mut bytes = SectionBytes::of(image);
    for section in image.sections() {
        if section.name_bytes().ok() != Some(SECTION.as_bytes()) {
            continue;
        }
        let kind = match section.flags() {
            object::SectionFlags::Elf { sh_type, .. } => sh_type.0,
            _ => 0,
        };
        let unversioned = kind == TYPE_0;
        let within = |error: Error| error.within(Structure::NamedSection(SECTION.into()));
        let data = bytes.read(&section).map_err(within)?;
        let width = if image.is_64() { 8 } else { 4 };
        let functions = if unversioned {
            read_version_0(&data, endian, width)
        } else {
            read(&data, endian, width)
        };
        found.get_or_insert_with(Vec::new).extend(functions?);
    }
    Ok(found)
}

/// Reads the section `.llvm_bb_addr_map` of a linked file. `address_size` is the size of an address in bytes. The
/// section may contain zeros in place of functions that the linker removed.
///
/// # Errors
/// The first fault in the section. Reading cannot continue after a fault, because entries do not contain their length.
pub fn read(section: &[u8], endian: Endian, address_size: usize) -> Result<Vec<FunctionBlocks>> {
    read_all(section, endian, |cursor| {
        read_function(cursor, address_size)
    })
}

/// Reads a section of version 0, which [`TYPE_0`] marks.
///
/// # Errors
/// The same as [`read`].
pub fn read_version_0(
    section: &[u8],
    endian: Endian,
    address_size: usize,
) -> Result<Vec<FunctionBlocks>> {
    read_all(section, endian, |cursor| {
        let mut function = FunctionBlocks {
            address: read_address(cursor, address_size)?,
            ..FunctionBlocks::default()
        };
        for number in 0..cursor.uleb128()? {
            let at = cursor.offset();
            let address = function.address.wrapping_add(cursor.uleb128()?);
            function.blocks.push(BasicBlock {
                id: block_id(number, at)?,
                address,
                size: cursor.uleb128()?,
                flags: read_flags(cursor)?,
            });
        }
        Ok(function)
    })
}

fn read_all(
    section: &[u8],
    endian: Endian,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<FunctionBlocks>,
) -> Result<Vec<FunctionBlocks>> {
    let mut cursor = Cursor::new(section, 0, endian);
    let mut functions = Vec::new();
    while !cursor.is_empty() {
        let number = functions.len();
        functions.push(read(&mut cursor).map_err(|error| {
            error
                .within(Structure::FunctionNumber(number as u64))
                .within(Structure::NamedSection(SECTION.into()))
        })?);
    }
    Ok(functions)
}

fn block_id(id: u64, at: u64) -> Result<u32> {
    u32::try_from(id).map_err(|_| {
        Error::new(ErrorKind::Malformed, "the block id is too large")
            .at(at)
            .found(id)
            .expected("32 bits")
    })
}

/// Reads the flags of a block. Newer LLVM releases may write bits above the lowest 32; these bits are ignored.
fn read_flags(cursor: &mut Cursor<'_>) -> Result<BlockFlags> {
    let flags = cursor.uleb128()? & u64::from(u32::MAX);
    Ok(BlockFlags(u32::try_from(flags).unwrap_or_default()))
}

fn read_function(cursor: &mut Cursor<'_>, address_size: usize) -> Result<FunctionBlocks> {
    let at = cursor.offset();
    let version = cursor.u8()?;
    if !VERSIONS.contains(&version) {
        return Err(Error::new(ErrorKind::UnsupportedVersion, "unknown version")
            .at(at)
            .found(version)
            .expected("1 to 5 (LLVM 15 to 22)")
            .with_hint("compile with clang 15 to 22"));
    }
    let at = cursor.offset();
    let features = if version >= WIDE_FEATURES {
        cursor.u16()?
    } else {
        cursor.u8()?.into()
    };
    if features & !KNOWN != 0 {
        return Err(
            Error::new(ErrorKind::Unsupported, "the features are unknown")
                .at(at)
                .found(format_args!("{features:#x}"))
                .expected(format_args!("bits of {KNOWN:#x}")),
        );
    }
    let has = |feature: u16| features & feature != 0;
    let at = cursor.offset();
    let ranges = if has(SEVERAL_RANGES) {
        cursor.uleb128()?
    } else {
        1
    };
    // An entry without ranges is rejected, because it would have no address.
    if ranges == 0 {
        return Err(
            Error::new(ErrorKind::Malformed, "the list of block ranges is empty")
                .at(at)
                .found(0)
                .expected("at least 1"),
        );
    }
    let mut function = FunctionBlocks {
        version,
        ..FunctionBlocks::default()
    };
    for range in 0..ranges {
        let base = read_address(cursor, address_size)?;
        if range == 0 {
            function.address = base;
        }
        let count = if has(NO_BLOCKS) { 0 } else { cursor.uleb128()? };
        let mut address = base;
        for number in 0..count {
            let at = cursor.offset();
            let id = if version >= IDS {
                cursor.uleb128()?
            } else {
                number
            };
            address = address.wrapping_add(cursor.uleb128()?);
            let start = address;
            if has(CALL_SITES) {
                for _ in 0..cursor.uleb128()? {
                    // The section gives the offset of a call site from the call site before it, and the size of the
                    // block from the last call site.
                    address = address.wrapping_add(cursor.uleb128()?);
                }
            }
            address = address.wrapping_add(cursor.uleb128()?);
            let size = address.wrapping_sub(start);
            let flags = read_flags(cursor)?;
            if has(HASHES) {
                cursor.u64()?;
            }
            function.blocks.push(BasicBlock {
                id: block_id(id, at)?,
                address: start,
                size,
                flags,
            });
        }
    }
    // The fields that profile-guided builds add are skipped.
    if has(FUNCTION_COUNT) {
        cursor.uleb128()?;
    }
    if has(BLOCK_FREQUENCIES | BRANCH_PROBABILITIES) {
        let listed = has(LISTED_FREQUENCIES);
        for _ in 0..function.blocks.len() {
            if has(BLOCK_FREQUENCIES) {
                cursor.uleb128()?;
            }
            if listed {
                cursor.uleb128()?;
            }
            if has(BRANCH_PROBABILITIES) {
                for _ in 0..cursor.uleb128()? {
                    cursor.uleb128()?;
                    cursor.uleb128()?;
                    if listed {
                        cursor.uleb128()?;
                    }
                }
            }
        }
    }
    Ok(function)
}

fn read_address(cursor: &mut Cursor<'_>, size: usize) -> Result<u64> {
    if size == 4 {
        cursor.u32().map(u64::from)
    } else {
        cursor.u64()
    }
}

#[cfg(test)]
mod tests;
