//! Kills a program at one of its system calls: whatever a program writes must be whole after each of them.
use crate::{repo_root, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program `tests/programs/killer.c`, which kills other programs.
#[derive(Debug)]
pub struct Killer(PathBuf);

impl Killer {
    /// Compiles the program into a folder.
    ///
    /// # Errors
    /// If a process cannot be traced here: the reason for which a test is skipped.
    pub fn new(folder: &Path, compiler: &Path) -> Result<Self, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("processes are traced on x86-64 Linux only".to_owned());
        }
        let killer = folder.join("killer");
        succeed(
            Command::new(compiler)
                .arg(repo_root().join("tests/programs/killer.c"))
                .arg("-o")
                .arg(&killer),
        );
        let tried = Command::new(&killer)
            .args(["start", "1000000", "/bin/true"])
            .status();
        match tried.map(|status| status.code()) {
            Ok(Some(0)) => Ok(Self(killer)),
            _ => Err("processes cannot be traced on this machine".to_owned()),
        }
    }

    /// Runs a command with `prepare` before and `look` after it, again and again: the first run is killed at its first
    /// system call, the second run at its second, and so on, until a run comes to its end. System calls are counted from
    /// the start of the program if `from` is "start", otherwise from its first `getppid` on. `look` gets the number of
    /// the run. The program itself must not return 1 to 3, by which the killer says what happened.
    ///
    /// # Panics
    /// If the command cannot be started, if a signal other than the killer's ends it, or if it makes over 2,000 system calls.
    pub fn everywhere(
        &self,
        from: &str,
        command: &Command,
        prepare: impl Fn(),
        mut look: impl FnMut(usize),
    ) {
        for at in 0..2000 {
            prepare();
            let mut killer = Command::new(&self.0);
            killer.args([from, &at.to_string()]);
            killer.arg(command.get_program()).args(command.get_args());
            for (name, value) in command.get_envs() {
                match value {
                    Some(value) => killer.env(name, value),
                    None => killer.env_remove(name),
                };
            }
            if let Some(folder) = command.get_current_dir() {
                killer.current_dir(folder);
            }
            let status = killer.status().expect("the killer starts");
            look(at);
            match status.code() {
                Some(1) => {}
                Some(code) if code > 3 || code == 0 => return,
                other => panic!("{command:?}, killed at system call {at}: {other:?}"),
            }
        }
        panic!("{command:?}: it never comes to its end");
    }
}
