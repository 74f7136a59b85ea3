//! Runs child processes and measures their time and memory.
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// The output of a child process, and the time and memory that it used.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The exit status of the process.
    pub status: ExitStatus,
    /// The bytes that the process wrote to stdout.
    pub stdout: Vec<u8>,
    /// The bytes that the process wrote to stderr.
    pub stderr: Vec<u8>,
    /// The wall time from the start of the process until its end was reported.
    pub wall: Duration,
    /// The user and system time of all threads together.
    pub cpu: Duration,
    /// The largest resident set in bytes. When a process starts another program, this number still counts the memory
    /// that the process used before. So the caller must use little memory to measure a small child process.
    pub peak_rss: u64,
    /// The number of page faults for which the disk had to be read.
    pub major_faults: u64,
}

impl Measured {
    /// The exit code of the process; `None` if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

/// Runs a command to its end and measures it with `wait4`. stdin is as the caller has set it. stdout and stderr go to
/// temporary files and are read afterwards, so that a process with much output does not block.
///
/// # Errors
/// If the process cannot be started or its output cannot be read.
pub fn measure(command: &mut Command) -> io::Result<Measured> {
    use std::io::{Read, Seek};
    let mut stdout = tempfile::tempfile()?;
    let mut stderr = tempfile::tempfile()?;
    command
        .stdout(Stdio::from(stdout.try_clone()?))
        .stderr(Stdio::from(stderr.try_clone()?));
    let start = Instant::now();
    let child = command.spawn()?;
    let (status, usage) = wait4(child.id())?;
    let wall = start.elapsed();
    let mut measured = Measured {
        status,
        stdout: Vec::new(),
        stderr: Vec::new(),
        wall,
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        // On Linux the unit of this field is KiB (getrusage(2)).
        peak_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
    };
    stdout.rewind()?;
    stdout.read_to_end(&mut measured.stdout)?;
    stderr.rewind()?;
    stderr.read_to_end(&mut measured.stderr)?;
    Ok(measured)
}

/// Runs a command that must exit with 0, and returns its output.
///
/// # Panics
/// With what it wrote to stderr, if it does not start or fails.
#[track_caller]
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{errors}",
        output.status
    );
    output
}

/// Returns a command that runs `program` with a limited address space, by means of util-linux's `prlimit`. Addresses
/// that are only reserved count too: thread stacks, arenas of the allocator, mapped files. The limit is meant to stop a
/// program that allocates without end. To measure memory, use [`Measured::peak_rss`].
pub fn with_memory_cap(program: &Path, bytes: u64) -> Command {
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--as={bytes}"))
        .arg(OsStr::new("--"))
        .arg(program);
    command
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

#[allow(unsafe_code)]
fn wait4(pid: u32) -> io::Result<(ExitStatus, libc::rusage)> {
    use std::os::unix::process::ExitStatusExt;
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers point to live, writable values of the types that wait4(2) fills, and `pid` is a child
        // of this process that nothing else waits for.
        let reaped = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
        if reaped == pid {
            // SAFETY: all zeros are a valid rusage, and the call has filled it.
            return Ok((ExitStatus::from_raw(status), unsafe { usage.assume_init() }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_what_a_child_says_and_uses() {
        let measured = measure(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]))
            .expect("sh runs");
        assert_eq!(measured.code(), Some(3));
        assert_eq!(measured.stdout, b"out\n");
        assert_eq!(measured.stderr, b"err\n");
        assert!(measured.peak_rss > 100_000, "{}", measured.peak_rss);
    }

    #[test]
    fn a_memory_cap_stops_a_greedy_child() {
        let mut greedy = with_memory_cap(Path::new("dd"), 64 << 20);
        greedy.args(["if=/dev/zero", "of=/dev/null", "bs=256M", "count=1"]);
        let measured = measure(&mut greedy).expect("prlimit runs");
        assert_eq!(measured.code(), Some(1), "{measured:?}");
    }
}
