//! Encodes a part. docs/formats/part.md describes the format.
use super::decode::{FLAG_DEFLATE, HEADER_LEN, INFLATE_RATIO, TABLE_ENTRY_LEN, Tag, VERSION};
use super::inputs::Entry;
use super::key::Key;
use crate::accumulate::{Accumulator, input_of};
use crate::engine::{Collected, Group, TraceSample};
use crate::error::Members;
use crate::report::{Action, Event, EventLog, LlvmCode, Reason, Totals};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use profkit_abi::value_kind;
use profkit_data::detect::{Family, PART_MAGIC};
use profkit_data::ids::BuildId;
use profkit_data::instr::{FunctionId, RecordRef, ValueData};
use std::collections::BTreeMap;
use std::io::Write;
use twox_hash::XxHash3_64;

/// A section, in the encodings that sections have in common.
#[derive(Default)]
pub(super) struct Out(Vec<u8>);

impl Out {
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }

    fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    fn fixed(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// A text that may be missing.
    fn text(&mut self, text: Option<&[u8]>) {
        self.flag(text.is_some());
        text.into_iter().for_each(|text| self.bytes(text));
    }

    /// A text of a sorted list: how many bytes it has in common with the last one, and the rest.
    fn after(&mut self, last: &[u8], text: &[u8]) {
        let same = last.iter().zip(text).take_while(|(a, b)| a == b).count();
        self.count(same);
        self.bytes(text.get(same..).unwrap_or_default());
    }

    fn build_ids<'i>(&mut self, ids: impl ExactSizeIterator<Item = &'i BuildId>) {
        self.count(ids.len());
        ids.for_each(|BuildId(id)| self.bytes(id));
    }

    fn members(&mut self, members: &Members) {
        let (count, first) = members.parts();
        self.number(count);
        self.count(first.len());
        first.iter().for_each(|&input| self.count(input));
    }
}

pub(super) fn encode(key: &Key, entries: &[Entry], sum: &Collected) -> Vec<u8> {
    let mut functions = Functions::default();
    let mut groups = Out::default();
    let sorted = sum.sorted_groups();
    groups.count(sorted.len());
    for group in sorted {
        let traces = sum.traces.get(&group.ids);
        put_group(&mut groups, group, traces);
        functions.add(&group.acc);
    }
    let sections = [
        (Tag::Options, options(key, sum)),
        (Tag::Inputs, inputs(entries)),
        (Tag::Events, events(&sum.report.log)),
        (Tag::Groups, groups),
        (Tag::Names, functions.names),
        (Tag::Records, functions.records),
        (Tag::Counts, functions.counts),
        (Tag::Values, functions.values),
    ];
    write(&sections)
}

fn write(sections: &[(Tag, Out)]) -> Vec<u8> {
    let mut file = PART_MAGIC.to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    let family = Family::ALL
        .iter()
        .position(|&family| family == Family::Instr);
    file.push(u8::try_from(family.unwrap_or(0)).unwrap_or(0));
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
    let fits = deflated.len() < raw.len() && raw.len() / INFLATE_RATIO <= deflated.len();
    fits.then_some(deflated)
}

fn options(key: &Key, sum: &Collected) -> Out {
    let mut out = Out::default();
    out.number(key.traces.reservoir_size);
    out.number(key.traces.max_length);
    out.flag(key.separate);
    out.fixed(key.remapping);
    // How the inputs were distributed decides which of them were added without being parsed.
    let totals = Totals {
        fast_profiles: 0,
        ..sum.report.totals
    };
    let totals = totals.numbers();
    out.count(totals.len());
    totals.iter().for_each(|&number| out.number(number));
    out.count(sum.report.families.len());
    for (family, members) in &sum.report.families {
        let code = Family::ALL.iter().position(|other| other == family);
        out.count(code.unwrap_or(0));
        out.members(members);
    }
    let generations = &sum.generations;
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

/// The number of a value that is stored: its place in the list of all.
fn code<T: PartialEq>(all: &[T], value: &T) -> u64 {
    let place = all.iter().position(|one| one == value);
    place.map_or(u64::MAX, |place| place as u64)
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

fn put_group(out: &mut Out, group: &Group, traces: Option<&TraceSample>) {
    out.build_ids(group.ids.iter());
    out.build_ids(group.binary_ids.iter());
    out.build_ids(group.raw_ids.iter());
    let mut indexed: Vec<_> = group.indexed.iter().collect();
    indexed.sort_unstable();
    out.count(indexed.len());
    for (input, ids) in indexed {
        out.count(*input);
        out.build_ids(ids.iter());
    }
    let mut inputs: Vec<_> = group.inputs.iter().collect();
    inputs.sort_unstable_by_key(|one| one.input);
    out.count(inputs.len());
    let mut last = 0;
    for one in inputs {
        out.count(one.input - last);
        out.number(u64::from(one.kind.bits()));
        out.flag(one.has_functions);
        last = one.input;
    }
    let table = group.acc.table();
    out.number(group.acc.refused);
    out.count(table.function_count());
    let functions: std::collections::BTreeSet<&[u8]> =
        table.functions().map(|function| function.name()).collect();
    let symbols = group.symbols.iter();
    let mut symbols: Vec<_> = symbols
        .filter(|(_, name)| !functions.contains(name))
        .collect();
    symbols.sort_unstable_by_key(|&(hash, name)| (name, hash));
    out.count(symbols.len());
    let mut last: &[u8] = &[];
    for (hash, name) in symbols {
        out.after(last, name);
        out.fixed(hash.0);
        last = name;
    }
    let none = TraceSample::default();
    let traces = traces.unwrap_or(&none);
    out.number(traces.stream_size);
    out.count(traces.kept.len());
    for drawn in &traces.kept {
        out.fixed(drawn.priority.to_bits());
        out.fixed(drawn.place.0);
        out.number(drawn.place.1);
        out.number(drawn.trace.weight);
        out.count(drawn.trace.functions.len());
        drawn
            .trace
            .functions
            .iter()
            .for_each(|name| out.fixed(name.0));
    }
}

/// The columns of all functions, in the order of their names.
#[derive(Default)]
struct Functions {
    names: Out,
    records: Out,
    counts: Out,
    values: Out,
}

impl Functions {
    fn add(&mut self, acc: &Accumulator) {
        let table = acc.table();
        let mut functions: Vec<_> = (0..).map(FunctionId).zip(table.functions()).collect();
        functions.sort_unstable_by_key(|(_, function)| (function.name(), function.name_ref()));
        let mut last: &[u8] = &[];
        for (id, function) in functions {
            self.names.after(last, function.name());
            self.names.fixed(function.name_ref().0);
            last = function.name();
            let ids: Vec<_> = table.record_ids(id).collect();
            let records = ids
                .into_iter()
                .filter_map(|id| Some((table.record(id)?, acc.stats_of(id)?)));
            let mut records: Vec<_> = records.collect();
            records.sort_unstable_by_key(|(record, _)| (record.func_hash, record.order));
            self.names.count(records.len());
            for (record, stats) in records {
                let out = &mut self.records;
                out.fixed(record.func_hash.0);
                out.count(input_of(record.order));
                out.number(record.order & u64::from(u32::MAX));
                out.number(stats.seen);
                out.number(u64::from(stats.origin));
                out.number(u64::from(stats.collided) | u64::from(stats.overflowed) << 1);
                self.put_data(&record);
            }
        }
    }

    fn put_data(&mut self, record: &RecordRef<'_>) {
        let out = &mut self.records;
        out.count(record.counts.len());
        out.count(record.bitmap.len());
        out.count(record.uniformity.len());
        record
            .counts
            .iter()
            .for_each(|&count| self.counts.number(count));
        self.counts.0.extend_from_slice(record.bitmap);
        self.counts.0.extend_from_slice(record.uniformity);
        let none = ValueData::default();
        for (kind, values) in record.values.unwrap_or(&none).kinds() {
            self.records.count(values.site_count());
            for site in values.sites() {
                self.values.count(site.len());
                for entry in site {
                    match kind {
                        value_kind::MEM_OP_SIZE => self.values.number(entry.value),
                        _ => self.values.fixed(entry.value),
                    }
                    self.values.number(entry.count);
                }
            }
        }
    }
}
