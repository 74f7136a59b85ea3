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

/// The densities that the run-time library of LLVM 22 recorded are those that are computed from the other fields.
#[test]
fn densities_are_computed_as_the_runtime_of_later_releases_does() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/heap/heap.memprofraw"
    );
    let file = std::fs::read(file).unwrap();
    let mut equal = 0;
    for dump in RawMemProf::parse(&file).unwrap().dumps() {
        for block in dump.blocks().unwrap() {
            let recorded = block.unwrap().block;
            let mut computed = recorded;
            let densities: Vec<Field> = Field::ALL
                .into_iter()
                .filter(|field| field.is_density())
                .collect();
            for &field in &densities {
                computed.unset(field);
            }
            computed.compute_densities();
            if computed.has(Field::TotalAccessDensity) {
                assert_eq!(computed, recorded);
                equal += 1;
            } else {
                let same = |least, most| recorded.get(least) == recorded.get(most);
                assert!(
                    !same(Field::MinSize, Field::MaxSize)
                        || !same(Field::MinAccessCount, Field::MaxAccessCount)
                        || !same(Field::MinLifetime, Field::MaxLifetime),
                    "{recorded:?}"
                );
            }
        }
    }
    assert!(equal > 2, "{equal}");
}

#[test]
fn a_density_is_known_of_a_sum_only_if_it_is_of_all_parts() {
    let one = |accesses: u64, lifetime: u64| {
        let mut block = MemInfoBlock::default();
        for (field, value) in [
            (Field::AllocCount, 1),
            (Field::TotalAccessCount, accesses),
            (Field::MinAccessCount, accesses),
            (Field::TotalSize, 8),
            (Field::MinSize, 8),
            (Field::TotalLifetime, lifetime),
            (Field::MinLifetime, lifetime),
        ] {
            block.set(field, value);
        }
        block
    };
    let density = Field::TotalLifetimeAccessDensity;
    // 10^13 accesses in 300 seconds are many, not none.
    let mut busy = one(10_000_000_000_000, 300_000);
    assert_eq!(busy.known(density), None);
    busy.compute_densities();
    assert_eq!(
        busy.known(density),
        Some(125_000_000_000_000 * 1000 / 300_000)
    );
    let mut quick = one(16, 0);
    quick.compute_densities();
    assert_eq!(quick.known(density), Some(200_000));
    let mut sum = busy;
    sum.add_later(&quick);
    assert_eq!(sum.get(density), busy.get(density) + quick.get(density));
    // Two allocations that differ, as LLVM 15 records them: the sum of quotients is not known.
    let mut both = one(16, 5);
    both.add_later(&one(8, 5));
    both.compute_densities();
    assert_eq!(both.known(density), None);
    for (first, second) in [(both, quick), (quick, both)] {
        let mut sum = first;
        sum.add_later(&second);
        assert_eq!(sum.known(density), None);
        assert_eq!(sum.get(Field::AllocCount), 3);
    }
    // Nothing at all is no part.
    let mut nothing = MemInfoBlock::default();
    nothing.add_later(&quick);
    assert_eq!(nothing, quick);
    let mut none = one(5, 5);
    none.set(Field::TotalSize, 0);
    none.set(Field::MinSize, 0);
    none.compute_densities();
    assert_eq!(none.known(density), None);
}
