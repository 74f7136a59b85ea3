use anyhow::{Context, Result, bail};
use profkit_testkit::measure;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A command line that is measured.
#[derive(Debug)]
pub struct Measured {
    /// The name of the command in the table.
    pub label: &'static str,
    /// The program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The file that the command writes.
    pub output: PathBuf,
}

/// The measurements of one run.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The time from the start to the end of the process, in milliseconds.
    pub wall_ms: f64,
    /// The largest resident set of the process, in MiB.
    pub peak_mib: f64,
}

/// Runs a command as a separate process and measures it.
///
/// # Errors
/// If it does not start or does not exit with 0.
pub fn run_measured(measured: &Measured) -> Result<Sample> {
    // The old output is removed before the measurement. Some file systems write a replaced file to the disk
    // immediately, and this would be measured too.
    match std::fs::remove_file(&measured.output) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut command = Command::new(&measured.program);
    command.args(&measured.args).stdin(Stdio::null());
    let used = measure(&mut command).with_context(|| measured.program.display().to_string())?;
    if !used.status.success() {
        bail!("{}: {}", used.status, String::from_utf8_lossy(&used.stderr));
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a resident set has far fewer than 2^52 bytes"
    )]
    let peak_mib = used.peak_rss as f64 / f64::from(1 << 20);
    Ok(Sample {
        wall_ms: used.wall.as_secs_f64() * 1e3,
        peak_mib,
    })
}
