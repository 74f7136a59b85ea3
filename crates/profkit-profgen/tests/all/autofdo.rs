//! Profiles that are counted as autofdo counts equal those of Debian's create_llvm_prof 0.19 and create_gcov 0.19.
use crate::support::{compiled, counts_of, real_recordings, recorded, text_of};
use profkit_data::sample::gcov::{self, GcovOptions, GcovProfile, GcovVersion};
use profkit_data::sample::{SampleName, SampleNames, SampleProfile, Samples};
use profkit_object::code_symbols::code_symbols;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::Recording;
use profkit_perf::collect::{CollectOptions, Counts, collect};
use profkit_profgen::{Discriminators, Program, autofdo_profile};
use profkit_testkit::simulate::Simulation;
use profkit_testkit::{on_path, require_or_skip, skip, succeed};
use std::path::Path;
use std::process::Command;

fn ours(binary: &Path, counts: &Counts, decode: bool, plain: bool) -> SampleProfile {
    let files = ProgramFiles::open(binary, &DebugFolders::default()).expect("the binary");
    let program = Program::open(&files).expect("a program");
    let symbols = code_symbols(&files.program().expect("the binary")).expect("symbols");
    let found = counts_of(binary, counts);
    let sums = [(&found.sums, found.key.numbering)];
    let discriminators = match decode {
        true => Discriminators::Llvm,
        false => Discriminators::Whole,
    };
    autofdo_profile(&program, &symbols, &sums, discriminators, plain).profile
}

/// Runs a tool of autofdo. `None`, with a printed reason, if it is not installed.
fn run(tool: &str, binary: &Path, recording: &Path, options: &[&str], out: &Path) -> Option<()> {
    let Some(tool) = on_path(tool) else {
        skip(&format!(
            "{tool} of Debian's package autofdo is not installed"
        ));
        return None;
    };
    succeed(
        Command::new(tool)
            .arg(format!("--binary={}", binary.display()))
            .arg(format!("--profile={}", recording.display()))
            .args(options)
            .arg(out),
    );
    Some(())
}

/// Inlined functions are compared without names, because create_llvm_prof 0.19 prints some as garbage.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tree {
    total: u64,
    head: u64,
    lines: Vec<Line>,
    inlined: Vec<(Place, Tree)>,
}

type Place = (u32, u32);
type Line = (Place, u64, Vec<(String, u64)>);

fn tree(names: &SampleNames, samples: &Samples) -> Tree {
    let place = |at: profkit_data::sample::Location| (at.line, at.discriminator);
    let lines = samples.body.iter().map(|line| {
        let targets = samples.targets_at(line.location).iter();
        let mut targets: Vec<(String, u64)> = targets
            .map(|target| (names.get(target.name).to_string(), target.count))
            .collect();
        targets.sort();
        (place(line.location), line.samples, targets)
    });
    let inlined = samples.inlined.iter();
    let inlined = inlined.map(|it| (place(it.location), tree(names, &it.samples)));
    let mut inlined: Vec<(Place, Tree)> = inlined.collect();
    inlined.sort();
    Tree {
        total: samples.total,
        head: samples.head,
        lines: lines.collect(),
        inlined,
    }
}

fn trees(profile: &SampleProfile) -> Vec<(String, Tree)> {
    let functions = profile.functions().iter().map(|function| {
        let name = match profile.names.get(function.samples.name) {
            SampleName::Text(name) => String::from_utf8_lossy(name).into_owned(),
            SampleName::Guid(_) => panic!("names are text"),
        };
        (name, tree(&profile.names, &function.samples))
    });
    let mut list: Vec<(String, Tree)> = functions.collect();
    list.sort();
    list
}

/// Gives each inlined function a new name, because create_llvm_prof may have printed garbage.
fn with_names(text: &[u8]) -> Vec<u8> {
    let mut named = Vec::new();
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let place = line.windows(2).position(|it| it == b": ");
        let (place, rest) = line.split_at(place.map_or(0, |at| at + 2));
        let total = rest.iter().rposition(|&byte| byte == b':');
        match total {
            Some(total) if !place.is_empty() && !rest[0].is_ascii_digit() => {
                named.extend_from_slice(place);
                named.extend_from_slice(format!("inlined{number}").as_bytes());
                named.extend_from_slice(&rest[total..]);
            }
            _ => named.extend_from_slice(line),
        }
        named.push(b'\n');
    }
    named
}

fn compare(binary: &Path, recording: &Path, counts: &Counts) {
    for plain in [false, true] {
        compare_counting(binary, recording, counts, plain);
    }
}

fn compare_counting(binary: &Path, recording: &Path, counts: &Counts, plain: bool) {
    let branches = format!("--use_lbr={}", !plain);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let text = [&branches, "--format=text", "--out"];
    let ours_by_line = ours(binary, counts, true, plain);
    // create_llvm_prof writes random bytes as some names, which may make the text unreadable.
    let mut runs = (0..20).map_while(|_| {
        run("create_llvm_prof", binary, recording, &text, &out)?;
        let bytes = with_names(&std::fs::read(&out).expect("a profile"));
        let mut theirs = SampleProfile::new();
        let report = profkit_data::sample::read(&bytes, &mut theirs, 1);
        Some((report.strict(), theirs))
    });
    if let Some(first) = runs.next() {
        let is_equal =
            |run: &(_, _)| matches!(run, (Ok(_), theirs) if trees(&ours_by_line) == trees(theirs));
        let (unread, theirs) = &first;
        assert!(
            is_equal(&first) || runs.any(|run| is_equal(&run)),
            "{}: ours:\n{}\ntheirs:\n{}\n{unread:?}",
            binary.display(),
            text_of(&ours_by_line),
            text_of(theirs)
        );
    }
    if run(
        "create_gcov",
        binary,
        recording,
        &[&branches, "--gcov"],
        &out,
    )
    .is_some()
    {
        let bytes = std::fs::read(&out).expect("a profile");
        let theirs = GcovProfile::parse(&bytes).expect("a profile").profile;
        // GCC's encoding stores no totals, so ours is written and read again too.
        let mut written = Vec::new();
        let ours = ours(binary, counts, false, plain);
        gcov::write(&ours, &GcovOptions::new(GcovVersion::V1), &mut written).expect("written");
        let ours = GcovProfile::parse(&written).expect("a profile").profile;
        assert!(
            trees(&ours) == trees(&theirs),
            "{}: ours:\n{}\ntheirs:\n{}",
            binary.display(),
            text_of(&ours),
            text_of(&theirs)
        );
    }
}

#[test]
fn a_recording_of_real_hardware_has_the_profile_of_autofdo() {
    for (path, binary, counts) in real_recordings() {
        compare(&binary, &path, &counts);
    }
}

#[test]
fn simulated_programs_have_the_profiles_of_autofdo() {
    let llvm = require_or_skip!(22);
    // autofdo 0.19 reads DWARF up to version 4, and takes addresses as offsets from the first segment.
    const PLAIN: [&str; 6] = [
        "-O2",
        "-gdwarf-4",
        "-fdebug-info-for-profiling",
        "-no-pie",
        "-fno-pic",
        "-Wl,-z,noseparate-code",
    ];
    for (seed, source) in ["walked.c", "sampled.c", "conditions.c", "layers.c"]
        .into_iter()
        .enumerate()
    {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("walked");
        let program = compiled(&llvm, source, &PLAIN, &output);
        let bytes = recorded(&program, &Simulation::new(seed as u64).depth(16), 2000);
        let path = folder.path().join("perf.data");
        std::fs::write(&path, &bytes).expect("written");
        let recording = Recording::open(&bytes).expect("a recording");
        let counts = collect(&recording, &CollectOptions::default());
        compare(&output, &path, &counts);
    }
}
