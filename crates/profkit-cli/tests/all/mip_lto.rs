//! Tests `profkit mip cc` with link-time optimisation: a program prints the same as without this optimisation, and each
//! function is called the same number of times.
use profkit_testkit::{links_c, links_cxx, on_path, or_skip, skip};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PROFKIT: &str = env!("CARGO_BIN_EXE_profkit");

/// Five source files: two that each have a function with the same name, two for a library, and one that is always
/// compiled without link-time optimisation.
const C: &[(&str, &str)] = &[
    (
        "main.c",
        "#include <stdio.h>\nint twice(int); int first(int); int native(int);\n\
         static __attribute__((noinline)) int local(int n) { return n * 7 + 1; }\n\
         int main(int c, char **v) {\n  int s = v == 0;\n  for (int i = 0; i < 3; i++) s += twice(i) + local(i);\n\
         \x20 printf(\"%d\\n\", s + first(c) + native(c));\n  return 0;\n}\n",
    ),
    (
        "twice.c",
        "static __attribute__((noinline)) int local(int n) { return n * 3; }\n\
         __attribute__((noinline)) int twice(int n) { return local(n) * 2; }\nint unused(int n) { return n; }\n",
    ),
    (
        "first.c",
        "int second(int); __attribute__((noinline)) int first(int n) { return second(n) + 1; }\n",
    ),
    (
        "second.c",
        "__attribute__((noinline)) int second(int n) { return n + 1; }\n",
    ),
    (
        "native.c",
        "int first(int); int native(int n) { return first(n) * 5; }\n",
    ),
];

const CXX: &[(&str, &str)] = &[
    (
        "main.cc",
        "#include <cstdio>\n#include \"shape.h\"\nint main(int c, char **) {\n  int s = 0;\n\
         \x20 for (int i = 0; i < 4; i++) {\n    try { s += area(i); } catch (int n) { s += 100 * n; }\n  }\n\
         \x20 std::printf(\"%d\\n\", s + pick<int>(c) + other(c));\n}\n",
    ),
    (
        "shape.h",
        "template <class T> __attribute__((noinline)) T pick(T n) { return n * 2; }\nint area(int); int other(int);\n",
    ),
    (
        "area.cc",
        "#include \"shape.h\"\n__attribute__((noinline)) int area(int n) { if (n == 3) throw n; return pick<int>(n); }\n",
    ),
    (
        "other.cc",
        "#include \"shape.h\"\n__attribute__((noinline)) int other(int n) { return pick<int>(n + 1); }\n",
    ),
];

fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

/// Runs `profkit mip cc` with these words after the compiler's name.
fn cc(folder: &Path, compiler: &str, words: &str) -> Output {
    Command::new(PROFKIT)
        .args(["mip", "cc", "--mode", "calls", "--", compiler])
        .args(words.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("it starts")
}

#[track_caller]
fn done(made: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(made.status.success(), "{}", text(&made.stderr));
    text(&made.stdout)
}

/// Returns what a program prints, and the number of calls of each function. If two local functions have the same name,
/// link-time optimisation adds a suffix to the name of the second one.
fn counted(folder: &Path) -> (String, BTreeMap<String, u64>) {
    let raw = folder.join("run.mipraw");
    let ran = Command::new(folder.join("prog"))
        .env("LLVM_MIP_PROFILE_FILENAME", &raw)
        .output()
        .expect("it runs");
    let printed = done(&ran);
    let mip = |words: &[&str]| {
        let mut command = Command::new(PROFKIT);
        command.arg("mip").args(words).current_dir(folder);
        done(&command.output().expect("it starts"))
    };
    mip(&["create", "-p", "all.mip", "prog"]);
    mip(&["merge", "--strict", "-p", "all.mip", "run.mipraw"]);
    let shown = mip(&["show", "--format", "json", "-p", "all.mip"]);
    let json: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let mut calls = BTreeMap::new();
    for function in json["functions"].as_array().expect("functions") {
        let name = function["function"].as_str().expect("a name");
        let name = name.split('.').next().unwrap_or(name);
        *calls.entry(name.to_owned()).or_default() += function["calls"].as_u64().expect("calls");
    }
    (printed, calls)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for below in [folder.to_owned(), folder.join("lib")] {
        for entry in fs::read_dir(below).expect("a folder") {
            names.push(entry.expect("an entry").path().display().to_string());
        }
    }
    names.sort();
    names
}

/// Links the C program in many ways. All its files except `native.c` are compiled with these options.
fn link_c(compiler: &str, archiver: &str, flags: &str, linker: &str) {
    or_skip!(links_c(
        compiler,
        &format!("{flags} {linker}")
            .split_whitespace()
            .collect::<Vec<_>>()
    ));
    if on_path(archiver).is_none() {
        return skip(&format!("no {archiver}"));
    }
    let folder = written(C);
    let folder = folder.path();
    let plain = cc(
        folder,
        compiler,
        "-O2 main.c twice.c first.c second.c native.c -o prog",
    );
    done(&plain);
    let (expected, plain) = counted(folder);
    assert_eq!(plain.get("local"), Some(&6));
    done(&cc(folder, compiler, "-O2 -c native.c"));
    let compiled = format!("-O2 -g {flags} -c main.c twice.c first.c second.c");
    done(&cc(folder, compiler, &compiled));
    fs::create_dir(folder.join("lib")).expect("a folder");
    for (kind, library, members) in [
        ("rc", "lib/libx.a", &["first.o", "second.o"][..]),
        ("rcT", "thin.a", &["first.o", "second.o"]),
        ("rc", "lib/libmixed.a", &["native.o", "first.o", "second.o"]),
    ] {
        let mut command = Command::new(archiver);
        command.args([kind, library]).args(members);
        done(&command.current_dir(folder).output().expect("it starts"));
    }
    // A command must leave no other file behind, so the list of files is compared after each link. The program `prog`
    // is in the list from the start: it was linked before without profkit.
    let before = names(folder);
    for inputs in [
        "main.o twice.o first.o second.o native.o",
        "main.o twice.o native.o -Llib -lx",
        "native.o lib/libx.a main.o twice.o -L lib -l:libx.a",
        "main.o twice.o native.o -Wl,--whole-archive lib/libx.a -Wl,--no-whole-archive",
        "main.o twice.o native.o -Wl,--whole-archive,lib/libx.a,--no-whole-archive",
        "main.o twice.o native.o thin.a",
        "main.o twice.o lib/libmixed.a",
        "main.c native.o twice.c first.c second.o",
    ] {
        let words = format!("-O2 -g {flags} {linker} {inputs} -o prog");
        done(&cc(folder, compiler, &words));
        let (printed, calls) = counted(folder);
        assert_eq!(printed, expected, "{compiler} {words}");
        for name in ["main", "twice", "local", "first", "second", "native"] {
            assert_eq!(
                calls.get(name),
                plain.get(name),
                "{name}: {compiler} {words}"
            );
        }
        assert_eq!(calls.get("unused"), None, "the linker removes it: {words}");
        assert_eq!(names(folder), before, "{compiler} {words}");
    }
    // A shared library.
    let words = format!("-O2 {flags} {linker} -shared -fPIC first.c second.c -o lib/libs.so");
    done(&cc(folder, compiler, &words));
    let words = format!(
        "-O2 {flags} {linker} main.o twice.o native.o -Llib -ls -Wl,-rpath,{} -o prog",
        folder.join("lib").display()
    );
    done(&cc(folder, compiler, &words));
    // The library has a raw file of its own, with its build id in the name.
    let (printed, calls) = counted(folder);
    assert_eq!(printed, expected);
    assert_eq!(calls.get("first"), None, "it is in the library");
    assert_eq!(calls.get("twice"), plain.get("twice"));
}

#[test]
fn clang_and_lld() {
    link_c("clang-22", "llvm-ar-22", "-flto", "-fuse-ld=lld-22");
    link_c("clang-22", "llvm-ar-22", "-flto=thin", "-fuse-ld=lld-22");
}

#[test]
fn clang_and_gnu_linkers_with_the_plugin_of_llvm() {
    link_c("clang-22", "llvm-ar-22", "-flto", "");
    link_c("clang-19", "llvm-ar-22", "-flto=thin", "-fuse-ld=gold");
}

#[test]
fn gcc() {
    link_c("gcc-12", "gcc-ar-12", "-flto", "");
    link_c("gcc-12", "gcc-ar-12", "-flto=2 -ffat-lto-objects", "");
}

#[test]
fn programs_in_cxx() {
    for (compiler, flags) in [
        ("clang++-22", "-flto -fuse-ld=lld-22"),
        ("clang++-22", "-flto=thin -fuse-ld=lld-22"),
        ("g++-12", "-flto"),
    ] {
        or_skip!(
            links_cxx(compiler, &flags.split_whitespace().collect::<Vec<_>>()),
            continue
        );
        let folder = written(CXX);
        let folder = folder.path();
        done(&cc(
            folder,
            compiler,
            "-O2 main.cc area.cc other.cc -o prog",
        ));
        let (expected, plain) = counted(folder);
        let words = format!("-O2 {flags} main.cc area.cc other.cc -o prog");
        done(&cc(folder, compiler, &words));
        let (printed, calls) = counted(folder);
        assert_eq!(printed, expected, "{compiler} {words}");
        for name in ["main", "_Z4areai", "_Z5otheri", "_Z4pickIiET_S0_"] {
            assert!(plain.contains_key(name), "{name}: {plain:?}");
            assert_eq!(
                calls.get(name),
                plain.get(name),
                "{name}: {compiler} {words}"
            );
        }
    }
}

/// If something cannot be done, the error names the next step, and no file is left in the folder.
#[test]
fn refusals() {
    let compiler = "clang-22";
    or_skip!(links_c(compiler, &["-flto=thin", "-fuse-ld=lld-22"]));
    let folder = written(C);
    let folder = folder.path();
    fs::create_dir(folder.join("lib")).expect("a folder");
    done(&cc(
        folder,
        compiler,
        "-flto=thin -O2 -c main.c twice.c first.c second.c native.c",
    ));
    let all = "main.o twice.o first.o second.o";
    fs::write(folder.join("script.ld"), "INPUT(native.o)\n").expect("written");
    fs::write(
        folder.join("mold"),
        "#!/bin/sh\necho 'mold 2.4.0 (compatible with GNU ld)'\n",
    )
    .expect("written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.join("mold"), executable).expect("allowed");
    let before = names(folder);
    for (words, message) in [
        (
            format!("-flto=thin -fuse-ld=lld-22 -r {all} -o part.o"),
            "error: profkit mip cc: -r with link-time optimisation: only the assembly of a whole link can be instrumented\n\
             hint: give the objects to the last link, without -r; or compile them with -fno-lto\n",
        ),
        (
            // lld optimises at link time even without -flto.
            format!("-fuse-ld=lld-22 {all} script.ld -o prog"),
            "error: profkit mip cc: native.o: the linker has found bitcode in this file, which is not on the command line\n\
             hint: name the path of the file on the command line\n",
        ),
        (
            format!("-flto=thin --ld-path=./mold {all} native.o -o prog"),
            "error: profkit mip cc: mold 2.4.0 (compatible with GNU ld): this linker does not write the assembly of link-time optimisation\n\
             hint: link with lld (-fuse-ld=lld), or with GNU ld and LLVM's plugin\n",
        ),
    ] {
        let made = cc(folder, compiler, &words);
        assert_eq!(String::from_utf8_lossy(&made.stderr), message, "{words}");
        assert_eq!(made.status.code(), Some(2), "{words}");
        assert_eq!(names(folder), before, "{words}");
    }
    // An error of the linker itself is printed once, and the exit code is that of the linker.
    let words = format!("-flto=thin -fuse-ld=lld-22 {all} -o prog");
    let made = cc(folder, compiler, &words);
    let text = String::from_utf8_lossy(&made.stderr).into_owned();
    assert_eq!(
        text.matches("undefined symbol: native").count(),
        1,
        "{text}"
    );
    assert_eq!(made.status.code(), Some(1), "{text}");
    // A library that is cut off.
    let mut library =
        b"!<arch>\nx.o/            0           0     0     644     9         `\nBC\xC0\xDE"
            .to_vec();
    fs::write(folder.join("cut.a"), &library).expect("written");
    library.truncate(40);
    fs::write(folder.join("short.a"), &library).expect("written");
    for (name, message) in [
        (
            "cut.a",
            "error: cut.a: the library cannot be read: Archive member size is too large\n",
        ),
        ("short.a", ""),
    ] {
        let made = cc(
            folder,
            compiler,
            &format!("-flto=thin -fuse-ld=lld-22 {all} native.o {name} -o prog"),
        );
        let text = String::from_utf8_lossy(&made.stderr);
        assert_eq!(made.status.code(), Some(1), "{name}: {text}");
        assert!(text.contains(message), "{name}: {text}");
    }
}
