//! What programs and their builds may rely on, because LLVM's runtime does the same: for example, every linker can link
//! the runtime, and a program with profiles in memory needs no libc.
use crate::support::{ran, said, Program, ENDS};
use profkit_testkit::{on_path, or_skip, skip};
use std::fs;
use std::process::Command;

#[test]
fn every_linker_gives_the_same_counts() {
    for linker in ["bfd", "gold", "lld"] {
        let name = if linker == "lld" {
            "ld.lld-22"
        } else {
            &format!("ld.{linker}")
        };
        let Some(path) = on_path(name) else {
            skip(&format!("no {name}"));
            continue;
        };
        for kind in ["-pie", "-no-pie", "-static"] {
            let option = format!("--ld-path={}", path.display());
            let program = or_skip!(Program::new(ENDS, &[&option, kind, "-Wl,--gc-sections"]));
            let output = program.run("out/%m.profraw", "fork", &[]);
            assert_eq!(said(&output), "", "{linker} {kind}");
            assert_eq!(program.counts("work"), "2 [115, 57]", "{linker} {kind}");
        }
    }
}

/// A program that only wants its profile in memory.
const IN_MEMORY: &str = r#"
int __llvm_profile_runtime;
unsigned long __llvm_profile_get_size_for_buffer(void);
int __llvm_profile_write_buffer(char *);
int __llvm_profile_merge_from_buffer(const char *, unsigned long);
char buffer[10000];
int main(void) {
  unsigned long size = __llvm_profile_get_size_for_buffer();
  return size > sizeof buffer || __llvm_profile_write_buffer(buffer) || __llvm_profile_merge_from_buffer(buffer, size);
}
"#;

#[test]
fn a_program_with_profiles_in_memory_uses_nothing_of_libc() {
    let Some(nm) = on_path("nm") else {
        skip("no nm");
        return;
    };
    let program = or_skip!(Program::new(IN_MEMORY, &[]));
    ran(&mut program.command("out/a.profraw", ""));
    assert_eq!(program.files(), [] as [std::path::PathBuf; 0]);
    let listed = ran(Command::new(nm).arg("-u").arg(program.path("program")));
    let listed = String::from_utf8(listed.stdout).unwrap();
    for line in listed.lines() {
        let name = line.trim_start().trim_start_matches(['w', 'U', ' ', 'v']);
        let known = [
            "__libc_start_main",
            "__cxa_finalize",
            "__gmon_start__",
            "_ITM_",
        ];
        assert!(known.iter().any(|known| name.starts_with(known)), "{line}");
    }
}

/// A program that calls 100 functions through one pointer.
const TARGETS: &str = r#"
#define TEN(name) F(name##0) F(name##1) F(name##2) F(name##3) F(name##4) F(name##5) F(name##6) F(name##7) F(name##8) F(name##9)
#define ALL TEN(a) TEN(b) TEN(c) TEN(d) TEN(e) TEN(f) TEN(g) TEN(h) TEN(i) TEN(j)
#define F(name) void name(void) {}
ALL
#undef F
#define F(name) name,
void (*targets[])(void) = {ALL};
int main(void) {
  for (int n = 0; n < 100; n++) targets[n]();
  return 0;
}
"#;

#[test]
fn a_site_has_24_values_in_the_room_of_the_compiler_and_255_elsewhere() {
    let limit = "LLVM_VP_MAX_NUM_VALS_PER_SITE";
    for (options, variables, expected) in [
        ("true", &[][..], 24),
        ("true", &[(limit, "60")], 60),
        ("false", &[], 100),
        ("false", &[(limit, "24")], 24),
        ("false", &[(limit, "10")], 10),
    ] {
        let option = format!("-vp-static-alloc={options}");
        let words = [
            "-fno-profile-instr-generate",
            "-fprofile-generate",
            "-mllvm",
            &option,
        ];
        let program = or_skip!(Program::new(TARGETS, &words));
        program.run("out/a.profraw", "", variables);
        let merged = program.path("a.profdata");
        ran(Command::new(program.llvm.profdata())
            .arg("merge")
            .args(program.files())
            .arg("-o")
            .arg(&merged));
        let shown = ran(Command::new(program.llvm.profdata())
            .args(["show", "--ic-targets", "--function=main"])
            .arg(&merged));
        let shown = String::from_utf8(shown.stdout).unwrap();
        let values = shown
            .lines()
            .filter(|line| line.trim_start().starts_with("["))
            .count();
        assert_eq!(values, expected, "{options} {variables:?}: {shown}");
    }
}

/// A program that walks over its records, and dumps its profile twice.
const WALK: &str = r#"
char *__llvm_profile_begin_data(void);
char *__llvm_profile_end_data(void);
char *__llvm_profile_iterate_data(char *);
int __llvm_profile_dump(void);
int work(void) { return 3; }
int main(void) {
  int count = 0;
  for (char *data = __llvm_profile_begin_data(); data < __llvm_profile_end_data(); data = __llvm_profile_iterate_data(data))
    count++;
  return count != 2 || __llvm_profile_dump() || work() != 3;
}
"#;

#[test]
fn a_walk_over_records_ends_and_a_dump_is_the_last_write() {
    let program = or_skip!(Program::new(WALK, &[]));
    let output = program.run("out/a.profraw", "", &[]);
    assert!(output.status.success());
    assert_eq!(
        said(&output),
        "LLVM Profile Note: Profile data not written to file: already written\n"
    );
    assert_eq!(program.counts("work"), "0 []");
}

/// A program that calls `work` three times, then sets an open file for its profile, and then calls `work` twice. The
/// first three calls are counted in the file that `LLVM_PROFILE_FILE` names, the other two in the open file.
const OPEN_FILE: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
int __llvm_profile_set_file_object(FILE *, int);
__attribute__((noinline)) void work(void) { __asm__ volatile(""); }
int main(int count, char **words) {
  for (int n = 0; n < 3; n++) work();
  FILE *file = fopen("out/open.profraw", "a+b");
  int result = __llvm_profile_set_file_object(file, atoi(words[1]));
  for (int n = 0; n < 2; n++) work();
  printf("%d\n", result);
  fflush(stdout);
  raise(SIGKILL);
}
"#;

#[test]
fn a_continuous_program_goes_on_in_an_open_file() {
    let program = or_skip!(Program::new(
        OPEN_FILE,
        &["-mllvm", "-runtime-counter-relocation"]
    ));
    let (named, open) = (
        program.path("out/named.profraw"),
        program.path("out/open.profraw"),
    );
    for runs in 1..=3 {
        let output = program.run("out/named%c.profraw", "1", &[]);
        assert_eq!(
            (said(&output), &*output.stdout),
            (String::new(), &b"0\n"[..])
        );
        assert_eq!(
            program.counts_of(std::slice::from_ref(&named), &["work"]),
            "3 []"
        );
        let counts = program.counts_of(std::slice::from_ref(&open), &["work"]);
        assert_eq!(counts, format!("{} []", 2 * runs));
    }
    fs::write(&open, "rubbish").unwrap();
    let output = program.run("out/named%c.profraw", "1", &[]);
    assert_eq!(
        said(&output),
        "LLVM Profile Error: Invalid profile data to merge: the open file is damaged or of another program\n"
    );
    assert_eq!(output.stdout, b"1\n");
    assert_eq!(fs::read(&open).unwrap(), b"rubbish");
    assert_eq!(
        program.counts_of(std::slice::from_ref(&named), &["work"]),
        "5 []"
    );
    let output = program.run("out/named%c.profraw", "0", &[]);
    assert!(
        said(&output).contains("not supported in continuous sync mode when merging is disabled"),
        "{}",
        said(&output)
    );
    assert_eq!(output.stdout, b"1\n");
    assert_eq!(program.counts_of(&[named], &["work"]), "5 []");
}
