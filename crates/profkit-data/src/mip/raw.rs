//! Reads and writes MIP raw files, which runs of an instrumented program write.
use super::header::{Layout, MipKind, other_kind, preamble};
use super::header_v8::HeaderV8;
use super::losses::Losses;
use super::model::{Identity, Modes, Width};
use crate::bytes::{Bytes, Cursor, Endian, Sink, assert_planned};
use crate::ids::BuildId;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::mip::{MAGIC, VERSION, edge_table, file_type, mode, raw_header, record, ring};
use twox_hash::XxHash3_64;

/// The identity of the image (an executable or a shared library) to which a part of a raw file belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageId<'data> {
    /// The build id of the image; empty if the image has none. Parts of version 9 state it.
    BuildId(&'data [u8]),
    /// A hash of the name under which the image was linked. Parts of version 8 state it.
    ModuleHash(u32),
}

impl ImageId<'_> {
    /// Returns the identity as a value that does not borrow the file.
    pub fn to_identity(self) -> Identity {
        match self {
            ImageId::BuildId(id) => Identity::BuildId(BuildId(id.to_vec())),
            ImageId::ModuleHash(hash) => Identity::ModuleHash(hash),
        }
    }
}

/// A sample of a return address. The sample shows which function was called, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sample {
    /// The offset of the called function's record in the record section, in bytes.
    pub record_offset: u32,
    /// The return address of the call minus the address of the record section, modulo 2^32.
    pub return_offset: u32,
}

/// A part of a raw file: the records of one run, or the sum of the records of several runs.
#[derive(Clone, Debug)]
pub struct RawPart<'data> {
    /// The offset of the part in the file.
    pub offset: u64,
    /// The version of the part: 8 or 9.
    pub version: u16,
    /// The identity of the image to which the records belong.
    pub id: ImageId<'data>,
    /// The width of the target's addresses; `None` if the file does not state it.
    pub width: Option<Width>,
    /// The mode flags of the image.
    pub modes: Modes,
    /// The number of runs that the records sum up.
    pub runs: u32,
    /// The bytes of the record section. In version 8 the record section begins with a header, which is part of these
    /// bytes.
    pub records: &'data [u8],
    /// The size of the complete record section in bytes. If the file is truncated, `records` is shorter.
    pub records_size: u64,
    samples: Samples<'data>,
    /// The error that explains why `records` is shorter than `records_size`, or why there are no samples; `None` if the
    /// part is complete.
    pub damage: Option<Error>,
}

/// The samples of a part, in the form that the mode flags of the image say.
#[derive(Clone, Copy, Debug)]
enum Samples<'data> {
    /// A ring of return addresses, each with the weight 1.
    Ring(&'data [[u8; ring::SAMPLE_SIZE]]),
    /// A table of call edges.
    Table(&'data [[u8; edge_table::SLOT_SIZE]]),
}

impl<'data> Samples<'data> {
    const NONE: Self = Samples::Ring(&[]);

    /// # Errors
    /// [`ErrorKind::Malformed`] if the mode flags ask for both forms, or the last sample is incomplete.
    fn new(bytes: &'data [u8], modes: Modes) -> Result<Self> {
        let error = |message: &'static str| ErrorKind::Malformed.error(message);
        if modes.contains(Modes::CALL_EDGES) {
            if modes.contains(Modes::RETURN_ADDRESSES) {
                return Err(error(
                    "the samples have two forms, because objects of two releases of profkit were linked",
                )
                .found(format_args!("mode bits {:#x}", modes.0))
                .expected("only one of 0x10 and 0x80")
                .with_hint("instrument all objects with one release of profkit"));
            }
            let (slots, rest) = bytes.as_chunks();
            if rest.is_empty() {
                return Ok(Samples::Table(slots));
            }
        }
        let (slots, rest) = bytes.as_chunks();
        if rest.is_empty() && !modes.contains(Modes::CALL_EDGES) {
            return Ok(Samples::Ring(slots));
        }
        let size = if modes.contains(Modes::CALL_EDGES) {
            edge_table::SLOT_SIZE
        } else {
            ring::SAMPLE_SIZE
        };
        Err(error("the last sample is incomplete")
            .found(Bytes(bytes.len()))
            .expected(format_args!("a multiple of {size}")))
    }
}

impl<'data> RawPart<'data> {
    /// Returns the samples of calls, each with its weight: the number of calls that it stands for. The program stores
    /// them in a fixed number of slots; the slots that hold no sample are skipped.
    pub fn samples(&self) -> impl Iterator<Item = (Sample, u64)> + use<'data> {
        let (ring, table): (&[_], &[_]) = match self.samples {
            Samples::Ring(ring) => (ring, &[]),
            Samples::Table(table) => (&[], table),
        };
        let ring = ring.iter().map(|slot| (sample(slot), 1));
        let table = table.iter().map(slot);
        ring.chain(table).filter(|&(sample, weight)| {
            sample.return_offset != 0 && weight != 0 && sample != Sample::LOST
        })
    }

    /// Returns the number of calls whose samples were dropped because the table of the program had no slot for them.
    pub fn lost_samples(&self) -> u64 {
        let Samples::Table(table) = self.samples else {
            return 0;
        };
        let lost = table
            .iter()
            .map(slot)
            .filter(|(sample, _)| *sample == Sample::LOST);
        lost.fold(0, |sum: u64, (_, weight)| sum.saturating_add(weight))
    }
}

fn sample(bytes: &[u8; ring::SAMPLE_SIZE]) -> Sample {
    let [a, b, c, d, rest @ ..] = *bytes;
    Sample {
        record_offset: u32::from_le_bytes([a, b, c, d]),
        return_offset: u32::from_le_bytes(rest),
    }
}

fn slot(bytes: &[u8; edge_table::SLOT_SIZE]) -> (Sample, u64) {
    let [a, b, c, d, e, f, g, h, weight @ ..] = *bytes;
    (
        sample(&[a, b, c, d, e, f, g, h]),
        u64::from_le_bytes(weight),
    )
}

impl Sample {
    /// Not a sample: the key of the slot that holds the weight of all samples for which there was no slot.
    const LOST: Sample = Sample {
        record_offset: edge_table::LOST_KEY,
        return_offset: edge_table::LOST_KEY,
    };
}

/// Iterates over the parts of a raw file. A file can contain parts of several images and several runs.
///
/// A truncated part is returned with the records that the file still has, and with the error in [`RawPart::damage`].
/// For a part with a wrong checksum, only an error is returned, because any of its bytes may be wrong. If the end of
/// the damaged part is known, the iteration continues with the next part; otherwise it ends.
#[derive(Clone, Debug)]
pub struct RawParts<'data> {
    cursor: Cursor<'data>,
    data: &'data [u8],
    count: usize,
    done: bool,
}

impl<'data> RawParts<'data> {
    /// Makes an iterator over the parts of a raw file. The file is not read yet.
    pub fn new(data: &'data [u8]) -> Self {
        RawParts {
            cursor: Cursor::new(data, 0, Endian::Little),
            data,
            count: 0,
            done: false,
        }
    }

    fn part(&mut self) -> Result<Option<RawPart<'data>>> {
        if self.count > 0 && self.cursor.is_empty() {
            return Ok(None);
        }
        if self.data.is_empty() {
            return Err(ErrorKind::Empty.error("the file is empty").with_hint(
                "the program ended before it wrote its records, or it still runs and has not written them yet",
            ));
        }
        self.done = true;
        let rest = self.cursor.rest();
        let start = self.cursor.offset();
        if self.count > 0 && !rest.starts_with(&MAGIC.to_le_bytes()) {
            let found = rest.len();
            return Err(ErrorKind::Malformed
                .error("there are bytes after the last part")
                .at(start)
                .within(Structure::MipRaw)
                .found(Bytes(found))
                .expected("the end of the file or another part"));
        }
        let preamble = match preamble(rest) {
            Ok(preamble) => preamble,
            Err(error) if start == 0 => return Err(error),
            // A new error is made, because the offset in `error` counts from the start of the part and not of the file.
            Err(error) => {
                return Err(Error::new(error.kind(), error.message().to_owned())
                    .at(start)
                    .within(Structure::Header));
            }
        };
        if preamble.kind != MipKind::Raw {
            return Err(other_kind(&preamble, MipKind::Raw));
        }
        if preamble.layout != Layout::V9 {
            if start != 0 {
                return Err(ErrorKind::Malformed.error("a part of version 8 is not the first part")
                .at(start)
                .within(Structure::MipRaw)
                .with_hint(
                    "split the file: a version 8 part does not state its size, so it must be in a file of its own",
                ));
            }
            return version_8(rest).map(Some);
        }
        self.version_9(preamble.width).map(Some)
    }

    fn version_9(&mut self, width: Option<Width>) -> Result<RawPart<'data>> {
        let start = self.cursor.offset();
        let whole = self.cursor.rest();
        let mut cursor = self.cursor;
        let header = Header::read(&mut cursor).map_err(|error| error.within(Structure::Header))?;
        let id = cursor
            .take(header.build_id)
            .and_then(|id| {
                let padded = header.build_id.next_multiple_of(raw_header::BUILD_ID_ALIGN);
                cursor.take(padded - header.build_id)?;
                Ok(id)
            })
            .map_err(|error| error.within(Structure::BuildId))?;
        let mut part = RawPart {
            offset: start,
            version: VERSION,
            id: ImageId::BuildId(id),
            width,
            modes: header.modes,
            runs: header.runs,
            records: &[],
            records_size: header.records,
            samples: Samples::NONE,
            damage: None,
        };
        let at_records = cursor.offset();
        let needed = u128::from(header.records) + u128::from(header.samples);
        let needed = needed + raw_header::CHECKSUM_SIZE as u128;
        if needed > cursor.remaining() as u128 {
            let left = cursor.remaining() as u64;
            let records = header.records.min(left);
            part.records = cursor.take_u64(records)?;
            part.damage = Some(
                ErrorKind::Truncated
                    .error("the file ends inside one of its parts")
                    .at(at_records + left)
                    .within(Structure::MipRaw)
                    .found(format_args!(
                        "{left} bytes of records, samples and checksum"
                    ))
                    .expected(Bytes(needed))
                    .with_hint("the file lost its end after it was written: copy it again"),
            );
            return Ok(part);
        }
        part.records = cursor.take_u64(header.records)?;
        let samples = cursor.take_u64(u64::from(header.samples))?;
        match Samples::new(samples, header.modes) {
            Ok(samples) => part.samples = samples,
            Err(error) => {
                part.damage = Some(
                    error
                        .at(start + raw_header::SAMPLES_SIZE as u64)
                        .within(Structure::CallEdges),
                );
            }
        }
        let covered = cursor.offset() - start;
        let at = cursor.offset();
        let stored = cursor.u64()?;
        // If an error occurs after this point, reading can continue with the next part.
        self.cursor = cursor;
        self.done = false;
        let covered = usize::try_from(covered).unwrap_or(usize::MAX);
        let computed = XxHash3_64::oneshot(whole.get(..covered).unwrap_or_default());
        if stored != computed {
            return Err(ErrorKind::ChecksumMismatch
                .error("the checksum does not fit the bytes before it")
                .at(at)
                .within(Structure::MipRaw)
                .found(format_args!("{stored:#018x}"))
                .expected(format_args!("{computed:#018x}"))
                .with_hint("the file was changed after it was written: copy it again"));
        }
        Ok(part)
    }
}

struct Header {
    modes: Modes,
    build_id: usize,
    samples: u32,
    runs: u32,
    records: u64,
}

impl Header {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        cursor.take(raw_header::MODES)?;
        let at = cursor.offset();
        let modes = cursor.u32()?;
        let bad = |message, at| Err(ErrorKind::BadHeader.error(message).at(at));
        let Some(modes) = u16::try_from(modes)
            .ok()
            .filter(|modes| modes & !mode::ALL == 0)
        else {
            return bad("there are unknown mode flags", at).map_err(|error: Error| {
                error
                    .found(format_args!("{modes:#x}"))
                    .expected(format_args!("only bits of {:#x}", mode::ALL))
            });
        };
        let at = cursor.offset();
        let length = cursor.u32()?;
        let build_id = length as usize;
        if build_id > raw_header::BUILD_ID_MAX {
            return bad("the build id is too long", at).map_err(|error: Error| {
                error
                    .found(Bytes(length))
                    .expected(format_args!("at most {}", raw_header::BUILD_ID_MAX))
            });
        }
        let samples = cursor.u32()?;
        let at = cursor.offset();
        let runs = cursor.u32()?;
        if runs == 0 {
            return bad("the number of runs is 0", at)
                .map_err(|error: Error| error.found(0).expected("at least 1"));
        }
        let records = cursor.u64()?;
        Ok(Header {
            modes: Modes(modes),
            build_id,
            samples,
            runs,
            records,
        })
    }
}

impl<'data> Iterator for RawParts<'data> {
    type Item = Result<RawPart<'data>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let part = self.part();
        self.count += 1;
        if matches!(part, Ok(None)) || self.data.is_empty() {
            self.done = true;
        }
        part.map_err(|error| {
            if self.count > 1 {
                error.within(Structure::Part(self.count as u64))
            } else {
                error
            }
        })
        .transpose()
    }
}

/// Reads a raw file of version 8. Such a file is a copy of the program's record section in memory, which begins with
/// the header of MIP version 8.
fn version_8(data: &[u8]) -> Result<RawPart<'_>> {
    let header = HeaderV8::parse(data, MipKind::Raw)?;
    Ok(RawPart {
        offset: 0,
        version: profkit_abi::mip::v8::VERSION,
        id: ImageId::ModuleHash(header.module_hash),
        width: header.preamble.width,
        modes: header.modes,
        runs: 1,
        records: data,
        records_size: data.len() as u64,
        samples: Samples::NONE,
        damage: None,
    })
}

/// One part of a raw file to write: the records of one or several runs of one image.
#[derive(Clone, Debug)]
pub struct PartToWrite<'a> {
    /// The build id of the image to which the records belong.
    pub build_id: &'a [u8],
    /// The width of the target's addresses.
    pub width: Width,
    /// The mode flags of the image.
    pub modes: Modes,
    /// The number of runs that the records sum up.
    pub runs: u32,
    /// The bytes of the record section to write.
    pub records: &'a [u8],
    /// The samples of calls to write, each with its weight. Without the mode flag [`Modes::CALL_EDGES`], each weight must
    /// be 1.
    pub samples: &'a [(Sample, u64)],
}

/// Writes one part of a raw file, as the run-time library of a program does. Nothing is left out.
///
/// ```
/// use profkit_data::mip::{Modes, PartToWrite, RawParts, Width, write_raw};
///
/// let part = PartToWrite {
///     build_id: &[0xab, 0xcd],
///     width: Width::Bits64,
///     modes: Modes::FUNCTION_COVERAGE,
///     runs: 1,
///     records: &[0, 0xff],
///     samples: &[],
/// };
/// let mut file = Vec::new();
/// write_raw(&part, &mut file)?;
/// for part in RawParts::new(&file) {
///     assert_eq!(part?.records, [0, 0xff]);
/// }
/// # Ok::<(), profkit_data::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if data are too long for their field, and the errors of the sink.
pub fn write_raw(part: &PartToWrite<'_>, sink: &mut dyn Sink) -> Result<Losses> {
    let too_long = || {
        ErrorKind::CannotRepresent
            .error("the build id or the list of samples is too long for a raw file")
    };
    let is_table = part.modes.contains(Modes::CALL_EDGES);
    if !is_table && part.samples.iter().any(|&(_, weight)| weight != 1) {
        return Err(ErrorKind::CannotRepresent
            .error("samples have weights, and the mode flags say that they are return addresses"));
    }
    let size = if is_table {
        edge_table::SLOT_SIZE
    } else {
        ring::SAMPLE_SIZE
    };
    let samples = u32::try_from(part.samples.len() * size).map_err(|_| too_long())?;
    let length = u32::try_from(part.build_id.len())
        .ok()
        .filter(|&length| length as usize <= raw_header::BUILD_ID_MAX)
        .ok_or_else(too_long)?;
    let width = match part.width {
        Width::Bits32 => file_type::WIDTH_32,
        Width::Bits64 => file_type::WIDTH_64,
    };
    let mut bytes = Vec::with_capacity(
        raw_header::SIZE
            + raw_header::BUILD_ID_MAX
            + part.records.len()
            + part.samples.len() * size,
    );
    bytes.put(&MAGIC.to_le_bytes())?;
    bytes.put(&VERSION.to_le_bytes())?;
    bytes.put(&(file_type::RAW | width).to_le_bytes())?;
    bytes.put(&u32::from(part.modes.0).to_le_bytes())?;
    bytes.put(&length.to_le_bytes())?;
    bytes.put(&samples.to_le_bytes())?;
    bytes.put(&part.runs.to_le_bytes())?;
    bytes.put(&(part.records.len() as u64).to_le_bytes())?;
    assert_planned(
        "header of the raw file",
        raw_header::SIZE as u64,
        bytes.len() as u64,
    );
    bytes.put(part.build_id)?;
    bytes.resize(bytes.len().next_multiple_of(raw_header::BUILD_ID_ALIGN), 0);
    bytes.put(part.records)?;
    for (sample, weight) in part.samples {
        bytes.put(&sample.record_offset.to_le_bytes())?;
        bytes.put(&sample.return_offset.to_le_bytes())?;
        if is_table {
            bytes.put(&weight.to_le_bytes())?;
        }
    }
    let checksum = XxHash3_64::oneshot(&bytes);
    bytes.put(&checksum.to_le_bytes())?;
    sink.put(&bytes)?;
    Ok(Losses::default())
}

/// The first part of a function's record, which describes how the function was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryRecord {
    /// Whether the function was entered.
    pub called: bool,
    /// The number of calls; 0 if the record has plain coverage, which does not count calls.
    pub calls: u64,
    /// Whether `calls` is a lower bound, because the counter was not large enough.
    pub at_least: bool,
    /// The ordinal of the function's first call; `None` if the record has no ordinal.
    pub ordinal: Option<u32>,
}

/// Decodes the number of calls and the ordinal of the first call in a record of version 9.
///
/// If the record has an ordinal but its count means "never called", the count has wrapped around after 2^32 calls, in a
/// program of an earlier release. If the record has a count but no ordinal, the run ended before it stored the ordinal.
#[inline]
pub fn calls_record(count: u32, ordinal: u32) -> EntryRecord {
    let never = record::INITIAL_WORD;
    match (count, ordinal) {
        (record::INITIAL_WORD, record::INITIAL_WORD) => EntryRecord::default(),
        (record::INITIAL_WORD, _) => EntryRecord {
            called: true,
            calls: 1 << 32,
            at_least: true,
            ordinal: Some(ordinal),
        },
        _ => EntryRecord {
            called: true,
            calls: u64::from(count) + 1,
            at_least: count >= record::SATURATED_COUNT,
            ordinal: (ordinal != never).then_some(ordinal),
        },
    }
}

/// Decodes the number of calls and the ordinal of the first call in a record of a function whose calls are sampled
/// ([`Modes::CALL_EDGES`]).
///
/// If threads that do not count atomically have damaged the record, so that its number of calls is negative, the number
/// is taken as 1 if the function has an ordinal.
#[inline]
pub fn sampled_calls_record(bytes: &[u8; record::SAMPLED_CALLS_SIZE]) -> EntryRecord {
    let [a, b, c, d, e, f, g, h, next @ ..] = *bytes;
    let remaining = i32::from_le_bytes([a, b, c, d]);
    let ordinal = u32::from_le_bytes([e, f, g, h]);
    let calls = i64::from_le_bytes(next)
        .wrapping_add(2)
        .wrapping_add(remaining.into());
    let ordinal = (ordinal != record::INITIAL_WORD).then_some(ordinal);
    let least = u64::from(ordinal.is_some());
    let calls = u64::try_from(calls).unwrap_or(0).max(least);
    EntryRecord {
        called: calls > 0,
        calls,
        at_least: false,
        ordinal,
    }
}
