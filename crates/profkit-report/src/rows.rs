//! Rows for programs: CSV with a header, or one JSON object per line.
use crate::show::json::without_nulls;
use profkit_analysis::ranking::{Group, GroupBy};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The form of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowForm {
    /// Comma-separated values (RFC 4180, with line feeds), with the names of the columns in the first line.
    Csv,
    /// One JSON object per line. The objects are those of the array in the JSON document.
    JsonLines,
}

/// Writes rows.
///
/// ```
/// use profkit_report::{RowForm, RowWriter};
/// use serde_json::json;
///
/// let mut bytes = Vec::new();
/// let mut rows = RowWriter::new(&mut bytes, RowForm::Csv, &["function", "sum"]);
/// rows.row(&json!({ "sum": 7, "function": "f(int, char)", "guid": "0x1" }))?;
/// rows.end()?;
/// assert_eq!(bytes, b"function,sum\n\"f(int, char)\",7\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct RowWriter<'c, W> {
    out: W,
    form: RowForm,
    columns: &'c [&'c str],
    begun: bool,
}

impl<'c, W: Write> RowWriter<'c, W> {
    /// Makes a writer of rows. `columns` are the members of a row that become columns in CSV.
    pub fn new(out: W, form: RowForm, columns: &'c [&'c str]) -> Self {
        RowWriter {
            out,
            form,
            columns,
            begun: false,
        }
    }

    /// Writes a row, which is given as a JSON object. A member that is absent becomes an empty field in CSV.
    pub fn row(&mut self, row: &Value) -> io::Result<()> {
        if self.form == RowForm::JsonLines {
            return writeln!(self.out, "{row}");
        }
        self.begin()?;
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                self.out.write_all(b",")?;
            }
            match row.get(column) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => self.text(text)?,
                Some(other) => self.text(&other.to_string())?,
            }
        }
        self.out.write_all(b"\n")
    }

    /// Ends the output. CSV gets its line of column names even if there were no rows.
    pub fn end(&mut self) -> io::Result<()> {
        if self.form == RowForm::Csv {
            self.begin()?;
        }
        self.out.flush()
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        writeln!(self.out, "{}", self.columns.join(","))
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if text.contains([',', '"', '\n', '\r']) {
            write!(self.out, "\"{}\"", text.replace('"', "\"\""))
        } else {
            write!(self.out, "{text}")
        }
    }
}

/// The columns of groups.
pub const GROUP_COLUMNS: [&str; 5] = ["group", "functions", "entered", "sum", "share"];

/// Returns the word for the things by which functions are grouped.
pub fn group_word(by: GroupBy) -> &'static str {
    match by {
        GroupBy::File => "file",
        GroupBy::Crate => "crate",
        GroupBy::Namespace => "namespace",
    }
}

/// Returns a group as JSON. `total` is the sum of all groups.
pub fn group_json(group: &Group, total: u128) -> Value {
    without_nulls(json!({
        "group": group.name,
        "functions": group.functions,
        "entered": group.entered,
        "sum": number(group.sum),
        "share": profkit_data::share(group.sum, total),
    }))
}

/// A sum as a JSON number. Above 64 bits, which is rare, it is the nearest floating-point number.
pub(crate) fn number(sum: u128) -> Value {
    match u64::try_from(sum) {
        Ok(sum) => sum.into(),
        Err(_) => (sum as f64).into(),
    }
}
