//! Tests the MIP runtime in real programs: where it writes files and what they contain, that no count is lost, and that
//! the exit status of the program does not change.
use object::read::{Object as _, ObjectSection as _, ObjectSymbol as _};
use profkit_abi::mip::{raw_header, record};
use profkit_testkit::{links_c, on_path, or_skip, repo_root, skip, succeed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use twox_hash::XxHash3_64;

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");
/// Exit code of the test program.
const OWN_CODE: i32 = 7;

/// Programs that were compiled once for all tests.
struct Programs {
    folder: PathBuf,
}

/// The compiled programs; None where there is no compiler.
fn programs() -> Option<&'static Programs> {
    static PROGRAMS: OnceLock<Result<Programs, String>> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(|| {
        for link in ["-pie", "-static"] {
            links_c("gcc-12", &["-pthread", link])?;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mip-runtime");
        fs::create_dir_all(&folder).unwrap();
        let sources = repo_root().join("tests/programs/mip");
        let build = |options: &[&str], words: &[&str], source: &str, output: &str| {
            succeed(
                Command::new(PROFKIT)
                    .args(["mip", "cc"])
                    .args(options)
                    .args(["--", "gcc-12", "-O1", "-pthread"])
                    .args(words)
                    .arg(sources.join(source))
                    .arg("-o")
                    .arg(folder.join(output)),
            );
        };
        build(&["--mode", "calls"], &[], "runtime.c", "calls");
        build(&["--mode", "calls"], &["-static"], "runtime.c", "static");
        build(&["--counter", "unary"], &[], "runtime.c", "unary");
        build(&["--mode", "calls,block"], &[], "runtime.c", "blocks");
        build(
            &["--mode", "calls"],
            &["-Wl,--build-id=none"],
            "runtime.c",
            "noid",
        );
        build(
            &["--mode", "calls"],
            &["-shared", "-fPIC"],
            "library.c",
            "one.so",
        );
        build(
            &["--mode", "calls"],
            &["-shared", "-fPIC", "-DTWO"],
            "library.c",
            "two.so",
        );
        Ok(Programs { folder })
    });
    programs.as_ref().map_err(|reason| skip(reason)).ok()
}

/// A folder for one test, empty at first, with methods that run programs in it and read their files.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, programs: &Programs, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(programs.folder.join(program));
        command.current_dir(self.path()).args(words);
        command
            .env_remove("LLVM_MIP_PROFILE_FILENAME")
            .env_remove("PROFKIT_MIP_SIGNAL");
        command
    }

    /// Runs a program. `pattern` is the pattern for the names of its raw files; if it is empty, the program gets none.
    fn run(&self, programs: &Programs, program: &str, pattern: &str, words: &[&str]) -> Output {
        let mut command = self.command(programs, program, words);
        if !pattern.is_empty() {
            command.env("LLVM_MIP_PROFILE_FILENAME", pattern);
        }
        command.output().unwrap()
    }

    /// Names of the files, sorted.
    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn raw(&self, name: &str) -> Raw {
        Raw::parse(&fs::read(self.path().join(name)).unwrap())
    }

    /// The only file, whatever its name.
    fn only(&self) -> Raw {
        let files = self.files();
        let [name] = files.as_slice() else {
            panic!("{files:?}")
        };
        self.raw(name)
    }
}

/// Reads a raw file, and checks that it has exactly one part.
#[derive(Debug, PartialEq)]
struct Raw {
    modes: u32,
    runs: u32,
    build_id: Vec<u8>,
    records: Vec<u8>,
}

impl Raw {
    fn parse(bytes: &[u8]) -> Raw {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(&bytes[..8], b"\xfbMIP\x09\0\x11\0");
        let id = word(raw_header::BUILD_ID_LENGTH) as usize;
        let size = usize::try_from(
            u64::from(word(raw_header::RECORDS_SIZE))
                | u64::from(word(raw_header::RECORDS_SIZE + 4)) << 32,
        )
        .unwrap();
        let start = raw_header::SIZE + id.next_multiple_of(raw_header::BUILD_ID_ALIGN);
        let end = start + size;
        assert_eq!(word(raw_header::SAMPLES_SIZE), 0);
        assert_eq!(bytes.len(), end + raw_header::CHECKSUM_SIZE);
        assert_eq!(
            bytes[end..],
            XxHash3_64::oneshot(&bytes[..end]).to_le_bytes()
        );
        Raw {
            modes: word(raw_header::MODES),
            runs: word(raw_header::RUNS),
            build_id: bytes[raw_header::SIZE..raw_header::SIZE + id].to_vec(),
            records: bytes[start..end].to_vec(),
        }
    }

    /// Calls and ordinal of each function that was called, in the order of first calls.
    fn called(&self) -> Vec<(u32, u32)> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        let mut called: Vec<(u32, u32)> = self
            .records
            .chunks_exact(record::CALLS_SIZE)
            .map(|bytes| (word(&bytes[4..]), word(&bytes[..4]).wrapping_add(1)))
            .filter(|(ordinal, _)| *ordinal != record::INITIAL_WORD)
            .collect();
        called.sort_unstable();
        called
    }

    fn id(&self) -> String {
        self.build_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn counts_and_order_are_written_at_exit() {
    let Some(programs) = programs() else { return };
    for program in ["calls", "static"] {
        let place = Place::new();
        let output = place.run(programs, program, "", &["second", "first", "second"]);
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(OWN_CODE), String::new())
        );
        assert_eq!(place.files(), ["default.mipraw"]);
        let raw = place.raw("default.mipraw");
        // main, second, first.
        assert_eq!(raw.called(), [(1, 1), (2, 2), (3, 1)], "{program}");
        assert_eq!((raw.modes, raw.runs, raw.build_id.len()), (0x0c, 1, 20));
    }
}

#[test]
fn patterns_are_expanded_and_survive_the_program() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let mut child = place
        .command(programs, "calls", &["overwrite"])
        .env("LLVM_MIP_PROFILE_FILENAME", "a-%p-%h.raw")
        .spawn()
        .unwrap();
    child.wait().unwrap();
    let id = place.only().id();
    assert_eq!(place.files(), [format!("a-{}-{id}.raw", child.id())]);
}

#[test]
fn dump_reset_and_exits_without_one() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let output = place.run(programs, "calls", "", &["first", "dump", "second", "_exit"]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(9), "dump 0\n".into())
    );
    // Calls after the dump are lost, because `_exit` writes nothing.
    assert_eq!(place.only().called(), [(1, 1), (2, 1)]);
    place.run(
        programs,
        "calls",
        "",
        &["first", "first", "reset", "second"],
    );
    assert_eq!(place.only().called(), [(1, 1)]);
    let place = Place::new();
    place.run(programs, "calls", "", &["kill"]);
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_signal_writes_and_other_handlers_run_too() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let run = |words: &[&str]| {
        let output = place
            .command(programs, "calls", words)
            .env("PROFKIT_MIP_SIGNAL", "10")
            .output()
            .unwrap();
        (output.status.code(), text(&output.stdout))
    };
    assert_eq!(
        run(&["first", "raise", "second", "_exit"]),
        (Some(9), String::new())
    );
    assert_eq!(place.only().called(), [(1, 1), (2, 1)]);
    // If the program handles the signal itself, the runtime does not.
    fs::remove_file(place.path().join("default.mipraw")).unwrap();
    assert_eq!(
        run(&["handle", "raise", "_exit"]),
        (Some(9), "own handler\n".into())
    );
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_handler_of_three_arguments_that_was_there_before_gets_them() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let library = programs.folder.join("handler.so");
    succeed(
        Command::new("gcc-12")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(repo_root().join("tests/programs/mip/handler.c")),
    );
    let output = place
        .command(programs, "calls", &["first", "raise", "second", "_exit"])
        .env("LD_PRELOAD", &library)
        .env("PROFKIT_MIP_SIGNAL", "10")
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(9), "three arguments\n".into())
    );
    assert_eq!(place.only().called(), [(1, 1), (2, 1)]);
}

#[test]
fn notes_that_are_not_in_memory_are_not_read() {
    let Some(programs) = programs() else { return };
    let mut program = fs::read(programs.folder.join("static")).unwrap();
    let word = |bytes: &[u8], at: usize, size: usize| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(&bytes[at..at + size]);
        usize::try_from(u64::from_le_bytes(word)).unwrap()
    };
    let (first, size, count) = (
        word(&program, 0x20, 8),
        word(&program, 0x36, 2),
        word(&program, 0x38, 2),
    );
    let mut moved = 0;
    for header in (0..count).map(|index| first + index * size) {
        if word(&program, header, 4) == object::elf::PT_NOTE.0 as usize {
            // The segment with the notes gets an address below that of the first loaded segment.
            program[header + 16..header + 24].copy_from_slice(&0x1000_u64.to_le_bytes());
            moved += 1;
        }
    }
    assert!(moved > 0);
    let place = Place::new();
    let path = place.path().join("moved");
    fs::write(&path, program).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&path)
        .current_dir(place.path())
        .env_remove("LLVM_MIP_PROFILE_FILENAME")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(OWN_CODE));
    assert!(
        text(&output.stderr).contains("no build id"),
        "{}",
        text(&output.stderr)
    );
    assert!(place.raw("default.mipraw").build_id.is_empty());
}

#[test]
fn forked_children_write_their_own_counts_to_their_own_files() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    place.run(programs, "calls", "", &["first", "fork", "first"]);
    let files = place.files();
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(place.raw("default.mipraw").called(), [(1, 1), (2, 2)]);
    let child = files.iter().find(|name| *name != "default.mipraw").unwrap();
    // The ordinals of the child begin at 1 again, and the child has no counts of its parent.
    assert_eq!(place.raw(child).called(), [(1, 1)]);
    let place = Place::new();
    place.run(programs, "calls", "%p.raw", &["fork", "fork"]);
    assert_eq!(place.files().len(), 3);
    // In a pool file, the counts of all processes are added up: those of main, and those of second in each child.
    let place = Place::new();
    place.run(programs, "calls", "%m.raw", &["fork", "fork"]);
    let raw = place.only();
    assert_eq!((raw.runs, raw.called()), (3, vec![(1, 1), (1, 2)]));
}

#[test]
fn images_of_one_process_do_not_share_files() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    for name in ["one.so", "two.so"] {
        fs::copy(programs.folder.join(name), place.path().join(name)).unwrap();
    }
    let output = place.run(programs, "calls", "", &["./one.so", "./two.so", "first"]);
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(OWN_CODE), String::new())
    );
    let raws: Vec<String> = place
        .files()
        .into_iter()
        .filter(|name| name.ends_with("mipraw"))
        .collect();
    assert_eq!(raws.len(), 3, "{raws:?}");
    assert_eq!(place.raw("default.mipraw").called(), [(1, 1), (2, 1)]);
    for name in raws.iter().filter(|name| *name != "default.mipraw") {
        let raw = place.raw(name);
        // The library was unloaded before the program ended. Its functions have ordinals of their own.
        assert_eq!(raw.called(), [(1, 1)]);
        assert_eq!(*name, format!("default.{}.mipraw", raw.id()));
    }
}

/// A library that is unloaded and loaded again adds to its file: its records begin anew.
#[test]
fn a_library_that_is_loaded_twice_counts_both_times() {
    let Some(programs) = programs() else { return };
    for pattern in ["d%p.mipraw", "%h-%p.mipraw", "%m.mipraw"] {
        let place = Place::new();
        fs::copy(programs.folder.join("one.so"), place.path().join("one.so")).unwrap();
        let words = ["./one.so", "first", "./one.so", "./one.so"];
        let output = place.run(programs, "calls", pattern, &words);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.as_str()), (Some(OWN_CODE), ""));
        let raws: Vec<Raw> = place
            .files()
            .iter()
            .filter(|name| name.ends_with("mipraw"))
            .map(|name| place.raw(name))
            .collect();
        let mut called: Vec<_> = raws.iter().map(|raw| (raw.runs, raw.called())).collect();
        called.sort();
        let expected = [(1, vec![(1, 1), (2, 1)]), (3, vec![(1, 3)])];
        assert_eq!(called, expected, "{pattern}");
    }
}

#[test]
fn pools_add_up_under_a_lock() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let children: Vec<_> = (0..20)
        .map(|_| {
            let mut command = place.command(programs, "calls", &["second", "first", "second"]);
            command
                .env("LLVM_MIP_PROFILE_FILENAME", "%m.raw")
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        child.wait().unwrap();
    }
    let raw = place.only();
    assert_eq!(
        (raw.runs, raw.called()),
        (20, vec![(1, 20), (2, 40), (3, 20)])
    );

    // Each dump adds to the pool only what was counted since the last dump.
    let place = Place::new();
    place.run(
        programs,
        "calls",
        "%m.raw",
        &["first", "dump", "first", "dump", "first"],
    );
    let raw = place.only();
    assert_eq!((raw.runs, raw.called()), (3, vec![(1, 1), (2, 3)]));

    let place = Place::new();
    for words in [
        &["first"][..],
        &["first", "first"],
        &["second"],
        &["first"; 7],
    ] {
        place.run(programs, "unary", "%m.raw", words);
    }
    let raw = place.only();
    let mut calls: Vec<u32> = raw
        .records
        .iter()
        .map(|byte| byte.leading_zeros())
        .filter(|calls| *calls != 0)
        .collect();
    calls.sort_unstable();
    // second is called once, main four times, and first ten times. A unary counter shows ten calls as 8, its largest
    // value.
    assert_eq!((raw.runs, calls), (4, vec![1, 4, 8]));
}

#[test]
fn what_a_pool_cannot_take_gets_its_own_file() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    place.run(programs, "blocks", "%m.raw", &[]);
    place.run(programs, "blocks", "%m.raw", &[]);
    let files = place.files();
    assert_eq!(files.len(), 2, "{files:?}");

    let place = Place::new();
    place.run(programs, "calls", "%m.raw", &["first"]);
    let [pool] = <[String; 1]>::try_from(place.files()).unwrap();
    let path = place.path().join(&pool);
    let mut bytes = fs::read(&path).unwrap();
    // A pool file whose last byte is 0xff. A failed read returns −1, which becomes 0xff if it is mistaken for a byte. A
    // reader with this mistake would not see that the last byte of the file was cut off.
    let mut ending = bytes.clone();
    let end = ending.len() - raw_header::CHECKSUM_SIZE;
    for count in 0..10_000_u32 {
        ending[end - record::CALLS_SIZE..end - 4].copy_from_slice(&count.to_le_bytes());
        let hash = XxHash3_64::oneshot(&ending[..end]).to_le_bytes();
        ending[end..].copy_from_slice(&hash);
        if hash[7] == 0xff {
            break;
        }
    }
    assert_eq!(ending.last(), Some(&0xff));
    for damage in ["cut", "cut before 0xff", "longer", "changed"] {
        let whole = bytes.clone();
        match damage {
            "cut" => bytes.truncate(whole.len() - 1),
            "cut before 0xff" => bytes = ending[..ending.len() - 1].to_vec(),
            "longer" => bytes.push(0),
            _ => bytes[raw_header::SIZE + 30] ^= 1,
        }
        fs::write(&path, &bytes).unwrap();
        let before = place.files().len();
        let output = place.run(programs, "calls", "%m.raw", &["first"]);
        assert_eq!(output.status.code(), Some(OWN_CODE));
        assert_eq!(
            text(&output.stderr),
            format!(
                "profkit: MIP profile {pool}: is damaged or of another build; it is kept, and this process writes a file of its own\n"
            )
        );
        assert_eq!(fs::read(&path).unwrap(), bytes, "{damage}");
        assert_eq!(place.files().len(), before + 1, "{damage}");
        bytes = whole;
    }
}

#[test]
fn what_cannot_be_written_costs_a_line_and_nothing_else() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let long = "x".repeat(1200);
    fs::create_dir(place.path().join("folder")).unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    for (pattern, message) in [
        (
            "missing/x.raw",
            "missing/x.raw: cannot write it: no such folder (error 2)",
        ),
        (
            "missing/%m.raw",
            ".raw: cannot write it: no such folder (error 2)",
        ),
        (
            "/dev/full",
            "/dev/full: cannot write it: no space left on device (error 28)",
        ),
        ("file/x", "file/x: cannot write it: not a folder (error 20)"),
        ("folder", "folder: cannot write it (error 21)"),
        (
            "/proc/x.raw",
            "/proc/x.raw: cannot write it: no such folder (error 2)",
        ),
        (long.as_str(), "its name is too long"),
    ] {
        let output = place.run(programs, "calls", pattern, &["first"]);
        assert_eq!(output.status.code(), Some(OWN_CODE), "{pattern}");
        let stderr = text(&output.stderr);
        assert!(
            stderr.starts_with("profkit: MIP profile ") && stderr.trim_end().ends_with(message),
            "{pattern}: {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    assert_eq!(place.files(), ["file", "folder"]);
    let output = place.run(programs, "calls", "missing/x.raw", &["dump", "_exit"]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(9), "dump -1\n".into())
    );
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let output = place.run(programs, "calls", "/dev/stdout", &["first"]);
    assert_eq!(Raw::parse(&output.stdout).called(), [(1, 1), (2, 1)]);
    let output = place.run(programs, "calls", "/dev/null", &["first"]);
    assert_eq!(text(&output.stderr), "");
    use std::os::unix::fs::FileTypeExt as _;
    assert!(
        fs::metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );
}

#[test]
fn an_image_without_build_id_says_so_once() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let output = place.run(programs, "noid", "%h.raw", &["dump", "dump"]);
    assert_eq!(
        text(&output.stderr),
        "profkit: MIP profile noid.raw: this image has no build id (link with -Wl,--build-id): its builds cannot be distinguished\n"
    );
    let raw = place.raw("noid.raw");
    assert_eq!((raw.build_id.len(), raw.called()), (0, vec![(1, 1)]));
}

#[test]
fn threads_and_dumps_at_once_leave_whole_files_and_an_exact_order() {
    let Some(programs) = programs() else { return };
    let place = Place::new();
    let output = place.run(programs, "calls", "", &["first", "threads"]);
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(OWN_CODE), String::new())
    );
    let raw = place.only();
    let ordinals: Vec<u32> = raw.called().iter().map(|(ordinal, _)| *ordinal).collect();
    // The functions main, first, many and second were called. Each has one ordinal, assigned at its first call, so the
    // ordinals are 1 to 4, without gaps.
    assert_eq!(ordinals, [1, 2, 3, 4]);
}

/// Names of functions that any compiler may call on its own: the memory functions of libc, and the arithmetic of
/// libgcc.
const COMPILERS_OWN: &[&str] = &[
    "memset",
    "memcpy",
    "__aeabi_uidiv",
    "__aeabi_uidivmod",
    "__aeabi_unwind_cpp_pr0",
    "__aeabi_unwind_cpp_pr1",
    "__aeabi_memset",
    "__aeabi_memclr",
    "__aeabi_memcpy",
];

/// Checks an object file of the runtime: it must not need any symbol of Rust's libraries, above all no panic, and it
/// must be small.
fn check_object(bytes: &[u8], what: &str) {
    let object = object::File::parse(bytes).unwrap();
    for symbol in object.symbols() {
        let name = symbol.name().unwrap();
        if symbol.is_undefined() && !name.is_empty() && !symbol.is_weak() {
            assert!(
                ["getenv", "signal"].contains(&name) || COMPILERS_OWN.contains(&name),
                "{what}: needs {name}"
            );
        }
        if symbol.is_global() && symbol.is_definition() {
            assert!(name.starts_with("__profkit_mip_"), "{what}: global {name}");
            // The symbol is hidden: other objects of the same image see it, other images do not.
            assert_eq!(
                symbol.scope(),
                object::SymbolScope::Linkage,
                "{what}: {name}"
            );
        }
    }
    let text: u64 = object
        .sections()
        .filter(|section| section.kind() == object::SectionKind::Text)
        .map(|section| section.size())
        .sum();
    assert!(
        (1..10 << 10).contains(&text),
        "{what}: {text} bytes of code"
    );
}

/// Writes the runtime's object file, and reads it back.
fn object_for(target: Option<&str>, rustc: Option<&Path>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rt.o");
    let mut command = Command::new(PROFKIT);
    command.args(["mip", "runtime", "-o"]).arg(&file);
    command.args(target.map(|target| format!("--target={target}")));
    if let Some(rustc) = rustc {
        command.env("RUSTC", rustc);
    }
    succeed(&mut command);
    fs::read(file).unwrap()
}

#[test]
fn the_object_has_no_panic_and_no_global_name_but_its_own() {
    let bytes = object_for(None, None);
    check_object(&bytes, "embedded");
    // There is no landing pad either: without `.eh_frame`, no function can have one.
    let object = object::File::parse(&*bytes).unwrap();
    assert!(object.section_by_name(".eh_frame").is_none());
}

#[test]
fn a_target_that_the_compiler_lacks_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let run = |target: &str, rustc: &str| {
        let output = Command::new(PROFKIT)
            .args(["mip", "runtime", "--target", target, "-o"])
            .arg(folder.path().join("rt.a"))
            .env("RUSTC", rustc)
            .output()
            .unwrap();
        assert!(!folder.path().join("rt.a").exists());
        (output.status.code().unwrap(), text(&output.stderr))
    };
    let (code, message) = run("armv7-linux-gnueabi", "/nowhere/rustc");
    assert_eq!(code, 1);
    assert_eq!(
        message,
        "error: the MIP runtime for armv7-unknown-linux-gnueabi: cannot start /nowhere/rustc: No such file or directory\n\
         hint: install Rust (rustup.rs), or name its compiler: RUSTC=/path/to/rustc\n"
    );
    let (code, message) = run("riscv64-linux-gnu", "rustc");
    assert_eq!(code, 2);
    assert_eq!(
        message,
        "error: there is no MIP runtime for the target `riscv64-linux-gnu`: expected Linux on x86-64, AArch64 or 32-bit Arm, or macOS on x86-64 or arm64\n"
    );
}

/// Debian's old rustc with the core libraries of three architectures, which CI unpacks. `None` if it is not there.
fn old_rustc() -> Option<PathBuf> {
    let rustc = std::env::var_os("PROFKIT_OLD_RUSTC")
        .map_or_else(|| repo_root().join("target/old-rust/rustc"), PathBuf::from);
    rustc.exists().then_some(rustc)
}

#[test]
fn rust_1_63_compiles_it_for_every_architecture_and_it_runs_on_arm() {
    let Some(rustc) = old_rustc() else {
        return skip("no Rust 1.63 of Debian's (PROFKIT_OLD_RUSTC, see .ci/run)");
    };
    let sources = repo_root().join("tests/programs/mip");
    for (triple, emulator) in [
        ("aarch64-linux-gnu", "qemu-aarch64"),
        ("arm-linux-gnueabihf", "qemu-arm"),
    ] {
        let target = format!("--target={triple}");
        or_skip!(
            links_c("clang-22", &[&target, "-static", "-pthread"]),
            continue
        );
        if on_path(emulator).is_none() {
            skip(&format!("{emulator} is not installed"));
            continue;
        }
        let object = object_for(Some(triple), Some(&rustc));
        check_object(&object, triple);
        let place = Place::new();
        fs::write(place.path().join("rt.o"), &object).unwrap();
        let program = place.path().join("program");
        let mode = if emulator == "qemu-arm" {
            "function"
        } else {
            "calls"
        };
        succeed(
            Command::new(PROFKIT)
                .args(["mip", "cc", "--mode", mode, "--runtime"])
                .arg(place.path().join("rt.o"))
                .args(["--", "clang-22", &target, "-O1", "-static", "-pthread"])
                .arg(sources.join("runtime.c"))
                .arg("-o")
                .arg(&program),
        );
        fs::remove_file(place.path().join("rt.o")).unwrap();
        let run = Command::new(emulator)
            .arg(&program)
            .args(["first", "fork"])
            .current_dir(place.path())
            .output()
            .unwrap();
        assert_eq!(
            (run.status.code(), text(&run.stderr)),
            (Some(OWN_CODE), String::new()),
            "{triple}"
        );
        fs::remove_file(&program).unwrap();
        let files = place.files();
        assert_eq!(files.len(), 2, "{triple}: {files:?}");
        let mut bytes = fs::read(place.path().join("default.mipraw")).unwrap();
        let end = bytes.len() - raw_header::CHECKSUM_SIZE;
        assert_eq!(
            bytes[end..],
            XxHash3_64::oneshot(&bytes[..end]).to_le_bytes(),
            "{triple}"
        );
        if mode == "calls" {
            assert_eq!(Raw::parse(&bytes).called(), [(1, 1), (2, 1)], "{triple}");
        } else {
            assert_eq!(bytes[raw_header::FILE_TYPE], 0x21);
            bytes.drain(..raw_header::SIZE + 24);
            assert_eq!(
                bytes
                    .iter()
                    .take(bytes.len() - 8)
                    .filter(|byte| **byte == record::COVERED_BYTE)
                    .count(),
                2
            );
        }
    }
}
