//! Decodes a part. docs/formats/part.md describes the format.
use super::PartError;
use super::bytes::In;
use super::inputs::{Entry, StoredInputs};
use super::key::{Key, SampleKey};
use super::sum::Sum;
use super::{instr, mip, samples};
use crate::driver::ReportPart;
use crate::engine::Generations;
use crate::error::Members;
use crate::report::{Action, Event, EventLog, LlvmCode, LlvmFault, Reason, Totals};
use flate2::bufread::DeflateDecoder;
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::detect::{Family, PART_MAGIC};
use profkit_data::ids::BuildId;
use profkit_data::instr::{InstrKind, TraceOptions};
use profkit_data::releases::HashOrigin;
use profkit_data::sample::FsPass;
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
/// A section becomes at most this many times longer. Memory is then at most about 20,000 times the size of a hostile part
/// with heap profiles, and 1,500 times that of others.
const INFLATE_RATIO: u64 = 64;

const COPY_AGAIN: &str = "copy the part again, or make it again from its inputs";

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
    Samples = 9,
    Mip = 10,
    Heap = 11,
}

impl Tag {
    const ALL: [Self; 11] = [
        Tag::Options,
        Tag::Inputs,
        Tag::Events,
        Tag::Groups,
        Tag::Names,
        Tag::Records,
        Tag::Counts,
        Tag::Values,
        Tag::Samples,
        Tag::Mip,
        Tag::Heap,
    ];

    pub(super) fn structure(self) -> Structure {
        let name = match self {
            Tag::Options => "OPTIONS",
            Tag::Inputs => "INPUTS",
            Tag::Events => "EVENTS",
            Tag::Groups => "GROUPS",
            Tag::Names => "NAMES",
            Tag::Records => "RECORDS",
            Tag::Counts => "COUNTS",
            Tag::Values => "VALUES",
            Tag::Samples => "SAMPLES",
            Tag::Mip => "MIP",
            Tag::Heap => "HEAP",
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
    /// The family of the inputs. Heap profiles can be beside instrumentation profiles, and then it is that of these.
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
    let family = part.family;
    let sum = part.sum()?;
    let family = match sum.is_heap_only() {
        true => Family::MemProf,
        false => family,
    };
    let kind = sum.instr_kind();
    let (functions, build_ids) = sum.facts();
    Ok(PartFacts {
        inputs,
        functions,
        build_ids,
        family,
        kind,
    })
}

/// A section: its offset in the file, and its bytes as they were before compression.
type Section<'a> = (Tag, u64, Cow<'a, [u8]>);

/// A part whose checksums are right.
pub(crate) struct Decoded<'a> {
    pub(super) key: Key,
    pub(super) entries: Vec<Entry>,
    pub(super) family: Family,
    sections: Vec<Section<'a>>,
    totals: Totals,
    families: BTreeMap<Family, Members>,
    generations: Generations,
}

impl<'a> Decoded<'a> {
    /// Reads the options and the inputs of a part, and checks all checksums.
    pub(crate) fn parse(data: &'a [u8]) -> Result<Self> {
        Self::read_head(data).map_err(|error| error.within(Structure::MergePart))
    }

    fn read_head(data: &'a [u8]) -> Result<Self> {
        let (family, sections) = sections(data)?;
        let mut part = Decoded {
            key: Key::default(),
            entries: Vec::new(),
            family,
            sections,
            totals: Totals::default(),
            families: BTreeMap::new(),
            generations: Generations::default(),
        };
        part.entries = part.read(Tag::Inputs, |source| source.entries())?;
        let inputs = part.entries.len();
        let (key, totals, families, generations) =
            part.read(Tag::Options, |source| source.options(family, inputs))?;
        part.key = key;
        part.totals = totals;
        part.families = families;
        part.generations = generations;
        Ok(part)
    }

    /// Whether no input was sound: the part fits those of each family.
    pub(crate) fn is_neutral(&self) -> bool {
        self.families.is_empty()
    }

    /// Reads everything.
    pub(crate) fn sum(mut self) -> Result<Sum> {
        self.read_all()
            .map_err(|error| error.within(Structure::MergePart))
    }

    fn read_all(&mut self) -> Result<Sum> {
        let inputs = self.entries.len();
        let report = ReportPart {
            log: self.read(Tag::Events, |source| source.log(inputs))?,
            totals: self.totals,
            families: std::mem::take(&mut self.families),
            ..ReportPart::default()
        };
        let generations = std::mem::take(&mut self.generations);
        Ok(match self.family {
            Family::Sample => Sum::Sample(self.read(Tag::Samples, |source| {
                samples::decode(source, inputs, report)
            })?),
            Family::Mip => {
                Sum::Mip(self.read(Tag::Mip, |source| mip::decode(source, inputs, report))?)
            }
            _ => Sum::Instr(instr::decode(self, report, generations)?),
        })
    }

    pub(super) fn has(&self, tag: Tag) -> bool {
        self.sections.iter().any(|(other, ..)| *other == tag)
    }

    pub(super) fn open(&self, tag: Tag) -> Result<In<'_>> {
        let found = self.sections.iter().find(|(other, ..)| *other == tag);
        let Some((_, offset, bytes)) = found else {
            let error = ErrorKind::Malformed.error("the section is missing");
            return Err(error.within(tag.structure()));
        };
        Ok(In(Cursor::new(bytes, *offset, Endian::Little)))
    }

    /// Reads a whole section.
    pub(super) fn read<T>(
        &self,
        tag: Tag,
        read: impl FnOnce(&mut In<'_>) -> Result<T>,
    ) -> Result<T> {
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

/// The header and the section table of a part.
struct Table {
    family: Family,
    rows: Vec<Row>,
    /// Where the last section ends, also one that is skipped.
    end: u64,
}

/// Reads the section table, for which the first bytes of a part suffice.
fn table(data: &[u8]) -> Result<Table> {
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    let header = |error: Error| error.within(Structure::Header).with_hint(COPY_AGAIN);
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
    let code = cursor.u8().map_err(header)?;
    let family = Family::ALL.get(usize::from(code)).copied();
    let Some(family @ (Family::Instr | Family::Sample | Family::Mip)) = family else {
        let error = ErrorKind::Unsupported.error("there are no parts of profiles of this family");
        return Err(error.at(12).found(code));
    };
    let reserved = cursor.u8().map_err(header)?;
    if reserved != 0 {
        let error = ErrorKind::BadHeader.error("a reserved byte is not 0");
        return Err(error
            .at(13)
            .found(reserved)
            .expected("0")
            .within(Structure::Header));
    }
    let count = cursor.u16().map_err(header)?;
    let first = (HEADER_LEN + usize::from(count) * TABLE_ENTRY_LEN) as u64;
    let (mut rows, mut end): (Vec<Row>, u64) = (Vec::new(), first);
    for _ in 0..count {
        let at = cursor.offset();
        let table = |error: Error| error.within(Structure::SectionTable).with_hint(COPY_AGAIN);
        let (code, flags) = (cursor.u16().map_err(table)?, cursor.u16().map_err(table)?);
        let mut number = || cursor.u64().map_err(table);
        let (offset, stored, raw, checksum) = (number()?, number()?, number()?, number()?);
        if offset < first {
            let error = ErrorKind::Malformed.error("the section begins within the section table");
            let error = error.at(at).within(Structure::SectionTable);
            return Err(error.found(format_args!("offset {offset:#x}")));
        }
        end = end.max(offset.saturating_add(stored));
        let tag = Tag::ALL.into_iter().find(|&tag| tag as u16 == code);
        let Some(tag) = tag else {
            if flags & FLAG_SKIPPABLE != 0 {
                continue;
            }
            let error = ErrorKind::Malformed.error("the section is of an unknown kind");
            return Err(error.at(at).found(code).within(Structure::SectionTable));
        };
        let unknown = flags & !(FLAG_DEFLATE | FLAG_SKIPPABLE);
        if unknown != 0 {
            return Err(ErrorKind::Unsupported
                .error("the section has unknown flags")
                .at(at)
                .found(format_args!("{unknown:#x}"))
                .within(tag.structure())
                .with_hint(COPY_AGAIN));
        }
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
    Ok(Table { family, rows, end })
}

fn sections(data: &[u8]) -> Result<(Family, Vec<Section<'_>>)> {
    let Table { family, rows, end } = table(data)?;
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
    let sections = rows.into_iter().map(read).collect::<Result<_>>()?;
    if data.len() as u64 != end {
        return Err(ErrorKind::Malformed
            .error("the file has another size than its sections")
            .found(format_args!("{} bytes", data.len()))
            .expected(end)
            .with_hint(COPY_AGAIN));
    }
    Ok((family, sections))
}

/// Where the section with the inputs is, from the first bytes of a part.
pub(crate) fn find_inputs(front: &[u8]) -> Result<Row> {
    let table = table(front).map_err(|error| error.within(Structure::MergePart))?;
    let row = table.rows.into_iter().find(|row| row.tag == Tag::Inputs);
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

/// How many bytes a compressed section of this size may become. The writer keeps to the same limit, and stores a section that
/// would become larger without compression.
pub(super) fn most_inflated(stored: u64) -> u64 {
    stored
        .saturating_add(1)
        .saturating_mul(INFLATE_RATIO)
        .saturating_sub(1)
}

pub(super) fn section(
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
            .expected(format_args!("{stored} bytes from offset {offset:#x}"))
            .with_hint(COPY_AGAIN));
    };
    if XxHash3_64::oneshot(bytes) != checksum {
        return Err(ErrorKind::ChecksumMismatch
            .error("the checksum of the section is not that of its bytes")
            .with_hint(COPY_AGAIN));
    }
    if flags & FLAG_DEFLATE == 0 {
        if raw != stored {
            return Err(ErrorKind::Malformed
                .error("the section is not compressed, and has another size")
                .found(raw)
                .expected(stored)
                .with_hint(COPY_AGAIN));
        }
        return Ok(Cow::Borrowed(bytes));
    }
    let most = most_inflated(stored);
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

impl In<'_> {
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
        family: Family,
        inputs: usize,
    ) -> Result<(Key, Totals, BTreeMap<Family, Members>, Generations)> {
        let mut key = Key {
            traces: TraceOptions {
                reservoir_size: self.number()?,
                max_length: self.number()?,
            },
            separate: self.flag()?,
            remapping: self.0.u64()?,
            samples: None,
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
        if family == Family::Sample {
            key.samples = Some(SampleKey {
                fs_pass: self.known(&FsPass::ALL)?,
                assume_fs: self.flag()?,
                symbols: self.number()?.checked_sub(1),
                drop_symbols: self.flag()?,
            });
        }
        Ok((key, totals, families, generations))
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
}
