//! Sample profiles of the binary family (LLVM's `SampleProf.h`): magics, versions, sections and their flags.

/// "SPROF42" in the upper bytes; the low byte says the encoding. Stored as ULEB128 (`SPMagic`).
pub const MAGIC: u64 = 0x5350_524f_4634_3200;
/// The low byte of the magic of the binary encoding (`SPF_Binary`).
pub const BINARY: u8 = 0xff;
/// The low byte of the magic of the compact binary encoding (`SPF_Compact_Binary`, LLVM 7 to 16).
pub const COMPACT_BINARY: u8 = 0x02;
/// The low byte of the magic of the extensible binary encoding (`SPF_Ext_Binary`, since LLVM 10).
pub const EXT_BINARY: u8 = 0x04;

/// The version since LLVM 3.9 (`SPVersion`): a summary stands before the name table.
pub const VERSION: u64 = 103;
/// LLVM 3.6 and 3.7: names in place, no inlined functions, no name table.
pub const VERSION_NAMES_IN_PLACE: u64 = 100;
/// LLVM 3.8: as 103 without the summary.
pub const VERSION_WITHOUT_SUMMARY: u64 = 102;
/// The newest version whose extensible binary files have the known container.
pub const VERSION_NEWEST: u64 = 105;

/// Size of one entry of the section table: type, flags, offset, size, u64 each.
pub const SECTION_ENTRY_SIZE: usize = 32;

/// Section types (`SecType`).
pub mod section {
    /// The summary.
    pub const SUMMARY: u64 = 1;
    /// Names.
    pub const NAMES: u64 = 2;
    /// Names of all functions of the program.
    pub const SYMBOLS: u64 = 3;
    /// Where each function's samples are.
    pub const FUNCTION_OFFSETS: u64 = 4;
    /// Checksums and attributes.
    pub const METADATA: u64 = 5;
    /// Calling contexts (since LLVM 14).
    pub const CONTEXTS: u64 = 6;
    /// The samples (`SecLBRProfile`).
    pub const SAMPLES: u64 = 32;
}

/// Flags of sections: the low half has one meaning for all, the high half one for each type.
pub mod flag {
    /// Any section: zlib (`SecFlagCompress`).
    pub const COMPRESSED: u64 = 1;
    /// Any section: of functions without inlined ones (`SecFlagFlat`).
    pub const FLAT: u64 = 1 << 1;
    /// Names: MD5 hashes.
    pub const MD5_NAMES: u64 = 1 << 32;
    /// Names: MD5 hashes of eight bytes each (since LLVM 12).
    pub const FIXED_MD5_NAMES: u64 = 1 << 33;
    /// Names: some contain `.__uniq.`.
    pub const UNIQUE_SUFFIX: u64 = 1 << 34;
    /// Names: hashes in Eytzinger order (LLVM after 22).
    pub const EYTZINGER_NAMES: u64 = 1 << 35;
    /// Summary: the profile is of code shared with other programs.
    pub const PARTIAL: u64 = 1 << 32;
    /// Summary: functions have calling contexts.
    pub const CONTEXT_SENSITIVE: u64 = 1 << 33;
    /// Summary: discriminators of FS-AFDO.
    pub const FS_DISCRIMINATORS: u64 = 1 << 34;
    /// Summary: inlining was decided by `llvm-profgen`.
    pub const PRE_INLINED: u64 = 1 << 36;
    /// Summary: samples hold vtables (since LLVM 22).
    pub const VTABLES: u64 = 1 << 37;
    /// Metadata: has checksums.
    pub const PROBE_BASED: u64 = 1 << 32;
    /// Metadata: has attributes.
    pub const ATTRIBUTES: u64 = 1 << 33;
    /// Function offsets: in the order of contexts.
    pub const ORDERED: u64 = 1 << 32;
    /// Function offsets: an array beside an Eytzinger name table (LLVM after 22).
    pub const EYTZINGER_OFFSETS: u64 = 1 << 33;
    /// Symbol list: MD5 hashes (LLVM after 22).
    pub const MD5_SYMBOLS: u64 = 1 << 32;
}

/// Attributes of a function's context (`ContextAttributeMask`).
pub mod attribute {
    /// The function was inlined in the build that was sampled.
    pub const WAS_INLINED: u32 = 1;
    /// The function should be inlined.
    pub const SHOULD_BE_INLINED: u32 = 2;
    /// The samples are also in the function's profile without context.
    pub const DUPLICATED_INTO_BASE: u32 = 4;
}

/// Bits of a discriminator that FS-AFDO leaves to the compiler's front end and optimizer (`BaseDiscriminatorBitWidth`).
pub const BASE_DISCRIMINATOR_BITS: u32 = 8;
/// Bits of a discriminator for each pass of FS-AFDO, above the base bits (`FSDiscriminatorBitWidth`).
pub const FS_DISCRIMINATOR_BITS: u32 = 6;

/// What a name contains that clang made unique (`-funique-internal-linkage-names`).
pub const UNIQUE_SUFFIX: &[u8] = b".__uniq.";
