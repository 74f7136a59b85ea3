//! Programs of other machines: compiled, instrumented, assembled, linked by two linkers and run under qemu. What ran is
//! known from qemu's own log of every instruction, so that records are compared with the truth: which functions and
//! blocks ran, how often, in which order.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_possible_truncation
)]
use object::{Object as _, ObjectSection as _};
use profkit_abi::mip::{map_entry, mode, record, ring, section};
use profkit_mip::instrument::{Counter, Mode, Options, Target, instrument};
use profkit_testkit::program::{Program, Size};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine that programs are made for and run on.
struct Machine {
    target: Target,
    /// clang's options that choose it.
    clang: &'static [&'static str],
    gcc: &'static str,
    gcc_options: &'static [&'static str],
    qemu: &'static str,
    libraries: &'static str,
}

const AARCH64: Machine = Machine {
    target: Target::Aarch64Elf,
    clang: &["--target=aarch64-linux-gnu"],
    gcc: "aarch64-linux-gnu-gcc-12",
    gcc_options: &[],
    qemu: "qemu-aarch64",
    libraries: "/usr/aarch64-linux-gnu",
};

const ARM: Machine = Machine {
    target: Target::ArmElf,
    clang: &["--target=armv7-linux-gnueabihf", "-marm"],
    gcc: "arm-linux-gnueabihf-gcc-12",
    gcc_options: &["-marm"],
    qemu: "qemu-arm",
    libraries: "/usr/arm-linux-gnueabihf",
};

const THUMB: Machine = Machine {
    clang: &["--target=armv7-linux-gnueabihf", "-mthumb"],
    gcc_options: &["-mthumb"],
    ..ARM
};

/// Who compiles, assembles and links.
#[derive(Clone, Copy)]
enum Tools {
    /// clang and lld.
    Clang(u32),
    /// gcc, GNU as and GNU ld.
    Gcc,
}

impl Machine {
    fn missing(&self) -> Option<String> {
        let tools = ["clang-22", "ld.lld-22", self.gcc, self.qemu];
        let missing = tools.into_iter().find(|tool| find(tool).is_none());
        missing.map(|tool| format!("{tool} is not installed"))
    }

    fn compiler(&self, tools: Tools, source: &Path) -> Command {
        let is_cxx = source
            .extension()
            .is_some_and(|extension| extension == "cpp");
        let mut command = match tools {
            Tools::Clang(release) if is_cxx => Command::new(format!("clang++-{release}")),
            Tools::Clang(release) => Command::new(format!("clang-{release}")),
            Tools::Gcc => Command::new(self.gcc),
        };
        command.args(match tools {
            Tools::Clang(_) => self.clang,
            Tools::Gcc => self.gcc_options,
        });
        command.arg("-w");
        command
    }

    fn run(
        &self,
        program: &Path,
        records: &Path,
        log: Option<(&Path, std::ops::Range<u64>)>,
    ) -> Vec<u8> {
        let mut command = Command::new(self.qemu);
        command.args(["-L", self.libraries]);
        if let Some((log, text)) = log {
            // One translated block an instruction, each logged with its address.
            command
                .args(["-singlestep", "-d", "exec,nochain", "-D"])
                .arg(log);
            command.args([
                "-dfilter",
                &format!("{:#x}..{:#x}", text.start, text.end - 1),
            ]);
        }
        command.arg(program).env("RECORDS", records);
        let output = command.output().unwrap();
        let code = output.status.code();
        assert!(
            code.is_some_and(|code| code < 128),
            "{}: {output:?}",
            program.display()
        );
        let mut all = output.stdout;
        let _ = write!(all, "\nexit code {code:?}\n");
        all
    }
}

fn find(tool: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(tool))
        .find(|path| path.is_file())
}

fn source(name: &str) -> PathBuf {
    profkit_testkit::repo_root()
        .join("tests/programs")
        .join(name)
}

fn succeed(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    // Linkers and assemblers have nothing to say of what we add.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
    output.stdout
}

/// One way of building a program.
struct Build<'b> {
    machine: &'b Machine,
    tools: Tools,
    /// Options of compiling.
    options: &'b [&'b str],
    /// Options of linking.
    link: &'b [&'b str],
    sources: &'b [PathBuf],
    folder: &'b Path,
}

impl Build<'_> {
    /// The assembly of each source.
    fn assembly(&self) -> Vec<Vec<u8>> {
        let compile = |source: &PathBuf| {
            let mut command = self.machine.compiler(self.tools, source);
            succeed(
                command
                    .args(self.options)
                    .arg("-S")
                    .arg(source)
                    .args(["-o", "-"]),
            )
        };
        self.sources.iter().map(compile).collect()
    }

    fn link(&self, assembly: &[&[u8]], name: &str) -> PathBuf {
        let program = self.folder.join(name);
        // A program of one C++ file is linked as such.
        let mut link = self.machine.compiler(self.tools, &self.sources[0]);
        if matches!(self.tools, Tools::Clang(_)) {
            link.arg("-fuse-ld=lld-22");
        }
        link.args(self.link)
            .args(["-Wl,--build-id=sha1", "-o"])
            .arg(&program);
        for (number, text) in assembly.iter().enumerate() {
            let file = self.folder.join(format!("{name}{number}.s"));
            std::fs::write(&file, text).unwrap();
            let object = file.with_extension("o");
            let mut assemble = self.machine.compiler(self.tools, &file);
            succeed(
                assemble
                    .args(self.options)
                    .arg("-c")
                    .arg(&file)
                    .arg("-o")
                    .arg(&object),
            );
            link.arg(&object);
        }
        if name != "plain" {
            let runtime = self.folder.join("mip_records.o");
            let source = source("mip_records.c");
            let mut compile = self.machine.compiler(self.tools, &source);
            succeed(
                compile
                    .args(["-O1", "-fPIC", "-c"])
                    .arg(&source)
                    .arg("-o")
                    .arg(&runtime),
            );
            link.arg(&runtime);
        }
        succeed(&mut link);
        program
    }
}

/// A map entry.
#[derive(Debug)]
struct Entry {
    name: String,
    flags: u16,
    record: u64,
    function: u64,
    size: u64,
    blocks: Vec<u64>,
}

/// The map of a linked program: entries, and the start of the records.
fn map(program: &object::File<'_>) -> (Vec<Entry>, u64) {
    let data = program
        .section_by_name(section::MAP)
        .unwrap()
        .data()
        .unwrap();
    let word = |at: usize| u64::from(u32::from_le_bytes(data[at..at + 4].try_into().unwrap()));
    let long = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    let (mut entries, mut start, mut at) = (Vec::new(), None, 0);
    while at < data.len() {
        let flags = word(at + map_entry::MODE) as u16;
        let blocks = word(at + map_entry::BLOCK_COUNT) as usize;
        let name_length = word(at + map_entry::NAME_LENGTH) as usize;
        let blocks_at = at + map_entry::FIXED_SIZE;
        let name_at = blocks_at + blocks * map_entry::BLOCK_OFFSET_SIZE;
        let entry = Entry {
            name: String::from_utf8_lossy(&data[name_at..name_at + name_length]).into_owned(),
            flags,
            record: long(at + map_entry::RECORD_ADDRESS),
            function: long(at + map_entry::FUNCTION_ADDRESS),
            size: word(at + map_entry::FUNCTION_SIZE),
            blocks: (0..blocks)
                .map(|block| word(blocks_at + block * map_entry::BLOCK_OFFSET_SIZE))
                .collect(),
        };
        if flags == mode::ANCHOR {
            assert_eq!(start.replace(entry.record), None);
        } else {
            entries.push(entry);
        }
        let size = word(at + map_entry::ENTRY_SIZE) as usize;
        assert!(size > 0 && size.is_multiple_of(map_entry::ALIGN));
        at += size;
    }
    (entries, start.unwrap())
}

/// What ran, by qemu's log: how often each address, and when first.
fn executed(log: &Path) -> HashMap<u64, (u32, usize)> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut executed: HashMap<u64, (u32, usize)> = HashMap::new();
    for (time, line) in text.lines().enumerate() {
        // `Trace 0: HOST [FLAGS/ADDRESS/…] symbol`
        let Some(address) = line.split('/').nth(1) else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).unwrap();
        executed.entry(address).or_insert((0, time)).0 += 1;
    }
    executed
}

/// Why functions may have no probe, or no block probes.
const EXPECTED_SKIPS: &[&str] = &[];

/// Builds, runs and checks one program in one mode. Returns how many functions and blocks had probes.
fn check(build: &Build<'_>, options: &Options) -> (usize, usize) {
    let assembly = build.assembly();
    let texts: Vec<&[u8]> = assembly.iter().map(Vec::as_slice).collect();
    let plain = build.link(&texts, "plain");
    let records_file = build.folder.join("records");
    let expected = build.machine.run(&plain, &records_file, None);
    let mut functions = 0;
    let mut texts = Vec::new();
    for (assembly, source) in assembly.iter().zip(build.sources) {
        let name = source.display().to_string();
        let made = instrument(assembly, &name, Some(build.machine.target), options).unwrap();
        for skipped in &made.skipped {
            let reason = skipped.reason.to_string();
            assert!(
                EXPECTED_SKIPS.iter().any(|known| reason.contains(known)),
                "{}: {reason}",
                skipped.name
            );
        }
        let detected = instrument(assembly, &name, None, options).unwrap();
        assert_eq!(made.text, detected.text, "the target was not detected");
        functions += made.functions;
        texts.push(made.text);
    }
    let texts: Vec<&[u8]> = texts.iter().map(|text| &**text).collect();
    let program = build.link(&texts, "instrumented");

    let bytes = std::fs::read(&program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let text_range = text.address()..text.address() + text.size();
    let is_fixed = file.kind() == object::ObjectKind::Executable;
    let log = build.folder.join("log");
    let logged = is_fixed.then_some((&*log, text_range.clone()));
    let output = build.machine.run(&program, &records_file, logged);
    assert_eq!(
        String::from_utf8_lossy(&output),
        String::from_utf8_lossy(&expected)
    );
    let (entries, start) = map(&file);
    // Parts of functions have entries too; what the linker drops has none.
    let drops = build.link.contains(&"-Wl,--gc-sections");
    assert!(!entries.is_empty() && (drops || entries.len() >= functions));
    let records = std::fs::read(&records_file).unwrap();
    if !is_fixed {
        assert!(records.contains(&0));
        return (entries.len(), 0);
    }

    let executed = executed(&log);
    let mut failures = String::new();
    let mut first_calls = Vec::new();
    let mut used = 0;
    for entry in &entries {
        assert!(
            entry.size > 0 && text_range.contains(&(entry.function + entry.size - 1)),
            "{entry:?}"
        );
        assert_eq!(entry.flags, options.flags());
        let at = (entry.record - start) as usize;
        let ran = executed.get(&entry.function);
        let calls = ran.map_or(0, |(count, _)| *count);
        let word = |at: usize| u32::from_le_bytes(records[at..at + 4].try_into().unwrap());
        let recorded = match options.mode {
            Mode::Function(Counter::Store) => {
                assert!(
                    [record::COVERED_BYTE, record::INITIAL_BYTE].contains(&records[at]),
                    "{entry:?}"
                );
                u32::from(records[at] == record::COVERED_BYTE) * calls.max(1)
            }
            Mode::Function(Counter::Unary) => {
                let told = record::UNARY_MAX - records[at].count_ones();
                if told == record::UNARY_MAX {
                    calls.max(told)
                } else {
                    told
                }
            }
            Mode::Calls { .. } => {
                if let Some((_, time)) = ran {
                    first_calls.push((*time, word(at + record::ORDINAL_OFFSET), &entry.name));
                } else {
                    assert_eq!(word(at + record::ORDINAL_OFFSET), record::INITIAL_WORD);
                }
                word(at + record::COUNT_OFFSET).wrapping_add(1)
            }
        };
        if recorded != calls {
            let _ = writeln!(
                failures,
                "{}: {calls} calls, recorded {recorded}",
                entry.name
            );
        }
        for (number, block) in entry.blocks.iter().enumerate() {
            let byte = records[at + options.entry_size() + number * record::BLOCK_SIZE];
            let ran = executed.contains_key(&(entry.function + block));
            if ran != (byte == record::COVERED_BYTE) {
                let _ = writeln!(
                    failures,
                    "{}: block {number} at {block:#x}: ran {ran}, byte {byte:#x}",
                    entry.name
                );
            }
        }
        used = used.max(at + options.entry_size() + entry.blocks.len());
    }
    first_calls.sort_unstable();
    for (ordinal, (_, recorded, name)) in (record::FIRST_ORDINAL..).zip(&first_calls) {
        if ordinal != *recorded {
            let _ = writeln!(
                failures,
                "{name}: first call has ordinal {recorded}, not {ordinal}"
            );
        }
    }
    assert_eq!(failures, "");
    if let Mode::Calls {
        return_addresses: Some(slots),
    } = options.mode
    {
        let ring = &records[used.next_multiple_of(record::CALLS_ALIGN)..];
        check_ring(ring, slots, start, &entries, &bytes, &text);
    }
    (
        entries.len(),
        entries.iter().map(|entry| entry.blocks.len()).sum(),
    )
}

/// Each sample names a function, and a place behind a call.
fn check_ring(
    ring_bytes: &[u8],
    slots: u32,
    start: u64,
    entries: &[Entry],
    program: &[u8],
    text: &object::Section<'_, '_>,
) {
    assert_eq!(ring_bytes.len(), slots as usize * ring::SAMPLE_SIZE);
    let (file_at, _) = text.file_range().unwrap();
    let mut inside = 0;
    for sample in ring_bytes.chunks_exact(ring::SAMPLE_SIZE) {
        let word = |at: usize| u32::from_le_bytes(sample[at..at + 4].try_into().unwrap());
        let callee = start + u64::from(word(ring::RECORD_OFFSET));
        assert!(entries.iter().any(|entry| entry.record == callee));
        let back = start.wrapping_add_signed(i64::from(word(ring::RETURN_OFFSET) as i32));
        // A callback returns into a library.
        if !(text.address()..text.address() + text.size()).contains(&back) {
            continue;
        }
        let at = (file_at + back - text.address() - 4) as usize;
        let instruction = u32::from_le_bytes(program[at..at + 4].try_into().unwrap());
        let is_call = instruction >> 26 == 0b10_0101 || instruction & 0xffff_fc1f == 0xd63f_0000;
        assert!(is_call, "{back:#x}: {instruction:#x}");
        inside += 1;
    }
    assert!(inside > slots / 2);
}

fn options(mode: Mode, blocks: bool) -> Options {
    let mut options = Options::default();
    options.mode = mode;
    options.blocks = blocks;
    options
}

const STORE: Mode = Mode::Function(Counter::Store);
const UNARY: Mode = Mode::Function(Counter::Unary);
const CALLS: Mode = Mode::Calls {
    return_addresses: None,
};

/// Tools, source, options of compiling and of linking, mode, blocks.
type Case<'c> = (Tools, &'c str, &'c [&'c str], &'c [&'c str], Mode, bool);

/// Checks a list of builds; returns without doing so when tools are missing.
fn check_all(machine: &Machine, builds: &[Case<'_>]) -> Option<(usize, usize)> {
    if let Some(missing) = machine.missing() {
        profkit_testkit::skip(&missing);
        return None;
    }
    let mut sum = (0, 0);
    for (tools, source, compile, link, mode, blocks) in builds {
        let folder = tempfile::tempdir().unwrap();
        let build = Build {
            machine,
            tools: *tools,
            options: compile,
            link,
            sources: &[self::source(source)],
            folder: folder.path(),
        };
        let name = match tools {
            Tools::Clang(release) => format!("clang {release}"),
            Tools::Gcc => "gcc".to_owned(),
        };
        eprintln!("{source}: {name} {compile:?} {link:?} {mode:?} blocks: {blocks}");
        let (functions, blocks) = check(&build, &options(*mode, *blocks));
        sum = (sum.0 + functions, sum.1 + blocks);
    }
    Some(sum)
}

/// Programs at fixed addresses, so that qemu's log and the map have the same ones.
const FIXED: &[&str] = &["-no-pie"];

#[test]
fn aarch64_functions() {
    let sum = check_all(
        &AARCH64,
        &[
            (
                Tools::Clang(22),
                "machine.c",
                &["-O0", "-fno-pie"],
                FIXED,
                STORE,
                false,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fno-pie", "-mbranch-protection=standard", "-g"],
                FIXED,
                UNARY,
                false,
            ),
            (
                Tools::Clang(16),
                "machine.c",
                &["-Os", "-fno-pie", "-ffunction-sections"],
                FIXED,
                STORE,
                false,
            ),
            (
                Tools::Clang(22),
                "thrown.cpp",
                &["-O1", "-fpatchable-function-entry=3,1"],
                FIXED,
                STORE,
                false,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-O2", "-mbranch-protection=standard"],
                FIXED,
                STORE,
                false,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-Os", "-fpatchable-function-entry=2", "-g"],
                FIXED,
                UNARY,
                false,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                STORE,
                false,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                UNARY,
                false,
            ),
        ],
    );
    if let Some((functions, _)) = sum {
        assert!(functions > 150, "{functions}");
    }
}

#[test]
fn aarch64_calls() {
    let ring = |slots| Mode::Calls {
        return_addresses: Some(slots),
    };
    check_all(
        &AARCH64,
        &[
            (
                Tools::Clang(22),
                "machine.c",
                &["-O0", "-fno-pie"],
                FIXED,
                CALLS,
                false,
            ),
            (
                Tools::Clang(22),
                "thrown.cpp",
                &["-O2", "-mbranch-protection=standard", "-ffunction-sections"],
                FIXED,
                CALLS,
                false,
            ),
            (Tools::Gcc, "machine.c", &["-O2"], FIXED, CALLS, false),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                CALLS,
                false,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O1", "-fno-pie", "-mbranch-protection=standard"],
                FIXED,
                ring(64),
                false,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-O1", "-mbranch-protection=pac-ret+leaf"],
                FIXED,
                ring(100),
                false,
            ),
        ],
    );
}

#[test]
fn aarch64_blocks() {
    let sum = check_all(
        &AARCH64,
        &[
            (
                Tools::Clang(22),
                "machine.c",
                &["-O0", "-fno-pie"],
                FIXED,
                STORE,
                true,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fno-pie", "-mbranch-protection=standard", "-g"],
                FIXED,
                STORE,
                true,
            ),
            (
                Tools::Clang(16),
                "machine.c",
                &["-Os", "-fno-pie", "-mno-outline-atomics"],
                FIXED,
                CALLS,
                true,
            ),
            (
                Tools::Clang(22),
                "thrown.cpp",
                &["-O1", "-ffunction-sections"],
                FIXED,
                UNARY,
                true,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-O2", "-mno-outline-atomics"],
                FIXED,
                STORE,
                true,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-Os", "-g", "-mbranch-protection=standard"],
                FIXED,
                CALLS,
                true,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O3", "-fPIE"],
                &["-pie"],
                STORE,
                true,
            ),
        ],
    );
    if let Some((_, blocks)) = sum {
        assert!(blocks > 1000, "{blocks}");
    }
}

/// Addresses in four instructions instead of two.
#[test]
fn aarch64_large_code_model() {
    if let Some(missing) = AARCH64.missing() {
        profkit_testkit::skip(&missing);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let build = Build {
        machine: &AARCH64,
        tools: Tools::Clang(22),
        options: &["-O1", "-fno-pie", "-mcmodel=large", "-fno-jump-tables"],
        link: FIXED,
        sources: &[source("machine.c")],
        folder: folder.path(),
    };
    let mut options = options(CALLS, true);
    options.large_code_model = true;
    check(&build, &options);
}

/// Random programs in all modes: as many as there are seeds.
fn check_generated(machine: &Machine, seeds: std::ops::Range<u64>, modes: &[(Mode, bool)]) {
    if let Some(missing) = machine.missing() {
        profkit_testkit::skip(&missing);
        return;
    }
    for seed in seeds {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::generate(
            seed,
            Size {
                files: 2,
                functions: 6,
            },
        );
        let is_wide = |(_, text): &(String, String)| text.contains("__int128");
        if machine.target == Target::ArmElf && program.sources().iter().any(is_wide) {
            // Not a type of 32-bit targets.
            continue;
        }
        let sources = program.write_to(folder.path()).unwrap();
        let turn = seed as usize;
        let tools = [Tools::Clang(22), Tools::Gcc, Tools::Clang(16)][turn % 3];
        let level = ["-O2", "-O0", "-Os", "-O3", "-O1"][turn % 5];
        let (mode, blocks) = modes[turn % modes.len()];
        let fixed: &[&str] = match tools {
            Tools::Clang(_) => &["-fno-pie", "-ffunction-sections"],
            Tools::Gcc => &["-fno-pie"],
        };
        let compile = [fixed, &[level, "-mno-outline-atomics"]].concat();
        let compile = if matches!(machine.target, Target::ArmElf) {
            &compile[..compile.len() - 1]
        } else {
            &compile
        };
        eprintln!("seed {seed}: {compile:?} {mode:?} blocks: {blocks}");
        let build = Build {
            machine,
            tools,
            options: compile,
            link: &["-no-pie", "-lm", "-Wl,--gc-sections"],
            sources: &sources,
            folder: folder.path(),
        };
        check(&build, &options(mode, blocks));
    }
}

#[test]
fn aarch64_random_programs() {
    let modes = [(STORE, true), (CALLS, true), (UNARY, true), (CALLS, false)];
    check_generated(&AARCH64, 100..102, &modes);
}

#[test]
fn arm_random_programs() {
    check_generated(&ARM, 200..201, &[(STORE, false)]);
    check_generated(&THUMB, 203..204, &[(STORE, false)]);
}

#[test]
fn arm_functions() {
    check_all(
        &ARM,
        &[
            (Tools::Clang(22), "machine.c", &["-O0"], FIXED, STORE, false),
            (
                Tools::Clang(22),
                "machine.c",
                &["-Os", "-ffunction-sections", "-g"],
                FIXED,
                STORE,
                false,
            ),
            (Tools::Gcc, "machine.c", &["-O2"], FIXED, STORE, false),
            (
                Tools::Gcc,
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                STORE,
                false,
            ),
        ],
    );
}

#[test]
fn thumb_functions() {
    check_all(
        &THUMB,
        &[
            (Tools::Clang(22), "machine.c", &["-O0"], FIXED, STORE, false),
            (
                Tools::Clang(16),
                "machine.c",
                &["-O2", "-fno-pie"],
                FIXED,
                STORE,
                false,
            ),
            (Tools::Gcc, "machine.c", &["-Os", "-g"], FIXED, STORE, false),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                STORE,
                false,
            ),
        ],
    );
}

/// Mach-O objects can be made here, but not run: what is in them is read.
fn mach_o(
    triple: &str,
    flags: &[&str],
    source_name: &str,
    options: &Options,
) -> Option<(Vec<u8>, String)> {
    for tool in ["clang-22", "llvm-objdump-22"] {
        if find(tool).is_none() {
            profkit_testkit::skip(&format!("{tool} is not installed"));
            return None;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let source = source(source_name);
    let mut command = Command::new("clang-22");
    let assembly = succeed(
        command
            .args(["-target", triple, "-w", "-O1", "-S"])
            .args(flags)
            .arg(&source)
            .args(["-o", "-"]),
    );
    let made = instrument(&assembly, source_name, None, options).unwrap();
    assert_eq!(
        made.text,
        instrument(
            &assembly,
            source_name,
            Some(triple.parse().unwrap()),
            options
        )
        .unwrap()
        .text
    );
    let (file, object) = (folder.path().join("a.s"), folder.path().join("a.o"));
    std::fs::write(&file, &made.text).unwrap();
    succeed(
        Command::new("clang-22")
            .args(["-target", triple, "-c"])
            .arg(&file)
            .arg("-o")
            .arg(&object),
    );
    let code = succeed(
        Command::new("llvm-objdump-22")
            .args(["--macho", "-d", "--no-show-raw-insn"])
            .arg(&object),
    );
    Some((
        std::fs::read(&object).unwrap(),
        String::from_utf8(code).unwrap(),
    ))
}

/// The first instructions of each function in a listing, operands parted by one space.
fn listing(code: &str) -> HashMap<&str, Vec<String>> {
    let mut functions: HashMap<&str, Vec<String>> = HashMap::new();
    let mut current = "";
    for line in code.lines() {
        if let Some(name) = line.strip_suffix(':') {
            current = name;
        } else if let Some((_, instruction)) = line.split_once(":\t") {
            let words: Vec<&str> = instruction.split_whitespace().collect();
            functions.entry(current).or_default().push(words.join(" "));
        }
    }
    functions
}

/// What the entry probe of function number `index` looks like when disassembled.
fn entry_probe(is_arm64: bool, mode: Mode, index: usize) -> Vec<String> {
    let record = format!("l_profkit_mip_r{index}");
    let lines: &[&str] = match (is_arm64, mode) {
        (true, STORE) => &["adrp x16, R@PAGE", "strb wzr, [x16, R@PAGEOFF]"],
        (true, UNARY) => &[
            "adrp x16, R@PAGE",
            "ldrb w17, [x16, R@PAGEOFF]",
            "lsr w17, w17, #1",
            "strb w17, [x16, R@PAGEOFF]",
        ],
        (true, _) => &[
            "adrp x16, R@PAGE",
            "ldr w17, [x16, R@PAGEOFF]",
            "add w17, w17, #0x1",
            "str w17, [x16, R@PAGEOFF]",
        ],
        // The immediate behind the address is in the relocation's type, which the disassembler does not take back.
        (false, STORE) => &["movb $0x0, R-1(%rip)"],
        (false, UNARY) => &["shrb R(%rip)"],
        (false, _) => &["incl R(%rip)"],
    };
    lines
        .iter()
        .map(|line| line.replace('R', &record))
        .collect()
}

/// Checks an object: probes, and map entries whose addresses are relocations against the function and its record.
fn check_mach_o(triple: &str, flags: &[&str], mode: Mode, blocks: bool) {
    let options = options(mode, blocks);
    let Some((bytes, code)) = mach_o(triple, flags, "macho.c", &options) else {
        return;
    };
    let is_arm64 = triple.starts_with("arm64");
    let file = object::File::parse(&*bytes).unwrap();
    let map = file.section_by_name(section::MAP).unwrap();
    let object::SectionFlags::MachO { flags, .. } = map.flags() else {
        panic!("{:?}", map.flags())
    };
    assert_eq!(flags, object::macho::S_ATTR_LIVE_SUPPORT);
    let relocations: HashMap<u64, String> = map
        .relocations()
        .map(|(at, relocation)| {
            let object::RelocationTarget::Symbol(index) = relocation.target() else {
                panic!("{relocation:?}")
            };
            let symbol = object::Object::symbol_by_index(&file, index).unwrap();
            (at, object::ObjectSymbol::name(&symbol).unwrap().to_owned())
        })
        .collect();
    let functions = listing(&code);
    let data = map.data().unwrap();
    let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut index, mut anchors, mut record_bytes) = (0, 0, 0, 0);
    while at < data.len() {
        let target = |field: usize| relocations[&((at + field) as u64)].as_str();
        let block_count = word(at + map_entry::BLOCK_COUNT);
        let name_at = at + map_entry::FIXED_SIZE + block_count * map_entry::BLOCK_OFFSET_SIZE;
        let name = std::str::from_utf8(&data[name_at..name_at + word(at + map_entry::NAME_LENGTH)])
            .unwrap();
        if name.is_empty() {
            assert_eq!(
                target(map_entry::RECORD_ADDRESS),
                "section$start$__DATA$__llvm_mipraw"
            );
            assert_eq!(target(map_entry::FUNCTION_ADDRESS), "___profkit_mip_hook");
            anchors += 1;
        } else {
            assert_eq!(
                target(map_entry::RECORD_ADDRESS),
                format!("l_profkit_mip_r{index}")
            );
            assert_eq!(target(map_entry::FUNCTION_ADDRESS), name);
            let probe = entry_probe(is_arm64, mode, index);
            // On x86-64 it stands behind the set-up of the frame, unless it looks for the return address itself.
            let by_stack = matches!(
                mode,
                Mode::Calls {
                    return_addresses: Some(_)
                }
            );
            let frame = ["pushq %rbp", "movq %rsp, %rbp"];
            let behind = usize::from(!is_arm64 && !by_stack && functions[name][..2] == frame) * 2;
            assert_eq!(functions[name][behind..][..probe.len()], probe, "{name}");
            // Every block has its own store, in any order of code.
            for block in 0..block_count {
                if !is_arm64 {
                    let offset = match options.entry_size() + block - 1 {
                        0 => String::new(),
                        offset => format!("+{offset}"),
                    };
                    let store = format!("movb $0x0, l_profkit_mip_r{index}{offset}(%rip)");
                    assert!(
                        functions[name].contains(&store),
                        "{name}: no {store}\n{code}"
                    );
                }
            }
            if is_arm64 {
                let stores = functions[name]
                    .iter()
                    .filter(|line| line.starts_with("strb wzr"))
                    .count();
                assert!(stores >= block_count, "{name}");
            }
            record_bytes += options.entry_size() + block_count;
            record_bytes = record_bytes.next_multiple_of(options.record_align());
            index += 1;
        }
        at += word(at + map_entry::ENTRY_SIZE);
    }
    assert_eq!((index, anchors), (6, 1));
    let records = file.section_by_name(section::RECORDS).unwrap();
    assert_eq!(
        records
            .size()
            .next_multiple_of(options.record_align() as u64),
        record_bytes as u64
    );
    if matches!(mode, Mode::Calls { .. }) {
        assert!(
            functions["___profkit_mip_first"]
                .iter()
                .any(|line| line.starts_with("ret"))
        );
    }
}

#[test]
fn mach_o_objects() {
    for (triple, flags) in [
        ("arm64-apple-macos13", [].as_slice()),
        ("x86_64-apple-macos13", &[]),
        ("x86_64-apple-macos13", &["-masm=intel"]),
    ] {
        for mode in [
            STORE,
            UNARY,
            CALLS,
            Mode::Calls {
                return_addresses: Some(16),
            },
        ] {
            check_mach_o(triple, flags, mode, false);
            check_mach_o(triple, flags, mode, true);
        }
    }
}
