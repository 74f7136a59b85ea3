//! Tests the instrumentation for x86-64. Assembly of real compilers is instrumented, assembled, linked with two
//! linkers, and run. The program must print the same as without instrumentation. The object files and images may differ
//! only in what the instrumenter promises to add.
use super::inferred::Lists;
use object::{Object, ObjectSection, ObjectSymbol};
use profkit_abi::mip::{map_entry, mode, record, section};
use profkit_data::mip::sampled_calls_record;
use profkit_mip::instrument::{Counter, Mode, Options, instrument};
use profkit_testkit::{
    links_c, links_cxx, repo_root, require_or_skip, short_or_whole, skip, some_or_all,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// C code that takes the place of the runtime: at exit, it writes the record section to a file.
const READER: &str = r#"
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN uint32_t __profkit_mip_ordinal = 1, __profkit_mip_ring_next;
HIDDEN int __profkit_mip_hook;
extern HIDDEN __attribute__((weak)) unsigned char begin[] __asm__("__start___llvm_mipraw");
extern HIDDEN __attribute__((weak)) unsigned char end[] __asm__("__stop___llvm_mipraw");
extern HIDDEN __attribute__((weak)) unsigned char ring[] __asm__("__profkit_mip_ring_64");
__attribute__((destructor)) static void dump(void) {
  const char *name = getenv("RECORDS");
  FILE *file = name ? fopen(name, "wb") : 0;
  if (!file) return;
  fwrite(begin, 1, (size_t)(end - begin), file);
  if (ring) fwrite(ring, 1, 64 * 8, file);
  fclose(file);
}
"#;

#[derive(Clone, Debug)]
struct Compiler {
    c: PathBuf,
    cxx: PathBuf,
}

fn compilers() -> Vec<Compiler> {
    let mut all = Vec::new();
    let mut take = |c: &Path, cxx: &Path| match links_c(c, &[]).and_then(|()| links_cxx(cxx, &[])) {
        Ok(()) => all.push(Compiler {
            c: c.into(),
            cxx: cxx.into(),
        }),
        Err(reason) => skip(&reason),
    };
    take(Path::new("gcc"), Path::new("g++"));
    for release in short_or_whole(vec![22], vec![13, 22]) {
        let llvm = require_or_skip!(release, continue);
        take(llvm.clang(), llvm.clangxx());
    }
    all
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.stderr.is_empty(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// A folder with the linkers under the names that compilers look for, and with `READER` as runtime.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(lld) = ["/usr/bin/ld.lld-22", "/usr/lib/llvm-22/bin/ld.lld"]
            .into_iter()
            .find(|path| Path::new(path).exists())
        {
            std::os::unix::fs::symlink(lld, folder.path().join("ld.lld")).unwrap();
        } else {
            skip("lld-22 is not installed");
        }
        let bench = Bench { folder };
        fs::write(bench.path("reader.c"), READER).unwrap();
        run(Command::new("cc")
            .args(["-O1", "-fPIC", "-c", "-o"])
            .arg(bench.path("reader.o"))
            .arg(bench.path("reader.c")));
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn linkers(&self) -> Vec<&'static str> {
        let mut all = vec!["bfd"];
        if self.path("ld.lld").exists() {
            all.push("lld");
        }
        all
    }

    /// Compiles a program of the repository to assembly.
    fn assembly(&self, compiler: &Compiler, source: &str, flags: &[&str]) -> String {
        let out = self.path("out.s");
        let driver = if source.ends_with(".c") {
            &compiler.c
        } else {
            &compiler.cxx
        };
        run(Command::new(driver)
            .args(flags)
            .args(["-S", "-o"])
            .arg(&out)
            .arg(repo_root().join("tests/programs").join(source)));
        String::from_utf8(fs::read(out).unwrap()).unwrap()
    }

    fn assemble(&self, compiler: &Compiler, text: &[u8], name: &str) -> PathBuf {
        let (source, object) = (self.path("in.s"), self.path(name));
        fs::write(&source, text).unwrap();
        run(Command::new(&compiler.c)
            .args(["-c", "-o"])
            .arg(&object)
            .arg(&source));
        object
    }

    fn link(
        &self,
        compiler: &Compiler,
        linker: &str,
        flags: &[&str],
        objects: &[&Path],
    ) -> PathBuf {
        let image = self.path("image");
        run(Command::new(&compiler.cxx)
            .arg(format!("-fuse-ld={linker}"))
            .arg(format!("-B{}", self.folder.path().display()))
            .args(["-Wl,--gc-sections", "-Wl,--fatal-warnings"])
            .args(flags)
            .arg("-o")
            .arg(&image)
            .args(objects)
            .arg(self.path("reader.o")));
        image
    }

    fn records(&self, image: &Path) -> (Vec<u8>, Vec<u8>) {
        let file = self.path("records");
        let _ = fs::remove_file(&file);
        let printed = run(Command::new(image).env("RECORDS", &file));
        (printed, fs::read(file).unwrap_or_default())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    flags: u16,
    record: usize,
    address: u64,
    size: u32,
    signature: u32,
    blocks: Vec<u32>,
    lists: Lists,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn map(image: &Path) -> Vec<Entry> {
    let data = fs::read(image).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let bytes = file
        .section_by_name(section::MAP)
        .unwrap()
        .uncompressed_data()
        .unwrap();
    let start = file.section_by_name(section::RECORDS).unwrap().address();
    let mut entries = Vec::new();
    let mut anchors = 0;
    let mut at = 0;
    while at < bytes.len() {
        let entry = &bytes[at..];
        let size = u32_at(entry, map_entry::ENTRY_SIZE) as usize;
        let flags = u16::from_le_bytes(entry[map_entry::MODE..][..2].try_into().unwrap());
        let count = u32_at(entry, map_entry::BLOCK_COUNT) as usize;
        let length = u32_at(entry, map_entry::NAME_LENGTH) as usize;
        let blocks = map_entry::FIXED_SIZE;
        let (lists, lists_size) = Lists::read(&entry[blocks + 4 * count..], count, flags);
        let name = blocks + 4 * count + lists_size;
        assert_eq!(size, (name + length).next_multiple_of(map_entry::ALIGN));
        let record = u64_at(entry, map_entry::RECORD_ADDRESS);
        if flags == mode::ANCHOR {
            anchors += 1;
            assert_eq!(record, start);
        } else {
            entries.push(Entry {
                name: String::from_utf8(entry[name..name + length].to_vec()).unwrap(),
                flags,
                record: usize::try_from(record - start).unwrap(),
                address: u64_at(entry, map_entry::FUNCTION_ADDRESS),
                size: u32_at(entry, map_entry::FUNCTION_SIZE),
                signature: u32_at(entry, map_entry::SIGNATURE),
                blocks: (0..count).map(|i| u32_at(entry, blocks + 4 * i)).collect(),
                lists,
            });
        }
        at += size;
    }
    assert_eq!(anchors, 1);
    entries
}

fn modes() -> Vec<Options> {
    let mut store_blocks = Options::default();
    store_blocks.blocks = true;
    let mut unary = Options::default();
    unary.mode = Mode::Function(Counter::Unary);
    let mut calls = Options::default();
    calls.mode = Mode::Calls {
        return_addresses: Some(64),
    };
    calls.blocks = true;
    vec![store_blocks, unary, calls]
}

fn large_modes() -> Vec<Options> {
    let mut all = modes();
    for options in &mut all {
        options.large_code_model = true;
    }
    all
}

fn symbols(path: &Path) -> BTreeSet<String> {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    file.symbols()
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .filter(|name| !name.is_empty())
        .collect()
}

fn dynamic_relocations(path: &Path) -> usize {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    file.dynamic_relocations().map_or(0, Iterator::count)
}

/// Checks the records of a run, by rules that hold for every compiler.
fn check_records(entries: &[Entry], records: &[u8], options: &Options) {
    let by_name: BTreeMap<&str, &Entry> = entries.iter().map(|e| (e.name.as_str(), e)).collect();
    assert!(
        !by_name.contains_key("dead"),
        "--gc-sections drops dead code"
    );
    let sampled = options.flags() & mode::CALL_EDGES != 0;
    let calls_of_record = |bytes: &[u8]| match sampled {
        true => u32::try_from(sampled_calls_record(bytes.first_chunk().unwrap()).calls).unwrap(),
        false => u32_at(bytes, record::COUNT_OFFSET).wrapping_add(1),
    };
    let mut ordinals = BTreeSet::new();
    for entry in entries {
        let bytes = &records[entry.record..];
        match options.mode {
            Mode::Function(Counter::Store) => assert!(matches!(bytes[0], 0 | 0xff)),
            Mode::Function(Counter::Unary) => assert_eq!(bytes[0] & bytes[0].wrapping_add(1), 0),
            Mode::Calls { .. } => {
                let count = calls_of_record(bytes).wrapping_sub(1);
                let ordinal = u32_at(bytes, record::ORDINAL_OFFSET);
                assert_eq!(count == u32::MAX, ordinal == u32::MAX, "{entry:?}");
                if ordinal != u32::MAX {
                    assert!(
                        ordinals.insert(ordinal),
                        "{entry:?}: ordinal {ordinal} twice"
                    );
                }
            }
        }
    }
    // Ordinals are 1, 2, 3 and so on: none is lost.
    let count = u32::try_from(ordinals.len()).unwrap();
    assert_eq!(ordinals, (1..=count).collect());
    let calls_of = |name: &str| {
        let bytes = &records[by_name[name].record..];
        match options.mode {
            Mode::Function(Counter::Store) => {
                u32::from(by_name[name].lists.ran(bytes, record::COVERAGE_SIZE)[0])
            }
            Mode::Function(Counter::Unary) => bytes[0].count_zeros(),
            Mode::Calls { .. } => calls_of_record(bytes),
        }
    };
    let counted = !matches!(options.mode, Mode::Function(Counter::Store));
    assert_eq!(calls_of("main"), 1);
    assert_eq!(calls_of("guarded"), if counted { 3 } else { 1 });
    assert_eq!(calls_of("spin"), 1, "a loop back to the start is no call");
}

#[test]
fn programs_print_the_same_and_differ_in_nothing_else() {
    let bench = Bench::new();
    let flags: [&[&str]; 3] = [
        &["-O2", "-gdwarf-4", "-ffunction-sections"],
        &["-O1", "-fPIC", "-fcf-protection", "-ffunction-sections"],
        &["-O0", "-masm=intel", "-ffunction-sections"],
    ];
    for compiler in compilers() {
        for flags in flags {
            // With this option, clang 13 breaks inline assembly even without instrumentation.
            if flags.contains(&"-masm=intel") && compiler.c.ends_with("clang-13") {
                continue;
            }
            let texts = ["corners.c", "corners_more.cpp"]
                .map(|source| bench.assembly(&compiler, source, flags));
            let plain: Vec<PathBuf> = texts
                .iter()
                .enumerate()
                .map(|(i, text)| bench.assemble(&compiler, text.as_bytes(), &format!("plain{i}.o")))
                .collect();
            let plain_paths: Vec<&Path> = plain.iter().map(PathBuf::as_path).collect();
            let image = bench.link(&compiler, "bfd", &[], &plain_paths);
            let expected = run(&mut Command::new(&image));
            let relocations = dynamic_relocations(&image);
            for options in some_or_all([modes(), large_modes()].concat(), 3) {
                let mut objects = Vec::new();
                for (i, text) in texts.iter().enumerate() {
                    let made = instrument(text.as_bytes(), "in.s", None, &options).unwrap();
                    assert!(made.functions > 10, "{compiler:?} {:?}", made.skipped);
                    for skipped in &made.skipped {
                        assert_eq!(skipped.name, "bare", "{compiler:?} {flags:?} {skipped:?}");
                    }
                    let object = bench.assemble(&compiler, &made.text, &format!("{i}.o"));
                    let added: Vec<String> = symbols(&object)
                        .difference(&symbols(&plain[i]))
                        .filter(|name| {
                            !name.starts_with("__profkit_mip_") && *name != "__start___llvm_mipraw"
                        })
                        .cloned()
                        .collect();
                    assert!(added.is_empty(), "{compiler:?} {flags:?}: {added:?}");
                    objects.push(object);
                }
                let paths: Vec<&Path> = objects.iter().map(PathBuf::as_path).collect();
                for linker in bench.linkers() {
                    let image = bench.link(&compiler, linker, &[], &paths);
                    let (printed, records) = bench.records(&image);
                    let what = format!("{compiler:?} {flags:?} {options:?} {linker}");
                    assert_eq!(
                        String::from_utf8_lossy(&printed),
                        String::from_utf8_lossy(&expected),
                        "{what}"
                    );
                    if linker == "bfd" {
                        // No dynamic relocations are added. Without records, the bounds of their section are even two
                        // more.
                        assert!(dynamic_relocations(&image) <= relocations, "{what}");
                    }
                    check_records(&map(&image), &records, &options);
                }
            }
        }
    }
}

/// The executed ranges: qemu logs the code that it translates, right before it runs it.
fn executed(log: &str) -> BTreeMap<u64, u64> {
    let mut ranges: BTreeMap<u64, u64> = BTreeMap::new();
    for line in log.lines() {
        let Some((address, rest)) = line.split_once(':') else {
            continue;
        };
        let Some(address) = address
            .strip_prefix("0x")
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())
        else {
            continue;
        };
        let length = match rest.trim().strip_prefix("OBJD-T:") {
            Some(hex) => hex.trim().len() as u64 / 2,
            None => 1,
        };
        let end = ranges.entry(address).or_default();
        *end = (*end).max(address + length);
    }
    ranges
}

#[test]
fn blocks_are_covered_exactly_where_an_emulator_saw_them_run() {
    if !Path::new("/usr/bin/qemu-x86_64").exists() {
        return skip("qemu-user is not installed");
    }
    let bench = Bench::new();
    let mut all = modes().swap_remove(0);
    all.all_blocks = true;
    let both = [modes().swap_remove(0), all, large_modes().swap_remove(0)];
    for (compiler, options) in compilers()
        .into_iter()
        .flat_map(|compiler| both.iter().map(move |options| (compiler.clone(), options)))
    {
        let flags = ["-O2", "-fno-pie", "-fno-omit-frame-pointer"];
        let objects: Vec<PathBuf> = ["corners.c", "corners_more.cpp"]
            .iter()
            .enumerate()
            .map(|(i, source)| {
                let text = bench.assembly(&compiler, source, &flags);
                let made = instrument(text.as_bytes(), "in.s", None, options).unwrap();
                bench.assemble(&compiler, &made.text, &format!("{i}.o"))
            })
            .collect();
        let paths: Vec<&Path> = objects.iter().map(PathBuf::as_path).collect();
        let image = bench.link(&compiler, "bfd", &["-no-pie"], &paths);
        let (records, log) = (bench.path("records"), bench.path("log"));
        run(Command::new("qemu-x86_64")
            .args(["-d", "in_asm,nochain", "-D"])
            .arg(&log)
            .arg(&image)
            .env("RECORDS", &records));
        let records = fs::read(records).unwrap();
        let log = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
        let ranges = executed(&log);
        let ran = |address: u64| {
            ranges
                .range(..=address)
                .rev()
                .take(64)
                .any(|(_, &end)| address < end)
        };
        let (mut covered, mut not, mut cold, mut inferred) = (0, 0, 0, 0);
        for entry in map(&image) {
            let is_part = entry.flags & mode::PART != 0;
            assert_eq!(is_part, entry.name.ends_with(".cold"), "{}", entry.name);
            let recorded = entry
                .lists
                .ran(&records[entry.record..], record::COVERAGE_SIZE);
            inferred += entry.blocks.len() - entry.lists.recorded();
            for (block, &offset) in entry.blocks.iter().enumerate() {
                let is_covered = recorded[block + 1];
                let address = entry.address + u64::from(offset);
                assert!(u64::from(offset) < u64::from(entry.size));
                assert_eq!(
                    is_covered,
                    ran(address),
                    "{compiler:?} {} block {block} at {address:#x}",
                    entry.name
                );
                *if is_covered { &mut covered } else { &mut not } += 1;
                cold += usize::from(is_part && is_covered);
            }
            if !is_part {
                assert_eq!(recorded[0], ran(entry.address), "{}", entry.name);
            }
        }
        assert!(
            covered > 60 && not > 15,
            "{compiler:?}: {covered} covered, {not} not"
        );
        if options.all_blocks {
            assert_eq!(inferred, 0);
        } else {
            assert!(
                4 * inferred > covered + not,
                "{compiler:?}: {inferred} inferred"
            );
        }
        if compiler.c.ends_with("gcc") {
            assert!(cold > 2, "blocks of cold parts that ran: {cold}");
        }
    }
}

#[test]
fn the_unwinder_finds_its_way_from_each_instruction_of_a_large_probe() {
    let bench = Bench::new();
    for compiler in compilers() {
        for flags in [
            &["-O2", "-fasynchronous-unwind-tables"][..],
            &["-O0", "-fasynchronous-unwind-tables"],
        ] {
            let text = bench.assembly(&compiler, "unwind_steps.c", flags);
            let made = instrument(text.as_bytes(), "in.s", None, &large_modes()[0]).unwrap();
            let object = bench.assemble(&compiler, &made.text, "steps.o");
            let image = bench.link(&compiler, "bfd", &[], &[&object]);
            let (printed, _) = bench.records(&image);
            let printed = String::from_utf8_lossy(&printed).into_owned();
            assert!(
                printed.ends_with(": 0 lost\n"),
                "{compiler:?} {flags:?}: {printed}"
            );
        }
    }
}

#[test]
fn text_grows_by_the_probe_alone() {
    use std::fmt::Write as _;
    let bench = Bench::new();
    let mut source = String::new();
    for i in 0..20 {
        writeln!(
            source,
            ".globl f{i}\n.type f{i}, @function\nf{i}:\n\timull ${i}, %edi, %eax\n\tret\n.size f{i}, .-f{i}"
        )
        .unwrap();
    }
    let text_size = |path: &Path| {
        let data = fs::read(path).unwrap();
        let file = object::File::parse(&*data).unwrap();
        let size = |name: &str| file.section_by_name(name).map_or(0, |s| s.size());
        (size(".text"), size(section::RECORDS))
    };
    for compiler in compilers() {
        let plain = text_size(&bench.assemble(&compiler, source.as_bytes(), "plain.o")).0;
        for (counter, bytes) in [(Counter::Store, 7), (Counter::Unary, 6)] {
            let mut options = Options::default();
            options.mode = Mode::Function(counter);
            let made = instrument(source.as_bytes(), "in.s", None, &options).unwrap();
            let (text, records) = text_size(&bench.assemble(&compiler, &made.text, "made.o"));
            assert_eq!(text - plain, 20 * bytes, "{compiler:?}");
            assert_eq!(
                records, 20,
                "{compiler:?}: one byte a function and no header"
            );
        }
    }
}

#[test]
fn threads_give_each_function_one_ordinal() {
    use std::fmt::Write as _;
    const FUNCTIONS: usize = 150;
    let bench = Bench::new();
    let mut source = String::from("#include <pthread.h>\n");
    for i in 0..FUNCTIONS {
        writeln!(
            source,
            "__attribute__((noinline)) void f{i}(void) {{ __asm__ volatile(\"\"); }}"
        )
        .unwrap();
    }
    source.push_str("static void (*const all[])(void) = {");
    for i in 0..FUNCTIONS {
        write!(source, "f{i}, ").unwrap();
    }
    write!(
        source,
        "}};\nstatic pthread_barrier_t barrier;\n\
         static void *calls(void *start) {{\n\
         pthread_barrier_wait(&barrier);\n\
         for (unsigned long i = 0; i < {FUNCTIONS}; i++) all[(i + (unsigned long)start) % {FUNCTIONS}]();\n\
         return 0;\n}}\n\
         int main(void) {{\n\
         pthread_t threads[4];\n\
         all[7]();\n\
         pthread_barrier_init(&barrier, 0, 4);\n\
         for (unsigned long i = 0; i < 4; i++) pthread_create(&threads[i], 0, calls, (void *)(i % 2));\n\
         for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);\n\
         return 0;\n}}\n"
    )
    .unwrap();
    let (c, assembly) = (bench.path("threads.c"), bench.path("threads.s"));
    fs::write(&c, source).unwrap();
    let compiler = &compilers()[0];
    run(Command::new(&compiler.c)
        .args(["-O1", "-S", "-o"])
        .arg(&assembly)
        .arg(&c));
    let mut options = Options::default();
    options.mode = Mode::Calls {
        return_addresses: None,
    };
    let text = fs::read(&assembly).unwrap();
    let made = instrument(&text, "threads.s", None, &options).unwrap();
    assert_eq!(made.functions, FUNCTIONS + 2);
    let object = bench.assemble(compiler, &made.text, "threads.o");
    let image = bench.link(compiler, "bfd", &["-pthread"], &[&object]);
    let entries = map(&image);
    for _ in 0..20 {
        let (_, records) = bench.records(&image);
        let mut ordinals = BTreeSet::new();
        for entry in &entries {
            let ordinal = u32_at(&records[entry.record..], record::ORDINAL_OFFSET);
            assert_ne!(
                ordinal,
                record::INITIAL_WORD,
                "{} has no ordinal",
                entry.name
            );
            assert!(ordinals.insert(ordinal), "{ordinal} was given twice");
            let expected = match entry.name.as_str() {
                "main" => Some(1),
                "f7" => Some(2),
                "calls" => Some(3),
                _ => None,
            };
            // Each of four threads may take an ordinal at the first call, but only one is stored.
            if entry.name == "calls" {
                assert!((3..=6).contains(&ordinal), "calls: {ordinal}");
            } else if let Some(expected) = expected {
                assert_eq!(ordinal, expected, "{}", entry.name);
            }
        }
    }
}

#[test]
fn the_assemblers_errors_are_at_the_lines_of_the_input() {
    let bench = Bench::new();
    let text = "\t.type f, @function\nf:\n\tdecl %edi\n\tje .L1\n\tmovl %nothing, %eax\n.L1:\n\tret\n\t.size f, .-f\n\t.unheard_of 1\n";
    let mut options = modes().remove(2);
    options.blocks = true;
    let made = instrument(text.as_bytes(), "in.s", None, &options).unwrap();
    for compiler in compilers() {
        let lines = |text: &[u8]| {
            let source = bench.path("in.s");
            fs::write(&source, text).unwrap();
            let output = Command::new(&compiler.c)
                .args(["-c", "-o", "/dev/null"])
                .arg(&source)
                .output()
                .unwrap();
            assert!(!output.status.success());
            let messages = String::from_utf8_lossy(&output.stderr).into_owned();
            let lines: Vec<u32> = messages
                .lines()
                .filter_map(|line| line.split_once("in.s:")?.1.split(':').next()?.parse().ok())
                .collect();
            lines
        };
        assert_eq!(lines(text.as_bytes()), [5, 9], "{compiler:?}");
        assert_eq!(lines(&made.text), [5, 9], "{compiler:?}");
    }
}
