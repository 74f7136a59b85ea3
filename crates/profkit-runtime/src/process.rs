//! The actions of the runtime at the start of the program, in a forked child, at a signal and at exit.
use crate::file;
use crate::image;
use crate::libc::{self, Handler};
use crate::memory::{numbered, same};
use crate::system;
use crate::values;
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

global_asm!(
    ".weak __profkit_profile_hook",
    ".hidden __profkit_profile_hook"
);

static INITIALIZED: AtomicBool = AtomicBool::new(false);
static REGISTERED: AtomicBool = AtomicBool::new(false);
static KEEP: AtomicBool = AtomicBool::new(false);
/// The program can ask for signals whose numbers are less than this.
const SIGNALS: usize = 32;
/// For each signal with the runtime's handler, one more than the action before: a handler, 0 for the default, 1 for
/// ignoring.
static BEFORE: [AtomicUsize; SIGNALS] = {
    // This constant is only copied to each element of the array.
    #[allow(clippy::declare_interior_mutable_const)]
    const NONE: AtomicUsize = AtomicUsize::new(0);
    [NONE; SIGNALS]
};

/// Prepares the runtime. The constructor of the image or the program itself calls this.
pub fn initialize() {
    file::initialize();
    if INITIALIZED.swap(true, Ordering::AcqRel) {
        return;
    }
    let mut stays = false;
    // SAFETY: no thread may change the environment now, as in every program that calls `getenv`.
    unsafe {
        let mut limit = Numbers(libc::variable(b"LLVM_VP_MAX_NUM_VALS_PER_SITE\0"));
        if let Some(limit) = limit.next() {
            values::set_limit(limit);
        }
        let keep = same(libc::variable(b"PROFKIT_PROFILE_FORK\0"), b"keep");
        KEEP.store(keep, Ordering::Relaxed);
        libc::at_fork(before_fork, in_parent, in_child);
        let signals = Numbers(libc::variable(b"PROFKIT_PROFILE_SIGNALS\0"));
        for signal in signals {
            if let Some(before) = BEFORE.get(signal) {
                // SAFETY: the handler only uses what a signal handler may use.
                let old = libc::set_handler(signal as i32, on_signal as Handler as usize);
                if old != usize::MAX && system::pass_three_arguments(signal as i32) {
                    before.store(old.wrapping_add(1), Ordering::Release);
                    stays |= !image::is_program();
                }
            }
        }
    }
    if stays {
        // A handler of another image may call this one, so this image must stay in memory.
        libc::stay_loaded();
    }
    // The object file that defines the constructor also defines the destructor, so a program has both or none of them.
    if crate::image::present(weak_address!("__profkit_profile_hook")) == 0 {
        register_at_exit();
    }
}

struct Numbers<'a>(&'a [u8]);

impl Iterator for Numbers<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let mut number = None;
        while let [byte, rest @ ..] = self.0 {
            let digit = usize::from(byte.wrapping_sub(b'0'));
            if digit < 10 {
                let before = match number {
                    Some(number) => number,
                    None => 0,
                };
                // A number above 100000 does not grow further, so it cannot overflow.
                number = Some(if before > 100_000 {
                    before
                } else {
                    before * 10 + digit
                });
            } else if number.is_some() {
                break;
            }
            self.0 = rest;
        }
        number
    }
}

extern "C" fn before_fork() {
    file::before_fork();
}

extern "C" fn in_parent() {
    file::after_fork();
}

extern "C" fn in_child() {
    file::after_fork();
    if !KEEP.load(Ordering::Relaxed) {
        file::in_child();
    }
}

extern "C" fn on_signal(signal: i32, info: *const u8, context: *const u8) {
    const SIGUSR1: i32 = 10;
    const SIGUSR2: i32 = 12;
    // All signals are blocked while a thread writes the file, so this thread is not writing the file.
    file::write_once();
    let before = match BEFORE.get(signal as usize) {
        Some(before) => before.load(Ordering::Acquire),
        None => 0,
    };
    if before > 2 {
        // SAFETY: the address is that of a handler, as libc returned it. The system passes three arguments.
        unsafe { core::mem::transmute::<usize, Handler>(before - 1)(signal, info, context) };
    } else if before == 1 && signal != SIGUSR1 && signal != SIGUSR2 {
        // Nobody else handles the signal, so it must end the process, as it does without the runtime.
        // SAFETY: the default action is no handler.
        unsafe { libc::set_handler(signal, 0) };
        system::raise(signal);
    }
}

pub fn register_at_exit() -> i32 {
    if REGISTERED.swap(true, Ordering::AcqRel) || libc::at_exit(at_exit) {
        0
    } else {
        -1
    }
}

pub extern "C" fn at_exit() {
    file::write_once();
    for (signal, before) in numbered(&BEFORE) {
        let before = before.swap(0, Ordering::AcqRel);
        if before != 0 {
            let mine = on_signal as Handler as usize;
            // SAFETY: the action that the signal had before is valid. A handler that another image has registered since
            // then is set again.
            unsafe {
                let now = libc::set_handler(signal as i32, before - 1);
                if now != mine && now != usize::MAX {
                    libc::set_handler(signal as i32, now);
                }
            }
        }
    }
}
