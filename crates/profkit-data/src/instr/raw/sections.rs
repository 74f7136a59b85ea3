//! Finds the sections of a raw profile.
use super::header::RawHeader;
use super::layout::{RecordLayout, VTableLayout};
use crate::bytes::Bytes;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::variant;

/// A section of a raw profile: the bytes that the file contains, and the length that the header states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawSection<'data> {
    /// The bytes of the section. If the file is cut off, there may be fewer bytes than [`size`](Self::size) states.
    pub bytes: &'data [u8],
    /// The offset of the section's first byte in the file.
    pub offset: u64,
    /// The length of the section in bytes according to the header.
    pub size: u64,
}

impl RawSection<'_> {
    /// Whether the file has all bytes of the section.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == self.size
    }
}

/// The sections of one raw profile, in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawSections<'data> {
    /// The section of the build ids (from version 6).
    pub binary_ids: RawSection<'data>,
    /// The section of the data records, one for each function.
    pub data: RawSection<'data>,
    /// The section of the counters.
    pub counters: RawSection<'data>,
    /// The section of the MC/DC bitmaps (from version 9).
    pub bitmap: RawSection<'data>,
    /// The section of the uniform counters (version 11).
    pub uniform_counters: RawSection<'data>,
    /// The section of the function names.
    pub names: RawSection<'data>,
    /// The section of the vtable records (from version 10).
    pub vtables: RawSection<'data>,
    /// The section of the vtable names (from version 10).
    pub vtable_names: RawSection<'data>,
    /// The value data and all bytes after them. The header does not state the length of the value data. Their end is
    /// known only after reading them.
    pub value_data: RawSection<'data>,
}

impl<'data> RawSections<'data> {
    /// Returns all sections of the raw profile in the order of the file.
    pub fn named(&self) -> [(Structure, RawSection<'data>); 9] {
        [
            (Structure::BuildIds, self.binary_ids),
            (Structure::DataRecords, self.data),
            (Structure::Counters, self.counters),
            (Structure::Bitmap, self.bitmap),
            (Structure::UniformCounters, self.uniform_counters),
            (Structure::Names, self.names),
            (Structure::VTableRecords, self.vtables),
            (Structure::VTableNames, self.vtable_names),
            (Structure::ValueData, self.value_data),
        ]
    }

    /// Divides `data` into sections. `data` begins with the header. `offset` is the offset of `data` in the file. If
    /// the file is cut off, the sections have fewer bytes than they should, and the first error is also returned.
    pub(super) fn cut(
        data: &'data [u8],
        offset: u64,
        header: &RawHeader,
        layout: &RecordLayout,
    ) -> (Self, Option<Error>) {
        let mut cutter = Cutter {
            data,
            base: offset,
            position: Some(header.len as u64),
            fault: None,
        };
        let vtable = VTableLayout::of(header.dialect.width);
        let binary_ids = cutter.section(Structure::BuildIds, header.binary_ids_size, 1);
        let data = cutter.section(Structure::DataRecords, header.num_data, layout.stride);
        cutter.skip(header.padding_before_counters);
        let counter_len = header.dialect.counter_len();
        let counters = cutter.section(Structure::Counters, header.num_counters, counter_len);
        cutter.skip(header.padding_after_counters);
        let bitmap = cutter.section(Structure::Bitmap, header.num_bitmap_bytes, 1);
        cutter.skip(header.padding_after_bitmap);
        let (uniform, len) = (header.num_uniform_counters, UNIFORM_COUNTER_LEN);
        let uniform_counters = cutter.section(Structure::UniformCounters, uniform, len);
        cutter.skip(header.padding_after_uniform_counters);
        let names = cutter.section(Structure::Names, header.names_size, 1);
        // In version 1 the names are the last section. Padding after the names is skipped like the zero bytes between
        // two profiles.
        if header.dialect.version > 1 {
            cutter.skip(padding_to_8(header.names_size));
        }
        let vtables = cutter.section(Structure::VTableRecords, header.num_vtables, vtable.stride);
        cutter.skip(padding_to_8(vtables.size));
        let vtable_names = cutter.section(Structure::VTableNames, header.vnames_size, 1);
        cutter.skip(padding_to_8(header.vnames_size));
        let sections = RawSections {
            binary_ids,
            data,
            counters,
            bitmap,
            uniform_counters,
            names,
            vtables,
            vtable_names,
            value_data: cutter.rest(),
        };
        (sections, cutter.fault)
    }
}

/// The length of a uniform counter in bytes. The length is 8 also with single-byte coverage, because compiler-rt writes
/// `sizeof(uint64_t)`.
pub(super) const UNIFORM_COUNTER_LEN: usize = 8;

/// Returns the number of zero bytes after a section that is padded to a multiple of 8
/// (`__llvm_profile_get_num_padding_bytes`).
pub(super) fn padding_to_8(size: u64) -> u64 {
    size.wrapping_neg() & 7
}

struct Cutter<'data> {
    data: &'data [u8],
    base: u64,
    /// The current position, relative to `base`; `None` if the position does not fit 64 bits.
    position: Option<u64>,
    fault: Option<Error>,
}

impl<'data> Cutter<'data> {
    fn section(&mut self, name: Structure, count: u64, element: usize) -> RawSection<'data> {
        let size = count.checked_mul(element as u64);
        let start = self.position;
        let bytes = self.advance(size, name);
        RawSection {
            bytes,
            offset: self.base.saturating_add(start.unwrap_or(u64::MAX)),
            size: size.unwrap_or(u64::MAX),
        }
    }

    fn skip(&mut self, size: u64) {
        self.advance(Some(size), Structure::Padding);
    }

    fn advance(&mut self, size: Option<u64>, name: Structure) -> &'data [u8] {
        let start = self.position;
        let end = start
            .zip(size)
            .and_then(|(start, size)| start.checked_add(size));
        self.position = end;
        let len = self.data.len();
        let clamp = |position: Option<u64>| {
            position
                .and_then(|position| usize::try_from(position).ok())
                .map_or(len, |position| position.min(len))
        };
        if end.is_none_or(|end| end > len as u64) && self.fault.is_none() {
            self.fault = Some(cut_error(self.base, len, name, start, size));
        }
        self.data.get(clamp(start)..clamp(end)).unwrap_or_default()
    }

    fn rest(&mut self) -> RawSection<'data> {
        let start = self.position.unwrap_or(u64::MAX);
        let bytes = usize::try_from(start)
            .ok()
            .and_then(|start| self.data.get(start..))
            .unwrap_or_default();
        RawSection {
            bytes,
            offset: self.base.saturating_add(start),
            size: bytes.len() as u64,
        }
    }
}

#[cold]
fn cut_error(
    base: u64,
    available: usize,
    name: Structure,
    start: Option<u64>,
    size: Option<u64>,
) -> Error {
    let left = start.map_or(0, |start| (available as u64).saturating_sub(start));
    let error = ErrorKind::BadHeader.error("the file ends within a section")
        .at(base.saturating_add(start.unwrap_or(u64::MAX)))
        .within(name)
        .because_data_end()
        .found(format_args!("{} left", Bytes(left)))
        .with_hint("the file is cut off or damaged: copy it again, or run the program again and let it end normally");
    match size {
        Some(size) => error.expected(Bytes(size)),
        None => error.expected("more bytes than 64 bits can count"),
    }
}

/// Whether a profile has counters but neither data records nor names, as in programs built with `-profile-correlate`.
/// The data records and names of such a profile are in the program's binary or its debug info.
pub(super) fn needs_correlation(header: &RawHeader) -> bool {
    header.num_data == 0
        && header.names_size == 0
        && (header.num_counters > 0 || header.dialect.has(variant::DBG_CORRELATE))
}

/// Fails if `fault` is the error of an incomplete section. Succeeds if it is `None`.
pub(super) fn require_whole(fault: Option<Error>) -> Result<()> {
    fault.map_or(Ok(()), Err)
}
