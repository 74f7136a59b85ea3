//! Reads and writes MIP profiles of version 9. A file has a header, the build id, a table of sections, the sections and
//! a checksum.
use super::header::{Layout, MipKind, other_kind, preamble};
use super::inference::Inference;
use super::losses::Losses;
use super::model::{Block, CallEdge, Function, FunctionId, Identity, MipProfile, Modes, Width};
use super::profile_v8;
use crate::bytes::{Bytes, Cursor, Endian, Sink, assert_planned};
use crate::ids::BuildId;
use crate::index_vec::IndexVec;
use crate::tables::{PathTable, StackId, StackTable, StringId, StringTable, Strings, Tables};
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::mip::{MAGIC, VERSION, file_type, mode};
use twox_hash::XxHash3_64;

/// The version of the MIP profile format to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProfileVersion {
    /// Version 8 in layout B of the original implementation. Only a profile that was made from a map of version 8 can
    /// be written in this version.
    V8,
    /// Version 9, which was designed for profkit.
    #[default]
    V9,
}

impl ProfileVersion {
    /// The number of the version.
    pub fn number(self) -> u32 {
        match self {
            ProfileVersion::V8 => 8,
            ProfileVersion::V9 => 9,
        }
    }
}

// The sizes in bytes of the structures in the file (docs/formats/mip.md).
const HEADER: usize = 64;
const SECTION: u64 = 24;
const FUNCTION: u64 = 88;
const BLOCK: u64 = 12;
const EDGE: u64 = 24;
const CHECKSUM: u64 = 8;
const ALIGN: usize = 8;
/// The number that a field has if its value is not known.
const UNKNOWN: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// The bit in the flags of a function that says that its number of calls is a lower bound.
const CALLS_AT_LEAST: u32 = 1;
/// The maximum length of a build id in bytes. The build ids of linkers are much shorter.
const LONGEST_ID: u32 = 4096;

mod flag {
    /// Header flag: the identity of the image is a module hash of four bytes.
    pub const MODULE_HASH: u32 = 1;
    /// Header flag: the addresses of functions are relative to the record section.
    pub const RELATIVE: u32 = 2;
    pub const ALL: u32 = 3;
}

/// The number of sections that each profile has. The section after them is there only if blocks are inferred.
const ALWAYS: usize = 7;

const SECTIONS: [&str; 8] = [
    "functions",
    "names",
    "blocks",
    "call edges",
    "strings",
    "file paths",
    "stack entries",
    "inferred blocks",
];

/// The facts that the header of a MIP profile states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileHeader {
    /// The version of the profile: 8 or 9.
    pub version: u16,
    /// The identity of the image to which the profile belongs.
    pub identity: Identity,
}

impl MipProfile {
    /// Reads a profile of version 8 (layout B) or 9.
    ///
    /// The memory that reading takes is at most a small multiple of the size of the file.
    ///
    /// # Errors
    /// An error if the file is not a profile, is truncated or is damaged. If the checksum is wrong, nothing is read.
    pub fn parse(data: &[u8]) -> Result<Self> {
        Self::parse_inner(data).map_err(within_profile)
    }

    fn parse_inner(data: &[u8]) -> Result<Self> {
        if data.is_empty() {
            return Err(ErrorKind::Empty.error("the file is empty"));
        }
        let preamble = preamble(data)?;
        if preamble.kind != MipKind::Profile {
            return Err(other_kind(&preamble, MipKind::Profile));
        }
        if preamble.layout != Layout::V9 {
            return profile_v8::parse(data);
        }
        let (header, sections) = parts(data)?;
        let [
            functions,
            names,
            blocks,
            edges,
            strings,
            paths,
            stacks,
            inferred,
        ] = sections;
        let strings = whole(strings, Structure::Strings, StringTable::read)?;
        let paths = whole(paths, Structure::FilePaths, |cursor| {
            PathTable::read(cursor, strings.len())
        })?;
        let stacks = whole(stacks, Structure::StackEntries, |cursor| {
            StackTable::read(cursor, strings.len(), paths.len())
        })?;
        let names = whole(names, Structure::Names, StringTable::read)?;
        let functions = read_functions(functions, blocks, inferred, &names, stacks.len())?;
        let edges = read_edges(edges, &functions)?;
        Ok(MipProfile {
            identity: header.identity,
            width: preamble.width,
            section_address: header.section_address,
            section_size: header.section_size,
            runs: header.runs,
            functions,
            edges,
            tables: Tables {
                strings: strings.to_owned(),
                paths: paths.to_owned(),
                stacks: stacks.to_owned(),
            },
        })
    }

    /// Reads only the header of a profile, to find out which image it belongs to. The checksum is not verified.
    ///
    /// # Errors
    /// An error if the data do not begin with the header of a profile.
    pub fn parse_header(data: &[u8]) -> Result<ProfileHeader> {
        let inner = || {
            let preamble = preamble(data)?;
            if preamble.kind != MipKind::Profile {
                return Err(other_kind(&preamble, MipKind::Profile));
            }
            if preamble.layout != Layout::V9 {
                let header = super::header_v8::HeaderV8::parse(data, MipKind::Profile)?;
                return Ok(ProfileHeader {
                    version: profkit_abi::mip::v8::VERSION,
                    identity: Identity::ModuleHash(header.module_hash),
                });
            }
            let mut cursor = Cursor::new(data, 0, Endian::Little);
            let header =
                Header::read(&mut cursor).map_err(|error| error.within(Structure::Header))?;
            Ok(ProfileHeader {
                version: VERSION,
                identity: header.identity,
            })
        };
        inner().map_err(within_profile)
    }
}

/// Options for writing a profile, as a file or as YAML.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MipWriteOptions {
    /// The version of the format to write. The default is the newest version.
    pub version: ProfileVersion,
}

setters!(MipWriteOptions {
    version: ProfileVersion
});

/// Writes a profile. Version 9 can hold everything. Data that version 8 cannot hold are left out and counted in the
/// losses.
///
/// ```
/// use profkit_data::mip::{Function, MipProfile, MipWriteOptions, Modes, write};
///
/// let mut profile = MipProfile { section_address: Some(0x4000), ..MipProfile::default() };
/// let main = profile.functions.push(Function {
///     name: b"main".to_vec(),
///     modes: Modes::FUNCTION_COVERAGE,
///     called_runs: 1,
///     ..Function::default()
/// });
/// let mut file = Vec::new();
/// let losses = write(&profile, &MipWriteOptions::new(), &mut file)?;
/// assert!(losses.is_empty());
/// assert!(MipProfile::parse(&file)?.functions[main].is_covered());
/// # Ok::<(), profkit_data::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the version cannot hold data that must not be left out, and the errors of the
/// sink.
pub fn write(
    profile: &MipProfile,
    options: &MipWriteOptions,
    sink: &mut dyn Sink,
) -> Result<Losses> {
    match options.version {
        ProfileVersion::V8 => {
            profile_v8::write(profile, sink).map(|()| Losses::of_version_8(profile, |_| false))
        }
        ProfileVersion::V9 => write_v9(profile, sink).map(|()| Losses::default()),
    }
    .map_err(|error| error.within(Structure::MipProfile))
}

fn within_profile(error: Error) -> Error {
    match error.kind() {
        // The file is not a MIP file, so the error must not say that it is in a MIP profile.
        ErrorKind::BadMagic => error,
        _ => error.within(Structure::MipProfile),
    }
}

struct Header {
    identity: Identity,
    section_address: Option<u64>,
    section_size: Option<u64>,
    runs: u64,
    sections: u32,
    file_size: u64,
}

impl Header {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        cursor.take(8)?;
        let at = cursor.offset();
        let modes = cursor.u32()?;
        if modes & !u32::from(mode::ALL) != 0 {
            return Err(ErrorKind::BadHeader
                .error("there are unknown mode flags")
                .at(at)
                .found(format_args!("{modes:#x}"))
                .expected(format_args!("only bits of {:#x}", mode::ALL)));
        }
        let at = cursor.offset();
        let flags = cursor.u32()?;
        if flags & !flag::ALL != 0 {
            return Err(ErrorKind::BadHeader
                .error("there are unknown flags")
                .at(at)
                .found(format_args!("{flags:#x}"))
                .expected(format_args!("only bits of {:#x}", flag::ALL))
                .with_hint("a newer version of profkit may support these flags"));
        }
        let at = cursor.offset();
        let length = cursor.u32()?;
        let hashed = flags & flag::MODULE_HASH != 0;
        if length > LONGEST_ID || hashed && length != 4 {
            return Err(ErrorKind::BadHeader
                .error("the identity of the image has an impossible length")
                .at(at)
                .found(Bytes(length))
                .expected(if hashed {
                    "4 bytes, for a module hash".to_owned()
                } else {
                    format!("at most {LONGEST_ID}")
                }));
        }
        let sections = cursor.u32()?;
        let runs = cursor.u64()?;
        let address = cursor.u64()?;
        let size = cursor.u64()?;
        let file_size = cursor.u64()?;
        let at = cursor.offset();
        let reserved = cursor.u64()?;
        if reserved != 0 {
            return Err(ErrorKind::BadHeader
                .error("a reserved field is not 0")
                .at(at)
                .found(format_args!("{reserved:#x}"))
                .expected("0"));
        }
        let id = cursor.take_u64(u64::from(length))?;
        cursor.take(id.len().next_multiple_of(ALIGN) - id.len())?;
        let identity = match id.first_chunk::<4>() {
            Some(hash) if hashed => Identity::ModuleHash(u32::from_le_bytes(*hash)),
            _ => Identity::BuildId(BuildId(id.to_vec())),
        };
        Ok(Header {
            identity,
            section_address: (flags & flag::RELATIVE == 0).then_some(address),
            section_size: Some(size).filter(|&size| size != UNKNOWN),
            runs,
            sections,
            file_size,
        })
    }
}

/// Checks the size and the checksum of the file, and finds the sections.
fn parts(data: &[u8]) -> Result<(Header, [Cursor<'_>; SECTIONS.len()])> {
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    let header = Header::read(&mut cursor).map_err(|error| error.within(Structure::Header))?;
    if header.file_size != data.len() as u64 {
        let cut = header.file_size > data.len() as u64;
        let (kind, message, hint) = if cut {
            (
                ErrorKind::Truncated,
                "the file is cut short",
                "the file lost its end after it was written: copy it again, or merge the raw files again",
            )
        } else {
            (
                ErrorKind::Malformed,
                "there are bytes after the end",
                "something was added to the file after it was written",
            )
        };
        return Err(Error::new(kind, message)
            .at(data
                .len()
                .min(usize::try_from(header.file_size).unwrap_or(usize::MAX))
                as u64)
            .found(Bytes(data.len()))
            .expected(format_args!("{}, the size in the header", header.file_size))
            .with_hint(hint));
    }
    let at = header.file_size.saturating_sub(CHECKSUM);
    let (covered, stored) = data.split_at(usize::try_from(at).unwrap_or(0).min(data.len()));
    let stored = stored.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let computed = XxHash3_64::oneshot(covered);
    if stored != Some(computed) {
        return Err(Error::new(ErrorKind::ChecksumMismatch, "the checksum does not fit the bytes before it")
            .at(at)
            .found(format_args!("{:#018x}", stored.unwrap_or(0)))
            .expected(format_args!("{computed:#018x}"))
            .with_hint(
                "the file was changed after it was written: copy it again, or merge the raw files again",
            ));
    }
    let mut sections = [None; SECTIONS.len()];
    for index in 0..header.sections {
        read_section(&mut cursor, covered, &mut sections)
            .map_err(|error| error.within(Structure::SectionNumber(index as u64)))?;
    }
    let end = cursor.offset();
    let mut found = [Cursor::new(&[], end, Endian::Little); SECTIONS.len()];
    for (index, (slot, section)) in found.iter_mut().zip(sections).enumerate() {
        let name = SECTIONS.get(index).copied().unwrap_or_default();
        let optional = (index >= ALWAYS).then_some(*slot);
        *slot = section.or(optional).ok_or_else(|| {
            ErrorKind::Malformed
                .error(format!("the section of {name} is missing"))
                .at(end)
                .within(Structure::SectionList)
        })?;
    }
    Ok((header, found))
}

fn read_section<'data>(
    cursor: &mut Cursor<'data>,
    data: &'data [u8],
    sections: &mut [Option<Cursor<'data>>; SECTIONS.len()],
) -> Result<()> {
    let at = cursor.offset();
    let kind = cursor.u32()?;
    cursor.u32()?;
    let (offset, size) = (cursor.u64()?, cursor.u64()?);
    let index = kind.wrapping_sub(1) as usize;
    let Some(slot) = sections.get_mut(index) else {
        return Err(ErrorKind::UnsupportedVersion
            .error("a section has an unknown kind")
            .at(at)
            .found(kind)
            .expected(format_args!("1 to {}", SECTIONS.len()))
            .with_hint("a newer version of profkit may support this kind of section"));
    };
    let mut window = Cursor::new(data, 0, Endian::Little);
    let window = window
        .take_u64(offset)
        .and_then(|_| window.window(size))
        .map_err(|_| {
            ErrorKind::Malformed
                .error("a section lies outside the file")
                .at(at)
                .found(format_args!("{size} bytes at {offset:#x}"))
                .expected(format_args!("an end at {:#x} or before", data.len()))
        })?;
    if slot.replace(window).is_some() {
        return Err(ErrorKind::Malformed
            .error("a section occurs twice")
            .at(at)
            .found(format_args!("another section {kind}")));
    }
    Ok(())
}

/// Reads a section with the function `read`. The section is damaged if `read` does not read all its bytes.
fn whole<'data, T>(
    mut cursor: Cursor<'data>,
    name: Structure,
    read: impl FnOnce(&mut Cursor<'data>) -> Result<T>,
) -> Result<T> {
    read(&mut cursor)
        .and_then(|value| match cursor.remaining() {
            0 => Ok(value),
            left => Err(ErrorKind::Malformed
                .error("there are bytes after the last entry")
                .at(cursor.offset())
                .found(Bytes(left))
                .expected("the end of the section")),
        })
        .map_err(|error| error.within(Structure::Section).within(name))
}

fn read_functions(
    functions: Cursor<'_>,
    blocks: Cursor<'_>,
    inferred: Cursor<'_>,
    names: &StringTable<'_>,
    stacks: usize,
) -> Result<IndexVec<FunctionId, Function>> {
    let (mut blocks, mut inferred) = (blocks, inferred);
    let read = whole(functions, Structure::Functions, |cursor| {
        let mut read = IndexVec::with_capacity(cursor.remaining() / usize_of(FUNCTION));
        while !cursor.is_empty() {
            let index = read.len();
            let function = cursor
                .window(FUNCTION)
                .and_then(|fields| {
                    let mut function = read_function(fields, &mut blocks, names, stacks)?;
                    if function.modes.contains(Modes::INFERRED) {
                        let inference = read_inference(&mut inferred, &function)?;
                        function.inference = Some(Box::new(inference));
                    }
                    Ok(function)
                })
                .map_err(|error| error.within(Structure::FunctionNumber(index as u64)))?;
            read.push(function);
        }
        Ok(read)
    })?;
    // Every block in the section of blocks must belong to a function; otherwise the section is damaged.
    whole(blocks, Structure::Blocks, |_| Ok(()))?;
    whole(inferred, Structure::Blocks, |_| Ok(()))?;
    Ok(read)
}

fn read_inference(inferred: &mut Cursor<'_>, function: &Function) -> Result<Inference> {
    let at = inferred.offset();
    let blocks = function.blocks.len();
    let mut ahead = *inferred;
    let (lengths, _) = ahead.take_u64((blocks as u64 + 1) * 4)?.as_chunks::<4>();
    let lists = lengths.iter().map(|it| u64::from(u32::from_le_bytes(*it)));
    let left = ahead.remaining() as u64 / 4;
    let numbers = blocks as u64 + 1 + lists.sum::<u64>().min(left + 1);
    let (numbers, _) = inferred.take_u64(numbers * 4)?.as_chunks::<4>();
    let inference = Inference::from_numbers(blocks, numbers).ok_or_else(|| {
        ErrorKind::Malformed
            .error("the lists of inferred blocks do not fit each other")
            .at(at)
    })?;
    inference
        .check(blocks, function.modes)
        .map_err(|error| error.at(at))?;
    Ok(inference)
}

fn read_function(
    mut fields: Cursor<'_>,
    blocks: &mut Cursor<'_>,
    names: &StringTable<'_>,
    stacks: usize,
) -> Result<Function> {
    let at = fields.offset();
    let name = fields.u32()?;
    let name = names.get(StringId(name)).ok_or_else(|| {
        ErrorKind::Malformed
            .error("the index of a name is out of bounds")
            .at(at)
            .found(name)
            .expected(format_args!("an index below {}", names.len()))
    })?;
    let at = fields.offset();
    let modes = fields.u32()?;
    let modes = u16::try_from(modes)
        .ok()
        .map(Modes)
        .filter(|modes| modes.entry().is_some())
        .ok_or_else(|| {
            ErrorKind::Malformed.error("the mode flags are not a valid combination")
            .at(at)
            .found(format_args!("{modes:#x}"))
            .expected(
                "0x1 (coverage), 0x21 (unary) or 0xc (calls), with or without 0x2 (blocks), 0x10 (return addresses) and 0x80 (call edges, only with calls); 0x40 (part) and 0x400 (inferred blocks) only with 0x2",
            )
        })?;
    let mut function = Function {
        name: name.to_vec(),
        modes,
        record_offset: fields.u64()?,
        address: fields.u64()?,
        size: fields.u32()?,
        signature: fields.u32()?,
        ..Function::default()
    };
    let at = fields.offset();
    let count = fields.u32()?;
    let room = blocks.remaining() as u64 / BLOCK;
    if u64::from(count) > room {
        return Err(ErrorKind::Malformed
            .error("a function claims more blocks than are left")
            .at(at)
            .found(count)
            .expected(format_args!("at most {room}")));
    }
    let at = fields.offset();
    let location = fields.u32()?;
    function.location = location.checked_sub(1).map(StackId);
    if location as usize > stacks {
        return Err(ErrorKind::Malformed
            .error("the index of a stack entry is out of bounds")
            .at(at)
            .found(location)
            .expected(format_args!("at most {stacks}")));
    }
    function.raw_runs = fields.u64()?;
    function.called_runs = fields.u64()?;
    function.calls = fields.u64()?;
    function.order_sum = fields.u64()?;
    function.order_runs = fields.u64()?;
    let order_min = fields.u32()?;
    function.order_min = (order_min != NONE).then_some(order_min);
    function.calls_at_least = fields.u32()? & CALLS_AT_LEAST != 0;
    function.blocks.reserve(count as usize);
    for _ in 0..count {
        function.blocks.push(Block {
            offset: blocks.u32()?,
            runs: blocks.u64()?,
        });
    }
    Ok(function)
}

fn read_edges(
    edges: Cursor<'_>,
    functions: &IndexVec<FunctionId, Function>,
) -> Result<Vec<CallEdge>> {
    whole(edges, Structure::CallEdges, |cursor| {
        let mut read: Vec<CallEdge> = Vec::with_capacity(cursor.remaining() / usize_of(EDGE));
        while !cursor.is_empty() {
            let index = read.len();
            let at = cursor.offset();
            let edge = |cursor: &mut Cursor<'_>| {
                let caller = cursor.u32()?;
                let call_site = cursor.u32()?;
                let callee = cursor.u32()?;
                cursor.u32()?;
                let weight = cursor.u64()?;
                let function = |number| {
                    functions.id(number).ok_or_else(|| {
                        ErrorKind::Malformed
                            .error("the index of a function is out of bounds")
                            .at(at)
                            .found(number)
                            .expected(format_args!("an index below {}", functions.len()))
                    })
                };
                let edge = CallEdge {
                    caller: if caller == NONE {
                        None
                    } else {
                        Some(function(caller)?)
                    },
                    call_site,
                    callee: function(callee)?,
                    weight,
                };
                let key = |edge: &CallEdge| (edge.caller, edge.call_site, edge.callee);
                if read.last().is_some_and(|last| key(last) >= key(&edge)) {
                    return Err(ErrorKind::Malformed
                        .error("the call edges are out of order")
                        .at(at));
                }
                Ok(edge)
            };
            let edge =
                edge(cursor).map_err(|error| error.within(Structure::CallEdge(index as u64)))?;
            read.push(edge);
        }
        Ok(read)
    })
}

fn usize_of(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cold]
fn too_many(what: &'static str) -> Error {
    ErrorKind::CannotRepresent.error(format!("there are too many {what}"))
}

fn write_v9(profile: &MipProfile, sink: &mut dyn Sink) -> Result<()> {
    profile.tables.check()?;
    let id = match &profile.identity {
        Identity::BuildId(BuildId(id)) => id.clone(),
        Identity::ModuleHash(hash) => hash.to_le_bytes().to_vec(),
    };
    let length = u32::try_from(id.len())
        .ok()
        .filter(|&length| length <= LONGEST_ID)
        .ok_or_else(|| too_many("bytes of build id"))?;
    let mut names = Strings::default();
    let mut blocks = 0u64;
    let mut name_ids = Vec::with_capacity(profile.functions.len());
    for function in &profile.functions {
        name_ids.push(names.intern(&function.name)?);
        blocks += function.blocks.len() as u64;
    }
    let inferences = || {
        profile
            .functions
            .iter()
            .filter_map(|one| one.inference.as_deref())
    };
    let numbers: u64 = inferences().map(|it| it.number_count() as u64).sum();
    let tables = &profile.tables;
    let sizes = [
        profile.functions.len() as u64 * FUNCTION,
        names.encoded_len() as u64,
        blocks * BLOCK,
        profile.edges.len() as u64 * EDGE,
        tables.strings.encoded_len() as u64,
        tables.paths.encoded_len() as u64,
        tables.stacks.encoded_len() as u64,
        numbers * 4,
    ];
    let sections = ALWAYS + usize::from(numbers > 0);
    let sizes = sizes.get(..sections).unwrap_or_default();
    let align = ALIGN as u64;
    let start =
        HEADER as u64 + u64::from(length).next_multiple_of(align) + sections as u64 * SECTION;
    let size = sizes
        .iter()
        .fold(start, |offset, size| offset + size.next_multiple_of(align));
    let mut out = Vec::with_capacity(usize_of(size + CHECKSUM));
    put_header(profile, length, sections, size + CHECKSUM, &mut out)?;
    out.put(&id)?;
    pad(&mut out);
    let mut offset = start;
    for (kind, &size) in (1u32..).zip(sizes) {
        out.put(&kind.to_le_bytes())?;
        out.put(&0u32.to_le_bytes())?;
        out.put(&offset.to_le_bytes())?;
        out.put(&size.to_le_bytes())?;
        offset += size.next_multiple_of(align);
    }
    assert_planned("header of the MIP profile", start, out.len() as u64);
    let mut end = start;
    let mut sections = SECTIONS.into_iter().zip(sizes);
    let mut finish_section = |out: &mut Vec<u8>| {
        pad(out);
        if let Some((name, size)) = sections.next() {
            end += size.next_multiple_of(align);
            assert_planned(name, end, out.len() as u64);
        }
    };
    for (function, StringId(name)) in profile.functions.iter().zip(name_ids) {
        put_function(function, name, &mut out)?;
    }
    finish_section(&mut out);
    names.write(&mut out)?;
    finish_section(&mut out);
    for block in profile.functions.iter().flat_map(|one| &one.blocks) {
        out.put(&block.offset.to_le_bytes())?;
        out.put(&block.runs.to_le_bytes())?;
    }
    finish_section(&mut out);
    for edge in &profile.edges {
        let caller = match edge.caller {
            Some(caller) => number(caller)?,
            None => NONE,
        };
        out.put(&caller.to_le_bytes())?;
        out.put(&edge.call_site.to_le_bytes())?;
        out.put(&number(edge.callee)?.to_le_bytes())?;
        out.put(&0u32.to_le_bytes())?;
        out.put(&edge.weight.to_le_bytes())?;
    }
    finish_section(&mut out);
    tables.strings.write(&mut out)?;
    finish_section(&mut out);
    tables.paths.write(&mut out)?;
    finish_section(&mut out);
    tables.stacks.write(&mut out)?;
    finish_section(&mut out);
    for number in inferences().flat_map(Inference::numbers) {
        out.put(&number.to_le_bytes())?;
    }
    finish_section(&mut out);
    assert_planned("MIP profile", size, out.len() as u64);
    let checksum = XxHash3_64::oneshot(&out);
    out.put(&checksum.to_le_bytes())?;
    sink.put(&out)
}

fn number(function: FunctionId) -> Result<u32> {
    let number = u32::try_from(function.index()).ok();
    let number = number.filter(|&number| number != NONE);
    number.ok_or_else(|| too_many("functions"))
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(ALIGN), 0);
}

fn put_header(
    profile: &MipProfile,
    id_length: u32,
    sections: usize,
    file_size: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let width = match profile.width {
        None => 0,
        Some(Width::Bits32) => file_type::WIDTH_32,
        Some(Width::Bits64) => file_type::WIDTH_64,
    };
    let hashed = matches!(profile.identity, Identity::ModuleHash(_));
    let relative = profile.section_address.is_none();
    let flags =
        if hashed { flag::MODULE_HASH } else { 0 } | if relative { flag::RELATIVE } else { 0 };
    let sections = u32::try_from(sections).unwrap_or(u32::MAX);
    out.put(&MAGIC.to_le_bytes())?;
    out.put(&VERSION.to_le_bytes())?;
    out.put(&(file_type::PROFILE | width).to_le_bytes())?;
    out.put(&u32::from(profile.modes().0).to_le_bytes())?;
    out.put(&flags.to_le_bytes())?;
    out.put(&id_length.to_le_bytes())?;
    out.put(&sections.to_le_bytes())?;
    out.put(&profile.runs.to_le_bytes())?;
    out.put(&profile.section_address.unwrap_or(0).to_le_bytes())?;
    out.put(&profile.section_size.unwrap_or(UNKNOWN).to_le_bytes())?;
    out.put(&file_size.to_le_bytes())?;
    out.put(&0u64.to_le_bytes())?;
    assert_planned("fields of the header", HEADER as u64, out.len() as u64);
    Ok(())
}

fn put_function(function: &Function, name: u32, out: &mut Vec<u8>) -> Result<()> {
    let blocks = u32::try_from(function.blocks.len()).map_err(|_| too_many("blocks"))?;
    let location = function
        .location
        .map_or(0, |StackId(id)| id.saturating_add(1));
    out.put(&name.to_le_bytes())?;
    out.put(&u32::from(function.modes.0).to_le_bytes())?;
    out.put(&function.record_offset.to_le_bytes())?;
    out.put(&function.address.to_le_bytes())?;
    out.put(&function.size.to_le_bytes())?;
    out.put(&function.signature.to_le_bytes())?;
    out.put(&blocks.to_le_bytes())?;
    out.put(&location.to_le_bytes())?;
    out.put(&function.raw_runs.to_le_bytes())?;
    out.put(&function.called_runs.to_le_bytes())?;
    out.put(&function.calls.to_le_bytes())?;
    out.put(&function.order_sum.to_le_bytes())?;
    out.put(&function.order_runs.to_le_bytes())?;
    out.put(&function.order_min.unwrap_or(NONE).to_le_bytes())?;
    let flags = if function.calls_at_least {
        CALLS_AT_LEAST
    } else {
        0
    };
    out.put(&flags.to_le_bytes())
}
