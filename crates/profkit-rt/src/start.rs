//! The constructor of the runtime, and its fork handler.
use crate::dump;
use crate::entry::__profkit_mip_reset;
use crate::image;
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, Ordering};

static INITIALIZED: AtomicBool = AtomicBool::new(false);

extern "C" {
    fn getenv(name: *const u8) -> *const u8;
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    fn __cxa_atexit(function: extern "C" fn(*mut u8), argument: *mut u8, image: *mut u8) -> i32;
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    fn pthread_atfork(before: usize, parent: usize, child: extern "C" fn()) -> i32;
}

pub extern "C" fn initialize() {
    if INITIALIZED.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: constructors run before the program changes its environment, and the flag lets only one call reach this
    // line.
    unsafe {
        dump::start(getenv(b"LLVM_MIP_PROFILE_FILENAME\0".as_ptr()));
        register_fork_handler();
        #[cfg(any(target_os = "macos", target_os = "ios"))]
        // With the image's handle, the system calls the function when the image is unloaded too.
        __cxa_atexit(at_exit, core::ptr::null_mut(), image::runtime_handle());
        crate::signal::register(getenv(b"PROFKIT_MIP_SIGNAL\0".as_ptr()));
    }
}

#[cfg(any(target_os = "macos", target_os = "ios"))]
extern "C" fn at_exit(_: *mut u8) {
    dump::dump();
}

/// In a forked child: the parent writes the counts from before the fork.
extern "C" fn in_child() {
    // SAFETY: the system calls this handler in a forked child, which has only this thread. No dump is therefore running
    // in the child.
    unsafe { dump::forked() };
    __profkit_mip_reset();
}

/// # Safety
/// Only the image's constructor may call this, and it may call this only once.
#[cfg(any(target_os = "macos", target_os = "ios"))]
unsafe fn register_fork_handler() {
    // SAFETY: `pthread_atfork` accepts null for the two handlers that are not needed. It is sound that the system calls
    // `in_child` in every forked child, because `in_child` is written for that.
    unsafe { pthread_atfork(0, 0, in_child) };
}

// Imported weakly: glibc has `pthread_atfork` only in an archive, musl has nothing else. A static program may have
// neither: it does not fork, or `dump` sees the other process id.
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
global_asm!(".weak __register_atfork", ".weak pthread_atfork");

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
