//! What an ELF object gets behind its text: cold stubs, records, map entries, the anchor, the mode word and the ring.
use super::plan::Planned;
use super::target::Backend;
use super::{Mode, Options};
use crate::asm::{Module, SectionId};
use profkit_abi::mip::{map_entry, mode, record, ring, section, symbol};
use std::fmt::Write as _;

/// The subsection for cold stubs: the last one that assemblers take, so that it stands behind the file's own.
const COLD_SUBSECTION: u32 = 8191;

/// Appends everything.
pub(super) fn tail(
    module: &Module<'_>,
    planned: &[Planned<'_>],
    backend: &dyn Backend,
    options: &Options,
    out: &mut String,
) {
    if module
        .statements
        .last()
        .is_some_and(|last| last.context.intel)
    {
        out.push_str("\t.att_syntax prefix\n");
    }
    let mut rest = planned;
    // Functions that stand together in one section share its record and map sections.
    while let Some(first) = rest.first() {
        let same = rest
            .iter()
            .take_while(|plan| plan.section == first.section)
            .count();
        let (run, behind) = rest.split_at(same);
        of_section(module, run, backend, options, out);
        rest = behind;
    }
    once(planned, backend, options, out);
    out.push_str(&backend.once(options));
}

/// Selects a section of the file again.
fn select(module: &Module<'_>, id: SectionId, out: &mut String) {
    if let Some(section) = module.section(id) {
        let (name, arguments) = section.selector;
        let _ = writeln!(
            out,
            "\t{} {}",
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(arguments)
        );
    }
}

/// Everything for functions of one section.
fn of_section(
    module: &Module<'_>,
    run: &[Planned<'_>],
    backend: &dyn Backend,
    options: &Options,
    out: &mut String,
) {
    let Some(first) = run.first() else { return };
    let id = first.section;
    if run.iter().any(|plan| plan.cold.is_some()) {
        select(module, id, out);
        let _ = writeln!(out, "\t.subsection {COLD_SUBSECTION}");
        for plan in run {
            out.push_str(plan.cold.as_deref().unwrap_or_default());
        }
    }
    // `?` joins the group of the section before. The order of group and linked-to section differs between
    // assemblers' releases; this way none is written.
    let in_group = module.section(id).is_some_and(|s| s.group.is_some());
    let join = if in_group { "?" } else { "" };
    let linked = first.labels.start();
    if in_group {
        select(module, id, out);
    }
    let _ = writeln!(
        out,
        "\t.section {},\"awo{join}\",%progbits,{linked}",
        section::RECORDS
    );
    let align = options.record_align();
    for plan in run {
        if align > 1 {
            let _ = writeln!(out, "\t.balign {align}");
        }
        let size = options.entry_size() + plan.blocks * record::BLOCK_SIZE;
        let _ = writeln!(
            out,
            "{}:\n\t.fill {size}, 1, {}",
            plan.labels.record(),
            record::INITIAL_BYTE
        );
    }
    if in_group {
        select(module, id, out);
    }
    let _ = writeln!(
        out,
        "\t.section {},\"o{join}\",%progbits,{linked}\n\t.balign {}",
        section::MAP,
        map_entry::ALIGN
    );
    for plan in run {
        let start = plan.labels.start();
        entry(
            &Entry {
                flags: plan.flags,
                record: &plan.labels.record(),
                function: &start,
                size: &format!("{}-{start}", plan.end),
                signature: plan.signature,
                blocks: (0..plan.blocks)
                    .map(|block| plan.labels.block(block))
                    .collect(),
                name: plan.name,
            },
            backend,
            out,
        );
    }
}

/// One entry of the map, whose addresses and sizes are expressions.
pub(super) struct Entry<'e> {
    pub(super) flags: u16,
    pub(super) record: &'e str,
    pub(super) function: &'e str,
    pub(super) size: &'e str,
    pub(super) signature: u32,
    pub(super) blocks: Vec<String>,
    pub(super) name: &'e [u8],
}

/// One map entry, field by field in the order of [`map_entry`].
pub(super) fn entry(entry: &Entry<'_>, backend: &dyn Backend, out: &mut String) {
    let fixed = map_entry::FIXED_SIZE + entry.blocks.len() * map_entry::BLOCK_OFFSET_SIZE;
    let whole = (fixed + entry.name.len()).next_multiple_of(map_entry::ALIGN);
    let address = |name: &str| {
        if backend.is_64_bit() {
            format!("\t.8byte {name}\n")
        } else {
            format!("\t.4byte {name}\n\t.4byte 0\n")
        }
    };
    let _ = write!(
        out,
        "\t.4byte {whole}\n\t.2byte {}\n\t.2byte 0\n{}{}\t.4byte {}\n\t.4byte {}\n\t.4byte {}\n\t.4byte {}\n",
        entry.flags,
        address(entry.record),
        address(entry.function),
        entry.size,
        entry.signature,
        entry.blocks.len(),
        entry.name.len(),
    );
    for block in &entry.blocks {
        let _ = writeln!(out, "\t.4byte {block}-{}", entry.function);
    }
    if !entry.name.is_empty() {
        let _ = writeln!(out, "\t.ascii \"{}\"", escaped(entry.name));
    }
    let padding = whole - fixed - entry.name.len();
    if padding > 0 {
        let _ = writeln!(out, "\t.zero {padding}");
    }
}

/// A name for `.ascii`.
fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for &byte in name {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text
}

/// What the image has once, in COMDAT groups: the anchor of the map, the mode word, the ring.
fn once(planned: &[Planned<'_>], backend: &dyn Backend, options: &Options, out: &mut String) {
    let start = format!("{}{}", section::ELF_START_PREFIX, section::RECORDS);
    let _ = write!(
        out,
        "\t.section {map},\"GR\",%progbits,{group},comdat\n\t.balign {align}\n\t.weak {start}\n\t.hidden {start}\n\t.hidden {hook}\n",
        map = section::MAP,
        group = symbol::ANCHOR_GROUP,
        align = map_entry::ALIGN,
        hook = symbol::HOOK,
    );
    entry(
        &Entry {
            flags: mode::ANCHOR,
            record: &start,
            function: symbol::HOOK,
            size: "0",
            signature: 0,
            blocks: Vec::new(),
            name: b"",
        },
        backend,
        out,
    );
    let mut modes: Vec<u16> = planned.iter().map(|plan| plan.flags).collect();
    modes.sort_unstable();
    modes.dedup();
    for flags in modes {
        let _ = write!(
            out,
            "\t.section {},\"aGR\",%progbits,{}{flags:02x},comdat\n\t.balign 4\n\t.4byte {flags}\n",
            section::MODES,
            symbol::MODE_GROUP_PREFIX,
        );
    }
    if let Mode::Calls {
        return_addresses: Some(slots),
    } = options.mode
    {
        let name = format!("{}{slots}", symbol::RING_GROUP_PREFIX);
        let _ = write!(
            out,
            "\t.section {},\"awG\",%nobits,{name},comdat\n\t.balign {}\n\t.weak {name}\n\t.hidden {name}\n\t.type {name},%object\n{name}:\n\t.zero {size}\n\t.size {name}, {size}\n",
            section::RING,
            ring::ALIGN,
            size = u64::from(slots) * ring::SAMPLE_SIZE as u64,
        );
    }
}
