//! `cargo xtask bench-mip`: measures the costs of MIP on real programs, compared with plain builds and with clang's
//! `-fprofile-generate`.
use super::make::{Real, Toolchain};
use super::packages::Sources;
use super::size::{self, Image};
use super::{fresh, layout, succeed};
use crate::steps::released_profkit;
use anyhow::{Context, Result, bail};
use profkit_testkit::program::MipMode;
use profkit_testkit::{measure, target_folder};
use std::path::{Path, PathBuf};
use std::process::Command;

const HELP: &str = "\
cargo xtask bench-mip [--only PROGRAM]... [--rounds N] [--work N] [--merge] [--layout] [--runtimes] [--all] [--sources FOLDER] [--profkit FILE]

Builds lua 5.4, zstd, re2 and this repository's C++ program (clang-22 -O2; zstd -O3) plain, in modes function, unary
and calls, and with -fprofile-generate (value profiling off) below target/bench-mip, and prints what instrumenting
adds. Times are of user and system together; every round runs every build once, so that a machine that slows down
slows all.
  --only PROGRAM   lua, zstd, re2 or station (default: all); with --runtimes also bzip2, minigzip and lz4
  --rounds N       rounds (default 7)
  --work N         how much each run does (default 8)
  --layout         instead show what mip order and mip use --blocks do (default: to zstd and station)
  --runtimes       instead compare the full and the small runtime, in six programs of Debian
  --merge          also time `mip merge` of 10,000 raw profiles of 10,000 functions beside cat
  --all            all three, with 3 rounds unless --rounds says otherwise
  --sources FOLDER take the .dsc and what it names from here rather than from apt
  --profkit FILE   the command to measure (default: target/dist/profkit, built first)

Example: cargo xtask bench-mip --only lua --rounds 11
";

/// A build that is measured.
struct Variant {
    label: &'static str,
    tools: Toolchain,
}

/// The measurements of one build of a program.
struct Measured {
    label: &'static str,
    image: Image,
    /// The time of each round in seconds.
    times: Vec<f64>,
    /// The size of the raw profile in bytes.
    raw: u64,
}

/// Runs the benchmark.
///
/// # Errors
/// If something does not build or run. A missed target is not an error of the run; the table shows it.
pub fn run(args: &[String]) -> Result<()> {
    let folder = target_folder().join("bench-mip");
    let (mut only, mut rounds, mut work) = (Vec::new(), None, 8u32);
    let (mut merge, mut layouts, mut all, mut runtimes) = (false, false, false, false);
    let (mut profkit, mut given) = (None, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .cloned()
                .with_context(|| format!("{arg} wants a value"))
        };
        match arg.as_str() {
            "--only" => {
                let name = value()?;
                only.push(Real::named(&name).with_context(|| format!("no program {name}"))?);
            }
            "--rounds" => rounds = Some(value()?.parse::<usize>().context("--rounds")?),
            "--work" => work = value()?.parse().context("--work")?,
            "--merge" => merge = true,
            "--layout" => layouts = true,
            "--runtimes" => runtimes = true,
            "--all" => all = true,
            "--sources" => given = Some(PathBuf::from(value()?)),
            "--profkit" => profkit = Some(PathBuf::from(value()?)),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    let rounds = rounds.unwrap_or(if all { 3 } else { 7 });
    if rounds == 0 || work == 0 {
        bail!("--rounds and --work must be at least 1");
    }
    let profkit = match profkit {
        Some(path) => path,
        None => released_profkit()?,
    };
    let chosen = |usual: &[Real]| {
        if only.is_empty() {
            usual.to_vec()
        } else {
            only.clone()
        }
    };
    if merge || all {
        println!("{}", merge_beside_cat(&profkit, &folder)?);
        if only.is_empty() && !all {
            return Ok(());
        }
    }
    let sources = Sources::new(&folder, given);
    if runtimes {
        let folder = folder.join("runtimes");
        for real in chosen(&Real::DEBIAN) {
            let variants = runtime_variants(&profkit)?;
            let measured = program(&variants, &sources, real, rounds, work, &folder)
                .with_context(|| real.name())?;
            print_runtimes(real, &measured)?;
        }
        return Ok(());
    }
    if !layouts {
        for real in chosen(&Real::USUAL) {
            let measured = program(&variants(&profkit)?, &sources, real, rounds, work, &folder)
                .with_context(|| real.name())?;
            print_table(real, &measured)?;
        }
    }
    if layouts || all {
        for real in chosen(&[Real::Zstd, Real::Station]) {
            println!(
                "{}",
                layout::report(&profkit, &sources, real, rounds, &folder)?
            );
        }
    }
    Ok(())
}

fn variants(profkit: &Path) -> Result<Vec<Variant>> {
    let mut all = vec![Variant {
        label: "plain",
        tools: Toolchain::plain("clang-22"),
    }];
    for label in ["function", "unary", "calls"] {
        let mode = MipMode::named(label).context(label)?;
        all.push(Variant {
            label,
            tools: Toolchain::mip("clang-22", profkit, mode),
        });
    }
    let flags = ["-fprofile-generate", "-mllvm", "-disable-vp=true"];
    all.push(Variant {
        label: "clang -fprofile-generate",
        tools: Toolchain::plain("clang-22").with("generate", &flags, &[]),
    });
    Ok(all)
}

/// The builds with each runtime.
fn runtime_variants(profkit: &Path) -> Result<Vec<Variant>> {
    let mut all = vec![Variant {
        label: "plain",
        tools: Toolchain::plain("clang-22"),
    }];
    for (label, mode, runtime) in [
        ("function, full", "function", "full"),
        ("function, small", "function", "small"),
        ("calls, full", "calls", "full"),
        ("calls, small", "calls", "small"),
    ] {
        let mode = MipMode::named(mode).context(mode)?;
        all.push(Variant {
            label,
            tools: Toolchain::mip_with("clang-22", profkit, mode, runtime),
        });
    }
    Ok(all)
}

/// Prints the sizes of each build in bytes, and the time of each build divided by that of the plain build.
fn print_runtimes(real: Real, measured: &[Measured]) -> Result<()> {
    let plain = measured.first().context("nothing was measured")?;
    println!(
        "\n{:<18}{:>10}{:>10}{:>11}{:>10}{:>9}{:>9}{:>9}",
        real.name(),
        "text",
        "data",
        "stripped",
        "",
        "runtime",
        "time min",
        "median"
    );
    for build in measured {
        let per_round = build.times.iter().zip(&plain.times);
        println!(
            "{:<18}{:>10}{:>10}{:>11}{:>+9.2}%{:>9}{:>9.3}{:>9.3}",
            build.label,
            build.image.text,
            build.image.data,
            build.image.stripped,
            (ratio(build.image.stripped, plain.image.stripped) - 1.0) * 100.0,
            build.image.runtime_text,
            minimum(&build.times) / minimum(&plain.times),
            median(per_round.map(|(time, plain)| time / plain).collect()),
        );
    }
    println!("plain: {:.2} s", minimum(&plain.times));
    Ok(())
}

/// Builds and runs one program in all variants, the plain one first.
fn program(
    variants: &[Variant],
    sources: &Sources,
    real: Real,
    rounds: usize,
    work: u32,
    folder: &Path,
) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    let mut lines = Vec::new();
    for (number, variant) in variants.iter().enumerate() {
        let tree = folder.join(real.name()).join(number.to_string());
        let warnings = real.build(sources, &variant.tools, &tree)?;
        if !warnings.is_empty() {
            println!("{} {}: {}", real.name(), variant.label, warnings.join("\n"));
        }
        lines.push(real.workload(&tree, work)?);
        measured.push(Measured {
            label: variant.label,
            image: size::image(&real.executable(&tree))?,
            times: Vec::new(),
            raw: 0,
        });
    }
    // The first round is not measured. It fills the page cache and writes the raw profiles.
    for round in 0..=rounds {
        for (number, of_variant) in lines.iter().enumerate() {
            let mut seconds = 0.0;
            for line in of_variant {
                let raw = folder.join(real.name()).join(format!("{number}.mipraw"));
                let ran = measure(
                    Command::new(&line[0])
                        .args(&line[1..])
                        .env("LLVM_MIP_PROFILE_FILENAME", &raw)
                        .env("LLVM_PROFILE_FILE", raw.with_extension("profraw")),
                )?;
                if !ran.status.success() {
                    bail!("{}: {}", line.join(" "), ran.status);
                }
                seconds += ran.cpu.as_secs_f64();
                measured[number].raw = std::fs::metadata(&raw).map_or(0, |data| data.len());
            }
            if round > 0 {
                measured[number].times.push(seconds);
            }
        }
    }
    Ok(measured)
}

pub(super) fn minimum(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The median of some numbers. If their count is even, the upper of the two middle numbers.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of programs have far fewer than 2^52 bytes"
)]
fn ratio(after: u64, before: u64) -> f64 {
    after as f64 / before as f64
}

#[expect(clippy::cast_precision_loss, reason = "as above")]
fn mean(total: i64, count: i64) -> f64 {
    if count == 0 {
        0.0
    } else {
        total as f64 / count as f64
    }
}

fn print_table(real: Real, measured: &[Measured]) -> Result<()> {
    let [plain, others @ ..] = measured else {
        bail!("nothing was measured");
    };
    println!(
        "\n{}: plain {} bytes stripped, {} of text, {:.2} s",
        real.name(),
        plain.image.stripped,
        plain.image.text,
        minimum(&plain.times)
    );
    println!(
        "{:<26}{:>10}{:>11}{:>11}{:>10}{:>9}{:>9}{:>8}{:>9}{:>9}",
        "",
        "functions",
        "text/func",
        "data/func",
        "stripped",
        "time min",
        "median",
        "relocs",
        "raw",
        "- funcs"
    );
    for other in others {
        let image = &other.image;
        let functions = i64::try_from(image.functions)?;
        let (commonest, gain, gained) = size::gained(&plain.image, image);
        let data = i64::try_from(image.records)?;
        let per_round: Vec<f64> = other
            .times
            .iter()
            .zip(&plain.times)
            .map(|(after, before)| after / before)
            .collect();
        let relocations = i64::try_from(image.dynamic_relocations)?
            - i64::try_from(plain.image.dynamic_relocations)?;
        println!(
            "{:<26}{:>10}{:>11}{:>11.2}{:>+9.2}%{:>9.3}{:>9.3}{:>+8}{:>9}{:>9}",
            other.label,
            functions,
            format!("{commonest}/{:.2}", mean(gain, gained)),
            mean(data, functions),
            (ratio(image.stripped, plain.image.stripped) - 1.0) * 100.0,
            minimum(&other.times) / minimum(&plain.times),
            median(per_round),
            relocations,
            other.raw,
            i64::try_from(other.raw)? - functions,
        );
    }
    Ok(())
}

/// The number of profiles that are merged, and the number of functions of their program.
const MANY: usize = 10_000;

/// Compares `mip merge` of many raw profiles with `cat` of the same files. The two run alternately.
fn merge_beside_cat(profkit: &Path, folder: &Path) -> Result<String> {
    use std::fmt::Write as _;
    let folder = folder.join("merge");
    let raws = folder.join("raws");
    fresh(&raws)?;
    let mut source = String::from("#include <stdlib.h>\n");
    for number in 0..MANY - 1 {
        let _ = writeln!(source, "void f{number}(void) {{}}");
    }
    source.push_str("static void (*const all[])(void) = {\n");
    for number in 0..MANY - 1 {
        let _ = writeln!(source, "f{number},");
    }
    source.push_str(
        "};\nint main(int argc, char **argv) {\n  unsigned seed = (unsigned)atoi(argv[argc - 1]);\n  \
         for (int i = 0; i < 3000; i++) { seed = seed * 1103515245u + 12345u; all[(seed >> 8) % (sizeof all / sizeof *all)](); }\n  return 0;\n}\n",
    );
    let (file, program) = (folder.join("many.c"), folder.join("many"));
    std::fs::write(&file, source)?;
    succeed(
        Command::new(profkit)
            .args([
                "mip",
                "cc",
                "--mode",
                "function",
                "--",
                "clang-22",
                "-O0",
                "-Wl,--build-id",
                "-o",
            ])
            .arg(&program)
            .arg(&file),
    )?;
    let mut list = Vec::new();
    for number in 0..MANY {
        let raw = raws.join(format!("{number}.mipraw"));
        succeed(
            Command::new(&program)
                .arg(number.to_string())
                .env("LLVM_MIP_PROFILE_FILENAME", &raw),
        )?;
        list.push(raw);
    }
    let bytes: u64 = list
        .iter()
        .map(|raw| std::fs::metadata(raw).map_or(0, |data| data.len()))
        .sum();
    let profile = folder.join("many.mip");
    succeed(
        Command::new(profkit)
            .args(["mip", "create", "-p"])
            .arg(&profile)
            .arg(&program),
    )?;
    let empty = std::fs::read(&profile)?;
    let (mut cats, mut merges, mut peak) = (Vec::new(), Vec::new(), 0);
    for _ in 0..7 {
        let cat = measure(
            Command::new("sh")
                .current_dir(&raws)
                .args(["-c", "ls | xargs cat > /dev/null"]),
        )?;
        cats.push(cat.wall.as_secs_f64());
        std::fs::write(&profile, &empty)?;
        let merge = measure(
            Command::new(profkit)
                .current_dir(&raws)
                .args(["mip", "merge", "-p"])
                .arg(&profile)
                .args(list.iter().filter_map(|raw| raw.file_name())),
        )?;
        if !merge.status.success() {
            bail!("mip merge: {}", String::from_utf8_lossy(&merge.stderr));
        }
        merges.push(merge.wall.as_secs_f64());
        peak = peak.max(merge.peak_rss);
    }
    Ok(format!(
        "merge of {MANY} raw profiles of {MANY} functions ({} MiB): cat {:.3} s, mip merge {:.3} s (minima of 7), ratio {:.2}; peak {} MiB",
        bytes >> 20,
        minimum(&cats),
        minimum(&merges),
        minimum(&merges) / minimum(&cats),
        peak >> 20
    ))
}
