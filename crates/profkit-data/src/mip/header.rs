//! Reads the first bytes of MIP files of all kinds and versions.
use super::model::Width;
use crate::bytes::{Cursor, Endian};
use crate::detect::{FileKind, detect};
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::mip::{MAGIC, VERSION, file_type, v8};

/// The kind of a MIP file: raw file, samples, map or profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MipKind {
    /// A raw file (`.mipraw`): the records that runs of a program wrote.
    Raw,
    /// A file of return-address samples (`.mipret`).
    ReturnAddresses,
    /// A map (`.mipmap`): the list of an image's functions. An image is an executable or a shared library.
    Map,
    /// A profile (`.mip`): the functions of an image and the counts of its runs.
    Profile,
}

impl MipKind {
    /// Returns the name of this kind of file for messages.
    pub fn name(self) -> &'static str {
        match self {
            MipKind::Raw => "raw file",
            MipKind::ReturnAddresses => "file of return-address samples",
            MipKind::Map => "map",
            MipKind::Profile => "profile",
        }
    }
}

/// The version and layout of a MIP file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Version 9, which profkit writes.
    V9,
    /// Version 8 in the last layout (B) of the original implementation.
    V8B,
    /// Version 8 in the first layout (A) of the original implementation. It has a shorter header and narrower map
    /// fields.
    V8A,
}

/// The facts about a MIP file that its first bytes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The kind of the MIP file.
    pub kind: MipKind,
    /// The version and layout of the MIP file.
    pub layout: Layout,
    /// The width of the target's addresses; `None` if the file does not state it.
    pub width: Option<Width>,
}

/// Whether the data begin with the magic number of MIP files. Maps of version 9 have no magic number;
/// [`is_map`](super::is_map) recognises them.
pub fn has_magic(data: &[u8]) -> bool {
    data.starts_with(&MAGIC.to_le_bytes())
}

/// Reads the kind, layout and address width of a file.
///
/// # Errors
/// [`ErrorKind::BadMagic`], [`ErrorKind::UnsupportedVersion`], [`ErrorKind::BadHeader`] or [`ErrorKind::Truncated`] if
/// the first bytes are not those of a MIP file.
pub fn preamble(data: &[u8]) -> Result<Preamble> {
    read(data).map_err(|error| match error.kind() {
        // The file is not a MIP file, so the error must not say that it is in a MIP header.
        ErrorKind::BadMagic => error,
        _ => error.within(Structure::Header),
    })
}

fn read(data: &[u8]) -> Result<Preamble> {
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    let magic = cursor.u32()?;
    if magic != MAGIC {
        let error = ErrorKind::BadMagic
            .error("this is not a MIP file")
            .at(0)
            .within(Structure::FirstBytes);
        return Err(match detect(data) {
            FileKind::Unknown => error
                .found(format_args!("magic {magic:#010x}"))
                .expected(format_args!("{MAGIC:#010x}")),
            kind => error.found(kind.description()),
        });
    }
    let version = cursor.u16()?;
    let at = cursor.offset();
    let file_type = cursor.u16()?;
    match version {
        VERSION => Ok(Preamble {
            kind: kind_of_bits(file_type, at)?,
            layout: Layout::V9,
            width: width_of_bits(file_type, at)?,
        }),
        v8::VERSION => {
            let offset = word_at(data, v8::header_a::OFFSET_TO_DATA)?;
            if offset != size(v8::header_a::SIZE) {
                if word_at(data, v8::header_b::OFFSET_TO_DATA)? == size(v8::header_b::SIZE) {
                    return Ok(Preamble {
                        kind: kind_of_bits(file_type, at)?,
                        layout: Layout::V8B,
                        width: width_of_bits(file_type, at)?,
                    });
                }
                return Err(bad_offset_to_data(data, offset));
            }
            let kind = match file_type {
                v8::file_type_a::RAW => MipKind::Raw,
                v8::file_type_a::MAP => MipKind::Map,
                v8::file_type_a::PROFILE => MipKind::Profile,
                v8::file_type_a::RETURN_ADDRESSES => MipKind::ReturnAddresses,
                _ => {
                    return Err(ErrorKind::BadHeader
                        .error("the file type is unknown")
                        .at(at)
                        .found(file_type)
                        .expected("1 to 4"));
                }
            };
            Ok(Preamble {
                kind,
                layout: Layout::V8A,
                width: None,
            })
        }
        _ => Err(ErrorKind::UnsupportedVersion
            .error("the version is not supported")
            .at(4)
            .found(version)
            .expected(format_args!("{} or {VERSION}", v8::VERSION))
            .with_hint("a newer version of profkit may support this format version")),
    }
}

/// Returns the error for a header of version 8 whose field "offset to the data" has a wrong value in every layout.
/// `in_a` is the value of this field in layout A.
fn bad_offset_to_data(data: &[u8], in_a: u32) -> Error {
    let found = match word_at(data, v8::header_b::OFFSET_TO_DATA) {
        Ok(in_b) => format!("{in_a:#x} at offset 0x14 and {in_b:#x} at offset 0x1c"),
        Err(_) => format!("{in_a:#x} at offset 0x14"),
    };
    ErrorKind::BadHeader
        .error("the offset to the data fits no layout of version 8")
        .at(v8::header_a::OFFSET_TO_DATA as u64)
        .found(found)
        .expected("0x18 at offset 0x14, or 0x20 at offset 0x1c")
}

fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn word_at(data: &[u8], at: usize) -> Result<u32> {
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    cursor.take(at)?;
    cursor.u32()
}

fn kind_of_bits(found: u16, at: u64) -> Result<MipKind> {
    match found & file_type::KIND_MASK {
        file_type::RAW => Ok(MipKind::Raw),
        file_type::RETURN_ADDRESSES => Ok(MipKind::ReturnAddresses),
        file_type::MAP => Ok(MipKind::Map),
        file_type::PROFILE => Ok(MipKind::Profile),
        _ => Err(ErrorKind::BadHeader
            .error("the file type is unknown")
            .at(at)
            .found(format_args!("{found:#x}"))
            .expected("0x1, 0x2, 0x4 or 0x8 in the low four bits")),
    }
}

/// Returns the address width that the bits of the file type `found` state. Returns `None` if neither bit for a width is
/// set, as in profiles of version 8. `at` is the offset of the file type.
fn width_of_bits(found: u16, at: u64) -> Result<Option<Width>> {
    let known = file_type::KIND_MASK | file_type::WIDTH_64 | file_type::WIDTH_32;
    match (
        found & file_type::WIDTH_64 != 0,
        found & file_type::WIDTH_32 != 0,
    ) {
        _ if found & !known != 0 => Err(ErrorKind::BadHeader
            .error("the file type has unknown bits")
            .at(at)
            .found(format_args!("{found:#x}"))
            .expected(format_args!("only bits of {known:#x}"))),
        (true, true) => Err(ErrorKind::BadHeader
            .error("the file type claims both 64-bit and 32-bit addresses")
            .at(at)
            .found(format_args!("file type {found:#x}"))
            .expected("one of the bits 0x10 and 0x20")),
        (true, false) => Ok(Some(Width::Bits64)),
        (false, true) => Ok(Some(Width::Bits32)),
        (false, false) => Ok(None),
    }
}

#[cold]
pub(super) fn other_kind(preamble: &Preamble, wanted: MipKind) -> Error {
    let hint = match preamble.kind {
        MipKind::Raw => "merge raw files into a profile first",
        MipKind::Map => "create a profile from the map first",
        MipKind::Profile => "give the map, or the raw files that runs of the program wrote",
        MipKind::ReturnAddresses => {
            "no tool ever wrote such files for version 8, so their layout is unknown"
        }
    };
    ErrorKind::Unsupported
        .error("this is another kind of MIP file")
        .within(Structure::Header)
        .at(profkit_abi::mip::raw_header::FILE_TYPE as u64)
        .found(format_args!("a {}", preamble.kind.name()))
        .expected(format_args!("a {}", wanted.name()))
        .with_hint(hint)
}
