//! What a hostile or unlucky user does to a program that adds its counts to a pool (a profile that several runs share):
//! damaged and gigantic pools, closed descriptors, no memory, names of things that are no files. The program goes on,
//! and what was in the pool is kept.
use crate::support::{said, Program};
use profkit_testkit::or_skip;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A program with many functions and with value data, so that the profile is too large to be read at once. With the
/// argument "no-memory" the program can get no more memory.
const LARGE: &str = r#"
#include <string.h>
#include <sys/resource.h>
volatile int sink;
#define F(n) __attribute__((noinline)) void f##n(int x) { if (x) sink++; }
#define TEN(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) TEN(12) TEN(13) TEN(14) TEN(15)
void (*volatile targets[3])(int) = {f10, f20, f30};
__attribute__((noinline)) void work(int n) {
  for (int i = 0; i < n; i++) { if (i % 2) sink++; targets[i % 3](i); }
}
int main(int count, char **words) {
  work(100);
  if (count > 1 && !strcmp(words[1], "no-memory")) {
    struct rlimit none = {1, 1};
    setrlimit(RLIMIT_AS, &none);
  }
  return 0;
}
"#;

fn program() -> Result<(Program, PathBuf, Vec<u8>), String> {
    let program = Program::new(LARGE, &["-mllvm", "-enable-value-profiling"])?;
    assert_eq!(said(&program.run(POOL, "", &[])), "");
    let pool = program.files().pop().unwrap();
    let bytes = fs::read(&pool).unwrap();
    assert!(bytes.len() > 3 * 4096);
    Ok((program, pool, bytes))
}

const POOL: &str = "out/%m.profraw";
const ONE_RUN: &str = "1 [100, 50]";
const TWO_RUNS: &str = "2 [200, 100]";

fn shell(program: &Program, script: &str) -> Output {
    Command::new("sh")
        .args(["-c", script])
        .current_dir(program.path(""))
        .env("LLVM_PROFILE_FILE", POOL)
        .output()
        .unwrap()
}

#[test]
fn a_pool_that_is_cut_or_longer_is_kept() {
    let (program, pool, whole) = or_skip!(program());
    let mut sizes: Vec<usize> = (1..whole.len()).step_by(whole.len() / 40).collect();
    sizes.extend([4095, 4096, 4097, whole.len() - 8, whole.len() - 1]);
    sizes.extend([whole.len() + 1, whole.len() + 8, whole.len() + 5000]);
    for size in sizes {
        let mut bytes = whole.clone();
        bytes.resize(size, 0);
        fs::write(&pool, &bytes).unwrap();
        let output = program.run(POOL, "", &[]);
        assert!(output.status.success(), "{size}: {output:?}");
        assert!(
            said(&output).contains("is damaged or of another program. It is kept"),
            "{size}: {output:?}"
        );
        assert!(fs::read(&pool).unwrap() == bytes, "{size}");
        fs::remove_file(&pool).unwrap();
        assert_eq!(program.counts("work"), ONE_RUN, "{size}");
    }
    // A sparse file: its zeros take no room on the disk, but would not fit into memory.
    let file = fs::File::create(&pool).unwrap();
    file.set_len(1 << 42).unwrap();
    let output = program.run(POOL, "", &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::metadata(&pool).unwrap().len(), 1 << 42);
    fs::remove_file(&pool).unwrap();
    assert_eq!(program.counts("work"), ONE_RUN);
    // A complete profile, followed by zeros. The file has the same size as the sparse file above.
    fs::write(&pool, &whole).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&pool).unwrap();
    file.set_len(1 << 42).unwrap();
    let output = program.run(POOL, "", &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::metadata(&pool).unwrap().len(), 1 << 42);
    fs::remove_file(&pool).unwrap();
    assert_eq!(program.counts("work"), ONE_RUN);
}

#[test]
fn a_pool_with_wrong_bytes_never_stops_the_program() {
    let (program, pool, whole) = or_skip!(program());
    let (mut kept, mut used) = (0, 0);
    let step = profkit_testkit::short_or_whole(211, 13);
    for at in (0..whole.len() - 8).step_by(step) {
        for byte in [0, 0xff] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].fill(byte);
            fs::write(&pool, &bytes).unwrap();
            let output = program.run(POOL, "", &[]);
            assert!(output.status.success(), "{at}: {output:?}");
            if said(&output).is_empty() {
                // The changed bytes are in counts or addresses. No check can find this, so the pool was used.
                used += 1;
                assert_eq!(program.files().len(), 1, "{at}");
            } else {
                assert!(fs::read(&pool).unwrap() == bytes, "{at}");
                fs::remove_file(&pool).unwrap();
                assert_eq!(program.counts("work"), ONE_RUN, "{at}");
                kept += 1;
            }
        }
    }
    assert!(kept > 5 && used > 5, "{kept} {used}");
}

#[test]
fn closed_and_used_up_descriptors() {
    let (program, pool, whole) = or_skip!(program());
    // Standard input, output and error are closed, so the files that the runtime opens get the descriptors 0 to 2.
    let output = shell(&program, "./program <&- >&- 2>&-");
    assert!(output.status.success(), "{output:?}");
    let counts = program.counts_of(std::slice::from_ref(&pool), &["work"]);
    assert_eq!(counts, TWO_RUNS);
    // If one descriptor is free, the pool can be opened but no temporary file. If none is free, no file can be opened.
    for limit in [3, 4] {
        fs::write(&pool, &whole).unwrap();
        let script = format!("ulimit -n {limit}; exec /lib64/ld-linux-x86-64.so.2 ./program");
        let started = shell(&program, &script);
        // The loader itself needs a descriptor.
        if !started.status.success() {
            continue;
        }
        assert!(
            said(&started).contains("Failed to write file"),
            "{limit}: {started:?}"
        );
        assert!(fs::read(&pool).unwrap() == whole, "{limit}");
        assert_eq!(program.files(), std::slice::from_ref(&pool));
    }
}

#[test]
fn no_memory_keeps_the_pool() {
    let (program, pool, whole) = or_skip!(program());
    let output = program.run(POOL, "no-memory", &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(said(&output).contains("(error 12)"), "{output:?}");
    assert!(fs::read(&pool).unwrap() == whole);
    assert_eq!(program.files(), std::slice::from_ref(&pool));
}

#[test]
fn a_pool_that_is_no_file() {
    let (program, pool, _) = or_skip!(program());
    fs::remove_file(&pool).unwrap();
    fs::create_dir(&pool).unwrap();
    let output = program.run(POOL, "", &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(said(&output).contains("it is a folder"), "{output:?}");
    fs::remove_dir(&pool).unwrap();
    std::os::unix::net::UnixListener::bind(&pool).unwrap();
    let output = program.run(POOL, "", &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(said(&output).contains("Failed to write file"), "{output:?}");
}
