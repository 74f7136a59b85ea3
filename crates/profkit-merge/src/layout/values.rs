//! Decodes the value data of raw profiles that have a known layout, and adds them up.
use super::same::mask;
use super::{Layout, Slide};
use crate::Weight;
use crate::accumulate::{Scratch, SiteRule, merge_kind, scale_values};
use profkit_abi::value_kind;
use profkit_data::bytes::Cursor;
use profkit_data::instr::raw::RawProfile;
use profkit_data::instr::{KindValues, ValueData, value_data};

/// Sums of value data, with one entry for each record that has value sites. Empty before the first profile.
#[derive(Debug, Default)]
pub(super) struct ValueSums {
    sums: Vec<ValueData>,
    /// The addresses in the last profile, each with its name hash, for each record in the order of its values. Runs
    /// mostly have the same call targets, so most addresses of the next profile are found here.
    resolved: Vec<Vec<Resolved>>,
    places: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct Resolved {
    kind: u32,
    address: u64,
    name_hash: u64,
}

impl ValueSums {
    pub(super) fn records(&self) -> &[ValueData] {
        &self.sums
    }

    /// Decodes the value data into `staged`, one entry for each record with sites, addresses replaced by name hashes.
    /// Returns the bitwise OR of all counts; `None` if the data are damaged or do not fit the earlier profiles.
    pub(super) fn stage(
        &mut self,
        layout: &Layout,
        profile: &RawProfile<'_>,
        slide: Slide,
        staged: &mut Vec<ValueData>,
    ) -> Option<u64> {
        let section = &profile.sections().value_data;
        let mut cursor = Cursor::new(section.bytes, section.offset, profile.dialect().endian);
        staged.resize_with(layout.with_values.len(), ValueData::default);
        self.resolved.resize_with(staged.len(), Vec::new);
        let mask = mask(profile.dialect().width.bytes());
        let mut bits = 0;
        for (values, resolved) in staged.iter_mut().zip(&mut self.resolved) {
            value_data::decode(&mut cursor, values).ok()?;
            let mut place = 0;
            for (kind, sites) in values.kinds_mut() {
                for entry in sites.entries_mut() {
                    bits |= entry.count;
                    if kind != value_kind::MEM_OP_SIZE {
                        // The value has more bits than an address. Read record by record, it has no target either.
                        if entry.value & !mask != 0 {
                            return None;
                        }
                        let address = entry.value.wrapping_sub(slide.0) & mask;
                        entry.value = resolve(layout, kind, address, place, resolved);
                        place += 1;
                    }
                }
            }
        }
        let padding = cursor.rest().iter().all(|&byte| byte == 0);
        (padding && self.fits(staged)).then_some(bits)
    }

    pub(super) fn fits(&self, staged: &[ValueData]) -> bool {
        let mut pairs = self.sums.iter().zip(staged);
        self.sums.is_empty()
            || pairs.all(|(mine, theirs)| {
                let mut kinds = mine.kinds().zip(theirs.kinds());
                kinds.all(|((_, mine), (_, theirs))| mine.site_count() == theirs.site_count())
            })
    }

    pub(super) fn absorb(&mut self, other: &ValueSums, scratch: &mut Scratch) {
        if self.sums.is_empty() {
            self.sums.clone_from(&other.sums);
            return;
        }
        for (mine, theirs) in self.sums.iter_mut().zip(&other.sums) {
            for ((_, mine), (_, theirs)) in mine.kinds_mut().zip(theirs.kinds()) {
                merge_kind(mine, theirs, Weight::ONE, SiteRule::Canonical, scratch);
            }
        }
    }

    /// `profiles` is the number of profiles that were added before.
    pub(super) fn add(
        &mut self,
        staged: &[ValueData],
        weight: Weight,
        rule: SiteRule,
        profiles: u64,
        scratch: &mut Scratch,
    ) {
        if profiles == 0 {
            self.sums.clear();
            self.sums.extend_from_slice(staged);
            if !weight.is_one() {
                for values in &mut self.sums {
                    scale_values(values, weight);
                }
            }
            return;
        }
        self.places.resize_with(staged.len(), Vec::new);
        let records = self.sums.iter_mut().zip(staged).zip(&mut self.places);
        for ((mine, theirs), places) in records {
            let mut before = 0;
            for ((_, mine), (_, theirs)) in mine.kinds_mut().zip(theirs.kinds()) {
                let count = theirs.entries().len();
                places.resize(places.len().max(before + count), 0);
                let places = places.get_mut(before..before + count).unwrap_or_default();
                before += count;
                // The values of the first profile keep their order; `merge_kind` sorts them with the second.
                if profiles == 1 || !add_in_place(mine, theirs, weight, places) {
                    merge_kind(mine, theirs, weight, rule, scratch);
                }
            }
        }
    }
}

#[inline]
fn resolve(
    layout: &Layout,
    kind: u32,
    address: u64,
    place: usize,
    resolved: &mut Vec<Resolved>,
) -> u64 {
    if let Some(last) = resolved.get(place)
        && (last.kind, last.address) == (kind, address)
    {
        return last.name_hash;
    }
    let name_hash = match kind {
        value_kind::VTABLE_TARGET => layout.addresses.vtable(address).0,
        _ => layout.addresses.function(address).0,
    };
    let new = Resolved {
        kind,
        address,
        name_hash,
    };
    match resolved.get_mut(place) {
        Some(last) => *last = new,
        None => resolved.push(new),
    }
    name_hash
}

/// Adds the counts of values that the sums have. `places` has, for each value of the last profile, where its count is
/// in `mine`; it is looked for there first. Returns `false` and changes nothing if a value is new to its site or occurs
/// twice, or if a site has more than 64 values: then [`merge_kind`] must add them. The caller keeps the sums from
/// overflowing.
fn add_in_place(
    mine: &mut KindValues,
    theirs: &KindValues,
    weight: Weight,
    places: &mut [u32],
) -> bool {
    let sums = mine.entries();
    let mut entries = theirs.entries().iter().zip(&mut *places);
    let mut start = 0;
    for (mine, theirs) in mine.sites().zip(theirs.sites()) {
        if mine.len() > u64::BITS as usize {
            return false;
        }
        let mut taken = 0u64;
        for _ in 0..theirs.len() {
            let Some((entry, place)) = entries.next() else {
                return false;
            };
            let is_there = |index: &usize| {
                sums.get(start + index)
                    .is_some_and(|sum| sum.value == entry.value)
            };
            // Of several entries with this value, the first has the largest count, also after the addition.
            let last = (*place as usize).checked_sub(start);
            let last =
                last.filter(|&index| index < mine.len() && (index == 0 || !is_there(&(index - 1))));
            let Some(index) = last
                .filter(is_there)
                .or_else(|| (0..mine.len()).find(is_there))
            else {
                return false;
            };
            if taken & 1 << index != 0 {
                return false;
            }
            taken |= 1 << index;
            *place = u32::try_from(start + index).unwrap_or(u32::MAX);
        }
        start += mine.len();
    }
    let sums = mine.entries_mut();
    for (entry, &place) in theirs.entries().iter().zip(&*places) {
        if let Some(sum) = sums.get_mut(place as usize) {
            sum.count = sum.count.saturating_add(weight.apply(entry.count).0);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::instr::ValueEntry;

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

    #[test]
    fn adding_in_place_is_merging_or_nothing() {
        let sums = kind(&[&[(0, 9), (0, 3), (7, 2)], &[], &[(5, 1)]]);
        let weight = Weight::integer(3);
        let same = kind(&[&[(7, 1), (0, 2)], &[], &[(5, 4)]]);
        for rule in [SiteRule::Canonical, SiteRule::Llvm] {
            let mut merged = sums.clone();
            let mut added;
            merge_kind(&mut merged, &same, weight, rule, &mut Scratch::default());
            for mut places in [[0; 3], [1, 0, 3], [9, 2, 2], [u32::MAX; 3]] {
                added = sums.clone();
                assert!(add_in_place(&mut added, &same, weight, &mut places));
                assert_eq!(added, merged);
                assert_eq!(places, [2, 0, 3]);
            }
        }
        for other in [
            kind(&[&[(8, 1)], &[], &[(5, 4)]]),
            kind(&[&[(0, 1), (0, 2)], &[], &[(5, 4)]]),
            kind(&[&[], &[(5, 1)], &[]]),
        ] {
            let mut untouched = sums.clone();
            assert!(!add_in_place(&mut untouched, &other, weight, &mut [1; 4]));
            assert_eq!(untouched, sums);
        }
    }
}
