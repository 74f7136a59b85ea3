//! `profkit pgo`, from a build to a faster build, with make and with cargo.
use profkit_testkit::{Llvm, on_path, require_or_skip, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

pub(crate) const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int classify(int x) { return x % 97 == 0 ? 1 : x % 5 == 0 ? 2 : 0; }
int never(int x) { return x + 1; }
int main(int c, char **v) {
  long n = 0;
  if (c > 2) return never(c);
  for (int i = 0; i < atoi(v[1]); i++) n += classify(i);
  printf("%ld\n", n);
  return 0;
}
"#;

pub(crate) const MAKEFILE: &str = "\
CC = gcc -std=gnu99
all: app
app: main.o
\t$(CC) -o app main.o
main.o: main.c
\t$(CC) -O2 -c main.c
clean:
\trm -f main.o app
";

/// A folder with a program in C and its makefile, which names gcc.
pub(crate) fn in_c() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("main.c"), MAIN).unwrap();
    fs::write(folder.path().join("Makefile"), MAKEFILE).unwrap();
    folder
}

pub(crate) fn pgo(folder: &Path, llvm: &Llvm, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_profkit"))
        .args(["pgo", "--compiler"])
        .arg(llvm.clang())
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env_remove("CC")
        .output()
        .unwrap()
}

/// Runs the script that `--dry-run` prints of the same job.
pub(crate) fn run_script(folder: &Path, llvm: &Llvm, arguments: &[&str]) {
    let printed = pgo(folder, llvm, &[&["--dry-run"], arguments].concat());
    assert_eq!(printed.status.code(), Some(0), "{}", said(&printed));
    fs::write(folder.join("job.sh"), &printed.stdout).unwrap();
    run_job(folder);
}

fn run_job(folder: &Path) {
    let mut script = Command::new("sh");
    let ran = script.arg("job.sh").current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{}", said(&ran));
}

pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub(crate) fn has_counters(program: &Path) -> bool {
    fs::read(program)
        .unwrap()
        .windows(15)
        .any(|bytes| bytes == b"__llvm_prf_cnts")
}

#[test]
fn a_makefile_that_names_gcc_is_compiled_by_clang_with_its_profile() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    let output = pgo(
        dir,
        &llvm,
        &[
            "--train",
            "./app 1000",
            "--train",
            "3,./app 10",
            "--keep",
            "kept",
            "--bench",
            "./app 1000",
            "--runs",
            "2",
            "--",
            "make",
        ],
    );
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in [
        "merged 2 of 2 raw profiles for LLVM 22",
        "share of all counts       100.0%",
        "times as fast",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!has_counters(&dir.join("app")));
    // 1000 times with weight 1 and 10 times with weight 3.
    let show = Command::new(llvm.profdata())
        .args([
            "show",
            "--all-functions",
            "--counts",
            "kept/merged.profdata",
        ])
        .current_dir(dir)
        .output()
        .unwrap();
    let show = String::from_utf8(show.stdout).unwrap();
    assert!(show.contains("1030"), "{show}");
    // What the build left is all that is new.
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["Makefile", "app", "cache", "kept", "main.c", "main.o"]
    );
}

#[test]
fn the_script_does_the_same_without_profkit() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    let arguments = [
        "--train",
        "./app 1000",
        "--train",
        "3,./app 10",
        "--keep",
        "kept",
        "--dry-run",
        "--",
        "make",
    ];
    let printed = pgo(dir, &llvm, &arguments);
    assert_eq!(printed.status.code(), Some(0), "{}", said(&printed));
    assert!(!dir.join("app").exists());
    fs::write(dir.join("job.sh"), &printed.stdout).unwrap();
    // The second time it has the files of the first one.
    for _ in 0..2 {
        run_job(dir);
    }
    assert!(!has_counters(&dir.join("app")));
    let script = fs::read(dir.join("kept/merged.profdata")).unwrap();
    let output = pgo(
        dir,
        &llvm,
        &[
            "--train",
            "./app 1000",
            "--train",
            "3,./app 10",
            "--keep",
            "kept",
            "--",
            "make",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(script == fs::read(dir.join("kept/merged.profdata")).unwrap());
}

/// The folder that keeps the profiles may be the user's own, with folders of any name.
#[test]
fn nothing_of_the_user_is_removed() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    for name in ["build", "plain", "optimised", "train-1"] {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("mine"), "mine").unwrap();
    }
    let output = pgo(
        dir,
        &llvm,
        &[
            "--train", "./app 5", "--keep", ".", "--bench", "./app 5", "--runs", "1", "--", "make",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("share of all counts       100.0%"));
    for name in ["build", "plain", "optimised", "train-1"] {
        assert!(dir.join(name).join("mine").exists(), "{name}");
    }
    assert!(dir.join("merged.profdata").exists());
}

#[test]
fn a_second_stage_collects_after_inlining() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let output = pgo(
        folder.path(),
        &llvm,
        &[
            "--stages",
            "2",
            "--train",
            "./app 1000",
            "--keep",
            "kept",
            "--",
            "make",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let mut show = Command::new(llvm.profdata());
    show.args([
        "show",
        "--showcs",
        "--all-functions",
        "kept/merged.profdata",
    ])
    .current_dir(folder.path());
    let show = String::from_utf8(show.output().unwrap().stdout).unwrap();
    assert!(show.contains("main"), "{show}");
}

#[test]
fn a_recording_takes_the_place_of_counters() {
    let llvm = require_or_skip!(22);
    let recorded = Command::new("perf")
        .args([
            "record",
            "-q",
            "-e",
            "cpu-clock:u",
            "-o",
            "/dev/null",
            "--",
            "true",
        ])
        .output();
    if !recorded.is_ok_and(|output| output.status.success()) {
        skip("perf cannot record here");
        return;
    }
    let folder = in_c();
    let dir = folder.path();
    // The second training runs nothing of the build.
    let arguments = [
        "--sampling",
        "--train",
        "./app 20000000",
        "--train",
        "true",
        "--keep",
        "kept",
        "--",
        "make",
    ];
    let output = pgo(dir, &llvm, &arguments);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("made a sample profile of 1 of 2 recordings"),
        "{text}"
    );
    assert!(!has_counters(&dir.join("app")));
    // What clang applied of it is seen in its code for a function with samples.
    let mut clang = Command::new(llvm.clang());
    clang
        .args(["-O2", "-S", "-emit-llvm", "-o", "-", "main.c"])
        .arg("-fprofile-sample-use=kept/merged.prof")
        .current_dir(dir);
    let code = String::from_utf8(clang.output().unwrap().stdout).unwrap();
    assert!(code.contains("function_entry_count"), "{code}");
    // As a script: other samples, the same steps.
    fs::remove_dir_all(dir.join("kept")).unwrap();
    let one = [
        "--sampling",
        "--train",
        "3,./app 20000000",
        "--keep",
        "kept",
        "--",
        "make",
    ];
    run_script(dir, &llvm, &one);
    assert!(dir.join("kept/merged.prof").exists());
    // A build that has nothing to do, and one that has nothing to do the second time.
    for (clean, words) in [
        (
            "true",
            "the build wrote no program to record\nhint: give --clean",
        ),
        (
            "rm main.o; sed -i s/rm/true/ clean.sh",
            "did not compile again: ",
        ),
    ] {
        fs::write(dir.join("clean.sh"), clean).unwrap();
        let lazy = [
            "--sampling",
            "--train",
            "./app 20000000",
            "--clean",
            "sh clean.sh",
            "--",
            "make",
        ];
        let output = pgo(dir, &llvm, &lazy);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(words), "{text}");
    }
    // A perf that may not record anything.
    fs::write(
        dir.join("perf"),
        "#!/bin/sh\necho no permission >&2\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(dir.join("perf"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(
        std::iter::once(dir.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let output = Command::new(env!("CARGO_BIN_EXE_profkit"))
        .args(["pgo", "--compiler"])
        .arg(llvm.clang())
        .args(arguments)
        .current_dir(dir)
        .env("PATH", path.unwrap())
        .output()
        .unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("error: perf cannot record: no permission\nhint: install perf"),
        "{text}"
    );
}

#[test]
fn what_no_training_ran_may_be_compiled_as_without_a_profile() {
    let llvm = require_or_skip!(22);
    let functions = |dir: &Path| {
        let mut show = Command::new(llvm.profdata());
        show.args(["show", "--all-functions", "kept/merged.profdata"])
            .current_dir(dir);
        String::from_utf8(show.output().unwrap().stdout).unwrap()
    };
    for (option, kept) in [(None, true), (Some("--partial"), false)] {
        let folder = in_c();
        let dir = folder.path();
        let arguments = ["--train", "./app 1000", "--keep", "kept", "--", "make"];
        let arguments = [option.as_slice(), &arguments[..]].concat();
        let output = pgo(dir, &llvm, &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let shown = functions(dir);
        assert!(shown.contains("  main:"), "{shown}");
        assert_eq!(shown.contains("  never:"), kept, "{shown}");
        fs::remove_dir_all(dir.join("kept")).unwrap();
        run_script(dir, &llvm, &arguments);
        assert_eq!(functions(dir), shown);
    }
}

/// The names of functions in the order of their addresses.
fn placed(llvm: &Llvm, program: &Path) -> Vec<String> {
    let nm = Llvm::tool("llvm-nm", llvm.release()).unwrap();
    let nm = Command::new(nm)
        .args(["-n", "--demangle"])
        .arg(program)
        .output();
    let text = String::from_utf8(nm.unwrap().stdout).unwrap();
    let names = text
        .lines()
        .filter_map(|line| line.split_once(" t ").or(line.split_once(" T ")));
    names.map(|(_, name)| name.to_owned()).collect()
}

const ORDERED: &str = "\
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int third(int x) { return x * 3; }
__attribute__((noinline)) int unused(int x) { return x * 5; }
__attribute__((noinline)) int second(int x) { return third(x) + 2; }
int main(int c, char **v) { return c > 2 ? unused(c) : second(atoi(v[1])) == 0; }
";

#[test]
fn functions_are_placed_in_the_order_of_their_calls() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    fs::write(dir.join("main.c"), ORDERED).unwrap();
    let arguments = [
        "--mip", "--train", "./app 7", "--keep", "kept", "--", "make",
    ];
    let output = pgo(dir, &llvm, &arguments);
    let text = said(&output);
    if text.contains("finds no ld.lld") {
        skip("no lld");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
    let first = &placed(&llvm, &dir.join("app"))[..3];
    assert_eq!(first, ["main", "second", "third"], "{text}");
    let profile = fs::read(dir.join("kept/order.txt")).unwrap();
    assert_eq!(profile, b"main\nsecond\nthird\n");
    // The same by the script.
    fs::remove_dir_all(dir.join("kept")).unwrap();
    run_script(dir, &llvm, &arguments);
    assert!(profile == fs::read(dir.join("kept/order.txt")).unwrap());
    assert_eq!(
        &placed(&llvm, &dir.join("app"))[..3],
        ["main", "second", "third"]
    );
}

/// The names of Rust's functions have hashes, which are those of the last build.
#[test]
fn functions_of_crates_are_placed_too() {
    let llvm = require_or_skip!(22);
    if on_path("cargo").is_none() {
        skip("no cargo");
        return;
    }
    let folder = TempDir::new().unwrap();
    let dir = folder.path();
    fs::create_dir_all(dir.join("src")).unwrap();
    fs::write(
        dir.join("Cargo.toml"),
        "[package]\nname = \"hot\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    )
    .unwrap();
    fs::write(
        dir.join("src/main.rs"),
        "#[inline(never)]\nfn third(n: usize) -> usize { std::hint::black_box(n) * 3 }\n\
         #[inline(never)]\nfn unused(n: usize) -> usize { std::hint::black_box(n) * 5 }\n\
         #[inline(never)]\nfn second(n: usize) -> usize { third(n) + std::hint::black_box(2) }\n\
         fn main() { let n = std::env::args().count(); println!(\"{}\", if n > 4 { unused(n) } else { second(n) }); }\n",
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_profkit"))
        .args([
            "pgo",
            "--mip",
            "--train",
            "target/release/hot",
            "--compiler",
        ])
        .arg(llvm.clang())
        .args(["--", "cargo", "build", "--release"])
        .current_dir(dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap();
    let text = said(&output);
    if text.contains("finds no ld.lld") {
        skip("no lld");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
    let names = placed(&llvm, &dir.join("target/release/hot"));
    let at = |name: &str| names.iter().position(|found| found.contains(name));
    let (main, second, third) = (at("hot::main"), at("hot::second"), at("hot::third"));
    assert!(
        main.is_some() && main < second && second < third,
        "{names:?}"
    );
    assert!(third.is_some_and(|third| third < 10), "{names:?}");
}

#[test]
fn what_goes_wrong_is_said_with_the_next_step() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    fs::write(dir.join("dirty"), MAKEFILE.replace("clean:", "other:")).unwrap();
    // A build that has nothing to do.
    assert!(
        Command::new("make")
            .current_dir(dir)
            .output()
            .unwrap()
            .status
            .success()
    );
    for (arguments, code, words) in [
        (
            &["--train", "./app 5", "--clean", "true", "--", "make"][..],
            1,
            "the training wrote no profile\nhint: the build did not compile",
        ),
        (
            &["--train", "true", "--", "make"][..],
            1,
            "the training wrote no profile; instrumented are ",
        ),
        (
            &["--train", "./app 5", "--clean", "true", "--", "make"],
            1,
            "left instrumented programs: ",
        ),
        (
            &[
                "--train",
                "./app 5",
                "--clean",
                "rm -f app main.o; mkdir once",
                "--",
                "make",
            ],
            1,
            "try the command after a build of your own",
        ),
        (
            &[
                "--train",
                "./app 5",
                "--",
                "sh",
                "-c",
                "rm -f main.o; make; touch -d tomorrow main.o app",
            ],
            1,
            "left instrumented programs: ",
        ),
        (
            &["--train", "./app 5", "--", "make", "missing"],
            1,
            "the build ended with exit status: 2\nhint: try the build without profkit, by CC=clang",
        ),
        (
            &["--train", "false", "--", "make"],
            1,
            "error: each training command failed, and none wrote a profile",
        ),
        (
            &["--train", "./app 5", "--", "make", "-f", "dirty"],
            1,
            "`make -f dirty clean` ended with exit status: 2\nhint: give --clean CMD",
        ),
        (
            &["--train", "./app 5", "--train", "true", "--", "make"],
            1,
            "warning: the training true wrote no profile: it ran no program of the build",
        ),
        (
            &["--train", "./app 5", "--train", "kill -9 $$", "--", "make"],
            1,
            "ended with signal: 9",
        ),
        (
            &["--train", "x", "--stages", "2", "--", "cargo", "build"],
            2,
            "stable rustc lacks a second stage",
        ),
        (
            &["--train", "x", "--sampling", "--", "cargo", "build"],
            2,
            "stable rustc lacks an option to use sample profiles",
        ),
        (
            &["--train", "x", "--mip", "--", "maturin", "build"],
            1,
            "functions cannot be placed in order: the build is not started by cargo itself",
        ),
    ] {
        let output = pgo(dir, &llvm, arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
    // The runs that ended well are used.
    assert!(!has_counters(&dir.join("app")));
    let no_clang = Command::new(env!("CARGO_BIN_EXE_profkit"))
        .args(["pgo", "--compiler", "true", "--train", "x", "--", "make"])
        .output()
        .unwrap();
    assert_eq!(no_clang.status.code(), Some(2), "{}", said(&no_clang));
}

/// The training also runs a program that another build has instrumented, and which is hotter.
#[test]
fn hot_functions_that_the_build_does_not_have_are_named() {
    let llvm = require_or_skip!(22);
    let folder = in_c();
    let dir = folder.path();
    let elsewhere = TempDir::new().unwrap();
    let other = elsewhere.path().join("other");
    fs::write(elsewhere.path().join("other.c"), OTHER).unwrap();
    let made = Command::new(llvm.clang())
        .args(["-O1", "-fprofile-generate", "-o"])
        .arg(&other)
        .arg(elsewhere.path().join("other.c"))
        .status();
    assert!(made.unwrap().success());
    let train = format!("./app 100 && '{}'", other.display());
    let output = pgo(dir, &llvm, &["--train", &train, "--", "make"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let at = text
        .find("Hot functions that the build does not use")
        .unwrap_or_else(|| panic!("{text}"));
    let row = text[at..].lines().nth(1).unwrap();
    assert!(row.trim_start().starts_with("outsider "), "{text}");
    assert!(row.contains("in no program of the build"), "{text}");
    let output = pgo(
        dir,
        &llvm,
        &["--train", &train, "--format", "json", "--", "make"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let json = &text[text.find("{\n  \"schema\"").or(text.find("{\n")).unwrap()..];
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let lost = &json["used"]["hot_lost"][0];
    assert_eq!(
        (&lost["function"], &lost["outcome"]),
        (&"outsider".into(), &"unknown".into())
    );
    let kept = json["used"]["counts_share"].as_f64().unwrap();
    assert!(kept + lost["share"].as_f64().unwrap() <= 1.0, "{text}");
}

const OTHER: &str = "\
__attribute__((noinline)) int outsider(int x) {
  for (volatile int i = 0; i < 100000; i++) x += i;
  return x;
}
int main(void) { return outsider(1) == 0; }
";

/// A program with the name of maturin makes a wheel, which no Python has installed.
#[test]
fn a_wheel_is_trained_and_measured_without_an_installation() {
    let llvm = require_or_skip!(22);
    if on_path("python3").is_none() {
        skip("no python3");
        return;
    }
    let folder = TempDir::new().unwrap();
    let dir = folder.path();
    fs::write(
        dir.join("hot.c"),
        "long hot(long n) { long s = 0; for (long i = 0; i < n; i++) s += i % 3; return s; }\n",
    )
    .unwrap();
    fs::write(dir.join("maturin"), "#!/bin/sh\nset -e\ngrep -q force=1 $DIST_EXTRA_CONFIG\nmkdir -p wheels part/hot\n$CC $CFLAGS -O2 -fPIC -shared -o part/hot/hot.so hot.c\ncd part\npython3 -m zipfile -c ../wheels/hot-1-py3-none-any.whl hot\nrm -r hot\n").unwrap();
    fs::set_permissions(dir.join("maturin"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(dir.join("use.py"), "import ctypes, os, sys\nat = next(p for p in sys.path if os.path.exists(p + '/hot/hot.so'))\nctypes.CDLL(at + '/hot/hot.so').hot(1000)\n").unwrap();
    let arguments = [
        "--train",
        "cd / && python3 $OLDPWD/use.py",
        "--keep",
        "kept",
    ];
    let rest = ["--", "./maturin", "build"];
    let printed = pgo(
        dir,
        &llvm,
        &[&arguments[..], &["--dry-run"], &rest].concat(),
    );
    assert_eq!(printed.status.code(), Some(0), "{}", said(&printed));
    fs::write(dir.join("job.sh"), &printed.stdout).unwrap();
    run_job(dir);
    let script = fs::read(dir.join("kept/merged.profdata")).unwrap();
    let bench = ["--bench", "python3 use.py", "--runs", "1"];
    let output = pgo(dir, &llvm, &[&arguments[..], &bench, &rest].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains("merged 1 of 1 raw profiles"),
        "{}",
        said(&output)
    );
    assert!(script == fs::read(dir.join("kept/merged.profdata")).unwrap());
    let built = dir.join("kept/profkit-pgo-runs/wheels/hot/hot.so");
    assert!(!has_counters(&built));
}

#[test]
fn what_cannot_be_instrumented_together_is_said() {
    let llvm = require_or_skip!(16);
    if on_path("cargo").is_none() {
        skip("no cargo");
        return;
    }
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("Cargo.toml"), "").unwrap();
    for (build, words) in [
        (
            "cargo",
            "C and C++ that build scripts compile have no profile",
        ),
        ("make", "Rust has no profile"),
    ] {
        let output = pgo(
            folder.path(),
            &llvm,
            &["--dry-run", "--train", "x", "--", build],
        );
        let text = said(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(
            text.contains(words) && text.contains("--compiler with a clang of LLVM "),
            "{text}"
        );
    }
}

#[test]
fn cargo_keeps_the_flags_of_its_configuration() {
    let llvm = require_or_skip!(22);
    if on_path("cargo").is_none() {
        skip("no cargo");
        return;
    }
    let folder = TempDir::new().unwrap();
    let dir = folder.path();
    // Cargo's folder for programs is that of the workspace, and the build is started in a member.
    let member = dir.join("member");
    fs::create_dir_all(dir.join(".cargo")).unwrap();
    fs::create_dir_all(member.join("src")).unwrap();
    fs::write(
        dir.join("Cargo.toml"),
        "[workspace]\nmembers = [\"member\"]\nresolver = \"2\"\n",
    )
    .unwrap();
    fs::write(
        member.join("Cargo.toml"),
        "[package]\nname = \"hot\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    )
    .unwrap();
    fs::write(
        dir.join(".cargo/config.toml"),
        "[build]\nrustflags = [\"--cfg\", \"mine\", \"-Aunexpected_cfgs\"]\n",
    )
    .unwrap();
    fs::write(
        member.join("src/main.rs"),
        "fn main() { assert!(cfg!(mine)); println!(\"{}\", std::env::args().count()); }\n",
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_profkit"))
        .args([
            "pgo",
            "--train",
            "../target/release/hot",
            "--format",
            "json",
            "--compiler",
        ])
        .arg(llvm.clang())
        .args(["--", "cargo", "build", "--release"])
        .current_dir(&member)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"counts_share\": 1.0"), "{text}");
    assert!(text.contains("target/release/hot\""), "{text}");
    assert!(!has_counters(&dir.join("target/release/hot")));
}
