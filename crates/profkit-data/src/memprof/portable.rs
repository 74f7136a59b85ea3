//! The portable section: names of functions, source files and lines, and access histograms of a heap profile. LLVM's
//! MemProf section has only hashes of names and lines within functions. The portable section stands after it, where
//! LLVM's tools and compilers do not look, so the same file serves both.
//!
//! The section has the three tables of the MemProf RFC ([`tables`](crate::tables)): strings, file paths as a tree of
//! components, and stack entries as a tree of frames. All numbers are little-endian.
//!
//! | part | layout |
//! |---|---|
//! | header | 8 bytes magic, u64 version (1), u64 size of the section in bytes, u64 checksum |
//! | tables | strings, file paths, stack entries |
//! | first lines | for each stack entry: u32 line at which its function begins in the file of the entry |
//! | discriminators | u32 count N, N × { u32 stack entry, u32 discriminator } |
//! | call stacks | u32 count N, N × u32 stack entry of the innermost frame |
//! | histograms | u32 count N, N × { u32 call stack, u32 length L, L × u64 accesses to eight bytes } |
//! | padding | zeros up to a multiple of 8 |
//! | footer | u64 size of the section in bytes, 8 bytes magic |
//!
//! - The checksum is made of the first eight bytes of BLAKE3 over all bytes between the header and the footer.
//! - The line of a stack entry is relative to the first line of its function, as in LLVM's frames, so all entries have the
//!   flag [`LINE_OF_FUNCTION`](StackFlags::LINE_OF_FUNCTION). The line in the file is the sum of the two, modulo 2^32. An
//!   entry without a path has no known line in a file.
//! - A function whose name is not known has the text `0x` and the 16 hexadecimal digits of its hash as its name.
//! - Call stacks are those of LLVM's section, without empty ones. An index of a call stack counts in this list.
use super::profile::{Frame, FrameId, MemProfile, SourceLocation, StackId, guid};
use super::sites::InlinedAt;
use crate::bytes::{Bytes, Cursor, Endian};
use crate::ids::NameRef;
use crate::index_vec::IndexVec;
use crate::tables::{
    PathTable, StackEntry, StackFlags, StackId as EntryId, StackTable, StringTable, Tables,
};
use crate::{ErrorKind, Result, Structure, limits};
use rustc_hash::FxHashMap;

/// The eight bytes with which a portable section begins and ends.
pub const MAGIC: [u8; 8] = *b"\xffpkheap\x81";

/// The version of the portable section that is written.
pub const VERSION: u64 = 1;

const HEADER_LEN: usize = 32;
const FOOTER_LEN: usize = 16;
/// The size of a stack entry in the table.
const ENTRY_LEN: u64 = 24;
const STRUCTURE: Structure = Structure::PortableSection;

/// Returns the portable section at the end of a MemProf section; `None` if there is none. `section` has the bytes of the
/// MemProf section, which begin at `offset` of the file.
///
/// # Errors
/// [`ErrorKind::Malformed`] if only one end of a portable section is there.
pub fn find(section: &[u8], offset: u64) -> Result<Option<(&[u8], u64)>> {
    find_inner(section, offset).map_err(|error| error.within(STRUCTURE))
}

fn find_inner(section: &[u8], offset: u64) -> Result<Option<(&[u8], u64)>> {
    let footer = section.split_last_chunk::<FOOTER_LEN>();
    let size = footer.and_then(|(_, footer)| {
        let (size, magic) = footer.split_first_chunk::<8>()?;
        (*magic == MAGIC).then_some(u64::from_le_bytes(*size))
    });
    let Some(size) = size else {
        return match memchr::memmem::find(section, &MAGIC) {
            Some(start) => Err(ErrorKind::Truncated
                .error("the end of the section is missing")
                .at(offset + start as u64)),
            None => Ok(None),
        };
    };
    let least = HEADER_LEN + FOOTER_LEN;
    let start = usize::try_from(size)
        .ok()
        .filter(|&size| size >= least)
        .and_then(|size| section.len().checked_sub(size));
    let found = start.and_then(|start| Some((section.get(start..)?, offset + start as u64)));
    match found {
        Some((bytes, at)) if bytes.starts_with(&MAGIC) => Ok(Some((bytes, at))),
        _ => Err(ErrorKind::Malformed
            .error("the section does not begin where its end says")
            .at(offset + (section.len() - FOOTER_LEN) as u64)
            .found(Bytes(size))
            .expected(format_args!("{least} to {} bytes", section.len()))),
    }
}

/// Encodes the names, source locations and histograms of a profile.
///
/// # Errors
/// [`ErrorKind::LimitExceeded`] if a table is too large or a call stack too long.
pub fn encode(profile: &MemProfile) -> Result<Vec<u8>> {
    encode_inner(profile).map_err(|error| error.within(STRUCTURE))
}

fn encode_inner(profile: &MemProfile) -> Result<Vec<u8>> {
    let mut tables = Tables::default();
    let mut more: Vec<(u32, u32)> = Vec::new();
    let mut parts: IndexVec<FrameId, Part> = IndexVec::with_capacity(profile.frames().len());
    for frame in profile.frames() {
        parts.push(Part::new(&mut tables, profile, frame)?);
    }
    let mut stacks = Vec::new();
    let mut numbers: FxHashMap<StackId, u32> = FxHashMap::default();
    for (id, frames) in profile.stacks().entries() {
        if frames.len() > usize::from(limits::TABLE_DEPTH) {
            return Err(ErrorKind::LimitExceeded
                .error("a call stack is too long")
                .found(format_args!("{} frames", frames.len()))
                .expected(format_args!("at most {}", limits::TABLE_DEPTH)));
        }
        let mut parent = None;
        for &frame in frames.iter().rev() {
            let part = &parts[frame];
            let before = tables.stacks.len();
            let entry = StackEntry {
                parent,
                ..part.entry
            };
            parent = Some(tables.stacks.intern(entry)?);
            if tables.stacks.len() > before {
                more.push((part.first_line, part.discriminator));
            }
        }
        if let Some(EntryId(innermost)) = parent {
            numbers.insert(id, count(stacks.len())?);
            stacks.push(innermost);
        }
    }
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 16]);
    tables.strings.write(&mut out)?;
    tables.paths.write(&mut out)?;
    tables.stacks.write(&mut out)?;
    let mut put = |words: &[u32]| {
        for word in words {
            out.extend_from_slice(&word.to_le_bytes());
        }
    };
    for &(first_line, _) in &more {
        put(&[first_line]);
    }
    let numbered = (0u32..).zip(&more);
    let discriminators: Vec<(u32, u32)> = numbered
        .filter(|(_, (_, discriminator))| *discriminator != 0)
        .map(|(entry, &(_, discriminator))| (entry, discriminator))
        .collect();
    put(&[count(discriminators.len())?]);
    for (entry, discriminator) in discriminators {
        put(&[entry, discriminator]);
    }
    put(&[count(stacks.len())?]);
    put(&stacks);
    let histograms = histograms(profile, &numbers);
    put(&[count(histograms.len())?]);
    for (stack, values) in histograms {
        out.extend_from_slice(&stack.to_le_bytes());
        out.extend_from_slice(&count(values.len())?.to_le_bytes());
        for value in values {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let checksum = checksum(out.get(HEADER_LEN..).unwrap_or_default());
    let size = ((out.len() + FOOTER_LEN) as u64).to_le_bytes();
    if let Some(slot) = out.get_mut(16..HEADER_LEN) {
        slot.copy_from_slice(&[size, checksum.to_le_bytes()].concat());
    }
    out.extend_from_slice(&size);
    out.extend_from_slice(&MAGIC);
    Ok(out)
}

/// A frame as a stack entry without its outer frame.
struct Part {
    entry: StackEntry,
    first_line: u32,
    discriminator: u32,
}

impl Part {
    fn new(tables: &mut Tables, profile: &MemProfile, frame: &Frame) -> Result<Self> {
        let name = profile.names.get(&frame.function);
        // A name with another hash would name another function when the section is read.
        let name = name.filter(|name| guid(name) == frame.function);
        let function = match name {
            Some(name) => tables.strings.intern(name)?,
            None => {
                let text = format!("{:#018x}", frame.function);
                tables.strings.intern(text.as_bytes())?
            }
        };
        let location = profile.locations.get(frame);
        let location = location.filter(|location| !location.file.is_empty());
        let path = match location {
            Some(location) => Some(tables.intern_path(&location.file)?),
            None => None,
        };
        let mut flags = StackFlags::LINE_OF_FUNCTION;
        if frame.is_inline {
            flags = StackFlags(flags.0 | StackFlags::INLINED.0);
        }
        Ok(Part {
            entry: StackEntry {
                function,
                path,
                line: frame.line_offset,
                column: frame.column,
                flags,
                parent: None,
            },
            first_line: location
                .map_or(0, |location| location.line.wrapping_sub(frame.line_offset)),
            discriminator: location.map_or(0, |location| location.discriminator),
        })
    }
}

/// The histograms of the first context of each call stack, each with the number of its stack.
fn histograms<'p>(
    profile: &'p MemProfile,
    numbers: &FxHashMap<StackId, u32>,
) -> Vec<(u32, &'p [u64])> {
    let mut found: FxHashMap<u32, &[u64]> = FxHashMap::default();
    for record in profile.records() {
        for site in &record.alloc_sites {
            if let Some(&stack) = numbers.get(&site.stack) {
                found.entry(stack).or_insert(&site.histogram);
            }
        }
    }
    let mut list: Vec<_> = found.into_iter().collect();
    list.retain(|(_, values)| !values.is_empty());
    list.sort_unstable_by_key(|&(stack, _)| stack);
    list
}

fn count(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| {
        ErrorKind::LimitExceeded
            .error("a list is too long")
            .found(format_args!("{len} items"))
            .expected("fewer than 2^32")
    })
}

/// The checksum of the bytes between the header and the footer of a portable section.
pub fn checksum(bytes: &[u8]) -> u64 {
    let hash = blake3::hash(bytes);
    let first = hash.as_bytes().first_chunk();
    first.map_or(0, |first| u64::from_le_bytes(*first))
}

/// A portable section whose tables were read and checked.
#[derive(Clone, Debug)]
pub struct PortableSection<'data> {
    tables: Tables,
    first_lines: &'data [[u8; 4]],
    discriminators: FxHashMap<u32, u32>,
    stacks: &'data [[u8; 4]],
    histograms: Vec<(u32, &'data [[u8; 8]])>,
}

impl<'data> PortableSection<'data> {
    /// Reads a portable section, which [`find`] returned together with its offset in the file.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedVersion`] if its version is not known; [`ErrorKind::Malformed`] or
    /// [`ErrorKind::Truncated`] if it is damaged.
    pub fn parse(bytes: &'data [u8], offset: u64) -> Result<Self> {
        Self::parse_inner(bytes, offset).map_err(|error| error.within(STRUCTURE))
    }

    fn parse_inner(bytes: &'data [u8], offset: u64) -> Result<Self> {
        let mut header = Cursor::new(bytes, offset, Endian::Little);
        header.take(MAGIC.len())?;
        let at = header.offset();
        let version = header.u64()?;
        if version != VERSION {
            return Err(ErrorKind::UnsupportedVersion
                .error("the version is not known")
                .at(at)
                .found(version)
                .expected(VERSION)
                .with_hint("a newer profkit wrote the file: use that profkit to read names and source lines"));
        }
        let (at, size) = (header.offset(), header.u64()?);
        if size != bytes.len() as u64 {
            return Err(ErrorKind::Malformed
                .error("the sizes at the two ends of the section differ")
                .at(at)
                .found(size)
                .expected(bytes.len()));
        }
        let (at, stored) = (header.offset(), header.u64()?);
        let end = bytes.len().saturating_sub(FOOTER_LEN);
        let body = bytes.get(HEADER_LEN..end).unwrap_or_default();
        let computed = checksum(body);
        if stored != computed {
            return Err(ErrorKind::Malformed
                .error("the checksum does not fit the section")
                .at(at)
                .found(format_args!("{stored:#018x}"))
                .expected(format_args!("{computed:#018x}")));
        }
        let start = offset + HEADER_LEN as u64;
        let mut cursor = Cursor::new(body, start, Endian::Little);
        let strings = StringTable::read(&mut cursor)?;
        let paths = PathTable::read(&mut cursor, strings.len())?;
        let entries = StackTable::read(&mut cursor, strings.len(), paths.len())?;
        let entries_at = cursor.offset() - ENTRY_LEN * entries.len() as u64;
        let (first_lines, _) = cursor.take_u64(4 * entries.len() as u64)?.as_chunks::<4>();
        let in_range = |what: &'static str, at: u64, index: u32, len: usize| {
            if (index as usize) < len {
                return Ok(());
            }
            Err(ErrorKind::Malformed
                .error(format!("the index of a {what} is out of bounds"))
                .at(at)
                .found(index)
                .expected(format_args!("an index below {len}")))
        };
        let mut discriminators = FxHashMap::default();
        for _ in 0..cursor.u32()? {
            let at = cursor.offset();
            let entry = cursor.u32()?;
            in_range("stack entry", at, entry, entries.len())?;
            discriminators.insert(entry, cursor.u32()?);
        }
        let count = u64::from(cursor.u32()?);
        let at = cursor.offset();
        let (stacks, _) = cursor.take_u64(4 * count)?.as_chunks::<4>();
        let depths = depths(&entries, entries_at)?;
        // Many call stacks of a damaged file can be read from the same entries.
        let mut budget = bytes.len().saturating_mul(limits::MEMPROF_FRAMES_PER_BYTE);
        let mut spend = |at: u64, innermost: u32| -> Result<()> {
            let depth = depths.get(innermost as usize).copied().unwrap_or(0);
            budget = budget.checked_sub(usize::from(depth)).ok_or_else(|| {
                ErrorKind::LimitExceeded
                    .error("the call stacks together have too many frames")
                    .at(at)
            })?;
            Ok(())
        };
        for (at, &stack) in (at..).step_by(4).zip(stacks) {
            let innermost = u32::from_le_bytes(stack);
            in_range("stack entry", at, innermost, entries.len())?;
            spend(at, innermost)?;
        }
        let mut histograms = Vec::new();
        for _ in 0..cursor.u32()? {
            let at = cursor.offset();
            let stack = cursor.u32()?;
            in_range("call stack", at, stack, stacks.len())?;
            let innermost = stacks.get(stack as usize).copied().unwrap_or_default();
            spend(at, u32::from_le_bytes(innermost))?;
            let len = u64::from(cursor.u32()?);
            let (values, _) = cursor.take_u64(8 * len)?.as_chunks::<8>();
            histograms.push((stack, values));
        }
        let at = cursor.offset();
        let rest = cursor.take(cursor.remaining())?;
        if rest.len() >= 8 || rest.iter().any(|&byte| byte != 0) {
            return Err(ErrorKind::Malformed
                .error("there are bytes after the last histogram")
                .at(at)
                .found(Bytes(rest.len()))
                .expected("zeros up to a multiple of 8"));
        }
        let tables = Tables {
            strings: strings.to_owned(),
            paths: paths.to_owned(),
            stacks: entries.to_owned(),
        };
        Ok(PortableSection {
            tables,
            first_lines,
            discriminators,
            stacks,
            histograms,
        })
    }

    /// The tables of strings, file paths and stack entries.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns a profile that has the frames and the call stacks of the section, and nothing else.
    pub fn frames(&self) -> MemProfile {
        let mut profile = MemProfile::default();
        let mut hashes = FxHashMap::default();
        let entries = (0..).map_while(|index| self.frame(EntryId(index), &mut hashes));
        let frames: Vec<Frame> = entries.map(|(frame, _)| frame).collect();
        for stack in self.stacks {
            let mut next = Some(EntryId(u32::from_le_bytes(*stack)));
            let mut ids = Vec::new();
            while let Some(id) = next {
                ids.extend(
                    frames
                        .get(id.0 as usize)
                        .map(|&frame| profile.add_frame(frame)),
                );
                next = self.tables.stacks.get(id).and_then(|entry| entry.parent);
            }
            profile.add_stack(&ids);
        }
        profile
    }

    /// The frame of a stack entry, and the name of its function; an empty name if it is not known. `hashes` remembers
    /// the hashes of names.
    fn frame(
        &self,
        id: EntryId,
        hashes: &mut FxHashMap<u32, (u64, bool)>,
    ) -> Option<(Frame, &[u8])> {
        let entry = self.tables.stacks.get(id)?;
        let name = self.tables.strings.get(entry.function).unwrap_or_default();
        let (function, is_known) =
            *hashes
                .entry(entry.function.0)
                .or_insert_with(|| match NameRef::from_stand_in(name) {
                    Some(hash) => (hash.0, false),
                    None => (guid(name), true),
                });
        let frame = Frame {
            function,
            line_offset: entry.line,
            column: entry.column,
            is_inline: entry.flags.contains(StackFlags::INLINED),
        };
        Some((frame, if is_known { name } else { &[] }))
    }

    /// Gives a profile the names, source locations and histograms of the section. Frames and call stacks that the
    /// profile does not have are skipped. Time and memory are proportional to the sizes of the section and the profile.
    pub fn add_to(&self, profile: &mut MemProfile) {
        let mut hashes = FxHashMap::default();
        let mut frames: Vec<Frame> = Vec::with_capacity(self.first_lines.len());
        for (index, first_line) in (0u32..).zip(self.first_lines) {
            let id = EntryId(index);
            let (Some((frame, name)), Some(entry)) =
                (self.frame(id, &mut hashes), self.tables.stacks.get(id))
            else {
                break;
            };
            frames.push(frame);
            if profile.frame_id(&frame).is_none() {
                continue;
            }
            if !name.is_empty() {
                let named = profile.names.entry(frame.function);
                named.or_insert_with(|| name.to_vec());
            }
            // Entries of one frame in several call stacks have the same location.
            if profile.locations.contains_key(&frame) {
                continue;
            }
            let path = entry
                .path
                .and_then(|path| self.tables.paths.get(path, &self.tables.strings));
            if let Some(file) = path.filter(|path| !path.is_empty()) {
                let discriminator = self.discriminators.get(&index).copied();
                profile.locations.insert(
                    frame,
                    SourceLocation {
                        file: file.into_owned(),
                        line: u32::from_le_bytes(*first_line).wrapping_add(entry.line),
                        column: entry.column,
                        discriminator: discriminator.unwrap_or(0),
                    },
                );
            }
        }
        let mut histograms: FxHashMap<StackId, &[[u8; 8]]> = FxHashMap::default();
        for &(stack, values) in &self.histograms {
            if let Some(stack) = self.stack_of(stack, &frames, profile) {
                histograms.entry(stack).or_insert(values);
            }
        }
        set_histograms(profile, &histograms);
    }

    /// The call stack of the profile that has the frames of the call stack with this number.
    fn stack_of(&self, stack: u32, frames: &[Frame], profile: &MemProfile) -> Option<StackId> {
        let innermost = self.stacks.get(stack as usize)?;
        let mut next = Some(EntryId(u32::from_le_bytes(*innermost)));
        let mut ids = Vec::new();
        while let Some(id) = next {
            ids.push(profile.frame_id(frames.get(id.0 as usize)?)?);
            next = self.tables.stacks.get(id)?.parent;
        }
        profile.stack_id(&ids)
    }
}

/// The number of frames from each stack entry to its outermost frame. `offset` is that of the table's first entry.
fn depths(entries: &StackTable<'_>, offset: u64) -> Result<Vec<u16>> {
    let mut depths: Vec<u16> = Vec::with_capacity(entries.len());
    for (index, entry) in (0u32..).map_while(|index| Some((index, entries.get(EntryId(index))?))) {
        if !entry.flags.contains(StackFlags::LINE_OF_FUNCTION) {
            return Err(ErrorKind::Malformed
                .error("a stack entry has no line within its function")
                .at(offset + ENTRY_LEN * u64::from(index))
                .found(format_args!(
                    "entry {index} with flags {:#x}",
                    entry.flags.0
                )));
        }
        let outer = entry
            .parent
            .and_then(|parent| depths.get(parent.0 as usize));
        depths.push(outer.map_or(1, |outer| outer.saturating_add(1)));
    }
    Ok(depths)
}

/// Gives histograms to the first context of each call stack in each record.
fn set_histograms(profile: &mut MemProfile, histograms: &FxHashMap<StackId, &[[u8; 8]]>) {
    if histograms.is_empty() {
        return;
    }
    let mut inlined = InlinedAt::default();
    let mut places = Vec::new();
    for record in profile.records() {
        let mut seen: FxHashMap<StackId, u32> = FxHashMap::default();
        for (index, site) in record.alloc_sites.iter().enumerate() {
            let Some(values) = histograms.get(&site.stack) else {
                continue;
            };
            let seen = seen.entry(site.stack).or_insert(0);
            if *seen < inlined.times(profile, site.stack, record.function).max(1) {
                places.push((record.function, index, *values));
            }
            *seen += 1;
        }
    }
    for (function, index, values) in places {
        let record = profile.record_mut(function);
        if let Some(site) = record.alloc_sites.get_mut(index) {
            site.histogram = values
                .iter()
                .map(|value| u64::from_le_bytes(*value))
                .collect();
        }
    }
}
