//! Tests what `profkit show` and `profkit sample` say about recordings: losses, damage, and why there is no profile.
//! Each recording is made by the writer in profkit-testkit, and is of the program `debug_info/clang-22-dwarf-5.elf`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use profkit_testkit::{Endian, PerfSample, PerfWriter, repo_root};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The address at which the process has mapped the program.
const START: u64 = 0x40_0000;
/// A branch that makes a loop in the function `work`: its address and its target.
const LOOP: (u64, u64, u64) = (START + 0x33f, START + 0x300, 0);
/// Flags of branches: the processor took the branch only by speculation; the branch was not taken.
const WRONG_PATH: u64 = 1 << 24;
const NOT_TAKEN: u64 = 1 << 33;
const BUILD_ID: [u8; 20] = [
    0x93, 0x20, 0x0c, 0xb1, 0x21, 0xbc, 0x52, 0xd4, 0x98, 0x37, 0xaa, 0x98, 0xd6, 0xc8, 0xfb, 0x8d,
    0x06, 0xc2, 0x62, 0x48,
];

fn app() -> PathBuf {
    repo_root().join("tests/fixtures/debug_info/clang-22-dwarf-5.elf")
}

/// A recording in which a process has mapped the program.
fn writer(branches: bool) -> PerfWriter {
    let mut writer = PerfWriter::new(Endian::Little, &["cycles:u"], false, branches);
    writer
        .comm(10, 1, "app", true)
        .mmap2(10, 2, START, 0x2000, "/opt/app", &BUILD_ID);
    writer
}

fn sample(address: u64, branches: &[(u64, u64, u64)]) -> PerfSample {
    PerfSample {
        pid: 10,
        time: 10,
        address,
        branches: branches.to_vec(),
        ..PerfSample::default()
    }
}

/// A sample that fits the program.
fn sound() -> PerfSample {
    sample(START + 0x300, &[LOOP, LOOP, LOOP])
}

/// Adds a record of a kind that the kernel writes. As all such records of this writer, it ends with the ids of the
/// process and the thread, the time, and the id of the event.
fn kernel_record(writer: &mut PerfWriter, kind: u32, body: &[u64]) {
    let ids = [10 | 10 << 32, 10, 700];
    let words = body.iter().chain(&ids);
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    writer.record(kind, 0, &bytes);
}

/// What the command printed.
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Said {
    /// Checks that a text is in the output, and in the output of no sound recording.
    fn has(&self, text: &str) -> &Self {
        let all = format!("{}{}", self.stdout, self.stderr);
        assert!(all.contains(text), "{text:?} is not in\n{all}");
        self
    }
}

fn profkit(folder: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_profkit"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn show(recording: &[u8]) -> Said {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("perf.data"), recording).unwrap();
    profkit(folder.path(), &["show", "perf.data"])
}

/// Runs `profkit sample` of a recording.
fn sampled(recording: &[u8], arguments: &[&str]) -> Said {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("perf.data"), recording).unwrap();
    std::fs::copy(app(), folder.path().join("app")).unwrap();
    let all = ["sample", "perf.data", "--binary", "app", "-o", "out"];
    let said = profkit(folder.path(), &[&all[..], arguments].concat());
    // The command writes a profile if and only if its exit code is 0.
    assert_eq!(folder.path().join("out").exists(), said.code == Some(0));
    said
}

#[test]
fn a_sound_recording_has_no_messages() {
    let recording = writer(true).sample(&sound()).file();
    let said = show(&recording);
    assert_eq!((said.code, &*said.stderr), (Some(0), ""));
    assert!(!said.stdout.contains("could not record"), "{}", said.stdout);
    let said = sampled(&recording, &[]);
    assert_eq!(said.code, Some(0));
    // The only warning is about the small number of samples.
    assert_eq!(
        said.stderr.matches("warning:").count(),
        1,
        "{}",
        said.stderr
    );
    said.has("warning: app: few samples: ");
}

#[test]
fn what_the_kernel_could_not_record_is_said() {
    let mut recording = writer(true);
    recording.lost(7, 5).sample(&sound());
    kernel_record(&mut recording, 13, &[8]);
    kernel_record(&mut recording, 5, &[6, 700, 700]);
    // Part of a hardware trace, which the kernel had to cut.
    kernel_record(&mut recording, 11, &[0, 64, 1]);
    let recording = recording.file();
    show(&recording)
        .has("records lost     7  the kernel's buffer was full: record with a larger one (-m)")
        .has("samples lost     8  the kernel could not write them")
        .has("times throttled  1  too many samples per second: record with a larger period (-c)")
        .has("traces cut       1  parts of hardware traces are missing");
    sampled(&recording, &[])
        .has("warning: 15 samples (93.8% of 16) were lost while recording\n")
        .has("warning: the kernel stopped an event once, because there were too many samples: record with a larger period\n");
}

#[test]
fn damage_is_said() {
    let mut damaged = writer(true);
    damaged.sample(&sound());
    // Two samples that end too early, a sample that belongs to no event, and a record of a mapping that is too short.
    damaged.record(9, 2, &700u64.to_le_bytes());
    damaged.record(9, 2, &700u64.to_le_bytes());
    damaged.record(9, 2, &[999u64.to_le_bytes(); 12].concat());
    damaged.record(1, 2, &[0; 32]);
    let mut two = PerfWriter::new(Endian::Little, &["cycles:u", "branches"], false, true);
    two.set_records(damaged.records().to_vec());
    for said in [show(&two.file()), sampled(&two.file(), &[])] {
        said.has("2 samples do not fit their records\n")
            .has("1 sample belongs to no event of the recording\n")
            .has("1 record is too short\n");
    }
    // A feature of a pipe that ends early.
    let mut pipe = writer(true);
    pipe.sample(&sound()).record(80, 0, &[3, 0, 0, 0]);
    show(&pipe.pipe()).has("1 description of the recording could not be read\n");
    // perf was stopped before it wrote the size of the records.
    let mut unfinished = writer(true).sample(&sound()).file();
    unfinished[48..56].fill(0);
    show(&unfinished).has(
        "the header does not state the size of the records, because perf was stopped before its end; the records were read \
         up to the end of the file\n",
    );
}

#[test]
fn traces_without_samples_name_the_command_that_decodes_them() {
    let mut recording = writer(true);
    recording.record(71, 0, &[0; 40]);
    let recording = recording.file();
    show(&recording).has("No sample was recorded.\n").has(
        "1 piece of hardware trace: `perf inject --itrace=i100usle -i FILE -o OUT` makes samples",
    );
    let said = sampled(&recording, &[]);
    said.has("error: perf.data: the input has no sample\n")
        .has("hint: the recording has hardware traces: `perf inject --itrace=i100usle --strip");
    assert_eq!(said.code, Some(1));
}

#[test]
fn samples_of_no_file_and_of_no_mode_are_said() {
    let mut unknown = writer(true);
    unknown.set_records(Vec::new()).sample(&sound());
    let mut record = unknown.records().to_vec();
    record[4..6].fill(0);
    let mut recording = writer(true);
    recording
        .sample(&sound())
        .sample(&sample(0x66_0000, &[]))
        .bytes(&record);
    show(&recording.file())
        .has("mode unknown  1  33.3%\n")
        .has("in no file    1  33.3%, at addresses where no file was mapped\n");
}

#[test]
fn losses_of_counting_are_said() {
    let mut recording = writer(true);
    recording.mmap2(10, 3, 0x7f00_0000, 0x1000, "/lib/other.so", &[2; 20]);
    recording.sample(&sound()).sample(&sample(
        0x66_0000,
        &[
            LOOP,
            (LOOP.0, LOOP.1, WRONG_PATH),
            (LOOP.0, LOOP.1, NOT_TAKEN),
            (1, 2, 0),
            // A branch into the program from another file. After it, the other file runs again, although no branch
            // leads there.
            (0x7f00_0010, 0x7f00_0000, 0),
            (0x7f00_0020, LOOP.1, 0),
        ],
    ));
    let said = sampled(&recording.file(), &[]);
    said.has("warning: 1 sample (50.0% of 2) is at an address where no file was mapped\n")
        .has("warning: 1 branch (14.3% of 7) is at an address where no file was mapped\n")
        .has("warning: 1 branch (14.3% of 7) was left out: the processor only speculated on it\n")
        .has("warning: 1 branch (14.3% of 7) was left out: it was not taken\n")
        .has(
            "warning: 1 branch (14.3% of 7) leads into another binary than the one that ran next\n",
        );
    assert_eq!(said.code, Some(0));
}

#[test]
fn branch_stacks_without_every_branch_have_no_ranges() {
    let call_stack = 1 << 11;
    let recording = writer(true)
        .branch_type(1 | call_stack)
        .sample(&sound())
        .file();
    let said = sampled(&recording, &[]);
    said.has("warning: 1 sample (100.0% of 1) has no complete list of branches, so only its calls are counted\n")
        .has("error: perf.data: the branch stacks do not have every branch, so that the code between branches is not known\n")
        .has("hint: record with `perf record -b`, not with --call-graph lbr\n");
    assert_eq!(said.code, Some(1));
}

#[test]
fn places_of_samples_that_do_not_fit_are_said() {
    // The address is in the middle of an instruction: it is that of the second byte of the first instruction.
    let recording = writer(false).sample(&sample(START + 0x281, &[])).file();
    let said = sampled(&recording, &["--ips"]);
    said.has("error: perf.data: no sample fits the code of the given binaries: found 1 sample at places that are no instruction\n");
    assert_eq!(said.code, Some(1));
}

#[test]
fn places_of_events_that_are_not_precise_are_said() {
    let skid = "warning: 1 sample (100.0% of 1) may be at an instruction a little after the right one, because the event is not \
                precise: record with -e cycles:pp if the processor can\n";
    let mut plain = writer(false);
    plain.sample(&sample(START + 0x300, &[]));
    assert_eq!(sampled(&plain.file(), &["--ips"]).has(skid).code, Some(0));
    let said = sampled(&plain.precise().file(), &["--ips"]);
    assert_eq!(said.code, Some(0));
    assert!(!said.stderr.contains("precise"), "{}", said.stderr);
    // If samples have branch stacks, their own addresses are not counted, so it does not matter whether they are
    // precise.
    let said = sampled(&writer(true).sample(&sound()).file(), &[]);
    assert!(!said.stderr.contains("precise"), "{}", said.stderr);
}

#[test]
fn samples_are_weighed_by_period_on_request() {
    let mut recording = writer(true);
    for period in [500, 500, 2000] {
        recording.sample(&PerfSample { period, ..sound() });
    }
    let recording = recording.file();
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("perf.data"), recording).unwrap();
    std::fs::copy(app(), folder.path().join("app")).unwrap();
    let text = |more: &[&str]| {
        let arguments = ["sample", "perf.data", "--binary", "app", "--to", "text"];
        let said = profkit(folder.path(), &[&arguments, more, &["-o", "-"]].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        said
    };
    text(&[]).has("wrote -: 1 function from 6 ranges\n");
    // Two samples have the period 500, and one has the period 2,000, so it counts four times. Each sample has two
    // ranges.
    text(&["--by-period"]).has("wrote -: 1 function from 12 ranges\n");
    let addresses = [
        "sample",
        "perf.data",
        "--by-period",
        "--addresses",
        "counts",
    ];
    assert_eq!(profkit(folder.path(), &addresses).code, Some(0));
    // A file of counts does not hold the periods of the samples.
    let again = ["sample", "counts", "--by-period", "--addresses", "again"];
    let said = profkit(folder.path(), &again);
    said.has(
        "error: counts: only the samples of a recording of perf have periods: found a text file\n",
    )
    .has("hint: leave out --by-period for this file\n");
    assert_eq!(said.code, Some(1));
}

#[test]
fn events_without_a_common_form_are_refused() {
    let mut two = PerfWriter::new(Endian::Little, &["cycles:u", "branches"], false, true);
    let mut recording = two.sample(&sound()).file();
    // The second event is changed, so that its samples have neither an id nor a call chain.
    let entry = u64::from_le_bytes(recording[16..24].try_into().unwrap());
    let attrs = u64::from_le_bytes(recording[24..32].try_into().unwrap());
    let second = usize::try_from(attrs + entry).unwrap() + 24;
    recording[second..second + 8].copy_from_slice(&7u64.to_le_bytes());
    for said in [show(&recording), sampled(&recording, &[])] {
        said.has("the events of the recording use different forms of samples, and the samples have no id that names their event")
            .has("hint: record each event on its own, or with `perf record --sample-identifier`\n");
        assert_eq!(said.code, Some(1));
    }
}
