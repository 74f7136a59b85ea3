//! Writes the raw file of an image. The bytes go to a temporary file, which is then renamed.
use crate::image;
use crate::name::{Facts, Name, NAME_MAX};
use crate::part::Part;
use crate::pool::{Pool, Source};
use crate::stream::{Sink, Stream};
use crate::sys::{self, error, Open};
use core::arch::asm;
use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use profkit_abi::mip::DEFAULT_FILE_NAME;

/// Whether a dump is running. Only one dump at a time may use the work area.
static BUSY: AtomicBool = AtomicBool::new(false);
/// The id of the process whose calls the records count.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether this process is a forked child of a process that already contained this runtime.
static FORKED: AtomicBool = AtomicBool::new(false);
/// Whether the missing build id was reported already.
static REPORTED: AtomicBool = AtomicBool::new(false);
/// The number of names for temporary files that were made so far. Each name contains the next number.
static TEMPORARIES: AtomicU32 = AtomicU32::new(0);
/// The length of the file name pattern; 0 means the default pattern. It is stored with Release after the pattern's
/// bytes were stored, and loaded with Acquire before they are loaded.
static PATTERN_LENGTH: AtomicUsize = AtomicUsize::new(0);
/// A copy of the file name pattern, made at start because programs may overwrite their environment.
static mut PATTERN: [u8; NAME_MAX] = [0; NAME_MAX];
static mut NAME: Name = Name::EMPTY;
static mut OTHER: Name = Name::EMPTY;
static mut STREAM: Stream<File> = Stream::unused(File(0));
static mut SOURCE: Source = Source::NONE;

/// The buffers of a dump. The buffers are static, because the stack of a signal handler may be small.
pub struct Work {
    pub name: &'static mut Name,
    /// The name of the folder of the raw file, later the name of the temporary file, or the text of a message.
    pub other: &'static mut Name,
    pub stream: &'static mut Stream<File>,
    pub source: &'static mut Source,
}

/// Returns the same pointer, in a way that the compiler does not follow. Functions that get the address of a buffer are
/// smaller than functions that know it.
pub fn hidden<T>(mut pointer: *mut T) -> *mut T {
    // SAFETY: there is no instruction.
    unsafe {
        asm!("/* {0} */", inout(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

/// A file that is being written. With [`NO_FILE`] instead of a file, the bytes are only hashed.
pub struct File(pub i32);

pub const NO_FILE: i32 = -1;

impl Sink for File {
    fn write(&mut self, mut bytes: &[u8]) -> i32 {
        while !bytes.is_empty() && self.0 != NO_FILE {
            match sys::write(self.0, bytes) {
                Ok(0) => return error::NO_SPACE,
                Ok(written) => {
                    bytes = match bytes.get(written..) {
                        Some(rest) => rest,
                        None => &[],
                    }
                }
                Err(error::INTERRUPTED) => {}
                Err(other) => return other,
            }
        }
        0
    }
}

/// Stores the id of this process and the file name pattern; a null pointer means the default pattern. If another thread
/// dumps at the same time, that dump uses the default pattern.
///
/// # Safety
/// The caller must pass a `pattern` that is null or zero-terminated, and must ensure that nobody changes it during the
/// call. The caller must call this at most once per image.
pub unsafe fn start(pattern: *const u8) {
    PROCESS.store(sys::process(), Ordering::Relaxed);
    if pattern.is_null() {
        return;
    }
    let mut length = 0;
    // SAFETY: the caller promises that nobody else writes PATTERN, and nobody reads it while its length is 0. For a
    // pattern that is too long, the stored length is longer than any valid name.
    unsafe {
        while length < NAME_MAX && *pattern.add(length) != 0 {
            *addr_of_mut!(PATTERN).cast::<u8>().add(length) = *pattern.add(length);
            length += 1;
        }
    }
    PATTERN_LENGTH.store(length, Ordering::Release);
}

/// Prepares a forked child for its own dump: stores the id of the child, and lets its raw file have a different name
/// from its parent's.
///
/// # Safety
/// The caller must ensure that this process was forked, and that it has not started a dump since the fork. If BUSY is
/// then set, it was set by a thread of the parent, which does not exist in the child.
pub unsafe fn forked() {
    PROCESS.store(sys::process(), Ordering::Relaxed);
    FORKED.store(true, Ordering::Relaxed);
    // If a dump was running during the fork, it ran in a thread of the parent, which does not exist in the child.
    BUSY.store(false, Ordering::Release);
}

/// Writes the raw file. Returns 0, or −1 after printing an error to stderr. If another dump is running, writes nothing
/// and returns `None` without waiting.
pub fn dump_if_idle() -> Option<i32> {
    if BUSY.swap(true, Ordering::Acquire) {
        return None;
    }
    // SAFETY: BUSY is set, so no other call uses the buffers.
    let mut work = unsafe {
        Work {
            name: &mut *hidden(addr_of_mut!(NAME)),
            other: &mut *hidden(addr_of_mut!(OTHER)),
            stream: &mut *hidden(addr_of_mut!(STREAM)),
            source: &mut *hidden(addr_of_mut!(SOURCE)),
        }
    };
    let result = dump_with(&mut work);
    BUSY.store(false, Ordering::Release);
    Some(result)
}

/// Waits until no other dump is running, then writes the raw file. Returns 0, or −1 after printing an error to stderr.
pub fn dump() -> i32 {
    loop {
        if let Some(result) = dump_if_idle() {
            return result;
        }
        if PROCESS.load(Ordering::Relaxed) != sys::process() {
            // SAFETY: the process was forked without calling the fork handler, while another thread of the parent was
            // dumping; that thread does not exist in the child. `forked` stores the process id, so the child does not
            // call it a second time.
            unsafe { forked() };
        }
        sys::pause();
    }
}

#[inline(never)]
fn dump_with(work: &mut Work) -> i32 {
    let part = Part::of_image();
    if part.records.length() == 0 {
        return 0;
    }
    let process = sys::process();
    let length = PATTERN_LENGTH.load(Ordering::Acquire);
    let pattern = if length == 0 {
        DEFAULT_FILE_NAME.as_bytes()
    } else {
        // SAFETY: `start` has written `length` bytes before it stored the length, and never writes them again.
        unsafe { core::slice::from_raw_parts(addr_of_mut!(PATTERN).cast::<u8>(), length) }
    };
    // If the process was forked without calling the fork handler, its records still contain the parent's counts, which
    // must not be added to a pool.
    let unnoticed = process != PROCESS.load(Ordering::Relaxed);
    let mut facts = Facts {
        process,
        build_id: part.build_id,
        program: image::is_program(),
        address: part.records.address(),
        forked: FORKED.load(Ordering::Relaxed) || unnoticed,
        no_pool: unnoticed,
    };
    loop {
        work.name.expand(pattern, &facts);
        if work.name.too_long {
            return work.complain(b"its name is too long", 0);
        }
        if facts.build_id.is_empty() && !REPORTED.swap(true, Ordering::Relaxed) {
            work.complain(b"this image has no build id (link with -Wl,--build-id): its builds cannot be distinguished", 0);
        }
                if work.name.pool {
            match work.add_to_pool(&part) {
                Some(result) => return work.report(result),
                // These records cannot be added to a pool, so this process writes a file of its own.
                None => {
                    facts.no_pool = true;
                    continue;
                }
            }
        }
        let result = work.write(&part, None);
        return work.report(result);
    }
}

/// The error number of a system call, or 0.
fn number_of(result: sys::Result<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(number) => number,
    }
}

/// What the runtime says about frequent errors: the number of each and a text that ends with a zero byte.
const ERRORS: &[u8] = b"\x02: no such folder\0\x0d: permission denied\0\x14: not a folder\0\x1c: no space left on device\0\x1e: read-only file system\0";

impl Work {
    /// Prints the error of a dump, if there is one. Returns 0 or −1.
    fn report(&mut self, result: Result<(), i32>) -> i32 {
        match result {
            Ok(()) => 0,
            Err(number) => self.complain(b"cannot write it", number),
        }
    }

    /// Prints an error about the raw file to stderr. `number` is an error number of the system, or 0 for none. Returns
    /// −1.
    #[inline(never)]
    pub fn complain(&mut self, what: &[u8], number: i32) -> i32 {
        let line = &mut self.other;
        line.clear();
        line.extend(b"profkit: MIP profile ");
        // The file name is shortened so that the rest of the line fits.
        let name = self.name.as_bytes();
        line.extend(match name.get(..800) {
            Some(start) => start,
            None => name,
        });
        line.extend(b": ");
        line.extend(what);
        if number != 0 {
            let mut wanted = false;
            let mut at_start = true;
            for &byte in ERRORS {
                if at_start {
                    wanted = i32::from(byte) == number;
                } else if wanted && byte != 0 {
                    line.push(byte);
                }
                at_start = byte == 0;
            }
            line.extend(b" (error ");
            line.decimal(number as u32);
            line.push(b')');
        }
        line.push(b'\n');
        // An error of this write is ignored, because there is no other place to report the error.
        let _ = sys::write(2, line.as_bytes());
        -1
    }

    /// Writes the raw file completely or not at all. If there is a pool, the counts in it are added.
    #[inline(never)]
    pub fn write(&mut self, part: &Part, pool: Option<Pool>) -> Result<(), i32> {
        // SAFETY: a `Name` is always zero-terminated.
        let special = unsafe { sys::is_special(self.name.as_ptr()) };
        let mut tries = 0;
        let file = loop {
            let mut path = self.name.as_ptr();
            if !special {
                let number = TEMPORARIES.fetch_add(1, Ordering::Relaxed);
                self.other.temporary_of(self.name, sys::process(), number);
                if self.other.too_long {
                    return Err(error::NAME_TOO_LONG);
                }
                path = self.other.as_ptr();
            }
            // SAFETY: a `Name` is always zero-terminated.
            match unsafe { sys::open(path, if special { Open::Write } else { Open::Create }) } {
                // The file was left by a killed process that had the same process id, so another name is tried.
                Err(error::EXISTS) if tries < 100 => tries += 1,
                other => break other?,
            }
        };
        self.stream.start();
        self.stream.sink = File(file);
        let mut number = match pool {
                Some(pool) => part.emit_sum(self.stream, pool, self.source),
            _ => part.emit(self.stream),
        };
        let closed = sys::close(file);
        if number == 0 {
            number = number_of(closed);
        }
        if !special {
            if number == 0 {
                // SAFETY: a `Name` is always zero-terminated.
                number = number_of(unsafe { sys::rename(self.other.as_ptr(), self.name.as_ptr()) });
            }
            if number != 0 {
                // SAFETY: a `Name` is always zero-terminated.
                unsafe { sys::unlink(self.other.as_ptr()) };
            }
        }
        if number == 0 {
            Ok(())
        } else {
            Err(number)
        }
    }
}
