//! `cargo xtask bench-sample`: compares the time of LLVM's tool and of profkit on generated sample profiles. The tools
//! run alternately.
use super::inputs::tool;
use super::measure::Measured;
use super::works::Work;
use super::{measure_work, peak_mib, print_table};
use crate::steps::released_profkit;
use anyhow::{Context, Result, ensure};
use profkit_testkit::sample::{SampleOptions, SampleShape, sample_name, sample_text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of rounds that are measured.
const ROUNDS: usize = 5;
/// The number of inputs of the merge that both tools run.
const FEW: usize = 40;
/// The number of inputs of the merge that only profkit runs. LLVM's tool keeps every reader, about 12 MB each, until
/// the end.
const MANY: usize = 1000;
/// The shape of the merged profiles: runs of one program with 20,000 functions.
const MERGED: SampleOptions = SampleOptions {
    functions: 8_000,
    pool: 20_000,
    lines: 8,
    shape: SampleShape::Nested,
    one_program: true,
};
/// The shape of the profile from which a single function is shown.
const LARGE: SampleOptions = SampleOptions {
    functions: 200_000,
    pool: 200_000,
    lines: 8,
    shape: SampleShape::Nested,
    one_program: false,
};
/// The shape of the text profile that is converted.
const TEXT: SampleOptions = SampleOptions {
    functions: 400_000,
    pool: 400_000,
    lines: 4,
    shape: SampleShape::Nested,
    one_program: false,
};

/// Makes the inputs below `target/bench-sample` (about 2 GB, kept), measures, and prints a table. `only` names the
/// measurements to make: merge, many, text or function.
///
/// # Errors
/// If a tool is missing or fails, or two outputs differ. A missed target is not an error; the table shows it.
pub fn run(only: &[String]) -> Result<()> {
    let profkit = released_profkit()?;
    let llvm = tool("llvm-profdata-22")?;
    let folder = std::env::current_dir()?.join("target/bench-sample");
    fs::create_dir_all(&folder)?;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| only == name);
    let mut works = Vec::new();
    if wanted("merge") || wanted("many") {
        let list = merged_inputs(&folder, &llvm, FEW)?;
        works.push(work(
            "merge",
            4.0,
            1.0 / 3.0,
            &folder,
            &llvm,
            &profkit,
            &["-f", &list],
        ));
    }
    if wanted("text") {
        let file = folder.join("text.proftext");
        if !file.is_file() {
            fs::write(&file, sample_text(&TEXT, 1))?;
        }
        let file = file.display().to_string();
        works.push(work("text", 4.0, 1.0, &folder, &llvm, &profkit, &[&file]));
    }
    if wanted("function") {
        works.push(one_function(&folder, &llvm, &profkit)?);
    }
    let mut results = Vec::new();
    for work in &works {
        eprintln!("measuring {}", work.name);
        results.push(measure_work(work, ROUNDS)?);
    }
    print_table(&works, &results);
    if wanted("many") {
        let few = results.first().and_then(|samples| samples.last());
        let few = few.map_or(0.0, |samples| peak_mib(samples));
        let list = merged_inputs(&folder, &llvm, MANY)?;
        let many = work("many", 0.0, 1.0, &folder, &llvm, &profkit, &["-f", &list]);
        for command in &many.commands[1..] {
            let sample = super::run_measured(command)?;
            println!(
                "{MANY} profiles, {}: {:.0} ms, peak {:.1} MiB, {:.2} of that of {FEW} (LLVM's tool not run)",
                command.label,
                sample.wall_ms,
                sample.peak_mib,
                sample.peak_mib / few
            );
        }
    }
    Ok(())
}

/// Makes extensible binary profiles by LLVM's tool. Returns the path of a file that lists them.
fn merged_inputs(folder: &Path, llvm: &Path, count: usize) -> Result<String> {
    let inputs = folder.join("merge-runs");
    fs::create_dir_all(&inputs)?;
    let text = folder.join("scratch.proftext");
    let mut list = String::new();
    for number in 0..count {
        let file = inputs.join(format!("{number}.extbinary"));
        if !file.is_file() {
            fs::write(&text, sample_text(&MERGED, number as u64))?;
            convert(llvm, &text, &file)?;
        }
        list.push_str(&format!("{}\n", file.display()));
    }
    let path = folder.join(format!("{count}.list"));
    fs::write(&path, list)?;
    Ok(path.display().to_string())
}

/// Converts a profile to the extensible binary encoding by LLVM's tool.
fn convert(llvm: &Path, from: &Path, to: &Path) -> Result<()> {
    let status = Command::new(llvm)
        .args(["merge", "--sample"])
        .arg(from)
        .arg("-o")
        .arg(to)
        .status()
        .with_context(|| llvm.display().to_string())?;
    ensure!(status.success(), "{}: {status}", llvm.display());
    Ok(())
}

/// A merge in three forms: by LLVM's tool, by profkit under the name of LLVM's tool, and by profkit's own command.
fn work(
    name: &'static str,
    ratio: f64,
    memory: f64,
    folder: &Path,
    llvm: &Path,
    profkit: &Path,
    inputs: &[&str],
) -> Work {
    let command = |label: &'static str, program: &Path, before: &[&str]| {
        let output = folder.join(format!("{name}.{label}.profdata"));
        let mut args: Vec<String> = before.iter().map(|&arg| arg.to_owned()).collect();
        args.extend(["-o".to_owned(), output.display().to_string()]);
        args.extend(inputs.iter().map(|&input| input.to_owned()));
        Measured {
            label,
            program: program.into(),
            args,
            output,
        }
    };
    Work {
        name,
        wanted_ratio: ratio,
        wanted_memory: memory,
        commands: vec![
            command("llvm-profdata-22", llvm, &["merge", "--sample"]),
            command(
                "personality",
                profkit,
                &["llvm-profdata", "merge", "--sample"],
            ),
            command("merge", profkit, &["merge"]),
        ],
        same_output: true,
    }
}

/// Makes the row that compares how a single function is shown from a profile with many functions.
fn one_function(folder: &Path, llvm: &Path, profkit: &Path) -> Result<Work> {
    let file: PathBuf = folder.join("large.extbinary");
    if !file.is_file() {
        let text = folder.join("scratch.proftext");
        fs::write(&text, sample_text(&LARGE, 1))?;
        convert(llvm, &text, &file)?;
    }
    let file = file.display().to_string();
    let function = format!("--function={}", sample_name(123_456));
    let command = |label: &'static str, program: &Path, before: &[&str]| {
        let output = folder.join(format!("function.{label}.txt"));
        let mut args: Vec<String> = before.iter().map(|&arg| arg.to_owned()).collect();
        args.extend(["show", "--sample", &function, &file, "-o"].map(str::to_owned));
        args.push(output.display().to_string());
        Measured {
            label,
            program: program.into(),
            args,
            output,
        }
    };
    Ok(Work {
        name: "function",
        wanted_ratio: 50.0,
        wanted_memory: 1.0,
        commands: vec![
            command("llvm-profdata-22", llvm, &[]),
            command("personality", profkit, &["llvm-profdata"]),
        ],
        same_output: true,
    })
}
