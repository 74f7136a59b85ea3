//! Calls libc, on systems and architectures for which the runtime does not make system calls itself.
use super::{error, Open, Result};

extern "C" {
    #[link_name = "open"]
    fn c_open(path: *const u8, flags: i32, ...) -> i32;
    #[link_name = "close"]
    fn c_close(file: i32) -> i32;
    #[link_name = "write"]
    fn c_write(file: i32, bytes: *const u8, length: usize) -> isize;
    #[link_name = "read"]
    fn c_read(file: i32, bytes: *mut u8, length: usize) -> isize;
    #[link_name = "lseek"]
    fn c_lseek(file: i32, offset: isize, whence: i32) -> isize;
    #[link_name = "rename"]
    fn c_rename(from: *const u8, to: *const u8) -> i32;
    #[link_name = "unlink"]
    fn c_unlink(path: *const u8) -> i32;
    #[link_name = "flock"]
    fn c_flock(file: i32, operation: i32) -> i32;
    #[link_name = "getpid"]
    fn c_getpid() -> i32;
    #[link_name = "sched_yield"]
    fn c_sched_yield() -> i32;
    #[cfg_attr(
        any(target_os = "macos", target_os = "ios", target_os = "freebsd"),
        link_name = "__error"
    )]
    #[cfg_attr(target_os = "android", link_name = "__errno")]
    #[cfg_attr(target_os = "linux", link_name = "__errno_location")]
    fn errno() -> *mut i32;
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod flag {
    pub const CREATE: i32 = 0o100;
    pub const EXCLUSIVE: i32 = 0o200;
    pub const TRUNCATE: i32 = 0o1000;
    pub const CLOSE_ON_EXEC: i32 = 0o2_000_000;
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod flag {
    pub const CREATE: i32 = 0x200;
    pub const EXCLUSIVE: i32 = 0x800;
    pub const TRUNCATE: i32 = 0x400;
    #[cfg(target_os = "freebsd")]
    pub const CLOSE_ON_EXEC: i32 = 0x10_0000;
    #[cfg(not(target_os = "freebsd"))]
    pub const CLOSE_ON_EXEC: i32 = 0x100_0000;
}

const LOCK_EX: i32 = 2;

/// Calls libc and then restores errno. The program that a signal handler interrupts must not see a change of errno.
fn checked(call: impl FnOnce() -> isize) -> Result<usize> {
    // SAFETY: libc returns the address of this thread's errno, which is readable and writable.
    unsafe {
        let place = errno();
        let before = *place;
        let result = call();
        let error = *place;
        *place = before;
        if result < 0 {
            Err(error)
        } else {
            Ok(result as usize)
        }
    }
}

/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn open(path: *const u8, how: Open) -> Result<i32> {
    let flags = flag::CLOSE_ON_EXEC
        | match how {
            Open::Read | Open::Folder => 0,
            Open::Write => 1,
            Open::Replace => 1 | flag::CREATE | flag::TRUNCATE,
            Open::Create => 1 | flag::CREATE | flag::EXCLUSIVE,
        };
    // SAFETY: the path is zero-terminated, and libc only reads it.
    checked(|| unsafe { c_open(path, flags, 0o666) } as isize).map(|file| file as i32)
}

/// Closes a file.
pub fn close(file: i32) -> Result<()> {
    // SAFETY: the descriptor is one that the runtime has opened.
    checked(|| unsafe { c_close(file) } as isize).map(|_| ())
}

/// Writes some of `bytes` to a file. Returns the number of bytes written.
pub fn write(file: i32, bytes: &[u8]) -> Result<usize> {
    // SAFETY: libc reads only bytes of the slice.
    checked(|| unsafe { c_write(file, bytes.as_ptr(), bytes.len()) })
}

/// Reads some bytes from a file. Returns the number of bytes read; 0 at the end of the file.
pub fn read(file: i32, bytes: &mut [u8]) -> Result<usize> {
    // SAFETY: libc writes only bytes of the slice.
    checked(|| unsafe { c_read(file, bytes.as_mut_ptr(), bytes.len()) })
}

/// Sets the position in a file to its start.
pub fn rewind(file: i32) -> Result<()> {
    // SAFETY: the call only changes the position in a file.
    checked(|| unsafe { c_lseek(file, 0, 0) }).map(|_| ())
}

/// # Safety
/// The caller must pass zero-terminated paths.
pub unsafe fn rename(from: *const u8, to: *const u8) -> Result<()> {
    // SAFETY: both paths are zero-terminated, and libc only reads them.
    checked(|| unsafe { c_rename(from, to) } as isize).map(|_| ())
}

/// Removes a file. Errors are ignored.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn unlink(path: *const u8) {
    // SAFETY: the path is zero-terminated, and libc only reads it. If a temporary file cannot be removed, it stays in
    // its folder.
    let _ = checked(|| unsafe { c_unlink(path) } as isize);
}

/// Waits until it can lock an open file or folder.
pub fn lock(file: i32) -> Result<()> {
    loop {
        // SAFETY: the call sets an advisory lock on a descriptor that the runtime has opened.
        match checked(|| unsafe { c_flock(file, LOCK_EX) } as isize) {
            Err(error::INTERRUPTED) => {}
            other => return other.map(|_| ()),
        }
    }
}

/// Returns the id of this process.
pub fn process() -> u32 {
    // SAFETY: the function has no arguments.
    unsafe { c_getpid() as u32 }
}

/// The most bytes that this process may write into one file (`ulimit -f`). A write beyond them ends the process by a
/// signal.
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
pub fn largest_file() -> u64 {
    /// The type `rlim_t`: glibc's has the size of a pointer, that of other systems has 64 bits.
    #[cfg(any(target_env = "gnu", target_os = "android"))]
    type Limit = usize;
    #[cfg(not(any(target_env = "gnu", target_os = "android")))]
    type Limit = u64;
    extern "C" {
        fn getrlimit(resource: i32, limits: *mut [Limit; 2]) -> i32;
    }
    const FILE_SIZE: i32 = 1;
    // The current limit and the highest.
    let mut limits = [Limit::MAX; 2];
    // SAFETY: libc writes only the two numbers.
    let _ = checked(|| unsafe { getrlimit(FILE_SIZE, &mut limits) } as isize);
    // No limit is the largest number of the type (on macOS half of it), which no profile has.
    limits[0] as u64
}

/// Lets another thread run.
pub fn pause() {
    // SAFETY: the function has no arguments.
    let _ = unsafe { c_sched_yield() };
}

#[repr(C)]
struct Action {
    #[cfg(all(target_os = "android", target_pointer_width = "64"))]
    flags: i32,
    handler: usize,
    #[cfg(target_os = "linux")]
    mask: [usize; 128 / core::mem::size_of::<usize>()],
    #[cfg(target_os = "freebsd")]
    flags: i32,
    #[cfg(target_os = "freebsd")]
    mask: [u32; 4],
    #[cfg(target_os = "android")]
    mask: usize,
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    mask: u32,
    #[cfg(not(any(
        target_os = "freebsd",
        all(target_os = "android", target_pointer_width = "64")
    )))]
    flags: i32,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    restorer: usize,
}

/// Sets `SA_SIGINFO` for the handler of this signal, and leaves what libc's `signal` has set.
pub fn pass_three_arguments(signal: i32) -> bool {
    const SA_SIGINFO: i32 = if cfg!(any(target_os = "linux", target_os = "android")) {
        4
    } else {
        0x40
    };
    extern "C" {
        fn sigaction(signal: i32, new: *const Action, old: *mut Action) -> i32;
    }
    let mut action = core::mem::MaybeUninit::<Action>::zeroed();
    let place = action.as_mut_ptr();
    // SAFETY: libc writes an action to `place`, then reads an action from there. An action whose bytes are all zero is
    // valid too. The handler in the action is the runtime's handler, which has three arguments.
    checked(|| unsafe {
        if sigaction(signal, core::ptr::null(), place) < 0 {
            return -1;
        }
        (*place).flags |= SA_SIGINFO;
        sigaction(signal, place, core::ptr::null_mut()) as isize
    })
    .is_ok()
}

/// Whether the path is a special file that must not be replaced by renaming another file to its name. libc's `stat` has
/// a different layout on each system, so only the path is examined.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn is_special(path: *const u8) -> bool {
    let mut at = path;
    for &expected in b"/dev/" {
        // SAFETY: each byte up to the terminating zero is readable, and the comparison ends there.
        unsafe {
            if *at != expected {
                return false;
            }
            at = at.add(1);
        }
    }
    true
}
