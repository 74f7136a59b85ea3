//! Tests GCC's sample profiles with the tools that write and read them: gcc 12, Debian's autofdo package, LLVM.
use profkit_data::sample::gcov::{GcovOptions, GcovProfile, GcovVersion, write};
use profkit_testkit::{
    fixture, links_c, on_path, or_skip, repo_root, require_or_skip, skip, succeed,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn written(folder: &TempDir, version: GcovVersion) -> PathBuf {
    let profile = GcovProfile::parse(&fixture("gcov/create_gcov-v1.afdo")).unwrap();
    let mut bytes = Vec::new();
    write(&profile.profile, &GcovOptions::new(version), &mut bytes).unwrap();
    let path = folder.path().join(format!("{version:?}.afdo"));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn run(program: &Path, args: &[&str]) -> Output {
    succeed(Command::new(program).args(args))
}

#[test]
fn gcc_12_takes_version_2_and_no_other() {
    let gcc = "gcc-12";
    or_skip!(links_c(gcc, &[]));
    let folder = TempDir::new().unwrap();
    let compile = |profile: Option<&Path>| {
        let object = folder.path().join("object.o");
        let mut command = Command::new(gcc);
        command
            .args(["-O2", "-g", "-c", "inlined.c", "-o"])
            .arg(&object);
        if let Some(profile) = profile {
            command.arg(format!("-fauto-profile={}", profile.display()));
        }
        let output = command
            .current_dir(repo_root().join("tests/programs"))
            .output()
            .unwrap();
        (output, std::fs::read(&object).unwrap_or_default())
    };
    let (_, plain) = compile(None);
    let (output, optimised) = compile(Some(&written(&folder, GcovVersion::V2)));
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert_ne!(plain, optimised);
    let (refused, _) = compile(Some(&written(&folder, GcovVersion::V1)));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        text.contains("profile version 1 does not match 2"),
        "{text}"
    );
}

#[test]
fn autofdo_dumps_and_merges_version_1() {
    let (Some(dump), Some(merger)) = (on_path("dump_gcov"), on_path("profile_merger")) else {
        return skip("autofdo is not installed");
    };
    let folder = TempDir::new().unwrap();
    let original = folder.path().join("original.afdo");
    std::fs::write(&original, fixture("gcov/create_gcov-v1.afdo")).unwrap();
    let ours = written(&folder, GcovVersion::V1);
    let version = "-gcov_version=1";
    let dumped = |path: &Path| run(&dump, &[&path.display().to_string(), version]).stdout;
    assert!(!dumped(&original).is_empty());
    assert_eq!(dumped(&ours), dumped(&original));
    let merged = folder.path().join("merged.afdo");
    let output = format!("-output_file={}", merged.display());
    let input = ours.display().to_string();
    run(&merger, &[version, &output, &input, &input]);
    let bytes = std::fs::read(&merged).unwrap();
    let twice = GcovProfile::parse(&bytes).unwrap();
    let once = GcovProfile::parse(&std::fs::read(&ours).unwrap()).unwrap();
    assert_eq!(twice.damage, None);
    let sum = |profile: &GcovProfile| -> u64 {
        let functions = profile.profile.functions().iter();
        functions.map(|function| function.samples.total).sum()
    };
    assert_eq!(sum(&twice), 2 * sum(&once));
    assert_eq!(
        twice.profile.functions().len(),
        once.profile.functions().len()
    );
}

#[test]
fn llvm_reads_version_407_as_create_gcov_wrote_it() {
    let llvm = require_or_skip!(22);
    let folder = TempDir::new().unwrap();
    let original = folder.path().join("original.afdo");
    std::fs::write(&original, fixture("gcov/create_gcov-v407.afdo")).unwrap();
    let ours = written(&folder, GcovVersion::Gcc47);
    let shown = |path: &Path| {
        let path = path.display().to_string();
        run(llvm.profdata(), &["show", "--sample", &path]).stdout
    };
    assert!(!shown(&original).is_empty());
    assert_eq!(shown(&ours), shown(&original));
}
