//! The sums of instrumentation profiles in parts. docs/formats/part.md describes the format.
use super::bytes::{In, Out};
use super::decode::{Decoded, Tag};
use super::heap;
use crate::Weight;
use crate::accumulate::{Accumulator, Incoming, RecordStats, Rules, SiteRule, input_of, order_of};
use crate::driver::ReportPart;
use crate::engine::{Collected, Drawn, Generations, Group, TraceSample};
use crate::kinds::InputKind;
use profkit_abi::value_kind;
use profkit_data::ids::{BuildId, FuncHash, NameRef};
use profkit_data::instr::{
    FunctionId, InstrKind, NewRecord, RecordRef, TemporalTrace, ValueData, ValueEntry,
};
use profkit_data::{Error, Result};
use std::collections::BTreeMap;

pub(super) fn encode(sum: &Collected) -> Vec<(Tag, Out)> {
    let mut functions = Functions::default();
    let mut groups = Out::default();
    let sorted = sum.sorted_groups();
    groups.count(sorted.len());
    for group in sorted {
        let traces = sum.traces.get(&group.ids);
        put_group(&mut groups, group, traces);
        functions.add(&group.acc);
    }
    let mut sections = vec![
        (Tag::Groups, groups),
        (Tag::Names, functions.names),
        (Tag::Records, functions.records),
        (Tag::Counts, functions.counts),
        (Tag::Values, functions.values),
    ];
    sections.extend(heap::encode(sum).map(|heap| (Tag::Heap, heap)));
    sections
}

/// Reads the sections of instrumentation profiles.
pub(super) fn decode(
    part: &Decoded<'_>,
    report: ReportPart,
    generations: Generations,
) -> Result<Collected> {
    let inputs = part.entries.len();
    let (mut groups, traces, counts) = part.read(Tag::Groups, |source| source.groups(inputs))?;
    let mut columns = Columns {
        names: part.open(Tag::Names)?,
        records: part.open(Tag::Records)?,
        counts: part.open(Tag::Counts)?,
        values: part.open(Tag::Values)?,
        inputs,
    };
    for (group, functions) in groups.iter_mut().zip(counts) {
        columns.functions(functions, &mut group.acc)?;
    }
    for (column, tag) in [
        (&columns.names, Tag::Names),
        (&columns.records, Tag::Records),
        (&columns.counts, Tag::Counts),
        (&columns.values, Tag::Values),
    ] {
        column
            .end()
            .map_err(|error| error.within(tag.structure()))?;
    }
    let heap = match part.has(Tag::Heap) {
        true => part.read(Tag::Heap, |source| heap::decode(source, &mut groups))?,
        false => None,
    };
    Ok(Collected {
        groups,
        traces,
        report,
        heap,
        generations,
        contents: Vec::new(),
    })
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

impl In<'_> {
    /// The groups without their functions, the traces of each, and how many functions each has.
    #[allow(clippy::type_complexity, reason = "the parts of one section")]
    fn groups(
        &mut self,
        inputs: usize,
    ) -> Result<(Vec<Group>, BTreeMap<Vec<BuildId>, TraceSample>, Vec<usize>)> {
        let count = self.count(9)?;
        let (mut groups, mut samples, mut functions) = (Vec::new(), BTreeMap::new(), Vec::new());
        for _ in 0..count {
            let mut group = Group::of_rules(self.build_ids()?, Rules::ORDER_FREE);
            group.binary_ids = self.build_ids()?.into_iter().collect();
            group.raw_ids = self.build_ids()?.into_iter().collect();
            for _ in 0..self.count(2)? {
                group.indexed.push((self.input(inputs)?, self.build_ids()?));
            }
            let mut last = 0usize;
            for _ in 0..self.count(3)? {
                let input = last.saturating_add(self.size()?);
                let kind = InstrKind::from_bits(self.small()?);
                group.inputs.push(InputKind {
                    input,
                    kind: kind.ok_or_else(|| self.wrong("the kind of an input is not known"))?,
                    has_functions: self.flag()?,
                });
                last = input;
            }
            if last >= inputs.max(1) {
                return Err(self.wrong("there is no input with this number").found(last));
            }
            group.acc.refused = self.tally()?;
            functions.push(self.size()?);
            let mut name = Vec::new();
            for _ in 0..self.count(10)? {
                self.after(&mut name)?;
                group.symbols.insert_hashed(NameRef(self.0.u64()?), &name);
            }
            let sample = self.traces()?;
            if sample != TraceSample::default() {
                samples.insert(group.ids.clone(), sample);
            }
            groups.push(group);
        }
        Ok((groups, samples, functions))
    }

    fn traces(&mut self) -> Result<TraceSample> {
        let stream_size = self.number()?;
        let count = self.count(19)?;
        let mut kept = Vec::with_capacity(count);
        for _ in 0..count {
            let priority = f64::from_bits(self.0.u64()?);
            let place = (self.0.u64()?, self.number()?);
            let weight = self.number()?;
            let functions = self.count(8)?;
            let functions = (0..functions).map(|_| self.0.u64().map(NameRef));
            kept.push(Drawn {
                priority,
                place,
                trace: TemporalTrace {
                    weight,
                    functions: functions.collect::<Result<_>>()?,
                },
            });
        }
        Ok(TraceSample { kept, stream_size })
    }
}

struct Columns<'a> {
    names: In<'a>,
    records: In<'a>,
    counts: In<'a>,
    values: In<'a>,
    inputs: usize,
}

impl Columns<'_> {
    fn functions(&mut self, functions: usize, acc: &mut Accumulator) -> Result<()> {
        let within = |tag: Tag| move |error: Error| error.within(tag.structure());
        let mut name = Vec::new();
        let mut data = Data::default();
        for _ in 0..functions {
            let names = &mut self.names;
            let mut head = || {
                names.after(&mut name)?;
                Ok((NameRef(names.0.u64()?), names.number()?))
            };
            let (name_ref, records) = head().map_err(within(Tag::Names))?;
            for _ in 0..records {
                let (func_hash, order, stats) = self.head().map_err(within(Tag::Records))?;
                let sizes = self.sizes().map_err(within(Tag::Records))?;
                self.data(sizes, &mut data).map_err(within(Tag::Counts))?;
                self.sites(sizes, &mut data.values)
                    .map_err(within(Tag::Values))?;
                acc.add(Incoming {
                    name: &name,
                    name_ref,
                    data: NewRecord {
                        func_hash,
                        counts: &data.counts,
                        bitmap: &data.bitmap,
                        uniformity: &data.uniformity,
                        values: Some(&data.values),
                        order,
                    },
                    weight: Weight::ONE,
                    stats,
                    site_rule: SiteRule::Canonical,
                });
            }
        }
        Ok(())
    }

    fn head(&mut self) -> Result<(FuncHash, u64, RecordStats)> {
        let records = &mut self.records;
        let func_hash = FuncHash(records.0.u64()?);
        let input = records.input(self.inputs)?;
        let order = order_of(input, u64::from(records.small()?));
        let seen = records.tally()?;
        let origin = records.small()?;
        let flags = records.number()?;
        if flags > 3 {
            return Err(records
                .wrong("the flags of a record are not known")
                .found(flags));
        }
        let stats = RecordStats {
            seen,
            collided: flags & 1 != 0,
            overflowed: flags & 2 != 0,
            ..RecordStats::once(origin)
        };
        Ok((func_hash, order, stats))
    }

    /// The numbers of counters, of bytes of the bitmap and of the uniformity bits, and of sites of each kind.
    fn sizes(&mut self) -> Result<[usize; 3 + value_kind::COUNT]> {
        let mut sizes = [0; 3 + value_kind::COUNT];
        for size in &mut sizes {
            *size = self.records.size()?;
        }
        Ok(sizes)
    }

    fn data(&mut self, sizes: [usize; 3 + value_kind::COUNT], data: &mut Data) -> Result<()> {
        let source = &mut self.counts;
        let [counters, bitmap, uniformity, ..] = sizes;
        if counters > source.0.remaining() {
            return Err(source
                .wrong("a record has more counters than the section")
                .found(counters));
        }
        data.counts.clear();
        for _ in 0..counters {
            data.counts.push(source.number()?);
        }
        for (len, bytes) in [
            (bitmap, &mut data.bitmap),
            (uniformity, &mut data.uniformity),
        ] {
            bytes.clear();
            bytes.extend_from_slice(source.0.take(len)?);
        }
        Ok(())
    }

    fn sites(
        &mut self,
        sizes: [usize; 3 + value_kind::COUNT],
        values: &mut ValueData,
    ) -> Result<()> {
        values.clear();
        let source = &mut self.values;
        for ((kind, sites), count) in values.kinds_mut().zip(sizes.into_iter().skip(3)) {
            if count > source.0.remaining() {
                return Err(source
                    .wrong("a record has more sites than the section")
                    .found(count));
            }
            for _ in 0..count {
                for _ in 0..source.count(2)? {
                    let value = match kind {
                        value_kind::MEM_OP_SIZE => source.number()?,
                        _ => source.0.u64()?,
                    };
                    let count = source.number()?;
                    sites.push_value(ValueEntry { value, count });
                }
                sites.end_site();
            }
        }
        Ok(())
    }
}

/// The data of one record; the buffers are used again.
#[derive(Default)]
struct Data {
    counts: Vec<u64>,
    bitmap: Vec<u8>,
    uniformity: Vec<u8>,
    values: ValueData,
}
