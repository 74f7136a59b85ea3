//! Constants of sample profiles in the binary encodings (LLVM's `SampleProf.h`): magic numbers, versions, sections and
//! their flags.

/// The magic number of binary sample profiles. The upper bytes are "SPROF42", and the low byte states the encoding. In
/// files, the magic number is stored as ULEB128 (`SPMagic`).
pub const MAGIC: u64 = 0x5350_524f_4634_3200;
/// The low byte of the magic number in files of the binary encoding (`SPF_Binary`).
pub const BINARY: u8 = 0xff;
/// The low byte of the magic number in files of the compact binary encoding (`SPF_Compact_Binary`, LLVM 7 to 16).
pub const COMPACT_BINARY: u8 = 0x02;
/// The low byte of the magic number in files of the extensible binary encoding (`SPF_Ext_Binary`, since LLVM 10).
pub const EXT_BINARY: u8 = 0x04;

/// The version that LLVM 3.9 and later write (`SPVersion`). Files have a summary before the name table.
pub const VERSION: u64 = 103;
/// The version that LLVM 3.6 and 3.7 write. Files have no name table, so each name is written out where it is used, and
/// there are no inlined functions.
pub const VERSION_NAMES_IN_PLACE: u64 = 100;
/// The version that LLVM 3.8 writes. Files are like those of [`VERSION`], but have no summary.
pub const VERSION_WITHOUT_SUMMARY: u64 = 102;
/// The first version of the extensible binary encoding with composite sections, in which a function consists of typed
/// blocks (LLVM after 23).
pub const VERSION_COMPOSITE: u64 = 105;
/// The newest version of the extensible binary encoding that profkit can read. Later versions may have a section table
/// of another layout.
pub const VERSION_NEWEST: u64 = VERSION_COMPOSITE;

/// The size in bytes of one entry of the section table. An entry has type, flags, offset and size, 64 bits each.
pub const SECTION_ENTRY_SIZE: usize = 32;

/// The types of sections in extensible binary profiles (`SecType`).
pub mod section {
    /// The type of the section with the profile summary.
    pub const SUMMARY: u64 = 1;
    /// The type of the section with the name table.
    pub const NAMES: u64 = 2;
    /// The type of the section with the profile symbol list, which contains the names of all functions of the program.
    pub const SYMBOLS: u64 = 3;
    /// The type of the section with the table of offsets, which contains the offset of each function's samples.
    pub const FUNCTION_OFFSETS: u64 = 4;
    /// The type of the section with the metadata of functions, which are their checksums and attributes.
    pub const METADATA: u64 = 5;
    /// The type of the section with the calling contexts (since LLVM 14).
    pub const CONTEXTS: u64 = 6;
    /// The type of the section with the table of offsets for the section of type [`COMPOSITE`] (LLVM after 23).
    pub const COMPOSITE_OFFSETS: u64 = 7;
    /// The type of the section with the samples (`SecLBRProfile`).
    pub const SAMPLES: u64 = 32;
    /// The type of a section in which the samples of a function are in typed blocks (`SecCompositeProfile`, LLVM after
    /// 23). All type numbers from [`SAMPLES`] on are reserved for sections with samples.
    pub const COMPOSITE: u64 = 33;
}

/// The types of blocks in composite sections.
pub mod block {
    /// The type of the block with the samples of a function.
    pub const SAMPLES: u64 = 0;
}

/// The flags of sections. A flag in the low 32 bits has the same meaning for all types of sections. The meaning of a
/// flag in the high 32 bits depends on the type.
pub mod flag {
    /// Flag of any section: the section is compressed with zlib (`SecFlagCompress`).
    pub const COMPRESSED: u64 = 1;
    /// Flag of any section: no function in the section has inlined functions (`SecFlagFlat`).
    pub const FLAT: u64 = 1 << 1;
    /// Flag of the name table: the names are MD5 hashes.
    pub const MD5_NAMES: u64 = 1 << 32;
    /// Flag of the name table: the names are MD5 hashes of eight bytes each (since LLVM 12).
    pub const FIXED_MD5_NAMES: u64 = 1 << 33;
    /// Flag of the name table: some names contain `.__uniq.`.
    pub const UNIQUE_SUFFIX: u64 = 1 << 34;
    /// Flag of the name table: the hashes are in Eytzinger order (LLVM 24).
    pub const EYTZINGER_NAMES: u64 = 1 << 35;
    /// Flag of the summary: the profile covers only code that the program shares with other programs.
    pub const PARTIAL: u64 = 1 << 32;
    /// Flag of the summary: functions have calling contexts.
    pub const CONTEXT_SENSITIVE: u64 = 1 << 33;
    /// Flag of the summary: the samples use the discriminators of FS-AFDO.
    pub const FS_DISCRIMINATORS: u64 = 1 << 34;
    /// Flag of the summary: `llvm-profgen` decided which functions are inlined.
    pub const PRE_INLINED: u64 = 1 << 36;
    /// Flag of the summary: the samples contain vtables (since LLVM 22).
    pub const VTABLES: u64 = 1 << 37;
    /// Flag of the metadata: functions have checksums of pseudo probes.
    pub const PROBE_BASED: u64 = 1 << 32;
    /// Flag of the metadata: functions have attributes.
    pub const ATTRIBUTES: u64 = 1 << 33;
    /// Flag of the table of offsets: the table is in the order of the calling contexts.
    pub const ORDERED: u64 = 1 << 32;
    /// Flag of the table of offsets: the table is an array in the order of the name table, which is in Eytzinger order
    /// (LLVM 24).
    pub const EYTZINGER_OFFSETS: u64 = 1 << 33;
    /// Flag of the profile symbol list: the names are MD5 hashes (LLVM 24).
    pub const MD5_SYMBOLS: u64 = 1 << 32;
}

/// The attributes of a function in one calling context (`ContextAttributeMask`).
pub mod attribute {
    /// Attribute: the function was inlined in the program that was sampled.
    pub const WAS_INLINED: u32 = 1;
    /// Attribute: the compiler should inline the function.
    pub const SHOULD_BE_INLINED: u32 = 2;
    /// Attribute: the samples in this context are also counted in the function's samples without a calling context.
    pub const DUPLICATED_INTO_BASE: u32 = 4;
}

/// The number of low bits of a discriminator that the compiler's front end and optimizer set. FS-AFDO sets the bits
/// above them (`BaseDiscriminatorBitWidth`).
pub const BASE_DISCRIMINATOR_BITS: u32 = 8;
/// The number of bits of a discriminator that each pass of FS-AFDO sets, above the low bits
/// (`FSDiscriminatorBitWidth`).
pub const FS_DISCRIMINATOR_BITS: u32 = 6;

/// The text in every name that clang has made unique (`-funique-internal-linkage-names`).
pub const UNIQUE_SUFFIX: &[u8] = b".__uniq.";
