//! Encodes a part. docs/formats/part.md describes the format.
use super::bytes::{Out, code};
use super::decode::{FLAG_DEFLATE, HEADER_LEN, TABLE_ENTRY_LEN, Tag, VERSION, most_inflated};
use super::inputs::Entry;
use super::key::Key;
use super::sum::Sum;
use super::{instr, mip, samples};
use crate::driver::ReportPart;
use crate::engine::Generations;
use crate::report::{Action, Event, EventLog, LlvmCode, Reason, Totals};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use profkit_data::Result;
use profkit_data::detect::{Family, PART_MAGIC};
use profkit_data::sample::FsPass;
use std::collections::BTreeMap;
use std::io::Write;
use twox_hash::XxHash3_64;

pub(super) fn encode(key: &Key, entries: &[Entry], sum: &Sum) -> Result<Vec<u8>> {
    let none = Generations::default();
    let (generations, content) = match sum {
        Sum::Instr(sum) => (&sum.generations, instr::encode(sum)),
        Sum::Sample(sum) => (&none, vec![(Tag::Samples, samples::encode(sum))]),
        Sum::Mip(sum) => (&none, vec![(Tag::Mip, mip::encode(sum)?)]),
    };
    let report = sum.report();
    let mut sections = vec![
        (Tag::Options, options(key, report, generations)),
        (Tag::Inputs, inputs(entries)),
        (Tag::Events, events(&report.log)),
    ];
    sections.extend(content);
    Ok(write(sum.family(), &sections))
}

fn write(family: Family, sections: &[(Tag, Out)]) -> Vec<u8> {
    let mut file = PART_MAGIC.to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.push(u8::try_from(code(&Family::ALL, &family)).unwrap_or(0));
    file.push(0);
    file.extend_from_slice(&u16::try_from(sections.len()).unwrap_or(0).to_le_bytes());
    debug_assert_eq!(file.len(), HEADER_LEN);
    let mut stored = Vec::new();
    let mut offset = HEADER_LEN + sections.len() * TABLE_ENTRY_LEN;
    for (tag, Out(raw)) in sections {
        let deflated = deflate(raw);
        let (flags, bytes) = match &deflated {
            Some(deflated) => (FLAG_DEFLATE, deflated),
            None => (0, raw),
        };
        file.extend_from_slice(&(*tag as u16).to_le_bytes());
        file.extend_from_slice(&flags.to_le_bytes());
        for number in [
            offset as u64,
            bytes.len() as u64,
            raw.len() as u64,
            XxHash3_64::oneshot(bytes),
        ] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        offset += bytes.len();
        stored.extend_from_slice(bytes);
    }
    file.extend_from_slice(&stored);
    file
}

/// `None` if the bytes become no shorter, or so much shorter that a reader would take them for an attack.
fn deflate(raw: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(raw).ok()?;
    let deflated = encoder.finish().ok()?;
    let fits =
        deflated.len() < raw.len() && raw.len() as u64 <= most_inflated(deflated.len() as u64);
    fits.then_some(deflated)
}

fn options(key: &Key, report: &ReportPart, generations: &Generations) -> Out {
    let mut out = Out::default();
    out.number(key.traces.reservoir_size);
    out.number(key.traces.max_length);
    out.flag(key.separate);
    out.fixed(key.remapping);
    // How the inputs were distributed decides which of them were added without being parsed.
    let totals = Totals {
        fast_profiles: 0,
        ..report.totals
    };
    let totals = totals.numbers();
    out.count(totals.len());
    totals.iter().for_each(|&number| out.number(number));
    out.count(report.families.len());
    for (family, members) in &report.families {
        out.number(code(&Family::ALL, family));
        out.members(members);
    }
    out.number(
        generations
            .without_functions
            .map_or(0, |version| u64::from(version) + 1),
    );
    out.count(generations.origins.len());
    for (origin, members) in &generations.origins {
        out.flag(origin.front_end);
        out.flag(origin.is_raw);
        out.number(u64::from(origin.version));
        out.members(members);
    }
    if let Some(samples) = &key.samples {
        out.number(code(&FsPass::ALL, &samples.fs_pass));
        out.flag(samples.assume_fs);
        out.number(samples.symbols.map_or(0, |most| most.saturating_add(1)));
        out.flag(samples.drop_symbols);
    }
    out
}

fn inputs(entries: &[Entry]) -> Out {
    let mut out = Out::default();
    out.count(entries.len());
    let mut last: &[u8] = &[];
    for entry in entries {
        out.after(last, entry.name.as_bytes());
        out.fixed(entry.id);
        out.fixed(entry.content);
        last = entry.name.as_bytes();
    }
    out
}

fn events(log: &EventLog) -> Out {
    let mut out = Out::default();
    let (events, counts) = log.parts();
    out.count(events.len());
    for (order, event) in events {
        out.number(*order);
        put_event(&mut out, event);
    }
    for counts in counts {
        put_counts(&mut out, counts);
    }
    out
}

fn put_counts(out: &mut Out, counts: &BTreeMap<Reason, u64>) {
    out.count(counts.len());
    for (reason, &count) in counts {
        out.number(code(&Reason::ALL, reason));
        out.number(count);
    }
}

fn put_event(out: &mut Out, event: &Event) {
    out.count(event.input);
    out.text(event.function.as_deref());
    out.number(event.offset.map_or(0, |offset| offset.saturating_add(1)));
    out.number(code(&Action::ALL, &event.action));
    out.number(code(&Reason::ALL, &event.reason));
    out.bytes(event.message.as_bytes());
    for text in [&event.place, &event.found, &event.expected, &event.hint] {
        out.text(text.as_deref().map(str::as_bytes));
    }
    let llvm = event.llvm.as_ref();
    out.number(llvm.map_or(0, |fault| {
        code(&LlvmCode::ALL, &fault.code).saturating_add(1)
    }));
    let detail = llvm.and_then(|fault| fault.detail.as_deref());
    out.text(detail.map(str::as_bytes));
}

#[cfg(test)]
mod tests {
    use super::super::decode::section;
    use super::*;

    #[test]
    fn what_is_compressed_can_be_read_however_much_shorter_it_becomes() {
        let mut by_most = 0;
        for (different, len) in (0..32_u8).flat_map(|n| (900..4000).map(move |len| (n, len))) {
            let mut raw = vec![0; len];
            raw.iter_mut()
                .zip(0..different)
                .for_each(|(byte, value)| *byte = value);
            let Some(stored) = deflate(&raw) else {
                continue;
            };
            let sizes = (0, stored.len() as u64, len as u64);
            let read = section(&stored, sizes, FLAG_DEFLATE, XxHash3_64::oneshot(&stored));
            assert_eq!(*read.unwrap(), raw, "{different} different of {len} bytes");
            by_most += usize::from(len > 65 * stored.len());
        }
        assert!(by_most > 0, "no section is compressed as much as it may be");
    }
}
