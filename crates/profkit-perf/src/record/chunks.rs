//! Splits the records of a recording into chunks of whole records. This module also skips damage between records and
//! decompresses records. A recording is read in two passes (first the mappings, then the samples). Both use this
//! module, so they read the same records.
use super::unpack::Unpack;
use super::{RECORD_HEADER, RecordHeader, RecordKind, Records};
use crate::file::Section;
use crate::limits::CHUNK;
use crate::losses::Losses;
use profkit_data::bytes::Endian;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A sequence of complete records.
#[derive(Clone, Debug)]
pub struct Chunk<'data> {
    bytes: Cow<'data, [u8]>,
    offset: u64,
    endian: Endian,
}

impl<'data> Chunk<'data> {
    /// The records of the chunk.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.bytes, self.offset, self.endian)
    }

    /// Whether the records were decompressed. The offsets of decompressed records are not offsets in the file.
    pub fn is_decompressed(&self) -> bool {
        matches!(self.bytes, Cow::Owned(_))
    }

    /// Returns the bytes of the file that the chunk consists of. `None` if the chunk was decompressed and is not in the
    /// file.
    pub(crate) fn in_file(&self) -> Option<&'data [u8]> {
        match self.bytes {
            Cow::Borrowed(bytes) => Some(bytes),
            Cow::Owned(_) => None,
        }
    }

    /// Returns the records, borrowed from the file and not from this chunk. `None` if the chunk was decompressed and is
    /// not in the file.
    pub(crate) fn borrowed(&self) -> Option<Records<'data>> {
        match self.bytes {
            Cow::Borrowed(bytes) => Some(Records::new(bytes, self.offset, self.endian)),
            Cow::Owned(_) => None,
        }
    }
}

/// An iterator over all records of a recording. The records that are not compressed come first, then the compressed
/// ones.
#[derive(Debug)]
pub struct Chunks<'data> {
    sections: std::vec::IntoIter<Section<'data>>,
    current: Section<'data>,
    endian: Endian,
    /// Whether the recording is a pipe. In a pipe, some records are followed by data that is not counted in their size.
    in_pipe: bool,
    /// The pieces of compressed data that were found so far.
    pieces: Vec<&'data [u8]>,
    unpack: Option<Unpack<'data>>,
    losses: Losses,
    /// For each kind, the number of records that are not returned in a chunk, because they contain compressed records
    /// or are followed by data.
    passed: BTreeMap<RecordKind, u64>,
}

impl<'data> Chunks<'data> {
    pub fn new(sections: Vec<Section<'data>>, endian: Endian, in_pipe: bool) -> Self {
        Chunks {
            sections: sections.into_iter(),
            current: Section::default(),
            endian,
            in_pipe,
            pieces: Vec::new(),
            unpack: None,
            losses: Losses::default(),
            passed: BTreeMap::new(),
        }
    }

    /// Returns, for each kind, the number of records that are not returned in a chunk, because they contain compressed
    /// records or are followed by data.
    pub fn passed(&self) -> &BTreeMap<RecordKind, u64> {
        &self.passed
    }

    /// Returns the losses: damaged bytes, a cut record, and problems of decompression.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Moves past the first `len` bytes of the section, and returns them.
    fn advance(&mut self, len: usize) -> &'data [u8] {
        let (passed, rest) = self
            .current
            .bytes
            .split_at(len.min(self.current.bytes.len()));
        self.current.bytes = rest;
        self.current.offset += passed.len() as u64;
        passed
    }

    /// Returns the length of the complete, uncompressed records at the start of the section, up to about the size of a
    /// chunk.
    fn run(&self) -> usize {
        let bytes = self.current.bytes;
        let mut len = 0;
        while len < CHUNK {
            let Some(header) = bytes
                .get(len..)
                .and_then(|bytes| RecordHeader::read(bytes, self.endian))
            else {
                break;
            };
            let end = len + usize::from(header.size);
            if !header.is_sound() || end > bytes.len() || self.is_special(header.kind) {
                break;
            }
            len = end;
        }
        len
    }

    /// Whether records of this kind contain compressed records, or are followed by data that is not counted in their
    /// size.
    fn is_special(&self, kind: RecordKind) -> bool {
        match kind {
            RecordKind::COMPRESSED | RecordKind::COMPRESSED2 | RecordKind::AUXTRACE => true,
            RecordKind::TRACING_DATA => self.in_pipe,
            _ => false,
        }
    }

    /// Skips what stands at the start of the section and cannot be a part of a chunk: damage, a record that is cut, or
    /// a [special](Self::is_special) record. The compressed data in such a record is kept and decompressed later.
    fn pass(&mut self) {
        let bytes = self.current.bytes;
        let Some(header) = RecordHeader::read(bytes, self.endian) else {
            self.cut();
            return;
        };
        let endian = self.endian;
        let word = |at: usize| {
            let bytes = bytes.get(at..)?.first_chunk()?;
            Some(endian.u64(*bytes))
        };
        let size = usize::from(header.size);
        let before = bytes.len();
        match header.kind {
            RecordKind::COMPRESSED if header.is_sound() && size <= bytes.len() => {
                let record = self.advance(size);
                self.pieces
                    .push(record.get(RECORD_HEADER..).unwrap_or_default());
            }
            RecordKind::COMPRESSED2 => {
                // In perf 6.16 the size in the header of a compressed record can overflow. The record has a second
                // field with the size of its data alone. This field is trusted if it is at most `MOST`, and the size in
                // the header is ignored.
                const MOST: u64 = 65_519;
                let data = word(RECORD_HEADER).filter(|&len| len <= MOST);
                let len = data.and_then(|len| usize::try_from(len).ok());
                match len.and_then(|len| Some((len, bytes.get(16..16 + len)?))) {
                    Some((len, piece)) => {
                        self.pieces.push(piece);
                        self.advance((16 + len).next_multiple_of(8));
                    }
                    None => {
                        self.resync();
                        return;
                    }
                }
            }
            // The data of a hardware trace follows its record, in a file as well as in a pipe.
            RecordKind::AUXTRACE if header.is_sound() => {
                let data = word(RECORD_HEADER).and_then(|len| usize::try_from(len).ok());
                self.pass_with_data(size, data);
            }
            RecordKind::TRACING_DATA if self.in_pipe && header.is_sound() => {
                let len = bytes
                    .get(RECORD_HEADER..)
                    .and_then(|bytes| bytes.first_chunk())
                    .map(|bytes| endian.u32(*bytes));
                let len = len.and_then(|len| usize::try_from(len).ok());
                self.pass_with_data(size, len.map(|len| len.next_multiple_of(8)));
            }
            _ if header.is_sound() && size > bytes.len() => {
                self.cut();
                return;
            }
            _ => {
                self.resync();
                return;
            }
        }
        let known = self.losses.cut_at.is_none();
        if known && self.current.bytes.len() < before {
            *self.passed.entry(header.kind).or_default() += 1;
        }
    }

    fn pass_with_data(&mut self, size: usize, data: Option<usize>) {
        match data.and_then(|data| data.checked_add(size)) {
            Some(all) if all <= self.current.bytes.len() => {
                self.advance(all);
            }
            _ => self.cut(),
        }
    }

    /// Stores the offset of the last record as a loss, because the section ends before the end of this record. Skips
    /// the rest of the section.
    fn cut(&mut self) {
        self.losses.cut_at.get_or_insert(self.current.offset);
        self.advance(self.current.bytes.len());
    }

    /// Searches for the next record after a damaged header. A record is accepted if its header and the header after it
    /// have known kinds and sizes that are multiples of 8.
    fn resync(&mut self) {
        let endian = self.endian;
        let sound = |bytes: &[u8]| {
            RecordHeader::read(bytes, endian)
                .filter(|h| h.kind.is_known() && h.is_sound() && h.size % 8 == 0)
        };
        let bytes = self.current.bytes;
        let next = (RECORD_HEADER..bytes.len()).step_by(8).find(|&at| {
            let Some(rest) = bytes.get(at..) else {
                return false;
            };
            sound(rest).is_some_and(|header| {
                let after = rest.get(usize::from(header.size)..);
                after.is_some_and(|after| after.is_empty() || sound(after).is_some())
            })
        });
        let skipped = next.unwrap_or(bytes.len());
        self.losses.first_skipped.get_or_insert(self.current.offset);
        self.losses.skipped_bytes += skipped as u64;
        self.advance(skipped);
    }

    fn plain(&mut self) -> Option<Chunk<'data>> {
        loop {
            while self.current.bytes.is_empty() {
                self.current = self.sections.next()?;
            }
            let offset = self.current.offset;
            match self.run() {
                0 => self.pass(),
                len => {
                    return Some(Chunk {
                        bytes: Cow::Borrowed(self.advance(len)),
                        offset,
                        endian: self.endian,
                    });
                }
            }
        }
    }

    fn unpacked(&mut self) -> Option<Chunk<'data>> {
        if self.pieces.is_empty() && self.unpack.is_none() {
            return None;
        }
        let pieces = std::mem::take(&mut self.pieces);
        let unpack = self.unpack.get_or_insert_with(|| Unpack::new(pieces));
        loop {
            if let Err(reason) = unpack.fill() {
                self.losses.compression.get_or_insert(reason);
            }
            let (offset, bytes) = unpack.bytes();
            if bytes.is_empty() {
                return None;
            }
            // The decompressed bytes are treated like a section of the file, so records in them are found by the same
            // rules.
            let mut inner = Chunks::new(Vec::new(), self.endian, false);
            inner.current = Section { offset, bytes };
            let len = inner.run();
            if len > 0 {
                let chunk = Chunk {
                    bytes: Cow::Owned(inner.advance(len).to_vec()),
                    offset,
                    endian: self.endian,
                };
                unpack.advance(len);
                return Some(chunk);
            }
            // The bytes do not begin with a complete record. They are damaged, or they are the cut last record: `fill`
            // always provides more bytes than the largest record has, except at the end of the data.
            inner.pass();
            self.losses.skipped_bytes += inner.losses.skipped_bytes;
            for (ours, theirs) in [
                (&mut self.losses.first_skipped, inner.losses.first_skipped),
                (&mut self.losses.cut_at, inner.losses.cut_at),
            ] {
                *ours = ours.or(theirs);
            }
            let passed = bytes.len() - inner.current.bytes.len();
            unpack.advance(passed);
        }
    }
}

impl<'data> Iterator for Chunks<'data> {
    type Item = Chunk<'data>;

    fn next(&mut self) -> Option<Chunk<'data>> {
        self.plain().or_else(|| self.unpacked())
    }
}
