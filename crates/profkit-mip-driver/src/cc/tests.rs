//! Tests that compare the steps for many command lines with a table.
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]
use super::parse::{Family, Request, compiler_at, family, parse};
use super::plan::{Places, Step, plan};
use profkit_merge::files::response;
use std::ffi::{OsStr, OsString};
use std::path::Path;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn text(words: &[OsString]) -> String {
    words
        .iter()
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn planned(of: Family, line: &str) -> String {
    let words = words(line);
    let parsed = match parse(&words, of) {
        Ok(Request::PassOn) => return "as it is".to_owned(),
        Ok(Request::Work(parsed)) => parsed,
        Err(unsupported) => return format!("refused: {unsupported}"),
    };
    let places = Places {
        temporary: Path::new("T"),
        runtime: Some(Path::new("RT.a")),
        linker: &super::bounds::words(&parsed, true, Path::new("B.ld")),
    };
    let plan = plan(&parsed, &words, of, places);
    let mut lines = Vec::new();
    for group in &plan.groups {
        for step in &group.steps {
            lines.push(match step {
                Step::Run(words) => format!("run {}", text(words)),
                Step::Instrument {
                    from, to, marked, ..
                } => format!(
                    "instrument {} to {}{}",
                    from.display(),
                    to.display(),
                    if *marked { " marked" } else { "" }
                ),
                Step::Show(file) => format!("show {}", file.display()),
            });
        }
    }
    lines.extend(
        plan.link
            .as_deref()
            .map(|words| format!("link {}", text(words))),
    );
    lines.join("\n")
}

#[track_caller]
fn check(of: Family, line: &str, expected: &[&str]) {
    assert_eq!(planned(of, line), expected.join("\n"), "{line}");
}

#[test]
fn clang_compiles_under_the_name_of_the_output() {
    check(
        Family::Clang,
        "-O2 -g -Iinc -MD -c foo.c -o obj/foo.o",
        &[
            "run -O2 -g -Iinc -MD -S foo.c -o obj/foo.o",
            "instrument obj/foo.o to T/0/foo.s",
            "run -Qunused-arguments -O2 -g -Wa,--no-warn -c -x assembler T/0/foo.s -o obj/foo.o",
        ],
    );
    check(
        Family::Clang,
        "-c a.c b.cc",
        &[
            "run -S a.c -o a.o",
            "instrument a.o to T/0/a.s",
            "run -Qunused-arguments -Wa,--no-warn -c -x assembler T/0/a.s -o a.o",
            "run -S b.cc -o b.o",
            "instrument b.o to T/1/b.s",
            "run -Qunused-arguments -Wa,--no-warn -c -x assembler T/1/b.s -o b.o",
        ],
    );
}

#[test]
fn clang_links_what_it_compiled_where_it_stood() {
    check(
        Family::Clang,
        "-O2 -DX a.c lib.a -x c++ b.inc -x none -lm -o prog",
        &[
            "run -O2 -DX -S a.c -o T/0/a.o",
            "instrument T/0/a.o to T/0/a.s",
            "run -Qunused-arguments -O2 -Wa,--no-warn -c -x assembler T/0/a.s -o T/0/a.o",
            "run -O2 -DX -S -x c++ b.inc -o T/2/b.o",
            "instrument T/2/b.o to T/2/b.s",
            "run -Qunused-arguments -O2 -Wa,--no-warn -c -x assembler T/2/b.s -o T/2/b.o",
            "link -Qunused-arguments -O2 T/0/a.o lib.a T/2/b.o -lm -o prog RT.a -Wl,--build-id",
        ],
    );
    check(
        Family::Clang,
        "-MMD a.c -o out/prog",
        &[
            "run -MMD -MF out/prog.d -MQ out/prog -S a.c -o T/0/a.o",
            "instrument T/0/a.o to T/0/a.s",
            "run -Qunused-arguments -Wa,--no-warn -c -x assembler T/0/a.s -o T/0/a.o",
            "link -Qunused-arguments T/0/a.o -o out/prog RT.a -Wl,--build-id",
        ],
    );
}

#[test]
fn clang_compiles_to_bitcode_for_link_time_optimisation() {
    check(Family::Clang, "-O2 -flto -c a.c -o a.o", &["as it is"]);
    check(Family::Clang, "-flto=thin -S a.c", &["as it is"]);
    check(
        Family::Clang,
        "-flto -c a.c h.s",
        &[
            "run -flto -c a.c -o a.o",
            "instrument h.s to T/1/h.s marked",
            "run -Qunused-arguments -flto -c -x assembler T/1/h.s -o h.o",
        ],
    );
    check(
        Family::Clang,
        "-flto -MMD a.c b.o -mllvm -x -o out/prog",
        &[
            "run -flto -MMD -mllvm -x -MF out/prog.d -MQ out/prog -c a.c -o T/0/a.o",
            "link -Qunused-arguments -flto T/0/a.o b.o -mllvm -x -o out/prog RT.a -Wl,--build-id",
        ],
    );
    // The last of the two options counts.
    check(
        Family::Clang,
        "-flto -fno-lto -S a.c",
        &["run -flto -fno-lto -S a.c -o a.s", "instrument a.s to a.s"],
    );
    check(Family::Gcc, "-flto -S a.c", &["as it is"]);
    check(Family::Gcc, "-flto -c a.c", &["link -B T/ -flto -c a.c"]);
}

#[test]
fn clang_assembler_input() {
    check(
        Family::Clang,
        "-c h.s -o h.o",
        &[
            "instrument h.s to T/0/h.s marked",
            "run -Qunused-arguments -c -x assembler T/0/h.s -o h.o",
        ],
    );
    check(
        Family::Clang,
        "-DX -c k.S -o k.o",
        &[
            "run -DX -E k.S -o k.o",
            "instrument k.o to T/0/k.s",
            "run -Qunused-arguments -c -x assembler T/0/k.s -o k.o",
        ],
    );
    check(
        Family::Clang,
        "-c -x assembler-with-cpp - -o k.o",
        &[
            "run -E -x assembler-with-cpp - -o k.o",
            "instrument k.o to T/0/-.s",
            "run -Qunused-arguments -c -x assembler T/0/-.s -o k.o",
        ],
    );
}

#[test]
fn special_outputs_are_not_written_twice() {
    check(
        Family::Clang,
        "-c a.c -o -",
        &[
            "run -S a.c -o T/0/out.text",
            "instrument T/0/out.text to T/0/a.s",
            "run -Qunused-arguments -Wa,--no-warn -c -x assembler T/0/a.s -o T/0/out.o",
            "show T/0/out.o",
        ],
    );
    check(
        Family::Clang,
        "-c a.c -o /dev/null",
        &[
            "run -S a.c -o T/0/out.text",
            "instrument T/0/out.text to T/0/a.s",
            "run -Qunused-arguments -Wa,--no-warn -c -x assembler T/0/a.s -o /dev/null",
        ],
    );
    for of in [Family::Clang, Family::Gcc] {
        let steps = planned(of, "-S a.c -o -");
        assert!(
            steps.ends_with("instrument T/out.s to T/out.s\nshow T/out.s"),
            "{steps}"
        );
    }
}

#[test]
fn gcc_gets_an_assembler_and_the_runtime() {
    check(
        Family::Gcc,
        "-O2 -c a.c -o a.o",
        &["link -B T/ -O2 -c a.c -o a.o"],
    );
    check(
        Family::Gcc,
        "-S -O2 a.c b.c",
        &[
            "run -B T/ -S -O2 a.c b.c",
            "instrument a.s to a.s",
            "instrument b.s to b.s",
        ],
    );
    check(
        Family::Gcc,
        "a.c -o prog",
        &["link -B T/ a.c -o prog RT.a -Wl,--build-id"],
    );
    check(
        Family::Gcc,
        "-x c a.inc",
        &["link -B T/ -x c a.inc -x none RT.a -Wl,--build-id"],
    );
}

#[test]
fn links() {
    check(
        Family::Clang,
        "a.o b.o -o prog",
        &["link a.o b.o -o prog RT.a -Wl,--build-id"],
    );
    check(
        Family::Clang,
        "-shared a.o -Wl,--build-id=sha1",
        &["link -shared a.o -Wl,--build-id=sha1 RT.a"],
    );
    check(
        Family::Gcc,
        "-Xlinker --build-id a.o",
        &["link -B T/ -Xlinker --build-id a.o RT.a"],
    );
    check(
        Family::Clang,
        "-r a.o b.o -o ab.o",
        &["link -r a.o b.o -o ab.o -Wl,--unique=__llvm_mipraw -Wl,--unique=__llvm_mipmap"],
    );
    check(
        Family::Gcc,
        "-r a.o b.o -o ab.o",
        &["link -B T/ -r a.o b.o -o ab.o -Wl,--unique=__llvm_mipraw -Wl,--unique=__llvm_mipmap"],
    );
}

#[test]
fn a_link_that_drops_sections_gets_a_script() {
    for (of, line, expected) in [
        (
            Family::Clang,
            "-Wl,-O1,--gc-sections a.o",
            "link -Wl,-O1,--gc-sections a.o RT.a B.ld -Wl,--build-id",
        ),
        (
            Family::Gcc,
            "-x c -Xlinker -gc-sections -Wl,-Ttext=0x1000 a.c",
            "link -B T/ -x c -Xlinker -gc-sections -Wl,-Ttext=0x1000 a.c -x none RT.a B.ld -Wl,--build-id",
        ),
    ] {
        check(of, line, &[expected]);
    }
    for line in [
        "-Wl,--gc-sections,--no-gc-sections a.o",
        "-Wl,--gc-sections -T own.ld a.o",
        "-Wl,--gc-sections,-Town.ld a.o",
        "-Wl,--gc-sections,--script=own.ld a.o",
        "-Wl,--print-gc-sections gc-sections a.o",
    ] {
        let words = words(line);
        let Ok(Request::Work(parsed)) = parse(&words, Family::Gcc) else {
            panic!("{line}");
        };
        let found = super::bounds::words(&parsed, true, Path::new("B.ld"));
        assert!(found.is_empty(), "{line}");
    }
    let line = words("-O2 -Iinc -MD -x c -Wl,--gc-sections -fuse-ld=gold a.c b.o -lm -o a");
    let Ok(Request::Work(parsed)) = parse(&line, Family::Clang) else {
        panic!("it links");
    };
    assert_eq!(
        text(&super::bounds::question(&parsed)),
        "-Wl,--version -O2 -Wl,--gc-sections -fuse-ld=gold -lm"
    );
}

#[test]
fn what_makes_no_code_is_passed_on() {
    for line in [
        "--version",
        "-v",
        "-dumpmachine",
        "-print-prog-name=ld",
        "-print-search-dirs",
        "-### -c a.c",
        "-E a.c",
        "-M a.c",
        "-MM a.c",
        "-fsyntax-only a.c",
        "-c -emit-llvm a.c",
        "-c only.h",
        "-x c-header -c pre.c",
        "",
    ] {
        for of in [Family::Clang, Family::Gcc] {
            assert_eq!(planned(of, line), "as it is", "{line}");
        }
    }
}

#[test]
fn refusals() {
    for (of, line, message) in [
        (
            Family::Clang,
            "-flto -ffat-lto-objects -c a.c",
            "-ffat-lto-objects: a link without -flto would take the machine code of these objects, which is not instrumented",
        ),
        (
            Family::Clang,
            "-m32 -c a.c",
            "-m32: MIP cannot instrument 32-bit x86 code",
        ),
        (
            Family::Clang,
            "-arch arm64 -arch x86_64 -c a.c",
            "-arch is given twice: one call compiles for one architecture only",
        ),
        (
            Family::Clang,
            "-g -gsplit-dwarf -c a.c",
            "-gsplit-dwarf is not possible: profkit lets clang stop at assembly, and clang then names the split debug file after the source file, not after the object file",
        ),
        (
            Family::Clang,
            "--coverage a.c -o p",
            "--coverage is not possible when clang compiles and links in one call: clang would make up the name of the file that this option writes from the name of a temporary object file",
        ),
    ] {
        assert_eq!(planned(of, line), format!("refused: {message}"));
    }
}

#[test]
fn several_inputs_and_one_output_are_the_compilers_to_complain_about() {
    check(
        Family::Clang,
        "-c a.c b.c -o x.o",
        &["link -c a.c b.c -o x.o"],
    );
}

#[test]
fn save_temps_keeps_what_was_assembled() {
    check(
        Family::Clang,
        "-save-temps -c src/a.c",
        &[
            "run -save-temps -S src/a.c -o a.o",
            "instrument a.o to a.s",
            "run -Qunused-arguments -Wa,--no-warn -c -x assembler a.s -o a.o",
        ],
    );
}

#[test]
fn compilers_by_name() {
    for (name, expected) in [
        ("clang", Some(Family::Clang)),
        ("/usr/lib/llvm-22/bin/clang++", Some(Family::Clang)),
        ("clang++-22", Some(Family::Clang)),
        ("x86_64-linux-gnu-gcc-12", Some(Family::Gcc)),
        ("aarch64-linux-gnu-g++-12", Some(Family::Gcc)),
        ("arm-none-eabi-gcc-13.2.1", Some(Family::Gcc)),
        ("gcc12", Some(Family::Gcc)),
        ("cc", None),
        ("c++", None),
        ("clang-tidy-not", Some(Family::Clang)),
        ("mygcc", None),
    ] {
        assert_eq!(family(OsStr::new(name)), expected, "{name}");
    }
    assert_eq!(compiler_at(&words("gcc -c a.c")), 0);
    assert_eq!(compiler_at(&words("/usr/bin/ccache clang -c a.c")), 1);
    assert_eq!(compiler_at(&words("env ccache gcc")), 2);
}

#[test]
fn response_files_are_read_and_written_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("words.rsp");
    let all: Vec<OsString> = ["-c", "a b.c", "-DX=\"y\\z\"", "", "-o", "it's.o"]
        .map(OsString::from)
        .to_vec();
    std::fs::write(&file, response::text(&all)).expect("a file");
    let mut word = OsString::from("@");
    word.push(&file);
    let Ok(Request::Work(parsed)) = parse(&[word], Family::Clang) else {
        panic!("it compiles");
    };
    assert!(parsed.from_response_file);
    assert_eq!(parsed.output, Some("it's.o".into()));
    // The name of a response file that cannot be read remains a word, and the compiler reports it.
    assert_eq!(
        planned(Family::Gcc, "@missing.rsp"),
        "link -B T/ @missing.rsp RT.a -Wl,--build-id"
    );
}
