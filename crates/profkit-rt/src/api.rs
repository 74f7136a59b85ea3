//! The interface of a runtime without files: the program asks for the bytes of the raw file. There is no constructor, and
//! neither libc nor an operating system is needed.
use crate::part::Part;
use crate::stream::{Sink, Stream};
use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicBool, Ordering};

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
core::arch::global_asm!(
    ".hidden __profkit_mip_size",
    ".hidden __profkit_mip_write",
    ".hidden __profkit_mip_copy",
);
#[cfg(any(target_os = "macos", target_os = "ios"))]
core::arch::global_asm!(
    ".private_extern ___profkit_mip_size",
    ".private_extern ___profkit_mip_write",
    ".private_extern ___profkit_mip_copy",
);

/// Only one raw file at a time may be written through `STREAM`.
static BUSY: AtomicBool = AtomicBool::new(false);
static mut STREAM: Stream<Callback> = Stream::unused(Callback {
    function: None,
    context: core::ptr::null_mut(),
});

/// Instrumented objects refer to this variable, so that the runtime is linked.
#[no_mangle]
pub static __profkit_mip_hook: usize = 0;

/// Returns 0, or an error number of its own.
type Function = extern "C" fn(context: *mut u8, bytes: *const u8, length: usize) -> i32;

/// The function is `None` until the first raw file is written.
struct Callback {
    function: Option<Function>,
    context: *mut u8,
}

impl Sink for Callback {
    fn write(&mut self, bytes: &[u8]) -> i32 {
        match self.function {
            Some(function) => function(self.context, bytes.as_ptr(), bytes.len()),
            None => 0,
        }
    }
}

/// Passes the bytes of the raw file to a function, until it returns another value than 0, which is returned. Returns −1
/// at once if another call is running.
#[no_mangle]
pub extern "C" fn __profkit_mip_write(function: Function, context: *mut u8) -> i32 {
    if BUSY.swap(true, Ordering::Acquire) {
        return -1;
    }
    // SAFETY: BUSY is set, so no other call uses the stream.
    let stream = unsafe { &mut *addr_of_mut!(STREAM) };
    stream.start();
    stream.sink = Callback {
        function: Some(function),
        context,
    };
    let result = Part::of_image().emit(stream);
    BUSY.store(false, Ordering::Release);
    result
}

#[no_mangle]
pub extern "C" fn __profkit_mip_size() -> usize {
    Part::of_image().size()
}

#[repr(C)]
struct Rest {
    start: *mut u8,
    size: usize,
}

extern "C" fn copy(context: *mut u8, bytes: *const u8, length: usize) -> i32 {
    // SAFETY: `__profkit_mip_copy` has passed the address of a `Rest`.
    let rest = unsafe { &mut *context.cast::<Rest>() };
    if length > rest.size {
        return 1;
    }
    for at in 0..length {
        // SAFETY: the caller has passed `length` bytes, and the buffer has room for them. The access is volatile, so
        // that the compiler calls no function of libc.
        unsafe { rest.start.add(at).write_volatile(*bytes.add(at)) };
    }
    // SAFETY: the result is at most the address after the end of the buffer.
    rest.start = unsafe { rest.start.add(length) };
    rest.size -= length;
    0
}

/// Copies the raw file to a buffer. Returns its size, or 0 if there is no room or another call is running.
#[no_mangle]
pub extern "C" fn __profkit_mip_copy(buffer: *mut u8, size: usize) -> usize {
    let mut rest = Rest {
        start: buffer,
        size,
    };
    let context: *mut Rest = &mut rest;
    if __profkit_mip_write(copy, context.cast()) == 0 {
        size - rest.size
    } else {
        0
    }
}
