//! The answer to a question as data: a title, facts, headings, tables, lines. [`Document::print`] alone turns it into
//! text for people, [`Rows::write`] alone writes rows for programs.
use crate::markdown::Markdown;
use crate::rows::{RowForm, RowWriter};
use crate::{Cell, Console, Style, Table, cut_middle};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// The smallest number of columns to which text is wrapped, even if the terminal is narrower.
const LEAST_ROOM: usize = 24;
/// The indentation of a message's second line and of those after it.
const MESSAGE_INDENT: usize = 4;

/// An answer that front ends print.
pub trait Answer {
    /// The answer for people.
    fn document(&self) -> Document;

    /// Writes the answer as one JSON document.
    fn json(&self, out: &mut dyn Write) -> io::Result<()>;

    /// The rows of the answer for programs. CSV may have members that JSON has no need of.
    fn rows(&self, _: RowForm) -> Rows<'_> {
        Rows::default()
    }

    /// Writes the answer for people.
    fn text<W: Write>(&self, out: &mut Console<W>) -> io::Result<()>
    where
        Self: Sized,
    {
        self.document().print(out)
    }
}

/// Writes a JSON document with line breaks, and a line break after it.
pub(crate) fn write_json(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)?;
    out.flush()
}

/// Rows for programs, as JSON objects.
#[derive(Default)]
pub struct Rows<'a> {
    /// The members of a row that become columns in CSV.
    pub columns: &'a [&'a str],
    pub(crate) rows: Option<Box<dyn Iterator<Item = Value> + 'a>>,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rows").field(&self.columns).finish()
    }
}

impl<'a> Rows<'a> {
    pub(crate) fn new(columns: &'a [&'a str], rows: impl Iterator<Item = Value> + 'a) -> Self {
        let rows: Option<Box<dyn Iterator<Item = Value> + 'a>> = Some(Box::new(rows));
        Rows { columns, rows }
    }

    /// Writes the rows.
    pub fn write(self, form: RowForm, out: impl Write) -> io::Result<()> {
        let mut writer = RowWriter::new(out, form, self.columns);
        self.rows
            .into_iter()
            .flatten()
            .try_for_each(|row| writer.row(&row))?;
        writer.end()
    }
}

#[derive(Clone, Debug)]
enum Block {
    /// The name of a file, and what the file is.
    Title(String, String),
    /// A label, and text that is cut to the width of the terminal if the last field is true.
    Fact(&'static str, String, bool),
    Heading(String),
    /// The pieces of a line.
    Line(Vec<Cell>),
    /// A margin, and text that is broken at blanks. Further lines are indented by the width of the margin.
    Wrapped(String, String),
    Table(Table),
    /// A frame of a call stack: the function, a remark and the place. A narrow terminal cuts name and place.
    Frame([String; 3]),
}

/// An answer as data.
///
/// ```
/// use profkit_report::{Console, Document, Look};
///
/// let mut document = Document::default();
/// document.title("a.profraw", "raw profile");
/// document.fact("size", "7 bytes");
/// document.section("Functions");
/// document.facts([("called", "1", "of 2")]);
/// let mut out = Vec::new();
/// document.print(&mut Console::text(&mut out, Look::default()))?;
/// assert_eq!(
///     String::from_utf8_lossy(&out),
///     "a.profraw: raw profile\n  size             7 bytes\n\nFunctions\n  called  1  of 2\n"
/// );
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Document(Vec<Block>);

impl Document {
    /// Adds the first line: the name of a file, and what the file is.
    pub fn title(&mut self, file: impl Into<String>, what: impl Display) {
        self.0.push(Block::Title(file.into(), what.to_string()));
    }

    /// Adds a fact about a file below its title.
    pub fn fact(&mut self, label: &'static str, fact: impl Display) {
        self.0.push(Block::Fact(label, fact.to_string(), false));
    }

    /// Adds a fact that is cut to the width of the terminal.
    pub(crate) fn long_fact(&mut self, label: &'static str, fact: String) {
        self.0.push(Block::Fact(label, fact, true));
    }

    /// Adds a heading on a line of its own.
    pub fn heading(&mut self, text: impl Display) {
        self.0.push(Block::Heading(text.to_string()));
    }

    /// Adds a blank line and a heading.
    pub fn section(&mut self, heading: impl Display) {
        self.line("");
        self.heading(heading);
    }

    /// Adds a line of text.
    pub fn line(&mut self, text: impl Display) {
        self.pieces([text.to_string().into()]);
    }

    /// Adds a line of pieces, each with its style.
    pub fn pieces(&mut self, pieces: impl Into<Vec<Cell>>) {
        self.0.push(Block::Line(pieces.into()));
    }

    /// Adds text after a margin, broken at blanks on a terminal. `# ` at the end of the margin is repeated.
    pub fn wrapped(&mut self, margin: impl Into<String>, text: impl Display) {
        self.0.push(Block::Wrapped(margin.into(), text.to_string()));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.0.push(Block::Table(table));
    }

    /// Adds a table without titles. Each row has a name, a number and a remark.
    pub fn facts<N: Into<Cell>, C: Into<Cell>, R: Into<Cell>>(
        &mut self,
        rows: impl IntoIterator<Item = (N, C, R)>,
    ) {
        let mut table = Table::new(["<", ">", "<"]);
        for (name, number, remark) in rows {
            table.row([name.into(), number.into(), remark.into()]);
        }
        self.table(table);
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds another document at the end.
    pub fn append(&mut self, mut other: Document) {
        self.0.append(&mut other.0);
    }

    pub(crate) fn frame(&mut self, name: String, remark: &str, place: String) {
        self.0.push(Block::Frame([name, remark.to_owned(), place]));
    }

    fn print_markdown<W: Write>(self, console: &mut Console<W>) -> io::Result<()> {
        if console.is_full() {
            return Ok(());
        }
        let before = console.written();
        let mut out = Markdown::new(console, before);
        for block in self.0 {
            match block {
                Block::Title(file, what) => out.heading(2, &format!("{file}: {what}"))?,
                Block::Fact(label, fact, _) => out.item(label, &fact)?,
                Block::Heading(text) => out.heading(3, &text)?,
                Block::Line(pieces) => {
                    let text: String = pieces.iter().map(Cell::text).collect();
                    match pieces.first().and_then(Cell::style) {
                        Some(Style::Heading) => out.heading(3, &text)?,
                        _ => out.text(&text)?,
                    }
                }
                Block::Wrapped(margin, text) => match margin.trim() {
                    "" => out.item("", &text)?,
                    label if label.ends_with('#') => out.code(&format!("{margin}{text}"))?,
                    label => out.item(label.trim_end_matches(':'), &text)?,
                },
                Block::Table(table) => table.print_markdown(&mut out)?,
                Block::Frame([name, remark, place]) => {
                    out.code(&format!("    {name}{remark}{place}"))?;
                }
            }
        }
        if !out.end()? {
            console.set_full();
        }
        Ok(())
    }

    /// Prints the document as text, or as Markdown if the look of `out` says so.
    ///
    /// ```
    /// use profkit_report::{Console, Document, Look};
    ///
    /// let mut document = Document::default();
    /// document.section("Functions");
    /// document.line("1 is hot");
    /// let look = Look { markdown: true, ..Look::default() };
    /// let mut out = Vec::new();
    /// document.print(&mut Console::text(&mut out, look))?;
    /// assert_eq!(out, b"### Functions\n\n1 is hot\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn print<W: Write>(self, out: &mut Console<W>) -> io::Result<()> {
        if out.look().markdown {
            return self.print_markdown(out);
        }
        for block in self.0 {
            match block {
                Block::Title(file, what) => {
                    out.styled(Style::Heading, file)?;
                    writeln!(out, ": {what}")?;
                }
                Block::Fact(label, fact, is_cut) => {
                    // The text after a label begins in column 19.
                    let width = out.look().width.filter(|_| is_cut);
                    let room = width.map_or(usize::MAX, |width| width.saturating_sub(19).max(20));
                    writeln!(out, "  {label:15}  {}", cut_middle(&fact, room))?;
                }
                Block::Heading(text) => {
                    out.styled(Style::Heading, text)?;
                    writeln!(out)?;
                }
                Block::Line(pieces) => {
                    if let ([message], Some(width)) = (pieces.as_slice(), out.look().wrap)
                        && Console::<W>::is_message(message.text())
                    {
                        print_broken(out, "", MESSAGE_INDENT, message.text(), Some(width))?;
                        continue;
                    }
                    pieces.iter().try_for_each(|piece| piece.print(out))?;
                    writeln!(out)?;
                }
                Block::Wrapped(margin, text) => {
                    let indent = margin.chars().count();
                    let width = out.look().width;
                    print_broken(out, &margin, indent, &text, width)?;
                }
                Block::Table(table) => table.print(out)?,
                Block::Frame(frame) => print_frame(out, frame)?,
            }
        }
        Ok(())
    }
}

/// Prints text after a margin. If there is a width, the text is broken at blanks, and further lines are indented.
fn print_broken(
    out: &mut Console<impl Write>,
    margin: &str,
    indent: usize,
    text: &str,
    width: Option<usize>,
) -> io::Result<()> {
    let Some(width) = width else {
        return writeln!(out, "{margin}{text}");
    };
    let width = width.max(indent + LEAST_ROOM);
    write!(out, "{margin}")?;
    let mut column = margin.chars().count();
    let mut is_first = true;
    for word in text.split(' ') {
        let len = word.width();
        if !is_first && column + 1 + len > width {
            let comment = if margin.ends_with("# ") { "# " } else { "" };
            let blank = indent - comment.len();
            write!(out, "\n{:blank$}{comment}", "")?;
            column = indent;
        } else if !is_first {
            write!(out, " ")?;
            column += 1;
        }
        write!(out, "{word}")?;
        column += len;
        is_first = false;
    }
    writeln!(out)
}

/// Prints a frame of a call stack. The place gets at most half of the line, and the name the rest.
fn print_frame(
    out: &mut Console<impl Write>,
    [mut name, remark, mut place]: [String; 3],
) -> io::Result<()> {
    const INDENT: usize = 8;
    if let Some(width) = out.look().width {
        let half = width.saturating_sub(INDENT + remark.len()) / 2;
        place = cut_middle(&place, half.max(20)).into_owned();
        let used = INDENT + remark.len() + place.chars().count();
        name = cut_middle(&name, width.saturating_sub(used).max(20)).into_owned();
    }
    write!(out, "{:INDENT$}{name}", "")?;
    out.styled(Style::Dim, format_args!("{remark}{place}"))?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Look;

    #[test]
    fn text_is_broken_on_a_terminal_only() {
        let print = |width, margin: &str| {
            let mut document = Document::default();
            document.wrapped(margin, "the file ends within a section in counters");
            let look = Look {
                width,
                ..Look::default()
            };
            let mut out = Console::text(Vec::new(), look);
            document.print(&mut out).unwrap();
            String::from_utf8(std::mem::take(out.get_mut())).unwrap()
        };
        assert_eq!(
            print(None, "    "),
            "    the file ends within a section in counters\n"
        );
        assert_eq!(
            print(Some(32), "    "),
            "    the file ends within a\n    section in counters\n"
        );
        assert_eq!(
            print(Some(10), "  # "),
            "  # the file ends within a\n  # section in counters\n"
        );
    }

    #[test]
    fn long_messages_are_broken_where_they_go_to_a_terminal() {
        let print = |wrap, text: &str| {
            let mut document = Document::default();
            document.line(text);
            let look = Look {
                wrap,
                ..Look::default()
            };
            let mut out = Console::text(Vec::new(), look);
            document.print(&mut out).unwrap();
            String::from_utf8(std::mem::take(out.get_mut())).unwrap()
        };
        let text = "warning: a.profraw: dropped: the file is cut off";
        assert_eq!(print(None, text), format!("{text}\n"));
        assert_eq!(
            print(Some(30), text),
            "warning: a.profraw: dropped:\n    the file is cut off\n"
        );
        let aligned = "  hot   3  have a counter among those that make most";
        assert_eq!(print(Some(30), aligned), format!("{aligned}\n"));
    }
}
