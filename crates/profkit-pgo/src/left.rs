//! Processes that a training has left: what they count is written when they end, which may be after the merge.
use crate::outputs;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long processes that are ending are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its number.
    pub pid: u32,
    /// The program.
    pub program: String,
}

/// The instrumented processes that write to a folder and still run. Those that are ending are waited for. Only Linux shows
/// the environment of processes; elsewhere none is found.
pub(crate) fn running(folder: &Path) -> Vec<Running> {
    let start = Instant::now();
    loop {
        let found = found(folder);
        if found.is_empty() || start.elapsed() > PATIENCE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn found(folder: &Path) -> Vec<Running> {
    let mut wanted = b"LLVM_PROFILE_FILE=".to_vec();
    wanted.extend(folder.as_os_str().as_bytes());
    wanted.push(b'/');
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_training = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let writes = environment
            .split(|&byte| byte == 0)
            .any(|variable| variable.starts_with(&wanted));
        let link = entry.path().join("exe");
        let program = fs::read_link(&link).ok().filter(|_| writes)?;
        // A script or a tool of the system inherits the variable and writes nothing.
        outputs::read(link)?.instrumented.then(|| Running {
            pid,
            program: OsStr::to_string_lossy(program.as_os_str()).into_owned(),
        })
    });
    of_training.collect()
}
