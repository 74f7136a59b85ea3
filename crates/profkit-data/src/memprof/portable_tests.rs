#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use super::indexed::{IndexedMemProf, IndexedMemProfOptions, encode};
use super::portable::{self, MAGIC, PortableSection};
use super::{AllocSite, Field, Frame, FrameId, MemInfoBlock, MemProfile, SourceLocation, guid};
use crate::Error;
use proptest::prelude::*;
use std::fmt::Write as _;

fn file_of(profile: &MemProfile, version: u32) -> (Vec<u8>, u64) {
    let options = IndexedMemProfOptions::for_version(version, true).portable(true);
    let section = encode(profile, &options).unwrap();
    let mut file = vec![0; usize::try_from(section.offset).unwrap()];
    file.extend(section.bytes);
    (file, section.offset)
}

fn read(file: &[u8], start: u64) -> Result<MemProfile, Error> {
    IndexedMemProf::parse(file, start)?.to_profile()
}

/// Two functions in one file, a third one inlined into the second, and a fourth whose name is not known.
fn sample() -> MemProfile {
    let mut profile = MemProfile::default();
    let mut frame = |name: &str, line_offset: u32, is_inline: bool, file: &str, line: u32| {
        let function = match name {
            "" => 0x1234,
            name => guid(name.as_bytes()),
        };
        let frame = Frame {
            function,
            line_offset,
            column: 7,
            is_inline,
        };
        if !name.is_empty() {
            profile.names.insert(function, name.as_bytes().to_vec());
        }
        if !file.is_empty() {
            let location = SourceLocation {
                file: file.as_bytes().to_vec(),
                line,
                column: 7,
                discriminator: line % 3,
            };
            profile.locations.insert(frame, location);
        }
        profile.add_frame(frame)
    };
    let wrap = frame("wrap", 1, true, "/src/wrap.h", 4);
    let idle = frame("idle", 2, false, "/src/heap.c", 12);
    let main = frame("main", u32::MAX, false, "/src/heap.c", 29);
    let other = frame("", 5, false, "", 0);
    for (stack, histogram) in [
        (vec![wrap, idle, main], vec![1, 2, u64::MAX]),
        (vec![idle, other], Vec::new()),
    ] {
        let stack = profile.add_stack(&stack);
        let functions = [guid(b"wrap"), guid(b"idle")];
        let innermost = profile.stack(stack).next().unwrap().is_inline;
        for function in functions.into_iter().skip(usize::from(!innermost)) {
            let mut block = MemInfoBlock::default();
            block.set(Field::AllocCount, 1);
            profile.record_mut(function).alloc_sites.push(AllocSite {
                stack,
                block,
                histogram: histogram.clone(),
            });
        }
    }
    profile
}

fn same(one: &MemProfile, two: &MemProfile) {
    assert_eq!(one.names, two.names);
    assert_eq!(one.locations, two.locations);
    let histograms = |profile: &MemProfile| {
        let mut list = Vec::new();
        for record in profile.records() {
            for site in &record.alloc_sites {
                let stack: Vec<Frame> = profile.stack(site.stack).copied().collect();
                list.push((record.function, stack, site.histogram.clone()));
            }
        }
        list.sort();
        list
    };
    assert_eq!(histograms(one), histograms(two));
}

#[test]
fn names_locations_and_histograms_come_back_in_every_version() {
    let profile = sample();
    for version in 0..=4 {
        let (file, start) = file_of(&profile, version);
        same(&read(&file, start).unwrap(), &profile);
        // The portable section does not change LLVM's part.
        let options = IndexedMemProfOptions::for_version(version, true);
        let plain = encode(&profile, &options).unwrap();
        let begin = usize::try_from(start).unwrap();
        assert!(file[begin..].starts_with(&plain.bytes));
    }
}

#[test]
fn a_section_can_be_taken_off_and_stays_when_it_is_moved() {
    let profile = sample();
    let options = IndexedMemProfOptions::for_version(3, true);
    let with = encode(&profile, &options.clone().portable(true)).unwrap();
    let plain = encode(&profile, &options).unwrap();
    assert!(with.has_portable() && !plain.has_portable());
    with.check_portable().unwrap();
    assert_eq!(with.clone().without_portable(), plain);
    let (again, _) = super::indexed::read_section(&with).unwrap();
    same(&again, &profile);
    let mut damaged = with;
    let last = damaged.bytes.len() - 1;
    damaged.bytes[last] ^= 1;
    assert!(damaged.check_portable().is_err());
    assert_eq!(damaged.without_portable(), plain);
}

#[test]
fn each_damage_has_its_message() {
    let (file, start) = file_of(&sample(), 3);
    let begin = memchr::memmem::find(&file, &MAGIC).unwrap();
    let end = file.len();
    let mut messages = String::new();
    let mut say = |name: &str, sealed: bool, damage: &dyn Fn(&mut Vec<u8>)| {
        let mut file = file.clone();
        damage(&mut file);
        if sealed {
            let hash = blake3::hash(&file[begin + 32..end - 16]);
            file[begin + 24..begin + 32].copy_from_slice(&hash.as_bytes()[..8]);
        }
        let section = IndexedMemProf::parse(&file, start).unwrap();
        let judged = match section.to_profile() {
            Ok(_) => "is read".to_owned(),
            Err(error) => {
                // Everything else is still read.
                let mut errors = Vec::new();
                let kept = section.to_profile_salvaging(|error| errors.push(error.to_string()));
                assert_eq!(errors, [error.to_string()]);
                assert_eq!(kept.records().len(), 2);
                match error.hint() {
                    Some(hint) => format!("{error}; {hint}"),
                    None => error.to_string(),
                }
            }
        };
        let _ = writeln!(messages, "{name}: {judged}");
    };
    let put = |file: &mut Vec<u8>, at: usize, value: u32| {
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    };
    say("cut", false, &|file| file.truncate(end - 8));
    say("other magic at the end", false, &|file| file[end - 1] = 0);
    say("other magic at the beginning", false, &|file| {
        file[begin] = 0
    });
    say("size beyond the file", false, &|file| file[end - 10] = 1);
    say("size too small", false, &|file| put(file, end - 16, 8));
    say("two sizes", false, &|file| put(file, begin + 16, 8));
    say("version 2", false, &|file| file[begin + 8] = 2);
    say("another bit", false, &|file| file[begin + 50] ^= 4);
    say("too many strings", true, &|file| {
        put(file, begin + 32, 1 << 30)
    });
    let section = portable::find(&file[usize::try_from(start).unwrap()..], start);
    let (bytes, at) = section.unwrap().unwrap();
    let parsed = PortableSection::parse(bytes, at).unwrap();
    assert_eq!(parsed.tables().stacks.len(), 5);
    // The last parts are: call stacks (count, numbers), histograms (count, call stack, length, values), padding.
    let values = [1, 2, u64::MAX].map(u64::to_le_bytes).concat();
    let histogram = memchr::memmem::find(&file, &values).unwrap() - 8;
    say("histogram of no call stack", true, &|file| {
        put(file, histogram, 9)
    });
    say("histogram too long", true, &|file| {
        put(file, histogram + 4, 1 << 29)
    });
    say("histogram too short", true, &|file| {
        put(file, histogram + 4, 1)
    });
    say("call stack of no entry", true, &|file| {
        put(file, histogram - 8, 99)
    });
    say("more call stacks", true, &|file| {
        put(file, histogram - 16, 1 << 20)
    });
    insta::assert_snapshot!(messages);
}

#[test]
fn hostile_histograms_do_not_take_long() {
    // Histograms of one very deep call stack: each costs as many steps as the stack has frames.
    let mut profile = MemProfile::default();
    let frames: Vec<FrameId> = (0..4000)
        .map(|line_offset| {
            profile.add_frame(Frame {
                function: 1,
                line_offset,
                ..Frame::default()
            })
        })
        .collect();
    profile.add_stack(&frames);
    let mut bytes = portable::encode(&profile).unwrap();
    // One call stack, whose innermost frame is entry 3999; no histograms.
    let tail = [1, 3999, 0].map(u32::to_le_bytes).concat();
    let at = memchr::memmem::rfind(&bytes, &tail).unwrap();
    bytes.truncate(at + 8);
    let many = 200_000u32;
    bytes.extend(many.to_le_bytes());
    bytes.extend(vec![0; 8 * many as usize]);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let size = ((bytes.len() + 16) as u64).to_le_bytes();
    bytes[16..24].copy_from_slice(&size);
    let hash = blake3::hash(&bytes[32..]);
    bytes[24..32].copy_from_slice(&hash.as_bytes()[..8]);
    bytes.extend(size);
    bytes.extend(MAGIC);
    let error = PortableSection::parse(&bytes, 0).unwrap_err();
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn a_name_that_reads_like_a_hash_is_a_hash() {
    let mut profile = MemProfile::default();
    // The name has another hash than the frame, so it would come back as another function.
    profile.names.insert(77, b"main".to_vec());
    let frame = profile.add_frame(Frame {
        function: 77,
        ..Frame::default()
    });
    profile.add_stack(&[frame]);
    let bytes = portable::encode(&profile).unwrap();
    let section = PortableSection::parse(&bytes, 0).unwrap();
    let mut again = MemProfile::default();
    again.add_frame(profile.frames()[frame]);
    section.add_to(&mut again);
    assert!(again.names.is_empty());
    let entry = section.tables().stacks.get(crate::tables::StackId(0));
    let name = section.tables().strings.get(entry.unwrap().function);
    assert_eq!(name, Some(b"0x000000000000004d".as_slice()));
}

fn profiles() -> impl Strategy<Value = MemProfile> {
    let frame = (0u8..6, any::<u8>(), any::<bool>(), 0u8..4);
    let stack = (
        proptest::collection::vec(frame, 1..6),
        proptest::collection::vec(any::<u64>(), 0..4),
    );
    proptest::collection::vec(stack, 0..8).prop_map(|stacks| {
        let mut profile = MemProfile::default();
        for (frames, histogram) in stacks {
            let mut ids = Vec::new();
            for (function, line, is_inline, file) in frames {
                let name = format!("f{function}");
                let frame = Frame {
                    function: guid(name.as_bytes()),
                    line_offset: u32::from(line).wrapping_sub(100),
                    column: u32::from(line / 7),
                    is_inline,
                };
                // A function without a name, frames without a file.
                if function > 0 {
                    profile.names.insert(frame.function, name.into_bytes());
                }
                if file > 0 {
                    let place = SourceLocation {
                        file: format!("/a/{file}/b//c.h").into_bytes(),
                        line: u32::from(line),
                        column: frame.column,
                        discriminator: u32::from(file / 3),
                    };
                    profile.locations.entry(frame).or_insert(place);
                }
                ids.push(profile.add_frame(frame));
            }
            let stack = profile.add_stack(&ids);
            let function = profile.stack(stack).next().unwrap().function;
            let record = profile.record_mut(function);
            if !record.alloc_sites.iter().any(|site| site.stack == stack) {
                record.alloc_sites.push(AllocSite {
                    stack,
                    block: MemInfoBlock::default(),
                    histogram,
                });
            }
        }
        profile
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_profile_comes_back(profile in profiles(), version in 0u32..5) {
        // The sections' own records are of a function at most once per context here, so histograms come back, too.
        let (file, start) = file_of(&profile, version);
        let again = read(&file, start).unwrap();
        prop_assert_eq!(&again.names, &profile.names);
        prop_assert_eq!(&again.locations, &profile.locations);
        same(&again, &profile);
        // The same profile is written as the same bytes.
        prop_assert_eq!(portable::encode(&profile).unwrap(), portable::encode(&profile.clone()).unwrap());
    }

    #[test]
    fn damaged_bytes_give_errors_and_no_panic(profile in profiles(), at in any::<usize>(), value: u8, seal: bool) {
        let mut bytes = portable::encode(&profile).unwrap();
        let len = bytes.len();
        bytes[at % len] ^= value;
        if seal {
            let hash = blake3::hash(&bytes[32..len - 16]);
            bytes[24..32].copy_from_slice(&hash.as_bytes()[..8]);
        }
        if let Ok(Some((found, at))) = portable::find(&bytes, 0)
            && let Ok(section) = PortableSection::parse(found, at)
        {
            section.add_to(&mut profile.clone());
        }
    }
}
