//! Limits on the time and memory that damaged or malicious recordings may cost.

/// The largest number of bytes of records that one thread decodes at a time (a chunk). A chunk ends where a record
/// ends, so it may be shorter.
pub const CHUNK: usize = 8 << 20;
/// The maximum size of the decompressed records, as a multiple of the size of the compressed records. Recordings of
/// branch stacks compress best, at about 30:1.
pub const INFLATE_RATIO: u64 = 128;
/// The number of bytes to which the records may be decompressed in any case, even if the recording is very small. The
/// records are decompressed one chunk at a time, so this costs time but no memory.
pub const INFLATE_FLOOR: u64 = 256 << 20;
/// The maximum number of pieces of address spaces for all processes together. A piece is a range of addresses to which
/// the same mappings apply. It takes about 40 bytes. A mapping of a real process makes one piece, or more pieces if it
/// covers earlier mappings.
pub const MAP_PIECES: usize = 16 << 20;
/// The limit for the work of adding mappings: the number of existing address-space pieces that each new mapping covers,
/// summed up over all mappings. In a real process, a mapping covers few pieces. In a malicious recording, each of many
/// mappings may cover each of many pieces.
pub const MAP_COVERS: usize = 64 << 20;
/// The maximum total size, in bytes, of the records about mappings, names and forks of processes; in a text, of the
/// lines about mappings. These records are stored. Most of their bytes are paths and names. Recordings of whole
/// machines have some megabytes of them. A malicious recording with compressed records can repeat long paths at no
/// cost.
pub const CHANGE_BYTES: usize = 1 << 30;
/// The maximum length of the name of a process, in bytes. The kernel cuts names to 15 bytes.
pub const PROCESS_NAME: usize = 64;
/// The maximum number of forks (parent, parent of the parent, …) that are followed to find the mappings that a process
/// has inherited.
pub const FORK_DEPTH: usize = 256;
/// The maximum number of events in a recording. Real recordings have at most some thousands, on machines with many
/// kinds of counters.
pub const EVENTS: usize = 1 << 16;
