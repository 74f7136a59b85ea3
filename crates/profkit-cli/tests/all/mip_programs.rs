//! Generated C programs print the same with and without instrumentation, and the counted calls are those that clang
//! counts. `cargo xtask mip-fuzz` tests many more programs, compilers and options in this way.
use profkit_testkit::program::counts::{self, Counts};
use profkit_testkit::program::{
    MIP_MODES, MipMode, Program, Setting, Size, WEAK_FUNCTION, compare, outcome,
};
use profkit_testkit::{Llvm, links_c, on_path, require_or_skip, skip, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

fn profkit() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_profkit"))
}

const SMALL: Size = Size {
    files: 2,
    functions: 5,
};

fn mode(name: &str) -> MipMode {
    MipMode::named(name).expect("it is a mode")
}

fn check(seed: u64, compiler: PathBuf, flags: &[&str], modes: &[MipMode]) {
    let folder = tempfile::tempdir().expect("a folder");
    let setting = Setting {
        compiler,
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
    };
    let program = Program::generate(seed, SMALL);
    if let Err(error) = compare(profkit(), &program, &setting, modes, folder.path()) {
        let _ = folder.keep();
        panic!("{error:#}");
    }
}

#[test]
fn every_mode_leaves_a_program_of_clang_as_it_was() {
    let llvm = require_or_skip!(22);
    check(
        1,
        llvm.clang().into(),
        &["-O2", "-fPIE", "-pie"],
        &MIP_MODES,
    );
}

#[test]
fn modes_leave_a_program_of_gcc_as_it_was() {
    let Some(gcc) = gcc() else { return };
    check(
        2,
        gcc,
        &["-Os", "-fno-pie", "-no-pie", "-g"],
        &[mode("unary"), mode("calls-block"), mode("calls-returns")],
    );
}

#[test]
fn intel_syntax_outlined_pieces_and_odd_entries() {
    let llvm = require_or_skip!(22);
    let clang = llvm.clang().to_path_buf();
    check(
        24,
        clang.clone(),
        &["-O1", "-masm=intel", "-fcf-protection=full"],
        &[mode("calls-returns")],
    );
    // The machine outliner makes new functions from common instruction sequences. They may be entered with live flags.
    check(
        3,
        clang,
        &["-O3", "-mllvm", "-enable-machine-outliner"],
        &[mode("unary"), mode("calls")],
    );
    let Some(gcc) = gcc() else { return };
    check(
        5,
        gcc.clone(),
        &["-O3", "-fpatchable-function-entry=5,2", "-fno-plt"],
        &[mode("calls-block")],
    );
    check(
        6,
        gcc,
        &["-O0", "-no-pie", "-fno-pie", "-mcmodel=large"],
        &[mode("function")],
    );
}

fn gcc() -> Option<PathBuf> {
    let works = links_c("gcc-12", &[]);
    works.map_err(|reason| skip(&reason)).ok()?;
    on_path("gcc-12")
}

/// Returns the counts that `mip show` prints for a program, from the raw MIP profiles of its run.
fn mip_counts(folder: &Path, binary: &Path, raw: &Path) -> Counts {
    let profile = folder.join("all.mip");
    run(Command::new(profkit())
        .args(["mip", "create", "-p"])
        .arg(&profile)
        .arg(binary));
    run(Command::new(profkit())
        .args(["mip", "merge", "--strict", "-p"])
        .arg(&profile)
        .arg(raw));
    let shown = run(Command::new(profkit())
        .args(["mip", "show", "--format", "json", "-p"])
        .arg(&profile));
    let json: serde_json::Value = serde_json::from_str(&shown).expect("it is JSON");
    let mut made = Counts::new();
    for function in json["functions"].as_array().expect("functions") {
        let name = function["function"].as_str().expect("a name");
        let calls = function["calls"].as_u64().expect("calls");
        made.entry(name.to_owned()).or_default().push(calls);
    }
    counts::sorted(made)
}

fn run(command: &mut Command) -> String {
    let made = succeed(command);
    String::from_utf8_lossy(&made.stdout).into_owned()
}

#[test]
fn calls_are_those_that_clang_counts() {
    let llvm: Llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::generate(7, Size::default());
    let sources = program.write_to(folder.path()).expect("it is written");
    let setting = Setting {
        compiler: llvm.clang().into(),
        flags: ["-O0", "-fprofile-instr-generate"]
            .map(str::to_owned)
            .to_vec(),
    };
    let binary = folder.path().join("both");
    setting
        .build(
            Some((profkit(), mode("calls"))),
            folder.path(),
            &sources,
            &binary,
        )
        .expect("it builds");
    let raw = folder.path().join("both.mipraw");
    assert!(outcome(&binary, &[], &raw).expect("it runs").code.is_some());
    let indexed = folder.path().join("both.profdata");
    run(Command::new(llvm.profdata())
        .args(["merge", "-o"])
        .arg(&indexed)
        .arg(raw.with_extension("profraw")));
    let shown = run(Command::new(llvm.profdata())
        .args(["show", "--all-functions"])
        .arg(&indexed));
    let mut clang = counts::of_llvm_text(&shown).expect("it has functions");
    // A weak function has a data record in every file. All these records share one counter, which LLVM's merge adds up
    // once per record.
    clang.remove(WEAK_FUNCTION);
    let found = counts::compare(&clang, &mip_counts(folder.path(), &binary, &raw));
    assert!(
        found.wrong.is_empty() && found.partly_inlined.is_empty(),
        "{found:?}"
    );
    assert!(
        found.inlined_away.is_empty(),
        "nothing is inlined: {found:?}"
    );
    assert!(found.equal > 20, "{found:?}");
    assert!(
        clang.values().flatten().any(|count| *count == 0),
        "some function is never called"
    );
}

#[test]
fn two_libraries_and_a_program_write_a_profile_each() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = Program::generate(8, SMALL);
    program.write_to(folder).expect("it is written");
    let clang = |flags: &[&str]| Setting {
        compiler: llvm.clang().into(),
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
    };
    let mut printed = Vec::new();
    for mip in [None, Some((profkit(), mode("calls")))] {
        for part in ["part0", "part1"] {
            clang(&["-O2", "-fPIC", "-shared", "-Wl,--build-id"])
                .build(
                    mip,
                    folder,
                    &[folder.join(format!("{part}.c"))],
                    &folder.join(format!("lib{part}.so")),
                )
                .expect("a library builds");
        }
        let place = folder.display().to_string();
        clang(&[
            "-O2",
            "-Wl,--build-id",
            "-rdynamic",
            &format!("-L{place}"),
            &format!("-Wl,-rpath,{place}"),
        ])
        .build(
            mip,
            folder,
            &[
                folder.join("main.c"),
                folder.join("libpart0.so"),
                folder.join("libpart1.so"),
            ],
            &folder.join("main"),
        )
        .expect("the program builds");
        let made =
            outcome(&folder.join("main"), &[], &folder.join("raw-%h.mipraw")).expect("it runs");
        printed.push(made);
    }
    assert_eq!(printed[0], printed[1]);
    let raws: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "mipraw")
        })
        .collect();
    assert_eq!(raws.len(), 3, "one for each image: {raws:?}");
    // Each raw file belongs to one image, which is known by its build id.
    for image in ["main", "libpart0.so", "libpart1.so"] {
        let of_image = raws
            .iter()
            .filter(|raw| {
                let profile = folder.join("one.mip");
                run(Command::new(profkit())
                    .args(["mip", "create", "-p"])
                    .arg(&profile)
                    .arg(folder.join(image)));
                let merged = Command::new(profkit())
                    .args(["mip", "merge", "--strict", "-p"])
                    .arg(&profile)
                    .arg(raw)
                    .output()
                    .expect("it starts");
                merged.status.success()
            })
            .count();
        assert_eq!(of_image, 1, "{image}");
    }
}
