//! Reads the MemProf section of indexed profiles.
use super::radix::read_stack;
use crate::bytes::{Bytes, Cursor, Endian};
use crate::hash_table::{Entry, HashTable, Lengths};
use crate::memprof::block::Schema;
use crate::memprof::data_access::DataAccess;
use crate::memprof::portable::{self, PortableSection};
use crate::memprof::profile::{
    AllocSite, CallSite, FRAME_LEN, Frame, FrameId, MemProfile, StackId,
};
use crate::memprof::summary::MemProfSummary;
use crate::{Error, ErrorKind, Result, Structure, limits};
use rustc_hash::FxHashMap;

/// The MemProf section of a file. Its header and schema were read, but its function records were not.
///
/// Damaged files never cause a panic. The memory for a function record is proportional to its bytes, and the memory for
/// a call stack to its length. Each call stack is stored once.
///
/// ```
/// use profkit_data::memprof::indexed::{IndexedMemProf, IndexedMemProfOptions, encode};
/// use profkit_data::memprof::{MemProfile, guid};
///
/// let mut profile = MemProfile::default();
/// profile.record_mut(guid(b"main"));
/// let section = encode(&profile, &IndexedMemProfOptions::for_version(3, false))?;
/// // In a file the section begins at the offset that the header states.
/// let mut file = vec![0; 64];
/// file.extend_from_slice(&section.bytes);
/// let parsed = IndexedMemProf::parse(&file, section.offset)?;
/// assert_eq!(parsed.version(), 3);
/// assert!(parsed.to_profile()?.record(guid(b"main")).is_some());
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexedMemProf<'data> {
    file: &'data [u8],
    start: u64,
    version: u32,
    schema: Schema,
    summary: Option<MemProfSummary>,
    records: HashTable<'data>,
    stacks: Stacks<'data>,
    data_access: Option<u64>,
}

#[derive(Clone, Debug)]
enum Stacks<'data> {
    /// The tables of a MemProf section of version 0 to 2: a table of frames by id; in version 2 also a table of call
    /// stacks by id.
    Tables {
        frames: HashTable<'data>,
        stacks: Option<HashTable<'data>>,
    },
    /// The tables of a MemProf section of version 3 or 4: an array of frames and a radix tree of call stacks.
    Tree {
        frames: &'data [u8],
        array: &'data [[u8; 4]],
        array_offset: u64,
    },
}

const STRUCTURE: Structure = Structure::MemProfSection;
/// The smallest possible first word of a version 0 section. In version 0 the first word is an offset. From version 1 on
/// it is the version number, which is smaller than 24.
const FIRST_OFFSET: u64 = 24;

/// Returns the version of a MemProf section by its first word; `None` if no version begins with this word.
pub fn section_version(first_word: u64) -> Option<u32> {
    match first_word {
        1..=4 => u32::try_from(first_word).ok(),
        FIRST_OFFSET.. => Some(0),
        _ => None,
    }
}

impl<'data> IndexedMemProf<'data> {
    /// Reads the header and the schema of the section that begins at offset `start` of a file. `file` may have further
    /// bytes after the section.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedVersion`] if the version is not known, [`ErrorKind::Malformed`] or
    /// [`ErrorKind::Truncated`] if the header or the schema is damaged.
    pub fn parse(file: &'data [u8], start: u64) -> Result<Self> {
        Self::parse_section(file, start).map_err(|error| error.within(STRUCTURE).at(start))
    }

    fn parse_section(file: &'data [u8], start: u64) -> Result<Self> {
        let mut cursor = cursor_at(file, start)?;
        let first = cursor.u64()?;
        let Some(version) = section_version(first) else {
            return Err(Error::new(ErrorKind::UnsupportedVersion, "the first word of the MemProf section is neither a known version nor an offset")
            .at(start)
            .found(first)
            .expected("a version from 1 to 4, or an offset of at least 24, because a section of version 0 begins with an offset instead of a version")
            .with_hint("LLVM 23 or later wrote the profile: write it again as version 4 with that llvm-profdata (merge --memprof-version=4), or give the raw profiles"));
        };
        let mut word = || cursor.u64();
        let (records, stacks, summary, data_access, schema, payload);
        match version {
            0..=2 => {
                let index = if version == 0 { first } else { word()? };
                let (frame_payload, frame_index) = (word()?, word()?);
                let stack_table = match version {
                    2 => Some((word()?, word()?)),
                    _ => None,
                };
                schema = Schema::parse(&mut cursor)?;
                payload = cursor.offset();
                records = index;
                let frames =
                    HashTable::parse(file, frame_payload, frame_index, Lengths::KeyAndData)
                        .map_err(|error| error.within(Structure::Frames))?;
                let by_id = stack_table
                    .map(|(payload, index)| {
                        HashTable::parse(file, payload, index, Lengths::DataOnly { key: 8 })
                            .map_err(|error| error.within(Structure::CallStacks))
                    })
                    .transpose()?;
                stacks = Stacks::Tables {
                    frames,
                    stacks: by_id,
                };
                (summary, data_access) = (None, None);
            }
            _ => {
                let (array, record_payload) = (word()?, word()?);
                records = word()?;
                if version >= 4 {
                    data_access = Some(word()?).filter(|&offset| offset != 0);
                    summary = Some(MemProfSummary::parse(&mut cursor)?);
                } else {
                    (summary, data_access) = (None, None);
                }
                schema = Schema::parse(&mut cursor)?;
                let frames_at = cursor.offset();
                let between = |from: u64, to: u64, what: &'static str| {
                    let mut cursor = cursor_at(file, from)?;
                    match to.checked_sub(from) {
                        Some(len) => cursor.take_u64(len),
                        None => Err(ErrorKind::Malformed
                            .error(format!("the {what} end before they begin"))
                            .at(start)
                            .found(format_args!("{from:#x} to {to:#x}"))),
                    }
                };
                stacks = Stacks::Tree {
                    frames: between(frames_at, array, "frames")?,
                    array: between(array, record_payload, "call stacks")?.as_chunks().0,
                    array_offset: array,
                };
                payload = record_payload;
            }
        }
        let records = HashTable::parse(file, payload, records, Lengths::KeyAndData)
            .map_err(|error| error.within(Structure::Records))?;
        Ok(IndexedMemProf {
            file,
            start,
            version,
            schema,
            summary,
            records,
            stacks,
            data_access,
        })
    }

    /// The version of the MemProf section, 0 to 4.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The fields that the section's memory info blocks have.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The summary that is stored in the section; `None` before version 4, which is the first version with a summary.
    pub fn summary(&self) -> Option<MemProfSummary> {
        self.summary
    }

    /// Returns the accesses to global data; `None` if the section has none. Only sections of version 4 can have them.
    pub fn data_access(&self) -> Result<Option<DataAccess>> {
        let Some(offset) = self.data_access else {
            return Ok(None);
        };
        cursor_at(self.file, offset)
            .and_then(|mut cursor| DataAccess::parse(&mut cursor))
            .map(Some)
            .map_err(|error| error.within(Structure::DataAccess).within(STRUCTURE))
    }

    /// Reads the whole section into a profile. The function records are in the order of the section's hash table.
    pub fn to_profile(&self) -> Result<MemProfile> {
        let mut reading = Reading::new(self);
        for entry in self.records.entries() {
            entry
                .and_then(|entry| reading.record(&entry))
                .map_err(|error| error.within(Structure::Records).within(STRUCTURE))?;
        }
        let mut profile = reading.profile;
        profile.data_access = self.data_access()?;
        self.add_portable(&mut profile)?;
        Ok(profile)
    }

    /// Reads the intact parts of the section and passes the errors to `report`. Each error means that one function, the
    /// rest of one bucket of the hash table, or the accesses to global data are lost.
    pub fn to_profile_salvaging(&self, mut report: impl FnMut(Error)) -> MemProfile {
        let mut reading = Reading::new(self);
        for entry in self.records.entries() {
            let read = entry.and_then(|entry| reading.record(&entry));
            if let Err(error) = read {
                report(error.within(Structure::Records).within(STRUCTURE));
            }
        }
        let mut profile = reading.profile;
        match self.data_access() {
            Ok(data) => profile.data_access = data,
            Err(error) => report(error),
        }
        if let Err(error) = self.add_portable(&mut profile) {
            report(error);
        }
        profile
    }

    /// Returns the portable section after LLVM's tables; `None` if there is none. The file that was given to
    /// [`parse`](Self::parse) must end where the MemProf section ends.
    ///
    /// # Errors
    /// If the section is damaged or of an unknown version.
    pub fn portable(&self) -> Result<Option<PortableSection<'data>>> {
        let found = portable::find(self.bytes(), self.start).and_then(|found| {
            let parse = |(bytes, at)| PortableSection::parse(bytes, at);
            found.map(parse).transpose()
        });
        found.map_err(|error| error.within(STRUCTURE))
    }

    fn bytes(&self) -> &'data [u8] {
        let start = usize::try_from(self.start).unwrap_or(usize::MAX);
        self.file.get(start..).unwrap_or_default()
    }

    fn add_portable(&self, profile: &mut MemProfile) -> Result<()> {
        if let Some(section) = self.portable()? {
            section.add_to(profile);
        }
        Ok(())
    }
}

struct Reading<'a, 'data> {
    section: &'a IndexedMemProf<'data>,
    profile: MemProfile,
    known: FxHashMap<u64, StackId>,
    frames: FxHashMap<u64, FrameId>,
    in_array: Vec<u32>,
    stack: Vec<FrameId>,
    /// The number of frames that may still be read. This number limits the total length of all call stacks.
    budget: usize,
}

impl<'a, 'data> Reading<'a, 'data> {
    fn new(section: &'a IndexedMemProf<'data>) -> Self {
        Reading {
            section,
            profile: MemProfile::default(),
            known: FxHashMap::default(),
            frames: FxHashMap::default(),
            in_array: Vec::new(),
            stack: Vec::new(),
            budget: section
                .file
                .len()
                .saturating_mul(limits::MEMPROF_FRAMES_PER_BYTE),
        }
    }

    fn record(&mut self, entry: &Entry<'_>) -> Result<()> {
        let Some(key) = entry.key.first_chunk().filter(|_| entry.key.len() == 8) else {
            return Err(ErrorKind::Malformed
                .error("the key of a record is not a function hash")
                .at(entry.offset)
                .found(Bytes(entry.key.len()))
                .expected("8 bytes"));
        };
        let function = u64::from_le_bytes(*key);
        let mut sites = || {
            let mut cursor = entry.cursor();
            let block_len = self.section.schema.block_len() as u64;
            let mut alloc_sites = Vec::new();
            for _ in 0..count(&mut cursor, block_len)? {
                let stack = self.stack(&mut cursor)?;
                let block = self.section.schema.read(&mut cursor)?;
                alloc_sites.push(AllocSite {
                    stack,
                    block,
                    histogram: Vec::new(),
                });
            }
            let mut call_sites = Vec::new();
            for _ in 0..count(&mut cursor, 4)? {
                let stack = self.stack(&mut cursor)?;
                let mut callees = Vec::new();
                if self.section.version >= 4 {
                    for _ in 0..count(&mut cursor, 8)? {
                        callees.push(cursor.u64()?);
                    }
                }
                call_sites.push(CallSite { stack, callees });
            }
            if !cursor.is_empty() {
                return Err(ErrorKind::Malformed
                    .error("a record has bytes after its last item")
                    .at(cursor.offset())
                    .found(format_args!("{} left", Bytes(cursor.remaining()))));
            }
            Ok((alloc_sites, call_sites))
        };
        let (mut alloc_sites, mut call_sites) =
            sites().map_err(|error: Error| error.within(Structure::FunctionHash(function)))?;
        let record = self.profile.record_mut(function);
        record.alloc_sites.append(&mut alloc_sites);
        record.call_sites.append(&mut call_sites);
        Ok(())
    }

    /// Reads a call stack. In versions 0 and 1, the cursor is at the ids of the call stack's frames; in later versions,
    /// it is at the id or the index of the call stack.
    fn stack(&mut self, cursor: &mut Cursor<'_>) -> Result<StackId> {
        let section = self.section;
        let at = cursor.offset();
        match &section.stacks {
            Stacks::Tables {
                frames,
                stacks: None,
            } => {
                let count = count(cursor, 8)?;
                self.stack.clear();
                for _ in 0..count {
                    let at = cursor.offset();
                    let frame = self.frame(frames, cursor.u64()?, at)?;
                    self.stack.push(frame);
                }
                Ok(self.profile.add_stack(&self.stack))
            }
            Stacks::Tables {
                frames,
                stacks: Some(stacks),
            } => {
                let id = cursor.u64()?;
                if let Some(&stack) = self.known.get(&id) {
                    return Ok(stack);
                }
                let Some(entry) = stacks.find(id, &id.to_le_bytes())? else {
                    return Err(missing("call stack", id, at));
                };
                let (ids, rest) = entry.data.as_chunks::<8>();
                if !rest.is_empty() {
                    return Err(ErrorKind::Malformed
                        .error("the last frame of a call stack is incomplete")
                        .at(entry.data_offset)
                        .found(Bytes(entry.data.len()))
                        .expected("a multiple of 8"));
                }
                self.spend(ids.len(), at)?;
                self.stack.clear();
                for &frame in ids {
                    let frame = u64::from_le_bytes(frame);
                    let frame = self.frame(frames, frame, entry.data_offset)?;
                    self.stack.push(frame);
                }
                let stack = self.profile.add_stack(&self.stack);
                self.known.insert(id, stack);
                Ok(stack)
            }
            &Stacks::Tree {
                frames,
                array,
                array_offset,
            } => {
                let id = cursor.u32()?;
                if let Some(&stack) = self.known.get(&u64::from(id)) {
                    return Ok(stack);
                }
                let frame_count = u32::try_from(frames.len() / FRAME_LEN).unwrap_or(u32::MAX);
                read_stack(array, id, frame_count, array_offset, &mut self.in_array)?;
                self.spend(self.in_array.len(), at)?;
                self.stack.clear();
                for &number in &self.in_array {
                    let start = number as usize * FRAME_LEN;
                    let bytes = frames.get(start..start + FRAME_LEN).unwrap_or_default();
                    let frame = parse_frame(bytes, 0)?;
                    self.stack.push(self.profile.add_frame(frame));
                }
                let stack = self.profile.add_stack(&self.stack);
                self.known.insert(u64::from(id), stack);
                Ok(stack)
            }
        }
    }

    /// Subtracts the length of a call stack from the number of frames that may still be read, and fails if the length
    /// is greater than this number. `at` is the offset for the error. The limit is needed because many call stacks of a
    /// damaged file can be read from the same bytes.
    fn spend(&mut self, frames: usize, at: u64) -> Result<()> {
        self.budget = self.budget.checked_sub(frames).ok_or_else(|| {
            ErrorKind::LimitExceeded
                .error("the call stacks together have too many frames")
                .at(at)
        })?;
        Ok(())
    }

    fn frame(&mut self, table: &HashTable<'_>, id: u64, at: u64) -> Result<FrameId> {
        if let Some(&number) = self.frames.get(&id) {
            return Ok(number);
        }
        let Some(entry) = table.find(id, &id.to_le_bytes())? else {
            return Err(missing("frame", id, at));
        };
        let number = self
            .profile
            .add_frame(parse_frame(entry.data, entry.data_offset)?);
        self.frames.insert(id, number);
        Ok(number)
    }
}

#[cold]
fn missing(what: &str, id: u64, at: u64) -> Error {
    ErrorKind::Malformed
        .error(format!("the id of a {what} is not in the section"))
        .at(at)
        .found(format_args!("id {id:#018x}"))
}

fn parse_frame(bytes: &[u8], offset: u64) -> Result<Frame> {
    let mut cursor = Cursor::new(bytes, offset, Endian::Little);
    Ok(Frame {
        function: cursor.u64()?,
        line_offset: cursor.u32()?,
        column: cursor.u32()?,
        is_inline: cursor.u8()? != 0,
    })
}

/// Reads the number of items that follow. The number is an error if the remaining bytes cannot hold that many items of
/// at least `item_len` bytes.
fn count(cursor: &mut Cursor<'_>, item_len: u64) -> Result<u64> {
    let at = cursor.offset();
    let count = cursor.u64()?;
    let most = cursor.remaining() as u64 / item_len.max(1);
    if count > most {
        return Err(ErrorKind::Malformed
            .error("a record claims more items than its bytes can hold")
            .at(at)
            .found(count)
            .expected(format_args!("at most {most}")));
    }
    Ok(count)
}

fn cursor_at(file: &[u8], offset: u64) -> Result<Cursor<'_>> {
    let mut cursor = Cursor::new(file, 0, Endian::Little);
    cursor.take_u64(offset).map_err(|_| {
        ErrorKind::Truncated
            .error("an offset lies beyond the section")
            .found(format_args!("{offset:#x}"))
            .expected(format_args!("at most {:#x}", file.len()))
    })?;
    Ok(cursor)
}
