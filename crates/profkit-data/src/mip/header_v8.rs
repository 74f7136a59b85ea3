//! The header of MIP version 8. Raw files, maps and profiles of version 8 have the same header.
use super::header::{Layout, MipKind, Preamble, other_kind, preamble};
use super::model::{Modes, Width};
use crate::bytes::{Cursor, Endian};
use crate::{ErrorKind, Result, Structure};
use profkit_abi::mip::{file_type, mode, v8};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderV8 {
    pub preamble: Preamble,
    pub modes: Modes,
    pub module_hash: u32,
    /// The distance in memory from the header to the records, sign-extended to 64 bits. Only maps state this distance.
    pub raw_section_offset: i64,
}

const KNOWN_MODES: u16 = mode::FUNCTION_COVERAGE | mode::BLOCK_COVERAGE | mode::CALLS;

impl HeaderV8 {
    /// Reads the header of a version 8 file. Fails if the kind of the file is not `wanted`.
    pub fn parse(data: &[u8], wanted: MipKind) -> Result<Self> {
        let preamble = preamble(data)?;
        if preamble.kind != wanted {
            return Err(other_kind(&preamble, wanted));
        }
        Self::fields(data, preamble).map_err(|error| error.within(Structure::Header))
    }

    fn fields(data: &[u8], preamble: Preamble) -> Result<Self> {
        let mut cursor = Cursor::new(data, 0, Endian::Little);
        cursor.take(v8::header::MODES)?;
        let at = cursor.offset();
        let modes = cursor.u32()?;
        let modes = u16::try_from(modes)
            .ok()
            .filter(|modes| modes & !KNOWN_MODES == 0)
            .map(Modes)
            .filter(|modes| modes.entry().is_some())
            .ok_or_else(|| {
                ErrorKind::BadHeader
                    .error("the profile type does not exist in version 8")
                    .at(at)
                    .found(format_args!("{modes:#x}"))
                    .expected("0x1, 0x3, 0xc or 0xe")
            })?;
        let module_hash = cursor.u32()?;
        let at = cursor.offset();
        let raw_section_offset = match (preamble.layout, preamble.width) {
            (Layout::V8B, Some(Width::Bits32)) => i64::from(cursor.u32()?.cast_signed()),
            (Layout::V8B, _) => cursor.u64()?.cast_signed(),
            _ => i64::from(cursor.u32()?.cast_signed()),
        };
        if preamble.kind == MipKind::Map
            && preamble.layout == Layout::V8A
            && raw_section_offset != 0
        {
            return Err(ErrorKind::Unsupported
                .error("the map has layout A2, which no finished tool ever wrote")
                .at(at)
                .found(format_args!("{raw_section_offset:#x}"))
                .expected("0, as in layout A1 of MIP version 8")
                .with_hint("only layouts A1 and B are read"));
        }
        if preamble.kind == MipKind::Map
            && preamble.layout == Layout::V8B
            && preamble.width.is_none()
        {
            return Err(ErrorKind::BadHeader
                .error("the map does not state the width of its addresses")
                .at(v8::header::FILE_TYPE as u64)
                .found("no width in the file type")
                .expected("0x14 or 0x24"));
        }
        Ok(HeaderV8 {
            preamble,
            modes,
            module_hash,
            raw_section_offset,
        })
    }

    /// The size of the header in bytes. The data follow the header.
    pub fn size(&self) -> usize {
        match self.preamble.layout {
            Layout::V8A => v8::header_a::SIZE,
            _ => v8::header_b::SIZE,
        }
    }

    /// Encodes the header of a profile in layout B.
    pub fn profile_bytes(modes: Modes, module_hash: u32) -> [u8; v8::header_b::SIZE] {
        let mut bytes = [0; v8::header_b::SIZE];
        let mut put = |at: usize, field: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
        };
        put(v8::header::MAGIC, &profkit_abi::mip::MAGIC.to_le_bytes());
        put(v8::header::VERSION, &v8::VERSION.to_le_bytes());
        put(v8::header::FILE_TYPE, &file_type::PROFILE.to_le_bytes());
        put(v8::header::MODES, &u32::from(modes.0).to_le_bytes());
        put(v8::header::MODULE_HASH, &module_hash.to_le_bytes());
        let data = u32::try_from(v8::header_b::SIZE).unwrap_or(u32::MAX);
        put(v8::header_b::OFFSET_TO_DATA, &data.to_le_bytes());
        bytes
    }
}
