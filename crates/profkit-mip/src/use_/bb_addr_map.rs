//! Reads the section `.llvm_bb_addr_map`. For each function it lists the machine basic blocks with their addresses and
//! with the ids that are used in `-fbasic-block-sections=list=`.
//!
//! clang writes the section with `-fbasic-block-address-map` (LLVM 19 and later) or `-fbasic-block-sections=labels` (15
//! to 19). In assembly it consists of differences of labels, so it stays correct when code is inserted.
//!
//! | version | LLVM | changes |
//! |---|---|---|
//! | 1 | 15, 16 | a function has: version, features, address, number of blocks. A block has: offset from the end of the block before it, size, flags. The id of a block is its index in the function |
//! | 2 | 17 to 19 | each block begins with its id |
//! | 3 | 20, 21 | if feature bit 5 is set, call sites follow the offset |
//! | 4, 5 | 22 | the feature field has two bytes in version 5 |
//!
//! Sources: `llvm/docs/Extensions.rst`, `BBAddrMap.h`; compared with the assembly of clang 15, 16, 19 and 22.
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::{Error, ErrorKind, Result, Structure};

/// The name of the section with the block address map.
pub const SECTION: &str = ".llvm_bb_addr_map";

/// The versions of `.llvm_bb_addr_map` that can be read.
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
const KNOWN: u16 = (1 << 6) - 1;

/// A machine basic block of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BasicBlock {
    /// The id of the block, as it is used in lists of basic block sections.
    pub id: u32,
    /// The address of the block's first byte.
    pub address: u64,
    /// The size of the block in bytes.
    pub size: u64,
}

/// A function with its machine basic blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionBlocks {
    /// The address of the function.
    pub address: u64,
    /// The blocks of the function, in the order of their addresses.
    pub blocks: Vec<BasicBlock>,
}

/// Reads the section of a linked file whose addresses have `address_size` bytes. The section may contain zeros in place
/// of functions that the linker removed.
///
/// # Errors
/// The first fault. Reading cannot continue after it, because entries do not contain their length.
pub fn read(section: &[u8], endian: Endian, address_size: usize) -> Result<Vec<FunctionBlocks>> {
    let mut cursor = Cursor::new(section, 0, endian);
    let mut functions = Vec::new();
    while !cursor.is_empty() {
        let number = functions.len();
        let function = read_function(&mut cursor, address_size);
        functions.push(function.map_err(|error| {
            error
                .within(Structure::FunctionNumber(number as u64))
                .within(Structure::NamedSection(SECTION.into()))
        })?);
    }
    Ok(functions)
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
    // An entry without ranges has no address either.
    if ranges == 0 {
        return Err(
            Error::new(ErrorKind::Malformed, "the list of block ranges is empty")
                .at(at)
                .found(0)
                .expected("at least 1"),
        );
    }
    let mut function = FunctionBlocks::default();
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
                    // The offset of a block begins at the end of the block before it.
                    address = address.wrapping_add(cursor.uleb128()?);
                }
            }
            address = address.wrapping_add(cursor.uleb128()?);
            cursor.uleb128()?;
            let id = u32::try_from(id).map_err(|_| {
                Error::new(ErrorKind::Malformed, "the block id is too large")
                    .at(at)
                    .found(id)
                    .expected("32 bits")
            })?;
            function.blocks.push(BasicBlock {
                id,
                address: start,
                size: address.wrapping_sub(start),
            });
        }
    }
    // The fields that profile-guided builds add are skipped.
    if has(FUNCTION_COUNT) {
        cursor.uleb128()?;
    }
    if has(BLOCK_FREQUENCIES | BRANCH_PROBABILITIES) {
        for _ in 0..function.blocks.len() {
            if has(BLOCK_FREQUENCIES) {
                cursor.uleb128()?;
            }
            if has(BRANCH_PROBABILITIES) {
                for _ in 0..cursor.uleb128()? {
                    cursor.uleb128()?;
                    cursor.uleb128()?;
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
