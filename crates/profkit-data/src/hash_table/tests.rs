#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of the test itself"
)]
use super::plan::{ItemId, TablePlan};
use super::*;

/// Computes the order of items slowly, by repeating the steps of LLVM's generator.
fn simulate(hashes: &[u64]) -> (Vec<Vec<u32>>, usize) {
    fn resize(chains: &mut Vec<Vec<u32>>, hashes: &[u64], size: usize) {
        let mut new = vec![Vec::new(); size];
        for chain in chains.iter() {
            for &item in chain {
                let bucket = (hashes[item as usize] & (size as u64 - 1)) as usize;
                new[bucket].insert(0, item);
            }
        }
        *chains = new;
    }
    let mut chains = vec![Vec::new(); 64];
    for (index, &hash) in hashes.iter().enumerate() {
        if 4 * (index + 1) >= 3 * chains.len() {
            let size = chains.len() * 2;
            resize(&mut chains, hashes, size);
        }
        let bucket = (hash & (chains.len() as u64 - 1)) as usize;
        chains[bucket].insert(0, u32::try_from(index).unwrap());
    }
    let target = match hashes.len() {
        0..=2 => 1,
        n => (n * 4 / 3 + 1).next_power_of_two(),
    };
    if target != chains.len() {
        resize(&mut chains, hashes, target);
    }
    (chains, target)
}

fn hashes(count: usize, seed: u64) -> Vec<u64> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state ^ (state >> 29)
        })
        .collect()
}

fn encode(hashes: &[u64], lengths: Lengths, start: u64) -> (Vec<u8>, u64) {
    let key = |item: ItemId| (item.index() as u64).to_le_bytes();
    let data_len = |item: ItemId| item.index() as u64 % 5;
    let plan = TablePlan::new(
        hashes.iter().copied(),
        |index| (8, data_len(index)),
        lengths,
    )
    .unwrap();
    let mut out = vec![0xee; start as usize];
    // Encodes the items of a table in two ranges, as writers with several threads do.
    let middle = plan.len() / 2;
    for range in [0..middle, middle..plan.len()] {
        let before = out.len();
        let expected = plan.range_len(range.start, range.end);
        plan.encode_payload(
            range,
            |item| (hashes[item.index()], 8, data_len(item)),
            |index, out| {
                out.extend_from_slice(&key(index));
                out.extend(std::iter::repeat_n(0xdd, data_len(index) as usize));
                Ok(())
            },
            &mut out,
        )
        .unwrap();
        assert_eq!((out.len() - before) as u64, expected);
    }
    assert_eq!(out.len() as u64, start + plan.payload_len());
    let before = out.len() as u64;
    plan.encode_index(start, &mut out);
    assert_eq!(out.len() as u64 - before, plan.index_len(start));
    (out, plan.index_offset(start))
}

#[test]
fn order_is_that_of_the_generator() {
    for count in (0..260).chain([383, 384, 385, 1000, 3072, 5000]) {
        let hashes = hashes(count, count as u64);
        let (chains, buckets) = simulate(&hashes);
        let (bytes, index) = encode(&hashes, Lengths::KeyAndData, 24);
        let table = HashTable::parse(&bytes, 24, index, Lengths::KeyAndData).unwrap();
        assert_eq!(table.bucket_count(), buckets, "{count} items");
        let expected: Vec<u64> = chains.iter().flatten().map(|&i| u64::from(i)).collect();
        let found: Vec<u64> = table
            .entries()
            .map(|entry| u64::from_le_bytes(entry.unwrap().key.try_into().unwrap()))
            .collect();
        assert_eq!(found, expected, "{count} items");
    }
}

#[test]
fn every_key_is_found_and_no_other() {
    let hashes = hashes(500, 7);
    for lengths in [Lengths::KeyAndData, Lengths::DataOnly { key: 8 }] {
        let (bytes, index) = encode(&hashes, lengths, 40);
        let table = HashTable::parse(&bytes, 40, index, lengths).unwrap();
        for (key, &hash) in hashes.iter().enumerate() {
            let key = (key as u64).to_le_bytes();
            let entry = table.find(hash, &key).unwrap().unwrap();
            assert_eq!((entry.hash, entry.key), (hash, key.as_slice()));
            assert_eq!(table.find(hash, b"12345678").unwrap(), None);
            let is_stated = lengths == Lengths::KeyAndData;
            assert_eq!(table.find_hash(hash), is_stated.then_some(entry));
        }
        assert_eq!(table.find_hash(!hashes[0]), None);
        assert_eq!(table.find(!hashes[0], &[0; 8]).unwrap(), None);
        assert_eq!(table.end(), bytes.len() as u64);
    }
}

#[test]
fn shares_are_disjoint_and_whole_for_any_table_size() {
    for count in [0, 1, 3, 40, 300] {
        let hashes = hashes(count, 3);
        let (bytes, index) = encode(&hashes, Lengths::KeyAndData, 8);
        let table = HashTable::parse(&bytes, 8, index, Lengths::KeyAndData).unwrap();
        for shares in [1, 2, 8, 64] {
            let mut found = Vec::new();
            for share in 0..shares {
                let mut last = 0;
                for entry in table.entries_of_share(share, shares) {
                    let entry = entry.unwrap();
                    assert_eq!(entry.hash % shares as u64, share as u64);
                    assert!(entry.offset > last);
                    last = entry.offset;
                    found.push(entry.offset);
                }
            }
            found.sort_unstable();
            let mut all: Vec<_> = table.entries().map(|e| e.unwrap().offset).collect();
            all.sort_unstable();
            assert_eq!(found, all);
        }
    }
}

#[test]
fn an_empty_table_is_24_bytes_and_one_bucket() {
    let (bytes, index) = encode(&[], Lengths::KeyAndData, 8);
    assert_eq!(bytes[8..], [1u64, 0, 0].map(u64::to_le_bytes).concat());
    let table = HashTable::parse(&bytes, 8, index, Lengths::KeyAndData).unwrap();
    assert_eq!(table.entries().count(), 0);
}

/// An undamaged hash table of 5 items at offset 16, and the offset of its table of buckets.
fn small() -> (Vec<u8>, usize) {
    let (bytes, index) = encode(&[0x10, 0x21, 0x32, 0x43, 0x54], Lengths::KeyAndData, 16);
    (bytes, index as usize)
}

fn put(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

fn errors(bytes: &[u8], index: usize) -> Vec<String> {
    match HashTable::parse(bytes, 16, index as u64, Lengths::KeyAndData) {
        Ok(table) => table
            .entries()
            .filter_map(|entry| entry.err())
            .map(|error| error.to_string())
            .collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn each_damage_is_said_and_harms_one_bucket() {
    let (good, index) = small();
    assert_eq!(errors(&good, index), [""; 0]);
    let mut said = String::new();
    let mut damage = |name: &str, change: &dyn Fn(&mut Vec<u8>) -> usize| {
        let mut bytes = good.clone();
        let index = change(&mut bytes);
        let errors = errors(&bytes, index);
        assert_eq!(errors.len(), 1, "{name}: {errors:?}");
        said += &format!("{name}\n    {}\n", errors[0]);
    };
    damage("7 buckets", &|bytes| {
        put(bytes, index, 7);
        index
    });
    damage("2^60 buckets", &|bytes| {
        put(bytes, index, 1 << 60);
        index
    });
    damage("6 items", &|bytes| {
        put(bytes, index + 8, 6);
        index
    });
    damage("bucket 0 before the payload", &|bytes| {
        put(bytes, index + 16, 3);
        index
    });
    damage("bucket 1 in the index", &|bytes| {
        put(bytes, index + 24, index as u64);
        index
    });
    damage("hash of the first item", &|bytes| {
        bytes[18] ^= 1;
        index
    });
    damage("key length of the first item", &|bytes| {
        bytes[26] = 0xff;
        index
    });
    damage("one item too many in bucket 0", &|bytes| {
        bytes[16] += 1;
        index
    });
    damage("cut in the index", &|bytes| {
        bytes.truncate(index + 20);
        index
    });
    damage("index beyond the file", &|bytes| bytes.len() + 1);
    damage("index before the payload", &|_| 8);
    insta::assert_snapshot!(said);
}

#[test]
fn two_buckets_cannot_share_bytes() {
    // If two buckets could share bytes, a file could state far more items than its bytes can hold.
    let (mut bytes, index) = small();
    let first = u64::from_le_bytes(bytes[index + 16..index + 24].try_into().unwrap());
    put(&mut bytes, index + 24, first);
    assert_eq!(errors(&bytes, index).len(), 1);
}

#[test]
fn items_in_the_order_of_the_file_need_no_buckets() {
    let (mut file, index) = encode(&hashes(100, 7), Lengths::KeyAndData, 16);
    let table = HashTable::parse(&file, 16, index, Lengths::KeyAndData).unwrap();
    let entries: Vec<_> = table.entries().map(Result::unwrap).collect();
    let in_file: Vec<_> = table.file_order().map(Result::unwrap).collect();
    assert_eq!(in_file, entries);
    let keys: Vec<Vec<u8>> = entries.iter().map(|entry| entry.key.to_vec()).collect();
    let offsets = index as usize + 16;
    file[offsets..].fill(0xff);
    let table = HashTable::parse(&file, 16, index, Lengths::KeyAndData).unwrap();
    assert!(table.check().is_err());
    let found: Vec<_> = table
        .file_order()
        .map(|entry| entry.unwrap().key.to_vec())
        .collect();
    assert_eq!(found, keys);
    // The table states one item more than it has: what follows the items is no item.
    file[index as usize + 8] += 1;
    let table = HashTable::parse(&file, 16, index, Lengths::KeyAndData).unwrap();
    let last = table.file_order().last().unwrap();
    assert_eq!(last.unwrap_err().kind(), ErrorKind::Malformed);
}
