//! Profiles are those of llvm-profgen-22 and -23, byte for byte.
use crate::support;

use crate::support::{compiled, real_recordings, text_of, theirs, theirs_of};
use profkit_data::{Error, ErrorKind};
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::Recording;
use profkit_perf::collect::{CollectOptions, Counts, collect};
use profkit_profgen::{LineOptions, Program, make_profile};
use profkit_testkit::simulate::{self, Simulation, Step};
use profkit_testkit::{Llvm, links_c, or_skip, repo_root, require_or_skip, skip, succeed};
use std::path::Path;
use std::process::Command;

fn ours(binary: &Path, counts: &Counts) -> String {
    let made = ours_with(
        binary,
        counts,
        &DebugFolders::default(),
        &LineOptions::default(),
    );
    made.expect("a profile")
}

fn ours_with(
    binary: &Path,
    counts: &Counts,
    folders: &DebugFolders,
    options: &LineOptions,
) -> Result<String, Error> {
    let files = ProgramFiles::open(binary, folders).expect("the binary");
    let program = Program::open(&files)?;
    let of_binary = support::counts_of(binary, counts);
    let made = make_profile(
        &program,
        &[(&of_binary.sums, of_binary.key.numbering)],
        options,
    )?;
    Ok(text_of(&made.profile))
}

#[test]
fn a_recording_of_real_hardware_has_the_profile_of_llvm_profgen() {
    for (path, binary, counts) in real_recordings() {
        let ours = ours(&binary, &counts);
        let perfdata = format!("--perfdata={}", path.display());
        let Some(theirs) = theirs(&binary, &[&perfdata]) else {
            continue;
        };
        assert!(ours == theirs, "ours:\n{ours}\ntheirs:\n{theirs}");
    }
}

/// Checks that profkit and llvm-profgen of these releases make the same profile from a recording of one process.
fn check(releases: &[u32], program: &simulate::Program, simulation: &Simulation) {
    let bytes = recorded(program, simulation);
    let ours = ours(&program.path, &counts_of(&bytes));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("perf.data");
    std::fs::write(&file, bytes).expect("written");
    let argument = format!("--perfdata={}", file.display());
    for release in releases {
        let Some(tool) = Llvm::tool("llvm-profgen", *release) else {
            skip(&format!("llvm-profgen-{release} is not installed"));
            continue;
        };
        if let Some(theirs) = theirs_of(&tool.to_string_lossy(), &program.path, &[&argument]) {
            assert!(ours == theirs, "ours:\n{ours}\nof {release}:\n{theirs}");
        }
    }
}

fn counts_of(recording: &[u8]) -> Counts {
    let recording = Recording::open(recording).expect("a recording");
    collect(&recording, &CollectOptions::default())
}

fn recorded(program: &simulate::Program, simulation: &Simulation) -> Vec<u8> {
    let steps = [
        Step::Start {
            pid: 10,
            program: 0,
        },
        Step::Samples(3000),
    ];
    let mut writer = simulation.writer();
    let programs = std::slice::from_ref(program);
    simulation
        .run(programs, &steps, &mut writer)
        .expect("a recording");
    writer.file()
}

#[test]
fn simulated_programs_have_the_profiles_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let g = ["-O2", "-g", "-fdebug-info-for-profiling"];
    let dwarf4 = ["-O1", "-gdwarf-4", "-fPIE", "-pie", "-fuse-ld=lld"];
    let split = ["-O3", "-gline-tables-only", "-fno-PIE", "-no-pie"];
    let cases = [
        ("walked.c", &g[..]),
        ("walked.c", &dwarf4),
        ("sampled.c", &g),
        ("thrown.cpp", &g),
        ("conditions.c", &g),
        ("cold_parts.c", &g),
        ("thrown.cpp", &split),
    ];
    for (index, (source, arguments)) in cases.into_iter().enumerate() {
        let output = folder.path().join(format!("program{index}"));
        let program = compiled(&llvm, source, arguments, &output);
        check(
            &[22, 23],
            &program,
            &Simulation::new(index as u64).depth(16),
        );
        check(
            &[22, 23],
            &program,
            &Simulation::new(100 + index as u64).depth(32).kernel(true),
        );
    }
}

#[test]
fn simulated_programs_for_aarch64_have_the_profiles_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let a64 = ["--target=aarch64-linux-gnu", "-fuse-ld=lld"];
    or_skip!(links_c(llvm.clang(), &a64));
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("a64");
    let arguments = [&a64[..], &["-O2", "-g"]].concat();
    let program = compiled(&llvm, "walked.c", &arguments, &output);
    // The wheels of LLVM 23 know no other target than x86.
    check(&[22], &program, &Simulation::new(1).depth(32));
}

fn with_counts(llvm: &Llvm, folder: &Path, more: &[&str]) -> (simulate::Program, Counts) {
    let arguments = [&["-O2", "-g", "-Wl,--build-id"][..], more].concat();
    let program = compiled(llvm, "walked.c", &arguments, &folder.join("app"));
    let counts = counts_of(&recorded(&program, &Simulation::new(3).depth(16)));
    (program, counts)
}

#[test]
fn debug_info_in_a_file_of_its_own_is_found_by_the_build_id() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (program, counts) = with_counts(&llvm, folder, &[]);
    let expected = ours(&program.path, &counts);
    let objcopy = profkit_testkit::on_path("llvm-objcopy-22").expect("a part of llvm-22");
    let bytes = std::fs::read(&program.path).expect("the program");
    let image = object::File::parse(&*bytes).expect("an ELF file");
    let id = object::Object::build_id(&image)
        .expect("sound")
        .expect("a build id");
    let id = profkit_data::ids::BuildId(id.to_vec());
    let debug = DebugFolders::build_id_path(&folder.join("debug"), &id, ".debug").expect("a path");
    std::fs::create_dir_all(debug.parent().expect("a folder")).expect("made");
    succeed(
        Command::new(&objcopy)
            .arg("--only-keep-debug")
            .arg(&program.path)
            .arg(&debug),
    );
    let folders = DebugFolders {
        folders: vec![folder.join("debug")],
    };
    for how in ["--strip-debug", "--strip-all"] {
        let stripped = folder.join(how).join("app");
        std::fs::create_dir_all(folder.join(how)).expect("made");
        succeed(
            Command::new(&objcopy)
                .arg(how)
                .arg(&program.path)
                .arg(&stripped),
        );
        let found = ours_with(&stripped, &counts, &folders, &LineOptions::default());
        assert_eq!(found.expect("a profile"), expected, "{how}");
        let none = DebugFolders {
            folders: Vec::new(),
        };
        let error = ours_with(&stripped, &counts, &none, &LineOptions::default());
        let error = error.expect_err("there is no debug info");
        assert_eq!(error.kind(), ErrorKind::MissingCorrelation);
        assert!(error.to_string().contains("no debug info"), "{error}");
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("-gline-tables-only"))
        );
    }
}

#[test]
fn split_debug_info_is_read_or_named_as_what_is_missing() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let object = folder.join("walked.o");
    succeed(
        Command::new(llvm.clang())
            .args([
                "-O2",
                "-g",
                "-gsplit-dwarf",
                "-fdebug-info-for-profiling",
                "-c",
            ])
            .arg(repo_root().join("tests/programs/walked.c"))
            .arg("-o")
            .arg(&object)
            .current_dir(folder),
    );
    let app = folder.join("app");
    succeed(Command::new(llvm.clang()).arg(&object).arg("-o").arg(&app));
    let program = simulate::Program::open(&app);
    let bytes = recorded(&program, &Simulation::new(3).depth(16));
    let counts = counts_of(&bytes);
    let with_parts = ours(&app, &counts);
    assert!(with_parts.lines().count() > 20, "{with_parts}");
    check(&[22, 23], &program, &Simulation::new(3).depth(16));
    std::fs::remove_file(folder.join("walked.dwo")).expect("clang wrote it");
    let error = ours_with(
        &app,
        &counts,
        &DebugFolders::default(),
        &LineOptions::default(),
    );
    let error = error.expect_err("the debug info is gone");
    assert_eq!(error.kind(), ErrorKind::MissingCorrelation);
    assert!(error.to_string().contains("split debug info"), "{error}");
}

#[test]
fn programs_of_rustc_have_the_profiles_of_llvm_profgen() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("traits");
    let source = repo_root().join("tests/programs/traits.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    succeed(
        Command::new(rustc)
            .args(["--edition=2024", "-Copt-level=3", "-Cdebuginfo=2", "-o"])
            .arg(&output)
            .arg(source),
    );
    let program = simulate::Program::open(&output);
    check(&[22, 23], &program, &Simulation::new(5).depth(16));
}

#[test]
fn places_of_samples_alone_have_the_profile_of_llvm_profgen_19() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let (program, _) = with_counts(&llvm, folder.path(), &[]);
    let bytes = recorded(&program, &Simulation::new(9).depth(16));
    let recording = folder.path().join("perf.data");
    std::fs::write(&recording, &bytes).expect("written");
    let script = Command::new("perf")
        .args(["script", "--show-mmap-events", "-F", "ip,brstack", "-i"])
        .arg(&recording)
        .output();
    let Ok(script) = script else {
        profkit_testkit::skip("perf is not installed");
        return;
    };
    assert!(script.status.success());
    let text = folder.path().join("script");
    std::fs::write(&text, &script.stdout).expect("written");
    let mut options = LineOptions::default();
    options.plain_addresses = true;
    let ours = ours_with(
        &program.path,
        &counts_of(&bytes),
        &DebugFolders::default(),
        &options,
    );
    let ours = ours.expect("a profile");
    let input = format!("--perfscript={}", text.display());
    let input = [input.as_str(), "--leading-ip-only"];
    if let Some(theirs) = theirs_of("llvm-profgen-19", &program.path, &input) {
        assert!(ours == theirs, "ours:\n{ours}\ntheirs:\n{theirs}");
    }
}

#[test]
fn clang_compiles_the_same_object_with_our_profile() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let debug = ["-fdebug-info-for-profiling", "-gmlt"];
    let (program, counts) = with_counts(&llvm, folder, &debug);
    let (one, other) = (folder.join("ours"), folder.join("theirs"));
    std::fs::write(&one, ours(&program.path, &counts)).expect("written");
    let recording = folder.join("perf.data");
    let bytes = recorded(&program, &Simulation::new(3).depth(16));
    std::fs::write(&recording, bytes).expect("written");
    let argument = format!("--perfdata={}", recording.display());
    let Some(text) = theirs(&program.path, &[&argument]) else {
        return;
    };
    std::fs::write(&other, text).expect("written");
    let object = |profile: Option<&Path>| {
        let output = folder.join("walked.o");
        let profile = profile.map(|path| format!("-fprofile-sample-use={}", path.display()));
        succeed(
            Command::new(llvm.clang())
                .args(["-O2", "-gmlt", "-fdebug-info-for-profiling", "-c"])
                .args(profile)
                .arg(repo_root().join("tests/programs/walked.c"))
                .arg("-o")
                .arg(&output),
        );
        std::fs::read(output).expect("an object file")
    };
    let with_ours = object(Some(&one));
    assert!(with_ours == object(Some(&other)));
    assert!(with_ours != object(None), "the profile changes nothing");
}
