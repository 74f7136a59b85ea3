//! Makes system calls of Linux on x86-64, AArch64 and 32-bit Arm. Numbers and flags are those in the kernel's uapi
//! headers.
use super::{error, Open, Result};
use core::arch::asm;
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
use core::ptr::addr_of_mut;

#[cfg(target_arch = "x86_64")]
mod number {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const LSEEK: usize = 8;
    pub const SIGACTION: usize = 13;
    pub const SCHED_YIELD: usize = 24;
    pub const GETPID: usize = 39;
    pub const FLOCK: usize = 73;
    pub const OPENAT: usize = 257;
    pub const UNLINKAT: usize = 263;
    pub const RENAMEAT: usize = 264;
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    pub const PRLIMIT: usize = 302;
    pub const STATX: usize = 332;
    pub const O_DIRECTORY: usize = 0o200_000;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub const FLOCK: usize = 32;
    pub const UNLINKAT: usize = 35;
    pub const RENAMEAT: usize = 38;
    pub const OPENAT: usize = 56;
    pub const CLOSE: usize = 57;
    pub const LSEEK: usize = 62;
    pub const READ: usize = 63;
    pub const WRITE: usize = 64;
    pub const SCHED_YIELD: usize = 124;
    pub const SIGACTION: usize = 134;
    pub const GETPID: usize = 172;
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    pub const PRLIMIT: usize = 261;
    pub const STATX: usize = 291;
    pub const O_DIRECTORY: usize = 0o40_000;
}

#[cfg(target_arch = "arm")]
mod number {
    pub const READ: usize = 3;
    pub const WRITE: usize = 4;
    pub const CLOSE: usize = 6;
    pub const LSEEK: usize = 19;
    pub const GETPID: usize = 20;
    pub const FLOCK: usize = 143;
    pub const SCHED_YIELD: usize = 158;
    pub const SIGACTION: usize = 174;
    pub const OPENAT: usize = 322;
    pub const UNLINKAT: usize = 328;
    pub const RENAMEAT: usize = 329;
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    pub const PRLIMIT: usize = 369;
    pub const STATX: usize = 397;
    pub const O_DIRECTORY: usize = 0o40_000;
}

const O_WRONLY: usize = 1;
const O_CREAT: usize = 0o100;
const O_EXCL: usize = 0o200;
const O_TRUNC: usize = 0o1000;
const O_CLOEXEC: usize = 0o2_000_000;
const AT_FDCWD: usize = -100_isize as usize;
const LOCK_EX: usize = 2;

/// Makes a system call with up to six arguments. A negative result is an error. Registers that the call does not need are
/// not set, which makes the code smaller.
///
/// # Safety
/// The caller must ensure that everything that the system call does with its arguments is sound.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub unsafe fn call<const N: usize>(number: usize, arguments: [usize; N]) -> isize {
    let [a, b, c, d, e, f] = six(arguments);
    let result: usize;
    macro_rules! syscall {
        ($($register:tt = $value:ident),*) => {
            asm!(
                "syscall",
                inlateout("rax") number => result,
                $(in($register) $value,)*
                lateout("rcx") _, lateout("r11") _,
                options(nostack),
            )
        };
    }
    // SAFETY: the kernel changes only rax, rcx, r11, and the memory to which the arguments let it write.
    unsafe {
        match N {
            0 => syscall!(),
            1 => syscall!("rdi" = a),
            2 | 3 => syscall!("rdi" = a, "rsi" = b, "rdx" = c),
            4 | 5 => syscall!("rdi" = a, "rsi" = b, "rdx" = c, "r10" = d, "r8" = e),
            _ => syscall!(
                "rdi" = a,
                "rsi" = b,
                "rdx" = c,
                "r10" = d,
                "r8" = e,
                "r9" = f
            ),
        }
    }
    result as isize
}

#[inline(always)]
fn six<const N: usize>(arguments: [usize; N]) -> [usize; 6] {
    let at = |index: usize| match arguments.get(index) {
        Some(&argument) => argument,
        None => 0,
    };
    [at(0), at(1), at(2), at(3), at(4), at(5)]
}

/// Makes a system call with up to six arguments. A negative result is an error.
///
/// # Safety
/// The caller must ensure that everything that the system call does with its arguments is sound.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub unsafe fn call<const N: usize>(number: usize, arguments: [usize; N]) -> isize {
    let [a, b, c, d, e, f] = six(arguments);
    let result: usize;
    macro_rules! svc {
        ($($register:tt = $value:ident),*) => {
            asm!(
                "svc 0",
                in("x8") number,
                inlateout("x0") a => result, in("x1") b, in("x2") c, in("x3") d, in("x4") e,
                $(in($register) $value,)*
                options(nostack),
            )
        };
    }
    // SAFETY: the kernel changes only x0, and the memory to which the arguments let it write.
    unsafe {
        match N {
            6 => svc!("x5" = f),
            _ => svc!(),
        }
    }
    result as isize
}

/// Makes a system call with up to six arguments. A negative result is an error.
///
/// # Safety
/// The caller must ensure that everything that the system call does with its arguments is sound.
#[inline(always)]
#[cfg(target_arch = "arm")]
pub unsafe fn call<const N: usize>(number: usize, arguments: [usize; N]) -> isize {
    let [a, b, c, d, e, f] = six(arguments);
    let result: usize;
    macro_rules! svc {
        ($($register:tt = $value:ident),*) => {
            asm!(
                "mov {saved}, r7",
                "mov r7, {number}",
                "svc 0",
                "mov r7, {saved}",
                saved = out(reg) _,
                number = in(reg) number,
                inlateout("r0") a => result, in("r1") b, in("r2") c, in("r3") d, in("r4") e,
                $(in($register) $value,)*
                options(nostack),
            )
        };
    }
    // SAFETY: the kernel changes only r0, and the memory to which the arguments let it write. r7 may be the frame
    // pointer, so it is not an operand; the code saves and restores it.
    unsafe {
        match N {
            6 => svc!("r5" = f),
            _ => svc!(),
        }
    }
    result as isize
}

/// Makes a system call, and returns an error number if the result is negative.
///
/// # Safety
/// The caller must ensure what [`call`] requires.
#[inline(always)]
pub unsafe fn checked<const N: usize>(number: usize, arguments: [usize; N]) -> Result<usize> {
    // SAFETY: the caller promises that the system call is sound.
    let result = unsafe { call(number, arguments) };
    if result < 0 {
        Err(-result as i32)
    } else {
        Ok(result as usize)
    }
}

/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn open(path: *const u8, how: Open) -> Result<i32> {
    let flags = O_CLOEXEC
        | match how {
            Open::Read => 0,
            Open::Write => O_WRONLY,
            Open::Create => O_WRONLY | O_CREAT | O_EXCL,
            Open::Replace => O_WRONLY | O_CREAT | O_TRUNC,
            Open::Folder => number::O_DIRECTORY,
        };
    // SAFETY: the path is zero-terminated, and the kernel only reads it.
    unsafe { checked(number::OPENAT, [AT_FDCWD, path as usize, flags, 0o666]) }
        .map(|file| file as i32)
}

pub fn close(file: i32) -> Result<()> {
    // SAFETY: the descriptor is one that the runtime has opened.
    unsafe { checked(number::CLOSE, [file as usize]) }.map(|_| ())
}

pub fn write(file: i32, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the kernel reads only bytes of the slice.
    unsafe {
        checked(
            number::WRITE,
            [file as usize, bytes.as_ptr() as usize, bytes.len()],
        )
    }
}

pub fn read(file: i32, bytes: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes only bytes of the slice.
    unsafe {
        checked(
            number::READ,
            [file as usize, bytes.as_mut_ptr() as usize, bytes.len()],
        )
    }
}

pub fn rewind(file: i32) -> Result<()> {
    // SAFETY: the call only changes the position in a file.
    unsafe { checked(number::LSEEK, [file as usize, 0, 0]) }.map(|_| ())
}

/// # Safety
/// The caller must pass zero-terminated paths.
pub unsafe fn rename(from: *const u8, to: *const u8) -> Result<()> {
    // SAFETY: both paths are zero-terminated, and the kernel only reads them.
    unsafe {
        checked(
            number::RENAMEAT,
            [AT_FDCWD, from as usize, AT_FDCWD, to as usize],
        )
    }
    .map(|_| ())
}

/// Removes a file. Errors are ignored.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn unlink(path: *const u8) {
    // SAFETY: the path is zero-terminated, and the kernel only reads it. If a temporary file cannot be removed, it
    // stays in its folder.
    let _ = unsafe { call(number::UNLINKAT, [AT_FDCWD, path as usize, 0]) };
}

/// Waits until it can lock an open file or folder.
pub fn lock(file: i32) -> Result<()> {
    loop {
        // SAFETY: the call sets an advisory lock on a descriptor that the runtime has opened.
        match unsafe { checked(number::FLOCK, [file as usize, LOCK_EX]) } {
            Err(error::INTERRUPTED) => {}
            other => return other.map(|_| ()),
        }
    }
}

pub fn process() -> u32 {
    // SAFETY: the system call has no arguments.
    unsafe { call(number::GETPID, []) as u32 }
}

/// The most bytes that this process may write into one file (`ulimit -f`). A write beyond them ends the process by a
/// signal.
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
pub fn largest_file() -> u64 {
    const FILE_SIZE: usize = 1;
    // The current limit and the highest.
    let mut limits = [u64::MAX; 2];
    // SAFETY: the kernel writes only the two numbers. A kernel before 2.6.36 returns an error and writes nothing.
    let _ = unsafe {
        call(
            number::PRLIMIT,
            [0, FILE_SIZE, 0, addr_of_mut!(limits) as usize],
        )
    };
    limits[0]
}

pub fn pause() {
    // SAFETY: the system call has no arguments.
    let _ = unsafe { call(number::SCHED_YIELD, []) };
}

/// Sets `SA_SIGINFO` for the handler of this signal, and leaves what libc's `signal` has set.
pub fn pass_three_arguments(signal: i32) -> bool {
    const SA_SIGINFO: usize = 4;
    const SA_RESTORER: usize = 0x400_0000;
    /// The type `struct sigaction` of the kernel.
    #[repr(C)]
    struct Action {
        handler: usize,
        flags: usize,
        restorer: usize,
        mask: [u32; 2],
    }
    let mut action = core::mem::MaybeUninit::<Action>::zeroed();
    let place = action.as_mut_ptr();
    let size = core::mem::size_of::<[u32; 2]>();
    // SAFETY: the kernel writes an action to `place`, then reads an action from there. An action whose bytes are all
    // zero is valid too. The handler in the action is the runtime's handler, which has three arguments.
    unsafe {
        if call(
            number::SIGACTION,
            [signal as usize, 0, place as usize, size, 0],
        ) < 0
        {
            return false;
        }
        (*place).flags |= SA_SIGINFO;
        if cfg!(target_arch = "arm") {
            // libc's trampoline (`sa_restorer`) is for handlers with one argument; the kernel's own is for three.
            (*place).flags &= !SA_RESTORER;
        }
        call(
            number::SIGACTION,
            [signal as usize, place as usize, 0, size, 0],
        ) >= 0
    }
}

/// Whether the path is a device, a pipe, a socket or another special file, which must not be replaced by renaming
/// another file to its name.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn is_special(path: *const u8) -> bool {
    const STATX_TYPE: usize = 1;
    const MODE_AT: usize = 28;
    const FORMAT: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    // The kernel writes the structure if the call succeeds.
    let mut facts = core::mem::MaybeUninit::<[u8; 256]>::uninit();
    let arguments = [
        AT_FDCWD,
        path as usize,
        0,
        STATX_TYPE,
        facts.as_mut_ptr() as usize,
    ];
    // SAFETY: the kernel reads the zero-terminated path and writes the 256 bytes of a `statx` structure. A kernel
    // before 4.11 has no `statx` and returns an error; the path is then treated as a regular file.
    unsafe {
        checked(number::STATX, arguments).is_ok() && {
            let facts = facts.as_ptr().cast::<u8>();
            let mode = u32::from(facts.add(MODE_AT).read())
                | u32::from(facts.add(MODE_AT + 1).read()) << 8;
            mode & FORMAT != REGULAR
        }
    }
}
