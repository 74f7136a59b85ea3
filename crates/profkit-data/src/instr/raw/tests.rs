mod malformed;
mod round_trip;
mod salvage;
mod sweep;

use super::*;
use crate::bytes::Endian;
use crate::ids::{BuildId, FuncHash, NameRef};
use crate::instr::{InstrSource, Record, ValueData, ValueEntry};
use crate::{Error, Result};
use profkit_abi::variant;

const DIALECTS: [(Endian, PointerWidth); 4] = [
    (Endian::Little, PointerWidth::Bits64),
    (Endian::Little, PointerWidth::Bits32),
    (Endian::Big, PointerWidth::Bits64),
    (Endian::Big, PointerWidth::Bits32),
];

fn dialect(version: u32) -> RawDialect {
    RawDialect {
        endian: Endian::Little,
        width: PointerWidth::Bits64,
        version,
        flags: 0,
    }
}

fn values(kind: u32, sites: &[&[(u64, u64)]]) -> ValueData {
    let mut values = ValueData::default();
    for site in sites {
        let entries = site
            .iter()
            .map(|&(value, count)| ValueEntry { value, count });
        values.kind_mut(kind).unwrap().push_site(entries);
    }
    values
}

/// A profile with three functions and everything that a version can hold. The second function calls the first and the
/// third through pointers.
fn image(dialect: RawDialect) -> RawImage {
    let version = dialect.version;
    let mut image = RawImage::new(dialect);
    for (name, hash, counts, address) in [
        ("main", 0x11, &[1u64, 20][..], 0x4000u64),
        ("file.c;helper", 0x22, &[3], 0x4100),
        ("callee", 0x33, &[4, 0, 6], 0x4200),
    ] {
        image.records.push(RawImageRecord {
            name: name.into(),
            func_hash: FuncHash(hash),
            counts: counts.to_vec(),
            address: if version >= 2 { address } else { 0 },
            ..RawImageRecord::default()
        });
    }
    image.records[0].time_stamp = 2;
    image.records[2].time_stamp = 1;
    if version >= 2 {
        image.records[1].values = values(0, &[&[(0x4000, 7), (0x4200, 5), (0x9999, 1)], &[]]);
    }
    if version >= 6 {
        image.binary_ids.push(BuildId((1..=20).collect()));
    }
    if version >= 9 {
        image.records[2].bitmap = vec![0b101, 0xff, 3];
    }
    if version >= 10 {
        image.vtables.push(RawImageVTable {
            name: b"_ZTV4Base".to_vec(),
            address: 0x8000,
            size: 32,
        });
        image.records[2].values = values(2, &[&[(0x8010, 9), (0x8020, 1)]]);
    }
    image
}

fn bytes(version: u32) -> Vec<u8> {
    image(dialect(version)).to_bytes().unwrap()
}

fn read(file: &[u8]) -> Result<Vec<Record>> {
    let mut reader = RawReader::parse(file)?;
    let mut records = Vec::new();
    let mut record = Record::default();
    while reader.read_record(&mut record)? {
        records.push(record.clone());
    }
    Ok(records)
}

fn read_on(file: &[u8], options: RawReadOptions) -> (Vec<Record>, Vec<Error>) {
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    let mut reader = match RawReader::parse_with(file, &options) {
        Ok(reader) => reader,
        Err(error) => return (records, vec![error]),
    };
    for read in reader.records() {
        match read {
            Ok(record) => records.push(record),
            Err(error) => errors.push(error),
        }
    }
    (records, errors)
}

fn names(records: &[Record]) -> Vec<String> {
    let name = |record: &Record| String::from_utf8_lossy(&record.name).into_owned();
    records.iter().map(name).collect()
}

fn texts(error: &Error) -> String {
    let detail = error.detail_for_llvm().unwrap_or("-");
    format!("{error}\n{:?}: {detail}", error.kind())
}

#[test]
fn a_profile_says_where_everything_is() {
    let file = bytes(10);
    let profile = RawProfile::parse(&file).unwrap();
    let header = profile.header();
    assert_eq!(
        (header.len, header.num_data, header.num_counters),
        (128, 3, 6)
    );
    assert_eq!(profile.sections().binary_ids.offset, 128);
    assert_eq!(profile.sections().data.offset, 128 + 32);
    assert_eq!(profile.sections().counters.offset, 128 + 32 + 3 * 64);
    assert!(
        profile
            .sections()
            .named()
            .iter()
            .all(|(_, section)| section.is_whole())
    );
    let record = profile.record(2).unwrap();
    assert_eq!(record.name, RawName::Ref(NameRef::of(b"callee")));
    assert_eq!(profile.counter_offset(&record), 24);
    assert_eq!(profile.bitmap_bytes(&record).unwrap(), [0b101, 0xff, 3]);
    assert_eq!(profile.vtables().len(), 1);
}

#[test]
fn records_come_with_names_values_and_bitmaps() {
    for (endian, width) in DIALECTS {
        let file = image(RawDialect {
            endian,
            width,
            ..dialect(10)
        })
        .to_bytes()
        .unwrap();
        let records = read(&file).unwrap();
        assert_eq!(names(&records), ["main", "file.c;helper", "callee"]);
        assert_eq!(records[2].counts, [4, 0, 6]);
        assert_eq!(records[2].bitmap, [0b101, 0xff, 3]);
        let hash = |name: &[u8]| NameRef::of(name).0;
        let calls = values(
            0,
            &[&[(hash(b"main"), 7), (hash(b"callee"), 5), (0, 1)], &[]],
        );
        assert_eq!(records[1].values, calls);
        assert_eq!(
            records[2].values,
            values(2, &[&[(hash(b"_ZTV4Base"), 9), (0, 1)]])
        );
    }
}

#[test]
fn values_can_be_left_unread_across_profiles() {
    let mut file = bytes(10);
    file.extend_from_slice(&[0; 16]);
    file.extend(bytes(10));
    let (records, errors) = read_on(&file, RawReadOptions::default().values(false));
    assert_eq!(errors, []);
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|record| record.values.is_empty()));
}

#[test]
fn a_temporal_profile_has_one_trace_in_order_of_first_call() {
    for flags in [
        variant::TEMPORAL,
        variant::TEMPORAL | variant::BYTE_COVERAGE,
    ] {
        let file = image(RawDialect {
            flags,
            ..dialect(10)
        })
        .to_bytes()
        .unwrap();
        let mut reader = RawReader::parse(&file).unwrap();
        let mut record = Record::default();
        reader.read_record(&mut record).unwrap();
        assert_eq!(record.counts.len(), 2);
        while reader.read_record(&mut record).unwrap() {}
        let traces = reader.temporal_traces().unwrap();
        assert_eq!((traces.stream_size, traces.traces[0].weight), (1, 1));
        let order = [NameRef::of(b"callee"), NameRef::of(b"main")];
        assert_eq!(traces.traces[0].functions, order);
    }
}

#[test]
fn an_implausible_count_is_read_and_pointed_out() {
    let mut image = image(dialect(10));
    image.records[2].counts = vec![1, (1 << 56) + 1, 1 << 56];
    let file = image.to_bytes().unwrap();
    let mut reader = RawReader::parse(&file).unwrap();
    let mut record = Record::default();
    reader.read_record(&mut record).unwrap();
    assert_eq!(reader.implausible_count(), None);
    reader.read_record(&mut record).unwrap();
    reader.read_record(&mut record).unwrap();
    let found = reader.implausible_count().unwrap();
    assert_eq!((found.count, found.index), ((1 << 56) + 1, 1));
    let at = usize::try_from(found.offset).unwrap();
    assert_eq!(file[at..at + 8], found.count.to_le_bytes());
}

#[test]
fn functions_at_one_address_are_the_smallest_hash() {
    let mut image = image(dialect(10));
    image.records[2].address = image.records[0].address;
    image.records[1].values = values(0, &[&[(0x4000, 7)]]);
    let records = read(&image.to_bytes().unwrap()).unwrap();
    let smallest = NameRef::of(b"main").min(NameRef::of(b"callee"));
    assert_eq!(records[1].values, values(0, &[&[(smallest.0, 7)]]));
}

#[test]
fn a_profile_of_counters_alone_asks_for_its_binary() {
    let mut image = image(RawDialect {
        flags: variant::DBG_CORRELATE | variant::IR,
        ..dialect(10)
    });
    image.form.correlate = true;
    let file = image.to_bytes().unwrap();
    let (records, errors) = read_on(&file, RawReadOptions::default());
    assert_eq!(records, []);
    insta::assert_snapshot!(texts(&errors[0]), @"
    raw profile, at offset 0x0: the profile has counters but no function records: found 6 counters, 0 data records
    MissingCorrelation: -
    ");
    assert_eq!(errors.len(), 1);
    assert_eq!(
        RawReader::parse(&file).unwrap().binary_ids().unwrap(),
        image.binary_ids
    );
}

#[test]
fn a_profile_of_a_header_alone_is_nothing() {
    let mut file = RawImage::new(dialect(10)).to_bytes().unwrap();
    assert_eq!(file.len(), 128);
    file.extend(bytes(10));
    assert_eq!(read(&file).unwrap().len(), 3);
}

#[test]
fn version_5_is_told_apart_by_where_the_value_kind_is() {
    for short in [true, false] {
        let mut image = image(dialect(5));
        image.form.short_v5_header = short;
        let file = image.to_bytes().unwrap();
        assert_eq!(
            RawProfile::parse(&file).unwrap().header().len,
            if short { 64 } else { 80 }
        );
        assert_eq!(read(&file).unwrap().len(), 3);
    }
    for (short, len) in [(true, 64), (false, 80)] {
        let mut empty = RawImage::new(dialect(5));
        empty.form.short_v5_header = short;
        let mut file = empty.to_bytes().unwrap();
        file.extend(bytes(5));
        assert_eq!(RawProfile::parse(&file).unwrap().header().len, len);
        assert_eq!(read(&file).unwrap().len(), 3);
    }
    // If there are no counters, word 7 (the address of the counters) is 0. It must not be taken for ValueKindLast,
    // which is word 7 of the shorter header.
    let mut empty = RawHeader::empty(dialect(5)).unwrap();
    empty.value_kind_last = 1;
    let mut file = Vec::new();
    empty.encode(&mut file);
    assert_eq!(RawProfile::parse(&file).unwrap().header().len, 80);
}

#[test]
fn snapshots_with_relative_pointers_are_told_from_releases() {
    for version in [6, 7] {
        for relative_snapshot in [true, false] {
            let mut image = image(dialect(version));
            image.form.relative_snapshot = relative_snapshot;
            let file = image.to_bytes().unwrap();
            let profile = RawProfile::parse(&file).unwrap();
            assert_eq!(profile.has_relative_counters(), relative_snapshot);
            let records = read(&file).unwrap();
            assert_eq!(records[2].counts, [4, 0, 6], "version {version}");
        }
    }
}

#[test]
fn runs_of_one_program_differ_in_the_moving_fields_alone() {
    for version in 1..=11 {
        let mut image = image(dialect(version));
        let first = image.to_bytes().unwrap();
        image.form.slide = 0x5555_0000;
        let second = image.to_bytes().unwrap();
        let [first, second] = [&first, &second].map(|file| RawProfile::parse(file).unwrap());
        let layout = first.layout();
        let relative = first.has_relative_counters();
        for index in 0..first.record_count() {
            let [mut a, mut b] =
                [&first, &second].map(|profile| profile.record_bytes(index).unwrap().to_vec());
            assert_ne!(a, b, "version {version}");
            for range in layout.moving_fields(relative) {
                a[range.clone()].fill(0);
                b[range].fill(0);
            }
            assert_eq!(a, b, "version {version}");
        }
        assert_eq!(first.sections().names.bytes, second.sections().names.bytes);
        assert_eq!(
            first.sections().counters.bytes,
            second.sections().counters.bytes
        );
    }
}

#[test]
fn uniform_counters_lie_beside_counters() {
    let mut image = image(dialect(11));
    for record in &mut image.records {
        record.uniform_counts = record.counts.iter().map(|count| count + 100).collect();
    }
    let file = image.to_bytes().unwrap();
    let profile = RawProfile::parse(&file).unwrap();
    let record = profile.record(2).unwrap();
    let bytes = profile.uniform_counter_bytes(&record).unwrap();
    let expected: Vec<u8> = [104u64, 100, 106]
        .iter()
        .flat_map(|count| count.to_le_bytes())
        .collect();
    assert_eq!(bytes, expected);
    assert_eq!(read(&file).unwrap()[2].counts, [4, 0, 6]);
}

#[test]
fn counters_on_pages_are_found() {
    let mut image = image(dialect(10));
    image.form.page_size = Some(16 << 10);
    let file = image.to_bytes().unwrap();
    let profile = RawProfile::parse(&file).unwrap();
    assert_eq!(profile.sections().counters.offset, 16 << 10);
    assert_eq!(read(&file).unwrap(), read(&bytes(10)).unwrap());
}
