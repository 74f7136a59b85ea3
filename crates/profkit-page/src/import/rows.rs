//! The cells of a row, with errors that name their place.
use super::{Cells, ImportError, TableFile};
use profkit_data::from_printable;
use profkit_data::ids::NameRef;

/// A function without a name stands under its hash.
pub(super) fn name_ref(text: &str) -> NameRef {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 16);
    let hash = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    hash.map_or_else(|| NameRef::of(&from_printable(text)), NameRef)
}

pub(super) fn hex(table: &TableFile, column: &str, row: usize) -> Result<Vec<u8>, ImportError> {
    let text = optional_text(table, column, row)?.unwrap_or_default();
    let expected = "expected pairs of hexadecimal digits";
    hex_bytes(text).ok_or_else(|| table.error(Some(row), column, expected))
}

pub(super) fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, 16)
            .ok()
            .filter(|_| digits.len() == 2)
    });
    pairs.collect()
}

pub(super) fn text<'t>(
    table: &'t TableFile,
    column: &str,
    row: usize,
) -> Result<Option<&'t str>, ImportError> {
    let Some(cells) = table.column(column) else {
        return Err(table.error(None, column, "the table does not have this column"));
    };
    cells
        .text(row)
        .map_err(|message| table.error(Some(row), column, message))
}

pub(super) fn optional_text<'t>(
    table: &'t TableFile,
    column: &str,
    row: usize,
) -> Result<Option<&'t str>, ImportError> {
    match table.column(column) {
        None => Ok(None),
        // A column of a JSON table without any value has no type.
        Some(Cells::Numbers(rows)) if rows.iter().all(Option::is_none) => Ok(None),
        Some(_) => text(table, column, row),
    }
}

pub(super) fn required_text<'t>(
    table: &'t TableFile,
    column: &str,
    row: usize,
) -> Result<&'t str, ImportError> {
    let found = text(table, column, row)?;
    found.ok_or_else(|| table.error(Some(row), column, "the cell is empty"))
}

pub(super) fn optional_number(
    table: &TableFile,
    column: &str,
    row: usize,
) -> Result<Option<u64>, ImportError> {
    let cells = table.column(column);
    let number = cells.map_or(Ok(None), |cells| cells.number(row));
    number.map_err(|message| table.error(Some(row), column, message))
}

pub(super) fn required_number(
    table: &TableFile,
    column: &str,
    row: usize,
) -> Result<u64, ImportError> {
    if table.column(column).is_none() {
        return Err(table.error(None, column, "the table does not have this column"));
    }
    let found = optional_number(table, column, row)?;
    found.ok_or_else(|| table.error(Some(row), column, "the cell is empty"))
}

/// A number of 32 bits.
pub(super) fn small_number(
    table: &TableFile,
    column: &str,
    row: usize,
) -> Result<Option<u32>, ImportError> {
    let Some(number) = optional_number(table, column, row)? else {
        return Ok(None);
    };
    let small = u32::try_from(number).map_err(|_| {
        let message = format!("found {number}, expected a whole number from 0 to 2^32-1");
        table.error(Some(row), column, message)
    });
    small.map(Some)
}

/// A note about the rows of a table that were left out, because the table `functions` has not their functions.
pub(super) fn left_out(table: &TableFile, rows: u64, functions: &str) -> Option<String> {
    let note = || {
        let rows = profkit_report::plural(rows, "row");
        format!(
            "{}: left out {rows} of functions that {functions} does not have",
            table.name
        )
    };
    (rows > 0).then(note)
}
