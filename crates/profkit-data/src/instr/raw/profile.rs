use super::header::{RawDialect, RawHeader};
use super::layout::RecordLayout;
use super::metadata::RawMetadata;
use super::record::{RawName, RawRecord, RawVTable};
use super::sections::{self, RawSection, RawSections, UNIFORM_COUNTER_LEN};
use crate::bytes::{Bytes, Cursor};
use crate::ids::BuildId;
use crate::{Error, ErrorKind, Result, Structure};

/// A view of one profile. A raw file holds one or several profiles, one after the other.
///
/// Opening a view reads the header and finds the sections. Data records are decoded when they are requested. The view
/// borrows the bytes of the file and allocates no memory.
///
/// ```
/// use profkit_data::instr::raw::RawProfile;
///
/// let file = include_bytes!(concat!(
///     env!("CARGO_MANIFEST_DIR"),
///     "/../../tests/fixtures/raw/clang-22-ir-plain.profraw"
/// ));
/// let profile = RawProfile::parse(file)?;
/// assert_eq!(profile.header().dialect.version, 10);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RawProfile<'data> {
    file: &'data [u8],
    offset: usize,
    header: RawHeader,
    layout: RecordLayout,
    sections: RawSections<'data>,
    relative: bool,
    metadata: Option<&'data RawMetadata>,
}

impl<'data> RawProfile<'data> {
    /// Opens the profile at the start of a file.
    pub fn parse(file: &'data [u8]) -> Result<Self> {
        Self::parse_at(file, 0)
    }

    /// Opens the profile whose header is at `offset` in a file.
    ///
    /// # Errors
    /// [`ErrorKind::BadMagic`]; [`ErrorKind::UnsupportedVersion`]; [`ErrorKind::BadHeader`] if the header is cut off or
    /// damaged, or places the value data after the end of the file; [`ErrorKind::Malformed`] if the build ids are
    /// damaged. LLVM rejects the same files with the same kinds of error.
    pub fn parse_at(file: &'data [u8], offset: usize) -> Result<Self> {
        let (profile, fault) = Self::parse_salvage_at(file, offset)?;
        if profile.sections.binary_ids.is_whole() {
            profile.binary_ids()?;
        }
        sections::require_whole(fault)?;
        Ok(profile)
    }

    /// Opens the profile at `offset` in a file that may be cut off. If the file is cut off, also returns the error that
    /// [`parse_at`](Self::parse_at) gives. In this case an incomplete section ([`RawSection::is_whole`]) has fewer
    /// bytes than the header states.
    pub fn parse_salvage_at(file: &'data [u8], offset: usize) -> Result<(Self, Option<Error>)> {
        let data = file.get(offset..).unwrap_or_default();
        let header = RawHeader::read(data, offset as u64)?;
        if header.pads_binary_ids() && !header.binary_ids_size.is_multiple_of(8) {
            return Err(ErrorKind::BadHeader
                .error("BinaryIdsSize is not a multiple of 8")
                .at(offset as u64 + 16)
                .within(Structure::Header)
                .within(Structure::RawProfile)
                .found(header.binary_ids_size));
        }
        let layout = RecordLayout::of(&header);
        let (sections, fault) = RawSections::cut(data, offset as u64, &header, &layout);
        let mut profile = RawProfile {
            file,
            offset,
            header,
            layout,
            sections,
            relative: header.dialect.version >= 8,
            metadata: None,
        };
        if matches!(header.dialect.version, 6 | 7) {
            profile.relative = profile.looks_relative();
        }
        Ok((profile, fault))
    }

    /// Joins the data records and names of the program to this profile. The profile itself must contain neither data
    /// records nor names.
    ///
    /// # Errors
    /// An error if the metadata were encoded for a different dialect.
    pub fn with_metadata(mut self, metadata: &'data RawMetadata) -> Result<Self> {
        if !metadata.fits(&self) {
            return Err(Error::new(ErrorKind::Malformed, "the function records were read from the binary for raw profiles of another version, byte order or pointer width")
            .at(self.offset as u64)
            .within(Structure::Header)
            .within(Structure::RawProfile));
        }
        // The data records are not in this file. Errors in the data records therefore state the offset of the counters,
        // which are in the file.
        let section = |bytes: &'data [u8], offset| RawSection {
            bytes,
            offset,
            size: bytes.len() as u64,
        };
        self.sections.data = section(&metadata.data, self.sections.counters.offset);
        self.sections.names = section(&metadata.names, 0);
        self.header.counters_delta = 0;
        self.header.bitmap_delta = 0;
        self.relative = false;
        self.metadata = Some(metadata);
        Ok(self)
    }

    /// The data records and names of the program that were joined to this profile; `None` if none were joined.
    pub fn metadata(&self) -> Option<&'data RawMetadata> {
        self.metadata
    }

    /// The byte order, pointer width, version and flags of the profile.
    pub fn dialect(&self) -> RawDialect {
        self.header.dialect
    }

    /// The header of the profile.
    pub fn header(&self) -> &RawHeader {
        &self.header
    }

    /// The layout of the data records.
    pub fn layout(&self) -> &RecordLayout {
        &self.layout
    }

    /// The sections of the profile.
    pub fn sections(&self) -> &RawSections<'data> {
        &self.sections
    }

    /// The offset of the profile's header in the file.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes of the whole file, which may contain further profiles.
    pub fn file(&self) -> &'data [u8] {
        self.file
    }

    /// Whether counter pointers are relative to their data record. From version 8 on, they always are. In versions 6
    /// and 7, only snapshots of LLVM 13 from mid-2021 wrote relative pointers; the file does not state this, so the
    /// values of the pointers decide.
    pub fn has_relative_counters(&self) -> bool {
        self.relative
    }

    /// Whether the profile has counters but neither data records nor names. The data records and names of such a
    /// profile are in the program's binary or its debug info.
    pub fn needs_correlation(&self) -> bool {
        self.metadata.is_none() && sections::needs_correlation(&self.header)
    }

    /// The number of complete data records in the file.
    pub fn record_count(&self) -> usize {
        self.sections.data.bytes.len() / self.layout.stride
    }

    /// Returns the bytes of the data record with this index; `None` if there is no such complete record.
    #[inline]
    pub fn record_bytes(&self, index: usize) -> Option<&'data [u8]> {
        let start = index.checked_mul(self.layout.stride)?;
        let end = start.checked_add(self.layout.stride)?;
        self.sections.data.bytes.get(start..end)
    }

    /// Returns the data record with this index; `None` if there is no such complete record.
    #[inline]
    pub fn record(&self, index: usize) -> Option<RawRecord> {
        let bytes = self.record_bytes(index)?;
        Some(RawRecord::decode(
            bytes,
            index,
            self.header.dialect,
            &self.layout,
        ))
    }

    /// Returns all complete data records in order.
    pub fn records(&self) -> impl ExactSizeIterator<Item = RawRecord> + '_ {
        let (dialect, layout) = (self.header.dialect, &self.layout);
        self.sections
            .data
            .bytes
            .chunks_exact(self.layout.stride)
            .enumerate()
            .map(move |(index, bytes)| RawRecord::decode(bytes, index, dialect, layout))
    }

    /// Returns the offset of a data record in the file. A data record that was joined from the program is not in the
    /// file; for it, the offset of the counters is returned.
    pub fn record_offset(&self, index: usize) -> u64 {
        if self.metadata.is_some() {
            return self.sections.counters.offset;
        }
        let distance = (index as u64).saturating_mul(self.layout.stride as u64);
        self.sections.data.offset.saturating_add(distance)
    }

    /// Returns the offset of a record's counters in the counter section, in bytes. The offset is not checked and may be
    /// outside the section.
    #[inline]
    pub fn counter_offset(&self, record: &RawRecord) -> i64 {
        let delta = self.header.counters_delta;
        self.section_offset(record, record.counter_ptr, delta, self.relative)
    }

    /// Returns the offset of a record's bitmap in the bitmap section, in bytes. The offset is not checked and may be
    /// outside the section.
    #[inline]
    pub fn bitmap_offset(&self, record: &RawRecord) -> i64 {
        let delta = self.header.bitmap_delta;
        self.section_offset(record, record.bitmap_ptr, delta, self.relative)
    }

    /// Converts a pointer in a data record to an offset in its section. A relative pointer is the distance of its
    /// target from the data record that contains the pointer. For relative pointers, `delta` is the distance of the
    /// section from the first data record; for absolute pointers, `delta` is the address of the section.
    #[inline]
    fn section_offset(&self, record: &RawRecord, pointer: u64, delta: u64, relative: bool) -> i64 {
        let base = self.base(record, delta, relative);
        self.header.dialect.width.difference(pointer, base)
    }

    #[inline]
    fn base(&self, record: &RawRecord, delta: u64, relative: bool) -> u64 {
        let index = if relative { record.index as u64 } else { 0 };
        delta.wrapping_sub(index.wrapping_mul(self.layout.stride as u64))
    }

    /// Returns the bytes of a record's counters. A counter has 8 bytes or 1 byte ([`RawDialect::counter_len`]). In a
    /// temporal profile the first 8 bytes are the time stamp.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] with LLVM's detail texts if the record has no counters or they are outside their
    /// section.
    #[inline]
    pub fn counter_bytes(&self, record: &RawRecord) -> Result<&'data [u8]> {
        if record.num_counters == 0 {
            return Err(self.bad_record(record, "the record has no counters", || {
                "number of counters is zero".to_owned()
            }));
        }
        let range = Range {
            section: &self.sections.counters,
            offset: self.counter_offset(record),
            llvm_offset: record
                .counter_ptr
                .wrapping_sub(self.base(record, self.header.counters_delta, self.relative))
                .cast_signed(),
            count: record.num_counters,
            element: self.header.dialect.counter_len(),
            outside: "counters lie outside their section",
            many: "a record has too many counters",
            llvm_noun: "counter",
            llvm_count: "counters",
        };
        self.cut(record, &range)
    }

    /// Returns the bytes of a record's MC/DC bitmap, or an empty list if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`], with the detail text that LLVM prints, if the bitmap is outside its section.
    #[inline]
    pub fn bitmap_bytes(&self, record: &RawRecord) -> Result<&'data [u8]> {
        if record.num_bitmap_bytes == 0 {
            return Ok(&[]);
        }
        let range = Range {
            section: &self.sections.bitmap,
            offset: self.bitmap_offset(record),
            llvm_offset: record
                .bitmap_ptr
                .wrapping_sub(self.base(record, self.header.bitmap_delta, self.relative))
                .cast_signed(),
            count: record.num_bitmap_bytes,
            element: 1,
            outside: "the bitmap lies outside its section",
            many: "a record has too many bitmap bytes",
            llvm_noun: "bitmap",
            llvm_count: "bitmap bytes",
        };
        self.cut(record, &range)
    }

    /// Returns the bytes of a record's uniform counters, 8 bytes for each counter (version 11). The list is empty if
    /// the profile has none.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the uniform counters are outside their section.
    pub fn uniform_counter_bytes(&self, record: &RawRecord) -> Result<&'data [u8]> {
        if self.header.num_uniform_counters == 0 || record.uniform_counter_ptr == 0 {
            return Ok(&[]);
        }
        let delta = self.header.uniform_counters_delta;
        let range = Range {
            section: &self.sections.uniform_counters,
            offset: self.section_offset(record, record.uniform_counter_ptr, delta, true),
            llvm_offset: record
                .uniform_counter_ptr
                .wrapping_sub(self.base(record, delta, true))
                .cast_signed(),
            count: record.num_counters,
            element: UNIFORM_COUNTER_LEN,
            outside: "uniform counters lie outside their section",
            many: "a record has too many uniform counters",
            llvm_noun: "uniform counter",
            llvm_count: "uniform counters",
        };
        self.cut(record, &range)
    }

    #[inline]
    fn cut(&self, record: &RawRecord, range: &Range<'_, 'data>) -> Result<&'data [u8]> {
        let bytes = range.section.bytes;
        let start = usize::try_from(range.offset)
            .ok()
            .filter(|&start| start < bytes.len());
        let found = start.and_then(|start| {
            let len = (range.count as usize).checked_mul(range.element)?;
            bytes.get(start..start.checked_add(len)?)
        });
        found.ok_or_else(|| self.outside(record, range, start))
    }

    #[cold]
    fn outside(&self, record: &RawRecord, range: &Range<'_, '_>, start: Option<usize>) -> Error {
        let Range {
            section,
            offset,
            llvm_offset,
            count,
            element,
            llvm_noun,
            llvm_count,
            ..
        } = *range;
        if !section.is_whole() && u64::try_from(offset).is_ok_and(|offset| offset < section.size) {
            let lost = format!(
                "the file is cut before the {llvm_count} of this record, which begin at byte {offset} of their section"
            );
            return ErrorKind::Truncated
                .error(lost)
                .at(self.record_offset(record.index))
                .within(record_name(record))
                .found(format_args!(
                    "{} bytes of that section",
                    section.bytes.len()
                ))
                .expected(Bytes(section.size));
        }
        let len = section.bytes.len();
        let Some(start) = start else {
            return self
                .bad_record(record, range.outside, || {
                    if llvm_offset < 0 {
                        format!("{llvm_noun} offset {llvm_offset} is negative")
                    } else {
                        let last = len.cast_signed() - 1;
                        format!("{llvm_noun} offset {llvm_offset} is greater than the maximum {llvm_noun} offset {last}")
                    }
                })
                .found(format_args!("offset {offset}"))
                .expected(format_args!("0 to {}", len.saturating_sub(1)));
        };
        let most = (len - start) / element;
        self.bad_record(record, range.many, || {
            format!("number of {llvm_count} {count} is greater than the maximum number of {llvm_count} {most}")
        })
        .found(count)
        .expected(format_args!("at most {most}"))
    }

    #[cold]
    fn bad_record(
        &self,
        record: &RawRecord,
        message: &'static str,
        llvm: impl FnOnce() -> String,
    ) -> Error {
        let error = ErrorKind::Malformed
            .error(message)
            .at(self.record_offset(record.index))
            .within(record_name(record))
            .llvm_detail(llvm());
        match self.metadata {
            Some(_) => error.with_hint(
                "the function records come from the binary: the binary may be another build than the program that ran",
            ),
            None => error,
        }
    }

    /// Returns the function name of a data record of version 1 or 2, which contains a pointer to the name. For records
    /// of later versions the result is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the name is outside the names section.
    pub fn pointed_name(&self, record: &RawRecord) -> Result<&'data [u8]> {
        let RawName::Pointer { pointer, size } = record.name else {
            return Ok(&[]);
        };
        let offset = self
            .header
            .dialect
            .width
            .difference(pointer, self.header.names_delta);
        let names = self.sections.names.bytes;
        usize::try_from(offset)
            .ok()
            .and_then(|start| names.get(start..start.checked_add(size as usize)?))
            .ok_or_else(|| {
                ErrorKind::Malformed
                    .error("a name lies outside the names section")
                    .at(self.record_offset(record.index))
                    .within(record_name(record))
                    .found(format_args!("{size} bytes at offset {offset}"))
                    .expected(format_args!(
                        "a range within the {} bytes of the section",
                        names.len()
                    ))
            })
    }

    /// Returns all complete vtable records in order.
    pub fn vtables(&self) -> impl ExactSizeIterator<Item = RawVTable> + '_ {
        let dialect = self.header.dialect;
        let stride = super::layout::VTableLayout::of(dialect.width).stride;
        let bytes = self.sections.vtables.bytes;
        bytes
            .chunks_exact(stride)
            .map(move |bytes| RawVTable::decode(bytes, dialect))
    }

    /// Returns the build ids in the order of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] with LLVM's detail texts if the section of build ids is damaged.
    pub fn binary_ids(&self) -> Result<Vec<BuildId>> {
        let section = &self.sections.binary_ids;
        let mut cursor = Cursor::new(section.bytes, section.offset, self.header.dialect.endian);
        let mut ids = Vec::new();
        while !cursor.is_empty() {
            let start = cursor.offset();
            let bad = |message: &'static str, llvm: &'static str| {
                ErrorKind::Malformed
                    .error(message)
                    .at(start)
                    .within(Structure::BuildIds)
                    .llvm_detail(llvm)
            };
            let len = cursor.u64().map_err(|_| {
                bad(
                    "the length of a build id is cut off",
                    "not enough data to read binary id length",
                )
            })?;
            if len == 0 {
                return Err(bad("a build id is empty", "binary id length is 0"));
            }
            let cut = |cursor: &Cursor<'_>| {
                bad(
                    "a build id is cut off",
                    "not enough data to read binary id data",
                )
                .found(format_args!("{} left", Bytes(cursor.remaining())))
                .expected(Bytes(len))
            };
            let id = cursor.take_u64(len).map_err(|_| cut(&cursor))?;
            let padding = if self.header.pads_binary_ids() {
                sections::padding_to_8(len)
            } else {
                0
            };
            cursor.take_u64(padding).map_err(|_| cut(&cursor))?;
            ids.push(BuildId(id.to_vec()));
        }
        Ok(ids)
    }

    /// Whether counter pointers are relative to their data record, for versions in which both kinds of pointers occur
    /// (6 and 7). If pointers are interpreted correctly, the counters of all records are inside the counter section, in
    /// the order of the records and without overlap. The function returns true only if relative pointers pass this test
    /// and absolute ones fail it. If both pass, the pointers are taken for absolute, because the released LLVM 13 wrote
    /// absolute pointers.
    fn looks_relative(&self) -> bool {
        let fits = |relative: bool| {
            let mut end = 0i64;
            self.records().take(RECORDS_TO_JUDGE_BY).all(|record| {
                let pointer = record.counter_ptr;
                let delta = self.header.counters_delta;
                let start = self.section_offset(&record, pointer, delta, relative);
                let len = i64::from(record.num_counters) * self.header.dialect.counter_len() as i64;
                let fits = start >= end
                    && start
                        .checked_add(len)
                        .and_then(|end| u64::try_from(end).ok())
                        .is_some_and(|end| end <= self.sections.counters.size);
                end = start.saturating_add(len);
                fits
            })
        };
        !fits(false) && fits(true)
    }
}

/// The maximum number of data records to examine. Few records are enough: if absolute pointers are taken for relative
/// ones, or the reverse, the computed position of a record's counters is wrong by the length of all data records before
/// it. So the counters of the first records already overlap or are outside the section.
const RECORDS_TO_JUDGE_BY: usize = 1 << 10;

/// The part of a section to which a data record refers, for example the counters of the record. The part consists of
/// elements of equal length.
struct Range<'a, 'data> {
    section: &'a RawSection<'data>,
    offset: i64,
    /// The offset as LLVM's readers compute it. They compute with 64 bits even in files of 32-bit programs, so this
    /// offset does not wrap around at 32 bits.
    llvm_offset: i64,
    count: u32,
    element: usize,
    outside: &'static str,
    many: &'static str,
    llvm_noun: &'static str,
    llvm_count: &'static str,
}

#[cold]
fn record_name(record: &RawRecord) -> Structure {
    match record.name {
        RawName::Ref(name_ref) => Structure::DataRecord((record.index as u64, Some(name_ref))),
        RawName::Pointer { .. } => Structure::DataRecord((record.index as u64, None)),
    }
}
