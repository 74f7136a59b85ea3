//! Laws that hold for the real profiles in this repository: the fast path gives the result of the ordinary path, with
//! any number of threads, and for cut and damaged files.
use crate::common::{Files, indexed, text, threads, whole};
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::raw::RawProfile;
use profkit_merge::report::LlvmCode;
use profkit_merge::{
    Action, Event, MergeError, MergeOptions, MergeOutcome, Policy, Reason, Report,
};
use profkit_testkit::{fixture, fixtures};

fn raws() -> Vec<String> {
    let names = fixtures()
        .into_iter()
        .filter_map(|path| path.to_str().map(str::to_owned));
    names
        .filter(|name| name.ends_with(".profraw") && name.starts_with("raw/"))
        .collect()
}

fn another_run(bytes: &[u8], factor: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let profile = RawProfile::parse(&bytes).unwrap();
    if profile.dialect().counter_len() != 8
        || profile.dialect().endian != profkit_data::bytes::Endian::Little
    {
        return bytes;
    }
    let section = profile.sections().counters;
    let start = usize::try_from(section.offset).unwrap();
    let end = start + section.bytes.len();
    for counter in bytes[start..end].as_chunks_mut::<8>().0 {
        *counter = u64::from_le_bytes(*counter)
            .wrapping_mul(factor)
            .to_le_bytes();
    }
    bytes
}

fn losses(report: &Report) -> Vec<&Event> {
    let events = report.events.iter();
    events.filter(|event| !event.reason.is_note()).collect()
}

fn lines(report: &Report) -> String {
    let lines: Vec<_> = report.events.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn fast_and_ordinary_path_agree_with_any_number_of_threads() {
    let names = raws();
    assert!(names.len() > 100, "the fixtures are there");
    for name in names {
        let bytes = fixture(&name);
        let files = Files::new([
            ("a", bytes.clone()),
            ("b", another_run(&bytes, 3)),
            ("c", another_run(&bytes, 1)),
            ("d", another_run(&bytes, 10)),
        ]);
        for policy in [Policy::Tolerant, Policy::Llvm] {
            let merge = |count, slow| {
                let options = threads(count).policy(policy).no_fast_path(slow);
                files.merge(&options).unwrap()
            };
            let mut expected = whole(&merge(1, true));
            for count in [1, 2, 3] {
                if policy == Policy::Llvm {
                    // With LLVM's policy, traces come in the order of its writers, one for each thread.
                    expected = whole(&merge(count, true));
                }
                assert!(
                    whole(&merge(count, false)) == expected,
                    "{name} {policy:?} {count}"
                );
            }
        }
        // With weights, LLVM's result depends on the order of inputs, which the fast path does not keep.
        let files = files.weighted(&[2, 1, 5, 1]);
        let merge = |slow| files.merge(&threads(2).no_fast_path(slow)).unwrap();
        assert!(
            whole(&merge(false)) == whole(&merge(true)),
            "{name}, weighted"
        );
    }
}

#[test]
fn most_fixtures_take_the_fast_path() {
    let mut fast = 0;
    let mut all = 0;
    for name in raws() {
        let files = Files::new([("a", fixture(&name)), ("b", fixture(&name))]);
        let totals = files.merge(&threads(1)).unwrap().report.totals;
        all += 1;
        fast += u64::from(totals.fast_profiles == 2);
    }
    assert!(fast * 10 > all * 8, "{fast} of {all}");
}

#[test]
fn different_programs_and_forms_together_do_not_depend_on_threads() {
    let files = Files::new([
        ("1", fixture("raw/clang-22-ir-shapes.profraw")),
        ("2", fixture("raw/clang-19-ir-shapes.profraw")),
        ("3", fixture("indexed/clang-22-ir-plain.profdata")),
        ("4", fixture("raw/clang-22-ir-plain.profraw")),
        ("5", fixture("raw/clang-16-ir-layers.profraw")),
        ("6", fixture("raw/clang-22-ir-host.profraw")),
        ("7", b":ir\nmain\n1\n1\n5\nmain\n99\n2\n1\n2\n".to_vec()),
    ]);
    let expected = whole(
        &files
            .merge(&threads(1).mixed_hashes(true).no_fast_path(true))
            .unwrap(),
    );
    for count in [1, 2, 3, 7] {
        assert!(
            whole(&files.merge(&threads(count).mixed_hashes(true)).unwrap()) == expected,
            "{count} threads"
        );
    }
}

#[test]
fn a_file_cut_in_its_names_gets_them_from_a_sibling_that_comes_later() {
    let bytes = fixture("raw/clang-22-ir-shapes.profraw");
    let names = RawProfile::parse(&bytes).unwrap().sections().names;
    let cut = bytes[..usize::try_from(names.offset).unwrap() + 9].to_vec();
    let run = another_run(&bytes, 7);
    let files = Files::new([("cut", cut.clone()), ("whole", run.clone())]);
    let outcome = files.merge(&MergeOptions::new()).unwrap();
    assert_eq!(outcome.report.totals.files_repaired, 1);
    assert!(!outcome.report.is_clean());
    assert!(
        outcome
            .report
            .events
            .iter()
            .any(|e| e.reason == Reason::NamesFromSibling),
        "{}",
        lines(&outcome.report)
    );
    insta::assert_snapshot!(lines(&outcome.report), @"
    cut: repaired: the file ends within a section (names, at offset 0x488): found 9 bytes left, expected 190 bytes
    cut: repaired: the value profiles of 2 functions are lost; their counters are kept
    cut: repaired: the names of 12 functions come from other inputs
    ");
    // The counters equal those of two complete files. The value data come after the cut, so they are lost.
    let both = Files::new([("a", bytes), ("b", run)])
        .merge(&MergeOptions::new())
        .unwrap();
    assert_eq!(counts(&outcome), counts(&both));
    // If the cut file is merged alone, its functions are kept under their hashes.
    let alone = Files::new([("cut", cut)])
        .merge(&MergeOptions::new())
        .unwrap();
    assert_eq!(alone.report.totals.files_repaired, 1);
    assert_eq!(nameless(&alone), 12);
}

fn counts(outcome: &MergeOutcome) -> Vec<(Vec<u8>, FuncHash, Vec<u64>)> {
    let functions = outcome.profiles[0].profile.tables[0].functions();
    let mut list: Vec<_> = functions
        .flat_map(|f| {
            f.records()
                .map(move |r| (f.name().to_vec(), r.func_hash, r.counts.to_vec()))
        })
        .collect();
    list.sort();
    list
}

fn nameless(outcome: &MergeOutcome) -> usize {
    let functions = outcome.profiles[0].profile.tables[0].functions();
    functions
        .filter(|function| NameRef::from_stand_in(function.name()).is_some())
        .count()
}

#[test]
fn names_that_an_object_file_lacks_come_from_any_other_input() {
    for fixture_name in [
        "raw/clang-22-ir-shapes.profraw",
        "raw/clang-22-fe-shapes.profraw",
    ] {
        let bytes = fixture(fixture_name);
        let names = RawProfile::parse(&bytes).unwrap().sections().names;
        let start = usize::try_from(names.offset).unwrap();
        let mut stripped = another_run(&bytes, 3);
        stripped.drain(start..(start + names.bytes.len()).next_multiple_of(8));
        // The size of the names is the tenth word of the header of raw version 10.
        stripped[72..80].fill(0);

        let options = MergeOptions::new();
        let merge = |files: &[(&'static str, &Vec<u8>)], options: &MergeOptions| {
            let files = files.iter().map(|&(name, bytes)| (name, bytes.clone()));
            Files::new(files).merge(options).unwrap()
        };
        let alone = merge(&[("stripped", &stripped)], &options);
        assert!(alone.report.is_clean(), "{}", lines(&alone.report));
        assert_eq!(alone.report.totals.fast_profiles, 1);
        assert_eq!(nameless(&alone), counts(&alone).len());
        let slow = merge(
            &[("stripped", &stripped)],
            &options.clone().no_fast_path(true),
        );
        assert_eq!(whole(&slow), whole(&alone));

        let run = another_run(&bytes, 3);
        let both = counts(&merge(&[("a", &bytes), ("b", &run)], &options));
        let merged = indexed(&alone.profiles[0].profile, 12);
        for files in [
            [("whole", &bytes), ("stripped", &stripped)],
            [("stripped", &stripped), ("whole", &bytes)],
            [("merged", &merged), ("whole", &bytes)],
            [("whole", &bytes), ("merged", &merged)],
        ] {
            for fast in [false, true] {
                let outcome = merge(&files, &options.clone().no_fast_path(fast));
                assert_eq!(counts(&outcome), both, "{files:?}");
                let reasons: Vec<_> = losses(&outcome.report).iter().map(|e| e.reason).collect();
                assert!(reasons.contains(&Reason::NamesFromSibling), "{reasons:?}");
            }
        }
    }
}

#[test]
fn records_that_contradict_each_other_are_summed_by_their_inputs() {
    let of = |counters: &[u64]| {
        let list: String = counters.iter().map(|count| format!("{count}\n")).collect();
        format!(":ir\nf\n1\n{}\n{list}\ng\n2\n1\n10\n", counters.len()).into_bytes()
    };
    let (old, new) = (of(&[1, 2]), of(&[30, 0, 5]));
    let files = [
        ("a", &old),
        ("b", &new),
        ("c", &new),
        ("d", &old),
        ("e", &new),
    ];
    let files = Files::new(files.map(|(name, bytes)| (name, bytes.clone())));
    for count in [1, 2, 4] {
        let report = files.merge(&threads(count)).unwrap().report;
        let found = report.mismatched.unwrap();
        let totals = (
            found.records,
            found.counts,
            found.all_counts,
            found.more_sides,
        );
        assert_eq!(totals, (3, 105, 105 + 6 + 50, 0));
        let [sides] = found.sides.as_slice() else {
            panic!("{:?}", found.sides)
        };
        assert_eq!((sides.kept.as_str(), sides.kept_inputs), ("a", 2));
        assert_eq!((sides.dropped.as_str(), sides.dropped_inputs), ("b", 3));
        assert_eq!((sides.functions, sides.counts), (1, 105));
    }
}

#[test]
fn a_file_cut_in_its_counters_keeps_the_functions_before_the_cut() {
    let bytes = fixture("raw/clang-22-fe-shapes.profraw");
    let counters = RawProfile::parse(&bytes).unwrap().sections().counters;
    let middle = usize::try_from(counters.offset).unwrap() + counters.bytes.len() / 2;
    let files = Files::new([("cut", bytes[..middle].to_vec()), ("whole", bytes.clone())]);
    let outcome = files.merge(&MergeOptions::new()).unwrap();
    let reasons: Vec<_> = outcome
        .report
        .events
        .iter()
        .map(|event| event.reason)
        .collect();
    assert!(
        reasons.contains(&Reason::CountersLost),
        "{}",
        lines(&outcome.report)
    );
    assert!(
        losses(&outcome.report)
            .iter()
            .all(|event| event.input == 0 && event.action == Action::Repaired)
    );
    let totals = outcome.report.totals;
    assert!(totals.records_dropped > 0 && totals.records_merged > totals.functions);
}

#[test]
fn every_cut_of_a_file_leaves_its_sibling_whole() {
    for name in [
        "raw/clang-22-ir-shapes.profraw",
        "raw/clang-13-fe-plain.profraw",
        "raw/clang-22-temporal-shapes.profraw",
    ] {
        let bytes = fixture(name);
        for len in (0..bytes.len()).step_by(61) {
            let files = Files::new([("cut", bytes[..len].to_vec()), ("whole", bytes.clone())]);
            let expected = files.merge(&threads(1)).unwrap();
            assert!(expected.report.totals.files_kept >= 1, "{name} {len}");
            assert!(
                len > 0 || expected.report.is_clean(),
                "an empty file is no damage"
            );
            let parallel = files.merge(&threads(2)).unwrap();
            assert!(whole(&expected) == whole(&parallel), "{name} {len}");
        }
    }
}

#[test]
fn an_implausible_counter_drops_its_function_and_no_more() {
    let bytes = fixture("raw/clang-22-fe-plain.profraw");
    let counters = RawProfile::parse(&bytes).unwrap().sections().counters;
    let mut bad = bytes.clone();
    let at = usize::try_from(counters.offset).unwrap();
    bad[at..at + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let files = Files::new([("good", bytes), ("bad", bad)]);
    let outcome = files.merge(&MergeOptions::new()).unwrap();
    let events = losses(&outcome.report);
    assert_eq!(events.len(), 1, "{}", lines(&outcome.report));
    let event = events[0];
    assert_eq!(
        (event.input, event.action, event.reason),
        (1, Action::Dropped, Reason::ImplausibleCounter)
    );
    insta::assert_snapshot!(event.to_string().replace(&String::from_utf8_lossy(event.function.as_ref().unwrap()).into_owned(), "F").replace(&format!("{at:#x}"), "AT"), @"bad: dropped function `F`: a counter is too large to be true (at offset AT): found 1152921504606846976, expected at most 72057594037927936");
    assert_eq!(outcome.report.totals.records_dropped, 1);
    // LLVM keeps the counter that is too large, and prints a warning with its value.
    let llvm = files.merge(&threads(1).policy(Policy::Llvm)).unwrap();
    let event = &llvm.report.events[0];
    assert_eq!(
        event.llvm.as_ref().unwrap().detail.as_deref(),
        Some("1152921504606846976")
    );
}

#[test]
fn what_cannot_go_together_is_refused_with_the_odd_files() {
    let files = Files::new([
        ("a.profraw", fixture("raw/clang-22-ir-plain.profraw")),
        ("b.profraw", fixture("raw/clang-22-ir-shapes.profraw")),
        ("c.profraw", fixture("raw/clang-22-fe-plain.profraw")),
    ]);
    let error = files.merge(&MergeOptions::new()).unwrap_err();
    insta::assert_snapshot!(error, @"front-end and IR profiles cannot be merged with each other: 2 IR profiles (a.profraw, b.profraw); 1 front-end profile (c.profraw)");
    assert!(error.hint().is_some());
    // LLVM 14 to 22 merge raw front-end and IR profiles with each other, without a message.
    assert!(
        files
            .merge(&threads(1).policy(Policy::Llvm))
            .unwrap()
            .report
            .is_clean()
    );
}

#[test]
fn build_ids_are_united_or_kept_apart() {
    let files = Files::new([
        ("a", fixture("raw/clang-22-ir-plain.profraw")),
        ("b", fixture("raw/clang-22-ir-shapes.profraw")),
        ("c", fixture("raw/clang-22-ir-plain.profraw")),
        ("d", fixture("raw/clang-19-ir-plain.profraw")),
    ]);
    let together = files.merge(&MergeOptions::new()).unwrap();
    let ids = &together.profiles[0].profile.binary_ids;
    assert_eq!(together.profiles.len(), 1);
    assert_eq!(ids.len(), 3);
    // clang 19 and 22 give the functions of `plain` the same hashes.
    assert!(together.report.totals.collisions > 0);
    for slow in [false, true] {
        let options = MergeOptions::new()
            .separate_by_build_id(true)
            .no_fast_path(slow);
        let apart = files.merge(&options).unwrap();
        assert_eq!(apart.profiles.len(), 3);
        assert_eq!(apart.report.totals.collisions, 0);
        for merged in &apart.profiles {
            assert_eq!(merged.build_ids, merged.profile.binary_ids);
        }
        // The separate result for this input equals the result of merging the input alone.
        let alone = Files::new([("d", fixture("raw/clang-19-ir-plain.profraw"))]);
        let alone = alone.merge(&MergeOptions::new()).unwrap();
        let part = apart
            .profiles
            .iter()
            .find(|merged| merged.build_ids == alone.profiles[0].profile.binary_ids);
        assert_eq!(
            indexed(&part.unwrap().profile, 13),
            indexed(&alone.profiles[0].profile, 13)
        );
    }
}

#[test]
fn a_program_without_functions_has_its_build_id() {
    let id = profkit_data::ids::BuildId(vec![0xab; 20]);
    let dialect = profkit_data::instr::raw::RawDialect {
        endian: profkit_data::bytes::Endian::Little,
        width: profkit_data::instr::raw::PointerWidth::Bits64,
        version: 10,
        flags: 0,
    };
    let mut image = profkit_data::instr::raw::RawImage::new(dialect);
    image.binary_ids = vec![id.clone()];
    let empty = image.to_bytes().unwrap();
    let plain = fixture("raw/clang-22-fe-plain.profraw");
    for (others, ids) in [(0, 1), (1, 2)] {
        let mut files = vec![("empty", empty.clone())];
        files.extend((0..others).map(|_| ("plain", plain.clone())));
        let files = Files::new(files);
        let merged = files.merge(&MergeOptions::new()).unwrap();
        assert!(merged.report.is_clean(), "{:?}", merged.report);
        let found = &merged.profiles[0].profile.binary_ids;
        assert_eq!((found.len(), found.contains(&id)), (ids, true));
    }
}

#[test]
fn normalised_inputs_count_the_same() {
    let bytes = fixture("raw/clang-22-fe-plain.profraw");
    let files = Files::new([
        ("short", bytes.clone()),
        ("long", another_run(&bytes, 1000)),
    ]);
    let outcome = files.merge(&MergeOptions::new().normalize(true)).unwrap();
    let plain = Files::new([("a", another_run(&bytes, 2000))]);
    let plain = plain.merge(&MergeOptions::new()).unwrap();
    assert!(text(&outcome.profiles[0].profile) == text(&plain.profiles[0].profile));
}

#[test]
fn large_indexed_inputs_give_the_same_by_shares() {
    let mut source = String::from(":ir\n");
    for index in 0..20_000 {
        source.push_str(&format!("function_{index}\n{}\n2\n{index}\n1\n", index % 7));
    }
    let small = Files::new([("t", source.into_bytes())]);
    let big = indexed(&small.merge(&threads(1)).unwrap().profiles[0].profile, 13);
    assert!(big.len() > 1 << 20);
    let conflicting =
        b":ir\nfunction_5\n5\n3\n1\n1\n1\nfunction_6\n6\n2\n18446744073709551613\n1\n".to_vec();
    for tail in [vec![], vec![("text", conflicting)]] {
        let inputs = [("a", big.clone()), ("b", big.clone())]
            .into_iter()
            .chain(tail);
        let files = Files::new(inputs);
        let expected = whole(&files.merge(&threads(1)).unwrap());
        for count in [2, 3, 4] {
            assert!(
                whole(&files.merge(&threads(count)).unwrap()) == expected,
                "{count} threads"
            );
        }
        let ways = whole(&files.merge(&threads(2).policy(Policy::Llvm)).unwrap());
        assert!(ways.0 == expected.0, "LLVM's policy");
    }
}

#[test]
fn what_is_no_profile_is_named_with_what_to_do() {
    let files = Files::new([
        ("empty.profraw", Vec::new()),
        ("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec()),
        ("junk", vec![0xfe; 64]),
    ]);
    let error = files.merge(&MergeOptions::new()).unwrap_err();
    insta::assert_snapshot!(error, @"none of the 3 inputs could be used");
    let MergeError::NothingLeft(report) = error else {
        panic!()
    };
    insta::assert_snapshot!(lines(&report), @"
    empty.profraw: dropped: the file is empty
    program: dropped: the file is a program, not a profile
    junk: dropped: the file is not a profile of any known kind: found the bytes [fe, fe, fe, fe, fe, fe, fe, fe], expected the magic number of a profile, or text
    ");
}

#[test]
fn a_damaged_memprof_section_is_left_out_and_its_file_is_kept() {
    let mut bytes = fixture("indexed/clang-22-memprof-ir-plain.profdata");
    let profile = profkit_data::instr::indexed::IndexedProfile::parse(&bytes).unwrap();
    let section = profile.memprof().unwrap();
    let functions = profile.to_profile().unwrap().record_count();
    // The second word of the section's header is the offset of the call stacks.
    let place = usize::try_from(section.offset).unwrap() + 8;
    bytes[place..place + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let files = Files::new([("damaged".to_owned(), bytes)]);
    let outcome = files.merge(&MergeOptions::new()).unwrap();
    assert!(outcome.profiles[0].profile.memprof.is_none());
    assert_eq!(outcome.profiles[0].profile.record_count(), functions);
    let events: Vec<String> = outcome
        .report
        .events
        .iter()
        .map(ToString::to_string)
        .collect();
    insta::assert_snapshot!(events.join("\n"), @"damaged: repaired: an offset in the section points outside the section (MemProf section, at offset 0xad0): found 0xffffffffffffffff, expected 0xac8 to 0xd10");
}

fn contradicting() -> Vec<(&'static str, Vec<u8>)> {
    let shapes = fixture("raw/clang-22-ir-shapes.profraw");
    let other = fixture("raw/clang-19-ir-shapes.profraw");
    let outcome = Files::new([("a", shapes.clone())])
        .merge(&threads(1))
        .unwrap();
    let mut text = text(&outcome.profiles[0].profile);
    // One counter more: both the number and the list of counters change.
    let at = text.find("# Num Counters:\n").unwrap() + "# Num Counters:\n".len();
    let end = at + text[at..].find('\n').unwrap();
    let count: u64 = text[at..end].parse().unwrap();
    text.replace_range(at..end, &(count + 1).to_string());
    let values = text[at..].find("# Counter Values:\n").unwrap() + at + "# Counter Values:\n".len();
    text.insert_str(values, "7\n");
    vec![
        ("shapes", shapes.clone()),
        ("again", another_run(&shapes, 3)),
        ("text", text.into_bytes()),
        ("other", other.clone()),
        ("late", another_run(&shapes, 5)),
        ("last", other),
    ]
}

#[test]
fn with_the_rules_of_llvm_the_fast_path_says_what_the_ordinary_one_says() {
    let all = contradicting();
    // Every subset in several rotations: which contradictions are found depends on both.
    for choice in 1u32..1 << all.len() {
        let chosen: Vec<_> = (0..all.len())
            .filter(|at| choice >> at & 1 == 1)
            .map(|at| all[at].clone())
            .collect();
        for rotation in 0..chosen.len().min(3) {
            let mut inputs = chosen.clone();
            inputs.rotate_left(rotation);
            let files = Files::new(inputs);
            for count in 1..=4 {
                let merge = |slow| {
                    let options = threads(count).policy(Policy::Llvm).no_fast_path(slow);
                    match files.merge(&options) {
                        Ok(outcome) => Ok(whole(&outcome)),
                        Err(error) => Err(format!("{error:?}")),
                    }
                };
                let (fast, slow) = (merge(false), merge(true));
                if let (Ok(fast), Ok(slow)) = (&fast, &slow) {
                    assert_eq!(fast.1, slow.1, "{choice:b} {rotation} {count}");
                    assert_eq!(fast.2, slow.2, "{choice:b} {rotation} {count}");
                }
                assert!(fast == slow, "{choice:b} {rotation} {count}");
            }
        }
    }
}

#[test]
fn heap_profiles_beside_others_are_merged_in_the_same_call() {
    let shapes = fixture("raw/clang-22-ir-shapes.profraw");
    let yaml = b"---\nHeapProfileRecords:\n  - GUID:            0x7\n    AllocSites:\n      - Callstack:\n          - { Function: 0x7, LineOffset: 1, Column: 2, IsInlineFrame: false }\n        MemInfoBlock:\n          AllocCount:      3\n    CallSites:       []\n...\n".to_vec();
    let alone = Files::new([("shapes", shapes.clone())])
        .merge(&threads(1))
        .unwrap();
    for count in 1..=4 {
        let files = Files::new([
            ("heap", yaml.clone()),
            ("shapes", shapes.clone()),
            ("bad", b"---\nHeapProfileRecords:\n  - no\n".to_vec()),
            ("more", yaml.clone()),
        ]);
        let merged = files.merge(&threads(count)).unwrap();
        assert_eq!(whole(&merged).0, whole(&alone).0);
        assert_eq!(
            merged.heap.as_ref().unwrap().profiles.len(),
            2,
            "{:?}",
            merged.report.events
        );
        let totals = merged.report.totals;
        assert_eq!(
            (totals.files, totals.files_kept, totals.files_dropped),
            (4, 3, 1)
        );
        assert_eq!(merged.report.events.len(), 1);
        assert_eq!(merged.report.events[0].file, "bad");
        assert_eq!(merged.report.heap.unwrap().profiles, 2);
        // A merge is also possible if all inputs are heap profiles.
        let only = Files::new([("heap", yaml.clone())]);
        let only = only.merge(&threads(count)).unwrap();
        assert_eq!(only.heap.unwrap().profiles.len(), 1);
    }
}

/// LLVM's tool reports a bad header for such a file.
#[test]
fn the_reason_of_a_cut_raw_file_is_its_end() {
    let whole = fixture("raw/clang-22-ir-plain.profraw");
    let profile = RawProfile::parse(&whole).unwrap();
    let counters_end = {
        let counters = profile.sections().counters;
        usize::try_from(counters.offset).unwrap() + counters.bytes.len()
    };
    for cut in (16..counters_end).step_by(8) {
        let files = Files::new([("cut", whole[..cut].to_vec())]);
        let report = match files.merge(&threads(1)) {
            Ok(merged) => merged.report,
            Err(MergeError::NothingLeft(report)) => *report,
            Err(other) => panic!("{cut}: {other}"),
        };
        let found = report.events.iter().find_map(|event| match event.reason {
            Reason::Truncated => event.llvm.clone(),
            _ => None,
        });
        let llvm = found.unwrap_or_else(|| panic!("{cut}: {:?}", report.events));
        assert_eq!(llvm.code, LlvmCode::BadHeader, "{cut}");
    }
}
