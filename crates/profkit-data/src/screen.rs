//! Writes text to a terminal. The text may contain names and paths from files, and control characters in them must not
//! reach the terminal.
use std::fmt::Display;
use std::io::{self, Write};

/// A writer that escapes control characters, except for line feeds and tabs.
#[derive(Debug)]
pub struct Screen<W> {
    to: W,
    escape: Escape,
}

#[derive(Clone, Copy, Debug)]
enum Escape {
    /// Control characters are escaped as in Rust: `\u{1b}`.
    Text,
    /// Control characters are escaped as in JSON: `\u001b`. A JSON writer has already escaped all control characters
    /// except DEL and U+0080 to U+009F.
    Json,
}

impl<W: Write> Screen<W> {
    /// Makes a writer for plain text.
    pub fn text(to: W) -> Self {
        Screen {
            to,
            escape: Escape::Text,
        }
    }

    /// Makes a writer for JSON.
    pub fn json(to: W) -> Self {
        Screen {
            to,
            escape: Escape::Json,
        }
    }

    /// Writes a terminal code, for example for a colour, without escaping it. The caller must not pass text from a file
    /// as the code; such text must be written with [`Write`].
    ///
    /// # Errors
    /// If the terminal does not accept the code.
    pub fn code(&mut self, code: impl Display) -> io::Result<()> {
        write!(self.to, "{code}")
    }

    /// Returns the writer to which the escaped text is written.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.to
    }

    fn escape(&mut self, text: &str) -> io::Result<()> {
        let mut clean = 0;
        for (at, one) in text.char_indices().filter(|&(_, one)| is_control(one)) {
            self.to
                .write_all(text.get(clean..at).unwrap_or_default().as_bytes())?;
            match self.escape {
                Escape::Text => write!(self.to, "{}", one.escape_default())?,
                Escape::Json => write!(self.to, "\\u{:04x}", u32::from(one))?,
            }
            clean = at + one.len_utf8();
        }
        let rest = text.get(clean..).unwrap_or_default();
        self.to.write_all(rest.as_bytes())
    }
}

fn is_control(one: char) -> bool {
    one.is_control() && !matches!(one, '\n' | '\t')
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = |&byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if bytes.iter().all(is_plain) {
            self.to.write_all(bytes)?;
            return Ok(bytes.len());
        }
        for chunk in bytes.utf8_chunks() {
            self.escape(chunk.valid())?;
            for byte in chunk.invalid() {
                write!(self.to, "\\x{byte:02x}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_rest_is_as_it_was() {
        let text = |bytes: &[u8]| {
            let mut screen = Screen::text(Vec::new());
            screen.write_all(bytes).unwrap();
            String::from_utf8(screen.to).unwrap()
        };
        assert_eq!(text("naïve\t→ ok\n".as_bytes()), "naïve\t→ ok\n");
        assert_eq!(text(b"a\x1b[2Jb\x7f\r"), "a\\u{1b}[2Jb\\u{7f}\\r");
        assert_eq!(text("\u{9b}31m".as_bytes()), "\\u{9b}31m");
        assert_eq!(text(b"a\x9bb"), "a\\x9bb");
    }
}
