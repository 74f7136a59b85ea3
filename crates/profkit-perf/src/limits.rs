//! Limits on the time and memory that damaged or malicious recordings may cost.

/// The number of bytes of records that one thread decodes at a time. Chunks end where a record ends, so a chunk can be
/// shorter.
pub const CHUNK: usize = 8 << 20;
/// The maximum size of the records after decompression, as a multiple of their compressed size. Recordings of branch
/// stacks, which repeat themselves most, reach about 30:1.
pub const INFLATE_RATIO: u64 = 128;
/// The number of bytes to which the records may always be decompressed, even if the recording is very small. Records are
/// decompressed one chunk at a time, so this costs time and no memory.
pub const INFLATE_FLOOR: u64 = 256 << 20;
/// The maximum number of pieces of address spaces in all processes together. A piece takes about 40 bytes. A mapping of
/// a real process makes one piece; it makes more only if it covers earlier mappings.
pub const MAP_PIECES: usize = 16 << 20;
/// The maximum number of pieces that all mappings together may cover, each counted as often as it is covered. The mappings
/// of a real process cover few others. In a malicious recording each of many mappings covers all of many pieces.
pub const MAP_COVERS: usize = 64 << 20;
/// The maximum number of bytes of paths and names in the records about processes. Recordings of whole machines have some
/// megabytes. Compressed records can repeat long paths at no cost.
pub const CHANGE_BYTES: usize = 1 << 30;
/// The maximum length of the name of a process, in bytes. The kernel cuts names to 15.
pub const PROCESS_NAME: usize = 64;
/// The maximum number of forks that are followed to find the mappings which a process has from its ancestors.
pub const FORK_DEPTH: usize = 256;
/// The maximum number of events of a recording. perf itself has at most some thousands, on machines with many kinds of
/// counters.
pub const EVENTS: usize = 1 << 16;
