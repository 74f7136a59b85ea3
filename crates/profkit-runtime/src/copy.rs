//! The functions `memcpy` and `memset`, which compilers call to copy and fill larger values. They are private to the
//! object of the runtime. So a program without an operating system need not define them, and the definitions of a
//! program that has them are not replaced.

/// # Safety
/// The caller must pass two places of `length` bytes that do not overlap.
#[no_mangle]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    let mut at = 0;
    while at < length {
        // SAFETY: the caller promises that both bytes exist.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
        at += 1;
    }
    to
}

/// # Safety
/// The caller must pass a place of `length` bytes.
#[no_mangle]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, length: usize) -> *mut u8 {
    let mut at = 0;
    while at < length {
        // SAFETY: the caller promises that the byte exists.
        unsafe { to.add(at).write_volatile(byte as u8) };
        at += 1;
    }
    to
}

/// Only code that the compiler generates later calls these: without references it would remove them.
#[used]
static NEEDED: (
    unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8,
    unsafe extern "C" fn(*mut u8, i32, usize) -> *mut u8,
) = (memcpy, memset);
