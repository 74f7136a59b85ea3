//! Tests MIP in build pipelines other than `profkit mip cc` with an unstripped ELF program: rustc, Mach-O and GNU ld,
//! dead C++ code, and debug files.
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use profkit_abi::mip::section;
use profkit_testkit::{links_c, links_cxx, or_skip, repo_root, require_or_skip, skip};
use std::path::Path;
use std::process::Command;

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");

fn run(folder: &Path, command: &mut Command) -> String {
    let made = command
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        made.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&made.stderr)
    );
    String::from_utf8_lossy(&made.stdout).into_owned()
}

fn profkit(folder: &Path, arguments: &[&str]) -> String {
    run(folder, Command::new(PROFKIT).arg("mip").args(arguments))
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

fn installed(program: &str) -> bool {
    let found = ["/usr/bin", "/usr/local/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists());
    if !found {
        skip(&format!("no {program}"));
    }
    found
}

/// rustc's assembly is instrumented on the way to the linker.
#[test]
fn a_program_of_rustc() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    or_skip!(links_c("cc", &[]));
    write(
        folder,
        "words.rs",
        "#[inline(never)]\nfn count(words: &[&str]) -> usize {\n    words.iter().filter(|word| word.len() > 1).count()\n}\n\
         #[inline(never)]\nfn never() {\n    println!(\"never\");\n}\n\
         fn main() {\n    let words: Vec<String> = std::env::args().collect();\n    \
         let words: Vec<&str> = words.iter().map(String::as_str).collect();\n    \
         if words.len() > 9 {\n        never();\n    }\n    println!(\"{}\", count(&words));\n}\n",
    );
    // A shell script that rustc runs as its linker. The script replaces the object of the crate by one that is made from
    // the crate's instrumented assembly.
    write(
        folder,
        "linker",
        &format!(
            "#!/bin/sh\n{PROFKIT} mip instrument --mode calls words.s -o instrumented.s && cc -c instrumented.s || exit 1\n\
             for word; do\n  shift\n  case $word in *-cgu.0.rcgu.o) word=instrumented.o ;; esac\n  set -- \"$@\" \"$word\"\ndone\n\
             exec cc \"$@\" libprofkit_rt.a -Wl,--build-id\n"
        ),
    );
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.join("linker"), executable).expect("executable");
    profkit(folder, &["runtime", "-o", "libprofkit_rt.a"]);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    run(
        folder,
        Command::new(rustc).args([
            "-O",
            "-Ccodegen-units=1",
            "--emit=asm=words.s,link=words",
            "-Clinker=./linker",
            "-Clinker-flavor=gcc",
            "words.rs",
        ]),
    );
    let said = run(
        folder,
        Command::new("./words")
            .arg("word")
            .env("LLVM_MIP_PROFILE_FILENAME", "words.mipraw"),
    );
    assert_eq!(said, "2\n");
    profkit(folder, &["create", "-p", "words.mip", "words"]);
    profkit(folder, &["merge", "-p", "words.mip", "words.mipraw"]);
    let covered = profkit(folder, &["covered", "-p", "words.mip"]);
    let has = |name: &str| covered.lines().any(|line| line == name);
    assert!(
        has("words::main") && has("words::count") && !has("words::never"),
        "{covered}"
    );
}

/// Linkers drop functions to which nothing refers, together with their records and map entries, also in COMDAT groups.
#[test]
fn dead_cxx_functions_are_dropped_by_linkers() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(
        folder,
        "dead.cpp",
        "template <class T> __attribute__((noinline)) T twice(T x) { asm volatile(\"\"); return x + x; }\n\
         struct Dead { virtual ~Dead() {} virtual int of() { return 1; } };\n\
         int dead(int x) { Dead dead, *p = &dead; asm volatile(\"\" : \"+r\"(p)); return twice(x) + p->of(); }\n\
         int main() { return (int)twice(0l); }\n",
    );
    for (compiler, linker) in [
        ("clang++-22", "-fuse-ld=bfd"),
        ("clang++-22", "--ld-path=/usr/bin/ld.lld-22"),
        ("g++-12", "-fuse-ld=bfd"),
    ] {
        or_skip!(links_cxx(compiler, &[linker]), continue);
        let compile = ["cc", "--", compiler, "-O1", "-ffunction-sections"];
        let link = [linker, "-Wl,--gc-sections", "dead.cpp", "-o", "program"];
        profkit(folder, &[&compile[..], &link].concat());
        let bytes = std::fs::read(folder.join("program")).expect("the program");
        let file = object::File::parse(&*bytes).expect("an object file");
        let records = file.section_by_name(section::RECORDS).expect("records");
        assert_eq!(
            records.size(),
            2,
            "{compiler} {linker}: main and twice<long>"
        );
        let has = |name: &str| file.symbols().any(|symbol| symbol.name() == Ok(name));
        assert!(has("_Z5twiceIlET_S0_"), "{compiler} {linker}");
        for dead in ["_Z5twiceIiET_S0_", "_ZN4Dead2ofEv", "_ZN4DeadD0Ev"] {
            assert!(!has(dead), "{compiler} {linker}: {dead}");
        }
    }
}

/// With `--gc-sections`, GNU ld gets a linker script from profkit. This script must suit every image: one with
/// instrumented functions, one whose instrumented functions are all dropped, and one without any instrumented object. A
/// section of the program that only a `__start_` symbol refers to is kept.
#[test]
fn gnu_ld_drops_sections_of_all_images() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let gcc = "gcc-12";
    or_skip!(links_c(gcc, &["-fuse-ld=bfd"]));
    write(
        folder,
        "library.c",
        "__attribute__((visibility(\"hidden\"))) int unused(int x) { return x * 3; }\n\
         int doubled(int x) { return x + x; }\n",
    );
    write(
        folder,
        "program.c",
        "extern int doubled(int), __start_mine[], __stop_mine[];\n\
         __attribute__((section(\"mine\"))) int one = 1, two = 2;\n\
         int dead(int x) { return x * 5; }\n\
         int main(void) { return __stop_mine - __start_mine == 2 && doubled(__start_mine[0] + __start_mine[1]) == 6 ? 0 : 1; }\n",
    );
    write(folder, "dead.c", "int dead(int x) { return x * 7; }\n");
    write(folder, "plain.c", "int main(void) { return 0; }\n");
    let compile = |file: &str, more: &[&str]| {
        let line = ["cc", "--", gcc, "-O1", "-ffunction-sections", "-c", file];
        profkit(folder, &[&line[..], more].concat());
    };
    let link = |words: &[&str]| {
        let line = ["cc", "--", gcc, "-fuse-ld=bfd", "-Wl,--gc-sections"];
        profkit(
            folder,
            &[&line[..], &["-Wl,--fatal-warnings"], words].concat(),
        );
    };
    let names = |image: &str| {
        profkit(folder, &["create", "-p", "image.mip", image]);
        let shown = profkit(folder, &["show", "-p", "image.mip", "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let functions = json["functions"].as_array().expect("functions").iter();
        functions
            .map(|function| function["function"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    compile("library.c", &["-fPIC"]);
    link(&["-shared", "library.o", "-o", "libdouble.so"]);
    assert_eq!(names("libdouble.so"), ["doubled"]);
    compile("program.c", &[]);
    link(&["program.o", "./libdouble.so", "-o", "program"]);
    assert_eq!(names("program"), ["main"]);
    run(
        folder,
        Command::new("./program").env("LLVM_MIP_PROFILE_FILENAME", "%h.mipraw"),
    );
    let raws = std::fs::read_dir(folder)
        .expect("a folder")
        .filter(|entry| {
            let path = entry.as_ref().expect("an entry").path();
            path.extension()
                .is_some_and(|extension| extension == "mipraw")
        });
    assert_eq!(raws.count(), 2, "one of each image");
    // Objects that were joined with `-r` before the link, and static programs.
    profkit(
        folder,
        &[
            "cc",
            "--",
            gcc,
            "-r",
            "program.o",
            "library.o",
            "-o",
            "joined.o",
        ],
    );
    link(&["-static", "joined.o", "-o", "joined"]);
    let mut joined = names("joined");
    joined.sort();
    assert_eq!(joined, ["doubled", "main"]);
    run(
        folder,
        Command::new("./joined").env("LLVM_MIP_PROFILE_FILENAME", "joined.mipraw"),
    );
    assert!(folder.join("joined.mipraw").exists());
    compile("dead.c", &["-fPIE"]);
    run(folder, Command::new(gcc).args(["-c", "plain.c"]));
    for kind in ["-pie", "-no-pie", "-static", "-static-pie"] {
        link(&[kind, "plain.o", "dead.o", "-o", "none"]);
        assert_eq!(names("none"), [""; 0], "{kind}");
        run(
            folder,
            Command::new("./none").env("LLVM_MIP_PROFILE_FILENAME", "none.mipraw"),
        );
        assert!(!folder.join("none.mipraw").exists(), "{kind}");
        link(&[kind, "plain.o", "-o", "plain"]);
        run(folder, &mut Command::new("./plain"));
    }
}

/// lld for Mach-O links instrumented objects and drops dead functions, and profkit reads the map of the linked file.
/// The test defines the symbols of the runtime itself, because profkit has no runtime for Mach-O.
#[test]
fn a_linked_mach_o_file() {
    let llvm = require_or_skip!(22);
    if !installed("ld64.lld-22") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(
        folder,
        "program.c",
        "int unused(int x) { return x * 2; }\n\
         static int __attribute__((noinline)) idle(int x) { return x + 1; }\n\
         int main(int argc, char **argv) { return argc > 3 ? idle(argc) : 0; }\n",
    );
    write(
        folder,
        "defined.c",
        "unsigned __profkit_mip_ordinal = 1;\nvoid (*const __profkit_mip_hook)(void) = 0;\n",
    );
    write(
        folder,
        "libSystem.tbd",
        "--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\n\
         install-name: '/usr/lib/libSystem.B.dylib'\nexports:\n  - targets: [ x86_64-macos, arm64-macos ]\n    \
         symbols: [ dyld_stub_binder ]\n...\n",
    );
    for arch in ["x86_64", "arm64"] {
        let clang = |arguments: &[&str]| {
            run(
                folder,
                Command::new(llvm.clang())
                    .arg(format!("--target={arch}-apple-macos12"))
                    .args(arguments),
            );
        };
        clang(&["-O1", "-S", "program.c"]);
        clang(&["-c", "defined.c"]);
        profkit(
            folder,
            &[
                "instrument",
                "--mode",
                "calls",
                "program.s",
                "-o",
                "instrumented.s",
            ],
        );
        clang(&["-c", "instrumented.s"]);
        for (options, expected) in [
            (&[][..], &["_unused", "_main", "_idle"][..]),
            (&["-dead_strip"], &["_main", "_idle"]),
        ] {
            run(
                folder,
                Command::new("ld64.lld-22")
                    .args(["-arch", arch, "-platform_version", "macos", "12.0", "12.0"])
                    .args(options)
                    .args(["instrumented.o", "defined.o", "libSystem.tbd"])
                    .args(["-o", "program"]),
            );
            profkit(folder, &["create", "-p", "program.mip", "program"]);
            let shown = profkit(folder, &["show", "-p", "program.mip", "--format", "json"]);
            let json: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
            let functions = json["functions"].as_array().expect("functions");
            let names: Vec<&str> = functions
                .iter()
                .filter_map(|function| function["function"].as_str())
                .collect();
            assert_eq!(names, expected, "{arch} {options:?}");
            // The addresses in the map are those of the symbols. This shows that the chained fixups of the file were
            // followed.
            let bytes = std::fs::read(folder.join("program")).expect("the program");
            let file = object::File::parse(&*bytes).expect("an object file");
            for function in functions {
                let name = function["function"].as_str();
                let symbol = file
                    .symbols()
                    .find(|symbol| symbol.name().ok() == name)
                    .expect("its symbol");
                assert_eq!(function["address"], symbol.address(), "{arch} {name:?}");
            }
        }
    }
}

/// A debug file has the map and the build id. So it suffices for reading the raw file of the stripped program.
#[test]
fn a_profile_of_a_debug_file_alone() {
    or_skip!(links_c("gcc", &[]));
    if !installed("objcopy") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let source = repo_root().join("tests/programs/cold_parts.c");
    profkit(
        folder,
        &[
            "cc",
            "--mode",
            "calls",
            "--",
            "gcc",
            "-O2",
            "-g",
            &source.display().to_string(),
            "-o",
            "program",
        ],
    );
    run(
        folder,
        Command::new("objcopy").args(["--only-keep-debug", "program", "program.debug"]),
    );
    run(
        folder,
        Command::new("strip").args(["-R", section::MAP, "program"]),
    );
    run(
        folder,
        Command::new("./program").env("LLVM_MIP_PROFILE_FILENAME", "program.mipraw"),
    );
    profkit(folder, &["create", "-p", "program.mip", "program.debug"]);
    profkit(
        folder,
        &["merge", "--strict", "-p", "program.mip", "program.mipraw"],
    );
    let shown = profkit(folder, &["show", "-p", "program.mip", "-r", "^work$"]);
    assert!(
        shown.contains("cold_parts.c:") && shown.contains("  calls            5\n"),
        "{shown}"
    );
}
