//! What the runtime knows of the image that it was linked into.

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
#[path = "elf.rs"]
mod format;
#[cfg(any(target_os = "macos", target_os = "ios"))]
#[path = "macho.rs"]
mod format;

pub use format::{facts, modes, records, ring, runtime_handle};

/// A part of the image's memory, that other code may be changing.
#[derive(Clone, Copy)]
pub struct Range {
    /// First byte.
    pub start: *mut u8,
    /// Number of bytes.
    pub length: usize,
}

impl Range {
    fn between(start: *mut u8, end: *mut u8) -> Self {
        Self {
            start,
            length: (end as usize).wrapping_sub(start as usize),
        }
    }
}

/// What the image's own headers say.
#[derive(Clone, Copy)]
pub struct Facts {
    /// Build id, in the image's memory.
    pub build_id: &'static [u8],
    /// Whether it is the program, not a shared library.
    pub program: bool,
}
