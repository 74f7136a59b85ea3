//! Limits on what hostile input may cost. Every limit that a reader enforces stands here under its own name, with the
//! cost of raising it.

/// The maximum inflated size of one compressed names blob, as a multiple of its compressed size.
///
/// zlib cannot exceed about 1032:1, and the blobs of real programs stay below 20:1. Readers promise to use at most 4
/// times the size of the file plus 64 MiB; that holds because [`INFLATE_TOTAL_FLOOR`] limits all blobs of a file
/// together.
pub const INFLATE_RATIO: usize = 64;
/// A names blob may always inflate to this number of bytes, however small it is.
pub const INFLATE_FLOOR: usize = 1 << 20;
/// The maximum inflated size of all compressed blobs of one file together is 3 times the size of the file plus this.
pub const INFLATE_TOTAL_FLOOR: usize = 48 << 20;
/// The maximum number of times that the reader of a damaged raw file searches for the next profile by its magic. With a
/// hostile file that consists of headers only, each search takes time proportional to the size of the file.
pub const RAW_PROFILE_SEARCHES: usize = 64;
/// The maximum number of key bytes that are hashed while a damaged hash table is read, as a multiple of the size of its
/// payload. Intact items need at most a factor of 2; the rest is for keys with wrong lengths. Reading a hostile table
/// takes up to this number of passes over its bytes.
pub const WALK_HASHED: u64 = 16;
/// The maximum number of components of a path in a file path table, and of frames of a stack in a stack entry table.
/// Linux paths have at most 2048 components, and MemProf stacks have at most some hundreds of frames. Each reference
/// into a hostile table costs up to this number of steps.
pub const TABLE_DEPTH: u16 = 4096;
/// The maximum depth of functions inlined into one another in a sample profile, in every encoding. Real profiles stay
/// below 100. Readers, writers and merging recurse to this depth, and each level takes some hundreds of bytes of stack.
pub const SAMPLE_INLINE_DEPTH: usize = 512;
/// The maximum number of frames of a calling context in a sample profile.
pub const SAMPLE_CONTEXT_DEPTH: usize = 4096;
/// The maximum inflated size of a compressed section of a sample profile, as a multiple of its compressed size. zlib
/// cannot exceed 1032:1, and the sections of real profiles stay below 40:1.
pub const SAMPLE_INFLATE_RATIO: usize = 128;
/// The maximum number of faults that are kept for one damaged sample profile. Further faults are only counted.
pub const SAMPLE_FAULTS: usize = 16;
/// The maximum number of times that the bytes of a sample section are read again to continue after damaged functions.
/// The function starts come from a table, and a hostile table may list a great number of functions that all run to the
/// end of the section.
pub const SAMPLE_REREADS: usize = 8;
/// The maximum number of frames in all call stacks of a MemProf section together, per byte of the file. Stacks share
/// frames in a tree, so a small hostile file can hold many long stacks. Contexts of real profiles take about 40 bytes
/// and have at most some hundreds of frames.
pub const MEMPROF_FRAMES_PER_BYTE: usize = 64;
