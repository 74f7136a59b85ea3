//! Reads facts about the image (program or shared library) that the runtime is linked into.

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
#[path = "elf.rs"]
mod format;
#[cfg(any(target_os = "macos", target_os = "ios"))]
#[path = "macho.rs"]
mod format;
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
mod segments;

#[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
pub use format::{is_program, runtime_handle};
pub use format::{build_id, modes, records, ring};

/// A section in the image's writable memory. Other threads may change its contents at any time.
#[derive(Clone, Copy)]
pub struct Range {
    start: *mut u8,
    end: *mut u8,
}

impl Range {
    /// Makes a range of the memory from `start` up to `end`.
    ///
    /// # Safety
    /// `start` and `end` must be the bounds of one section. The caller must ensure that the section is readable and
    /// writable as long as this code is loaded, and that only instrumented code and this module access it.
    unsafe fn between(start: *mut u8, end: *mut u8) -> Self {
        Self { start, end }
    }

    /// The address of the first byte of the section.
    pub fn address(self) -> usize {
        self.start as usize
    }

    /// The number of bytes in the section.
    pub fn length(self) -> usize {
        (self.end as usize).wrapping_sub(self.start as usize)
    }

    /// Reads one byte of the section.
    ///
    /// # Safety
    /// The caller must pass an `at` below [`length`](Self::length).
    pub unsafe fn byte(self, at: usize) -> u8 {
        // SAFETY: the caller promises that `at` is in the section, and the section is readable. The access is volatile,
        // because other threads may change the memory at the same time.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// Reads four bytes of the section as a number.
    ///
    /// # Safety
    /// The caller must pass an `at` for which `at + 3` is below [`length`](Self::length).
    pub unsafe fn word(self, at: usize) -> u32 {
        // SAFETY: the caller promises that all four bytes are in the section.
        u32::from_le_bytes(unsafe {
            [
                self.byte(at),
                self.byte(at + 1),
                self.byte(at + 2),
                self.byte(at + 3),
            ]
        })
    }

    /// Sets all bytes of the section to one value.
    #[inline(never)]
    pub fn fill(self, byte: u8) {
        let mut at = self.start;
        while at != self.end {
            // SAFETY: `at` is before the end of the section. The access is volatile, because other threads may change the
            // memory at the same time.
            unsafe {
                at.write_volatile(byte);
                at = at.add(1);
            }
        }
    }
}
