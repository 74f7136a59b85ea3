//! Heap profiles of several builds of a program: contexts that meet, and contexts that an edit has lost. What LLVM's tools
//! make of profiles with a portable section.
use super::{Heap, profkit, profkit_ok};
use profkit_testkit::{HEAP_FLAGS, HEAP_LINK_FLAGS, succeed};
use serde_json::Value;
use std::process::Command;

const SOURCE: &str = "
#include <stdlib.h>
static inline __attribute__((always_inline)) char *wrap(int n) { return malloc(n); }
__attribute__((noinline)) char *idle(void) {
  return wrap(1000);
}
__attribute__((noinline)) char *busy(int n) {
  char *text = malloc(n);
  return text;
}
int main(void) {
  char *kept = idle();
  for (int i = 0; i < 10; i++) {
    char *text = busy(100);
    for (int j = 0; j < 100; j++)
      ((volatile char *)text)[j] = i;
    free(text);
  }
  *(volatile char *)kept = 1;
  free(kept);
  return 0;
}
";

/// Compiles a version of the program.
fn build(heap: &Heap, name: &str, source: &str) {
    // Both versions have the same file name, so that their locations differ in lines alone.
    std::fs::write(heap.folder().join("source.c"), source).unwrap();
    succeed(
        Command::new(heap.llvm.clang())
            .args(HEAP_FLAGS)
            .args(HEAP_LINK_FLAGS)
            .args(["-Wl,--build-id", "source.c", "-o", name])
            .current_dir(heap.folder()),
    );
}

fn json(heap: &Heap, args: &[&str]) -> Value {
    let output = profkit(heap.folder(), args);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn equal_stacks_of_two_builds_are_one_context() {
    let Some(heap) = Heap::new(22) else { return };
    build(&heap, "one", SOURCE);
    build(
        &heap,
        "two",
        &format!("{SOURCE}\nint more(int x) {{ return 3 * x; }}\n"),
    );
    for name in ["one", "two"] {
        heap.dump(name, name);
    }
    let total = |file: &str| {
        let total = &json(&heap, &["show", file, "--memory", "--format", "json"])["total"];
        ["contexts", "allocations", "bytes"].map(|key| total[key].as_u64().unwrap())
    };
    let merge = |inputs: &[&str], output: &str, more: &[&str]| {
        let mut args = vec!["merge", "-q", "-o", output, "--binaries", "."];
        args.extend(inputs);
        args.extend(more);
        profkit_ok(heap.folder(), &args);
        total(output)
    };
    let dumps = ["one.memprofraw", "two.memprofraw"];
    let [contexts, allocations, bytes] = merge(&dumps[..1], "one.profdata", &[]);
    assert_eq!([contexts, allocations, bytes], [2, 11, 2000]);
    let twice = [contexts, 2 * allocations, 2 * bytes];
    merge(&dumps[1..], "two.profdata", &[]);
    assert_eq!(merge(&dumps, "at-once", &[]), twice);
    // The compiler has unrolled the loop. With --llvm the copies of the call stay apart, but those of two builds meet.
    let [copies, ..] = merge(&dumps[..1], "copies", &["--llvm=19"]);
    assert_eq!(
        merge(&dumps, "for-19", &["--llvm=19"]),
        [copies, 2 * allocations, 2 * bytes]
    );
    let alone = ["one.profdata", "two.profdata"];
    assert_eq!(merge(&alone, "one-by-one", &[]), twice);
    // A portable profile of both builds has the names and lines of both.
    let args = ["--portable"];
    merge(&dumps, "portable", &args);
    let shown = json(&heap, &["show", "portable", "--format", "json"]);
    for context in shown["contexts"].as_array().unwrap() {
        for frame in context["stack"].as_array().unwrap() {
            assert!(
                frame["function"].is_string() && frame["file"].is_string(),
                "{frame}"
            );
        }
    }
}

#[test]
fn a_match_finds_exactly_what_was_edited() {
    let Some(heap) = Heap::new(22) else { return };
    build(&heap, "old", SOURCE);
    heap.dump("old", "old");
    let args = [
        "merge",
        "-q",
        "old.memprofraw",
        "--binaries",
        "old",
        "-o",
        "heap.profdata",
    ];
    profkit_ok(heap.folder(), &args);
    let matched = |program: &str| {
        let args = ["match", "heap.profdata", program, "--format", "json"];
        let found = json(&heap, &args);
        let lost = found["lost_frames"].as_array().unwrap().iter().map(|lost| {
            let name = lost["function"].as_str().unwrap_or("?");
            format!(
                "{name} +{} {}",
                lost["line_offset"],
                lost["loss"].as_str().unwrap()
            )
        });
        let sums =
            ["kept", "callers_gone", "gone"].map(|key| found[key]["bytes"].as_u64().unwrap());
        (sums, lost.collect::<Vec<_>>())
    };
    assert_eq!(matched("old"), ([2000, 0, 0], vec![]));
    // Lines before and after the functions change nothing, and neither does inlining: the first lines of functions move.
    let moved = SOURCE.replace(
        "static inline",
        "int more(int x) {\n  return 3 * x;\n}\nstatic inline",
    );
    build(&heap, "moved", &moved);
    assert_eq!(matched("moved"), ([2000, 0, 0], vec![]));
    let inlined = SOURCE.replace("__attribute__((noinline)) char *idle", "static char *idle");
    build(&heap, "inlined", &inlined);
    assert_eq!(matched("inlined"), ([2000, 0, 0], vec![]));
    // The allocation of busy moves by a line.
    let edited = SOURCE.replace(
        "  char *text = malloc(n);",
        "  n += 1;\n  char *text = malloc(n);",
    );
    build(&heap, "allocation", &edited);
    assert_eq!(
        matched("allocation"),
        ([1000, 0, 1000], vec!["busy +1 line".to_owned()])
    );
    // A caller of an allocation moves by a line, and another one calls a function with another name.
    let edited = SOURCE
        .replace("  char *kept", "  int more = 0;\n  char *kept")
        .replace("busy(", "hurry(");
    build(&heap, "callers", &edited);
    let (sums, lost) = matched("callers");
    assert_eq!(sums, [0, 1000, 1000]);
    assert!(lost.contains(&"main +1 line".to_owned()), "{lost:?}");
    assert!(
        lost.iter().any(|lost| lost.ends_with("function")),
        "{lost:?}"
    );
}

#[test]
fn tools_and_compilers_of_llvm_pass_over_the_portable_section() {
    for release in [19, 22] {
        let Some(heap) = Heap::new(release) else {
            continue;
        };
        build(&heap, "program", SOURCE);
        heap.dump("program", "program");
        let llvm = format!("--llvm={release}");
        let inputs = ["merge", "-q", "program.memprofraw", "--binaries", "program"];
        let merge = |more: &[&str]| profkit_ok(heap.folder(), &[&inputs[..], more].concat());
        for version in ["2", "3"] {
            let version = format!("--memprof-version={version}");
            let full = "--memprof-full-schema";
            merge(&[&llvm, &version, full, "-o", "plain"]);
            merge(&[&llvm, &version, "--portable", "-o", "portable"]);
            let ir = |profile: &str| {
                std::fs::copy(heap.folder().join(profile), heap.folder().join("used")).unwrap();
                let mut clang = Command::new(heap.llvm.clang());
                clang
                    .args(["-O2", "-gmlt", "-fdebug-info-for-profiling"])
                    .args(["-fmemory-profile-use=used", "-emit-llvm", "-S", "-o", "-"])
                    .args(["-mllvm", "-memprof-ave-lifetime-cold-threshold=0"]);
                let output = succeed(clang.arg("source.c").current_dir(heap.folder()));
                String::from_utf8(output.stdout).unwrap()
            };
            assert_eq!(ir("plain"), ir("portable"), "LLVM {release}");
            let shown = |profile: &str| {
                let mut show = Command::new(heap.llvm.profdata());
                show.args(["show", "--all-functions", profile]);
                succeed(show.current_dir(heap.folder())).stdout
            };
            assert_eq!(shown("plain"), shown("portable"), "LLVM {release}");
        }
    }
}
