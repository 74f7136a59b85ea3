//! Tests sample profiles of real runs. `tests/programs/station` ran under `perf record` without branch stacks, and
//! autofdo's `create_gcov` converted the recordings to GCC's encoding. LLVM's tool, clang and gcc must give the same
//! results with profkit's output as with the output of LLVM's tool.
use profkit_testkit::{
    Llvm, fixture_path, links_cxx, or_skip, repo_root, require_or_skip, succeed,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const PROFILES: [&str; 2] = ["gcov/perf-one-v407.afdo", "gcov/perf-two-v407.afdo"];

/// Makes the same merge with LLVM's tool and with `profkit llvm-profdata`.
fn merged(llvm: &Llvm, folder: &Path, form: &str, inputs: &[PathBuf]) -> [PathBuf; 2] {
    let [theirs, ours] = ["theirs", "ours"].map(|name| folder.join(name));
    let words = ["merge", "--sample", form];
    succeed(
        Command::new(llvm.profdata())
            .args(words)
            .args(inputs)
            .arg("-o")
            .arg(&theirs),
    );
    succeed(
        Command::new(env!("CARGO_BIN_EXE_profkit"))
            .arg("llvm-profdata")
            .args(words)
            .args(inputs)
            .arg("-o")
            .arg(&ours),
    );
    [theirs, ours]
}

#[test]
fn conversions_and_merges_have_llvm_22s_bytes() {
    let llvm = require_or_skip!(22);
    let folder = TempDir::new().unwrap();
    let [one, two] = PROFILES.map(fixture_path);
    let weighted = format!("--weighted-input=3,{}", two.display());
    let inputs: [&[PathBuf]; 4] = [
        std::slice::from_ref(&one),
        std::slice::from_ref(&two),
        &[one.clone(), two.clone()],
        &[one.clone(), weighted.into()],
    ];
    for form in ["--text", "--binary", "--extbinary"] {
        for inputs in inputs {
            let [theirs, ours] = merged(&llvm, folder.path(), form, inputs);
            let [theirs, ours] = [theirs, ours].map(|path| std::fs::read(path).unwrap());
            assert!(theirs.len() > 20_000, "{form} {inputs:?}");
            assert!(theirs == ours, "{form} {inputs:?}");
        }
    }
    // A merged text profile is merged again into the other encodings.
    let [text, _] = merged(&llvm, folder.path(), "--text", &[one]);
    let text = {
        let kept = folder.path().join("text");
        std::fs::rename(text, &kept).unwrap();
        kept
    };
    for form in ["--binary", "--extbinary", "--text"] {
        let [theirs, ours] = merged(&llvm, folder.path(), form, &[text.clone(), two.clone()]);
        let [theirs, ours] = [theirs, ours].map(|path| std::fs::read(path).unwrap());
        assert!(theirs == ours, "{form}");
    }
}

#[test]
fn clang_22_compiles_the_same() {
    let llvm = require_or_skip!(22);
    or_skip!(links_cxx(llvm.clangxx(), &[]));
    let folder = TempDir::new().unwrap();
    let profiles = merged(
        &llvm,
        folder.path(),
        "--extbinary",
        &PROFILES.map(fixture_path),
    );
    let object = folder.path().join("object.o");
    let compile = |profile: Option<&Path>| {
        let mut command = Command::new(llvm.clangxx());
        command.args(["-O2", "-gline-tables-only", "-fdebug-info-for-profiling"]);
        command.args(["-c", "run.cpp", "-o"]).arg(&object);
        command.current_dir(repo_root().join("tests/programs/station"));
        if let Some(profile) = profile {
            command.arg(format!("-fprofile-sample-use={}", profile.display()));
        }
        succeed(&mut command);
        std::fs::read(&object).unwrap()
    };
    let [theirs, ours] = profiles.map(|profile| compile(Some(&profile)));
    assert!(theirs == ours);
    assert!(compile(None) != ours, "the profile has no effect");
}

#[test]
fn gcc_12_takes_the_profile_in_its_own_version() {
    let gcc = "g++-12";
    or_skip!(links_cxx(gcc, &[]));
    let folder = TempDir::new().unwrap();
    let profile = folder.path().join("merged.afdo");
    succeed(
        Command::new(env!("CARGO_BIN_EXE_profkit"))
            .args(["merge", "--gcc", "12", "-o"])
            .arg(&profile)
            .args(PROFILES.map(fixture_path)),
    );
    let object = folder.path().join("object.o");
    let compile = |profile: Option<&Path>| {
        let mut command = Command::new(gcc);
        command.args(["-O2", "-g", "-c", "run.cpp", "-o"]);
        command.arg(&object);
        command.current_dir(repo_root().join("tests/programs/station"));
        if let Some(profile) = profile {
            command.arg(format!("-fauto-profile={}", profile.display()));
        }
        succeed(&mut command);
        std::fs::read(&object).unwrap()
    };
    let with = compile(Some(&profile));
    assert!(compile(None) != with, "the profile has no effect");
}
