//! The names of the linker sections that hold profile data (`INSTR_PROF_*_COMMON` and `INSTR_PROF_*_COFF` in
//! `InstrProfData.inc`). Mach-O uses the names of ELF in segment `__DATA`, or `__LLVM_COV` for the coverage mapping.

/// The name of one section in each object format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionName {
    /// The name in ELF, in WebAssembly and, after the segment, in Mach-O.
    pub elf: &'static str,
    /// The name in COFF objects, with a suffix for grouping. In a linked image, the name ends before the `$`.
    pub coff: &'static str,
}

/// The data records, one per function.
pub const DATA: SectionName = SectionName {
    elf: "__llvm_prf_data",
    coff: ".lprfd$M",
};
/// The counters.
pub const COUNTERS: SectionName = SectionName {
    elf: "__llvm_prf_cnts",
    coff: ".lprfc$M",
};
/// The MC/DC bitmaps.
pub const BITMAP: SectionName = SectionName {
    elf: "__llvm_prf_bits",
    coff: ".lprfb$M",
};
/// The names of functions.
pub const NAMES: SectionName = SectionName {
    elf: "__llvm_prf_names",
    coff: ".lprfn$M",
};
/// The names of virtual tables.
pub const VTABLE_NAMES: SectionName = SectionName {
    elf: "__llvm_prf_vns",
    coff: ".lprfvn$M",
};
/// The records of virtual tables.
pub const VTABLES: SectionName = SectionName {
    elf: "__llvm_prf_vtab",
    coff: ".lprfvt$M",
};
/// The data records in builds whose profiles are correlated with the binary.
pub const COV_DATA: SectionName = SectionName {
    elf: "__llvm_covdata",
    coff: ".lcovd",
};
/// The names in builds whose profiles are correlated with the binary.
pub const COV_NAMES: SectionName = SectionName {
    elf: "__llvm_covnames",
    coff: ".lcovn",
};
