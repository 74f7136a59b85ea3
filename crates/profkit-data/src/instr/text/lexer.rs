//! Divides a text profile into lines as LLVM's `line_iterator` does: lines end with LF or CRLF; blank lines and lines
//! that begin with `#` are skipped everywhere.
use crate::decimal::leading;
use crate::quote::quote;
use crate::{Error, ErrorKind};
use memchr::{memchr, memchr_iter};

/// Reads the lines of a text profile. The position may be anywhere in the text; every read first skips blank lines and
/// comments.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'data> {
    data: &'data [u8],
    position: usize,
    /// An offset in the text, and the number of the line at this offset (from 1). To find the line number of an error,
    /// lines are counted from this offset on.
    counted: (usize, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decimal {
    Value(u64),
    /// The line is not a decimal number that fits 64 bits. The lexer's position stays before the line.
    Bad,
    End,
}

impl<'data> Lexer<'data> {
    /// Opens a text. Zero bytes at the end are ignored, because LLVM ends the text at the first zero byte.
    pub(super) fn new(data: &'data [u8]) -> Self {
        let padding = data.iter().rev().take_while(|&&byte| byte == 0).count();
        Lexer {
            data: data.get(..data.len() - padding).unwrap_or_default(),
            position: 0,
            counted: (0, 1),
        }
    }

    /// Skips blank lines and comments. Returns the offset of the first line after them, or of the end of the text if
    /// there is none.
    #[inline]
    pub(super) fn position(&mut self) -> usize {
        while let Some(&byte) = self.data.get(self.position) {
            match byte {
                b'\n' => self.position += 1,
                b'\r' if self.data.get(self.position + 1) == Some(&b'\n') => self.position += 2,
                b'#' => self.position = self.line_end(self.position).1,
                _ => break,
            }
        }
        self.position
    }

    /// The whole text.
    pub(super) fn text(&self) -> &'data [u8] {
        self.data
    }

    pub(super) fn seek(&mut self, position: usize) {
        self.position = position;
    }

    pub(super) fn remaining(&self) -> usize {
        self.data.len() - self.position
    }

    /// Returns the next line that is neither blank nor a comment, without its line end; `None` at the end of the text.
    /// Does not move past the line.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<&'data [u8]> {
        let start = self.position();
        if start == self.data.len() {
            return None;
        }
        let (end, _) = self.line_end(start);
        self.data.get(start..end)
    }

    /// Returns the next line that is neither blank nor a comment, without its line end; `None` at the end of the text.
    /// Moves past the line.
    #[inline]
    pub(super) fn line(&mut self) -> Option<&'data [u8]> {
        let start = self.position();
        if start == self.data.len() {
            return None;
        }
        let (end, next) = self.line_end(start);
        self.position = next;
        self.data.get(start..end)
    }

    /// Reads the next line as a decimal number: only digits, no sign, no spaces. Moves past the line only if it is a
    /// number.
    #[inline]
    pub(super) fn decimal(&mut self) -> Decimal {
        let start = self.position();
        let rest = self.data.get(start..).unwrap_or_default();
        let (value, digits) = leading(rest);
        let after = match rest.get(digits..) {
            None | Some([]) => digits,
            Some([b'\n', ..]) => digits + 1,
            Some([b'\r', b'\n', ..]) => digits + 2,
            Some(_) => return Decimal::Bad,
        };
        if rest.is_empty() {
            return Decimal::End;
        }
        let Some(value) = value else {
            return Decimal::Bad;
        };
        self.position = start + after;
        Decimal::Value(value)
    }

    /// Finds the next blank line after `from`, and then the first line that is neither blank nor a comment. Returns the
    /// offset of that line, for use with [`seek`](Self::seek); `None` if there is none.
    pub(super) fn next_block(&self, from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            let (end, next) = self.line_end(at);
            if next >= self.data.len() {
                return None;
            }
            if end == at {
                let mut rest = self.clone();
                rest.seek(next);
                return Some(rest.position()).filter(|&start| start < self.data.len());
            }
            at = next;
        }
    }

    /// Makes an error for the line that begins at `start`, at the given column (from 0). The error contains the text of
    /// the line.
    #[cold]
    pub(super) fn error_at(
        &mut self,
        kind: ErrorKind,
        message: &'static str,
        start: usize,
        column: usize,
    ) -> Error {
        let line = self.line_number(start);
        let (end, _) = self.line_end(start);
        let found = match self.data.get(start..end) {
            Some(text) if start < self.data.len() => quote(text),
            _ => "the end of the file".to_owned(),
        };
        Error::new(kind, message)
            .at_line(line, column as u64 + 1)
            .found(found)
    }

    /// Makes an error for the next line that is neither blank nor a comment, at the given column (from 0).
    #[cold]
    pub(super) fn error(&mut self, kind: ErrorKind, message: &'static str, column: usize) -> Error {
        let start = self.position();
        self.error_at(kind, message, start, column)
    }

    fn line_number(&mut self, position: usize) -> u64 {
        if position < self.counted.0 {
            self.counted = (0, 1);
        }
        let (from, line) = self.counted;
        let between = self.data.get(from..position).unwrap_or_default();
        let line = line + memchr_iter(b'\n', between).count() as u64;
        self.counted = (position, line);
        line
    }

    #[inline]
    fn line_end(&self, start: usize) -> (usize, usize) {
        let rest = self.data.get(start..).unwrap_or_default();
        match memchr(b'\n', rest) {
            Some(length) => {
                let carriage_return = matches!(rest.get(..length), Some([.., b'\r']));
                (
                    start + length - usize::from(carriage_return),
                    start + length + 1,
                )
            }
            None => (start + rest.len(), start + rest.len()),
        }
    }
}

/// Parses a number as LLVM's `getAsInteger(0, …)` does: hexadecimal after `0x`, binary after `0b`, octal after `0o` or
/// `0`, otherwise decimal. The letters of `0x` and `0b` may be capitals. Returns `None` for any other text, for example
/// one with a sign or a space.
pub(super) fn prefixed_integer(text: &[u8]) -> Option<u64> {
    let (radix, digits) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (16, digits),
        [b'0', b'b' | b'B', digits @ ..] => (2, digits),
        [b'0', b'o', digits @ ..] => (8, digits),
        [b'0', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => (8, digits),
        _ => (10, text),
    };
    integer(digits, radix)
}

/// Parses a text that consists only of digits in the base `radix`. Returns `None` for any other text, and if the number
/// does not fit 64 bits.
pub(super) fn integer(digits: &[u8], radix: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit = char::from(byte).to_digit(radix)?;
        value
            .checked_mul(u64::from(radix))?
            .checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_passed_over_wherever_they_stand() {
        let mut lexer = Lexer::new(b"\n# one\r\n\r\nname\r\n#two\n12\n\n#end");
        assert_eq!(lexer.peek(), Some(&b"name"[..]));
        assert_eq!(lexer.line(), Some(&b"name"[..]));
        assert_eq!(lexer.decimal(), Decimal::Value(12));
        assert_eq!(lexer.decimal(), Decimal::End);
        assert_eq!(lexer.line(), None);
    }

    #[test]
    fn a_carriage_return_alone_ends_no_line() {
        let mut lexer = Lexer::new(b"1\r");
        assert_eq!(lexer.decimal(), Decimal::Bad);
        assert_eq!(lexer.line(), Some(&b"1\r"[..]));
    }

    #[test]
    fn decimals_are_digits_of_64_bits() {
        for (text, value) in [
            ("18446744073709551615", Decimal::Value(u64::MAX)),
            (
                "00000000000000000000018446744073709551615",
                Decimal::Value(u64::MAX),
            ),
            ("18446744073709551616", Decimal::Bad),
            ("99999999999999999999", Decimal::Bad),
            ("184467440737095516150", Decimal::Bad),
            ("", Decimal::End),
            ("+1", Decimal::Bad),
            (" 1", Decimal::Bad),
            ("1 ", Decimal::Bad),
            ("0x1", Decimal::Bad),
        ] {
            assert_eq!(Lexer::new(text.as_bytes()).decimal(), value, "{text}");
        }
    }

    #[test]
    fn prefixes_choose_the_base() {
        for (text, value) in [
            ("0", Some(0)),
            ("010", Some(8)),
            ("08", None),
            ("0x1F", Some(31)),
            ("0X1f", Some(31)),
            ("0b11", Some(3)),
            ("0o17", Some(15)),
            ("0O17", None),
            ("0x", None),
            ("", None),
            ("-1", None),
            ("0xffffffffffffffff", Some(u64::MAX)),
            ("0x10000000000000000", None),
        ] {
            assert_eq!(prefixed_integer(text.as_bytes()), value, "{text}");
        }
    }
}
