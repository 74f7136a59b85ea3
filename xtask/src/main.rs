//! Tasks for work on this repository. `cargo xtask` lists them.
mod bench;
mod clients;
mod conformance;
mod differential;
mod dist;
mod fixtures;
mod fuzz;
mod fuzz_coverage;
mod links;
mod memprof;
mod mip;
mod page;
mod pgo_proof;
mod pictures;
mod steps;
mod suite;
mod thorough;
mod two_commits;
mod wheel;
mod windows;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Tasks for work on this repository.
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo xtask",
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
enum Task {
    /// What .ci/run does, except for installing
    Ci,
    /// Format, check, unit tests and tests/cli: two minutes after a build
    Quick,
    /// All tests, exhaustive ones whole
    Slow {
        /// Arguments of cargo test
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The documentation of all crates, warnings denied, and its links
    Doc,
    /// The command, checked for Windows and macOS, and the libraries for WebAssembly
    Targets,
    /// The command for Windows, under Wine, beside that of this machine on all fixtures
    Windows,
    /// Sanitizers, long fuzzing and real programs, by parts; CI runs one at a time
    Thorough(thorough::Arguments),
    /// Rewrite the expectations of tests/cli
    Bless,
    /// profkit beside LLVM's tools on every compiler, mode and program
    Conformance {
        /// Only sets with one of these words in their names
        names: Vec<String>,
    },
    /// LLVM's own tests of llvm-profdata and llvm-profgen, with its tools and with profkit
    ///
    /// The tests come from Debian's source package of LLVM 19, which is fetched into target/llvm-suite (165 MB). lit and
    /// FileCheck come from the package llvm-22-tools.
    LlvmSuite {
        /// A regular expression: only the tests whose name it matches
        filter: Option<String>,
    },
    /// The tests of LLVM's profile runtime, with it and with profkit's
    RuntimeSuite {
        /// A regular expression: only the tests whose name it matches
        filter: Option<String>,
    },
    /// Random command lines of llvm-profdata, with its tool and with profkit
    Differential(differential::Arguments),
    /// Every fuzz target over its corpus and many mutations
    FuzzSmoke {
        #[arg(default_value = "100000")]
        mutations: String,
        #[arg(default_value = "1")]
        seed: String,
    },
    /// Every fuzz target, or those named, under libFuzzer
    Fuzz {
        /// For each target
        seconds: u32,
        targets: Vec<String>,
    },
    /// What `fuzz` found, as small as it covers the same code, to fuzz/corpus
    FuzzMinimize { targets: Vec<String> },
    /// The lines of code that each fuzz target reaches from its corpus, as the table of fuzz/README.md
    FuzzCoverage {
        /// Only these; the other rows of the table stay
        targets: Vec<String>,
    },
    /// Make tests/fixtures again, with all LLVMs from 13 to 23
    Fixtures(fixtures::Arguments),
    /// The pictures of the README, from real runs of the command
    Pictures {
        /// Only compare them
        #[arg(long)]
        check: bool,
    },
    /// The pages of `profkit report` in a browser: every view, by mouse and keyboard
    Page {
        /// Instead make the pictures of the README
        #[arg(long)]
        pictures: bool,
    },
    /// What `profkit export` writes, opened in speedscope, the Firefox Profiler and a reader of pprof
    Bridges,
    /// The files of a release: archive, Debian package, wheel, each installed and tried
    Dist {
        /// All that are installed, if none is given
        targets: Vec<String>,
    },
    /// The Python wheel, tested in a new environment
    Wheel {
        /// Only build it, and print its path
        #[arg(long)]
        build: bool,
        /// Also test it on Spark, which takes Java and 0.5 GB of packages
        #[arg(long, conflicts_with = "build")]
        spark: bool,
    },
    /// What cargo publish would do, without doing it
    Publish {
        /// Arguments of cargo publish
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Commands of LLVM's tools and of profkit that do the same work, measured side by side
    Bench(bench::Arguments),
    /// Generated C programs, plain and with profkit mip cc, under many compilers and options
    MipFuzz(mip::fuzz::Arguments),
    /// lua, zstd and re2 with profkit mip cc: their own tests, clang's counts, sections
    ///
    /// Needs clang-22, gcc-12, lld-22, dpkg-dev, make, perl, python3-six, unicode-data, binutils.
    MipPrograms(mip::programs::Arguments),
    /// What MIP costs beside clang's other kinds of instrumentation, on eight programs, as a table in Markdown
    MipCompare(mip::compare::Arguments),
    /// Call edges of lua: their time, the callers that are found, and their shares, beside the wanted values
    MipEdges(mip::edges::Arguments),
    /// re2's tests with heap profiles of five clangs, merged and shown by both tools
    MemprofPrograms(memprof::Arguments),
    /// lua and a Rust program before and after an edit: what match and diff say
    TwoCommits,
    /// lua, zstd, sqlite, ninja, ripgrep and orjson: profkit pgo beside a plain build and beside commands by hand
    ///
    /// Needs clang-22, llvm-22, lld-22, dpkg-dev, make, cmake, ninja-build, tcl, and maturin from PyPI.
    PgoProof(pgo_proof::Arguments),
    /// cargo-llvm-cov, cargo-pgo, grcov and maturin with both tools
    Clients {
        /// cargo-llvm-cov, cargo-pgo, grcov or maturin
        #[arg(long)]
        only: Option<String>,
    },
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Ci => steps::ci(),
        Task::Quick => steps::quick(),
        Task::Slow { arguments } => steps::slow(arguments),
        Task::Doc => steps::doc(),
        Task::Targets => steps::targets(),
        Task::Windows => windows::run(),
        Task::Thorough(arguments) => thorough::run(arguments),
        Task::Bless => steps::bless(),
        Task::Conformance { names } => conformance::run(names),
        Task::LlvmSuite { filter } => suite::run(filter.as_deref()),
        Task::RuntimeSuite { filter } => suite::runtime::run(filter.as_deref()),
        Task::Differential(arguments) => differential::run(arguments),
        Task::FuzzSmoke { mutations, seed } => steps::fuzz_smoke(mutations, seed),
        Task::Fuzz { seconds, targets } => fuzz::run(*seconds, targets),
        Task::FuzzMinimize { targets } => fuzz::minimize(targets),
        Task::FuzzCoverage { targets } => fuzz_coverage::run(targets),
        Task::Fixtures(arguments) => fixtures::run(arguments),
        Task::Pictures { check } => pictures::run(*check),
        Task::Page { pictures } => page::run(*pictures),
        Task::Bridges => page::bridges::run(),
        Task::Dist { targets } => dist::run(targets),
        Task::Wheel { build, spark } => wheel::run(*build, *spark),
        Task::Publish { arguments } => dist::publish(arguments),
        Task::Bench(arguments) => bench::run(arguments),
        Task::MipFuzz(arguments) => mip::fuzz::run(arguments),
        Task::MipPrograms(arguments) => mip::programs::run(arguments),
        Task::MipCompare(arguments) => mip::compare::run(arguments),
        Task::MipEdges(arguments) => mip::edges::run(arguments),
        Task::MemprofPrograms(arguments) => memprof::run(arguments),
        Task::TwoCommits => two_commits::run(),
        Task::PgoProof(arguments) => pgo_proof::run(arguments),
        Task::Clients { only } => clients::run(only.as_deref()),
    }
}

fn main() -> ExitCode {
    match run(&Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
