//! `cargo xtask mip-compare`: what MIP costs beside clang's other kinds of instrumentation, on eight programs. It prints a
//! table for each.
use super::make::{Real, Toolchain};
use super::packages::Sources;
use super::succeed;
use crate::steps::built_profkit;
use anyhow::{Context, Result};
use object::{Object, ObjectSection, SectionFlags};
use profkit_testkit::{measure, repo_root, target_folder};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const COMPILER: &str = "clang-22";

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The programs [default: all]
    #[arg(long)]
    only: Vec<Real>,
    /// How often each program is run; the medians are printed
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// How long the programs run
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Only build the programs; a later call runs what is built
    #[arg(long)]
    build: bool,
}

/// A kind of instrumentation.
struct Kind {
    name: &'static str,
    /// The options of `profkit mip cc`; `None` if the compiler is clang alone.
    mip: Option<&'static str>,
    flags: &'static [&'static str],
    /// Whether the program needs the functions of `hooks.c`.
    hooks: bool,
}

const fn mip(name: &'static str, options: &'static str) -> Kind {
    Kind {
        name,
        mip: Some(options),
        flags: &[],
        hooks: false,
    }
}

const fn clang(name: &'static str, flags: &'static [&'static str], hooks: bool) -> Kind {
    Kind {
        name,
        mip: None,
        flags,
        hooks,
    }
}

const KINDS: &[Kind] = &[
    clang("plain", &[], false),
    mip("MIP, functions", "--mode function"),
    mip("MIP, calls and order", "--mode calls"),
    mip("MIP, call edges", "--mode calls --return-addresses 4096"),
    mip("MIP, blocks", "--mode function,block"),
    clang("`-fprofile-generate`", &["-fprofile-generate"], false),
    clang(
        "`-fcs-profile-generate`, no values",
        &["-fcs-profile-generate", "-mllvm", "-disable-vp=true"],
        false,
    ),
    clang(
        "`-pgo-block-coverage`",
        &["-fprofile-generate", "-mllvm", "-pgo-block-coverage"],
        false,
    ),
    clang(
        "`-fsanitize-coverage=func,inline-8bit-counters`",
        &["-fsanitize-coverage=func,inline-8bit-counters"],
        true,
    ),
    clang(
        "`-fsanitize-coverage=func,inline-bool-flag`",
        &["-fsanitize-coverage=func,inline-bool-flag"],
        true,
    ),
    clang(
        "`-finstrument-function-entry-bare`",
        &["-finstrument-function-entry-bare"],
        true,
    ),
    clang(
        "XRay",
        &["-fxray-instrument", "-fxray-instruction-threshold=1"],
        false,
    ),
];

/// The sizes of a program, and what its runs took.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    text: u64,
    data: u64,
    bss: u64,
    relocations: u64,
    /// The file as it is shipped: without symbols, debug info and the map.
    shipped: u64,
    seconds: f64,
    memory: u64,
    profile: u64,
}

/// Builds and measures all programs.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = target_folder().join("mip-compare");
    std::fs::create_dir_all(&folder)?;
    let sources = Sources::new(&target_folder().join("mip-programs"));
    let profkit = built_profkit()?;
    let hooks = folder.join("hooks.o");
    succeed(
        Command::new(COMPILER)
            .args(["-O2", "-fPIC", "-c"])
            .arg(repo_root().join("tests/programs/mip/hooks.c"))
            .arg("-o")
            .arg(&hooks),
    )?;
    let only = if arguments.only.is_empty() {
        &Real::ALL
    } else {
        &arguments.only[..]
    };
    for &real in only {
        let mut trees = Vec::new();
        for (number, kind) in KINDS.iter().enumerate() {
            let tree = folder.join(format!("{}-{number}", real.name()));
            if !real.executable(&tree).is_file() {
                build(real, kind, &sources, &profkit, &hooks, &tree)
                    .with_context(|| format!("{}: {}", real.name(), kind.name))?;
            }
            trees.push(tree);
        }
        if !arguments.build {
            let figures = figures(real, &trees, arguments)?;
            println!("{}", table(real, &figures));
        }
    }
    Ok(())
}

fn build(
    real: Real,
    kind: &Kind,
    sources: &Sources,
    profkit: &Path,
    hooks: &Path,
    tree: &Path,
) -> Result<()> {
    let tools = match kind.mip {
        Some(options) => Toolchain::mip_with(COMPILER, profkit, kind.name, options),
        None => Toolchain::plain(COMPILER),
    };
    let hooks = hooks.display().to_string();
    let more: &[&str] = if kind.hooks { &[&hooks] } else { &[] };
    let tools = tools.with(kind.name, kind.flags, more);
    let partly = tree.with_extension("partly");
    real.build(sources, &tools, &partly)?;
    if tree.exists() {
        std::fs::remove_dir_all(tree)?;
    }
    std::fs::rename(&partly, tree)?;
    Ok(())
}

fn figures(real: Real, trees: &[PathBuf], arguments: &Arguments) -> Result<Vec<Figures>> {
    let mut all = trees
        .iter()
        .map(|tree| sizes(&real.executable(tree)))
        .collect::<Result<Vec<Figures>>>()?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); trees.len()];
    // Each round runs every build once, so that what else the machine does hits all alike.
    for _ in 0..arguments.runs {
        for ((tree, figures), times) in trees.iter().zip(&mut all).zip(&mut times) {
            let raws = tree.join("raws");
            super::fresh(&raws)?;
            let mut seconds = 0.0;
            for words in real.workload(tree, arguments.rounds)? {
                // GNU time is small, so the memory that it reports is the program's own. In what this process could
                // report, its own memory is the least.
                let peak = tree.join("peak");
                let mut command = Command::new("time");
                command
                    .args(["-f", "%M", "-o"])
                    .arg(&peak)
                    .args(&words)
                    .current_dir(tree)
                    .env("LLVM_MIP_PROFILE_FILENAME", raws.join("%m.mipraw"))
                    .env("LLVM_PROFILE_FILE", raws.join("%m.profraw"));
                let made = measure(&mut command)?;
                anyhow::ensure!(made.status.success(), "{command:?}: {}", made.status);
                seconds += made.cpu.as_secs_f64();
                let kib: u64 = std::fs::read_to_string(&peak)?.trim().parse()?;
                figures.memory = figures.memory.max(kib * 1024);
            }
            times.push(seconds);
            figures.profile = std::fs::read_dir(&raws)?
                .map(|raw| Ok(raw?.metadata()?.len()))
                .sum::<Result<u64>>()?;
        }
    }
    for (figures, times) in all.iter_mut().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        figures.seconds = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
    }
    Ok(all)
}

/// The sizes in the program as it is shipped.
fn sizes(program: &Path) -> Result<Figures> {
    let stripped = program.with_extension("stripped");
    succeed(
        Command::new("llvm-strip-22")
            .arg("-o")
            .arg(&stripped)
            .arg(program),
    )?;
    let bytes = std::fs::read(&stripped)?;
    let file = object::File::parse(&*bytes)?;
    let mut figures = Figures {
        shipped: bytes.len() as u64,
        ..Figures::default()
    };
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            continue;
        };
        let has = |flag| sh_flags.contains(flag);
        let name = section.name()?;
        let size = section.size();
        if !has(object::elf::SHF_ALLOC) {
            continue;
        }
        if has(object::elf::SHF_EXECINSTR) {
            figures.text += size;
        } else if name.starts_with(".rel") {
            figures.relocations += size;
        } else if has(object::elf::SHF_WRITE) {
            match section.kind() {
                object::SectionKind::UninitializedData | object::SectionKind::UninitializedTls => {
                    figures.bss += size;
                }
                _ => figures.data += size,
            }
        }
    }
    Ok(figures)
}

/// A table in Markdown.
fn table(real: Real, all: &[Figures]) -> String {
    let plain = all.first().copied().unwrap_or_default();
    let mut text = format!(
        "### {}: {:.2} s, {:.1} MB of memory\n\n",
        real.name(),
        plain.seconds,
        plain.memory as f64 / 1e6
    );
    text += "| instrumentation | time | file | .text | .data | .bss | relocations | memory | profile |\n";
    text += "|---|---|---|---|---|---|---|---|---|\n";
    let more = |now: u64, before: u64| {
        let share = 100.0 * (now as f64 / before.max(1) as f64 - 1.0);
        format!("{share:+.1} %")
    };
    for (kind, figures) in KINDS.iter().zip(all) {
        let is_plain = std::ptr::eq(kind, &KINDS[0]);
        let of = |now: u64, before: u64| match is_plain {
            true => now.to_string(),
            false => more(now, before),
        };
        let bytes = |now: u64, before: u64| match is_plain {
            true => now.to_string(),
            false => format!("{:+}", now as i64 - before as i64),
        };
        let _ = writeln!(
            text,
            "| {} | {:.2} × | {} | {} | {} | {} | {} | {} | {} |",
            kind.name,
            figures.seconds / plain.seconds,
            of(figures.shipped, plain.shipped),
            of(figures.text, plain.text),
            bytes(figures.data, plain.data),
            bytes(figures.bss, plain.bss),
            bytes(figures.relocations, plain.relocations),
            of(figures.memory, plain.memory),
            figures.profile
        );
    }
    text
}
