//! The raw instrumentation profile (.profraw): magics and version numbers (`INSTR_PROF_RAW_MAGIC_64`, `…_32`,
//! `INSTR_PROF_RAW_VERSION` in `InstrProfData.inc`). Header and record layouts by version are in `profkit-data`,
//! beside the code that branches on them; docs/formats/raw.md has the tables.

/// Magic of a 64-bit producer, as a number in the producer's byte order.
pub const MAGIC_64: u64 = 0xff6c_7072_6f66_7281;
/// Magic of a 32-bit producer, as a number in the producer's byte order.
pub const MAGIC_32: u64 = 0xff6c_7072_6f66_5281;
/// Oldest raw version (LLVM 3.5).
pub const VERSION_FIRST: u32 = 1;
/// Newest raw version that this crate knows (LLVM 23, main in 2026).
pub const VERSION_LAST: u32 = 11;
/// The raw version that LLVM 19 to 22 write.
pub const VERSION_LLVM_22: u32 = 10;
/// A counter above this suggests a damaged file (`RawInstrProfReader`'s `MaxCounterValue`).
pub const MAX_PLAUSIBLE_COUNT: u64 = 1 << 56;
/// Bit of `FuncHash` that marks a record of the context-sensitive stage (raw version 5 and later).
pub const CS_FUNC_HASH_BIT: u64 = 1 << 60;
