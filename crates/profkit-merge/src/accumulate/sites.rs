//! Merges value sites by adding the counts of equal values.
//!
//! A value site is a list of values with counts. A value may occur several times in one site, because raw files replace
//! every address outside the program by 0. A site that was read from only one input keeps its order. A merged site is
//! in *canonical* order: by value, then by falling count. At the end all sites are sorted by falling count, with equal
//! counts in their previous order (`InstrProfValueSiteRecord::sortByCount`), and cut to 255 values.
//!
//! If a value occurs several times in both sites, its largest count in one site is added to its largest count in the
//! other site, the second largest to the second largest, and so on. Sums of two falling lists fall again, so this
//! addition is associative and commutative. LLVM adds such counts in the order of the new site, so its result depends
//! on the order of inputs.
use crate::Weight;
use profkit_abi::value_kind::MAX_VALUES_PER_SITE;
use profkit_data::instr::{KindValues, ValueData, ValueEntry};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SiteRule {
    #[default]
    /// Of a value that an input has several times, the largest count is added to the largest in the sum, the second
    /// largest to the second, and so on. Every count is multiplied by the weight. Sites are cut to 255 values at the
    /// end.
    Canonical,
    /// As LLVM joins two writers (`InstrProfWriter`): as [`Canonical`](Self::Canonical), but sites are cut after each
    /// merge.
    LlvmJoin,
    /// `InstrProfValueSiteRecord::merge`: counts of equal values are added in the order of the new site. The weight
    /// applies only to values that the site has. The site is cut to 255 values after every merge.
    Llvm,
}

#[derive(Debug, Default)]
pub(crate) struct Scratch {
    site: Vec<ValueEntry>,
    merged: KindValues,
}

fn canonical_key(entry: &ValueEntry) -> (u64, std::cmp::Reverse<u64>) {
    (entry.value, std::cmp::Reverse(entry.count))
}

fn make_canonical(site: &mut [ValueEntry]) {
    if !site.is_sorted_by_key(canonical_key) {
        site.sort_unstable_by_key(canonical_key);
    }
}

/// Both have the same number of sites. Returns whether a count became the largest 64-bit number.
pub(crate) fn merge_kind(
    this: &mut KindValues,
    input: &KindValues,
    weight: Weight,
    rule: SiteRule,
    scratch: &mut Scratch,
) -> bool {
    this.sites_mut().for_each(make_canonical);
    if input.entries().is_empty() {
        return false;
    }
    let mut overflowed = false;
    let Scratch { site, merged } = scratch;
    merged.clear();
    for (mine, theirs) in this.sites().zip(input.sites()) {
        site.clear();
        site.extend_from_slice(theirs);
        match rule {
            SiteRule::Canonical | SiteRule::LlvmJoin => make_canonical(site),
            SiteRule::Llvm => site.sort_by_key(|entry| entry.value),
        }
        let mut mine = mine.iter().copied().peekable();
        for &ValueEntry { value, count } in &*site {
            while let Some(entry) = mine.next_if(|entry| entry.value < value) {
                merged.push_value(entry);
            }
            let (scaled, over) = weight.apply(count);
            let entry = match mine.next_if(|entry| entry.value == value) {
                Some(entry) => {
                    let (sum, carried) = entry.count.overflowing_add(scaled);
                    overflowed |= over | carried;
                    let count = if carried { u64::MAX } else { sum };
                    ValueEntry { value, count }
                }
                None if rule == SiteRule::Llvm => ValueEntry { value, count },
                None => {
                    overflowed |= over;
                    let count = scaled;
                    ValueEntry { value, count }
                }
            };
            merged.push_value(entry);
        }
        mine.for_each(|entry| merged.push_value(entry));
        merged.end_site();
    }
    std::mem::swap(this, merged);
    this.sites_mut().for_each(make_canonical);
    if rule != SiteRule::Canonical && this.sites().any(|site| site.len() > MAX_VALUES_PER_SITE) {
        finish_kind(this);
        this.sites_mut().for_each(make_canonical);
    }
    overflowed
}

/// Returns whether a count became the largest 64-bit number.
pub(crate) fn scale(values: &mut ValueData, weight: Weight) -> bool {
    let mut overflowed = false;
    for (_, kind) in values.kinds_mut() {
        for entry in kind.entries_mut() {
            let (count, over) = weight.apply(entry.count);
            entry.count = count;
            overflowed |= over;
        }
    }
    overflowed
}

pub(crate) fn is_long(values: &ValueData) -> bool {
    let mut kinds = values.kinds();
    kinds.any(|(_, kind)| kind.sites().any(|site| site.len() > MAX_VALUES_PER_SITE))
}

pub(crate) fn finish(values: &mut ValueData) {
    for (_, kind) in values.kinds_mut() {
        finish_kind(kind);
    }
}

fn finish_kind(kind: &mut KindValues) {
    for site in kind.sites_mut() {
        if !site.is_sorted_by(|a, b| a.count >= b.count) {
            site.sort_by_key(|entry| std::cmp::Reverse(entry.count));
        }
    }
    kind.truncate_sites(MAX_VALUES_PER_SITE);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(sites: &[&[(u64, u64)]]) -> KindValues {
        let mut kind = KindValues::default();
        for site in sites {
            kind.push_site(
                site.iter()
                    .map(|&(value, count)| ValueEntry { value, count }),
            );
        }
        kind
    }

    fn list(kind: &KindValues) -> Vec<Vec<(u64, u64)>> {
        let site = |site: &[ValueEntry]| site.iter().map(|e| (e.value, e.count)).collect();
        kind.sites().map(site).collect()
    }

    #[test]
    fn equal_values_are_added_largest_to_largest_or_as_llvm_does() {
        let input = kind(&[&[(0, 2), (0, 7)], &[(5, 1)]]);
        let merge = |rule| {
            let mut this = kind(&[&[(9, 1), (0, 3), (0, 5)], &[]]);
            let weight = Weight::integer(10);
            assert!(!merge_kind(
                &mut this,
                &input,
                weight,
                rule,
                &mut Scratch::default()
            ));
            list(&this)
        };
        assert_eq!(
            merge(SiteRule::Canonical),
            [vec![(0, 75), (0, 23), (9, 1)], vec![(5, 10)]]
        );
        assert_eq!(
            merge(SiteRule::Llvm),
            [vec![(0, 73), (0, 25), (9, 1)], vec![(5, 1)]]
        );
    }

    #[test]
    fn the_result_is_sorted_by_count_with_ties_in_order_and_cut() {
        let mut values = ValueData::default();
        let long: Vec<_> = (0..300).map(|value| (value, 1000 - value / 2)).collect();
        *values.kind_mut(0).unwrap() = kind(&[&[(7, 1), (3, 2), (5, 1)], &long]);
        finish(&mut values);
        let sites = list(values.kind(0).unwrap());
        assert_eq!(sites[0], [(3, 2), (7, 1), (5, 1)]);
        assert_eq!(sites[1], long[..255]);
    }

    #[test]
    fn a_sum_beyond_64_bits_stops_there_and_says_so() {
        let mut this = kind(&[&[(1, u64::MAX)]]);
        let input = kind(&[&[(1, 1)]]);
        let over = merge_kind(
            &mut this,
            &input,
            Weight::ONE,
            SiteRule::Canonical,
            &mut Scratch::default(),
        );
        assert!(over);
        assert_eq!(list(&this), [vec![(1, u64::MAX)]]);
    }
}
