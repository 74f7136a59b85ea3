//! Writes records and map entries as data directives. The directives are the same for all object formats.
use super::backend::Backend;
use super::options::Options;
use super::plan::Planned;
use profkit_abi::mip::{map_entry, record};
use profkit_data::mip::Inference;
use std::fmt::Write as _;

pub(super) fn records(planned: &[Planned<'_>], options: &Options, out: &mut String) {
    let align = options.record_align().trailing_zeros();
    for plan in planned {
        if align > 0 {
            let _ = writeln!(out, "\t.p2align {align}");
        }
        let size = options.entry_size() + plan.recorded() * record::BLOCK_SIZE;
        let _ = writeln!(
            out,
            "{}:\n\t.fill {size}, 1, {}",
            plan.labels.record(),
            record::INITIAL_BYTE
        );
    }
}

/// The content of a map entry. Its addresses and sizes are assembler expressions.
pub(super) struct Entry<'e> {
    pub(super) flags: u16,
    pub(super) record: &'e str,
    pub(super) function: &'e str,
    pub(super) size: &'e str,
    pub(super) signature: u32,
    pub(super) blocks: Vec<String>,
    pub(super) inference: Option<&'e Inference>,
    pub(super) name: &'e [u8],
    /// The label of the entry, if addresses are stored as distances from it.
    pub(super) base: Option<&'e str>,
}

pub(super) fn entry(entry: &Entry<'_>, backend: &dyn Backend, out: &mut String) {
    let fixed = map_entry::FIXED_SIZE
        + entry.blocks.len() * map_entry::BLOCK_OFFSET_SIZE
        + entry.inference.map_or(0, Inference::number_count) * map_entry::INFERENCE_SIZE;
    let whole = (fixed + entry.name.len()).next_multiple_of(map_entry::ALIGN);
    let address = |name: &str| match entry.base {
        Some(_) if name == "0" => "\t.8byte 0\n".to_owned(),
        Some(base) => format!("\t.8byte {name}-{base}\n"),
        None if backend.is_64_bit() => format!("\t.8byte {name}\n"),
        None => format!("\t.4byte {name}\n\t.4byte 0\n"),
    };
    let form = match entry.base {
        Some(_) => map_entry::DISTANCES,
        None => map_entry::ADDRESSES,
    };
    let _ = write!(
        out,
        "\t.4byte {whole}\n\t.2byte {}\n\t.2byte {form}\n{}{}\t.4byte {}\n\t.4byte {}\n\t.4byte {}\n\t.4byte {}\n",
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
    for number in entry.inference.into_iter().flat_map(Inference::numbers) {
        let _ = writeln!(out, "\t.4byte {number}");
    }
    if !entry.name.is_empty() {
        let _ = writeln!(out, "\t.ascii \"{}\"", escaped(entry.name));
    }
    let padding = whole - fixed - entry.name.len();
    if padding > 0 {
        let _ = writeln!(out, "\t.zero {padding}");
    }
}

pub(super) fn function_entry(
    plan: &Planned<'_>,
    base: Option<&str>,
    backend: &dyn Backend,
    out: &mut String,
) {
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
            inference: plan.inference.as_ref(),
            name: plan.name,
            base,
        },
        backend,
        out,
    );
}

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
