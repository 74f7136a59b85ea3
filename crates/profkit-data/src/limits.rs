//! Limits on the time and memory that damaged or malicious files may cost. Each limit is a constant; the comment of the
//! constant explains the cost of a larger value.

/// The maximum size of one compressed names blob after decompression, as a multiple of its compressed size.
///
/// zlib cannot exceed about 1032:1, and the blobs of real programs stay below 20:1. Readers promise to use at most 4
/// times the size of the file plus 64 MiB. This holds because [`INFLATE_TOTAL_FLOOR`] limits all blobs of a file
/// together.
pub const INFLATE_RATIO: usize = 64;
/// The number of bytes to which a compressed names blob may always be decompressed, even if the blob is very small.
pub const INFLATE_FLOOR: usize = 1 << 20;
/// A part of the limit on the decompressed names of one file: all compressed names blobs of the file together may be
/// decompressed to 3 times the size of the file plus this number of bytes.
pub const INFLATE_TOTAL_FLOOR: usize = 48 << 20;
/// The maximum number of times that the reader of a damaged raw file searches for the next profile by its magic number.
/// If a malicious file consists only of headers, the time of each search is proportional to the size of the file.
pub const RAW_PROFILE_SEARCHES: usize = 64;
/// The maximum number of key bytes that are hashed while a damaged hash table is read, as a multiple of the size of its
/// items. Intact items need a factor of 2 or less; the rest is for keys with wrong lengths. Reading a malicious table
/// takes up to this number of passes over its bytes.
pub const WALK_HASHED: u64 = 16;
/// The maximum number of components of a path in a file path table, and of frames of a call stack in a stack entry
/// table. Linux paths have at most 2048 components, and MemProf call stacks have at most a few hundred frames. In a
/// malicious table, following one reference can take this number of steps.
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
/// The maximum number of times that the bytes of a sample section are read again to continue after damaged functions.
/// The start of each function comes from a table. In a malicious table, very many functions can extend to the end of
/// the section.
pub const SAMPLE_REREADS: usize = 8;
/// The maximum total number of frames of the call stacks of a MemProf section, per byte of the file. Call stacks share frames
/// in a tree, so a small malicious file can have many long call stacks. An allocation context of a real profile takes
/// about 40 bytes and has at most a few hundred frames.
pub const MEMPROF_FRAMES_PER_BYTE: usize = 64;
