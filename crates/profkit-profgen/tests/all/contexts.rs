//! Profiles with calling contexts are those of llvm-profgen-22, byte for byte.
use crate::support::{compiled, recorded_with_text, text_of, theirs};
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::Recording;
use profkit_perf::collect::{CollectOptions, Counts, collect};
use profkit_perf::text::{TextOptions, read_text};
use profkit_profgen::contexts::{
    ContextOptions, Contexts, PreinlineOptions, make_profile, read_contexts, unwind, write_contexts,
};
use profkit_profgen::{Program, ProgramOptions};
use profkit_testkit::simulate::{self, Simulation};
use profkit_testkit::{links_c, or_skip, require_or_skip};
use std::path::Path;

fn stacks() -> CollectOptions {
    let mut options = CollectOptions::default();
    options.stacks = true;
    options
}

fn contexts_of(
    program: &Program<'_>,
    path: &Path,
    counts: &Counts,
    options: &ContextOptions,
) -> Contexts {
    let name = path.file_name().expect("a name").as_encoded_bytes();
    let mine = counts.binaries.iter().enumerate();
    let mine: Vec<usize> = mine
        .filter(|(_, it)| it.key.path.is_empty() || it.key.path.ends_with(name))
        .map(|(index, _)| index)
        .collect();
    unwind(program, counts, &mine, options)
}

/// Returns pairs of our options and the options of llvm-profgen that have the same effect.
fn cases() -> Vec<(ContextOptions, &'static [&'static str])> {
    let default = ContextOptions::default();
    let mut all = default;
    all.preinline = None;
    all.nest = false;
    all.merge_cold = Some(false);
    let mut merged = all;
    merged.merge_cold = Some(true);
    merged.cold_depth = 2;
    let mut recursive = all;
    recursive.compress_recursion = Some(0);
    recursive.max_depth = Some(5);
    recursive.infer_missing_frames = false;
    let mut nested = all;
    nested.nest = true;
    let mut lines = default;
    lines.preinline.as_mut().expect("it is on").code_sizes = false;
    lines.nest = false;
    lines.trim_cold = true;
    let mut bases = default;
    bases.keep_bases = true;
    let mut all_bases = nested;
    all_bases.keep_bases = true;
    let mut shallow = all;
    shallow.max_calls = Some(2);
    shallow.max_depth = Some(4);
    let with = |change: fn(&mut PreinlineOptions)| {
        let mut options = default;
        change(options.preinline.as_mut().expect("it is on"));
        options.nest = false;
        options
    };
    let large = with(|how| (how.hot_threshold, how.cold_threshold) = (3000, 45));
    let small = with(|how| {
        (how.hot_threshold, how.was_inlined_factor) = (1, 1);
        (how.growth_limit, how.limit_min, how.limit_max) = (2, 20, 400);
    });
    let tiny = with(|how| (how.limit_min, how.limit_max) = (1, 60));
    let negative = with(|how| (how.hot_threshold, how.cold_threshold) = (-3, -1));
    let replayed = with(|how| how.replay = true);
    vec![
        (default, &[]),
        (bases, &["--generate-merged-base-profiles=1"]),
        (
            all_bases,
            &[
                "--csspgo-preinliner=0",
                "--csprof-merge-cold-context=0",
                "--generate-merged-base-profiles=1",
            ],
        ),
        (
            shallow,
            &[
                "--csspgo-preinliner=0",
                "--gen-cs-nested-profile=0",
                "--csprof-merge-cold-context=0",
                "--csprof-max-unsymbolized-context-depth=2",
                "--csprof-max-context-depth=4",
            ],
        ),
        (
            large,
            &[
                "--gen-cs-nested-profile=0",
                "--sample-profile-hot-inline-threshold=3000",
                "--sample-profile-cold-inline-threshold=45",
            ],
        ),
        (
            small,
            &[
                "--gen-cs-nested-profile=0",
                "--sample-profile-hot-inline-threshold=1",
                "--csspgo-preinliner-multiplier-for-previous-inlining=1",
                "--sample-profile-inline-growth-limit=2",
                "--sample-profile-inline-limit-min=20",
                "--sample-profile-inline-limit-max=400",
            ],
        ),
        (
            tiny,
            &[
                "--gen-cs-nested-profile=0",
                "--sample-profile-inline-limit-min=1",
                "--sample-profile-inline-limit-max=60",
            ],
        ),
        (
            negative,
            &[
                "--gen-cs-nested-profile=0",
                "--sample-profile-hot-inline-threshold=-3",
                "--sample-profile-cold-inline-threshold=-1",
            ],
        ),
        (
            replayed,
            &["--gen-cs-nested-profile=0", "--csspgo-replay-preinline"],
        ),
        (
            all,
            &[
                "--csspgo-preinliner=0",
                "--gen-cs-nested-profile=0",
                "--csprof-merge-cold-context=0",
            ],
        ),
        (
            merged,
            &[
                "--csspgo-preinliner=0",
                "--gen-cs-nested-profile=0",
                "--csprof-max-cold-context-depth=2",
            ],
        ),
        (
            recursive,
            &[
                "--csspgo-preinliner=0",
                "--gen-cs-nested-profile=0",
                "--csprof-merge-cold-context=0",
                "--compress-recursion=0",
                "--csprof-max-context-depth=5",
                "--infer-missing-frames=0",
            ],
        ),
        (
            nested,
            &[
                "--csspgo-preinliner=0",
                "--csprof-merge-cold-context=0",
                "--generate-merged-base-profiles=0",
            ],
        ),
        (
            lines,
            &[
                "--use-context-cost-for-preinliner=0",
                "--gen-cs-nested-profile=0",
                "--trim-cold-profile=1",
            ],
        ),
    ]
}

/// Without the attribute "was inlined": contexts can become equal when recursion is removed, and llvm-profgen then
/// takes that of one of them, by the order of a hash table.
fn without_was_inlined(text: &str) -> String {
    let lines = text.lines().filter_map(|line| {
        let Some((indent, attributes)) = line.split_once("!Attributes: ") else {
            return Some(format!("{line}\n"));
        };
        let attributes: u32 = attributes.parse().expect("a number");
        let left = attributes & !1;
        (left > 0).then(|| format!("{indent}!Attributes: {left}\n"))
    });
    lines.collect()
}

fn check(simulated: &simulate::Program, simulation: &Simulation, lines: bool) {
    let (bytes, text) = recorded_with_text(simulated, simulation, 1500);
    let recording = Recording::open(&bytes).expect("a recording");
    let counts = collect(&recording, &stacks());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("script");
    std::fs::write(&file, text).expect("written");
    let recorded = format!("--perfscript={}", file.display());
    let path = &simulated.path;
    let files = ProgramFiles::open(path, &DebugFolders::default()).expect("the binary");
    let mut how = ProgramOptions::default();
    how.ignore_probes = lines;
    let program = Program::open_with(&files, how).expect("a program");
    let compare = |ours: &str, arguments: &[&str]| {
        let mut all = vec![recorded.as_str()];
        if lines {
            all.push("--use-dwarf-correlation");
        }
        all.extend(arguments);
        let Some(theirs) = theirs(path, &all) else {
            return;
        };
        let (ours, theirs) = if lines {
            (without_was_inlined(ours), without_was_inlined(&theirs))
        } else {
            (ours.to_owned(), theirs)
        };
        assert!(ours == theirs, "{all:?}: ours:\n{ours}\ntheirs:\n{theirs}");
    };
    let default = ContextOptions::default();
    let contexts = contexts_of(&program, path, &counts, &default);
    assert!(!contexts.counts.is_empty(), "{contexts:?}");
    let mut unsymbolized = Vec::new();
    write_contexts(&contexts, program.base(), &mut unsymbolized).expect("written");
    let unsymbolized = String::from_utf8(unsymbolized).expect("text");
    compare(&unsymbolized, &["--skip-symbolization"]);
    for (options, arguments) in cases() {
        let contexts = contexts_of(&program, path, &counts, &options);
        let (made, _) = make_profile(&program, &contexts, &options).expect("sound probes");
        compare(&text_of(&made.profile), arguments);
    }
    // The text of contexts holds all that a profile needs.
    let read = read_text(unsymbolized.as_bytes(), TextOptions::default()).expect("our own text");
    let binaries: Vec<_> = read.binaries.iter().collect();
    let mut again = read_contexts(&program, &binaries).expect("contexts");
    again.figures = contexts.figures.clone();
    for (again, first) in again.counts.values_mut().zip(contexts.counts.values()) {
        again.was_inlined = first.was_inlined;
    }
    assert_eq!(again, contexts);
}

#[test]
fn simulated_programs_have_the_contexts_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    const PROBES: &str = "-fpseudo-probe-for-profiling";
    let plain = ["-O2", "-g", PROBES, "-mno-omit-leaf-frame-pointer"];
    let unique = ["-O3", "-g", PROBES, "-funique-internal-linkage-names"];
    let cases = [
        ("walked.c", &plain[..]),
        ("sampled.c", &unique),
        ("thrown.cpp", &plain),
        ("conditions.c", &unique),
        ("cold_parts.c", &plain),
    ];
    for (index, (source, arguments)) in cases.into_iter().enumerate() {
        let output = folder.path().join(format!("program{index}"));
        let program = compiled(&llvm, source, arguments, &output);
        let simulation = Simulation::new(index as u64).depth(16).chains(true);
        for lines in [false, true] {
            check(&program, &simulation, lines);
        }
    }
}

#[test]
fn simulated_programs_for_aarch64_have_the_contexts_of_llvm_profgen() {
    let llvm = require_or_skip!(22);
    let a64 = ["--target=aarch64-linux-gnu", "-fuse-ld=lld"];
    or_skip!(links_c(llvm.clang(), &a64));
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("a64");
    let arguments = [&a64[..], &["-O2", "-g", "-fpseudo-probe-for-profiling"]].concat();
    let program = compiled(&llvm, "walked.c", &arguments, &output);
    let simulation = Simulation::new(1).depth(32).chains(true);
    check(&program, &simulation, false);
}

#[test]
fn searches_for_missing_frames_end_when_their_steps_are_used_up() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("program");
    let arguments = ["-O2", "-g", "-fpseudo-probe-for-profiling"];
    let program = compiled(&llvm, "tail_calls.c", &arguments, &output);
    let simulation = Simulation::new(3).depth(16).chains(true);
    let (bytes, _) = recorded_with_text(&program, &simulation, 1500);
    let recording = Recording::open(&bytes).expect("a recording");
    let counts = collect(&recording, &stacks());
    let files = ProgramFiles::open(&program.path, &DebugFolders::default()).expect("the binary");
    let opened = Program::open(&files).expect("a program");
    let figures = |steps: u64| {
        let mut options = ContextOptions::default();
        options.search_steps = steps;
        let contexts = contexts_of(&opened, &program.path, &counts, &options);
        make_profile(&opened, &contexts, &options)
            .expect("sound probes")
            .1
    };
    let all = figures(ContextOptions::default().search_steps);
    assert!(all.inferred_frames >= 2, "{all:?}");
    assert_eq!(all.searches_given_up, 0);
    let none = figures(0);
    assert_eq!(none.inferred_frames, 0);
    assert!(none.searches_given_up > 0, "{none:?}");
    // With some number of steps, the first searches succeed and later ones are skipped.
    let some = (1..2000)
        .map(figures)
        .find(|figures| figures.inferred_frames > 0);
    let some = some.expect("steps that are enough for a search");
    assert!(
        some.inferred_frames < all.inferred_frames && some.searches_given_up > 0,
        "{some:?}"
    );
}

#[test]
fn the_text_of_perf_script_has_the_stacks_of_the_recording() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("program");
    let program = compiled(&llvm, "walked.c", &["-O2", "-g"], &output);
    let simulation = Simulation::new(7).depth(16).chains(true);
    let (bytes, text) = recorded_with_text(&program, &simulation, 500);
    let recording = Recording::open(&bytes).expect("a recording");
    let of_recording = collect(&recording, &stacks());
    let mut options = TextOptions::default();
    options.stacks = true;
    let of_text = read_text(&text, options).expect("a text");
    assert!(of_recording.stacks.samples.len() > 100);
    assert_eq!(of_text.stacks, of_recording.stacks);
    // The sum of two counts with the same samples has each sample twice.
    let twice = Counts::sum([&of_text, &of_recording]);
    let numbers = |counts: &Counts| -> u64 {
        let samples = counts.stacks.samples.iter();
        samples.map(|sample| sample.count).sum()
    };
    assert_eq!(numbers(&twice), numbers(&of_text) + numbers(&of_recording));
}
