//! Tests heap profiles of real programs against LLVM's tools: the bytes that are written, what older tools show, and
//! what compilers make of the profiles.
use profkit_testkit::heap::{
    contexts_of_llvm, contexts_of_profkit, same_contexts, without_densities,
};
use profkit_testkit::{
    HEAP_FLAGS, HEAP_LINK_FLAGS, Llvm, has_heap_runtime, heap_dump, or_skip, require_or_skip, skip,
    succeed,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod builds;
mod damage;
mod more_programs;
mod totals;

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs")
}

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

/// A folder for heap-profiled programs of one clang release, and for the files that profkit and LLVM's tool make of
/// their dumps.
struct Heap {
    llvm: Llvm,
    temp: tempfile::TempDir,
}

impl Heap {
    /// Returns `None` and prints the reason if the release or its run-time library is not installed.
    fn new(release: u32) -> Option<Heap> {
        let llvm = heap_llvm(release).map_err(|reason| skip(&reason)).ok()?;
        let temp = tempfile::tempdir().unwrap();
        Some(Heap { llvm, temp })
    }

    fn folder(&self) -> &Path {
        self.temp.path()
    }

    /// Compiles `heap_contexts.cpp`.
    fn build(&self, name: &str, more: &[&str]) {
        build(&self.llvm, self.folder(), name, more);
    }

    /// Runs a program; its dump is `DUMP.memprofraw`.
    fn dump(&self, program: &str, dump: &str) {
        run_profiled(self.folder(), program, dump);
    }

    /// Writes `theirs`.
    fn llvm_merge(&self, dump: &str, binary: &str, more: &[&str]) {
        let raw = format!("{dump}.memprofraw");
        succeed(
            Command::new(self.llvm.profdata())
                .args(["merge", &raw, "--profiled-binary", binary, "-o", "theirs"])
                .args(more)
                .current_dir(self.folder()),
        );
    }

    /// Writes `ours`.
    fn profkit_merge(&self, dump: &str, binary: &str, more: &[&str]) {
        let raw = format!("{dump}.memprofraw");
        let mut args = vec!["merge", "-q", &raw, "--binaries", binary, "-o", "ours"];
        args.extend(more);
        profkit_ok(self.folder(), &args);
    }

    fn same_bytes(&self, what: &str) {
        same_bytes(self.folder(), "ours", "theirs", what);
    }
}

/// Returns a release whose clang can link heap-profiled programs, or the reason why it cannot be used.
fn heap_llvm(release: u32) -> Result<Llvm, String> {
    let llvm = Llvm::find(release).ok_or(format!("LLVM {release} is not installed"))?;
    has_heap_runtime(&llvm)?;
    Ok(llvm)
}

/// Compiles `heap_contexts.cpp`.
fn build(llvm: &Llvm, folder: &Path, name: &str, more: &[&str]) {
    succeed(
        Command::new(llvm.clangxx())
            .args(HEAP_FLAGS)
            .args(HEAP_LINK_FLAGS)
            .args(more)
            .arg(programs().join("heap_contexts.cpp"))
            .arg("-o")
            .arg(name)
            .current_dir(folder),
    );
}

fn build_and_run(llvm: &Llvm, folder: &Path, name: &str, more: &[&str]) {
    build(llvm, folder, name, more);
    run_profiled(folder, name, name);
}

fn run_profiled(folder: &Path, program: &str, dump: &str) {
    let mut command = Command::new(folder.join(program));
    heap_dump(command.env("LD_LIBRARY_PATH", folder), folder, dump).unwrap();
}

fn same_bytes(folder: &Path, ours: &str, theirs: &str, what: &str) {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(read(ours) == read(theirs), "bytes differ: {what}");
}

#[test]
fn merged_as_llvm_19_and_22_merge_it() {
    for (release, versions) in [(19, 0..=3), (22, 2..=4)] {
        let Some(heap) = Heap::new(release) else {
            continue;
        };
        let by_release = format!("--llvm={release}");
        for (kind, more) in [
            ("pie", ["-pie", "-fPIE"]),
            ("fixed", ["-no-pie", "-fno-pie"]),
        ] {
            heap.build(kind, &more);
            heap.dump(kind, kind);
            // The first entry has no options, so the release's default version is written.
            let mut all = vec![Vec::new()];
            for version in versions.clone() {
                let version = format!("--memprof-version={version}");
                all.push(vec![version.clone()]);
                all.push(vec![version, "--memprof-full-schema".to_owned()]);
            }
            for options in all {
                let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
                heap.llvm_merge(kind, kind, &options);
                options.push(&by_release);
                heap.profkit_merge(kind, kind, &options);
                heap.same_bytes(&format!("{kind} {release} {options:?}"));
            }
        }
    }
}

#[test]
fn dumps_of_older_releases_are_symbolised_without_build_ids() {
    for release in [14, 15, 16] {
        let llvm = or_skip!(heap_llvm(release), continue);
        let tool = require_or_skip!(release.max(15), continue);
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (kind, more) in [
            ("pie", ["-pie", "-fPIE"]),
            ("fixed", ["-no-pie", "-fno-pie"]),
        ] {
            build_and_run(&llvm, folder, kind, &more);
            let raw = format!("{kind}.memprofraw");
            // The tools of LLVM 15 and 16 cannot read dumps of position-independent programs. The tool of LLVM 14
            // symbolises no dump at all, so the tool of LLVM 15 takes its place.
            if kind == "fixed" {
                let theirs = succeed(
                    Command::new(tool.profdata())
                        .args(["show", "--memory", &raw, "--profiled-binary", kind])
                        .current_dir(folder),
                );
                let args = ["show", &raw, "--binaries", kind, "--format=json"];
                let ours = profkit(folder, &[args.as_slice(), &["--top=1000"]].concat());
                let ours = contexts_of_profkit(&String::from_utf8(ours.stdout).unwrap()).unwrap();
                let ours = match release {
                    ..=15 => without_densities(ours),
                    _ => ours,
                };
                same_contexts(
                    &contexts_of_llvm(&String::from_utf8(theirs.stdout).unwrap()).unwrap(),
                    &ours,
                )
                .unwrap();
            }
            if release <= 15 {
                // Some contexts have allocations that are not alike: a profile for LLVM 22 would say that they are
                // accessed never.
                let merge = |more: &[&str]| {
                    let args = ["merge", &raw, "--binaries", kind, "-o", "merged"];
                    profkit(folder, &[args.as_slice(), more].concat())
                };
                let refused = merge(&["--llvm=22"]);
                assert_eq!(refused.status.code(), Some(1), "{refused:?}");
                let said = String::from_utf8(refused.stderr).unwrap();
                assert!(said.contains("have no access density"), "{said}");
                assert!(merge(&["--llvm=15"]).status.success());
            }
            profkit_ok(
                folder,
                &[
                    "merge",
                    "-q",
                    &raw,
                    "--binaries",
                    kind,
                    "--to",
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
    let llvm = or_skip!(heap_llvm(22));
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
    let yaml = ["--to", "memprof-yaml", "-o"];
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
    // The sum is the same if one file holds both dumps, and if the dumps are first converted to an indexed profile or
    // to YAML.
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
    // One output file holds the heap profile and counters, as in LLVM.
    let counters = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/raw/clang-22-ir-plain.profraw");
    let counters = counters.to_str().unwrap();
    succeed(
        Command::new(llvm.profdata())
            .args([
                "merge",
                "first.memprofraw",
                counters,
                "--profiled-binary=one",
                "-o",
                "theirs",
            ])
            .current_dir(folder),
    );
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
    let llvm = or_skip!(heap_llvm(22));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for library in ["library", "second"] {
        succeed(
            Command::new(llvm.clang())
                .args(HEAP_FLAGS)
                .args(HEAP_LINK_FLAGS)
                .args(["-shared", "-fPIC"])
                .arg(programs().join(format!("heap_{library}.c")))
                .args(["-o", &format!("lib{library}.so")])
                .current_dir(folder),
        );
    }
    succeed(
        Command::new(llvm.clang())
            .args(HEAP_FLAGS)
            .args(HEAP_LINK_FLAGS)
            .arg(programs().join("heap_host.c"))
            .args(["-o", "host", "-L.", "-llibrary", "-lsecond"])
            .args(["-L", "."])
            .current_dir(folder)
            .env("LIBRARY_PATH", folder),
    );
    run_profiled(folder, "host", "host");
    // In this test, the debug info of one of the libraries is in a separate file.
    std::fs::create_dir_all(folder.join(".debug")).unwrap();
    succeed(
        Command::new("objcopy")
            .args([
                "--only-keep-debug",
                "libsecond.so",
                ".debug/libsecond.so.debug",
            ])
            .current_dir(folder),
    );
    succeed(
        Command::new("objcopy")
            .args([
                "--strip-debug",
                "--add-gnu-debuglink=.debug/libsecond.so.debug",
                "libsecond.so",
            ])
            .current_dir(folder),
    );
    let output = profkit(
        folder,
        &[
            "merge",
            "host.memprofraw",
            "--binaries",
            "host",
            "--binaries",
            "liblibrary.so",
            "--binaries",
            "libsecond.so",
            "--to",
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
    // One call stack passes through both libraries: second_buffer, library_through, main.
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
    // If the binary of a library is not given, the report counts the addresses that are missing and names the library.
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
    assert!(said.contains("because no binary was given for "), "{said}");
    // If no binary is given, the message says which option is needed.
    let output = profkit(folder, &["merge", "host.memprofraw", "-o", "out.profdata"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--binaries"), "{said}");
}

#[test]
fn the_compiler_makes_the_same_of_our_profile_as_of_llvm_s() {
    let Some(heap) = Heap::new(22) else { return };
    let (llvm, folder) = (&heap.llvm, heap.folder());
    heap.build("one", &[]);
    heap.dump("one", "one");
    heap.llvm_merge("one", "one", &[]);
    heap.profkit_merge("one", "one", &[]);
    let ir = |profile: &str| {
        std::fs::copy(folder.join(profile), folder.join("used.profdata")).unwrap();
        let output = succeed(
            Command::new(llvm.clangxx())
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
                // With these thresholds, every context with a lifetime above 0 counts as cold, so that the IR has hints.
                .args([
                    "-mllvm",
                    "-memprof-lifetime-access-density-cold-threshold=1000000000",
                ])
                .args(["-mllvm", "-memprof-ave-lifetime-cold-threshold=0"])
                .arg(programs().join("heap_contexts.cpp"))
                .current_dir(folder),
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let ours = ir("ours");
    assert_eq!(ours, ir("theirs"));
    assert!(
        ours.contains("\"memprof\"=\"cold\""),
        "the profile is not used:\n{ours}"
    );
}

/// The outcome of a command: its exit code, its standard output and standard error, and the file `out`.
fn outcome(mut command: Command, folder: &Path) -> (Option<i32>, String, String, Option<Vec<u8>>) {
    let out = folder.join("out");
    let _ = std::fs::remove_file(&out);
    let output = command.current_dir(folder).output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        std::fs::read(out).ok(),
    )
}

const COMMANDS: &str = "
merge --profiled-binary=one one.memprofraw -o out
merge --profiled-binary=one one.memprofraw -o out --memprof-version=2
merge --profiled-binary=one one.memprofraw -o out --memprof-version=4 --memprof-full-schema
merge --profiled-binary=one one.memprofraw -o out --text
merge --profiled-binary=one twice.memprofraw -o out
merge --profiled-binary=one one.memprofraw -o out --memprof-version=1
merge --profiled-binary=one one.memprofraw counters.profraw -o out
merge --profiled-binary=one counters.profraw one.memprofraw -o out
merge --profiled-binary=one one.memprofraw frontend.profraw -o out
merge one.memprofraw -o out
merge --profiled-binary=fixed one.memprofraw -o out
merge --profiled-binary=nothere one.memprofraw -o out
merge --profiled-binary=one.yaml one.memprofraw -o out
merge --profiled-binary=stripped one.memprofraw -o out
merge --profiled-binary=one short.memprofraw -o out
merge --profiled-binary=one cut.memprofraw -o out
merge --profiled-binary=one stray.memprofraw -o out
merge --profiled-binary=one old.memprofraw -o out
merge --profiled-binary=one other-segments.memprofraw -o out
merge --profiled-binary=one other-stack.memprofraw -o out
merge --profiled-binary=one no-stack.memprofraw -o out
merge one.yaml -o out
merge one.yaml -o out --memprof-version=4
merge one.yaml counters.profraw -o out
merge empty.yaml -o out
merge empty.yaml counters.profraw -o out
merge empty.yaml counters.profraw -o out --failure-mode=warn
merge empty.yaml counters.profraw -o out --failure-mode=all
show --memory one.memprofraw --profiled-binary=one
show --memory twice.memprofraw --profiled-binary=one
show --memory fixed.memprofraw --profiled-binary=fixed
show --memory one.memprofraw
show --memory short.memprofraw --profiled-binary=one
show --memory cut.memprofraw --profiled-binary=one
show --memory other-stack.memprofraw --profiled-binary=one
show --memory v2.profdata
show --memory v3.profdata
show --memory v4.profdata
show --memory full.profdata
show --memory v0.profdata
show --memory nothere
show --memory one
merge shown.yaml -o out
merge blank.yaml -o out
merge blank.yaml shown.yaml -o out
show --memory one.yaml
show --memory --json one.memprofraw --profiled-binary=one
show --memory --show-format=yaml one.memprofraw --profiled-binary=one
show --memory v3.profdata -o out
";

#[test]
fn the_personality_says_and_writes_what_llvm_22_does() {
    let llvm = or_skip!(heap_llvm(22));
    let older = or_skip!(heap_llvm(19));
    let oldest = or_skip!(heap_llvm(14));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    build_and_run(&llvm, folder, "one", &[]);
    build_and_run(&llvm, folder, "fixed", &["-no-pie", "-fno-pie"]);
    build_and_run(&oldest, folder, "old", &[]);
    build_and_run(&older, folder, "before", &[]);
    succeed(
        Command::new("strip")
            .args(["-g", "one", "-o", "stripped"])
            .current_dir(folder),
    );
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let good = std::fs::read(folder.join("one.memprofraw")).unwrap();
    let word = |at: usize| {
        usize::try_from(u64::from_le_bytes(good[at..at + 8].try_into().unwrap())).unwrap()
    };
    let changed = |at: usize| {
        let mut file = good.clone();
        file[at..at + 8].copy_from_slice(&0x1234u64.to_le_bytes());
        file
    };
    write("short.memprofraw", &good[..40]);
    write("cut.memprofraw", &good[..good.len() - 100]);
    write("stray.memprofraw", &[good.as_slice(), &[0; 8]].concat());
    write("twice.memprofraw", &[good.as_slice(), &good].concat());
    write(
        "other-segments.memprofraw",
        &[good.as_slice(), &changed(56 + 8)].concat(),
    );
    write(
        "other-stack.memprofraw",
        &[good.as_slice(), &changed(word(40) + 24)].concat(),
    );
    write("no-stack.memprofraw", &changed(word(32) + 8));
    write("empty.yaml", b"---\nHeapProfileRecords: []\n...\n");
    let fixture = |name: &str| {
        std::fs::read(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../tests/fixtures/raw")
                .join(name),
        )
        .unwrap()
    };
    write("counters.profraw", &fixture("clang-22-ir-plain.profraw"));
    write("frontend.profraw", &fixture("clang-22-fe-plain.profraw"));
    for (name, options) in [
        ("v2", ["--memprof-version=2", "-f", "/dev/null"]),
        ("v3", ["--memprof-version=3", "-f", "/dev/null"]),
        ("v4", ["--memprof-version=4", "-f", "/dev/null"]),
        ("full", ["--memprof-full-schema", "-f", "/dev/null"]),
    ] {
        succeed(
            Command::new(llvm.profdata())
                .args([
                    "merge",
                    "one.memprofraw",
                    "--profiled-binary=one",
                    "-o",
                    &format!("{name}.profdata"),
                ])
                .args(options)
                .current_dir(folder),
        );
    }
    succeed(
        Command::new(older.profdata())
            .args([
                "merge",
                "before.memprofraw",
                "--profiled-binary=before",
                "-o",
                "v0.profdata",
            ])
            .current_dir(folder),
    );
    let shown = succeed(
        Command::new(llvm.profdata())
            .args(["show", "--memory", "v3.profdata"])
            .current_dir(folder),
    );
    let shown = String::from_utf8(shown.stdout).unwrap();
    write(
        "one.yaml",
        &shown.as_bytes()[shown.rfind("\n---\n").unwrap() + 1..],
    );
    write("shown.yaml", shown.as_bytes());
    write("blank.yaml", b"---\n");
    let mut wrong = String::new();
    for line in COMMANDS.lines().filter(|line| !line.is_empty()) {
        let args: Vec<&str> = line.split(' ').collect();
        let mut theirs = Command::new(llvm.profdata());
        theirs.args(&args);
        let mut ours = Command::new(env!("CARGO_BIN_EXE_profkit"));
        ours.arg("llvm-profdata").args(&args);
        let theirs = outcome(theirs, folder);
        let mut ours = outcome(ours, folder);
        // An allowed difference: if profkit fails, it leaves no half-written file. LLVM's tool may leave one.
        if ours.0 != Some(0) && ours.3.is_none() {
            ours.3.clone_from(&theirs.3);
        }
        // LLVM's tool prints the name under which it was started as its own name.
        let program = llvm
            .profdata()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let said = theirs.2.replace(&program, "llvm-profdata");
        if (&ours.0, &ours.1, &ours.2, &ours.3) != (&theirs.0, &theirs.1, &said, &theirs.3) {
            let bytes = ours.3 == theirs.3;
            let first = ours
                .1
                .lines()
                .zip(theirs.1.lines())
                .find(|(one, two)| one != two);
            wrong += &format!(
                "{line}\n  code {:?} and {:?}, bytes equal: {bytes}, first line that differs: {first:?}\n  ours:   {}\n  theirs: {}\n",
                ours.0,
                theirs.0,
                ours.2.trim_end(),
                said.trim_end()
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // LLVM's tool has options that make up random hotness. profkit rejects them; docs/formats/llvm-profdata.md gives
    // the reason.
    let mut args = vec!["llvm-profdata", "merge", "one.memprofraw", "-o", "out"];
    args.extend(["--profiled-binary=one", "--memprof-random-hotness"]);
    let refused = profkit(folder, &args);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&refused.stderr),
        "error: --memprof-random-hotness is not supported by this release of profkit; use llvm-profdata of LLVM 22.1.8\n"
    );
}

#[test]
fn heap_profiles_are_shown_for_people_and_programs() {
    let llvm = or_skip!(heap_llvm(22));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    build_and_run(&llvm, folder, "one", &[]);
    let show = |args: &[&str]| {
        let mut all = vec!["show", "one.memprofraw", "--binaries", "one"];
        all.extend(args);
        let output = profkit(folder, &all);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let text = show(&["--top", "3"]);
    assert!(text.contains("heap profile, raw version 5"), "{text}");
    assert!(
        text.contains("Top 3 contexts with the most bytes\n"),
        "{text}"
    );
    assert!(text.contains("heap_contexts.cpp:"), "{text}");
    assert!(text.contains("buffer(int)"), "{text}");
    // With these thresholds, every context is cold, unless its access density is enormous.
    let cold = show(&["--cold-density", "1e9", "--cold-lifetime", "0"]);
    assert!(cold.contains("(100.0%)"), "{cold}");
    let json: serde_json::Value =
        serde_json::from_str(&show(&["--format", "json", "--top", "1000"])).unwrap();
    let total = json["total"]["bytes"].as_u64().unwrap();
    let contexts = json["contexts"].as_array().unwrap();
    let sizes = contexts
        .iter()
        .map(|context| context["fields"]["TotalSize"].as_u64().unwrap());
    assert_eq!(sizes.sum::<u64>(), total);
    assert!(json["locations"]["table_bytes"].as_u64() < json["locations"]["plain_bytes"].as_u64());
    let folded = show(&["--folded", "bytes"]);
    let sum = folded
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(sum.sum::<u64>(), total);
    let ours = folded.lines().filter(|line| line.starts_with("main;"));
    assert!(ours.count() >= 5, "{folded}");
    // Without the binary there are totals, and what is needed; rows have addresses.
    let output = profkit(folder, &["show", "one.memprofraw", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["total"]["bytes"].as_u64().unwrap(), total);
    assert!(json["modules"][0]["module"].is_string(), "{json}");
    let output = profkit(folder, &["show", "one.memprofraw", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(0));
    // Indexed and YAML.
    profkit_ok(
        folder,
        &[
            "merge",
            "-q",
            "one.memprofraw",
            "--binaries",
            "one",
            "-o",
            "one.profdata",
        ],
    );
    profkit_ok(
        folder,
        &[
            "convert",
            "one.profdata",
            "--to",
            "memprof-yaml",
            "-o",
            "one.yaml",
        ],
    );
    for args in [
        ["show", "--memory", "one.profdata"],
        ["show", "--top=3", "one.yaml"],
    ] {
        let output = profkit(folder, &args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("  bytes  "));
        let number = line.and_then(|line| line.split_whitespace().next());
        let digits: String = number
            .unwrap()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        // A profile for compilers lacks the contexts that debug info does not cover.
        assert!(digits.parse::<u64>().unwrap() < total, "{text}");
        assert!(output.status.success());
    }
}
