//! Constants of the indexed instrumentation profile (.profdata). The source is `IndexedInstrProf` in LLVM's
//! `InstrProf.h`. All numbers in this format are little-endian.

/// The magic number: the first eight bytes `ff 6c 70 72 6f 66 69 81`, read as a little-endian number.
pub const MAGIC: u64 = 0x8169_666f_7270_6cff;
/// The oldest version of the format (LLVM 3.5).
pub const VERSION_FIRST: u32 = 1;
/// The newest version of the format (LLVM 23).
pub const VERSION_LAST: u32 = 14;
/// The version that profkit writes by default, which is the version of LLVM 22. LLVM 23 reads it too. Version 14 adds
/// only data of GPU programs. profkit writes version 14 only if the profile contains such data or the user requests it.
pub const VERSION_DEFAULT: u32 = 13;
/// The hash type of all indexed profiles: the low 64 bits of the MD5.
pub const HASH_TYPE_MD5: u64 = 0;
/// The count that marks a function record as pseudo-hot. It is stored as the first counter of the record.
pub const PSEUDO_HOT: u64 = u64::MAX;
/// The count that marks a function record as pseudo-warm. It is stored as the first counter of the record.
pub const PSEUDO_WARM: u64 = u64::MAX - 1;
/// The largest ordinary count (`getInstrMaxCountValue`). The two larger values mark pseudo-hot and pseudo-warm records.
pub const MAX_COUNT: u64 = u64::MAX - 2;
/// The default cutoffs of the detailed summary, in millionths of all counts (`ProfileSummaryBuilder::DefaultCutoffs`).
pub const SUMMARY_CUTOFFS: [u32; 16] = [
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
    950_000, 990_000, 999_000, 999_900, 999_990, 999_999,
];
