//! The output of a profile. It copies small parts to a buffer, and notes only the addresses of large parts. Then it
//! passes all parts to a function at once. So a file is written by few system calls, and the system can use large
//! pieces of memory for the file.

pub type Segment = [usize; 2];

pub type Write = unsafe extern "C" fn(*mut u8, *mut Segment, usize) -> i32;

/// The largest number of segments that are passed to the function at once. A profile without value data has fewer.
const SEGMENTS: usize = 8;

/// The buffer, and the function that receives bytes. After an error all further bytes are dropped.
pub struct Output<'a> {
    write: Write,
    context: *mut u8,
    buffer: &'a mut [u8],
    used: usize,
    ended: usize,
    segments: [Segment; SEGMENTS],
    count: usize,
    error: i32,
}

impl<'a> Output<'a> {
    /// # Safety
    /// The caller must ensure that `write` may be called with this context and any bytes, as long as the output exists.
    pub unsafe fn new(write: Write, context: *mut u8, buffer: &'a mut [u8]) -> Self {
        Self {
            write,
            context,
            buffer,
            used: 0,
            ended: 0,
            segments: [[0; 2]; SEGMENTS],
            count: 0,
            error: 0,
        }
    }

    /// Adds the `length` bytes at the address `start`. If there are more bytes than the whole buffer can hold, they are
    /// not copied to it. They are read only when they are passed on, at [`Self::finish`] or before.
    ///
    /// # Safety
    /// The caller must ensure that the bytes are readable until the output is finished.
    #[inline(never)]
    pub unsafe fn bytes(&mut self, start: usize, length: usize) {
        if length > self.buffer.len() {
            self.end_segment();
            self.segment(start, length);
            // Two segments for the next call, and one for the bytes that are in the buffer.
            if self.count > SEGMENTS - 3 {
                self.flush();
            }
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

    /// The number of bytes if all fit into the buffer. Does not call the function.
    pub fn held(&self) -> Option<usize> {
        if self.error == 0 {
            Some(self.used)
        } else {
            None
        }
    }

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

    #[inline(never)]
    pub fn half(&mut self, number: u32) {
        for byte in number.to_ne_bytes() {
            self.byte(byte);
        }
    }

    /// Nearly all bytes of a profile are added by this function, so it must be fast.
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

    #[inline(never)]
    pub fn zeros(&mut self, count: usize) {
        for _ in 0..count {
            self.byte(0);
        }
    }

    pub fn finish(&mut self) -> i32 {
        self.flush();
        self.error
    }

    #[inline(never)]
    fn end_segment(&mut self) {
        let start = self.buffer.as_ptr() as usize + self.ended;
        self.segment(start, self.used - self.ended);
        self.ended = self.used;
    }

    fn segment(&mut self, start: usize, length: usize) {
        if length != 0 {
            if let Some(place) = self.segments.get_mut(self.count) {
                *place = [start, length];
                self.count += 1;
            }
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        self.end_segment();
        if self.error == 0 && self.count != 0 {
            // SAFETY: whoever made the output promises that the function may be called with this context. The segments
            // are bytes of the buffer, and bytes that are readable until the output is finished.
            self.error =
                unsafe { (self.write)(self.context, self.segments.as_mut_ptr(), self.count) };
        }
        self.used = 0;
        self.ended = 0;
        self.count = 0;
    }
}
