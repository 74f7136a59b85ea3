//! The variant flags in the high bits of the version word (`VARIANT_MASK_*` in `InstrProfData.inc`).
//!
//! Up to LLVM 17 the top 8 bits were flags; since LLVM 18 the top 32 bits are. No LLVM release ever set bits 32 to 54,
//! so a reader can use the low 32 bits as the version number for all releases.

/// The bits of the version word that hold the version number.
pub const VERSION_MASK: u64 = 0x0000_0000_ffff_ffff;
/// The bits of the version word that hold flags.
pub const FLAGS_MASK: u64 = !VERSION_MASK;

/// Loop entries have counters (LLVM 21 and later).
pub const LOOP_ENTRIES: u64 = 1 << 55;
/// The counters were placed in LLVM IR (`VARIANT_MASK_IR_PROF`).
pub const IR: u64 = 1 << 56;
/// The profile is context-sensitive: LLVM IR was instrumented a second time, after inlining (`VARIANT_MASK_CSIR_PROF`,
/// LLVM 9). The flag [`IR`] is set too.
pub const CSIR: u64 = 1 << 57;
/// The entry block of every function has a counter, which is the first one of the function (`VARIANT_MASK_INSTR_ENTRY`,
/// LLVM 11).
pub const ENTRY_FIRST: u64 = 1 << 58;
/// The file has only counters. Names and function records must be taken from the program's debug info
/// (`VARIANT_MASK_DBG_CORRELATE`, LLVM 14).
pub const DBG_CORRELATE: u64 = 1 << 59;
/// Each counter is one byte (`VARIANT_MASK_BYTE_COVERAGE`, LLVM 14).
pub const BYTE_COVERAGE: u64 = 1 << 60;
/// Only function entries have counters (`VARIANT_MASK_FUNCTION_ENTRY_ONLY`, LLVM 14).
pub const FUNCTION_ENTRY_ONLY: u64 = 1 << 61;
/// The indexed profile has a MemProf section (`VARIANT_MASK_MEMPROF`, LLVM 15).
pub const MEMPROF: u64 = 1 << 62;
/// The raw profile has time stamps of functions, or the indexed profile has temporal traces
/// (`VARIANT_MASK_TEMPORAL_PROF`, LLVM 17).
pub const TEMPORAL: u64 = 1 << 63;
