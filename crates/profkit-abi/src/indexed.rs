//! The indexed instrumentation profile (.profdata), always little-endian (`IndexedInstrProf` in `InstrProf.h`).

/// The first eight bytes, read as a little-endian number: bytes `ff 6c 70 72 6f 66 69 81`.
pub const MAGIC: u64 = 0x8169_666f_7270_6cff;
/// The oldest version (LLVM 3.5).
pub const VERSION_FIRST: u32 = 1;
/// The newest version whose whole layout is known (LLVM 22).
pub const VERSION_LAST: u32 = 13;
/// A version that is known by its header only (LLVM 23, main in 2026).
pub const VERSION_HEADER_ONLY: u32 = 14;
/// The only value of `HashType`: the low 64 bits of the MD5.
pub const HASH_TYPE_MD5: u64 = 0;
/// The first counter of a pseudo-hot record.
pub const PSEUDO_HOT: u64 = u64::MAX;
/// The first counter of a pseudo-warm record.
pub const PSEUDO_WARM: u64 = u64::MAX - 1;
/// The largest count of an ordinary record (`getInstrMaxCountValue`). The two greater values are the pseudo markers.
pub const MAX_COUNT: u64 = u64::MAX - 2;
/// The cutoffs of the detailed summary, in millionths (`ProfileSummaryBuilder::DefaultCutoffs`).
pub const SUMMARY_CUTOFFS: [u32; 16] = [
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
    950_000, 990_000, 999_000, 999_900, 999_990, 999_999,
];
