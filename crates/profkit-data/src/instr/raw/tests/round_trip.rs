//! Reads back what the writer writes, in all versions, byte orders and pointer widths.
use super::*;
use proptest::prelude::*;

type RecordSeed = (Vec<u64>, Vec<u8>, u64, Vec<Vec<(u8, u64)>>, bool);

fn record_seed() -> impl Strategy<Value = RecordSeed> {
    (
        prop::collection::vec(any::<u64>(), 1..6),
        prop::collection::vec(any::<u8>(), 0..12),
        any::<u64>(),
        prop::collection::vec(
            prop::collection::vec((any::<u8>(), any::<u64>()), 0..4),
            0..4,
        ),
        any::<bool>(),
    )
}

const FIRST_FUNCTION: u64 = 0x4000;
const FUNCTION_LEN: u64 = 0x10;
const VTABLE: u64 = 0x80_0000;

/// Builds a raw profile from random numbers. It has only contents that its version can hold.
fn build(
    dialect: RawDialect,
    seeds: Vec<RecordSeed>,
    form: RawForm,
    ids: Vec<Vec<u8>>,
) -> RawImage {
    let version = dialect.version;
    let mut image = RawImage::new(dialect);
    image.form = form;
    if version >= 6 {
        image.binary_ids = ids.into_iter().map(BuildId).collect();
    }
    if version >= 10 {
        for index in 0..3u64 {
            image.vtables.push(RawImageVTable {
                name: format!("_ZTV{index}").into_bytes(),
                address: VTABLE + 64 * index,
                size: 48,
            });
        }
    }
    let functions = seeds.len() as u64;
    for (index, (counts, bitmap, hash, sites, local)) in (0u64..).zip(seeds) {
        let name = if local {
            format!("a.c;f{index}")
        } else {
            format!("f{index}")
        };
        let mut record = RawImageRecord {
            name: name.into_bytes(),
            func_hash: FuncHash(hash),
            time_stamp: hash % 4,
            address: if version >= 2 {
                FIRST_FUNCTION + FUNCTION_LEN * index
            } else {
                0
            },
            ..RawImageRecord::default()
        };
        if version >= 9 {
            record.bitmap = bitmap;
        }
        if version >= 11 && local {
            record.uniform_counts.clone_from(&counts);
        }
        record.counts = counts;
        let kinds: &[u32] = match version {
            1 => &[],
            2 | 3 => &[0],
            4..=9 => &[0, 1],
            _ => &[0, 1, 2],
        };
        for &kind in kinds {
            for site in &sites {
                let entries = site.iter().map(|&(pick, count)| ValueEntry {
                    value: match kind {
                        // Some of these addresses are after the last function and belong to no function.
                        0 => FIRST_FUNCTION + FUNCTION_LEN * (u64::from(pick) % (functions + 1)),
                        1 => count,
                        // Some of these addresses are not inside a vtable.
                        _ => VTABLE + u64::from(pick),
                    },
                    count,
                });
                record.values.kind_mut(kind).unwrap().push_site(entries);
            }
        }
        image.records.push(record);
    }
    image
}

fn expected(image: &RawImage) -> Vec<Record> {
    let bytes = image.dialect.has(variant::BYTE_COVERAGE);
    let resolve = |kind: u32, value: u64| match kind {
        0 => {
            let found = image.records.iter().find(|record| record.address == value);
            found.map_or(0, |record| NameRef::of(&record.name).0)
        }
        1 => value,
        _ => {
            let inside = |vtable: &&RawImageVTable| {
                (vtable.address..vtable.address + u64::from(vtable.size)).contains(&value)
            };
            image
                .vtables
                .iter()
                .find(inside)
                .map_or(0, |vtable| vtable.name_hash().0)
        }
    };
    let record = |record: &RawImageRecord| {
        let mut values = record.values.clone();
        for (kind, sites) in values.kinds_mut() {
            for entry in sites.entries_mut() {
                entry.value = resolve(kind, entry.value);
            }
        }
        let counts = record.counts.iter();
        Record {
            name: record.name.clone(),
            name_ref: NameRef::of(&record.name),
            func_hash: record.func_hash,
            counts: counts
                .map(|&count| if bytes { u64::from(count != 0) } else { count })
                .collect(),
            bitmap: record.bitmap.clone(),
            // In the generated records, each uniform counter is equal to its counter, so all blocks are uniform; so are the
            // bits after the last counter.
            uniformity: if bytes || record.uniform_counts.is_empty() {
                Vec::new()
            } else {
                vec![u8::MAX; record.counts.len().div_ceil(8)]
            },
            values,
        }
    };
    image.records.iter().map(record).collect()
}

fn form() -> impl Strategy<Value = RawForm> {
    let slides = prop::sample::select(vec![0u64, 0x5650_0000, 0x7fff_f000_0000]);
    (any::<[bool; 4]>(), 0usize..3, slides).prop_map(|(bits, names_per_chunk, slide)| RawForm {
        compress_names: bits[0],
        names_per_chunk,
        slide,
        page_size: bits[1].then_some(4096),
        correlate: false,
        short_v5_header: bits[2],
        relative_snapshot: bits[3],
    })
}

fn images() -> impl Strategy<Value = RawImage> {
    let flags = (any::<bool>(), any::<bool>()).prop_map(|(bytes, temporal)| {
        let bytes = if bytes { variant::BYTE_COVERAGE } else { 0 };
        let temporal = if temporal { variant::TEMPORAL } else { 0 };
        variant::IR | bytes | temporal
    });
    let ids = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..24), 0..3);
    let records = prop::collection::vec(record_seed(), 0..8);
    let dialect = (prop::sample::select(DIALECTS.to_vec()), 1u32..=11, flags);
    (dialect, records, form(), ids).prop_map(
        |(((endian, width), version, flags), records, form, ids)| {
            let dialect = RawDialect {
                endian,
                width,
                version,
                flags,
            };
            let mut form = form;
            if version < 5 || version == 5 && form.short_v5_header {
                form.page_size = None;
            }
            build(dialect, records, form, ids)
        },
    )
}

fn check(image: &RawImage) {
    let file = image.to_bytes().unwrap();
    let mut reader = RawReader::parse(&file).unwrap();
    assert_eq!(reader.binary_ids().unwrap(), image.binary_ids);
    let mut records = Vec::new();
    let mut record = Record::default();
    while reader.read_record(&mut record).unwrap() {
        records.push(record.clone());
    }
    assert_eq!(records, expected(image));
    let mut stamps: Vec<_> = image
        .records
        .iter()
        .filter(|record| image.dialect.has(variant::TEMPORAL) && record.time_stamp != 0)
        .map(|record| (record.time_stamp, NameRef::of(&record.name)))
        .collect();
    stamps.sort_unstable();
    let trace: Vec<_> = stamps.iter().map(|&(_, name)| name).collect();
    let traces = reader.temporal_traces().unwrap().traces;
    assert_eq!(
        traces.first().map_or(&[][..], |trace| &trace.functions),
        trace
    );
    let salvaged = read_on(&file, RawReadOptions::default().salvage(true));
    assert_eq!(salvaged, (records, vec![]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn written_profiles_read_back(image in images()) {
        check(&image);
    }

    #[test]
    fn profiles_one_after_the_other_read_as_each_alone(first in images(), second in images(), gap in 0usize..4) {
        let mut second = second;
        second.dialect = first.dialect;
        second.form.short_v5_header = first.form.short_v5_header;
        let second = RawImage {
            binary_ids: if first.dialect.version >= 6 { second.binary_ids } else { vec![] },
            form: RawForm { page_size: None, ..second.form },
            ..second
        };
        // The second profile was generated for another version. If the version of the first profile cannot hold the
        // contents of the second one, the test ends here.
        let Ok(tail) = second.to_bytes() else { return Ok(()) };
        let mut file = first.to_bytes().unwrap();
        file.resize(file.len().next_multiple_of(8) + 8 * gap, 0);
        file.extend(tail);
        let mut both = expected(&first);
        both.extend(expected(&second));
        prop_assert_eq!(read(&file).unwrap(), both);
    }
}

#[test]
fn what_a_version_cannot_hold_is_refused() {
    let refusal = |change: fn(&mut RawImage), version: u32| {
        let mut image = image(dialect(version));
        change(&mut image);
        image.to_bytes().unwrap_err().to_string()
    };
    insta::assert_snapshot!(refusal(|image| image.binary_ids.push(BuildId(vec![1])), 5), @"raw profile: this raw version has no build ids: found version 5, expected version 6 or later");
    insta::assert_snapshot!(refusal(|image| image.records[0].bitmap.push(1), 8), @"raw profile: this raw version has no bitmaps: found version 8, expected version 9 or later");
    insta::assert_snapshot!(refusal(|image| image.vtables.push(RawImageVTable::default()), 9), @"raw profile: this raw version has no vtables: found version 9, expected version 10 or later");
    insta::assert_snapshot!(refusal(|image| image.records[0].uniform_counts.push(1), 10), @"raw profile: this raw version has no uniform counters: found version 10, expected version 11 or later");
    insta::assert_snapshot!(refusal(|image| image.records[0].values = values(0, &[&[]]), 1), @"raw profile: this raw version does not have this value kind: found version 1, expected version 2 or later");
    insta::assert_snapshot!(refusal(|image| image.records[0].values = values(1, &[&[]]), 3), @"raw profile: this raw version does not have this value kind: found version 3, expected version 4 or later");
    insta::assert_snapshot!(refusal(|image| image.form.page_size = Some(4096), 4), @"raw profile: this raw version has no padding around counters: found version 4, expected version 5 or later");
    insta::assert_snapshot!(refusal(|image| image.form.page_size = Some(5), 10), @"raw profile: the page size is not valid: expected a power of two up to 1 GiB");
    insta::assert_snapshot!(refusal(|image| image.records[0].name = b"a\x01b".to_vec(), 10), @"raw profile of function a\u{1}b: a name is empty or holds byte 0x01");
    insta::assert_snapshot!(refusal(|image| image.binary_ids = vec![BuildId(vec![])], 10), @"raw profile: a build id is empty");
    insta::assert_snapshot!(refusal(|image| image.records[0].uniform_counts = vec![1], 11), @"raw profile of function main: a function has different numbers of uniform counters and counters");
    insta::assert_snapshot!(refusal(|image| image.dialect.version = 12, 11), @"raw profile: the raw format has no such version: found 12");
}
