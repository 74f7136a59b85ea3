//! The variant flags in the high bits of the version word (`VARIANT_MASK_*` in `InstrProfData.inc`).
//!
//! Up to LLVM 17, the top 8 bits of the word were flags. Since LLVM 18, the top 32 bits are flags. No LLVM release ever
//! set bits 32 to 54, so readers can use the low 32 bits as the version number for all releases.

/// The bits of the version word that hold the version number.
pub const VERSION_MASK: u64 = 0x0000_0000_ffff_ffff;
/// The bits of the version word that hold flags.
pub const FLAGS_MASK: u64 = !VERSION_MASK;

/// Flag: loop entries have counters (LLVM 21 and later).
pub const LOOP_ENTRIES: u64 = 1 << 55;
/// Flag: the counters were placed in LLVM IR (`VARIANT_MASK_IR_PROF`).
pub const IR: u64 = 1 << 56;
/// Flag: the profile is context-sensitive. LLVM IR was instrumented a second time, after inlining
/// (`VARIANT_MASK_CSIR_PROF`, LLVM 9). The flag [`IR`] is set too.
pub const CSIR: u64 = 1 << 57;
/// Flag: the entry block of every function has a counter, which is the function's first counter
/// (`VARIANT_MASK_INSTR_ENTRY`, LLVM 11).
pub const ENTRY_FIRST: u64 = 1 << 58;
/// Flag: the file has only counters. Names and function records must be taken from the program's debug info
/// (`VARIANT_MASK_DBG_CORRELATE`, LLVM 14).
pub const DBG_CORRELATE: u64 = 1 << 59;
/// Flag: each counter is one byte (`VARIANT_MASK_BYTE_COVERAGE`, LLVM 14).
pub const BYTE_COVERAGE: u64 = 1 << 60;
/// Flag: only function entries have counters (`VARIANT_MASK_FUNCTION_ENTRY_ONLY`, LLVM 14).
pub const FUNCTION_ENTRY_ONLY: u64 = 1 << 61;
/// Flag: the indexed profile has a MemProf section (`VARIANT_MASK_MEMPROF`, LLVM 15).
pub const MEMPROF: u64 = 1 << 62;
/// Flag: the raw profile has time stamps of functions, or the indexed profile has temporal traces
/// (`VARIANT_MASK_TEMPORAL_PROF`, LLVM 17).
pub const TEMPORAL: u64 = 1 << 63;
