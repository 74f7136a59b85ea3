//! Parses numbers and splits texts into lines.
use profkit_data::{Error, ErrorKind};

/// Parses a hexadecimal number at the start of the bytes. Returns the number and the bytes after it. `None` if there is
/// no digit or the number is too large.
pub fn hex(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut len = 0;
    for &byte in bytes {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => break,
        };
        if value >> 60 != 0 {
            return None;
        }
        value = value << 4 | u64::from(digit);
        len += 1;
    }
    Some((value, bytes.get(len..)?)).filter(|_| len > 0)
}

/// Parses a hexadecimal number as [`hex`] does. The number may begin with `0x`.
pub fn hex_0x(bytes: &[u8]) -> Option<(u64, &[u8])> {
    hex(bytes.strip_prefix(b"0x").unwrap_or(bytes))
}

/// Parses a decimal number. `None` if the bytes contain anything else.
pub fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// An iterator over the lines of a text with their offsets. The lines do not include the characters that end them.
#[derive(Clone, Debug)]
pub struct Lines<'text> {
    text: &'text [u8],
    offset: usize,
}

impl<'text> Lines<'text> {
    pub fn new(text: &'text [u8]) -> Self {
        Lines { text, offset: 0 }
    }
}

impl<'text> Iterator for Lines<'text> {
    /// The offset of a line in the text, and the line.
    type Item = (usize, &'text [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.text.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.text);
        let (line, rest) = match end {
            Some(end) => (self.text.get(..end)?, self.text.get(end + 1..)?),
            None => (self.text, &[][..]),
        };
        let offset = self.offset;
        self.offset += self.text.len() - rest.len();
        self.text = rest;
        Some((offset, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// Makes the error for a line that cannot be read. `expected` describes the right form.
#[cold]
pub fn malformed(offset: usize, line: &[u8], expected: &str) -> Error {
    /// The number of bytes of the line that the error shows.
    const SHOWN: usize = 60;
    let shown = line.get(..SHOWN).unwrap_or(line);
    Error::new(ErrorKind::Malformed, "a line cannot be read")
        .at(offset as u64)
        .found(format_args!("`{}`", String::from_utf8_lossy(shown)))
        .expected(expected)
}
