//! Reads and writes sections of an image and other memory by address. Other threads may change this memory at any time,
//! as instrumented code does with its counters. So two reads of the same value may give different results.

/// # Safety
/// The caller must ensure that a value of this type is readable at the address. The address need not be aligned.
pub unsafe fn read<T: Copy>(address: usize) -> T {
    // SAFETY: the caller promises that the value is readable.
    unsafe { (address as *const T).read_unaligned() }
}

/// # Safety
/// The caller must ensure that the address is aligned for the type and writable.
pub unsafe fn write<T>(address: usize, value: T) {
    // SAFETY: the caller promises that the place is writable and aligned.
    unsafe { (address as *mut T).write_volatile(value) }
}

/// The elements with their indices. The iterator of Rust's library brings tables for exceptions into the objects.
pub struct Numbered<'a, T> {
    rest: core::slice::Iter<'a, T>,
    index: usize,
}

pub fn numbered<T>(list: &[T]) -> Numbered<'_, T> {
    Numbered {
        rest: list.iter(),
        index: 0,
    }
}

impl<'a, T> Iterator for Numbered<'a, T> {
    type Item = (usize, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        match self.rest.next() {
            Some(element) => {
                self.index += 1;
                Some((self.index - 1, element))
            }
            None => None,
        }
    }
}

/// Whether two texts are the same. Methods of slices are avoided, because they would import a part of Rust's library.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && starts_with(a, b)
}

pub fn starts_with(text: &[u8], start: &[u8]) -> bool {
    for (at, byte) in numbered(start) {
        if text.get(at) != Some(byte) {
            return false;
        }
    }
    true
}

pub fn has(text: &[u8], byte: u8) -> bool {
    for &other in text {
        if other == byte {
            return true;
        }
    }
    false
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    pub start: usize,
    pub length: usize,
}

impl Area {
    /// An area without bytes.
    pub const EMPTY: Self = Self { start: 0, length: 0 };

    #[must_use]
    pub const fn between(start: usize, end: usize) -> Self {
        Self {
            start,
            length: end.saturating_sub(start),
        }
    }

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
        // SAFETY: all addresses are inside the area.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            // The processor has a fast instruction for this, which is also the shortest code.
            core::arch::asm!(
                "rep stosb",
                inlateout("rdi") self.start => _, inlateout("rcx") self.length => _, in("al") byte,
                options(nostack, preserves_flags)
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            const WORD: usize = core::mem::size_of::<usize>();
            let word = usize::from_ne_bytes([byte; WORD]);
            let mut at = self.start;
            let end = self.start + self.length;
            // SAFETY: all addresses are inside the area; a whole word is only written at an aligned address.
            unsafe {
                while at < end {
                    if at % WORD == 0 && end - at >= WORD {
                        write(at, word);
                        at += WORD;
                    } else {
                        write(at, byte);
                        at += 1;
                    }
                }
            }
        }
    }
}
