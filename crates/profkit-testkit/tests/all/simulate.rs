//! Tests of simulated recordings. perf and llvm-profgen must be able to read them, and must count what the simulation
//! itself counts.
use profkit_testkit::simulate::{PerfFile, PerfScript, Program, Simulation, Step, Truth};
use profkit_testkit::{Llvm, links_c, on_path, or_skip, repo_root, require_or_skip, skip};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The counts of ranges or branches. The key is the pair of the range's or branch's two addresses.
type Counts = BTreeMap<(u64, u64), u64>;

/// Compiles a program through which a simulation will walk.
fn compiled(llvm: &Llvm, source: &str, arguments: &[&str], output: PathBuf) -> Program {
    let status = Command::new(llvm.clang())
        .args(["-g", "-O2", "-fno-omit-frame-pointer"])
        .args(arguments)
        .arg(repo_root().join("tests/programs").join(source))
        .arg("-o")
        .arg(&output)
        .status();
    assert!(status.expect("clang runs").success(), "{arguments:?}");
    Program::open(&output)
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the tool runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes the same recording as a file of perf and as text.
fn record(
    simulation: &Simulation,
    programs: &[Program],
    steps: &[Step],
    to: &Path,
    chains: bool,
) -> Truth {
    let data = File::create(to.with_extension("data")).expect("a file");
    let text = File::create(to.with_extension("script")).expect("a file");
    let mut data = PerfFile::new(simulation.writer(), data).expect("the recording is written");
    let mut text = PerfScript::new(std::io::BufWriter::new(text), chains);
    let truth = simulation
        .run(programs, steps, &mut (&mut data, &mut text))
        .expect("the recording is written");
    data.finish().expect("the recording is written");
    truth
}

/// Parses the text that llvm-profgen writes with `--skip-symbolization`. Returns the counts of ranges and of branches.
fn unsymbolized(text: &str) -> (Counts, Counts) {
    let mut lines = text.lines();
    let mut part = |separator: &str| {
        let count: usize = lines.next().expect("a number").parse().expect("a number");
        let part = lines.by_ref().take(count).map(|line| {
            let (place, count) = line.rsplit_once(':').expect("a count");
            let (from, to) = place.split_once(separator).expect("two addresses");
            let number = |text| u64::from_str_radix(text, 16).expect("an address");
            ((number(from), number(to)), count.parse().expect("a count"))
        });
        part.collect::<BTreeMap<_, _>>()
    };
    let ranges = part("-");
    (ranges, part("->"))
}

/// Returns the counts that llvm-profgen must print for a single program. llvm-profgen ignores code in stubs, and writes
/// 1 as the source of a branch from outside of the program.
fn expected(truth: &Truth, program: &Program) -> (Counts, Counts) {
    let ranges = truth.ranges.iter();
    let ranges = ranges.filter(|((_, start, _), _)| !program.is_stub(*start));
    let ranges = ranges.map(|(&(_, start, end), &count)| ((start, end), count));
    let mut branches = BTreeMap::new();
    for (&(from, to), &count) in &truth.branches {
        let own = |spot| match spot {
            Some((_, address)) if !program.is_stub(address) => Some(address),
            _ => None,
        };
        if let Some(to) = own(to) {
            *branches.entry((own(from).unwrap_or(1), to)).or_default() += count;
        }
    }
    (ranges.collect(), branches)
}

#[test]
fn llvm_profgen_counts_what_was_walked() {
    let llvm = require_or_skip!(22);
    let profgen = llvm.profdata().with_file_name("llvm-profgen-22");
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let a64 = ["--target=aarch64-linux-gnu", "-fuse-ld=lld"];
    for (name, arguments) in [
        ("pie", &["-fPIE", "-pie"][..]),
        ("fixed", &["-fno-PIE", "-no-pie"]),
        ("a64", &a64),
    ] {
        or_skip!(links_c(llvm.clang(), arguments), continue);
        for (depth, chains) in [(16, false), (32, false), (32, true)] {
            let program = compiled(&llvm, "walked.c", arguments, at(name));
            let simulation = Simulation::new(7).depth(depth).chains(chains);
            let steps = [
                Step::Start {
                    pid: 10,
                    program: 0,
                },
                Step::Samples(2000),
            ];
            let truth = record(
                &simulation,
                std::slice::from_ref(&program),
                &steps,
                &at(name),
                chains,
            );
            assert_eq!(truth.samples, 2000);
            assert!(
                truth.entries > 1500 * depth as u64,
                "{name}: {}",
                truth.entries
            );
            let mut inputs = vec![("--perfscript", at(name).with_extension("script"))];
            if on_path("perf").is_some() {
                inputs.push(("--perfdata", at(name).with_extension("data")));
            }
            for (option, input) in inputs {
                let result = at("counts");
                run(Command::new(&profgen)
                    .current_dir(folder.path())
                    .args([
                        "--skip-symbolization",
                        "--use-offset=0",
                        "--ignore-stack-samples",
                    ])
                    .arg(format!("--binary={}", at(name).display()))
                    .arg(format!("{option}={}", input.display()))
                    .arg("-o")
                    .arg(&result));
                let text = std::fs::read_to_string(&result).expect("counts");
                let (ranges, branches) = unsymbolized(&text);
                let (our_ranges, our_branches) = expected(&truth, &program);
                if chains {
                    // llvm-profgen drops samples in prologues and epilogues, whose call chains it does not trust.
                    let part = |of: &BTreeMap<_, u64>, whole: &BTreeMap<_, u64>| {
                        let has = |(place, count)| whole.get(place).is_some_and(|it| it >= count);
                        assert!(of.iter().all(has), "{name} {option}");
                        let (of, whole) = (of.values().sum::<u64>(), whole.values().sum::<u64>());
                        assert!(of > whole / 2, "{name} {option}: {of} of {whole}");
                    };
                    part(&ranges, &our_ranges);
                    part(&branches, &our_branches);
                    continue;
                }
                assert_eq!(ranges, our_ranges, "{name} {option}");
                assert_eq!(branches, our_branches, "{name} {option}");
            }
        }
    }
}

#[test]
fn the_hottest_functions_are_those_walked_most() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let program = compiled(&llvm, "walked.c", &[], at("program"));
    let steps = [
        Step::Start {
            pid: 10,
            program: 0,
        },
        Step::Samples(3000),
    ];
    let simulation = Simulation::new(3);
    let programs = [program];
    let truth = record(&simulation, &programs, &steps, &at("program"), false);
    run(
        Command::new(llvm.profdata().with_file_name("llvm-profgen-22"))
            .arg("--format=text")
            .arg(format!("--binary={}", at("program").display()))
            .arg(format!("--perfscript={}", at("program.script").display()))
            .arg("-o")
            .arg(at("profile")),
    );
    let text = std::fs::read_to_string(at("profile")).expect("a profile");
    let mut heads: BTreeMap<&str, u64> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with(' ')) {
        let fields: Vec<&str> = line.split(':').collect();
        heads.insert(fields[0], fields[2].parse().expect("a count"));
    }
    // Every branch to the first address of a function is a call of it.
    let mut called: BTreeMap<&str, u64> = BTreeMap::new();
    for (&(_, to), &count) in &truth.branches {
        let Some((_, address)) = to else { continue };
        let function = programs[0]
            .functions
            .iter()
            .find(|it| it.address == address);
        if let Some(function) = function.filter(|it| heads.contains_key(&*it.name)) {
            *called.entry(&function.name).or_default() += count;
        }
    }
    for name in ["add", "multiply", "power", "choose", "sort", "apply"] {
        assert!(
            called.get(name).is_some_and(|&count| count > 0),
            "{name} is called"
        );
        assert_eq!(heads.get(name), called.get(name), "{name}");
    }
}

/// Returns the programs and steps of a simulation of two processes, one of which forks. A process starts another
/// program, one loads a library, one ends, and some records are lost.
fn story(llvm: &Llvm, folder: &Path) -> (Vec<Program>, Vec<Step>) {
    let at = |name: &str| folder.join(name);
    let library = ["-shared", "-fPIC", "-Wl,--build-id=sha1"];
    let programs = vec![
        compiled(llvm, "walked.c", &["-fPIE", "-pie"], at("relocatable")),
        compiled(llvm, "walked.c", &["-fno-PIE", "-no-pie"], at("fixed")),
        compiled(llvm, "walked_library.c", &library, at("library.so")),
    ];
    let steps = vec![
        Step::Start {
            pid: 10,
            program: 0,
        },
        Step::Start {
            pid: 20,
            program: 0,
        },
        Step::Samples(500),
        Step::Fork { pid: 10, child: 11 },
        Step::Samples(500),
        Step::Lost(17),
        Step::Open {
            pid: 10,
            program: 2,
        },
        Step::Samples(500),
        Step::Exec {
            pid: 11,
            program: 1,
        },
        Step::Samples(500),
        Step::Exit { pid: 20 },
        Step::Samples(500),
    ];
    (programs, steps)
}

#[test]
fn perf_reads_processes_that_fork_and_load_libraries() {
    let llvm = require_or_skip!(22);
    if on_path("perf").is_none() {
        skip("perf (Debian: linux-perf) is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (programs, steps) = story(&llvm, folder.path());
    let simulation = Simulation::new(9).kernel(true).chains(true).depth(16);
    let data = folder.path().join("story.data");
    let truth = record(&simulation, &programs, &steps, &data, true);
    // The walk must have executed code of each program and of the library.
    for program in 0..programs.len() {
        assert!(
            truth.ranges.keys().any(|(of, ..)| *of == program),
            "{program}"
        );
    }
    let dump = run(Command::new("perf").args(["report", "-D", "-i"]).arg(&data));
    let count = |what: &str| dump.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("PERF_RECORD_SAMPLE("), 2500);
    assert_eq!(count("PERF_RECORD_FORK"), 1);
    assert_eq!(count("PERF_RECORD_EXIT"), 1);
    assert_eq!(count("PERF_RECORD_LOST"), 1);
    assert_eq!(count("PERF_RECORD_COMM exec"), 3);
    let branches = dump
        .lines()
        .filter(|line| line.contains("branch stack: nr:"));
    let branches = branches.map(|line| line.rsplit_once("nr:").expect("a number").1);
    let entries: u64 = branches
        .map(|nr| nr.trim().parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(entries, truth.entries);
    // perf finds symbols in all programs and in the library, so the mappings are right.
    let script = run(Command::new("perf")
        .args(["script", "-F", "pid,ip,sym,dso", "-i"])
        .arg(&data));
    for name in ["multiply", "steps_to_one", "library.so", "fixed"] {
        assert!(script.contains(name), "{name}");
    }
    assert!(!script.contains("[unknown] (relocatable)"));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let (programs, steps) = story(&llvm, folder.path());
    let bytes = |seed| {
        let simulation = Simulation::new(seed).kernel(true);
        let mut file = Cursor::new(Vec::new());
        let mut sink = PerfFile::new(simulation.writer(), &mut file).expect("a recording");
        let truth = simulation
            .run(&programs, &steps, &mut sink)
            .expect("a recording");
        sink.finish().expect("a recording");
        let mut whole = simulation.writer();
        assert_eq!(
            simulation
                .run(&programs, &steps, &mut whole)
                .expect("a recording"),
            truth
        );
        // The recording that was written piece by piece equals the one that was written at once.
        assert!(whole.file() == *file.get_ref());
        file.into_inner()
    };
    assert!(bytes(1) == bytes(1));
    assert!(bytes(1) != bytes(2));
}
