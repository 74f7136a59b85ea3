//! The output of a profile. It collects bytes in a buffer and passes them to a function, so that the function need not
//! be called for each number.

/// A function that receives bytes. Its arguments are a context, the address of the bytes and their number. It returns 0
/// or an error number.
pub type Write = unsafe extern "C" fn(*mut u8, *const u8, usize) -> i32;

/// A buffer for the bytes of a profile, and the function that receives them. After an error all further bytes are
/// dropped.
pub struct Output<'a> {
    write: Write,
    context: *mut u8,
    buffer: &'a mut [u8],
    used: usize,
    error: i32,
}

impl<'a> Output<'a> {
    /// Makes an output.
    ///
    /// # Safety
    /// The caller must ensure that `write` may be called with this context and any bytes, as long as the output exists.
    pub unsafe fn new(write: Write, context: *mut u8, buffer: &'a mut [u8]) -> Self {
        Self {
            write,
            context,
            buffer,
            used: 0,
            error: 0,
        }
    }

    /// Adds the `length` bytes at the address `start`.
    ///
    /// # Safety
    /// The caller must ensure that the bytes are readable.
    #[inline(never)]
    pub unsafe fn bytes(&mut self, start: usize, length: usize) {
        if length > self.buffer.len() {
            self.flush();
            // SAFETY: the caller promises that the bytes are readable.
            unsafe { self.call(start as *const u8, length) };
            return;
        }
        let mut at = 0;
        // SAFETY: the caller promises that the bytes are readable.
        unsafe {
            while length - at >= 8 {
                self.word(((start + at) as *const u64).read_unaligned());
                at += 8;
            }
            while at < length {
                self.byte((start as *const u8).add(at).read_volatile());
                at += 1;
            }
        }
    }

    /// Returns the number of bytes in the buffer if all bytes fit into it; `None` if the buffer was too small. Does not
    /// call the function.
    pub fn held(&self) -> Option<usize> {
        if self.error == 0 {
            Some(self.used)
        } else {
            None
        }
    }

    /// Adds one byte.
    #[inline(never)]
    pub fn byte(&mut self, byte: u8) {
        if self.used >= self.buffer.len() {
            self.flush();
        }
        if let Some(place) = self.buffer.get_mut(self.used) {
            *place = byte;
            self.used += 1;
        }
    }

    /// Adds a number of four bytes, in the byte order of this machine.
    #[inline(never)]
    pub fn half(&mut self, number: u32) {
        for byte in number.to_ne_bytes() {
            self.byte(byte);
        }
    }

    /// Adds a number of eight bytes, in the byte order of this machine. Nearly all bytes of a profile are added by this
    /// function, so it must be fast.
    #[inline(never)]
    pub fn word(&mut self, number: u64) {
        let end = self.used + 8;
        if let Some(place) = self.buffer.get_mut(self.used..end) {
            // SAFETY: the place has eight bytes.
            unsafe { place.as_mut_ptr().cast::<u64>().write_unaligned(number) };
            self.used = end;
            return;
        }
        for byte in number.to_ne_bytes() {
            self.byte(byte);
        }
    }

    /// Adds zero bytes.
    #[inline(never)]
    pub fn zeros(&mut self, count: usize) {
        for _ in 0..count {
            self.byte(0);
        }
    }

    /// Passes the remaining bytes to the function. Returns 0, or the first error number.
    pub fn finish(&mut self) -> i32 {
        self.flush();
        self.error
    }

    #[inline(never)]
    fn flush(&mut self) {
        let used = self.used;
        self.used = 0;
        let start = self.buffer.as_ptr();
        // SAFETY: these bytes of the buffer are readable.
        unsafe { self.call(start, used) };
    }

    /// Passes bytes to the function, unless an error occurred before.
    ///
    /// # Safety
    /// The caller must ensure that the bytes are readable.
    #[inline(never)]
    unsafe fn call(&mut self, start: *const u8, length: usize) {
        if self.error == 0 && length != 0 {
            // SAFETY: whoever made the output promises that the function may be called with this context.
            self.error = unsafe { (self.write)(self.context, start, length) };
        }
    }
}
