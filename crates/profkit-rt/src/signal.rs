//! The signal at which the runtime writes the raw file.
use crate::dump;
use crate::sys;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The handler before the runtime's, which gets the same three arguments. So it is stored, with Release, after the
/// system was set to pass three.
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);

/// With `SA_SIGINFO`: the number, `siginfo_t` and `ucontext_t`. Handlers without it ignore the last two, which C passes
/// in registers.
type Handler = extern "C" fn(i32, *const u8, *const u8);

extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

/// # Safety
/// The caller must pass a `text` that is null or zero-terminated, and may call this only once.
pub unsafe fn register(text: *const u8) {
    // SAFETY: the caller promises that the text is null or zero-terminated. The handler is one that may be called at any
    // time.
    unsafe {
        let number = number_of(text);
        if number != 0 {
            let previous = signal(number, on_signal as Handler as usize);
            // The result is −1 if there is no such signal, or libc does not let a program use it.
            if previous != usize::MAX && sys::pass_three_arguments(number) {
                PREVIOUS.store(previous, Ordering::Release);
            }
        }
    }
}

extern "C" fn on_signal(number: i32, info: *const u8, context: *const u8) {
    // A running dump may belong to this thread, so the wait would never end.
    let _ = dump::dump_if_idle();
    // Calls the handler that the program, or another image of the process, has registered before.
    let previous = PREVIOUS.load(Ordering::Acquire);
    // The constants SIG_DFL and SIG_IGN, which are no handlers, are 0 and 1.
    if previous > 1 {
        // SAFETY: the address is that of a handler, as `signal` returned it. Before the address was stored, the system
        // was set to pass three arguments.
        unsafe { core::mem::transmute::<usize, Handler>(previous)(number, info, context) };
    }
}

/// Parses a signal number in decimal. Returns 0 if the text is null or does not begin with a digit.
///
/// # Safety
/// The caller must pass a `text` that is null or zero-terminated.
unsafe fn number_of(mut text: *const u8) -> i32 {
    let mut number = 0;
    // SAFETY: the caller promises that `text` is null or zero-terminated, and reading ends at the first byte that is
    // not a digit.
    unsafe {
        while !text.is_null() && (*text).wrapping_sub(b'0') < 10 && number < 1000 {
            number = number * 10 + i32::from(*text - b'0');
            text = text.add(1);
        }
    }
    number
}
