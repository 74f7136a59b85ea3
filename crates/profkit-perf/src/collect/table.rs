//! Tables of counts. Their keys are places in a binary (offsets or addresses), two or three together. Most of the time of
//! collecting samples is spent with adding to these counts.
use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;

/// The packed form of `u64::MAX`, which stands for a place outside of the binary. It is the largest signed number of 32
/// bits. A real place with this value is treated as if it did not fit into 32 bits.
const PACKED: u64 = (1 << 31) - 1;

/// Packs a pair of places into one key. Places are offsets in files or addresses of the kernel, and nearly all of them
/// fit into 32 bits with sign. A place outside of the binary becomes [`PACKED`]. `None` if one of the two places does
/// not fit.
fn pack(from: u64, to: u64) -> Option<u64> {
    Some(half(from)? << 32 | half(to)?)
}

fn half(place: u64) -> Option<u64> {
    if place == u64::MAX {
        return Some(PACKED);
    }
    let fits = place.wrapping_add(1 << 31) < (1 << 31) + PACKED;
    fits.then_some(place & 0xffff_ffff)
}

fn unpack(key: u64) -> (u64, u64) {
    let place = |half: u64| {
        if half == PACKED {
            return u64::MAX;
        }
        // Extends the sign of the 32 bits to the upper half.
        (half ^ 1 << 31).wrapping_sub(1 << 31)
    };
    (place(key >> 32), place(key & 0xffff_ffff))
}

/// Returns a random number that stays the same during a run of the program. Because of it, nobody can write a recording
/// whose keys all fall into the same slot.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().hash_one(0u64) | 1)
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot<K> {
    key: K,
    /// The count of the key; 0 marks a free slot.
    count: u64,
}

/// A key of a table.
trait Key: Copy + PartialEq + Default {
    fn mix(self, seed: u64) -> u64;
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "both halves of the product are wanted"
)]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

impl Key for u64 {
    #[inline]
    fn mix(self, seed: u64) -> u64 {
        folded(self ^ seed, 0x9e37_79b9_7f4a_7c15 ^ seed.rotate_left(32))
    }
}

impl Key for (u64, u64) {
    fn mix(self, seed: u64) -> u64 {
        (self.0.mix(seed) ^ self.1).mix(seed)
    }
}

impl Key for (u64, u64, u64) {
    fn mix(self, seed: u64) -> u64 {
        ((self.0, self.1).mix(seed) ^ self.2).mix(seed)
    }
}

/// A hash table with open addressing. Its values are counts.
#[derive(Clone, Debug)]
struct Slots<K> {
    slots: Vec<Slot<K>>,
    used: usize,
    seed: u64,
}

impl<K> Default for Slots<K> {
    fn default() -> Self {
        Slots {
            slots: Vec::new(),
            used: 0,
            seed: seed(),
        }
    }
}

impl<K: Key> Slots<K> {
    #[inline]
    fn add(&mut self, key: K, count: u64) {
        if self.used * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let mask = self.slots.len().wrapping_sub(1);
        #[allow(clippy::cast_possible_truncation, reason = "the mask cuts it")]
        let mut at = key.mix(self.seed) as usize & mask;
        // There is always a free slot, because the table grows before it is full.
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.count == 0 {
                *slot = Slot { key, count };
                self.used += usize::from(count > 0);
                return;
            }
            if slot.key == key {
                slot.count = slot.count.saturating_add(count);
                return;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(4);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); len]);
        self.used = 0;
        for slot in old {
            if slot.count > 0 {
                self.add(slot.key, slot.count);
            }
        }
    }

    fn into_items(self) -> impl Iterator<Item = (K, u64)> {
        let items = self.slots.into_iter().filter(|slot| slot.count > 0);
        items.map(|slot| (slot.key, slot.count))
    }
}

/// Counts by pair of places.
#[derive(Clone, Debug, Default)]
pub struct PairCounts {
    packed: Slots<u64>,
    wide: Slots<(u64, u64)>,
}

impl PairCounts {
    /// Adds a count to a pair.
    #[inline]
    pub fn add(&mut self, from: u64, to: u64, count: u64) {
        match pack(from, to) {
            Some(key) => self.packed.add(key, count),
            None => self.wide.add((from, to), count),
        }
    }

    /// Adds the counts of another thread.
    pub fn join(&mut self, mut other: PairCounts) {
        if other.packed.used > self.packed.used {
            std::mem::swap(&mut self.packed, &mut other.packed);
        }
        for (key, count) in other.packed.into_items() {
            self.packed.add(key, count);
        }
        for (key, count) in other.wide.into_items() {
            self.wide.add(key, count);
        }
    }

    /// Returns the pairs in ascending order, each with its count.
    pub fn into_sorted(self) -> Vec<(u64, u64, u64)> {
        let mut list = Vec::with_capacity(self.packed.used + self.wide.used);
        list.extend(self.packed.into_items().map(|(key, count)| {
            let (from, to) = unpack(key);
            (from, to, count)
        }));
        let wide = self.wide.into_items();
        list.extend(wide.map(|((from, to), count)| (from, to, count)));
        list.sort_unstable();
        list
    }
}

/// Counts by three places.
#[derive(Clone, Debug, Default)]
pub struct TripleCounts(Slots<(u64, u64, u64)>);

impl TripleCounts {
    pub fn add(&mut self, places: (u64, u64, u64), count: u64) {
        self.0.add(places, count);
    }

    /// Adds the counts of another thread.
    pub fn join(&mut self, other: TripleCounts) {
        for (places, count) in other.0.into_items() {
            self.0.add(places, count);
        }
    }

    /// Returns the places in ascending order, each three with their count.
    pub fn into_sorted(self) -> Vec<((u64, u64, u64), u64)> {
        let mut list: Vec<_> = self.0.into_items().collect();
        list.sort_unstable();
        list
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use profkit_testkit::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn places_are_packed_and_unpacked() {
        let edge = 1u64 << 31;
        for place in [
            0,
            1,
            0x1234,
            edge - 2,
            u64::MAX,
            u64::MAX - 1,
            0u64.wrapping_sub(edge),
        ] {
            let key = pack(place, 7).expect("it fits");
            assert_eq!(unpack(key), (place, 7));
            assert_eq!(unpack(pack(7, place).expect("it fits")), (7, place));
        }
        for place in [edge - 1, edge, 1 << 40, 0u64.wrapping_sub(edge) - 1] {
            assert_eq!(pack(place, 7), None, "{place:#x}");
        }
    }

    #[test]
    fn counts_are_those_of_an_ordered_map() {
        let mut rng = Rng::new(7);
        let mut expected = BTreeMap::new();
        let mut tables = [PairCounts::default(), PairCounts::default()];
        for round in 0..20_000 {
            let mut place = || {
                let number = rng.below(60) as u64;
                match rng.below(8) {
                    0 => u64::MAX,
                    1 => 0u64.wrapping_sub(number),
                    2 => 1 << 40 | (number % 5),
                    _ => number,
                }
            };
            let (from, to) = (place(), place());
            let count = round as u64 % 3 + 1;
            *expected.entry((from, to)).or_insert(0) += count;
            tables[round % 2].add(from, to, count);
        }
        let [mut sum, other] = tables;
        sum.join(other);
        let expected: Vec<_> = expected.into_iter().map(|((a, b), n)| (a, b, n)).collect();
        assert_eq!(sum.into_sorted(), expected);
    }
}
