//! The kinds of value profiling (`VALUE_PROF_KIND` in `InstrProfData.inc`).

/// The value kind of indirect calls. The values identify the call targets. Raw files contain the addresses of the
/// targets. All other formats contain the low 64 bits of the MD5 of the targets' names.
pub const INDIRECT_CALL_TARGET: u32 = 0;
/// The value kind of memory intrinsics (since LLVM 5). The values are the sizes in bytes that the program passes to the
/// intrinsics.
pub const MEM_OP_SIZE: u32 = 1;
/// The value kind of virtual calls (since LLVM 19). The values are the virtual tables that were used.
pub const VTABLE_TARGET: u32 = 2;
/// The number of value kinds that LLVM has.
pub const COUNT: usize = 3;
/// The maximum number of values that a value site may have (`INSTR_PROF_MAX_NUM_VAL_PER_SITE`).
pub const MAX_VALUES_PER_SITE: usize = 255;
