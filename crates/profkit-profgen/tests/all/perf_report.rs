//! The functions of recordings have the samples that `perf report` states. perf is the oracle: it is another program, by
//! other people, for the same question.
use profkit_object::binaries::Binaries;
use profkit_perf::collect::{CollectOptions, collect};
use profkit_perf::{Recording, module_name};
use profkit_profgen::stacks::{FunctionStacks, NamesFrom, StackOptions};
use profkit_profgen::{MakeOptions, Programs};
use profkit_testkit::{on_path, or_skip, perf_recordings, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Recordings that perf 6.1 does not read (`perf_tool.rs` of profkit-perf has the reasons).
const BEYOND_PERF: [&str; 3] = [
    "perf.data.piped.corrupted.zero_size_sample-3.2",
    "sleep.compressed.data",
    "sleep.data",
];

/// A C program whose functions take time, call each other, and call libc.
const PROGRAM: &str = "
#include <stdio.h>
#include <stdlib.h>
volatile unsigned long sink;
__attribute__((noinline)) void leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * i ^ sink >> 3; }
__attribute__((noinline)) void often(int n) { for (int i = 0; i < n; i++) leaf(9000); sink++; }
__attribute__((noinline)) void seldom(int n) { for (int i = 0; i < n; i++) leaf(2000); sink++; }
static void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink ^= i; }
__attribute__((noinline)) int recurse(int depth) {
  spin(3000);
  if (!depth) return 0;
  int below = recurse(depth - 1);
  sink += below;
  return below + 1;
}
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
  for (int i = 0; i < 250; i++) { often(30); seldom(20); sink += recurse(12); }
  int *list = malloc(400000 * sizeof *list);
  for (int i = 0; i < 400000; i++) list[i] = rand();
  qsort(list, 400000, sizeof *list, compare);
  printf(\"%d\\n\", list[7] > 0);
}
";

/// Returns the rows of `perf report` as columns: those before the last `texts` are numbers, of which one column can hold
/// several.
fn report(recording: &Path, arguments: &[&str]) -> Vec<Vec<String>> {
    let output = Command::new("perf")
        .args([
            "report",
            "--stdio",
            "-g",
            "none",
            "-t",
            "|",
            "--no-inline",
            "--no-itrace",
            "-i",
        ])
        .arg(recording)
        .args(arguments)
        .env("PERF_CONFIG", "/dev/null")
        .output()
        .expect("perf runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text
        .lines()
        .filter(|line| line.contains('|') && !line.starts_with('#'));
    lines
        .map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// The name of a binary as perf states it. The kernel and addresses in no file are one: perf calls an address of the
/// kernel in a sample of a program unknown.
fn short(path: &[u8]) -> String {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let name = String::from_utf8_lossy(name).into_owned();
    // Memory that holds compiled code and comes from no file is `[JIT]`.
    let no_file = ["[kernel.kallsyms]", "[unknown]", "[guest", "[JIT]"];
    if no_file.iter().any(|start| name.starts_with(start)) {
        return "kernel or unknown".to_owned();
    }
    match module_name(path) {
        Some(module) if name.ends_with(".ko") => {
            format!("[{}]", String::from_utf8_lossy(module).replace('-', "_"))
        }
        _ => name,
    }
}

fn binary_of(stacks: &FunctionStacks, function: usize) -> String {
    let binary = stacks.functions[function].binary;
    short(binary.map_or(b"[unknown]".as_slice(), |index| {
        &stacks.binaries[index].path
    }))
}

/// Samples by binary, of all events.
fn by_binary(stacks: &FunctionStacks) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for event in &stacks.events {
        for sum in stacks.by_samples(event).iter().filter(|sum| sum.own > 0) {
            *sums.entry(binary_of(stacks, sum.function)).or_default() += sum.own;
        }
    }
    sums
}

#[test]
fn recordings_have_the_samples_of_perf_report() {
    let recordings = perf_recordings();
    if recordings.is_empty() {
        return;
    }
    if on_path("perf").is_none() {
        return skip("perf is not installed");
    }
    let empty = tempfile::tempdir().expect("a folder");
    let folder = empty.path().to_str().expect("a path");
    let mut compared = 0;
    for path in recordings {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if BEYOND_PERF.contains(&&*name) {
            continue;
        }
        let bytes = std::fs::read(&path).expect("the recording is read");
        let recording = Recording::open(&bytes).expect("a recording");
        let mut options = StackOptions::default();
        options.recorded_paths = false;
        let ours = by_binary(&FunctionStacks::of(
            &recording,
            &Binaries::default(),
            &options,
        ));
        let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
        let arguments = [
            "--symfs",
            folder,
            "--no-children",
            "--no-branch-stack",
            "-F",
            "sample,dso",
        ];
        for row in report(&path, &arguments) {
            let samples = row[0]
                .split(' ')
                .filter_map(|number| number.parse::<u64>().ok());
            *theirs.entry(short(row[1].as_bytes())).or_default() += samples.sum::<u64>();
        }
        theirs.retain(|_, samples| *samples > 0);
        assert_eq!(ours, theirs, "{name}");
        compared += 1;
    }
    assert!(compared > 15, "{compared}");
}

/// Compiles the program and records it. `None` if this machine cannot record.
fn record(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, PROGRAM).expect("the source is written");
    let status = Command::new("cc")
        .args([
            "-O2",
            "-g",
            "-fno-omit-frame-pointer",
            "-mno-omit-leaf-frame-pointer",
            "-o",
        ])
        .args([&program, &source])
        .status()
        .expect("the compiler runs");
    assert!(status.success(), "the program compiles");
    let recording = folder.join("perf.data");
    let output = Command::new("perf")
        .args(["record", "-e", "cpu-clock:u", "-c", "500000", "-g", "-o"])
        .args([&recording, &program])
        .output()
        .expect("perf runs");
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        skip(&format!(
            "perf record does not work here: {}",
            text.lines().next().unwrap_or("")
        ));
        return None;
    }
    Some((recording, program))
}

/// The samples of each function of each binary, with callees, as perf states them: in hundredths of a percent.
fn hundredths(part: u64, whole: u64) -> u64 {
    (part * 20_000 / whole).div_ceil(2)
}

#[test]
fn functions_have_the_samples_of_perf_report() {
    or_skip!(profkit_testkit::links_c("cc", &[]));
    if on_path("perf").is_none() {
        return skip("perf is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some((path, program)) = record(folder.path()) else {
        return;
    };
    let bytes = std::fs::read(&path).expect("the recording is read");
    let recording = Recording::open(&bytes).expect("a recording");
    let mut options = StackOptions::default();
    options.lines = true;
    let stacks = FunctionStacks::of(&recording, &Binaries::default(), &options);
    let [event] = stacks.events.as_slice() else {
        panic!("one event: {:?}", stacks.events.len());
    };
    assert!(event.samples > 100, "{}", event.samples);
    let named = |symbol: &str| {
        // perf makes names for the stubs of the procedure linkage table, or takes the symbol before it, which is
        // `_init`; profkit has no name for them.
        let is_address = symbol.trim_start_matches("0x").len() == 16
            && symbol.bytes().skip(2).all(|byte| byte.is_ascii_hexdigit());
        // The last is a label in the loader's assembly, which is no function; a sample rarely begins there.
        let nameless = ["_init", "_dl_start_user"].contains(&symbol);
        let is_named = !is_address && !symbol.ends_with("@plt") && !nameless;
        is_named.then(|| symbol.to_owned())
    };
    let mut own: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    let mut total: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for sum in stacks.by_samples(event) {
        let symbol = stacks.functions[sum.function].symbol.as_deref();
        let symbol = symbol.map(|name| String::from_utf8_lossy(name).into_owned());
        let key = (binary_of(&stacks, sum.function), symbol);
        total.insert(key.clone(), hundredths(sum.total, event.samples));
        own.insert(key, sum.own);
    }
    own.retain(|_, samples| *samples > 0);
    let mut theirs = BTreeMap::new();
    for row in report(&path, &["--no-children", "-F", "sample,dso,sym"]) {
        let symbol = named(row[2].split_once("] ").expect("a mark").1);
        let samples: u64 = row[0].parse().expect("a number");
        *theirs
            .entry((short(row[1].as_bytes()), symbol))
            .or_default() += samples;
    }
    assert_eq!(own, theirs);
    // Of places without a name, perf has a row for each.
    total.retain(|(_, symbol), _| symbol.is_some());
    let mut with_callees = BTreeMap::new();
    for row in report(&path, &["--children", "-F", "overhead_children,dso,sym"]) {
        let share = row[0].trim_end_matches('%').replace('.', "");
        let symbol = named(row[2].split_once("] ").expect("a mark").1);
        if symbol.is_some() {
            let share: u64 = share.parse().expect("a share with two decimals");
            with_callees.insert((short(row[1].as_bytes()), symbol), share);
        }
    }
    assert_eq!(total, with_callees);
    let found = stacks
        .binaries
        .iter()
        .find(|binary| binary.path.ends_with(b"/program"));
    assert_eq!(
        found.map(|binary| &binary.names),
        Some(&NamesFrom::File(program.clone()))
    );
    // Every frame of the program has its line.
    let with_line = stacks.frames.iter().filter(|frame| frame.line > 0);
    assert!(with_line.clone().count() > 5, "{:?}", stacks.frames);
    assert!(
        with_line
            .clone()
            .any(|frame| frame.file.ends_with(b"program.c"))
    );

    // The sample profile of the same recording has the same samples, function by function.
    let mut named = BTreeMap::new();
    let counts = collect(&recording, &CollectOptions::default());
    let binaries = Binaries::open(std::slice::from_ref(&program)).expect("the program is indexed");
    let programs = Programs::find(std::slice::from_ref(&program), &binaries, &counts);
    let made = programs.make(&counts, &MakeOptions::new(true, true, false));
    let (_, profiles, _) = made.expect("a profile");
    for profile in &profiles {
        for function in profile.profile.functions() {
            let mut sum = 0;
            let mut pending = vec![&function.samples];
            while let Some(samples) = pending.pop() {
                sum += samples.body.iter().map(|line| line.samples).sum::<u64>();
                pending.extend(samples.inlined.iter().map(|inlined| &inlined.samples));
            }
            let name = profile.profile.names.get(function.samples.name).to_string();
            named.insert(name, sum);
        }
    }
    let of_program = own.into_iter().filter_map(|((binary, symbol), samples)| {
        (binary == "program").then_some((symbol?, samples))
    });
    assert_eq!(named, of_program.collect::<BTreeMap<_, _>>());
}
