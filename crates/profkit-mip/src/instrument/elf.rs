//! Makes the text that is appended to assembly for ELF: the cold stubs, the records, the map entries, the anchor of the
//! map, the mode words (they tell the runtime what the functions record), and the table of sampled calls.
use super::backend::Backend;
use super::helpers::{edge_table, edge_table_size};
use super::options::{Mode, Options};
use super::parts::{Entry, entry, function_entry, records};
use super::plan::Planned;
use crate::asm::{Module, SectionId};
use profkit_abi::mip::{edge_table as table, map_entry, mode, section, symbol};
use std::fmt::Write as _;

/// The highest number of a subsection, so that cold stubs follow all other code of the section.
const COLD_SUBSECTION: u32 = 8191;

pub(super) fn tail(
    module: &Module<'_>,
    planned: &[Planned<'_>],
    backend: &dyn Backend,
    options: &Options,
    out: &mut String,
) {
    let mut rest = planned;
    // Functions that follow each other in one section share a record section and a map section.
    while let Some(first) = rest.first() {
        let same = rest
            .iter()
            .take_while(|plan| plan.section == first.section)
            .count();
        let (run, after) = rest.split_at(same);
        of_section(module, run, backend, options, out);
        rest = after;
    }
    once(planned, backend, options, out);
    out.push_str(&backend.once(options));
}

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
    // `?` puts the section into the group of the previous one, whose name assembler releases expect at different
    // places.
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
    records(run, options, out);
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
        function_entry(plan, None, backend, out);
    }
}

/// What an image has once: the anchor of the map, the mode words, the ring. The linker keeps one COMDAT group.
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
            inference: None,
            name: b"",
            base: None,
        },
        backend,
        out,
    );
    // A part of a function uses the function's record, so it needs no mode word of its own.
    // Which blocks are inferred does not change how records are added up.
    let modes = planned
        .iter()
        .map(|plan| plan.flags & !(mode::PART | mode::INFERRED));
    let mut modes: Vec<u16> = modes.collect();
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
        let name = edge_table(slots);
        let _ = write!(
            out,
            "\t.section {},\"awG\",%nobits,{name},comdat\n\t.balign {}\n\t.weak {name}\n\t.hidden {name}\n\t.type {name},%object\n{name}:\n\t.zero {size}\n\t.size {name}, {size}\n",
            section::RING,
            table::ALIGN,
            size = edge_table_size(slots),
        );
    }
}
