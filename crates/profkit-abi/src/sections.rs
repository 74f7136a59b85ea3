//! The names of the linker sections that hold profile data (`INSTR_PROF_*_COMMON` and `INSTR_PROF_*_COFF` in
//! `InstrProfData.inc`). Mach-O uses the same section names as ELF. The Mach-O segment is `__LLVM_COV` for the sections
//! of the coverage mapping, and `__DATA` for all others.

/// The name of a section in each object format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionName {
    /// The section name in ELF and WebAssembly. Mach-O uses the same name, with the segment before it.
    pub elf: &'static str,
    /// The section name in COFF objects. It ends with `$` and a suffix by which the linker sorts the sections. In a
    /// linked program, the section has the name without the `$` and the suffix.
    pub coff: &'static str,
}

/// The names of the section with the data records. Each function has one record.
pub const DATA: SectionName = SectionName {
    elf: "__llvm_prf_data",
    coff: ".lprfd$M",
};
/// The names of the section with the counters.
pub const COUNTERS: SectionName = SectionName {
    elf: "__llvm_prf_cnts",
    coff: ".lprfc$M",
};
/// The names of the section with the MC/DC bitmaps.
pub const BITMAP: SectionName = SectionName {
    elf: "__llvm_prf_bits",
    coff: ".lprfb$M",
};
/// The names of the section with the function names.
pub const NAMES: SectionName = SectionName {
    elf: "__llvm_prf_names",
    coff: ".lprfn$M",
};
/// The names of the section with the names of virtual tables.
pub const VTABLE_NAMES: SectionName = SectionName {
    elf: "__llvm_prf_vns",
    coff: ".lprfvn$M",
};
/// The names of the section with the records of virtual tables.
pub const VTABLES: SectionName = SectionName {
    elf: "__llvm_prf_vtab",
    coff: ".lprfvt$M",
};
/// The names of the section with the data records in programs built with `-profile-correlate=binary`.
pub const COV_DATA: SectionName = SectionName {
    elf: "__llvm_covdata",
    coff: ".lcovd",
};
/// The names of the section with the function names in programs built with `-profile-correlate=binary`.
pub const COV_NAMES: SectionName = SectionName {
    elf: "__llvm_covnames",
    coff: ".lcovn",
};
