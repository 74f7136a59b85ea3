//! Limits on the time and memory that reading a damaged or malicious file may take. Each limit is a constant; its
//! comment says why the limit is needed and what real files have.

/// The maximum size of one compressed names blob after decompression, as a multiple of its compressed size.
///
/// zlib cannot exceed about 1032:1, and the blobs of real programs stay below 20:1. Readers promise to use at most 64
/// MiB of memory plus 4 times the size of the file. This limit alone does not ensure that, so [`INFLATE_TOTAL_FLOOR`]
/// limits the total size of all decompressed blobs of a file.
pub const INFLATE_RATIO: usize = 64;
/// The number of bytes to which a compressed names blob may always be decompressed, even if the blob is very small.
pub const INFLATE_FLOOR: usize = 1 << 20;
/// The fixed part of the limit on the decompressed names of one file. All names blobs of a file together may have at
/// most 3 times the size of the file plus this number of bytes after decompression.
pub const INFLATE_TOTAL_FLOOR: usize = 48 << 20;
/// The maximum number of times that the reader of a damaged raw file searches for the next profile by its magic number.
/// In a malicious file that consists of headers, one search and the reading of the profile that it finds can take time
/// proportional to the size of the file.
pub const RAW_PROFILE_SEARCHES: usize = 64;
/// The maximum number of key bytes that are hashed while a damaged hash table is read, as a multiple of the size of its
/// items. For intact items a factor of 2 is enough, because each key is hashed at most twice; the higher factor allows
/// for keys with wrong lengths. Reading a malicious table takes up to this number of passes over its bytes.
pub const WALK_HASHED: u64 = 16;
/// The maximum depth of a chain of references in a table: the number of components of a path in a file path table, or
/// the number of frames of a call stack in a stack entry table. Linux paths have at most 2048 components, and MemProf
/// call stacks have at most a few hundred frames. In a malicious table, following one reference can take this number of
/// steps.
pub const TABLE_DEPTH: u16 = 4096;
/// The maximum nesting depth of inlined functions in a sample profile, in every encoding. Real profiles stay below 100.
/// Readers, writers and merges recurse to this depth, and each level takes some hundreds of bytes of the program's
/// stack.
pub const SAMPLE_INLINE_DEPTH: usize = 512;
/// The maximum number of frames of a calling context in a sample profile.
pub const SAMPLE_CONTEXT_DEPTH: usize = 4096;
/// The maximum size of a compressed section of a sample profile after decompression, as a multiple of its compressed
/// size. zlib cannot exceed 1032:1, and the sections of real profiles stay below 40:1.
pub const SAMPLE_INFLATE_RATIO: usize = 128;
/// The maximum number of errors that are kept for one damaged sample profile. Further errors are only counted.
pub const SAMPLE_FAULTS: usize = 16;
/// The maximum number of bytes of damaged functions that are decoded in a sample section, as a multiple of the size of
/// the section. After a damaged function, reading continues at the start of the next function, which a table states. In
/// a malicious file, very many damaged functions can extend to the end of the section. Without the limit, the same
/// bytes would be decoded once per function.
pub const SAMPLE_REREADS: usize = 8;
/// The maximum total number of frames of the call stacks of a MemProf section, per byte of the file. Call stacks share
/// frames in a tree, so a small malicious file can have many long call stacks. In a real profile, an allocation context
/// takes about 40 bytes and has at most a few hundred frames, so there are at most about 10 frames per byte.
pub const MEMPROF_FRAMES_PER_BYTE: usize = 64;
