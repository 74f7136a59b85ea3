//! Splits overlapping ranges into ranges that do not overlap.
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Boundary {
    begins: Option<u64>,
    ends: Option<u64>,
    zero_begins: bool,
    zero_ends: bool,
}

/// Splits ranges (first, last, count) so that none overlap, and adds counts where they did. Addresses that only ranges
/// with count 0 cover get 0. Sorted by address.
pub fn disjoint(ranges: &BTreeMap<(u64, u64), u64>) -> Vec<(u64, u64, u64)> {
    let mut boundaries: BTreeMap<u64, Boundary> = BTreeMap::new();
    for (&(first, last), &count) in ranges {
        let zero = count == 0;
        let begin = boundaries.entry(first).or_default();
        begin.begins = Some(begin.begins.unwrap_or(0).saturating_add(count));
        begin.zero_begins |= zero;
        let end = boundaries.entry(last).or_default();
        end.ends = Some(end.ends.unwrap_or(0).saturating_add(count));
        end.zero_ends |= zero;
    }
    let mut list = Vec::new();
    // The first address of the next range of the result; `None` outside of all ranges.
    let mut open = None;
    let mut count = 0u64;
    let mut zeros = 0i64;
    for (&address, boundary) in &boundaries {
        if let Some(begins) = boundary.begins {
            if let Some(first) = open
                && address > first
            {
                list.push((first, address - 1, count));
            }
            count = count.saturating_add(begins);
            zeros += i64::from(boundary.zero_begins);
            open = Some(address);
        }
        if let Some(ends) = boundary.ends {
            if let Some(first) = open {
                list.push((first, address, count));
            }
            count = count.saturating_sub(ends);
            zeros -= i64::from(boundary.zero_ends);
            open = address.checked_add(1).filter(|_| count > 0 || zeros != 0);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ranges: &[(u64, u64, u64)]) -> Vec<(u64, u64, u64)> {
        let ranges = ranges.iter().map(|&(first, last, n)| ((first, last), n));
        disjoint(&ranges.collect())
    }

    #[test]
    fn overlapping_ranges_are_split() {
        assert_eq!(of(&[(1, 5, 100), (1, 9, 200)]), [(1, 5, 300), (6, 9, 200)]);
        assert_eq!(
            of(&[(1, 5, 100), (5, 9, 200)]),
            [(1, 4, 100), (5, 5, 300), (6, 9, 200)]
        );
        assert_eq!(of(&[(1, 2, 3), (8, 9, 4)]), [(1, 2, 3), (8, 9, 4)]);
    }

    #[test]
    fn zeros_fill_the_gaps() {
        assert_eq!(
            of(&[(0, 20, 0), (2, 5, 10), (9, 12, 7)]),
            [(0, 1, 0), (2, 5, 10), (6, 8, 0), (9, 12, 7), (13, 20, 0)]
        );
    }
}
