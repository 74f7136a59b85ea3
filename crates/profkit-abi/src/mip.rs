//! Constants of MIP profiles, which record coverage and call order with one instruction per function. The instrumenter,
//! the run-time library and the readers share these definitions. The module defines magic numbers, versions, file
//! types, mode flags, names, and the layouts of function records, map entries and raw file headers. [docs/formats/mip.md]
//! has the tables and the reasons.
//!
//! profkit writes version 9. Version 8 was never part of a released compiler (LLVM reviews D104060, D104087, D104089,
//! abandoned in 2021); its layouts are in [`v8`], for readers. All numbers are little-endian.
//!
//! [docs/formats/mip.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip.md

/// The magic number: the first four bytes `FB 4D 49 50` of a raw file, a version 8 map and a profile, read as a
/// little-endian number.
pub const MAGIC: u32 = 0x5049_4dfb;
/// The version of MIP files that profkit writes.
pub const VERSION: u16 = 9;
/// The name of the raw file if the environment variable [`ENV_FILE_NAME`] is not set or is empty.
pub const DEFAULT_FILE_NAME: &str = "default.mipraw";

/// The values of the file type in MIP headers. The low four bits state the kind of file, the next two bits the width of
/// the target's addresses.
pub mod file_type {
    /// The type of a raw file (`.mipraw`), which contains the records of a process.
    pub const RAW: u16 = 0x01;
    /// The type of a file of return-address samples (`.mipret`). Only version 8 has this type.
    pub const RETURN_ADDRESSES: u16 = 0x02;
    /// The type of a map (`.mipmap`), which lists the functions of an executable or a shared library. Only version 8
    /// has this type, because the map of version 9 has no header.
    pub const MAP: u16 = 0x04;
    /// The type of a profile (`.mip`), which is made from a map and raw files.
    pub const PROFILE: u16 = 0x08;
    /// The bits of the file type that state the kind of file.
    pub const KIND_MASK: u16 = 0x0f;
    /// The bit of the file type that is set if the target's addresses have 64 bits.
    pub const WIDTH_64: u16 = 0x10;
    /// The bit of the file type that is set if the target's addresses have 32 bits.
    pub const WIDTH_32: u16 = 0x20;
}

/// Mode flags, which state what a function record contains. A map entry has the flags of one function. The header of a
/// raw file has the combined flags (bitwise OR) of all functions of the image, which is an executable or a shared
/// library. Bits 0 to 4 have the same meaning in versions 8 and 9.
pub mod mode {
    /// Flag: the record has one byte that shows whether the function was entered.
    pub const FUNCTION_COVERAGE: u16 = 0x01;
    /// Flag: the record has one byte for each block except the entry block. The byte shows whether the block ran.
    pub const BLOCK_COVERAGE: u16 = 0x02;
    /// Flag: the record has the ordinal of the function's first call, which is its position in the order of all first
    /// calls.
    pub const FIRST_CALL: u16 = 0x04;
    /// Flag: the record has the number of calls of the function.
    pub const CALL_COUNT: u16 = 0x08;
    /// Flag: calls of the function store their return addresses in the ring of samples ([`super::ring`]). Programs of
    /// earlier releases have this flag; others have [`CALL_EDGES`].
    pub const RETURN_ADDRESSES: u16 = 0x10;
    /// Flag: the byte of function coverage counts up to eight calls. Each call shifts the byte right by one bit. The
    /// flag is set together with [`FUNCTION_COVERAGE`].
    pub const UNARY_COUNTER: u16 = 0x20;
    /// Flag: the function is a part that the compiler moved out of another function, such as `F.cold` of gcc and clang.
    /// Such a part is entered only by jumps, so the program changes the bytes of its blocks but never its entry
    /// counter. The flag occurs in map entries and profiles, but not in the headers of raw files. It is always set
    /// together with [`BLOCK_COVERAGE`].
    pub const PART: u16 = 0x40;
    /// Flag: some calls of the function are sampled into a table of call edges ([`super::edge_table`]). The record also
    /// has the number of calls until the next sample ([`super::record::SAMPLED_CALLS_SIZE`]). The flag is set together
    /// with [`CALLS`].
    pub const CALL_EDGES: u16 = 0x80;
    /// Flag: some blocks, or the entry, have no byte in the record. The map entry says from which other blocks it is
    /// inferred whether they ran. The flag occurs where [`PART`] does, and is always set together with
    /// [`BLOCK_COVERAGE`].
    pub const INFERRED: u16 = 0x400;
    /// The set of all flags that version 9 allows in the header of a raw file.
    pub const ALL: u16 = 0xbf;
    /// The flags of the mode `calls`, which records the number of calls and the call order.
    pub const CALLS: u16 = FIRST_CALL | CALL_COUNT;
    /// The mode flags of the map's anchor entry, which states where the records begin ([`super::map_entry`]).
    pub const ANCHOR: u16 = 0;
}

/// The layout of a function's record in the section [`section::RECORDS`]. Every byte of a record is 0xff when the
/// program starts. So all records can be reset by filling the section with one byte value.
pub mod record {
    /// The value of each record byte that the program has not written yet.
    pub const INITIAL_BYTE: u8 = 0xff;
    /// The byte that the program stores when a function is entered or a block runs. In a unary counter, this byte means
    /// eight calls or more.
    pub const COVERED_BYTE: u8 = 0x00;
    /// The maximum number of calls in a unary counter. The number of calls is 8 minus the number of set bits in the
    /// byte.
    pub const UNARY_MAX: u32 = 8;
    /// The size in bytes of the entry counter in a coverage record, whether or not it is a unary counter. This number
    /// is also the alignment of the record.
    pub const COVERAGE_SIZE: usize = 1;
    /// The size in bytes of the entry counter in the mode `calls`. The counter consists of a 32-bit count and a 32-bit
    /// ordinal.
    pub const CALLS_SIZE: usize = 8;
    /// The alignment in bytes of a record in the mode `calls`.
    pub const CALLS_ALIGN: usize = 4;
    /// The offset of the count in a record of the mode `calls`. The stored value is the number of calls minus 1. The
    /// value 0xffff_ffff means no calls. From [`SATURATED_COUNT`] on, the number of calls is only a lower bound.
    pub const COUNT_OFFSET: usize = 0;
    /// The smallest stored count that is a lower bound. When the count exceeds 0x7fff_ffff, the program sets it back to
    /// this value, so the count of a function that is called more often stays at or above it.
    pub const SATURATED_COUNT: u32 = 0x7f00_0000;
    /// The offset of the ordinal in a record of the mode `calls`. The ordinal is the position of the function's first
    /// call in the order of the first calls of all functions.
    pub const ORDINAL_OFFSET: usize = 4;
    /// The value of the count and of the ordinal in the record of a function that was never called.
    pub const INITIAL_WORD: u32 = 0xffff_ffff;
    /// The ordinal of the first function that is called in an image. This number is also the start value of the counter
    /// [`ORDINAL`](super::symbol::ORDINAL). A record that already has an ordinal never gets another one, even if its
    /// count wraps around and the next call looks like a first call.
    pub const FIRST_ORDINAL: u32 = 1;
    /// The size in bytes of the entry counter with the flag [`CALL_EDGES`](super::mode::CALL_EDGES). The counter consists
    /// of the 32-bit field [`REMAINING_OFFSET`], the 32-bit ordinal and the 64-bit field [`NEXT_SAMPLE_OFFSET`].
    pub const SAMPLED_CALLS_SIZE: usize = 16;
    /// The alignment in bytes of a record with the flag [`CALL_EDGES`](super::mode::CALL_EDGES).
    pub const SAMPLED_CALLS_ALIGN: usize = 8;
    /// The offset of a signed 32-bit field in a record with the flag [`CALL_EDGES`](super::mode::CALL_EDGES): the
    /// negative number of calls until the next sampled one, which makes the field 0. The field is −1 when the program
    /// starts, because the first call is sampled.
    pub const REMAINING_OFFSET: usize = 0;
    /// The offset of a 64-bit field in a record with the flag [`CALL_EDGES`](super::mode::CALL_EDGES). The number of
    /// calls is this field plus 2 plus the field at [`REMAINING_OFFSET`], modulo 2^64. The field is −1 when the program
    /// starts.
    pub const NEXT_SAMPLE_OFFSET: usize = 8;
    /// The size of a block's byte in a record. A record has such a byte for each block except the entry block and those
    /// that are inferred from others ([`INFERRED`](super::mode::INFERRED)). The bytes follow the entry counter, in the
    /// order of the blocks in the map entry.
    pub const BLOCK_SIZE: usize = 1;
}

/// The layout of an entry in the map section [`MAP`](section::MAP). The fixed fields come first. After them comes a
/// list of 32-bit numbers: for each block except the entry block, its offset from the function's start. If the mode has the
/// flag [`INFERRED`](mode::INFERRED), two lists of 32-bit numbers follow: for each block, the entry block first, the number
/// of blocks from which it is inferred, 0 if it has a byte in the record; then the numbers of these blocks, where 0 is the
/// entry block. Then come the symbol name, and zero bytes up to a multiple of [`ALIGN`](map_entry::ALIGN). Entries for 32-bit targets
/// have the same layout; their addresses are zero-extended to 64 bits.
///
/// The *anchor* entry has mode [`ANCHOR`](mode::ANCHOR), no blocks and an empty name. Its record address is the start
/// of the record section, and its function address is the address of [`HOOK`](symbol::HOOK). The anchor makes it
/// possible to read a map without its binary. It also makes the linker include the run-time library in the program,
/// because the hook is a variable of that library.
pub mod map_entry {
    /// The offset of a 32-bit field: the entry's size in bytes. The size includes the padding of the entry.
    pub const ENTRY_SIZE: usize = 0;
    /// The offset of a 16-bit field: the mode flags.
    pub const MODE: usize = 4;
    /// The offset of a 16-bit field: how the two addresses are stored, [`ADDRESSES`] or [`DISTANCES`].
    pub const FORM: usize = 6;
    /// The offset of a 64-bit field: the record's address, as the linker assigned it.
    pub const RECORD_ADDRESS: usize = 8;
    /// The offset of a 64-bit field: the function's address, as the linker assigned it.
    pub const FUNCTION_ADDRESS: usize = 16;
    /// The offset of a 32-bit field: the function's size in bytes.
    pub const FUNCTION_SIZE: usize = 24;
    /// The offset of a 32-bit field: the control-flow signature.
    pub const SIGNATURE: usize = 28;
    /// The offset of a 32-bit field: the number of blocks, not counting the entry block.
    pub const BLOCK_COUNT: usize = 32;
    /// The offset of a 32-bit field: the name's length in bytes.
    pub const NAME_LENGTH: usize = 36;
    /// A value of [`FORM`]: the fields hold addresses.
    pub const ADDRESSES: u16 = 0;
    /// A value of [`FORM`]: the fields hold the distances of the addresses from the start of the entry, modulo 2^64. So the
    /// loader changes nothing in the map, which can be removed from a program. 64-bit Mach-O objects have this form. The
    /// distances of their anchor are 0: the start of the record section is that of the section in the program.
    pub const DISTANCES: u16 = 1;
    /// The size of the fixed fields in bytes. The list of block offsets begins after them.
    pub const FIXED_SIZE: usize = 40;
    /// The size of one block offset in bytes.
    pub const BLOCK_OFFSET_SIZE: usize = 4;
    /// The size in bytes of each number about inferred blocks.
    pub const INFERENCE_SIZE: usize = 4;
    /// The alignment of a map entry in bytes. The size of an entry is a multiple of this number.
    pub const ALIGN: usize = 8;
}

/// The layout of the header of one part of a raw file. The run-time library writes files with one part. A user may join
/// several files to one file with several parts. A part consists of the header, the build id, the record section, the
/// return-address samples and a checksum. The build id is padded with zero bytes to a multiple of [`BUILD_ID_ALIGN`].
/// The checksum is the 64-bit XXH3 (seed 0) of all bytes of the part before the checksum.
///
/// [`BUILD_ID_ALIGN`]: raw_header::BUILD_ID_ALIGN
pub mod raw_header {
    /// The offset of a 32-bit field: the magic number [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// The offset of a 16-bit field: the version number [`VERSION`](super::VERSION).
    pub const VERSION: usize = 4;
    /// The offset of a 16-bit field: the [`file_type`](super::file_type).
    pub const FILE_TYPE: usize = 6;
    /// The offset of a 32-bit field: the combined mode flags (bitwise OR) of all functions of the image.
    pub const MODES: usize = 8;
    /// The offset of a 32-bit field: the length of the build id in bytes, without padding. The length is 0 if the image
    /// has no build id.
    pub const BUILD_ID_LENGTH: usize = 12;
    /// The offset of a 32-bit field: the total size of the return-address samples, in bytes. It is a multiple of
    /// [`SAMPLE_SIZE`](super::ring::SAMPLE_SIZE).
    pub const SAMPLES_SIZE: usize = 16;
    /// The offset of the 32-bit field with the number of runs whose records are summed up in this part. The number is
    /// 1, except in a merge pool, which is a file to which several processes add their records.
    pub const RUNS: usize = 20;
    /// The offset of a 64-bit field: the size of the records in bytes.
    pub const RECORDS_SIZE: usize = 24;
    /// The size of the header of a part in bytes.
    pub const SIZE: usize = 32;
    /// The alignment of the build id: it is padded to a multiple of this number of bytes.
    pub const BUILD_ID_ALIGN: usize = 8;
    /// The size in bytes of the checksum at the end of a part.
    pub const CHECKSUM_SIZE: usize = 8;
    /// The maximum length of a build id in bytes. The run-time library cuts a longer build id to this length, and
    /// readers may reject a part that contains a longer one.
    pub const BUILD_ID_MAX: usize = 64;
}

/// The table of sampled calls: the section [`RING`](section::RING) of an image with the mode flag
/// [`CALL_EDGES`](mode::CALL_EDGES). When the program starts, all its bytes are 0.
///
/// A table has an entry for its state, an entry for what it could not keep, and the number of slots that an option of
/// the instrumenter sets. A slot counts the calls from one call site to one function. Every function decides which of
/// its calls are sampled: the first ones all, later ones at random distances that grow with the number of its calls
/// ([`PERIOD_SHIFT`](edge_table::PERIOD_SHIFT)). The weight of a sample is the number of calls up to the next one. A slot
/// is searched among [`PROBES`](edge_table::PROBES) neighbours. If they are all in use, the lightest of them makes place
/// for a sample that is heavier.
pub mod edge_table {
    /// The size of a slot in bytes.
    pub const SLOT_SIZE: usize = 16;
    /// The alignment of the table in bytes.
    pub const ALIGN: usize = 16;
    /// The offset, in a slot, of a 32-bit field: the byte offset of the called function's record in the record section.
    pub const RECORD_OFFSET: usize = 0;
    /// The offset, in a slot, of the 32-bit field with the return address minus the start of the record section, modulo
    /// 2^32. The value 0 marks a slot that holds no calls.
    pub const RETURN_OFFSET: usize = 4;
    /// The offset, in a slot, of the 64-bit field with the number of calls.
    pub const WEIGHT_OFFSET: usize = 8;
    /// The number of entries before the slots.
    pub const HEAD_ENTRIES: usize = 2;
    /// The offset, in the first entry, of the 32-bit state of the random numbers. The field after it is 0, so readers
    /// take the entry for an empty slot.
    pub const RANDOM_OFFSET: usize = 0;
    /// The offset, in the first entry, of a 32-bit field that is 1 while a thread changes the table.
    pub const LOCK_OFFSET: usize = 8;
    /// The offset, in the first entry, of a 32-bit field: how often the table was found locked since it was last free.
    pub const WAITING_OFFSET: usize = 12;
    /// When the table was found locked this often, the lock is taken away from a thread that no longer exists.
    pub const WAITING_MAX: u32 = 1 << 24;
    /// The value of both 32-bit fields of the second entry, if its weight is not 0: its weight is the number of calls that
    /// the slots could not keep.
    pub const LOST_KEY: u32 = 0xffff_ffff;
    /// The number of neighbouring slots among which a sample is searched.
    pub const PROBES: u32 = 8;
    /// The distance to the next sample is 1 + m / 2 + a random number from 0 to m, where m is the number of the function's
    /// calls shifted right by this number.
    pub const PERIOD_SHIFT: u32 = 10;
    /// The largest value of m, so that a distance is less than 2^31.
    pub const PERIOD_MAX: u32 = (1 << 29) - 1;
    /// The factor of the hash. The slot is the number of slots times the upper half of (key times factor), divided by
    /// 2^32; the key is the first eight bytes of a slot.
    pub const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    /// The next random number is the last one times this factor, plus [`RANDOM_INCREMENT`].
    pub const RANDOM_FACTOR: u32 = 1_664_525;
    /// See [`RANDOM_FACTOR`].
    pub const RANDOM_INCREMENT: u32 = 1_013_904_223;
}

/// The ring of return-address samples, which programs of earlier releases have: the section [`RING`](section::RING). When
/// the program starts, all its bytes are 0. An option of the instrumenter sets the number of slots of the ring. The called function stores a sample in the
/// slot `NEXT modulo slots` and adds one to `NEXT` ([`RING_NEXT`](symbol::RING_NEXT)), without a lock.
pub mod ring {
    /// The offset, in a sample, of a 32-bit field: the byte offset of the called function's record in the record
    /// section.
    pub const RECORD_OFFSET: usize = 0;
    /// The offset, in a sample, of the 32-bit field with the return address minus the start of the record section,
    /// modulo 2^32. The value 0 marks an empty slot. No sample has this value, because there is no code at the start of
    /// the record section.
    pub const RETURN_OFFSET: usize = 4;
    /// The size of a return-address sample in bytes.
    pub const SAMPLE_SIZE: usize = 8;
    /// The alignment in bytes of the ring of return-address samples.
    pub const ALIGN: usize = 8;
}

/// The names of the sections. ELF and Mach-O use the same names; in Mach-O the segment is
/// [`MACHO_SEGMENT`](section::MACHO_SEGMENT).
pub mod section {
    /// The name of the section with the function records. The section is allocated, writable and linked to the section
    /// of the function's code (`SHF_LINK_ORDER`). If the function is in a COMDAT group, the section is in the same
    /// group.
    pub const RECORDS: &str = "__llvm_mipraw";
    /// The name of the section with the map entries. The section is not allocated, and is linked to the section of the
    /// function's code. A program does not need this section to run, so it can be removed before the program is shipped
    /// (`strip -R`).
    pub const MAP: &str = "__llvm_mipmap";
    /// The name of the section with the sets of mode flags. It contains one 32-bit number for each distinct set of mode
    /// flags in the image. The section is allocated, read-only, aligned to 4 bytes, retained, and in a COMDAT group.
    /// The group's name consists of [`symbol::MODE_GROUP_PREFIX`](super::symbol::MODE_GROUP_PREFIX) and the flags as
    /// two hex digits. The run-time library needs the flags to know how to add up records.
    pub const MODES: &str = "__llvm_mipmode";
    /// The name of the section with the table of sampled calls, or with the ring of return-address samples. The section is
    /// allocated, writable and has no bytes in the file. It is in a COMDAT group, so that objects with tables of different
    /// sizes never share slots. The group's name consists of
    /// [`symbol::EDGES_GROUP_PREFIX`](super::symbol::EDGES_GROUP_PREFIX) and the number of slots in decimal.
    pub const RING: &str = "__llvm_mipring";
    /// The name of the Mach-O segment that contains all sections of MIP but the map.
    pub const MACHO_SEGMENT: &str = "__DATA";
    /// The name of the Mach-O segment that contains the map. `llvm-strip` removes the segment, as it holds nothing else but
    /// debug info. Linkers keep it, because its section does not have the attribute of debug info.
    pub const MACHO_MAP_SEGMENT: &str = "__DWARF";
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

/// The C names that the run-time library defines. All of them are hidden, so that each image of a process has its own
/// run-time library. In Mach-O, `_` is added before each name.
pub mod symbol {
    /// The name of the function `int __profkit_mip_dump(void)`, which writes the raw file of the calling image. The
    /// function returns 0. If an error occurs, it reports the error on stderr and returns −1.
    pub const DUMP: &str = "__profkit_mip_dump";
    /// The name of the function `int __profkit_mip_write(int (*function)(void *context, const void *bytes, size_t
    /// length), void *context)`. Only the variant of the run-time library that writes no files has this function. It
    /// passes the bytes of the raw file to `function`. The result is −1 if another call of `__profkit_mip_write` is
    /// running, and 0 if each call of `function` returns 0. Otherwise the result is the first value other than 0 that
    /// `function` returns.
    pub const WRITE: &str = "__profkit_mip_write";
    /// The name of the function `size_t __profkit_mip_size(void)`, which returns the size of the raw file in bytes.
    /// Only the variant of the run-time library that writes no files has this function.
    pub const SIZE: &str = "__profkit_mip_size";
    /// The name of the function `size_t __profkit_mip_copy(void *buffer, size_t size)`. Only the variant of the
    /// run-time library that writes no files has this function. It copies the raw file to the buffer and returns the
    /// size of the raw file. The result is 0 if the buffer is smaller than the raw file, or if another call of this
    /// function or of `__profkit_mip_write` is running.
    pub const COPY: &str = "__profkit_mip_copy";
    /// The name of the function `void __profkit_mip_reset(void)`, which sets all records, the samples and the ordinal
    /// to their start values.
    pub const RESET: &str = "__profkit_mip_reset";
    /// The name of the variable (`uint32_t`) with the ordinal for the next function that is called for the first time.
    /// Instrumented code atomically adds one to the variable.
    pub const ORDINAL: &str = "__profkit_mip_ordinal";
    /// The name of the variable (`uint32_t`) with the number of return-address samples in the ring. Objects of earlier
    /// releases add one to the variable, which may wrap around.
    pub const RING_NEXT: &str = "__profkit_mip_ring_next";
    /// The name of a variable of the run-time library to which instrumented objects refer. Because of this reference,
    /// the linker includes the run-time library in the program. The map's anchor entry contains the address of the
    /// variable.
    pub const HOOK: &str = "__profkit_mip_hook";
    /// The name of the COMDAT group of the map's anchor entry.
    pub const ANCHOR_GROUP: &str = "__profkit_mip_anchor";
    /// The prefix of the names of the COMDAT groups that contain the sections
    /// [`section::MODES`](super::section::MODES). For example, `__profkit_mip_mode_01` is the name of the group for
    /// function coverage.
    pub const MODE_GROUP_PREFIX: &str = "__profkit_mip_mode_";
    /// The prefix of the name of the COMDAT group of a table of sampled calls. The table's hidden symbol has the same name
    /// as the group. An example is `__profkit_mip_edges_4096`.
    pub const EDGES_GROUP_PREFIX: &str = "__profkit_mip_edges_";
    /// The prefix of the name of a ring's COMDAT group. The ring's hidden symbol has the same name as the group. An
    /// example is `__profkit_mip_ring_4096`.
    pub const RING_GROUP_PREFIX: &str = "__profkit_mip_ring_";
}

/// The name of the environment variable with the pattern of the raw file's name. In the pattern, `%p` means the process
/// id, `%h` the build id in hex, `%m` and `%1m` to `%9m` a merge pool, and `%%` a percent sign.
pub const ENV_FILE_NAME: &str = "LLVM_MIP_PROFILE_FILENAME";
/// The name of the environment variable with the number of a signal. Each image writes its raw file when the process
/// receives this signal.
pub const ENV_SIGNAL: &str = "PROFKIT_MIP_SIGNAL";

/// Constants of version 8, which has three layouts: A1, A2 and B. All have the same version number. In version 8,
/// profkit writes only profiles, and only in layout B.
pub mod v8 {
    /// The version number in the header of a version 8 file.
    pub const VERSION: u16 = 8;

    /// The offsets of the header fields that all layouts of version 8 share. Maps, raw files and the record section in
    /// memory begin with a header.
    pub mod header {
        /// The offset of a 32-bit field: the magic number [`MAGIC`](crate::mip::MAGIC).
        pub const MAGIC: usize = 0;
        /// The offset of a 16-bit field: the version number, which is 8.
        pub const VERSION: usize = 4;
        /// The offset of the 16-bit field with the file type. Its value is a [`file_type`](crate::mip::file_type) in
        /// layout B, and a [`file_type_a`](super::file_type_a) in layout A.
        pub const FILE_TYPE: usize = 6;
        /// The offset of a 32-bit field: the mode flags, bits 0 to 4 of [`mode`](crate::mip::mode).
        pub const MODES: usize = 8;
        /// The offset of the 32-bit field with the module hash, which is the low 32 bits of the MD5 of the name under
        /// which the image was linked. A raw file and its map have the same module hash.
        pub const MODULE_HASH: usize = 12;
        /// The size in bytes of the shared fields. The other fields of each layout follow them.
        pub const COMMON_SIZE: usize = 16;
    }

    /// The offsets of the other header fields of layout B. The header has 32 bytes.
    pub mod header_b {
        /// The offset of a field with the distance from this header to the start of the records. The field is signed.
        /// It has 64 bits for 64-bit targets. For 32-bit targets it has 32 bits, and four zero bytes follow. In raw
        /// files and profiles the distance is 0.
        pub const RAW_SECTION_OFFSET: usize = 16;
        /// The offset of a reserved 32-bit field, which is 0.
        pub const RESERVED: usize = 24;
        /// The offset of a 32-bit field: the size of the header, [`SIZE`].
        pub const OFFSET_TO_DATA: usize = 28;
        /// The size of the header in bytes, which is also the value of its last field.
        pub const SIZE: usize = 32;
    }

    /// The offsets of the other header fields of layouts A1 and A2. The header has 24 bytes.
    pub mod header_a {
        /// The offset of a field of 32 bits. In layout A1 the field is 0. In layout A2 the field is the distance from
        /// the map to the start of the records.
        pub const RAW_SECTION_OFFSET: usize = 16;
        /// The offset of a 32-bit field: the size of the header, [`SIZE`].
        pub const OFFSET_TO_DATA: usize = 20;
        /// The size of the header in bytes, which is also the value of its last field.
        pub const SIZE: usize = 24;
    }

    /// The file types of layout A. They are consecutive numbers. In layout B, each type is a bit.
    pub mod file_type_a {
        /// The file type of a raw file, which has the records of a process.
        pub const RAW: u16 = 1;
        /// The file type of a map, which has the list of functions.
        pub const MAP: u16 = 2;
        /// The file type of a profile, which is made from a map and raw files.
        pub const PROFILE: u16 = 3;
        /// The file type of a file of return-address samples.
        pub const RETURN_ADDRESSES: u16 = 4;
    }

    /// The offsets of the fields in a map entry of layout B for 64-bit targets. The name has no terminator. Entries are
    /// aligned, but the padding of the last entry may be missing at the end of the file.
    pub mod map_entry_b64 {
        /// The offset of a signed 64-bit field: the record's address minus the address of this entry.
        pub const RECORD: usize = 0;
        /// The offset of a signed 64-bit field: the function's address minus the address of this entry.
        pub const FUNCTION: usize = 8;
        /// The offset of a 32-bit field: the function's size in bytes.
        pub const FUNCTION_SIZE: usize = 16;
        /// The offset of a 32-bit field: the control-flow signature.
        pub const SIGNATURE: usize = 20;
        /// The offset of a 32-bit field: the number of blocks, not counting the entry block. After this field come
        /// three things: the offset of each of these blocks, in 32 bits each; the length of the name, in 32 bits; the
        /// name.
        pub const BLOCK_COUNT: usize = 24;
        /// The size in bytes of the fixed fields. The list of block offsets follows them.
        pub const FIXED_SIZE: usize = 28;
        /// The alignment of a map entry in bytes.
        pub const ALIGN: usize = 8;
    }

    /// The offsets of the fields in a map entry of layout B for 32-bit targets. Layout A2 has the same fields.
    pub mod map_entry_b32 {
        /// The offset of a signed 32-bit field: the record's address minus the address of this entry.
        pub const RECORD: usize = 0;
        /// The offset of a signed 32-bit field: the function's address minus the address of this entry.
        pub const FUNCTION: usize = 4;
        /// The offset of a 32-bit field: the function's size in bytes.
        pub const FUNCTION_SIZE: usize = 8;
        /// The offset of a 32-bit field: the control-flow signature.
        pub const SIGNATURE: usize = 12;
        /// The offset of a 32-bit field: the number of blocks, not counting the entry block. After this field come
        /// three things: the offset of each of these blocks, in 32 bits each; the length of the name, in 32 bits; the
        /// name.
        pub const BLOCK_COUNT: usize = 16;
        /// The size in bytes of the fixed fields. The list of block offsets follows them.
        pub const FIXED_SIZE: usize = 20;
        /// The alignment in bytes of a map entry in layout B. In layout A the alignment is 8.
        pub const ALIGN: usize = 4;
    }

    /// The offsets of the fields in a map entry of layout A1.
    pub mod map_entry_a1 {
        /// The offset of a signed 32-bit field: the address of the first record minus the address of this entry.
        pub const RAW_SECTION_START: usize = 0;
        /// The offset of a signed 32-bit field: the record's address minus the address of this entry.
        pub const RECORD: usize = 4;
        /// The offset of a signed 32-bit field: the function's address minus the address of this entry.
        pub const FUNCTION: usize = 8;
        /// The offset of a 32-bit field: the function's size in bytes.
        pub const FUNCTION_SIZE: usize = 12;
        /// The offset of a 32-bit field: the control-flow signature.
        pub const SIGNATURE: usize = 16;
        /// The offset of a 32-bit field: the number of blocks, not counting the entry block. After this field come
        /// three things: the offset of each of these blocks, in 32 bits each; the length of the name, in 32 bits; the
        /// name.
        pub const BLOCK_COUNT: usize = 20;
        /// The size in bytes of the fixed fields. The list of block offsets follows them.
        pub const FIXED_SIZE: usize = 24;
        /// The alignment of a map entry in bytes.
        pub const ALIGN: usize = 8;
    }
}

const _: () = {
    // Check that each field begins where the previous one ends, and that fields of 8 bytes are aligned.
    assert!(map_entry::MODE == map_entry::ENTRY_SIZE + 4);
    assert!(map_entry::FORM == map_entry::MODE + 2);
    assert!(map_entry::RECORD_ADDRESS == map_entry::FORM + 2);
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
    assert!(edge_table::SLOT_SIZE == edge_table::WEIGHT_OFFSET + 8);
    assert!(edge_table::WAITING_OFFSET == edge_table::LOCK_OFFSET + 4);
    assert!(record::SAMPLED_CALLS_SIZE == record::NEXT_SAMPLE_OFFSET + 8);

    assert!(v8::header_b::SIZE == v8::header_b::OFFSET_TO_DATA + 4);
    assert!(v8::header_a::SIZE == v8::header_a::OFFSET_TO_DATA + 4);
    assert!(v8::header_a::RAW_SECTION_OFFSET == v8::header::COMMON_SIZE);
    assert!(v8::header_b::RAW_SECTION_OFFSET == v8::header::COMMON_SIZE);
    assert!(v8::map_entry_b64::FIXED_SIZE == v8::map_entry_b64::BLOCK_COUNT + 4);
    assert!(v8::map_entry_b32::FIXED_SIZE == v8::map_entry_b32::BLOCK_COUNT + 4);
    assert!(v8::map_entry_a1::FIXED_SIZE == v8::map_entry_a1::BLOCK_COUNT + 4);
};
