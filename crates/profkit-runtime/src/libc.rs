//! The functions of libc that the runtime uses if the program contains them. All are imported weakly, so that a program
//! without libc can be linked.
use core::arch::global_asm;

global_asm!(
    ".weak getenv",
    ".weak setenv",
    ".weak malloc",
    ".weak signal",
    ".weak fflush",
    ".weak fileno",
    ".weak __cxa_atexit",
    ".weak atexit",
    ".weak __register_atfork",
    ".weak pthread_atfork",
    ".weak dladdr",
    ".weak dlopen",
    ".weak __libc_single_threaded",
);

type One = unsafe extern "C" fn(usize) -> usize;
type Three = unsafe extern "C" fn(usize, usize, usize) -> usize;
type Four = unsafe extern "C" fn(usize, usize, usize, usize) -> usize;

/// Gives `Some` with a function of libc, as a function of the given type, or `None` if the program does not contain it.
macro_rules! function {
    ($name:literal, $type:ty) => {
        match weak_address!($name) {
            0 => None,
            // SAFETY: the function of this name has this type in every libc. Some of its arguments may be smaller than
            // `usize`, but the supported machines pass all integers up to the size of an address in the same way.
            address => Some(unsafe { core::mem::transmute::<usize, $type>(address) }),
        }
    };
}

/// Returns the value of an environment variable; empty if the variable is not set.
///
/// # Safety
/// The caller must pass a zero-terminated name, and ensure that nobody changes the environment while the value is used.
pub unsafe fn variable<'a>(name: &[u8]) -> &'a [u8] {
    match function!("getenv", One) {
        // SAFETY: the caller promises that the name is zero-terminated.
        Some(getenv) => unsafe { text(getenv(name.as_ptr() as usize) as *const u8) },
        None => &[],
    }
}

/// Returns the bytes of a zero-terminated text, without the zero; empty for null.
///
/// # Safety
/// The caller must pass null or the address of a zero-terminated text that stays unchanged while the bytes are used.
#[inline(never)]
pub unsafe fn text<'a>(start: *const u8) -> &'a [u8] {
    let mut length = 0;
    if start.is_null() {
        return &[];
    }
    // SAFETY: every byte up to the terminating zero is readable.
    unsafe {
        while start.add(length).read_volatile() != 0 {
            length += 1;
        }
        core::slice::from_raw_parts(start, length)
    }
}

/// # Safety
/// The caller must pass zero-terminated texts, and ensure that no other thread uses the environment.
pub unsafe fn set_variable(name: &[u8], value: *const u8) {
    if let Some(setenv) = function!("setenv", Three) {
        // SAFETY: both texts are zero-terminated.
        unsafe { setenv(name.as_ptr() as usize, value as usize, 1) };
    }
}

/// Returns new memory that the program may free; null if it has no `malloc`.
pub fn allocate(size: usize) -> *mut u8 {
    match function!("malloc", One) {
        // SAFETY: `malloc` accepts every size.
        Some(malloc) => unsafe { malloc(size) as *mut u8 },
        None => core::ptr::null_mut(),
    }
}

/// Whether the process certainly has only one thread. glibc has a variable with this information since 2.32.
pub fn has_one_thread() -> bool {
    match weak_address!("__libc_single_threaded") {
        0 => false,
        // SAFETY: the variable is a `char`, which glibc sets to 0 before it starts a thread.
        place => unsafe { (place as *const u8).read_volatile() != 0 },
    }
}

/// Writes the buffer of a `FILE`, and returns the file's descriptor. Returns −1 if the program's libc has no such
/// files.
///
/// # Safety
/// The caller must pass an open `FILE`.
pub unsafe fn descriptor(file: usize) -> i32 {
    match (function!("fflush", One), function!("fileno", One)) {
        // SAFETY: the caller promises that the file is open.
        (Some(fflush), Some(fileno)) => unsafe {
            fflush(file);
            fileno(file) as i32
        },
        _ => -1,
    }
}

/// Registers a function that is called at exit. Returns whether that succeeded.
pub fn at_exit(function: extern "C" fn()) -> bool {
    if let Some(register) = function!("__cxa_atexit", Three) {
        // SAFETY: the function ignores its argument. libc also calls it when the image is unloaded.
        return unsafe { register(function as usize, 0, crate::image::handle()) as i32 == 0 };
    }
    match function!("atexit", One) {
        // SAFETY: the function has no arguments.
        Some(register) => unsafe { register(function as usize) as i32 == 0 },
        None => false,
    }
}

/// Registers functions for forks: before, and in parent and child after it. A static program without libc's function
/// does not fork.
pub fn at_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    let mut register = function!("__register_atfork", Four);
    if register.is_none() {
        register = function!("pthread_atfork", Four);
    }
    if let Some(register) = register {
        // SAFETY: both functions accept these arguments; `pthread_atfork` ignores the last one. libc removes the
        // handlers when the image is unloaded.
        unsafe {
            register(
                before as usize,
                parent as usize,
                child as usize,
                crate::image::handle(),
            )
        };
    }
}

/// Others may have stored addresses of this image's functions, so it must not be unloaded.
pub fn stay_loaded() {
    type Two = unsafe extern "C" fn(usize, usize) -> usize;
    const LAZY_LOADED_FOR_EVER: usize = 1 | 4 | 0x1000;
    if let (Some(dladdr), Some(dlopen)) = (function!("dladdr", Two), function!("dlopen", Two)) {
        let mut facts = [0_usize; 4];
        // SAFETY: `dladdr` fills a structure of four words, whose first is the name of the image that contains the
        // address. `dlopen` only changes a setting of this image, which is loaded.
        unsafe {
            if dladdr(stay_loaded as fn() as usize, facts.as_mut_ptr() as usize) as i32 != 0 {
                dlopen(facts[0], LAZY_LOADED_FOR_EVER);
            }
        }
    }
}

/// A signal handler with three arguments. A handler that was registered for one argument ignores the other two.
pub type Handler = extern "C" fn(i32, *const u8, *const u8);

/// Sets the action of a signal: the address of a handler, or a constant of `signal`. Returns the previous action. The
/// largest number means an error.
///
/// # Safety
/// The caller must pass a handler that may be called at any time, or 0 for the default.
pub unsafe fn set_handler(signal: i32, handler: usize) -> usize {
    type Signal = unsafe extern "C" fn(i32, usize) -> usize;
    match function!("signal", Signal) {
        // SAFETY: the caller promises that the handler may be called.
        Some(set) => unsafe { set(signal, handler) },
        None => usize::MAX,
    }
}
