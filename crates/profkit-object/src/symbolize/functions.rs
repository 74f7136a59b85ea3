//! Reads the functions of a compile unit that have code, including inlined ones, and finds the function at an address.
use super::Slice;
use super::lines::narrow;
use super::names::Own;
use super::table::NONE;
use super::work::{RANGE, Work};
use gimli::{
    Abbreviation, AttributeValue, Dwarf, EntriesRaw, Section, Unit, UnitOffset, constants as dw,
};
use std::collections::BTreeMap;

/// The largest number of address ranges of a compile unit, per byte of its entries and range lists. Every range needs
/// some of these bytes. Entries that share a range list would be an exception, but compilers do not write such entries.
const RANGES_PER_BYTE: usize = 1;

/// A function that has code, or an inlined copy of a function.
#[derive(Clone, Debug)]
pub(super) struct Function<'a> {
    pub(super) own: Own<'a>,
    /// The index of the function into which this function is inlined; `NONE` if it is not inlined.
    pub(super) parent: u32,
    pub(super) call_file: u64,
    pub(super) call_line: u32,
    pub(super) call_column: u32,
    pub(super) call_discriminator: u32,
}

pub(super) struct Functions<'a> {
    pub(super) list: Vec<Function<'a>>,
    /// The address ranges: first address, address after the range, index of the function. While entries are read, this
    /// list has the ranges of every function, in the order of the entries, and ranges may overlap. Afterwards the
    /// ranges are sorted by address and do not overlap; each belongs to the innermost function at its addresses.
    ranges: Vec<(u64, u64, u32)>,
    pub(super) error: Option<gimli::Error>,
    /// Whether the limit for the number of ranges was reached.
    pub(super) too_many_ranges: bool,
}

/// An enclosing function: its entry contains the current entry.
struct Open {
    depth: isize,
    offset: UnitOffset,
    inlined: bool,
    /// The index of the function in the list; `None` if it is not in the list. A function without code is in the list
    /// only if it contains an inlined function that has code.
    number: Option<u32>,
}

/// The attributes of an entry that contain the addresses of its code.
#[derive(Default)]
struct Code<'a> {
    low: Option<u64>,
    high: Option<AttributeValue<Slice<'a>>>,
    ranges: Option<AttributeValue<Slice<'a>>>,
}

impl<'a> Functions<'a> {
    /// Reads all entries of the compile unit. If an entry is damaged, the functions before it are kept.
    pub(super) fn read(dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>, work: &Work) -> Self {
        let mut functions = Functions {
            list: Vec::new(),
            ranges: Vec::new(),
            error: None,
            too_many_ranges: false,
        };
        functions.error = functions.walk(dwarf, unit, work).err();
        functions.ranges = innermost(&functions.ranges);
        functions
    }

    fn walk(
        &mut self,
        dwarf: &Dwarf<Slice<'a>>,
        unit: &Unit<Slice<'a>>,
        work: &Work,
    ) -> gimli::Result<()> {
        let mut budget = most_ranges(dwarf, unit);
        let mut open: Vec<Open> = Vec::new();
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let offset = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            while open.pop_if(|open| open.depth >= depth).is_some() {}
            let inlined = match abbreviation.tag() {
                dw::DW_TAG_subprogram => false,
                dw::DW_TAG_inlined_subroutine => true,
                _ => {
                    entries.skip_attributes(abbreviation.attributes())?;
                    continue;
                }
            };
            let mut number = None;
            if has_code(abbreviation) {
                let (mut function, code) = read_function(dwarf, unit, &mut entries, abbreviation)?;
                function.parent = if inlined {
                    self.parent(dwarf, unit, &mut open)?
                } else {
                    NONE
                };
                number = self.push(function);
                if let Some(number) = number {
                    let before = self.ranges.len();
                    self.add_ranges(dwarf, unit, &code, number, &mut budget)?;
                    let added = self.ranges.len() - before;
                    work.take(added.saturating_mul(RANGE))?;
                }
            } else {
                entries.skip_attributes(abbreviation.attributes())?;
            }
            if abbreviation.has_children() {
                open.push(Open {
                    depth,
                    offset,
                    inlined,
                    number,
                });
            }
        }
        Ok(())
    }

    fn push(&mut self, function: Function<'a>) -> Option<u32> {
        let number = u32::try_from(self.list.len())
            .ok()
            .filter(|&number| number != NONE)?;
        self.list.push(function);
        Some(number)
    }

    /// Returns the index of the innermost enclosing function. Enclosing functions that are not in the list yet, because
    /// they have no code, are added to it.
    fn parent(
        &mut self,
        dwarf: &Dwarf<Slice<'a>>,
        unit: &Unit<Slice<'a>>,
        open: &mut [Open],
    ) -> gimli::Result<u32> {
        let listed = open
            .iter()
            .rposition(|open| open.number.is_some() || !open.inlined)
            .unwrap_or(0);
        let mut parent = NONE;
        for open in open.iter_mut().skip(listed) {
            if open.number.is_none() {
                let mut entries = unit.entries_raw(Some(open.offset))?;
                if let Some(abbreviation) = entries.read_abbreviation()? {
                    let (mut function, _) = read_function(dwarf, unit, &mut entries, abbreviation)?;
                    function.parent = if open.inlined { parent } else { NONE };
                    open.number = self.push(function);
                }
            }
            parent = open.number.unwrap_or(NONE);
        }
        Ok(parent)
    }

    fn add_ranges(
        &mut self,
        dwarf: &Dwarf<Slice<'a>>,
        unit: &Unit<Slice<'a>>,
        code: &Code<'a>,
        number: u32,
        budget: &mut usize,
    ) -> gimli::Result<()> {
        if let (Some(low), Some(high)) = (code.low, code.high) {
            let high = match dwarf.attr_address(unit, high)? {
                Some(high) => Some(high),
                None => high.udata_value().and_then(|size| low.checked_add(size)),
            };
            if let Some(high) = high.filter(|_| !unit.header.is_tombstone_address(low)) {
                self.add_range(low, high, number);
            }
        } else if let Some(ranges) = code.ranges
            && let Some(mut ranges) = dwarf.attr_ranges(unit, ranges)?
        {
            while let Some(range) = ranges.next()? {
                let Some(left) = budget.checked_sub(1) else {
                    self.too_many_ranges = true;
                    return Ok(());
                };
                *budget = left;
                self.add_range(range.begin, range.end, number);
            }
        }
        Ok(())
    }

    fn add_range(&mut self, low: u64, high: u64, number: u32) {
        if low < high {
            self.ranges.push((low, high, number));
        }
    }

    /// Returns the ranges sorted by address. Each consists of its first address, the address after the range, and the
    /// index of the innermost function.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64, u32)> {
        self.ranges.iter().copied()
    }
}

/// A range of a function: first address, address after the range, index of the function, and position of the range in
/// the order of the debug info's entries.
type InOrder = (u64, u64, u32, u32);

/// Converts the ranges of all functions to ranges in which each address has the innermost function. `ranges` must be in
/// the order of the functions' entries. The result is sorted by address.
fn innermost(ranges: &[(u64, u64, u32)]) -> Vec<(u64, u64, u32)> {
    let numbered = ranges.iter().zip(0u32..);
    let mut sorted: Vec<InOrder> = numbered
        .map(|(&(low, high, number), order)| (low, high, number, order))
        .collect();
    // Ranges with equal starts stay in the order of the entries: callers before the functions inlined into them.
    sorted.sort_by_key(|(low, ..)| *low);
    let mut list = Vec::with_capacity(sorted.len());
    let mut rest = sorted.as_mut_slice();
    while let Some(&(_, mut end, ..)) = rest.first() {
        // A group of ranges: the first one, and the following ones as long as they overlap the group.
        let len = rest.iter().take_while(|(low, high, ..)| {
            let inside = *low < end;
            end = end.max(if inside { *high } else { 0 });
            inside
        });
        let len = len.count();
        let (together, after) = rest.split_at_mut(len);
        let before = list.len();
        if !nested(together, &mut list) {
            list.truncate(before);
            together.sort_unstable_by_key(|(.., order)| *order);
            list.extend(replaced(together));
        }
        rest = after;
    }
    list
}

/// Does the work of [`innermost`] for a group of ranges that are sorted by address, if they are nested as usual: of two
/// ranges that overlap, the one with the later entry lies inside the other. Returns false if two ranges overlap in a
/// different way.
fn nested(sorted: &[InOrder], list: &mut Vec<(u64, u64, u32)>) -> bool {
    let mut open: Vec<InOrder> = Vec::new();
    // The address up to which the list is complete.
    let mut done = 0;
    let close = |open: &mut Vec<InOrder>, list: &mut Vec<_>, until: u64, done: &mut u64| {
        while let Some((_, high, number, _)) = open.pop_if(|(_, high, ..)| *high <= until) {
            if *done < high {
                list.push((*done, high, number));
                *done = high;
            }
        }
    };
    for &range in sorted {
        let (low, high, _, order) = range;
        close(&mut open, list, low, &mut done);
        if let Some(&(_, outer_high, outer, outer_order)) = open.last() {
            if high > outer_high || order < outer_order {
                return false;
            }
            if done < low {
                list.push((done, low, outer));
            }
        }
        done = low;
        open.push(range);
    }
    close(&mut open, list, u64::MAX, &mut done);
    true
}

/// Does the work of [`innermost`] for any group of ranges, in the order of their entries. Each range replaces earlier
/// ranges where it overlaps them. If ranges overlap only in part, the result is that of LLVM (`updateAddressDieMap`).
fn replaced(ranges: &[InOrder]) -> Vec<(u64, u64, u32)> {
    let mut map: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
    for &(low, high, number, _) in ranges {
        if let Some((&before, &(end, outer))) = map.range(..=low).next_back()
            && low < end
        {
            if high < end {
                map.insert(high, (end, outer));
            }
            if before < low {
                map.insert(before, (low, outer));
            }
        }
        map.insert(low, (high, number));
    }
    let list = map.into_iter();
    list.map(|(low, (high, number))| (low, high, number))
        .collect()
}

/// Returns the largest number of address ranges that are read from one compile unit.
pub(super) fn most_ranges<'a>(dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>) -> usize {
    unit.header
        .length_including_self()
        .saturating_add(dwarf.ranges.debug_ranges().reader().len())
        .saturating_add(dwarf.ranges.debug_rnglists().reader().len())
        .saturating_mul(RANGES_PER_BYTE)
}

/// Whether entries with this abbreviation may have attributes with addresses.
pub(super) fn has_code(abbreviation: &Abbreviation) -> bool {
    abbreviation
        .attributes()
        .iter()
        .any(|spec| matches!(spec.name(), dw::DW_AT_low_pc | dw::DW_AT_ranges))
}

fn read_function<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &Unit<Slice<'a>>,
    entries: &mut EntriesRaw<'_, Slice<'a>>,
    abbreviation: &Abbreviation,
) -> gimli::Result<(Function<'a>, Code<'a>)> {
    let mut function = Function {
        own: Own::default(),
        parent: NONE,
        call_file: 0,
        call_line: 0,
        call_column: 0,
        call_discriminator: 0,
    };
    let mut code = Code::default();
    for &spec in abbreviation.attributes() {
        let attribute = entries.read_attribute_inline(spec)?;
        let number = || attribute.value().udata_value().unwrap_or(0);
        match spec.name() {
            dw::DW_AT_low_pc => code.low = dwarf.attr_address(unit, attribute.value())?,
            dw::DW_AT_high_pc => code.high = Some(attribute.value()),
            dw::DW_AT_ranges => code.ranges = Some(attribute.value()),
            dw::DW_AT_call_file => {
                function.call_file = match attribute.value() {
                    AttributeValue::FileIndex(file) => file,
                    _ => number(),
                }
            }
            dw::DW_AT_call_line => function.call_line = narrow(number()),
            dw::DW_AT_call_column => function.call_column = narrow(number()),
            dw::DW_AT_GNU_discriminator => function.call_discriminator = narrow(number()),
            name => function.own.take(name, attribute.value()),
        }
    }
    Ok((function, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the innermost function at an address. `list` is sorted by address, without overlaps, like the result of
    /// [`innermost`].
    fn found(list: &[(u64, u64, u32)], address: u64) -> Option<u32> {
        let mut ranges = list.iter();
        let range = ranges.find(|(_, high, _)| address < *high)?;
        (range.0 <= address).then_some(range.2)
    }

    #[test]
    fn innermost_ranges_are_those_of_replacing_one_after_the_other() {
        // All ranges within seven addresses. Every combination of three of them is tried.
        let all: Vec<(u64, u64)> = (0..7)
            .flat_map(|low| (low + 1..=7).map(move |high| (low, high)))
            .collect();
        let mut fast = 0;
        for &(a, b) in &all {
            for &(c, d) in &all {
                for &(e, f) in &all {
                    let ranges = [(a, b, 0), (c, d, 1), (e, f, 2)];
                    let in_order = [(a, b, 0, 0), (c, d, 1, 1), (e, f, 2, 2)];
                    let (list, slow) = (innermost(&ranges), replaced(&in_order));
                    let mut sorted = in_order;
                    sorted.sort_by_key(|(low, ..)| *low);
                    fast += usize::from(nested(&sorted, &mut Vec::new()));
                    for address in 0..8 {
                        assert_eq!(found(&list, address), found(&slow, address), "{ranges:?}");
                    }
                }
            }
        }
        assert!(fast > 1000, "{fast}");
    }

    #[test]
    fn ranges_that_overlap_in_part_are_replaced_as_in_llvm() {
        assert!(!nested(&[(0, 10, 0, 0), (5, 15, 1, 1)], &mut Vec::new()));
        assert_eq!(
            innermost(&[(0, 10, 0), (5, 15, 1), (20, 30, 2), (22, 24, 3)]),
            [(0, 5, 0), (5, 15, 1), (20, 22, 2), (22, 24, 3), (24, 30, 2)]
        );
        assert_eq!(innermost(&[(5, 8, 0), (0, 10, 1)]), [(0, 10, 1), (5, 8, 0)]);
    }
}
