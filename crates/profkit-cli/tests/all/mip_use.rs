//! Tests `profkit mip order`, `use` and `diff` with profiles of real programs, and what unmodified compilers and
//! linkers make of their results.
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use profkit_abi::mip::section;
use profkit_data::mip::{
    ImageFacts, MapReadOptions, MipMap, MipProfile, MipWriteOptions, RawParts, write,
};
use profkit_merge::mip::{RecordPlan, RecordSums};
use profkit_object::binary::BinaryFile;
use profkit_object::build_id::build_id;
use profkit_testkit::{Llvm, links_c, or_skip, repo_root, require_or_skip, succeed};
use std::path::Path;
use std::process::Command;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn profkit(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    command.arg("mip").current_dir(folder);
    command
}

/// Compiles `paths.c` with profkit.
fn instrumented(llvm: &Llvm, folder: &Path, options: &[&str], output: &str) {
    succeed(
        profkit(folder)
            .args(["cc", "--mode", "calls,block", "--"])
            .arg(llvm.clang())
            .args(["-O2", "-Wl,--build-id"])
            .args(options)
            .arg(repo_root().join("tests/programs/paths.c"))
            .args(["-o", output]),
    );
}

/// Runs an instrumented program and makes a profile of it.
fn profile(folder: &Path, program: &str, arguments: &[&str], output: &str) {
    let raw = folder.join("run.mipraw");
    succeed(
        Command::new(folder.join(program))
            .args(arguments)
            .env("LLVM_MIP_PROFILE_FILENAME", &raw),
    );
    let file = BinaryFile::open(&folder.join(program)).expect("the program");
    let images = file.images().expect("one image");
    let image = images.first().expect("one image");
    let map = image
        .section_by_name(section::MAP)
        .expect("the map")
        .data()
        .expect("in the file");
    let records = image.section_by_name(section::RECORDS).expect("records");
    let map = MipMap::parse_with(
        map,
        &MapReadOptions::new().section_address(Some(records.address())),
    )
    .expect("the map");
    let facts = ImageFacts::new().build_id(build_id(image).expect("notes"));
    let mut profile = MipProfile::create(&map, &facts).expect("a profile").profile;
    let plan = RecordPlan::new(&profile);
    let mut sums = RecordSums::new(&plan);
    let raw = std::fs::read(raw).expect("the raw file");
    for part in RawParts::new(&raw) {
        sums.add(&plan, &part.expect("a part"));
    }
    sums.add_to(&plan, &mut profile);
    let mut bytes = Vec::new();
    write(&profile, &MipWriteOptions::new(), &mut bytes).expect("written");
    std::fs::write(folder.join(output), bytes).expect("written");
}

/// For each call of a function of the test program: the symbol that contains the call.
fn calls(program: &Path) -> Vec<String> {
    let listing = succeed(
        Command::new("llvm-objdump-22")
            .args(["-d", "--no-show-raw-insn"])
            .arg(program),
    );
    let mut function = String::new();
    let mut calls = Vec::new();
    for line in text(&listing.stdout).lines() {
        if let Some(name) = line
            .strip_suffix(">:")
            .and_then(|line| line.split_once('<'))
        {
            function = name.1.to_owned();
        } else if let Some((_, target)) = line.split_once("call").or_else(|| line.split_once("jmp"))
            && let Some((_, target)) = target.split_once('<')
            && ["hot_", "cold_"]
                .iter()
                .any(|prefix| target.starts_with(prefix))
        {
            calls.push(format!("{function}: {}", target.trim_end_matches('>')));
        }
    }
    calls.sort();
    calls
}

/// The list uses the block ids of the compiler. This is shown by `parse.cold`: it must contain exactly the blocks that
/// were not executed.
#[test]
fn blocks_that_never_ran_are_split_out_by_clang() {
    let _ = require_or_skip!(22);
    for (release, option) in [
        (22, "-fbasic-block-address-map"),
        (19, "-fbasic-block-address-map"),
        (16, "-fbasic-block-sections=labels"),
        (15, "-fbasic-block-sections=labels"),
    ] {
        let llvm = require_or_skip!(release, continue);
        let folder = tempfile::tempdir().expect("a folder");
        instrumented(&llvm, folder.path(), &[option], "program");
        profile(
            folder.path(),
            "program",
            &["12 34 5", "99 8"],
            "program.mip",
        );
        let made = succeed(
            profkit(folder.path())
                .args(["use", "--blocks", "--llvm", &release.to_string()])
                .args(["program.mip", "program", "-o", "list.txt"]),
        );
        assert!(
            text(&made.stderr).starts_with("2 functions split: "),
            "{}",
            text(&made.stderr)
        );
        succeed(
            Command::new(llvm.clang())
                .args(["-O2", "-fbasic-block-sections=list=list.txt", "-o", "split"])
                .arg(repo_root().join("tests/programs/paths.c"))
                .current_dir(folder.path()),
        );
        assert_eq!(
            calls(&folder.path().join("split")),
            [
                "parse.cold: cold_end",
                "parse.cold: cold_letter",
                "parse.cold: cold_sign",
                "parse: hot_digit",
                "parse: hot_space",
            ],
            "clang {release}"
        );
        let answer = |program: &str| {
            text(
                &succeed(
                    Command::new(folder.path().join(program))
                        .args(["7a-", "123"])
                        .current_dir(folder.path()),
                )
                .stdout,
            )
        };
        assert_eq!(answer("split"), answer("program"));
    }
}

#[test]
fn a_list_of_another_build_leaves_out_what_changed() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    instrumented(&llvm, folder.path(), &["-fbasic-block-address-map"], "old");
    profile(folder.path(), "old", &["12 34 5"], "old.mip");
    instrumented(
        &llvm,
        folder.path(),
        &["-fbasic-block-address-map", "-O0"],
        "new",
    );
    let made = succeed(
        profkit(folder.path()).args(["use", "--blocks", "old.mip", "new", "-o", "list.txt"]),
    );
    assert!(
        text(&made.stderr).contains("stale: their blocks differ from those in the profile: "),
        "{}",
        text(&made.stderr)
    );
    let list = std::fs::read_to_string(folder.path().join("list.txt")).expect("a list");
    assert!(!list.contains("f parse"), "{list}");
    // If the program has no block ids, no list is written, and the error names the missing option.
    instrumented(&llvm, folder.path(), &[], "without");
    let refused = profkit(folder.path())
        .args(["use", "--blocks", "old.mip", "without", "-o", "list.txt"])
        .output()
        .expect("profkit");
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        text(&refused.stderr),
        "error: without: there is no section .llvm_bb_addr_map, which holds the block ids\n\
         hint: compile with -fbasic-block-address-map (clang 19 and later) or -fbasic-block-sections=labels (clang 15 to 19)\n"
    );
    let refused = profkit(folder.path())
        .args(["use", "--sample", "old.mip", "new", "-o", "sample"])
        .output()
        .expect("profkit");
    assert!(
        text(&refused.stderr).contains(", the build id of the profile\n"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn clang_takes_the_sample_profile() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let debug = ["-g", "-fdebug-info-for-profiling"];
    instrumented(&llvm, folder.path(), &debug, "program");
    profile(
        folder.path(),
        "program",
        &["12 34 5", "99 8"],
        "program.mip",
    );
    succeed(profkit(folder.path()).args([
        "use",
        "--sample",
        "program.mip",
        "program",
        "-o",
        "program.prof",
    ]));
    let samples = std::fs::read_to_string(folder.path().join("program.prof")).expect("a profile");
    assert!(samples.contains("\nhot_digit:8:8\n 0: 8\n"), "{samples}");
    assert!(
        samples.contains(": twice:"),
        "the inlined function: {samples}"
    );
    // Lines that never ran are in the profile, with the count 0.
    assert!(samples.contains("\n 12: 0\n"), "{samples}");
    let shown = succeed(
        Command::new(llvm.profdata())
            .args(["show", "--sample", "program.prof"])
            .current_dir(folder.path()),
    );
    assert!(
        text(&shown.stdout).contains("Function: parse: "),
        "{}",
        text(&shown.stdout)
    );
    // Every encoding must hold the same profile. The compact encoding is read by the last release that can read it; it
    // has hashes in place of names.
    for encoding in ["text", "binary", "extbinary", "compbinary"] {
        let made = format!("program.{encoding}");
        let used = succeed(profkit(folder.path()).args([
            "use",
            "--sample",
            "--to",
            encoding,
            "program.mip",
            "program",
            "-o",
            &made,
        ]));
        let names_are_lost =
            text(&used.stderr).contains("names: the output holds only their hashes");
        assert_eq!(names_are_lost, encoding == "compbinary", "{encoding}");
        let as_text = |llvm: &Llvm, file: &str| {
            let ran = succeed(
                Command::new(llvm.profdata())
                    .args(["merge", "--sample", "--text", file, "-o", "-"])
                    .current_dir(folder.path()),
            );
            text(&ran.stdout).to_owned()
        };
        if encoding == "compbinary" {
            let reader = require_or_skip!(16, continue);
            succeed(
                Command::new(reader.profdata())
                    .args([
                        "merge",
                        "--sample",
                        "--compbinary",
                        "program.prof",
                        "-o",
                        "theirs",
                    ])
                    .current_dir(folder.path()),
            );
            let found = as_text(&reader, &made);
            assert!(!found.is_empty());
            assert_eq!(found, as_text(&reader, "theirs"));
        } else {
            assert_eq!(
                as_text(&llvm, &made),
                as_text(&llvm, "program.prof"),
                "{encoding}"
            );
        }
    }
    let compiled = succeed(
        Command::new(llvm.clang())
            .args([
                "-O2",
                "-fprofile-sample-use=program.prof",
                "-S",
                "-emit-llvm",
                "-o",
                "-",
            ])
            .args(debug)
            .arg(repo_root().join("tests/programs/paths.c"))
            .current_dir(folder.path()),
    );
    let ir = text(&compiled.stdout);
    // The entry counts are the numbers of calls: 8 for digits, 3 for spaces, 2 for texts, and 1 for the start.
    for count in [8, 3, 2, 1] {
        assert!(
            ir.contains(&format!("!\"function_entry_count\", i64 {count}}}")),
            "{count}: {ir}"
        );
    }
    // Without debug info, the message says what is missing.
    instrumented(&llvm, folder.path(), &[], "plain");
    profile(folder.path(), "plain", &["1"], "plain.mip");
    let refused = profkit(folder.path())
        .args(["use", "--sample", "plain.mip", "plain", "-o", "plain.prof"])
        .output()
        .expect("profkit");
    assert_eq!(
        text(&refused.stderr),
        "error: plain: there is no debug info, so the source lines are not known\n\
         hint: compile with -g -fdebug-info-for-profiling, or give the debug info with --debug\n"
    );
}

#[test]
fn linkers_take_the_order_and_profiles_are_compared() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    instrumented(&llvm, folder.path(), &["-ffunction-sections"], "program");
    profile(folder.path(), "program", &["12 34 5"], "program.mip");
    let made = succeed(profkit(folder.path()).args(["order", "program.mip", "-o", "order.txt"]));
    let order = std::fs::read_to_string(folder.path().join("order.txt")).expect("an order");
    assert_eq!(order, "main\nsetup\nparse\nhot_digit\nhot_space\n");
    assert!(
        text(&made.stderr)
            .starts_with("5 of 9 functions ordered for lld's --symbol-ordering-file: ")
    );
    succeed(
        Command::new(llvm.clang())
            .args([
                "-O2",
                "-ffunction-sections",
                "-fuse-ld=lld",
                "-Wl,--symbol-ordering-file=order.txt",
                "-o",
                "ordered",
            ])
            .arg(repo_root().join("tests/programs/paths.c"))
            .current_dir(folder.path()),
    );
    let bytes = std::fs::read(folder.path().join("ordered")).expect("the program");
    let file = object::File::parse(&*bytes).expect("an object file");
    let mut placed: Vec<(u64, String)> = file
        .symbols()
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_owned())))
        .filter(|(_, name)| order.lines().any(|line| line == name))
        .collect();
    placed.sort();
    let placed: Vec<String> = placed.into_iter().map(|(_, name)| name).collect();
    assert_eq!(placed.join("\n") + "\n", order);

    // Balanced partitioning also works with a single run. The runs are given as raw files.
    let balanced = succeed(profkit(folder.path()).args([
        "order",
        "program.mip",
        "run.mipraw",
        "--algorithm",
        "balanced",
    ]));
    let mut names: Vec<String> = text(&balanced.stdout).lines().map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, ["hot_digit", "hot_space", "main", "parse", "setup"]);
    let chosen = succeed(profkit(folder.path()).args([
        "order",
        "program.mip",
        "-r",
        "^hot",
        "--for",
        "gold",
    ]));
    assert!(
        text(&chosen.stdout).starts_with(".text.hot_digit\n"),
        "{}",
        text(&chosen.stdout)
    );
    let json = succeed(profkit(folder.path()).args(["order", "program.mip", "--format", "json"]));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(
        json["order"],
        serde_json::json!(["main", "setup", "parse", "hot_digit", "hot_space"])
    );

    // A profile of another run, which reads letters instead of spaces.
    profile(folder.path(), "program", &["a12"], "letters.mip");
    let difference = succeed(profkit(folder.path()).args(["diff", "program.mip", "letters.mip"]));
    let shown = text(&difference.stdout);
    for line in [
        "newly called      cold_letter\n",
        "no longer called  hot_space\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let json = succeed(profkit(folder.path()).args([
        "diff",
        "letters.mip",
        "program.mip",
        "--format",
        "json",
    ]));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let first = &json["functions"][0];
    assert_eq!(
        (&first["change"], &first["function"]),
        (&"newly_called".into(), &"hot_space".into())
    );

    let refused = profkit(folder.path())
        .args(["order", "program.mip", "run.mipraw"])
        .output()
        .expect("profkit");
    assert_eq!(refused.status.code(), Some(2));
    let refused = profkit(folder.path())
        .args(["order", "run.mipraw"])
        .output()
        .expect("profkit");
    assert_eq!(refused.status.code(), Some(1));
}

/// The number of functions that the program calls when it starts. Between them lie functions that nothing calls, each
/// larger than the range that the kernel maps after a page fault.
const STARTING: usize = 48;

/// Returns the source of a program that counts the page faults of its start. The program first makes the kernel forget
/// the pages of its code.
fn scattered() -> String {
    use std::fmt::Write as _;
    let mut source = String::from(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <sys/resource.h>\n\
         #include <unistd.h>\nvolatile int sink;\nextern char __executable_start[], etext[];\n",
    );
    for number in 0..STARTING {
        let _ = writeln!(
            source,
            "void idle{number}(void) {{ __asm__ volatile(\".skip 100000\"); }}\n\
             __attribute__((noinline)) void start{number}(void) {{ sink += {number}; }}"
        );
    }
    source.push_str("static long faults(void) {\n  struct rusage used;\n  getrusage(RUSAGE_SELF, &used);\n  return used.ru_majflt + used.ru_minflt;\n}\n");
    source.push_str("int main(void) {\n  int self = open(\"/proc/self/exe\", O_RDONLY);\n");
    // Read-ahead is switched off, so that only pages that are touched are read. On some file systems the pages stay in
    // memory; then the faults are minor ones.
    source.push_str("  madvise(__executable_start, etext - __executable_start, MADV_RANDOM);\n  posix_fadvise(self, 0, 0, POSIX_FADV_DONTNEED);\n  sink = 0;\n  faults();\n  long before = faults();\n");
    // The functions are called backwards, so that the order of the profile differs from that of the source.
    for number in (0..STARTING).rev() {
        let _ = writeln!(source, "  start{number}();");
    }
    source.push_str("  printf(\"%ld\\n\", faults() - before);\n  return 0;\n}\n");
    source
}

#[test]
fn an_ordered_program_starts_with_fewer_page_faults() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("scattered.c"), scattered()).expect("written");
    let compile = ["-O2", "-ffunction-sections", "-fuse-ld=lld"];
    succeed(
        profkit(folder.path())
            .args(["cc", "--mode", "calls", "--"])
            .arg(llvm.clang())
            .args(compile)
            .args(["scattered.c", "-o", "instrumented"]),
    );
    profile(folder.path(), "instrumented", &[], "start.mip");
    let made = succeed(profkit(folder.path()).args([
        "order",
        "start.mip",
        "--format",
        "json",
        "-o",
        "order.txt",
    ]));
    let told: serde_json::Value = serde_json::from_slice(&made.stderr).expect("JSON");
    let faults = |options: &[&str]| -> u64 {
        succeed(
            Command::new(llvm.clang())
                .args(compile)
                .args(options)
                .args(["scattered.c", "-o", "program"])
                .current_dir(folder.path()),
        );
        let ran = succeed(Command::new(path("program")).current_dir(folder.path()));
        text(&ran.stdout).trim().parse().expect("a number")
    };
    let before = faults(&[]);
    let after = faults(&["-Wl,--symbol-ordering-file=order.txt"]);
    let starting = STARTING as u64;
    // There may be one fault less if the last function lies beside `main`, and a few more for data and for functions
    // that cross a page boundary.
    assert!(
        (starting - 2..=starting + 4).contains(&before),
        "{before} faults: {told}"
    );
    assert!(after <= 4, "{after} faults: {told}");
    // The numbers of pages that profkit computes from the profile must agree with the measured page faults.
    let pages = |key: &str| told[key].as_u64().expect("a number");
    assert!(pages("pages_before").abs_diff(before) <= 4, "{told}");
    assert!(pages("pages_after").abs_diff(after) <= 3, "{told}");
}

/// GCC splits off a part of a function. The part is not reported as a function that nothing called, and the lines of a
/// part that ran have counts.
#[test]
fn parts_count_with_their_function() {
    or_skip!(links_c("gcc", &[]));
    let folder = tempfile::tempdir().expect("a folder");
    succeed(
        profkit(folder.path())
            .args(["cc", "--mode", "calls,block", "--", "gcc"])
            .args(["-O2", "-g", "-Wl,--build-id"])
            .arg(repo_root().join("tests/programs/cold_parts.c"))
            .args(["-o", "program"]),
    );
    profile(folder.path(), "program", &[], "program.mip");
    let said = |arguments: &[&str]| {
        let made = succeed(profkit(folder.path()).args(arguments));
        text(&made.stdout)
    };
    let info = said(&["info", "-p", "program.mip"]);
    assert!(
        info.contains("Total Machine Functions: 4\nProfiled Machine Functions: 4\n"),
        "{info}"
    );
    let shown = said(&["show", "-p", "program.mip", "-r", "cold"]);
    let (_, functions) = shown.split_once("\n\n").expect("functions after the facts");
    assert_eq!(
        functions,
        "work.cold\n  part             of another function, and never called itself\n  blocks           HOT \n\n\
         idle.cold\n  part             of another function, and never called itself\n  blocks           COLD\n"
    );
    let yaml = said(&["mip2yaml", "-p", "program.mip"]);
    assert!(yaml.contains("Function Part"), "{yaml}");
    said(&[
        "use",
        "--sample",
        "program.mip",
        "program",
        "-o",
        "program.prof",
    ]);
    let samples = std::fs::read_to_string(folder.path().join("program.prof")).expect("a profile");
    // The lines of the two calls of `complain`, relative to the first line of the function.
    let of = |name: &str| {
        let start = samples.find(&format!("{name}:")).expect("the function");
        let lines: Vec<&str> = samples[start..]
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with(' '))
            .collect();
        lines.join("\n")
    };
    assert!(of("work").contains(" 2: 5\n 3: 5"), "{samples}");
    assert!(of("idle").contains(" 2: 0\n 3: 0"), "{samples}");
}

/// The flags that were proposed for clang: the program is built with them, runs, and is built again with its profile.
#[test]
fn flags_of_the_proposal_build_run_and_build_again() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let cc = |options: &[&str], flags: &[&str], output: &str| {
        let mut command = profkit(folder);
        command.arg("cc").args(options).arg("--").arg(llvm.clang());
        command.args(["-O2", "-g", "-fdebug-info-for-profiling"]);
        command.arg(repo_root().join("tests/programs/paths.c"));
        let output = command.args(flags).args(["-o", output]).output().unwrap();
        (
            output.status.code(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let record = [
        "-fmachine-profile-generate",
        "-fmachine-profile-block-coverage",
        "-fbasic-block-address-map",
    ];
    assert_eq!(cc(&[], &record, "app"), (Some(0), String::new()));
    let raw = folder.join("app.mipraw");
    let mut run = Command::new(folder.join("app"));
    succeed(run.env("LLVM_MIP_PROFILE_FILENAME", &raw));
    succeed(profkit(folder).args([
        "merge",
        "-q",
        "-p",
        "app.mip",
        "--binary",
        "app",
        "app.mipraw",
    ]));
    // The order, the samples and the blocks are used: cold blocks have left their functions.
    let cold = |program: &str| {
        let file = std::fs::read(folder.join(program)).unwrap();
        let file = object::File::parse(&*file).unwrap();
        let names = file
            .symbols()
            .filter_map(|symbol| Some(symbol.name().ok()?.to_owned()));
        names.filter(|name| name.ends_with(".cold")).count()
    };
    let with = "-fmachine-profile-use=app.mip";
    assert_eq!(cc(&[], &[with], "new"), (Some(0), String::new()));
    assert!(cold("new") > 0);
    assert_eq!(cold("app"), 0);
    // Beside a profile of another name there is no program.
    std::fs::copy(folder.join("app.mip"), folder.join("alone.mip")).unwrap();
    let (code, said) = cc(&[], &["-fmachine-profile-use=alone.mip"], "alone.out");
    assert_eq!(code, Some(0));
    assert_eq!(
        said,
        "note: alone.mip: the program that it is of is not beside it, so only the order of its functions is used; name the program with --binary\n"
    );
    let (code, said) = cc(
        &["--binary", "app"],
        &["-fmachine-profile-use=alone.mip"],
        "with",
    );
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(cold("with"), cold("new"));
    // A program of another build, a file that is no profile, and an option without its flag.
    let (code, said) = cc(
        &["--binary", "new"],
        &["-fmachine-profile-use=alone.mip"],
        "x",
    );
    assert!(code == Some(1) && said.contains("found build id"), "{said}");
    let (code, said) = cc(&[], &["-fmachine-profile-use=app"], "x");
    assert!(
        code == Some(1) && said.starts_with("error: app: "),
        "{said}"
    );
    let (code, said) = cc(&["--binary", "app"], &[], "x");
    assert!(code == Some(2) && said.contains("no profile is"), "{said}");
    assert!(!folder.join("x").exists());
}
