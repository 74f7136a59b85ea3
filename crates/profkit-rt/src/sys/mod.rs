//! The few things that the runtime asks of the system. Linux on the architectures that we emit code for: system calls,
//! so that nothing is imported, errno stays untouched, a signal handler may run it, and the program's own functions of
//! such names do not matter. Elsewhere: libc.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm"),
    not(all(target_arch = "x86_64", target_pointer_width = "32")),
    not(profkit_rt_libc)
))]
#[path = "linux.rs"]
mod platform;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm"),
    not(all(target_arch = "x86_64", target_pointer_width = "32")),
    not(profkit_rt_libc)
)))]
#[path = "libc.rs"]
mod platform;

pub use platform::*;

/// An error number, as positive as errno has it.
pub type Result<T> = core::result::Result<T, i32>;

/// How to open a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// For reading.
    Read,
    /// For writing, as it is.
    Write,
    /// For writing; it must not be there yet.
    Create,
    /// A folder, to lock it.
    Folder,
}

/// Error numbers that are the same on all systems.
pub mod error {
    pub const NO_ENTRY: i32 = 2;
    pub const INTERRUPTED: i32 = 4;
    pub const ACCESS: i32 = 13;
    pub const EXISTS: i32 = 17;
    pub const NOT_A_FOLDER: i32 = 20;
    pub const NO_SPACE: i32 = 28;
    pub const READ_ONLY: i32 = 30;
    pub const NAME_TOO_LONG: i32 = 36;
}
