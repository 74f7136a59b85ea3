//! `cargo xtask mip-programs`: builds lua, zstd and re2 from Debian's sources by their own makefiles with `profkit mip
//! cc`. Their own tests are run, and the results are compared with plain builds and with clang's counts.
use super::make::{Real, Toolchain};
use super::packages::Sources;
use super::{blocks, clang_counts, fresh, mip_counts, mip_profile, raws_in, size, succeed};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail};
use profkit_testkit::program::counts;
use profkit_testkit::program::{MIP_MODES, MipMode};
use profkit_testkit::target_folder;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The programs [default: all]
    #[arg(long)]
    only: Vec<Real>,
    /// For step tests: as for mip-fuzz [default: all]
    #[arg(long, value_parser = super::mode)]
    mode: Vec<MipMode>,
    /// [default: all]
    #[arg(long)]
    step: Vec<Check>,
    /// For step blocks: how often the workload of each build is run
    #[arg(long, default_value_t = 15)]
    runs: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// Their own tests in every mode with clang-22, and in two with gcc-12
    Tests,
    /// Calls and coverage against clang's -fprofile-instr-generate in the same binary, function by function
    Counts,
    /// --gc-sections with two linkers: the same functions stay as in a plain build; symbols, dynamic relocations
    Sections,
    /// Probes, file size and time of mode block, beside the wanted values and clang's -pgo-block-coverage
    Blocks,
}

struct Options {
    profkit: PathBuf,
    sources: Sources,
    folder: PathBuf,
}

/// Runs the checks.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = target_folder().join("mip-programs");
    let options = Options {
        profkit: built_profkit()?,
        sources: Sources::new(&folder),
        folder,
    };
    let only = if arguments.only.is_empty() {
        &Real::USUAL
    } else {
        &arguments.only[..]
    };
    let modes = if arguments.mode.is_empty() {
        &MIP_MODES
    } else {
        &arguments.mode[..]
    };
    let mut failures = 0;
    let mut step = |what: &str, made: Result<String>, began: Instant| {
        let seconds = began.elapsed().as_secs();
        match made {
            Ok(said) => println!("{what}: {said} ({seconds} s)"),
            Err(error) => {
                failures += 1;
                println!("{what}: FAILED ({seconds} s): {error:#}");
            }
        }
    };
    let wanted = |check| arguments.step.is_empty() || arguments.step.contains(&check);
    for real in only {
        if wanted(Check::Tests) {
            for (compiler, mode) in tested(modes) {
                let began = Instant::now();
                let made = tests(&options, *real, compiler, mode);
                step(
                    &format!("{} {compiler} {}: tests", real.name(), mode.name),
                    made,
                    began,
                );
            }
        }
        if wanted(Check::Counts) {
            for (mode, exact) in [("calls", true), ("calls", false), ("function", false)] {
                let began = Instant::now();
                let mode = MipMode::named(mode).context("a mode")?;
                let what = if exact { "exact counts" } else { "counts" };
                let made = count(&options, *real, mode, exact);
                step(
                    &format!("{} {}: {what}", real.name(), mode.name),
                    made,
                    began,
                );
            }
        }
        if wanted(Check::Blocks) {
            let began = Instant::now();
            let Options {
                profkit,
                sources,
                folder,
            } = &options;
            let made = blocks::measure(profkit, sources, folder, *real, arguments.runs);
            step(&format!("{}: block coverage", real.name()), made, began);
        }
        if wanted(Check::Sections) {
            for linker in ["bfd", "lld"] {
                let began = Instant::now();
                let made = sections(&options, *real, linker);
                step(&format!("{} {linker}: sections", real.name()), made, began);
            }
        }
    }
    if failures > 0 {
        bail!("{failures} checks failed");
    }
    Ok(())
}

/// Returns every mode with clang, and the two main modes also with gcc.
fn tested(modes: &[MipMode]) -> Vec<(&'static str, MipMode)> {
    let mut all: Vec<(&str, MipMode)> = modes.iter().map(|mode| ("clang-22", *mode)).collect();
    all.extend(
        modes
            .iter()
            .filter(|mode| ["function", "calls"].contains(&mode.name))
            .map(|mode| ("gcc-12", *mode)),
    );
    all
}

/// Runs the program's own tests in one mode.
fn tests(options: &Options, real: Real, compiler: &str, mode: MipMode) -> Result<String> {
    let place = options
        .folder
        .join(format!("{}-{compiler}-{}", real.name(), mode.name));
    fresh(&place)?;
    let (tree, raws) = (place.join("tree"), place.join("raws"));
    std::fs::create_dir_all(&raws)?;
    let tools = Toolchain::mip(compiler, &options.profkit, mode);
    let warnings = real.build(&options.sources, &tools, &tree)?;
    if !warnings.is_empty() {
        bail!("the linker warns: {}", warnings.join("\n"));
    }
    // The long form of the tests is run only once for each kind of record. Elsewhere, tests that only repeat the same
    // code are left out.
    let whole = compiler == "clang-22" && ["function", "calls"].contains(&mode.name);
    let done = real.test(&tools, &tree, &raws, whole)?;
    let written = raws_in(&raws)?;
    if written.is_empty() {
        bail!("no profile was written to {}", raws.display());
    }
    // The shared file of a pool is named only after the build id. A process that cannot add its counts to the pool
    // writes a file with its process id in the name.
    let apart = written
        .iter()
        .filter(|raw| {
            raw.file_stem()
                .is_some_and(|stem| Path::new(stem).extension().is_some())
        })
        .count();
    if apart > 0 && !["calls-block", "calls-returns"].contains(&mode.name) {
        bail!(
            "{apart} of {} raw profiles were not added up",
            written.len()
        );
    }
    let binary = real.tested(&tree);
    let profile = place.join("all.mip");
    let own = raws_of(&options.profkit, &binary, &written, &profile)?;
    let covered = mip_counts(&options.profkit, &profile, true)?;
    let (all, hit) = sum(&covered);
    if hit == 0 {
        bail!("no function of {} is covered", binary.display());
    }
    std::fs::remove_dir_all(&tree)?;
    Ok(format!(
        "passed {}; {} raw profiles, {own} of them of {}: {hit} of {all} functions covered",
        done.join(", "),
        written.len(),
        binary.file_name().unwrap_or_default().display(),
    ))
}

/// Merges only the raw profiles of this binary, and returns their number. Without `--strict`, a merge with profiles of
/// other builds would only report them.
fn raws_of(profkit: &Path, binary: &Path, raws: &[PathBuf], profile: &Path) -> Result<usize> {
    let mut own = Vec::new();
    for raw in raws {
        if mip_profile(profkit, binary, std::slice::from_ref(raw), profile).is_ok() {
            own.push(raw.clone());
        }
    }
    if own.is_empty() {
        return Ok(0);
    }
    mip_profile(profkit, binary, &own, profile)?;
    Ok(own.len())
}

fn sum(counts: &counts::Counts) -> (u64, u64) {
    let all = counts.values().flatten();
    all.fold((0, 0), |(all, hit), count| {
        (all + 1, hit + u64::from(*count > 0))
    })
}

/// Runs a binary once that has both MIP's and clang's instrumentation, and compares the counts.
fn count(options: &Options, real: Real, mode: MipMode, exact: bool) -> Result<String> {
    let what = if exact { "exact" } else { "both" };
    let place = options
        .folder
        .join(format!("{}-{what}-{}", real.name(), mode.name));
    fresh(&place)?;
    let (tree, raws) = (place.join("tree"), place.join("raws"));
    std::fs::create_dir_all(&raws)?;
    let mut flags = vec!["-fprofile-instr-generate", "-fprofile-update=atomic"];
    if exact {
        // Nothing may be inlined, and no recursive call may become a loop, because clang would then count more calls
        // than MIP.
        flags.extend(["-fno-inline", "-fno-optimize-sibling-calls"]);
    }
    let tools = Toolchain::mip("clang-22", &options.profkit, mode).with(what, &flags, &[]);
    real.build(&options.sources, &tools, &tree)?;
    let mut clang_raws = Vec::new();
    for (number, line) in real.workload(&tree, 1)?.iter().enumerate() {
        let raw = raws.join(format!("{number}.mipraw"));
        clang_raws.push(raw.with_extension("profraw"));
        succeed(
            Command::new(&line[0])
                .args(&line[1..])
                .env("LLVM_MIP_PROFILE_FILENAME", &raw)
                .env("LLVM_PROFILE_FILE", raw.with_extension("profraw")),
        )?;
    }
    let profile = place.join("one.mip");
    mip_profile(
        &options.profkit,
        &real.executable(&tree),
        &raws_in(&raws)?,
        &profile,
    )?;
    let clang = clang_counts::counts_of_raws(&clang_raws, &place.join("one.profdata"))?;
    let mip = mip_counts(&options.profkit, &profile, !mode.counts_calls())?;
    let clang = if mode.counts_calls() {
        clang
    } else {
        counts::covered(&clang)
    };
    let found = counts::compare(&clang, &mip);
    clang_counts::judge(&found, exact)?;
    let report = place.join("comparison.txt");
    let mut list = String::new();
    for (name, clang, mip) in &found.partly_inlined {
        list += &format!("{name}: clang {clang:?}, MIP {mip:?}\n");
    }
    for name in &found.inlined_away {
        list += &format!("{name}: clang has a count, MIP no function\n");
    }
    for name in &found.uncounted {
        list += &format!("{name}: clang does not count it\n");
    }
    std::fs::write(&report, list)?;
    std::fs::remove_dir_all(&tree)?;
    Ok(format!(
        "{} functions equal; of those with inlined copies {} have fewer calls, {} no code of their own; {} that clang does \
         not count; see {}",
        found.equal,
        found.partly_inlined.len(),
        found.inlined_away.len(),
        found.uncounted.len(),
        report.display()
    ))
}

/// Compares the sections and symbols of the linked program with those of a plain build.
fn sections(options: &Options, real: Real, linker: &str) -> Result<String> {
    let place = options
        .folder
        .join(format!("{}-sections-{linker}", real.name()));
    fresh(&place)?;
    let link: &[&str] = if linker == "lld" {
        &[
            "-Wl,--gc-sections",
            "--ld-path=/usr/bin/ld.lld-22",
            "-Wl,--build-id",
        ]
    } else {
        &["-Wl,--gc-sections", "-fuse-ld=bfd", "-Wl,--build-id"]
    };
    let compile = &["-ffunction-sections"];
    let mut images = Vec::new();
    let mode = MipMode::named("function").context("a mode")?;
    for tools in [
        Toolchain::plain("clang-22"),
        Toolchain::mip("clang-22", &options.profkit, mode),
    ] {
        let tree = place.join(tools.label.replace(' ', "-"));
        let warnings = real.build(&options.sources, &tools.with("gc", compile, link), &tree)?;
        if !warnings.is_empty() {
            bail!("the linker warns: {}", warnings.join("\n"));
        }
        images.push(size::image(&real.executable(&tree))?);
        std::fs::remove_dir_all(&tree)?;
    }
    let [plain, made] = images.as_slice() else {
        bail!("two builds were made");
    };
    let other = size::other_symbols(plain, made);
    if !other.is_empty() {
        bail!("symbols differ: {}", other.join(" "));
    }
    if made.functions == 0 || made.records < made.functions {
        bail!(
            "{} functions in {} bytes of records",
            made.functions,
            made.records
        );
    }
    let named = made
        .function_sizes
        .values()
        .map(|of_name| of_name.len() as u64)
        .sum::<u64>();
    if made.functions > named {
        bail!(
            "{} map entries, but only {named} functions: dead ones stayed",
            made.functions
        );
    }
    Ok(format!(
        "{} functions of {named} instrumented, {} bytes of records, the same symbols, {} dynamic relocations (plain: {})",
        made.functions, made.records, made.dynamic_relocations, plain.dynamic_relocations
    ))
}
