//! Reads facts about the image (program or shared library) that the runtime is linked into.
use crate::stream::{Sink, Stream};

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
#[path = "elf.rs"]
mod format;
#[cfg(any(target_os = "macos", target_os = "ios"))]
#[path = "macho.rs"]
mod format;
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
mod segments;

pub use format::{build_id, modes, records, ring};
#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
pub use format::{is_program, runtime_handle};

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Range {
    start: *mut u8,
    length: usize,
}

impl Range {
    /// No memory.
    pub const NONE: Self = Self {
        start: core::ptr::null_mut(),
        length: 0,
    };

    /// Makes a range of the memory from `start` up to `end`.
    ///
    /// # Safety
    /// `start` and `end` must be the bounds of one section. The caller must ensure that the section is readable and
    /// writable as long as this code is loaded, and that only instrumented code and this module access it.
    unsafe fn between(start: *mut u8, end: *mut u8) -> Self {
        Self {
            start,
            length: (end as usize).wrapping_sub(start as usize),
        }
    }

    pub fn address(self) -> usize {
        self.start as usize
    }

    pub fn length(self) -> usize {
        self.length
    }

    /// # Safety
    /// The caller must pass an `at` below [`length`](Self::length).
    pub unsafe fn byte(self, at: usize) -> u8 {
        // SAFETY: the caller promises that `at` is in the section, and the section is readable. The access is volatile,
        // because other threads may change the memory at the same time.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// # Safety
    /// The caller must pass an `at` for which `at + 3` is below [`length`](Self::length), and must ensure that the byte at
    /// `at` is aligned to four bytes.
    pub unsafe fn word(self, at: usize) -> u32 {
        // SAFETY: the caller promises that the number is in the section and aligned. The access is volatile, because other
        // threads may change the memory at the same time.
        u32::from_le(unsafe { self.start.add(at).cast::<u32>().read_volatile() })
    }

    pub fn emit<S: Sink>(self, stream: &mut Stream<S>) {
        // SAFETY: the section is readable.
        unsafe { stream.extend_from(self.start, self.length) };
    }

    #[inline(never)]
    pub fn fill(self, byte: u8) {
        for at in 0..self.length {
            // SAFETY: `at` is before the end of the section. The access is volatile, because other threads may change the
            // memory at the same time.
            unsafe { self.start.add(at).write_volatile(byte) };
        }
    }
}
