//! Runs child processes and measures their time and memory.
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
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
    /// The number of page faults for which the disk was not read.
    pub minor_faults: u64,
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
    run(command, wait4)
}

/// Runs a command, and calls `look` with its process number until it ends.
fn run_watched(command: &mut Command, mut look: impl FnMut(u32)) -> io::Result<Measured> {
    run(command, |pid| {
        let waiter = std::thread::spawn(move || wait4(pid));
        while !waiter.is_finished() {
            look(pid);
            std::thread::sleep(Duration::from_millis(2));
        }
        waiter
            .join()
            .map_err(|_| io::Error::other("the waiting thread ended early"))?
    })
}

fn run(
    command: &mut Command,
    wait: impl FnOnce(u32) -> io::Result<(ExitStatus, libc::rusage)>,
) -> io::Result<Measured> {
    use std::io::{Read, Seek};
    let mut stdout = tempfile::tempfile()?;
    let mut stderr = tempfile::tempfile()?;
    command
        .stdout(Stdio::from(stdout.try_clone()?))
        .stderr(Stdio::from(stderr.try_clone()?));
    let start = Instant::now();
    let child = command.spawn()?;
    let (status, usage) = wait(child.id())?;
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
        minor_faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
    };
    stdout.rewind()?;
    stdout.read_to_end(&mut measured.stdout)?;
    stderr.rewind()?;
    stderr.read_to_end(&mut measured.stderr)?;
    Ok(measured)
}

/// Measures a command as [`measure`] does, and how much of its memory comes from no file: the largest sum of `RssAnon` and
/// `RssShmem` in `/proc/PID/status`, looked at every 2 milliseconds. Programs that the command starts are not counted.
///
/// # Errors
/// Those of [`measure`].
pub fn measure_with_anonymous(command: &mut Command) -> io::Result<(Measured, u64)> {
    let mut peak = 0;
    let measured = run_watched(command, |pid| {
        peak = peak.max(anonymous(pid).unwrap_or(0));
    })?;
    Ok((measured, peak))
}

/// The bytes of memory of a process that come from no file. `None` if the process has ended.
fn anonymous(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some((kib("RssAnon:")? + kib("RssShmem:")?) * 1024)
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
    fn anonymous_memory_is_that_of_no_file() {
        let mut command = Command::new("dd");
        command.args(["if=/dev/zero", "of=/dev/null", "bs=64M", "count=8"]);
        let (measured, anonymous) = measure_with_anonymous(&mut command).expect("dd runs");
        assert!(measured.status.success());
        assert!(anonymous > 32 << 20, "{anonymous}");
        assert!(anonymous <= measured.peak_rss, "{measured:?}");
    }

    #[test]
    fn a_memory_cap_stops_a_greedy_child() {
        let mut greedy = with_memory_cap(Path::new("dd"), 64 << 20);
        greedy.args(["if=/dev/zero", "of=/dev/null", "bs=256M", "count=1"]);
        let measured = measure(&mut greedy).expect("prlimit runs");
        assert_eq!(measured.code(), Some(1), "{measured:?}");
    }
}
