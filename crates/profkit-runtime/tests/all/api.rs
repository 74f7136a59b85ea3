//! The interface for programs without files, in a Rust program that rustc has instrumented.
use crate::support::ran;
use profkit_runtime::link::{library, Compiler};
use profkit_runtime::{CaptureError, IncompatibleProfile, NoRoom};
use profkit_testkit::Llvm;
use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
use profkit_runtime::{capture_coverage, get_coverage_data_size, merge_coverage, reset_coverage, CaptureError, NoRoom};

#[inline(never)]
fn work(number: u64) -> u64 {
    number.wrapping_mul(3)
}

fn capture() -> Vec<u8> {
    let mut profile = Vec::new();
    unsafe { capture_coverage(&mut profile) }.unwrap();
    profile
}

fn main() {
    let mut sum = 0;
    for number in 0..3 {
        sum += work(number);
    }
    let first = capture();
    assert_eq!(get_coverage_data_size(), first.len() as u64);
    unsafe { reset_coverage() };
    let none = capture();
    for number in 0..4 {
        sum += work(number);
    }
    let second = capture();
    // A profile that is cut off, and a profile of another build, are rejected and do not change the counts.
    assert!(unsafe { merge_coverage(&first[..first.len() - 1]) }.is_err());
    assert!(unsafe { merge_coverage(&[]) }.is_err());
    let mut other = first.clone();
    let records = 128 + u64::from_le_bytes(other[16..24].try_into().unwrap()) as usize;
    other[records] ^= 1;
    assert!(unsafe { merge_coverage(&other) }.is_err());
    assert!(unsafe { merge_coverage(&first) }.is_ok());
    let both = capture();
    let mut place = vec![0; first.len() - 1];
    let mut rest = &mut place[..];
    assert_eq!(unsafe { capture_coverage(&mut rest) }, Err(CaptureError::Write(NoRoom)));
    let mut place = vec![0; first.len() + 5];
    let mut rest = &mut place[..];
    assert_eq!(unsafe { capture_coverage(&mut rest) }, Ok(()));
    assert_eq!(rest.len(), 5);
    for (name, bytes) in [("first", first), ("none", none), ("second", second), ("both", both)] {
        std::fs::write(format!("{name}.profraw"), bytes).unwrap();
    }
    println!("{sum}");
}
"#;

#[test]
fn capture_reset_and_merge() {
    let Some(llvm) = Llvm::find(22) else {
        return profkit_testkit::skip("LLVM 22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let version = Compiler::Rustc.raw_version().unwrap();
    fs::write(
        folder.join("libprofkit_profile.a"),
        library(version, None).unwrap(),
    )
    .unwrap();
    fs::write(folder.join("main.rs"), PROGRAM).unwrap();
    let rustc = || {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        command.current_dir(folder).args(["--edition=2021", "-O"]);
        command
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    ran(rustc()
        .args([
            "--crate-type=rlib",
            "--crate-name=profkit_runtime",
            "--cfg=feature=\"alloc\"",
        ])
        .arg(source));
    ran(rustc()
        .args([
            "--extern=profkit_runtime=libprofkit_runtime.rlib",
            "-Cinstrument-coverage",
        ])
        .args(["-Lnative=.", "-lstatic=profkit_profile", "main.rs"]));
    ran(Command::new("./main")
        .current_dir(folder)
        .env("LLVM_PROFILE_FILE", "at-exit.profraw"));
    // The file that the program writes at exit contains the merged counts.
    for (name, calls) in [
        ("first", 3),
        ("none", 0),
        ("second", 4),
        ("both", 7),
        ("at-exit", 7),
    ] {
        ran(Command::new(llvm.profdata()).current_dir(folder).args([
            "merge",
            &format!("{name}.profraw"),
            "-o",
            "merged.profdata",
        ]));
        let shown = ran(Command::new(llvm.profdata()).current_dir(folder).args([
            "show",
            "--counts",
            "--function=4work",
            "merged.profdata",
        ]));
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(
            shown.contains(&format!("Function count: {calls}\n")),
            "{name}: {shown}"
        );
    }
}

#[test]
fn errors_say_what_to_do() {
    let other: CaptureError<NoRoom> = CaptureError::OtherVersion;
    for (error, text) in [
        (
            other.to_string(),
            "the compiler writes another raw version than the profile runtime that is linked: link the one for this compiler (profkit runtime --for …)",
        ),
        (
            CaptureError::Write(NoRoom).to_string(),
            "the profile cannot be written: the profile is longer than the memory for it: get_coverage_data_size() says how much it needs, to which value data add",
        ),
        (
            IncompatibleProfile.to_string(),
            "the profile is damaged, or of another build of this program: the counts are unchanged",
        ),
    ] {
        assert_eq!(error, text);
    }
}
