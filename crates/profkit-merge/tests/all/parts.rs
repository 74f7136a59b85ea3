//! The laws of parts, on encoded bytes: however inputs are distributed to parts, and in whatever order parts are added
//! up, the part, the profile and the report are the same.
use crate::common::{indexed, threads};
use crate::laws::{cases, parts_of_every_version};
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::instr::raw::RawProfile;
use profkit_data::{ErrorKind, Structure};
use profkit_merge::part::{Merger, PartError};
use profkit_merge::{
    MergeError, MergeOptions, MergeOutcome, Shard, TraceOptions, Weight, merge_instr,
};
use profkit_testkit::{change_part, fixture};
use proptest::prelude::*;
use std::fmt::Write;

pub(crate) fn shard(name: &str, bytes: impl Into<Vec<u8>>) -> Shard<Vec<u8>> {
    Shard {
        id: format!("bucket/{name}"),
        name: name.to_owned(),
        weight: Weight::ONE,
        bytes: bytes.into(),
    }
}

fn traces(from: usize, to: usize, stream: usize) -> String {
    let mut text = format!(":ir\n:temporal_prof_traces\n{}\n{stream}\n", to - from);
    for id in from..to {
        writeln!(text, "{}\nf{id},g{},h", 1 + id % 3, id % 7).unwrap();
    }
    for id in from..to {
        write!(text, "f{id}\n1\n1\n1\n").unwrap();
    }
    text
}

/// Inputs of every kind: equal runs, runs of another program, records that contradict each other in each way, value
/// sites that have one value twice or too many, traces, cut files, other files.
fn pool() -> Vec<Shard<Vec<u8>>> {
    let run = fixture("raw/clang-22-ir-shapes.profraw");
    let names = RawProfile::parse(&run).unwrap().sections().names.offset;
    let names = usize::try_from(names).unwrap();
    let mut pool = vec![
        shard("run-1", run.clone()),
        shard("run-2", run.clone()),
        Shard {
            weight: Weight::ratio(7, 3).unwrap(),
            ..shard("weighted", run.clone())
        },
        shard("cut-in-names", &run[..names + 9]),
        shard("cut-in-counters", &run[..names - 40]),
        shard("plain", fixture("raw/clang-22-ir-plain.profraw")),
        shard("indexed", fixture("indexed/clang-22-ir-plain.profdata")),
        shard("junk", *b"\x7fELF junk that is no profile"),
        shard("empty", *b""),
        shard("shape-2", *b":ir\nf\n1\n2\n5\n6\n\ng\n2\n1\n7\n"),
        shard("shape-1", *b":ir\nf\n1\n1\n18446744073709551000\n"),
        shard("shape-1-again", *b":ir\nf\n1\n1\n18446744073709551000\n"),
        shard("shape-3", *b":ir\nf\n1\n3\n1\n1\n1\n"),
        shard("traces-few", traces(0, 3, 3)),
        shard("traces-sample", traces(3, 9, 500)),
    ];
    for (number, values) in [
        (1, "0:5\n0:7\n9:1"),
        (2, "0:3\n9:9\n4:1"),
        (3, "9:2\n0:2\n0:1"),
    ] {
        let text = format!(":ir\nsite\n1\n1\n5\n1\n1\n1\n3\n{values}\n");
        pool.push(shard(&format!("sites-{number}"), text));
    }
    let two = *b":ir\nsite\n1\n1\n5\n1\n1\n2\n1\n9:1\n0\n";
    pool.push(shard("two-sites", two));
    for number in 0..2 {
        let mut text = String::from(":ir\nlong\n1\n1\n5\n1\n1\n1\n200\n");
        for value in 0..200 {
            writeln!(text, "{}:{}", number * 150 + value, 1 + value * 7 % 13).unwrap();
        }
        pool.push(shard(&format!("long-{number}"), text));
    }
    pool
}

/// The pool, with virtual tables; or profiles with bitmaps, which only the front end makes.
fn pool_with(bitmaps: bool) -> Vec<Shard<Vec<u8>>> {
    if !bitmaps {
        let vtables = fixture("raw/clang-22-vtables-shapes.profraw");
        let mut pool = pool();
        pool.push(shard("vtables", vtables.clone()));
        pool.push(shard("vtables-again", vtables));
        let indexed = fixture("indexed/clang-22-vtables-shapes.profdata");
        pool.push(shard("vtables-indexed", indexed));
        return pool;
    }
    let run = fixture("raw/clang-22-mcdc-shapes.profraw");
    let text = |bits: &str| format!(":fe\nf\n1\n1\n5\n$1\n{bits}\n");
    vec![
        shard("run-1", run.clone()),
        shard("run-2", run.clone()),
        shard("cut", &run[..run.len() * 2 / 3]),
        shard(
            "conditions",
            fixture("raw/clang-22-mcdc-conditions.profraw"),
        ),
        shard("indexed", fixture("indexed/clang-22-mcdc-shapes.profdata")),
        shard("bits-1", text("0x1")),
        shard("bits-4", text("0x4")),
        shard("two-bytes", ":fe\nf\n1\n1\n5\n$2\n0x1\n0x2\n"),
        shard("junk", *b"\x7fELF junk that is no profile"),
        Shard {
            weight: Weight::integer(3),
            ..shard("weighted", run)
        },
    ]
}

pub(crate) fn options() -> MergeOptions {
    let traces = TraceOptions {
        reservoir_size: 4,
        max_length: 2,
    };
    threads(1).traces(traces)
}

pub(crate) fn merger(shards: &[Shard<Vec<u8>>]) -> Merger {
    let mut merger = Merger::new(options()).unwrap();
    merger.add(shards).unwrap();
    merger
}

pub(crate) fn added(parts: &[&[u8]]) -> Merger {
    let mut merger = Merger::new(options()).unwrap();
    for part in parts {
        merger.add_part("part", part).unwrap();
    }
    merger
}

fn finished(merger: Merger) -> Result<MergeOutcome, MergeError> {
    merger.finish_instr()
}

/// The bytes of the profiles, and the report without the names of what was delivered twice.
pub(crate) fn whole(outcome: Result<MergeOutcome, MergeError>) -> (Vec<Vec<u8>>, String) {
    let mut report = match &outcome {
        Ok(outcome) => outcome.report.clone(),
        Err(error) => error.report().unwrap_or_else(|| panic!("{error}")).clone(),
    };
    report.repeated.clear();
    let profiles = outcome.map(|outcome| outcome.profiles).unwrap_or_default();
    let bytes = profiles.iter().map(|one| indexed(&one.profile, 13));
    (
        bytes.collect(),
        serde_json::to_string_pretty(&report).unwrap(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(profkit_testkit::short_or_whole(24, 400) as u32))]

    #[test]
    fn every_partition_and_tree_gives_the_same_bytes(
        case in cases(30, 5, 0.6),
        more_threads in 1usize..4,
        bitmaps in proptest::bool::weighted(0.3),
    ) {
        let pool = pool_with(bitmaps);
        let inputs = case.inputs(&pool);
        prop_assume!(!inputs.is_empty());
        let parts = case.parts(&pool, |own| merger(own).encode().unwrap());
        let once = merger(&inputs).encode().unwrap();
        let by_tree = case.added_up(parts.clone(), |parts| added(parts).encode().unwrap());
        prop_assert!(once == by_tree, "the part");
        // A part that is decoded and encoded is the same, alone, beside nothing, and beside itself.
        let empty = Merger::new(options()).unwrap().encode().unwrap();
        prop_assert!(added(&[&once]).encode().unwrap() == once);
        prop_assert!(added(&[&once, &empty]).encode().unwrap() == once);
        prop_assert!(added(&[&empty, &once, &once]).encode().unwrap() == once);
        // What is inside another part is left out, whichever comes first.
        prop_assert!(added(&[&parts[0], &once]).encode().unwrap() == once);
        prop_assert!(added(&[&once, &parts[0]]).encode().unwrap() == once);
        let options = options().order_free(true).threads(std::num::NonZeroUsize::new(more_threads));
        let expected = whole(merge_instr(&inputs, &options));
        prop_assert_eq!(&whole(finished(added(&[&once]))), &expected);
        let parts: Vec<_> = parts.into_iter().map(|part| ("part", part)).collect();
        prop_assert_eq!(&whole(merge_instr(&parts, &options)), &expected);
    }
}

#[test]
fn the_record_that_most_inputs_have_wins_and_other_paths_change_nothing() {
    let two = ":ir\nf\n1\n2\n5\n6\n";
    let inputs = [
        shard("a", ":ir\nf\n1\n1\n1\n"),
        shard("b", two),
        shard("c", two),
    ];
    let options = options().order_free(true);
    let outcome = merge_instr(&inputs, &options).unwrap();
    let profile = &outcome.profiles[0].profile;
    let function = profile.tables[0].functions().next().unwrap();
    assert_eq!(function.records().next().unwrap().counts, [10, 12]);
    insta::assert_snapshot!(outcome.report.events[0], @"a: dropped function `f`: the number of counters differs from that of the record of the function that most inputs have: found 1 counter, expected 2 counters");
    // Elsewhere the files have other names and ids; the profile is the same.
    let mut elsewhere: Vec<_> = inputs.iter().cloned().chain(pool()).collect();
    let here = merge_instr(&elsewhere, &options).unwrap();
    for (number, shard) in elsewhere.iter_mut().enumerate() {
        shard.id = format!("elsewhere {number}");
        shard.name = format!("{}", 100 - number);
    }
    let there = merge_instr(&elsewhere, &options).unwrap();
    assert!(indexed(&here.profiles[0].profile, 13) == indexed(&there.profiles[0].profile, 13));
}

#[test]
fn an_input_counts_once_and_equal_runs_count_each() {
    let run = fixture("raw/clang-22-ir-plain.profraw");
    let (one, two) = (shard("one", run.clone()), shard("two", run.clone()));
    let sum = |outcome: MergeOutcome| {
        let tables = outcome.profiles[0].profile.tables.clone();
        let records = tables.iter().flat_map(|table| table.functions());
        let counts = records.flat_map(|function| {
            function
                .records()
                .map(|one| one.counts.to_vec())
                .collect::<Vec<_>>()
        });
        counts.flatten().sum::<u64>()
    };
    let once = sum(finished(merger(std::slice::from_ref(&one))).unwrap());
    assert_eq!(
        sum(finished(merger(&[one.clone(), two.clone()])).unwrap()),
        2 * once
    );
    let again = finished(merger(&[one.clone(), one.clone()])).unwrap();
    assert_eq!(again.report.repeated, ["one"]);
    assert_eq!(sum(again), once);
    // Bytes without ids are inputs of their own each time.
    let bytes = [run.as_slice(), run.as_slice()];
    let merged = merge_instr(&bytes, &options().order_free(true)).unwrap();
    assert_eq!(sum(merged), 2 * once);
    let mut unnamed = Merger::new(options()).unwrap();
    unnamed.add(&bytes).unwrap();
    insta::assert_snapshot!(unnamed.encode().unwrap_err(), @"input 1: the input has no id, so it cannot be in a part");
    // A plain file beside a part that has it.
    let part = merger(&[one.clone(), two]).encode().unwrap();
    let inputs = [shard("part", part), one];
    let merged = merge_instr(&inputs, &options().order_free(true)).unwrap();
    assert_eq!(merged.report.repeated, ["one"]);
    assert_eq!(sum(merged), 2 * once);
}

pub(crate) fn part_error(outcome: Result<(), MergeError>) -> PartError {
    match outcome {
        Err(MergeError::Part(error)) => *error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_added_is_an_error_that_names_it() {
    let pool = pool();
    let ab = merger(&pool[..2]).encode().unwrap();
    let bc = merger(&pool[1..3]).encode().unwrap();
    let mut sum = added(&[&ab]);
    let overlap = part_error(sum.add_part("bc.pkpart", &bc));
    insta::assert_snapshot!(overlap, @"bc.pkpart: 1 input of the part is in the other inputs too, but others are not, so its counts cannot be added: run-2");
    // Nothing was added.
    assert!(sum.encode().unwrap() == ab);
    let other = shard("run-2", *b":ir\nf\n1\n1\n7\n");
    let contents = part_error(sum.add(&[other]));
    insta::assert_snapshot!(contents, @"run-2 and run-2 have the same id, but different contents or weights");
    let mut others = Merger::new(threads(1)).unwrap();
    others.add(&pool[..1]).unwrap();
    let options = part_error(others.add_part("ab.pkpart", &ab));
    insta::assert_snapshot!(options, @"ab.pkpart: the part was made with other options than the other inputs: found 4 temporal traces of at most 2 functions, expected 100 temporal traces of at most 10000 functions");
    // A part that is finished alone brings its options along.
    let mut alone = Merger::new(threads(1)).unwrap();
    alone.add_part("ab.pkpart", &ab).unwrap();
    assert_eq!(whole(finished(alone)), whole(finished(added(&[&ab]))));
    let heavy = Shard {
        weight: Weight::integer(2),
        ..shard("heavy.pkpart", ab)
    };
    let weight = part_error(Merger::new(threads(1)).unwrap().add(&[heavy]));
    insta::assert_snapshot!(weight, @"heavy.pkpart: a part cannot have a weight");
}

#[test]
fn damage_is_found_by_checksums_and_good_inputs_beside_it_are_kept() {
    let pool = pool();
    let part = merger(&pool[..6]).encode().unwrap();
    let mut damaged = part.clone();
    let at = part.len() - 3;
    damaged[at] ^= 4;
    let error = part_error(added(&[]).add_part("x.pkpart", &damaged));
    let PartError::Damaged { error, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), ErrorKind::ChecksumMismatch);
    assert!(error.is_within(&Structure::MergePart) && error.offset().is_some());
    let inputs = [
        shard("x.pkpart", damaged),
        shard("good", *b":ir\nf\n1\n1\n7\n"),
    ];
    let report = merge_instr(&inputs, &threads(1)).unwrap().report;
    let offset = format!("{:#x}", error.offset().unwrap());
    let event = report.events[0].to_string().replace(&offset, "OFFSET");
    insta::assert_snapshot!(event, @"x.pkpart: dropped: the checksum of the section is not that of its bytes (section VALUES of part of a merge, at offset OFFSET)");
    assert_eq!(
        (report.totals.files_kept, report.totals.files_dropped),
        (1, 1)
    );
    let mut newer = part.clone();
    newer[8] = 2;
    let error = part_error(added(&[]).add_part("x.pkpart", &newer));
    insta::assert_snapshot!(error, @"x.pkpart: part of a merge, at offset 0x8: the version of the part is not known: found version 2, expected at most version 1");
    for len in 0..part.len() {
        let error = part_error(added(&[]).add_part("x.pkpart", &part[..len]));
        assert!(matches!(error, PartError::Damaged { .. }), "{len}");
    }
    // Each changed bit is found, but for the mark of a section that readers may skip if they do not know it.
    let (at, skippable) = (16, 2);
    let sections = usize::from(part[14]);
    for (place, bit) in (0..part.len()).flat_map(|place| (0..8).map(move |bit| (place, 1 << bit))) {
        let entry = place.checked_sub(at).map(|place| (place / 36, place % 36));
        let is_mark = entry.is_some_and(|(entry, place)| entry < sections && place == 2);
        let mut damaged = part.clone();
        damaged[place] ^= bit;
        let added = added(&[]).add_part("x.pkpart", &damaged);
        if is_mark && bit == skippable {
            assert!(added.is_ok(), "{place}");
        } else {
            let found = added.expect_err(&format!("byte {place}, bit {bit}"));
            assert!(matches!(part_error(Err(found)), PartError::Damaged { .. }));
        }
    }
}

#[test]
fn a_part_is_no_larger_than_the_profile_with_all_its_functions() {
    let inputs = [
        shard("1", fixture("raw/clang-22-ir-shapes.profraw")),
        shard("2", fixture("raw/clang-22-ir-plain.profraw")),
    ];
    let part = merger(&inputs).encode().unwrap();
    let outcome = merge_instr(&inputs, &options()).unwrap();
    let profile = indexed(&outcome.profiles[0].profile, 13);
    assert!(IndexedProfile::parse(&profile).is_ok());
    assert!(
        part.len() * 10 <= profile.len() * 13,
        "{} {}",
        part.len(),
        profile.len()
    );
}

#[test]
fn parts_of_every_version_are_read() {
    let expected = whole(finished(merger(&pool())));
    for part in parts_of_every_version("", || merger(&pool()).encode().unwrap()) {
        assert_eq!(whole(finished(added(&[&part]))), expected);
    }
}

#[test]
fn sections_that_contradict_themselves_are_errors_with_their_names() {
    let part = merger(&pool()[..14]).encode().unwrap();
    let error = |tag: u16, change: &dyn Fn(&mut Vec<u8>)| {
        let changed = change_part(&part, |other, bytes| {
            if other == tag {
                change(bytes);
            }
        });
        part_error(added(&[]).add_part("x", &changed.unwrap())).to_string()
    };
    let longer = |bytes: &mut Vec<u8>| bytes.push(0);
    let shorter = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 1);
    for (tag, name) in (1..).zip([
        "OPTIONS", "INPUTS", "EVENTS", "GROUPS", "NAMES", "RECORDS", "COUNTS", "VALUES",
    ]) {
        let name = format!("section {name} of part of a merge, at offset");
        let (more, less) = (error(tag, &longer), error(tag, &shorter));
        assert!(
            more.contains(&name) && more.contains("more bytes than it needs"),
            "{more}"
        );
        assert!(less.contains(&name), "{less}");
    }
    // A number of inputs that the section cannot hold is not believed.
    let claimed = error(2, &|bytes| {
        bytes
            .splice(..1, [0xff, 0xff, 0xff, 0xff, 0x0f])
            .for_each(drop)
    });
    assert!(
        claimed.contains("a number is greater than the section"),
        "{claimed}"
    );
    let bomb = error(7, &|bytes| bytes.clear());
    assert!(
        bomb.contains("a record has more counters than the section"),
        "{bomb}"
    );
}
