//! Reads the dumps of raw MemProf files.
use super::header::{BUILD_ID_LEN, Elements, Header, MAGIC, Version};
use super::histogram::decode_element;
use crate::bytes::{Bytes, Cursor, Endian};
use crate::ids::BuildId;
use crate::memprof::block::{Field, MemInfoBlock, Schema};
use crate::{Error, ErrorKind, Result, Structure};
use std::fmt;

/// The dumps of a raw MemProf file.
///
/// Opening the file reads only the headers of the dumps. Damaged files never cause a panic. The reader keeps
/// one small item per dump. A dump takes up at least a header in the file, so the size of the file limits the memory.
///
/// ```
/// use profkit_data::memprof::raw::{DumpToWrite, RawMemProf, RawMemProfOptions, Version, write};
///
/// let version = Version::new(5).expect("LLVM 22 writes it");
/// let dump = DumpToWrite { stacks: vec![(7, vec![0x1010])], ..DumpToWrite::default() };
/// let mut file = Vec::new();
/// write(&dump, &RawMemProfOptions::for_version(version), &mut file)?;
/// let profile = RawMemProf::parse(&file)?;
/// for dump in profile.dumps() {
///     assert_eq!(dump.version(), version);
///     assert_eq!(dump.stacks()?.count(), 1);
/// }
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RawMemProf<'data> {
    dumps: Vec<RawDump<'data>>,
    damage: Option<Error>,
}

impl<'data> RawMemProf<'data> {
    /// Reads the headers of all dumps in a file. Stops at the first damaged header: [`damage`](Self::damage) then
    /// returns the error, and the dumps before the damage can be read.
    ///
    /// # Errors
    /// An error if the first header cannot be read.
    pub fn parse(data: &'data [u8]) -> Result<Self> {
        if data.is_empty() {
            return Err(ErrorKind::Empty
                .error("the file is empty")
                .at(0)
                .within(Structure::RawMemProf));
        }
        let mut profile = RawMemProf {
            dumps: Vec::new(),
            damage: None,
        };
        let mut cursor = Cursor::new(data, 0, Endian::Little);
        while !cursor.is_empty() {
            let base = cursor.offset();
            let parsed = Header::parse(cursor.rest(), base).and_then(|header| {
                let bytes = cursor.take_u64(header.total_size)?;
                Ok(RawDump {
                    bytes,
                    base,
                    header,
                })
            });
            match parsed {
                Ok(dump) => profile.dumps.push(dump),
                Err(error) => {
                    let error = error
                        .within(Structure::Header)
                        .within(Structure::DumpNumber(profile.dumps.len() as u64 + 1))
                        .within(Structure::RawMemProf);
                    if profile.dumps.is_empty() {
                        return Err(error);
                    }
                    profile.damage = Some(error);
                    break;
                }
            }
        }
        Ok(profile)
    }

    /// Returns the dumps in the order of the file.
    pub fn dumps(&self) -> &[RawDump<'data>] {
        &self.dumps
    }

    /// The error at which reading the headers stopped before the end of the file; `None` if there was no error.
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }
}

/// One dump of a raw MemProf file. Opening the file has read and checked only the header of the dump.
#[derive(Clone, Copy)]
pub struct RawDump<'data> {
    bytes: &'data [u8],
    base: u64,
    header: Header,
}

/// A segment: a mapping of code in the profiled process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The address of the mapping's first byte.
    pub start: u64,
    /// The address after the mapping's last byte.
    pub end: u64,
    /// Up to version 2, the offset of the mapping in the mapped file. From version 3 on, the load address of the
    /// module, or 0 if the module was loaded at the address for which it was linked.
    pub offset: u64,
    /// The build id of the module; empty if the segment has none. LLVM writes build ids from version 3 on.
    pub build_id: BuildId,
}

/// Shows the offset and the header of the dump, but not its bytes.
impl fmt::Debug for RawDump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawDump")
            .field("offset", &self.base)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl<'data> RawDump<'data> {
    /// The version of the raw format that the dump has.
    pub fn version(&self) -> Version {
        self.header.version
    }

    /// The offset of the dump in its file.
    pub fn offset(&self) -> u64 {
        self.base
    }

    /// The size of the dump in bytes.
    pub fn size(&self) -> u64 {
        self.header.total_size
    }

    /// Returns the words of the header: the name, the absolute offset and the value of each.
    pub fn header_fields(&self) -> Vec<(&'static str, u64, u64)> {
        let header = &self.header;
        let words = [
            ("Magic", MAGIC),
            ("RawVersion", u64::from(header.version.number())),
            ("TotalSize", header.total_size),
            ("SegmentOffset", header.segments),
            ("MibOffset", header.blocks),
            ("StackOffset", header.stacks),
        ];
        let offsets = (self.base..).step_by(8);
        let named = words.into_iter().zip(offsets);
        named
            .map(|((name, value), offset)| (name, offset, value))
            .collect()
    }

    /// Returns the sections: the name, the absolute offset and the size in bytes of each. A section ends where the next
    /// one begins.
    pub fn section_places(&self) -> Vec<(Structure, u64, u64)> {
        let header = &self.header;
        let mut sections = [
            (header.segments, Structure::Segments),
            (header.blocks, Structure::Blocks),
            (header.stacks, Structure::Stacks),
        ];
        sections.sort_by_key(|(offset, _)| *offset);
        let ends: Vec<u64> = sections
            .iter()
            .skip(1)
            .map(|(offset, _)| *offset)
            .chain([header.total_size])
            .collect();
        let placed = sections.into_iter().zip(ends);
        placed
            .map(|((offset, name), end)| (name, self.base + offset, end.saturating_sub(offset)))
            .collect()
    }

    fn section(&self, offset: u64) -> Result<Cursor<'data>> {
        let mut cursor = Cursor::new(self.bytes, self.base, Endian::Little);
        cursor.take_u64(offset)?;
        Ok(cursor)
    }

    /// Reads the number of items in the section at `offset` of the dump. Returns a cursor at the first item, and the
    /// number. Fails if the dump is too small for that many items of at least `item_len` bytes. `what` names the items
    /// in the error.
    fn items(
        &self,
        offset: u64,
        item_len: u64,
        what: &'static str,
    ) -> Result<(Cursor<'data>, u64)> {
        let mut cursor = self.section(offset)?;
        let at = cursor.offset();
        let count = cursor.u64()?;
        let most = cursor.remaining() as u64 / item_len;
        if count > most {
            return Err(ErrorKind::Malformed
                .error(format!("there are more {what} than the dump has room for"))
                .at(at)
                .found(count)
                .expected(format_args!("at most {most}")));
        }
        Ok((cursor, count))
    }

    /// Returns the segments: the mappings of code.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the number of segments or the length of a build id is impossible.
    pub fn segments(&self) -> Result<Vec<Segment>> {
        let version = self.version();
        let read = || {
            let (mut cursor, count) =
                self.items(self.header.segments, version.segment_len(), "segments")?;
            let mut segments = Vec::new();
            for _ in 0..count {
                let (start, end, offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
                let at = cursor.offset();
                let size = if version.has_build_id_size() {
                    cursor.u64()?
                } else {
                    BUILD_ID_LEN as u64
                };
                let bytes = cursor.take(BUILD_ID_LEN)?;
                let id = usize::try_from(size)
                    .ok()
                    .and_then(|size| bytes.get(..size));
                let Some(id) = id else {
                    return Err(ErrorKind::Malformed
                        .error("a build id is too long")
                        .at(at)
                        .found(Bytes(size))
                        .expected(format_args!("at most {BUILD_ID_LEN} bytes")));
                };
                // Before version 3 a segment does not state the length of its build id, so zeros at the end of the id
                // are removed. (No LLVM release wrote build ids in these versions.)
                let id = if version.has_build_id_size() {
                    id
                } else {
                    let len = id
                        .iter()
                        .rposition(|&byte| byte != 0)
                        .map_or(0, |at| at + 1);
                    id.get(..len).unwrap_or_default()
                };
                segments.push(Segment {
                    start,
                    end,
                    offset,
                    build_id: BuildId(id.to_vec()),
                });
            }
            Ok(segments)
        };
        read().map_err(|error: Error| self.within(error, Structure::Segments))
    }

    /// Returns the memory info blocks, each with the id of its call stack.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the number of blocks is impossible.
    pub fn blocks(&self) -> Result<Blocks<'data>> {
        let schema = self.version().schema();
        let item_len = 8 + schema.block_len() as u64;
        let (cursor, left) = self
            .items(self.header.blocks, item_len, "blocks")
            .map_err(|error| self.within(error, Structure::Blocks))?;
        Ok(Blocks {
            dump: *self,
            cursor,
            left,
            schema,
        })
    }

    /// Returns the call stacks, each with its id.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the number of call stacks is impossible.
    pub fn stacks(&self) -> Result<Stacks<'data>> {
        let (cursor, left) = self
            .items(self.header.stacks, 16, "stacks")
            .map_err(|error| self.within(error, Structure::Stacks))?;
        Ok(Stacks {
            dump: *self,
            cursor,
            left,
        })
    }

    #[cold]
    fn within(&self, error: Error, section: Structure) -> Error {
        error
            .within(section)
            .within(Structure::DumpAt(self.base))
            .within(Structure::RawMemProf)
    }
}

/// A memory info block of a raw file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBlock {
    /// The id of the block's call stack. The call stack is in the same dump as the block.
    pub stack_id: u64,
    /// The statistics of the allocations with one call stack.
    pub block: MemInfoBlock,
    /// The access histogram of the allocations; empty if the dump has no histograms.
    pub histogram: Vec<u64>,
}

/// Iterates over the memory info blocks of a dump. The iteration ends after an error.
#[derive(Clone, Debug)]
pub struct Blocks<'data> {
    dump: RawDump<'data>,
    cursor: Cursor<'data>,
    left: u64,
    schema: Schema,
}

impl Blocks<'_> {
    /// The number of blocks that remain. The dump is large enough to hold them.
    pub fn remaining(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX)
    }

    fn read(&mut self) -> Result<RawBlock> {
        let stack_id = self.cursor.u64()?;
        let mut block = self.schema.read(&mut self.cursor)?;
        let at = self.cursor.offset();
        let mut histogram = Vec::new();
        let count = block.get(Field::AccessHistogramSize);
        let element_len = match self.dump.version().elements() {
            Elements::Words => 8,
            Elements::Floats => 2,
            Elements::None => 0,
        };
        if element_len != 0 && count != 0 {
            let bytes = self
                .cursor
                .take_u64(count.saturating_mul(element_len))
                .map_err(|_| {
                    ErrorKind::Malformed
                        .error("a histogram runs past the end of the dump")
                        .at(at)
                        .found(format_args!("{count} elements"))
                })?;
            histogram = match element_len {
                8 => {
                    let (words, _) = bytes.as_chunks();
                    words.iter().map(|&word| u64::from_le_bytes(word)).collect()
                }
                _ => {
                    let (floats, _) = bytes.as_chunks();
                    let values = floats.iter().map(|&float| u16::from_le_bytes(float));
                    values.map(decode_element).collect()
                }
            };
        }
        if block.has(Field::AccessHistogram) {
            // This field is an address in the profiled process and has no meaning in the process that reads the file.
            block.set(Field::AccessHistogram, 0);
        }
        Ok(RawBlock {
            stack_id,
            block,
            histogram,
        })
    }
}

impl Iterator for Blocks<'_> {
    type Item = Result<RawBlock>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let read = self.read();
        Some(read.map_err(|error| {
            self.left = 0;
            self.dump.within(error, Structure::Blocks)
        }))
    }
}

/// Iterates over the call stacks of a dump. The iteration ends after an error.
#[derive(Clone, Debug)]
pub struct Stacks<'data> {
    dump: RawDump<'data>,
    cursor: Cursor<'data>,
    left: u64,
}

/// The addresses of a call stack as little-endian bytes, innermost first.
pub type Pcs<'data> = &'data [[u8; 8]];

impl<'data> Stacks<'data> {
    /// The number of call stacks that remain. The dump is large enough to hold them.
    pub fn remaining(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX)
    }

    fn read(&mut self) -> Result<(u64, Pcs<'data>)> {
        let stack_id = self.cursor.u64()?;
        let at = self.cursor.offset();
        let count = self.cursor.u64()?;
        let bytes = self.cursor.take_u64(count.saturating_mul(8)).map_err(|_| {
            ErrorKind::Malformed
                .error("a call stack runs past the end of the dump")
                .at(at)
                .found(format_args!("{count} addresses"))
        })?;
        Ok((stack_id, bytes.as_chunks().0))
    }
}

impl<'data> Iterator for Stacks<'data> {
    /// The id of a call stack, and the addresses of its frames.
    type Item = Result<(u64, Pcs<'data>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let read = self.read();
        Some(read.map_err(|error| {
            self.left = 0;
            self.dump.within(error, Structure::Stacks)
        }))
    }
}
