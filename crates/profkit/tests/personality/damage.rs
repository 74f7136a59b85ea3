//! Damaged profiles: the same verdict in the same words.
use crate::harness::{Pair, compare_all};
use profkit_testkit::{fixture, require_or_skip};

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
