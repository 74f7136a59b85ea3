//! The totals of a raw dump are those of every view, whether debug info covers the frames or not.
use super::{heap_llvm, profkit, programs, run_profiled};
use profkit_testkit::{HEAP_FLAGS, HEAP_LINK_FLAGS, Llvm, or_skip, succeed};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Contexts, allocations and bytes.
type Totals = [u64; 3];

/// Adds up the blocks of a dump of version 5, without profkit. A block is a stack id and a packed record of 144 bytes: the
/// number of allocations is its first field, the bytes come after four fields more, and the number of the histogram's
/// elements, of two bytes each, which follow the record, is before the last field.
fn totals_of_dump(dump: &[u8]) -> Totals {
    let number = |at: usize, len: usize| {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&dump[at..at + len]);
        u64::from_le_bytes(bytes)
    };
    assert_eq!(number(8, 8), 5, "the version");
    let blocks = number(32, 8) as usize;
    let mut totals = [number(blocks, 8), 0, 0];
    let mut at = blocks + 8;
    for _ in 0..totals[0] {
        let record = at + 8;
        totals[1] += number(record, 4);
        totals[2] += number(record + 28, 8);
        at = record + 144 + 2 * number(record + 132, 4) as usize;
    }
    totals
}

/// The allocations that the text of LLVM's run-time library has (`print_text=true`).
fn allocations_of_text(text: &str) -> u64 {
    let counts = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("alloc_count "));
    counts
        .map(|count| count.split(',').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

fn out(folder: &Path, args: &[&str]) -> String {
    let output = profkit(folder, args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The allocations and bytes of a CSV, by the names of its columns.
fn totals_of_csv(csv: &str) -> Totals {
    let mut rows = csv.lines();
    let columns: Vec<&str> = rows.next().unwrap().split(',').collect();
    let rows: Vec<&str> = rows.collect();
    let sum = |name: &str| {
        // Names may have commas, and stand before or after the numbers, so the nearer end is counted from.
        let place = columns.iter().position(|column| *column == name).unwrap();
        let from_end = columns.len() - 1 - place;
        rows.iter()
            .map(
                |row| match place <= 2 && columns[0] != "group" && columns[0] != "stack" {
                    true => row.split(',').nth(place),
                    false => row.rsplit(',').nth(from_end),
                },
            )
            .map(|number| number.unwrap().parse::<u64>().unwrap())
            .sum()
    };
    [rows.len() as u64, sum("allocations"), sum("bytes")]
}

fn totals_of(value: &Value) -> Totals {
    ["contexts", "allocations", "bytes"].map(|name| value[name].as_u64().unwrap())
}

fn sum_of_folded(folded: &str) -> u64 {
    let numbers = folded.lines().map(|line| line.rsplit(' ').next().unwrap());
    numbers.map(|number| number.parse::<u64>().unwrap()).sum()
}

/// Compares every view with the dump. `binaries` are the options that name binaries.
fn check(folder: &Path, binaries: &[&str], expected: Totals) {
    let run = |args: &[&str]| out(folder, &[args, binaries].concat());
    let json = |args: &[&str]| serde_json::from_str::<Value>(&run(args)).unwrap();
    let [contexts, allocations, bytes] = expected;
    let show = json(&["show", "x.memprofraw", "--format=json", "--top=100000"]);
    assert_eq!(totals_of(&show["total"]), expected, "show, JSON: total");
    let kinds = ["hot", "warm", "cold"].map(|kind| totals_of(&show[kind]));
    for place in 0..3 {
        let sum: u64 = kinds.iter().map(|kind| kind[place]).sum();
        assert_eq!(sum, expected[place], "show, JSON: by hotness");
    }
    let fields = |name: &str| -> u64 {
        let listed = show["contexts"].as_array().unwrap().iter();
        listed
            .map(|one| one["fields"][name].as_u64().unwrap())
            .sum()
    };
    let listed = [contexts, fields("AllocCount"), fields("TotalSize")];
    assert_eq!(listed, expected, "show, JSON: contexts");
    let csv = run(&["show", "x.memprofraw", "--format=csv"]);
    assert_eq!(totals_of_csv(&csv), expected, "show, CSV");
    let text = run(&["show", "x.memprofraw", "--top=3"]);
    let number = |name: &str| -> u64 {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        number.replace(',', "").parse().unwrap()
    };
    assert_eq!(
        ["contexts", "allocations", "bytes"].map(number),
        expected,
        "{text}"
    );
    for by in ["file", "namespace", "crate"] {
        let groups = json(&["show", "x.memprofraw", "--format=json", "--by", by]);
        let groups = groups["groups"].as_array().unwrap();
        let sum = |name: &str| {
            groups
                .iter()
                .map(|one| one[name].as_u64().unwrap())
                .sum::<u64>()
        };
        assert_eq!(
            ["contexts", "allocations", "bytes"].map(sum),
            expected,
            "--by {by}"
        );
    }
    for (weight, expected) in [("bytes", bytes), ("allocations", allocations)] {
        let folded = run(&["show", "x.memprofraw", "--folded", weight]);
        assert_eq!(sum_of_folded(&folded), expected, "--folded {weight}");
    }
    let export = |to: &str| run(&["export", "x.memprofraw", "--to", to, "-o", "-"]);
    assert_eq!(totals_of_csv(&export("csv")), expected, "export --to csv");
    let table: Value = serde_json::from_str(&export("json")).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let sum = |name: &str| {
        rows.iter()
            .map(|row| row[name].as_u64().unwrap())
            .sum::<u64>()
    };
    let rows = [rows.len() as u64, sum("allocations"), sum("bytes")];
    assert_eq!(rows, expected, "export --to json");
    assert_eq!(
        sum_of_folded(&export("folded")),
        bytes,
        "export --to folded"
    );
    let scope: Value = serde_json::from_str(&export("speedscope")).unwrap();
    let profiles = scope["profiles"].as_array().unwrap().iter();
    let sums: Vec<u64> = profiles
        .map(|one| {
            one["weights"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it.as_u64().unwrap())
                .sum()
        })
        .collect();
    assert!(
        sums.contains(&bytes) && sums.contains(&allocations),
        "{sums:?}"
    );
    let diff = json(&["diff", "x.memprofraw", "x.memprofraw", "--format=json"]);
    assert_eq!(totals_of(&diff["old"]), expected, "diff");
    assert_eq!(totals_of(&diff["new"]), expected, "diff");
    let note = show["notes"].as_array().unwrap().iter();
    let mut note = note.filter(|note| {
        note.as_str()
            .unwrap()
            .contains("debug info covers no frame")
    });
    let note = note.next().and_then(Value::as_str).unwrap();
    assert!(
        note.contains("allocation") && note.contains("byte"),
        "{note}"
    );
}

fn build_and_check(llvm: &Llvm, flags: &[&str], source: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let threads = ["-pthread", "-o", "x"];
    succeed(
        Command::new(llvm.clangxx())
            .args(HEAP_FLAGS)
            .args(HEAP_LINK_FLAGS)
            .args(flags)
            .arg(programs().join(source))
            .args(threads)
            .current_dir(folder),
    );
    run_profiled(folder, "x", "x");
    let expected = totals_of_dump(&std::fs::read(folder.join("x.memprofraw")).unwrap());
    let text = Command::new(folder.join("x"))
        .env("MEMPROF_OPTIONS", "print_text=true:log_path=stdout")
        .output()
        .unwrap();
    let printed = allocations_of_text(&String::from_utf8_lossy(&text.stdout));
    assert_eq!(printed, expected[1], "LLVM's own text");
    let dump = out(folder, &["show", "x.memprofraw", "--format=json"]);
    let dump: Value = serde_json::from_str(&dump).unwrap();
    assert_eq!(totals_of(&dump["total"]), expected, "without binaries");
    check(folder, &["--binaries", "x"], expected);
}

#[test]
fn every_view_has_the_totals_of_the_dump() {
    let llvm = or_skip!(heap_llvm(22));
    build_and_check(&llvm, &[], "heap_threads.cpp");
    build_and_check(&llvm, &[], "heap_contexts.cpp");
    // Without debug info, every frame comes from symbols.
    build_and_check(&llvm, &["-g0"], "heap_threads.cpp");
    // With access histograms, and without symbols.
    build_and_check(
        &llvm,
        &["-mllvm", "-memprof-histogram", "-s"],
        "heap_threads.cpp",
    );
}

#[test]
fn a_raw_dump_is_matched_with_the_build_that_ran() {
    let llvm = or_skip!(heap_llvm(22));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(
        Command::new(llvm.clangxx())
            .args(HEAP_FLAGS)
            .args(HEAP_LINK_FLAGS)
            .arg(programs().join("heap_threads.cpp"))
            .args(["-pthread", "-o", "x"])
            .current_dir(folder),
    );
    run_profiled(folder, "x", "x");
    let compared = |profile: &str| -> Value {
        serde_json::from_str(&out(folder, &["match", profile, "x", "--format=json"])).unwrap()
    };
    let one = compared("x.memprofraw");
    assert_eq!(one["kept"], one["total"], "{one}");
    // The dumps of a folder are one profile.
    std::fs::create_dir(folder.join("runs")).unwrap();
    for run in ["1.memprofraw", "2.memprofraw"] {
        std::fs::copy(folder.join("x.memprofraw"), folder.join("runs").join(run)).unwrap();
    }
    let both = compared("runs");
    let (one, both) = (totals_of(&one["total"]), totals_of(&both["total"]));
    assert_eq!([one[0], 2 * one[1], 2 * one[2]], both);
    // A program that did not run explains nothing.
    let other = profkit(
        folder,
        &["match", "x.memprofraw", env!("CARGO_BIN_EXE_profkit")],
    );
    assert_eq!(other.status.code(), Some(1));
    let said = String::from_utf8_lossy(&other.stderr);
    assert!(
        said.contains("only the build that ran can explain"),
        "{said}"
    );
}
