//! Reads the section table, and reads and writes the bytes of sections.
use crate::bytes::{Bytes, Cursor};
use crate::limits::{INFLATE_FLOOR, SAMPLE_INFLATE_RATIO};
use crate::sample::binary::numbers;
use crate::structure::sample_section_name;
use crate::{ErrorKind, Result, Structure};
use flate2::{Decompress, FlushDecompress, Status};
use profkit_abi::sample::{SECTION_ENTRY_SIZE, flag, section};
use std::borrow::Cow;

/// An entry of the section table (LLVM's `SecHdrTableEntry`). In the file it consists of four little-endian 64-bit
/// numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The kind of section: one of the numbers in [`section`].
    pub kind: u64,
    /// The flags of the section (from [`flag`]). The low 32 bits have the same meaning in every section; the meaning of
    /// the high 32 bits depends on the kind of section.
    pub flags: u64,
    /// The offset of the section's first byte in the file.
    pub offset: u64,
    /// The size of the section in the file, in bytes. If the section is compressed, this is its compressed size.
    pub size: u64,
}

impl Section {
    /// Returns LLVM's name for this kind of section (`getSecName`).
    pub fn name(&self) -> &'static str {
        sample_section_name(self.kind)
    }

    pub(super) fn structure(&self) -> Structure {
        Structure::SampleSection(self.kind)
    }

    /// Whether the section has all of the given flags.
    pub fn has(&self, flags: u64) -> bool {
        self.flags & flags == flags
    }

    /// Whether the section has the samples of functions.
    pub fn has_samples(&self) -> bool {
        matches!(self.kind, section::SAMPLES | section::COMPOSITE)
    }

    /// Whether the section has a form that the releases up to LLVM 23 refuse or misread.
    pub fn needs_llvm_24(&self) -> bool {
        match self.kind {
            section::NAMES => self.has(flag::EYTZINGER_NAMES),
            section::SYMBOLS => self.has(flag::MD5_SYMBOLS),
            section::FUNCTION_OFFSETS => self.has(flag::EYTZINGER_OFFSETS),
            _ => false,
        }
    }

    /// Whether this reader supports this kind of section.
    pub fn is_known(&self) -> bool {
        matches!(
            self.kind,
            section::SUMMARY..=section::COMPOSITE_OFFSETS | section::SAMPLES | section::COMPOSITE
        )
    }
}

/// Reads the section table: the number of sections as a 64-bit number, then the entries.
pub(super) fn read_table(cursor: &mut Cursor<'_>) -> Result<Vec<Section>> {
    let mut read = || -> Result<Vec<Section>> {
        let start = cursor.offset();
        let count = cursor.u64()?;
        let fits = cursor.remaining() / SECTION_ENTRY_SIZE;
        if count > fits as u64 {
            return Err(ErrorKind::Truncated
                .error("the file claims more sections than the bytes left can hold")
                .at(start)
                .found(count)
                .expected(format_args!("at most {fits}")));
        }
        let mut sections = Vec::new();
        for _ in 0..count {
            sections.push(Section {
                kind: cursor.u64()?,
                flags: cursor.u64()?,
                offset: cursor.u64()?,
                size: cursor.u64()?,
            });
        }
        Ok(sections)
    };
    read().map_err(|error| error.within(Structure::SectionTable))
}

/// Returns the bytes of a section, and the offset of the first byte in the file. If the section is compressed, its
/// bytes are decompressed and the offset is 0. With `as_llvm`, the compressed data may end before or after the end of
/// the section, as LLVM allows.
pub(super) fn contents<'data>(
    data: &'data [u8],
    section: &Section,
    as_llvm: bool,
) -> Result<(Cow<'data, [u8]>, u64)> {
    let bytes = usize::try_from(section.offset)
        .ok()
        .zip(usize::try_from(section.size).ok())
        .and_then(|(start, size)| data.get(start..start.checked_add(size)?));
    let Some(bytes) = bytes else {
        return Err(ErrorKind::Truncated
            .error("a section runs past the end of the file")
            .at(section.offset)
            .within(section.structure())
            .found(format_args!("a file of {} bytes", data.len()))
            .expected(format_args!(
                "at least {} bytes",
                section.offset.saturating_add(section.size)
            )));
    };
    if !section.has(flag::COMPRESSED) || bytes.is_empty() {
        return Ok((Cow::Borrowed(bytes), section.offset));
    }
    let start = usize::try_from(section.offset).unwrap_or(usize::MAX);
    let bytes = match data.get(start..) {
        Some(rest) if as_llvm => rest,
        _ => bytes,
    };
    let cursor = &mut Cursor::new(bytes, section.offset, crate::bytes::Endian::Little);
    let inflated = inflate(cursor, as_llvm).map_err(|error| error.within(section.structure()))?;
    Ok((Cow::Owned(inflated), 0))
}

/// Decompresses a section. A compressed section has the uncompressed size, the compressed size, and a zlib stream. With
/// `as_llvm`, other bytes may follow the stream, and the stream may give fewer bytes than stated, as LLVM allows. The
/// missing bytes are 0; in LLVM they are uninitialized memory.
fn inflate(cursor: &mut Cursor<'_>, as_llvm: bool) -> Result<Vec<u8>> {
    let start = cursor.offset();
    let size = cursor.uleb128()?;
    let at = cursor.offset();
    let compressed = cursor.uleb128()?;
    let remaining = cursor.remaining() as u64;
    if compressed != remaining && !(as_llvm && compressed < remaining) {
        return Err(ErrorKind::Malformed
            .error("the compressed size does not match the size of the section")
            .at(at)
            .found(compressed)
            .expected(cursor.remaining()));
    }
    let stream = cursor.rest();
    let length = usize::try_from(compressed).unwrap_or(usize::MAX);
    let stream = stream.get(..length).unwrap_or(stream);
    let cap = stream
        .len()
        .saturating_mul(SAMPLE_INFLATE_RATIO)
        .max(INFLATE_FLOOR);
    let size = match usize::try_from(size) {
        Ok(size) if size <= cap => size,
        _ => {
            return Err(ErrorKind::LimitExceeded
                .error("a compressed section would be too large after decompression")
                .at(start)
                .found(format_args!(
                    "{size} bytes from {compressed} compressed bytes"
                ))
                .expected(format_args!("at most {}", Bytes(cap))));
        }
    };
    let mut inflated = Vec::with_capacity(size);
    let status =
        Decompress::new(true).decompress_vec(stream, &mut inflated, FlushDecompress::Finish);
    let is_short = inflated.len() < size;
    if !matches!(status, Ok(Status::StreamEnd)) || is_short && !as_llvm || inflated.len() > size {
        return Err(ErrorKind::UncompressFailed
            .error("a compressed section cannot be decompressed to its stated size")
            .at(start)
            .found(Bytes(inflated.len()))
            .expected(Bytes(size)));
    }
    inflated.resize(size, 0);
    Ok(inflated)
}

/// Appends a section's bytes, compressed if `compress` is set. As in LLVM, an empty section is never compressed.
pub(super) fn put_contents(out: &mut Vec<u8>, bytes: &[u8], compress: bool) -> Result<()> {
    use std::io::Write;
    if !compress || bytes.is_empty() {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let compressed = encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map_err(|error| {
            ErrorKind::WriteFailed
                .error("a section cannot be compressed")
                .found(error)
        })?;
    numbers::put(out, bytes.len() as u64);
    numbers::put(out, compressed.len() as u64);
    out.extend_from_slice(&compressed);
    Ok(())
}
