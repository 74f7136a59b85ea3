//! Names of the linker sections that hold profile data (`INSTR_PROF_*_COMMON` and `INSTR_PROF_*_COFF` in
//! `InstrProfData.inc`). Mach-O uses the ELF spelling in segment `__DATA`, or `__LLVM_COV` for the coverage mapping.

/// One section's name in each object format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionName {
    /// ELF, WebAssembly and (after the segment) Mach-O.
    pub elf: &'static str,
    /// COFF, with the grouping suffix that objects use; a linked image drops `$` and what follows.
    pub coff: &'static str,
}

/// Data records, one per function.
pub const DATA: SectionName = SectionName {
    elf: "__llvm_prf_data",
    coff: ".lprfd$M",
};
/// Counters.
pub const COUNTERS: SectionName = SectionName {
    elf: "__llvm_prf_cnts",
    coff: ".lprfc$M",
};
/// MC/DC bitmaps.
pub const BITMAP: SectionName = SectionName {
    elf: "__llvm_prf_bits",
    coff: ".lprfb$M",
};
/// Function names.
pub const NAMES: SectionName = SectionName {
    elf: "__llvm_prf_names",
    coff: ".lprfn$M",
};
/// Virtual-table names.
pub const VTABLE_NAMES: SectionName = SectionName {
    elf: "__llvm_prf_vns",
    coff: ".lprfvn$M",
};
/// Virtual-table records.
pub const VTABLES: SectionName = SectionName {
    elf: "__llvm_prf_vtab",
    coff: ".lprfvt$M",
};
/// Records of a build whose profiles are correlated with the binary.
pub const COV_DATA: SectionName = SectionName {
    elf: "__llvm_covdata",
    coff: ".lcovd",
};
/// Names of a build whose profiles are correlated with the binary.
pub const COV_NAMES: SectionName = SectionName {
    elf: "__llvm_covnames",
    coff: ".lcovn",
};
