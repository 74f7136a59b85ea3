//! Files for pprof, read by the program of google/pprof itself: its tables have the numbers of `profkit show` and of the
//! tables of the same profile, and `-list` finds the lines.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]
use profkit_testkit::{fixture_path, on_path, require_or_skip, skip, succeed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The numbers of functions, or of their lines, by name.
type Numbers = BTreeMap<String, u64>;

struct Reader {
    pprof: PathBuf,
    folder: TempDir,
}

/// The reader; `None` where it is missing, which is reported.
fn reader() -> Option<Reader> {
    let named = std::env::var_os("PROFKIT_PPROF").map(PathBuf::from);
    let Some(pprof) = named.or_else(|| on_path("pprof")) else {
        skip("no pprof (PROFKIT_PPROF, see .ci/run)");
        return None;
    };
    let folder = tempfile::tempdir().expect("a folder");
    Some(Reader { pprof, folder })
}

impl Reader {
    fn profkit(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        let output = command
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .expect("profkit runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "profkit {arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn pprof(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.pprof);
        command
            .args([
                "-symbolize=none",
                "-nodecount=100000",
                "-nodefraction=0",
                "-edgefraction=0",
            ])
            .args(arguments)
            .arg("x.pb.gz")
            .env("PPROF_TMPDIR", self.folder.path())
            .current_dir(self.folder.path());
        let output = command.output().expect("pprof runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "pprof {arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn export(&self, profile: &str, binaries: &[&str]) {
        let export = ["export", profile, "--to", "pprof", "-o", "x.pb.gz"];
        self.profkit(&[&export[..], binaries].concat());
    }

    /// The numbers of the functions themselves, and the total, of one type of sample.
    fn top(&self, index: &str, more: &[&str]) -> (Numbers, u64) {
        let index = format!("-sample_index={index}");
        let text = self.pprof(&[&["-top", &index, "-unit=B"][..], more].concat());
        let number = |text: &str| {
            let text = text.trim_end_matches('B');
            text.parse::<u64>()
                .unwrap_or_else(|_| panic!("{text} is no whole number"))
        };
        let total = text.lines().find_map(|line| {
            let (_, rest) = line.split_once("of ")?;
            Some(number(rest.strip_suffix(" total")?))
        });
        let rows = text
            .lines()
            .skip_while(|line| !line.trim_start().starts_with("flat "));
        let mut numbers = Numbers::new();
        for row in rows.skip(1) {
            let mut words = row.split_whitespace();
            let flat = number(words.next().expect("a number"));
            let name: Vec<&str> = words.skip(4).collect();
            if flat > 0 {
                *numbers.entry(name.join(" ")).or_default() += flat;
            }
        }
        (numbers, total.expect("a total"))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let more = [arguments, &["--format", "json"]].concat();
        serde_json::from_str(&self.profkit(&more)).expect("JSON")
    }

    /// The numbers of a column of `show`, by the names that people see.
    fn shown(&self, profile: &str, column: &str) -> Numbers {
        let json = self.json(&["show", profile, "--top", "100000"]);
        let mut numbers = Numbers::new();
        for row in json["hot"].as_array().expect("functions") {
            let name = row["demangled"].as_str().or(row["function"].as_str());
            let value = row[column].as_u64().expect("a number");
            if value > 0 {
                *numbers.entry(name.expect("a name").to_owned()).or_default() += value;
            }
        }
        numbers
    }

    /// The rows of a table.
    fn rows(&self, profile: &str, table: &str, more: &[&str]) -> Vec<Value> {
        let export = [
            "export", profile, "--to", "json", "--table", table, "-o", "-",
        ];
        let text = self.profkit(&[&export[..], more].concat());
        let json: Value = serde_json::from_str(&text).expect("JSON");
        json["rows"].as_array().expect("rows").clone()
    }
}

fn fixture(name: &str) -> String {
    fixture_path(name).display().to_string()
}

fn check((found, total): (Numbers, u64), expected: &Numbers) {
    assert_eq!(&found, expected);
    assert_eq!(total, expected.values().sum::<u64>());
}

#[test]
fn of_instrumentation_profiles() {
    let Some(reader) = reader() else { return };
    for name in [
        "indexed/clang-22-fe-shapes.profdata",
        "indexed/clang-22-ir-plain.profdata",
        "indexed/clang-22-cs-ir-shapes.profdata",
    ] {
        let profile = fixture(name);
        reader.export(&profile, &[]);
        check(reader.top("counts", &[]), &reader.shown(&profile, "sum"));
    }
}

#[test]
fn of_a_program_with_debug_info() {
    let Some(reader) = reader() else { return };
    let llvm = require_or_skip!(22);
    let source = "#include <stdio.h>\nstatic int leaf(int x) {\n  return x * 3;\n}\n\nint main(void) {\n  int sum = 0;\n  for (int i = 0; i < 90; i++)\n    sum += leaf(i);\n  printf(\"%d\\n\", sum);\n}\n";
    let at = |name: &str| reader.folder.path().join(name);
    std::fs::write(at("a.c"), source).expect("a source file");
    succeed(
        Command::new(llvm.clang())
            .args([
                "-O1",
                "-g",
                "-fprofile-instr-generate",
                "a.c",
                "-o",
                "a.out",
            ])
            .current_dir(reader.folder.path()),
    );
    succeed(Command::new(at("a.out")).env("LLVM_PROFILE_FILE", at("a.profraw")));
    reader.export("a.profraw", &["--binaries", "a.out"]);
    check(reader.top("counts", &[]), &reader.shown("a.profraw", "sum"));
    let calls = Numbers::from([("a.c:leaf".to_owned(), 90), ("main".to_owned(), 1)]);
    check(reader.top("executions", &[]), &calls);
    // -lines names the line of each function, and -list shows the source there.
    let (lines, _) = reader.top("executions", &["-lines"]);
    let path = at("a.c").display().to_string();
    let expected = [
        (format!("a.c:leaf {path}:2"), 90),
        (format!("main {path}:6"), 1),
    ];
    assert_eq!(lines, Numbers::from(expected));
    let listed = reader.pprof(&["-sample_index=executions", "-list=leaf"]);
    let line = listed
        .lines()
        .find(|line| line.contains("2:static int leaf"));
    let numbers: Vec<&str> = line.expect(&listed).split_whitespace().take(2).collect();
    assert_eq!(numbers, ["90", "90"], "{listed}");
}

#[test]
fn of_a_sample_profile() {
    let Some(reader) = reader() else { return };
    let profile = fixture("sample/llvm-22-nested-text.sampleprof");
    reader.export(&profile, &[]);
    // The samples of a line belong to the innermost function that it was inlined from.
    let mut expected = Numbers::new();
    let functions = reader.rows(&profile, "functions", &[]);
    for row in reader.rows(&profile, "lines", &[]) {
        let inlined = row["inlined"]
            .as_str()
            .and_then(|text| text.rsplit(' ').next());
        let own = || {
            let same = |one: &&Value| one["function"] == row["function"];
            let function = functions.iter().find(same).expect("the function");
            function["demangled"]
                .as_str()
                .or(function["function"].as_str())
        };
        let name = inlined.filter(|name| !name.is_empty()).or_else(own);
        let samples = row["samples"].as_u64().expect("samples");
        *expected
            .entry(name.expect("a name").to_owned())
            .or_default() += samples;
    }
    check(reader.top("samples", &[]), &expected);
    // With callers, the samples are those of `show`.
    let cumulative = reader.pprof(&["-top", "-cum", "-sample_index=samples", "-focus=^main$"]);
    let main = cumulative
        .lines()
        .find(|line| line.ends_with(" main"))
        .expect("main");
    let found: u64 = main
        .split_whitespace()
        .nth(3)
        .expect("a number")
        .parse()
        .expect("a number");
    assert_eq!(found, reader.shown(&profile, "samples")["main"]);
}

/// A path as pprof prints it: without the folders that `..` leaves again.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn of_a_heap_profile() {
    let Some(reader) = reader() else { return };
    let (profile, binary) = (fixture("heap/heap.memprofraw"), fixture("heap/heap.debug"));
    let binaries = ["--binaries", binary.as_str()];
    reader.export(&profile, &binaries);
    let rows = reader.rows(&profile, "contexts", &binaries);
    for (index, column) in [("alloc_space", "bytes"), ("alloc_objects", "allocations")] {
        let (mut functions, mut lines) = (Numbers::new(), Numbers::new());
        for row in &rows {
            let frame = &row["stack"][0];
            let (name, value) = (&frame["function"], row[column].as_u64().expect("a number"));
            let name = name.as_str().expect("a name").to_owned();
            let line = match frame["file"].as_str() {
                Some(file) => format!("{name} {}:{}", clean(file), frame["line"]),
                None => name.clone(),
            };
            *functions.entry(name).or_default() += value;
            *lines.entry(line).or_default() += value;
        }
        check(reader.top(index, &[]), &functions);
        check(reader.top(index, &["-lines"]), &lines);
    }
}

#[test]
fn of_a_mip_profile() {
    let Some(reader) = reader() else { return };
    let profile = "run.mip";
    reader.profkit(&["mip", "create", "-p", profile, &fixture("mip/mixed.mipmap")]);
    let raws = ["mip/mixed-1.mipraw", "mip/mixed-2.mipraw"].map(fixture);
    reader.profkit(&["mip", "merge", "-p", profile, &raws[0], &raws[1]]);
    reader.export(profile, &[]);
    check(reader.top("calls", &[]), &reader.shown(profile, "calls"));
}
