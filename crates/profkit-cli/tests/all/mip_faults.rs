//! What goes wrong around a program with a MIP profile, in each mode: it is killed at any system call, or the file cannot
//! grow. The file is whole or as it was before, and the program ends as it would have ended without a profile.
use profkit_testkit::{Killer, links_c, or_skip, skip, some_or_all, succeed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");

/// A program with 803 functions. After it has called `getppid`, it only ends, and so writes
/// its profile.
const PROGRAM: &str = r#"
#include <sys/syscall.h>
#include <unistd.h>
volatile int sink;
#define F(n) __attribute__((noinline)) void f##n(int x) { if (x > 2) sink++; else if (x) sink--; }
#define TEN(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
HUNDRED(1) HUNDRED(2) HUNDRED(3) HUNDRED(4) HUNDRED(5) HUNDRED(6) HUNDRED(7) HUNDRED(8)
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) if (i % 2) sink++; }
int main(void) { work(100); f100(1); f899(0); f899(3); syscall(SYS_getppid); return 7; }
"#;

/// What the program returns.
const OWN_CODE: i32 = 7;

/// The options of each mode of the full runtime (the small one writes into the file itself), and whether a second process adds to the file of the first (`%m`).
const MODES: &[(&str, &[&str], bool)] = &[
    ("function", &["--mode", "function"], true),
    ("block", &["--mode", "function,block"], true),
    (
        "all-blocks",
        &["--mode", "function,block", "--all-blocks"],
        true,
    ),
    ("unary", &["--counter", "unary"], false),
    ("calls", &["--mode", "calls"], true),
    ("atomic", &["--mode", "calls", "--atomic"], true),
    (
        "edges",
        &["--mode", "calls", "--return-addresses", "256"],
        false,
    ),
    (
        "edges-atomic",
        &["--mode", "calls", "--atomic", "--return-addresses", "256"],
        false,
    ),
];

fn build(folder: &Path, name: &str, options: &[&str]) {
    fs::write(folder.join("program.c"), PROGRAM).unwrap();
    succeed(
        Command::new(PROFKIT)
            .args(["mip", "cc"])
            .args(options)
            .args([
                "--",
                "gcc-12",
                "-O1",
                "-static",
                "program.c",
                "-Wl,--build-id",
                "-o",
                name,
            ])
            .current_dir(folder),
    );
}

/// The program, which writes `raw`.
fn program(folder: &Path, name: &str, raw: &str) -> Command {
    let mut command = Command::new(format!("./{name}"));
    command
        .current_dir(folder)
        .env("LLVM_MIP_PROFILE_FILENAME", raw)
        .env_remove("PROFKIT_MIP_SIGNAL");
    command
}

/// The files in the folder of profiles.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("out")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn only(folder: &Path) -> PathBuf {
    let mut files = files(folder);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Merging the file says that it is sound.
fn check(folder: &Path, name: &str, file: &Path) {
    let profkit = |words: &[&str]| {
        succeed(
            Command::new(PROFKIT)
                .args(["mip"])
                .args(words)
                .current_dir(folder),
        )
    };
    let _ = fs::remove_file(folder.join("x.mip"));
    profkit(&["create", "-p", "x.mip", name]);
    profkit(&["merge", "--strict", "-p", "x.mip", file.to_str().unwrap()]);
}

#[test]
fn a_process_killed_at_any_system_call_leaves_a_whole_file() {
    or_skip!(links_c("gcc-12", &["-static"]));
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let killer = or_skip!(Killer::new(folder, Path::new("gcc-12")));
    fs::create_dir(folder.join("out")).unwrap();
    for &(name, options, adds) in some_or_all(MODES, 3) {
        build(folder, name, options);
        let raw = if adds {
            "out/%m.mipraw"
        } else {
            "out/a.mipraw"
        };
        let run = || {
            let output = program(folder, name, raw).output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(OWN_CODE),
                "{name}: {}",
                text(&output)
            );
        };
        run();
        let file = only(folder);
        let first = fs::read(&file).unwrap();
        run();
        let second = fs::read(&file).unwrap();
        assert_eq!(adds, first != second, "{name}");
        check(folder, name, &file);
        for existed in [true, false] {
            let (mut before, mut after, mut temporary) = (0, 0, 0);
            let prepare = || {
                for file in files(folder) {
                    fs::remove_file(file).unwrap();
                }
                if existed {
                    fs::write(&file, &first).unwrap();
                }
            };
            killer.everywhere("end", &program(folder, name, raw), prepare, |at| {
                let left = files(folder);
                for path in left {
                    let bytes = fs::read(&path).unwrap();
                    if path != file {
                        temporary += 1;
                    } else if existed && bytes == first {
                        before += 1;
                    } else {
                        let whole = if existed { &second } else { &first };
                        assert!(&bytes == whole, "{name} {at}: a part of a file");
                        after += 1;
                    }
                }
            });
            assert!(
                temporary > 0 && (after > 0 || existed && !adds) && (before > 0 || !existed),
                "{name} {existed}: {before} {after} {temporary}"
            );
        }
        for file in files(folder) {
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn a_file_that_may_not_grow_costs_a_line_and_nothing_else() {
    or_skip!(links_c("gcc-12", &["-static"]));
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("out")).unwrap();
    for &(name, options, adds) in some_or_all(MODES, 3) {
        build(folder, name, options);
        let raw = if adds {
            "out/%m.mipraw"
        } else {
            "out/a.mipraw"
        };
        let mut before = None;
        for _ in 0..2 {
            for limit in ["0", "100", "700"] {
                let ours = program(folder, name, raw);
                let mut command = Command::new("prlimit");
                command
                    .arg(format!("--fsize={limit}"))
                    .arg(ours.get_program())
                    .current_dir(folder)
                    .env("LLVM_MIP_PROFILE_FILENAME", raw);
                let output = match command.output() {
                    Ok(output) => output,
                    Err(error) => return skip(&format!("prlimit: {error}")),
                };
                let said = text(&output);
                assert_eq!(
                    output.status.code(),
                    Some(OWN_CODE),
                    "{name} {limit}: {output:?}"
                );
                assert!(said.starts_with("profkit: MIP profile "), "{name}: {said}");
                assert!(said.contains("error 27"), "{name}: {said}");
                assert_eq!(said.lines().count(), 1, "{name}: {said}");
                let left: Vec<Vec<u8>> = files(folder)
                    .iter()
                    .map(|file| fs::read(file).unwrap())
                    .collect();
                assert!(left == Vec::from_iter(before.clone()), "{name} {limit}");
            }
            let output = program(folder, name, raw).output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(OWN_CODE),
                "{name}: {}",
                text(&output)
            );
            let file = only(folder);
            before = Some(fs::read(&file).unwrap());
            check(folder, name, &file);
        }
        fs::remove_file(only(folder)).unwrap();
    }
}
