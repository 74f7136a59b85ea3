//! Makes the text that is appended to assembly for Mach-O: the records, the map entries, the anchor of the map, the
//! mode word (the flags of the mode in which the functions record), and the table of sampled calls.
//!
//! The map stands in a segment that `llvm-strip` removes, and holds distances instead of addresses: a program that has lost
//! its map must leave the loader nothing to do there.
//!
//! Each record and each map entry is an atom of its own. Its label begins with `l`; the linker sees such labels, but
//! does not put them into the final symbol table. The linker keeps a map entry only if it keeps the function that the
//! entry names.
use super::backend::Backend;
use super::helpers::{edge_table, edge_table_size};
use super::options::{Mode, Options};
use super::parts::{Entry, entry, function_entry, records};
use super::plan::Planned;
use profkit_abi::mip::{edge_table as table, map_entry, mode, section, symbol};
use std::fmt::Write as _;

/// Whether an assembly file is for Mach-O.
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

/// Returns the Mach-O symbol for a name in C.
fn global(name: &str) -> String {
    format!("_{name}")
}

pub(super) fn tail(
    planned: &[Planned<'_>],
    backend: &dyn Backend,
    options: &Options,
    out: &mut String,
) {
    let segment = section::MACHO_SEGMENT;
    let _ = writeln!(out, "\t.section {segment},{},regular", section::RECORDS);
    records(planned, options, out);
    let align = map_entry::ALIGN.trailing_zeros();
    map_section(out);
    for plan in planned {
        let label = plan.labels.map();
        let _ = writeln!(out, "\t.p2align {align}\n{label}:");
        function_entry(plan, base(&label, backend), backend, out);
    }
    once(backend, options, out);
    out.push_str(&backend.once(options));
}

/// Distances need no work of the loader. 32-bit objects cannot express the distance to a symbol of another object.
fn base<'l>(label: &'l str, backend: &dyn Backend) -> Option<&'l str> {
    backend.is_64_bit().then_some(label)
}

fn map_section(out: &mut String) {
    let segment = section::MACHO_MAP_SEGMENT;
    let _ = writeln!(
        out,
        "\t.section {segment},{},regular,live_support",
        section::MAP
    );
}

/// The linker keeps the label although nothing refers to it, and merges it with those of other objects.
fn kept(name: &str, align: usize, out: &mut String) {
    let _ = writeln!(
        out,
        "\t.globl {name}\n\t.private_extern {name}\n\t.weak_definition {name}\n\t.no_dead_strip {name}\n\t.p2align {}\n{name}:",
        align.trailing_zeros()
    );
}

fn once(backend: &dyn Backend, options: &Options, out: &mut String) {
    let segment = section::MACHO_SEGMENT;
    let flags = options.flags();
    map_section(out);
    let anchor = global(symbol::ANCHOR_GROUP);
    kept(&anchor, map_entry::ALIGN, out);
    let hook = global(symbol::HOOK);
    let start = format!("{}{}", section::MACHO_START_PREFIX, section::RECORDS);
    let base = base(&anchor, backend);
    // Assemblers for x86-64 know no distance to a symbol of another object. So the distances of the anchor are 0.
    let (record, function) = match base {
        Some(_) => ("0", "0"),
        None => (start.as_str(), hook.as_str()),
    };
    entry(
        &Entry {
            flags: mode::ANCHOR,
            record,
            function,
            size: "0",
            signature: 0,
            blocks: Vec::new(),
            inference: None,
            name: b"",
            base,
        },
        backend,
        out,
    );
    if base.is_some() {
        let _ = writeln!(out, "\t.reference {hook}");
    }
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
        kept(&global(&edge_table(slots)), table::ALIGN, out);
        let _ = writeln!(out, "\t.zero {}", edge_table_size(slots));
    }
}
