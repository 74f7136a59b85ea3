//! Compares MemProf YAML and indexed sections with llvm-profdata-22: the bytes of versions 2 to 4, and the YAML.
use profkit_data::instr::indexed::{self, IndexedProfile, IndexedWriteOptions};
use profkit_data::instr::{HeapSection, InstrProfile};
use profkit_data::memprof::indexed::{IndexedMemProf, IndexedMemProfOptions};
use profkit_data::memprof::{MemProfile, yaml};
use profkit_data::releases::Release;
use profkit_testkit::{Llvm, skip, succeed};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// An indexed profile that has only a MemProf section.
fn file_of(profile: &MemProfile, options: &IndexedMemProfOptions) -> Vec<u8> {
    let whole = InstrProfile {
        memprof: Some(HeapSection::Profile(
            Box::new(profile.clone()),
            options.clone(),
        )),
        ..InstrProfile::default()
    };
    let mut out = Vec::new();
    let release: Release = "22".parse().unwrap();
    let mut write = IndexedWriteOptions::for_llvm(release);
    write.known_memprof = 0..=4;
    indexed::write(&whole, &write, &mut out).unwrap();
    out
}

fn merged_by_llvm(llvm: &Llvm, input: &Path, more: &[&str]) -> Vec<u8> {
    let output = input.with_extension("profdata");
    succeed(
        Command::new(llvm.profdata())
            .arg("merge")
            .arg(input)
            .args(more)
            .arg("-o")
            .arg(&output),
    );
    std::fs::read(output).unwrap()
}

fn shown_by_llvm(llvm: &Llvm, file: &Path) -> String {
    let shown = Command::new(llvm.profdata())
        .args(["show", "--memory"])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    let start = text.rfind("\n---\n").unwrap();
    text[start + 1..].to_owned()
}

/// A profile in YAML with deep call stacks that share their outermost frames. The same seed gives the same text.
fn made_up(seed: u64, functions: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let mut text = String::from("---\nHeapProfileRecords:\n");
    let frame = |text: &mut String, function: u64, line: u64, inline: bool| {
        let _ = writeln!(
            text,
            "          - {{ Function: {:#x}, LineOffset: {line}, Column: {}, IsInlineFrame: {inline} }}",
            0x0123_4567_89ab_cdefu64.wrapping_mul(function + 1),
            line % 80
        );
    };
    for function in 0..functions {
        let _ = writeln!(text, "  - GUID:            function{function}");
        if function % 3 != 2 {
            text.push_str("    AllocSites:\n");
            for _ in 0..=next(3) {
                text.push_str("      - Callstack:\n");
                for depth in 0..=next(12) {
                    let line = if next(40) == 0 {
                        4_294_967_290
                    } else {
                        next(30)
                    };
                    frame(&mut text, depth * 4 + next(4), line, next(4) == 0);
                }
                let (count, size) = (1 + next(1000), next(1 << 40));
                let (life, density) = (next(1 << 40), next(1 << 30));
                let _ = writeln!(
                    text,
                    "        MemInfoBlock:\n          AllocCount:      {count}\n          TotalSize:       {size}\n          TotalLifetime:   {life}\n          TotalLifetimeAccessDensity: {density}"
                );
            }
        }
        if function % 2 == 0 {
            text.push_str("    CallSites:\n      - Frames:\n");
            for depth in 0..=next(3) {
                frame(&mut text, depth, next(9), true);
            }
            if function % 4 == 0 {
                let callees: Vec<_> = (0..1 + next(9))
                    .map(|n| format!("{:#x}", n * 0x1234_5678_9abc))
                    .collect();
                let _ = writeln!(text, "        CalleeGuids: [ {} ]", callees.join(", "));
            }
        }
    }
    text
}

#[test]
fn yaml_becomes_the_same_bytes_and_the_same_yaml_as_with_llvm() {
    let Some(llvm) = Llvm::find(22) else {
        return skip("LLVM 22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let data = "DataAccessProfiles:\n  SampledRecords:\n    - Symbol:          abcde\n      AccessCount:     100\n      Locations:\n        - FileName:        file2.h\n          Line:            123\n        - FileName:        dir/file3.h\n          Line:            7\n    - Hash:            101010\n      AccessCount:     200\n    - Symbol:          gv.llvm.12\n      AccessCount:     5\n  KnownColdSymbols:\n    - foo\n    - bar\n  KnownColdStrHashes: [ 1001, 999 ]\n";
    for (seed, functions) in [(1, 1), (2, 2), (3, 7), (4, 60), (5, 300)] {
        for with_data in [false, true] {
            let mut text = made_up(seed, functions);
            if with_data {
                text.push_str(data);
            }
            text.push_str("...\n");
            let input = folder.path().join("in.yaml");
            std::fs::write(&input, &text).unwrap();
            let profile = yaml::parse(text.as_bytes()).unwrap();
            for version in 2..=4 {
                for full in [false, true] {
                    let mut more = vec![format!("--memprof-version={version}")];
                    if full {
                        more.push("--memprof-full-schema".into());
                    }
                    let more: Vec<_> = more.iter().map(String::as_str).collect();
                    let theirs = merged_by_llvm(&llvm, &input, &more);
                    let ours =
                        file_of(&profile, &IndexedMemProfOptions::for_version(version, full));
                    let what =
                        format!("seed {seed}, version {version}, full {full}, data {with_data}");
                    assert!(ours == theirs, "bytes differ: {what}");
                    let file = input.with_extension("profdata");
                    let read = IndexedProfile::parse(&theirs).unwrap();
                    let start = read.memprof().unwrap().offset;
                    let back = IndexedMemProf::parse(&theirs, start).unwrap();
                    let mut shown = Vec::new();
                    yaml::write(&back.to_profile().unwrap(), &mut shown).unwrap();
                    let shown = String::from_utf8(shown).unwrap();
                    assert_eq!(shown, shown_by_llvm(&llvm, &file), "{what}");
                }
            }
        }
    }
}
