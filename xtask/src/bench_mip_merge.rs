//! `cargo xtask bench-mip-merge`: compares `profkit mip merge` of 10,000 raw files with 10,000 functions each to `cat`
//! of the same files. The two run alternately, and their times are given as a ratio. The memory of the merge is
//! measured too.
use crate::steps::released_profkit;
use anyhow::{Context, Result, ensure};
use profkit_testkit::mip::{CALLS, COVERAGE, MipFunction, MipImage};
use profkit_testkit::{Rng, measure, target_folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const FUNCTIONS: usize = 10_000;
const FILES: usize = 10_000;
const ROUNDS: usize = 5;
/// The target: the smallest speed of the merge, as a share of the speed of `cat`.
const WANTED: f64 = 1.0 / 3.0;

/// Makes the files below `target/bench-mip-merge` (about 900 MB, kept), measures, and prints a table.
pub fn run(_arguments: &[String]) -> Result<()> {
    let profkit = released_profkit()?;
    println!("| records | bytes | cat, ms | merge, ms | speed of cat | wanted | peak MiB |");
    println!("|---|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for (name, modes) in [("calls", CALLS), ("coverage", COVERAGE)] {
        let folder = target_folder().join("bench-mip-merge").join(name);
        let bytes = inputs(&folder, modes)?;
        let (cat, merge, peak) = rounds(&folder, &profkit)?;
        let ratio = cat.as_secs_f64() / merge.as_secs_f64();
        println!(
            "| {name} | {bytes} | {:.0} | {:.0} | {ratio:.2} | {WANTED:.2} | {:.1} |",
            cat.as_secs_f64() * 1e3,
            merge.as_secs_f64() * 1e3,
            mib(peak),
        );
        if ratio < WANTED {
            missed.push(name);
        }
    }
    ensure!(missed.is_empty(), "slower than promised: {missed:?}");
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a resident set has far fewer than 2^52 bytes"
)]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Writes a map, and raw files in which two thirds of the functions were called. Returns the total size of the raw
/// files.
fn inputs(folder: &Path, modes: u16) -> Result<u64> {
    let raw = folder.join("raw");
    let done = folder.join("done");
    let functions =
        (0..FUNCTIONS).map(|index| MipFunction::new(format!("function_{index}"), modes, 0));
    let image = MipImage::new(&[0x5a; 20], functions.collect());
    if !done.is_file() {
        fs::create_dir_all(&raw)?;
        fs::write(folder.join("map.mipmap"), image.map().finish())?;
        let mut rng = Rng::new(1);
        let called: Vec<_> = (0..FUNCTIONS)
            .filter(|_| rng.below(3) > 0)
            .map(|index| {
                let ordinal = u32::try_from(index + 1).unwrap_or(1);
                (index, ordinal % 1000 + 1, ordinal)
            })
            .collect();
        let mut records = image.run(&called);
        for file in 0..FILES {
            // The runs differ: each file has one more called function than the file before.
            let changed = image.layout().0.get(file % FUNCTIONS).copied().unwrap_or(0);
            if let Some(byte) = records.get_mut(changed) {
                *byte = 0;
            }
            fs::write(raw.join(format!("{file:05}.mipraw")), image.raw(&records))?;
        }
        fs::write(&done, "")?;
    }
    let size = image.raw(&image.records()).len() as u64;
    Ok(size * FILES as u64)
}

/// Returns the best time of `cat`, the best time of the merge, and the peak memory of the merge.
fn rounds(folder: &Path, profkit: &Path) -> Result<(Duration, Duration, u64)> {
    let profile: PathBuf = folder.join("out.mip");
    let (mut cat, mut merge, mut peak) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..ROUNDS {
        let mut command = Command::new("sh");
        command
            .current_dir(folder)
            .args(["-c", "cat raw/* > /dev/null"]);
        let measured = measure(&mut command).context("cat")?;
        ensure!(measured.status.success(), "cat: {}", measured.status);
        cat = cat.min(measured.wall);
        if profile.exists() {
            fs::remove_file(&profile)?;
        }
        let mut command = Command::new(profkit);
        command
            .current_dir(folder)
            .args(["mip", "merge", "-q", "-p", "out.mip"]);
        let measured = measure(command.args(["--binary", "map.mipmap", "raw"]))?;
        ensure!(
            measured.status.success(),
            "{}",
            String::from_utf8_lossy(&measured.stderr)
        );
        merge = merge.min(measured.wall);
        peak = measured.peak_rss;
    }
    Ok((cat, merge, peak))
}
