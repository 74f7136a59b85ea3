//! Builds a program plain and with `profkit mip cc`, and compares what the two print.
use super::Program;
use crate::measure;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One set of instrumentation options, as `profkit mip cc` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MipMode {
    /// Its name in tables.
    pub name: &'static str,
    /// The options.
    pub arguments: &'static [&'static str],
}

/// Every way of instrumenting.
pub const MIP_MODES: [MipMode; 7] = [
    MipMode {
        name: "function",
        arguments: &["--mode", "function"],
    },
    MipMode {
        name: "unary",
        arguments: &["--mode", "function", "--counter", "unary"],
    },
    MipMode {
        name: "block",
        arguments: &["--mode", "block"],
    },
    MipMode {
        name: "unary-block",
        arguments: &["--mode", "block", "--counter", "unary"],
    },
    MipMode {
        name: "calls",
        arguments: &["--mode", "calls"],
    },
    MipMode {
        name: "calls-block",
        arguments: &["--mode", "calls,block"],
    },
    MipMode {
        name: "calls-returns",
        arguments: &["--mode", "calls", "--return-addresses", "4096"],
    },
];

impl MipMode {
    /// The mode of a name.
    pub fn named(name: &str) -> Option<MipMode> {
        MIP_MODES.into_iter().find(|mode| mode.name == name)
    }

    /// Whether calls are counted.
    pub fn counts_calls(self) -> bool {
        self.name.starts_with("calls")
    }
}

/// A compiler with its options.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The driver.
    pub compiler: PathBuf,
    /// Options for compiling and linking.
    pub flags: Vec<String>,
}

impl Setting {
    /// The command line as a person would type it.
    pub fn describe(&self) -> String {
        format!("{} {}", self.compiler.display(), self.flags.join(" "))
    }

    /// Compiles and links `sources` in `folder` into `executable`, with `profkit mip cc` if `mip` is given.
    ///
    /// # Errors
    /// If it fails, or writes anything to stderr: a warning of the linker is a defect here.
    pub fn build(
        &self,
        mip: Option<(&Path, MipMode)>,
        folder: &Path,
        sources: &[PathBuf],
        executable: &Path,
    ) -> Result<()> {
        let mut arguments: Vec<OsString> = Vec::new();
        if let Some((profkit, mode)) = mip {
            arguments.extend([profkit.into(), "mip".into(), "cc".into()]);
            arguments.extend(mode.arguments.iter().map(OsString::from));
            arguments.push("--".into());
        }
        arguments.push(self.compiler.clone().into());
        arguments.extend(self.flags.iter().map(OsString::from));
        arguments.extend(sources.iter().map(OsString::from));
        arguments.extend(["-w".into(), "-o".into(), executable.into(), "-lm".into()]);
        let made = measure(
            Command::new(&arguments[0])
                .args(&arguments[1..])
                .current_dir(folder),
        )
        .with_context(|| format!("{}", arguments[0].display()))?;
        if !made.status.success() || !made.stderr.is_empty() {
            let line: Vec<String> = arguments
                .iter()
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect();
            bail!(
                "in {}\n  {}\n{}: {}",
                folder.display(),
                line.join(" "),
                made.status,
                String::from_utf8_lossy(&made.stderr)
            );
        }
        Ok(())
    }
}

/// The result of a program's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs a program for at most a minute; an instrumented one writes its raw profile to `raw`.
///
/// # Errors
/// If it cannot be started.
pub fn outcome(executable: &Path, arguments: &[&str], raw: &Path) -> Result<Outcome> {
    let ran = measure(
        Command::new("timeout")
            .arg("60")
            .arg(executable)
            .args(arguments)
            // Other files that it writes (gmon.out of -pg) stay in the same folder.
            .current_dir(executable.parent().unwrap_or(Path::new(".")))
            .env("LLVM_MIP_PROFILE_FILENAME", raw)
            .env("LLVM_PROFILE_FILE", raw.with_extension("profraw")),
    )
    .with_context(|| executable.display().to_string())?;
    Ok(Outcome {
        code: ran.code(),
        stdout: String::from_utf8_lossy(&ran.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&ran.stderr).into_owned(),
    })
}

/// Builds a program plain and in some modes, in a folder that exists, and compares the runs. The raw profiles stay there
/// as `MODE.mipraw`, the programs as `MODE`.
///
/// # Errors
/// If something does not build or run, if the outcomes differ, or if an instrumented program wrote no profile.
pub fn compare(
    profkit: &Path,
    program: &Program,
    setting: &Setting,
    modes: &[MipMode],
    folder: &Path,
) -> Result<Outcome> {
    let sources = program.write_to(folder)?;
    let plain = folder.join("plain");
    setting.build(None, folder, &sources, &plain)?;
    let expected = outcome(&plain, &[], &folder.join("plain.mipraw"))?;
    for mode in modes {
        let made = folder.join(mode.name);
        let raw = folder.join(format!("{}.mipraw", mode.name));
        setting.build(Some((profkit, *mode)), folder, &sources, &made)?;
        let got = outcome(&made, &[], &raw)?;
        if got != expected {
            bail!(
                "seed {}, {}, mode {}: the instrumented program behaves differently\nplain: {expected:?}\ninstrumented: {got:?}\nfiles: {}",
                program.seed(),
                setting.describe(),
                mode.name,
                folder.display()
            );
        }
        if !raw.is_file() {
            bail!(
                "seed {}, {}, mode {}: no profile was written",
                program.seed(),
                setting.describe(),
                mode.name
            );
        }
    }
    Ok(expected)
}
