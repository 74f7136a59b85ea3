//! Runs a benchmark with two builds in turn.
use crate::error::{Error, Result};
use crate::outputs::Output;
use crate::plan::Environment;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The wall times of a benchmark, run by run; those of one place were made one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// With the build without a profile.
    pub before: Vec<Duration>,
    /// With the build with the profile.
    pub after: Vec<Duration>,
}

impl Times {
    /// How many times as fast the build with the profile is: the median of the pairs, the least and the greatest. `None`
    /// without runs.
    #[must_use]
    pub fn speedup(&self) -> Option<[f64; 3]> {
        let pairs = self.before.iter().zip(&self.after);
        let mut ratios: Vec<f64> = pairs
            .map(|(before, after)| before.as_secs_f64() / after.as_secs_f64().max(1e-9))
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let middle = ratios.get(ratios.len() / 2)?;
        Some([*middle, *ratios.first()?, *ratios.last()?])
    }
}

/// Copies of outputs, with the places where they belong.
pub(crate) struct Copies(Vec<(PathBuf, PathBuf)>);

impl Copies {
    pub fn make(outputs: &[Output], folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| Error::Io(folder.to_owned(), error))?;
        let copies = outputs.iter().enumerate().map(|(number, output)| {
            let copy = folder.join(number.to_string());
            fs::copy(&output.path, &copy).map_err(|error| Error::Io(output.path.clone(), error))?;
            Ok((output.path.clone(), copy))
        });
        copies.collect::<Result<_>>().map(Copies)
    }

    /// Puts the copies in their places. A file that runs is replaced, not written to.
    pub fn place(&self) -> Result<()> {
        for (path, copy) in &self.0 {
            let beside = path.with_extension("profkit-pgo");
            let placed = fs::copy(copy, &beside).and_then(|_| fs::rename(&beside, path));
            placed.map_err(|error| Error::Io(path.clone(), error))?;
        }
        Ok(())
    }
}

/// Runs the benchmark with each build, `runs` times. The second build stays in place.
pub(crate) fn measure(
    command: &OsStr,
    environment: &Environment,
    runs: usize,
    before: &Copies,
    after: &Copies,
) -> Result<Times> {
    let once = |copies: &Copies| {
        copies.place()?;
        let start = Instant::now();
        let mut shell = Command::new("sh");
        let status = shell
            .arg("-c")
            .arg(command)
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        let status = status.map_err(|error| Error::Start("sh".to_owned(), error))?;
        let time = start.elapsed();
        match status.success() {
            true => Ok(time),
            false => Err(Error::Failed(
                format!("the benchmark `{}`", command.to_string_lossy()),
                status,
            )),
        }
    };
    let mut times = Times::default();
    let measured = (|| {
        // The first run of each fills the caches.
        once(before)?;
        once(after)?;
        for run in 0..runs {
            // Who comes first changes, so that a machine that warms up is fair.
            if run % 2 == 0 {
                times.before.push(once(before)?);
                times.after.push(once(after)?);
            } else {
                times.after.push(once(after)?);
                times.before.push(once(before)?);
            }
        }
        Ok(())
    })();
    after.place()?;
    measured.map(|()| times)
}
