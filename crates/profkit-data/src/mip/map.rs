//! MIP maps. A map lists the functions of an image (an executable or a shared library) and the position of each
//! function's record.
use super::entry::MapEntry;
use super::header::{MipKind, has_magic, preamble};
use super::map_v8::{self, EntryLayout};
use super::model::{Identity, Modes, Width};
use crate::bytes::{Cursor, Endian};
use crate::{ErrorKind, Result, Structure};
use profkit_abi::mip::{map_entry, mode};

/// Options for reading a map: facts about the map's image that the caller knows from the binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapReadOptions {
    /// The address of the record section as the binary states it; `None` if it is not known. A map of version 9 with an
    /// anchor entry does not need this address, because the anchor entry states the address too.
    pub section_address: Option<u64>,
}

setters!(MapReadOptions { section_address: Option<u64> });

/// A MIP map, which lists the functions of an image. It is the section `__llvm_mipmap` of an executable or a shared
/// library, or a file made from that section.
///
/// ```
/// use profkit_data::mip::MipMap;
///
/// let file = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/mip/mixed.mipmap"));
/// let map = MipMap::parse(file)?;
/// assert_eq!(map.version(), 9);
/// for entry in map.entries() {
///     assert!(!entry?.name.is_empty());
/// }
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MipMap<'data> {
    data: &'data [u8],
    form: Form,
    width: Option<Width>,
    identity: Identity,
    section_address: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    V9,
    V8 {
        modes: Modes,
        layout: EntryLayout,
        raw_section_offset: i64,
        start: usize,
    },
}

/// Whether data look like a map of version 9. Such a map has no magic number, so its first entry is checked.
pub fn is_map(data: &[u8]) -> bool {
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    cursor.remaining() >= map_entry::FIXED_SIZE
        && match read_v9(&mut cursor) {
            Ok(entry) => entry.is_some_and(|entry| entry.is_plausible()),
            // A map that cannot be read without its program.
            Err(error) => error.kind() == ErrorKind::Unsupported,
        }
}

impl<'data> MipMap<'data> {
    /// Opens a map. Of a version 8 map, this reads only the header. A version 9 map has no header, so this searches for
    /// the anchor entry, which states the address of the record section. No memory is allocated.
    ///
    /// # Errors
    /// An error if the data are not a map, or if the anchor entry is missing or wrong.
    pub fn parse(data: &'data [u8]) -> Result<Self> {
        Self::parse_with(data, &MapReadOptions::new())
    }

    /// Opens a map with facts from the binary.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse), and an error if the anchor entry contradicts the binary.
    pub fn parse_with(data: &'data [u8], options: &MapReadOptions) -> Result<Self> {
        Self::parse_inner(data, options.section_address)
            .map_err(|error| error.within(Structure::MipMap))
    }

    fn parse_inner(data: &'data [u8], section_address: Option<u64>) -> Result<Self> {
        if data.is_empty() {
            return Err(ErrorKind::Empty.error("the map is empty"));
        }
        if has_magic(data) {
            let preamble = preamble(data)?;
            if preamble.layout == super::header::Layout::V9 {
                return Err(super::header::other_kind(&preamble, MipKind::Map));
            }
            let (header, layout) = map_v8::parse(data)?;
            return Ok(MipMap {
                data,
                width: header.preamble.width,
                identity: Identity::ModuleHash(header.module_hash),
                section_address: None,
                form: Form::V8 {
                    modes: header.modes,
                    layout,
                    raw_section_offset: header.raw_section_offset,
                    start: header.size(),
                },
            });
        }
        let section_address = Some(v9_section(data, section_address)?);
        Ok(MipMap {
            data,
            form: Form::V9,
            width: None,
            identity: Identity::UNKNOWN,
            section_address,
        })
    }

    /// The identity by which the map and the raw files of its image are matched. In version 8 this is the module hash.
    /// A map of version 9 has no identity; there the build id of the binary is used.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The width of addresses; `None` if the map does not state it.
    pub fn width(&self) -> Option<Width> {
        self.width
    }

    /// The version of the map: 8 or 9.
    pub fn version(&self) -> u16 {
        match self.form {
            Form::V9 => profkit_abi::mip::VERSION,
            Form::V8 { .. } => profkit_abi::mip::v8::VERSION,
        }
    }

    /// The address of the record section; `None` in version 8.
    pub fn section_address(&self) -> Option<u64> {
        self.section_address
    }

    /// Iterates over the entries of the map, without anchor entries. The iteration ends after an error.
    pub fn entries(&self) -> Entries<'data> {
        let mut cursor = Cursor::new(self.data, 0, Endian::Little);
        if let Form::V8 { start, .. } = self.form {
            let _ = cursor.take(start);
        }
        Entries {
            cursor,
            form: self.form,
            section_address: self.section_address.unwrap_or(0),
            done: false,
        }
    }
}

/// Returns the address of the record section, which the anchor entry of a version 9 map states. If the address is also
/// known from the binary (`known`), the two addresses must be equal.
fn v9_section(data: &[u8], known: Option<u64>) -> Result<u64> {
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    let mut found = known;
    loop {
        let at = cursor.offset();
        let entry = match read_v9(&mut cursor) {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            // The map is damaged here. If an anchor entry was found before the damage, the entries before the damage
            // can still be read.
            Err(_) if found.is_some() => break,
            Err(error) => return Err(error),
        };
        if !entry.is_anchor() {
            continue;
        }
        if let Some(address) = found
            && address != entry.record
        {
            let expected = if known.is_some() {
                format!("{address:#x}, the address in the binary")
            } else {
                format!("{address:#x}, the address in the anchor before it")
            };
            return Err(ErrorKind::Malformed
                .error("an anchor entry states a wrong address for the record section")
                .at(at)
                .found(format_args!("{:#x}", entry.record))
                .expected(expected)
                .with_hint("use the map of the linked image, not of its object files"));
        }
        found = Some(entry.record);
    }
    found.ok_or_else(|| {
        ErrorKind::Malformed
            .error("the map has no anchor entry")
            .at(data.len() as u64)
            .expected("an entry with mode 0, which has the address of the record section")
            .with_hint("give the binary instead of the map")
    })
}

pub(super) struct EntryV9<'data> {
    modes: Modes,
    record: u64,
    address: u64,
    size: u32,
    signature: u32,
    blocks: &'data [[u8; 4]],
    inference: &'data [[u8; 4]],
    name: &'data [u8],
}

impl EntryV9<'_> {
    fn is_anchor(&self) -> bool {
        self.modes.0 == mode::ANCHOR
    }

    /// Whether this entry can be the first entry of a map. This check is stricter than that of [`read_v9`], so that
    /// other data are not mistaken for a map.
    fn is_plausible(&self) -> bool {
        let anchor = self.is_anchor() && self.name.is_empty() && self.blocks.is_empty();
        anchor || self.modes.entry().is_some() && !self.name.is_empty()
    }
}

/// Reads the next entry of a version 9 map; `None` at the end of the map. Zero bytes before the entry are skipped,
/// because a linker may put zero bytes between sections.
fn read_v9<'data>(cursor: &mut Cursor<'data>) -> Result<Option<EntryV9<'data>>> {
    let zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    while cursor
        .rest()
        .first_chunk::<{ map_entry::ALIGN }>()
        .is_some_and(|bytes| zero(bytes))
    {
        cursor.take(map_entry::ALIGN)?;
    }
    if cursor.remaining() < map_entry::ALIGN && zero(cursor.rest()) {
        return Ok(None);
    }
    let start = cursor.offset();
    let mut ahead = *cursor;
    let size = ahead.u32()?;
    if (size as usize) < map_entry::FIXED_SIZE || !(size as usize).is_multiple_of(map_entry::ALIGN)
    {
        return Err(ErrorKind::Malformed
            .error("the size of a map entry is impossible")
            .at(start)
            .found(size)
            .expected(format_args!(
                "a multiple of {}, at least {}",
                map_entry::ALIGN,
                map_entry::FIXED_SIZE
            )));
    }
    let window = cursor
        .window(u64::from(size))
        .map_err(|error| error.within(Structure::MapEntry))?;
    fields_v9(window).map(Some)
}

fn fields_v9(mut cursor: Cursor<'_>) -> Result<EntryV9<'_>> {
    let size = cursor.remaining();
    cursor.u32()?;
    let at = cursor.offset();
    let modes = Modes(cursor.u16()?);
    let form = cursor.u16()?;
    if (modes.0 != mode::ANCHOR && modes.entry().is_none()) || form > map_entry::DISTANCES {
        return Err(ErrorKind::Malformed.error("the mode flags are not a valid combination")
        .at(at)
        .within(Structure::MapEntry)
        .found(format_args!(
            "{:#x}",
            u32::from(form) << 16 | u32::from(modes.0)
        ))
        .expected(
            "0x1 (coverage), 0x21 (unary) or 0xc (calls), with or without 0x2 (blocks), 0x10 (return addresses) and 0x80 (call edges, only with calls); 0x40 (part) and 0x400 (inferred blocks) only with 0x2",
        ));
    }
    if form == map_entry::DISTANCES {
        return Err(ErrorKind::Unsupported
            .error("the map holds distances from its own place in the program, not addresses")
            .at(at)
            .within(Structure::MapEntry)
            .with_hint("give the program from which the map was extracted: the map of a Mach-O program cannot be read alone"));
    }
    let record = cursor.u64()?;
    let address = cursor.u64()?;
    let function_size = cursor.u32()?;
    let signature = cursor.u32()?;
    let at = cursor.offset();
    let blocks = cursor.u32()?;
    let name = cursor.u32()?;
    let inference = match modes.contains(Modes::INFERRED) {
        true => inference_numbers(cursor, blocks)?,
        false => 0,
    };
    let needed = map_entry::FIXED_SIZE as u64
        + u64::from(blocks) * map_entry::BLOCK_OFFSET_SIZE as u64
        + inference * map_entry::INFERENCE_SIZE as u64
        + u64::from(name);
    if needed.next_multiple_of(map_entry::ALIGN as u64) != size as u64 {
        return Err(ErrorKind::Malformed
            .error("the size of the entry does not match its blocks and name")
            .at(at)
            .within(Structure::MapEntry)
            .found(format_args!(
                "an entry of {size} bytes with {blocks} blocks and a name of {name} bytes"
            ))
            .expected(format_args!(
                "{needed} bytes, padded to a multiple of {}",
                map_entry::ALIGN
            )));
    }
    let (blocks, _) = cursor.take_u64(u64::from(blocks) * 4)?.as_chunks::<4>();
    let (inference, _) = cursor.take_u64(inference * 4)?.as_chunks::<4>();
    let name = cursor.take_u64(u64::from(name))?;
    let at = cursor.offset();
    if cursor.rest().iter().any(|&byte| byte != 0) {
        return Err(ErrorKind::Malformed
            .error("the padding is not zero")
            .at(at)
            .within(Structure::MapEntry));
    }
    Ok(EntryV9 {
        modes,
        record,
        address,
        size: function_size,
        signature,
        blocks,
        inference,
        name,
    })
}

/// How many numbers about inferred blocks an entry has. The cursor stands before the block offsets.
fn inference_numbers(mut cursor: Cursor<'_>, blocks: u32) -> Result<u64> {
    cursor.take_u64(u64::from(blocks) * map_entry::BLOCK_OFFSET_SIZE as u64)?;
    let lengths = u64::from(blocks) + 1;
    let (lengths, _) = cursor
        .take_u64(lengths * map_entry::INFERENCE_SIZE as u64)?
        .as_chunks::<4>();
    let lists = lengths.iter().map(|it| u64::from(u32::from_le_bytes(*it)));
    // No entry is larger than this.
    let most = u64::from(u32::MAX);
    Ok(lengths.len() as u64 + lists.sum::<u64>().min(most))
}

/// Iterates over the entries of a map.
#[derive(Clone, Debug)]
pub struct Entries<'data> {
    cursor: Cursor<'data>,
    form: Form,
    section_address: u64,
    done: bool,
}

impl<'data> Entries<'data> {
    fn read(&mut self) -> Result<Option<MapEntry<'data>>> {
        if let Form::V8 {
            modes,
            layout,
            raw_section_offset,
            ..
        } = self.form
        {
            return map_v8::read_entry(&mut self.cursor, layout, modes, raw_section_offset);
        }
        loop {
            let Some(entry) = read_v9(&mut self.cursor)? else {
                return Ok(None);
            };
            if entry.is_anchor() {
                continue;
            }
            let numbers = entry.blocks.len() + entry.inference.len();
            let room = map_entry::FIXED_SIZE + numbers * 4 + entry.name.len();
            let size = room.next_multiple_of(map_entry::ALIGN) as u64;
            return Ok(Some(MapEntry {
                offset: self.cursor.offset() - size,
                modes: entry.modes,
                record_offset: entry.record.wrapping_sub(self.section_address),
                address: entry.address,
                size: entry.size,
                signature: entry.signature,
                blocks: entry.blocks,
                inference: entry.inference,
                name: entry.name,
            }));
        }
    }
}

impl<'data> Iterator for Entries<'data> {
    type Item = Result<MapEntry<'data>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let entry = self.read();
        self.done = !matches!(entry, Ok(Some(_)));
        entry
            .map_err(|error| error.within(Structure::MipMap))
            .transpose()
    }
}
