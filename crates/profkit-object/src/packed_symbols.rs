//! Symbols that are packed in a program: the section `.gnu_debugdata`, an ELF file compressed with xz. Distributions strip
//! their programs and leave the symbols of functions there, except those that the dynamic symbols have anyway.
use crate::binary::{BinaryFile, Image};
use object::{Object, ObjectSection};
use profkit_data::stored::{Compression, StoredError};
use profkit_data::{Error, ErrorKind, Result};
use std::path::Path;

const SECTION: &str = ".gnu_debugdata";

/// The maximum size in bytes of the unpacked symbols. Those of the largest programs of distributions have some ten
/// megabytes.
const MOST_UNPACKED: u64 = 1 << 28;

fn failed(kind: ErrorKind, what: &str) -> Error {
    let text = format!("{SECTION}, which has the symbols of the program, {what}");
    Error::new(kind, text).with_hint("give its debug file, or the program as it was before strip")
}

fn unpack(bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    Compression::Xz
        .expand(bytes, limit)
        .map_err(|error| match error {
            StoredError::TooLarge { limit } => {
                let found = format!("{} bytes that unpack to more than {limit}", bytes.len());
                failed(ErrorKind::LimitExceeded, "is too large when it is unpacked")
                    .found(found)
                    .expected(format_args!("at most {limit} bytes unpacked"))
            }
            error => failed(
                ErrorKind::Malformed,
                &format!("cannot be unpacked: {error}"),
            ),
        })
}

/// Unpacks the symbols of the program at a path; `None` if it has none there, or has its whole symbol table.
///
/// # Errors
/// [`ErrorKind::Malformed`] if they are damaged, [`ErrorKind::LimitExceeded`] if they are larger than 256 MiB.
pub fn of(image: &Image<'_>, path: &Path) -> Result<Option<BinaryFile>> {
    if image.symbols().next().is_some() {
        return Ok(None);
    }
    let Some(section) = image.section_by_name(SECTION) else {
        return Ok(None);
    };
    let bytes = section
        .data()
        .map_err(|_| failed(ErrorKind::Truncated, "lies outside of the file"))?;
    let unpacked = unpack(bytes, MOST_UNPACKED)?;
    let file = BinaryFile::in_memory(path, unpacked);
    file.images()
        .map_err(|error| failed(ErrorKind::Malformed, &format!("is damaged: {error}")))?;
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// 64 zeros, as xz packs them.
    #[rustfmt::skip]
    const PACKED: [u8; 64] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01,
        0x1c, 0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0xe0, 0x00, 0x3f, 0x00, 0x06, 0x5d, 0x00, 0x00,
        0x6e, 0x58, 0x46, 0x98, 0x00, 0x00, 0x00, 0x00, 0x36, 0x63, 0x8d, 0x75, 0x00, 0x01, 0x1e, 0x40,
        0x64, 0xcb, 0x1b, 0x82, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
    ];

    #[test]
    fn more_than_the_limit_is_an_error_with_the_amounts() {
        assert_eq!(unpack(&PACKED, 64).unwrap(), [0; 64]);
        let error = unpack(&PACKED, 63).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        let text = error.to_string();
        assert!(
            text.contains("64 bytes that unpack to more than 63"),
            "{text}"
        );
    }

    #[test]
    fn damage_is_an_error() {
        for cut in 0..PACKED.len() {
            let error = unpack(&PACKED[..cut], 64).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{cut}");
        }
        let mut wrong = PACKED;
        wrong[30] ^= 1;
        assert_eq!(unpack(&wrong, 64).unwrap_err().kind(), ErrorKind::Malformed);
    }
}
