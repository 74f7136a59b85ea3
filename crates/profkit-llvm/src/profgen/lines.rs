//! Reads the lines of a text as LLVM's tool does.

/// A reader for the lines of a text. It counts the lines.
#[derive(Clone, Debug)]
pub struct Lines<'text> {
    rest: &'text [u8],
    line: Option<&'text [u8]>,
    number: u64,
}

impl<'text> Lines<'text> {
    /// Begins at the first line.
    pub fn new(text: &'text [u8]) -> Self {
        let mut lines = Lines {
            rest: text,
            line: None,
            number: 0,
        };
        lines.advance();
        lines
    }

    /// The current line; `None` after the last one.
    pub fn line(&self) -> Option<&'text [u8]> {
        self.line
    }

    /// The number of the current line. The first line has number 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Goes to the next line.
    pub fn advance(&mut self) {
        if self.rest.is_empty() {
            self.line = None;
            return;
        }
        let end = memchr::memchr(b'\n', self.rest);
        let (line, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.line = Some(line);
        self.rest = rest.get(1..).unwrap_or_default();
        self.number += 1;
    }
}

/// Parses a number. `None` if the text contains anything else.
pub fn number(text: &[u8], base: u32) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_alphanumeric);
    let text = std::str::from_utf8(text).ok().filter(|_| digits)?;
    u64::from_str_radix(text, base).ok()
}

/// Parses a hexadecimal number, with or without `0x`. `None` if the text contains anything else.
pub fn hex(text: &[u8]) -> Option<u64> {
    let digits = text
        .strip_prefix(b"0x")
        .or_else(|| text.strip_prefix(b"0X"))
        .unwrap_or(text);
    number(digits, 16)
}

/// Returns the text without the blanks at its start.
pub fn without_blanks(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| b" \t\n\x0b\x0c\r".contains(byte);
    let start = text.iter().take_while(|byte| is_blank(byte)).count();
    text.get(start..).unwrap_or_default()
}
