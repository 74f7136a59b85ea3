//! Programs that are generated, built and run to get what benchmarks read.
use super::Place;
use super::inputs::scramble;
use crate::mip::make::{Real, Toolchain};
use crate::mip::packages::Sources;
use crate::steps::cargo;
use anyhow::{Context, Result};
use profkit_testkit::program::MipMode;
use profkit_testkit::simulate::{PerfFile, Program, Simulation, Step};
use profkit_testkit::{HEAP_FLAGS, HEAP_LINK_FLAGS, Rng, heap_dump};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Binaries (several builds of each program) and raw profiles without metadata, and the loop that merges them with LLVM's
/// tools: read the build id of each binary and of each profile, merge per program, and merge the results.
pub fn correlated(place: &Place, kind: &str, option: &str) -> Result<()> {
    let (programs, builds, runs) = place.size((20, 10, 25), (2, 2, 2));
    place.once("loop.sh", || {
        for program in 0..programs {
            place.write(&format!("make/{program}.c"), correlated_source(program, place.size(400, 20)))?;
            place.run(&format!(
                "mkdir -p bin raw
                flags='-fprofile-generate -mllvm -profile-correlate={kind} -mllvm -disable-vp=true'
                clang-22 -O1 -g $flags -c make/{program}.c -o make/{program}.o
                for build in $(seq {builds}); do
                  echo \"int stamp = $build;\" > make/stamp.c
                  clang-22 -fprofile-generate -Wl,--build-id=sha1 make/{program}.o make/stamp.c -o bin/{program}-$build
                done
                for run in $(seq {runs}); do LLVM_PROFILE_FILE=raw/{program}-$run.profraw bin/{program}-1 $run; done"
            ))?;
        }
        place.write(
            "loop.sh",
            format!(
                r#"set -e
rm -rf work; mkdir work
llvm-readelf-22 -n bin/* 2>/dev/null | awk '/^File:/{{file=$2}} /Build ID/{{print $3, file}}' > work/ids
for raw in raw/*; do
  id=$(llvm-profdata-22 show --binary-ids "$raw" | tail -1)
  echo "$raw" >> "work/group-$id"
done
for group in work/group-*; do
  id=${{group#work/group-}}
  binary=$(awk -v id="$id" '$1==id{{print $2}}' work/ids)
  llvm-profdata-22 merge "{option}=$binary" -f "$group" -o "work/$id.profdata"
done
llvm-profdata-22 merge work/*.profdata -o "$1"
"#
            ),
        )
    })
}

fn correlated_source(program: usize, functions: usize) -> String {
    let (mut text, mut calls) = ("#include <stdlib.h>\n".to_owned(), String::new());
    for function in 0..functions {
        let _ = writeln!(
            text,
            "__attribute__((noinline)) int f_{program}_{function}(int x) {{ int s = 0; for (int i = 0; i < x % {}; i++) \
             s += i & 1 ? x : {function}; return x > {function} ? s : -s; }}",
            function % 7 + 2
        );
        let _ = writeln!(
            calls,
            "if (x % {} == 0) s += f_{program}_{function}(x + {function});",
            function % 5 + 1
        );
    }
    text + "int main(int argc, char **argv) { int x = atoi(argv[argc - 1]), s = 0;\n"
        + &calls
        + "return s == 12345; }\n"
}

/// A program that allocates from many call stacks, dumps of its runs, a list of them, and what LLVM makes of one.
pub fn heap(place: &Place) -> Result<()> {
    place.once("one", || {
        place.write("program.cpp", heap_source(place.size(500, 20), place.size(10_000, 50)))?;
        place.run(&format!(
            "mkdir -p raw; clang++-22 {} {} program.cpp -o program",
            HEAP_FLAGS.join(" "),
            HEAP_LINK_FLAGS.join(" ")
        ))?;
        for run in 0..place.size(500, 3) {
            let run = run.to_string();
            heap_dump(Command::new(place.folder.join("program")).arg(&run), &place.folder.join("raw"), &run)?;
        }
        place.run(
            "ls raw/*.memprofraw > list
            llvm-profdata-22 merge raw/0.memprofraw --profiled-binary=program --memprof-version=3 -o one",
        )
    })
}

/// Functions in levels. The argument decides which of three functions of the next level a function calls; the last level
/// allocates through an inlined function.
fn heap_source(width: usize, contexts: usize) -> String {
    const LEVELS: usize = 8;
    let mut text = format!(
        "#include <cstdlib>\n#include <cstring>\nstatic unsigned extra, count;\nstatic void *all[{contexts}];\n\
         static inline __attribute__((always_inline)) char *take(unsigned size) {{\n  \
         char *bytes = new char[size + extra];\n  std::memset(bytes, 1, size);\n  return bytes;\n}}\n"
    );
    for level in (0..LEVELS).rev() {
        for function in 0..width {
            let _ = writeln!(
                text,
                "__attribute__((noinline)) static void f_{level}_{function}(unsigned path) {{"
            );
            if level == LEVELS - 1 {
                let _ = writeln!(
                    text,
                    "  all[count++] = take({} + path % 3);\n}}",
                    function % 97 + 8
                );
                continue;
            }
            text.push_str("  switch (path % 3) {\n");
            for (choice, label) in ["case 0", "case 1", "default"].into_iter().enumerate() {
                let next = (function * 7 + choice * 131 + level) % width;
                let _ = writeln!(text, "  {label}: f_{}_{next}(path / 3); break;", level + 1);
            }
            text.push_str("  }\n}\n");
        }
    }
    let first: Vec<String> = (0..width)
        .map(|function| format!("f_0_{function}"))
        .collect();
    let _ = write!(
        text,
        "static void (*const first[])(unsigned) = {{{}}};\nint main(int argc, char **argv) {{\n  \
         extra = std::atoi(argv[argc - 1]) % 16;\n  for (unsigned run = 0; run < {contexts}; ++run)\n    \
         first[run % {width}](run * 2654435761u >> 7);\n  for (unsigned at = 0; at < count; ++at)\n    \
         delete[] static_cast<char *>(all[at]);\n  return 0;\n}}\n",
        first.join(", ")
    );
    text
}

/// A large program with debug info. Compiling a hundred megabytes of code would take an hour, so each object file is
/// linked many times with renamed symbols: to a symboliser, each copy is a compile unit of its own.
fn large_program(place: &Place) -> Result<()> {
    let (sources, copies, functions) = place.size((6, 18, 400), (2, 2, 10));
    place.once("program", || {
        place.write("steps.h", steps_header())?;
        place.write("main.c", "int main(void) { return 0; }\n")?;
        for number in 0..sources {
            place.write(&format!("part{number}.cpp"), steps_source(number, functions))?;
            place.run(&format!(
                "clang++-22 -O2 -g -fdebug-info-for-profiling -c part{number}.cpp
                for copy in $(seq {copies}); do
                  llvm-objcopy-22 --prefix-symbols=copy${{copy}}_ part{number}.o copy{number}-$copy.o
                done"
            ))?;
        }
        place.run("clang-22 -g -fuse-ld=lld main.c copy*.o -o program; rm copy*.o")
    })
}

const STEPS: usize = 60;

/// Inlined functions that call each other, some levels deep.
fn steps_header() -> String {
    let mut rng = Rng::new(1);
    let mut text = "#pragma once\nstruct Node { int kind; long weight; Node *next; unsigned char tag[16]; };\n\
                    static volatile long sink;\n"
        .to_owned();
    for step in 0..STEPS {
        let _ = write!(
            text,
            "static inline __attribute__((always_inline)) long step{step}(const Node *n, long a) {{\n  \
             long r = n->weight * {} + a;\n  if (n->kind == {step}) r ^= a >> {};\n",
            step + 3,
            step % 7 + 1
        );
        for _ in 0..rng.below(3).min(step / 3) {
            let other = step - 1 - rng.below(step.min(9));
            let _ = writeln!(
                text,
                "  if (r & {}) r += step{other}(n, r);",
                1 << (other % 9)
            );
        }
        text.push_str("  return r;\n}\n");
    }
    text
}

fn steps_source(number: u64, functions: usize) -> String {
    let mut rng = Rng::new(number + 2);
    let mut text = format!("#include \"steps.h\"\nnamespace part{number} {{\n");
    for function in 0..functions {
        let _ = write!(
            text,
            "long work{function}(Node *list, long a) {{\n  long total = {function};\n  \
             for (Node *n = list; n; n = n->next) {{\n"
        );
        for _ in 0..4 {
            let step = rng.below(STEPS);
            let _ = writeln!(
                text,
                "    total += step{step}(n, a + total);\n    if (total > {}) sink = total;",
                step * 1000
            );
        }
        text.push_str("  }\n  return total;\n}\n");
    }
    text + "}\n"
}

/// The large program, and addresses at equal distances in its code.
pub fn symbolized(place: &Place) -> Result<()> {
    large_program(place)?;
    place.once("addresses", || {
        let count = place.size(1_000_000, 500);
        place.run(&format!(
            "set -- $(llvm-readelf-22 -S --wide program | sed -n 's/.* [.]text  *PROGBITS//p')
            from=$((0x$1)) size=$((0x$3))
            awk -v from=$from -v size=$size 'BEGIN {{ for (at = 0; at < {count}; at++)
              printf \"0x%x\\n\", from + int(at * size / {count}) }}' > addresses"
        ))
    })?;
    example(place, "profkit-object", "llvm_symbolizer")
}

/// Builds an example program in the profile of the measured program.
pub fn example(place: &Place, package: &str, name: &str) -> Result<()> {
    let built = place.profkit.with_file_name("examples").join(name);
    let folder = place.profkit.parent().and_then(Path::file_name);
    let profile = match folder.and_then(OsStr::to_str) {
        _ if built.exists() && place.small => return Ok(()),
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    cargo(
        &[
            "build",
            "-q",
            "--profile",
            profile,
            "-p",
            package,
            "--example",
            name,
        ],
        &[],
    )
}

/// The large program, and a simulated recording of it with branch stacks.
pub fn recorded(place: &Place) -> Result<()> {
    large_program(place)?;
    place.once("program.data", || {
        let simulation = Simulation::new(1).truth(false).anywhere(true);
        let samples = place.size(500_000_000, 200_000) / simulation.sample_size();
        let part = place.folder.join("program.part");
        let mut file = PerfFile::new(simulation.writer(), File::create(&part)?)?;
        let steps = [Step::Start { pid: 7, program: 0 }, Step::Samples(samples)];
        simulation.run(
            &[Program::open(&place.folder.join("program"))],
            &steps,
            &mut file,
        )?;
        file.finish()?;
        Ok(fs::rename(part, place.folder.join("program.data"))?)
    })
}

/// A program of many functions whose three tasks each call a tenth of them at their start, in an order of their own;
/// linked without an order, and with the orders of both tools.
pub fn ordered(place: &Place) -> Result<()> {
    const FILES: u64 = 10;
    let functions = place.size(5000, 100);
    place.once("start.sh", || {
        for file in 0..FILES {
            let mut text = String::new();
            for function in (0..functions).filter(|function| function % FILES == file) {
                let _ = writeln!(text, "unsigned work{function}(unsigned x) {{");
                for step in 0..10 {
                    let random = scramble(function * 64 + step);
                    let (bit, factor, add) = (1 << (random % 20), random % 100_003 * 2 + 1, random >> 40 & 0xffff);
                    let _ = writeln!(
                        text,
                        "  if (x & {bit}u) x = x * {factor}u + {add}u; else x ^= x >> {};",
                        random % 13 + 1
                    );
                }
                text.push_str("  return x;\n}\n");
            }
            place.write(&format!("part{file}.cpp"), text)?;
        }
        let mut text = "#include <cstdio>\n#include <cstdlib>\n".to_owned();
        for function in 0..functions {
            let _ = writeln!(text, "unsigned work{function}(unsigned);");
        }
        text.push_str("int main(int argc, char **argv) {\n  unsigned x = 1;\n  switch (std::atoi(argv[argc - 1])) {\n");
        for task in 0..3 {
            let _ = writeln!(text, "  case {task}:");
            // Some functions are called by all tasks, others by only one.
            let is_called =
                |&function: &u64| scramble(function) % 100 < 6 || scramble(function * 7 + task) % 100 < 6;
            let mut called: Vec<u64> = (0..functions).filter(is_called).collect();
            called.sort_by_key(|function| scramble(function * 31 + task));
            for function in called {
                let _ = writeln!(text, "    x = work{function}(x);");
            }
            text.push_str("    break;\n");
        }
        text.push_str("  }\n  std::printf(\"%u\\n\", x);\n}\n");
        place.write("part-main.cpp", text)?;
        place.run(
            "for file in part*.cpp; do
              clang++-22 -O1 -ffunction-sections -c $file -o ${file%.cpp}.plain.o
              clang++-22 -O1 -ffunction-sections -fprofile-generate -mllvm -pgo-temporal-instrumentation \
                -c $file -o ${file%.cpp}.traced.o
            done
            clang++-22 -fuse-ld=lld-22 -fprofile-generate *.traced.o -o traced
            for task in 0 1 2; do LLVM_PROFILE_FILE=$task.profraw ./traced $task > /dev/null; done
            llvm-profdata-22 merge ?.profraw -o traces.profdata
            llvm-profdata-22 order traces.profdata | grep -v '^#' > by-llvm.txt
            $PROFKIT order traces.profdata > by-profkit.txt
            clang++-22 -fuse-ld=lld-22 *.plain.o -o unordered
            for order in by-llvm by-profkit; do
              clang++-22 -fuse-ld=lld-22 *.plain.o -o $order -Wl,--symbol-ordering-file=$order.txt
            done",
        )?;
        place.write(
            "start.sh",
            "set -e\nfor task in 0 1 2; do\n  \
             dd of=$1 oflag=nocache conv=notrunc,fdatasync count=0 status=none < /dev/null\n  ./$1 $task\ndone\n",
        )
    })
}

/// Programs with LLVM's C runtime and with profkit's: one that does almost nothing, also linked statically; one with many
/// functions; one that spends its time on value profiling.
pub fn runtime(place: &Place) -> Result<()> {
    const SMALL: &str = "static int odd(int n) { return n % 2 ? n : -n; }\n\
        int main(int count, char **words) { return odd(count) == -odd(-count) + 12345; }\n";
    const VALUES: &str = "#include <string.h>\n\
        static int a(int n) { return n + 1; }\nstatic int b(int n) { return n ^ 3; }\n\
        static int c(int n) { return n * 5; }\nstatic int d(int n) { return n - 7; }\n\
        int (*volatile targets[8])(int) = {a, a, b, a, c, b, d, a};\nstatic char from[1024], to[1024];\n\
        int main(void) {\n  int sum = 0;\n  for (unsigned n = 0; n < TIMES; n++) {\n    sum += targets[n & 7](sum);\n    \
        if (n % 4 == 0) memcpy(to, from, ((unsigned)sum >> 3) & 511);\n  }\n  return sum == 42 && to[5];\n}\n";
    place.once("one.profraw", || {
        let functions = place.size(2000, 50);
        let mut many = String::new();
        for number in 0..functions {
            let _ = writeln!(many, "int f{number}(int n) {{ if (n % 3) n += {number}; return n > 7 ? n : -n; }}");
        }
        let names: Vec<String> = (0..functions).map(|number| format!("f{number}")).collect();
        let _ = writeln!(
            many,
            "int (*const all[])(int) = {{{}}};\nint main(void) {{\n  int sum = 0;\n  \
             for (unsigned n = 0; n < {functions}; n++) sum += all[n](sum);\n  return sum == 42;\n}}",
            names.join(", ")
        );
        place.write("start.c", SMALL)?;
        place.write("values.c", VALUES)?;
        place.write("pool.c", many)?;
        place.write(
            "total.sh",
            "llvm-profdata-22 merge \"$@\" -o total.profdata\n\
             llvm-profdata-22 show --detailed-summary total.profdata | sed -n 's/^Total count: //p'\n",
        )?;
        place.run(&format!(
            "$PROFKIT runtime --for raw-10 -o libprofile.a
            clang-22 -O1 -fprofile-instr-generate -c start.c
            clang-22 -fprofile-instr-generate -noprofilelib start.o -o start-none
            for kind in c profkit; do
              library=; [ $kind = c ] || library=libprofile.a
              clang-22 -fprofile-instr-generate start.o $library -o start-$kind
              clang-22 -fprofile-instr-generate -static start.o $library -o static-$kind
              clang-22 -O1 -fprofile-generate pool.c $library -o pool-$kind
              clang-22 -O1 -fprofile-generate -DTIMES={} values.c $library -o values-$kind
            done
            LLVM_PROFILE_FILE=one.profraw ./pool-c",
            place.size(20_000_000, 20_000)
        ))
    })
}

/// A real program (with `--small` one that does nothing), built plain, by MIP in three modes and by clang with counters, and a script that runs each.
pub fn mip_cost(place: &Place, real: Real) -> Result<()> {
    let mode = |name: &str| -> Result<Toolchain> {
        let mode = MipMode::named(name).context("a mode")?;
        Ok(Toolchain::mip("clang-22", &place.profkit, mode))
    };
    let counters = ["-fprofile-generate", "-mllvm", "-disable-vp=true"];
    let tools = [
        ("plain", Toolchain::plain("clang-22")),
        ("function", mode("function")?),
        ("unary", mode("unary")?),
        ("calls", mode("calls")?),
        (
            "clang",
            Toolchain::plain("clang-22").with("counters", &counters, &[]),
        ),
    ];
    for (name, tools) in tools {
        place.once(&format!("{name}.sh"), || {
            if place.small {
                place.write("small.c", "int main(void) { return 0; }\n")?;
                place.run(&format!(
                    "{} {} small.c -o small-{name}",
                    tools.cc,
                    tools.flags()
                ))?;
                return place.write(&format!("{name}.sh"), format!("./small-{name}\n"));
            }
            let tree = place.folder.join(name);
            real.build(&Sources::new(&place.folder), &tools, &tree)?;
            let lines = real.workload(&tree, place.size(8, 1))?;
            let lines: Vec<String> = lines
                .iter()
                .map(|line| format!("'{}' > /dev/null\n", line.join("' '")))
                .collect();
            place.write(&format!("{name}.sh"), format!("set -e\n{}", lines.concat()))
        })?;
    }
    Ok(())
}
