//! Temporal traces beyond the size of the reservoir: the sample must be the same as LLVM's.
use crate::common::{Files, text, threads};
use profkit_merge::{Policy, TraceOptions, TraceSampling};
use profkit_testkit::{require_or_skip, succeed};
use std::fmt::Write;
use std::process::Command;

fn profile(from: usize, to: usize, stream: usize) -> Vec<u8> {
    let mut text = format!(":ir\n:temporal_prof_traces\n{}\n{stream}\n", to - from);
    for id in from..to {
        writeln!(text, "{}\nf{id},g{},h", 1 + id % 3, id % 7).unwrap();
    }
    for id in from..to {
        write!(text, "f{id}\n1\n1\n1\n").unwrap();
    }
    text.into_bytes()
}

fn cut(sizes: &[(usize, usize)]) -> Files {
    let mut next = 0;
    let mut files = Vec::new();
    for (index, &(size, stream)) in sizes.iter().enumerate() {
        files.push((
            format!("{index}.proftext"),
            profile(next, next + size, stream),
        ));
        next += size;
    }
    Files::new(files)
}

fn compare(release: u32) {
    let llvm = require_or_skip!(release);
    let folder = tempfile::tempdir().unwrap();
    let one_by_one: Vec<_> = (0..350).map(|_| (1, 1)).collect();
    let cases = [
        (cut(&one_by_one), 100, 10_000),
        (
            cut(&[(40, 40), (80, 80), (90, 90), (1, 1), (100, 100)]),
            100,
            10_000,
        ),
        // Some files are samples of longer streams, read before the reservoir is full, or after it.
        (cut(&[(100, 5_000), (30, 30), (100, 300)]), 100, 10_000),
        (
            cut(&[(30, 30), (100, 5_000), (100, 300), (2, 2)]),
            100,
            10_000,
        ),
        (cut(&[(100, 101), (100, 100_000)]), 100, 10_000),
        (cut(&[(9, 9), (5, 5)]), 4, 2),
        (cut(&[(3, 3), (5, 5)]), 0, 10_000),
    ];
    for (case, (files, size, length)) in cases.iter().enumerate() {
        let list = folder.path().join("list");
        let mut paths = String::new();
        for (index, (_, _, bytes)) in files.0.iter().enumerate() {
            let path = folder.path().join(format!("{index}.proftext"));
            std::fs::write(&path, bytes).unwrap();
            writeln!(paths, "{}", path.display()).unwrap();
        }
        std::fs::write(&list, paths).unwrap();
        // With more threads, LLVM's sample differs from run to run.
        let out = folder.path().join("out");
        succeed(
            Command::new(llvm.profdata())
                .args(["merge", "--text", "-j", "1"])
                .arg(format!("--temporal-profile-trace-reservoir-size={size}"))
                .arg(format!("--temporal-profile-max-trace-length={length}"))
                .arg("-f")
                .arg(&list)
                .arg("-o")
                .arg(&out),
        );
        let theirs = std::fs::read_to_string(&out).unwrap();
        let sampling = TraceOptions {
            reservoir_size: *size,
            max_length: *length,
        };
        let whose = match release {
            19 => TraceSampling::Llvm19,
            _ => TraceSampling::Llvm22,
        };
        let options = |count| threads(count).traces(sampling).trace_sampling(whose);
        let ours = files.merge(&options(1).policy(Policy::Llvm)).unwrap();
        let ours = text(&ours.profiles[0].profile);
        assert!(ours == theirs, "release {release}, case {case}");
        // profkit's sample does not depend on the number of threads. It is the sample that LLVM takes with one thread.
        for own in [1, 2, 3] {
            let ours = files.merge(&options(own)).unwrap();
            let ours = text(&ours.profiles[0].profile);
            assert!(ours == theirs, "case {case}, {own} threads");
        }
    }
}

#[test]
fn the_sample_is_that_of_llvm_22() {
    compare(22);
}

#[test]
fn the_sample_is_that_of_llvm_19() {
    compare(19);
}
