//! Tables as CSV and as a JSON document.
use super::{ColumnData, Property, TABLES_VERSION, Table};
use crate::export::StackFrame;
use profkit_data::ids::FuncHash;
use profkit_report::show::json::indented;
use profkit_report::{RowForm, RowWriter};
use serde_json::{Map, Value};
use std::io::{self, Write};

impl Table {
    /// Writes the table as CSV (RFC 4180, with line feeds). A stack is one field, with ` < ` between a function and its
    /// caller.
    pub fn csv(&self, out: impl Write) -> io::Result<()> {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        let mut rows = RowWriter::new(out, RowForm::Csv, &names);
        for row in 0..self.len() {
            rows.row(&Value::Object(self.row(row, true)))?;
        }
        rows.end()
    }

    /// Writes the table as a JSON document: facts about the profile, and an array of rows.
    pub fn json(&self, mut out: impl Write) -> io::Result<()> {
        let mut head = Map::new();
        head.insert("schema".to_owned(), "profkit-table".into());
        head.insert("schema_version".to_owned(), TABLES_VERSION.into());
        head.insert("table".to_owned(), self.kind.to_string().into());
        for (name, value) in &self.properties {
            let value = match value {
                Property::Text(text) => text.as_str().into(),
                Property::List(texts) => texts.iter().map(String::as_str).collect(),
            };
            head.insert((*name).to_owned(), value);
        }
        let head = indented(&Value::Object(head), 0)?;
        // The rows are written one by one. A single JSON value with all rows would take much memory.
        let open = head.strip_suffix("\n}").unwrap_or(&head);
        write!(out, "{open},\n  \"rows\": [")?;
        for row in 0..self.len() {
            let comma = if row > 0 { "," } else { "" };
            let row = indented(&Value::Object(self.row(row, false)), 2)?;
            write!(out, "{comma}\n    {row}")?;
        }
        let end = if self.is_empty() { "" } else { "\n  " };
        writeln!(out, "{end}]\n}}")?;
        out.flush()
    }

    /// Returns a row as a JSON object. Members whose value is not known are left out.
    fn row(&self, row: usize, flat: bool) -> Map<String, Value> {
        let mut members = Map::new();
        for column in &self.columns {
            let value = match &column.data {
                ColumnData::Texts(texts) => texts.get(row).map(Value::from),
                ColumnData::Shared(texts) => texts.get(row).map(Value::from),
                ColumnData::Numbers(numbers) => numbers.get(row).map(|&number| number.into()),
                ColumnData::SomeNumbers(numbers) => {
                    numbers.get(row).copied().flatten().map(Value::from)
                }
                ColumnData::Hashes(hashes) => {
                    let hash = hashes.get(row).copied().flatten();
                    hash.map(|hash| FuncHash(hash).to_string().into())
                }
                ColumnData::Fractions(numbers) => {
                    numbers.get(row).copied().flatten().map(Value::from)
                }
                ColumnData::Stacks(stacks) => {
                    let frames = stacks.get(row);
                    Some(if flat {
                        let names: Vec<&str> = frames.map(|frame| frame.name.as_str()).collect();
                        names.join(" < ").into()
                    } else {
                        frames.map(frame).collect()
                    })
                }
            };
            if let Some(value) = value {
                members.insert(column.name.to_owned(), value);
            }
        }
        members
    }
}

fn frame(frame: &StackFrame) -> Value {
    let mut members = Map::new();
    members.insert("function".to_owned(), frame.name.as_str().into());
    if !frame.file.is_empty() {
        members.insert("file".to_owned(), frame.file.as_str().into());
    }
    if frame.line > 0 {
        members.insert("line".to_owned(), frame.line.into());
    }
    Value::Object(members)
}
