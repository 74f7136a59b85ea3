//! Finds the compile unit that contains an address.
use super::work::{FILE, RANGE, Work};
use super::{Slice, malformed};
use gimli::constants::{DW_AT_high_pc, DW_AT_low_pc};
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, RangeIter, Unit, UnitHeader, UnitType,
};
use profkit_data::{Error, Structure};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A compile unit in `.debug_info`. It is parsed when it is first needed.
struct Entry<'a> {
    header: UnitHeader<Slice<'a>>,
    offset: usize,
    unit: OnceLock<Result<Unit<Slice<'a>>, gimli::Error>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnitRange {
    low: u64,
    high: u64,
    unit: u32,
}

/// Returns the address ranges of an entry. If the last address of the entry does not fit into 64 bits, returns no
/// ranges. gimli does not check this.
pub(super) fn ranges_of<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &Unit<Slice<'a>>,
    entry: &DebuggingInformationEntry<Slice<'a>>,
) -> gimli::Result<RangeIter<Slice<'a>>> {
    let mut low = None;
    if let Some(value) = entry.attr_value(DW_AT_low_pc) {
        low = dwarf.attr_address(unit, value)?;
    }
    let size = match entry.attr_value(DW_AT_high_pc) {
        Some(AttributeValue::Udata(size)) => size,
        _ => 0,
    };
    match low {
        Some(low) if low.checked_add(size).is_none() => Ok(RangeIter::default()),
        _ => dwarf.die_ranges(unit, entry),
    }
}

/// All compile units, and the address ranges that they cover.
pub(super) struct UnitIndex<'c, 'a> {
    dwarf: &'c Dwarf<Slice<'a>>,
    /// The compile units, sorted by their offset in `.debug_info`.
    entries: Vec<Entry<'a>>,
    /// The address ranges of all units, sorted by address. They do not overlap.
    ranges: Vec<UnitRange>,
    /// What may still be read of the units.
    pub(super) work: Work,
}

/// A compile unit with the requested addresses in it. The addresses are stored as indices, sorted by address.
pub(super) struct Job {
    pub(super) unit: usize,
    pub(super) addresses: Vec<u32>,
}

impl<'c, 'a> UnitIndex<'c, 'a> {
    /// Reads the headers of all units, without address ranges. Calls `warn` with each error.
    pub(super) fn without_ranges(dwarf: &'c Dwarf<Slice<'a>>, warn: &mut dyn FnMut(Error)) -> Self {
        let mut index = UnitIndex {
            dwarf,
            entries: Vec::new(),
            ranges: Vec::new(),
            work: Work::of(dwarf),
        };
        let mut headers = dwarf.units();
        loop {
            match headers.next() {
                Ok(Some(header)) => {
                    let Some(offset) = header.debug_info_offset() else {
                        continue;
                    };
                    if matches!(
                        header.type_(),
                        UnitType::Compilation | UnitType::Skeleton(_) | UnitType::Partial
                    ) {
                        index.entries.push(Entry {
                            header,
                            offset: offset.0,
                            unit: OnceLock::new(),
                        });
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    warn(malformed(dwarf, error, Structure::UnitHeaders));
                    break;
                }
            }
        }
        index.work.check_abbreviations(dwarf);
        if index.work.problem().is_some() {
            index.entries.clear();
        }
        index
    }

    /// Reads the headers of all units, and their address ranges in `.debug_aranges`. If a unit has none there, its
    /// ranges are read from the unit. Calls `warn` with each error.
    pub(super) fn build(dwarf: &'c Dwarf<Slice<'a>>, warn: &mut dyn FnMut(Error)) -> Self {
        let mut index = Self::without_ranges(dwarf, warn);
        let mut spans = Spans::default();
        let known = index.read_aranges(&mut spans, warn);
        let of_units: Vec<_> = (0..index.entries.len())
            .into_par_iter()
            .filter(|unit| !known.contains(unit))
            .map(|unit| (unit, index.ranges_of(unit)))
            .collect();
        for (unit, (ranges, error)) in of_units {
            for (low, high) in ranges {
                spans.add(low, high, unit);
            }
            if let Some(error) = error {
                warn(malformed(dwarf, error, index.name(unit)));
            }
        }
        index.ranges = spans.flatten();
        index
    }

    /// Adds the ranges in `.debug_aranges` to `spans`. Returns the indexes of the units that have ranges in
    /// `.debug_aranges`.
    fn read_aranges(&self, spans: &mut Spans, warn: &mut dyn FnMut(Error)) -> FxHashSet<usize> {
        let by_offset: FxHashMap<usize, usize> = self
            .entries
            .iter()
            .enumerate()
            .map(|(unit, entry)| (entry.offset, unit))
            .collect();
        let mut known = FxHashSet::default();
        let mut read = || -> gimli::Result<()> {
            let mut headers = self.dwarf.debug_aranges.headers();
            while let Some(header) = headers.next()? {
                let unit = by_offset.get(&header.debug_info_offset().0);
                let mut entries = header.entries();
                while let (Some(&unit), Some(entry)) = (unit, entries.next()?) {
                    let range = entry.range();
                    spans.add(range.begin, range.end, unit);
                }
                known.extend(unit);
            }
            Ok(())
        };
        if let Err(error) = read() {
            warn(malformed(
                self.dwarf,
                error,
                Structure::NamedSection(".debug_aranges".into()),
            ));
        }
        known
    }

    fn ranges_of(&self, unit: usize) -> (Vec<(u64, u64)>, Option<gimli::Error>) {
        let mut ranges = Vec::new();
        let mut read = || -> gimli::Result<()> {
            let unit = self.unit(unit)?;
            let mut entries = unit.entries();
            entries.next_dfs()?;
            let root = entries.current().ok_or(gimli::Error::MissingUnitDie)?;
            let mut of_unit = ranges_of(self.dwarf, unit, root)?;
            while let Some(range) = of_unit.next()? {
                self.work.take(RANGE)?;
                ranges.push((range.begin, range.end));
            }
            Ok(())
        };
        let error = read().err();
        (ranges, error)
    }

    /// Returns the number of units.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the unit with this index.
    pub(super) fn unit(&self, unit: usize) -> gimli::Result<&Unit<Slice<'a>>> {
        let entry = self
            .entries
            .get(unit)
            .ok_or(gimli::Error::OffsetOutOfBounds(unit as u64))?;
        entry
            .unit
            .get_or_init(|| {
                let unit = self.dwarf.unit(entry.header)?;
                let header = unit.line_program.as_ref().map(|program| program.header());
                let files = header.map_or(0, |header| {
                    header.file_names().len() + header.include_directories().len()
                });
                self.work.take(files.saturating_mul(FILE))?;
                Ok(unit)
            })
            .as_ref()
            .map_err(|error| *error)
    }

    /// Returns the index of the unit that contains this offset of `.debug_info`; `None` if the offset is before the
    /// first unit.
    pub(super) fn unit_at(&self, offset: usize) -> Option<usize> {
        self.entries
            .partition_point(|entry| entry.offset <= offset)
            .checked_sub(1)
    }

    /// Returns the name of a unit for messages.
    pub(super) fn name(&self, unit: usize) -> String {
        format!(
            "unit at {:#x} of .debug_info",
            self.entries.get(unit).map_or(0, |entry| entry.offset)
        )
    }

    /// Assigns addresses to their units. `order` contains the indices of the addresses, sorted by address. Returns a
    /// job for each unit with addresses, and the indices of the addresses that are in no unit.
    pub(super) fn assign(&self, addresses: &[u64], order: &[u32]) -> (Vec<Job>, Vec<u32>) {
        let mut of_units: Vec<Vec<u32>> = vec![Vec::new(); self.entries.len()];
        let mut rest = Vec::new();
        let mut ranges = self.ranges.iter().copied().peekable();
        for &index in order {
            let Some(&address) = addresses.get(index as usize) else {
                continue;
            };
            while ranges.next_if(|range| range.high <= address).is_some() {}
            let unit = ranges.peek().filter(|range| range.low <= address);
            match unit.and_then(|range| of_units.get_mut(range.unit as usize)) {
                Some(of_unit) => of_unit.push(index),
                None => rest.push(index),
            }
        }
        let jobs = of_units
            .into_iter()
            .enumerate()
            .filter(|(_, addresses)| !addresses.is_empty());
        (
            jobs.map(|(unit, addresses)| Job { unit, addresses })
                .collect(),
            rest,
        )
    }
}

/// The address ranges of units in the order in which they were read. They may overlap. Each range is stored as two
/// elements: its first address, and the address after it. Each element also has the index of the unit.
#[derive(Default)]
struct Spans {
    ends: Vec<(u64, u32, bool)>,
}

impl Spans {
    fn add(&mut self, low: u64, high: u64, unit: usize) {
        if let (true, Ok(unit)) = (low < high, u32::try_from(unit)) {
            self.ends.push((low, unit, true));
            self.ends.push((high, unit, false));
        }
    }

    /// Converts the ranges to ranges without overlaps. If several units cover an address, the address is assigned to
    /// one of them: to the unit of the preceding range if that unit covers the address, otherwise to the first of these
    /// units in the section (as in LLVM's `DWARFDebugAranges::construct`).
    fn flatten(mut self) -> Vec<UnitRange> {
        self.ends.sort_by_key(|(address, ..)| *address);
        let mut open: BTreeMap<u32, usize> = BTreeMap::new();
        let mut ranges: Vec<UnitRange> = Vec::new();
        let mut before = 0;
        for (address, unit, begins) in self.ends {
            if before < address
                && let Some((&first, _)) = open.first_key_value()
            {
                match ranges.last_mut() {
                    Some(last) if last.high == before && open.contains_key(&last.unit) => {
                        last.high = address
                    }
                    _ => ranges.push(UnitRange {
                        low: before,
                        high: address,
                        unit: first,
                    }),
                }
            }
            let count = open.entry(unit).or_default();
            if begins {
                *count += 1;
            } else {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    open.remove(&unit);
                }
            }
            before = address;
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flatten(ranges: &[(u64, u64, usize)]) -> Vec<(u64, u64, u32)> {
        let mut spans = Spans::default();
        for &(low, high, unit) in ranges {
            spans.add(low, high, unit);
        }
        spans
            .flatten()
            .into_iter()
            .map(|range| (range.low, range.high, range.unit))
            .collect()
    }

    #[test]
    fn overlapping_units_keep_the_range_that_was_open() {
        assert_eq!(
            flatten(&[(10, 20, 0), (20, 30, 1)]),
            [(10, 20, 0), (20, 30, 1)]
        );
        assert_eq!(
            flatten(&[(10, 30, 1), (20, 40, 0)]),
            [(10, 30, 1), (30, 40, 0)]
        );
        assert_eq!(
            flatten(&[(10, 20, 1), (10, 15, 0)]),
            [(10, 15, 0), (15, 20, 1)]
        );
        assert_eq!(flatten(&[(5, 5, 0), (9, 3, 1)]), []);
    }
}
