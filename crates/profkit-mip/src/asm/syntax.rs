//! What an assembler's language must tell before a statement can be understood: comments, separators, local labels.

/// The format of the object file that the assembler writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// ELF.
    Elf,
    /// Mach-O.
    MachO,
}

/// Comments, separators and local labels of one target. Facts of GNU as: its manual, "Comments" and "Statements" and
/// the pages of the targets; of clang: what `llvm-mc` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// Begins a comment wherever it stands outside of strings.
    pub comments: &'static [&'static str],
    /// Begins a comment at the start of a line only.
    pub line_comments: &'static [&'static str],
    /// Ends a statement within a line.
    pub separator: &'static str,
    /// Prefix of labels that do not get into the symbol table.
    pub local_prefix: &'static str,
    /// Prefix of labels of data that linkers may drop piece by piece and that the final symbol table does not get.
    /// Mach-O has a prefix of its own for these: data after a label of the first kind belongs to the symbol before it.
    pub data_prefix: &'static str,
    /// The object format, which decides what section directives mean.
    pub format: ObjectFormat,
}

impl Syntax {
    /// x86 with ELF.
    pub const X86_ELF: Syntax = Syntax {
        comments: &["#", "//"],
        line_comments: &["#", "/"],
        separator: ";",
        local_prefix: ".L",
        data_prefix: ".L",
        format: ObjectFormat::Elf,
    };

    /// AArch64 with ELF.
    pub const AARCH64_ELF: Syntax = Syntax {
        comments: &["//"],
        line_comments: &["#"],
        separator: ";",
        local_prefix: ".L",
        data_prefix: ".L",
        format: ObjectFormat::Elf,
    };

    /// 32-bit Arm with ELF. `#` begins an operand, so it is a comment at the start of a line only.
    pub const ARM_ELF: Syntax = Syntax {
        comments: &["@", "//"],
        line_comments: &["#"],
        separator: ";",
        local_prefix: ".L",
        data_prefix: ".L",
        format: ObjectFormat::Elf,
    };

    /// x86 with Mach-O.
    pub const X86_MACHO: Syntax = Syntax {
        comments: &["#", "//"],
        line_comments: &["#"],
        separator: ";",
        local_prefix: "L",
        data_prefix: "l_",
        format: ObjectFormat::MachO,
    };

    /// AArch64 with Mach-O.
    pub const AARCH64_MACHO: Syntax = Syntax {
        comments: &[";", "//"],
        line_comments: &["#"],
        separator: "%%",
        local_prefix: "L",
        data_prefix: "l_",
        format: ObjectFormat::MachO,
    };
}
