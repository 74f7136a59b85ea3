//! Tables for people. Columns are aligned, and names are cut to the width of the terminal.
use crate::markdown::Markdown;
use crate::{Console, Style, grouped};
use std::borrow::Cow;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const INDENT: usize = 2;
const GAP: usize = 2;
/// The smallest width of the last column. If there is less room, optional columns are not printed.
const ROOM: usize = 30;

/// A column of a table: `>` for a column of numbers or `<` for one of texts, the title, and `?` if the column is not
/// printed on a narrow terminal.
#[derive(Clone, Debug)]
struct Column {
    title: String,
    right: bool,
    optional: bool,
}

impl Column {
    fn new(spec: &str) -> Self {
        let (right, spec) = match spec.strip_prefix('>') {
            Some(rest) => (true, rest),
            None => (false, spec.trim_start_matches('<')),
        };
        let title = spec.trim_end_matches('?');
        Column {
            title: title.to_owned(),
            right,
            optional: title != spec,
        }
    }
}

/// A cell of a table, or a piece of a line: text, a number, or a bar.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Option<Style>,
    bar: Option<(u128, u128)>,
}

impl Cell {
    /// A cell in a style.
    pub fn styled(style: Style, text: impl Into<String>) -> Self {
        Cell {
            text: text.into(),
            style: Some(style),
            bar: None,
        }
    }

    /// A bar that shows `part` of `whole`.
    pub fn bar(style: Style, part: impl Into<u128>, whole: impl Into<u128>) -> Self {
        Cell {
            style: Some(style),
            bar: Some((part.into(), whole.into())),
            ..Cell::default()
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn style(&self) -> Option<Style> {
        self.style
    }

    pub(crate) fn print(&self, out: &mut Console<impl Write>) -> io::Result<()> {
        print_text(out, self.style, &self.text)
    }
}

fn print_text(out: &mut Console<impl Write>, style: Option<Style>, text: &str) -> io::Result<()> {
    match style {
        Some(style) => out.styled(style, text),
        None => write!(out, "{text}"),
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell {
            text,
            ..Cell::default()
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        grouped(number).into()
    }
}

impl From<u128> for Cell {
    fn from(number: u128) -> Self {
        grouped(number).into()
    }
}

/// A table of rows and columns. The last column holds the names, which are shortened if the terminal is too narrow.
///
/// ```
/// use profkit_report::{Console, Look, Table};
///
/// let mut table = Table::new([">sum", "<function"]);
/// table.row([7_u64.into(), "ns::first(int)".into()]);
/// table.row([1234_u64.into(), "ns::second(int)".into()]);
/// let look = Look { width: Some(20), ..Look::default() };
/// let mut text = Vec::new();
/// table.print(&mut Console::text(&mut text, look))?;
/// assert_eq!(String::from_utf8_lossy(&text), "    sum  function\n      7  ns::f…st(…)\n  1,234  ns::s…nd(…)\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<Cell>),
    /// A line of text below a row, about this row.
    Remark(Cell),
}

impl Row {
    fn cell(&self, index: usize) -> Option<&Cell> {
        match self {
            Row::Cells(cells) => cells.get(index),
            Row::Remark(_) => None,
        }
    }
}

impl Table {
    /// Makes a table without rows. A column is written as `>title` if it has numbers and as `<title` if it has texts;
    /// with `?` at its end it is not printed on a narrow terminal.
    pub fn new(columns: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let columns = columns
            .into_iter()
            .map(|column| Column::new(column.as_ref()));
        Table {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(Row::Cells(cells.into()));
    }

    /// Adds a line about the row above, below the last column or as far left as the longest one needs.
    pub fn remark(&mut self, remark: impl Into<Cell>) {
        self.rows.push(Row::Remark(remark.into()));
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table as Markdown, without the columns that hold bars. A remark is a row with text in the last column.
    pub(crate) fn print_markdown<W: Write>(&self, out: &mut Markdown<'_, W>) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let has_bars = |index: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.cell(index));
            cells.any(|cell| cell.bar.is_some())
        };
        let shown: Vec<usize> = (0..self.columns.len())
            .filter(|&index| !has_bars(index))
            .collect();
        let columns = shown.iter().filter_map(|&index| {
            let column = self.columns.get(index)?;
            Some((column.title.as_str(), column.right))
        });
        let rows = self.rows.iter().map(|row| match row {
            Row::Cells(_) => {
                let text = |&index: &usize| row.cell(index).map_or("", |cell| cell.text.as_str());
                shown.iter().map(text).collect()
            }
            Row::Remark(remark) => {
                let mut cells = vec![""; shown.len()];
                if let Some(last) = cells.last_mut() {
                    *last = &remark.text;
                }
                cells
            }
        });
        let rows: Vec<Vec<&str>> = rows.collect();
        out.table(&columns.collect::<Vec<_>>(), &rows)
    }

    /// Prints the table.
    pub fn print<W: Write>(mut self, out: &mut Console<W>) -> io::Result<()> {
        let look = out.look();
        for row in &mut self.rows {
            let Row::Cells(cells) = row else { continue };
            for cell in cells {
                if let Some((part, whole)) = cell.bar {
                    cell.text = look.bar(part, whole);
                }
            }
        }
        let width_of = |index: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.cell(index));
            let widths = cells.map(|cell| cell.text.width());
            widths.max().unwrap_or(0).max(column.title.width())
        };
        let columns = self.columns.iter().enumerate();
        let mut shown: Vec<(usize, &Column, usize)> = columns
            .map(|(index, column)| (index, column, width_of(index, column)))
            .collect();
        let last = self.columns.len().saturating_sub(1);
        let fixed = |shown: &[(usize, &Column, usize)]| {
            let before = shown.iter().filter(|(index, ..)| *index != last);
            INDENT + before.map(|(.., width)| width + GAP).sum::<usize>()
        };
        let mut room = usize::MAX;
        if let Some(width) = out.look().width {
            let least = shown.last().map_or(0, |(.., width)| *width).min(ROOM);
            while width < fixed(&shown) + least
                && let Some(at) = shown.iter().rposition(|(_, column, _)| column.optional)
            {
                shown.remove(at);
            }
            room = width.saturating_sub(fixed(&shown)).max(8);
        }
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            let titles = |column: &Column| Cell::styled(Style::Dim, &column.title);
            let titles: Vec<Cell> = self.columns.iter().map(titles).collect();
            print_row(out, &titles, &shown, last, room)?;
        }
        let remarks = self.rows.iter().filter_map(|row| match row {
            Row::Cells(_) => None,
            Row::Remark(remark) => Some(remark.text.width()),
        });
        let widest = remarks.max().unwrap_or(0);
        let width = out.look().width.unwrap_or(usize::MAX);
        let below = width
            .saturating_sub(widest)
            .clamp(2 * INDENT, fixed(&shown) + INDENT);
        for row in &self.rows {
            match row {
                Row::Cells(cells) => print_row(out, cells, &shown, last, room)?,
                Row::Remark(remark) => print_remark(out, remark, below)?,
            }
        }
        Ok(())
    }
}

fn print_remark(out: &mut Console<impl Write>, remark: &Cell, below: usize) -> io::Result<()> {
    let width = out.look().width.unwrap_or(usize::MAX);
    let spaces = width
        .saturating_sub(remark.text.width())
        .min(below)
        .max(2 * INDENT);
    let text = cut_middle(&remark.text, width.saturating_sub(spaces).max(8));
    write!(out, "{:spaces$}", "")?;
    print_text(out, remark.style, &text)?;
    writeln!(out)
}

fn print_row<W: Write>(
    out: &mut Console<W>,
    row: &[Cell],
    shown: &[(usize, &Column, usize)],
    last: usize,
    room: usize,
) -> io::Result<()> {
    // Spaces are written only together with the next text, so that no line ends with spaces.
    let mut spaces = INDENT;
    for &(index, column, width) in shown {
        let Some(cell) = row.get(index) else {
            continue;
        };
        let text = if index == last {
            shortened(&cell.text, room)
        } else {
            Cow::Borrowed(cell.text.as_str())
        };
        let fill = width.saturating_sub(text.width());
        let (before, after) = if column.right { (fill, 0) } else { (0, fill) };
        spaces += before;
        if !text.is_empty() {
            write!(out, "{:spaces$}", "")?;
            print_text(out, cell.style, &text)?;
            spaces = 0;
        }
        spaces += after + GAP;
    }
    writeln!(out)
}

/// Shortens the name of a function to at most `columns` columns. Parameters are left out first, then template
/// arguments, those of the last function first; what is still too long is cut in the middle.
///
/// ```
/// use profkit_report::shortened;
///
/// let name = "bool re2::DFA::Search<false, true>(re2::DFA::SearchParams*)";
/// assert_eq!(shortened(name, 40), "bool re2::DFA::Search<false, true>(…)");
/// assert_eq!(shortened(name, 30), "bool re2::DFA::Search<…>(…)");
/// assert_eq!(shortened(name, 20), "bool re2::…rch<…>(…)");
/// ```
pub fn shortened(name: &str, columns: usize) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(name);
    for open in ['(', '<'] {
        for place in bracketed(&text, open).into_iter().rev() {
            if text.width() <= columns {
                return text;
            }
            let mut shorter = text.into_owned();
            shorter.replace_range(place, "…");
            text = Cow::Owned(shorter);
        }
    }
    match cut_middle(&text, columns) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cut) => Cow::Owned(cut),
    }
}

/// The places inside those brackets of a name that are in no other bracket and hold parameters (`(`) or template
/// arguments (`<`).
fn bracketed(name: &str, wanted: char) -> Vec<std::ops::Range<usize>> {
    const ANONYMOUS: &str = "(anonymous namespace)";
    let mut found = Vec::new();
    let mut stack: Vec<(char, usize)> = Vec::new();
    let mut before = ' ';
    for (at, one) in name.char_indices() {
        // The brackets of `operator<`, `operator>>` and `->` enclose nothing.
        let text = name.get(..at).unwrap_or_default();
        let of_operator = text.trim_end_matches(['<', '>', '-']).ends_with("operator");
        let is_angle = matches!(one, '<' | '>');
        let plain = is_angle && (of_operator || one == '>' && before == '-');
        match one {
            _ if plain => {}
            '(' | '<' | '{' | '[' => stack.push((one, at + one.len_utf8())),
            ')' | '>' | '}' | ']' => {
                let Some((open, start)) = stack.pop() else {
                    continue;
                };
                // A remark such as `(3 instances)` follows a space.
                let lead = name.get(..start - open.len_utf8()).unwrap_or_default();
                let is_remark = open == '(' && lead.ends_with(' ');
                let is_namespace = name
                    .get(start - open.len_utf8()..)
                    .is_some_and(|rest| rest.starts_with(ANONYMOUS));
                let outermost = stack.is_empty() && open == wanted && !lead.is_empty();
                if outermost && !is_remark && !is_namespace && at > start {
                    found.push(start..at);
                }
            }
            _ => {}
        }
        before = one;
    }
    found
}

/// Cuts a text in the middle, so that it has at most `columns` columns. `…` takes the place of the part that is left
/// out.
///
/// ```
/// assert_eq!(profkit_report::cut_middle("llvm::SmallVector::push_back(int)", 20), "llvm::Smal…back(int)");
/// assert_eq!(profkit_report::cut_middle("main", 20), "main");
/// ```
pub fn cut_middle(text: &str, columns: usize) -> Cow<'_, str> {
    if text.len() <= columns || text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(1);
    let fits = |most: usize| {
        let mut used = 0;
        move |one: &char| {
            used += one.width().unwrap_or(0);
            used <= most
        }
    };
    let start: String = text.chars().take_while(fits(room - room / 2)).collect();
    let end: Vec<char> = text.chars().rev().take_while(fits(room / 2)).collect();
    Cow::Owned(format!(
        "{start}…{}",
        end.into_iter().rev().collect::<String>()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Look;

    fn printed(width: Option<usize>) -> String {
        let mut table = Table::new([">sum", ">together?", "<?", "<function"]);
        let long = "a".repeat(20) + &"b".repeat(20);
        table.row(["9".into(), "50.0%".into(), "####".into(), long.into()]);
        table.row(["10".into(), "100.0%".into(), "".into(), "日本".into()]);
        let look = Look {
            width,
            ..Look::default()
        };
        let mut console = Console::text(Vec::new(), look);
        table.print(&mut console).unwrap();
        String::from_utf8(std::mem::take(console.get_mut())).unwrap()
    }

    #[test]
    fn names_that_differ_in_template_arguments_stay_apart() {
        let names = ["true, false", "true, true"].map(|what| {
            format!("bool re2::DFA::InlinedSearchLoop<{what}>(re2::DFA::SearchParams*)")
        });
        let [one, two] = names.each_ref().map(|name| shortened(name, 50));
        assert_eq!(one, "bool re2::DFA::InlinedSearchLoop<true, false>(…)");
        assert_ne!(one, two);
        assert_eq!(shortened("f() (3 instances)", 40), "f() (3 instances)");
        let anonymous = "a::(anonymous namespace)::work(std::vector<int>, char)";
        assert_eq!(
            shortened(anonymous, 40),
            "a::(anonymous namespace)::work(…)"
        );
        let operator = "operator<<(std::ostream&, Number const&)";
        assert_eq!(shortened(operator, 20), "operator<<(…)");
        assert_eq!(
            shortened("<alpha::Type as beta::Trait>::call", 20).width(),
            20
        );
        let rust = "core::ptr::drop_in_place::<alloc::vec::Vec<u8>> (3 instances)";
        assert_eq!(
            shortened(rust, 48),
            "core::ptr::drop_in_place::<…> (3 instances)"
        );
    }

    #[test]
    fn names_are_cut_and_columns_left_out_on_narrow_terminals_only() {
        let long = "a".repeat(20) + &"b".repeat(20);
        assert_eq!(
            printed(None),
            format!(
                "  sum  together        function\n    9     50.0%  ####  {long}\n   10    100.0%        日本\n"
            )
        );
        assert_eq!(
            printed(Some(54)),
            "  sum  together        function\n    9     50.0%  ####  aaaaaaaaaaaaaaa…bbbbbbbbbbbbbbb\n   10    100.0%        日本\n"
        );
        assert_eq!(
            printed(Some(47)),
            "  sum  together  function\n    9     50.0%  aaaaaaaaaaaaaaa…bbbbbbbbbbbbbb\n   10    100.0%  日本\n"
        );
        assert_eq!(
            printed(Some(12)),
            "  sum  function\n    9  aaaa…bbb\n   10  日本\n"
        );
    }
}
