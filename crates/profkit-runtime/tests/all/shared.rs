//! Processes and threads that use one profile at the same time: nothing is lost, and nothing is counted twice.
use crate::support::{ran, said, Program};
use profkit_testkit::or_skip;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

/// The number of calls that each thread of [`VALUES`] makes.
const CALLS: u32 = 3_000_000;

/// Four threads call functions through pointers, each at a site of its own. Another thread writes the profile
/// meanwhile, again and again.
const VALUES: &str = r#"
#include <pthread.h>
#include <unistd.h>
int __llvm_profile_write_file(void);
static int ends, writes;
#define TARGET(n) __attribute__((noinline)) int target##n(int x) { return x + n; }
TARGET(0) TARGET(1) TARGET(2) TARGET(3) TARGET(4) TARGET(5)
int (*volatile targets[6])(int) = {target0, target1, target2, target3, target4, target5};
#define THREAD(n) __attribute__((noinline)) void *site##n(void *sum) { \
  for (int i = 0; i < CALLS; i++) *(int *)sum += targets[i % 6](i); \
  return sum; }
THREAD(0) THREAD(1) THREAD(2) THREAD(3)
static void *write_again(void *flag) {
  while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) { __llvm_profile_write_file(); writes++; }
  return flag;
}
int main(void) {
  pthread_t threads[4], writer;
  int sums[4];
  pthread_create(&writer, 0, write_again, 0);
  pthread_create(&threads[0], 0, site0, &sums[0]);
  pthread_create(&threads[1], 0, site1, &sums[1]);
  pthread_create(&threads[2], 0, site2, &sums[2]);
  pthread_create(&threads[3], 0, site3, &sums[3]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
  pthread_join(writer, 0);
  return writes < 10;
}
"#;

/// Returns for each site of an indirect call the targets and how often they were called, summed over all files, as
/// llvm-profdata shows them.
fn call_targets(program: &Program) -> Vec<Vec<(String, u64)>> {
    let merged = program.path("merged.profdata");
    ran(Command::new(program.llvm.profdata())
        .arg("merge")
        .args(program.files())
        .arg("-o")
        .arg(&merged));
    let shown = ran(Command::new(program.llvm.profdata())
        .args(["show", "--ic-targets", "--all-functions"])
        .arg(&merged));
    let shown = String::from_utf8(shown.stdout).unwrap();
    let mut sites = Vec::new();
    for function in shown.split("Indirect Target Results:").skip(1) {
        let mut targets = Vec::new();
        for line in function.lines() {
            let fields: Vec<&str> = line.trim().split(", ").collect();
            if let ["[  0" | "[ 0", target, count] = fields[..] {
                let count = count.split_whitespace().next().unwrap();
                targets.push((target.trim().to_owned(), count.parse().unwrap()));
            }
        }
        targets.sort();
        if !targets.is_empty() {
            sites.push(targets);
        }
    }
    sites
}

#[test]
fn values_that_threads_record_while_another_writes_are_all_counted_once() {
    let calls = format!("-DCALLS={CALLS}");
    // With the second option, nodes come from new memory and not from the compiler's pool.
    for nodes in ["-vp-static-alloc=true", "-vp-static-alloc=false"] {
        let options = [
            &*calls,
            "-pthread",
            "-fprofile-update=atomic",
            "-mllvm",
            "-enable-value-profiling",
            "-mllvm",
            nodes,
        ];
        let program = or_skip!(Program::new(VALUES, &options));
        for runs in 1..3 {
            let output = program.run("out/%m.profraw", "", &[]);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(said(&output), "");
            assert_eq!(program.files().len(), 1);
            let each = u64::from(CALLS) / 6 * runs;
            let all: Vec<(String, u64)> = (0..6).map(|n| (format!("target{n}"), each)).collect();
            assert_eq!(call_targets(&program), vec![all; 4], "{nodes} {runs}");
        }
    }
}

/// Each byte of the input is a request. It is answered after it was counted.
const REQUESTS: &str = r#"
#include <unistd.h>
__attribute__((noinline)) int request(int x) { return x * 3 + 1; }
int main(void) {
  char byte;
  while (read(0, &byte, 1) == 1) { byte = request(byte); if (write(1, &byte, 1) != 1) break; }
  return 0;
}
"#;

#[test]
fn processes_that_replace_a_pool_do_not_take_it_from_those_that_count_in_it() {
    let options = ["-mllvm", "-runtime-counter-relocation"];
    let program = or_skip!(Program::new(REQUESTS, &options));
    let start = |name: &str| {
        program
            .command(name, "")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut server = start("out/%m%c.profraw");
    let mut input = server.stdin.take().unwrap();
    let mut output = server.stdout.take().unwrap();
    let mut requests = |count: usize| {
        input.write_all(&vec![7; count]).unwrap();
        output.read_exact(&mut vec![0; count]).unwrap();
    };
    requests(100);
    // Other processes of the same program add their counts to a pool when they end (`%m`), before and after the server
    // counts in its mapped pool (`%m%c`).
    for round in 1..4 {
        for _ in 0..5 {
            let mut other = start("out/%m.profraw");
            other.stdin.take().unwrap().write_all(&[7; 10]).unwrap();
            let output = other.wait_with_output().unwrap();
            assert!(output.status.success() && output.stdout.len() == 10);
        }
        requests(100);
        let counts = program.counts_of(&program.files(), &["request"]);
        assert_eq!(counts, format!("{} []", 100 + round * 150));
    }
    server.kill().unwrap();
    server.wait().unwrap();
    // Later processes of the two kinds (with `%m%c` and with `%m`) add to the two existing files.
    for name in ["out/%m%c.profraw", "out/%m.profraw"] {
        let mut other = start(name);
        other.stdin.take().unwrap().write_all(&[7; 1000]).unwrap();
        assert!(other.wait_with_output().unwrap().status.success());
    }
    assert_eq!(program.files().len(), 2);
    assert_eq!(program.counts("request"), "2550 []");
}

/// A program whose targets of indirect calls come after many other functions.
const FAR_TARGETS: &str = r#"
volatile int sink;
#define F(n) KIND __attribute__((noinline)) void f##n(int x) { if (x) sink++; }
#define TEN(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define CALL(n) f##n(1);
#define CALLS(n) CALL(n##0) CALL(n##1) CALL(n##2) CALL(n##3) CALL(n##4) CALL(n##5) CALL(n##6) CALL(n##7) CALL(n##8) CALL(n##9)
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9)
int target0(int x) { return x + sink; }
int target1(int x) { return x - sink; }
int (*volatile targets[])(int) = {target0, target1};
int main(void) {
  CALLS(1) CALLS(2) CALLS(3) CALLS(4) CALLS(5) CALLS(6) CALLS(7) CALLS(8) CALLS(9)
  int sum = 0;
  for (int i = 0; i < 30; i++) sum += targets[i % 3 == 0](i);
  return sum == 42;
}
"#;

#[test]
fn targets_after_many_functions_keep_their_names_in_a_pool() {
    // The records of static functions have no address.
    for kind in ["-DKIND=", "-DKIND=static"] {
        // With the first option, the build id is long enough to identify the build, so the runtime does not compare all
        // records of the pool. With the second, it compares all.
        for id in ["-Wl,--build-id=sha1", "-Wl,--build-id=none"] {
            let options = [
                kind,
                id,
                "-pie",
                "-fPIE",
                "-fno-profile-instr-generate",
                "-fprofile-generate",
            ];
            let program = or_skip!(Program::new(FAR_TARGETS, &options));
            for runs in 1..4 {
                // Each process is loaded at another address, so its functions have other addresses.
                let output = program.run("out/%m.profraw", "", &[]);
                assert_eq!(said(&output), "");
                assert_eq!(program.files().len(), 1);
                let targets = [("target0", 20), ("target1", 10)];
                let targets = targets.map(|(name, count)| (name.to_owned(), count * runs));
                assert_eq!(call_targets(&program), [targets], "{kind} {id} {runs}");
            }
        }
    }
}
