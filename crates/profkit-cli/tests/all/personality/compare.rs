//! `overlap` of instrumentation profiles, and `order`.
use super::harness::{Pair, compare_all};
use super::profiles::{TEXTS, add_fixture, real};
use profkit_testkit::{Llvm, require_or_skip, short_or_whole};
use std::fmt::Write as _;

/// A generator of pseudo-random numbers. They are the same in each run.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    fn below(&mut self, bound: u64) -> u64 {
        let mut next = || {
            let state = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = state.wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 32
        };
        (next() << 32 | next()) % bound.max(1)
    }

    /// Returns one of these values. There must be at least one.
    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::try_from(self.below(values.len() as u64)).unwrap()]
    }
}

/// The indexed profile that LLVM's tool writes for a text profile.
fn indexed(llvm: &Llvm, text: &str) -> Option<Vec<u8>> {
    let pair = Pair::new(llvm).file("text", text);
    let size = "--temporal-profile-trace-reservoir-size=2000";
    let ran = pair.llvm(&["merge", size, "text", "-o", "out"], b"");
    ran.files.get("out").cloned()
}

/// Compares text profiles with each other. Among them are damaged profiles, profiles of different stages, empty files,
/// and files that are no profiles.
#[test]
fn texts_are_compared_and_ordered_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    for (name, text) in TEXTS {
        pair.add(name, text);
        for options in ["", "--cs", "--value-cutoff=0", "--function=oo -o out"] {
            for other in ["ir.proftext", "cs.proftext", name] {
                lines.push(format!("overlap {options} {other} {name}"));
                lines.push(format!("overlap {options} {name} {other}"));
            }
        }
        lines.push(format!("order {name}"));
        lines.push(format!("order --num-test-traces=1 {name} -o out"));
    }
    for line in [
        "overlap nowhere fe.proftext",
        "overlap fe.proftext nowhere -o out",
        "overlap fe.proftext fe.proftext -o nowhere/out",
        "overlap fe.proftext .",
        "overlap --instr --similarity-cutoff=1 fe.proftext counters.proftext",
        "overlap --value-cutoff=2 --function=zero fe.proftext fe.proftext",
        "order",
        "order nowhere",
        "order traces.proftext -o nowhere/out",
        "order --num-test-traces=2 traces.proftext",
        "order --num-test-traces=99 traces.proftext",
        "show --temporal-profile-traces names.proftext",
        "order names.proftext",
        "order unnamed.profdata",
    ] {
        lines.push(line.to_owned());
    }
    // Names that only a trace has, an empty name, names of functions that are local to a file.
    let names = ":ir\n:temporal_prof_traces\n2\n2\n1\na,gone,a.c;b, ,;c,d;\n1\ntarget,a\na\n1\n1\n1\n1\n0\n1\n1\ntarget:2\n\na.c;b\n1\n1\n1\n\n;c\n1\n1\n1\n\nd;\n1\n1\n1\n";
    pair.add("names.proftext", names);
    let unnamed = ":ir\n:temporal_prof_traces\n1\n1\n1\na,gone\na\n1\n1\n1\n";
    pair.add("unnamed.profdata", indexed(&llvm, unnamed).unwrap());
    compare_all(&pair, lines.iter().map(String::as_str));
}

#[test]
fn real_profiles_are_compared_and_ordered_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    let mut last = None;
    for folder in ["raw", "indexed"] {
        for name in real(folder, "clang-22") {
            add_fixture(&mut pair, &name);
            // An allowed difference: if a raw file holds several profiles, LLVM keeps only the names of the last
            // profile.
            if name.contains("host.profraw") {
                continue;
            }
            let other = last.replace(name.clone()).unwrap_or(name.clone());
            lines.push(format!("overlap {other} {name} --value-cutoff=1"));
            lines.push(format!("overlap --cs {name} {name} --function=main"));
            lines.push(format!("order {name}"));
        }
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// Returns a profile with functions from a pool of names: some are missing, some have another hash, and some occur
/// twice.
fn generated(random: &mut Random, pool: u64, header: &str) -> String {
    let mut text = header.to_owned();
    for function in 0..pool {
        if random.below(7) == 0 {
            continue;
        }
        let mut hash = if random.below(7) == 0 {
            random.below(1000)
        } else {
            function * 31
        };
        if header == ":csir\n" && random.below(2) == 0 {
            hash |= 1 << 60;
        }
        let counters = if random.below(9) == 0 {
            1 + random.below(9)
        } else {
            1 + function % 6
        };
        let largest = random.one_of(&[1, 1000, 1000, 1 << 40, u64::MAX]);
        let _ = writeln!(text, "f{function}\n{hash}\n{counters}");
        for _ in 0..counters {
            let _ = writeln!(text, "{}", random.below(largest) * random.below(2));
        }
        if header.is_empty() || function % 2 == 0 {
            text.push('\n');
            continue;
        }
        text.push_str("2\n");
        for kind in 0..2 {
            let sites = function % 3 + u64::from(random.below(9) == 0);
            let _ = writeln!(text, "{kind}\n{sites}");
            for _ in 0..sites {
                let values = random.below(5);
                let _ = writeln!(text, "{values}");
                for value in 0..values {
                    let count = random.below(100);
                    let _ = match kind {
                        0 => writeln!(text, "f{}:{count}", random.below(pool)),
                        _ => writeln!(text, "{}:{count}", 1 << (value + random.below(2))),
                    };
                }
            }
        }
        text.push('\n');
    }
    text
}

#[test]
fn generated_profiles_are_compared_alike() {
    let llvm = require_or_skip!(22);
    for seed in 0..short_or_whole(4, 20) {
        let mut random = Random::new(seed);
        let header = random.one_of(&["", ":ir\n", ":csir\n"]);
        let pool = random.one_of(&[3, 20, 60]);
        let [base, test] = [(); 2].map(|()| generated(&mut random, pool, header));
        let mut pair = Pair::new(&llvm);
        for (name, text) in [("base", &base), ("test", &test)] {
            pair.add(name, text);
            if let Some(bytes) = indexed(&llvm, text) {
                pair.add(&format!("{name}.i"), bytes);
            }
        }
        let mut lines = Vec::new();
        for files in ["base test", "test.i base.i", "base test.i", "base.i test"] {
            for options in ["", "--cs", "--value-cutoff=500", "--function=1 --cs"] {
                lines.push(format!("overlap {options} {files}"));
            }
        }
        compare_all(&pair, lines.iter().map(String::as_str));
    }
}

/// `overlap` merges its first profile. profkit leaves out this merge if the profile is indexed and sound, because the
/// merge would not change it. Exception: a profile that contains a record twice is merged, because the merge changes
/// it.
#[test]
fn a_first_profile_that_has_a_record_twice_is_merged() {
    let llvm = require_or_skip!(22);
    let (one, two) = (0x1111_1111_1111_1111_u64, 0x2222_2222_2222_2222_u64);
    let text = format!(
        ":ir\naa\n{one}\n2\n5\n{}\n\naa\n{two}\n2\n7\n9\n2\n0\n1\n2\nbb:3\ncc:1\n1\n0\n\nbb\n{one}\n2\n40\n2\n\ncc\n3\n1\n6\n",
        u64::MAX / 2
    );
    let sound = indexed(&llvm, &text).unwrap();
    let replaced = |changes: &[(&[u8], &[u8])]| {
        let mut bytes = sound.clone();
        for (from, to) in changes {
            let at = memchr::memmem::find(&sound, from).expect("the bytes");
            bytes[at..at + to.len()].copy_from_slice(to);
        }
        bytes
    };
    let hash = |name: &[u8]| profkit_data::ids::NameRef::of(name).0.to_le_bytes();
    let key = |name: &[u8]| [hash(name).as_slice(), &2_u64.to_le_bytes()].concat();
    let mut pair = Pair::new(&llvm);
    let (one, two) = (one.to_le_bytes(), two.to_le_bytes());
    pair.add("sound", &sound);
    pair.add("record", replaced(&[(&two, &one)]));
    pair.add(
        "few",
        replaced(&[(
            &[two, 2_u64.to_le_bytes()].concat(),
            &[one, 1_u64.to_le_bytes()].concat(),
        )]),
    );
    let (aa, bb) = (key(b"aa"), key(b"bb"));
    let at = memchr::memmem::find(&sound, &bb).expect("the key of bb") + 24;
    let mut name = replaced(&[(&bb, &aa)]);
    assert_eq!(name[at..at + 2], *b"bb");
    name[at..at + 2].copy_from_slice(b"aa");
    pair.add("name", name);
    pair.add("text", &text);
    let mut lines = Vec::new();
    for first in ["sound", "record", "few", "name", "text"] {
        for second in ["sound", "record", "name", "text"] {
            lines.push(format!("overlap {first} {second}"));
            lines.push(format!("overlap --value-cutoff=0 {first} {second}"));
        }
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

/// Returns a profile with traces of different lengths and weights. In some traces the functions are in sequence, in
/// some they are in random order, and some traces have a function twice.
fn traces(random: &mut Random, functions: u64, traces: u64) -> String {
    let mut text = format!(":ir\n:temporal_prof_traces\n{traces}\n{traces}\n");
    for _ in 0..traces {
        let length = 1 + random.below(functions);
        let (start, step) = (random.below(functions), 1 + 2 * random.below(9));
        let mixed = random.below(4) == 0;
        let _ = writeln!(text, "{}", random.one_of(&[1, 1, 1, 5]));
        for place in 0..length {
            let function = if mixed {
                random.below(functions)
            } else {
                start + place * step
            };
            let _ = write!(text, "f{},", function % functions);
        }
        text.push('\n');
    }
    for function in 0..functions {
        let _ = writeln!(text, "f{function}\n1\n1\n1\n");
    }
    text
}

#[test]
fn generated_traces_are_ordered_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    for seed in 0..short_or_whole(12, 40) {
        let mut random = Random::new(seed);
        let functions = random.one_of(&[1, 2, 7, 60, 300, 1200]);
        let number = match seed {
            7 => 1000,
            _ => random.one_of(&[1, 2, 3, 12, 100]),
        };
        let text = traces(&mut random, functions, number);
        lines.push(format!("order t{seed}"));
        lines.push(format!("order --num-test-traces={} t{seed}.i", number / 3));
        pair.add(&format!("t{seed}.i"), indexed(&llvm, &text).unwrap());
        pair.add(&format!("t{seed}"), text);
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}
