//! `cargo xtask bench-order`: measures how much an order of functions saves when a program starts with a cold page
//! cache. It counts the pages of text that are read, and the page faults, with the order of profkit and with that of
//! llvm-profdata-22.
use crate::bench::inputs::scramble;
use crate::mip::{fresh, succeed};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::{measure, target_folder};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const HELP: &str = "\
cargo xtask bench-order [--rounds N] [--profkit FILE]

Generates a C++ program of 5,000 functions. Each of its three tasks calls some 570 of them at its start, in an order of
its own. clang-22 builds it with temporal instrumentation, each task runs once, and `profkit order` and `llvm-profdata-22
order` order the functions. lld links the program without an order and with each. Every round starts each task of each
program with nothing of it in the page cache, and counts page faults. The text pages are those on which the functions of
a task are, from the symbols of the program: read-ahead hides how many a start really touches.
  --rounds N      rounds (default 5)
  --profkit FILE  the command (default: the debug build, built first)

Needs clang-22, lld-22, llvm-22, and fincore (util-linux).
";

/// The number of functions of the program.
const FUNCTIONS: u64 = 5000;
/// The number of source files over which the functions are spread.
const FILES: u64 = 10;
/// The number of tasks of the program.
const TASKS: u32 = 3;

/// Runs the benchmark.
///
/// # Errors
/// If a tool is missing or a command fails.
pub fn run(args: &[String]) -> Result<()> {
    let (mut rounds, mut profkit) = (5u32, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
        match arg.as_str() {
            "--rounds" => rounds = value()?.parse().context("--rounds")?,
            "--profkit" => profkit = Some(PathBuf::from(value()?)),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    ensure!(rounds > 0, "--rounds must be at least 1");
    let profkit = match profkit {
        Some(path) => path,
        None => built_profkit()?,
    };
    let folder = target_folder().join("bench-order");
    let programs = build(&folder, &profkit)?;
    println!(
        "{:<18} {:>12} {:>12} {:>12} {:>10}",
        "order", "text pages", "major faults", "minor faults", "ms"
    );
    let mut sums = vec![Sums::default(); programs.len()];
    for _ in 0..rounds {
        for ((_, program), sum) in programs.iter().zip(&mut sums) {
            for task in 0..TASKS {
                sum.add(program, task)?;
            }
        }
    }
    let starts = f64::from(rounds) * f64::from(TASKS);
    for ((name, program), sum) in programs.iter().zip(&sums) {
        println!(
            "{name:<18} {:>12.1} {:>12.1} {:>12.1} {:>10.2}",
            text_pages(&profkit, program, &folder)?,
            sum.major / starts,
            sum.minor / starts,
            sum.milliseconds / starts
        );
    }
    Ok(())
}

/// The sums over all starts of a program.
#[derive(Clone, Debug, Default)]
struct Sums {
    major: f64,
    minor: f64,
    milliseconds: f64,
}

impl Sums {
    /// Runs the program with the number of a task while no page of the program is in the page cache, and adds what was
    /// measured.
    #[expect(clippy::cast_precision_loss, reason = "a start has few page faults")]
    fn add(&mut self, program: &Path, task: u32) -> Result<()> {
        forget(program)?;
        let started = measure(Command::new(program).arg(task.to_string()))?;
        ensure!(
            started.status.success(),
            "{}: {}",
            program.display(),
            started.status
        );
        self.major += started.major_faults as f64;
        self.minor += started.minor_faults as f64;
        self.milliseconds += started.wall.as_secs_f64() * 1e3;
        Ok(())
    }
}

/// The mean number of text pages that contain the functions which a task of the program calls. It is computed from the
/// addresses of the functions.
fn text_pages(profkit: &Path, program: &Path, folder: &Path) -> Result<f64> {
    let mut order = Command::new(profkit);
    order
        .args(["order", "--format", "json", "--binary"])
        .args([program, &folder.join("traces.profdata")]);
    let json: Value = serde_json::from_str(&succeed(&mut order)?)?;
    let traces = json["text"]["traces"].as_array().context("traces")?;
    let pages = traces
        .iter()
        .map(|trace| trace["pages_before"].as_f64().context("pages_before"));
    Ok(pages.sum::<Result<f64>>()? / f64::from(TASKS))
}

/// Removes a file from the page cache.
fn forget(file: &Path) -> Result<()> {
    let mut dd = Command::new("dd");
    dd.arg(format!("of={}", file.display()));
    succeed(dd.args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0"]))?;
    let pages = succeed(
        Command::new("fincore")
            .args(["-n", "-o", "PAGES"])
            .arg(file),
    )?;
    ensure!(
        pages.trim() == "0",
        "{pages} pages of {} stay in the page cache",
        file.display()
    );
    Ok(())
}

/// Builds the program, runs it, orders its functions, and links it with each order.
fn build(folder: &Path, profkit: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    fresh(folder)?;
    let mut objects = [Vec::new(), Vec::new()];
    let traced = [
        "-fprofile-generate",
        "-mllvm",
        "-pgo-temporal-instrumentation",
    ];
    for file in 0..=FILES {
        let source = folder.join(format!("part{file}.cpp"));
        fs::write(
            &source,
            if file == FILES {
                main_source()
            } else {
                part_source(file)
            },
        )?;
        for (kind, (objects, options)) in ["plain", "traced"]
            .iter()
            .zip(objects.iter_mut().zip([&[][..], &traced]))
        {
            let object = source.with_extension(format!("{kind}.o"));
            let mut clang = Command::new("clang++-22");
            clang
                .args(["-O1", "-ffunction-sections", "-c"])
                .args(options);
            succeed(clang.arg(&source).arg("-o").arg(&object))?;
            objects.push(object);
        }
    }
    let link = |name: &str, objects: &[PathBuf], options: &[String]| -> Result<PathBuf> {
        let program = folder.join(name);
        let mut clang = Command::new("clang++-22");
        clang.arg("-fuse-ld=lld-22").args(options).args(objects);
        succeed(clang.arg("-o").arg(&program))?;
        Ok(program)
    };
    let program = link("traced", &objects[1], &["-fprofile-generate".to_owned()])?;
    let profile = folder.join("traces.profdata");
    let mut merge = Command::new("llvm-profdata-22");
    merge.args(["merge", "-o"]).arg(&profile);
    for task in 0..TASKS {
        let raw = folder.join(format!("task{task}.profraw"));
        succeed(
            Command::new(&program)
                .arg(task.to_string())
                .env("LLVM_PROFILE_FILE", &raw),
        )?;
        merge.arg(raw);
    }
    succeed(&mut merge)?;
    let mut orders = vec![("none", link("none", &objects[0], &[])?)];
    for (name, command, prefix) in [
        (
            "llvm-profdata-22",
            Path::new("llvm-profdata-22"),
            &["order"][..],
        ),
        ("profkit", profkit, &["order"]),
    ] {
        let said = succeed(Command::new(command).args(prefix).arg(&profile))?;
        // llvm-profdata explains its order in additional lines, which lld does not accept.
        let lines = said.lines().filter(|line| !line.starts_with('#'));
        let order = folder.join(format!("{name}.txt"));
        fs::write(
            &order,
            lines.fold(String::new(), |text, line| text + line + "\n"),
        )?;
        let option = format!("-Wl,--symbol-ordering-file={}", order.display());
        orders.push((name, link(name, &objects[0], &[option])?));
    }
    Ok(orders)
}

fn part_source(file: u64) -> String {
    let mut text = format!("namespace part{file} {{\n");
    for function in (0..FUNCTIONS).filter(|function| function % FILES == file) {
        let _ = writeln!(text, "unsigned work{function}(unsigned x) {{");
        for step in 0..10 {
            let random = scramble(function * 64 + step);
            let (bit, factor) = (1 << (random % 20), random % 100_003 * 2 + 1);
            let (add, shift) = (random >> 40 & 0xffff, random % 13 + 1);
            let _ = writeln!(
                text,
                "  if (x & {bit}u) x = x * {factor}u + {add}u; else x ^= x >> {shift};"
            );
        }
        text.push_str("  return x;\n}\n");
    }
    text.push_str("}\n");
    text
}

fn main_source() -> String {
    let mut text = "#include <cstdio>\n#include <cstdlib>\n".to_owned();
    for function in 0..FUNCTIONS {
        let file = function % FILES;
        let _ = writeln!(
            text,
            "namespace part{file} {{ unsigned work{function}(unsigned); }}"
        );
    }
    for task in 0..TASKS {
        let _ = writeln!(text, "static unsigned task{task}(unsigned x) {{");
        // Some functions are called by all tasks, others by only one task.
        let is_called = |&function: &u64| {
            scramble(function) % 100 < 6 || scramble(function * 7 + u64::from(task)) % 100 < 6
        };
        let mut called: Vec<u64> = (0..FUNCTIONS).filter(is_called).collect();
        called.sort_by_key(|function| scramble(function * 31 + u64::from(task)));
        for function in called {
            let _ = writeln!(text, "  x = part{}::work{function}(x);", function % FILES);
        }
        text.push_str("  return x;\n}\n");
    }
    text.push_str("int main(int argc, char **argv) {\n  unsigned x = 0;\n");
    text.push_str("  switch (argc > 1 ? std::atoi(argv[1]) : 0) {\n");
    for task in 0..TASKS {
        let _ = writeln!(text, "  case {task}: x = task{task}(1); break;");
    }
    text.push_str("  }\n  std::printf(\"%u\\n\", x);\n}\n");
    text
}
