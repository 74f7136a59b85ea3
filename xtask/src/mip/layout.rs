//! Measures how `mip order` and `mip use --blocks` change real programs: the pages at a cold start, the size of the hot
//! text, and the time.
use super::make::{Real, Toolchain};
use super::packages::Sources;
use super::{fresh, mip_profile, raws_in, succeed};
use anyhow::{Context, Result, bail};
use object::{Object as _, ObjectSection as _, ObjectSegment as _};
use profkit_testkit::program::MipMode;
use profkit_testkit::{PAGE, evict, measure, resident};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of rounds of work in each timed run. The run then takes seconds, so that noise at its start does not
/// matter.
const WORK: u32 = 8;

/// One way to lay out a program: options for the compiler and for the linker.
struct Layout {
    label: &'static str,
    compile: Vec<String>,
    link: Vec<String>,
}

/// The figures of a layout.
#[derive(Default)]
struct Shown {
    major: Vec<f64>,
    minor: Vec<f64>,
    text_pages: Vec<f64>,
    times: Vec<f64>,
    hot: u64,
    cold: u64,
}

/// Trains one program, lays it out in several ways, and measures it.
///
/// # Errors
/// If something does not build or run, or the program's own tests fail when it is laid out.
pub fn report(
    profkit: &Path,
    sources: &Sources,
    real: Real,
    rounds: usize,
    folder: &Path,
) -> Result<String> {
    let place = folder.join(format!("{}-layout", real.name()));
    fresh(&place)?;
    let (order, clusters, said) = train(profkit, sources, real, &place)?;
    let split = "-Wl,-z,keep-text-section-prefix";
    let ordering = format!(
        "-Wl,--symbol-ordering-file={},--no-warn-symbol-ordering",
        order.display()
    );
    let layouts = [
        Layout {
            label: "as compiled",
            compile: Vec::new(),
            link: vec![split.to_owned()],
        },
        Layout {
            label: "mip order",
            compile: Vec::new(),
            link: vec![split.to_owned(), ordering.clone()],
        },
        Layout {
            label: "order and use --blocks",
            compile: vec![format!(
                "-fbasic-block-sections=list={}",
                clusters.display()
            )],
            link: vec![split.to_owned(), ordering],
        },
    ];
    let mut programs = Vec::new();
    for (number, layout) in layouts.iter().enumerate() {
        let mut flags: Vec<&str> = vec!["-ffunction-sections"];
        flags.extend(layout.compile.iter().map(String::as_str));
        let mut link: Vec<&str> = vec!["--ld-path=/usr/bin/ld.lld-22"];
        link.extend(layout.link.iter().map(String::as_str));
        let tools = Toolchain::plain("clang-22").with(layout.label, &flags, &link);
        let tree = place.join(number.to_string());
        real.build(sources, &tools, &tree).context(layout.label)?;
        // The last layout uses both the order and the list of blocks. With it, the program's own tests are run.
        if number + 1 == layouts.len() {
            let raws = place.join("unused-raws");
            std::fs::create_dir_all(&raws)?;
            let done = real
                .test(&tools, &tree, &raws, None, false)
                .context(layout.label)?;
            println!(
                "{} {}: passed {}",
                real.name(),
                layout.label,
                done.join(", ")
            );
        }
        programs.push((
            real.executable(&tree),
            start_lines(real, &tree)?,
            real.workload(&tree, WORK)?,
        ));
    }
    let mut shown: Vec<Shown> = layouts.iter().map(|_| Shown::default()).collect();
    for round in 0..=rounds {
        for ((program, start, work), shown) in programs.iter().zip(&mut shown) {
            one_round(program, start, work, shown, round > 0)?;
        }
    }
    let mut text = format!("{} at start-up, from its profile: {said}\n", real.name());
    text.push_str(&format!(
        "{:<26}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}{:>9}\n",
        real.name(),
        "major",
        "text pages",
        "minor warm",
        "hot text",
        "cold text",
        "time min",
        "median"
    ));
    let base = shown[0].times.clone();
    for (layout, shown) in layouts.iter().zip(shown) {
        let ratios = shown
            .times
            .iter()
            .zip(&base)
            .map(|(time, base)| time / base);
        text.push_str(&format!(
            "{:<26}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10.3}{:>9.3}\n",
            layout.label,
            super::bench::median(shown.major),
            super::bench::median(shown.text_pages),
            super::bench::median(shown.minor),
            shown.hot,
            shown.cold,
            super::bench::minimum(&shown.times) / super::bench::minimum(&base),
            super::bench::median(ratios.collect()),
        ));
    }
    Ok(text)
}

/// Returns the order file, the list of blocks, and the text that `mip order` and `mip use` print.
fn train(
    profkit: &Path,
    sources: &Sources,
    real: Real,
    place: &Path,
) -> Result<(PathBuf, PathBuf, String)> {
    let mode = MipMode::named("calls-block").context("a mode")?;
    let tools = Toolchain::mip("clang-22", profkit, mode).with(
        "train",
        &["-fbasic-block-address-map"],
        &[],
    );
    let tree = place.join("train");
    real.build(sources, &tools, &tree)?;
    let binary = real.executable(&tree);
    let profile_of = |what: &str, lines: &[Vec<String>]| -> Result<PathBuf> {
        let raws = place.join(format!("{what}-raws"));
        fresh(&raws)?;
        for (number, line) in lines.iter().enumerate() {
            succeed(Command::new(&line[0]).args(&line[1..]).env(
                "LLVM_MIP_PROFILE_FILENAME",
                raws.join(format!("{number}.mipraw")),
            ))?;
        }
        let profile = place.join(format!("{what}.mip"));
        mip_profile(profkit, &binary, &raws_in(&raws)?, &profile)?;
        Ok(profile)
    };
    let start = start_lines(real, &tree)?;
    let mut all = real.workload(&tree, 1)?;
    all.extend(start.clone());
    let order = place.join("order.txt");
    let made = Command::new(profkit)
        .args(["mip", "order"])
        .arg(profile_of("start", &start)?)
        .arg("-o")
        .arg(&order)
        .output()?;
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    if !made.status.success() {
        bail!("mip order: {said}");
    }
    let clusters = place.join("clusters.txt");
    let made = Command::new(profkit)
        .args(["mip", "use", "--blocks"])
        .arg(profile_of("all", &all)?)
        .arg(&binary)
        .arg("-o")
        .arg(&clusters)
        .output()?;
    let blocks = String::from_utf8_lossy(&made.stderr).into_owned();
    if !made.status.success() {
        bail!("mip use --blocks: {blocks}");
    }
    Ok((
        order,
        clusters,
        format!("{}\n{}", said.trim_end(), blocks.trim_end()),
    ))
}

/// Command lines that start the program with little work to do.
fn start_lines(real: Real, tree: &Path) -> Result<Vec<Vec<String>>> {
    let program = real.executable(tree).display().to_string();
    let words: Vec<String> = match real {
        Real::Station => vec!["start".to_owned()],
        Real::Zstd => {
            let small = tree.with_extension("small");
            std::fs::write(&small, super::corpus(3000))?;
            vec![
                "-q".to_owned(),
                "-f".to_owned(),
                small.display().to_string(),
                "-o".to_owned(),
                tree.with_extension("out").display().to_string(),
            ]
        }
        Real::Lua => vec!["-v".to_owned()],
        Real::Re2 => vec!["1".to_owned()],
        Real::Bzip2 | Real::Minigzip | Real::Lz4 => vec!["-h".to_owned()],
    };
    Ok(vec![[vec![program], words].concat()])
}

fn one_round(
    program: &Path,
    start: &[Vec<String>],
    work: &[Vec<String>],
    shown: &mut Shown,
    counts: bool,
) -> Result<()> {
    let (text, hot, cold) = text_of(program)?;
    let run = |line: &[String]| -> Result<profkit_testkit::Measured> {
        let ran = measure(Command::new(&line[0]).args(&line[1..]))?;
        if !ran.status.success() {
            bail!("{}: {}", line.join(" "), ran.status);
        }
        Ok(ran)
    };
    for line in start {
        evict(program)?;
        let cold_run = run(line)?;
        let pages = resident(program)?;
        let of_text = pages.get(text.clone()).context("text is in the file")?;
        let warm_run = run(line)?;
        if counts {
            shown.major.push(number(cold_run.major_faults));
            shown
                .text_pages
                .push(number(of_text.iter().filter(|page| **page).count() as u64));
            shown.minor.push(number(warm_run.minor_faults));
        }
    }
    let mut seconds = 0.0;
    for line in work {
        seconds += run(line)?.cpu.as_secs_f64();
    }
    if counts {
        shown.times.push(seconds);
    }
    (shown.hot, shown.cold) = (hot, cold);
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of pages have far fewer than 2^52"
)]
fn number(count: u64) -> f64 {
    count as f64
}

/// Returns the pages of a file that are mapped as executable, the size of the hot text, and the size of the text that
/// was split off.
fn text_of(program: &Path) -> Result<(Range<usize>, u64, u64)> {
    let bytes = std::fs::read(program)?;
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes)?;
    let mut pages = None;
    for segment in file.segments() {
        let object::SegmentFlags::Elf { p_flags, .. } = segment.flags() else {
            continue;
        };
        if p_flags.contains(object::elf::PF_X) {
            let (start, size) = segment.file_range();
            let first = usize::try_from(start / PAGE)?;
            pages = Some(first..usize::try_from((start + size).div_ceil(PAGE))?);
        }
    }
    let (mut hot, mut cold) = (0, 0);
    for section in file.sections() {
        match section.name()? {
            ".text.split" | ".text.unlikely" => cold += section.size(),
            name if name.starts_with(".text") => hot += section.size(),
            _ => {}
        }
    }
    Ok((pages.context("no executable segment")?, hot, cold))
}
