//! Damaged and unsuitable heap profiles: what `profkit merge` says, what it keeps, and its exit code.
use super::{Heap, profkit};
use profkit_testkit::{repo_root, succeed};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Merges files of a folder. Returns the messages and the exit code.
fn said(folder: &Path, files: &[&str], binaries: &str) -> String {
    let mut args = vec!["merge"];
    args.extend(files);
    args.extend(["--binaries", binaries, "-o", "out"]);
    let output = profkit(folder, &args);
    format!(
        "{}exit code {}\n",
        String::from_utf8_lossy(&output.stderr),
        output.status.code().unwrap()
    )
}

#[test]
fn each_damage_of_a_dump_is_told() {
    let good = repo_root().join("fuzz/regressions/memprof_raw/clang-22");
    let good = std::fs::read(good).unwrap();
    let word = |at: usize| {
        usize::try_from(u64::from_le_bytes(good[at..at + 8].try_into().unwrap())).unwrap()
    };
    let with = |at: usize, value: u64| {
        let mut file = good.clone();
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        file
    };
    let two = |second: Vec<u8>| [good.clone(), second].concat();
    let cases = [
        ("shorter than a header", good[..40].to_vec()),
        ("cut short", good[..good.len() - 100].to_vec()),
        ("size of the dump", with(16, 1 << 40)),
        ("version 0", with(8, 0)),
        ("version 6", with(8, 6)),
        ("version 4711", with(8, 4711)),
        ("stray bytes after the dump", two(vec![0; 8])),
        ("another magic after the dump", two(with(0, 1))),
        ("the same dump twice", two(good.clone())),
        ("other segments in a second dump", two(with(56 + 8, 0x1234))),
        (
            "another stack of the same id in a second dump",
            two(with(word(40) + 24, 0x1234)),
        ),
        ("a block whose stack is missing", with(word(32) + 8, 0x1234)),
        (
            "forty dumps with a block whose stack is missing",
            with(word(32) + 8, 0x1234).repeat(40),
        ),
        (
            "an empty list",
            b"---\nHeapProfileRecords: []\n...\n".to_vec(),
        ),
        ("YAML", b"---\nHeapProfileRecords:\n  - GUID: 12\n".to_vec()),
    ];
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    let mut all = String::new();
    for (name, bytes) in cases {
        std::fs::write(folder.path().join("heap"), bytes).unwrap();
        let _ = write!(all, "-- {name}\n{}", said(folder.path(), &["heap"], "bin"));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn an_empty_profile_is_dropped_and_the_others_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("empty", "---\nHeapProfileRecords: []\n...\n");
    write(
        "good",
        "---\nHeapProfileRecords:\n  - GUID: 0x1\n    AllocSites:\n      - Callstack:\n          - { Function: 0x1, LineOffset: 1, Column: 2, IsInlineFrame: false }\n        MemInfoBlock: { AllocCount: 7, TotalAccessCount: 9, TotalSize: 8, TotalLifetimeAccessDensity: 5 }\n...\n",
    );
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    let said = said(folder.path(), &["empty", "good"], "bin");
    insta::assert_snapshot!(said, @"
    warning: empty: dropped: the profile is empty (MemProf YAML): expected records under HeapProfileRecords or DataAccessProfiles
    hint: leave the file out, or write it again from a profile with a MemProf section

    wrote out (768 bytes, indexed version 13): 1 heap context from 1 of 2 files (292 bytes)

    Files
      kept     1
      dropped  1  50.0%
    exit code 0
    ");
}

#[test]
fn unsuitable_binaries_are_told() {
    let Some(heap) = Heap::new(22) else { return };
    heap.build("one", &[]);
    heap.build("other", &["-no-pie", "-fno-pie"]);
    heap.dump("one", "one");
    succeed(
        Command::new("strip")
            .args(["-g", "one", "-o", "stripped"])
            .current_dir(heap.folder()),
    );
    let of = |binary: &str| said(heap.folder(), &["one.memprofraw"], binary);
    let other = of("other");
    assert!(
        other.contains("because no binary was given for "),
        "{other}"
    );
    let stripped = of("stripped");
    assert!(stripped.contains("-gmlt"), "{stripped}");
    assert!(of("one").ends_with("exit code 0\n"));
}
