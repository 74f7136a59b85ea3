//! Profiles of kernel modules, which are relocatable files that the kernel links when it loads them. The expected
//! profile of a module is the profile of the same code linked as a program.
use crate::support::{
    counts_of_recording as counts, profile_of_only as profile, recorded, simulated, text_of_only,
    theirs,
};
use profkit_data::ErrorKind;
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::collect::Numbering;
use profkit_perf::text::{TextOptions, read_text, write_addresses};
use profkit_profgen::{MakeOptions, Sampling};
use profkit_testkit::simulate::{PerfEvent, PerfMap, PerfSink, Program, Simulation};
use profkit_testkit::{PerfWriter, links_c, on_path, or_skip, require_or_skip, succeed};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the program with the module's code is linked, and where the kernel loads the module.
const LINKED: u64 = 0x40_0000;
const LOADED: u64 = 0xffff_ffff_c012_3000;

/// Functions in several sections, data, and calls of the kernel and of another source file.
const SOURCE: &str = "
extern int register_thing(int);
extern int other(int);
static volatile int seen[64];
__attribute__((noinline, cold)) static int odd(int x) { seen[x & 63] += x; return x * 3 + 1; }
static inline int twice(int x) { return seen[x & 31] + 2 * x; }
__attribute__((noinline)) int step(int x) {
  if (x & 1)
    return odd(x);
  for (int i = 0; i < 8; i++)
    x += twice(i);
  return other(x / 2);
}
__attribute__((section(\".init.text\"))) int init_module(void) { return register_thing(1); }
__attribute__((section(\".exit.text\"), noinline)) int cleanup_module(int x) { return step(x) + seen[0]; }
int main(void) {
  int x = 7;
  for (int i = 0; i < 1000; i++)
    x = step(x + i) + cleanup_module(i);
  return x;
}
__attribute__((section(\".gnu.linkonce.this_module\"))) char this_module[64];
";
const OTHER: &str = "
static volatile int all;
__attribute__((noinline)) int other(int x) { all += x; return x < 0 ? all : x + 5; }
";

/// A linker script that places each section of the program at the offset at which the kernel places it in the module.
const SCRIPT: &str = "
register_thing = 0x10000;
ENTRY(main)
SECTIONS {
  . = 0x400000;
  .text : { *(.text) }
  .text.unlikely : { *(.text.unlikely .text.unlikely.) }
  .exit.text : { *(.exit.text) }
  .init.text : { *(.init.text) }
  .data : { *(.data .bss .rodata* .gnu.linkonce.this_module) }
}
";

struct Built {
    folder: tempfile::TempDir,
    module: PathBuf,
    program: PathBuf,
}

fn built(clang: &Path, linker: &str, arguments: &[&str]) -> Built {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let mut objects = Vec::new();
    for (name, source) in [("probe", SOURCE), ("other", OTHER)] {
        std::fs::write(at(&format!("{name}.c")), source).expect("written");
        succeed(
            Command::new(clang)
                .args(["-O2", "-g", "-fdebug-info-for-profiling", "-fno-pic", "-c"])
                .args(["-ffreestanding", "-fno-asynchronous-unwind-tables"])
                .args(arguments)
                .arg(at(&format!("{name}.c")))
                .arg("-o")
                .arg(at(&format!("{name}.o"))),
        );
        objects.push(at(&format!("{name}.o")));
    }
    let (module, program) = (at("probe-fs.ko"), at("linked"));
    succeed(
        Command::new(linker)
            .args(["-r", "--build-id=sha1", "-o"])
            .arg(&module)
            .args(&objects),
    );
    std::fs::write(at("script"), SCRIPT).expect("written");
    succeed(
        Command::new(linker)
            .args(["-static", "--build-id=none", "-T"])
            .arg(at("script"))
            .arg("-o")
            .arg(&program)
            .args(&objects),
    );
    Built {
        folder,
        module,
        program,
    }
}

/// A sink that records a program as a module of the kernel.
struct AsModule {
    writer: PerfWriter,
    program: String,
    path: String,
    build_id: Vec<u8>,
}

fn moved(address: u64) -> u64 {
    // Addresses outside of the program are not changed.
    let inside = address.wrapping_sub(LINKED);
    if inside < 0x10000 {
        LOADED + inside
    } else {
        address
    }
}

impl PerfSink for AsModule {
    fn event(&mut self, event: &PerfEvent<'_>) -> io::Result<()> {
        match event {
            PerfEvent::Map(map) if map.path == self.program => {
                // The mapping of the kernel, then that of the module. Like perf, with 0 as its offset.
                let kernel = 0xffff_ffff_8100_0000;
                self.writer.event(&PerfEvent::Map(&PerfMap {
                    pid: u32::MAX,
                    start: kernel,
                    len: 0x100_0000,
                    offset: kernel,
                    path: "[kernel.kallsyms]_text".to_owned(),
                    build_id: Vec::new(),
                    ..(*map).clone()
                }))?;
                self.writer.event(&PerfEvent::Map(&PerfMap {
                    pid: u32::MAX,
                    start: LOADED,
                    len: 0x4000,
                    offset: 0,
                    path: self.path.clone(),
                    build_id: self.build_id.clone(),
                    ..(*map).clone()
                }))
            }
            PerfEvent::Sample(sample) => {
                let mut sample = (*sample).clone();
                sample.in_kernel = true;
                sample.address = moved(sample.address);
                for (from, to, _) in &mut sample.branches {
                    (*from, *to) = (moved(*from), moved(*to));
                }
                self.writer.event(&PerfEvent::Sample(&sample))
            }
            other => self.writer.event(other),
        }
    }
}

fn simulation() -> Simulation {
    Simulation::new(5).depth(16)
}

fn recording(program: &Program, path: &str, build_id: &[u8]) -> Vec<u8> {
    let simulation = simulation();
    let mut sink = AsModule {
        writer: simulation.writer(),
        program: program.path.to_string_lossy().into_owned(),
        path: path.to_owned(),
        build_id: build_id.to_vec(),
    };
    simulated(program, &simulation, 1000, &mut sink);
    sink.writer.file()
}

fn check(built: &Built) {
    let program = Program::open(&built.program);
    let plain = recorded(&program, &simulation(), 1000);
    let expected = profile(&built.program, &counts(&plain));
    for function in ["step:", "odd:", "other:", "cleanup_module:", "main:"] {
        assert!(expected.contains(function), "{expected}");
    }
    let perfdata = built.folder.path().join("perf.data");
    std::fs::write(&perfdata, &plain).expect("written");
    let perfdata = format!("--perfdata={}", perfdata.display());
    if let Some(theirs) = theirs(&built.program, &[&perfdata]) {
        assert_eq!(expected, theirs);
    }
    let files = ProgramFiles::open(&built.module, &DebugFolders::default()).expect("the module");
    let id = build_id(&files.program().expect("a module")).expect("notes");
    let id = id.expect("a build id").0;
    let other = "/lib/modules/6.1.0/kernel/fs/other-name.ko";
    for (path, id) in [
        ("/lib/modules/6.1.0/kernel/fs/probe-fs.ko", &id[..]),
        (other, &id),
        ("/lib/modules/6.1.0/kernel/fs/probe-fs.ko", &[]),
        ("/lib/modules/6.1.0/kernel/fs/probe_fs.ko.xz", &[]),
        ("[probe_fs]", &[]),
    ] {
        let counts = counts(&recording(&program, path, id));
        let found = counts
            .binaries
            .iter()
            .find(|it| it.key.path == path.as_bytes())
            .expect("the module has counts");
        assert!(found.key.kernel);
        assert_eq!(found.key.numbering, Numbering::FromModule);
        assert_eq!(profile(&built.module, &counts), expected, "{path}");
        // As text, the counts of several machines can be added up.
        let mut addresses = Vec::new();
        write_addresses(&counts, &mut addresses).expect("written");
        let read = read_text(&addresses, TextOptions::default()).expect("our own text");
        assert_eq!(read, counts);
        assert_eq!(profile(&built.module, &read), expected, "{path}");
    }
}

#[test]
fn a_module_has_the_profile_of_its_code_linked_as_a_program() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let kernel = "-mcmodel=kernel";
    for arguments in [
        &[kernel][..],
        &[kernel, "-gdwarf-4"],
        &[kernel, "-gz=zlib"],
        &[kernel, "-gline-tables-only"],
    ] {
        check(&built(llvm.clang(), "ld", arguments));
    }
}

#[test]
fn a_module_of_aarch64_has_the_profile_of_its_code_linked_as_a_program() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(Path::new("aarch64-linux-gnu-gcc-12"), &[]));
    or_skip!(on_path("aarch64-linux-gnu-ld").ok_or("aarch64-linux-gnu-ld is not installed"));
    let target = "--target=aarch64-linux-gnu";
    check(&built(llvm.clang(), "aarch64-linux-gnu-ld", &[target]));
}

#[test]
fn a_stripped_module_has_its_profile_with_its_debug_file() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let built = built(llvm.clang(), "ld", &["-mcmodel=kernel"]);
    let program = Program::open(&built.program);
    let expected = profile(
        &built.module,
        &counts(&recording(&program, "[probe_fs]", &[])),
    );
    let debug = built.folder.path().join("probe-fs.ko.debug");
    let stripped = built.folder.path().join("stripped").join("probe-fs.ko");
    std::fs::create_dir(stripped.parent().expect("a folder")).expect("made");
    succeed(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .arg(&built.module)
            .arg(&debug),
    );
    // Remove the debug info as distributions do. The symbols stay, because the kernel needs them for relocations.
    succeed(
        Command::new("objcopy")
            .arg("--strip-debug")
            .arg(&built.module)
            .arg(&stripped),
    );
    let counts = counts(&recording(&program, "[probe_fs]", &[]));
    let files = ProgramFiles::open(&stripped, &DebugFolders::default()).expect("the module");
    let options = MakeOptions::default();
    let mut sampling = Sampling::new(&counts, &options);
    let error = sampling.add(&files, (&stripped, None), true);
    assert_eq!(
        error.expect_err("no debug info").kind(),
        ErrorKind::MissingCorrelation
    );
    let files = files.with_debug_file(&debug).expect("the debug file");
    let added = sampling.add(&files, (&stripped, None), true);
    added.expect("a profile");
    assert_eq!(text_of_only(sampling).1, expected);
}

#[test]
fn perf_places_the_module_where_profkit_does() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    or_skip!(on_path("perf").ok_or("perf is not installed"));
    let built = built(llvm.clang(), "ld", &["-mcmodel=kernel"]);
    let program = Program::open(&built.program);
    let path = built.module.to_string_lossy().into_owned();
    let data = built.folder.path().join("perf.data");
    std::fs::write(&data, recording(&program, &path, &[])).expect("written");
    let output = Command::new("perf")
        .args(["script", "-F", "ip,sym,symoff", "-i"])
        .arg(&data)
        .env("HOME", built.folder.path())
        .output()
        .expect("perf runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut checked = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let address = words.next().map(|word| u64::from_str_radix(word, 16));
        let (Some(Ok(address)), Some(place)) = (address, words.next()) else {
            continue;
        };
        let (Some((name, offset)), true) = (place.split_once('+'), address >= LOADED) else {
            continue;
        };
        let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16).expect("a number");
        let function = program.functions.iter().find(|it| it.name == name);
        let Some(function) = function else {
            panic!("{name} is no function of the program: {line}");
        };
        assert_eq!(
            address - LOADED + LINKED,
            function.address + offset,
            "{line}"
        );
        checked += 1;
    }
    assert!(
        checked > 100,
        "{checked} samples with a symbol of perf:\n{text}"
    );
}

#[test]
fn a_damaged_module_is_an_error() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let built = built(llvm.clang(), "ld", &["-mcmodel=kernel", "-gz=zlib"]);
    let bytes = std::fs::read(&built.module).expect("the module");
    let path = built.folder.path().join("damaged.ko");
    let (mut refused, mut read) = (0, 0);
    for at in (0..bytes.len()).step_by(bytes.len() / 400 + 1) {
        for value in [0, 0x7f, 0xff] {
            let mut damaged = bytes.clone();
            if let Some(byte) = damaged.get_mut(at) {
                *byte = value;
            }
            std::fs::write(&path, &damaged).expect("written");
            match ProgramFiles::open(&path, &DebugFolders::default()) {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
        std::fs::write(&path, bytes.get(..at).unwrap_or_default()).expect("written");
        refused += usize::from(ProgramFiles::open(&path, &DebugFolders::default()).is_err());
    }
    assert!(refused > 100 && read > 100, "{refused} {read}");
}
