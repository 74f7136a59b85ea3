//! Pointers in Mach-O files with chained fixups (`LC_DYLD_CHAINED_FIXUPS`, `mach-o/fixup-chains.h` of dyld). In the
//! file, such a pointer contains its target and the distance to the next pointer.
use super::damaged;
use object::read::macho::MachOFile64;
use object::{Endianness, ReadRef, macho};
use profkit_data::{Error, ErrorKind, Result, Structure};

/// The form of the pointers in a section of a Mach-O file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointers {
    /// Each pointer in the section is an address.
    Plain,
    /// Each pointer has the format `DYLD_CHAINED_PTR_64` or `DYLD_CHAINED_PTR_64_OFFSET`: 36 bits are the target
    /// relative to `base`, and 8 bits are the highest byte of the address.
    Chained { base: u64 },
}

const TARGET_BITS: u32 = 36;
/// A mask for the highest byte of the address, after the pointer was shifted right by the bits of the target.
const HIGH_BYTE: u64 = 0xff;
/// The bit that is set in a pointer to a symbol in another file.
const BIND: u64 = 1 << 63;

/// The position of a field in the header of the chained fixups, in bytes. The field is the offset of the list of
/// segments.
const STARTS_OFFSET: usize = 4;
/// The position of the pointer format in the entry of a segment, in bytes.
const POINTER_FORMAT: usize = 6;

impl Pointers {
    /// Returns the form of the pointers in the section at `address`.
    ///
    /// # Errors
    /// If load commands are damaged, or the format of the pointers is not supported.
    pub(super) fn of<'data, R: ReadRef<'data>>(
        image: &object::File<'data, R>,
        address: u64,
    ) -> Result<Self> {
        match image {
            object::File::MachO64(file) => Self::of_macho(file, address),
            _ => Ok(Pointers::Plain),
        }
    }

    fn of_macho<'data, R: ReadRef<'data>>(
        file: &MachOFile64<'data, Endianness, R>,
        address: u64,
    ) -> Result<Self> {
        let endian = file.endian();
        let (mut segments, mut fixups) = (Vec::new(), None);
        let mut commands = file
            .macho_load_commands()
            .map_err(|error| damaged(&error))?;
        while let Some(command) = commands.next().map_err(|error| damaged(&error))? {
            if let Some((segment, _)) = command.segment_64().map_err(|error| damaged(&error))? {
                let start = segment.vmaddr.get(endian);
                segments.push((
                    start,
                    segment.vmsize.get(endian),
                    segment.fileoff.get(endian),
                ));
            } else if command.cmd() == macho::LC_DYLD_CHAINED_FIXUPS {
                let command = command
                    .dyld_chained_fixups()
                    .map_err(|error| damaged(&error))?;
                let data = command.map(|command| command.data(endian, file.data()));
                fixups = data.transpose().map_err(|error| damaged(&error))?;
            }
        }
        let Some(fixups) = fixups else {
            return Ok(Pointers::Plain);
        };
        let number = segments
            .iter()
            .position(|&(start, size, _)| start <= address && address - start < size);
        let Some(format) = number.and_then(|number| pointer_format(fixups, endian, number)) else {
            // The segment has no chained pointers.
            return Ok(Pointers::Plain);
        };
        match macho::DyldChainedPtrFormat(format) {
            macho::DYLD_CHAINED_PTR_64 => Ok(Pointers::Chained { base: 0 }),
            macho::DYLD_CHAINED_PTR_64_OFFSET => {
                // Pointers of this format are relative to the Mach-O header, which is at the start of the segment with
                // file offset 0.
                let mut text = segments
                    .iter()
                    .filter(|&&(_, size, offset)| offset == 0 && size > 0);
                // The segment `__PAGEZERO` may also have file offset 0, but it comes before the segment with the
                // header, so the last such segment is used.
                let base = text.next_back().map_or(0, |&(start, ..)| start);
                Ok(Pointers::Chained { base })
            }
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                "the pointer format of the chained fixups is not supported",
            )
            .within(Structure::ChainedFixups)
            .found(format)
            .expected("2 or 6")
            .with_hint("link with -Wl,-no_fixup_chains")),
        }
    }

    /// Converts a pointer in the file to an address.
    pub(super) fn address(self, pointer: u64) -> u64 {
        match self {
            Pointers::Plain => pointer,
            // The target is in another file, so the result is an address outside every section.
            Pointers::Chained { .. } if pointer & BIND != 0 => u64::MAX,
            Pointers::Chained { base } => {
                let target = pointer & ((1 << TARGET_BITS) - 1);
                let high = pointer >> TARGET_BITS & HIGH_BYTE;
                base.wrapping_add(target) | high << 56
            }
        }
    }
}

/// Returns the code of the pointer format in a segment; `None` if the segment has no pointers.
fn pointer_format(fixups: &[u8], endian: Endianness, segment: usize) -> Option<u16> {
    let word = |offset: usize| {
        let bytes = fixups.get(offset..)?.first_chunk()?;
        let word = match endian {
            Endianness::Little => u32::from_le_bytes(*bytes),
            Endianness::Big => u32::from_be_bytes(*bytes),
        };
        usize::try_from(word).ok()
    };
    let starts = word(STARTS_OFFSET)?;
    if segment >= word(starts)? {
        return None;
    }
    let entry = word(starts.checked_add(4)?.checked_add(segment * 4)?)?;
    if entry == 0 {
        return None;
    }
    let format = starts.checked_add(entry)?.checked_add(POINTER_FORMAT)?;
    let bytes = fixups.get(format..)?.first_chunk()?;
    Some(match endian {
        Endianness::Little => u16::from_le_bytes(*bytes),
        Endianness::Big => u16::from_be_bytes(*bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_taken_out_of_pointers() {
        let vmaddr = Pointers::Chained { base: 0 };
        assert_eq!(vmaddr.address(0x0020_0000_0000_2000), 0x2000);
        assert_eq!(vmaddr.address(0x0000_0ab0_0000_2008), 0xab00_0000_0000_2008);
        assert_eq!(vmaddr.address(1 << 63 | 5), u64::MAX);
        let offset = Pointers::Chained { base: 1 << 32 };
        assert_eq!(offset.address(0x0020_0000_0000_2000), 0x1_0000_2000);
        assert_eq!(
            Pointers::Plain.address(0x0020_0000_0000_2000),
            0x0020_0000_0000_2000
        );
    }
}
