//! For damaged profiles, both tools must come to the same verdict, with the same messages.
use super::harness::{Pair, compare_all, words};
use profkit_data::instr::indexed::IndexedProfile;
use profkit_testkit::{Llvm, fixture, require_or_skip};
use std::fmt::Write as _;

#[test]
fn damaged_profiles_are_refused_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    for (path, name) in [
        ("raw/clang-22-fe-plain.profraw", "fe"),
        ("raw/clang-22-ir-shapes.profraw", "ir"),
        ("raw/clang-22-mcdc-conditions.profraw", "mcdc"),
    ] {
        let sound = fixture(path);
        let mut add = |label: String, bytes: &[u8]| {
            let file = format!("{name}-{label}");
            pair.add(&file, bytes);
            lines.push(format!("show --all-functions --counts --ic-targets {file}"));
            lines.push(format!("merge -j 1 -text {file}"));
        };
        for cut in [1, 7, 8, 15, 16, 23, 24, 40, 72, 100, 127, 128, 136] {
            add(format!("cut-{cut}"), sound.get(..cut).unwrap_or(&sound));
        }
        for part in 1..12 {
            let cut = sound.len() * part / 12;
            add(format!("cut-part-{part}"), &sound[..cut]);
        }
        for version in [0u64, 1, 9, 11, 12, 14, 99] {
            let mut bytes = sound.clone();
            bytes[8] = u8::try_from(version).expect("small");
            add(format!("version-{version}"), &bytes);
        }
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// If the field TotalSize of a record's value data is 0, LLVM's tool treats these value data as empty. It then reads
/// the value data of the next record at the same offset.
#[test]
fn value_data_without_a_size_are_read_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    let mut zeroed = 0;
    for path in [
        "raw/clang-22-ir-shapes.profraw",
        "raw/clang-22-vtables-shapes.profraw",
        "indexed/clang-22-ir-shapes.profdata",
        "indexed/clang-22-vtables-shapes.profdata",
    ] {
        let sound = fixture(path);
        pair.add(path, &sound);
        let word = |at: usize| {
            let bytes = sound
                .get(at..at + 4)
                .and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_le_bytes)
        };
        // Value data begin with TotalSize, then the number of value kinds, then the first value kind.
        let starts = (0..sound.len()).step_by(8).filter(|&at| {
            matches!(word(at), 24..1000) && matches!(word(at + 4), 1..=3) && word(at + 8) < 3
        });
        for at in starts {
            zeroed += 1;
            let mut damaged = sound.clone();
            damaged[at..at + 4].fill(0);
            let name = format!("zero-{zeroed}");
            pair.add(&name, damaged);
            lines.push(format!("show -all-functions -counts -ic-targets {name}"));
            lines.push(format!("show -topn=2 -memop-sizes -show-vtables {name}"));
            lines.push(format!("merge -j 1 -text {name}"));
            lines.push(format!("merge -j 1 -failure-mode=all {name} {path} -o out"));
            lines.push(format!("overlap {name} {path}"));
            lines.push(format!("overlap {path} {name}"));
        }
    }
    assert!(zeroed >= 6, "{zeroed}");
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// Cases that `cargo xtask differential` found.
#[test]
fn what_llvm_reads_first_is_reported_first() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    // With --keep-vtable-symbols, LLVM collects the names of functions. In this file one of the names is filled with
    // zeros.
    let mut nameless = fixture("indexed/clang-13-ir-32-plain.profdata");
    nameless[600..720].fill(0);
    pair.add("nameless", nameless);
    // The file has the flag for a heap profile, but the number at the place of the heap profile's version is not a
    // version.
    let mut no_heap = fixture("indexed/clang-22-function-entry-plain.profdata");
    no_heap[15] |= 0x40;
    pair.add("no-heap", no_heap);
    pair.add("target", "main:1:1\n 1: 1\n !CFGChecksum: 4\n 1: 10 !A\n");
    pair.add("place", "main:1:1\n 1: 1\n !CFGChecksum: 4\n 1: 10 a:1\n");
    // The table of sections says that the summary is compressed, and the summary is not.
    let mut flags = fixture("sample/llvm-16-nested-ext.sampleprof");
    flags[26..28].fill(0xff);
    pair.add("flags", flags);
    // The section with the function offsets is compressed. It states two more bytes than its compressed data have.
    let mut short = fixture("sample/llvm-14-probes-ext-compressed.sampleprof");
    assert_eq!(short[448], 5);
    short[448] = 7;
    pair.add("short", short);
    let lines = [
        "merge nameless",
        "merge --keep-vtable-symbols nameless",
        "show no-heap",
        "show --memory no-heap",
        "order no-heap",
        "overlap no-heap no-heap",
        "merge no-heap",
        "merge -text no-heap",
        "show -sample target",
        "show -sample place",
        "show -sample -json -function=main flags",
        "show -sample short",
        "merge -sample short -o out",
        "show -sample -show-sec-info-only short",
    ];
    compare_all(&pair, lines);
}

const COMMANDS: [&str; 4] = [
    "show --all-functions --counts --ic-targets bad",
    "merge -j 1 bad -o out",
    "merge -text -j 1 --failure-mode=all bad good",
    "merge -j 1 --failure-mode=warn good bad -o out",
];

/// A sound file and a damaged copy of it.
struct Damaged {
    label: String,
    sound: Vec<u8>,
    bad: Vec<u8>,
}

/// Runs commands on damaged files with both tools, on two threads, and collects the differences that `judge` reports. A
/// file is skipped if a signal kills LLVM's tool, or if the result of LLVM's tool depends on the contents of its
/// memory: then there is nothing to compare with.
fn sweep(
    llvm: &Llvm,
    damaged: &[Damaged],
    judge: impl Fn(&Pair, &[&str]) -> Option<String> + Sync,
) {
    let part = damaged.len().div_ceil(2);
    let failures: String = std::thread::scope(|scope| {
        let threads: Vec<_> = damaged
            .chunks(part)
            .map(|damaged| {
                let judge = &judge;
                scope.spawn(move || {
                    let mut failures = String::new();
                    for (index, Damaged { label, sound, bad }) in damaged.iter().enumerate() {
                        let pair = Pair::new(llvm).file("good", sound).file("bad", bad);
                        // For each damaged file one of the commands is run, in turn.
                        let args = words(COMMANDS[index % COMMANDS.len()]);
                        let args: Vec<&str> = args.iter().map(String::as_str).collect();
                        if let Some(difference) = judge(&pair, &args)
                            && pair.llvm(&args, b"").code.is_some()
                            && pair.llvm_is_steady(&args)
                        {
                            let _ = writeln!(failures, "--- {label}{difference}");
                        }
                    }
                    failures
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread"))
            .collect()
    });
    println!("{} damaged files compared", damaged.len());
    assert!(failures.is_empty(), "{failures}");
}

/// LLVM's tool first checks whether the file is large enough for the header of the tool's own raw version. Only then
/// does it look at the version of the file.
#[test]
fn short_raw_files_have_no_header_whatever_their_version() {
    let llvm = require_or_skip!(22);
    let mut lines = Vec::new();
    let mut pair = Pair::new(&llvm);
    for release in [13, 16, 22] {
        let whole = fixture(format!("raw/clang-{release}-fe-plain.profraw"));
        for len in [8, 15, 16, 24, 96, 127, 128] {
            let name = format!("cut-{release}-{len}");
            pair.add(&name, &whole[..len]);
            lines.push(format!("merge -o out {name}"));
            lines.push(format!("show {name}"));
        }
        let name = format!("later-{release}");
        let mut later = whole[..100].to_vec();
        later[8] = 99;
        pair.add(&name, &later);
        lines.push(format!("show {name}"));
        lines.push(format!("merge -o out {name}"));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// A generator of pseudo-random numbers. They are the same in each run.
fn random(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).expect("31 bits")
}

fn flip(sound: &[u8], at: usize, bit: usize) -> Vec<u8> {
    let mut bad = sound.to_vec();
    bad[at] ^= 1 << bit;
    bad
}

/// If one bit is flipped after the header of a raw file, or in the summary or a record of an indexed file, both tools
/// must give exactly the same result.
#[test]
fn flipped_bits_have_the_same_result() {
    let llvm = require_or_skip!(22);
    let mut state = 22;
    let mut damaged = Vec::new();
    for name in [
        "fe-plain",
        "ir-plain",
        "mcdc-conditions",
        "vtables-shapes",
        "temporal-host",
    ] {
        let sound = fixture(format!("raw/clang-22-{name}.profraw"));
        for _ in 0..32 {
            let at = 128 + random(&mut state) % (sound.len() - 128);
            let bit = random(&mut state) % 8;
            damaged.push(Damaged {
                label: format!("raw {name}, byte {at:#x}, bit {bit}"),
                bad: flip(&sound, at, bit),
                sound: sound.clone(),
            });
        }
        // The indexed profile with MC/DC bitmaps is not used: if a word of a bitmap holds more than a byte, the tools
        // differ, which is allowed.
        let name = name.replace("mcdc-conditions", "cs-ir-layers");
        let sound = fixture(format!("indexed/clang-22-{name}.profdata"));
        let mut places: Vec<usize> = (88..128).collect();
        let profile = IndexedProfile::parse(&sound).expect("a sound profile");
        for entry in profile.table().entries() {
            let entry = entry.expect("a sound entry");
            let start = usize::try_from(entry.data_offset).expect("small");
            places.extend(start..start + entry.data.len());
        }
        for _ in 0..32 {
            let at = places[random(&mut state) % places.len()];
            let bit = random(&mut state) % 8;
            damaged.push(Damaged {
                label: format!("indexed {name}, byte {at:#x}, bit {bit}"),
                bad: flip(&sound, at, bit),
                sound: sound.clone(),
            });
        }
    }
    sweep(&llvm, &damaged, |pair, args| pair.compare(args, b"").err());
}

/// Words of a header are replaced by wrong values. profkit may reject a file that LLVM still reads, and its messages
/// may differ. If both tools accept the file, they must give the same result.
#[test]
fn lying_headers_never_give_another_result() {
    let llvm = require_or_skip!(22);
    let mut damaged = Vec::new();
    for (path, count) in [
        ("raw/clang-22-fe-plain.profraw", 16),
        ("raw/clang-22-vtables-shapes.profraw", 16),
        ("indexed/clang-22-ir-plain.profdata", 9),
        ("indexed/clang-22-temporal-host.profdata", 9),
    ] {
        let sound = fixture(path);
        for index in 0..count {
            let range = 8 * index..8 * index + 8;
            let word = u64::from_le_bytes(sound[range.clone()].try_into().expect("8 bytes"));
            for lie in [0, 1, u64::MAX, word.wrapping_sub(1), word.wrapping_add(1)] {
                let mut bad = sound.clone();
                bad[range.clone()].copy_from_slice(&lie.to_le_bytes());
                damaged.push(Damaged {
                    label: format!("{path}, word {index} is {lie:#x}"),
                    bad,
                    sound: sound.clone(),
                });
            }
        }
    }
    sweep(&llvm, &damaged, |pair, args| {
        let ours = pair.profkit(args, b"");
        let complains = ours.code != Some(0) || !ours.stderr.is_empty();
        match complains {
            true => None,
            false => pair.compare(args, b"").err(),
        }
    });
}

/// Files that are not instrumentation profiles at all.
#[test]
fn other_files_are_refused_alike() {
    let llvm = require_or_skip!(22);
    let mut state = 7;
    let random: Vec<u8> = (0..400)
        .map(|_| random(&mut state).to_le_bytes()[0])
        .collect();
    let sample = "main:184019:0\n 4: 534\n 5: 500 foo:10\n";
    let object = [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 200]].concat();
    let pair = Pair::new(&llvm)
        .file("good", fixture("indexed/clang-22-ir-plain.profdata"))
        .file("random", random)
        .file("sample", sample)
        .file("object", object);
    let lines: Vec<String> = ["random", "sample", "object"]
        .iter()
        .flat_map(|bad| COMMANDS.map(|line| line.replace("bad", bad)))
        .collect();
    compare_all(&pair, lines.iter().map(String::as_str));
}
