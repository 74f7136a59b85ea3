//! The commands that doctor prints under "next" work: for every kind of file that doctor knows, sound and damaged, each
//! command is run as it stands, and succeeds.
#![cfg(target_os = "linux")]
use profkit_testkit::fixture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn sh(line: &str, folder: &Path) -> Output {
    let bin = Path::new(env!("CARGO_BIN_EXE_profkit"));
    let old = std::env::var("PATH").expect("a search path");
    let bin = bin.parent().expect("a folder").display();
    Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", format!("{bin}:{old}"))
        .output()
        .expect("sh runs")
}

/// Makes a folder with the files that the commands need: the program that ran, a complete profile, and other raw
/// profiles.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("a file is written");
    };
    put(
        "COMPLETE.profraw",
        &fixture("raw/clang-22-ir-plain.profraw"),
    );
    let script = "#!/bin/sh\ncp COMPLETE.profraw ${LLVM_PROFILE_FILE:-none}\n";
    put("PROGRAM", script.as_bytes());
    let program = folder.path().join("PROGRAM");
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).expect("a program");
    folder
}

/// Runs the commands that doctor prints for a file, and returns their purposes.
fn run_all(name: &str, bytes: &[u8], folder: &Path) -> BTreeSet<String> {
    std::fs::write(folder.join(name), bytes).expect("a file is written");
    let said = sh(&format!("profkit doctor --format json {name}"), folder);
    let said: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let mut purposes = BTreeSet::new();
    for next in said["files"][0]["next"].as_array().expect("a list") {
        let command = next["command"].as_str().expect("a command");
        purposes.insert(next["purpose"].as_str().expect("a purpose").to_owned());
        let ran = sh(command, folder);
        assert!(
            ran.status.success(),
            "{name}, {} bytes: {command}: {}\n{}",
            bytes.len(),
            ran.status,
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    purposes
}

/// Returns variants of a file: the whole file, the file cut at several places, and the file with one byte changed at
/// several places.
fn variants(whole: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![whole.to_vec()];
    for part in 1..12 {
        let at = whole.len() * part / 12;
        all.push(whole[..at].to_vec());
        let mut changed = whole.to_vec();
        changed[at] ^= 0x55;
        all.push(changed);
    }
    all
}

#[test]
fn commands_for_instrumentation_and_sample_profiles() {
    let mut purposes = BTreeSet::new();
    for (fixture_name, name) in [
        ("raw/clang-22-ir-plain.profraw", "default.profraw"),
        ("raw/clang-22-fe-plain.profraw", "fe.profraw"),
        ("raw/clang-14-ir-plain.profraw", "old.profraw"),
        ("indexed/clang-22-ir-plain.profdata", "a.profdata"),
        ("indexed/clang-16-ir-plain.profdata", "old.profdata"),
        (
            "indexed/clang-22-temporal-plain.profdata",
            "traces.profdata",
        ),
        ("text/clang-22-ir-plain.proftext", "a.proftext"),
        ("sample/llvm-16-nested-text.sampleprof", "text.prof"),
        ("sample/llvm-16-nested-ext.sampleprof", "a.prof"),
        ("sample/llvm-16-contexts-ext.sampleprof", "contexts.prof"),
        ("gcov/create_gcov-v1.afdo", "a.afdo"),
    ] {
        let folder = folder();
        let whole = fixture(fixture_name);
        if name.ends_with(".profraw") {
            std::fs::write(folder.path().join("COMPLETE.profraw"), &whole).expect("a file");
        }
        for variant in variants(&whole) {
            purposes.extend(run_all(name, &variant, folder.path()));
        }
    }
    assert!(purposes.len() >= 8, "{purposes:#?}");
}

#[test]
fn commands_for_heap_profiles() {
    let fixtures = profkit_testkit::fixture_path("heap");
    let raw = std::fs::read(fixtures.join("heap.memprofraw")).expect("a heap profile");
    let folder = folder();
    let program = folder.path().join("PROGRAM");
    std::fs::copy(fixtures.join("heap.debug"), &program).expect("a program");
    run_all("heap.memprofraw", &raw, folder.path());
    let convert = "profkit merge heap.memprofraw --binaries PROGRAM --to memprof-yaml -o heap.yaml \
        && profkit merge heap.yaml -o heap.profdata";
    let converted = sh(convert, folder.path());
    assert!(converted.status.success(), "{converted:?}");
    for name in ["heap.yaml", "heap.profdata"] {
        let bytes = std::fs::read(folder.path().join(name)).expect("a heap profile");
        assert!(!run_all(name, &bytes, folder.path()).is_empty(), "{name}");
    }
}

#[test]
fn commands_for_mip_files() {
    let folder = folder();
    for (fixture_name, name) in [
        ("mip/mixed.mipmap", "mixed.mipmap"),
        ("mip/mixed-empty.mip", "mixed.mip"),
        ("mip/mixed-empty.yaml", "mixed.yaml"),
    ] {
        assert!(!run_all(name, &fixture(fixture_name), folder.path()).is_empty());
    }
    let source = "int main(int n, char **v) { return n > 2; }\n";
    std::fs::write(folder.path().join("a.c"), source).expect("a source");
    let build = "profkit mip cc -- clang-22 -O2 a.c -o PROGRAM && ./PROGRAM";
    if sh("clang-22 --version", folder.path()).status.success() {
        let built = sh(build, folder.path());
        assert!(built.status.success(), "{built:?}");
        std::fs::remove_file(folder.path().join("program.mip")).expect("a profile is removed");
        let raw = std::fs::read(folder.path().join("default.mipraw")).expect("a raw file");
        assert!(!run_all("default.mipraw", &raw, folder.path()).is_empty());
    } else {
        profkit_testkit::skip("clang-22 is not installed");
    }
}

/// For a program, doctor prints the command that runs it. The command must also work if the program is named without a
/// folder.
#[test]
fn a_program_is_run() {
    let folder = folder();
    let source = "int main(int n, char **v) { return n > 2; }\n";
    std::fs::write(folder.path().join("a.c"), source).expect("a source");
    let built = sh("clang-22 -fprofile-generate a.c -o a.out", folder.path());
    if !built.status.success() {
        profkit_testkit::skip("clang-22 is not installed");
        return;
    }
    let program = std::fs::read(folder.path().join("a.out")).expect("a program");
    let purposes = run_all("a.out", &program, folder.path());
    assert_eq!(purposes.len(), 1);
}
