//! Tests `profkit sample` with recordings of many processes: one profile of all binaries, binaries from folders and
//! from the cache of debuginfod, and counts of several machines.
use profkit_object::binary::BinaryFile;
use profkit_object::build_id::build_id;
use profkit_testkit::simulate::{Program, Simulation, Step};
use profkit_testkit::{Llvm, links_c, or_skip, repo_root, require_or_skip, skip, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct Machine {
    folder: TempDir,
    /// The programs that ran, and the library that one of them loaded.
    binaries: Vec<PathBuf>,
}

impl Machine {
    fn new(llvm: &Llvm) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir_all(folder.path().join("builds/lib")).unwrap();
        let builds = [
            ("walked.c", "builds/app", &["-fPIE", "-pie"][..]),
            ("sampled.c", "builds/other", &["-no-pie"]),
            (
                "walked_library.c",
                "builds/lib/walked.so",
                &["-shared", "-fPIC"],
            ),
        ];
        let mut binaries = Vec::new();
        for (source, output, arguments) in builds {
            let output = folder.path().join(output);
            succeed(
                Command::new(llvm.clang())
                    .args(["-O2", "-g", "-fdebug-info-for-profiling"])
                    .arg("-Wl,--build-id=sha1")
                    .args(arguments)
                    .arg(repo_root().join("tests/programs").join(source))
                    .arg("-o")
                    .arg(&output),
            );
            binaries.push(output);
        }
        Machine { folder, binaries }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records processes that start, fork, load the library, and start another program.
    fn record(&self, seed: u64, name: &str) {
        let programs: Vec<Program> = self.binaries.iter().map(|it| Program::open(it)).collect();
        let simulation = Simulation::new(seed).depth(16);
        let steps = [
            Step::Start {
                pid: 10,
                program: 0,
            },
            Step::Samples(300),
            Step::Start {
                pid: 20,
                program: 1,
            },
            Step::Fork { pid: 10, child: 11 },
            Step::Open {
                pid: 11,
                program: 2,
            },
            Step::Samples(900),
            Step::Exec {
                pid: 10,
                program: 1,
            },
            Step::Samples(300),
        ];
        let mut writer = simulation.writer();
        simulation.run(&programs, &steps, &mut writer).unwrap();
        std::fs::write(self.path(name), writer.file()).unwrap();
    }

    fn profkit(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        command
            .current_dir(self.folder.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("DEBUGINFOD_CACHE_PATH", self.path("served"))
            .env("DEBUGINFOD_URLS", "http://127.0.0.1:9/");
        command
    }

    /// Returns the text profile that `profkit sample` makes.
    fn sample(&self, arguments: &[&str]) -> String {
        let mut command = self.profkit();
        command.arg("sample").args(arguments);
        succeed(command.args(["--to", "text", "-o", "out"]));
        std::fs::read_to_string(self.path("out")).unwrap()
    }
}

fn id_of(path: &Path) -> String {
    let file = BinaryFile::open(path).unwrap();
    let image = file.image(|_| true).unwrap();
    build_id(&image).unwrap().unwrap().to_string()
}

#[test]
fn all_binaries_of_a_folder_are_found_at_once() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let machine = Machine::new(&llvm);
    machine.record(1, "perf.data");
    let all = machine.sample(&["perf.data", "--binaries", "builds"]);
    let mut named = vec!["perf.data"];
    let mut merge = machine.profkit();
    merge.arg("merge");
    for (index, binary) in machine.binaries.iter().enumerate() {
        let binary = binary.to_str().unwrap();
        let one = machine.sample(&["perf.data", "--binary", binary]);
        assert!(!one.is_empty());
        let name = format!("{index}.prof");
        std::fs::write(machine.path(&name), one).unwrap();
        merge.arg(name);
        named.extend(["--binary", binary]);
    }
    assert_eq!(machine.sample(&named), all);
    // In a folder, each binary has a profile of its own.
    let mut each = machine.profkit();
    each.args(["sample", "perf.data", "--binaries", "builds"]);
    succeed(each.args(["--to", "text", "-o", "each/"]));
    for (index, name) in ["app", "other", "walked.so"].into_iter().enumerate() {
        let read = |name: &str| std::fs::read_to_string(machine.path(name)).unwrap();
        assert_eq!(
            read(&format!("each/{name}.txt")),
            read(&format!("{index}.prof"))
        );
    }
    assert_eq!(std::fs::read_dir(machine.path("each")).unwrap().count(), 3);
    succeed(merge.args(["--text", "-o", "merged"]));
    // The samples of functions with the same name in several binaries are added up.
    assert_eq!(
        std::fs::read_to_string(machine.path("merged")).unwrap(),
        all
    );
}

#[test]
fn binaries_and_debug_info_come_from_debuginfod() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let machine = Machine::new(&llvm);
    machine.record(2, "perf.data");
    let expected = machine.sample(&["perf.data", "--binaries", "builds"]);
    // The servers cannot be reached, so only the files in the cache can be used.
    for binary in &machine.binaries {
        let folder = machine.path("served").join(id_of(binary));
        std::fs::create_dir_all(&folder).unwrap();
        let debug = folder.join("debuginfo");
        succeed(
            Command::new("objcopy")
                .arg("--only-keep-debug")
                .arg(binary)
                .arg(debug),
        );
        let stripped = folder.join("executable");
        succeed(Command::new("strip").arg(binary).arg("-o").arg(stripped));
    }
    std::fs::remove_dir_all(machine.path("builds")).unwrap();
    assert_eq!(machine.sample(&["perf.data", "--debuginfod"]), expected);
    // Without debug info there is no profile, and the message says what to do.
    for entry in std::fs::read_dir(machine.path("served")).unwrap() {
        std::fs::remove_file(entry.unwrap().path().join("debuginfo")).unwrap();
    }
    let mut command = machine.profkit();
    command.args(["sample", "perf.data", "--debuginfod", "-o", "other"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("the binary has no debug info"), "{text}");
    assert!(!machine.path("other").exists());
}

#[test]
fn counts_of_several_machines_are_those_of_their_recordings() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let machine = Machine::new(&llvm);
    let names = ["monday", "tuesday", "friday"];
    for (name, seed) in names.into_iter().zip(1..) {
        machine.record(seed, name);
        let counts = format!("{name}.addresses");
        succeed(
            machine
                .profkit()
                .args(["sample", name, "--addresses", &counts]),
        );
        let size = |name: &str| std::fs::metadata(machine.path(name)).unwrap().len();
        assert!(
            size(&counts) * 3 < size(name),
            "{} {}",
            size(&counts),
            size(name)
        );
    }
    let with = |inputs: &[&str]| machine.sample(&[inputs, &["--binaries", "builds"]].concat());
    let expected = with(&names);
    let addresses = ["friday.addresses", "monday.addresses", "tuesday.addresses"];
    assert_eq!(with(&addresses), expected);
    assert_eq!(with(&["friday", "monday.addresses", "tuesday"]), expected);
    // Sums of sums.
    let mut sum = machine.profkit();
    sum.args(["sample", "monday.addresses", "friday.addresses"]);
    succeed(sum.args(["--addresses", "two"]));
    assert_eq!(with(&["two", "tuesday.addresses"]), expected);
    let mut sum = machine.profkit();
    sum.args(["sample", "two", "tuesday", "--addresses", "all"]);
    succeed(&mut sum);
    let mut again = machine.profkit();
    again.args([
        "sample",
        "tuesday",
        "monday",
        "friday",
        "--addresses",
        "same",
    ]);
    succeed(&mut again);
    let read = |name: &str| std::fs::read(machine.path(name)).unwrap();
    assert_eq!(read("all"), read("same"));
}

/// What perf2bolt-22 makes of the recording tests/fixtures/perf/walked.data itself, with perf 6.1: functions and offsets of a
/// branch, how often it was mispredicted, how often it was taken.
const OF_THE_RECORDING: &str = "\
1 apply b 1 power 0 1 7
1 choose 3 1 choose 5 0 2
1 choose 3 1 choose 3d 0 4
1 choose 15 1 choose 1f 0 1
1 choose 15 1 choose 3d 0 1
1 main a4 1 apply 0 0 6
1 main d5 1 choose 0 0 7
1 main e4 1 main 60 0 6
1 multiply 2 1 multiply 4 0 5
1 multiply 2 1 multiply 24 5 159
1 multiply d 1 multiply 10 0 5
1 multiply 14 1 add 0 0 16
1 multiply 1b 1 multiply 10 1 11
1 multiply 1b 1 multiply 1d 0 4
1 power 2 1 power 4 0 349
1 power 2 1 power 1b 1 3
1 power 9 1 power 0 3 371
1 power 16 1 multiply 0 5 168
";

fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The profile that perf2bolt-22 makes of pre-aggregated counts.
fn perf2bolt(program: &Path, counts: &Path) -> String {
    let output = counts.with_extension("made");
    succeed(
        Command::new("/usr/bin/perf2bolt-22")
            .arg("-pa")
            .arg("-p")
            .args([counts, program])
            .arg("-o")
            .arg(&output),
    );
    std::fs::read_to_string(output).unwrap()
}

#[test]
fn bolt_gets_of_our_counts_what_it_gets_of_the_recording() {
    let optimiser = Path::new("/usr/bin/llvm-bolt-22");
    if !Path::new("/usr/bin/perf2bolt-22").exists() || !optimiser.exists() {
        return skip("bolt-22 is not installed");
    }
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let fixtures = repo_root().join("tests/fixtures/perf");
    let program = fixtures.join("walked");
    for (form, file) in [
        ("traces", "traces"),
        ("branches", "branches"),
        ("fdata", "x.fdata"),
    ] {
        succeed(
            Command::new(env!("CARGO_BIN_EXE_profkit"))
                .arg("sample")
                .arg(fixtures.join("walked.data"))
                .arg("--binary")
                .arg(&program)
                .args(["--bolt-format", form])
                .arg("--bolt")
                .arg(path(file)),
        );
    }
    let expected = sorted_lines(OF_THE_RECORDING);
    assert_eq!(
        sorted_lines(&perf2bolt(&program, &path("traces"))),
        expected
    );
    assert_eq!(
        sorted_lines(&perf2bolt(&program, &path("branches"))),
        expected
    );
    let made = std::fs::read_to_string(path("x.fdata")).unwrap();
    assert_eq!(sorted_lines(&made), expected);
    let output = Command::new(optimiser)
        .arg(&program)
        .arg("-o")
        .arg(path("optimised"))
        .arg("-data")
        .arg(path("x.fdata"))
        .args(["-reorder-blocks=ext-tsp", "-dyno-stats"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("6 out of 16 functions in the binary (37.5%) have non-empty"),
        "{said}"
    );
}

/// Local functions, functions of libraries, tables of jumps, blocks that follow a call, and position-dependent code.
#[test]
fn fdata_is_what_perf2bolt_makes() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    if !Path::new("/usr/bin/perf2bolt-22").exists() {
        return skip("bolt-22 is not installed");
    }
    let machine = Machine::new(&llvm);
    let source = "#include <stdio.h>\n#include <stdlib.h>\n\
        static int __attribute__((noinline)) leaf(int n) { return n % 7 ? n * 3 : abs(n); }\n\
        int __attribute__((noinline)) choose(int n) {\n\
        switch (n % 9) { case 0: return n + 7; case 1: return n * 5; case 2: n += leaf(4);\n\
        case 3: return n ^ 99; case 4: return n - 11; case 5: n = leaf(n); case 6: return n * 77;\n\
        case 7: return n / 3; default: return 0; } }\n\
        int main(int argc, char **argv) { long sum = 0; for (int i = 0; i < argc * 900; i++) {\n\
        if (i % 3) sum += choose(i); sum ^= leaf(i); } printf(\"%ld\\n\", sum); return 0; }\n";
    std::fs::write(machine.path("tables.c"), source).unwrap();
    for (name, flags) in [
        ("pie", ["-fPIE", "-pie"]),
        ("fixed", ["-fno-pie", "-no-pie"]),
    ] {
        let program = machine.path(name);
        succeed(
            Command::new(llvm.clang())
                .args(["-O2", "-w", "-Wl,--build-id=sha1"])
                .args(flags)
                .arg(machine.path("tables.c"))
                .arg("-o")
                .arg(&program),
        );
        let simulation = Simulation::new(3).depth(16);
        let mut writer = simulation.writer();
        let steps = [
            Step::Start {
                pid: 10,
                program: 0,
            },
            Step::Samples(2000),
        ];
        let programs = [Program::open(&program)];
        simulation.run(&programs, &steps, &mut writer).unwrap();
        std::fs::write(machine.path("data"), writer.file()).unwrap();
        for file in ["counts", "our.fdata"] {
            let mut sample = machine.profkit();
            sample.args(["sample", "data", "--binary", name, "--bolt", file]);
            succeed(&mut sample);
        }
        let made = std::fs::read_to_string(machine.path("our.fdata")).unwrap();
        assert!(
            made.contains(" leaf/1 ") && made.contains("abs") || made.contains("@PLT"),
            "{made}"
        );
        let theirs = perf2bolt(&program, &machine.path("counts"));
        assert_eq!(sorted_lines(&made), sorted_lines(&theirs), "{name}");
    }
}

/// `show` names the functions of a stripped program by the symbols that are packed in it, and says if they are damaged.
#[test]
fn packed_symbols_name_the_functions_of_a_recording() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    for tool in ["objcopy", "strip", "xz"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return skip(&format!("{tool} is not installed"));
        }
    }
    let machine = Machine::new(&llvm);
    machine.record(1, "perf.data");
    let run = |command: &str| {
        let mut words = command.split(' ');
        let mut tool = Command::new(words.next().unwrap());
        succeed(tool.args(words).current_dir(machine.folder.path()));
    };
    let shown = || {
        let mut show = machine.profkit();
        show.args(["show", "perf.data", "--binaries", "builds/app"]);
        let output = show.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let expected = shown();
    assert!(expected.contains("multiply"), "{expected}");
    run("objcopy --only-keep-debug builds/app debug");
    run(
        "objcopy -S debug mini --keep-symbol=multiply --keep-symbol=main --keep-symbol=power \
         --keep-symbol=apply --keep-symbol=choose --keep-symbol=add",
    );
    run("strip --strip-all builds/app");
    let without = shown();
    assert!(!without.contains("multiply"), "{without}");
    run("xz -k mini");
    run("objcopy --add-section=.gnu_debugdata=mini.xz builds/app packed");
    std::fs::rename(machine.path("packed"), machine.path("builds/app")).unwrap();
    assert!(shown().contains("multiply"));
    std::fs::write(machine.path("none"), "no xz").unwrap();
    run("objcopy --update-section=.gnu_debugdata=none builds/app");
    let damaged = shown();
    assert!(damaged.contains(".gnu_debugdata"), "{damaged}");
}
