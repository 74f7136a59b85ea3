//! Profiles by pseudo probe are those of llvm-profgen-22, byte for byte.
use crate::support::{compiled, counts_of, recorded, text_of, theirs};
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::Recording;
use profkit_perf::collect::{CollectOptions, Counts, collect};
use profkit_profgen::{LineOptions, Program, ProgramOptions, make_profile};
use profkit_testkit::simulate::{self, Simulation};
use profkit_testkit::{links_c, or_skip, require_or_skip};
use std::path::Path;

fn ours(binary: &Path, counts: &Counts, how: ProgramOptions, options: &LineOptions) -> String {
    let files = ProgramFiles::open(binary, &DebugFolders::default()).expect("the binary");
    let program = Program::open_with(&files, how).expect("a program");
    let counts = counts_of(binary, counts);
    let made = make_profile(&program, &[(&counts.sums, counts.key.numbering)], options);
    text_of(&made.expect("sound probes").profile)
}

fn check(program: &simulate::Program, simulation: &Simulation) {
    let bytes = recorded(program, simulation, 2000);
    let recording = Recording::open(&bytes).expect("a recording");
    let counts = collect(&recording, &CollectOptions::default());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("perf.data");
    std::fs::write(&file, bytes).expect("written");
    let recorded = format!("--perfdata={}", file.display());
    let mut lines = ProgramOptions::default();
    lines.ignore_probes = true;
    let (probes, default) = (ProgramOptions::default(), LineOptions::default());
    let mut zero = LineOptions::default();
    zero.zero_for_all = true;
    let cases = [
        (probes, default, None),
        (lines, default, Some("--use-dwarf-correlation")),
        (probes, zero, Some("--fill-zero-for-all-funcs")),
    ];
    for (how, options, argument) in cases {
        let mut arguments = vec![recorded.as_str()];
        arguments.extend(argument);
        let Some(theirs) = theirs(&program.path, &arguments) else {
            return;
        };
        let ours = ours(&program.path, &counts, how, &options);
        assert!(
            ours == theirs,
            "{argument:?}: ours:\n{ours}\ntheirs:\n{theirs}"
        );
        assert_eq!(
            ours.contains("!CFGChecksum"),
            argument != Some("--use-dwarf-correlation")
        );
    }
}

#[test]
fn simulated_programs_have_the_profiles_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    const PROBES: &str = "-fpseudo-probe-for-profiling";
    let plain = ["-O2", "-g", PROBES];
    let unique = ["-O3", "-g", PROBES, "-funique-internal-linkage-names"];
    let sections = ["-O1", "-g", PROBES, "-ffunction-sections", "-fuse-ld=lld"];
    let cases = [
        ("walked.c", &plain[..]),
        ("sampled.c", &unique),
        ("thrown.cpp", &plain),
        ("conditions.c", &sections),
        ("cold_parts.c", &plain),
    ];
    for (index, (source, arguments)) in cases.into_iter().enumerate() {
        let output = folder.path().join(format!("program{index}"));
        let program = compiled(&llvm, source, arguments, &output);
        check(&program, &Simulation::new(index as u64).depth(32));
    }
}

#[test]
fn simulated_programs_for_aarch64_have_the_profiles_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let a64 = ["--target=aarch64-linux-gnu", "-fuse-ld=lld"];
    or_skip!(links_c(llvm.clang(), &a64));
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("a64");
    let arguments = [&a64[..], &["-O2", "-g", "-fpseudo-probe-for-profiling"]].concat();
    let program = compiled(&llvm, "walked.c", &arguments, &output);
    check(&program, &Simulation::new(1).depth(32));
}
