//! Writes bytes to a file in blocks, and computes their hash. Other threads may change the records at the same time.
//! Each byte is therefore read only once, so that the hash is that of the written bytes.
use core::mem::MaybeUninit;
use crate::xxh3::{self, Accumulators, BLOCK, SHORT_MAX, STRIPE};

/// A receiver of blocks of bytes.
pub trait Sink {
    /// Writes all of `bytes`. Returns 0, or the error number of the system.
    fn write(&mut self, bytes: &[u8]) -> i32;
}

const CHECKSUM: usize = 8;

/// A buffered writer that hashes all bytes. Fields near the start have short offsets, so their order makes the code
/// small.
#[derive(Debug)]
#[repr(C)]
pub struct Stream<S> {
    accumulators: Accumulators,
    total: u64,
    /// The number of bytes in the current block, at most `BLOCK`.
    filled: usize,
    /// The first error of the sink; 0 if there was none. Nothing is written after an error.
    error: i32,
    /// The receiver of the bytes.
    pub sink: S,
    /// The buffer: the last stripe of the previous block, then the current block, then space for the checksum.
    buffer: MaybeUninit<[u8; STRIPE + BLOCK + CHECKSUM]>,
}

impl<S: Sink> Stream<S> {
    /// Makes a stream that has received no bytes.
    #[inline(always)]
    pub fn new(sink: S) -> Self {
        let mut stream = Self::unused(sink);
        stream.start();
        stream
    }

    /// Makes a stream that must be started before it can be used.
    pub const fn unused(sink: S) -> Self {
        Self {
            accumulators: Accumulators::UNUSED,
            total: 0,
            filled: 0,
            error: 0,
            sink,
            buffer: MaybeUninit::uninit(),
        }
    }

    /// Resets the stream, as if it had received no bytes.
    #[cfg_attr(any(profkit_rt_small, profkit_rt_api), inline(always))]
    pub fn start(&mut self) {
        self.accumulators.start();
        self.total = 0;
        self.filled = 0;
        self.error = 0;
    }

    /// Lets the stream only compute the hash. It writes nothing until it is started again.
    pub fn only_hash(&mut self) {
        // Nothing is written after an error.
        self.error = -1;
    }

    /// The bytes of the current block.
    pub fn block(&mut self) -> &mut [u8] {
        // SAFETY: `filled` is at most BLOCK, and the buffer has STRIPE + BLOCK bytes.
        unsafe { core::slice::from_raw_parts_mut(self.buffer.as_mut_ptr().cast::<u8>().add(STRIPE), self.filled) }
    }

    /// Appends one byte to the stream.
    #[cfg_attr(not(any(profkit_rt_small, profkit_rt_api)), inline(never))]
    pub fn push(&mut self, byte: u8) {
        if self.filled == BLOCK {
            // SAFETY: the block is within the buffer, and the last stripe of the block does not overlap the first stripe
            // of the buffer.
            unsafe {
                self.accumulators.block(self.buffer.as_ptr().cast::<u8>().add(STRIPE));
                self.write(BLOCK);
                let buffer = self.buffer.as_mut_ptr().cast::<u8>();
                for at in 0..STRIPE {
                    *buffer.add(at) = *buffer.add(BLOCK + at);
                }
            }
            self.filled = 0;
        }
        // SAFETY: `filled` is less than BLOCK here, and the buffer has STRIPE + BLOCK bytes.
        unsafe { *self.buffer.as_mut_ptr().cast::<u8>().add(STRIPE + self.filled) = byte };
        self.filled += 1;
        self.total += 1;
    }

    /// Appends bytes to the stream.
    pub fn extend(&mut self, bytes: &[u8]) {
        // SAFETY: the bytes of a slice are readable.
        unsafe { self.extend_from(bytes.as_ptr(), bytes.len()) }
    }

    /// Appends `length` bytes of memory to the stream. Other threads may change these bytes in the meantime.
    ///
    /// # Safety
    /// The caller must ensure that `length` bytes at `from` are readable.
    #[inline(never)]
    pub unsafe fn extend_from(&mut self, from: *const u8, length: usize) {
        for at in 0..length {
            // SAFETY: the caller promises that the byte is readable. The access is volatile, because other threads may
            // change the memory at the same time.
            self.push(unsafe { from.add(at).read_volatile() });
        }
    }

    /// Appends a number in little-endian byte order.
    #[inline(never)]
    pub fn word(&mut self, word: u32) {
        self.extend(&word.to_le_bytes());
    }

    /// Writes the first `length` bytes of the current block.
    ///
    /// # Safety
    /// The caller must pass a `length` of at most `BLOCK + CHECKSUM`.
    #[inline(never)]
    unsafe fn write(&mut self, length: usize) {
        // SAFETY: the caller promises that `length` bytes are within the buffer.
        let bytes = unsafe { core::slice::from_raw_parts(self.buffer.as_ptr().cast::<u8>().add(STRIPE), length) };
        if self.error == 0 {
            self.error = self.sink.write(bytes);
        }
    }

    /// Ends the stream and returns the hash of all bytes. The stream must have received more than 16 bytes.
    #[inline(never)]
    pub fn finish(&mut self) -> u64 {
        // SAFETY: the block has `filled` bytes. Before the block, the buffer has a stripe; after the longest block, it
        // has room for the checksum. If the input has at most SHORT_MAX bytes, the block still holds all of them,
        // because it was never flushed.
        unsafe {
            let block = self.buffer.as_ptr().cast::<u8>().add(STRIPE);
            if self.total <= SHORT_MAX as u64 {
                xxh3::short(block, self.filled)
            } else {
                self.accumulators.finish(block, self.filled, self.total)
            }
        }
    }

    /// Ends the stream: writes the remaining bytes and the checksum. Returns the first error of the sink, or 0.
    pub fn finish_with_checksum(&mut self) -> i32 {
        let hash = self.finish();
        // SAFETY: `filled` is at most BLOCK, and the buffer has room for the checksum after the block.
        unsafe {
            let end = self.buffer.as_mut_ptr().cast::<u8>().add(STRIPE + self.filled);
            end.cast::<[u8; CHECKSUM]>().write(hash.to_le_bytes());
            self.write(self.filled + CHECKSUM);
        }
        self.error
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{Sink, Stream};
    use std::vec::Vec;
    use twox_hash::XxHash3_64;

    struct Bytes<'a>(&'a mut Vec<u8>);

    impl Sink for Bytes<'_> {
        fn write(&mut self, bytes: &[u8]) -> i32 {
            self.0.extend_from_slice(bytes);
            0
        }
    }

    fn input(length: usize) -> Vec<u8> {
        let mut state = 0x1234_5678_9abc_def0_u64;
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect()
    }

    #[test]
    fn hashes_as_the_reference_does_at_every_length_around_a_limit() {
        let lengths = (17..=2200).chain([3071, 3072, 3073, 4095, 4096, 4097, 10_000, 65_536, 100_003]);
        for length in lengths {
            let input = input(length);
            let mut written = Vec::new();
            let expected = XxHash3_64::oneshot(&input);
            let mut ignored = Vec::new();
            let mut stream = Stream::new(Bytes(&mut ignored));
            stream.extend(&input);
            assert_eq!(stream.finish(), expected, "length {length}");
            // A second stream is needed, because a stream can end only once.
            let mut stream = Stream::new(Bytes(&mut written));
            stream.extend(&input);
            assert_eq!(stream.finish_with_checksum(), 0);
            let (bytes, checksum) = written.split_at(length);
            assert!(bytes == input, "length {length}");
            assert_eq!(checksum, expected.to_le_bytes());
        }
    }

    #[test]
    fn published_vector() {
        // The expected hash is what `xxhsum -H3` prints for this text.
        let mut written = Vec::new();
        let mut stream = Stream::new(Bytes(&mut written));
        stream.extend(b"The quick brown fox jumps over the lazy dog");
        assert_eq!(stream.finish(), 0xce7d_19a5_418f_b365);
    }

    #[test]
    fn the_first_error_stays_and_nothing_follows_it() {
        struct Full(usize);
        impl Sink for Full {
            fn write(&mut self, _: &[u8]) -> i32 {
                self.0 += 1;
                28
            }
        }
        let mut stream = Stream::new(Full(0));
        stream.extend(&input(5000));
        assert_eq!(stream.finish_with_checksum(), 28);
        assert_eq!(stream.sink.0, 1);
    }
}
