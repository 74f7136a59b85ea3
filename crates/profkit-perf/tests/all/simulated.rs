//! Recordings of simulated programs, with several processes, fork, exec, dlopen and the kernel. The counts of a
//! recording must equal the counts that the simulation itself made.
use profkit_perf::Recording;
use profkit_perf::collect::{CollectOptions, Place, collect};
use profkit_testkit::simulate::{Program, Simulation, Step, Truth};
use profkit_testkit::{Llvm, links_c, or_skip, repo_root, require_or_skip};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

type Pairs<K> = BTreeMap<K, u64>;
/// The expected counts of the ranges and of the branches of a program.
type Expected = (Pairs<(u64, u64)>, Pairs<(Place, Place)>);

fn compiled(llvm: &Llvm, source: &str, arguments: &[&str], output: &Path) -> Program {
    let status = Command::new(llvm.clang())
        .args(["-g", "-O2"])
        .args(arguments)
        .arg(repo_root().join("tests/programs").join(source))
        .arg("-o")
        .arg(output)
        .status();
    assert!(status.expect("clang runs").success(), "{arguments:?}");
    Program::open(output)
}

/// Returns what the simulation counted in one program. Addresses are converted to offsets in the program's file.
fn expected(truth: &Truth, index: usize, program: &Program) -> Expected {
    let offset = |address| program.file_offset(address).expect("an address of code");
    let mut ranges = Pairs::new();
    for (&(of, start, end), &count) in &truth.ranges {
        if of == index {
            *ranges.entry((offset(start), offset(end))).or_default() += count;
        }
    }
    let mut branches = Pairs::new();
    for (&(from, to), &count) in &truth.branches {
        let place = |spot| match spot {
            Some((of, address)) if of == index => Place::at(offset(address)),
            _ => Place::ELSEWHERE,
        };
        let branch = (place(from), place(to));
        if branch != (Place::ELSEWHERE, Place::ELSEWHERE) {
            *branches.entry(branch).or_default() += count;
        }
    }
    (ranges, branches)
}

fn check(programs: &[Program], steps: &[Step], simulation: &Simulation) {
    let mut writer = simulation.writer();
    let truth = simulation
        .run(programs, steps, &mut writer)
        .expect("a recording");
    for bytes in [writer.file(), writer.pipe()] {
        let recording = Recording::open(&bytes).expect("a recording");
        let counts = collect(&recording, &CollectOptions::default());
        assert_eq!(counts.losses.samples, truth.samples);
        assert_eq!(counts.losses.branches, truth.entries);
        for (index, program) in programs.iter().enumerate() {
            let path = program.path.as_os_str().as_encoded_bytes();
            let found = counts.binaries.iter().find(|it| it.key.path == path);
            let found = found.unwrap_or_else(|| panic!("{}", program.path.display()));
            let id = found.key.build_id.as_ref().map(|id| &*id.0);
            assert_eq!(id.unwrap_or_default(), program.build_id);
            let (ranges, branches) = expected(&truth, index, program);
            let sums = &found.sums;
            let pairs = sums.ranges.iter().map(|it| ((it.start, it.end), it.count));
            assert_eq!(pairs.collect::<Pairs<_>>(), ranges, "{path:?}");
            let pairs = sums.branches.iter().map(|it| ((it.from, it.to), it.count));
            assert_eq!(pairs.collect::<Pairs<_>>(), branches, "{path:?}");
        }
    }
}

#[test]
fn processes_that_fork_start_programs_and_load_libraries() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let fixed = ["-fno-PIE", "-no-pie", "-Wl,--build-id=none"];
    let library = ["-shared", "-fPIC", "-Wl,--build-id=sha1"];
    let programs = [
        compiled(
            &llvm,
            "walked.c",
            &["-fPIE", "-pie", "-Wl,--build-id"],
            &at("relocatable"),
        ),
        compiled(&llvm, "walked.c", &fixed, &at("fixed")),
        compiled(&llvm, "walked_library.c", &library, &at("library.so")),
    ];
    let steps = [
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
        Step::Fork { pid: 10, child: 12 },
        Step::Exit { pid: 20 },
        Step::Exit { pid: 10 },
        Step::Samples(1000),
    ];
    for seed in 0..4 {
        let simulation = Simulation::new(seed).depth(16);
        check(&programs, &steps, &simulation);
        check(
            &programs,
            &steps,
            &simulation.depth(32).kernel(true).chains(true),
        );
    }
}

#[test]
fn programs_for_aarch64() {
    let llvm = require_or_skip!(22);
    let a64 = ["--target=aarch64-linux-gnu", "-fuse-ld=lld"];
    or_skip!(links_c(llvm.clang(), &a64));
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(
        &llvm,
        "walked.c",
        &[&a64[..], &["-Wl,--build-id"]].concat(),
        &folder.path().join("a64"),
    );
    let steps = [
        Step::Start {
            pid: 10,
            program: 0,
        },
        Step::Samples(2000),
    ];
    check(&[program], &steps, &Simulation::new(1).depth(64));
}
