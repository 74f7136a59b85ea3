//! Counts of branches and ranges of code as rows.
use super::rows::{optional_number, optional_text, required_number};
use super::{ImportError, TableFile};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counts of one binary: pairs of places with their counts.
#[derive(Default)]
struct OfBinary {
    ranges: Vec<(u64, u64, u64)>,
    branches: Vec<(Option<u64>, Option<u64>, u64)>,
}

/// Whether the rows of a table are branches or ranges of code.
pub fn is_branches(table: &TableFile) -> bool {
    let ends = [["from", "to"], ["start", "end"]];
    table.has(&["count"]) && ends.iter().any(|ends| table.has(ends))
}

/// Returns a table of branches and ranges as the text of addresses that profkit reads as samples
/// ([docs/formats/samples-text.md]).
///
/// # Errors
/// If a row has neither a branch nor a range, or if a cell holds something else than its column.
///
/// [docs/formats/samples-text.md]: https://github.com/profkit/profkit/blob/main/docs/formats/samples-text.md
pub fn addresses_of(table: &TableFile) -> Result<String, ImportError> {
    let mut binaries: BTreeMap<String, OfBinary> = BTreeMap::new();
    for row in 0..table.len() {
        let id = optional_text(table, "build_id", row)?.unwrap_or("-");
        let is_id = |id: &str| {
            id.len().is_multiple_of(2) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if id != "-" && !is_id(id) {
            let message = "expected a build id: pairs of hexadecimal digits";
            return Err(table.error(Some(row), "build_id", message));
        }
        let count = required_number(table, "count", row)?;
        let number = |column| optional_number(table, column, row);
        let [from, to, start, end] = [
            number("from")?,
            number("to")?,
            number("start")?,
            number("end")?,
        ];
        if !binaries.contains_key(id) {
            binaries.insert(id.to_owned(), OfBinary::default());
        }
        let Some(binary) = binaries.get_mut(id) else {
            continue;
        };
        if from.is_some() || to.is_some() {
            binary.branches.push((from, to, count));
        }
        match (start, end) {
            (Some(start), Some(end)) => binary.ranges.push((start, end, count)),
            (None, None) if from.is_some() || to.is_some() => {}
            (None, None) => {
                let message =
                    "the row has neither a branch (`from`, `to`) nor a range (`start`, `end`)";
                return Err(table.error(Some(row), "", message));
            }
            (Some(_), None) => return Err(table.error(Some(row), "end", "the cell is empty")),
            (None, Some(_)) => return Err(table.error(Some(row), "start", "the cell is empty")),
        }
    }
    let mut text = String::from("# profkit addresses 1\n");
    for (id, binary) in &binaries {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "binary file-offsets {id} ");
        if !binary.ranges.is_empty() {
            let _ = writeln!(text, "ranges {}", binary.ranges.len());
        }
        for (start, end, count) in &binary.ranges {
            let _ = writeln!(text, "{start:x}-{end:x}:{count}");
        }
        if !binary.branches.is_empty() {
            let _ = writeln!(text, "branches {}", binary.branches.len());
        }
        for (from, to, count) in &binary.branches {
            let place =
                |place: &Option<u64>| place.map_or("*".to_owned(), |place| format!("{place:x}"));
            let _ = writeln!(text, "{}->{}:{count}", place(from), place(to));
        }
    }
    Ok(text)
}
