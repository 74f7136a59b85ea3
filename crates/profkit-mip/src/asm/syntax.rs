//! The syntax of the assembly language, which differs between targets: comments, separators, local labels.

/// The format of the object file that the assembler writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// The assembler writes ELF objects.
    Elf,
    /// The assembler writes Mach-O objects.
    MachO,
}

/// The syntax for one target. Sources: the manual of GNU as ("Comments", "Statements", targets); tests with `llvm-mc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// The texts that begin a comment anywhere outside of strings.
    pub comments: &'static [&'static str],
    /// The texts that begin a comment only at the start of a line.
    pub line_comments: &'static [&'static str],
    /// The text that separates statements within a line.
    pub separator: &'static str,
    /// The prefix of labels that assemblers do not write to the symbol table.
    pub local_prefix: &'static str,
    /// The prefix of labels at which a linker may split a section to remove unused data. They are not in the final
    /// symbol table. In Mach-O, a label with the local prefix splits nothing.
    pub data_prefix: &'static str,
    /// The object format, which decides the meaning of section directives.
    pub format: ObjectFormat,
}

impl Syntax {
    /// The assembly syntax for x86 with ELF.
    pub const X86_ELF: Syntax = Syntax {
        comments: &["#", "//"],
        line_comments: &["#", "/"],
        separator: ";",
        local_prefix: ".L",
        data_prefix: ".L",
        format: ObjectFormat::Elf,
    };

    /// The assembly syntax for AArch64 with ELF.
    pub const AARCH64_ELF: Syntax = Syntax {
        comments: &["//"],
        line_comments: &["#"],
        separator: ";",
        local_prefix: ".L",
        data_prefix: ".L",
        format: ObjectFormat::Elf,
    };

    /// 32-bit Arm with ELF. `#` begins an operand, so it begins a comment only at the start of a line.
    pub const ARM_ELF: Syntax = Syntax {
        comments: &["@", "//"],
        line_comments: &["#"],
        separator: ";",
        local_prefix: ".L",
        data_prefix: ".L",
        format: ObjectFormat::Elf,
    };

    /// The assembly syntax for x86 with Mach-O.
    pub const X86_MACHO: Syntax = Syntax {
        comments: &["#", "//"],
        line_comments: &["#"],
        separator: ";",
        local_prefix: "L",
        data_prefix: "l_",
        format: ObjectFormat::MachO,
    };

    /// The assembly syntax for 32-bit Arm with Mach-O.
    pub const ARM_MACHO: Syntax = Syntax {
        comments: &["@", "//"],
        line_comments: &["#"],
        separator: ";",
        local_prefix: "L",
        data_prefix: "l_",
        format: ObjectFormat::MachO,
    };

    /// The assembly syntax for AArch64 with Mach-O.
    pub const AARCH64_MACHO: Syntax = Syntax {
        comments: &[";", "//"],
        line_comments: &["#"],
        separator: "%%",
        local_prefix: "L",
        data_prefix: "l_",
        format: ObjectFormat::MachO,
    };
}
