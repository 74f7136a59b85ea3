#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use super::*;
use crate::ids::BuildId;
use crate::memprof::{Field, MemInfoBlock};
use proptest::prelude::*;
use std::fmt::Write as _;

fn sample(version: Version) -> DumpToWrite {
    let mut blocks = Vec::new();
    for stack_id in [7, 9] {
        let mut block = MemInfoBlock::default();
        for field in version.schema().fields() {
            block.set(*field, u64::from(field.id()) * stack_id);
        }
        let histogram = match version.number() {
            4 | 5 if stack_id == 7 => vec![1, 2, 300],
            _ => Vec::new(),
        };
        if version.number() >= 4 {
            block.set(Field::AccessHistogramSize, histogram.len() as u64);
            block.set(Field::AccessHistogram, 0);
        }
        blocks.push(RawBlock {
            stack_id,
            block,
            histogram,
        });
    }
    let build_id = if version.has_build_id_size() {
        BuildId(vec![1, 2, 3, 0])
    } else {
        BuildId::default()
    };
    DumpToWrite {
        segments: vec![Segment {
            start: 0x1000,
            end: 0x2000,
            offset: 0x1000,
            build_id,
        }],
        blocks,
        stacks: vec![(7, vec![0x1010, 0x1020]), (9, vec![0x1030])],
    }
}

fn read(dump: &RawDump<'_>) -> DumpToWrite {
    let words = |pcs: Pcs<'_>| pcs.iter().map(|&pc| u64::from_le_bytes(pc)).collect();
    DumpToWrite {
        segments: dump.segments().unwrap(),
        blocks: dump.blocks().unwrap().map(Result::unwrap).collect(),
        stacks: dump
            .stacks()
            .unwrap()
            .map(|stack| stack.map(|(id, pcs)| (id, words(pcs))).unwrap())
            .collect(),
    }
}

fn encoded(version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    write(
        &sample(version),
        &RawMemProfOptions::for_version(version),
        &mut out,
    )
    .unwrap();
    out
}

#[test]
fn every_version_is_read_as_it_was_written() {
    for number in 1..=5 {
        let version = Version::new(number).unwrap();
        let mut file = encoded(version);
        file.extend(encoded(version));
        let parsed = RawMemProf::parse(&file).unwrap();
        assert!(parsed.damage().is_none());
        assert_eq!(parsed.dumps().len(), 2);
        for dump in parsed.dumps() {
            assert_eq!(read(dump), sample(version), "version {number}");
        }
    }
}

fn judged(file: &[u8]) -> String {
    let parsed = match RawMemProf::parse(file) {
        Ok(parsed) => parsed,
        Err(error) => return error.to_string(),
    };
    let mut text = format!("{} dumps", parsed.dumps().len());
    if let Some(error) = parsed.damage() {
        let _ = write!(text, "; {error}");
    }
    for dump in parsed.dumps() {
        let parts = [
            dump.segments().map(drop),
            dump.blocks()
                .and_then(|mut all| all.try_for_each(|item| item.map(drop))),
            dump.stacks()
                .and_then(|mut all| all.try_for_each(|item| item.map(drop))),
        ];
        for error in parts.into_iter().filter_map(std::result::Result::err) {
            let _ = write!(text, "; {error}");
        }
    }
    text
}

#[test]
fn each_damage_has_its_message() {
    let good = encoded(Version::NEWEST);
    let word = |file: &[u8], at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let patched = |at: usize, value: u64| {
        let mut file = good.clone();
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        file
    };
    let (segments, blocks, stacks) = (word(&good, 24), word(&good, 32), word(&good, 40));
    let place = |offset: u64| usize::try_from(offset).unwrap();
    let mut stray = good.clone();
    stray.extend([0; 8]);
    let histogram = place(blocks) + 8 + 8 + 144 - 12;
    let cases = [
        ("empty", Vec::new()),
        ("shorter than a header", good[..40].to_vec()),
        ("other magic", patched(0, 1)),
        ("version 0", patched(8, 0)),
        ("version 6", patched(8, 6)),
        ("cut short", good[..good.len() - 8].to_vec()),
        ("size below the header", patched(16, 8)),
        ("stray bytes after the last dump", stray),
        ("segments beyond the dump", patched(24, 1 << 40)),
        ("blocks beyond the dump", patched(32, 1 << 40)),
        ("stacks beyond the dump", patched(40, 1 << 40)),
        ("more segments than room", patched(place(segments), 1 << 40)),
        ("more blocks than room", patched(place(blocks), u64::MAX)),
        ("more stacks than room", patched(place(stacks), 1 << 20)),
        ("a long build id", patched(place(segments) + 8 + 24, 33)),
        ("a long histogram", patched(histogram, u64::from(u32::MAX))),
        ("a long stack", patched(place(stacks) + 16, 1 << 61)),
    ];
    let mut messages = String::new();
    for (name, file) in cases {
        let _ = writeln!(messages, "{name}: {}", judged(&file));
    }
    insta::assert_snapshot!(messages);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_change_of_bytes_makes_the_reader_panic(at in 0usize..600, value in any::<u64>(), version in 1u64..=5) {
        let mut file = encoded(Version::new(version).unwrap());
        if let Some(slot) = file.get_mut(at..at + 8) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        judged(&file);
        file.truncate(at);
        judged(&file);
    }
}

/// A dump may have millions of bytes, which nobody wants to see in a message.
#[test]
fn the_debug_text_of_a_dump_has_its_header_alone() {
    let file = encoded(Version::new(5).unwrap());
    let profile = RawMemProf::parse(&file).unwrap();
    let text = format!("{profile:?}");
    assert!(text.contains("total_size"), "{text}");
    assert!(text.len() < 1000, "{text}");
}
