//! What the back ends have in common: names of symbols, and helper functions that an image has once.
use crate::asm::ObjectFormat;
use profkit_abi::mip::section;
use std::fmt::Write as _;

/// The helper at the first call of a function: it assigns an ordinal to the record.
pub(super) const FIRST: &str = "__profkit_mip_first";

/// The helper that samples return addresses into a ring with this number of slots.
pub(super) fn edge_helper(slots: u32) -> String {
    format!("__profkit_mip_edge_{slots}")
}

/// The name of a global symbol as it is written in assembly.
pub(super) fn global(name: &str, format: ObjectFormat) -> String {
    match format {
        ObjectFormat::Elf => name.to_owned(),
        ObjectFormat::MachO => format!("_{name}"),
    }
}

/// A name that the runtime defines, hidden in ELF. Mach-O does not allow that for other objects' symbols.
pub(super) fn hidden(name: &str, format: ObjectFormat, out: &mut String) -> String {
    if format == ObjectFormat::Elf {
        let _ = writeln!(out, "\t.hidden {name}");
    }
    global(name, format)
}

/// The symbol of the linker at the start of the records.
pub(super) fn start_of_records(format: ObjectFormat) -> String {
    let prefix = match format {
        ObjectFormat::Elf => section::ELF_START_PREFIX,
        ObjectFormat::MachO => section::MACHO_START_PREFIX,
    };
    format!("{prefix}{}", section::RECORDS)
}

/// Writes a hidden helper function, whose code is aligned to 2 to the power of `align` bytes. If several objects contain
/// it, the linker keeps one copy per image. `mark` is the character before types: assemblers for Arm take `@` as the start
/// of a comment.
pub(super) fn helper(
    name: &str,
    body: &str,
    format: ObjectFormat,
    (mark, align): (char, u8),
    out: &mut String,
) {
    let name = global(name, format);
    let _ = match format {
        ObjectFormat::Elf => write!(
            out,
            "\t.section .text.{name},\"axG\",{mark}progbits,{name},comdat\n\t.p2align {align}\n\t.weak {name}\n\t.hidden {name}\n\t.type {name}, {mark}function\n{name}:\n{body}\t.size {name}, .-{name}\n"
        ),
        ObjectFormat::MachO => write!(
            out,
            "\t.section __TEXT,__text,regular,pure_instructions\n\t.globl {name}\n\t.weak_definition {name}\n\t.private_extern {name}\n\t.p2align {align}\n{name}:\n{body}"
        ),
    };
}
