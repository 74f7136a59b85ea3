//! Tests with indexed profiles in the repository, which LLVM's tools wrote. These tests need no LLVM.
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{IndexedPlan, IndexedProfile, IndexedWriteOptions, write};
use profkit_data::instr::{InstrProfile, InstrSource, Record};
use profkit_testkit::{fixture, fixtures};

/// The first indexed version whose bytes do not depend on the order in which llvm-profdata added the functions.
const SORTED_SINCE: u32 = 10;

fn indexed_fixtures() -> Vec<(String, Vec<u8>)> {
    let found: Vec<_> = fixtures()
        .into_iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "profdata")
        })
        .map(|path| (path.display().to_string(), fixture(&path)))
        .collect();
    assert!(found.len() > 100, "only {} fixtures", found.len());
    found
}

fn records(bytes: &[u8]) -> Vec<Record> {
    let mut reader = IndexedProfile::parse(bytes).unwrap().records();
    let mut record = Record::default();
    let mut records = Vec::new();
    while reader.read_record(&mut record).unwrap() {
        records.push(record.clone());
    }
    records
}

fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by(|one, two| (&one.name, one.func_hash).cmp(&(&two.name, two.func_hash)));
    records
}

fn rewrite(profile: &InstrProfile, version: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write(
        profile,
        &IndexedWriteOptions::for_version(version),
        &mut out,
    )
    .unwrap();
    out
}

#[test]
fn what_is_read_is_written_again() {
    for (name, bytes) in indexed_fixtures() {
        let view = IndexedProfile::parse(&bytes).unwrap();
        let version = view.header().version();
        let profile = view.to_profile().unwrap();
        let out = rewrite(&profile, version);
        if version >= SORTED_SINCE {
            assert!(out == bytes, "{name}: other bytes");
        }
        assert_eq!(out.len(), bytes.len(), "{name}");
        let again = IndexedProfile::parse(&out).unwrap();
        assert_eq!(again.header(), view.header(), "{name}");
        assert_eq!(again.summary(), view.summary(), "{name}");
        assert_eq!(again.cs_summary(), view.cs_summary(), "{name}");
        assert_eq!(sorted(records(&out)), sorted(records(&bytes)), "{name}");
    }
}

#[test]
fn every_function_is_found_by_name_with_its_records() {
    for (name, bytes) in indexed_fixtures() {
        let view = IndexedProfile::parse(&bytes).unwrap();
        let all = records(&bytes);
        let names: std::collections::HashSet<_> = all.iter().map(|record| &record.name).collect();
        assert_eq!(view.name_count(), names.len() as u64, "{name}");
        for record in &all {
            assert_eq!(record.name_ref, NameRef::of(&record.name), "{name}");
            let mut found = view.lookup(&record.name).unwrap().unwrap();
            let mut one = Record::default();
            let mut matches = 0;
            while found.read_record(&mut one).unwrap() {
                matches += usize::from(one == *record);
            }
            assert_eq!(matches, 1, "{name}");
        }
        assert!(view.lookup(b"no such function").unwrap().is_none());
    }
}

#[test]
fn shares_together_are_the_whole() {
    for (name, bytes) in indexed_fixtures() {
        let view = IndexedProfile::parse(&bytes).unwrap();
        for shares in [2, 16] {
            let mut together = Vec::new();
            for share in 0..shares {
                let mut reader = view.records_of_share(share, shares);
                let mut record = Record::default();
                while reader.read_record(&mut record).unwrap() {
                    assert_eq!(record.name_ref.0 % shares as u64, share as u64, "{name}");
                    together.push((reader.record_offset(), record.clone()));
                }
            }
            // Each pass of the loop read a share of the records: the records whose name hash has the same remainder
            // when it is divided by the number of shares. Sorting by offset puts all records into the order of the
            // file.
            together.sort_by_key(|&(offset, _)| offset);
            let together: Vec<Record> = together.into_iter().map(|(_, record)| record).collect();
            assert_eq!(together, records(&bytes), "{name}");
        }
    }
}

#[test]
fn ranges_encoded_apart_are_the_whole() {
    for (name, bytes) in indexed_fixtures() {
        let profile = IndexedProfile::parse(&bytes).unwrap().to_profile().unwrap();
        let options = IndexedWriteOptions::for_version(13);
        let plan = IndexedPlan::new(&profile, &options).unwrap();
        let count = plan.function_count();
        let middle = count / 2;
        let mut summaries = plan.summarize(middle..count);
        summaries.merge(plan.summarize(0..middle));
        let mut parts = Vec::new();
        plan.encode_head(summaries, &mut parts);
        let mut from = 0;
        while from < count {
            let to = plan.next_cut(from, 100);
            assert!(to > from && to <= count, "{name}");
            plan.encode_range(from..to, &mut parts).unwrap();
            from = to;
        }
        plan.encode_tail(&mut parts);
        assert!(parts == rewrite(&profile, 13), "{name}");
        assert_eq!(parts.len() as u64, plan.total_len(), "{name}");
    }
}

#[test]
fn every_version_holds_what_it_can() {
    for (name, bytes) in indexed_fixtures() {
        let profile = IndexedProfile::parse(&bytes).unwrap().to_profile().unwrap();
        let full = sorted(records(&bytes));
        for version in 3..=14 {
            let options = IndexedWriteOptions::for_version(version);
            let mut out = Vec::new();
            let losses = write(&profile, &options, &mut out).unwrap();
            let view = IndexedProfile::parse(&out).unwrap();
            assert_eq!(view.header().version(), version, "{name}");
            let mut expected = full.clone();
            let (mut bitmaps, mut vtable_sites, mut uniformity) = (0, 0, 0);
            for record in &mut expected {
                if version < 14 && !record.uniformity.is_empty() {
                    record.uniformity.clear();
                    uniformity += 1;
                }
                if version < 11 && !record.bitmap.is_empty() {
                    record.bitmap.clear();
                    bitmaps += 1;
                }
                let vtables = record.values.kind_mut(2).unwrap();
                if version < 12 && vtables.site_count() > 0 {
                    vtables.clear();
                    vtable_sites += 1;
                }
            }
            assert!(
                sorted(records(&out)) == expected,
                "{name} in version {version}"
            );
            assert_eq!(
                (losses.bitmaps, losses.vtable_sites, losses.uniformity),
                (bitmaps, vtable_sites, uniformity)
            );
            let traces = view.temporal_traces().unwrap();
            let lost_traces = profile.traces.traces.len() - traces.traces.len();
            assert_eq!(
                losses.traces, lost_traces as u64,
                "{name} in version {version}"
            );
            assert!(version < 10 || traces == profile.traces);
            let lost_memprof = profile.memprof.is_some() && view.memprof().is_none();
            assert_eq!(losses.memprof, lost_memprof);
            assert!(version < 13 || !losses.memprof);
            let ids = view.binary_ids().unwrap();
            assert_eq!(
                losses.binary_ids,
                (profile.binary_ids.len() - ids.len()) as u64
            );
            assert_eq!(
                losses.flags.version_flags() | view.header().version_word & !0xff,
                IndexedProfile::parse(&bytes).unwrap().header().version_word
                    & !0xff
                    & !(u64::from(version < 10) << 63)
                    & !(u64::from(losses.memprof) << 62),
                "{name} in version {version}"
            );
        }
    }
}
