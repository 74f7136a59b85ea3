//! Compilers make the same object file with a sample profile that profkit merged as with one that LLVM's tool merged.
use profkit_testkit::{Llvm, on_path, require_or_skip, skip, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const C: &str = "
int cold(int x) { return x * 31 + 7; }
int hot(int x) { int s = 0; for (int i = 0; i < x; i++) s += i ^ x; return s; }
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

/// The encodings of the merged profile: the option of LLVM's tool, and the options of `profkit merge` that mean the
/// same, if there are any.
const FORMS: [(&str, Option<&[&str]>); 6] = [
    ("--extbinary", Some(&[])),
    ("--use-md5", None),
    ("--compress-all-sections", None),
    ("--text", None),
    ("--binary", None),
    ("--split-layout", None),
];

/// Makes the same merge three times: with LLVM's tool, with `profkit llvm-profdata`, and with `profkit merge`.
fn merged(
    llvm: &Llvm,
    folder: &Path,
    texts: [&str; 2],
    (option, native): (&str, Option<&[&str]>),
) -> Vec<PathBuf> {
    for (name, text) in ["one", "two"].into_iter().zip(texts) {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let run = |program: &Path, before: &[&str], output: &str| {
        let mut command = Command::new(program);
        command.args(before).args(["one", "two", "-o", output]);
        succeed(command.current_dir(folder));
        folder.join(output)
    };
    let profkit = Path::new(env!("CARGO_BIN_EXE_profkit"));
    let personality = ["llvm-profdata", "merge", "--sample", option];
    let mut profiles = vec![
        run(
            llvm.profdata(),
            &["merge", "--sample", option],
            "theirs.prof",
        ),
        run(profkit, &personality, "ours.prof"),
    ];
    if let Some(options) = native {
        let words = [&["merge"], options].concat();
        profiles.push(run(profkit, &words, "native.prof"));
    }
    profiles
}

/// Compiles with each profile, and once without a profile. All profiles must give the same object file, which must
/// differ from the one without a profile.
fn same_object(what: &str, profiles: &[PathBuf], compile: impl Fn(Option<&Path>) -> Vec<u8>) {
    let without = compile(None);
    let objects: Vec<_> = profiles
        .iter()
        .map(|profile| compile(Some(profile)))
        .collect();
    for object in &objects {
        assert!(*object == objects[0], "{what}");
    }
    assert!(objects[0] != without, "{what}: the profile has no effect");
}

fn clang(llvm: &Llvm, folder: &Path, more: &[&str], profile: Option<&Path>) -> Vec<u8> {
    let mut command = Command::new(llvm.clang());
    command.args(["-O2", "-gline-tables-only", "program.c"]);
    command.args(more);
    if let Some(profile) = profile {
        command.arg(format!("-fprofile-sample-use={}", profile.display()));
    }
    let ran = succeed(command.current_dir(folder));
    assert!(ran.stderr.is_empty(), "{ran:?}");
    std::fs::read(folder.join("program.o")).unwrap()
}

#[test]
fn clang_22_compiles_the_same() {
    let llvm = require_or_skip!(22);
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("program.c"), C).unwrap();
    for form in FORMS {
        let profiles = merged(&llvm, folder.path(), [ONE, TWO], form);
        same_object(form.0, &profiles, |profile| {
            clang(&llvm, folder.path(), &["-c", "-o", "program.o"], profile)
        });
    }
}

/// Profiles by pseudo probe, with and without calling contexts. They have the checksums that the compiler gives to the
/// functions.
#[test]
fn clang_22_compiles_the_same_by_probes() {
    let llvm = require_or_skip!(22);
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("program.c"), C).unwrap();
    let probes = ["-fpseudo-probe-for-profiling"];
    let mut words = vec!["-S", "-emit-llvm", "-o", "program.o"];
    words.extend(probes);
    let ir = String::from_utf8(clang(&llvm, folder.path(), &words, None)).unwrap();
    // The metadata of a pseudo-probe descriptor look like this: !13 = !{i64 GUID, i64 CHECKSUM, !"NAME"}
    let checksum = |name: &str| {
        let end = format!(", !\"{name}\"}}");
        let line = ir.lines().find_map(|line| line.strip_suffix(&end)).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    };
    let (hot, work, main) = (checksum("hot"), checksum("work"), checksum("main"));
    let nested = [
        format!(
            "work:90000:10\n 1: 10\n 2: 1\n 3: 9\n 5: hot:80000\n  1: 10\n  2: 80000\n  !CFGChecksum: {hot}\n \
             !CFGChecksum: {work}\nmain:20:10\n 1: 10\n 2: 10 work:10\n !CFGChecksum: {main}\n"
        ),
        format!(
            "work:5000:3\n 1: 3\n 2: 2\n 3: 4000\n !CFGChecksum: {work}\nhot:700:1\n 1: 700\n !CFGChecksum: {hot}\n"
        ),
    ];
    let contexts = [
        format!(
            "[main:2 @ work:5 @ hot]:80000:10\n 1: 10\n 2: 80000\n !CFGChecksum: {hot}\n !Attributes: 1\n\
             [main:2 @ work]:90:10\n 1: 10\n 2: 1\n 3: 9 hot:9\n !CFGChecksum: {work}\n !Attributes: 1\n\
             [main]:20:10\n 1: 10\n 2: 10 work:10\n !CFGChecksum: {main}\n"
        ),
        format!(
            "[main:2 @ work]:4000:3\n 1: 3\n 2: 4000\n !CFGChecksum: {work}\n\
             [hot]:700:1\n 1: 700\n !CFGChecksum: {hot}\n[main]:3:3\n 1: 3\n !CFGChecksum: {main}\n"
        ),
    ];
    for (what, texts) in [("nested", &nested), ("contexts", &contexts)] {
        // The last two encodings are left out: binary cannot hold checksums, and the split layout cannot hold calling
        // contexts.
        for form in FORMS.into_iter().take(4) {
            let [one, two] = texts;
            let profiles = merged(&llvm, folder.path(), [one, two], form);
            same_object(&format!("{what} {}", form.0), &profiles, |profile| {
                let mut words = vec!["-c", "-o", "program.o"];
                words.extend(probes);
                clang(&llvm, folder.path(), &words, profile)
            });
        }
    }
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
        // The rustc option for sample profiles is unstable in this release.
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
        succeed(command.current_dir(folder.path()));
        std::fs::read(folder.path().join("program.o")).unwrap()
    };
    for form in FORMS.into_iter().take(2) {
        let profiles = merged(&llvm, folder.path(), [ONE, TWO], form);
        same_object(form.0, &profiles, compile);
    }
}
