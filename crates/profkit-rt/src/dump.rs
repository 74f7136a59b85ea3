//! Writes the raw file of an image. The bytes go to a temporary file, which is then renamed.
use crate::file::{hidden, number_of, signed, File};
use crate::image;
use crate::name::Names;
use crate::part::Part;
use crate::pool::{Buffer, Source, NO_FILE};
use crate::records::Adding;
use crate::stream::Stream;
use crate::sys::{self, error, Open};
use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use profkit_abi::mip::DEFAULT_FILE_NAME;

/// Whether the state may be used: `start` was called, and no dump is running. Only one dump at a time may use the state.
static IDLE: AtomicBool = AtomicBool::new(false);
/// The process for which the records count. A process with another id was forked without the fork handler.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether this process is a forked child of a process that already contained this runtime.
static FORKED: AtomicBool = AtomicBool::new(false);
static mut STATE: State = State {
    part: Part::UNUSED,
    source: Source::UNUSED,
    temporaries: 0,
    reported: false,
    names: Names::NONE,
    stream: Stream::unused(File(0)),
    buffer: [0; core::mem::size_of::<Buffer>()],
};

/// What a dump uses. Static, because the stack of a signal handler may be small. Fields near the start have short
/// offsets, so their order makes the code small.
#[repr(C)]
pub struct State {
    pub part: Part,
    pub source: Source,
    temporaries: u32,
    reported: bool,
    pub names: Names,
    pub stream: Stream<File>,
    pub buffer: Buffer,
}

/// The records cannot be added to the pool and must go into a file of their own. No error has this number.
pub const OWN_FILE: i32 = -1;

/// Stores the id of this process and the file name pattern; a null pointer or an empty text means the default pattern.
///
/// # Safety
/// The caller must pass a `pattern` that is null or zero-terminated, and must ensure that nobody changes it during the
/// call. The caller must call this at most once per image.
pub unsafe fn start(pattern: *const u8) {
    PROCESS.store(sys::process(), Ordering::Relaxed);
    // SAFETY: `IDLE` is set only at the end of this function, so no dump uses the state before. The pattern is
    // zero-terminated.
    unsafe {
        let copy = &mut *hidden(addr_of_mut!(STATE.names.pattern));
        if !pattern.is_null() {
            // The pattern is copied, because programs may overwrite their environment.
            copy.extend(pattern);
        }
        if copy.length() == 0 {
            copy.extend(DEFAULT.as_ptr());
        }
    }
    IDLE.store(true, Ordering::Release);
}

/// The zero-terminated default pattern.
const DEFAULT: &[u8; 15] = b"default.mipraw\0";
const _: () = assert!(DEFAULT_FILE_NAME.len() + 1 == DEFAULT.len());

/// Prepares a forked child for its own dump: stores the id of the child, and lets its raw file have a different name
/// from its parent's.
///
/// # Safety
/// The caller must ensure that this process was forked, and that it has not started a dump since the fork. If a dump
/// seems to be running, it was started by a thread of the parent, which does not exist in the child.
#[inline(never)]
pub unsafe fn forked() {
    PROCESS.store(sys::process(), Ordering::Relaxed);
    FORKED.store(true, Ordering::Relaxed);
    // If a dump was running during the fork, it ran in a thread of the parent, which does not exist in the child.
    IDLE.store(true, Ordering::Release);
}

/// Returns 0, −1 after printing an error, or at once 1 if another dump is running.
#[inline(never)]
pub fn dump_if_idle() -> i32 {
    if !IDLE.swap(false, Ordering::Acquire) {
        return 1;
    }
    // SAFETY: the flag was set, so no other call uses the state.
    let result = unsafe { &mut *hidden(addr_of_mut!(STATE)) }.dump();
    IDLE.store(true, Ordering::Release);
    result
}

#[inline(always)]
pub fn dump() -> i32 {
    loop {
        let result = dump_if_idle();
        if result <= 0 {
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

/// Opens a file or folder. Returns its descriptor, or a negative error number.
///
/// # Safety
/// The caller must pass a zero-terminated `path`.
#[inline(never)]
pub unsafe fn signed_open(path: *const u8, how: Open) -> i32 {
    // SAFETY: the caller promises that the path is zero-terminated.
    signed(unsafe { sys::open(path, how) })
}

/// Frequent errors: numbers, each with a zero-terminated text. Another zero follows the last text.
const ERRORS: &[u8] = b"\x02: no such folder\0\x0d: permission denied\0\x14: not a folder\0\x1b: the process may not write files of this size\0\x1c: no space left on device\0\x1e: read-only file system\0\0";

#[inline(never)]
pub fn complain(names: &mut Names, what: &[u8], number: i32) {
    let line = &mut names.other;
    // SAFETY: all texts are zero-terminated. The loop ends at the zero after the texts of errors.
    unsafe {
        line.set(b"profkit: MIP profile \0".as_ptr());
        line.extend(names.name.as_ptr());
        line.extend(what.as_ptr());
        if number != 0 {
            let mut text = ERRORS.as_ptr();
            while *text != 0 {
                let wanted = i32::from(*text) == number;
                text = text.add(1);
                if wanted {
                    line.extend(text);
                }
                // Because of the volatile access, the compiler does not call strlen.
                while text.read_volatile() != 0 {
                    text = text.add(1);
                }
                text = text.add(1);
            }
            line.extend(b" (error \0".as_ptr());
            line.decimal(number as u32);
            line.push(b')');
        }
        line.push(b'\n');
    }
    // An error of this write is ignored, because there is no other place to report the error.
    let _ = sys::write(2, line.as_bytes());
}

impl State {
    fn dump(&mut self) -> i32 {
        let names = &mut self.names;
        names.build_id = image::build_id().into();
        self.part.find(names.build_id.length());
        if self.part.records.length() == 0 {
            return 0;
        }
        self.source.file = NO_FILE;
        names.address = self.part.records.address();
        names.program = image::is_program();
        names.process = sys::process();
        // Without the fork handler, the records have the parent's counts too.
        names.no_pool = names.process != PROCESS.load(Ordering::Relaxed);
        names.forked = FORKED.load(Ordering::Relaxed) | names.no_pool;
        loop {
            self.names.expand();
            if self.names.are_too_long() {
                // The name of the raw file is cut so that the message fits into its buffer.
                self.names.name.cut(800);
                complain(&mut self.names, b": its name is too long\0", 0);
                return -1;
            }
            if self.part.header.build_id_length == 0 && !self.reported {
                self.reported = true;
                complain(&mut self.names, b": this image has no build id (link with -Wl,--build-id): its builds cannot be distinguished\0", 0);
            }
            let number = if self.names.pool {
                self.add_to_pool()
            } else {
                self.write(Adding::Impossible)
            };
            if number == OWN_FILE {
                // The check of the pool may have stored its number of runs, but this file has one.
                self.part.header.runs = 1;
                self.names.no_pool = true;
                continue;
            }
            if number != 0 {
                complain(&mut self.names, b": cannot write it\0", number);
                return -1;
            }
            return 0;
        }
    }

    /// Writes the raw file, with the counts of the pool file if there is one, or nothing. Returns an error number or 0.
    #[inline(never)]
    pub fn write(&mut self, adding: Adding) -> i32 {
        // SAFETY: a `Text` is always zero-terminated.
        let special = unsafe { sys::is_special(self.names.name.as_ptr()) };
        let size = self.part.size_with(self.names.build_id.length());
        if !special && sys::largest_file() < size as u64 {
            return error::FILE_TOO_LARGE;
        }
        let file = loop {
            let mut path = self.names.name.as_ptr();
            let mut how = Open::Write;
            if !special {
                self.temporaries = self.temporaries.wrapping_add(1);
                self.names.set_temporary(self.temporaries);
                path = self.names.other.as_ptr();
                how = Open::Create;
            }
            // SAFETY: a `Text` is always zero-terminated.
            let file = unsafe { signed_open(path, how) };
            // A killed process of the same id left this file. Some file systems may report every name, so 128 are
            // tried.
            if file != -error::EXISTS || self.temporaries % 128 == 0 {
                break file;
            }
        };
        if file < 0 {
            return -file;
        }
        self.stream.sink = File(file);
        let mut number = self.emit(adding, false);
        let closed = number_of(sys::close(file));
        if number == 0 {
            number = closed;
        }
        if !special {
            // SAFETY: a `Text` is always zero-terminated.
            unsafe {
                if number == 0 {
                    number = number_of(sys::rename(self.names.other.as_ptr(), self.names.name.as_ptr()));
                }
                if number != 0 {
                    sys::unlink(self.names.other.as_ptr());
                }
            }
        }
        number
    }
}
