//! Decodes a part. docs/formats/part.md describes the format.
use super::PartError;
use super::inputs::{Entry, StoredInputs};
use super::key::Key;
use crate::Weight;
use crate::accumulate::Accumulator;
use crate::accumulate::{Incoming, RecordStats, Rules, SiteRule, order_of};
use crate::driver::ReportPart;
use crate::engine::{Collected, Drawn, Generations, Group, TraceSample};
use crate::error::Members;
use crate::kinds::InputKind;
use crate::report::{Action, Event, EventLog, LlvmCode, LlvmFault, Reason, Totals};
use flate2::bufread::DeflateDecoder;
use profkit_abi::value_kind;
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::detect::{Family, PART_MAGIC};
use profkit_data::ids::{BuildId, FuncHash, NameRef};
use profkit_data::instr::{
    InstrKind, NewRecord, TemporalTrace, TraceOptions, ValueData, ValueEntry,
};
use profkit_data::releases::HashOrigin;
use profkit_data::{Error, ErrorKind, Result, Structure};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// The version of the format of parts that is written. All earlier versions are read.
pub const VERSION: u32 = 1;
/// The magic number, the version, the family, a zero byte, and the number of sections.
pub(super) const HEADER_LEN: usize = 16;
/// The tag, the flags, the offset, the stored and the raw size, and the checksum of a section.
pub(super) const TABLE_ENTRY_LEN: usize = 36;
pub(super) const FLAG_DEFLATE: u16 = 1;
/// A section that an older reader may leave out.
const FLAG_SKIPPABLE: u16 = 2;
/// A section becomes at most this many times longer. Memory is then at most about 512 times the size of a hostile part.
pub(super) const INFLATE_RATIO: usize = 64;

/// The sections, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Tag {
    Options = 1,
    Inputs = 2,
    Events = 3,
    Groups = 4,
    Names = 5,
    Records = 6,
    Counts = 7,
    Values = 8,
}

impl Tag {
    const ALL: [Self; 8] = [
        Tag::Options,
        Tag::Inputs,
        Tag::Events,
        Tag::Groups,
        Tag::Names,
        Tag::Records,
        Tag::Counts,
        Tag::Values,
    ];

    fn structure(self) -> Structure {
        let name = match self {
            Tag::Options => "OPTIONS",
            Tag::Inputs => "INPUTS",
            Tag::Events => "EVENTS",
            Tag::Groups => "GROUPS",
            Tag::Names => "NAMES",
            Tag::Records => "RECORDS",
            Tag::Counts => "COUNTS",
            Tag::Values => "VALUES",
        };
        Structure::Named(format!("section {name}"))
    }
}

/// What a part holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartFacts {
    /// The number of inputs.
    pub inputs: u64,
    /// The number of functions. Those that differ only in their hash or their shape count one by one.
    pub functions: u64,
    /// The build ids of the programs.
    pub build_ids: Vec<BuildId>,
    /// The family of the inputs.
    pub family: Family,
    /// The kind of the first instrumentation profile with functions; `None` if there is none.
    pub kind: Option<InstrKind>,
}

/// Reads a whole part, and returns what it holds.
///
/// # Errors
/// The first fault, with the section and the offset in the file.
pub fn examine(data: &[u8]) -> Result<PartFacts> {
    let part = Decoded::parse(data)?;
    let inputs = part.entries.len() as u64;
    let groups = part.collected()?.groups;
    let functions = groups
        .iter()
        .map(|group| group.acc.table().record_count() as u64);
    let ids: BTreeSet<_> = groups.iter().flat_map(|group| &group.binary_ids).collect();
    Ok(PartFacts {
        inputs,
        functions: functions.sum(),
        build_ids: ids.into_iter().cloned().collect(),
        family: Family::Instr,
        kind: groups
            .iter()
            .flat_map(|group| &group.inputs)
            .find(|input| input.has_functions && !input.kind.is_unknown())
            .map(|input| input.kind),
    })
}

/// A section: its offset in the file, and its bytes as they were before compression.
type Section<'a> = (Tag, u64, Cow<'a, [u8]>);

/// A part whose checksums are right.
pub(crate) struct Decoded<'a> {
    pub(super) key: Key,
    pub(super) entries: Vec<Entry>,
    sections: Vec<Section<'a>>,
    totals: Totals,
    families: BTreeMap<Family, Members>,
    generations: Generations,
}

impl<'a> Decoded<'a> {
    /// Reads the options and the inputs of a part, and checks all checksums.
    pub(crate) fn parse(data: &'a [u8]) -> Result<Self> {
        let within = |error: Error| error.within(Structure::MergePart);
        let sections = sections(data).map_err(within)?;
        let mut part = Decoded {
            key: Key {
                traces: TraceOptions::default(),
                separate: false,
                remapping: 0,
            },
            entries: Vec::new(),
            sections,
            totals: Totals::default(),
            families: BTreeMap::new(),
            generations: Generations::default(),
        };
        part.entries = part
            .read(Tag::Inputs, |source| source.entries())
            .map_err(within)?;
        let inputs = part.entries.len();
        let (key, totals, families, generations) = part
            .read(Tag::Options, |source| source.options(inputs))
            .map_err(within)?;
        part.key = key;
        part.totals = totals;
        part.families = families;
        part.generations = generations;
        Ok(part)
    }

    /// Reads everything.
    pub(crate) fn collected(self) -> Result<Collected> {
        self.read_all()
            .map_err(|error| error.within(Structure::MergePart))
    }

    fn read_all(self) -> Result<Collected> {
        let inputs = self.entries.len();
        let log = self.read(Tag::Events, |source| source.log(inputs))?;
        let (mut groups, traces, counts) =
            self.read(Tag::Groups, |source| source.groups(inputs))?;
        let mut columns = Columns {
            names: self.open(Tag::Names)?,
            records: self.open(Tag::Records)?,
            counts: self.open(Tag::Counts)?,
            values: self.open(Tag::Values)?,
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
        Ok(Collected {
            groups,
            traces,
            report: ReportPart {
                log,
                totals: self.totals,
                families: self.families,
                ..ReportPart::default()
            },
            generations: self.generations,
            contents: Vec::new(),
        })
    }

    fn open(&self, tag: Tag) -> Result<In<'_>> {
        let found = self.sections.iter().find(|(other, ..)| *other == tag);
        let Some((_, offset, bytes)) = found else {
            let error = ErrorKind::Malformed.error("the section is missing");
            return Err(error.within(tag.structure()));
        };
        Ok(In(Cursor::new(bytes, *offset, Endian::Little)))
    }

    /// Reads a whole section.
    fn read<T>(&self, tag: Tag, read: impl FnOnce(&mut In<'_>) -> Result<T>) -> Result<T> {
        let mut source = self.open(tag)?;
        let value = read(&mut source).and_then(|value| source.end().map(|()| value));
        value.map_err(|error| error.within(tag.structure()))
    }
}

/// A row of the section table: where the section is, and what its bytes must be.
pub(crate) struct Row {
    tag: Tag,
    flags: u16,
    offset: u64,
    stored: u64,
    raw: u64,
    checksum: u64,
}

/// The section table, for which the first bytes of a part suffice.
fn table(data: &[u8]) -> Result<Vec<Row>> {
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    let header = |error: Error| error.within(Structure::Header);
    if cursor.array::<8>().map_err(header)? != PART_MAGIC {
        let error = ErrorKind::BadMagic.error("the file is not a part of a merge");
        return Err(error.at(0));
    }
    let version = cursor.u32().map_err(header)?;
    if version == 0 || version > VERSION {
        let error = ErrorKind::UnsupportedVersion.error("the version of the part is not known");
        return Err(error
            .at(8)
            .found(format_args!("version {version}"))
            .expected(format_args!("at most version {VERSION}"))
            .with_hint("a newer profkit wrote the part: use that one, or a newer one"));
    }
    let family = cursor.u8().map_err(header)?;
    if Family::ALL.get(usize::from(family)) != Some(&Family::Instr) {
        let error = ErrorKind::Unsupported.error("the part is not one of instrumentation profiles");
        return Err(error.at(12));
    }
    cursor.u8().map_err(header)?;
    let count = cursor.u16().map_err(header)?;
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..count {
        let at = cursor.offset();
        let table = |error: Error| error.within(Structure::SectionTable);
        let (code, flags) = (cursor.u16().map_err(table)?, cursor.u16().map_err(table)?);
        let mut number = || cursor.u64().map_err(table);
        let (offset, stored, raw, checksum) = (number()?, number()?, number()?, number()?);
        let tag = Tag::ALL.into_iter().find(|&tag| tag as u16 == code);
        let Some(tag) = tag else {
            if flags & FLAG_SKIPPABLE != 0 {
                continue;
            }
            let error = ErrorKind::Malformed.error("the section is of an unknown kind");
            return Err(error.at(at).found(code).within(Structure::SectionTable));
        };
        if rows.iter().any(|row| row.tag == tag) {
            let error = ErrorKind::Malformed.error("the section is there twice");
            return Err(error.at(at).within(tag.structure()));
        }
        rows.push(Row {
            tag,
            flags,
            offset,
            stored,
            raw,
            checksum,
        });
    }
    Ok(rows)
}

fn sections(data: &[u8]) -> Result<Vec<Section<'_>>> {
    let rows = table(data)?;
    let read = |row: Row| {
        let section = section(
            data,
            (row.offset, row.stored, row.raw),
            row.flags,
            row.checksum,
        );
        let section = section.map_err(|error| error.at(row.offset).within(row.tag.structure()))?;
        Ok((row.tag, row.offset, section))
    };
    rows.into_iter().map(read).collect()
}

/// Where the section with the inputs is, from the first bytes of a part.
pub(crate) fn find_inputs(front: &[u8]) -> Result<Row> {
    let rows = table(front).map_err(|error| error.within(Structure::MergePart))?;
    let row = rows.into_iter().find(|row| row.tag == Tag::Inputs);
    row.ok_or_else(|| {
        let error = ErrorKind::Malformed.error("the section is missing");
        error
            .within(Tag::Inputs.structure())
            .within(Structure::MergePart)
    })
}

impl Row {
    /// The place of the section in the part.
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.stored)
    }

    /// The inputs in the bytes of the section.
    pub(crate) fn inputs(&self, bytes: &[u8]) -> Result<StoredInputs> {
        let read = || {
            let section = section(bytes, (0, self.stored, self.raw), self.flags, self.checksum)?;
            let mut source = In(Cursor::new(&section, self.offset, Endian::Little));
            source.entries().map(StoredInputs)
        };
        read().map_err(|error: Error| {
            error
                .within(Tag::Inputs.structure())
                .within(Structure::MergePart)
        })
    }
}

fn section(
    data: &[u8],
    (offset, stored, raw): (u64, u64, u64),
    flags: u16,
    checksum: u64,
) -> Result<Cow<'_, [u8]>> {
    let place = || {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(stored).ok()?)?;
        data.get(start..end)
    };
    let Some(bytes) = place() else {
        return Err(ErrorKind::Truncated
            .error("the section is cut off")
            .because_data_end()
            .found(format_args!("{} bytes in the file", data.len()))
            .expected(format_args!("{stored} bytes from offset {offset:#x}")));
    };
    if XxHash3_64::oneshot(bytes) != checksum {
        return Err(ErrorKind::ChecksumMismatch
            .error("the checksum of the section is not that of its bytes")
            .with_hint("copy the part again, or make it again from its inputs"));
    }
    if flags & FLAG_DEFLATE == 0 {
        return Ok(Cow::Borrowed(bytes));
    }
    let most = (bytes.len() as u64).saturating_mul(INFLATE_RATIO as u64 + 1);
    if raw > most {
        return Err(ErrorKind::LimitExceeded
            .error("the section claims to become too large")
            .found(raw)
            .expected(format_args!("at most {most}")));
    }
    let mut inflated = Vec::new();
    let read = DeflateDecoder::new(bytes)
        .take(raw.saturating_add(1))
        .read_to_end(&mut inflated);
    if read.is_err() || inflated.len() as u64 != raw {
        return Err(ErrorKind::UncompressFailed.error("the section cannot be decompressed"));
    }
    Ok(Cow::Owned(inflated))
}

/// The bytes of a section.
struct In<'a>(Cursor<'a>);

impl In<'_> {
    fn wrong(&self, message: &'static str) -> Error {
        ErrorKind::Malformed.error(message).at(self.0.offset())
    }

    fn end(&self) -> Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(self.wrong("the section has more bytes than it needs")),
        }
    }

    fn number(&mut self) -> Result<u64> {
        self.0.uleb128()
    }

    /// A number that others are added to. It has no more than 56 bits, so that the sums of a hostile part fit 64.
    fn tally(&mut self) -> Result<u64> {
        let tally = self.number()?;
        match tally >> 56 {
            0 => Ok(tally),
            _ => Err(self.wrong("a number is too large to be true").found(tally)),
        }
    }

    /// A number of things of which each takes at least `least` bytes of this section.
    fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.number()?;
        let fits = usize::try_from(count).ok().filter(|count| {
            count
                .checked_mul(least)
                .is_some_and(|bytes| bytes <= self.0.remaining())
        });
        fits.ok_or_else(|| {
            self.wrong("a number is greater than the section")
                .found(count)
        })
    }

    /// A number that fits memory; nothing is allocated because of it.
    fn size(&mut self) -> Result<usize> {
        let size = self.number()?;
        usize::try_from(size).map_err(|_| self.wrong("a size does not fit memory").found(size))
    }

    fn small(&mut self) -> Result<u32> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.wrong("a number has more than 32 bits").found(value))
    }

    fn flag(&mut self) -> Result<bool> {
        match self.0.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong("a flag is neither 0 nor 1").found(other)),
        }
    }

    fn input(&mut self, inputs: usize) -> Result<usize> {
        let input = self.size()?;
        match input < inputs {
            true => Ok(input),
            false => Err(self
                .wrong("there is no input with this number")
                .found(input)),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>> {
        let len = self.count(1)?;
        self.0.take(len).map(<[u8]>::to_vec)
    }

    fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| self.wrong("a text is not UTF-8"))
    }

    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        self.flag()?.then(|| read(self)).transpose()
    }

    /// Replaces a text by the next one of a sorted list.
    fn after(&mut self, last: &mut Vec<u8>) -> Result<()> {
        let same = self.size()?;
        if same > last.len() {
            return Err(self.wrong("a name repeats more bytes than the last one has"));
        }
        let rest = self.count(1)?;
        last.truncate(same);
        last.extend_from_slice(self.0.take(rest)?);
        Ok(())
    }

    fn build_ids(&mut self) -> Result<Vec<BuildId>> {
        let count = self.count(1)?;
        (0..count).map(|_| self.bytes().map(BuildId)).collect()
    }

    fn members(&mut self, inputs: usize) -> Result<Members> {
        let number = self.tally()?;
        let count = self.count(1)?;
        let first = (0..count).map(|_| self.input(inputs));
        Ok(Members::of_parts(
            number,
            first.collect::<Result<BTreeSet<_>>>()?,
        ))
    }

    fn entries(&mut self) -> Result<Vec<Entry>> {
        let count = self.count(18)?;
        if count > PartError::MOST_INPUTS {
            return Err(self.wrong("the part has too many inputs").found(count));
        }
        let mut entries: Vec<Entry> = Vec::with_capacity(count);
        let mut name = Vec::new();
        let mut ids = BTreeSet::new();
        for _ in 0..count {
            self.after(&mut name)?;
            let text = String::from_utf8(name.clone());
            let entry = Entry {
                name: text.map_err(|_| self.wrong("a name is not UTF-8"))?,
                id: self.0.u64()?,
                content: self.0.u64()?,
            };
            let last = entries.last();
            if last.is_some_and(|last| (&last.name, last.id) >= (&entry.name, entry.id))
                || !ids.insert(entry.id)
            {
                return Err(self.wrong("the inputs are not sorted, or one is there twice"));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    #[allow(clippy::type_complexity, reason = "the parts of one section")]
    fn options(
        &mut self,
        inputs: usize,
    ) -> Result<(Key, Totals, BTreeMap<Family, Members>, Generations)> {
        let key = Key {
            traces: TraceOptions {
                reservoir_size: self.number()?,
                max_length: self.number()?,
            },
            separate: self.flag()?,
            remapping: self.0.u64()?,
        };
        let mut totals = Totals::default();
        let count = self.count(1)?;
        let known = totals.numbers_mut();
        if count > known.len() {
            return Err(self
                .wrong("there are more totals than are known")
                .found(count));
        }
        for number in known.into_iter().take(count) {
            *number = self.tally()?;
        }
        let mut families = BTreeMap::new();
        for _ in 0..self.count(3)? {
            let code = self.size()?;
            let family = Family::ALL.get(code).copied();
            let family = family.ok_or_else(|| self.wrong("the family is not known").found(code))?;
            families.insert(family, self.members(inputs)?);
        }
        let mut generations = Generations {
            without_functions: self.small()?.checked_sub(1),
            ..Generations::default()
        };
        for _ in 0..self.count(5)? {
            let origin = HashOrigin {
                front_end: self.flag()?,
                is_raw: self.flag()?,
                version: self.small()?,
            };
            generations.origins.insert(origin, self.members(inputs)?);
        }
        Ok((key, totals, families, generations))
    }

    fn known<T: Copy>(&mut self, all: &[T]) -> Result<T> {
        let code = self.size()?;
        let value = all.get(code).copied();
        value.ok_or_else(|| self.wrong("the number has no meaning").found(code))
    }

    fn log(&mut self, inputs: usize) -> Result<EventLog> {
        let count = self.count(12)?;
        let events = (0..count).map(|_| Ok((self.number()?, self.event(inputs)?)));
        let events = events.collect::<Result<Vec<_>>>()?;
        let counts = [self.counts()?, self.counts()?];
        Ok(EventLog::of_parts(events, counts))
    }

    fn counts(&mut self) -> Result<BTreeMap<Reason, u64>> {
        let count = self.count(2)?;
        (0..count)
            .map(|_| Ok((self.known(&Reason::ALL)?, self.tally()?)))
            .collect()
    }

    fn event(&mut self, inputs: usize) -> Result<Event> {
        let input = self.input(inputs)?;
        let function = self.optional(Self::bytes)?;
        let offset = self.number()?.checked_sub(1);
        let (action, reason) = (self.known(&Action::ALL)?, self.known(&Reason::ALL)?);
        let mut event = Event::new(input, action, reason, self.text()?);
        event.function = function;
        event.offset = offset;
        event.place = self.optional(Self::text)?;
        event.found = self.optional(Self::text)?;
        event.expected = self.optional(Self::text)?;
        event.hint = self.optional(Self::text)?;
        let code = self.size()?;
        let detail = self.optional(Self::text)?;
        event.llvm = match code.checked_sub(1) {
            None => None,
            Some(place) => {
                let code = LlvmCode::ALL.get(place).copied();
                let code =
                    code.ok_or_else(|| self.wrong("the number has no meaning").found(place))?;
                Some(LlvmFault { code, detail })
            }
        };
        Ok(event)
    }

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
