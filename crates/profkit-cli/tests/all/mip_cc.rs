//! Compares `profkit mip cc` with the compiler alone: the same call runs in two folders, in one with profkit and in the
//! other without. The exit code, the messages, the files afterwards and the dependency files must be the same. The
//! objects that profkit makes must be instrumented.
use object::read::{Object as _, ObjectSection as _};
use profkit_testkit::{links_c, links_cxx, or_skip};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");

const A_C: &str = "#include \"a.h\"\nint main(void) { return g(4) == 12 ? 0 : 1; }\n";
const B_C: &str = "#include \"a.h\"\nint g(int x) { return x * 3; }\n";
const H_S: &str = "\t.text\n\t.globl h\n\t.type h, @function\nh:\n\tret\n\t.size h, .-h\n\t.section .note.GNU-stack,\"\",@progbits\n";
const K_S: &str = "#define BACK ret\n\t.text\n\t.globl k\n\t.type k, @function\nk:\n\tBACK\n\t.size k, .-k\n\t.section .note.GNU-stack,\"\",@progbits\n";

/// One call of the compiler: the words after the compiler's name, the text on standard input, and those files made by
/// the call that must be instrumented.
struct Call {
    words: &'static str,
    input: &'static str,
    instrumented: &'static [&'static str],
}

const fn call(words: &'static str, instrumented: &'static [&'static str]) -> Call {
    Call {
        words,
        input: "",
        instrumented,
    }
}

const CALLS: &[Call] = &[
    call("-O2 -g -c a.c", &["a.o"]),
    call("-O2 -c a.c b.c", &["a.o", "b.o"]),
    call(
        "-O1 -ffunction-sections -fPIC -MMD -MP -c b.c -o sub/b.o",
        &["sub/b.o"],
    ),
    call("-MD -MF deps -MT what -c a.c -o x.o", &["x.o"]),
    call("-Wp,-MMD,deps -c a.c -o x.o", &["x.o"]),
    call("-MMD a.c b.c -o prog", &["prog"]),
    call("a.c b.c h.s k.S -o prog", &["prog"]),
    call("-static a.c b.c -o prog", &["prog"]),
    call("-shared -fPIC b.c -o libb.so", &["libb.so"]),
    call("-fPIE -static-pie a.c b.c -o prog", &["prog"]),
    call("-flto -O1 -MMD a.c b.c h.s -o prog", &["prog"]),
    call("-flto -c a.c b.c", &[]),
    call("-flto -c h.s", &["h.o"]),
    call("-flto -c bad.c", &[]),
    call("-S -O2 a.c", &[]),
    call("-S -O2 a.c b.c", &[]),
    call("-c h.s", &["h.o"]),
    call("-c k.S -o k.o", &["k.o"]),
    call("-x c++ -c b.c -o b.o", &["b.o"]),
    call("-c @words.rsp", &["r.o"]),
    call(
        "-pipe -Wall -Wextra -Werror -Wa,--noexecstack -pthread -c a.c",
        &["a.o"],
    ),
    call("-E a.c", &[]),
    call("-M a.c", &[]),
    call("-fsyntax-only a.c", &[]),
    call("-c a.c -o /dev/null", &[]),
    call("-c bad.c", &[]),
    call("-c bad.c b.c", &["b.o"]),
    call("-c bad.s", &[]),
    call("-c bad-asm.c", &[]),
    call("-Wall -c warns.c", &["warns.o"]),
    call("-c missing.c", &[]),
    // Some files of such debug info have an MD5 checksum and some have none, of which an assembler warns.
    call("-g -c s.cpp", &["s.o"]),
    call("-g -Wa,--fatal-warnings -c s.cpp", &["s.o"]),
    call("-c a.c b.c -o x.o", &[]),
    call("-no-such-option -c a.c", &[]),
    call("--version", &[]),
    call("-dumpmachine", &[]),
    call("-print-libgcc-file-name", &[]),
    call("-print-prog-name=as", &[]),
    call("", &[]),
    Call {
        words: "-x c -c - -o in.o",
        input: B_C,
        instrumented: &["in.o"],
    },
    Call {
        words: "-E -",
        input: "one\n",
        instrumented: &[],
    },
];

fn sources(folder: &Path) {
    fs::create_dir(folder.join("sub")).unwrap();
    for (name, text) in [
        ("a.h", "int g(int);\n"),
        ("a.c", A_C),
        ("b.c", B_C),
        ("h.s", H_S),
        ("k.S", K_S),
        ("bad.c", "int f(void) { return x; }\n"),
        ("bad.s", "\t.text\n\tno such thing\n"),
        (
            "bad-asm.c",
            "void f(void) {\n  __asm__(\"no such thing\");\n}\n",
        ),
        ("warns.c", "int f(void) { int unused; return 1; }\n"),
        ("s.cpp", "#include <string>\nint main() {}\n"),
        ("words.rsp", "\"-O2\" 'b.c' -o r.o\n"),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    /// The files that the call made. For files that are not code, also their text.
    files: BTreeMap<String, String>,
}

fn files(folder: &Path, below: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder.join(below)).unwrap() {
        let name = format!("{below}{}", entry.unwrap().file_name().to_string_lossy());
        if folder.join(&name).is_dir() {
            files(folder, &format!("{name}/"), found);
            continue;
        }
        let bytes = fs::read(folder.join(&name)).unwrap();
        let is_code = bytes.starts_with(b"\x7fELF") || name.ends_with(".s");
        let text = if is_code {
            "code".into()
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        };
        found.insert(name, text);
    }
}

fn outcome(folder: &Path, mut command: Command, call: &Call) -> Outcome {
    let mut before = BTreeMap::new();
    files(folder, "", &mut before);
    let input = folder.join("../input");
    fs::write(&input, call.input).unwrap();
    let output = command
        .args(call.words.split_whitespace())
        .current_dir(folder)
        .env("TMPDIR", folder.join("../tmp"))
        .stdin(Stdio::from(fs::File::open(&input).unwrap()))
        .output()
        .unwrap();
    let mut after = BTreeMap::new();
    files(folder, "", &mut after);
    after.retain(|name, _| !before.contains_key(name));
    assert_eq!(
        fs::read_dir(folder.join("../tmp")).unwrap().count(),
        0,
        "temporary files of {}",
        call.words
    );
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        files: after,
    }
}

/// Removes the lines with names of temporary files, which linkers and assemblers print in messages.
fn without_temporary_names(text: &str) -> String {
    text.lines()
        .filter(|line| !line.contains("/tmp/"))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// `cxx` is the C++ compiler of the same release, which may not be installed.
fn compare(compiler: &str, cxx: &str) {
    // This check uses a C program. It also suits C++ compilers, because they compile C too.
    or_skip!(links_c(compiler, &[]));
    for call in CALLS {
        // gcc has its C++ compiler in a package of its own.
        if call.words.contains("-x c++") {
            or_skip!(links_cxx(cxx, &[]), continue);
        }
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("tmp")).unwrap();
        let run = |name: &str, command: Command| {
            let folder = scratch.path().join(name);
            fs::create_dir(&folder).unwrap();
            sources(&folder);
            outcome(&folder, command, call)
        };
        let mut expected = run("alone", Command::new(compiler));
        let mut command = Command::new(PROFKIT);
        command.args(["mip", "cc", "--", compiler]);
        let mut found = run("with", command);
        for outcome in [&mut expected, &mut found] {
            outcome.stderr = without_temporary_names(&outcome.stderr);
        }
        assert_eq!(found, expected, "{compiler} {}", call.words);
        for name in call.instrumented {
            let bytes = fs::read(scratch.path().join("with").join(name)).unwrap();
            let object = object::File::parse(&*bytes).unwrap();
            for section in ["__llvm_mipraw", "__llvm_mipmap"] {
                let size = object
                    .section_by_name(section)
                    .map_or(0, |section| section.size());
                assert!(
                    size > 0,
                    "{compiler} {}: {name} has no {section}",
                    call.words
                );
            }
        }
        for name in found.files.keys().filter(|name| name.ends_with(".s")) {
            let text = fs::read_to_string(scratch.path().join("with").join(name)).unwrap();
            assert!(
                text.contains("__llvm_mipraw"),
                "{compiler} {}: {name}",
                call.words
            );
        }
        if found.files.contains_key("prog") {
            let folder = scratch.path().join("with");
            let run = Command::new("./prog")
                .current_dir(&folder)
                .env_remove("LLVM_MIP_PROFILE_FILENAME")
                .status()
                .unwrap();
            assert_eq!(run.code(), Some(0), "{compiler} {}", call.words);
            assert!(
                folder.join("default.mipraw").exists(),
                "{compiler} {}",
                call.words
            );
        }
    }
}

#[test]
fn gcc_12() {
    compare("gcc-12", "g++-12");
}

#[test]
fn clang_22() {
    compare("clang-22", "clang++-22");
}

fn profkit(words: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = Command::new(PROFKIT)
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// The assembler that GCC starts gets the options before `--` too, the output options among them.
#[test]
fn output_options_before_the_compiler() {
    or_skip!(links_c("gcc-12", &[]));
    let folder = tempfile::tempdir().unwrap();
    sources(folder.path());
    let words = [
        "mip",
        "cc",
        "--color",
        "never",
        "--mode=calls",
        "--no-pager",
        "--",
        "gcc-12",
        "-c",
        "a.c",
    ];
    assert_eq!(profkit(&words, folder.path()), (Some(0), String::new()));
}

/// GCC gives its assembler a temporary file, whose name tells the user nothing.
#[test]
fn messages_about_gccs_temporary_file_name_the_source() {
    or_skip!(links_c("gcc-12", &[]));
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("split.c"),
        "int g(int *); int f(void) { int a[99]; return g(a); }\n",
    )
    .unwrap();
    let words = [
        "mip",
        "cc",
        "--",
        "gcc-12",
        "-fsplit-stack",
        "-c",
        "split.c",
    ];
    let (code, message) = profkit(&words, folder.path());
    assert_eq!(code, Some(1));
    assert!(
        message.starts_with("error: split.c:")
            && message.contains("was compiled with -fsplit-stack"),
        "{message}"
    );
}

#[test]
fn refusals_say_why() {
    let folder = tempfile::tempdir().unwrap();
    for (words, message) in [
        (
            &["clang-22", "-flto", "-ffat-lto-objects", "-c", "a.c"][..],
            "error: profkit mip cc: -ffat-lto-objects: a link without -flto would take the machine code of these objects, which is not instrumented\n\
             hint: build without -ffat-lto-objects\n",
        ),
        (
            &["clang-22", "-m32", "-c", "a.c"],
            "error: profkit mip cc: -m32: MIP cannot instrument 32-bit x86 code\n\
             hint: compile this part of the build without profkit mip cc\n",
        ),
        (&["ccache"], "error: the command line names no compiler\n"),
    ] {
        let all: Vec<&str> = ["mip", "cc", "--"].iter().chain(words).copied().collect();
        assert_eq!(profkit(&all, folder.path()), (Some(2), message.to_owned()));
    }
    let (code, message) = profkit(
        &["mip", "cc", "--", "no-such-clang", "-c", "a.c"],
        folder.path(),
    );
    assert_eq!(code, Some(1));
    assert_eq!(
        message,
        "error: cannot start no-such-clang: No such file or directory\n\
         hint: the compiler's name comes first after --: profkit mip cc -- clang -c foo.c\n"
    );
}

/// A signal in the middle of a compilation leaves no temporary file, and no half-made output.
#[test]
fn signals_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    // A script in place of a compiler, which writes its output and then hangs.
    let compiler = folder.path().join("clang");
    fs::write(&compiler, "#!/bin/sh\nfor word; do last=$word; done\necho text >\"$last\"\ntouch made\nexec sleep 5\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&compiler, executable).unwrap();
    let mut child = Command::new(PROFKIT)
        .args(["mip", "cc", "--"])
        .arg(&compiler)
        .args(["-c", "a.c", "-o", "a.o"])
        .current_dir(folder.path())
        .env("TMPDIR", &temporary)
        .spawn()
        .unwrap();
    while !folder.path().join("made").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1);
    Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(15)
    );
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(!folder.path().join("a.o").exists());
}
