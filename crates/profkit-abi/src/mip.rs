//! MIP: coverage and call order from one instruction per function. This module has all that the instrumenter, the
//! runtime and the readers share: magic, versions, file types, mode flags, the layouts of function records, map entries
//! and raw file headers, and names. docs/formats/mip.md has the tables and the reasons.
//!
//! profkit writes version 9. Version 8 was never part of a released compiler (LLVM reviews D104060, D104087, D104089,
//! abandoned in 2021); its layouts are in [`v8`], for readers. All numbers are little-endian.

/// The first four bytes of a raw file, a version 8 map and a profile: `FB 4D 49 50`, read as a little-endian number.
pub const MAGIC: u32 = 0x5049_4dfb;
/// The version that profkit writes.
pub const VERSION: u16 = 9;
/// The name of the raw file if [`ENV_FILE_NAME`] is unset or empty.
pub const DEFAULT_FILE_NAME: &str = "default.mipraw";

/// The file type: the low four bits tell the kind of file, the next two bits the width of the target's addresses.
pub mod file_type {
    /// The records of a process (`.mipraw`).
    pub const RAW: u16 = 0x01;
    /// Return-address samples in a file of their own (`.mipret`, version 8 only).
    pub const RETURN_ADDRESSES: u16 = 0x02;
    /// The metadata of an instrumented image (`.mipmap`, version 8 only: the map of version 9 has no header).
    pub const MAP: u16 = 0x04;
    /// A profile made from a map and raw files (`.mip`).
    pub const PROFILE: u16 = 0x08;
    /// The bits that hold the kind of file.
    pub const KIND_MASK: u16 = 0x0f;
    /// Set if the target's addresses have 64 bits.
    pub const WIDTH_64: u16 = 0x10;
    /// Set if the target's addresses have 32 bits.
    pub const WIDTH_32: u16 = 0x20;
}

/// Mode flags: what a record holds. A map entry has the flags of one function, a raw header those of all functions of
/// the image together. Bits 0 to 4 mean the same in version 8.
pub mod mode {
    /// One byte tells whether the function was entered.
    pub const FUNCTION_COVERAGE: u16 = 0x01;
    /// One byte per non-entry block tells whether the block ran.
    pub const BLOCK_COVERAGE: u16 = 0x02;
    /// The record has the ordinal of the function's first call.
    pub const FIRST_CALL: u16 = 0x04;
    /// The record has the number of calls.
    pub const CALL_COUNT: u16 = 0x08;
    /// Calls of the function store return addresses in the ring ([`super::ring`]).
    pub const RETURN_ADDRESSES: u16 = 0x10;
    /// The byte of function coverage counts up to eight calls in unary: each call shifts it right by one. Set together
    /// with [`FUNCTION_COVERAGE`].
    pub const UNARY_COUNTER: u16 = 0x20;
    /// A part of a function that is placed elsewhere, as `F.cold` of gcc and clang. Only jumps lead to it, so the
    /// entry's part of its record never changes; the parts of its blocks do. In map entries only, together with
    /// [`BLOCK_COVERAGE`].
    pub const PART: u16 = 0x40;
    /// All flags that version 9 allows for an image.
    pub const ALL: u16 = 0x3f;
    /// The flags of the mode `calls`: number of calls and call order.
    pub const CALLS: u16 = FIRST_CALL | CALL_COUNT;
    /// The mode of the map's anchor entry ([`super::map_entry`]).
    pub const ANCHOR: u16 = 0;
}

/// The record of one function in [`section::RECORDS`]. At the start every byte of it is 0xff, so that a reset is one
/// fill.
pub mod record {
    /// The value of every byte that the program has not written yet.
    pub const INITIAL_BYTE: u8 = 0xff;
    /// The byte that coverage stores when a function is entered or a block runs. As a unary counter, it means eight
    /// calls or more.
    pub const COVERED_BYTE: u8 = 0x00;
    /// The maximum number of calls in a unary counter. The number of calls is 8 minus the number of set bits.
    pub const UNARY_MAX: u32 = 8;
    /// The size of the entry's part in the coverage mode, unary or not. It is also its alignment.
    pub const COVERAGE_SIZE: usize = 1;
    /// The size of the entry's part in the mode `calls`: a u32 count, a u32 ordinal.
    pub const CALLS_SIZE: usize = 8;
    /// The alignment of a record in the mode `calls`.
    pub const CALLS_ALIGN: usize = 4;
    /// The offset of the count in a record of the mode `calls`. The number of calls is the stored value plus 1,
    /// wrapping; 0xffff_ffff means none.
    pub const COUNT_OFFSET: usize = 0;
    /// The offset of the ordinal of the first call in a record of the mode `calls`.
    pub const ORDINAL_OFFSET: usize = 4;
    /// The count and the ordinal of a function that was never called.
    pub const INITIAL_WORD: u32 = 0xffff_ffff;
    /// The ordinal of the first function that an image calls, and the start value of the counter
    /// [`ORDINAL`](super::symbol::ORDINAL). If a count wraps around to 0, the record keeps its ordinal.
    pub const FIRST_ORDINAL: u32 = 1;
    /// The size of the part of one non-entry block. The blocks follow the entry's part, in the order of the map entry.
    pub const BLOCK_SIZE: usize = 1;
}

/// One entry of the map section [`MAP`](section::MAP): the fixed part; for each non-entry block a u32 with its offset
/// from the function's start; the symbol name; zeroes up to a multiple of [`ALIGN`](map_entry::ALIGN). Entries of
/// 32-bit targets are the same, with addresses zero-extended to 64 bits.
///
/// An *anchor* has mode [`ANCHOR`](mode::ANCHOR), no blocks and an empty name; its record address is the start of the
/// record section, its function address that of [`HOOK`](symbol::HOOK). It lets a map be read without its binary, and
/// its reference to the hook takes the runtime out of its archive.
pub mod map_entry {
    /// u32: size of the whole entry, including its padding.
    pub const ENTRY_SIZE: usize = 0;
    /// u16: mode flags.
    pub const MODE: usize = 4;
    /// u16: 0.
    pub const RESERVED: usize = 6;
    /// u64: address of the record, as assigned by the linker.
    pub const RECORD_ADDRESS: usize = 8;
    /// u64: address of the function, as assigned by the linker.
    pub const FUNCTION_ADDRESS: usize = 16;
    /// u32: size of the function in bytes.
    pub const FUNCTION_SIZE: usize = 24;
    /// u32: control-flow signature.
    pub const SIGNATURE: usize = 28;
    /// u32: number of non-entry blocks.
    pub const BLOCK_COUNT: usize = 32;
    /// u32: length of the name in bytes.
    pub const NAME_LENGTH: usize = 36;
    /// The offset of the block offsets, which is the size of the fixed part.
    pub const FIXED_SIZE: usize = 40;
    /// The size of one block offset.
    pub const BLOCK_OFFSET_SIZE: usize = 4;
    /// The alignment of an entry. Its size is a multiple of this.
    pub const ALIGN: usize = 8;
}

/// The header of one part of a raw file. The runtime writes files of one part; a file has several parts, one after the
/// other, if a user joined files. A part consists of: header; build id, padded with zeroes to [`BUILD_ID_ALIGN`]; the
/// bytes of the record section; return-address samples; u64 XXH3-64 (seed 0) of everything in the part before it.
///
/// [`BUILD_ID_ALIGN`]: raw_header::BUILD_ID_ALIGN
pub mod raw_header {
    /// u32: [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// u16: [`VERSION`](super::VERSION).
    pub const VERSION: usize = 4;
    /// u16: [`file_type`](super::file_type).
    pub const FILE_TYPE: usize = 6;
    /// u32: mode flags of all functions of the image together.
    pub const MODES: usize = 8;
    /// u32: length of the build id in bytes, without padding; 0 if the image has none.
    pub const BUILD_ID_LENGTH: usize = 12;
    /// u32: size of the return-address samples in bytes, a multiple of [`SAMPLE_SIZE`](super::ring::SAMPLE_SIZE).
    pub const SAMPLES_SIZE: usize = 16;
    /// u32: number of dumps that were added up in this part; 1 except in merge pools.
    pub const RUNS: usize = 20;
    /// u64: size of the records in bytes.
    pub const RECORDS_SIZE: usize = 24;
    /// The size of the header.
    pub const SIZE: usize = 32;
    /// The build id is padded to a multiple of this.
    pub const BUILD_ID_ALIGN: usize = 8;
    /// The size of the checksum at the end of a part.
    pub const CHECKSUM_SIZE: usize = 8;
    /// The maximum length of a build id. The runtime writes no longer one, and readers need not accept longer ones.
    pub const BUILD_ID_MAX: usize = 64;
}

/// The ring of return-address samples: section [`RING`](section::RING), zeroes at the start. An option of the
/// instrumenter sets the number of slots. The callee stores a sample in the slot `NEXT modulo slots` and adds one to
/// `NEXT` ([`RING_NEXT`](symbol::RING_NEXT)), without a lock.
pub mod ring {
    /// u32: offset of the callee's record in the record section.
    pub const RECORD_OFFSET: usize = 0;
    /// u32: return address minus the start of the record section, wrapping. 0 marks an empty slot, because there is no
    /// code at that address.
    pub const RETURN_OFFSET: usize = 4;
    /// The size of a sample.
    pub const SAMPLE_SIZE: usize = 8;
    /// The alignment of the ring.
    pub const ALIGN: usize = 8;
}

/// Section names. They are the same in ELF and in Mach-O, where the segment is
/// [`MACHO_SEGMENT`](section::MACHO_SEGMENT).
pub mod section {
    /// The records: allocated, writable, linked to the section of the function (`SHF_LINK_ORDER`), in the COMDAT group
    /// of the function if it has one.
    pub const RECORDS: &str = "__llvm_mipraw";
    /// The map entries: not allocated, linked to the section of the function. Stripping a binary before it is shipped
    /// removes this section.
    pub const MAP: &str = "__llvm_mipmap";
    /// One u32 for each set of mode flags that occurs in the image: allocated, read-only, 4-aligned, retained, in a
    /// COMDAT group [`symbol::MODE_GROUP_PREFIX`](super::symbol::MODE_GROUP_PREFIX)`+ two hex digits`. The runtime
    /// needs it to know how to add up records.
    pub const MODES: &str = "__llvm_mipmode";
    /// The ring of return-address samples: allocated, writable, without bytes in the file, in a COMDAT group named
    /// [`symbol::RING_GROUP_PREFIX`](super::symbol::RING_GROUP_PREFIX)` + number of slots in decimal`, so that objects
    /// with rings of different sizes never share slots.
    pub const RING: &str = "__llvm_mipring";
    /// The segment of all these sections in Mach-O.
    pub const MACHO_SEGMENT: &str = "__DATA";
    /// The prefix of the symbol that a linker defines for the start of an ELF section.
    pub const ELF_START_PREFIX: &str = "__start_";
    /// The prefix of the symbol that a linker defines for the end of an ELF section.
    pub const ELF_STOP_PREFIX: &str = "__stop_";
    /// The prefix of the symbol that a linker defines for the start of a Mach-O section. The name of the section
    /// follows it.
    pub const MACHO_START_PREFIX: &str = "section$start$__DATA$";
    /// The prefix of the symbol that a linker defines for the end of a Mach-O section. The name of the section follows
    /// it.
    pub const MACHO_END_PREFIX: &str = "section$end$__DATA$";
}

/// C names of the runtime. All are hidden, so that each image of a process has its own runtime. Mach-O adds `_` in
/// front.
pub mod symbol {
    /// `int __profkit_mip_dump(void)`: writes the raw file of the calling image now. Returns 0, or −1 after a message
    /// on stderr.
    pub const DUMP: &str = "__profkit_mip_dump";
    /// `void __profkit_mip_reset(void)`: sets all records, the samples and the ordinal back to their start values.
    pub const RESET: &str = "__profkit_mip_reset";
    /// `uint32_t`: the ordinal for the next first call; instrumented code adds one atomically.
    pub const ORDINAL: &str = "__profkit_mip_ordinal";
    /// `uint32_t`: the number of return-address samples stored so far, wrapping; instrumented code adds one.
    pub const RING_NEXT: &str = "__profkit_mip_ring_next";
    /// A datum of the runtime that instrumented objects refer to (it is the function address in the map's anchor). The
    /// reference makes the linker take the runtime out of its archive.
    pub const HOOK: &str = "__profkit_mip_hook";
    /// The COMDAT group of the map's anchor.
    pub const ANCHOR_GROUP: &str = "__profkit_mip_anchor";
    /// The prefix of the COMDAT group of a word in [`section::MODES`](super::section::MODES): `__profkit_mip_mode_01`
    /// for coverage.
    pub const MODE_GROUP_PREFIX: &str = "__profkit_mip_mode_";
    /// The prefix of the COMDAT group and the hidden symbol of a ring: `__profkit_mip_ring_4096`.
    pub const RING_GROUP_PREFIX: &str = "__profkit_mip_ring_";
}

/// Environment variable: the pattern of the raw file's name. `%p` is the process id, `%h` the build id in hex, `%m` and
/// `%1m` to `%9m` a merge pool, `%%` a percent sign.
pub const ENV_FILE_NAME: &str = "LLVM_MIP_PROFILE_FILENAME";
/// Environment variable: the number of a signal at which each image writes its raw file.
pub const ENV_SIGNAL: &str = "PROFKIT_MIP_SIGNAL";

/// Version 8. It has three layouts, A1, A2 and B, with the same version number. profkit reads it and never writes it.
pub mod v8 {
    /// The version word.
    pub const VERSION: u16 = 8;

    /// The fields that the headers of all layouts share. Map, raw file and the raw section in memory start with a
    /// header.
    pub mod header {
        /// u32: [`MAGIC`](crate::mip::MAGIC).
        pub const MAGIC: usize = 0;
        /// u16: 8.
        pub const VERSION: usize = 4;
        /// u16: [`file_type`](crate::mip::file_type) in layout B, [`file_type_a`](super::file_type_a) in layout A.
        pub const FILE_TYPE: usize = 6;
        /// u32: mode flags, bits 0 to 4 of [`mode`](crate::mip::mode).
        pub const MODES: usize = 8;
        /// u32: the low half of the MD5-64 of the link unit's name. A raw file and its map have the same.
        pub const MODULE_HASH: usize = 12;
        /// The size of these fields together. The fields of the layout follow them.
        pub const COMMON_SIZE: usize = 16;
    }

    /// Header of layout B: 32 bytes.
    pub mod header_b {
        /// i64 (i32 and four zero bytes for 32-bit targets): start of the records minus address of this header; 0 in
        /// raw files and profiles.
        pub const RAW_SECTION_OFFSET: usize = 16;
        /// u32: 0.
        pub const RESERVED: usize = 24;
        /// u32: [`SIZE`].
        pub const OFFSET_TO_DATA: usize = 28;
        /// The size of the header, and the value of its last field.
        pub const SIZE: usize = 32;
    }

    /// Header of layouts A1 and A2: 24 bytes.
    pub mod header_a {
        /// u32: 0 in A1; in A2 the start of the records relative to the map.
        pub const RAW_SECTION_OFFSET: usize = 16;
        /// u32: [`SIZE`].
        pub const OFFSET_TO_DATA: usize = 20;
        /// The size of the header, and the value of its last field.
        pub const SIZE: usize = 24;
    }

    /// The file types of layout A. They are numbered; layout B has a bit for each instead.
    pub mod file_type_a {
        /// Raw file.
        pub const RAW: u16 = 1;
        /// Map.
        pub const MAP: u16 = 2;
        /// Profile.
        pub const PROFILE: u16 = 3;
        /// Return-address samples.
        pub const RETURN_ADDRESSES: u16 = 4;
    }

    /// A map entry of layout B for 64-bit targets. The name has no terminator. Entries are aligned, but the last one
    /// may end the file without padding.
    pub mod map_entry_b64 {
        /// i64: address of the record minus address of this entry.
        pub const RECORD: usize = 0;
        /// i64: address of the function minus address of this entry.
        pub const FUNCTION: usize = 8;
        /// u32: size of the function.
        pub const FUNCTION_SIZE: usize = 16;
        /// u32: control-flow signature.
        pub const SIGNATURE: usize = 20;
        /// u32: number of non-entry blocks; their u32 offsets follow, then a u32 name length and the name.
        pub const BLOCK_COUNT: usize = 24;
        /// The size of the entry up to the block offsets.
        pub const FIXED_SIZE: usize = 28;
        /// The alignment of an entry.
        pub const ALIGN: usize = 8;
    }

    /// A map entry of layout B for 32-bit targets, and of layout A2.
    pub mod map_entry_b32 {
        /// i32: address of the record minus address of this entry.
        pub const RECORD: usize = 0;
        /// i32: address of the function minus address of this entry.
        pub const FUNCTION: usize = 4;
        /// u32: size of the function.
        pub const FUNCTION_SIZE: usize = 8;
        /// u32: control-flow signature.
        pub const SIGNATURE: usize = 12;
        /// u32: number of non-entry blocks; their u32 offsets follow, then a u32 name length and the name.
        pub const BLOCK_COUNT: usize = 16;
        /// The size of the entry up to the block offsets.
        pub const FIXED_SIZE: usize = 20;
        /// The alignment of an entry in layout B. In layout A it is 8.
        pub const ALIGN: usize = 4;
    }

    /// A map entry of layout A1.
    pub mod map_entry_a1 {
        /// i32: start of the records minus address of this entry.
        pub const RAW_SECTION_START: usize = 0;
        /// i32: address of the record minus address of this entry.
        pub const RECORD: usize = 4;
        /// i32: address of the function minus address of this entry.
        pub const FUNCTION: usize = 8;
        /// u32: size of the function.
        pub const FUNCTION_SIZE: usize = 12;
        /// u32: control-flow signature.
        pub const SIGNATURE: usize = 16;
        /// u32: number of non-entry blocks; their u32 offsets follow, then a u32 name length and the name.
        pub const BLOCK_COUNT: usize = 20;
        /// The size of the entry up to the block offsets.
        pub const FIXED_SIZE: usize = 24;
        /// The alignment of an entry.
        pub const ALIGN: usize = 8;
    }
}

const _: () = {
    // Each field begins where the previous one ends. Fields of 8 bytes are aligned if the whole is.
    assert!(map_entry::MODE == map_entry::ENTRY_SIZE + 4);
    assert!(map_entry::RESERVED == map_entry::MODE + 2);
    assert!(map_entry::RECORD_ADDRESS == map_entry::RESERVED + 2);
    assert!(map_entry::FUNCTION_ADDRESS == map_entry::RECORD_ADDRESS + 8);
    assert!(map_entry::FUNCTION_SIZE == map_entry::FUNCTION_ADDRESS + 8);
    assert!(map_entry::SIGNATURE == map_entry::FUNCTION_SIZE + 4);
    assert!(map_entry::BLOCK_COUNT == map_entry::SIGNATURE + 4);
    assert!(map_entry::NAME_LENGTH == map_entry::BLOCK_COUNT + 4);
    assert!(map_entry::FIXED_SIZE == map_entry::NAME_LENGTH + 4);
    assert!(map_entry::RECORD_ADDRESS % 8 == 0 && map_entry::FIXED_SIZE % map_entry::ALIGN == 0);

    assert!(raw_header::FILE_TYPE == raw_header::VERSION + 2);
    assert!(raw_header::MODES == raw_header::FILE_TYPE + 2);
    assert!(raw_header::BUILD_ID_LENGTH == raw_header::MODES + 4);
    assert!(raw_header::SAMPLES_SIZE == raw_header::BUILD_ID_LENGTH + 4);
    assert!(raw_header::RUNS == raw_header::SAMPLES_SIZE + 4);
    assert!(raw_header::RECORDS_SIZE == raw_header::RUNS + 4);
    assert!(raw_header::SIZE == raw_header::RECORDS_SIZE + 8);
    assert!(
        raw_header::RECORDS_SIZE % 8 == 0 && raw_header::SIZE % raw_header::BUILD_ID_ALIGN == 0
    );
    assert!(raw_header::BUILD_ID_MAX % raw_header::BUILD_ID_ALIGN == 0);

    assert!(
        record::ORDINAL_OFFSET == record::COUNT_OFFSET + 4
            && record::CALLS_SIZE == record::ORDINAL_OFFSET + 4
    );
    assert!(record::INITIAL_WORD == u32::from_le_bytes([record::INITIAL_BYTE; 4]));
    assert!(ring::SAMPLE_SIZE == ring::RETURN_OFFSET + 4);

    assert!(v8::header_b::SIZE == v8::header_b::OFFSET_TO_DATA + 4);
    assert!(v8::header_a::SIZE == v8::header_a::OFFSET_TO_DATA + 4);
    assert!(v8::header_a::RAW_SECTION_OFFSET == v8::header::COMMON_SIZE);
    assert!(v8::header_b::RAW_SECTION_OFFSET == v8::header::COMMON_SIZE);
    assert!(v8::map_entry_b64::FIXED_SIZE == v8::map_entry_b64::BLOCK_COUNT + 4);
    assert!(v8::map_entry_b32::FIXED_SIZE == v8::map_entry_b32::BLOCK_COUNT + 4);
    assert!(v8::map_entry_a1::FIXED_SIZE == v8::map_entry_a1::BLOCK_COUNT + 4);
};
