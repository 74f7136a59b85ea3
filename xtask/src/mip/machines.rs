//! `cargo xtask mip-fuzz --machine NAME`: generated programs for machines that qemu runs. Plain and instrumented builds must
//! behave alike; builds in different modes must count the same calls; blocks that are inferred must be those that a build with
//! a probe in each block records.
use super::fuzz::{Arguments, is_left_by_longjmp};
use super::{edges, fresh, mip_profile, succeed};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail};
use profkit_testkit::program::{MIP_MODES, MipMode, Outcome, Program, Setting, Size};
use profkit_testkit::{Rng, measure, target_folder};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine that qemu runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Machine {
    Aarch64,
    /// 32-bit Arm, A32.
    Arm,
    /// 32-bit Arm, T32.
    Thumb,
}

impl Machine {
    fn clang(self) -> &'static [&'static str] {
        match self {
            Machine::Aarch64 => &["--target=aarch64-linux-gnu", "-fuse-ld=lld-22"],
            Machine::Arm => &["--target=armv7-linux-gnueabihf", "-marm", "-fuse-ld=lld-22"],
            Machine::Thumb => &[
                "--target=armv7-linux-gnueabihf",
                "-mthumb",
                "-fuse-ld=lld-22",
            ],
        }
    }

    fn gcc(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Machine::Aarch64 => ("aarch64-linux-gnu-gcc-12", &[]),
            Machine::Arm => ("arm-linux-gnueabihf-gcc-12", &["-marm"]),
            Machine::Thumb => ("arm-linux-gnueabihf-gcc-12", &["-mthumb"]),
        }
    }

    fn qemu(self) -> (&'static str, &'static str) {
        match self {
            Machine::Aarch64 => ("qemu-aarch64", "/usr/aarch64-linux-gnu"),
            Machine::Arm | Machine::Thumb => ("qemu-arm", "/usr/arm-linux-gnueabihf"),
        }
    }

    fn is_64_bit(self) -> bool {
        self == Machine::Aarch64
    }
}

/// Options that change the form of the assembly, for both compilers.
const EXTRAS: [&[&str]; 8] = [
    &[],
    &["-g"],
    &[
        "-ffunction-sections",
        "-fdata-sections",
        "-Wl,--gc-sections",
    ],
    &["-fno-omit-frame-pointer"],
    &["-fstack-protector-all"],
    &["-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"],
    &["-save-temps=obj"],
    &["-fno-jump-tables"],
];

fn setting_of(seed: u64, machine: Machine) -> Setting {
    let mut rng = Rng::new(seed ^ 0x6d61_6368);
    let release = [Some("clang-22"), None, Some("clang-16"), None][rng.below(4)];
    let (compiler, own) = match release {
        Some(clang) => (clang, machine.clang()),
        None => machine.gcc(),
    };
    let mut flags = vec![["-O0", "-O1", "-O2", "-O3", "-Os"][rng.below(5)]];
    flags.extend(own);
    flags.extend(if rng.below(2) == 0 {
        ["-fno-pie", "-no-pie"]
    } else {
        ["-fPIE", "-pie"]
    });
    flags.extend(EXTRAS[rng.below(EXTRAS.len())]);
    Setting {
        compiler: compiler.into(),
        flags: flags.into_iter().map(str::to_owned).collect(),
    }
}

/// What `timeout` returns: the program is too slow for qemu.
const TIMED_OUT: i32 = 124;

fn outcome(machine: Machine, program: &Path, raw: &Path) -> Result<Outcome> {
    let (qemu, libraries) = machine.qemu();
    let ran = measure(
        Command::new("timeout")
            .args(["60", qemu, "-L", libraries])
            .arg(program)
            .env("LLVM_MIP_PROFILE_FILENAME", raw),
    )
    .with_context(|| qemu.to_owned())?;
    Ok(Outcome {
        code: ran.code(),
        stdout: String::from_utf8_lossy(&ran.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&ran.stderr).into_owned(),
    })
}

/// What a profile says of the functions of each name, in the order of their counts and blocks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    calls: BTreeMap<String, Vec<u64>>,
    blocks: BTreeMap<String, Vec<Vec<bool>>>,
}

fn seen(profkit: &Path, program: &Path, raw: PathBuf, profile: &Path) -> Result<Seen> {
    mip_profile(profkit, program, &[raw], profile)?;
    let text = succeed(
        Command::new(profkit)
            .args(["mip", "show", "--format", "json", "-p"])
            .arg(profile),
    )?;
    let json: serde_json::Value = serde_json::from_str(&text).context("mip show's JSON")?;
    let mut seen = Seen::default();
    for function in json["functions"].as_array().context("functions")? {
        let name = function["function"].as_str().context("a name")?.to_owned();
        if let Some(calls) = function["calls"].as_u64() {
            seen.calls.entry(name.clone()).or_default().push(calls);
        }
        let blocks = function["blocks"].as_array().context("blocks")?;
        let entered = function["called_runs"].as_u64().context("called_runs")? > 0;
        let ran = blocks.iter().map(|block| block["runs"].as_u64() > Some(0));
        let all = std::iter::once(entered).chain(ran).collect();
        if !is_left_by_longjmp(&name) {
            seen.blocks.entry(name).or_default().push(all);
        }
    }
    for calls in seen.calls.values_mut() {
        calls.sort_unstable();
    }
    for blocks in seen.blocks.values_mut() {
        blocks.sort_unstable();
    }
    Ok(seen)
}

/// A build with a probe in each block, with which the builds that infer blocks are compared.
const ALL_BLOCKS: MipMode = MipMode {
    name: "all-blocks",
    arguments: &["--mode", "calls,block", "--all-blocks"],
};

fn one(
    profkit: &Path,
    seed: u64,
    machine: Machine,
    modes: &[MipMode],
    folder: &Path,
) -> Result<bool> {
    let mut rng = Rng::new(seed);
    let size = Size {
        files: 1 + rng.below(4),
        functions: 2 + rng.below(8),
    };
    let program = Program::generate(seed, size);
    let is_wide = |(_, text): &(String, String)| text.contains("__int128");
    if !machine.is_64_bit() && program.sources().iter().any(is_wide) {
        return Ok(false);
    }
    let setting = setting_of(seed, machine);
    let sources = program.write_to(folder)?;
    let plain = folder.join("plain");
    setting.build(None, folder, &sources, &plain)?;
    let expected = outcome(machine, &plain, &folder.join("plain.mipraw"))?;
    if expected.code == Some(TIMED_OUT) {
        return Ok(false);
    }
    let build = |mode: MipMode| -> Result<Seen> {
        let made = folder.join(mode.name);
        let raw = folder.join(format!("{}.mipraw", mode.name));
        setting.build(Some((profkit, mode)), folder, &sources, &made)?;
        let got = outcome(machine, &made, &raw)?;
        if got != expected {
            bail!(
                "mode {}: the instrumented program behaves differently\nplain: {expected:?}\ninstrumented: {got:?}",
                mode.name
            );
        }
        seen(
            profkit,
            &made,
            raw,
            &folder.join(format!("{}.mip", mode.name)),
        )
    };
    let all = build(ALL_BLOCKS)?;
    for mode in modes {
        let seen = build(*mode)?;
        if mode.has_call_edges() {
            edges::check_sums(profkit, folder, *mode)?;
        }
        if mode.counts_calls() && seen.calls != all.calls {
            bail!(
                "mode {}: other counts of calls\n{:?}\n{:?}",
                mode.name,
                seen.calls,
                all.calls
            );
        }
        if mode.arguments.iter().any(|word| word.contains("block")) && seen.blocks != all.blocks {
            bail!(
                "mode {}: other blocks ran\n{:?}\n{:?}",
                mode.name,
                seen.blocks,
                all.blocks
            );
        }
    }
    Ok(true)
}

/// Runs the test for the machine that the arguments name.
pub fn run(arguments: &Arguments, machine: Machine) -> Result<()> {
    let modes = if arguments.mode.is_empty() {
        &MIP_MODES
    } else {
        &arguments.mode[..]
    };
    let profkit = built_profkit()?;
    let (mut failed, mut tested) = (0u64, 0u64);
    for seed in arguments.seed..arguments.seed + arguments.programs {
        let folder = target_folder().join(format!("mip-fuzz/{machine:?}-{seed}"));
        fresh(&folder)?;
        match one(&profkit, seed, machine, modes, &folder) {
            Ok(was_tested) => {
                tested += u64::from(was_tested);
                std::fs::remove_dir_all(&folder)?;
            }
            Err(error) => {
                failed += 1;
                println!(
                    "seed {seed}, {machine:?}, {}: {error:#}\n",
                    setting_of(seed, machine).describe()
                );
            }
        }
    }
    println!("{machine:?}: {tested} programs behave alike in all modes, {failed} failed");
    if failed > 0 {
        bail!("{failed} programs failed");
    }
    Ok(())
}
