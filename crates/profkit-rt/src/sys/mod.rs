//! What the runtime asks of the system. On Linux, on the architectures that profkit emits code for, it makes system
//! calls: nothing is imported, errno stays unchanged, signal handlers may make them, and functions of the program with
//! the names of libc's do not matter. Elsewhere it calls libc.

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

/// An error number, positive as in errno.
pub type Result<T> = core::result::Result<T, i32>;

/// How to open a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// For reading.
    Read,
    /// For writing; an existing file keeps its contents.
    Write,
    /// For writing; the file must not exist yet.
    Create,
    /// A folder, in order to lock it.
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
