//! The file of the small runtime. The name of the file comes from the environment and cannot be a pattern. The file is
//! written in place: there are no temporary files, pools, signals and fork handlers.
use crate::file::{hidden, File};
use crate::part::Part;
use crate::stream::Stream;
use crate::sys::{self, error, Open};
use core::arch::global_asm;
use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicU32, Ordering};

// This runtime is only for programs, because two images of a process would write the same file. A shared library has no
// symbol `_start`. So the linker reports an error if this runtime is linked into a shared library.
global_asm!(
    ".hidden _start",
    ".pushsection .rodata.profkit_rt, \"a\", %progbits",
    ".long _start - .",
    ".popsection"
);

/// The longest text. A file name that fills it is too long for the system, and the message has no error number.
const TEXT_MAX: usize = 4352;
/// The text that stands before the file name in an error message.
const BEFORE: &[u8] = b"profkit: MIP profile \0";
const NAME_AT: usize = BEFORE.len() - 1;

/// The id of the process in which a dump is running; 0 if none is. Only one dump at a time may use `TEXT`. A forked
/// child may find the id of its parent here: that dump ran in a thread that does not exist in the child.
static RUNNING: AtomicU32 = AtomicU32::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static mut TEXT: Text = Text {
    length: 0,
    is_pattern: false,
    bytes: [0; TEXT_MAX + 1],
};

static mut STREAM: Stream<File> = Stream::unused(File(0));

#[repr(C)]
struct Text {
    length: usize,
    /// Whether the name contains a percent sign. This runtime does not know what a percent sign means.
    is_pattern: bool,
    bytes: [u8; TEXT_MAX + 1],
}

impl Text {
    #[inline(never)]
    fn push(&mut self, byte: u8) {
        self.is_pattern |= byte == b'%';
        if self.length < TEXT_MAX {
            // SAFETY: the length is less than the size of the array minus one.
            unsafe { *self.bytes.as_mut_ptr().add(self.length) = byte };
            self.length += 1;
        }
    }

    /// # Safety
    /// The caller must pass a zero-terminated text.
    #[inline(never)]
    unsafe fn extend(&mut self, mut text: *const u8) {
        // SAFETY: the caller promises that the text is zero-terminated.
        unsafe {
            while *text != 0 {
                self.push(*text);
                text = text.add(1);
            }
        }
    }

    #[inline(never)]
    fn number(&mut self, before: u8, number: u32) {
        if number < 10 {
            self.push(before);
        } else {
            self.number(before, number / 10);
        }
        self.push(b'0' + (number % 10) as u8);
    }
}

extern "C" {
    fn getenv(name: *const u8) -> *const u8;
}

pub extern "C" fn initialize() {
    // SAFETY: the constructor runs before the program changes its environment. Nothing else uses the text before the
    // first dump. After the first call the text is not empty, so a later call returns at once.
    unsafe {
        let text = &mut *addr_of_mut!(TEXT);
        if text.length != 0 {
            return;
        }
        PROCESS.store(sys::process(), Ordering::Relaxed);
        let mut name = getenv(b"LLVM_MIP_PROFILE_FILENAME\0".as_ptr());
        if name.is_null() || *name == 0 {
            name = b"default.mipraw\0".as_ptr();
        }
        text.extend(BEFORE.as_ptr());
        text.extend(name);
    }
}

pub fn dump() -> i32 {
    let process = sys::process();
    let mut running = 0;
    while let Err(other) =
        RUNNING.compare_exchange(running, process, Ordering::Acquire, Ordering::Relaxed)
    {
        running = other;
        if other == process {
            running = 0;
            sys::pause();
        }
    }
    // SAFETY: only the thread that has set RUNNING from another value to the id of this process uses the text.
    let text = unsafe { &mut *addr_of_mut!(TEXT) };
    if PROCESS.swap(process, Ordering::Relaxed) != process {
        // A forked child writes a file of its own.
        text.number(b'.', process);
    }
    let number = write(text);
    if number != 0 {
        let length = text.length;
        // SAFETY: the text is zero-terminated, and its length is not larger than its array.
        unsafe {
            text.extend(b": error\0".as_ptr());
            text.number(b' ', number as u32);
            text.push(b'\n');
            // An error of this write is ignored, because there is no other place to report the error.
            let _ = sys::write(2, text.bytes.get_unchecked(..text.length));
            while text.length != length {
                text.length -= 1;
                *text.bytes.as_mut_ptr().add(text.length) = 0;
            }
        }
    }
    RUNNING.store(0, Ordering::Release);
    -i32::from(number != 0)
}

#[inline(always)]
fn write(text: &mut Text) -> i32 {
    if text.is_pattern {
        return error::INVALID;
    }
    let part = Part::of_image();
    if part.records.length() == 0 {
        return 0;
    }
    // SAFETY: the text is zero-terminated.
    let file = match unsafe { sys::open(text.bytes.as_ptr().add(NAME_AT), Open::Replace) } {
        Ok(file) => file,
        Err(number) => return number,
    };
    // SAFETY: only the thread that has set RUNNING calls this function, so no other one uses the stream.
    let stream = unsafe { &mut *hidden(addr_of_mut!(STREAM)) };
    stream.start();
    stream.sink = File(file);
    let number = part.emit(stream);
    match sys::close(file) {
        Err(closed) if number == 0 => closed,
        _ => number,
    }
}
