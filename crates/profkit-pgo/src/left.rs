//! Processes that a training has left: what they count is written when they end, which may be after the merge.
use crate::outputs;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long processes that are ending are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long other programs that have the variable are waited for: a shell may be about to become an instrumented program.
const START: Duration = Duration::from_millis(500);

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
        let (found, others) = found(folder);
        let patience = match (found.is_empty(), others) {
            (true, false) => return found,
            (true, true) => START,
            (false, _) => PATIENCE,
        };
        if start.elapsed() > patience {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The instrumented processes, and whether there are other processes with the variable.
fn found(folder: &Path) -> (Vec<Running>, bool) {
    let mut wanted = b"LLVM_PROFILE_FILE=".to_vec();
    wanted.extend(folder.as_os_str().as_bytes());
    wanted.push(b'/');
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let (mut found, mut others) = (Vec::new(), false);
    for entry in entries {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let writes = environment
            .split(|&byte| byte == 0)
            .any(|variable| variable.starts_with(&wanted));
        let link = entry.path().join("exe");
        // What has ended, but was not waited for, has no program.
        let Some(program) = fs::read_link(&link).ok().filter(|_| writes) else {
            continue;
        };
        // A script or a tool of the system inherits the variable and writes nothing.
        match outputs::read(link).is_some_and(|output| output.instrumented) {
            true => found.push(Running {
                pid,
                program: program.to_string_lossy().into_owned(),
            }),
            false => others = true,
        }
    }
    (found, others)
}
