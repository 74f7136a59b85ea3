//! Sample profiles in the binary encodings (LLVM's `SampleProf.h`): magics, versions, sections and their flags.

/// The magic: "SPROF42" in the upper bytes; the low byte tells the encoding. It is stored as ULEB128 (`SPMagic`).
pub const MAGIC: u64 = 0x5350_524f_4634_3200;
/// The low byte of the magic of the binary encoding (`SPF_Binary`).
pub const BINARY: u8 = 0xff;
/// The low byte of the magic of the compact binary encoding (`SPF_Compact_Binary`, LLVM 7 to 16).
pub const COMPACT_BINARY: u8 = 0x02;
/// The low byte of the magic of the extensible binary encoding (`SPF_Ext_Binary`, since LLVM 10).
pub const EXT_BINARY: u8 = 0x04;

/// The version of LLVM 3.9 and later (`SPVersion`): a summary stands before the name table.
pub const VERSION: u64 = 103;
/// The version of LLVM 3.6 and 3.7: names stand where they are used, there is no name table, and there are no inlined
/// functions.
pub const VERSION_NAMES_IN_PLACE: u64 = 100;
/// The version of LLVM 3.8: like 103, but without the summary.
pub const VERSION_WITHOUT_SUMMARY: u64 = 102;
/// The newest version whose extensible binary files have the known table of sections.
pub const VERSION_NEWEST: u64 = 105;

/// The size of one entry of the section table: type, flags, offset, size, a u64 each.
pub const SECTION_ENTRY_SIZE: usize = 32;

/// The types of sections (`SecType`).
pub mod section {
    /// The summary.
    pub const SUMMARY: u64 = 1;
    /// The name table.
    pub const NAMES: u64 = 2;
    /// The names of all functions of the program.
    pub const SYMBOLS: u64 = 3;
    /// The offset of each function's samples.
    pub const FUNCTION_OFFSETS: u64 = 4;
    /// The checksums and attributes of functions.
    pub const METADATA: u64 = 5;
    /// The calling contexts (since LLVM 14).
    pub const CONTEXTS: u64 = 6;
    /// The samples (`SecLBRProfile`).
    pub const SAMPLES: u64 = 32;
}

/// The flags of sections. The low half means the same for all types, the high half depends on the type.
pub mod flag {
    /// Any section: compressed with zlib (`SecFlagCompress`).
    pub const COMPRESSED: u64 = 1;
    /// Any section: only functions that have no inlined functions (`SecFlagFlat`).
    pub const FLAT: u64 = 1 << 1;
    /// Name table: the names are MD5 hashes.
    pub const MD5_NAMES: u64 = 1 << 32;
    /// Name table: the names are MD5 hashes of eight bytes each (since LLVM 12).
    pub const FIXED_MD5_NAMES: u64 = 1 << 33;
    /// Name table: some names contain `.__uniq.`.
    pub const UNIQUE_SUFFIX: u64 = 1 << 34;
    /// Name table: the hashes are in Eytzinger order (LLVM after 22).
    pub const EYTZINGER_NAMES: u64 = 1 << 35;
    /// Summary: the profile covers only code that the program shares with other programs.
    pub const PARTIAL: u64 = 1 << 32;
    /// Summary: functions have calling contexts.
    pub const CONTEXT_SENSITIVE: u64 = 1 << 33;
    /// Summary: the samples use the discriminators of FS-AFDO.
    pub const FS_DISCRIMINATORS: u64 = 1 << 34;
    /// Summary: `llvm-profgen` decided what is inlined.
    pub const PRE_INLINED: u64 = 1 << 36;
    /// Summary: the samples contain vtables (since LLVM 22).
    pub const VTABLES: u64 = 1 << 37;
    /// Metadata: checksums are present.
    pub const PROBE_BASED: u64 = 1 << 32;
    /// Metadata: attributes are present.
    pub const ATTRIBUTES: u64 = 1 << 33;
    /// Function offsets: they are in the order of contexts.
    pub const ORDERED: u64 = 1 << 32;
    /// Function offsets: an array parallel to an Eytzinger name table (LLVM after 22).
    pub const EYTZINGER_OFFSETS: u64 = 1 << 33;
    /// Symbol list: the names are MD5 hashes (LLVM after 22).
    pub const MD5_SYMBOLS: u64 = 1 << 32;
}

/// The attributes of a function's context (`ContextAttributeMask`).
pub mod attribute {
    /// The function was inlined in the program that was sampled.
    pub const WAS_INLINED: u32 = 1;
    /// The compiler should inline the function.
    pub const SHOULD_BE_INLINED: u32 = 2;
    /// The samples are also part of the function's profile without context.
    pub const DUPLICATED_INTO_BASE: u32 = 4;
}

/// The number of low bits of a discriminator that belong to the front end and the optimizer and not to FS-AFDO
/// (`BaseDiscriminatorBitWidth`).
pub const BASE_DISCRIMINATOR_BITS: u32 = 8;
/// The number of bits of a discriminator that each pass of FS-AFDO uses, above the low bits
/// (`FSDiscriminatorBitWidth`).
pub const FS_DISCRIMINATOR_BITS: u32 = 6;

/// The text inside every name that clang made unique (`-funique-internal-linkage-names`).
pub const UNIQUE_SUFFIX: &[u8] = b".__uniq.";
