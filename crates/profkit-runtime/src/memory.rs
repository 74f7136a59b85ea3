//! Reads and writes sections of an image and other memory by address. Other threads may change this memory at any time,
//! as instrumented code does with its counters. So two reads of the same value may give different results.

/// Reads a value.
///
/// # Safety
/// The caller must ensure that a value of this type is readable at the address. The address need not be aligned.
pub unsafe fn read<T: Copy>(address: usize) -> T {
    // SAFETY: the caller promises that the value is readable.
    unsafe { (address as *const T).read_unaligned() }
}

/// Writes a value.
///
/// # Safety
/// The caller must ensure that the address is aligned for the type and writable.
pub unsafe fn write<T>(address: usize, value: T) {
    // SAFETY: the caller promises that the place is writable and aligned.
    unsafe { (address as *mut T).write_volatile(value) }
}

/// A range of memory, usually a section of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// The address of the first byte.
    pub start: usize,
    /// The number of bytes.
    pub length: usize,
}

impl Area {
    /// An area without bytes.
    pub const EMPTY: Self = Self { start: 0, length: 0 };

    /// Makes an area from its bounds. If the end is before the start, the area is empty.
    #[must_use]
    pub const fn between(start: usize, end: usize) -> Self {
        Self {
            start,
            length: end.saturating_sub(start),
        }
    }

    /// Whether the range of `length` bytes at `start` lies completely in this area.
    #[must_use]
    pub const fn contains(self, start: usize, length: usize) -> bool {
        let offset = start.wrapping_sub(self.start);
        offset <= self.length && length <= self.length - offset
    }

    /// Sets all bytes of the area to `byte`.
    ///
    /// # Safety
    /// The caller must ensure that the area is writable.
    #[inline(never)]
    pub unsafe fn fill(self, byte: u8) {
        let word = usize::from_ne_bytes([byte; core::mem::size_of::<usize>()]);
        let mut at = self.start;
        let end = self.start + self.length;
        // SAFETY: all addresses are inside the area; a whole word is only written at an aligned address.
        unsafe {
            while at < end {
                if at % core::mem::size_of::<usize>() == 0 && end - at >= core::mem::size_of::<usize>() {
                    write(at, word);
                    at += core::mem::size_of::<usize>();
                } else {
                    write(at, byte);
                    at += 1;
                }
            }
        }
    }
}
