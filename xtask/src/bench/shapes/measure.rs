//! Measures the shapes of real programs.
use super::{POINTS, Spread};
use crate::mip::make::{Real, Toolchain};
use crate::mip::packages::Sources;
use crate::mip::{fresh, succeed};
use crate::steps::cargo;
use anyhow::{Context, Result};
use profkit_data::instr::{InstrReader, InstrSource, Record};
use profkit_testkit::target_folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The properties of a profile, one value per function, counter or site.
#[derive(Debug, Default)]
struct Properties {
    names: Vec<u32>,
    counters: Vec<u32>,
    idle: usize,
    zeros: usize,
    of_running: usize,
    bits: Vec<u32>,
    sites: [Vec<u32>; 2],
    targets: [Vec<u32>; 2],
}

impl Properties {
    fn read(profile: &Path) -> Result<Self> {
        let data = fs::read(profile).with_context(|| profile.display().to_string())?;
        let mut reader = InstrReader::open(&data)?;
        let (mut record, mut found) = (Record::default(), Properties::default());
        while reader.read_record(&mut record)? {
            found.names.push(small(record.name.len()));
            found.counters.push(small(record.counts.len()));
            let running = record.counts.iter().filter(|&&count| count > 0);
            let bits: Vec<u32> = running.map(|count| 64 - count.leading_zeros()).collect();
            if bits.is_empty() {
                found.idle += 1;
            } else {
                found.zeros += record.counts.len() - bits.len();
                found.of_running += record.counts.len();
            }
            found.bits.extend(bits);
            for (kind, values) in record.values.kinds().take(2) {
                let kind = kind as usize;
                found.sites[kind].push(small(values.site_count()));
                found.targets[kind].extend(values.sites().map(|site| small(site.len())));
            }
        }
        Ok(found)
    }

    fn print(&self, title: &str) {
        let functions = self.names.len();
        println!("// {title}: {functions} functions");
        println!("names: {:?},", spread(&self.names));
        println!("counters: {:?},", spread(&self.counters));
        println!("idle: {},", per_thousand(self.idle, functions));
        println!("zeros: {},", per_thousand(self.zeros, self.of_running));
        println!("bits: {:?},", spread(&self.bits));
        println!("sites: {:?},", self.sites.each_ref().map(|all| spread(all)));
        println!(
            "targets: {:?},",
            self.targets.each_ref().map(|all| spread(all))
        );
    }
}

fn small(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn per_thousand(part: usize, whole: usize) -> usize {
    (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0)
}

fn spread(values: &[u32]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    POINTS.map(|point| {
        let last = sorted.len().saturating_sub(1);
        sorted
            .get(last * point as usize / 1000)
            .copied()
            .unwrap_or(0)
    })
}

/// Builds the programs, runs them, and prints their properties in the form of the table in `shapes/mod.rs`.
pub fn run() -> Result<()> {
    let folder = target_folder().join("bench/real");
    fs::create_dir_all(&folder)?;
    let sources = Sources::new(&folder);
    let front_end = ["-fprofile-instr-generate", "-fcoverage-mapping"];
    for (title, real, flags) in [
        (
            "zstd, -fprofile-instr-generate -fcoverage-mapping, its workload",
            Real::Zstd,
            &front_end[..],
        ),
        (
            "re2, -O2 -fprofile-generate, its workload",
            Real::Re2,
            &["-fprofile-generate"],
        ),
        (
            "re2, -fprofile-instr-generate -fcoverage-mapping, its workload",
            Real::Re2,
            &front_end[..],
        ),
    ] {
        let tree = folder.join(format!("{}{}", real.name(), flags[0]));
        let tools = Toolchain::plain("clang-22").with("profile", flags, &flags[..1]);
        real.build(&sources, &tools, &tree)?;
        let raws = folder.join(format!("{}{}-raws", real.name(), flags[0]));
        fresh(&raws)?;
        for line in real.workload(&tree, 1)? {
            let (program, arguments) = line.split_first().context("a program")?;
            profiled(
                Command::new(program).args(arguments).current_dir(&tree),
                &raws,
            )?;
        }
        Properties::read(&merged(&raws)?)?.print(title);
    }
    Properties::read(&rust(&folder)?)?.print(
        "profkit-object/examples/llvm_symbolizer, -Cinstrument-coverage: 5,000 of its own addresses",
    );
    library()
}

fn profiled(command: &mut Command, raws: &Path) -> Result<()> {
    command.env("LLVM_PROFILE_FILE", raws.join("%p-%m.profraw"));
    succeed(command).map(drop)
}

/// Merges the raw profiles of a folder.
fn merged(raws: &Path) -> Result<PathBuf> {
    let profile = raws.with_extension("profdata");
    succeed(
        Command::new("llvm-profdata-22")
            .arg("merge")
            .arg(raws)
            .arg("-o")
            .arg(&profile),
    )?;
    Ok(profile)
}

/// The coverage of a Rust program of this repository, which finds the lines of its own functions.
fn rust(folder: &Path) -> Result<PathBuf> {
    let (target, raws) = (folder.join("rust"), folder.join("rust-raws"));
    fresh(&raws)?;
    let target_text = target.to_string_lossy().into_owned();
    let build = folder.join("rust-build/%p-%m.profraw");
    cargo(
        &[
            "build",
            "-p",
            "profkit-object",
            "--example",
            "llvm_symbolizer",
        ],
        &[
            ("RUSTFLAGS", "-Cinstrument-coverage"),
            ("CARGO_TARGET_DIR", &target_text),
            ("LLVM_PROFILE_FILE", &build.to_string_lossy()),
        ],
    )?;
    let program = target.join("debug/examples/llvm_symbolizer");
    let symbols = succeed(
        Command::new("llvm-nm-22")
            .arg("--format=posix")
            .arg(&program),
    )?;
    let addresses = symbols.lines().filter_map(|line| {
        let address = line
            .split(' ')
            .nth(2)
            .filter(|address| !address.is_empty())?;
        Some(format!("0x{address}\n"))
    });
    let input = folder.join("rust-addresses");
    fs::write(&input, addresses.take(5000).collect::<String>())?;
    profiled(
        Command::new(&program)
            .arg(&program)
            .stdin(fs::File::open(&input)?),
        &raws,
    )?;
    merged(&raws)
}

/// The names of a large C++ library.
fn library() -> Result<()> {
    let library = "/usr/lib/x86_64-linux-gnu/libLLVM.so.22.1";
    let symbols = succeed(Command::new("llvm-nm-22").args([
        "-D",
        "--defined-only",
        "--format=posix",
        library,
    ]))?;
    let functions = symbols.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let name = words.next()?;
        matches!(words.next()?, "T" | "W" | "t").then_some(name)
    });
    let lengths: Vec<u32> = functions
        .map(|name| small(name.split('@').next().unwrap_or(name).len()))
        .collect();
    println!("// the functions that {library} exports: {}", lengths.len());
    println!("names: {:?},", spread(&lengths));
    Ok(())
}
