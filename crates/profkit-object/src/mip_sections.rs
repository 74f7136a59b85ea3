//! Reads the sections of a binary that MIP needs: the map, and the address of the record section.
use crate::binary::{Image, damaged};
use crate::bounds::SectionBytes;
use crate::build_id::build_id;
use object::macho;
use object::read::macho::{LoadCommandVariant, MachOFile};
use object::{Object, ObjectKind, ObjectSection, ReadRef};
use profkit_abi::mip::{map_entry, mode, section};
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::ids::BuildId;
use profkit_data::mip::{Width, has_magic};
use profkit_data::{Error, ErrorKind, Result, Structure};

/// What a binary says about its MIP records: the map that describes them, and the section that contains them.
///
/// ```
/// use profkit_object::binary::BinaryFile;
/// use profkit_object::mip_sections::MipSections;
///
/// let file = BinaryFile::open(&std::env::current_exe()?)?;
/// // This program has no MIP map.
/// assert_eq!(MipSections::of(&file.image(|_| true)?)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MipSections {
    /// The bytes of the MIP map. Addresses in it are those that the linker assigned.
    pub map: Vec<u8>,
    /// The address of the record section; `None` if the file does not have the section.
    pub section_address: Option<u64>,
    /// The size of the record section in bytes; `None` if the file does not have the section.
    pub section_size: Option<u64>,
    /// The width of addresses in the binary.
    pub width: Width,
    /// The build id of the binary; `None` if it has none.
    pub build_id: Option<BuildId>,
}

impl MipSections {
    /// Reads the MIP sections of a linked image, or of a debug file that was split off an image. `None` if there is no
    /// map.
    ///
    /// # Errors
    /// If the file is not linked, if its map is empty because the file was stripped, or if the file is damaged.
    pub fn of(image: &Image<'_>) -> Result<Option<Self>> {
        let Some(map) = image.section_by_name(section::MAP) else {
            return Ok(None);
        };
        if image.kind() == ObjectKind::Relocatable {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the object file is not linked: its map has no addresses yet",
            )
            .within(Structure::NamedSection(section::MAP.into()))
            .with_hint("give the program or library that was linked from it"));
        }
        let within = |error: Error| error.within(Structure::NamedSection(section::MAP.into()));
        let bytes = SectionBytes::of(image).read(&map).map_err(within)?;
        if bytes.is_empty() && map.size() > 0 {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the map's section is empty: its contents were stripped",
            )
            .within(Structure::NamedSection(section::MAP.into()))
            .with_hint("give the program as the linker wrote it, not stripped, or a map that objcopy --dump-section extracted from it"));
        }
        let mut bytes = bytes.into_owned();
        if let object::File::MachO64(file) = image
            && !has_magic(&bytes)
        {
            follow_fixups(file, &mut bytes)?;
        }
        let records = image.section_by_name(section::RECORDS);
        if !has_magic(&bytes) {
            let start = records.as_ref().map(ObjectSection::address);
            follow_distances(map.address(), start, &mut bytes);
        }
        Ok(Some(MipSections {
            map: bytes,
            section_address: records.as_ref().map(ObjectSection::address),
            section_size: records.as_ref().map(ObjectSection::size),
            width: if image.is_64() {
                Width::Bits64
            } else {
                Width::Bits32
            },
            build_id: build_id(image)?,
        }))
    }

    /// Returns the address of the record section in an image, even if the image has no map.
    pub fn record_address(image: &Image<'_>) -> Option<u64> {
        image
            .section_by_name(section::RECORDS)
            .map(|records| records.address())
    }
}

/// Whether a file is a binary for one architecture that has a MIP map.
pub fn has_map(data: &[u8]) -> bool {
    object::File::parse(data).is_ok_and(|file| file.section_by_name(section::MAP).is_some())
}

/// Replaces the pointers in a map by addresses. In a Mach-O file with chained fixups, a pointer also contains the
/// distance to the next pointer. The loader replaces such pointers by addresses when it loads a program; this function
/// does the same.
fn follow_fixups<'data, R: ReadRef<'data>>(
    file: &MachOFile<'data, macho::MachHeader64<object::Endianness>, R>,
    map: &mut [u8],
) -> Result<()> {
    let endian = file.endian();
    if !file.is_little_endian() {
        return Ok(());
    }
    let mut payload: Option<&[u8]> = None;
    let mut base = None;
    let mut index = 0;
    let mut data_segment = None;
    let mut commands = file
        .macho_load_commands()
        .map_err(|error| damaged(&error))?;
    while let Some(command) = commands.next().map_err(|error| damaged(&error))? {
        match command.variant().map_err(|error| damaged(&error))? {
            LoadCommandVariant::Segment64(segment, _) => {
                let name = segment.segname;
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                if name == b"__TEXT" {
                    base = Some(segment.vmaddr.get(endian));
                } else if name == section::MACHO_SEGMENT.as_bytes() {
                    data_segment = Some(index);
                }
                index += 1;
            }
            LoadCommandVariant::LinkeditData(data)
                if command.cmd() == macho::LC_DYLD_CHAINED_FIXUPS =>
            {
                let (offset, size) = (data.dataoff.get(endian), data.datasize.get(endian));
                payload = Some(
                    file.data()
                        .read_bytes_at(offset.into(), size.into())
                        .map_err(|()| {
                            Error::new(ErrorKind::Truncated, "the fixups lie outside the file")
                                .at(offset.into())
                                .within(Structure::ChainedFixups)
                        })?,
                );
            }
            _ => {}
        }
    }
    let (Some(payload), Some(segment)) = (payload, data_segment) else {
        return Ok(());
    };
    let format =
        pointer_format(payload, segment).map_err(|error| error.within(Structure::ChainedFixups))?;
    let relative = match macho::DyldChainedPtrFormat(format) {
        // The segment has no pointers that must be replaced.
        macho::DyldChainedPtrFormat(0) => return Ok(()),
        macho::DYLD_CHAINED_PTR_64 => 0,
        macho::DYLD_CHAINED_PTR_64_OFFSET => base.unwrap_or(0),
        _ => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the pointers have an unknown format",
            )
            .within(Structure::ChainedFixups)
            .found(format)
            .expected("2 or 6, as for arm64 and x86-64"));
        }
    };
    change_addresses(map, map_entry::ADDRESSES, |_, link| {
        let target = link & 0xf_ffff_ffff;
        let high = link >> 36 & 0xff;
        target.wrapping_add(relative) | high << 56
    });
    Ok(())
}

/// Replaces the distances in a map by addresses. The map is linked to `section`, and the records to `records`.
fn follow_distances(section: u64, records: Option<u64>, map: &mut [u8]) {
    change_addresses(map, map_entry::DISTANCES, |entry, distance| {
        section.wrapping_add(entry).wrapping_add(distance)
    });
    let mut at = 0;
    while let Some(entry) = map
        .get_mut(at..)
        .filter(|rest| rest.len() >= map_entry::FIXED_SIZE)
    {
        let size = entry_size(entry);
        let half = |entry: &[u8], field: usize| {
            let rest = entry.get(field..).and_then(|rest| rest.first_chunk::<2>());
            rest.map(|bytes| u16::from_le_bytes(*bytes))
        };
        if half(entry, map_entry::FORM) == Some(map_entry::DISTANCES) {
            let is_anchor = half(entry, map_entry::MODE) == Some(mode::ANCHOR);
            put(entry, map_entry::FORM, &map_entry::ADDRESSES.to_le_bytes());
            if let Some(start) = records.filter(|_| is_anchor) {
                put(entry, map_entry::RECORD_ADDRESS, &start.to_le_bytes());
            }
        }
        at += size;
    }
}

fn put(entry: &mut [u8], field: usize, bytes: &[u8]) {
    if let Some(place) = entry.get_mut(field..field + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn entry_size(entry: &[u8]) -> usize {
    let size = entry.first_chunk::<4>().copied().unwrap_or_default();
    (u32::from_le_bytes(size) as usize).max(map_entry::ALIGN)
}

/// Changes the two addresses of each entry that has this form. `change` gets the offset of the entry and the address. A
/// damaged map is no error here: the entries before the damage are converted, and the damage is reported when the map is
/// read.
fn change_addresses(map: &mut [u8], form: u16, change: impl Fn(u64, u64) -> u64) {
    let mut at = 0;
    while let Some(entry) = map.get_mut(at..).filter(|rest| rest.len() >= 4) {
        let own = entry
            .get(map_entry::FORM..)
            .and_then(|rest| rest.first_chunk::<2>());
        if own.is_some_and(|own| u16::from_le_bytes(*own) == form) {
            for field in [map_entry::RECORD_ADDRESS, map_entry::FUNCTION_ADDRESS] {
                let place = entry
                    .get_mut(field..)
                    .and_then(|rest| rest.first_chunk_mut::<8>());
                if let Some(place) = place {
                    *place = change(at as u64, u64::from_le_bytes(*place)).to_le_bytes();
                }
            }
        }
        at += entry_size(entry);
    }
}

/// Returns the code of the pointer format in a segment; 0 if the segment has no pointers.
fn pointer_format(payload: &[u8], segment: usize) -> Result<u16> {
    let cursor = Cursor::new(payload, 0, Endian::Little);
    let at = |offset: u64| {
        let mut cursor = cursor;
        cursor.take_u64(offset)?;
        Ok(cursor)
    };
    // The header of the chained fixups begins with its version and the offset of the list of segments.
    let starts = u64::from(at(4)?.u32()?);
    let mut list = at(starts)?;
    let count = list.u32()?;
    if segment >= count as usize {
        return Ok(0);
    }
    list.take(4 * segment)?;
    let start = u64::from(list.u32()?);
    if start == 0 {
        return Ok(0);
    }
    // The fields for the size and the page size come before the pointer format.
    at(starts + start + 6)?.u16()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry without blocks and name.
    fn entry(mode: u16, form: u16, record: u64, function: u64) -> Vec<u8> {
        let mut bytes = vec![0; map_entry::FIXED_SIZE];
        put(&mut bytes, map_entry::ENTRY_SIZE, &40_u32.to_le_bytes());
        put(&mut bytes, map_entry::MODE, &mode.to_le_bytes());
        put(&mut bytes, map_entry::FORM, &form.to_le_bytes());
        put(&mut bytes, map_entry::RECORD_ADDRESS, &record.to_le_bytes());
        put(
            &mut bytes,
            map_entry::FUNCTION_ADDRESS,
            &function.to_le_bytes(),
        );
        bytes
    }

    #[test]
    fn distances_become_addresses_and_addresses_stay() {
        let distance = map_entry::DISTANCES;
        let back = |bytes: u64| 0_u64.wrapping_sub(bytes);
        let mut map = [
            entry(1, distance, 0x30, back(0x1000)),
            vec![0; 8],
            entry(1, map_entry::ADDRESSES, 7, 8),
            entry(mode::ANCHOR, distance, 0, 0),
            vec![40, 0, 0],
        ]
        .concat();
        follow_distances(0x5000, Some(0x4000), &mut map);
        let expected = [
            entry(1, 0, 0x5030, 0x4000),
            vec![0; 8],
            entry(1, 0, 7, 8),
            entry(mode::ANCHOR, 0, 0x4000, 0x5000 + 88),
            vec![40, 0, 0],
        ]
        .concat();
        assert_eq!(map, expected);
    }
}
