//! What the back ends have in common: names of symbols, and helper functions that an image has once.
use crate::asm::ObjectFormat;
use profkit_abi::mip::{edge_table, section, symbol};
use std::fmt::Write as _;

/// The helper at the first call of a function: it assigns an ordinal to the record.
pub(super) const FIRST: &str = "__profkit_mip_first";

/// The helper that samples calls into a table of call edges with this number of slots. `exact` says that the probes which
/// use it increment atomically.
pub(super) fn edge_helper(slots: u32, exact: bool) -> String {
    format!(
        "__profkit_mip_edge_{slots}{}",
        if exact { "_atomic" } else { "" }
    )
}

/// The table of call edges with this number of slots.
pub(super) fn edge_table(slots: u32) -> String {
    format!("{}{slots}", symbol::EDGES_GROUP_PREFIX)
}

/// The size in bytes of a table of call edges with this number of slots.
pub(super) fn edge_table_size(slots: u32) -> u64 {
    (u64::from(slots) + edge_table::HEAD_ENTRIES as u64) * edge_table::SLOT_SIZE as u64
}

/// A helper whose probes do not increment atomically checks that its own change of a record was not lost, unless the
/// distance to the next sample is at most this: other threads may have made so many calls in the meantime.
pub(super) const UNCHECKED_DISTANCE: u32 = 64;

/// The smallest and the largest stored count at which a count is set back. Larger ones are those of records that are just
/// being reset.
pub(super) fn saturates() -> [u32; 2] {
    [0x8000_0000, 0xc000_0000]
}

/// The names that the helper for call edges uses, as they are written in assembly.
#[derive(Debug)]
pub(super) struct EdgeNames {
    pub(super) ordinal: String,
    pub(super) table: String,
    pub(super) start: String,
    /// The prefix of labels inside the helper.
    pub(super) local: &'static str,
}

impl EdgeNames {
    pub(super) fn new(slots: u32, format: ObjectFormat, local: &'static str) -> Self {
        EdgeNames {
            ordinal: global(symbol::ORDINAL, format),
            table: global(&edge_table(slots), format),
            start: start_of_records(format),
            local,
        }
    }
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
