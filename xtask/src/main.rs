//! Tasks for work on this repository. `cargo xtask` lists them.
mod bench;
mod bench_correlate;
mod bench_mip_merge;
mod bench_order;
mod bench_perf;
mod bench_runtime;
mod bench_symbolize;
mod clients;
mod conformance;
mod differential;
mod dist;
mod fixtures;
mod fuzz;
mod links;
mod memprof;
mod mip;
mod page;
mod pictures;
mod steps;
mod suite;
mod thorough;
mod two_commits;

use std::process::ExitCode;

use anyhow::Result;

/// A task: its name, its description, and its function, which takes the arguments after the name.
struct Task(&'static str, &'static str, fn(&[String]) -> Result<()>);

/// One line per task.
const TASKS: &[Task] = &[
    Task("ci", "what .ci/run does, except for installing", steps::ci),
    Task(
        "quick",
        "format, check, unit tests and tests/cli: two minutes after a build",
        steps::quick,
    ),
    Task(
        "slow",
        "all tests, exhaustive ones whole [ARGUMENTS OF CARGO TEST…]",
        steps::slow,
    ),
    Task(
        "doc",
        "the documentation of all crates, warnings denied, and its links",
        steps::doc,
    ),
    Task(
        "targets",
        "the libraries, checked for Windows and WebAssembly",
        steps::targets,
    ),
    Task(
        "thorough",
        "sanitizers and long fuzzing, by parts; CI runs one at a time [PART… | --turn]",
        thorough::run,
    ),
    Task(
        "bless",
        "rewrite the expectations of tests/cli",
        steps::bless,
    ),
    Task(
        "conformance",
        "profkit beside LLVM's tools on every compiler, mode and program [SET…]",
        conformance::run,
    ),
    Task(
        "llvm-suite",
        "LLVM's own tests of llvm-profdata and llvm-profgen, with its tools and with profkit [FILTER]",
        suite::run,
    ),
    Task(
        "runtime-suite",
        "the tests of LLVM's profile runtime, with it and with profkit's [FILTER]",
        suite::runtime::run,
    ),
    Task(
        "differential",
        "random command lines of llvm-profdata, with its tool and with profkit [--seed N] [--runs N]",
        differential::run,
    ),
    Task(
        "fuzz-smoke",
        "every fuzz target over its corpus and many mutations [MUTATIONS [SEED]]",
        steps::fuzz_smoke,
    ),
    Task(
        "fuzz",
        "every fuzz target, or those named, under libFuzzer: SECONDS for each [TARGET…]",
        fuzz::run,
    ),
    Task(
        "fuzz-minimize",
        "what `fuzz` found, as small as it covers the same code, to fuzz/corpus [TARGET…]",
        fuzz::minimize,
    ),
    Task(
        "fixtures",
        "make tests/fixtures again with the installed LLVMs",
        fixtures::run,
    ),
    Task(
        "pictures",
        "the pictures of the README, from real runs of the command [--check]",
        pictures::run,
    ),
    Task(
        "page",
        "the pages of `profkit report` in a browser: every view, by mouse and keyboard [--bench | --pictures]",
        page::run,
    ),
    Task(
        "bridges",
        "what `profkit export` writes, opened in speedscope, the Firefox Profiler and a reader of pprof",
        page::bridges::run,
    ),
    Task(
        "dist",
        "the files of a release: archive, Debian package, wheel, each installed and tried [TARGET…]",
        dist::run,
    ),
    Task(
        "publish",
        "what cargo publish would do, without doing it [ARGUMENTS OF CARGO PUBLISH…]",
        dist::publish,
    ),
    Task(
        "bench-llvm",
        "time llvm-profdata-22 and profkit side by side",
        bench::run,
    ),
    Task(
        "bench-sample",
        "time llvm-profdata-22 and profkit on sample profiles [WORK…]",
        bench::sample::run,
    ),
    Task(
        "mip-fuzz",
        "generated C programs, plain and with profkit mip cc, under many compilers and options",
        mip::fuzz::run,
    ),
    Task(
        "mip-programs",
        "lua, zstd and re2 with profkit mip cc: their own tests, clang's counts, sections",
        mip::programs::run,
    ),
    Task(
        "bench-mip",
        "what MIP costs: text, data, files and time of real programs",
        mip::bench::run,
    ),
    Task(
        "bench-symbolize",
        "time llvm-symbolizer-22 and profkit on a million addresses",
        bench_symbolize::run,
    ),
    Task(
        "bench-mip-merge",
        "time profkit mip merge of 10,000 raw files beside cat",
        bench_mip_merge::run,
    ),
    Task(
        "bench-order",
        "pages and page faults of a cold start, ordered by profkit and by llvm-profdata-22",
        bench_order::run,
    ),
    Task(
        "bench-perf",
        "time llvm-profgen-22, create_llvm_prof and profkit on recordings with branch stacks [--only WORK]",
        bench_perf::run,
    ),
    Task(
        "bench-runtime",
        "bytes and time of the profile runtime beside LLVM's C runtime [--only PART]",
        bench_runtime::run,
    ),
    Task(
        "bench-memprof",
        "time 500 raw heap profiles of 10,000 contexts beside llvm-profdata-22",
        memprof::bench::run,
    ),
    Task(
        "memprof-programs",
        "re2's tests with heap profiles of five clangs, merged and shown by both tools",
        memprof::programs::run,
    ),
    Task(
        "bench-correlate",
        "time 500 raw profiles without metadata and 200 binaries beside llvm-profdata-22",
        bench_correlate::run,
    ),
    Task(
        "two-commits",
        "lua and a Rust program before and after an edit: what match and diff say",
        two_commits::run,
    ),
    Task(
        "clients",
        "cargo-llvm-cov, cargo-pgo and grcov with both tools",
        clients::run,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map(String::as_str);
    let Some(Task(_, _, task)) = TASKS.iter().find(|task| Some(task.0) == name) else {
        if let Some(name) = name {
            eprintln!("no task {name}");
        }
        eprintln!("usage: cargo xtask TASK [ARGUMENT…]\n");
        for Task(name, what, _) in TASKS {
            eprintln!("  {name:<17}{what}");
        }
        return ExitCode::from(2);
    };
    match task(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
