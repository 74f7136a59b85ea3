//! What hostile input may cost. Every limit that a reader enforces stands here, by name, with what raising it costs.

/// The most bytes that one compressed names blob may inflate to, as a multiple of its compressed size.
///
/// zlib cannot exceed about 1032:1, and real name blobs stay below 20:1. The readers' promise of "4 × the file's size
/// plus 64 MiB" holds because [`INFLATE_FLOOR`] is the only part that does not scale with the file.
pub const INFLATE_RATIO: usize = 64;
/// A names blob may always inflate to this many bytes, however small it is.
pub const INFLATE_FLOOR: usize = 1 << 20;
/// The most bytes that all compressed blobs of one file may inflate to together, beyond 3 × the file's size.
pub const INFLATE_TOTAL_FLOOR: usize = 48 << 20;
/// How often the reader of a damaged raw file searches for the next profile by its magic. A hostile file of headers
/// alone costs its size in time for each search.
pub const RAW_PROFILE_SEARCHES: usize = 64;
/// How many bytes of keys may be hashed to read a damaged hash table, as a multiple of its payload: sound items need at
/// most two, wrong lengths of keys make up the rest. A hostile table costs this many times its size in time.
pub const WALK_HASHED: u64 = 16;
/// How many components a path of a file path table, and how many frames a stack of a stack entry table may have.
/// Paths of Linux have at most 2048 components, and MemProf stacks at most some hundreds of frames. A hostile table
/// costs, for each number that leads into it, so many steps.
pub const TABLE_DEPTH: u16 = 4096;
/// How deep functions may be inlined in one another in a sample profile of any encoding. Real profiles stay below 100. Readers, writers
/// and merging recurse so deep: each level costs some hundreds of bytes of stack.
pub const SAMPLE_INLINE_DEPTH: usize = 512;
/// How many frames a calling context of a sample profile may have.
pub const SAMPLE_CONTEXT_DEPTH: usize = 4096;
/// The most bytes that a compressed section of a sample profile may inflate to, as a multiple of its size. zlib cannot
/// exceed 1032:1, and sections of real profiles stay below 40:1.
pub const SAMPLE_INFLATE_RATIO: usize = 128;
/// How many faults of one damaged sample profile are kept; further ones are counted.
pub const SAMPLE_FAULTS: usize = 16;
/// How often the bytes of a section of samples may be read again to go on after damaged functions: their starts come
/// from a table, which may name very many that each run to the end.
pub const SAMPLE_REREADS: usize = 8;
/// How many frames the call stacks of a MemProf section may have together, for each byte of the file: the
/// tree shares frames, so that stacks of a hostile file can be long and many. Contexts of real profiles take some 40
/// bytes and have at most some hundreds of frames.
pub const MEMPROF_FRAMES_PER_BYTE: usize = 64;
