//! Inputs of the benchmark. They are generated once, from sources that this module writes.
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The number of functions in the generated program.
const FUNCTIONS: u64 = 16_000;
/// The number of source files over which the functions are spread.
const SOURCES: u64 = 8;
/// The number of runs of the program. Each run writes one raw file.
const RUNS: u64 = 200;
/// The number of functions in the generated text profiles.
const TEXT_FUNCTIONS: u64 = 400_000;

/// How the generated program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrumentation {
    /// Front-end counters with coverage mapping.
    Coverage,
    /// IR counters with value profiling of indirect calls and memory sizes.
    IrValues,
}

/// Finds a program in the folders of `PATH`.
pub fn tool(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .with_context(|| {
            format!("{name} is not installed; Debian has it in the packages clang-22 and llvm-22")
        })
}

/// Makes the raw profiles of [`RUNS`] runs. Returns the path of a file that lists them.
pub fn raw_files(folder: &Path, instrumentation: Instrumentation) -> Result<String> {
    let (name, flags): (_, &[&str]) = match instrumentation {
        Instrumentation::Coverage => (
            "coverage",
            &["-O0", "-fprofile-instr-generate", "-fcoverage-mapping"],
        ),
        Instrumentation::IrValues => ("values", &["-O1", "-fprofile-generate"]),
    };
    let folder = folder.join(name);
    let list = folder.join("list.txt");
    if list.is_file() {
        return Ok(list.display().to_string());
    }
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("raw"))?;
    let clang = tool("clang-22")?;
    let values = instrumentation == Instrumentation::IrValues;
    let mut objects = Vec::new();
    for index in 0..=SOURCES {
        let source = folder.join(format!("part{index}.c"));
        let text = if index == SOURCES {
            main_source()
        } else {
            part_source(index, values)
        };
        fs::write(&source, text)?;
        let object = source.with_extension("o");
        succeed(
            Command::new(&clang)
                .args(flags)
                .arg("-c")
                .arg(&source)
                .arg("-o")
                .arg(&object),
        )?;
        objects.push(object);
    }
    let program = folder.join("program");
    succeed(
        Command::new(&clang)
            .args(flags)
            .args(&objects)
            .arg("-o")
            .arg(&program),
    )?;
    let mut lines = String::new();
    for run in 1..=RUNS {
        let file = folder.join(format!("raw/{run:03}.profraw"));
        succeed(
            Command::new(&program)
                .arg(run.to_string())
                .env("LLVM_PROFILE_FILE", &file),
        )?;
        writeln!(lines, "{}", file.display())?;
    }
    fs::write(&list, lines)?;
    Ok(list.display().to_string())
}

/// Makes a raw profile of a program with three functions, and returns its path.
pub fn small_raw_file(folder: &Path) -> Result<String> {
    let folder = folder.join("small");
    let file = folder.join("small.profraw");
    if !file.is_file() {
        fs::create_dir_all(&folder)?;
        let source = folder.join("small.c");
        fs::write(
            &source,
            "static int twice(int x) { return x > 3 ? 2 * x : x; }\nint once(int x) { return x + 1; }\n\
             int main(int argc, char **argv) { (void)argv; return twice(once(argc)) == 40; }\n",
        )?;
        let program = folder.join("small");
        let mut compile = Command::new(tool("clang-22")?);
        succeed(
            compile
                .args(["-fprofile-instr-generate", "-fcoverage-mapping", "-o"])
                .arg(&program)
                .arg(&source),
        )?;
        succeed(Command::new(&program).env("LLVM_PROFILE_FILE", &file))?;
    }
    Ok(file.display().to_string())
}

/// Makes two text profiles of the same functions with different counts, and returns their paths.
pub fn text_files(folder: &Path) -> Result<[String; 2]> {
    fs::create_dir_all(folder)?;
    let mut files = [String::new(), String::new()];
    for (seed, slot) in (1..).zip(&mut files) {
        let file = folder.join(format!("functions{seed}.proftext"));
        if !file.is_file() {
            let partial = file.with_extension("partial");
            let mut out = BufWriter::new(fs::File::create(&partial)?);
            writeln!(out, ":ir")?;
            for function in 0..TEXT_FUNCTIONS {
                let counters = function * 7919 % 8 + 1;
                writeln!(
                    out,
                    "{}\n{}\n{counters}",
                    mangled(function),
                    scramble(function) >> 4
                )?;
                for counter in 0..counters {
                    let random = scramble(seed << 40 ^ function << 4 ^ counter);
                    let count = match (random >> 32) % 3 {
                        0 => 0,
                        1 => random % 100,
                        _ => random % 1_000_000,
                    };
                    writeln!(out, "{count}")?;
                }
                writeln!(out)?;
            }
            out.flush()?;
            fs::rename(&partial, &file)?;
        }
        *slot = file.display().to_string();
    }
    Ok(files)
}

/// Converts the text profiles to indexed profiles by LLVM's tool, and returns their paths.
pub fn indexed_files(folder: &Path) -> Result<[String; 2]> {
    let texts = text_files(folder)?;
    let mut files = [String::new(), String::new()];
    for (text, slot) in texts.iter().zip(&mut files) {
        let file = Path::new(text).with_extension("profdata");
        if !file.is_file() {
            succeed(
                Command::new(tool("llvm-profdata-22")?)
                    .args(["merge", text, "-o"])
                    .arg(&file),
            )?;
        }
        *slot = file.display().to_string();
    }
    Ok(files)
}

/// Makes a shared library whose symbols are the functions of the text profiles, and returns its path.
pub fn library(folder: &Path) -> Result<String> {
    let library = folder.join("functions.so");
    if !library.is_file() {
        fs::create_dir_all(folder)?;
        let source = folder.join("functions.s");
        let mut out = BufWriter::new(fs::File::create(&source)?);
        writeln!(out, ".text")?;
        for name in (0..TEXT_FUNCTIONS).map(mangled) {
            writeln!(
                out,
                ".globl {name}\n.type {name}, @function\n{name}: ret\n.size {name}, 1"
            )?;
        }
        out.flush()?;
        let mut clang = Command::new(tool("clang-22")?);
        succeed(
            clang
                .args(["-shared", "-nostdlib", "-o"])
                .args([&library, &source]),
        )?;
    }
    Ok(library.display().to_string())
}

/// The number of functions in the profile with temporal traces. Each trace contains all of these functions.
const TRACED_FUNCTIONS: u64 = 10_000;
/// The number of traces in the profile with temporal traces. LLVM keeps 100 traces by default.
const TRACES: u64 = 100;

/// Makes an indexed profile with temporal traces, and returns its path. Each trace contains all functions, in groups of
/// 200. The order of the groups differs from trace to trace.
pub fn traces(folder: &Path) -> Result<String> {
    const PARTS: u64 = 50;
    fs::create_dir_all(folder)?;
    let file = folder.join("traces.profdata");
    if file.is_file() {
        return Ok(file.display().to_string());
    }
    let mut text = format!(":ir\n:temporal_prof_traces\n{TRACES}\n{TRACES}\n");
    for trace in 0..TRACES {
        text.push_str("1\n");
        let mut parts: Vec<u64> = (0..PARTS).collect();
        parts.sort_by_key(|part| scramble(trace * PARTS + part));
        for part in parts {
            let own = TRACED_FUNCTIONS / PARTS;
            for function in part * own..(part + 1) * own {
                let _ = write!(text, "{},", mangled(function));
            }
        }
        text.push('\n');
    }
    for function in 0..TRACED_FUNCTIONS {
        let _ = writeln!(text, "{}\n1\n1\n1\n", mangled(function));
    }
    let source = folder.join("traces.proftext");
    fs::write(&source, text)?;
    succeed(
        Command::new(tool("llvm-profdata-22")?)
            .args(["merge", "-o"])
            .args([&file, &source]),
    )?;
    Ok(file.display().to_string())
}

fn main_source() -> String {
    let mut source = String::from("#include <stdlib.h>\n");
    for part in 0..SOURCES {
        let _ = writeln!(source, "int run{part}(int);");
    }
    source.push_str(
        "int main(int argc, char **argv) {\n  int x = argc > 1 ? atoi(argv[1]) : 0, sum = 0;\n",
    );
    for part in 0..SOURCES {
        let _ = writeln!(source, "  if (x & {}) sum += run{part}(x);", 1 << part);
    }
    source.push_str("  return sum == 42;\n}\n");
    source
}

fn part_source(part: u64, values: bool) -> String {
    let mut source = String::from(
        "#include <string.h>\ntypedef int (*function)(int);\nstatic char buffer[2][4096];\n",
    );
    let functions = part * (FUNCTIONS / SOURCES)..(part + 1) * (FUNCTIONS / SOURCES);
    for function in functions.clone() {
        let name = mangled(function);
        let (limit, step) = (function % 50, function % 7);
        let _ = write!(
            source,
            "__attribute__((noinline)) int {name}(int x) {{ if (x > {limit}) x += {step}; "
        );
        if function % 3 == 0 {
            source.push_str("for (int k = 0; k < (x & 3); k++) x ^= k; ");
        }
        source.push_str("return x; }\n");
    }
    let _ = writeln!(source, "static const function table[] = {{");
    for function in functions.clone() {
        let _ = writeln!(source, "  {},", mangled(function));
    }
    let _ = writeln!(source, "}};\nint run{part}(int x) {{\n  int sum = 0;");
    for function in functions.step_by(5) {
        let _ = writeln!(
            source,
            "  sum += {}(x + {});",
            mangled(function),
            function % 5
        );
    }
    source.push_str("  return sum");
    if values {
        // Each value site is a call through a pointer whose target changes, or a copy of memory whose size changes.
        // Value profiling records the targets and the sizes.
        for group in 0..40 {
            let _ = write!(source, " + sites{part}_{group}(x)");
        }
    }
    source.push_str(";\n}\n");
    if values {
        let mut sites = String::new();
        for group in 0..40 {
            let _ = writeln!(
                sites,
                "__attribute__((noinline)) int sites{part}_{group}(int x) {{\n  int sum = 0;"
            );
            for site in 0..25 {
                let start = group * 25 + site;
                let _ = writeln!(
                    sites,
                    "  for (int k = 0; k < 4 + (x & 7); k++) sum += table[{start} + k](k);"
                );
                let _ = writeln!(
                    sites,
                    "  memcpy(buffer[0], buffer[1], (x * {} + {start}) % 700);",
                    site + 1
                );
            }
            sites.push_str("  return sum;\n}\n");
        }
        // The functions with the value sites must come before the function that calls them.
        let caller = source.find("int run").unwrap_or(source.len());
        source.insert_str(caller, &sites);
    }
    source
}

/// Returns a name in rustc's older mangling, as for a method of a generic type: words, the hash of the type, words, the
/// hash of the function. It has about 130 bytes. The hashes do not compress, so that raw files of 16,000 functions have
/// 2 MB.
fn mangled(function: u64) -> String {
    const WORDS: [&str; 16] = [
        "collections",
        "iterator",
        "adapters",
        "parser",
        "coverage",
        "report",
        "serialize",
        "reader",
        "config",
        "errors",
        "formatter",
        "visitor",
        "symbols",
        "section",
        "channel",
        "scheduler",
    ];
    let random = scramble(function);
    let word = |shift: u32| WORDS[usize::try_from(random >> shift & 15).unwrap_or(0)];
    let mut name = String::from("_ZN");
    for shift in [0, 4, 8] {
        let _ = write!(name, "{}{}", word(shift).len(), word(shift));
    }
    let own = format!("{}_{function}", word(16));
    let hash = scramble(random);
    let _ = write!(
        name,
        "33h{:016x}{:016x}",
        hash.rotate_left(32),
        scramble(hash)
    );
    let _ = write!(
        name,
        "{}{}{}{own}17h{hash:016x}E",
        word(12).len(),
        word(12),
        own.len()
    );
    name
}

/// Maps each 64-bit number to another one that looks random. The map is a fixed permutation (the finaliser of
/// SplitMix64).
pub fn scramble(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
