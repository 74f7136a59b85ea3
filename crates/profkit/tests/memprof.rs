//! Heap profiles of real programs beside LLVM's tools: bytes, what older tools show, and what compilers make of them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use profkit_testkit::{Llvm, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// `profkit` with arguments, in a folder.
fn profkit(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_profkit"))
        .args(args)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder)
        .output()
        .unwrap()
}

fn profkit_ok(folder: &Path, args: &[&str]) {
    let output = profkit(folder, args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

const FLAGS: [&str; 9] = [
    "-fmemory-profile",
    "-gmlt",
    "-fdebug-info-for-profiling",
    "-mno-omit-leaf-frame-pointer",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-Wl,--build-id",
    "-O2",
    "-Wno-unused-command-line-argument",
];

/// Compiles a program and runs it; the dump is `NAME.memprofraw` in the folder.
fn build_and_run(llvm: &Llvm, folder: &Path, name: &str, more: &[&str]) {
    run(Command::new(llvm.clangxx())
        .args(FLAGS)
        .args(more)
        .arg(programs().join("heap_contexts.cpp"))
        .arg("-o")
        .arg(name)
        .current_dir(folder));
    run_profiled(folder, name, name);
}

fn run_profiled(folder: &Path, program: &str, dump: &str) {
    run(Command::new(folder.join(program))
        .current_dir(folder)
        .env("MEMPROF_OPTIONS", "log_path=dump")
        .env("LD_LIBRARY_PATH", folder));
    let mut entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let written = entries
        .find(|entry| entry.file_name().to_string_lossy().starts_with("dump."))
        .unwrap();
    std::fs::rename(written.path(), folder.join(format!("{dump}.memprofraw"))).unwrap();
}

fn same_bytes(folder: &Path, ours: &str, theirs: &str, what: &str) {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(read(ours) == read(theirs), "bytes differ: {what}");
}

#[test]
fn merged_as_llvm_19_and_22_merge_it() {
    for (release, versions) in [(19, 0..=3), (22, 2..=4)] {
        let Some(llvm) = Llvm::find(release) else {
            return skip("LLVM 19 or 22 is not installed");
        };
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (kind, more) in [
            ("pie", ["-pie", "-fPIE"]),
            ("fixed", ["-no-pie", "-fno-pie"]),
        ] {
            build_and_run(&llvm, folder, kind, &more);
            let raw = format!("{kind}.memprofraw");
            for version in versions.clone() {
                for full in [false, true] {
                    let version = format!("--memprof-version={version}");
                    let mut options = vec![version.as_str()];
                    if full {
                        options.push("--memprof-full-schema");
                    }
                    run(Command::new(llvm.profdata())
                        .args(["merge", &raw, "--profiled-binary", kind, "-o", "theirs"])
                        .args(&options)
                        .current_dir(folder));
                    let release = format!("--llvm={release}");
                    let mut args = vec![
                        "merge",
                        "-q",
                        &raw,
                        "--binaries",
                        kind,
                        &release,
                        "-o",
                        "ours",
                    ];
                    args.extend(&options);
                    profkit_ok(folder, &args);
                    same_bytes(
                        folder,
                        "ours",
                        "theirs",
                        &format!("{kind} {release} {options:?}"),
                    );
                }
            }
            // The release's default.
            run(Command::new(llvm.profdata())
                .args(["merge", &raw, "--profiled-binary", kind, "-o", "theirs"])
                .current_dir(folder));
            let release = format!("--llvm={release}");
            profkit_ok(
                folder,
                &[
                    "merge",
                    "-q",
                    &raw,
                    "--binaries",
                    kind,
                    &release,
                    "-o",
                    "ours",
                ],
            );
            same_bytes(folder, "ours", "theirs", &format!("{kind} {release}"));
        }
    }
}

#[test]
fn dumps_of_older_releases_are_symbolised_without_build_ids() {
    for release in [14, 15, 16] {
        let Some(llvm) = Llvm::find(release) else {
            return skip("LLVM 14, 15 or 16 is not installed");
        };
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (kind, more) in [
            ("pie", ["-pie", "-fPIE"]),
            ("fixed", ["-no-pie", "-fno-pie"]),
        ] {
            build_and_run(&llvm, folder, kind, &more);
            let raw = format!("{kind}.memprofraw");
            profkit_ok(
                folder,
                &[
                    "merge",
                    "-q",
                    &raw,
                    "--binaries",
                    kind,
                    "--output-format",
                    "memprof-yaml",
                    "-o",
                    "ours.yaml",
                ],
            );
            let yaml = std::fs::read_to_string(folder.join("ours.yaml")).unwrap();
            let depths: Vec<_> = yaml.matches("LineOffset: 2, Column: 12").collect();
            assert!(
                depths.len() >= 3,
                "{release} {kind}: the recursion is missing\n{yaml}"
            );
            assert!(
                yaml.contains("TotalSize:       1000\n"),
                "{release} {kind}\n{yaml}"
            );
        }
    }
}

#[test]
fn two_dumps_add_up_and_go_with_counters_and_yaml() {
    let Some(llvm) = Llvm::find(22) else {
        return skip("LLVM 22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    build_and_run(&llvm, folder, "one", &[]);
    std::fs::copy(
        folder.join("one.memprofraw"),
        folder.join("first.memprofraw"),
    )
    .unwrap();
    run_profiled(folder, "one", "second");
    let total = |name: &str| {
        let yaml = std::fs::read_to_string(folder.join(name)).unwrap();
        let sizes = yaml
            .lines()
            .filter_map(|line| line.trim().strip_prefix("TotalSize:"));
        let sizes: Vec<u64> = sizes.map(|size| size.trim().parse().unwrap()).collect();
        (sizes.len(), sizes.iter().sum::<u64>())
    };
    let yaml = ["--output-format", "memprof-yaml", "-o"];
    let merge = |inputs: &[&str], output: &str| {
        let mut args = vec!["merge", "-q"];
        args.extend(inputs);
        args.extend(["--binaries", "one"]);
        args.extend(yaml);
        args.push(output);
        profkit_ok(folder, &args);
        total(output)
    };
    let (sites, size) = merge(&["first.memprofraw"], "first.yaml");
    assert_eq!(
        merge(&["first.memprofraw", "second.memprofraw"], "both.yaml"),
        (sites, 2 * size)
    );
    // As one file with two dumps, and through an indexed profile and YAML.
    let mut joined = std::fs::read(folder.join("first.memprofraw")).unwrap();
    joined.extend(std::fs::read(folder.join("second.memprofraw")).unwrap());
    std::fs::write(folder.join("joined.memprofraw"), joined).unwrap();
    assert_eq!(
        merge(&["joined.memprofraw"], "joined.yaml"),
        (sites, 2 * size)
    );
    assert_eq!(
        merge(&["first.yaml", "second.memprofraw"], "mixed.yaml"),
        (sites, 2 * size)
    );
    profkit_ok(
        folder,
        &[
            "merge",
            "-q",
            "first.memprofraw",
            "--binaries",
            "one",
            "-o",
            "first.profdata",
        ],
    );
    profkit_ok(
        folder,
        &[
            "merge",
            "-q",
            "second.memprofraw",
            "--binaries",
            "one",
            "-o",
            "second.profdata",
        ],
    );
    assert_eq!(
        merge(
            &["first.profdata", "second.profdata", "first.yaml"],
            "indexed.yaml"
        ),
        (sites, 3 * size)
    );
    // With counters in one file, as LLVM writes it.
    let counters = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/raw/clang-22-ir-plain.profraw");
    let counters = counters.to_str().unwrap();
    run(Command::new(llvm.profdata())
        .args([
            "merge",
            "first.memprofraw",
            counters,
            "--profiled-binary=one",
            "-o",
            "theirs",
        ])
        .current_dir(folder));
    profkit_ok(
        folder,
        &[
            "merge",
            "-q",
            "first.memprofraw",
            counters,
            "--binaries",
            "one",
            "--llvm=22",
            "-o",
            "ours",
        ],
    );
    same_bytes(folder, "ours", "theirs", "with counters");
}

#[test]
fn libraries_are_symbolised_each_with_its_own_debug_info() {
    let Some(llvm) = Llvm::find(22) else {
        return skip("LLVM 22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for library in ["library", "second"] {
        run(Command::new(llvm.clang())
            .args(FLAGS)
            .args(["-shared", "-fPIC"])
            .arg(programs().join(format!("heap_{library}.c")))
            .args(["-o", &format!("lib{library}.so")])
            .current_dir(folder));
    }
    run(Command::new(llvm.clang())
        .args(FLAGS)
        .arg(programs().join("heap_host.c"))
        .args(["-o", "host", "-L.", "-llibrary", "-lsecond"])
        .args(["-L", "."])
        .current_dir(folder)
        .env("LIBRARY_PATH", folder));
    run_profiled(folder, "host", "host");
    // One library's debug info is in a file of its own.
    std::fs::create_dir_all(folder.join(".debug")).unwrap();
    run(Command::new("objcopy")
        .args([
            "--only-keep-debug",
            "libsecond.so",
            ".debug/libsecond.so.debug",
        ])
        .current_dir(folder));
    run(Command::new("objcopy")
        .args([
            "--strip-debug",
            "--add-gnu-debuglink=.debug/libsecond.so.debug",
            "libsecond.so",
        ])
        .current_dir(folder));
    let output = profkit(
        folder,
        &[
            "merge",
            "host.memprofraw",
            "--binaries",
            "host",
            "liblibrary.so",
            "libsecond.so",
            "--output-format",
            "memprof-yaml",
            "-o",
            "out.yaml",
        ],
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let yaml = std::fs::read_to_string(folder.join("out.yaml")).unwrap();
    for function in [
        "main",
        "own",
        "library_buffer",
        "library_through",
        "second_buffer",
    ] {
        let guid = format!(
            "Function: {:#x},",
            profkit_data::memprof::guid(function.as_bytes())
        );
        assert!(yaml.contains(&guid), "{function} is missing:\n{yaml}");
    }
    // Through both libraries: second_buffer, library_through, main.
    let stack: Vec<_> = ["second_buffer", "library_through", "main"]
        .map(|name| format!("{:#x}", profkit_data::memprof::guid(name.as_bytes())))
        .into();
    let functions: Vec<&str> = yaml
        .split("- Callstack:")
        .flat_map(|site| site.split("MemInfoBlock").next())
        .collect();
    assert!(
        functions.iter().any(|site| {
            let places: Vec<_> = stack.iter().map(|guid| site.find(guid.as_str())).collect();
            places.iter().all(Option::is_some) && places.is_sorted()
        }),
        "{yaml}"
    );
    // Without a library, what is missing is counted and named.
    let output = profkit(
        folder,
        &[
            "merge",
            "host.memprofraw",
            "--binaries",
            "host",
            "-o",
            "out.profdata",
        ],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("no binary with this build id was given"),
        "{said}"
    );
    // And with no binary at all it is said what is needed.
    let output = profkit(folder, &["merge", "host.memprofraw", "-o", "out.profdata"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--binaries"), "{said}");
}

#[test]
fn the_compiler_makes_the_same_of_our_profile_as_of_llvm_s() {
    let Some(llvm) = Llvm::find(22) else {
        return skip("LLVM 22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    build_and_run(&llvm, folder, "one", &[]);
    run(Command::new(llvm.profdata())
        .args([
            "merge",
            "one.memprofraw",
            "--profiled-binary=one",
            "-o",
            "theirs",
        ])
        .current_dir(folder));
    profkit_ok(
        folder,
        &[
            "merge",
            "-q",
            "one.memprofraw",
            "--binaries",
            "one",
            "-o",
            "ours",
        ],
    );
    let ir = |profile: &str| {
        std::fs::copy(folder.join(profile), folder.join("used.profdata")).unwrap();
        let output = run(Command::new(llvm.clangxx())
            .args([
                "-O2",
                "-gmlt",
                "-fdebug-info-for-profiling",
                "-fno-optimize-sibling-calls",
            ])
            .args([
                "-fmemory-profile-use=used.profdata",
                "-emit-llvm",
                "-S",
                "-o",
                "-",
            ])
            // Every context that lives at all counts as cold, so that hints appear.
            .args([
                "-mllvm",
                "-memprof-lifetime-access-density-cold-threshold=1000000000",
            ])
            .args(["-mllvm", "-memprof-ave-lifetime-cold-threshold=0"])
            .arg(programs().join("heap_contexts.cpp"))
            .current_dir(folder));
        String::from_utf8(output.stdout).unwrap()
    };
    let ours = ir("ours");
    assert_eq!(ours, ir("theirs"));
    assert!(
        ours.contains("\"memprof\"=\"cold\""),
        "the profile is not used:\n{ours}"
    );
}
