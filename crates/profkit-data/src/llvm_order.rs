//! Computes the order in which LLVM writes function names, and the order in which LLVM writes the function hashes of
//! one name. LLVM keeps names and function hashes in hash maps, so the order depends on the hash function and the size
//! of the map.
use crate::releases::Release;
use twox_hash::XxHash3_64;

/// Sorts indices by the bytes of their names, as LLVM 17 and later sort.
///
/// Eight bytes are compared at a time. This is faster than comparing whole names, because mangled C++ names have long
/// common prefixes and each access to a name may be a cache miss. `tie` orders equal names, which occur in files whose
/// stored hashes are damaged.
pub(crate) fn sort_by_name<'n>(
    indices: &mut [u32],
    name: impl Fn(u32) -> &'n [u8],
    tie: impl Fn(u32) -> u64,
) {
    let mut keyed: Vec<Keyed> = indices
        .iter()
        .map(|&index| Keyed::new(index, name(index), 0))
        .collect();
    // Ranges of names whose first `depth` bytes are equal. Each range must still be sorted by the bytes after the first
    // `depth` bytes.
    let mut runs = vec![(0, keyed.len(), 0)];
    while let Some((start, end, depth)) = runs.pop() {
        let Some(run) = keyed.get_mut(start..end) else {
            continue;
        };
        if depth > 0 {
            if run.len() <= SMALL_RUN {
                let rest = |keyed: &Keyed| name(keyed.index).get(depth..).unwrap_or_default();
                run.sort_unstable_by(|one, two| {
                    let names = rest(one).cmp(rest(two));
                    names.then_with(|| tie(one.index).cmp(&tie(two.index)))
                });
                continue;
            }
            for keyed in &mut *run {
                *keyed = Keyed::new(keyed.index, name(keyed.index), depth);
            }
        }
        run.sort_unstable();
        let mut equal_start = start;
        for equal in run.chunk_by_mut(|one, two| (one.chunk, one.len) == (two.chunk, two.len)) {
            let ends = equal.first().is_none_or(|first| first.len <= CHUNK_LEN);
            if equal.len() > 1 && ends {
                equal.sort_unstable_by_key(|keyed| tie(keyed.index));
            } else if equal.len() > 1 {
                runs.push((
                    equal_start,
                    equal_start + equal.len(),
                    depth + CHUNK_LEN as usize,
                ));
            }
            equal_start += equal.len();
        }
    }
    for (index, keyed) in indices.iter_mut().zip(keyed) {
        *index = keyed.index;
    }
}

const SMALL_RUN: usize = 12;
/// The number of bytes of two names that are compared at a time.
const CHUNK_LEN: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Keyed {
    /// The next eight bytes of the name. If the name ends earlier, the bytes after its end are 0.
    chunk: u64,
    /// The number of remaining bytes of the name, or 9 if there are more than eight. If the next eight bytes of two
    /// names are equal, the shorter name comes first.
    len: u32,
    index: u32,
}

impl Keyed {
    fn new(index: u32, name: &[u8], depth: usize) -> Self {
        let rest = name.get(depth..).unwrap_or_default();
        let mut chunk = [0; CHUNK_LEN as usize];
        let len = rest.len().min(CHUNK_LEN as usize + 1);
        for (to, from) in chunk.iter_mut().zip(rest) {
            *to = *from;
        }
        Keyed {
            chunk: u64::from_be_bytes(chunk),
            len: u32::try_from(len).unwrap_or(CHUNK_LEN + 1),
            index,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameHash {
    /// Keys are hashed with Bernstein's hash and seed 0 (LLVM 16 and earlier).
    Bernstein,
    /// The hash of a key is the low half of its XXH3 (LLVM 17 and later).
    Xxh3,
}

impl NameHash {
    fn of(self, name: &[u8]) -> u32 {
        match self {
            NameHash::Bernstein => name.iter().fold(0u32, |hash, &byte| {
                hash.wrapping_mul(33).wrapping_add(u32::from(byte))
            }),
            NameHash::Xxh3 => low_half(XxHash3_64::oneshot(name)),
        }
    }
}

fn low_half(hash: u64) -> u32 {
    u32::try_from(hash & u64::from(u32::MAX)).unwrap_or(0)
}

/// Inserts names into a string set of LLVM 17 and later. Returns the indexes of the names in the order in which the set
/// iterates over them. No name may occur twice.
pub fn string_set_order<'n>(names: impl ExactSizeIterator<Item = &'n [u8]>) -> Vec<u32> {
    string_map_order(names, NameHash::Xxh3)
}

/// Inserts names into LLVM's `StringMap`. Returns the indexes of the names in the order in which the map iterates over
/// them.
///
/// The map (`StringMapImpl`) has 16 buckets at first. The number of buckets is doubled if more than three quarters of
/// them are full after an insertion. Probing is quadratic.
pub(crate) fn string_map_order<'n>(
    names: impl ExactSizeIterator<Item = &'n [u8]>,
    name_hash: NameHash,
) -> Vec<u32> {
    let count = names.len();
    let mut hashes: Vec<u32> = Vec::with_capacity(count);
    let mut buckets = vec![EMPTY; 16];
    for name in names {
        let hash = name_hash.of(name);
        let item = u32::try_from(hashes.len()).unwrap_or(EMPTY);
        hashes.push(hash);
        place(&mut buckets, hash, 1, item);
        if hashes.len() * 4 > buckets.len() * 3 {
            rebuild(&mut buckets, |item| hashes.get(item as usize).copied());
        }
    }
    buckets.retain(|&item| item != EMPTY);
    buckets
}

/// How LLVM's `DenseMap` places keys that are 64-bit numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumberMap {
    /// The hash is the key times 37 (LLVM 18 and earlier). If a bucket is taken, the steps to others are 1, 2, 3, …
    Llvm13,
    /// The hash is the key mixed by one step of splitmix64 (since pull request 95734), with the same steps.
    #[default]
    Llvm19,
    /// As in LLVM 19, but each step is 1.
    Llvm23,
}

impl NumberMap {
    /// The map of a release.
    pub fn of(release: Release) -> Self {
        match release.major {
            ..19 => NumberMap::Llvm13,
            19..23 => NumberMap::Llvm19,
            _ => NumberMap::Llvm23,
        }
    }

    fn hash(self, number: u64) -> u32 {
        let hash = match self {
            NumberMap::Llvm13 => number.wrapping_mul(37),
            NumberMap::Llvm19 | NumberMap::Llvm23 => {
                let product = number.wrapping_mul(0xbf58_476d_1ce4_e5b9);
                product ^ (product >> 31)
            }
        };
        low_half(hash)
    }
}

/// Inserts keys into a `SmallDenseMap<uint64_t, …, 4>`. Returns the indexes of the keys in the order in which the map
/// iterates over them.
///
/// The map starts with four inline buckets. Before an insertion that would fill three quarters of the buckets, the map
/// grows: first to 64 buckets, later to twice the number.
pub(crate) fn small_dense_map_order(keys: &[u64], map: NumberMap) -> Vec<u32> {
    let hash_of = |item: u32| keys.get(item as usize).map(|&key| map.hash(key));
    let further = u32::from(map != NumberMap::Llvm23) as usize;
    let mut buckets = vec![EMPTY; 4];
    for (item, &key) in (0u32..).zip(keys) {
        if (item as usize + 1) * 4 >= buckets.len() * 3 {
            let size = (buckets.len() * 2).max(64);
            grow(&mut buckets, size, further, hash_of);
        }
        place(&mut buckets, map.hash(key), further, item);
    }
    buckets.retain(|&item| item != EMPTY);
    buckets
}

/// Inserts keys into a `DenseMap<uint64_t, …>` of LLVM 19 to 22. Returns the indexes of the keys in the order in
/// which the map iterates over them. No key may occur twice. In contrast to `SmallDenseMap`, this map starts with 64
/// buckets.
pub fn dense_map_order(keys: &[u64]) -> Vec<u32> {
    let map = NumberMap::Llvm19;
    let hash_of = |item: u32| keys.get(item as usize).map(|&key| map.hash(key));
    let mut buckets = vec![EMPTY; 64];
    for (item, &key) in (0u32..).zip(keys) {
        if (item as usize + 1) * 4 >= buckets.len() * 3 {
            let size = buckets.len() * 2;
            grow(&mut buckets, size, 1, hash_of);
        }
        place(&mut buckets, map.hash(key), 1, item);
    }
    buckets.retain(|&item| item != EMPTY);
    buckets
}

/// Returns the order in which LLVM processes the records of one function name. The function hashes are given
/// in the order in which they were added, and the result has the positions of the hashes in that list. LLVM's tools
/// process records in the order of the result when they write a profile and when they join the results of several
/// threads.
pub fn record_order(func_hashes: &[u64], map: NumberMap) -> Vec<u32> {
    small_dense_map_order(func_hashes, map)
}

const EMPTY: u32 = u32::MAX;

/// Puts `item` into the first free bucket of the probe sequence that `hash` begins. The first step of the sequence is 1,
/// and each is `further` longer than the one before.
fn place(buckets: &mut [u32], hash: u32, further: usize, item: u32) {
    let mask = buckets.len() - 1;
    let mut bucket = hash as usize & mask;
    let mut step = 1;
    loop {
        match buckets.get_mut(bucket) {
            Some(slot) if *slot == EMPTY => {
                *slot = item;
                return;
            }
            // This loop ends, because callers keep a quarter of the buckets free and the probe sequence visits every
            // bucket.
            Some(_) => bucket = (bucket + step) & mask,
            None => return,
        }
        step += further;
    }
}

fn rebuild(buckets: &mut Vec<u32>, hash_of: impl Fn(u32) -> Option<u32>) {
    let size = buckets.len() * 2;
    grow(buckets, size, 1, hash_of);
}

fn grow(buckets: &mut Vec<u32>, size: usize, further: usize, hash_of: impl Fn(u32) -> Option<u32>) {
    let old = std::mem::replace(buckets, vec![EMPTY; size]);
    for item in old {
        if item != EMPTY
            && let Some(hash) = hash_of(item)
        {
            place(buckets, hash, further, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_bytewise_with_zeros_prefixes_and_long_common_beginnings() {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for length in 0..40usize {
            for last in [0u8, 1, b'a', 0xff] {
                let mut name = vec![b'x'; length];
                name.push(last);
                names.push(name);
                names.push(vec![0; length]);
            }
        }
        // `names` has equal names only among those that consist only of NUL bytes. The order of two such names is
        // decided by `tie`, here the index.
        names.sort();
        let mut indices: Vec<u32> = (0..u32::try_from(names.len()).unwrap()).rev().collect();
        // Swap two indices, so that the input is not exactly the reverse of the sorted order.
        indices.swap(3, 100);
        sort_by_name(&mut indices, |index| &names[index as usize], u64::from);
        assert!(indices.iter().is_sorted());
    }

    #[test]
    fn few_hashes_keep_to_four_buckets_and_three_move_to_64() {
        assert_eq!(small_dense_map_order(&[7, 4], NumberMap::Llvm13), [1, 0]);
        let keys: Vec<u64> = (0..100).collect();
        let order = small_dense_map_order(&keys, NumberMap::Llvm19);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_ne!(order, small_dense_map_order(&keys, NumberMap::Llvm23));
    }
}
