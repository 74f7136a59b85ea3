//! Programs that do not simply end: threads, forks, exec, signals, libraries that come and go, sanitizers. Each call is
//! counted once.
use crate::support::{said, Program, ENDS};
use profkit_testkit::or_skip;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that makes the runtime write the profile at signals 15 (SIGTERM) and 10 (SIGUSR1).
const SIGNALS: (&str, &str) = ("PROFKIT_PROFILE_SIGNALS", "15,10");
/// The option that makes counters exact although threads and signal handlers use them at the same time.
const ATOMIC: &str = "-fprofile-update=atomic";

#[test]
fn exec_loses_what_was_not_written_before_and_doubles_nothing() {
    let program = or_skip!(Program::new(ENDS, &[]));
    for name in ["out/a.profraw", "out/%p.profraw", "out/%m.profraw"] {
        // With `fork-exec`, the parent, its forked child, and the program that the child executes call `work` once
        // each. The child's call is lost, because exec drops its counts.
        program.run(name, "fork-exec", &[]);
        assert_eq!(program.counts("work"), "2 [200, 100]", "{name}");
        program.run(name, "exec", &[]);
        assert_eq!(program.counts("work"), "1 [100, 50]", "{name}");
        // With `_exit` nothing is written.
        program.run(name, "_exit", &[]);
        for file in program.files() {
            assert_eq!(fs::read(&file).unwrap(), b"", "{name}");
            fs::remove_file(file).unwrap();
        }
    }
}

/// A program whose threads count and fork, while one thread writes the profile again and again. `counted` is called 4 *
/// 1000 times by threads and 40 times by children.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int __llvm_profile_write_file(void);
static int ends;
__attribute__((noinline)) int counted(int x) { return x + 1; }
static void *count(void *flag) {
  for (int i = 0; i < 1000; i++) {
    counted(i);
    if (i % 100 == 0) {
      pid_t child = fork();
      if (!child) { counted(i); exit(0); }
      waitpid(child, 0, 0);
    }
  }
  return flag;
}
static void *writes(void *flag) {
  while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) { __llvm_profile_write_file(); usleep(100); }
  return flag;
}
int main(void) {
  pthread_t threads[4], writer;
  pthread_create(&writer, 0, writes, 0);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, count, 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
  pthread_join(writer, 0);
  return 0;
}
"#;

#[test]
fn threads_that_fork_while_another_writes_lose_no_count() {
    let program = or_skip!(Program::new(THREADS, &[ATOMIC, "-pthread"]));
    for name in ["out/%m.profraw", "out/%2m.profraw"] {
        let mut child = program.command(name, "").spawn().unwrap();
        let status = wait(&mut child, 120);
        assert!(status.success(), "{status:?}");
        assert_eq!(program.counts("counted"), "4040 []", "{name}");
    }
}

/// Waits for a process, and fails if it takes too long.
fn wait(child: &mut std::process::Child, seconds: u64) -> std::process::ExitStatus {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("a process does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A server with four processes that were forked in advance. Each byte of its input is a request, and is answered after
/// the request was counted.
const SERVER: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int request(int x) { return x * 3 + 1; }
__attribute__((noinline)) void start(int x) { if (x < 0) _exit(1); }
int main(void) {
  for (int i = 0; i < 10; i++) start(i);
  for (int i = 0; i < 4; i++) {
    if (fork() == 0) {
      char byte;
      start(i);
      if (write(1, "s", 1) != 1) return 1;
      while (read(0, &byte, 1) == 1) { byte = request(byte); if (write(1, &byte, 1) != 1) break; }
      return 0;
    }
  }
  while (wait(0) > 0) {}
  return 0;
}
"#;

/// Starts the server in a process group of its own, sends requests, and reads the answers to all of them. Then the whole
/// group gets a signal.
fn serve(program: &Program, name: &str, requests: usize, signal: &str) {
    use std::os::unix::process::CommandExt as _;
    let mut server = program
        .command(name, "")
        .env(SIGNALS.0, SIGNALS.1)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = server.stdout.take().unwrap();
    // Each child says that it was started.
    output.read_exact(&mut [0; 4]).unwrap();
    let mut answers = vec![0; 50];
    for _ in 0..requests / 50 {
        input.write_all(&[7; 50]).unwrap();
        output.read_exact(&mut answers).unwrap();
    }
    let group = format!("-{}", server.id());
    let sent = Command::new("kill").args([signal, "--", &group]).status();
    assert!(sent.unwrap().success());
    let status = wait(&mut server, 60);
    assert!(status.signal().is_some(), "{status:?}");
    // Waits for the children, which end a little later than their parent: the output ends when all of them have ended.
    let _ = output.read_to_end(&mut answers);
}

#[test]
fn a_server_that_is_killed_loses_no_request() {
    let continuous = [ATOMIC, "-mllvm", "-runtime-counter-relocation"];
    let program = or_skip!(Program::new(SERVER, &[]));
    let functions = ["request", "start"];
    // SIGTERM: each process writes its profile and ends.
    for name in ["out/%p.profraw", "out/%m.profraw", "out/a.profraw"] {
        serve(&program, name, 2000, "-TERM");
        let counts = program.counts_of(&program.files(), &functions);
        assert_eq!(counts, "2000 [], 14 [0]", "{name}");
        let files = program.files().len();
        assert_eq!(files, if name.contains("%p") { 5 } else { 1 }, "{name}");
        program.clear();
    }
    // In continuous mode, SIGKILL loses no counts: they are in the mapped file, which parent and children share.
    program.compile(SERVER, "program", &continuous);
    for name in ["out/%p%c.profraw", "out/%m%c.profraw", "out/a%c.profraw"] {
        serve(&program, name, 2000, "-KILL");
        let counts = program.counts_of(&program.files(), &functions);
        assert_eq!(counts, "2000 [], 14 [0]", "{name}");
        program.clear();
    }
    // A second run adds to the same pool.
    for runs in 1..3 {
        serve(&program, "out/%m%c.profraw", 500, "-KILL");
        let counts = program.counts_of(&program.files(), &functions);
        assert_eq!(counts, format!("{} [], {} [0]", runs * 500, runs * 14));
    }
}

/// A child sends many signals to its parent, whose handler for SIGUSR2 calls `handled`. `counted` is called 20,000 times
/// at least, and the number of its calls is printed.
const DISTURBED: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int counted(int x) { return x + 1; }
static volatile int sum, calls;
__attribute__((noinline)) void handled(int signal) { sum += signal; calls++; }
int main(void) {
  signal(SIGUSR2, handled);
  pid_t parent = getpid(), child = fork();
  if (!child) {
    for (int i = 0; i < 300; i++) { kill(parent, i % 2 ? SIGUSR1 : SIGUSR2); usleep(20); }
    _exit(0);
  }
  long times = 0;
  while (times < 20000 || waitpid(child, 0, WNOHANG) == 0) { counted(1); times++; }
  printf("%ld %d\n", times, calls);
  return 0;
}
"#;

#[test]
fn signals_while_the_profile_is_written_wait() {
    let program = or_skip!(Program::new(DISTURBED, &[ATOMIC]));
    // SIGUSR1 writes the profile each time. The program's own handler comes after that of the runtime.
    for (signals, name) in [
        ("10", "out/%m.profraw"),
        ("10,12", "out/%m.profraw"),
        ("10", "out/a.profraw"),
        ("10", "out/%p.profraw"),
    ] {
        let output = program.run(name, "", &[("PROFKIT_PROFILE_SIGNALS", signals)]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(said(&output), "");
        let printed = String::from_utf8(output.stdout).unwrap();
        let (times, calls) = printed.trim_end().split_once(' ').unwrap();
        assert!(calls.parse::<u32>().unwrap() > 0, "{printed}");
        let counts = program.counts_of(&program.files(), &["counted", "handled"]);
        assert_eq!(counts, format!("{times} [], {calls} []"), "{name}");
        program.clear();
    }
}

/// A program that calls functions of libraries, which it loads and unloads. Its argument says how it ends.
const LOADS: &str = r#"
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int mine(int x) { return x + 1; }
static int call(void *library, const char *name, int times) {
  int (*function)(int) = (int (*)(int))dlsym(library, name);
  int sum = 0;
  for (int i = 0; i < times; i++) sum += function(i);
  return sum;
}
int main(int count, char **words) {
  mine(1);
  for (int i = 0; i < 3; i++) {
    void *a = dlopen("./a.so", RTLD_NOW);
    if (!a) return 3;
    call(a, "in_a", 5);
    dlclose(a);
  }
  void *a = dlopen("./a.so", RTLD_NOW), *b = dlopen("./b.so", RTLD_NOW);
  if (!a || !b) return 4;
  call(a, "in_a", 2);
  call(b, "in_b", 7);
  dlclose(a);
  if (!strcmp(words[1], "fork")) {
    pid_t child = fork();
    if (!child) { call(b, "in_b", 100); mine(1); return 0; }
    waitpid(child, 0, 0);
  }
  if (!strcmp(words[1], "term")) raise(SIGTERM);
  return 0;
}
"#;

#[test]
fn libraries_that_are_loaded_and_unloaded_count_once() {
    let program = or_skip!(Program::new(LOADS, &["-ldl"]));
    for name in ["a", "b"] {
        let source =
            format!("__attribute__((noinline)) int in_{name}(int x) {{ return x ? 1 : 2; }}\n");
        program.compile(&source, &format!("{name}.so"), &["-shared", "-fPIC"]);
    }
    let functions = ["in_a", "in_b", "mine"];
    // A library that is loaded again begins with new counts: `in_a` has 5 + 5 + 5 + 2 calls.
    for (end, expected) in [
        ("", "17 [13], 7 [6], 1 []"),
        ("fork", "17 [13], 107 [105], 2 []"),
        ("term", "17 [13], 7 [6], 1 []"),
    ] {
        for name in [
            "out/a.profraw",
            "out/%p.profraw",
            "out/%m.profraw",
            "out/%2m.profraw",
        ] {
            for asked in [&[][..], &[SIGNALS]] {
                if end == "term" && asked.is_empty() {
                    continue;
                }
                let output = program.run(name, end, asked);
                assert_eq!(said(&output), "", "{name} {end}");
                let signal = if end == "term" { Some(15) } else { None };
                assert_eq!(output.status.signal(), signal, "{name} {end}");
                let counts = program.counts_of(&program.files(), &functions);
                assert_eq!(counts, expected, "{name} {end} {asked:?}");
                program.clear();
            }
        }
    }
}

#[test]
fn libraries_count_in_continuous_files_of_their_own() {
    let options = ["-mllvm", "-runtime-counter-relocation"];
    let program = or_skip!(Program::new(LOADS, &[&options[..], &["-ldl"]].concat()));
    for name in ["a", "b"] {
        let source =
            format!("__attribute__((noinline)) int in_{name}(int x) {{ return x ? 1 : 2; }}\n");
        let words = [&options[..], &["-shared", "-fPIC"]].concat();
        program.compile(&source, &format!("{name}.so"), &words);
    }
    let output = program.run("out/%m%c.profraw", "fork", &[]);
    assert_eq!(said(&output), "");
    assert_eq!(program.files().len(), 3);
    let counts = program.counts_of(&program.files(), &["in_a", "in_b", "mine"]);
    assert_eq!(counts, "17 [13], 107 [105], 2 []");
}

#[test]
fn sanitizers_have_nothing_to_report() {
    for sanitizer in [
        "-fsanitize=address",
        "-fsanitize=thread",
        "-fsanitize=undefined",
    ] {
        let Some(llvm) = profkit_testkit::Llvm::find(22) else {
            profkit_testkit::skip("clang 22 is not installed");
            return;
        };
        let compiler = llvm.clang().to_str().unwrap().to_owned();
        profkit_testkit::or_skip!(profkit_testkit::links_c(&compiler, &[sanitizer]), continue);
        // The thread sanitizer allows no fork while other threads run.
        let source = if sanitizer == "-fsanitize=thread" {
            THREADS
                .replace("pid_t child = fork();", "pid_t child = -1;")
                .replace("waitpid(child, 0, 0);", "counted(child);")
        } else {
            THREADS.to_owned()
        };
        let program = or_skip!(Program::new(
            &source,
            &[ATOMIC, "-pthread", "-g", sanitizer]
        ));
        // The search for leaks does not work in forked children of programs with threads.
        let variables = [SIGNALS, ("ASAN_OPTIONS", "detect_leaks=0")];
        let output = program.run("out/%m.profraw", "", &variables);
        assert!(output.status.success(), "{sanitizer}: {}", said(&output));
        assert_eq!(said(&output), "", "{sanitizer}");
        assert_eq!(program.counts("counted"), "4040 []", "{sanitizer}");
    }
}
