//! The rows of the benchmark (called works). Each compares commands that do the same work, and has a target.
use super::inputs;
use super::measure::Measured;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// One row of the benchmark.
#[derive(Debug)]
pub struct Work {
    /// The name by which the command line selects the work.
    pub name: &'static str,
    /// The target for the wall time: the time of LLVM's tool divided by that of profkit.
    pub wanted_ratio: f64,
    /// The target for the peak memory: the share of LLVM's peak that profkit may use.
    pub wanted_memory: f64,
    /// The commands: first LLVM's, then profkit's.
    pub commands: Vec<Measured>,
    /// Whether all commands must write the same bytes.
    pub same_output: bool,
}

type Make = fn(&Path, &Path) -> Result<Work>;

/// Every work by name.
pub const ALL: [(&str, Make); 11] = [
    ("coverage", coverage),
    ("values", values),
    ("indexed", indexed),
    ("text", text),
    ("show", show),
    ("small", small),
    ("overlap", overlap),
    ("diff", diff),
    ("order", order),
    ("match", match_profiles),
    ("match-binary", match_binary),
];

fn coverage(folder: &Path, profkit: &Path) -> Result<Work> {
    let list = inputs::raw_files(folder, inputs::Instrumentation::Coverage)?;
    Ok(merge_work(
        "coverage",
        folder,
        profkit,
        30.0,
        0.5,
        &["-f", &list],
    ))
}

fn values(folder: &Path, profkit: &Path) -> Result<Work> {
    let list = inputs::raw_files(folder, inputs::Instrumentation::IrValues)?;
    Ok(merge_work(
        "values",
        folder,
        profkit,
        15.0,
        0.5,
        &["-f", &list],
    ))
}

fn indexed(folder: &Path, profkit: &Path) -> Result<Work> {
    let [first, second] = inputs::indexed_files(folder)?;
    Ok(merge_work(
        "indexed",
        folder,
        profkit,
        3.0,
        1.0,
        &[&first, &second],
    ))
}

fn text(folder: &Path, profkit: &Path) -> Result<Work> {
    let [first, _] = inputs::text_files(folder)?;
    Ok(merge_work("text", folder, profkit, 3.0, 1.0, &[&first]))
}

fn small(folder: &Path, profkit: &Path) -> Result<Work> {
    let file = inputs::small_raw_file(folder)?;
    Ok(merge_work("small", folder, profkit, 3.0, 1.0, &[&file]))
}

fn show(folder: &Path, profkit: &Path) -> Result<Work> {
    let [file, _] = inputs::indexed_files(folder)?;
    let command = |label, program: &Path, before: &[&str]| {
        let output = folder.join(format!("show.{label}.txt"));
        let to = output.display().to_string();
        let args = args(
            before,
            &["show", "--all-functions", "--counts", &file, "-o", &to],
        );
        Measured {
            label,
            program: program.into(),
            args,
            output,
        }
    };
    let llvm = inputs::tool("llvm-profdata-22")?;
    let commands = vec![
        command("llvm-profdata-22", &llvm, &[]),
        command("personality", profkit, &["llvm-profdata"]),
    ];
    Ok(Work {
        name: "show",
        wanted_ratio: 3.0,
        wanted_memory: 1.0,
        commands,
        same_output: true,
    })
}

fn overlap(folder: &Path, profkit: &Path) -> Result<Work> {
    let [first, second] = inputs::indexed_files(folder)?;
    personality_work(
        "overlap",
        [3.0, 1.0],
        folder,
        profkit,
        &["overlap", &first, &second],
    )
}

fn diff(folder: &Path, profkit: &Path) -> Result<Work> {
    let [first, second] = inputs::indexed_files(folder)?;
    let read = format!("{0} show {first} && {0} show {second}", profkit.display());
    Ok(beside_reading(
        "diff",
        folder,
        profkit,
        &read,
        &["diff", &first, &second],
    ))
}

fn order(folder: &Path, profkit: &Path) -> Result<Work> {
    let file = inputs::traces(folder)?;
    // The memory has no limit, because the target is only about time.
    personality_work(
        "order",
        [2.0, f64::INFINITY],
        folder,
        profkit,
        &["order", &file],
    )
}

/// A row of the benchmark whose commands write text to the file of `-o`: LLVM's tool, and profkit under the name of
/// LLVM's tool.
fn personality_work(
    name: &'static str,
    [wanted_ratio, wanted_memory]: [f64; 2],
    folder: &Path,
    profkit: &Path,
    command: &[&str],
) -> Result<Work> {
    let measured = |label, program: PathBuf, before: &[&str]| {
        let output = folder.join(format!("{name}.{label}.txt"));
        let mut args = args(before, command);
        args.extend(["-o".to_owned(), output.display().to_string()]);
        Measured {
            label,
            program,
            args,
            output,
        }
    };
    Ok(Work {
        name,
        wanted_ratio,
        wanted_memory,
        commands: vec![
            measured("llvm-profdata-22", inputs::tool("llvm-profdata-22")?, &[]),
            measured("personality", profkit.into(), &["llvm-profdata"]),
        ],
        same_output: true,
    })
}

fn match_profiles(folder: &Path, profkit: &Path) -> Result<Work> {
    let [first, second] = inputs::indexed_files(folder)?;
    let read = format!("{0} show {first} && {0} show {second}", profkit.display());
    Ok(beside_reading(
        "match",
        folder,
        profkit,
        &read,
        &["match", &first, &second],
    ))
}

fn match_binary(folder: &Path, profkit: &Path) -> Result<Work> {
    let [profile, _] = inputs::indexed_files(folder)?;
    let library = inputs::library(folder)?;
    let read = format!(
        "{} show {profile} && llvm-nm-22 {library}",
        profkit.display()
    );
    Ok(beside_reading(
        "match-binary",
        folder,
        profkit,
        &read,
        &["match", &profile, &library],
    ))
}

/// A row of the benchmark that compares a command of profkit with reading the command's inputs. The command may take
/// twice as long as the reading.
fn beside_reading(
    name: &'static str,
    folder: &Path,
    profkit: &Path,
    read: &str,
    command: &[&str],
) -> Work {
    let measured = |label, command: &str| {
        let output = folder.join(format!("{name}.{label}.txt"));
        let line = format!("({command}) > {}", output.display());
        Measured {
            label,
            program: "sh".into(),
            args: vec!["-c".to_owned(), line],
            output,
        }
    };
    let line = format!("{} {}", profkit.display(), command.join(" "));
    Work {
        name,
        wanted_ratio: 0.5,
        wanted_memory: f64::INFINITY,
        commands: vec![measured("reading", read), measured(name, &line)],
        same_output: false,
    }
}

fn merge_work(
    name: &'static str,
    folder: &Path,
    profkit: &Path,
    ratio: f64,
    memory: f64,
    inputs: &[&str],
) -> Work {
    let command = |label: &'static str, program: PathBuf, before: &[&str], inputs: Vec<String>| {
        let output = folder.join(format!("{name}.{label}.profdata"));
        let mut args = args(before, &["merge", "-o"]);
        args.push(output.display().to_string());
        args.extend(inputs);
        Measured {
            label,
            program,
            args,
            output,
        }
    };
    let llvm_inputs: Vec<String> = inputs.iter().map(|&input| input.to_owned()).collect();
    let native_inputs = inputs.iter().map(|&input| {
        if input == "-f" {
            "--input-files"
        } else {
            input
        }
        .to_owned()
    });
    let commands = vec![
        command(
            "llvm-profdata-22",
            "llvm-profdata-22".into(),
            &[],
            llvm_inputs.clone(),
        ),
        command(
            "personality",
            profkit.into(),
            &["llvm-profdata"],
            llvm_inputs,
        ),
        command("merge", profkit.into(), &[], native_inputs.collect()),
    ];
    Work {
        name,
        wanted_ratio: ratio,
        wanted_memory: memory,
        commands,
        same_output: true,
    }
}

fn args(before: &[&str], after: &[&str]) -> Vec<String> {
    before
        .iter()
        .chain(after)
        .map(|&arg| arg.to_owned())
        .collect()
}
