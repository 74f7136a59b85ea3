//! Documents as Markdown, in the dialect that GitHub and GitLab show in comments and job summaries.
//!
//! Text with a character that Markdown gives a meaning to stands in code spans, where only backticks have one: there a name
//! such as `a::operator*<T>` stays as it is, and `f@plt` mentions nobody. Indented lines are aligned with each other, so
//! they become blocks of code.
use std::borrow::Cow;
use std::io::{self, Write};

/// The kinds of blocks. A blank line separates blocks, but not the lines of a list or of a block of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    List,
    Code,
    Other,
}

#[derive(Debug)]
pub(crate) struct Markdown<'w, W: Write> {
    out: &'w mut W,
    last: Option<Kind>,
}

impl<'w, W: Write> Markdown<'w, W> {
    /// `after` says that the document follows other text.
    pub(crate) fn new(out: &'w mut W, after: bool) -> Self {
        let last = after.then_some(Kind::Other);
        Markdown { out, last }
    }

    fn begin(&mut self, kind: Kind) -> io::Result<()> {
        let same = self.last == Some(kind) && kind != Kind::Other;
        if self.last == Some(Kind::Code) && !same {
            self.out.write_all(b"```\n")?;
        }
        if self.last.is_some() && !same {
            self.out.write_all(b"\n")?;
        }
        if kind == Kind::Code && !same {
            self.out.write_all(b"```text\n")?;
        }
        self.last = Some(kind);
        Ok(())
    }

    pub(crate) fn heading(&mut self, level: usize, text: &str) -> io::Result<()> {
        self.begin(Kind::Other)?;
        writeln!(self.out, "{} {}", "#".repeat(level), line(text))
    }

    pub(crate) fn item(&mut self, label: &str, text: &str) -> io::Result<()> {
        self.begin(Kind::List)?;
        let colon = if label.is_empty() { "" } else { ": " };
        writeln!(self.out, "- {label}{colon}{}", line(text))
    }

    /// Lines of text. Those whose parts are aligned with spaces are code; an empty line only ends the block before it.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        for one in text.lines().filter(|one| !one.trim().is_empty()) {
            if one.starts_with("  ") || one.contains("   ") {
                self.code(one)?;
                continue;
            }
            self.begin(Kind::Other)?;
            writeln!(self.out, "{}", line(one))?;
        }
        Ok(())
    }

    pub(crate) fn code(&mut self, text: &str) -> io::Result<()> {
        self.begin(Kind::Code)?;
        // A line of backticks would end the block.
        writeln!(self.out, "{}", text.replace("```", "'''"))
    }

    /// A table. Each column has a title and whether its texts are aligned to the right.
    pub(crate) fn table(&mut self, columns: &[(&str, bool)], rows: &[Vec<&str>]) -> io::Result<()> {
        self.begin(Kind::Other)?;
        let titles = columns.iter().map(|&(title, _)| line(title));
        self.row(titles)?;
        let rules = columns
            .iter()
            .map(|&(_, right)| Cow::Borrowed(if right { "---:" } else { "---" }));
        self.row(rules)?;
        // If one name of a column needs a code span, all names of the column get one.
        let is_code: Vec<bool> = (0..columns.len())
            .map(|at| {
                let mut cells = rows.iter().filter_map(|row| row.get(at));
                cells.any(|cell| !is_plain(cell))
            })
            .collect();
        for row in rows {
            let cells = row.iter().zip(&is_code).map(|(cell, is_code)| {
                if *is_code && !cell.is_empty() {
                    Cow::Owned(span(cell).replace('|', "\\|"))
                } else {
                    Cow::Borrowed(*cell)
                }
            });
            self.row(cells)?;
        }
        Ok(())
    }

    fn row<'c>(&mut self, cells: impl Iterator<Item = Cow<'c, str>>) -> io::Result<()> {
        for cell in cells {
            write!(self.out, "| {} ", cell.replace('\n', " "))?;
        }
        writeln!(self.out, "|")
    }

    pub(crate) fn end(self) -> io::Result<()> {
        match self.last {
            Some(Kind::Code) => self.out.write_all(b"```\n"),
            _ => Ok(()),
        }
    }
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
        let mut markdown = Markdown::new(&mut out, false);
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
}
