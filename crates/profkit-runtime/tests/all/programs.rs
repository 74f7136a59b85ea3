//! Programs that are linked with this runtime and with LLVM's, by every clang that is installed: both write the same
//! profile for the same input. docs/formats/runtime.md has the differences that are allowed.
use crate::support::{ran, runtime, Program, ENDS};
use profkit_runtime::link::{library, Compiler};
use profkit_testkit::{or_skip, some_or_all, Llvm};
use std::fs;
use std::process::Command;

const C: &str = r#"
#include <stdio.h>
#include <string.h>
static int more(int x) { return x + 1; }
static int square(int x) { return x * x; }
static int small(int x) { return x > 3 && x < 40 ? x * 2 : x; }
static int (*table[3])(int) = {more, square, small};
static char from[4096], to[4096];
int main(void) {
  int sum = 0;
  for (int i = 0; i < 50; i++) {
    sum += table[i % 3](i);
    memcpy(to, from, (i * 37) % 1000);
  }
  printf("%d\n", sum);
  return 0;
}
"#;

const CXX: &str = r#"
#include <cstdio>
#include <map>
#include <memory>
#include <vector>
struct A { virtual ~A() {} virtual int go(int x) { return x + 1; } };
struct B : A { int go(int x) override { return x * 2; } };
struct D : A { int go(int x) override { if (x > 4 || x == 2) return 1; return x - 2; } };
int main() {
  std::vector<std::unique_ptr<A>> all;
  for (int i = 0; i < 20; i++) {
    if (i % 3 == 0) all.emplace_back(new A); else if (i % 3 == 1) all.emplace_back(new B); else all.emplace_back(new D);
  }
  std::map<int, int> counts;
  for (int round = 0; round < 30; round++)
    for (auto &each : all) counts[each->go(round) % 7]++;
  printf("%zu\n", counts.size());
  return 0;
}
"#;

/// The kinds of instrumentation, with the first release that has each.
const MODES: [(u32, &[&str]); 9] = [
    (13, &["-fprofile-instr-generate", "-fcoverage-mapping"]),
    (13, &["-fprofile-generate"]),
    (13, &["-fcs-profile-generate"]),
    (
        13,
        &["-fprofile-generate", "-mllvm", "-vp-static-alloc=false"],
    ),
    (
        14,
        &[
            "-fprofile-generate",
            "-mllvm",
            "-pgo-function-entry-coverage",
        ],
    ),
    (19, &["-fprofile-generate", "-mllvm", "-pgo-block-coverage"]),
    (
        19,
        &[
            "-fprofile-generate",
            "-mllvm",
            "-pgo-temporal-instrumentation",
        ],
    ),
    (
        19,
        &[
            "-fprofile-instr-generate",
            "-fcoverage-mapping",
            "-fcoverage-mcdc",
        ],
    ),
    (
        19,
        &[
            "-fprofile-generate",
            "-mllvm",
            "-enable-vtable-value-profiling",
        ],
    ),
];

fn first_record(raw: &[u8], release: u32) -> usize {
    let words = if release < 18 { 11 } else { 16 };
    words * 8 + u64::from_le_bytes(raw[16..24].try_into().unwrap()) as usize
}

/// Sets every address in the header and the records of a raw file to 0, because addresses differ between two programs.
fn without_addresses(mut raw: Vec<u8>, release: u32) -> Vec<u8> {
    let (words, stride, pointers, deltas): (usize, usize, &[usize], &[usize]) = match release {
        13..=17 => (11, 48, &[16, 24, 32], &[8, 9]),
        18 => (14, 64, &[16, 24, 32, 40], &[10, 11, 12]),
        19..=22 => (16, 64, &[16, 24, 32, 40], &[10, 11, 12]),
        _ => (19, 72, &[16, 24, 32, 40, 48], &[13, 14, 15]),
    };
    let word = |raw: &[u8], at: usize| u64::from_le_bytes(raw[at..at + 8].try_into().unwrap());
    let (ids, records) = (word(&raw, 16) as usize, word(&raw, 24) as usize);
    for index in deltas {
        raw[index * 8..index * 8 + 8].fill(0);
    }
    for record in 0..records {
        let start = words * 8 + ids + record * stride;
        for pointer in pointers {
            raw[start + pointer..start + pointer + 8].fill(0);
        }
    }
    raw
}

#[test]
fn profiles_are_those_of_llvms_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.c"), C).unwrap();
    fs::write(folder.join("a.cpp"), CXX).unwrap();
    let mut cases = Vec::new();
    for llvm in Llvm::installed() {
        for (first, mode) in MODES {
            for source in ["a.c", "a.cpp"] {
                if llvm.release() >= first {
                    cases.push((llvm.clone(), mode, source));
                }
            }
        }
    }
    for (llvm, mode, source) in some_or_all(&cases, 11) {
        let compiler = if *source == "a.c" {
            llvm.clang()
        } else {
            llvm.clangxx()
        };
        let what = format!("clang {} {mode:?} {source}", llvm.release());
        let mut raws = Vec::new();
        let mut merged = Vec::new();
        for ours in [false, true] {
            let program = folder.join("program");
            let mut command = Command::new(compiler);
            command
                .current_dir(folder)
                .args(["-O1", "-no-pie", "-Wl,--build-id=none", source, "-o"])
                .arg(&program)
                .args(*mode);
            if ours {
                command.arg(runtime(folder, llvm.release()));
            }
            ran(&mut command);
            let raw = folder.join("a.profraw");
            ran(Command::new(&program).env("LLVM_PROFILE_FILE", &raw));
            let out = folder.join("a.profdata");
            ran(Command::new(llvm.profdata())
                .arg("merge")
                .arg(&raw)
                .arg("-o")
                .arg(&out));
            raws.push(fs::read(&raw).unwrap());
            merged.push(fs::read(&out).unwrap());
        }
        assert!(merged[0] == merged[1], "{what}: merged profiles differ");
        // LLVM 17 begins to fill counters of one byte up to eight bytes. One library serves 14 to 17, and it does not.
        let fills = llvm.release() == 17 && mode.contains(&"-pgo-function-entry-coverage");
        if !fills {
            assert_eq!(raws[0].len(), raws[1].len(), "{what}");
        }
        if mode.contains(&"-fprofile-instr-generate") {
            // Value data contain addresses, so those of two programs differ.
            let [theirs, ours] =
                [0, 1].map(|index| without_addresses(raws[index].clone(), llvm.release()));
            assert!(theirs == ours, "{what}: raw profiles differ");
        }
    }
}

#[test]
fn forked_processes_count_each_call_once() {
    for link in ["-pie", "-static"] {
        let program = or_skip!(Program::new(ENDS, &[link]));
        for name in [
            "out/a.profraw",
            "out/%p.profraw",
            "out/%m.profraw",
            "out/%2m.profraw",
        ] {
            assert!(program.run(name, "fork", &[]).status.success());
            assert_eq!(program.counts("work"), "2 [115, 57]", "{name} {link}");
        }
        program.run(
            "out/%m.profraw",
            "fork",
            &[("PROFKIT_PROFILE_FORK", "keep")],
        );
        assert_eq!(program.counts("work"), "3 [215, 107]", "{link}");
    }
}

#[test]
fn signals_write_the_profile_if_that_is_asked_for() {
    use std::os::unix::process::ExitStatusExt as _;
    let program = or_skip!(Program::new(ENDS, &[]));
    let asked = [("PROFKIT_PROFILE_SIGNALS", "15,10")];
    for name in ["out/a.profraw", "out/%m.profraw"] {
        assert_eq!(program.run(name, "term", &asked).status.signal(), Some(15));
        assert_eq!(program.counts("work"), "1 [100, 50]", "{name}");
    }
    // After SIGUSR1 the program goes on and writes its profile again at exit. The counts of the two writes are added.
    for name in ["out/a.profraw", "out/%p.profraw", "out/%m.profraw"] {
        assert!(program.run(name, "usr1", &asked).status.success());
        assert_eq!(program.counts("work"), "2 [107, 53]", "{name}");
    }
    assert_eq!(
        program.run("out/a.profraw", "term", &[]).status.signal(),
        Some(15)
    );
    assert_eq!(fs::read(&program.files()[0]).unwrap(), b"");
}

#[test]
fn a_continuous_profile_survives_the_end_of_the_process() {
    let program = or_skip!(Program::new(
        ENDS,
        &["-mllvm", "-runtime-counter-relocation"]
    ));
    for end in ["kill", "_exit", ""] {
        program.run("out/a%c.profraw", end, &[]);
        assert_eq!(program.counts("work"), "1 [100, 50]", "{end}");
    }
    program.run("out/a%c.profraw", "fork", &[]);
    assert_eq!(program.counts("work"), "2 [115, 57]");
    for _ in 0..3 {
        program.run("out/%c%m.profraw", "kill", &[]);
    }
    assert_eq!(program.counts("work"), "3 [300, 150]");
}

#[test]
fn a_program_without_relocation_says_that_it_cannot_be_continuous() {
    let program = or_skip!(Program::new(ENDS, &[]));
    let output = program.run("out/a%c.profraw", "", &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("the program was not compiled for %c"),
        "{said}"
    );
    assert_eq!(program.counts("work"), "1 [100, 50]");
}

#[test]
fn processes_that_share_a_pool_lose_no_count() {
    let program = or_skip!(Program::new(ENDS, &[]));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    program.run("out/%m.profraw", "", &[]);
                }
            });
        }
    });
    assert_eq!(program.files().len(), 1);
    assert_eq!(program.counts("work"), "40 [4000, 2000]");
}

#[test]
fn a_damaged_pool_is_kept() {
    let program = or_skip!(Program::new(ENDS, &[]));
    program.run("out/%m.profraw", "", &[]);
    let pool = program.files().pop().unwrap();
    let whole = fs::read(&pool).unwrap();
    let sizes = [1, 100, whole.len() - 8, whole.len() - 1, whole.len() + 8];
    let mut damaged: Vec<(String, Vec<u8>)> = sizes
        .iter()
        .map(|&size| {
            let mut bytes = whole.clone();
            bytes.resize(size, 0);
            (format!("{size} bytes"), bytes)
        })
        .collect();
    // In this damaged pool, the first record has a wrong counter pointer, which points to the counters of no function.
    let pointer = first_record(&whole, program.llvm.release()) + 16;
    let mut bytes = whole.clone();
    bytes[pointer..pointer + 8].fill(0xab);
    damaged.push(("counters elsewhere".to_owned(), bytes));
    for (what, bytes) in damaged {
        fs::write(&pool, &bytes).unwrap();
        let output = program.run("out/%m.profraw", "", &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("is damaged or of another program. It is kept"),
            "{what}: {said}"
        );
        assert!(fs::read(&pool).unwrap() == bytes, "{what}");
        fs::remove_file(&pool).unwrap();
        assert_eq!(program.counts("work"), "1 [100, 50]", "{what}");
        // One process writes its profile twice. The counts of both writes are kept.
        fs::write(&pool, &bytes).unwrap();
        program.run(
            "out/%m.profraw",
            "usr1",
            &[("PROFKIT_PROFILE_SIGNALS", "10")],
        );
        fs::remove_file(&pool).unwrap();
        assert_eq!(program.counts("work"), "2 [107, 53]", "{what}");
    }
}

#[test]
fn files_that_cannot_be_written_are_reported_and_change_no_exit_code() {
    let program = or_skip!(Program::new(ENDS, &[]));
    let long = "x".repeat(10_000);
    for (name, said) in [
        ("/dev/full", "no space left on device"),
        (long.as_str(), "its name is too long"),
        ("/proc/nowhere/a", "no such folder"),
        ("out", "it is a folder"),
        ("program.c/b", "not a folder"),
    ] {
        let output = program.run(name, "", &[]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        assert!(
            stderr.starts_with("LLVM Profile Error: Failed to write file"),
            "{stderr}"
        );
        assert!(stderr.contains(said), "{stderr}");
    }
    let output = program.run("%t.profraw", "", &[("TMPDIR", "")]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("Unable to get the TMPDIR environment variable, referenced in %t.profraw"),
        "{stderr}"
    );
    assert!(program.path("default.profraw").exists());
}

#[test]
fn a_runtime_of_another_raw_version_writes_nothing_and_says_which_one_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.c"), ENDS).unwrap();
    for llvm in Llvm::installed() {
        let right = Compiler::Clang(llvm.release()).raw_version().unwrap();
        for wrong in [7, 8, 10] {
            if wrong == right {
                continue;
            }
            fs::write(folder.join("lib.a"), library(wrong, None).unwrap()).unwrap();
            for mode in ["-fprofile-instr-generate", "-fprofile-generate"] {
                if (right, wrong, mode) == (9, 10, "-fprofile-instr-generate") {
                    // The program's records are those of version 10, too: its profile is one of version 10.
                    continue;
                }
                ran(Command::new(llvm.clang())
                    .current_dir(folder)
                    .args([mode, "-O1", "a.c", "lib.a", "-o", "program"]));
                let raw = folder.join("a.profraw");
                let output = Command::new(folder.join("program"))
                    .env("LLVM_PROFILE_FILE", &raw)
                    .output()
                    .unwrap();
                let said = String::from_utf8(output.stderr).unwrap();
                // Only the variable of `-fprofile-generate` tells versions 9 and 10 apart.
                let next =
                    if right == 7 || right == 8 || right == 11 || mode == "-fprofile-generate" {
                        format!("raw-{right}\n")
                    } else {
                        "raw-10, or raw-9 for LLVM 18\n".to_owned()
                    };
                assert!(
                    said.contains(&format!("profkit runtime --for {next}")),
                    "clang {} {mode} with raw {wrong}: {said}",
                    llvm.release()
                );
                assert_eq!(fs::read(&raw).unwrap(), b"");
            }
        }
    }
}

#[test]
fn the_objects_import_functions_only_weakly() {
    let Some(nm) = profkit_testkit::on_path("nm") else {
        profkit_testkit::skip("no nm");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for version in [7, 8, 9, 10, 11] {
        let path = folder.path().join("lib.a");
        fs::write(&path, library(version, None).unwrap()).unwrap();
        let listed = ran(Command::new(&nm).arg("-u").arg(&path));
        let listed = String::from_utf8(listed.stdout).unwrap();
        // The object file with the constructor refers to three functions of libc, to put them into static programs.
        let of_libc = ["getenv", "setenv", "signal"];
        for line in listed.lines() {
            if let Some(name) = line.trim_start().strip_prefix("U ") {
                let ours = ["__llvm_profile_", "__profkit_profile_", "lprof"]
                    .iter()
                    .any(|start| name.starts_with(start));
                assert!(ours || of_libc.contains(&name), "{name}");
            }
        }
    }
}

/// In the process that this test starts, `RUSTC` is the old compiler.
#[test]
fn rust_1_63_compiles_it() {
    const INNER: &str = "PROFKIT_TEST_WITH_OLD_RUSTC";
    if std::env::var_os(INNER).is_some() {
        for target in ["aarch64-linux-gnu", "arm-linux-gnueabihf"] {
            for version in [7, 11] {
                let library = library(version, Some(target));
                assert!(library.is_ok(), "raw {version}: {}", library.unwrap_err());
            }
        }
        return;
    }
    let rustc = std::env::var_os("PROFKIT_OLD_RUSTC").map_or_else(
        || profkit_testkit::repo_root().join("target/old-rust/rustc"),
        std::path::PathBuf::from,
    );
    if !rustc.exists() {
        profkit_testkit::skip("no Rust 1.63 of Debian's (PROFKIT_OLD_RUSTC, see .ci/run)");
        return;
    }
    ran(Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "rust_1_63_compiles_it"])
        .env("RUSTC", rustc)
        .env(INNER, "1"));
}
