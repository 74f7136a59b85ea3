//! Compilers take a sample profile that profkit merged as one that LLVM's tool merged: the same object file.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use profkit_testkit::{Llvm, on_path, require_or_skip, skip};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const C: &str = "
static int cold(int x) { return x * 31 + 7; }
static int hot(int x) { int s = 0; for (int i = 0; i < x; i++) s += i ^ x; return s; }
int work(int x) {
  if (x & 1)
    return cold(x);
  return hot(x);
}
int main(int argc, char **argv) { return work(argc); }
";
const RUST: &str = "
#[inline(never)]
#[unsafe(no_mangle)]
pub fn work(x: u32) -> u32 {
    if x & 1 == 1 { return x.wrapping_mul(31).wrapping_add(7); }
    let mut sum = 0u32;
    for i in 0..x { sum = sum.wrapping_add(i ^ x); }
    sum
}
fn main() { std::process::exit(work(std::env::args().count() as u32) as i32); }
";
const ONE: &str =
    "work:90000:10\n 1: 10\n 2: 1\n 3: hot:80000\n  0: 80000\nmain:20:10\n 0: 10 work:10\n";
const TWO: &str = "work:5000:3\n 1: 3\n 2: 2\n 4: 4000\nhot:700:1\n 0: 700\n";

/// The same merge by both tools.
fn merged(llvm: &Llvm, folder: &Path) -> [PathBuf; 2] {
    for (name, text) in [("one", ONE), ("two", TWO)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let run = |program: &Path, before: &[&str], output: &str| {
        let mut command = Command::new(program);
        command.args(before).args(["one", "two", "-o", output]);
        let ran = command.current_dir(folder).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        folder.join(output)
    };
    let profkit = Path::new(env!("CARGO_BIN_EXE_profkit"));
    [
        run(llvm.profdata(), &["merge", "--sample"], "theirs.prof"),
        run(profkit, &["merge"], "ours.prof"),
    ]
}

#[test]
fn clang_22_compiles_the_same() {
    let llvm = require_or_skip!(22);
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("program.c"), C).unwrap();
    let compile = |profile: Option<&Path>| {
        let mut command = Command::new(llvm.clang());
        command.args([
            "-O2",
            "-gline-tables-only",
            "-c",
            "program.c",
            "-o",
            "program.o",
        ]);
        if let Some(profile) = profile {
            command.arg(format!("-fprofile-sample-use={}", profile.display()));
        }
        let ran = command.current_dir(folder.path()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        std::fs::read(folder.path().join("program.o")).unwrap()
    };
    let [theirs, ours] = merged(&llvm, folder.path()).map(|profile| compile(Some(&profile)));
    assert!(theirs == ours);
    assert!(theirs != compile(None), "the profile has no effect");
}

#[test]
fn rustc_compiles_the_same() {
    let llvm = require_or_skip!(22);
    let Some(rustc) = on_path("rustc") else {
        return skip("rustc is not on PATH");
    };
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("program.rs"), RUST).unwrap();
    let compile = |profile: Option<&Path>| {
        let mut command = Command::new(&rustc);
        // The option is unstable in this release.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args([
            "-Copt-level=2",
            "-Cdebuginfo=1",
            "--emit=obj",
            "-Ccodegen-units=1",
        ]);
        command.args(["--edition=2024", "program.rs", "-o", "program.o"]);
        if let Some(profile) = profile {
            command.arg(format!("-Zprofile-sample-use={}", profile.display()));
        }
        let ran = command.current_dir(folder.path()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        std::fs::read(folder.path().join("program.o")).unwrap()
    };
    let [theirs, ours] = merged(&llvm, folder.path()).map(|profile| compile(Some(&profile)));
    assert!(theirs == ours);
    assert!(theirs != compile(None), "the profile has no effect");
}
