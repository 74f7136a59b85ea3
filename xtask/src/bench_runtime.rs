//! `cargo xtask bench-runtime`: measures the costs of profkit's profile runtime and of LLVM's C runtime: the bytes in a
//! linked program, the time from start to exit, the time to add to a shared profile file, and the time of value
//! profiling. The measurements of the two runtimes alternate.
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use object::elf;
use object::{Object, ObjectSection, SectionFlags, SectionKind};
use profkit_testkit::{Llvm, measure, target_folder};

use crate::mip::{fresh, succeed};
use crate::steps::built_profkit;

const HELP: &str = "\
cargo xtask bench-runtime [--rounds N] [--only PART]...

Links programs of clang 13 to 22 with LLVM's C runtime and with the one of `profkit runtime`, below target/bench-runtime,
and prints what each costs. The runtimes take turns; times are medians of all rounds.
  --rounds N   rounds of each measurement of time (default 11)
  --only PART  size, start, pool or values (default: all)

Example: cargo xtask bench-runtime --only size
";

/// Pairs of a release of clang and the raw version of the runtime that is linked to its programs. Clang 18 and 23,
/// which write raw versions 9 and 11, are not used. The runtimes of these versions are linked to programs of clang 22
/// instead, only to measure their sizes. Such a program would report a wrong version if it ran.
const RELEASES: [(u32, u32); 7] = [
    (13, 7),
    (14, 8),
    (16, 8),
    (22, 9),
    (19, 10),
    (22, 10),
    (22, 11),
];

/// The release of clang that is used for all measurements of time.
const TIMED: u32 = 22;

/// The number of processes that are started for one measurement of start and exit.
const STARTS: usize = 200;
/// The number of processes that add their counts to one pool (a shared profile file).
const PROCESSES: usize = 100;
/// The number of functions in the program whose processes add to a pool.
const FUNCTIONS: usize = 2000;

/// A program that does almost nothing.
const SMALL: &str = "\
static int odd(int n) { return n % 2 ? n : -n; }
int main(int count, char **words) { return odd(count) == -odd(-count) + 12345; }
";

/// A program that spends nearly all its time on value profiling: it calls through pointers, and copies memory in many
/// sizes.
const VALUES: &str = r#"
#include <string.h>
static int a(int n) { return n + 1; }
static int b(int n) { return n ^ 3; }
static int c(int n) { return n * 5; }
static int d(int n) { return n - 7; }
int (*volatile targets[8])(int) = {a, a, b, a, c, b, d, a};
static char from[1024], to[1024];
int main(void) {
  int sum = 0;
  for (unsigned n = 0; n < 20000000; n++) {
    sum += targets[n & 7](sum);
    if (n % 4 == 0) memcpy(to, from, ((unsigned)sum >> 3) & 511);
  }
  return sum == 42 && to[5];
}
"#;

/// One of the two runtimes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runtime {
    C,
    Profkit,
}

const BOTH: [Runtime; 2] = [Runtime::C, Runtime::Profkit];

/// The state of a run of the benchmark: folder, commands, results.
struct Bench {
    folder: PathBuf,
    profkit: PathBuf,
    rounds: usize,
    /// The measurements that have missed their targets.
    missed: Vec<String>,
}

/// Runs the benchmark.
///
/// # Errors
/// If something does not build or run, if counts are lost, or if a figure misses its target.
pub fn run(args: &[String]) -> Result<()> {
    let (mut rounds, mut only) = (11, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .cloned()
                .with_context(|| format!("{arg} wants a value"))
        };
        match arg.as_str() {
            "--rounds" => rounds = value()?.parse::<usize>().context("--rounds")?,
            "--only" => only.push(value()?),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    ensure!(rounds > 0, "--rounds must be at least 1");
    type Part = fn(&mut Bench) -> Result<()>;
    let parts: [(&str, Part); 4] = [
        ("size", Bench::sizes),
        ("start", Bench::starts),
        ("pool", Bench::pools),
        ("values", Bench::values),
    ];
    for name in &only {
        ensure!(
            parts.iter().any(|(part, _)| part == name),
            "no part {name}\n\n{HELP}"
        );
    }
    let folder = target_folder().join("bench-runtime");
    fs::create_dir_all(&folder)?;
    let mut bench = Bench {
        folder,
        profkit: built_profkit()?,
        rounds,
        missed: Vec::new(),
    };
    for (name, part) in parts {
        if only.is_empty() || only.iter().any(|only| only == name) {
            part(&mut bench)?;
            println!();
        }
    }
    ensure!(
        bench.missed.is_empty(),
        "missed: {}",
        bench.missed.join(", ")
    );
    Ok(())
}

/// The size of a program in bytes, by the kind of its sections.
#[derive(Clone, Copy, Default)]
struct Bytes {
    /// The size of sections that are loaded but not written: code, constants, tables.
    text: u64,
    /// The size of sections that are loaded from the file and can be written.
    data: u64,
    /// The size of sections that are not in the file, because they are zero at the start.
    zero: u64,
}

impl Bytes {
    fn of(program: &Path) -> Result<Self> {
        let bytes = fs::read(program)?;
        let file = object::File::parse(&*bytes)?;
        let mut sums = Self::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                continue;
            };
            if !sh_flags.contains(elf::SHF_ALLOC) {
                continue;
            }
            let sum = if section.kind() == SectionKind::UninitializedData {
                &mut sums.zero
            } else if sh_flags.contains(elf::SHF_WRITE) {
                &mut sums.data
            } else {
                &mut sums.text
            };
            *sum += section.size();
        }
        Ok(sums)
    }

    /// The difference to a smaller program, for each kind.
    fn beyond(self, smaller: Self) -> Self {
        Self {
            text: self.text.saturating_sub(smaller.text),
            data: self.data.saturating_sub(smaller.data),
            zero: self.zero.saturating_sub(smaller.zero),
        }
    }
}

impl Bench {
    /// Returns the library with profkit's runtime for a raw version.
    fn library(&self, raw: u32) -> Result<PathBuf> {
        let path = self.folder.join(format!("libprofile-{raw}.a"));
        succeed(
            Command::new(&self.profkit)
                .args(["runtime", "--for", &format!("raw-{raw}"), "-o"])
                .arg(&path),
        )?;
        Ok(path)
    }

    /// Compiles and links a program with one of the runtimes.
    fn program(
        &self,
        name: &str,
        source: &str,
        runtime: Runtime,
        words: &[&str],
    ) -> Result<PathBuf> {
        let llvm = Llvm::find(TIMED)
            .with_context(|| format!("clang-{TIMED} and llvm-{TIMED} are not installed"))?;
        let file = self.folder.join(format!("{name}.c"));
        fs::write(&file, source)?;
        let program = self.folder.join(match runtime {
            Runtime::C => format!("{name}-c"),
            Runtime::Profkit => format!("{name}-profkit"),
        });
        let mut command = Command::new(llvm.clang());
        command.args(words).arg(&file).arg("-o").arg(&program);
        if runtime == Runtime::Profkit {
            command.arg(self.library(10)?);
        }
        succeed(&mut command)?;
        Ok(program)
    }

    /// Records a missed target if a ratio is above `wanted`. Returns the ratio as a cell of a table.
    fn judged(&mut self, what: &str, ratio: f64, wanted: f64) -> String {
        if ratio > wanted {
            self.missed
                .push(format!("{what}: {ratio:.3}, wanted {wanted}"));
        }
        format!("{ratio:.3}")
    }

    /// Measures the bytes that each runtime adds to a small program.
    fn sizes(&mut self) -> Result<()> {
        const WANTED: f64 = 0.5;
        let file = self.folder.join("small.c");
        fs::write(&file, SMALL)?;
        println!(
            "Bytes that the runtime adds to a small program (C runtime, profkit's); text and data: wanted {WANTED}\n\n\
             | raw | clang | link | text | data | zero | text and data |\n|---|---|---|---|---|---|---|"
        );
        for (release, raw) in RELEASES {
            let Some(llvm) = Llvm::find(release) else {
                println!("| {raw} | {release} | not installed | | | | |");
                continue;
            };
            let library = self.library(raw)?;
            let object = self.folder.join("small.o");
            succeed(
                Command::new(llvm.clang())
                    .args(["-O1", "-fprofile-instr-generate", "-c", "-o"])
                    .args([&object, &file]),
            )?;
            for link in ["-pie", "-static"] {
                let linked = |name: &str, words: &[&Path]| -> Result<Bytes> {
                    let program = self.folder.join(format!("small-{name}"));
                    succeed(
                        Command::new(llvm.clang())
                            .args([link, "-fprofile-instr-generate"])
                            .arg(&object)
                            .args(words)
                            .arg("-o")
                            .arg(&program),
                    )?;
                    Bytes::of(&program)
                };
                let none = linked("none", &[Path::new("-noprofilelib")])?;
                let c = linked("c", &[])?.beyond(none);
                let ours = linked("profkit", &[&library])?.beyond(none);
                let ratio = quotient(ours.text + ours.data, c.text + c.data);
                let judged = self.judged(&format!("size of raw {raw} {link}"), ratio, WANTED);
                println!(
                    "| {raw} | {release} | {link} | {}, {} | {}, {} | {}, {} | {judged} |",
                    c.text, ours.text, c.data, ours.data, c.zero, ours.zero
                );
            }
        }
        Ok(())
    }

    /// Prints the title and the header of a table of times.
    fn head(&self, title: &str) {
        println!(
            "{title} (clang {TIMED}, medians of {} rounds)\n\n| | C runtime, ms | profkit's, ms | ratio | wanted |\n|---|---|---|---|---|",
            self.rounds
        );
    }

    /// Measures both runtimes alternately, and prints a row of a table: the medians and their ratio. An additional
    /// first round is not counted.
    fn compare(
        &mut self,
        what: &str,
        wanted: f64,
        mut measure: impl FnMut(Runtime) -> Result<Duration>,
    ) -> Result<()> {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=self.rounds {
            for (times, runtime) in times.iter_mut().zip(BOTH) {
                let time = measure(runtime)?;
                if round > 0 {
                    times.push(time.as_secs_f64() * 1e3);
                }
            }
        }
        let [c, ours] = times.map(crate::mip::bench::median);
        let judged = self.judged(what, ours / c, wanted);
        println!("| {what} | {c:.1} | {ours:.1} | {judged} | {wanted} |");
        Ok(())
    }

    /// Measures small processes from start to exit.
    fn starts(&mut self) -> Result<()> {
        self.head(&format!(
            "{STARTS} processes of a small program, one after the other"
        ));
        let out = self.folder.join("out");
        for link in ["-pie", "-static"] {
            let words = ["-O1", "-fprofile-instr-generate", link];
            let programs = [
                self.program("start", SMALL, Runtime::C, &words)?,
                self.program("start", SMALL, Runtime::Profkit, &words)?,
            ];
            for name in ["a.profraw", "%p.profraw", "%m.profraw"] {
                self.compare(&format!("{link}, {name}"), 1.0, |runtime| {
                    fresh(&out)?;
                    let program = &programs[usize::from(runtime == Runtime::Profkit)];
                    let start = Instant::now();
                    for _ in 0..STARTS {
                        run_quietly(program, &out.join(name))?;
                    }
                    Ok(start.elapsed())
                })?;
            }
        }
        Ok(())
    }

    /// Measures many processes that each add their counts to one file when they end.
    fn pools(&mut self) -> Result<()> {
        self.head(&format!(
            "{PROCESSES} processes at once add to one pool of {FUNCTIONS} functions; each count is looked at"
        ));
        let llvm = Llvm::find(TIMED)
            .with_context(|| format!("clang-{TIMED} and llvm-{TIMED} are not installed"))?;
        let out = self.folder.join("out");
        let source = many_functions()?;
        for mode in ["-fprofile-instr-generate", "-fprofile-generate"] {
            let words = ["-O1", mode];
            let programs = [
                self.program("pool", &source, Runtime::C, &words)?,
                self.program("pool", &source, Runtime::Profkit, &words)?,
            ];
            fresh(&out)?;
            run_quietly(&programs[0], &out.join("one.profraw"))?;
            let wanted = counts_in(&llvm, &out)? * PROCESSES as u64;
            let mut lost = [0, 0];
            self.compare(mode, 1.0, |runtime| {
                fresh(&out)?;
                let program = &programs[usize::from(runtime == Runtime::Profkit)];
                let start = Instant::now();
                let mut running = Vec::new();
                for _ in 0..PROCESSES {
                    running.push(
                        Command::new(program)
                            .env("LLVM_PROFILE_FILE", out.join("%m.profraw"))
                            .stdin(Stdio::null())
                            .spawn()?,
                    );
                }
                for mut process in running {
                    let status = process.wait()?;
                    ensure!(status.success(), "{}: {status}", program.display());
                }
                let time = start.elapsed();
                lost[usize::from(runtime == Runtime::Profkit)] +=
                    wanted.abs_diff(counts_in(&llvm, &out)?);
                Ok(time)
            })?;
            println!("| {mode}, counts lost | {} | {} | | 0 |", lost[0], lost[1]);
            ensure!(lost[1] == 0, "{mode}: profkit's runtime lost counts");
        }
        Ok(())
    }

    /// Measures a program that spends its time on recording values.
    fn values(&mut self) -> Result<()> {
        self.head("User and system time of a program that mostly records values");
        let words = ["-O1", "-fprofile-generate"];
        let programs = [
            self.program("values", VALUES, Runtime::C, &words)?,
            self.program("values", VALUES, Runtime::Profkit, &words)?,
        ];
        let raw = self.folder.join("values.profraw");
        self.compare("20 million calls, 5 million copies", 1.05, |runtime| {
            let program = &programs[usize::from(runtime == Runtime::Profkit)];
            let ran = measure(Command::new(program).env("LLVM_PROFILE_FILE", &raw))?;
            ensure!(
                ran.status.success(),
                "{}: {}",
                program.display(),
                ran.status
            );
            Ok(ran.cpu)
        })
    }
}

/// The quotient of two sizes.
#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of programs have far fewer than 2^52 bytes"
)]
fn quotient(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

/// Runs a program that must end with exit code 0.
fn run_quietly(program: &Path, raw: &Path) -> Result<()> {
    let status = Command::new(program)
        .env("LLVM_PROFILE_FILE", raw)
        .stdin(Stdio::null())
        .status()?;
    ensure!(status.success(), "{}: {status}", program.display());
    Ok(())
}

/// The source of a program with many functions. It calls each function once, through a pointer.
fn many_functions() -> Result<String> {
    let mut source = String::new();
    for number in 0..FUNCTIONS {
        writeln!(
            source,
            "int f{number}(int n) {{ if (n % 3) n += {number}; return n > 7 ? n : -n; }}"
        )?;
    }
    source.push_str("int (*const all[])(int) = {\n");
    for number in 0..FUNCTIONS {
        writeln!(source, "f{number},")?;
    }
    source.push_str(
        "};\nint main(void) {\n  int sum = 0;\n  for (unsigned n = 0; n < sizeof all / sizeof *all; n++) sum += all[n](sum);\n  return sum == 42;\n}\n",
    );
    Ok(source)
}

/// The sum of all counters in the only profile of a folder.
fn counts_in(llvm: &Llvm, folder: &Path) -> Result<u64> {
    let mut raws = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    let Some(raw) = raws.pop() else {
        bail!("no profile was written");
    };
    ensure!(raws.is_empty(), "more than one profile was written");
    let merged = folder.join("merged.profdata");
    succeed(
        Command::new(llvm.profdata())
            .arg("merge")
            .arg(&raw)
            .arg("-o")
            .arg(&merged),
    )?;
    let text = succeed(
        Command::new(llvm.profdata())
            .args(["show", "--detailed-summary"])
            .arg(&merged),
    )?;
    text.lines()
        .find_map(|line| line.strip_prefix("Total count: "))
        .context("llvm-profdata shows no sum of counts")?
        .parse()
        .context("the sum of counts")
}
