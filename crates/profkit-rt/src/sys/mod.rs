//! The runtime's interface to the operating system. On Linux, for the architectures that profkit instruments, the
//! runtime makes system calls itself. Then it imports nothing, errno stays unchanged, signal handlers may use the
//! functions, and the program may define functions with the names of libc's functions. On other systems the runtime
//! calls libc.

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

pub type Result<T> = core::result::Result<T, i32>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Open {
    Read,
    Write,
    /// The file is created for writing. A file with this name must not exist yet.
    Create,
    /// The file is opened for writing. If it exists, its contents are removed; otherwise it is created.
    Replace,
    /// The path is a folder, which is opened in order to lock it.
    Folder,
}

pub mod error {
    pub const NOT_PERMITTED: i32 = 1;
    pub const NO_ENTRY: i32 = 2;
    pub const INTERRUPTED: i32 = 4;
    pub const NO_MEMORY: i32 = 12;
    pub const ACCESS: i32 = 13;
    pub const BUSY: i32 = 16;
    pub const EXISTS: i32 = 17;
    pub const NOT_A_FOLDER: i32 = 20;
    pub const IS_A_FOLDER: i32 = 21;
    pub const INVALID: i32 = 22;
    pub const FILE_TOO_LARGE: i32 = 27;
    pub const NO_SPACE: i32 = 28;
    pub const READ_ONLY: i32 = 30;
    pub const BROKEN_PIPE: i32 = 32;
    // Linux and the BSDs, of which macOS is one, agree on the numbers above.
    const IS_LINUX: bool = cfg!(any(target_os = "linux", target_os = "android"));
    pub const NAME_TOO_LONG: i32 = if IS_LINUX { 36 } else { 63 };
    pub const TOO_MANY_LINKS: i32 = if IS_LINUX { 40 } else { 62 };
}
