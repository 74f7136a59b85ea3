//! The functions of the runtime that have C names, and the code that calls the runtime: constructor, destructor, fork
//! handler and signal handler. `profkit_abi::mip::symbol` lists the names and documents the functions.
use crate::dump;
use crate::image;
use crate::sys;
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use profkit_abi::mip::record;

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
global_asm!(
    ".hidden __profkit_mip_hook",
    ".hidden __profkit_mip_fini",
    ".hidden __profkit_mip_dump",
    ".hidden __profkit_mip_reset",
    ".hidden __profkit_mip_ordinal",
    ".hidden __profkit_mip_ring_next",
);
#[cfg(any(target_os = "macos", target_os = "ios"))]
global_asm!(
    ".private_extern ___profkit_mip_hook",
    ".private_extern ___profkit_mip_dump",
    ".private_extern ___profkit_mip_reset",
    ".private_extern ___profkit_mip_ordinal",
    ".private_extern ___profkit_mip_ring_next",
);

/// The next ordinal to assign. Functions get ordinals in the order of their first calls.
#[no_mangle]
pub static __profkit_mip_ordinal: AtomicU32 = AtomicU32::new(record::FIRST_ORDINAL);

/// The number of return addresses that were sampled so far.
#[no_mangle]
pub static __profkit_mip_ring_next: AtomicU32 = AtomicU32::new(0);

/// The entry for the runtime's constructor in the image's list of constructors. The runtime's constructor is executed
/// first. Instrumented objects refer to this entry, so that the runtime is linked.
#[cfg_attr(
    not(any(target_os = "macos", target_os = "ios")),
    link_section = ".init_array.00000"
)]
#[cfg_attr(
    any(target_os = "macos", target_os = "ios"),
    link_section = "__DATA,__mod_init_func,mod_init_funcs"
)]
#[no_mangle]
pub static __profkit_mip_hook: extern "C" fn() = initialize;

/// The entry for the runtime's destructor in the image's list of destructors. The runtime's destructor is executed
/// last, after atexit handlers and all other destructors of the image.
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
#[link_section = ".fini_array.00000"]
#[no_mangle]
pub static __profkit_mip_fini: extern "C" fn() = at_exit;

/// Writes the raw file of the calling image now.
///
/// Any thread may call this function at any time. If another thread is writing the file, the call waits until that
/// thread has finished. Signal handlers must not call it.
#[no_mangle]
pub extern "C" fn __profkit_mip_dump() -> i32 {
    initialize();
    dump::dump()
}

/// Resets all records, samples and the next ordinal to their initial values.
///
/// Any thread may call this function at any time. If other threads run instrumented code during the reset, their counts
/// may be lost or kept.
#[no_mangle]
pub extern "C" fn __profkit_mip_reset() {
    __profkit_mip_ordinal.store(record::FIRST_ORDINAL, Ordering::Relaxed);
    image::records().fill(record::INITIAL_BYTE);
    __profkit_mip_ring_next.store(0, Ordering::Relaxed);
    image::ring().fill(0);
}

extern "C" fn at_exit() {
    initialize();
    dump::dump();
}

/// The fork handler, which is called in a forked child. It resets the child's records: they are a copy of the parent's
/// counts, which the parent writes itself.
extern "C" fn in_child() {
    // SAFETY: the system calls this handler in a forked child, which has only this thread. No dump is therefore running
    // in the child.
    unsafe { dump::forked() };
    __profkit_mip_reset();
}

static INITIALIZED: AtomicBool = AtomicBool::new(false);
/// The address of the handler that was registered for the signal before the runtime's handler; 0 if there is none. The
/// runtime's handler calls this handler with its own three arguments. So the address is stored (with Release) only
/// after the system was set to pass three arguments to the runtime's handler.
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);

/// A signal handler that was registered with `SA_SIGINFO`: its arguments are the signal number, `siginfo_t` and
/// `ucontext_t`. A handler registered without `SA_SIGINFO` uses only the first argument. The other two do no harm,
/// because C passes them in registers.
type Handler = extern "C" fn(i32, *const u8, *const u8);

extern "C" {
    fn getenv(name: *const u8) -> *const u8;
    fn signal(number: i32, handler: usize) -> usize;
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    fn atexit(function: extern "C" fn()) -> i32;
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    fn pthread_atfork(before: usize, parent: usize, child: extern "C" fn()) -> i32;
}

extern "C" fn initialize() {
    if INITIALIZED.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: constructors run before the program changes its environment, and the flag lets only one call reach this
    // line.
    unsafe {
        dump::start(getenv(b"LLVM_MIP_PROFILE_FILENAME\0".as_ptr()));
        register_fork_handler();
        #[cfg(any(target_os = "macos", target_os = "ios"))]
        atexit(at_exit);
        let number = number_of(getenv(b"PROFKIT_MIP_SIGNAL\0".as_ptr()));
        if number != 0 {
            let previous = signal(number, on_signal as Handler as usize);
            // The constants SIG_DFL, SIG_IGN and SIG_ERR, which are no handlers, are 0, 1 and −1.
            if previous > 1 && previous != usize::MAX && sys::pass_three_arguments(number) {
                PREVIOUS.store(previous, Ordering::Release);
            }
        }
    }
}

extern "C" fn on_signal(number: i32, info: *const u8, context: *const u8) {
    // If a dump is already running, this handler does not wait for it. The dump may belong to this thread, and the wait
    // would then never end.
    let _ = dump::dump_if_idle();
    // Calls the handler that the program, or another image of the process, has registered before.
    let previous = PREVIOUS.load(Ordering::Acquire);
    if previous != 0 {
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

/// Registers the fork handler.
///
/// # Safety
/// Only the image's constructor may call this, and it may call this only once.
#[cfg(any(target_os = "macos", target_os = "ios"))]
unsafe fn register_fork_handler() {
    // SAFETY: `pthread_atfork` accepts null for the two handlers that are not needed. It is sound that the system calls
    // `in_child` in every forked child, because `in_child` is written for that.
    unsafe { pthread_atfork(0, 0, in_child) };
}

// The two functions that register fork handlers are imported weakly. glibc has `__register_atfork` in its shared
// library, but `pthread_atfork` only in an archive, which a strong import would add to the program. musl has
// `pthread_atfork`. A static program may contain neither: then it does not fork, or `dump` recognises the child by its
// process id.
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
global_asm!(".weak __register_atfork", ".weak pthread_atfork");

/// Registers the fork handler.
///
/// # Safety
/// Only the image's constructor may call this, and it may call this only once.
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
unsafe fn register_fork_handler() {
    type Register = extern "C" fn(usize, usize, extern "C" fn(), *mut u8) -> i32;
    let mut address = weak_address!("__register_atfork");
    if address == 0 {
        address = weak_address!("pthread_atfork");
    }
    if address != 0 {
        // SAFETY: both functions accept these arguments; `pthread_atfork` ignores the last one. libc removes the
        // handler when the image is unloaded.
        let register = unsafe { core::mem::transmute::<usize, Register>(address) };
        register(0, 0, in_child, image::runtime_handle());
    }
}
