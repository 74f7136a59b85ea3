//! Salvaging damaged indexed profiles: the intact parts are read, and nothing is read that the undamaged file does not
//! have.
use profkit_data::Error;
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions};
use profkit_data::instr::{InstrSource, Record};
use profkit_testkit::fixture;
use proptest::prelude::*;
use std::ops::Range;

const FIXTURES: [&str; 7] = [
    "indexed/clang-13-ir-plain.profdata",
    "indexed/clang-15-fe-shapes.profdata",
    "indexed/clang-16-cs-ir-layers.profdata",
    "indexed/clang-19-mcdc-conditions.profdata",
    "indexed/clang-22-temporal-plain.profdata",
    "indexed/clang-22-vtables-shapes.profdata",
    "indexed/clang-22-memprof-ir-plain.profdata",
];

fn whole(bytes: &[u8]) -> Vec<(Record, Range<usize>)> {
    let profile = IndexedProfile::parse(bytes).unwrap();
    let ranges: Vec<_> = profile
        .table()
        .entries()
        .map(|entry| {
            let entry = entry.unwrap();
            let end = entry.data_offset + entry.data.len() as u64;
            usize::try_from(entry.offset).unwrap()..usize::try_from(end).unwrap()
        })
        .collect();
    let (records, errors) = drain(&mut profile.records());
    assert_eq!(errors, []);
    let range = |offset: u64| ranges.iter().find(|range| range.start as u64 == offset);
    records
        .into_iter()
        .map(|(record, offset)| (record, range(offset).unwrap().clone()))
        .collect()
}

fn drain(
    reader: &mut profkit_data::instr::indexed::IndexedReader<'_>,
) -> (Vec<(Record, u64)>, Vec<Error>) {
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    let mut record = Record::default();
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => records.push((record.clone(), reader.record_offset())),
            Ok(false) => return (records, errors),
            Err(error) => errors.push(error),
        }
        assert!(errors.len() < 10_000, "no end of errors");
    }
}

fn salvage(bytes: &[u8]) -> Result<(Vec<Record>, Vec<Error>), Error> {
    let profile = IndexedProfile::parse_with(bytes, &IndexedReadOptions::new().salvage(true))?;
    let (records, mut errors) = drain(&mut profile.records());
    errors.extend(profile.binary_ids().err());
    errors.extend(profile.vtable_names().err());
    errors.extend(profile.temporal_traces().err());
    let records = records.into_iter().map(|(record, _)| record);
    Ok((records.collect(), errors))
}

#[test]
fn sound_files_are_read_as_ever() {
    for name in FIXTURES {
        let bytes = fixture(name);
        let profile =
            IndexedProfile::parse_with(&bytes, &IndexedReadOptions::new().salvage(true)).unwrap();
        assert!(!profile.is_damaged(), "{name}");
        let strict: Vec<_> = whole(&bytes)
            .into_iter()
            .map(|(record, _)| record)
            .collect();
        assert_eq!(salvage(&bytes), Ok((strict, vec![])), "{name}");
    }
}

#[test]
fn a_cut_file_gives_every_function_before_the_cut() {
    for name in FIXTURES {
        let bytes = fixture(name);
        let strict = whole(&bytes);
        let profile = IndexedProfile::parse(&bytes).unwrap();
        let payload = usize::try_from(profile.table().payload_offset()).unwrap();
        let (ids, memprof) = (profile.binary_ids().unwrap(), profile.memprof());
        let traces = profile.temporal_traces().unwrap();
        let mut recovered = 0;
        for len in 0..bytes.len() {
            let cut = &bytes[..len];
            let (records, errors) = match salvage(cut) {
                Ok(salvaged) => salvaged,
                Err(error) => {
                    assert!(len < payload, "{name} cut to {len}: {error}");
                    continue;
                }
            };
            let expected: Vec<_> = strict
                .iter()
                .filter(|(_, range)| range.end <= len)
                .map(|(record, _)| record)
                .collect();
            assert_eq!(
                records.iter().collect::<Vec<_>>(),
                expected,
                "{name} cut to {len}"
            );
            assert_eq!(errors.len(), 1, "{name} cut to {len}: {errors:?}");
            recovered += usize::from(!records.is_empty());
            // The other sections must be complete or missing.
            let profile =
                IndexedProfile::parse_with(cut, &IndexedReadOptions::new().salvage(true)).unwrap();
            let found = profile.binary_ids().unwrap();
            assert!(found.is_empty() || found == ids, "{name} cut to {len}");
            assert!(profile.memprof().is_none() || profile.memprof() == memprof);
            let found = profile.temporal_traces().unwrap_or_default();
            assert!(found.traces.is_empty() || found == traces);
        }
        assert!(recovered > 100, "{name}");
    }
}

#[test]
fn the_message_of_a_cut_says_what_is_lost() {
    let bytes = fixture("indexed/clang-22-temporal-plain.profdata");
    let profile = IndexedProfile::parse(&bytes).unwrap();
    let header = profile.header();
    let place = |offset: u64| usize::try_from(offset).unwrap();
    let index = place(header.hash_offset);
    let mut said = String::new();
    for (what, len) in [
        ("at the first item", place(profile.table().payload_offset())),
        (
            "in the items",
            index / 2 + place(profile.table().payload_offset()) / 2,
        ),
        ("before the index", index),
        ("in the index", index + 40),
        ("in the build ids", place(header.binary_ids_offset) + 12),
        ("in the vtable names", place(header.vtable_names_offset) + 4),
        ("before the traces", place(header.traces_offset) - 1),
        ("in the traces", place(header.traces_offset) + 40),
    ] {
        let (records, errors) = salvage(&bytes[..len]).unwrap();
        said += &format!("{what}: {} records\n", records.len());
        for error in errors {
            said += &format!("    {error}\n    hint: {}\n", error.hint().unwrap_or("-"));
        }
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_wrong_index_or_a_wrong_item_leaves_the_others() {
    let name = "indexed/clang-22-ir-plain.profdata";
    let bytes = fixture(name);
    let strict = whole(&bytes);
    let profile = IndexedProfile::parse(&bytes).unwrap();
    let index = usize::try_from(profile.header().hash_offset).unwrap();
    let first = strict[1].1.clone();
    let mut said = String::new();
    let mut damage = |what: &str, lost: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut damaged = bytes.clone();
        change(&mut damaged);
        let (records, errors) = salvage(&damaged).unwrap();
        let expected = |record: &Record| strict.iter().any(|(whole, _)| whole == record);
        assert!(records.iter().all(expected), "{what}");
        said += &format!("{what}: {} of {} records\n", records.len(), strict.len());
        for error in errors {
            said += &format!("    {error}\n    hint: {}\n", error.hint().unwrap_or("-"));
        }
        assert_eq!(records.len() + lost, strict.len(), "{said}");
    };
    let word = |bytes: &mut Vec<u8>, at: usize, value: u64| {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    damage("all bucket offsets are wrong", 0, &|bytes| {
        bytes[index + 16..index + 16 + 8 * profile.table().bucket_count()].fill(0xa5);
    });
    damage("all bucket offsets are 0", 0, &|bytes| {
        bytes[index + 16..index + 16 + 8 * profile.table().bucket_count()].fill(0);
    });
    damage("the number of buckets is no power of two", 0, &|bytes| {
        word(bytes, index, 5);
    });
    damage("the number of buckets is huge", 0, &|bytes| {
        word(bytes, index, 1 << 40);
    });
    damage("the index is said to be beyond the file", 0, &|bytes| {
        word(bytes, 32, 1 << 40);
    });
    damage("the index is said to be in the header", 0, &|bytes| {
        word(bytes, 32, 8);
    });
    damage("a key and the first bucket offset are wrong", 1, &|bytes| {
        bytes[first.start + 24] ^= 1;
        bytes[index + 16..index + 24].fill(0xa5);
    });
    damage("a hash is wrong", 1, &|bytes| bytes[first.start] ^= 1);
    damage("the length of a key is huge", 1, &|bytes| {
        word(bytes, first.start + 8, 1 << 60);
    });
    damage("a length of data is wrong", 1, &|bytes| {
        word(bytes, first.start + 16, 24);
    });
    damage("a bucket has too many items", 0, &|bytes| {
        bytes[first.start - 2] += 3;
    });
    damage("a bucket has no items", 0, &|bytes| {
        bytes[first.start - 2] = 0;
    });
    insta::assert_snapshot!(said);
}

/// In a table where every length is wrong, the time is proportional to the size of the file, and no byte is part of two
/// items.
#[test]
fn a_table_of_nothing_but_wrong_lengths_ends() {
    let mut bytes = fixture("indexed/clang-13-ir-plain.profdata");
    let profile = IndexedProfile::parse(&bytes).unwrap();
    let payload = usize::try_from(profile.table().payload_offset()).unwrap();
    bytes.truncate(payload);
    let buckets = 1u64 << 15;
    let item = |left: u64| {
        let mut item = 1u16.to_le_bytes().to_vec();
        // The stored hash is 0, which is not the hash of the key. The stated length of the key reaches to the end of
        // all items.
        item.extend([0; 8]);
        item.extend(left.saturating_sub(26).to_le_bytes());
        item.extend([0; 8]);
        item
    };
    let len = 26 * buckets;
    for bucket in 0..buckets {
        bytes.extend(item(len - 26 * bucket));
    }
    let index = bytes.len() as u64;
    bytes[32..40].copy_from_slice(&index.to_le_bytes());
    bytes.extend(buckets.to_le_bytes());
    bytes.extend(buckets.to_le_bytes());
    for bucket in 0..buckets {
        bytes.extend((payload as u64 + 26 * bucket).to_le_bytes());
    }
    // The keys have about 2^34 bytes in total, so the test would take long if the reader hashed every key.
    let (records, errors) = salvage(&bytes).unwrap();
    assert!(records.is_empty() && !errors.is_empty());
}

proptest! {
    /// A change inside an item may go unnoticed, because items have no checksums. All other items must be read
    /// unchanged, or an error must report that they are lost.
    #[test]
    fn whatever_is_recovered_is_what_was_written(
        which in 0..FIXTURES.len(),
        at in any::<prop::sample::Index>(),
        mask in 1u8..,
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let bytes = fixture(FIXTURES[which]);
        let strict = whole(&bytes);
        let mut damaged = bytes.clone();
        let at = at.index(damaged.len());
        damaged[at] ^= mask;
        if let Some(cut) = cut {
            damaged.truncate(cut.index(bytes.len()).max(1));
        }
        let Ok((records, errors)) = salvage(&damaged) else {
            return Ok(());
        };
        for record in &records {
            let original = strict.iter().find(|(whole, _)| {
                (&whole.name, whole.func_hash) == (&record.name, record.func_hash)
            });
            let hit = strict.iter().find(|(_, range)| range.contains(&at));
            let same = original.is_some_and(|(whole, _)| whole == record);
            let of_hit = hit.is_some_and(|(hit, _)| hit.name == record.name || hit.name_ref == record.name_ref);
            // The first 16 bytes are excepted, because they have the version, and a change of the version changes how
            // every record is read.
            prop_assert!(same || of_hit || at < 16, "{}: {:?}", FIXTURES[which], record);
            if !of_hit && at >= 16 {
                prop_assert_eq!(NameRef::of(&record.name), record.name_ref);
            }
        }
        if records.len() != strict.len() && at >= 16 {
            prop_assert!(!errors.is_empty());
        }
    }
}

/// The names that a scan visits, each with its counters, and whether it found the file sound.
fn scanned(profile: &IndexedProfile<'_>) -> (Vec<Record>, bool) {
    let mut records = Vec::new();
    let sound = profile.scan(|mut names| {
        let plain = names.plain();
        loop {
            let mut record = Record::default();
            match names.read_record(&mut record) {
                Ok(true) => {
                    if let Some((func_hash, counts)) = plain {
                        assert_eq!(func_hash, record.func_hash);
                        let counts = counts.iter().map(|&bytes| u64::from_le_bytes(bytes));
                        assert!(counts.eq(record.counts.iter().copied()));
                        assert!(record.values.is_empty() && record.bitmap.is_empty());
                    }
                    records.push(record);
                }
                Ok(false) => return true,
                Err(_) => return false,
            }
        }
    });
    (records, sound)
}

/// A scan of a damaged file either sees the damage, or reads what the slower reader reads without an error.
#[test]
fn a_scan_finds_all_damage_that_reading_finds() {
    for name in FIXTURES {
        let bytes = fixture(name);
        let options = IndexedReadOptions::new().salvage(true);
        let (records, sound) = scanned(&IndexedProfile::parse_with(&bytes, &options).unwrap());
        let strict = whole(&bytes).into_iter().map(|(record, _)| record);
        assert_eq!((records, sound), (strict.collect(), true), "{name}");
        let (mut found, mut all) = (0, 0);
        for at in (0..bytes.len()).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let Ok(profile) = IndexedProfile::parse_with(&damaged, &options) else {
                continue;
            };
            all += 1;
            let (records, sound) = scanned(&profile);
            if !sound {
                found += 1;
                continue;
            }
            let (read, errors) = drain(&mut profile.records());
            let read: Vec<Record> = read.into_iter().map(|(record, _)| record).collect();
            assert_eq!((read, errors), (records, vec![]), "{name} at {at}");
        }
        assert!(found > 0 && found < all, "{name}: {found} of {all}");
        for cut in [bytes.len() - 1, bytes.len() / 2] {
            if let Ok(profile) = IndexedProfile::parse_with(&bytes[..cut], &options) {
                assert!(
                    !scanned(&profile).1 || !profile.is_damaged(),
                    "{name} to {cut}"
                );
            }
        }
    }
}
