//! Tests the small variants of the MIP runtime: they write the same profile as the full runtime, and lack what they are
//! documented to leave out.
use object::read::{Object as _, ObjectSection as _, ObjectSymbol as _};
use profkit_testkit::{links_c, on_path, or_skip, repo_root, skip, succeed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");
/// Exit code of the test program.
const OWN_CODE: i32 = 7;
/// The upper limits of the code size of the runtime's variants on x86-64, in bytes.
const SMALL_TEXT: u64 = 2048;
const API_TEXT: u64 = 2048;
const FULL_TEXT: u64 = 5120;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs `profkit mip cc` on a program of tests/programs/mip.
fn cc(folder: &Path, options: &[&str], words: &[&str], source: &str, output: &str) -> Output {
    Command::new(PROFKIT)
        .args(["mip", "cc"])
        .args(options)
        .args(["--", "gcc-12", "-O1", "-pthread"])
        .args(words)
        .arg(repo_root().join("tests/programs/mip").join(source))
        .args(["-o", output])
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Builds a program, which must succeed.
fn build(folder: &Path, options: &[&str], words: &[&str], source: &str, output: &str) {
    let made = cc(folder, options, words, source, output);
    assert!(made.status.success(), "{output}: {}", text(&made.stderr));
}

fn run(folder: &Path, program: &str, name: &str, words: &[&str]) -> Output {
    let mut command = Command::new(folder.join(program));
    command.args(words).current_dir(folder);
    command.env_remove("LLVM_MIP_PROFILE_FILENAME");
    if !name.is_empty() {
        command.env("LLVM_MIP_PROFILE_FILENAME", name);
    }
    command.output().unwrap()
}

/// What `profkit mip show` says about the functions in a raw file of a program.
fn profile(folder: &Path, program: &str, raw: &str) -> serde_json::Value {
    let profkit = |words: &[&str]| {
        let output = succeed(Command::new(PROFKIT).args(words).current_dir(folder));
        output.stdout
    };
    profkit(&["mip", "create", "-p", "x.mip", program]);
    profkit(&["mip", "merge", "--strict", "-q", "-p", "x.mip", raw]);
    let shown = profkit(&["mip", "show", "--format", "json", "-p", "x.mip"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    let mut functions = shown["functions"].clone();
    for function in functions.as_array_mut().unwrap() {
        // Function addresses are left out of the comparison: the runtimes have different sizes, so a function has a
        // different address with each runtime.
        function.as_object_mut().unwrap().remove("address");
    }
    functions
}

/// Names of the files that are not programs and libraries, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("raw"))
        .collect();
    names.sort();
    names
}

#[test]
fn the_small_runtime_writes_the_same_profile() {
    for link in ["-pie", "-static"] {
        or_skip!(links_c("gcc-12", &["-pthread", link]));
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (mode, link) in [
        ("function", "-pie"),
        ("calls", "-pie"),
        ("calls", "-static"),
        ("calls,block", "-no-pie"),
    ] {
        let mut functions = Vec::new();
        for runtime in ["full", "small"] {
            let options = ["--mode", mode, "--runtime", runtime];
            build(folder, &options, &[link], "runtime.c", runtime);
            let words = ["second", "first", "second", "dump", "first"];
            let output = run(folder, runtime, "x.raw", &words);
            assert_eq!(
                (output.status.code(), text(&output.stderr)),
                (Some(OWN_CODE), String::new()),
                "{mode} {link} {runtime}"
            );
            assert_eq!(text(&output.stdout), "dump 0\n");
            functions.push(profile(folder, runtime, "x.raw"));
        }
        assert!(functions[0].as_array().is_some_and(|all| all.len() > 4));
        assert_eq!(functions[0], functions[1], "{mode} {link}");
    }
    // If the file existed before and was longer, it is replaced completely.
    fs::write(folder.join("x.raw"), [7; 5000]).unwrap();
    run(folder, "small", "x.raw", &["first"]);
    profile(folder, "small", "x.raw");
    // Samples of return addresses are in the file too.
    let options = [
        "--mode",
        "calls",
        "--return-addresses",
        "64",
        "--runtime",
        "small",
    ];
    build(folder, &options, &[], "runtime.c", "ring");
    run(folder, "ring", "ring.raw", &["first"]);
    profile(folder, "ring", "ring.raw");
}

#[test]
fn the_small_runtime_says_what_it_does_not_do() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let options = ["--mode", "calls", "--runtime", "small"];
    build(folder, &options, &[], "runtime.c", "small");
    let long = "x/".repeat(2100);
    fs::create_dir(folder.join("folder.raw")).unwrap();
    for (name, number) in [
        ("%p.raw", 22),
        ("a%b.raw", 22),
        ("missing/x.raw", 2),
        ("folder.raw", 21),
        ("/dev/full", 28),
        (long.as_str(), 36),
    ] {
        let output = run(folder, "small", name, &["first"]);
        assert_eq!(output.status.code(), Some(OWN_CODE), "{name}");
        let said = text(&output.stderr);
        assert!(
            said.starts_with("profkit: MIP profile ")
                && said.ends_with(&format!(": error {number}\n")),
            "{name:.20}: {said:.99}"
        );
        assert_eq!(files(folder), ["folder.raw"], "{name}");
    }
    // A file name that is too long for the runtime's buffer is an error. It is not cut to a shorter name.
    let longer = "./".repeat(3000) + "x.raw";
    let output = run(folder, "small", &longer, &["first"]);
    assert!(text(&output.stderr).starts_with("profkit: MIP profile ./"));
    assert_eq!(files(folder), ["folder.raw"]);
    let output = run(folder, "small", "%p.raw", &["dump", "dump", "_exit"]);
    assert_eq!(text(&output.stdout), "dump -1\ndump -1\n");
    let line = "profkit: MIP profile %p.raw: error 22\n";
    assert_eq!(text(&output.stderr), format!("{line}{line}"));
    // A device such as `/dev/null` is written to, and not replaced by a file.
    let output = run(folder, "small", "/dev/null", &["first"]);
    assert_eq!(text(&output.stderr), "");
    // Each child of a fork has a file of its own.
    run(folder, "small", "", &["first", "fork", "fork"]);
    let names = files(folder);
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().any(|name| name == "default.mipraw"));
    let children = names
        .iter()
        .filter_map(|name| name.strip_prefix("default.mipraw."))
        .filter(|process| process.parse::<u32>().is_ok());
    assert_eq!(children.count(), 2, "{names:?}");
    for name in names.iter().filter(|name| name.starts_with("default")) {
        profile(folder, "small", name);
    }
}

#[test]
fn a_library_gets_the_full_runtime_or_is_refused_by_the_linker() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let small = ["--mode", "calls", "--runtime", "small"];
    let shared = ["-shared", "-fPIC"];
    build(folder, &small, &[], "runtime.c", "small");
    build(folder, &small, &shared, "library.c", "one.so");
    let output = run(folder, "small", "", &["./one.so", "first"]);
    assert_eq!(text(&output.stderr), "");
    let names = files(folder);
    let [library, program] = names.as_slice() else {
        panic!("{names:?}")
    };
    assert_eq!(program, "default.mipraw");
    assert!(library.starts_with("default.") && library.len() > 40);
    profile(folder, "small", program);
    profile(folder, "one.so", library);
    let made = Command::new(PROFKIT)
        .args(["mip", "runtime", "--kind", "small", "-o", "rt.a"])
        .current_dir(folder)
        .status();
    assert!(made.unwrap().success());
    let by_hand = ["--mode", "calls", "--runtime", "rt.a"];
    let made = cc(folder, &by_hand, &shared, "library.c", "two.so");
    assert!(!made.status.success());
    let said = text(&made.stderr);
    assert!(said.contains("_start"), "{said}");
}

#[test]
fn a_program_without_files_asks_for_the_bytes() {
    or_skip!(links_c("gcc-12", &["-pthread"]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let api = ["--mode", "calls", "--runtime", "api"];
    build(folder, &api, &[], "buffer.c", "api");
    let output = run(folder, "api", "", &[]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (
            Some(0),
            "too small 0\nfailed 5\nnested -1\nequal 1\n".into()
        ),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(files(folder), ["buffer.raw"]);
    let called: Vec<_> = profile(folder, "api", "buffer.raw")
        .as_array()
        .unwrap()
        .iter()
        .filter(|function| function["calls"].as_u64() > Some(0))
        .map(|function| (function["function"].clone(), function["calls"].clone()))
        .collect();
    let expected = [("main", 1), ("used", 3), ("collect", 2)];
    for (name, calls) in expected {
        assert!(
            called.contains(&(name.into(), calls.into())),
            "{name}: {called:?}"
        );
    }
}

#[test]
fn a_program_without_libc_and_constructors_has_a_profile() {
    or_skip!(links_c("gcc-12", &["-static"]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let api = ["--mode", "function", "--runtime", "api"];
    let alone = [
        "-static",
        "-nostdlib",
        "-ffreestanding",
        "-fno-stack-protector",
    ];
    build(folder, &api, &alone, "alone.c", "alone");
    let output = run(folder, "alone", "", &[]);
    assert_eq!(output.status.code(), Some(OWN_CODE));
    fs::write(folder.join("alone.raw"), &output.stdout).unwrap();
    let functions = profile(folder, "alone", "alone.raw");
    let covered = |name: &str| {
        let mut all = functions.as_array().unwrap().iter();
        all.find(|function| function["function"] == name).unwrap()["called_runs"].as_u64()
    };
    assert_eq!(covered("used"), Some(1));
    assert_eq!(covered("never"), Some(0));
}

/// Debian's old Rust with the core library for 64-bit Arm, where CI has unpacked it.
fn old_rustc() -> Option<PathBuf> {
    let rustc = std::env::var_os("PROFKIT_OLD_RUSTC")
        .map_or_else(|| repo_root().join("target/old-rust/rustc"), PathBuf::from);
    if rustc.exists() {
        return Some(rustc);
    }
    skip("no Rust 1.63 of Debian's (PROFKIT_OLD_RUSTC, see .ci/run)");
    None
}

/// Runs `profkit mip cc` with clang for 64-bit Arm. The runtime is compiled by the old Rust.
fn cc_for_arm(folder: &Path, rustc: &Path, options: &[&str], words: &[&str], source: &str) {
    succeed(
        Command::new(PROFKIT)
            .args(["mip", "cc"])
            .args(options)
            .args(["--", "clang-22", "-O1"])
            .args(words)
            .arg(repo_root().join("tests/programs/mip").join(source))
            .args(["-o", "program"])
            .env("RUSTC", rustc)
            // With an empty cache folder, the runtime is compiled again in each run of the test.
            .env("XDG_CACHE_HOME", folder)
            .current_dir(folder),
    );
}

/// Names and calls of the functions of the program that were called, in the order of their names.
fn called(folder: &Path, raw: &str) -> Vec<(String, u64)> {
    let functions = profile(folder, "program", raw);
    let mut called: Vec<_> = functions
        .as_array()
        .unwrap()
        .iter()
        .map(|function| {
            let name = function["function"].as_str().unwrap().to_owned();
            (name, function["calls"].as_u64().unwrap())
        })
        .filter(|(_, calls)| *calls > 0)
        .collect();
    called.sort();
    called
}

#[test]
fn a_machine_without_an_operating_system_has_a_profile() {
    let Some(rustc) = old_rustc() else { return };
    for tool in ["clang-22", "ld.lld-22", "qemu-system-aarch64"] {
        if on_path(tool).is_none() {
            return skip(&format!("{tool} is not installed"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = [
        "--target=aarch64-none-elf",
        "-ffreestanding",
        "-mstrict-align",
        "-nostdlib",
        "-static",
        "-fuse-ld=lld",
        "-Wl,--image-base=0x40200000,-e,_start",
    ];
    for mode in ["calls", "calls,block"] {
        let options = ["--mode", mode, "--runtime", "api"];
        cc_for_arm(folder, &rustc, &options, &words, "bare.c");
        // If the program reads a number at an address that is not aligned for it, the machine stops and qemu never
        // ends. So there is a time limit.
        succeed(
            Command::new("timeout")
                .args(["60", "qemu-system-aarch64", "-M", "virt", "-cpu"])
                .args(["cortex-a53", "-nographic", "-nic", "none"])
                .args(["-semihosting", "-kernel", "program"])
                .current_dir(folder),
        );
        assert_eq!(called(folder, "bare.raw"), [("used".to_owned(), 3)]);
        assert_eq!(files(folder), ["bare.raw", "copy.raw"]);
        if mode == "calls" {
            let bytes = |name: &str| fs::read(folder.join(name)).unwrap();
            assert_eq!(bytes("bare.raw"), bytes("copy.raw"));
        }
        for name in files(folder) {
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
}

#[test]
fn the_small_runtime_runs_on_64_bit_arm() {
    let Some(rustc) = old_rustc() else { return };
    let target = "--target=aarch64-linux-gnu";
    let words = [target, "-static", "-pthread"];
    or_skip!(links_c("clang-22", &words));
    if on_path("qemu-aarch64").is_none() {
        return skip("qemu-aarch64 is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let options = ["--mode", "calls", "--runtime", "small"];
    cc_for_arm(folder, &rustc, &options, &words, "runtime.c");
    let run = |name: &str| {
        Command::new("qemu-aarch64")
            .args(["./program", "second", "first", "second", "dump"])
            .env("LLVM_MIP_PROFILE_FILENAME", name)
            .current_dir(folder)
            .output()
            .unwrap()
    };
    let output = run("arm.raw");
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(OWN_CODE), String::new())
    );
    assert_eq!(text(&output.stdout), "dump 0\n");
    let expected = [("first", 1), ("main", 1), ("second", 2)];
    assert_eq!(
        called(folder, "arm.raw"),
        expected.map(|(name, calls)| (name.to_owned(), calls))
    );
    // The error numbers are those of this machine's operating system.
    let output = run("missing/%p.raw");
    let said = "profkit: MIP profile missing/%p.raw: error 22\n";
    assert_eq!(text(&output.stderr), said.repeat(2));
    let output = run("missing/x.raw");
    let said = "profkit: MIP profile missing/x.raw: error 2\n";
    assert_eq!(text(&output.stderr), said.repeat(2));
    assert_eq!(files(folder), ["arm.raw"]);
}

/// Writes an object file of the runtime and reads it.
fn object_of(kind: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rt.o");
    succeed(
        Command::new(PROFKIT)
            .args(["mip", "runtime", "--kind", kind, "-o"])
            .arg(&file),
    );
    fs::read(file).unwrap()
}

#[test]
fn each_variant_is_as_small_as_it_says_and_needs_nothing_else() {
    for (kind, limit, needs) in [
        ("full", FULL_TEXT, &["getenv", "signal"][..]),
        ("small", SMALL_TEXT, &["_start", "getenv"]),
        ("api", API_TEXT, &[]),
    ] {
        let bytes = object_of(kind);
        let object = object::File::parse(&*bytes).unwrap();
        let mut missing: Vec<&str> = object
            .symbols()
            .filter(|symbol| symbol.is_undefined() && !symbol.is_weak())
            .map(|symbol| symbol.name().unwrap())
            .filter(|name| !name.is_empty())
            .collect();
        missing.sort_unstable();
        assert_eq!(missing, needs, "{kind}");
        let size: u64 = object
            .sections()
            .filter(|section| section.kind() == object::SectionKind::Text)
            .map(|section| section.size())
            .sum();
        if cfg!(target_arch = "x86_64") {
            assert!((1..limit).contains(&size), "{kind}: {size} bytes of code");
        }
    }
}
