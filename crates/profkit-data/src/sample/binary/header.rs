//! The magic number and the version at the start of all binary encodings.
use crate::bytes::{Cursor, Endian};
use crate::{ErrorKind, Result, Structure};
use profkit_abi::sample::{BINARY, COMPACT_BINARY, EXT_BINARY, MAGIC};

/// The start of a binary sample profile: its encoding and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The low byte of the magic number, which states the encoding: [`BINARY`], [`COMPACT_BINARY`] or [`EXT_BINARY`].
    pub encoding: u8,
    /// The version number of the file.
    pub version: u64,
}

/// Reads the magic number and the version. The reader of each encoding decides which versions it accepts.
///
/// # Errors
/// [`ErrorKind::BadMagic`] if the data are not a binary sample profile of LLVM, [`ErrorKind::Truncated`] if the data
/// end before the end of the version.
pub fn parse_header(data: &[u8]) -> Result<Header> {
    read(&mut Cursor::new(data, 0, Endian::Little))
}

pub(in crate::sample) fn read(cursor: &mut Cursor<'_>) -> Result<Header> {
    let magic = cursor
        .uleb128()
        .map_err(|error| error.within(Structure::Magic))?;
    let [encoding, ..] = magic.to_le_bytes();
    if magic & !0xff != MAGIC || ![BINARY, COMPACT_BINARY, EXT_BINARY].contains(&encoding) {
        return Err(ErrorKind::BadMagic
            .error("this is not a binary sample profile")
            .at(0)
            .within(Structure::Magic)
            .found(format_args!("{magic:#018x}"))
            .expected("0x5350524f463432ff, 0x5350524f46343202 or 0x5350524f46343204"));
    }
    let version = cursor
        .uleb128()
        .map_err(|error| error.within(Structure::Version))?;
    Ok(Header { encoding, version })
}

pub(in crate::sample) fn expect(
    cursor: &mut Cursor<'_>,
    encoding: u8,
    versions: &[u64],
) -> Result<u64> {
    let header = read(cursor)?;
    if header.encoding != encoding {
        return Err(ErrorKind::BadMagic
            .error("the sample profile has a different encoding")
            .at(0)
            .within(Structure::Magic)
            .found(format_args!("format byte {:#04x}", header.encoding))
            .expected(format_args!("{encoding:#04x}")));
    }
    if !versions.contains(&header.version) {
        let known: Vec<String> = versions.iter().map(u64::to_string).collect();
        return Err(ErrorKind::UnsupportedVersion.error("the version is not known")
        .at(9)
        .within(Structure::Header)
        .found(header.version)
        .expected(known.join(", "))
        .with_hint("convert the file to text with the LLVM release that wrote it: llvm-profdata merge --sample --text"));
    }
    Ok(header.version)
}

pub(in crate::sample) fn put(out: &mut Vec<u8>, encoding: u8) {
    super::numbers::put(out, MAGIC | u64::from(encoding));
    super::numbers::put(out, profkit_abi::sample::VERSION);
}
