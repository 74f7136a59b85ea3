//! Tests that `profkit match` finds the functions of real builds: all functions that the raw profile of the same
//! program has, and no others.
use object::{Object, ObjectSection};
use profkit_analysis::matching::{BinaryFunctions, MatchShares, Outcome, ProfileFunctions};
use profkit_object::functions::Origin;
use profkit_report::matching::MatchReport;
use profkit_testkit::{RELEASES, links_c, on_path, or_skip, require_or_skip, skip, succeed};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const A: &str = "
int work(int n);
static int square(int n) { return n > 3 ? n * n : n; }
static inline int small(int n) { return n % 2 ? n + 1 : n; }
__attribute__((noinline)) int unused(int n) { return n ? work(n) : 0; }
int main(int argc, char **argv) {
  int t = 0;
  for (int i = 0; i < 100 * argc; i++) t += square(i) + small(i) + work(i);
  return t == 7;
}
";
const B: &str = "
static int pick(int n) { switch (n % 5) { case 1: return 3; case 2: return n; default: return 0; } }
__attribute__((noinline)) int never(int n) { if (n > 3) return n; return 2 * n; }
int work(int n) { if (n % 2) return pick(n); return 1; }
";

/// Builds the program, runs it, and returns the path of the program and of its raw profile.
fn build(clang: &Path, folder: &Path, name: &str, options: &[&str]) -> Option<(PathBuf, PathBuf)> {
    std::fs::write(folder.join("a.c"), A).unwrap();
    std::fs::write(folder.join("b.c"), B).unwrap();
    let built = Command::new(clang)
        .args(["a.c", "b.c", "-o", name])
        .args(options)
        .current_dir(folder)
        .output();
    let built = built.unwrap();
    if !built.status.success() {
        skip(&format!(
            "{name}: {} {options:?}: {}",
            clang.display(),
            String::from_utf8_lossy(&built.stderr)
        ));
        return None;
    }
    let (program, raw) = (folder.join(name), folder.join(format!("{name}.profraw")));
    succeed(Command::new(&program).env("LLVM_PROFILE_FILE", &raw));
    Some((program, raw))
}

#[test]
fn the_functions_of_a_build_are_those_of_its_raw_profile() {
    let lld = on_path("ld.lld-22").is_some();
    for release in [13, 14, 18, 22] {
        let clang = require_or_skip!(release, continue).clang().to_owned();
        let folder = tempfile::tempdir().unwrap();
        for counters in ["-fprofile-generate", "-fprofile-instr-generate"] {
            let builds: [(&str, &[&str]); 7] = [
                ("plain", &["-O2"]),
                ("debug", &["-O0"]),
                ("pie", &["-O2", "-fPIE", "-pie"]),
                ("stripped", &["-O2", "-s"]),
                ("gc", &["-O2", "-ffunction-sections", "-Wl,--gc-sections"]),
                (
                    "lld",
                    &[
                        "-O2",
                        "-fPIE",
                        "-pie",
                        "-fuse-ld=lld-22",
                        "-Wl,--gc-sections",
                    ],
                ),
                ("thin", &["-O2", "-flto=thin", "-fuse-ld=lld-22"]),
            ];
            for (build_name, options) in builds {
                if options.contains(&"-fuse-ld=lld-22") && !lld {
                    skip("lld-22 is not installed");
                    continue;
                }
                let name = format!("clang-{release}{counters}-{build_name}");
                let options = [&[counters], options].concat();
                let Some((program, raw)) = build(&clang, folder.path(), &name, &options) else {
                    continue;
                };
                let profile = ProfileFunctions::parse(&std::fs::read(raw).unwrap()).unwrap();
                let mut binaries = BinaryFunctions::default();
                binaries.open(&program).unwrap();
                assert_eq!(
                    binaries.binaries[0].origin,
                    Some(Origin::Sections),
                    "{name}"
                );
                let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
                let of_profile: BTreeSet<_> = profile
                    .functions
                    .iter()
                    .flat_map(|(name, known)| known.iter().map(|known| (text(name), known.hash)))
                    .collect();
                let of_binary: BTreeSet<_> = binaries
                    .functions()
                    .flat_map(|(name, named)| named.hashes.iter().map(|&hash| (text(name), hash)))
                    .collect();
                assert_eq!(of_binary, of_profile, "{name}");
                let shares = MatchShares::new(&profile, &binaries);
                assert_eq!(shares.counts.matched_percent(), Some(100.0), "{name}");
                // How a program was instrumented can be seen only from its symbols.
                let known = binaries.binaries[0].instrumentation.is_some();
                assert_eq!(known, build_name != "stripped", "{name}");
            }
        }
    }
}

/// Function records of LLVM 13 to 15 are shorter than those of LLVM 22, but two of them are longer than one record of
/// LLVM 22. So if two such records are read with the layout of LLVM 22, there seems to be one record. The test checks
/// that all functions are found nevertheless.
#[test]
fn all_functions_of_a_small_build_are_found() {
    for release in RELEASES {
        let clang = require_or_skip!(release, continue).clang().to_owned();
        let folder = tempfile::tempdir().unwrap();
        for functions in 1..=5 {
            let mut source = String::from("int main(void) { return 0; }\n");
            for number in 1..functions {
                source += &format!("int f{number}(int n) {{ return n > {number} ? n : 1; }}\n");
            }
            let program = folder.path().join("small");
            std::fs::write(folder.path().join("small.c"), source).unwrap();
            // The library is linked without the run-time library, because not every release has one on this machine.
            // The library is never loaded.
            let steps: [&[&str]; 2] = [
                &["-O0", "-fPIC", "-fprofile-generate", "-c", "small.c"],
                &["-shared", "-nostdlib", "small.o", "-o", "small"],
            ];
            for step in steps {
                let built = Command::new(&clang)
                    .args(step)
                    .current_dir(folder.path())
                    .status();
                assert!(built.unwrap().success());
            }
            let mut binaries = BinaryFunctions::default();
            binaries.open(&program).unwrap();
            assert_eq!(binaries.functions().count(), functions, "clang-{release}");
        }
    }
}

#[test]
fn counters_of_another_stage_are_named_and_fail_a_gate() {
    let Some(clang) = on_path("clang-22") else {
        return skip("clang-22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let (Some((ir, ir_raw)), Some((front_end, front_end_raw))) = (
        build(&clang, folder.path(), "ir", &["-O1", "-fprofile-generate"]),
        build(
            &clang,
            folder.path(),
            "fe",
            &["-O1", "-fprofile-instr-generate"],
        ),
    ) else {
        return;
    };
    let run = |profile: &Path, binary: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        let ran = command
            .arg("match")
            .arg(profile)
            .arg(binary)
            .args(["--fail-under", "0"])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    for (profile, binary) in [(&ir_raw, &front_end), (&front_end_raw, &ir)] {
        let (code, stdout, stderr) = run(profile, binary);
        assert_eq!(code, Some(3), "{stdout}{stderr}");
        assert!(stdout.contains("their hashes never agree"), "{stdout}");
        assert!(
            stderr.contains("but no binary has such counters: no count can be used"),
            "{stderr}"
        );
    }
    for (profile, binary) in [(&ir_raw, &ir), (&front_end_raw, &front_end)] {
        let (code, stdout, stderr) = run(profile, binary);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert!(!stdout.contains("never agree"), "{stdout}");
    }
}

/// Compares a profile with a binary; returns the JSON.
fn json(profile: &Path, binary: &Path) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    let command = command
        .arg("match")
        .arg(profile)
        .arg(binary)
        .args(["--format", "json"]);
    let ran = succeed(command);
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn functions_that_were_inlined_everywhere_are_not_gone() {
    let Some(clang) = on_path("clang-22") else {
        return skip("clang-22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let Some((_, raw)) = build(
        &clang,
        folder.path(),
        "instrumented",
        &["-O0", "-fprofile-generate"],
    ) else {
        return;
    };
    let plain = |name: &str, options: &[&str]| {
        let (program, _) = build(&clang, folder.path(), name, options)?;
        Some(json(&raw, &program)["counts"].clone())
    };
    // `square`, `small` and `pick` are static and have no code of their own at -O2.
    let Some(without) = plain("without", &["-O2"]) else {
        return;
    };
    assert_eq!(without["inlined"], 0, "{without}");
    assert_eq!(without["gone"], 0, "{without}");
    assert!(
        without["inlined_or_gone"].as_u64().unwrap() > 0,
        "{without}"
    );
    let Some(with) = plain("with", &["-O2", "-g"]) else {
        return;
    };
    // A function for which the optimiser left no instruction is not even in the debug info.
    let number = |counts: &serde_json::Value, key: &str| counts[key].as_u64().unwrap();
    assert!(number(&with, "inlined") > 0, "{with}");
    let missing = number(&with, "inlined") + number(&with, "gone");
    assert_eq!(missing, number(&without, "inlined_or_gone"), "{with}");
    assert_eq!(with["matched"], without["matched"]);
    let debug_info = |program: &Path| json(&raw, program)["binaries"][0]["debug_info"].clone();
    assert_eq!(debug_info(&folder.path().join("without")), "absent");
    assert_eq!(debug_info(&folder.path().join("with")), "read");

    // If no function is missing, debug info is not read.
    let (unoptimised, _) = build(&clang, folder.path(), "unoptimised", &["-O0", "-g"]).unwrap();
    assert_eq!(debug_info(&unoptimised), "unread");

    // If debug info is damaged, the inlined functions are not found, but all other functions are.
    for (options, section) in [
        (&["-O2", "-g"][..], ".debug_abbrev"),
        (&["-O2", "-g", "-gz"], ".debug_info"),
    ] {
        let (program, _) = build(&clang, folder.path(), "damaged", options).unwrap();
        let mut bytes = std::fs::read(&program).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let place = file.section_by_name(section).unwrap().file_range().unwrap();
        let start = usize::try_from(place.0).unwrap() + 24;
        bytes[start..start + 16].fill(0xff);
        std::fs::write(&program, bytes).unwrap();
        let found = json(&raw, &program);
        assert_eq!(found["binaries"][0]["debug_info"], "damaged", "{section}");
        assert!(found["binaries"][0]["debug_info_error"].is_string());
        assert_eq!(found["counts"]["matched"], without["matched"]);
    }
}

#[test]
fn checksums_of_pseudo_probes_decide_as_in_a_compiler() {
    let Some(clang) = on_path("clang-22") else {
        return skip("clang-22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let options = ["-O2", "-fpseudo-probe-for-profiling"];
    let Some((program, _)) = build(&clang, folder.path(), "probes", &options) else {
        return;
    };
    let data = std::fs::read(&program).unwrap();
    // The probe descriptor of `work` consists of the MD5 of its name, its checksum, the length of the name, and the
    // name.
    let end = data
        .windows(5)
        .position(|bytes| bytes == b"\x04work")
        .unwrap();
    let checksum = u64::from_le_bytes(data[end - 8..end].try_into().unwrap());
    for (checksum, matched) in [(checksum, 90), (checksum + 1, 0)] {
        // `pick` is inlined into `work`, whose samples are lost with it.
        let text = format!(
            "work:90:3\n 1: 50\n 2: pick:40\n  1: 40\n !CFGChecksum: {checksum}\nmissing:10:1\n 1: 10\n !CFGChecksum: 5\n"
        );
        let profile = folder.path().join("profile.txt");
        std::fs::write(&profile, text).unwrap();
        let found = json(&profile, &program);
        assert_eq!(found["unit"], "samples");
        assert_eq!(found["binaries"][0]["origin"], "probes");
        let counts = &found["counts"];
        assert_eq!(counts["total"], 100);
        // In the program, the local function has a unique name with a suffix. So the function `pick` of the profile is
        // not found.
        assert_eq!(counts["matched"], matched * 5 / 9, "{found}");
        assert_eq!(counts["changed"], 90 - matched, "{found}");
    }
}

/// A function that changed is recognised by its signature, which the MIP map of the new build has. `doctor` says how such a
/// program is run.
#[test]
fn signatures_of_mip_programs_are_compared() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let folder = tempfile::tempdir().unwrap();
    let profkit = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        let output = command.args(words).current_dir(&folder).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let clang = llvm.clang();
    let bodies = [
        "return g(x) * 2;",
        "int s = 0; while (x--) if (x & 1) s += g(x); return s;",
    ];
    for (name, body) in ["old", "new"].into_iter().zip(bodies) {
        let source = format!(
            "int g(int x) {{ return x + 1; }}\nint f(int x) {{ {body} }}\nint main(int c, char **v) {{ return v && f(c) > 9; }}\n"
        );
        let file = format!("{name}.c");
        std::fs::write(folder.path().join(&file), source).unwrap();
        let clang = clang.to_str().unwrap();
        let (code, said) = profkit(&[
            "mip",
            "cc",
            "--",
            clang,
            "-O1",
            "-fno-inline",
            &file,
            "-o",
            name,
        ]);
        assert_eq!((code, said.as_str()), (Some(0), ""));
    }
    let (_, said) = profkit(&["doctor", "old"]);
    let command = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("next "));
    let command = command
        .unwrap()
        .replace("profkit", env!("CARGO_BIN_EXE_profkit"));
    succeed(
        Command::new("sh")
            .args(["-c", command.trim()])
            .current_dir(&folder),
    );
    let (code, said) = profkit(&["match", "new.mip", "old", "--fail-under", "95"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = profkit(&["match", "new.mip", "new", "--fail-under", "95"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("f (same name, other hash)"), "{said}");
    assert!(
        said.contains("names and signatures from its MIP map"),
        "{said}"
    );
}

/// The profile of an instrumented build is matched against the optimised binaries that ship. The instrumented build is
/// the oracle: all of the profile fits, so no binary of the same sources may say that a function is gone.
#[test]
fn binaries_that_ship_are_judged_by_what_they_show() {
    let Some(clang) = on_path("clang-22") else {
        return skip("clang-22 is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Without early inlining, the profile has functions that the optimiser later inlines everywhere.
    let options = ["-O2", "-fprofile-generate", "-mllvm", "-disable-preinline"];
    let Some((instrumented, raw)) = build(&clang, at, "instrumented", &options) else {
        return;
    };
    let profile = ProfileFunctions::parse(&std::fs::read(&raw).unwrap()).unwrap();
    let compile = |name: &str, more: &[&str]| {
        let path = at.join(name);
        succeed(
            Command::new(&clang)
                .arg("-O2")
                .args(more)
                .args(["a.c", "b.c", "-o"])
                .arg(&path)
                .current_dir(at),
        );
        path
    };
    let shares = |binary: &Path| {
        let mut binaries = BinaryFunctions::for_profile(&profile);
        binaries.open(binary).unwrap();
        binaries.find_inlined(&profile);
        let report = MatchReport::new("raw", &profile, &binaries, 20);
        let is_stripped = binaries.binaries[0].is_stripped;
        (
            MatchShares::new(&profile, &binaries),
            report.gate(80.0),
            is_stripped,
        )
    };
    let (whole, gate, _) = shares(&instrumented);
    assert_eq!(whole.counts.matched, whole.counts.total);
    assert_eq!(gate, None);

    let (debug, gate, _) = shares(&compile("debug", &["-g"]));
    let counts = debug.counts;
    // Of `small`, the optimiser leaves no instruction, so that not even the debug info has it.
    let lost: Vec<_> = debug
        .hot_lost
        .iter()
        .filter(|lost| lost.outcome == Outcome::Unknown)
        .collect();
    assert!(
        lost.iter().all(|lost| lost.name == b"a.c;small"),
        "{debug:?}"
    );
    assert!(counts.inlined > 0, "the compiler inlines something");
    assert_eq!(gate, None);

    let (plain, gate, is_stripped) = shares(&compile("plain", &[]));
    assert_eq!(plain.counts.matched, counts.matched);
    assert_eq!(plain.counts.inlined_or_gone, counts.inlined + counts.gone);
    assert_eq!((plain.counts.gone, is_stripped), (0, false));
    let hot = plain.hot_lost.iter().map(|lost| lost.outcome);
    assert!(hot.clone().all(|outcome| outcome == Outcome::InlinedOrGone));
    let gate = gate.unwrap();
    assert!(
        gate.starts_with("cannot be judged: the binary has symbols only"),
        "{gate}"
    );

    let stripped = at.join("stripped");
    // `-rdynamic` exports functions: without any, `match` refuses a stripped binary.
    std::fs::copy(compile("exported", &["-rdynamic"]), &stripped).unwrap();
    succeed(Command::new("strip").arg(&stripped));
    let (stripped, gate, is_stripped) = shares(&stripped);
    assert_eq!(stripped.counts.gone, 0);
    assert!(is_stripped);
    let gate = gate.unwrap();
    assert!(
        gate.starts_with("cannot be judged: a binary is stripped"),
        "{gate}"
    );
}
