//! MIP, coverage and call order from one instruction per function: magic, versions, file types, mode flags, the record
//! of a function, the map entry, the header of a raw file, and every name that the instrumenter, the runtime and the
//! readers share. docs/formats/mip.md has the tables and the reasons.
//!
//! Version 9 is what profkit writes. Version 8 was never released in a compiler (LLVM reviews D104060, D104087, D104089,
//! abandoned in 2021); its layouts are in [`v8`], for readers. Everything is little-endian.

/// First four bytes of a raw file, a version 8 map and a profile: `FB 4D 49 50`, as a little-endian number.
pub const MAGIC: u32 = 0x5049_4dfb;
/// The version that profkit writes.
pub const VERSION: u16 = 9;
/// Name of the raw file when [`ENV_FILE_NAME`] is unset or empty.
pub const DEFAULT_FILE_NAME: &str = "default.mipraw";

/// What a file is: low four bits the kind, two bits the width of the target's addresses.
pub mod file_type {
    /// Records as a process left them (`.mipraw`).
    pub const RAW: u16 = 0x01;
    /// Return-address samples in a file of their own (`.mipret`, version 8 only).
    pub const RETURN_ADDRESSES: u16 = 0x02;
    /// Metadata of an instrumented image (`.mipmap`, version 8 only: the map of version 9 has no header).
    pub const MAP: u16 = 0x04;
    /// Profile made of a map and raw files (`.mip`).
    pub const PROFILE: u16 = 0x08;
    /// Bits that hold the kind.
    pub const KIND_MASK: u16 = 0x0f;
    /// Set when the target's addresses have 64 bits.
    pub const WIDTH_64: u16 = 0x10;
    /// Set when the target's addresses have 32 bits.
    pub const WIDTH_32: u16 = 0x20;
}

/// Mode flags: what a record holds. In a map entry those of one function, in a raw header the union over the image.
/// Bits 0 to 4 are version 8's as well.
pub mod mode {
    /// One byte says whether the function was entered.
    pub const FUNCTION_COVERAGE: u16 = 0x01;
    /// One byte per non-entry block says whether the block was run.
    pub const BLOCK_COVERAGE: u16 = 0x02;
    /// The record has the ordinal of the first call.
    pub const FIRST_CALL: u16 = 0x04;
    /// The record has the number of calls.
    pub const CALL_COUNT: u16 = 0x08;
    /// Calls of the function leave return addresses in the ring ([`super::ring`]).
    pub const RETURN_ADDRESSES: u16 = 0x10;
    /// The byte of function coverage counts calls from 0 to 8 in unary: each shifts it right by one. Stands with
    /// [`FUNCTION_COVERAGE`].
    pub const UNARY_COUNTER: u16 = 0x20;
    /// A part of a function that stands elsewhere (gcc's and clang's `F.cold`). Control comes to it by jumps: the entry's
    /// part of its record is never touched, its blocks are. In map entries only, with [`BLOCK_COVERAGE`].
    pub const PART: u16 = 0x40;
    /// All that version 9 knows of an image.
    pub const ALL: u16 = 0x3f;
    /// Mode `calls`: count and order.
    pub const CALLS: u16 = FIRST_CALL | CALL_COUNT;
    /// What an anchor entry of the map has ([`super::map_entry`]).
    pub const ANCHOR: u16 = 0;
}

/// The record of one function in [`section::RECORDS`]. Every byte of it is 0xff at start, so a
/// reset is one fill.
pub mod record {
    /// Each byte of a record that nothing has touched.
    pub const INITIAL_BYTE: u8 = 0xff;
    /// What coverage stores: of a function that was entered, or of a block that was run. Of a unary counter: eight
    /// calls or more.
    pub const COVERED_BYTE: u8 = 0x00;
    /// The most calls that a unary counter can count: calls = 8 − set bits.
    pub const UNARY_MAX: u32 = 8;
    /// Size of the entry's part in mode coverage, unary or not; its alignment too.
    pub const COVERAGE_SIZE: usize = 1;
    /// Size of the entry's part in mode calls: u32 count, u32 ordinal.
    pub const CALLS_SIZE: usize = 8;
    /// Alignment of a record of mode calls.
    pub const CALLS_ALIGN: usize = 4;
    /// Where the count is in a record of mode calls. Calls = value + 1, wrapping: 0xffff_ffff is none.
    pub const COUNT_OFFSET: usize = 0;
    /// Where the ordinal of the first call is in a record of mode calls.
    pub const ORDINAL_OFFSET: usize = 4;
    /// Count and ordinal of a function that was never called.
    pub const INITIAL_WORD: u32 = 0xffff_ffff;
    /// The ordinal of the first function that an image calls; the counter [`ORDINAL`](super::symbol::ORDINAL) starts
    /// with it. A count that wraps to 0 keeps the ordinal that is there.
    pub const FIRST_ORDINAL: u32 = 1;
    /// Size of one non-entry block's part, after the entry's part, in the order of the map entry.
    pub const BLOCK_SIZE: usize = 1;
}

/// One entry of the map section [`MAP`](section::MAP): the fixed part, then a u32 a non-entry block (its offset
/// from the function's start), the symbol name, and zeroes up to a multiple of [`ALIGN`](map_entry::ALIGN). The entry of
/// a 32-bit target is the same, its addresses zero-extended.
///
/// An *anchor* has mode [`ANCHOR`](mode::ANCHOR), no blocks and an empty name; its record address is the start of the
/// record section, its function address that of [`HOOK`](symbol::HOOK). It lets a map be read without its binary, and
/// its reference to the hook takes the runtime out of its archive.
pub mod map_entry {
    /// u32: size of the whole entry, its padding included.
    pub const ENTRY_SIZE: usize = 0;
    /// u16: mode flags.
    pub const MODE: usize = 4;
    /// u16: 0.
    pub const RESERVED: usize = 6;
    /// u64: address of the record, as the linker gave it.
    pub const RECORD_ADDRESS: usize = 8;
    /// u64: address of the function, as the linker gave it.
    pub const FUNCTION_ADDRESS: usize = 16;
    /// u32: size of the function in bytes.
    pub const FUNCTION_SIZE: usize = 24;
    /// u32: control-flow signature.
    pub const SIGNATURE: usize = 28;
    /// u32: number of non-entry blocks.
    pub const BLOCK_COUNT: usize = 32;
    /// u32: length of the name in bytes.
    pub const NAME_LENGTH: usize = 36;
    /// Where the block offsets start: size of the fixed part.
    pub const FIXED_SIZE: usize = 40;
    /// Size of one block offset.
    pub const BLOCK_OFFSET_SIZE: usize = 4;
    /// Alignment of an entry, and what its size is a multiple of.
    pub const ALIGN: usize = 8;
}

/// Header of one part of a raw file. A raw file is one part, or several after each other (files that a
/// user put together; the runtime writes one). A part is: header, build id padded with zeroes to [`BUILD_ID_ALIGN`], the
/// bytes of the record section, return-address samples, u64 XXH3-64 (seed 0) of all of the part before it.
///
/// [`BUILD_ID_ALIGN`]: raw_header::BUILD_ID_ALIGN
pub mod raw_header {
    /// u32: [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// u16: [`VERSION`](super::VERSION).
    pub const VERSION: usize = 4;
    /// u16: [`file_type`](super::file_type).
    pub const FILE_TYPE: usize = 6;
    /// u32: union of the mode flags of the image.
    pub const MODES: usize = 8;
    /// u32: length of the build id in bytes, without padding; 0 when the image has none.
    pub const BUILD_ID_LENGTH: usize = 12;
    /// u32: size of the return-address samples in bytes, a multiple of [`SAMPLE_SIZE`](super::ring::SAMPLE_SIZE).
    pub const SAMPLES_SIZE: usize = 16;
    /// u32: number of dumps that were added into this part; 1 unless it is a pool.
    pub const RUNS: usize = 20;
    /// u64: size of the records in bytes.
    pub const RECORDS_SIZE: usize = 24;
    /// Size of the header.
    pub const SIZE: usize = 32;
    /// The build id is padded to a multiple of this.
    pub const BUILD_ID_ALIGN: usize = 8;
    /// Size of the checksum at the end of a part.
    pub const CHECKSUM_SIZE: usize = 8;
    /// Longest build id that the runtime writes and a reader needs to accept.
    pub const BUILD_ID_MAX: usize = 64;
}

/// The ring of return-address samples: section [`RING`](section::RING), zeroes at start, as many samples as the
/// options of the instrumenter say. The callee stores into the slot `NEXT modulo slots` and adds one to `NEXT`
/// ([`RING_NEXT`](symbol::RING_NEXT)), without a lock.
pub mod ring {
    /// u32: offset of the callee's record in the record section.
    pub const RECORD_OFFSET: usize = 0;
    /// u32: return address minus the start of the record section, wrapping. 0 marks an empty slot: no code is there.
    pub const RETURN_OFFSET: usize = 4;
    /// Size of a sample.
    pub const SAMPLE_SIZE: usize = 8;
    /// Alignment of the ring.
    pub const ALIGN: usize = 8;
}

/// Names of sections, the same in ELF and (in segment [`MACHO_SEGMENT`](section::MACHO_SEGMENT)) Mach-O.
pub mod section {
    /// Records: allocated, writable, linked to the section of the function (`SHF_LINK_ORDER`), in its COMDAT group if
    /// that has one.
    pub const RECORDS: &str = "__llvm_mipraw";
    /// Map entries: not allocated, linked to the section of the function. A shipped binary is stripped of it.
    pub const MAP: &str = "__llvm_mipmap";
    /// One u32 for each set of mode flags that the image has: allocated, read-only, 4-aligned, retained, in a COMDAT
    /// group [`symbol::MODE_GROUP_PREFIX`](super::symbol::MODE_GROUP_PREFIX)`+ two hex digits`. The runtime learns from
    /// it how records can be added up.
    pub const MODES: &str = "__llvm_mipmode";
    /// The ring of return-address samples: allocated, writable, no bits in the file, in a COMDAT group named
    /// [`symbol::RING_GROUP_PREFIX`](super::symbol::RING_GROUP_PREFIX)` + number of slots in decimal`, so that objects
    /// of unlike sizes never share slots.
    pub const RING: &str = "__llvm_mipring";
    /// Segment of all of them in Mach-O.
    pub const MACHO_SEGMENT: &str = "__DATA";
    /// Prefix of the linker's symbol for the start of an ELF section.
    pub const ELF_START_PREFIX: &str = "__start_";
    /// Prefix of the linker's symbol for the end of an ELF section.
    pub const ELF_STOP_PREFIX: &str = "__stop_";
    /// Prefix of the linker's symbol for the start of a Mach-O section; the section's name follows.
    pub const MACHO_START_PREFIX: &str = "section$start$__DATA$";
    /// Prefix of the linker's symbol for the end of a Mach-O section; the section's name follows.
    pub const MACHO_END_PREFIX: &str = "section$end$__DATA$";
}

/// C names of the runtime. All are hidden, so that each image of a process has its own; Mach-O puts `_` in front.
pub mod symbol {
    /// `int __profkit_mip_dump(void)`: writes the raw file of the calling image now; 0, or −1 after a line on stderr.
    pub const DUMP: &str = "__profkit_mip_dump";
    /// `void __profkit_mip_reset(void)`: all records, samples and the ordinal as they were at start.
    pub const RESET: &str = "__profkit_mip_reset";
    /// `uint32_t`: the ordinal that the next first call takes; instrumented code adds one atomically.
    pub const ORDINAL: &str = "__profkit_mip_ordinal";
    /// `uint32_t`: number of return-address samples ever stored, wrapping; instrumented code adds one.
    pub const RING_NEXT: &str = "__profkit_mip_ring_next";
    /// Data of the runtime that instrumented objects refer to (the function address of the map's anchor), so that the
    /// linker takes the runtime out of its archive.
    pub const HOOK: &str = "__profkit_mip_hook";
    /// COMDAT group of the map's anchor.
    pub const ANCHOR_GROUP: &str = "__profkit_mip_anchor";
    /// COMDAT group of a word in [`section::MODES`](super::section::MODES): `__profkit_mip_mode_01` for coverage.
    pub const MODE_GROUP_PREFIX: &str = "__profkit_mip_mode_";
    /// COMDAT group and hidden symbol of a ring: `__profkit_mip_ring_4096`.
    pub const RING_GROUP_PREFIX: &str = "__profkit_mip_ring_";
}

/// Environment: pattern of the raw file's name. `%p` process, `%h` build id in hex, `%m` and `%1m` to `%9m` merge pool,
/// `%%` a percent sign.
pub const ENV_FILE_NAME: &str = "LLVM_MIP_PROFILE_FILENAME";
/// Environment: number of a signal on which each image writes its raw file.
pub const ENV_SIGNAL: &str = "PROFKIT_MIP_SIGNAL";

/// Version 8 in its layouts A1, A2 and B, which all say version 8. Read, never written.
pub mod v8 {
    /// The version word.
    pub const VERSION: u16 = 8;

    /// Fields that the headers of all layouts share. Map and raw file start with a header, and the raw section in
    /// memory too.
    pub mod header {
        /// u32: [`MAGIC`](crate::mip::MAGIC).
        pub const MAGIC: usize = 0;
        /// u16: 8.
        pub const VERSION: usize = 4;
        /// u16: [`file_type`](crate::mip::file_type) in layout B, [`file_type_a`](super::file_type_a) in layout A.
        pub const FILE_TYPE: usize = 6;
        /// u32: mode flags, bits 0 to 4 of [`mode`](crate::mip::mode).
        pub const MODES: usize = 8;
        /// u32: low half of the MD5-64 of the link unit's name; raw and map match by it.
        pub const MODULE_HASH: usize = 12;
        /// Bytes that are needed to tell the layouts apart: both data offsets lie below.
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
        /// Size, and what the last field holds.
        pub const SIZE: usize = 32;
    }

    /// Header of layouts A1 and A2: 24 bytes.
    pub mod header_a {
        /// u32: 0 in A1; in A2 the start of the records relative to the map.
        pub const RAW_SECTION_OFFSET: usize = 16;
        /// u32: [`SIZE`].
        pub const OFFSET_TO_DATA: usize = 20;
        /// Size, and what the last field holds.
        pub const SIZE: usize = 24;
    }

    /// File types of layout A: an enumeration, where B has bits.
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

    /// Map entry of layout B for 64-bit targets. The name has no terminator; the next entry is aligned, and the last
    /// may end the file without padding.
    pub mod map_entry_b64 {
        /// i64: record minus start of this entry.
        pub const RECORD: usize = 0;
        /// i64: function minus start of this entry.
        pub const FUNCTION: usize = 8;
        /// u32: size of the function.
        pub const FUNCTION_SIZE: usize = 16;
        /// u32: control-flow signature.
        pub const SIGNATURE: usize = 20;
        /// u32: number of non-entry blocks; their u32 offsets follow, then a u32 name length and the name.
        pub const BLOCK_COUNT: usize = 24;
        /// Size up to the block offsets.
        pub const FIXED_SIZE: usize = 28;
        /// Alignment of an entry.
        pub const ALIGN: usize = 8;
    }

    /// Map entry of layout B for 32-bit targets, and of layout A2.
    pub mod map_entry_b32 {
        /// i32: record minus start of this entry.
        pub const RECORD: usize = 0;
        /// i32: function minus start of this entry.
        pub const FUNCTION: usize = 4;
        /// u32: size of the function.
        pub const FUNCTION_SIZE: usize = 8;
        /// u32: control-flow signature.
        pub const SIGNATURE: usize = 12;
        /// u32: number of non-entry blocks; their u32 offsets follow, then a u32 name length and the name.
        pub const BLOCK_COUNT: usize = 16;
        /// Size up to the block offsets.
        pub const FIXED_SIZE: usize = 20;
        /// Alignment of an entry in layout B. Layout A aligns to 8.
        pub const ALIGN: usize = 4;
    }

    /// Map entry of layout A1.
    pub mod map_entry_a1 {
        /// i32: start of the records minus start of this entry.
        pub const RAW_SECTION_START: usize = 0;
        /// i32: record minus start of this entry.
        pub const RECORD: usize = 4;
        /// i32: function minus start of this entry.
        pub const FUNCTION: usize = 8;
        /// u32: size of the function.
        pub const FUNCTION_SIZE: usize = 12;
        /// u32: control-flow signature.
        pub const SIGNATURE: usize = 16;
        /// u32: number of non-entry blocks; their u32 offsets follow, then a u32 name length and the name.
        pub const BLOCK_COUNT: usize = 20;
        /// Size up to the block offsets.
        pub const FIXED_SIZE: usize = 24;
        /// Alignment of an entry.
        pub const ALIGN: usize = 8;
    }
}

const _: () = {
    // Each field ends where the next one starts, and 8-byte fields are aligned when the whole is.
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
