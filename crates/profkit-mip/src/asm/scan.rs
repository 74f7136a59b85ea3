//! The first pass over an assembly file. It finds where comments, strings and statements begin and end.
use super::Syntax;

/// The offsets of a statement, the line of its first byte, and whether it is inline assembly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) line: u32,
    pub(super) inline: bool,
}

/// The text of a file with a space in place of each byte of a comment, so that offsets stay the same.
#[derive(Clone, Debug)]
pub struct Scanned {
    pub(super) clean: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
}

impl Scanned {
    /// Scans a text, which may contain any bytes. The memory used is a small multiple of the size of the text.
    pub fn new(text: &[u8], syntax: &Syntax) -> Self {
        let mut scanner = Scanner {
            text,
            syntax,
            clean: text.to_vec(),
            pieces: Vec::new(),
            position: 0,
            line: 1,
            inline: false,
            piece: 0,
            piece_line: 1,
        };
        scanner.run();
        Scanned {
            clean: scanner.clean,
            pieces: scanner.pieces,
        }
    }

    /// The length of the text in bytes.
    pub fn len(&self) -> usize {
        self.clean.len()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.clean.is_empty()
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    syntax: &'a Syntax,
    clean: Vec<u8>,
    pieces: Vec<Piece>,
    position: usize,
    line: u32,
    inline: bool,
    piece: usize,
    piece_line: u32,
}

impl Scanner<'_> {
    fn run(&mut self) {
        let mut line_start = true;
        while let Some(&byte) = self.text.get(self.position) {
            let was_start = line_start;
            line_start = line_start && matches!(byte, b' ' | b'\t');
            match byte {
                b'\n' => {
                    self.end_piece(self.position);
                    self.position += 1;
                    self.line = self.line.saturating_add(1);
                    self.begin_piece();
                    line_start = true;
                }
                b'"' => self.string(),
                b'\'' => self.character(),
                b'/' if self.at("/*") => {
                    self.block_comment();
                    // Such a comment may follow a block comment that began at the start of a line.
                    line_start = was_start;
                }
                _ if self.at(self.syntax.separator) => {
                    self.end_piece(self.position);
                    self.position += self.syntax.separator.len();
                    self.begin_piece();
                }
                _ => {
                    let comment = self
                        .syntax
                        .comments
                        .iter()
                        .find(|mark| self.at(mark))
                        .or_else(|| {
                            let marks = self.syntax.line_comments;
                            marks.iter().find(|mark| was_start && self.at(mark))
                        });
                    match comment {
                        Some(mark) => self.line_comment(mark.len()),
                        None => self.position += 1,
                    }
                }
            }
        }
        self.end_piece(self.text.len());
    }

    fn at(&self, mark: &str) -> bool {
        self.text
            .get(self.position..)
            .is_some_and(|rest| rest.starts_with(mark.as_bytes()))
    }

    fn begin_piece(&mut self) {
        self.piece = self.position;
        self.piece_line = self.line;
    }

    fn end_piece(&mut self, end: usize) {
        let piece = self.clean.get(self.piece..end).unwrap_or_default();
        let trimmed = piece.trim_ascii_start();
        if trimmed.is_empty() {
            return;
        }
        let start = end - trimmed.len();
        let mut line = self.piece_line;
        // Block comments at the beginning of the statement may contain line breaks, which must be counted.
        for &byte in self.text.get(self.piece..start).unwrap_or_default() {
            line = line.saturating_add(u32::from(byte == b'\n'));
        }
        self.pieces.push(Piece {
            start,
            end: start + trimmed.trim_ascii_end().len(),
            line,
            inline: self.inline,
        });
    }

    /// A string without a closing quote ends at the end of the line.
    fn string(&mut self) {
        self.position += 1;
        while let Some(&byte) = self.text.get(self.position) {
            match byte {
                b'\n' => return,
                b'\\' if self.text.get(self.position + 1) != Some(&b'\n') => self.position += 2,
                b'"' => {
                    self.position += 1;
                    return;
                }
                _ => self.position += 1,
            }
        }
        self.position = self.position.min(self.text.len());
    }

    /// In GNU as, a constant `'x` needs no closing quote. After a backslash, a second character belongs to it.
    fn character(&mut self) {
        self.position += 1;
        let step = match self.text.get(self.position) {
            Some(b'\n') | None => return,
            Some(b'\\') => 2,
            Some(_) => 1,
        };
        if self.text.get(self.position + step - 1) == Some(&b'\n') {
            return;
        }
        self.position = (self.position + step).min(self.text.len());
        if self.text.get(self.position) == Some(&b'\'') {
            self.position += 1;
        }
    }

    fn block_comment(&mut self) {
        let rest = self.text.get(self.position + 2..).unwrap_or_default();
        let length = rest
            .windows(2)
            .position(|pair| pair == b"*/")
            .map_or(rest.len() + 2, |found| found + 4);
        for offset in self.position..self.position + length {
            if self.text.get(offset) == Some(&b'\n') {
                self.line = self.line.saturating_add(1);
            }
            if let Some(byte) = self.clean.get_mut(offset) {
                *byte = b' ';
            }
        }
        self.position += length;
    }

    fn line_comment(&mut self, mark: usize) {
        let rest = self.text.get(self.position..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(rest.len());
        let (comment, _) = rest.split_at(length);
        // Marks of inline assembly: `#APP`, `//APP`, `@APP`, and `## InlineAsm Start` in Mach-O.
        let mark_char = comment.first().copied().unwrap_or_default();
        let words = comment.get(mark..).unwrap_or_default();
        let words = match words {
            [first, rest @ ..] if *first == mark_char => rest,
            other => other,
        };
        let toggles = match words.trim_ascii() {
            b"APP" | b"InlineAsm Start" => Some(true),
            b"NO_APP" | b"InlineAsm End" => Some(false),
            _ => None,
        };
        for byte in self
            .clean
            .iter_mut()
            .skip(self.position)
            .take(length)
            .filter(|byte| **byte != b'\r')
        {
            *byte = b' ';
        }
        self.position += length;
        if let Some(inline) = toggles {
            self.end_piece(self.position);
            self.begin_piece();
            self.inline = inline;
        }
    }
}
