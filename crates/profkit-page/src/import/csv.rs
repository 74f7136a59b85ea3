//! Tables as CSV (RFC 4180), with line feeds or carriage returns and line feeds.
use super::cells::TextBuilder;
use super::{Fault, Parts};
use std::collections::BTreeMap;

/// Whether the first line names columns of a profile's table.
pub(super) fn is_table(data: &[u8]) -> bool {
    let line = data.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let names: Vec<&str> = line
        .trim_end()
        .split(',')
        .map(|name| name.trim_matches('"'))
        .collect();
    let has = |name| names.contains(&name);
    let is_branch =
        has("count") && (has("from") && has("to") || has("start") && has("end") || has("address"));
    names == ["property", "value"]
        || has("symbol") && has("guid")
        || has("stack_id")
        || is_branch
        || has("function")
            && ["index", "value", "position", "guid", "samples", "inlined"]
                .into_iter()
                .any(has)
}

pub(super) fn read(data: &[u8]) -> Result<Parts, Fault> {
    let text = std::str::from_utf8(data).map_err(|error| {
        Fault::new(format!(
            "the text is not UTF-8 at byte {}",
            error.valid_up_to()
        ))
    })?;
    let mut records = Records { rest: text };
    let names = records.next_record()?.unwrap_or_default();
    if names.is_empty() {
        return Err(Fault::new(
            "the file is empty, expected a line with the names of the columns",
        ));
    }
    let mut columns: Vec<TextBuilder> = names.iter().map(|_| TextBuilder::default()).collect();
    let mut row = 0;
    loop {
        row += 1;
        let at = |fault: Fault| Fault {
            row: Some(row),
            ..fault
        };
        let Some(cells) = records.next_record().map_err(at)? else {
            break;
        };
        if cells.len() != names.len() {
            return Err(Fault {
                row: Some(row),
                ..Fault::new(format!(
                    "found {} fields, expected {}",
                    cells.len(),
                    names.len()
                ))
            });
        }
        for (column, cell) in columns.iter_mut().zip(&cells) {
            column.push(
                Some(cell)
                    .filter(|cell| !cell.is_empty())
                    .map(String::as_str),
            );
        }
    }
    let columns = columns.into_iter().map(TextBuilder::finish);
    Ok((names.into_iter().zip(columns).collect(), BTreeMap::new()))
}

struct Records<'t> {
    rest: &'t str,
}

impl Records<'_> {
    /// The fields of the next record; `None` at the end.
    fn next_record(&mut self) -> Result<Option<Vec<String>>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut fields = Vec::new();
        loop {
            let field = match self.rest.strip_prefix('"') {
                Some(quoted) => self.quoted(quoted)?,
                None => {
                    let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
                    let (field, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    field.strip_suffix('\r').unwrap_or(field).to_owned()
                }
            };
            fields.push(field);
            let mut rest = self.rest.chars();
            match rest.next() {
                Some(',') => self.rest = rest.as_str(),
                Some('\n') => {
                    self.rest = rest.as_str();
                    return Ok(Some(fields));
                }
                None => return Ok(Some(fields)),
                Some(_) => match self.rest.strip_prefix("\r\n") {
                    Some(rest) => {
                        self.rest = rest;
                        return Ok(Some(fields));
                    }
                    None => {
                        return Err(Fault::new("text stands after the closing quote of a field"));
                    }
                },
            }
        }
    }

    fn quoted<'a>(&mut self, text: &'a str) -> Result<String, Fault>
    where
        Self: 'a,
    {
        let mut field = String::new();
        let mut from = 0;
        loop {
            let rest = text.get(from..).unwrap_or_default();
            let Some(end) = rest.find('"') else {
                return Err(Fault::new("a quoted field has no closing quote"));
            };
            field.push_str(rest.get(..end).unwrap_or_default());
            from += end + 1;
            if text.get(from..).is_some_and(|rest| rest.starts_with('"')) {
                field.push('"');
                from += 1;
                continue;
            }
            let skipped = self.rest.len() - text.len() + from;
            self.rest = self.rest.get(skipped..).unwrap_or_default();
            return Ok(field);
        }
    }
}
