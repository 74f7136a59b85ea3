//! `cargo xtask mip-fuzz`: compares plain and instrumented builds of generated programs, with many compilers and
//! options.
use super::machines::{self, Machine};
use super::{clang_counts, edges, fresh, mip_profile, shown};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail};
use profkit_testkit::program::{MIP_MODES, MipMode, Program, Setting, Size, compare};
use profkit_testkit::{Rng, target_folder};
use std::path::Path;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many programs; what fails stays in target/mip-fuzz
    #[arg(long, default_value_t = 60)]
    pub programs: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// function, unary, block, unary-block, calls, calls-block, calls-returns, calls-atomic or calls-returns-atomic
    /// [default: all]
    #[arg(long, value_parser = super::mode)]
    pub mode: Vec<MipMode>,
    /// Run the programs of another machine under qemu
    #[arg(long, value_enum)]
    machine: Option<Machine>,
}

impl Arguments {
    /// Some programs in all modes.
    pub fn few(seed: u64) -> Arguments {
        Arguments {
            programs: 20,
            seed,
            mode: Vec::new(),
            machine: None,
        }
    }
}

/// Options that change the form of the assembly. Each entry names the compiler that has the options; an empty name
/// means both compilers.
const EXTRAS: [(&str, &[&str]); 23] = [
    ("", &[]),
    ("", &["-g", "-pipe"]),
    ("", &["-g3", "-gz"]),
    (
        "",
        &[
            "-ffunction-sections",
            "-fdata-sections",
            "-Wl,--gc-sections",
        ],
    ),
    ("", &["-fcf-protection=full"]),
    ("", &["-masm=intel"]),
    ("", &["-fstack-clash-protection", "-fstack-protector-all"]),
    ("", &["-fpatchable-function-entry=5,2"]),
    (
        "",
        &["-fno-asynchronous-unwind-tables", "-fomit-frame-pointer"],
    ),
    ("", &["-fno-omit-frame-pointer", "-mno-red-zone"]),
    ("", &["-fuse-ld=gold"]),
    // `-save-temps` is not combined with `-pipe`, because gcc warns if both options are given.
    ("", &["-save-temps=obj"]),
    ("", &["-march=haswell"]),
    ("", &["-static"]),
    ("", &["-pg"]),
    ("", &["-fsanitize=undefined"]),
    (
        "clang",
        &[
            "--ld-path=/usr/bin/ld.lld-22",
            "-ffunction-sections",
            "-Wl,--gc-sections,--icf=all",
        ],
    ),
    ("clang", &["-fno-integrated-as"]),
    ("clang", &["-fbasic-block-sections=all"]),
    ("clang", &["-mllvm", "-enable-machine-outliner"]),
    ("gcc", &["-freorder-blocks-and-partition", "-fno-plt"]),
    (
        "gcc",
        &["-fno-jump-tables", "-mrecord-mcount", "-pg", "-mfentry"],
    ),
    ("gcc", &["-fno-reorder-functions", "-fno-toplevel-reorder"]),
];

/// Runs the test.
pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(machine) = arguments.machine {
        return machines::run(arguments, machine);
    }
    let (programs, first) = (arguments.programs, arguments.seed);
    let modes = if arguments.mode.is_empty() {
        &MIP_MODES
    } else {
        &arguments.mode[..]
    };
    let profkit = built_profkit()?;
    let mut failures = 0u64;
    let mut counted = 0u64;
    for seed in first..first + programs {
        let folder = target_folder().join(format!("mip-fuzz/{seed}"));
        fresh(&folder)?;
        let setting = setting_of(seed);
        let made = one(&profkit, seed, &setting, modes, &folder);
        match made {
            Ok(functions) => {
                counted += functions;
                std::fs::remove_dir_all(&folder)?;
            }
            Err(error) => {
                failures += 1;
                println!("seed {seed}, {}: {error:#}\n", setting.describe());
            }
        }
    }
    println!(
        "{programs} programs in {} modes: {failures} failed; {counted} functions' calls equal clang's counts",
        modes.len()
    );
    if failures > 0 {
        bail!("{failures} programs failed");
    }
    Ok(())
}

/// Block modes, each with the same mode in which every block has a probe.
const WITH_ALL_BLOCKS: [(&str, MipMode); 3] = [
    (
        "block",
        MipMode {
            name: "block-all",
            arguments: &["--mode", "block", "--all-blocks"],
        },
    ),
    (
        "unary-block",
        MipMode {
            name: "unary-block-all",
            arguments: &["--mode", "block", "--counter", "unary", "--all-blocks"],
        },
    ),
    (
        "calls-block",
        MipMode {
            name: "calls-block-all",
            arguments: &["--mode", "calls,block", "--all-blocks"],
        },
    ),
];

/// Whether generated programs leave this function by `longjmp` from a function that it calls. That a call returns or the
/// exception tables say where it goes on is what inference assumes (docs/formats/mip-code.md): of such functions, a block whose
/// call never came back may be missing.
pub(super) fn is_left_by_longjmp(name: &str) -> bool {
    name.starts_with("deep")
}

/// Builds the program again with a probe in each block, and compares which blocks ran. The programs of `modes` have run.
fn compare_blocks(
    profkit: &Path,
    program: &Program,
    setting: &Setting,
    modes: &[MipMode],
    folder: &Path,
) -> Result<()> {
    let pairs: Vec<(MipMode, MipMode)> = modes
        .iter()
        .filter_map(|mode| {
            let (_, all) = WITH_ALL_BLOCKS
                .iter()
                .find(|(name, _)| *name == mode.name)?;
            Some((*mode, *all))
        })
        .collect();
    if pairs.is_empty() {
        return Ok(());
    }
    let all: Vec<MipMode> = pairs.iter().map(|(_, all)| *all).collect();
    compare(profkit, program, setting, &all, folder)?;
    for (mode, all) in pairs {
        let inferred = ran(profkit, mode, folder)?;
        let seen = ran(profkit, all, folder)?;
        if inferred.len() != seen.len() {
            bail!(
                "mode {}: {} functions, and {} with --all-blocks",
                mode.name,
                inferred.len(),
                seen.len()
            );
        }
        for (one, other) in inferred.iter().zip(&seen) {
            if one != other && !is_left_by_longjmp(&one.0) {
                bail!(
                    "mode {}: other blocks ran than with --all-blocks\ninferred: {one:?}\nseen: {other:?}",
                    mode.name
                );
            }
        }
    }
    Ok(())
}

/// For each function of a program, its name, whether it was entered, and which of its blocks ran.
fn ran(profkit: &Path, mode: MipMode, folder: &Path) -> Result<Vec<(String, bool, Vec<bool>)>> {
    let profile = folder.join(format!("{}.mip", mode.name));
    let raw = folder.join(format!("{}.mipraw", mode.name));
    mip_profile(profkit, &folder.join(mode.name), &[raw], &profile)?;
    let json = shown(profkit, &profile)?;
    let functions = json["functions"].as_array();
    let mut all = Vec::new();
    for function in functions.context("mip show's JSON has no functions")? {
        let name = function["function"].as_str().context("a function's name")?;
        let ran = |json: &serde_json::Value, key: &str| {
            let runs = json[key].as_u64();
            runs.map(|runs| runs > 0)
                .with_context(|| format!("{name}: {key}"))
        };
        let blocks = function["blocks"].as_array().into_iter().flatten();
        let blocks = blocks.map(|block| ran(block, "runs"));
        all.push((
            name.to_owned(),
            ran(function, "called_runs")?,
            blocks.collect::<Result<_>>()?,
        ));
    }
    Ok(all)
}

/// Returns the compiler and the options for a seed.
fn setting_of(seed: u64) -> Setting {
    let mut rng = Rng::new(seed ^ 0x5e77_1465);
    let compiler = ["clang-22", "gcc-12", "clang-22", "gcc-12", "clang-16"][rng.below(5)];
    let mut flags = vec![["-O0", "-O1", "-O2", "-O3", "-Os"][rng.below(5)].to_owned()];
    let family = if compiler.starts_with("clang") {
        "clang"
    } else {
        "gcc"
    };
    let extras: Vec<&[&str]> = EXTRAS
        .iter()
        .filter(|(only, _)| only.is_empty() || *only == family)
        .map(|(_, extra)| *extra)
        .collect();
    let extra = extras[rng.below(extras.len())];
    let static_link = extra.contains(&"-static");
    // The linker warns about addresses in a read-only section of a position-independent program.
    let fixed = extra.contains(&"-mrecord-mcount");
    if rng.below(2) == 0 || static_link || fixed {
        flags.extend(["-fno-pie", "-no-pie"].map(str::to_owned));
        if rng.below(4) == 0 && !static_link {
            flags.push(["-mcmodel=medium", "-mcmodel=large"][rng.below(2)].to_owned());
        }
    } else {
        flags.extend(["-fPIE", "-pie"].map(str::to_owned));
    }
    flags.extend(extra.iter().map(|flag| (*flag).to_owned()));
    Setting {
        compiler: compiler.into(),
        flags,
    }
}

/// Tests one program. Returns the number of functions whose calls were compared with clang's.
fn one(
    profkit: &Path,
    seed: u64,
    setting: &Setting,
    modes: &[MipMode],
    folder: &Path,
) -> Result<u64> {
    let mut rng = Rng::new(seed);
    let size = Size {
        files: 1 + rng.below(4),
        functions: 2 + rng.below(8),
    };
    let program = Program::generate(seed, size);
    compare(profkit, &program, setting, modes, folder)?;
    for mode in modes.iter().filter(|mode| mode.has_call_edges()) {
        edges::check_sums(profkit, folder, *mode)?;
    }
    compare_blocks(profkit, &program, setting, modes, folder)?;
    if !seed.is_multiple_of(4) || !modes.iter().any(|mode| mode.counts_calls()) {
        return Ok(0);
    }
    edges::compare_program(profkit, &program, folder)?;
    clang_counts::compare_program(profkit, &program, folder)
}
