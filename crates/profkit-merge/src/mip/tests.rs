use super::*;
use crate::{Inputs, Report, Weight};
use profkit_abi::mip::raw_header;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::index_vec::Id;
use profkit_data::mip::{
    CallEdge, Function, FunctionId, ImageFacts, MipMap, MipProfile, MipWriteOptions, Modes,
    PartToWrite, ProfileVersion, RawParts, Sample, Width, write, write_raw,
};
use profkit_data::tables::{Frame, StackFlags};
use profkit_testkit::mip::{
    BLOCKS, CALL_EDGES, CALLS, COVERAGE, MipFunction, MipImage, UNARY, V8_MAP, V8_RAW, mixed_image,
    with_checksum,
};
use proptest::prelude::*;
use std::borrow::Cow;

type Files = Vec<(String, Weight, Vec<u8>)>;

fn files(data: impl IntoIterator<Item = Vec<u8>>) -> Files {
    (0..)
        .zip(data)
        .map(|(index, data)| (format!("{index}.mipraw"), Weight::ONE, data))
        .collect()
}

fn created(map: &[u8], facts: &ImageFacts) -> MipProfile {
    let map = MipMap::parse(map).unwrap();
    MipProfile::create(&map, facts).unwrap().profile
}

fn profile_of(image: &MipImage) -> MipProfile {
    let facts = ImageFacts::new()
        .build_id(Some(BuildId(image.build_id.clone())))
        .width(Some(Width::Bits64))
        .section_size(Some(image.layout().1 as u64));
    created(&image.map().finish(), &facts)
}

fn target(profile: &MipProfile) -> MipTarget {
    MipTarget {
        name: "out.mip".to_owned(),
        profile: profile.clone(),
    }
}

fn merged(profile: &MipProfile, files: &Files) -> (MipProfile, Report) {
    run(vec![target(profile)], files, &MipMergeOptions::new())
}

fn run(targets: Vec<MipTarget>, files: &Files, options: &MipMergeOptions) -> (MipProfile, Report) {
    let mut outcome = merge_mip(targets, &Owned(files), options).unwrap();
    (outcome.targets.swap_remove(0).profile, outcome.report)
}

fn events(report: &Report) -> String {
    let lines = report.events.iter().map(|event| match &event.hint {
        Some(hint) => format!("{event}\n  hint: {hint}"),
        None => event.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_published_vector_of_version_8() {
    let empty = created(V8_MAP, &ImageFacts::new());
    let bytes = |profile: &MipProfile| {
        let mut out = Vec::new();
        write(
            profile,
            &MipWriteOptions::new().version(ProfileVersion::V8),
            &mut out,
        )
        .unwrap();
        out
    };
    let before = bytes(&empty);
    let (profile, report) = merged(&empty, &files([V8_RAW.to_vec()]));
    assert!(report.is_clean(), "{}", events(&report));
    let after = bytes(&profile);
    // The authors of the original MIP published the MD5 sums of the profile before and after the merge. The two sums
    // begin with bb20819943ea3f34 and 9e0678cc43b9eec8. `NameRef::of` computes the first half of an MD5 sum.
    let md5 = |bytes: &[u8]| NameRef::of(bytes).0.to_le_bytes();
    assert_eq!(
        md5(&before),
        [0xbb, 0x20, 0x81, 0x99, 0x43, 0xea, 0x3f, 0x34]
    );
    assert_eq!(
        md5(&after),
        [0x9e, 0x06, 0x78, 0xcc, 0x43, 0xb9, 0xee, 0xc8]
    );
    let changed: Vec<_> = (0..182).filter(|&at| before[at] != after[at]).collect();
    assert_eq!(changed, [0x4c, 0x50]);
}

fn naive(image: &MipImage, profile: &MipProfile, runs: &[Vec<u8>]) -> MipProfile {
    let mut profile = profile.clone();
    for raw in runs {
        for part in RawParts::new(raw) {
            let part = part.unwrap();
            profile.runs += u64::from(part.runs);
            let (offsets, _) = image.layout();
            for (function, offset) in profile.functions.iter_mut().zip(offsets) {
                let record = &part.records[offset..];
                function.raw_runs += u64::from(part.runs);
                let entry = match function.modes {
                    modes if modes.contains(Modes::CALLS) => {
                        let word =
                            |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
                        let entry = profkit_data::mip::calls_record(word(0), word(4));
                        function.called_runs += u64::from(entry.called);
                        function.calls += entry.calls;
                        function.calls_at_least |= entry.at_least;
                        if let Some(ordinal) = entry.ordinal {
                            function.order_sum += u64::from(ordinal);
                            function.order_runs += 1;
                            let least = function.order_min.unwrap_or(u32::MAX);
                            function.order_min = Some(least.min(ordinal));
                        }
                        8
                    }
                    modes if modes.contains(Modes::UNARY_COUNTER) => {
                        function.called_runs += u64::from(record[0] != 0xff);
                        function.calls += u64::from(record[0].count_zeros());
                        1
                    }
                    _ => {
                        function.called_runs += u64::from(record[0] == 0);
                        1
                    }
                };
                if let Some(inference) = &function.inference {
                    let mut bytes = record[entry..].iter();
                    let mut ran = vec![record[..entry].iter().any(|&byte| byte != 0xff)];
                    for list in inference.lists().skip(1) {
                        ran.push(list.is_empty() && *bytes.next().unwrap() == 0);
                    }
                    let of_list = |list: &[u32]| list.iter().any(|&from| ran[from as usize]);
                    function.called_runs += u64::from(of_list(inference.list(0)));
                    for (number, block) in (1..).zip(&mut function.blocks) {
                        let list = inference.list(number);
                        block.runs += u64::from(ran[number] || of_list(list));
                    }
                } else if function.modes.contains(Modes::BLOCK_COVERAGE) {
                    for (block, byte) in function.blocks.iter_mut().zip(&record[entry..]) {
                        block.runs += u64::from(*byte == 0);
                    }
                }
            }
        }
    }
    profile
}

fn any_image() -> impl Strategy<Value = MipImage> {
    let modes = prop_oneof![
        Just(COVERAGE),
        Just(COVERAGE | BLOCKS),
        Just(UNARY),
        Just(UNARY | BLOCKS),
        Just(CALLS),
        Just(CALLS | BLOCKS),
    ];
    // Which blocks have a byte, and which of them are in each list.
    let lists = (0..=u8::MAX, proptest::collection::vec(0..=u8::MAX, 4));
    proptest::collection::vec((modes, 0..4u32, lists), 1..12).prop_map(|functions| {
        let functions = (0..).zip(functions);
        let functions = functions.map(|(index, (modes, blocks, (recorded, chosen)))| {
            let name = format!("f{index}");
            if modes & BLOCKS == 0 || recorded & 0x80 != 0 {
                return MipFunction::new(name, modes, blocks);
            }
            let has_byte = |block: u32| match block {
                0 if modes & !BLOCKS != COVERAGE => true,
                _ => recorded >> block & 1 == 1,
            };
            let lists: Vec<Vec<u32>> = (0..=blocks)
                .map(|block| {
                    let chosen = chosen[block as usize];
                    let from =
                        (0..=blocks).filter(|&from| has_byte(from) && chosen >> from & 1 == 1);
                    from.filter(|_| !has_byte(block)).collect()
                })
                .collect();
            // An empty list means a byte.
            let lists: Vec<&[u32]> = lists
                .iter()
                .map(
                    |list| match list.iter().all(|&from| lists[from as usize].is_empty()) {
                        true => list.as_slice(),
                        false => &[],
                    },
                )
                .collect();
            MipFunction::inferred(name, modes, &lists)
        });
        MipImage::new(b"build", functions.collect())
    })
}

fn any_runs() -> impl Strategy<Value = (MipImage, Vec<Vec<u8>>)> {
    any_image().prop_flat_map(|image| {
        let calls = (0..image.functions.len(), 1..20u32, 0..9u32);
        let run = proptest::collection::vec(calls, 0..8);
        let runs = proptest::collection::vec((run, 1..4u32), 0..12);
        runs.prop_map(move |runs| {
            let raws = runs.into_iter().map(|(called, pooled)| {
                let called: Vec<_> = called
                    .into_iter()
                    .map(|(index, calls, ordinal)| match ordinal {
                        // The generated ordinals 0 and 8 stand for two special records. 0: the record has a call count
                        // but still the initial ordinal (all ones), as if the run had ended before it wrote the
                        // ordinal. 8: the record has an ordinal but the count 0, as if the count had wrapped around.
                        0 => (index, calls, u32::MAX),
                        8 => (index, 0, 8),
                        _ => (index, calls, ordinal),
                    })
                    .collect();
                image.raw_with(&image.run(&called), pooled, &[]).finish()
            });
            (image.clone(), raws.collect())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arrays_say_what_records_say((image, raws) in any_runs()) {
        let empty = profile_of(&image);
        let (profile, report) = merged(&empty, &files(raws.clone()));
        prop_assert!(report.is_clean(), "{}", events(&report));
        prop_assert_eq!(profile, naive(&image, &empty, &raws));
    }

    #[test]
    fn order_threads_and_grouping_change_nothing((image, raws) in any_runs(), split in 0..12usize) {
        let empty = profile_of(&image);
        let (whole, _) = merged(&empty, &files(raws.clone()));
        let mut reversed = raws.clone();
        reversed.reverse();
        prop_assert_eq!(&merged(&empty, &files(reversed)).0, &whole);
        let one = MipMergeOptions::new().threads(std::num::NonZeroUsize::new(1));
        prop_assert_eq!(&run(vec![target(&empty)], &files(raws.clone()), &one).0, &whole);
        let (front, back) = raws.split_at(split.min(raws.len()));
        let (front, _) = merged(&empty, &files(front.to_vec()));
        prop_assert_eq!(&merged(&front, &files(back.to_vec())).0, &whole);
        let (back, _) = merged(&empty, &files(back.to_vec()));
        let mut added = front.clone();
        prop_assert_eq!(add_profile(&mut added, &back), vec![]);
        prop_assert_eq!(&added, &whole);
        let mut written = Vec::new();
        write(&back, &MipWriteOptions::new(), &mut written).unwrap();
        prop_assert_eq!(&merged(&front, &files([written])).0, &whole);
    }

    #[test]
    fn profiles_add_up_in_any_order(kept in proptest::collection::vec(0..=u16::MAX, 3), counts in proptest::collection::vec(0..1000u64, 3)) {
        let profiles: Vec<_> = kept.iter().zip(&counts).map(|(&kept, &count)| part_of(kept, count)).collect();
        let [a, b, c] = &profiles[..] else { panic!() };
        let sum = |one: &MipProfile, two: &MipProfile| {
            let mut sum = one.clone();
            assert_eq!(add_profile(&mut sum, two), []);
            sum
        };
        prop_assert_eq!(shape(&sum(a, b)), shape(&sum(b, a)));
        prop_assert_eq!(shape(&sum(&sum(a, b), c)), shape(&sum(a, &sum(b, c))));
        let none = MipProfile::default();
        prop_assert_eq!(&sum(a, &none), a);
        prop_assert_eq!(&sum(&none, a), a);
    }
}

fn part_of(kept: u16, count: u64) -> MipProfile {
    let mut profile = profile_of(&mixed_image());
    profile.runs = count;
    let mut index = 0;
    profile.functions.as_mut_vec().retain(|_| {
        index += 1;
        kept >> index & 1 == 1
    });
    for (function, more) in profile.functions.iter_mut().zip(0..) {
        function.raw_runs = count;
        function.called_runs = count / 2;
        function.calls = count * 7;
        function.order_sum = count + more;
        function.order_runs = count / 2;
        function.order_min = u32::try_from(count).ok().filter(|&least| least > 100);
        for block in &mut function.blocks {
            block.runs = count / 3;
        }
        let frame = Frame {
            function: &function.name,
            path: Some(Cow::Borrowed(b"/src/a.c")),
            line: u32::from(function.modes.0),
            column: 1,
            flags: StackFlags::default(),
        };
        function.location = profile.tables.intern_stack(&[frame]).unwrap();
    }
    profile.edges = profile
        .functions
        .ids()
        .zip(0..)
        .map(|(callee, number)| CallEdge {
            caller: callee.index().checked_sub(1).map(FunctionId::from_index),
            call_site: number,
            callee,
            weight: count,
        })
        .collect();
    profile
}

fn shape(profile: &MipProfile) -> impl PartialEq + std::fmt::Debug + use<> {
    let functions: Vec<_> = profile
        .functions
        .iter()
        .map(|function| {
            let frames = profile.tables.frames(function.location);
            let frames: Vec<_> = frames
                .map(|frame| format!("{:?} {:?} {}", frame.function, frame.path, frame.line))
                .collect();
            let function = Function {
                location: None,
                ..function.clone()
            };
            (function, frames)
        })
        .collect();
    (profile.runs, functions, profile.edges.clone())
}

#[test]
fn more_files_than_a_byte_counts() {
    let image = mixed_image();
    let raw = image.raw(&image.run(&[(2, 1, 0)]));
    let (profile, _) = merged(&profile_of(&image), &files(vec![raw; 700]));
    let covered = &profile.functions.as_slice()[2];
    assert_eq!(
        (profile.runs, covered.called_runs, covered.blocks[0].runs),
        (700, 700, 700)
    );
    assert_eq!(covered.blocks[1].runs, 0);
}

#[test]
fn samples_become_call_edges() {
    let image = mixed_image();
    let back = |address: u64| {
        u32::try_from(address.wrapping_sub(MipImage::SECTION) & 0xffff_ffff).unwrap()
    };
    let samples = [
        // main calls `two` at 0x15, twice. `two` ends with a call of main that never returns. libc calls main.
        (12, back(MipImage::TEXT + 0x15)),
        (12, back(MipImage::TEXT + 0x15)),
        (0, back(MipImage::TEXT + 0x80)),
        (0, back(0x7000_0000)),
        (5, back(MipImage::TEXT)),
        (0, 0),
    ];
    let raw = image.raw_with(&image.records(), 1, &samples).finish();
    let (profile, report) = merged(&profile_of(&image), &files([raw.clone(), raw]));
    let edge = |caller: Option<usize>, call_site, callee, weight| CallEdge {
        caller: caller.map(FunctionId::from_index),
        call_site,
        callee: FunctionId::from_index(callee),
        weight,
    };
    assert_eq!(
        profile.edges,
        [
            edge(None, 0, 0, 2),
            edge(Some(0), 0x15, 1, 4),
            edge(Some(1), 0x40, 0, 2),
        ]
    );
    assert_eq!(report.mip.as_ref().unwrap().samples_dropped, 2);
}

#[test]
fn sampled_calls_become_call_edges_with_weights() {
    let image = MipImage::new(
        &[1, 2, 3],
        vec![
            MipFunction::new("main", CALLS | CALL_EDGES, 0),
            MipFunction::new("f", CALLS | CALL_EDGES | BLOCKS, 1),
        ],
    );
    let sample = |record_offset, address: u64| Sample {
        record_offset,
        return_offset: u32::try_from(address.wrapping_sub(MipImage::SECTION) & 0xffff_ffff)
            .unwrap(),
    };
    let lost = Sample {
        record_offset: u32::MAX,
        return_offset: u32::MAX,
    };
    let mut records = image.records();
    let mut calls = |at: usize, calls: u64, ordinal: u32| {
        records[at..at + 4].copy_from_slice(&(-1i32).to_le_bytes());
        records[at + 4..at + 8].copy_from_slice(&ordinal.to_le_bytes());
        records[at + 8..at + 16].copy_from_slice(&(calls - 1).to_le_bytes());
    };
    calls(0, 1, 1);
    calls(16, 1 << 33, 2);
    let mut raw = Vec::new();
    let part = PartToWrite {
        build_id: &image.build_id,
        width: Width::Bits64,
        modes: Modes(image.modes()),
        runs: 1,
        records: &records,
        samples: &[
            (lost, 7),
            (sample(0, 0x7000_0000), 1),
            (sample(16, MipImage::TEXT + 0x15), 1 << 33),
            // No function has a record there.
            (sample(4, MipImage::TEXT), 3),
        ],
    };
    write_raw(&part, &mut raw).unwrap();
    let (profile, report) = merged(&profile_of(&image), &files([raw.clone(), raw.clone()]));
    let weights: Vec<_> = profile
        .edges
        .iter()
        .map(|edge| (edge.call_site, edge.weight))
        .collect();
    assert_eq!(weights, [(0, 2), (0x15, 1 << 34)]);
    let f = &profile.functions.as_slice()[1];
    assert_eq!(
        (f.calls, f.calls_at_least, f.order_sum),
        (1 << 34, false, 4)
    );
    let details = report.mip.as_ref().unwrap();
    assert_eq!((details.samples_dropped, details.calls_not_kept), (6, 14));
    // Of a file whose table is damaged, the records are kept.
    let size = raw_header::SAMPLES_SIZE;
    let mut damaged = raw.clone();
    damaged.drain(raw.len() - 16..raw.len() - 8);
    let bytes = u32::from_le_bytes(damaged[size..size + 4].try_into().unwrap()) - 8;
    damaged[size..size + 4].copy_from_slice(&bytes.to_le_bytes());
    let (profile, report) = merged(&profile_of(&image), &files([with_checksum(damaged)]));
    assert_eq!(
        (profile.runs, profile.functions.as_slice()[1].calls),
        (1, 1 << 33)
    );
    assert!(profile.edges.is_empty());
    assert_eq!(report.totals.files_repaired, 1);
}

#[test]
fn counts_that_were_too_large_are_lower_bounds_in_the_sum_too() {
    let image = mixed_image();
    let raws = [3, 0x7f00_0005, 5].map(|calls| image.raw(&image.run(&[(0, calls, 1), (1, 8, 2)])));
    let (profile, _) = merged(&profile_of(&image), &files(raws));
    let found = profile.functions.iter().take(2);
    let found: Vec<_> = found
        .map(|function| (function.calls, function.calls_at_least))
        .collect();
    assert_eq!(found, [(0x7f00_000d, true), (24, false)]);
}

#[test]
fn what_is_dropped_and_why() {
    let image = mixed_image();
    let whole = image.raw(&image.run(&[(0, 3, 1), (4, 1, 0)]));
    let other = MipImage::new(&[1, 2], image.functions.clone());
    let smaller = MipImage::new(&image.build_id, image.functions[..2].to_vec());
    let mut changed = whole.clone();
    changed[60] ^= 1;
    let mut modes = image.raw_with(&image.records(), 1, &[]);
    modes.patch_u32("modes", 1);
    let mut written = Vec::new();
    let mut foreign = profile_of(&other);
    write(&foreign, &MipWriteOptions::new(), &mut written).unwrap();
    foreign.identity = profile_of(&image).identity;
    let second = FunctionId::from_index(1);
    foreign.functions[second].signature = 7;
    foreign.functions[second].called_runs = 7;
    let mut unlike = Vec::new();
    write(&foreign, &MipWriteOptions::new(), &mut unlike).unwrap();
    let mut inputs = files([
        whole.clone(),
        Vec::new(),
        b"\x7fELF\x02\x01\x01".to_vec(),
        image.map().finish(),
        b"some text".to_vec(),
        other.raw(&other.records()),
        MipImage::new(b"", image.functions.clone()).raw(&image.records()),
        smaller.raw(&smaller.records()),
        changed.clone(),
        with_checksum(modes.finish()),
        whole[..70].to_vec(),
        [&whole[..], &changed].concat(),
        V8_RAW.to_vec(),
        written,
        unlike,
    ]);
    inputs.push(("unreadable".to_owned(), Weight::ONE, Vec::new()));
    let (profile, report) = merged(&profile_of(&image), &inputs);
    insta::assert_snapshot!(events(&report), @"
    1.mipraw: dropped: the file is empty
      hint: the program ended before it wrote its records, or it still runs and has not written them yet
    2.mipraw: dropped: the file is neither a MIP raw file nor a MIP profile: found a program or object file
      hint: name binaries with --binary; a raw file is a file that the program wrote when it ran
    3.mipraw: dropped: the file is neither a MIP raw file nor a MIP profile: found a map
      hint: create a profile from the map first
    4.mipraw: dropped: the file is neither a MIP raw file nor a MIP profile: found text
      hint: a raw file is the file that an instrumented program writes when it ends; its name is default.mipraw if no other name was set
    5.mipraw: dropped: no profile has the build id of this raw file (raw file, at offset 0x0): found build id 0102, expected build id abababababababababababababababababababab
      hint: give the profile of the build that wrote the raw file, or the binary with --binary
    6.mipraw: dropped: no profile has the build id of this raw file (raw file, at offset 0x0): found no build id, expected build id abababababababababababababababababababab
      hint: give the profile of the build that wrote the raw file, or the binary with --binary
    7.mipraw: dropped: the records have the wrong size (raw file, at offset 0x0): found 20 bytes, expected 25 bytes, the size in the binary
    8.mipraw: dropped: the checksum does not fit the bytes before it (raw file, at offset 0x51): found 0x3a146c6f3ef98de0, expected 0x78cdce7e09851ea6
      hint: the file was changed after it was written: copy it again
    9.mipraw: dropped: the program was built without a mode that the profile has (raw file, at offset 0x0): found mode bits 0x1, expected all bits of 0x3f
    10.mipraw: repaired: the file ends inside one of its parts (raw file, at offset 0x46): found 14 bytes of records, samples and checksum, expected 33 bytes
      hint: the file lost its end after it was written: copy it again
    11.mipraw: dropped: the checksum does not fit the bytes before it (raw file of part 2, at offset 0xaa): found 0x3a146c6f3ef98de0, expected 0x78cdce7e09851ea6
      hint: the file was changed after it was written: copy it again
    12.mipraw: dropped: no profile has the build id of this raw file (raw file, at offset 0x0): found module hash 0xdeadbeef, expected build id abababababababababababababababababababab
      hint: give the profile of the program or library that wrote the raw file
    13.mipraw: dropped: the profile is of another build (MIP profile, at offset 0x0): found build id 0102
      hint: to merge profiles of several builds, give a folder: -p FOLDER
    14.mipraw: dropped function `_ZN3one3twoEi`: the function's code differs between this file and the profile that it is merged into: found signature 0x7, expected 0x1000
    unreadable: dropped: cannot be read: no luck
    ");
    assert!(!report.is_clean());
    let counts: Vec<_> = profile
        .functions
        .iter()
        .map(|function| (function.raw_runs, function.called_runs))
        .collect();
    // The file that is cut short contains the record of main, but not the records after it.
    assert_eq!(counts, [(3, 3), (2, 0), (2, 0), (2, 0), (2, 2)]);
    let totals = report.totals;
    let files = [
        totals.files,
        totals.files_kept,
        totals.files_repaired,
        totals.files_dropped,
        totals.files_empty,
    ];
    assert_eq!(files, [16, 1, 3, 11, 1]);
}

#[test]
fn records_of_version_8_that_nothing_writes() {
    let mut raw = V8_RAW.to_vec();
    raw[33] = 0x7f;
    let mut short = V8_RAW.to_vec();
    short.truncate(33);
    let empty = created(V8_MAP, &ImageFacts::new());
    let mut hash = V8_RAW.to_vec();
    hash[12] = 0;
    let (profile, report) = merged(&empty, &files([raw, short, hash]));
    assert_eq!(profile, empty);
    insta::assert_snapshot!(events(&report), @"
    0.mipraw: dropped: a record has an invalid value (raw file, at offset 0x21): expected a byte of 0x00 or 0xff, or a count with an ordinal
    1.mipraw: dropped: too few records (raw file, at offset 0x0): found 33 bytes, expected at least 34 bytes
    2.mipraw: dropped: no profile has the build id of this raw file (raw file, at offset 0x0): found module hash 0xdeadbe00, expected module hash 0xdeadbeef
      hint: give the profile of the program or library that wrote the raw file
    ");
}

#[test]
fn calls_of_version_8_are_the_count_itself() {
    let mut map = V8_MAP.to_vec();
    map[8] = 0xc;
    // The record of the function foo is at 0x20, and that of main at 0x28.
    map[0x48] = 0x80;
    let mut raw = V8_RAW[..32].to_vec();
    raw[8] = 0xc;
    for word in [5u32, 2, u32::MAX, u32::MAX] {
        raw.extend(word.to_le_bytes());
    }
    let empty = created(&map, &ImageFacts::new());
    assert_eq!(empty.functions.as_slice()[1].record_offset, 0x28);
    let (profile, report) = merged(&empty, &files([raw.clone()]));
    assert!(report.is_clean(), "{}", events(&report));
    let foo = &profile.functions.as_slice()[0];
    assert_eq!(
        (foo.called_runs, foo.calls, foo.order_sum, foo.order_min),
        (1, 5, 2, Some(2))
    );
    assert!(!profile.functions.as_slice()[1].is_covered());
    raw[0x2c] = 0;
    let (_, report) = merged(&empty, &files([raw]));
    insta::assert_snapshot!(events(&report), @"0.mipraw: dropped: a record has an invalid value (raw file, at offset 0x28): expected a byte of 0x00 or 0xff, or a count with an ordinal");
}

#[test]
fn a_profile_without_build_id_takes_the_first() {
    let image = mixed_image();
    let mut empty = profile_of(&image);
    empty.identity = profkit_data::mip::Identity::UNKNOWN;
    let other = MipImage::new(&[7], image.functions.clone());
    let inputs = files([
        b"no raw file".to_vec(),
        image.raw(&image.records()),
        other.raw(&other.records()),
    ]);
    let (profile, report) = merged(&empty, &inputs);
    assert_eq!(profile.runs, 1);
    insta::assert_snapshot!(events(&report), @"
    0.mipraw: dropped: the file is neither a MIP raw file nor a MIP profile: found text
      hint: a raw file is the file that an instrumented program writes when it ends; its name is default.mipraw if no other name was set
    1.mipraw: kept: its build id abababababababababababababababababababab is now also that of out.mip, which had none because it was created from a map
    2.mipraw: dropped: no profile has the build id of this raw file (raw file, at offset 0x0): found build id 07, expected build id abababababababababababababababababababab
      hint: give the profile of the build that wrote the raw file, or the binary with --binary
    ");
}

#[test]
fn several_builds_at_once_each_to_its_own() {
    let images: Vec<_> = (0..3)
        .map(|build| MipImage::new(&[build; 20], mixed_image().functions))
        .collect();
    let raws = (0..90).map(|run| images[run % 3].raw(&images[run % 3].run(&[(run % 5, 1, 1)])));
    let targets: Vec<_> = images
        .iter()
        .map(|image| target(&profile_of(image)))
        .collect();
    let inputs = files(raws);
    let outcome = merge_mip(targets, &Owned(&inputs), &MipMergeOptions::new()).unwrap();
    assert!(outcome.report.is_clean());
    let runs: Vec<_> = outcome
        .report
        .mip
        .unwrap()
        .targets
        .iter()
        .map(|target| (target.runs_added, target.covered))
        .collect();
    assert_eq!(runs, [(30, 5); 3]);
}

#[test]
fn raw_files_are_merged_into_a_profile_that_is_an_input_even_if_there_are_targets() {
    let first = mixed_image();
    let second = MipImage::new(&[1, 2], first.functions.clone());
    let mut bytes = Vec::new();
    write(&profile_of(&second), &MipWriteOptions::new(), &mut bytes).unwrap();
    let raw = |image: &MipImage| image.raw(&image.run(&[(0, 1, 1)]));
    let inputs = files([raw(&second), raw(&first), bytes, raw(&second)]);
    let merge = |targets| {
        let options = MipMergeOptions::new().take_profiles(true);
        let outcome = merge_mip(targets, &Owned(&inputs), &options).unwrap();
        let runs = outcome.targets.iter().map(|target| target.profile.runs);
        (
            outcome.report.totals.files_dropped,
            runs.collect::<Vec<_>>(),
        )
    };
    assert_eq!(merge(vec![target(&profile_of(&first))]), (0, vec![1, 2]));
    assert_eq!(merge(vec![target(&profile_of(&second))]), (1, vec![2]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Any number of threads must give the same bytes and the same report, even if inputs are damaged.
    #[test]
    fn threads_do_not_change_bytes(
        runs in proptest::collection::vec((0u8..6, 0usize..5, 1u32..9), 1..80),
        has_target in any::<bool>(),
    ) {
        let image = mixed_image();
        let other = MipImage::new(&[1, 2], image.functions.clone());
        let empty = profile_of(&image);
        let inputs = files(runs.into_iter().map(|(kind, function, calls)| {
            let raw = image.raw(&image.run(&[(function, calls, 0)]));
            match kind {
                0 => raw[..raw.len() - 9].to_vec(),
                1 => other.raw(&other.run(&[(function, calls, 0)])),
                2 => {
                    let (profile, _) = merged(&empty, &files([raw]));
                    let mut bytes = Vec::new();
                    write(&profile, &MipWriteOptions::new(), &mut bytes).unwrap();
                    bytes
                }
                _ => raw,
            }
        }));
        let merge = |threads| {
            let targets = if has_target { vec![target(&empty)] } else { Vec::new() };
            let options = MipMergeOptions::new()
                .threads(std::num::NonZeroUsize::new(threads))
                .take_profiles(true);
            let outcome = merge_mip(targets, &Owned(&inputs), &options).unwrap();
            let bytes: Vec<Vec<u8>> = outcome
                .targets
                .iter()
                .map(|target| {
                    let mut bytes = Vec::new();
                    write(&target.profile, &MipWriteOptions::new(), &mut bytes).unwrap();
                    bytes
                })
                .collect();
            (bytes, format!("{:#?}", outcome.report))
        };
        let one = merge(1);
        for threads in 2..=4 {
            prop_assert_eq!(merge(threads), one.clone(), "{} threads", threads);
        }
    }
}

struct Owned<'a>(&'a [(String, Weight, Vec<u8>)]);

impl Inputs for Owned<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn name(&self, index: usize) -> std::borrow::Cow<'_, str> {
        self.0[index].0.as_str().into()
    }
    fn open<'s>(&'s self, index: usize, _: &mut Vec<u8>) -> std::io::Result<crate::InputData<'s>> {
        match self.0[index].0.as_str() {
            "unreadable" => Err(std::io::Error::other("no luck")),
            _ => Ok(crate::InputData::Borrowed(&self.0[index].2)),
        }
    }
}
