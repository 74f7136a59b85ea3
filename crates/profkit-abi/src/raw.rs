//! Constants of the raw instrumentation profile (.profraw): magic numbers and version numbers
//! (`INSTR_PROF_RAW_MAGIC_64`, `…_32`, `INSTR_PROF_RAW_VERSION` in `InstrProfData.inc`). The layouts of headers and
//! records in each version are in the crate `profkit-data`, next to the code that reads them; [docs/formats/raw.md] has
//! the tables.
//!
//! [docs/formats/raw.md]: https://github.com/profkit/profkit/blob/main/docs/formats/raw.md

/// The magic number of a file that a 64-bit program wrote, in the byte order of that program.
pub const MAGIC_64: u64 = 0xff6c_7072_6f66_7281;
/// The magic number of a file that a 32-bit program wrote, in the byte order of that program.
pub const MAGIC_32: u64 = 0xff6c_7072_6f66_5281;
/// The oldest version of the raw format (LLVM 3.5).
pub const VERSION_FIRST: u32 = 1;
/// The newest raw version that this crate supports (LLVM 23, main in 2026).
pub const VERSION_LAST: u32 = 11;
/// The raw version that LLVM 19, 20, 21 and 22 write.
pub const VERSION_LLVM_22: u32 = 10;
/// The largest plausible count. A counter with a larger value is a sign of a damaged file (`MaxCounterValue` of
/// `RawInstrProfReader`).
pub const MAX_PLAUSIBLE_COUNT: u64 = 1 << 56;
/// The bit of `FuncHash` that marks a function record as context-sensitive. Raw versions from 5 on have it.
pub const CS_FUNC_HASH_BIT: u64 = 1 << 60;
