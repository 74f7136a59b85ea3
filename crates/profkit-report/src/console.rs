//! Text for people: in colour where the reader's terminal has it, and as wide as the terminal.
use crate::BarStyle;
use crate::bars::bar_of;
use anstyle::{AnsiColor, Reset};
use profkit_data::Screen;
use std::fmt::Display;
use std::io::{self, Write};

/// How text is shown. The default is for files and pipes: no colour, any width, ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Whether text has styles.
    pub colour: bool,
    /// The width of the terminal in columns. `None` if lines may have any width, so that nothing is cut.
    pub width: Option<usize>,
    /// The column at which messages (`warning: …`) are broken, with an indentation. `None` if they stay on one line.
    pub wrap: Option<usize>,
    /// The characters of bars.
    pub bars: BarStyle,
    /// Whether documents are printed as Markdown, without colours, bars and a width.
    pub markdown: bool,
}

impl Look {
    /// Draws `part` of `whole` as a bar of at most 20 columns, or 10 on a terminal narrower than 100.
    pub(crate) fn bar(self, part: u128, whole: u128) -> String {
        let narrow = self.width.is_some_and(|width| width < 100);
        bar_of(if narrow { 10 } else { 20 }, part, whole, self.bars)
    }
}

/// What a piece of text means, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The word `error`.
    Error,
    /// The word `warning`.
    Warning,
    /// The word `note`.
    Note,
    /// The word `hint`.
    Hint,
    /// The title of a section of the output, or the name of a file.
    Heading,
    /// Text that a reader can skip: titles of columns, units.
    Dim,
    /// A bar.
    Bar,
    /// Hot functions and memory.
    Hot,
    /// Warm functions and memory.
    Warm,
    /// Cold functions and memory.
    Cold,
}

impl Style {
    fn codes(self) -> anstyle::Style {
        let colour = |colour: AnsiColor| colour.on_default();
        match self {
            Style::Error => colour(AnsiColor::Red).bold(),
            Style::Warning => colour(AnsiColor::Yellow).bold(),
            Style::Note | Style::Cold => colour(AnsiColor::Cyan),
            Style::Hint => colour(AnsiColor::Green),
            Style::Heading => anstyle::Style::new().bold(),
            Style::Dim => anstyle::Style::new().dimmed(),
            Style::Bar => colour(AnsiColor::Blue),
            Style::Hot => colour(AnsiColor::Red),
            Style::Warm => colour(AnsiColor::Yellow),
        }
    }
}

/// Words that are always styled at the beginning of a line, even if they are not written with [`Console::styled`].
const WORDS: [(&[u8], Style); 5] = [
    (b"error:", Style::Error),
    (b"warning:", Style::Warning),
    (b"note:", Style::Note),
    (b"hint:", Style::Hint),
    (b"gate:", Style::Error),
];

/// A writer of text. It escapes control characters in the text, so that text from files cannot send commands to the
/// terminal. [`styled`](Self::styled) is the way to write text with a style.
///
/// ```
/// use profkit_report::{Console, Look, Style};
/// use std::io::Write;
///
/// let mut bytes = Vec::new();
/// let mut console = Console::text(&mut bytes, Look { colour: true, ..Look::default() });
/// console.styled(Style::Hot, "hot\x1b[2J")?;
/// console.flush()?;
/// assert_eq!(bytes, b"\x1b[31mhot\\u{1b}[2J\x1b[0m");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Console<W> {
    screen: Screen<W>,
    look: Look,
    /// Whether the next byte begins a line.
    line_start: bool,
    has_text: bool,
    written: usize,
    is_full: bool,
}

impl<W: Write> Console<W> {
    /// Makes a writer of text.
    pub fn text(to: W, look: Look) -> Self {
        Console {
            screen: Screen::text(to),
            look,
            line_start: true,
            has_text: false,
            written: 0,
            is_full: false,
        }
    }

    /// Makes a writer of JSON. It writes no styles, and escapes control characters as JSON does.
    pub fn json(to: W) -> Self {
        Console {
            screen: Screen::json(to),
            look: Look::default(),
            line_start: true,
            has_text: false,
            written: 0,
            is_full: false,
        }
    }

    /// How the text is shown.
    pub fn look(&self) -> Look {
        self.look
    }

    /// The number of bytes written, or 0 if they are all line breaks.
    pub(crate) fn written(&self) -> usize {
        if self.has_text { self.written } else { 0 }
    }

    /// Whether a document ended early, because Markdown for a comment has no room for it.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn set_full(&mut self) {
        self.is_full = true;
    }

    /// The writer that receives the bytes.
    pub fn get_mut(&mut self) -> &mut W {
        self.screen.get_mut()
    }

    /// Writes text in a style.
    pub fn styled(&mut self, style: Style, text: impl Display) -> io::Result<()> {
        if !self.look.colour {
            return write!(self, "{text}");
        }
        self.line_start = false;
        self.screen.code(style.codes())?;
        write!(self.screen, "{text}")?;
        self.screen.code(Reset)
    }

    /// Whether a line of text is a message.
    pub(crate) fn is_message(line: &str) -> bool {
        WORDS
            .iter()
            .any(|(word, _)| line.as_bytes().starts_with(word))
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let word = |(word, _): &&(&[u8], Style)| line.starts_with(word);
        let mut rest = line;
        if self.line_start
            && let Some(&(word, style)) = WORDS.iter().find(word)
        {
            self.screen.code(style.codes())?;
            let (word, after) = line.split_at(word.len());
            self.screen.write_all(word)?;
            self.screen.code(Reset)?;
            rest = after;
        }
        self.line_start = line.ends_with(b"\n");
        self.screen.write_all(rest)
    }
}

impl<W: Write> Write for Console<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.has_text |= bytes.iter().any(|&byte| byte != b'\n');
        self.written = self.written.saturating_add(bytes.len());
        if !self.look.colour {
            return self.screen.write(bytes);
        }
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.write_line(line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.screen.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(write: impl FnOnce(&mut Console<Vec<u8>>) -> io::Result<()>) -> String {
        let look = Look {
            colour: true,
            ..Look::default()
        };
        let mut console = Console::text(Vec::new(), look);
        write(&mut console).unwrap();
        String::from_utf8(std::mem::take(console.get_mut())).unwrap()
    }

    #[test]
    fn only_the_words_of_messages_are_styled() {
        let text = coloured(|out| {
            let [file, name] = ["note: a\x1b[31m", "name"];
            writeln!(out, "error: {file}: no such file")?;
            write!(out, "two\nhint: {name} hint: twice")
        });
        assert_eq!(
            text,
            "\x1b[1m\x1b[31merror:\x1b[0m note: a\\u{1b}[31m: no such file\ntwo\n\x1b[32mhint:\x1b[0m name hint: twice"
        );
    }

    #[test]
    fn files_have_no_codes() {
        let mut console = Console::text(Vec::new(), Look::default());
        console.styled(Style::Heading, "Summary").unwrap();
        writeln!(console, "\nerror: no").unwrap();
        assert_eq!(console.get_mut(), b"Summary\nerror: no\n");
    }
}
