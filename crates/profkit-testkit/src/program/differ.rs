//! Builds a program with and without `profkit mip cc`, runs both, and compares their outputs.
use super::Program;
use crate::measure;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A set of instrumentation options for `profkit mip cc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MipMode {
    /// The name of the set in tables.
    pub name: &'static str,
    /// The instrumentation options.
    pub arguments: &'static [&'static str],
}

/// All sets of instrumentation options that are tested.
pub const MIP_MODES: [MipMode; 9] = [
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
    MipMode {
        name: "calls-atomic",
        arguments: &["--mode", "calls", "--atomic"],
    },
    MipMode {
        name: "calls-returns-atomic",
        arguments: &[
            "--mode",
            "calls,block",
            "--atomic",
            "--return-addresses",
            // Not a power of two, and with room for all edges: what has no slot is in no sum.
            "5000",
        ],
    },
];

impl MipMode {
    /// Returns the set of instrumentation options with this name.
    pub fn named(name: &str) -> Option<MipMode> {
        MIP_MODES.into_iter().find(|mode| mode.name == name)
    }

    /// Whether calls are counted with these options.
    pub fn counts_calls(self) -> bool {
        self.name.starts_with("calls")
    }

    /// Whether these options also sample who calls whom.
    pub fn has_call_edges(self) -> bool {
        self.name.starts_with("calls-returns")
    }
}

/// A compiler and its options.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The path of the compiler driver.
    pub compiler: PathBuf,
    /// The options for compiling and linking.
    pub flags: Vec<String>,
}

impl Setting {
    /// Returns the command line as a person would type it.
    pub fn describe(&self) -> String {
        format!("{} {}", self.compiler.display(), self.flags.join(" "))
    }

    /// Compiles and links `sources` in `folder` to the program `executable`. If `mip` is not `None`, `profkit mip cc`
    /// compiles and links them with this set of options.
    ///
    /// # Errors
    /// If compiling or linking fails, or prints anything to stderr. Even a warning of the linker is an error, because
    /// the instrumentation must not cause one.
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

/// The result of running a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// The bytes that the program wrote to standard output.
    pub stdout: String,
    /// The bytes that the program wrote to standard error.
    pub stderr: String,
}

/// Runs a program for at most a minute. An instrumented program writes its raw profile to `raw`.
///
/// # Errors
/// If the program cannot be started.
pub fn outcome(executable: &Path, arguments: &[&str], raw: &Path) -> Result<Outcome> {
    let ran = measure(
        Command::new("timeout")
            .arg("60")
            .arg(executable)
            .args(arguments)
            // The program runs in its own folder, so that any other files that it writes (gmon.out with -pg) stay
            // there.
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

/// Builds a program without instrumentation and in some modes, and compares the runs. `folder` must exist. The raw
/// profiles stay there as `MODE.mipraw`, and the programs as `MODE`.
///
/// # Errors
/// If something cannot be built or run, if the outputs differ, or if an instrumented program wrote no profile.
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
