//! Functions that several tests of this crate share.
#![allow(dead_code, reason = "each test uses a part of it")]
use profkit_data::sample::{SampleProfile, text};
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::Recording;
use profkit_perf::collect::{BinaryCounts, CollectOptions, Counts, collect};
use profkit_profgen::{MakeOptions, Outcome, Sampling};
use profkit_testkit::simulate::{self, PerfScript, PerfSink, Simulation, Step};
use profkit_testkit::{Llvm, repo_root};
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn counts_of<'c>(binary: &Path, counts: &'c Counts) -> &'c BinaryCounts {
    let name = binary.file_name().expect("a name").as_encoded_bytes();
    let found = counts.binaries.iter().find(|binary| {
        let path = &binary.key.path;
        path.is_empty() || path.rsplit(|&byte| byte == b'/').next() == Some(name)
    });
    found.expect("the binary has counts")
}

pub fn text_of(profile: &SampleProfile) -> String {
    let mut bytes = Vec::new();
    text::write(profile, &text::TextOptions::new(), &mut bytes).expect("written");
    String::from_utf8(bytes).expect("text")
}

pub fn text_of_only(sampling: Sampling<'_>) -> (Outcome, String) {
    let (outcome, named) = sampling.finish();
    let [only] = &*named else {
        panic!("{} profiles", named.len());
    };
    let text = text_of(&only.profile);
    (outcome, text)
}

/// Returns the profile of a binary with the defaults, from counts that need not name the binary.
pub fn profile_of_only(binary: &Path, counts: &Counts) -> String {
    let files = ProgramFiles::open(binary, &DebugFolders::default()).expect("the binary");
    let id = build_id(&files.program().expect("a program")).expect("a build id");
    let options = MakeOptions::default();
    let mut sampling = Sampling::new(counts, &options);
    sampling.add(&files, (binary, id), true).expect("a profile");
    let (outcome, text) = text_of_only(sampling);
    assert_eq!(outcome.problem(), None);
    text
}

/// Records a simulated run with one process.
pub fn simulated(
    program: &simulate::Program,
    simulation: &Simulation,
    samples: u64,
    sink: &mut dyn PerfSink,
) {
    let steps = [
        Step::Start {
            pid: 10,
            program: 0,
        },
        Step::Samples(samples),
    ];
    let programs = std::slice::from_ref(program);
    simulation.run(programs, &steps, sink).expect("a recording");
}

pub fn counts_of_recording(bytes: &[u8]) -> Counts {
    let recording = Recording::open(bytes).expect("a recording");
    collect(&recording, &CollectOptions::default())
}

/// Returns the text of the profile that llvm-profgen-22 writes. If it is not installed, prints this and returns `None`.
pub fn theirs(binary: &Path, input: &[&str]) -> Option<String> {
    theirs_of("llvm-profgen-22", binary, input)
}

/// Runs `tool`, which has the options of llvm-profgen. `None` if it is not installed.
pub fn theirs_of(tool: &str, binary: &Path, input: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let run = Command::new(tool)
        .arg("--binary")
        .arg(binary)
        .args(input)
        .args(["--format=text", "-o"])
        .arg(&out)
        .current_dir(folder.path())
        .output();
    let Ok(run) = run else {
        profkit_testkit::skip(&format!("{tool} is not installed"));
        return None;
    };
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    Some(std::fs::read_to_string(out).expect("a profile"))
}

pub fn compiled(llvm: &Llvm, source: &str, arguments: &[&str], output: &Path) -> simulate::Program {
    let compiler = if source.ends_with(".cpp") {
        llvm.clangxx()
    } else {
        llvm.clang()
    };
    let run = Command::new(compiler)
        .args(arguments)
        .arg(repo_root().join("tests/programs").join(source))
        .arg("-o")
        .arg(output)
        .status();
    assert!(run.expect("clang runs").success(), "{source} {arguments:?}");
    simulate::Program::open(output)
}

pub fn recorded(program: &simulate::Program, simulation: &Simulation, samples: u64) -> Vec<u8> {
    let mut writer = simulation.writer();
    simulated(program, simulation, samples, &mut writer);
    writer.file()
}

pub fn recorded_with_text(
    program: &simulate::Program,
    simulation: &Simulation,
    samples: u64,
) -> (Vec<u8>, Vec<u8>) {
    let mut writer = simulation.writer();
    let mut script = PerfScript::new(Vec::new(), true);
    let both = &mut (&mut writer, &mut script);
    simulated(program, simulation, samples, both);
    (writer.file(), script.into_inner())
}

pub fn real_recordings() -> Vec<(PathBuf, PathBuf, Counts)> {
    let paths = profkit_testkit::perf_recordings().into_iter();
    let of_test = paths.filter(|path| path.ends_with("test.lbr"));
    let with_counts = of_test.map(|path| {
        let binary = path.with_file_name("test.binary");
        let bytes = std::fs::read(&path).expect("the recording");
        let mut counts = counts_of_recording(&bytes);
        // The program had another name when it was recorded.
        let program = counts
            .binaries
            .iter_mut()
            .find(|binary| !binary.key.kernel && binary.sums.ranges.len() == 357)
            .expect("the program");
        program.key.path.clear();
        (path, binary, counts)
    });
    with_counts.collect()
}
