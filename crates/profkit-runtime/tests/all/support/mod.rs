//! Programs that are linked with the runtime, run, and counted.
#![allow(dead_code, reason = "each test program uses a part")]

use profkit_runtime::link::{library, Compiler};
use profkit_testkit::Llvm;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub use profkit_testkit::succeed as ran;

pub fn runtime(folder: &Path, release: u32) -> PathBuf {
    let version = Compiler::Clang(release).raw_version().unwrap();
    let path = folder.join(format!("libprofile-{version}.a"));
    if !path.exists() {
        fs::write(&path, library(version, None).unwrap()).unwrap();
    }
    path
}

/// A program that calls `work`, which counts, and then ends as its argument says.
pub const ENDS: &str = r#"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) if (i % 2) sink++; }
int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "";
  work(100);
  if (!strcmp(what, "fork")) {
    pid_t child = fork();
    if (!child) { work(15); return 0; }
    waitpid(child, 0, 0);
  }
  if (!strcmp(what, "term")) { raise(SIGTERM); work(7); }
  if (!strcmp(what, "usr1")) { raise(SIGUSR1); work(7); }
  if (!strcmp(what, "kill")) raise(SIGKILL);
  if (!strcmp(what, "_exit")) _exit(0);
  if (!strcmp(what, "exec")) execl("/proc/self/exe", "program", "again", (char *)0);
  if (!strcmp(what, "fork-exec")) {
    pid_t child = fork();
    if (!child) { work(15); execl("/proc/self/exe", "program", "again", (char *)0); }
    waitpid(child, 0, 0);
  }
  return 0;
}
"#;

pub struct Program {
    folder: tempfile::TempDir,
    pub llvm: Llvm,
}

impl Program {
    /// Compiles a C program with these options.
    pub fn new(source: &str, options: &[&str]) -> Result<Self, String> {
        let llvm = Llvm::find(22).or_else(|| Llvm::installed().pop());
        let llvm = llvm.ok_or("no clang is installed")?;
        let program = Self {
            folder: tempfile::tempdir().unwrap(),
            llvm,
        };
        fs::create_dir(program.path("out")).unwrap();
        program.compile(source, "program", options);
        Ok(program)
    }

    pub fn compile(&self, source: &str, output: &str, options: &[&str]) {
        let name = format!("{output}.c");
        fs::write(self.path(&name), source).unwrap();
        let library = runtime(self.folder.path(), self.llvm.release());
        ran(Command::new(self.llvm.clang())
            .current_dir(&self.folder)
            .args(["-O1", "-fprofile-instr-generate", &name, "-o", output])
            .args(options)
            .arg(library));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, name: &str, argument: &str) -> Command {
        let mut command = Command::new(self.path("program"));
        command
            .current_dir(&self.folder)
            .arg(argument)
            .env("LLVM_PROFILE_FILE", name);
        command
    }

    pub fn run(&self, name: &str, argument: &str, variables: &[(&str, &str)]) -> Output {
        self.command(name, argument)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    pub fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(self.path("out"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    }

    pub fn clear(&self) {
        for file in self.files() {
            fs::remove_file(file).unwrap();
        }
    }

    /// Returns how often a function was called, and how often each of its blocks was executed, summed over all files.
    /// Removes the files.
    pub fn counts(&self, function: &str) -> String {
        let counts = self.counts_of(&self.files(), &[function]);
        self.clear();
        counts
    }

    /// Returns the same as [`counts`](Self::counts), but for several functions and for the given files, which are not
    /// removed.
    pub fn counts_of(&self, files: &[PathBuf], functions: &[&str]) -> String {
        let merged = self.path("merged.profdata");
        ran(Command::new(self.llvm.profdata())
            .arg("merge")
            .args(files)
            .arg("-o")
            .arg(&merged));
        let shown = ran(Command::new(self.llvm.profdata())
            .args(["show", "--counts", "--all-functions"])
            .arg(&merged));
        let shown = String::from_utf8(shown.stdout).unwrap();
        let of_function = |function: &&str| {
            let start = format!("\n  {function}:\n");
            let rest = shown
                .split_once(&start)
                .unwrap_or_else(|| panic!("{function}: {shown}"))
                .1;
            let field = |name: &str| {
                let rest = rest.split_once(name).unwrap().1;
                rest.lines().next().unwrap().trim().to_owned()
            };
            format!("{} {}", field("Function count:"), field("Block counts:"))
        };
        let counts: Vec<String> = functions.iter().map(of_function).collect();
        counts.join(", ")
    }
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
