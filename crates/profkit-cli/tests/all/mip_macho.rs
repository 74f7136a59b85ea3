//! Tests MIP programs for macOS as far as that is possible without macOS: they are compiled, instrumented and linked with the
//! runtime by LLVM's linker, and the linked image is read. Nothing is run.
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _};
use profkit_testkit::{skip, succeed};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");

/// All that the runtime may import, and what lld itself asks for.
const LIBRARY: &str = "--- !tapi-tbd
tbd-version:     4
targets:         [ x86_64-macos, arm64-macos ]
install-name:    '/usr/lib/libSystem.B.dylib'
exports:
  - targets:         [ x86_64-macos, arm64-macos ]
    symbols:         [ dyld_stub_binder, ___cxa_atexit, ___error, _close, _flock, _getenv, _getpid, _getrlimit, _lseek, _open,
                       _pthread_atfork, _read, _rename, _sched_yield, _sigaction, _signal, _unlink, _write ]
...
";

const PROGRAM: &str = "
__attribute__((noinline, used)) static int dead(int x) { return x * 7; }
int never(int x) { return x * 3; }
__attribute__((noinline)) int live(int x) { return x > 2 ? x * 5 : 1; }
int main(int count, char **words) { return live(count); }
";

/// The machines: the names that clang, lld and Rust give them.
const MACHINES: [(&str, &str, &str); 2] = [
    ("arm64-apple-macos13", "arm64", "aarch64-apple-darwin"),
    ("x86_64-apple-macos13", "x86_64", "x86_64-apple-darwin"),
];

fn lacks_tools() -> bool {
    for tool in ["clang-22", "ld64.lld-22", "llvm-strip-22"] {
        if Command::new(tool).arg("--version").output().is_err() {
            skip(&format!("{tool} is not installed"));
            return true;
        }
    }
    false
}

/// Writes the runtime for a target. `false` if this machine cannot compile for it.
fn has_runtime(target: &str, words: &[&str], folder: &Path) -> bool {
    let output = Command::new(PROFKIT)
        .args([
            "mip",
            "runtime",
            "--target",
            target,
            "-o",
            "libprofkit_rt.a",
        ])
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    if messages.contains("no core library") {
        skip(&format!("rustc has no core library for {target}"));
        return false;
    }
    assert!(output.status.success(), "{messages}");
    assert_eq!(messages, "");
    true
}

fn link(words: &[&str], (triple, machine, _): (&str, &str, &str), folder: &Path) {
    fs::write(folder.join("libSystem.tbd"), LIBRARY).unwrap();
    fs::write(folder.join("a.c"), PROGRAM).unwrap();
    let run = |program: &str, words: &[&str]| {
        let output = succeed(Command::new(program).args(words).current_dir(folder));
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "",
            "{program} {words:?}"
        );
    };
    run(
        "clang-22",
        &["-target", triple, "-O1", "-S", "a.c", "-o", "a.s"],
    );
    run(
        PROFKIT,
        &[&["mip", "instrument"], words, &["a.s", "-o", "b.s"]].concat(),
    );
    run("clang-22", &["-target", triple, "-c", "b.s", "-o", "b.o"]);
    run(
        "ld64.lld-22",
        &[
            "-arch",
            machine,
            "-platform_version",
            "macos",
            "13",
            "13",
            "-dead_strip",
            "b.o",
            "libprofkit_rt.a",
            "libSystem.tbd",
            "-o",
            "program",
        ],
    );
}

fn created(program: &str, folder: &Path) -> String {
    succeed(
        Command::new(PROFKIT)
            .args(["mip", "create", "-p", "p.mip", program])
            .current_dir(folder),
    );
    let output = succeed(
        Command::new(PROFKIT)
            .args(["mip", "mip2yaml", "-p", "p.mip"])
            .current_dir(folder),
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_for_macos_are_linked_with_their_runtime() {
    if lacks_tools() {
        return;
    }
    for machine in MACHINES {
        for words in [
            &["--mode", "function"][..],
            &["--mode", "calls,block"],
            &["--mode", "calls", "--return-addresses", "64"],
        ] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            if !has_runtime(machine.2, &[], folder) {
                continue;
            }
            link(words, machine, folder);
            let bytes = fs::read(folder.join("program")).unwrap();
            let image = object::File::parse(&*bytes).unwrap();
            let section = |name: &str| image.section_by_name(name).unwrap();

            // One mode; records that begin where they must; the constructor of the runtime and no other.
            assert_eq!(section("__llvm_mipmode").size(), 4);
            assert_eq!(section("__llvm_mipraw").address() % 8, 0);
            assert_eq!(section("__init_offsets").size(), 4);
            let ring = section("__llvm_mipring").size();
            assert_eq!(ring > 0, words.contains(&"--return-addresses"));

            // Nothing of the runtime is exported, and it imports from libSystem only.
            let exported: BTreeSet<&str> = image
                .symbols()
                .filter(|symbol| symbol.is_global() && !symbol.is_undefined())
                .map(|symbol| symbol.name().unwrap())
                .collect();
            assert_eq!(
                exported,
                BTreeSet::from(["__mh_execute_header", "_live", "_main"])
            );

            // The linker removed the map entries of dead functions, and left the loader nothing to do in the map.
            let map = section("__llvm_mipmap");
            assert_eq!(map.segment_name().unwrap(), Some("__DWARF"));
            let before = created("program", folder);
            let names = ["_main", "_live", "_never", "_dead"].map(|name| {
                before.contains(&format!("{name}\n")) || before.contains(&format!("{name} "))
            });
            assert_eq!(names, [true, true, false, true], "{before}");
            for name in ["_main", "_live"] {
                let symbol = image.symbols().find(|it| it.name() == Ok(name)).unwrap();
                let address = format!("{:#x}", symbol.address());
                assert!(
                    before.to_lowercase().contains(&address),
                    "{name} at {address}: {before}"
                );
            }
            let fixups = succeed(
                Command::new("llvm-objdump-22")
                    .args(["--macho", "--dyld-info", "program"])
                    .current_dir(folder),
            );
            let fixups = String::from_utf8(fixups.stdout).unwrap();
            assert!(
                fixups.contains("libSystem") && !fixups.contains("mipmap"),
                "{fixups}"
            );

            // llvm-strip takes the whole map out.
            succeed(
                Command::new("llvm-strip-22")
                    .args(["program", "-o", "stripped"])
                    .current_dir(folder),
            );
            let stripped = fs::read(folder.join("stripped")).unwrap();
            let stripped = object::File::parse(&*stripped).unwrap();
            assert!(stripped.section_by_name("__llvm_mipmap").is_none());
            assert!(stripped.section_by_name("__llvm_mipraw").is_some());
            let left = stripped
                .segments()
                .find(|segment| segment.name() == Ok(Some("__DWARF")));
            assert!(left.is_none_or(|left| left.file_range().1 == 0 && left.size() == 0));
        }
    }
}

#[test]
fn an_extracted_map_of_macos_is_refused() {
    if lacks_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let machine = MACHINES[0];
    if !has_runtime(machine.2, &[], folder) {
        return;
    }
    link(&[], machine, folder);
    succeed(
        Command::new("llvm-objcopy-22")
            .args([
                "--dump-section",
                "__DWARF,__llvm_mipmap=map",
                "program",
                "copy",
            ])
            .current_dir(folder),
    );
    let output = Command::new(PROFKIT)
        .args(["mip", "create", "-p", "p.mip", "map"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains("the map holds distances from its own place in the program")
            && message.contains("hint: give the program"),
        "{message}"
    );
}

#[test]
fn the_variants_of_the_runtime_for_macos() {
    for (_, _, target) in MACHINES {
        let folder = tempfile::tempdir().unwrap();
        if !has_runtime(target, &["--kind", "api"], folder.path()) {
            return;
        }
        let library = fs::read(folder.path().join("libprofkit_rt.a")).unwrap();
        let archive = object::read::archive::ArchiveFile::parse(&*library).unwrap();
        let symbols: Vec<String> = archive
            .symbols()
            .unwrap()
            .unwrap()
            .map(|symbol| String::from_utf8_lossy(symbol.unwrap().name()).into_owned())
            .collect();
        assert!(
            symbols.contains(&"___profkit_mip_write".to_owned()),
            "{symbols:?}"
        );
        let member = archive.members().next().unwrap().unwrap();
        let file = object::File::parse(member.data(&*library).unwrap()).unwrap();
        let imported: Vec<&str> = file
            .symbols()
            .filter(|symbol| symbol.is_undefined())
            .map(|symbol| symbol.name().unwrap())
            .filter(|name| !name.starts_with("section$"))
            .collect();
        assert_eq!(imported, ["___dso_handle"]);
    }
    let output = Command::new(PROFKIT)
        .args([
            "mip",
            "runtime",
            "--kind",
            "small",
            "--target",
            "arm64-apple-macos13",
            "-o",
            "x.a",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"
    error: the runtime `small` is not for macOS, the system of the target `arm64-apple-macos13`
    hint: the full runtime has this target
    ");
}
