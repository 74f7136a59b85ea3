//! The kinds of value profiling (`VALUE_PROF_KIND` in `InstrProfData.inc`).

/// The targets of an indirect call site. Raw files hold their addresses, all other formats the low 64 bits of the MD5
/// of their names.
pub const INDIRECT_CALL_TARGET: u32 = 0;
/// The sizes passed to memory intrinsics (LLVM 5).
pub const MEM_OP_SIZE: u32 = 1;
/// The virtual tables seen at a virtual call site (LLVM 19).
pub const VTABLE_TARGET: u32 = 2;
/// The number of kinds.
pub const COUNT: usize = 3;
/// The maximum number of values that a site may hold (`INSTR_PROF_MAX_NUM_VAL_PER_SITE`).
pub const MAX_VALUES_PER_SITE: usize = 255;
