//! `cargo xtask mip-fuzz`: compares plain and instrumented builds of generated programs, with many compilers and
//! options.
use super::{clang_counts, fresh};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail};
use profkit_testkit::program::{MIP_MODES, MipMode, Program, Setting, Size, compare};
use profkit_testkit::{Rng, target_folder};
use std::path::{Path, PathBuf};

const HELP: &str = "\
cargo xtask mip-fuzz [--programs N] [--seed S] [--mode MODE]... [--profkit FILE]

Generates C programs, builds each plain and with `profkit mip cc` in every mode under a compiler and options that the
seed chooses, and compares what they print. Of one in four, calls are compared with -fprofile-instr-generate.
What failed stays in target/mip-fuzz.
  --programs N    programs (default 60)
  --seed S        the first seed (default 1)
  --mode MODE     function, unary, block, unary-block, calls, calls-block or calls-returns (default: all)
  --profkit FILE  the command to test (default: the debug build, built first)

Example: cargo xtask mip-fuzz --programs 1 --seed 42 --mode calls
";

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
///
/// # Errors
/// If a program behaves differently when it is instrumented. All programs are tried before this error is returned.
pub fn run(args: &[String]) -> Result<()> {
    let (mut programs, mut first) = (60u64, 1u64);
    let (mut modes, mut profkit): (Vec<MipMode>, Option<PathBuf>) = (Vec::new(), None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .cloned()
                .with_context(|| format!("{arg} wants a value"))
        };
        match arg.as_str() {
            "--programs" => programs = value()?.parse().context("--programs")?,
            "--seed" => first = value()?.parse().context("--seed")?,
            "--mode" => {
                let name = value()?;
                let mode = MipMode::named(&name).with_context(|| format!("no mode {name}"))?;
                modes.push(mode);
            }
            "--profkit" => profkit = Some(value()?.into()),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    if modes.is_empty() {
        modes = MIP_MODES.to_vec();
    }
    let profkit = match profkit {
        Some(path) => path,
        None => built_profkit()?,
    };
    let mut failures = 0u64;
    let mut counted = 0u64;
    for seed in first..first + programs {
        let folder = target_folder().join(format!("mip-fuzz/{seed}"));
        fresh(&folder)?;
        let setting = setting_of(seed);
        let made = one(&profkit, seed, &setting, &modes, &folder);
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
    if !seed.is_multiple_of(4) || !modes.iter().any(|mode| mode.counts_calls()) {
        return Ok(0);
    }
    clang_counts::compare_program(profkit, &program, folder)
}
