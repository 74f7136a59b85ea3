//! Value profiling kinds (`VALUE_PROF_KIND` in `InstrProfData.inc`).

/// Targets of an indirect call site. Raw files hold addresses, all others MD5 low-64 name hashes.
pub const INDIRECT_CALL_TARGET: u32 = 0;
/// Sizes given to memory intrinsics (LLVM 5).
pub const MEM_OP_SIZE: u32 = 1;
/// Virtual tables seen at a virtual call site (LLVM 19).
pub const VTABLE_TARGET: u32 = 2;
/// How many kinds there are.
pub const COUNT: usize = 3;
/// `INSTR_PROF_MAX_NUM_VAL_PER_SITE`: the most values that a site may hold.
pub const MAX_VALUES_PER_SITE: usize = 255;
