//! The table of counts by address.
use super::{ColumnData, SharedTexts, Table, TableKind};
use profkit_analysis::names::printable;
use profkit_perf::collect::{BinaryKey, Counts};

impl Table {
    /// Makes the table of branches, ranges of code and samples by address. The counts of calling contexts are not in it.
    pub fn of_counts(file: &str, counts: &Counts) -> Self {
        let mut table = Table::new(file, TableKind::Branches, "addresses");
        let mut rows = Rows::default();
        for binary in &counts.binaries {
            for range in &binary.sums.ranges {
                let places = [None, None, Some(range.start), Some(range.end), None];
                rows.push(&binary.key, places, range.count);
            }
            for branch in &binary.sums.branches {
                let places = [branch.from.get(), branch.to.get(), None, None, None];
                rows.push(&binary.key, places, branch.count);
            }
            for address in &binary.sums.addresses {
                let places = [None, None, None, None, Some(address.place)];
                rows.push(&binary.key, places, address.count);
            }
        }
        let names = ["build_id", "path", "numbering"];
        for (name, texts) in names.into_iter().zip(rows.texts) {
            table.push(name, ColumnData::Shared(texts));
        }
        table.push("is_kernel", ColumnData::Numbers(rows.kernel));
        for (name, places) in PLACES.into_iter().zip(rows.places) {
            table.push(name, ColumnData::SomeNumbers(places));
        }
        table.push("count", ColumnData::Numbers(rows.counts));
        table
    }
}

/// The columns of places: a row has a branch, a range or an address.
pub(crate) const PLACES: [&str; 5] = ["from", "to", "start", "end", "address"];

#[derive(Default)]
struct Rows {
    texts: [SharedTexts; 3],
    kernel: Vec<u64>,
    places: [Vec<Option<u64>>; 5],
    counts: Vec<u64>,
}

impl Rows {
    fn push(&mut self, key: &BinaryKey, places: [Option<u64>; 5], count: u64) {
        let [ids, paths, numberings] = &mut self.texts;
        let id = key.build_id.as_ref().map(ToString::to_string);
        ids.push(&id.unwrap_or_default());
        paths.push(&printable(&key.path));
        numberings.push(key.numbering.name());
        self.kernel.push(key.kernel.into());
        for (column, place) in self.places.iter_mut().zip(places) {
            column.push(place);
        }
        self.counts.push(count);
    }
}
