//! The indexed writer against llvm-profdata of every installed release: same bytes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::indexed::{IndexedWriteOptions, write};
use profkit_data::instr::{FunctionTable, InstrKind, InstrProfile, NewRecord};
use profkit_testkit::{Llvm, require_or_skip};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// A profile built record by record, as text for LLVM and as a model for us, in the same order.
#[derive(Default)]
struct Both {
    text: String,
    table: FunctionTable,
    functions: HashMap<Vec<u8>, profkit_data::instr::FunctionId>,
    order: u64,
}

impl Both {
    fn add(&mut self, name: &str, hash: u64, counts: &[u64]) {
        writeln!(self.text, "{name}\n{hash}\n{}", counts.len()).unwrap();
        for count in counts {
            writeln!(self.text, "{count}").unwrap();
        }
        self.text.push('\n');
        let function = *self.functions.entry(name.into()).or_insert_with(|| {
            let bytes = name.as_bytes();
            self.table
                .push_function(bytes, NameRef::of(bytes), self.order)
                .unwrap()
        });
        let record = NewRecord {
            func_hash: FuncHash(hash),
            counts,
            bitmap: &[],
            values: None,
            order: self.order,
        };
        self.table.push_record(function, record).unwrap();
        self.order += 1;
    }

    fn profile(self, kind: InstrKind) -> (String, InstrProfile) {
        let profile = InstrProfile {
            kind,
            tables: vec![self.table],
            ..InstrProfile::default()
        };
        (self.text, profile)
    }
}

fn merge(llvm: &Llvm, input: &Path, output: &Path, more: &[&str]) -> Vec<u8> {
    let run = Command::new(llvm.profdata())
        .arg("merge")
        .args(more)
        .arg(input)
        .arg("-o")
        .arg(output)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    std::fs::read(output).unwrap()
}

fn ours(profile: &InstrProfile, options: &IndexedWriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let losses = write(profile, options, &mut bytes).unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    bytes
}

fn check_equal(what: &str, ours: &[u8], llvm: &[u8]) {
    let first = ours.iter().zip(llvm).position(|(one, two)| one != two);
    assert_eq!(
        (first, ours.len()),
        (None, llvm.len()),
        "{what}: first difference, length"
    );
}

fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 31)
    }
}

/// Names with long common beginnings, several hashes for some, counts of all sizes.
fn generated(names: usize, seed: u64) -> Both {
    let mut next = numbers(seed);
    let mut both = Both::default();
    let mut second = Vec::new();
    for index in 0..names {
        let name = match next() % 3 {
            0 => format!("f{}", next() % 100_000),
            1 => format!("_ZN4llvm12some_namespaceL{index}Ev"),
            _ => format!("dir/file.c:static_{}", next() % 1_000_000_007),
        };
        // Bit 60 would make the record context-sensitive.
        let mut hash = next() & !(1 << 60);
        let hashes = if next() % 10 == 0 { 1 + next() % 6 } else { 1 };
        for _ in 0..hashes {
            let counts: Vec<u64> = (0..1 + next() % 8)
                .map(|_| next() >> (8 + next() % 56))
                .collect();
            second.push((name.clone(), hash, counts));
            hash = next() & !(1 << 60);
        }
    }
    // The hashes of one name come at different times.
    let late = second.len() / 2;
    second.rotate_left(late);
    let mut seen = std::collections::HashSet::new();
    for (name, hash, counts) in second {
        if seen.insert((name.clone(), hash)) {
            both.add(&name, hash, &counts);
        }
    }
    both
}

fn same_bytes_as(release: u32) {
    let llvm = require_or_skip!(release);
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    for (names, seed) in [
        (1, 1),
        (2, 2),
        (3, 3),
        (5, 4),
        (11, 5),
        (12, 6),
        (13, 7),
        (24, 8),
        (47, 9),
        (48, 10),
        (49, 11),
        (95, 12),
        (96, 13),
        (97, 14),
        (200, 15),
        (500, 16),
        (3000, 17),
        (20_000, 18),
    ] {
        let (text, profile) = generated(names, seed).profile(InstrKind::FRONT_END);
        std::fs::write(&input, text).unwrap();
        let llvms = merge(&llvm, &input, &output, &[]);
        let ours = ours(&profile, &IndexedWriteOptions::for_llvm(release));
        check_equal(&format!("{names} names, LLVM {release}"), &ours, &llvms);
    }
}

#[test]
fn same_bytes_as_llvm_13() {
    same_bytes_as(13);
}

#[test]
fn same_bytes_as_llvm_14() {
    same_bytes_as(14);
}

#[test]
fn same_bytes_as_llvm_15() {
    same_bytes_as(15);
}

#[test]
fn same_bytes_as_llvm_16() {
    same_bytes_as(16);
}

#[test]
fn same_bytes_as_llvm_19() {
    same_bytes_as(19);
}

#[test]
fn same_bytes_as_llvm_22() {
    same_bytes_as(22);
}
