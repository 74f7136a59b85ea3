//! The header of a dump in a raw MemProf file.
use crate::bytes::{Bytes, Cursor, Endian};
use crate::memprof::block::Schema;
use crate::{Error, ErrorKind, Result};

/// The magic number: the first eight bytes `\x81rforpm\xff` of a dump, read as a little-endian number.
pub const MAGIC: u64 = 0xff6d_7072_6f66_7281;
/// The size of a dump's header in bytes.
pub const HEADER_LEN: usize = 48;
pub(super) const BUILD_ID_LEN: usize = 32;

/// A version of raw MemProf profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    None,
    Words,
    /// The elements of histograms are 16-bit floating-point numbers.
    Floats,
}

impl Version {
    /// The newest version of raw MemProf profiles.
    pub const NEWEST: Version = Version(5);

    /// Returns the version with this number; `None` if there is no such version.
    pub fn new(number: u64) -> Option<Self> {
        match number {
            1..=5 => u32::try_from(number).ok().map(Version),
            _ => None,
        }
    }

    /// Returns the version as a number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The LLVM releases that write this raw version.
    pub fn writers(self) -> &'static str {
        match self.0 {
            1 => "14 and 15",
            2 => "16 and 17",
            3 => "18",
            4 => "19 to 21",
            _ => "22 and later",
        }
    }

    /// The fields that a memory info block has in this version.
    pub fn schema(self) -> Schema {
        Schema::first(match self.0 {
            1 => 19,
            2 | 3 => 25,
            _ => 27,
        })
    }

    /// Whether a segment states the length of its build id, as it does from version 3 on. From that version on, a
    /// segment also states the load address of its module instead of a file offset.
    pub fn has_build_id_size(self) -> bool {
        self.0 >= 3
    }

    pub(super) fn elements(self) -> Elements {
        match self.0 {
            ..=3 => Elements::None,
            4 => Elements::Words,
            _ => Elements::Floats,
        }
    }

    pub(super) fn segment_len(self) -> u64 {
        if self.has_build_id_size() {
            32 + BUILD_ID_LEN as u64
        } else {
            24 + BUILD_ID_LEN as u64
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub version: Version,
    pub total_size: u64,
    pub segments: u64,
    pub blocks: u64,
    pub stacks: u64,
}

impl Header {
    pub(super) fn parse(data: &[u8], base: u64) -> Result<Self> {
        let mut cursor = Cursor::new(data, base, Endian::Little);
        if data.len() < HEADER_LEN {
            return Err(ErrorKind::Truncated
                .error("the data end inside a header")
                .at(base)
                .found(Bytes(data.len()))
                .expected(format_args!("at least {HEADER_LEN}")));
        }
        let magic = cursor.u64()?;
        if magic != MAGIC {
            return Err(ErrorKind::BadMagic
                .error("this is not a MemProf dump")
                .at(base)
                .found(format_args!("{magic:#018x}"))
                .expected(format_args!("{MAGIC:#018x}")));
        }
        let number = cursor.u64()?;
        let version = Version::new(number).ok_or_else(|| unsupported(number, base + 8))?;
        let total_size = cursor.u64()?;
        if total_size < HEADER_LEN as u64 || total_size > data.len() as u64 {
            let kind = if total_size < HEADER_LEN as u64 {
                ErrorKind::Malformed
            } else {
                ErrorKind::Truncated
            };
            return Err(Error::new(kind, "the size of the dump does not fit the file")
                .at(base + 16)
                .found(Bytes(total_size))
                .expected(format_args!("{HEADER_LEN} to {}", data.len()))
                .with_hint("the file is cut short, or still being written: copy it again when the program has ended"));
        }
        let mut offset = |name: &'static str| {
            let at = cursor.offset();
            let offset = cursor.u64()?;
            if offset < HEADER_LEN as u64 || offset > total_size {
                return Err(ErrorKind::Malformed
                    .error(format!("the offset of the {name} is outside the dump"))
                    .at(at)
                    .found(format_args!("{offset:#x}"))
                    .expected(format_args!("{HEADER_LEN:#x} to {total_size:#x}")));
            }
            Ok(offset)
        };
        Ok(Header {
            version,
            total_size,
            segments: offset("segments")?,
            blocks: offset("blocks")?,
            stacks: offset("stacks")?,
        })
    }
}

#[cold]
fn unsupported(number: u64, at: u64) -> Error {
    let error = ErrorKind::UnsupportedVersion
        .error("this version of raw MemProf profiles is not supported")
        .at(at)
        .found(number)
        .expected("1 to 5");
    match number {
        6..=64 => error.with_hint(
            "LLVM 23 or later wrote the file: merge it with llvm-profdata of that LLVM, and give the merged profile",
        ),
        _ => error.with_hint("no LLVM writes such a version: the file is damaged"),
    }
}
