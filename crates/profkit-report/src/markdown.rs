//! Documents as Markdown, in the dialect that GitHub and GitLab show in comments and job summaries.
//!
//! Text with a character that Markdown gives a meaning to stands in code spans, where only backticks have one: there a name
//! such as `a::operator*<T>` stays as it is, and `f@plt` mentions nobody. Indented lines are aligned with each other, so
//! they become blocks of code.
use crate::{cut_middle, grouped};
use std::borrow::Cow;
use std::io::{self, Write};

/// The kinds of blocks. A blank line separates blocks, but not the lines of a list or of a block of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    List,
    Code,
    Other,
}

/// The largest number of bytes of an answer. GitHub refuses a comment of more than 65,536 characters, and a gate that does
/// not hold may follow the answer.
const MOST_BYTES: usize = 60_000;
/// The largest number of columns of a cell. Names of C++ templates can have thousands.
const MOST_COLUMNS: usize = 200;

#[derive(Debug)]
pub(crate) struct Markdown<'w, W: Write> {
    out: &'w mut W,
    last: Option<Kind>,
    /// The number of bytes that may still be written.
    left: usize,
    /// The number of lines that were not written, because they did not fit.
    omitted: usize,
}

impl<'w, W: Write> Markdown<'w, W> {
    /// `before` is the number of bytes of the answer that were written already.
    pub(crate) fn new(out: &'w mut W, before: usize) -> Self {
        let last = (before > 0).then_some(Kind::Other);
        Markdown {
            out,
            last,
            left: MOST_BYTES.saturating_sub(before),
            omitted: 0,
        }
    }

    /// Writes a line of a block, unless it or a line before it does not fit.
    fn put(&mut self, kind: Kind, is_new: bool, line: &str) -> io::Result<()> {
        let same = self.last == Some(kind) && !is_new;
        let mut text = String::new();
        if self.last == Some(Kind::Code) && !same {
            text += "```\n";
        }
        if self.last.is_some() && !same {
            text.push('\n');
        }
        if kind == Kind::Code && !same {
            text += "```text\n";
        }
        text += line;
        text.push('\n');
        if text.len() > self.left {
            self.left = 0;
            self.omitted += 1;
            return Ok(());
        }
        self.left -= text.len();
        self.last = Some(kind);
        self.out.write_all(text.as_bytes())
    }

    pub(crate) fn heading(&mut self, level: usize, text: &str) -> io::Result<()> {
        let marks = "#".repeat(level);
        self.put(Kind::Other, true, &format!("{marks} {}", line(text)))
    }

    pub(crate) fn item(&mut self, label: &str, text: &str) -> io::Result<()> {
        let colon = if label.is_empty() { "" } else { ": " };
        self.put(
            Kind::List,
            false,
            &format!("- {label}{colon}{}", line(text)),
        )
    }

    /// Lines of text. Those whose parts are aligned with spaces are code; an empty line only ends the block before it.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        for one in text.lines().filter(|one| !one.trim().is_empty()) {
            if one.starts_with("  ") || one.contains("   ") {
                self.code(one)?;
                continue;
            }
            self.put(Kind::Other, true, &line(one))?;
        }
        Ok(())
    }

    pub(crate) fn code(&mut self, text: &str) -> io::Result<()> {
        // A line of backticks would end the block.
        self.put(Kind::Code, false, &text.replace("```", "'''"))
    }

    /// A table. Each column has a title and whether its texts are aligned to the right.
    pub(crate) fn table(&mut self, columns: &[(&str, bool)], rows: &[Vec<&str>]) -> io::Result<()> {
        let titles = columns.iter().map(|&(title, _)| line(title));
        let rules = columns
            .iter()
            .map(|&(_, right)| Cow::Borrowed(if right { "---:" } else { "---" }));
        let head = format!("{}\n{}", row(titles), row(rules));
        self.put(Kind::Other, true, &head)?;
        // If one name of a column needs a code span, all names of the column get one.
        let is_code: Vec<bool> = (0..columns.len())
            .map(|at| {
                let mut cells = rows.iter().filter_map(|row| row.get(at));
                cells.any(|cell| !is_plain(cell))
            })
            .collect();
        for cells in rows {
            let cells = cells.iter().zip(&is_code).map(|(cell, is_code)| {
                let cell = cut_middle(cell, MOST_COLUMNS);
                if *is_code && !cell.is_empty() {
                    Cow::Owned(span(&cell).replace('|', "\\|"))
                } else {
                    cell
                }
            });
            self.put(Kind::Other, false, &row(cells))?;
        }
        Ok(())
    }

    /// Ends the document. Returns whether all of it was written; if not, its last line says so.
    pub(crate) fn end(self) -> io::Result<bool> {
        if self.last == Some(Kind::Code) {
            self.out.write_all(b"```\n")?;
        }
        if self.omitted > 0 {
            writeln!(
                self.out,
                "\n… and at least {} lines more, which a comment of 65,536 characters has no room for: `--format text` has all.",
                grouped(self.omitted)
            )?;
        }
        Ok(self.omitted == 0)
    }
}

fn row<'c>(cells: impl Iterator<Item = Cow<'c, str>>) -> String {
    let mut text = String::new();
    for cell in cells {
        text += "| ";
        text += &cell.replace('\n', " ");
        text.push(' ');
    }
    text.push('|');
    text
}

/// Characters that have a meaning at the start of a line.
const RULES: [char; 4] = ['-', '+', '=', '>'];

/// Whether Markdown gives no character of the text a meaning.
fn is_plain(text: &str) -> bool {
    !text.contains([
        '\\', '`', '*', '_', '<', '[', ']', '|', '~', '#', '@', '&', '$', '\n',
    ]) && !text.contains("://")
}

/// A text as a code span.
fn span(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for one in text.chars() {
        run = if one == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", text.replace('\n', " "))
}

/// A line of text: parts between backticks stay as they are, and other words that are not plain become code spans.
fn line(text: &str) -> Cow<'_, str> {
    if is_plain(text) && !text.starts_with(RULES) {
        return Cow::Borrowed(text);
    }
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return Cow::Owned(span(text));
    }
    let mut result = String::new();
    for (at, part) in parts.into_iter().enumerate() {
        if at % 2 == 1 {
            result += &span(part);
            continue;
        }
        for (at, word) in part.split(' ').enumerate() {
            if at > 0 {
                result.push(' ');
            }
            // Punctuation after a word is not part of it.
            let end = word.trim_end_matches([',', ':', ';', '.', '?']).len();
            let (name, after) = word.split_at(end);
            let is_rule = name.starts_with(RULES) && result.is_empty();
            if is_plain(name) && !is_rule {
                result += name;
            } else {
                result += &span(name);
            }
            result += after;
        }
    }
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_characters() {
        let cases = [
            ("plain text, 12.5%", "plain text, 12.5%"),
            ("a::operator*<T>: gone", "`a::operator*<T>`: gone"),
            ("function `f_g` of x", "function `f_g` of x"),
            ("an odd ` backtick", "`` an odd ` backtick ``"),
            ("--- a", "`---` a"),
            ("10% -> 20%", "10% -> 20%"),
            ("> quoted", "`>` quoted"),
            ("f(std::vector<int>&)", "`f(std::vector<int>&)`"),
            ("see <b>@someone</b>", "see `<b>@someone</b>`"),
        ];
        for (text, expected) in cases {
            assert_eq!(line(text), expected);
        }
    }

    #[test]
    fn blocks_are_separated_and_code_is_closed() {
        let mut out = Vec::new();
        let mut markdown = Markdown::new(&mut out, 0);
        markdown.heading(2, "a.profdata").unwrap();
        markdown.item("size", "7 bytes").unwrap();
        markdown.item("", "2 bytes").unwrap();
        markdown.text("\none\n").unwrap();
        markdown.text("").unwrap();
        markdown.text("  x ```").unwrap();
        markdown.text("y    z").unwrap();
        let rows = [vec!["1", "f|g"], vec!["2", "main"], vec!["3", ""]];
        markdown
            .table(&[("sum", true), ("function", false)], &rows)
            .unwrap();
        markdown.text("  z").unwrap();
        markdown.end().unwrap();
        let expected = "## a.profdata\n\n- size: 7 bytes\n- 2 bytes\n\none\n\n```text\n  x '''\ny    z\n```\n\n| sum | function |\n| ---: | --- |\n| 1 | `f\\|g` |\n| 2 | `main` |\n| 3 |  |\n\n```text\n  z\n```\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_does_not_fit_in_a_comment_is_counted() {
        let name = format!("f<{}>", "a|`".repeat(2_000));
        let rows = vec![vec!["1", name.as_str()]; 400];
        let mut out = Vec::new();
        let mut markdown = Markdown::new(&mut out, 0);
        markdown
            .table(&[("sum", true), ("name", false)], &rows)
            .unwrap();
        markdown.text("after").unwrap();
        assert!(!markdown.end().unwrap());
        let text = String::from_utf8(out).unwrap();
        assert!(text.len() < 61_000, "{}", text.len());
        let shown = text.lines().filter(|line| line.starts_with("| 1 ")).count();
        assert!(shown > 100, "{shown}");
        let omitted = 401 - shown;
        assert!(text.contains(&format!("\n\n… and at least {omitted} lines more")));
    }
}
