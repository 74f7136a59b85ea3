//! Functions that several tests of this crate share.
#![allow(dead_code, reason = "each test uses a part of it")]
use profkit_data::sample::{SampleForm, SampleProfile, text};
use profkit_perf::Recording;
use profkit_perf::collect::{BinaryCounts, CollectOptions, Counts, collect};
use profkit_profgen::{Outcome, Profiles};
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

pub fn text_of_all(outcome: &Outcome, profiles: Profiles) -> String {
    let named = outcome.name_profiles(profiles, SampleForm::Text);
    let [only] = &*named else {
        panic!("{} profiles", named.len());
    };
    text_of(&only.profile)
}

/// Returns the text of the profile that llvm-profgen-22 writes. If it is not installed, prints this and returns `None`.
pub fn theirs(binary: &Path, input: &[&str]) -> Option<String> {
    theirs_of("llvm-profgen-22", binary, input)
}

/// Runs `tool`, which must have the options of llvm-profgen, and returns the text of the profile that it writes. If the
/// tool is not installed, prints this and returns `None`.
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

fn run(
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

pub fn recorded(program: &simulate::Program, simulation: &Simulation, samples: u64) -> Vec<u8> {
    let mut writer = simulation.writer();
    run(program, simulation, samples, &mut writer);
    writer.file()
}

pub fn recorded_with_text(
    program: &simulate::Program,
    simulation: &Simulation,
    samples: u64,
) -> (Vec<u8>, Vec<u8>) {
    let mut writer = simulation.writer();
    let mut script = PerfScript::new(Vec::new(), true);
    run(
        program,
        simulation,
        samples,
        &mut (&mut writer, &mut script),
    );
    (writer.file(), script.into_inner())
}

pub fn real_recordings() -> Vec<(PathBuf, PathBuf, Counts)> {
    let paths = profkit_testkit::perf_recordings().into_iter();
    let of_test = paths.filter(|path| path.ends_with("test.lbr"));
    let with_counts = of_test.map(|path| {
        let binary = path.with_file_name("test.binary");
        let bytes = std::fs::read(&path).expect("the recording");
        let recording = Recording::open(&bytes).expect("a recording");
        let mut counts = collect(&recording, &CollectOptions::default());
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
