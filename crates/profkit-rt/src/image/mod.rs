//! Facts about the image that the runtime is linked into.

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
#[path = "elf.rs"]
mod format;
#[cfg(any(target_os = "macos", target_os = "ios"))]
#[path = "macho.rs"]
mod format;

pub use format::{facts, modes, records, ring, runtime_handle};

/// A section of the image's writable memory. Other threads may change it at any time.
#[derive(Clone, Copy)]
pub struct Range {
    start: *mut u8,
    length: usize,
}

impl Range {
    /// The memory from `start` up to `end`.
    ///
    /// # Safety
    /// They are the bounds of one section that is readable and writable for as long as this code is loaded, and only
    /// instrumented code and this module access it.
    unsafe fn between(start: *mut u8, end: *mut u8) -> Self {
        Self {
            start,
            length: (end as usize).wrapping_sub(start as usize),
        }
    }

    /// Its start.
    pub fn address(self) -> usize {
        self.start as usize
    }

    /// Number of bytes.
    pub fn length(self) -> usize {
        self.length
    }

    /// One byte.
    ///
    /// # Safety
    /// `at` is below [`length`](Self::length).
    pub unsafe fn byte(self, at: usize) -> u8 {
        // SAFETY: the caller's promise, and that of `between`; volatile, since other threads may be changing the memory.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// Four bytes, as a number.
    ///
    /// # Safety
    /// `at + 3` is below [`length`](Self::length).
    pub unsafe fn word(self, at: usize) -> u32 {
        // SAFETY: the caller's promise.
        u32::from_le_bytes(unsafe {
            [
                self.byte(at),
                self.byte(at + 1),
                self.byte(at + 2),
                self.byte(at + 3),
            ]
        })
    }

    /// Writes one value to all bytes.
    pub fn fill(self, byte: u8) {
        for at in 0..self.length {
            // SAFETY: `at` is below the length; volatile, since other threads may be changing the memory.
            unsafe { self.start.add(at).write_volatile(byte) };
        }
    }
}

/// Facts from the image's own headers.
#[derive(Clone, Copy)]
pub struct Facts {
    /// Build id, in the image's memory.
    pub build_id: &'static [u8],
    /// Whether it is the program, not a shared library.
    pub program: bool,
}
