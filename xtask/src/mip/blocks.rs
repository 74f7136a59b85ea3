//! Measures what block coverage costs in real programs, beside a plain build and clang's `-pgo-block-coverage`.
use super::make::{Real, Toolchain};
use super::packages::Sources;
use super::{fresh, succeed};
use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection};
use profkit_testkit::program::MipMode;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// How often one measurement repeats the workload: the shell counts hundredths of a second.
const ROUNDS: u32 = 8;

/// The sections with the bytes of blocks: MIP's and clang's.
const COVERAGE: [&str; 2] = [profkit_abi::mip::section::RECORDS, "__llvm_prf_cnts"];

/// Builds a program plain, with MIP's blocks and with clang's, and runs its workload `runs` times each in turn. Returns
/// the numbers of probes, the growth of the stripped file and the user time, each beside its wanted value.
pub fn measure(
    profkit: &Path,
    sources: &Sources,
    folder: &Path,
    real: Real,
    runs: usize,
) -> Result<String> {
    let place = folder.join(format!("{}-blocks", real.name()));
    fresh(&place)?;
    let block = MipMode::named("block").context("a mode")?;
    let tools = [
        Toolchain::plain("clang-22"),
        Toolchain::mip("clang-22", profkit, block),
        Toolchain::plain("clang-22").with(
            "pgo",
            &["-fprofile-generate", "-mllvm", "-pgo-block-coverage"],
            &[],
        ),
    ];
    let (mut probes, mut sizes, mut trees) = (Vec::new(), Vec::new(), Vec::new());
    for tools in tools {
        let tree = place.join(tools.label.replace(' ', "-"));
        real.build(sources, &tools, &tree)?;
        let program = real.executable(&tree);
        probes.push(stores(&program)?);
        let stripped = place.join("stripped");
        succeed(
            Command::new("llvm-strip-22")
                .arg("-o")
                .arg(&stripped)
                .arg(&program),
        )?;
        sizes.push(std::fs::metadata(&stripped)?.len());
        trees.push(tree);
    }
    let mut times = vec![Vec::new(); trees.len()];
    for _ in 0..runs {
        for (tree, times) in trees.iter().zip(&mut times) {
            let mut seconds = 0.0;
            for line in real.workload(tree, ROUNDS)? {
                seconds += user_seconds(&line, &place)?;
            }
            times.push(seconds);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let ([_, ours, theirs], [plain, made, _], [before, after, other]) =
        (probes.as_slice(), sizes.as_slice(), medians.as_slice())
    else {
        bail!("three builds were made");
    };
    std::fs::remove_dir_all(&place)?;
    // Sizes and counts are far below the 52 bits that a floating-point number keeps.
    #[allow(clippy::cast_precision_loss)]
    let (growth, most) = (
        (*made as f64 / *plain as f64 - 1.0) * 100.0,
        *theirs as f64 * 1.05,
    );
    Ok(format!(
        "{ours} probes (wanted: at most {most:.0}, clang has {theirs}); file {growth:+.1} % (wanted: at most +12 %); time × {:.3} \
         (wanted: at most 1.05; clang × {:.3}), medians of {runs}",
        after / before,
        other / before
    ))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The user time of a command, from the shell's `times`.
fn user_seconds(line: &[String], folder: &Path) -> Result<f64> {
    let script = "\"$@\" > /dev/null || exit; times";
    let said = succeed(
        Command::new("sh")
            .args(["-c", script, "sh"])
            .args(line)
            .env("LLVM_MIP_PROFILE_FILENAME", folder.join("time.mipraw"))
            .env("LLVM_PROFILE_FILE", folder.join("time.profraw")),
    )?;
    // The second line is that of the children: `0m1.250000s 0m0.010000s`.
    let user = said.lines().nth(1).and_then(|line| line.split('s').next());
    let parts = user.and_then(|user| user.split_once('m'));
    let (minutes, seconds) = parts.with_context(|| format!("the shell's times: {said}"))?;
    Ok(minutes.parse::<f64>()? * 60.0 + seconds.parse::<f64>()?)
}

/// The number of instructions that store into the coverage of blocks.
fn stores(program: &Path) -> Result<usize> {
    let bytes = std::fs::read(program).with_context(|| program.display().to_string())?;
    let file = object::File::parse(&*bytes)?;
    let ranges: Vec<Range<u64>> = COVERAGE
        .iter()
        .filter_map(|name| file.section_by_name(name))
        .map(|section| section.address()..section.address() + section.size())
        .collect();
    let code = succeed(
        Command::new("llvm-objdump-22")
            .args(["-d", "--no-show-raw-insn", "--no-leading-addr"])
            .arg(program),
    )?;
    let target = |line: &str| {
        let (_, address) = line.split_once("# 0x")?;
        let digits = address.split(' ').next()?;
        u64::from_str_radix(digits, 16).ok()
    };
    let is_probe = |line: &&str| {
        line.contains("movb\t$0x0")
            && target(line).is_some_and(|at| ranges.iter().any(|range| range.contains(&at)))
    };
    Ok(code.lines().filter(is_probe).count())
}
