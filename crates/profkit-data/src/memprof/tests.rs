#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use super::indexed::{IndexedMemProf, IndexedMemProfOptions, encode};
use super::*;
use crate::Error;
use proptest::prelude::*;
use std::fmt::Write as _;

const SAMPLE: &str = "---
HeapProfileRecords:
  - GUID:            0xdeadbeef12345678
    AllocSites:
      - Callstack:
          - { Function: 0x1111111111111111, LineOffset: 11, Column: 10, IsInlineFrame: true }
          - { Function: 0x2222222222222222, LineOffset: 22, Column: 20, IsInlineFrame: false }
        MemInfoBlock:
          AllocCount:      111
          TotalSize:       222
          TotalLifetime:   333
          TotalLifetimeAccessDensity: 444
    CallSites:
      - Frames:
          - { Function: 0x5555555555555555, LineOffset: 55, Column: 50, IsInlineFrame: true }
        CalleeGuids:     [ 0x100, 0xe413754a191db537 ]
DataAccessProfiles:
  SampledRecords:
    - Symbol:          abcde
      AccessCount:     100
      Locations:
        - FileName:        file2.h
          Line:            123
  KnownColdSymbols:
    - foo
  KnownColdStrHashes: [ 999 ]
...
";

fn text(profile: &MemProfile) -> String {
    let mut out = Vec::new();
    yaml::write(profile, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn file_of(profile: &MemProfile, version: u32) -> (Vec<u8>, u64) {
    let section = encode(profile, &IndexedMemProfOptions::for_version(version, false)).unwrap();
    let mut file = vec![0; usize::try_from(section.offset).unwrap()];
    file.extend(section.bytes);
    (file, section.offset)
}

fn read(file: &[u8], start: u64) -> Result<MemProfile, Error> {
    IndexedMemProf::parse(file, start)?.to_profile()
}

#[test]
fn every_version_says_again_what_it_was_told() {
    let profile = yaml::parse(SAMPLE.as_bytes()).unwrap();
    assert_eq!(text(&profile), SAMPLE);
    for version in 0..=4 {
        let (file, start) = file_of(&profile, version);
        let again = read(&file, start).unwrap();
        let mut expected = profile.clone();
        if version < 4 {
            expected.data_access = None;
            let record = expected.record_mut(0xdead_beef_1234_5678);
            record.call_sites[0].callees.clear();
        }
        let mut got = text(&again);
        if version < 2 {
            // Sections of version 0 and 1 always have all fields, also fields whose value is 0.
            let zero = |line: &str| line.starts_with("          ") && line.ends_with(" 0");
            got = got
                .lines()
                .filter(|line| !zero(line))
                .fold(String::new(), |all, line| all + line + "\n");
        }
        assert_eq!(got, text(&expected), "version {version}");
        if version == 4 {
            let section = IndexedMemProf::parse(&file, start).unwrap();
            assert_eq!(section.summary(), Some(MemProfSummary::of(&profile)));
        }
    }
}

/// LLVM 19 gives both frames the id 0x036dfc7c51f42165.
#[test]
fn frames_of_one_hash_stay_apart_in_every_version() {
    let frame = |line: u32, column: u32| {
        format!(
            "{{ Function: 0x1160855f3bbd5be4, LineOffset: {line}, Column: {column}, IsInlineFrame: false }}"
        )
    };
    let sample = SAMPLE
        .replace(
            "{ Function: 0x1111111111111111, LineOffset: 11, Column: 10, IsInlineFrame: true }",
            &frame(1, 26),
        )
        .replace(
            "{ Function: 0x2222222222222222, LineOffset: 22, Column: 20, IsInlineFrame: false }",
            &frame(2, 91),
        );
    let profile = yaml::parse(sample.as_bytes()).unwrap();
    let ids = profile
        .frames()
        .iter()
        .map(|frame| IdScheme::Combined.frame_id(frame));
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), profile.frames().len()), (2, 3));
    for profile in [profile.in_order_of_llvm_19(), profile] {
        for version in 0..=2 {
            let options = IndexedMemProfOptions::for_version(version, false);
            let section = encode(&profile, &options.ids(IdScheme::Combined)).unwrap();
            let mut file = vec![0; usize::try_from(section.offset).unwrap()];
            file.extend(section.bytes);
            let again = text(&read(&file, section.offset).unwrap());
            assert!(
                again.contains(&frame(1, 26)) && again.contains(&frame(2, 91)),
                "{version}: {again}"
            );
        }
    }
}

#[test]
fn each_damage_of_a_section_has_its_message() {
    let profile = yaml::parse(SAMPLE.as_bytes()).unwrap();
    let mut messages = String::new();
    let mut say = |name: &str, version: u32, damage: &dyn Fn(&mut Vec<u8>, usize)| {
        let (mut file, start) = file_of(&profile, version);
        damage(&mut file, usize::try_from(start).unwrap());
        let judged = match read(&file, start) {
            Ok(_) => "is read".to_owned(),
            Err(error) => match error.hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            },
        };
        let _ = writeln!(messages, "{name}: {judged}");
    };
    let set = |file: &mut Vec<u8>, at: usize, value: u64| {
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    say("version 5", 3, &|file, at| set(file, at, 5));
    say("cut in the header", 3, &|file, at| file.truncate(at + 12));
    say("call stacks beyond the file", 3, &|file, at| {
        set(file, at + 8, 1 << 40)
    });
    say("records before call stacks", 3, &|file, at| {
        set(file, at + 16, 80)
    });
    say("table of records beyond the file", 3, &|file, at| {
        set(file, at + 24, 1 << 40)
    });
    say("unknown field", 3, &|file, at| set(file, at + 40, 28));
    say("field twice", 3, &|file, at| set(file, at + 48, 1));
    say("no field", 3, &|file, at| set(file, at + 32, 0));
    say("many fields", 3, &|file, at| set(file, at + 32, 1 << 60));
    let array = |file: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(
            file[at + 8..at + 16].try_into().unwrap(),
        ))
        .unwrap()
    };
    say("a stack longer than the tree", 3, &|file, at| {
        let place = array(file, at);
        file[place..place + 4].copy_from_slice(&1000u32.to_le_bytes());
    });
    say("a frame out of bounds", 3, &|file, at| {
        let place = array(file, at);
        file[place + 4..place + 8].copy_from_slice(&1000u32.to_le_bytes());
    });
    say("a step out of the tree", 3, &|file, at| {
        let place = array(file, at);
        file[place + 4..place + 8].copy_from_slice(&(-1000i32).to_le_bytes());
    });
    let payload = |file: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(
            file[at + 16..at + 24].try_into().unwrap(),
        ))
        .unwrap()
    };
    say("more allocations than room", 3, &|file, at| {
        let place = payload(file, at) + 2 + 24 + 8;
        set(file, place, 1 << 50);
    });
    say("fewer allocations than there are", 3, &|file, at| {
        let place = payload(file, at) + 2 + 24 + 8;
        set(file, place, 0);
    });
    say("a frame that is not in its table", 2, &|file, at| {
        let index = usize::try_from(u64::from_le_bytes(
            file[at + 32..at + 40].try_into().unwrap(),
        ))
        .unwrap();
        // Change the first frame of the first call stack in the table of call stacks.
        set(file, index + 2 + 16 + 8, 1);
    });
    say("data access beyond the file", 4, &|file, at| {
        set(file, at + 32, 1 << 40)
    });
    say("strings of data access", 4, &|file, at| {
        let place = usize::try_from(u64::from_le_bytes(
            file[at + 32..at + 40].try_into().unwrap(),
        ))
        .unwrap();
        set(file, place, 1);
    });
    insta::assert_snapshot!(messages);
}

#[test]
fn each_fault_of_yaml_has_its_message() {
    let cases = [
        ("no YAML", "HeapProfileRecords:", "HeapProfileRecords: ["),
        ("another document", "...\n", "---\nx: 1\n"),
        ("unknown key", "AllocSites:", "AllocSide:"),
        ("decimal function", "0xdeadbeef12345678", "1234"),
        ("long function", "0xdeadbeef12345678", "0x11112222333344445"),
        (
            "no list",
            "KnownColdStrHashes: [ 999 ]",
            "KnownColdStrHashes: 999",
        ),
        ("no number", "LineOffset: 11", "LineOffset: eleven"),
        ("large number", "Column: 10", "Column: 4294967296"),
        ("no truth value", "IsInlineFrame: true", "IsInlineFrame: 1"),
        ("frame without column", "Column: 10, ", ""),
        ("unknown field", "TotalSize:", "TotalSizes:"),
        (
            "large count",
            "AllocCount:      111",
            "AllocCount:      4294967296",
        ),
        (
            "record without function",
            "- GUID:            0xdeadbeef12345678\n   ",
            "-",
        ),
        (
            "call site without frames",
            "      - Frames:\n          - { Function: 0x5555555555555555, LineOffset: 55, Column: 50, IsInlineFrame: true }\n       ",
            "      -",
        ),
        (
            "sampled twice",
            "  KnownColdSymbols:",
            "    - { Symbol: abcde, AccessCount: 1 }\n  KnownColdSymbols:",
        ),
        ("sampled nothing", "Symbol:          abcde\n     ", ""),
        ("no count", "      AccessCount:     100\n", ""),
        ("nothing", SAMPLE, "---\n"),
    ];
    let mut messages = String::new();
    for (name, from, to) in cases {
        assert!(SAMPLE.contains(from), "{name}");
        let judged = match yaml::parse(SAMPLE.replacen(from, to, 1).as_bytes()) {
            Ok(_) => "is read".to_owned(),
            Err(error) => error.to_string(),
        };
        let _ = writeln!(messages, "{name}: {judged}");
    }
    let error = yaml::parse(b"---\nHeapProfileRecords:\n  - GUID: \xff\n").unwrap_err();
    let _ = writeln!(messages, "no UTF-8: {error}");
    insta::assert_snapshot!(messages);
}

fn block(values: &[u32]) -> MemInfoBlock {
    let mut block = MemInfoBlock::default();
    for (field, &value) in Field::ALL.into_iter().zip(values) {
        block.set(field, u64::from(value));
    }
    block
}

#[test]
fn the_maximum_is_the_larger_one() {
    // When LLVM 14 and 15 merge two blocks, they keep the smaller value of MaxAccessCount and of MaxSize. profkit keeps
    // the larger one.
    let mut one = block(&[1; 27]);
    one.add_later(&block(&[5; 27]));
    for field in [Field::MaxAccessCount, Field::MaxSize, Field::MaxLifetime] {
        assert_eq!(one.get(field), 5, "{field:?}");
    }
    assert_eq!(one.get(Field::MinSize), 1);
    assert_eq!(one.get(Field::TotalSize), 6);
    assert_eq!(one.get(Field::AllocTimestamp), 5);
    assert_eq!(one.get(Field::NumMigratedCpu), 1);
}

proptest! {
    #[test]
    fn blocks_add_up_the_same_in_any_grouping(
        all in proptest::collection::vec(proptest::collection::vec(0u32..9, 27), 3..9),
        cut in 1usize..8,
    ) {
        let blocks: Vec<_> = all.iter().map(|values| block(values)).collect();
        let sum = |blocks: &[MemInfoBlock]| {
            let mut sum = blocks[0];
            for later in &blocks[1..] {
                sum.add_later(later);
            }
            sum
        };
        let cut = cut.min(blocks.len() - 1);
        let (front, back) = blocks.split_at(cut);
        let mut grouped = sum(front);
        grouped.add_later_from(&sum(back), &Start::of(&back[0]));
        prop_assert_eq!(grouped, sum(&blocks));
    }

    #[test]
    fn no_change_of_bytes_makes_the_section_s_reader_panic(at in 64usize..700, value in any::<u64>(), version in 0u32..=4) {
        let profile = yaml::parse(SAMPLE.as_bytes()).unwrap();
        let (mut file, start) = file_of(&profile, version);
        if let Some(slot) = file.get_mut(at..at + 8) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        if let Ok(section) = IndexedMemProf::parse(&file, start) {
            let _ = section.to_profile();
            section.to_profile_salvaging(|_| {});
        }
        file.truncate(at);
        let _ = read(&file, start);
    }
}
