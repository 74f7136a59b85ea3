//! What a Mach-O object gets behind its text: records, map entries, the anchor, the mode word and the ring.
//!
//! Each record and each map entry is an atom of its own: its label begins with `l`, which the linker sees and the final
//! symbol table does not. Map entries are live if what they name is, so that dead functions leave none behind.
use super::elf::{Entry, entry};
use super::plan::Planned;
use super::target::Backend;
use super::{Mode, Options};
use profkit_abi::mip::{map_entry, mode, record, ring, section, symbol};
use std::fmt::Write as _;

/// Whether a text is for Mach-O.
pub(super) fn shows(text: &[u8]) -> bool {
    const SIGNS: [&[u8]; 3] = [
        b"__TEXT,__text",
        b".subsections_via_symbols",
        b".build_version",
    ];
    SIGNS
        .iter()
        .any(|sign| memchr::memmem::find(text, sign).is_some())
}

/// A C name as Mach-O has it.
fn global(name: &str) -> String {
    format!("_{name}")
}

/// Appends everything.
pub(super) fn tail(
    planned: &[Planned<'_>],
    backend: &dyn Backend,
    options: &Options,
    out: &mut String,
) {
    let segment = section::MACHO_SEGMENT;
    let _ = writeln!(out, "\t.section {segment},{},regular", section::RECORDS);
    let align = options.record_align().trailing_zeros();
    for plan in planned {
        if align > 0 {
            let _ = writeln!(out, "\t.p2align {align}");
        }
        let size = options.entry_size() + plan.blocks * record::BLOCK_SIZE;
        let _ = writeln!(
            out,
            "{}:\n\t.fill {size}, 1, {}",
            plan.labels.record(),
            record::INITIAL_BYTE
        );
    }
    let align = map_entry::ALIGN.trailing_zeros();
    map_section(out);
    for plan in planned {
        let start = plan.labels.start();
        let _ = writeln!(out, "\t.p2align {align}\n{}:", plan.labels.map());
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
    once(backend, options, out);
    out.push_str(&backend.once(options));
}

fn map_section(out: &mut String) {
    let segment = section::MACHO_SEGMENT;
    let _ = writeln!(
        out,
        "\t.section {segment},{},regular,live_support",
        section::MAP
    );
}

/// A definition that is merged with those of equal name in other objects and kept although nothing refers to it.
fn kept(name: &str, align: usize, out: &mut String) {
    let _ = writeln!(
        out,
        "\t.globl {name}\n\t.private_extern {name}\n\t.weak_definition {name}\n\t.no_dead_strip {name}\n\t.p2align {}\n{name}:",
        align.trailing_zeros()
    );
}

/// What the image has once: the anchor of the map, the mode word, the ring.
fn once(backend: &dyn Backend, options: &Options, out: &mut String) {
    let segment = section::MACHO_SEGMENT;
    let flags = options.flags();
    map_section(out);
    kept(&global(symbol::ANCHOR_GROUP), map_entry::ALIGN, out);
    entry(
        &Entry {
            flags: mode::ANCHOR,
            record: &format!("{}{}", section::MACHO_START_PREFIX, section::RECORDS),
            function: &global(symbol::HOOK),
            size: "0",
            signature: 0,
            blocks: Vec::new(),
            name: b"",
        },
        backend,
        out,
    );
    let _ = writeln!(out, "\t.section {segment},{},regular", section::MODES);
    kept(
        &global(&format!("{}{flags:02x}", symbol::MODE_GROUP_PREFIX)),
        4,
        out,
    );
    let _ = writeln!(out, "\t.4byte {flags}");
    if let Mode::Calls {
        return_addresses: Some(slots),
    } = options.mode
    {
        let _ = writeln!(out, "\t.section {segment},{},regular", section::RING);
        kept(
            &global(&format!("{}{slots}", symbol::RING_GROUP_PREFIX)),
            ring::ALIGN,
            out,
        );
        let _ = writeln!(
            out,
            "\t.zero {}",
            u64::from(slots) * ring::SAMPLE_SIZE as u64
        );
    }
}
