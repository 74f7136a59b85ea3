//! Counts of branches, ranges of code and addresses as rows.
use super::rows::{hex_bytes, optional_number, optional_text, required_number};
use super::{ImportError, TableFile};
use crate::export::tables::addresses::PLACES;
use profkit_data::from_printable;
use profkit_data::ids::BuildId;
use profkit_perf::collect::{
    AddressCount, BinaryCounts, BinaryKey, BranchCount, Counts, Numbering, Place, RangeCount, Sums,
};
use profkit_perf::text::write_addresses;
use std::collections::BTreeMap;

/// Whether the rows of a table are branches, ranges of code or addresses.
pub fn is_branches(table: &TableFile) -> bool {
    let places: [&[&str]; 3] = [&["from", "to"], &["start", "end"], &["address"]];
    table.has(&["count"]) && places.into_iter().any(|places| table.has(places))
}

/// Returns a table of branches, ranges and addresses as the text of addresses that profkit reads as samples
/// ([docs/formats/samples-text.md]).
///
/// # Errors
/// If a row has neither a branch nor a range nor an address, or if a cell holds something else than its column.
///
/// [docs/formats/samples-text.md]: https://github.com/profkit/profkit/blob/main/docs/formats/samples-text.md
pub fn addresses_of(table: &TableFile) -> Result<Vec<u8>, ImportError> {
    let mut binaries: BTreeMap<BinaryKey, Sums> = BTreeMap::new();
    for row in 0..table.len() {
        let sums = binaries.entry(key(table, row)?).or_default();
        let count = required_number(table, "count", row)?;
        let mut places = [None; 5];
        for (place, column) in places.iter_mut().zip(PLACES) {
            *place = optional_number(table, column, row)?;
        }
        let [from, to, start, end, address] = places;
        if from.is_some() || to.is_some() {
            let place = |place: Option<u64>| place.map_or(Place::ELSEWHERE, Place::at);
            let (from, to) = (place(from), place(to));
            sums.branches.push(BranchCount { from, to, count });
        }
        if let Some(place) = address {
            sums.addresses.push(AddressCount { place, count });
        }
        match (start, end) {
            (Some(start), Some(end)) => sums.ranges.push(RangeCount { start, end, count }),
            (None, None) if places.iter().any(Option::is_some) => {}
            (None, None) => {
                let message = "the row has neither a branch (`from`, `to`) nor a range (`start`, `end`) nor an `address`";
                return Err(table.error(Some(row), "", message));
            }
            (Some(_), None) => return Err(table.error(Some(row), "end", "the cell is empty")),
            (None, Some(_)) => return Err(table.error(Some(row), "start", "the cell is empty")),
        }
    }
    let binaries = binaries.into_iter().map(|(key, sums)| BinaryCounts {
        key,
        sums,
        contexts: BTreeMap::new(),
    });
    let counts = Counts {
        binaries: binaries.collect(),
        ..Counts::default()
    };
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = write_addresses(&counts, &mut text);
    Ok(text)
}

/// The binary of a row.
fn key(table: &TableFile, row: usize) -> Result<BinaryKey, ImportError> {
    let id = optional_text(table, "build_id", row)?.filter(|id| *id != "-");
    let build_id = id.map(|id| {
        hex_bytes(id).map(BuildId).ok_or_else(|| {
            let message = "expected a build id: pairs of hexadecimal digits";
            table.error(Some(row), "build_id", message)
        })
    });
    let numbering = optional_text(table, "numbering", row)?.unwrap_or("file-offsets");
    let numbering = Numbering::from_name(numbering.as_bytes()).ok_or_else(|| {
        let message = "expected a numbering of places, such as `file-offsets` or `addresses`";
        table.error(Some(row), "numbering", message)
    })?;
    let path = optional_text(table, "path", row)?.unwrap_or_default();
    Ok(BinaryKey {
        path: from_printable(path),
        build_id: build_id.transpose()?,
        kernel: optional_number(table, "is_kernel", row)?.unwrap_or(0) != 0,
        numbering,
    })
}
