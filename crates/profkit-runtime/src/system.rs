//! The system calls of Linux that only this runtime makes. Those that the MIP runtime makes too are in its module
//! `sys`.
use crate::output::Segment;
use crate::sys::{call, checked};
pub use crate::sys::{
    close, error, lock, open, pass_three_arguments, pause, process, read, rename, rewind, unlink,
    write, Open, Result,
};

#[cfg(target_arch = "x86_64")]
mod number {
    pub const LSEEK: usize = 8;
    pub const MMAP: usize = 9;
    pub const MUNMAP: usize = 11;
    pub const SIGPROCMASK: usize = 14;
    pub const WRITEV: usize = 20;
    pub const DUP: usize = 32;
    pub const KILL: usize = 62;
    pub const UNAME: usize = 63;
    pub const FLOCK: usize = 73;
    pub const FTRUNCATE: usize = 77;
    pub const FCHMOD: usize = 91;
    pub const FCHOWN: usize = 93;
    pub const SIGTIMEDWAIT: usize = 128;
    pub const PRCTL: usize = 157;
    pub const OPENAT: usize = 257;
    pub const MKDIRAT: usize = 258;
    pub const READLINKAT: usize = 267;
    pub const RENAMEAT2: usize = 316;
    pub const STATX: usize = 332;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub const DUP: usize = 23;
    pub const FLOCK: usize = 32;
    pub const MKDIRAT: usize = 34;
    pub const FTRUNCATE: usize = 46;
    pub const FCHMOD: usize = 52;
    pub const FCHOWN: usize = 55;
    pub const OPENAT: usize = 56;
    pub const LSEEK: usize = 62;
    pub const WRITEV: usize = 66;
    pub const READLINKAT: usize = 78;
    pub const KILL: usize = 129;
    pub const SIGPROCMASK: usize = 135;
    pub const SIGTIMEDWAIT: usize = 137;
    pub const UNAME: usize = 160;
    pub const PRCTL: usize = 167;
    pub const MUNMAP: usize = 215;
    pub const MMAP: usize = 222;
    pub const RENAMEAT2: usize = 276;
    pub const STATX: usize = 291;
}

#[cfg(target_arch = "arm")]
mod number {
    pub const LSEEK: usize = 19;
    pub const KILL: usize = 37;
    pub const DUP: usize = 41;
    pub const MUNMAP: usize = 91;
    pub const FTRUNCATE: usize = 93;
    pub const FCHMOD: usize = 94;
    pub const UNAME: usize = 122;
    pub const FLOCK: usize = 143;
    pub const WRITEV: usize = 146;
    pub const PRCTL: usize = 172;
    pub const SIGPROCMASK: usize = 175;
    pub const SIGTIMEDWAIT: usize = 177;
    /// The number of the system call `mmap2`, whose offset counts pages.
    pub const MMAP: usize = 192;
    pub const FCHOWN: usize = 207;
    pub const OPENAT: usize = 322;
    pub const MKDIRAT: usize = 323;
    pub const READLINKAT: usize = 332;
    pub const RENAMEAT2: usize = 382;
    pub const STATX: usize = 397;
}

const AT_FDCWD: usize = -100_isize as usize;
const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;
/// Provides all pages at once, which is faster than an interrupt for each if all are used.
const MAP_POPULATE: usize = 0x8000;
const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
/// Flags of `open`: read and write, create, close on exec.
const O_POOL: usize = 0o2_000_102;
/// Flags of `open`: write, create, truncate, append, close on exec.
const O_EMPTY: usize = 0o2_001_101;

/// Exchanges the names of two files, which must exist.
///
/// # Safety
/// The caller must pass zero-terminated paths.
pub unsafe fn exchange(one: *const u8, other: *const u8) -> Result<()> {
    const RENAME_EXCHANGE: usize = 2;
    // SAFETY: both paths are zero-terminated, and the kernel only reads them.
    unsafe {
        checked(
            number::RENAMEAT2,
            [
                AT_FDCWD,
                one as usize,
                AT_FDCWD,
                other as usize,
                RENAME_EXCHANGE,
            ],
        )
    }
    .map(|_| ())
}

/// Maps memory at an address that the kernel chooses.
///
/// # Safety
/// The caller must ensure that mapping a file with these flags is sound.
unsafe fn mmap(length: usize, flags: usize, file: usize) -> Result<usize> {
    // SAFETY: the caller promises that the mapping is sound. Addresses of 32-bit Arm may be above 2 GiB, so that only the
    // last page of numbers is an error.
    let address = unsafe { call(number::MMAP, [0, length, PROT_READ_WRITE, flags, file, 0]) };
    if (-4095..0).contains(&address) {
        Err(-address as i32)
    } else {
        Ok(address as usize)
    }
}

/// Returns the address of new memory, whose bytes are zero; 0 if there is none.
pub fn map(length: usize) -> usize {
    map_with(length, MAP_PRIVATE_ANONYMOUS)
}

pub fn map_all(length: usize) -> usize {
    map_with(length, MAP_PRIVATE_ANONYMOUS | MAP_POPULATE)
}

fn map_with(length: usize, flags: usize) -> usize {
    // SAFETY: new private memory belongs to the caller alone.
    match unsafe { mmap(length, flags, usize::MAX) } {
        Ok(address) => address,
        Err(_) => 0,
    }
}

pub fn map_file(file: i32, length: usize) -> Result<usize> {
    // SAFETY: a new shared mapping does not change memory that is in use.
    unsafe { mmap(length, MAP_SHARED, file as usize) }
}

pub fn unmap(start: usize, length: usize) {
    // SAFETY: the callers pass memory that they got from `map` and use no longer.
    let _ = unsafe { call(number::MUNMAP, [start, length, 0, 0, 0]) };
}

/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn open_pool(path: *const u8) -> Result<i32> {
    // SAFETY: the path is zero-terminated, and the kernel only reads it.
    unsafe { checked(number::OPENAT, [AT_FDCWD, path as usize, O_POOL, 0o666, 0]) }
        .map(|file| file as i32)
}

/// Makes a file empty; it is created if it does not exist.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn open_empty(path: *const u8) -> Result<i32> {
    // SAFETY: the path is zero-terminated, and the kernel only reads it.
    unsafe { checked(number::OPENAT, [AT_FDCWD, path as usize, O_EMPTY, 0o666, 0]) }
        .map(|file| file as i32)
}

/// Makes a folder. Returns true if this failed because the folder that would contain it does not exist.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn make_folder(path: *const u8, mode: u32) -> bool {
    // SAFETY: the path is zero-terminated, and the kernel only reads it. Any other error shows when a file in the folder
    // is opened.
    unsafe {
        call(number::MKDIRAT, [AT_FDCWD, path as usize, mode as usize])
            == -(error::NO_ENTRY as isize)
    }
}

pub fn end(file: i32) -> Result<usize> {
    const SEEK_END: usize = 2;
    // SAFETY: the call only changes the position in a file.
    unsafe { checked(number::LSEEK, [file as usize, 0, SEEK_END, 0, 0]) }
}

pub fn seek(file: i32, position: usize) -> Result<usize> {
    // SAFETY: the call only changes the position in a file.
    unsafe { checked(number::LSEEK, [file as usize, position, 0, 0, 0]) }
}

pub fn position(file: i32) -> Result<usize> {
    const SEEK_CUR: usize = 1;
    // SAFETY: the call does not change anything.
    unsafe { checked(number::LSEEK, [file as usize, 0, SEEK_CUR, 0, 0]) }
}

/// # Safety
/// The caller must pass the address of `count` segments, whose bytes are readable.
pub unsafe fn write_all(file: i32, segments: *const Segment, count: usize) -> Result<usize> {
    // SAFETY: the kernel only reads the segments and their bytes.
    unsafe { checked(number::WRITEV, [file as usize, segments as usize, count]) }
}

pub fn set_size(file: i32, size: usize) -> Result<usize> {
    // SAFETY: the call only changes a file that the runtime has opened for writing.
    unsafe { checked(number::FTRUNCATE, [file as usize, size, 0, 0, 0]) }
}

#[derive(Clone, Copy)]
pub struct Facts {
    pub identity: [u64; 2],
    mode: u16,
    user: u32,
    group: u32,
}

impl Facts {
    /// Assumed if the kernel does not know `statx`, which Linux has since 4.11.
    const UNKNOWN: Self = Self {
        identity: [0; 2],
        mode: 0o100_000,
        user: 0,
        group: 0,
    };

    pub fn is_link(&self) -> bool {
        self.mode & FORMAT == 0o120_000
    }

    pub fn is_special(&self) -> bool {
        self.mode & FORMAT != 0o100_000
    }
}

/// The bits of `mode` that contain the type of the file.
const FORMAT: u16 = 0o170_000;

#[derive(Clone, Copy)]
pub enum Links {
    Follow,
    /// The link is not followed: the facts are those of the link itself.
    Stay,
}

/// Returns facts about the file to which a path leads.
///
/// # Errors
/// If there is no such file. After any other error, a regular file is assumed: the error occurs again when the file is
/// opened.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn facts_at(path: *const u8, links: Links) -> Result<Facts> {
    const AT_SYMLINK_NOFOLLOW: usize = 0x100;
    let flags = match links {
        Links::Follow => 0,
        Links::Stay => AT_SYMLINK_NOFOLLOW,
    };
    // SAFETY: the caller promises that the path is zero-terminated.
    match unsafe { facts(AT_FDCWD, path, flags) } {
        Err(error::NO_ENTRY) => Err(error::NO_ENTRY),
        Err(_) => Ok(Facts::UNKNOWN),
        other => other,
    }
}

pub fn facts_of(file: i32) -> Facts {
    const AT_EMPTY_PATH: usize = 0x1000;
    // SAFETY: the path is zero-terminated.
    match unsafe { facts(file as usize, b"\0".as_ptr(), AT_EMPTY_PATH) } {
        Ok(facts) => facts,
        Err(_) => Facts::UNKNOWN,
    }
}

/// Returns facts about the file at `path`, which is relative to the open folder `folder`. `flags` are those of `statx`.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
#[inline(never)]
unsafe fn facts(folder: usize, path: *const u8, flags: usize) -> Result<Facts> {
    const STATX_TYPE_MODE_UID_GID_INO: usize = 0x11b;
    const USER_AT: usize = 20;
    const GROUP_AT: usize = 24;
    const MODE_AT: usize = 28;
    const INODE_AT: usize = 32;
    const DEVICE_AT: usize = 136;
    let mut found = core::mem::MaybeUninit::<[u64; 32]>::uninit();
    let start = found.as_mut_ptr() as usize;
    let wanted = STATX_TYPE_MODE_UID_GID_INO;
    // SAFETY: the kernel reads the zero-terminated path and writes the 256 bytes of a `statx` structure. Its fields are
    // read only if the kernel has done that.
    unsafe {
        checked(number::STATX, [folder, path as usize, flags, wanted, start])?;
        Ok(Facts {
            identity: [
                *((start + INODE_AT) as *const u64),
                *((start + DEVICE_AT) as *const u64),
            ],
            mode: *((start + MODE_AT) as *const u16),
            user: *((start + USER_AT) as *const u32),
            group: *((start + GROUP_AT) as *const u32),
        })
    }
}

/// # Safety
/// The caller must pass a zero-terminated `path`.
pub unsafe fn read_link(path: *const u8, buffer: &mut [u8; 4096]) -> Result<usize> {
    // SAFETY: the kernel reads the zero-terminated path, and writes at most the bytes of the buffer.
    unsafe {
        checked(
            number::READLINKAT,
            [
                AT_FDCWD,
                path as usize,
                buffer.as_mut_ptr() as usize,
                buffer.len(),
                0,
            ],
        )
    }
}

pub fn keep_owner(old: &Facts, new: i32) {
    const NOBODY: usize = u32::MAX as usize;
    const PERMISSIONS: u16 = 0o777;
    let now = facts_of(new);
    // The file system writes each change to its journal, so only values that differ are set.
    // SAFETY: the calls change a file that the runtime has made.
    unsafe {
        if (old.user, old.group) != (now.user, now.group) {
            let (user, group) = (old.user as usize, old.group as usize);
            if checked(number::FCHOWN, [new as usize, user, group, 0, 0]).is_err() {
                // Only the administrator changes owners, but a member of a group can give a file to it.
                let _ = call(number::FCHOWN, [new as usize, NOBODY, group, 0, 0]);
            }
        }
        if (old.mode ^ now.mode) & PERMISSIONS != 0 {
            let mode = usize::from(old.mode & PERMISSIONS);
            let _ = call(number::FCHMOD, [new as usize, mode, 0, 0, 0]);
        }
    }
}

/// Closes a copy of the descriptor, so that the file system reports errors of earlier writes.
pub fn close_copy(file: i32) -> Result<()> {
    // SAFETY: the call makes a new descriptor, which is closed here.
    match unsafe { checked(number::DUP, [file as usize, 0, 0, 0, 0]) } {
        Ok(copy) => close(copy as i32),
        // No descriptor is free for the copy. The errors are reported when the file is closed.
        Err(_) => Ok(()),
    }
}

/// The size in bytes of each of the six texts in `utsname`.
const UTS: usize = 65;

/// Returns the host name of the machine. The kernel writes it, among other texts, to the buffer.
pub fn host(buffer: &mut [u8; 4096]) -> &[u8] {
    // SAFETY: the kernel writes six texts of 65 bytes, which is less than the buffer has.
    let _ = unsafe { call(number::UNAME, [buffer.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    let mut length = 0;
    for &byte in buffer.iter().skip(UTS).take(UTS) {
        if byte == 0 {
            break;
        }
        length += 1;
    }
    match buffer.get(UTS..UTS + length) {
        Some(name) => name,
        None => &[],
    }
}

/// Blocks all signals of this thread. Returns the set of signals that were blocked before.
pub fn block_signals() -> u64 {
    let mut before = 0_u64;
    let all = u64::MAX;
    signal_mask(&all, &mut before);
    before
}

/// Sets the blocked signals of this thread to exactly this set.
pub fn restore_signals(blocked: u64) {
    let mut before = 0_u64;
    signal_mask(&blocked, &mut before);
}

fn signal_mask(new: &u64, before: &mut u64) {
    const SIG_SETMASK: usize = 2;
    // SAFETY: the kernel reads and writes sets of 64 signals.
    let _ = unsafe {
        call(
            number::SIGPROCMASK,
            [
                SIG_SETMASK,
                new as *const u64 as usize,
                before as *mut u64 as usize,
                8,
                0,
            ],
        )
    };
}

/// The signal that the kernel sends if a file would become larger than the process's limit.
pub const SIGXFSZ: i32 = 25;
/// The signal that the kernel sends if a process writes to a pipe that nobody reads.
pub const SIGPIPE: i32 = 13;

/// Removes a signal that is blocked and pending for this thread.
pub fn forget_signal(signal: i32) {
    let set = 1_u64 << (signal - 1);
    let no_time = [0_u64; 2];
    // SAFETY: the kernel reads a set of 64 signals and a time. All bytes of the time are 0, so it is valid with 32-bit
    // and with 64-bit fields.
    let _ = unsafe {
        call(
            number::SIGTIMEDWAIT,
            [
                &set as *const u64 as usize,
                0,
                no_time.as_ptr() as usize,
                8,
                0,
            ],
        )
    };
}

/// Unlocks a file.
pub fn unlock(file: i32) {
    const LOCK_UN: usize = 8;
    // SAFETY: the call removes an advisory lock that the runtime has set.
    let _ = unsafe { call(number::FLOCK, [file as usize, LOCK_UN, 0, 0, 0]) };
}

pub fn raise(signal: i32) {
    // SAFETY: the call has no memory arguments.
    let _ = unsafe { call(number::KILL, [process() as usize, signal as usize, 0, 0, 0]) };
}

/// The signal that the kernel sends when the parent ends; 0 means none. Returns the previous setting.
pub fn set_parent_signal(signal: i32) -> i32 {
    const SET: usize = 1;
    const GET: usize = 2;
    let mut before = 0_i32;
    // SAFETY: the kernel writes a number of four bytes.
    unsafe {
        let _ = call(
            number::PRCTL,
            [GET, &mut before as *mut i32 as usize, 0, 0, 0],
        );
        if before != signal {
            let _ = call(number::PRCTL, [SET, signal as usize, 0, 0, 0]);
        }
    }
    before
}
