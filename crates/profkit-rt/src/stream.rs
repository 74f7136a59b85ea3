//! Writes bytes to a file in blocks, and computes their hash. Other threads may change the records at the same time. So
//! each byte is read only once, and the hash is that of the written bytes.
use crate::xxh3::{self, Accumulators, BLOCK, SHORT_MAX, STRIPE};

/// A receiver of blocks of bytes.
pub trait Sink {
    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// The error number of the system.
    fn write(&mut self, bytes: &[u8]) -> Result<(), i32>;
}

const CHECKSUM: usize = 8;

/// A buffered writer that also computes the hash of all bytes.
#[derive(Debug)]
pub struct Stream<S> {
    sink: S,
    /// The buffer. It contains the last stripe of the previous block, then the current block, then space for the
    /// checksum.
    buffer: [u8; STRIPE + BLOCK + CHECKSUM],
    /// The number of bytes in the current block, at most `BLOCK`.
    filled: usize,
    total: u64,
    accumulators: Accumulators,
    /// The first error of the sink; 0 if there was none. Nothing is written after an error.
    error: i32,
}

impl<S: Sink> Stream<S> {
    /// Makes a stream that has received no bytes.
    pub const fn new(sink: S) -> Self {
        Self {
            sink,
            buffer: [0; STRIPE + BLOCK + CHECKSUM],
            filled: 0,
            total: 0,
            accumulators: Accumulators::NEW,
            error: 0,
        }
    }

    /// Appends one byte to the stream.
    pub fn push(&mut self, byte: u8) {
        if self.filled >= BLOCK {
            self.flush_block();
        }
        // SAFETY: `filled` is less than BLOCK here, and the buffer has STRIPE + BLOCK bytes.
        unsafe { *self.buffer.as_mut_ptr().add(STRIPE + self.filled) = byte };
        self.filled += 1;
        self.total += 1;
    }

    /// Appends bytes to the stream.
    pub fn extend(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.push(byte);
        }
    }

    /// Hashes and writes the current block, which must be full. This may be called only if more bytes follow the block.
    fn flush_block(&mut self) {
        // SAFETY: the block is within the buffer; its last stripe does not overlap the first stripe of the buffer. No
        // pointer is kept during the call of `write`, which borrows the whole stream.
        unsafe {
            self.accumulators.block(self.buffer.as_ptr().add(STRIPE));
            self.write(BLOCK);
            let buffer = self.buffer.as_mut_ptr();
            core::ptr::copy_nonoverlapping(buffer.add(BLOCK), buffer, STRIPE);
        }
        self.filled = 0;
    }

    /// Writes the first `length` bytes of the current block.
    ///
    /// # Safety
    /// The caller must pass a `length` of at most `BLOCK + CHECKSUM`.
    unsafe fn write(&mut self, length: usize) {
        if self.error != 0 {
            return;
        }
        // SAFETY: the caller promises that `length` bytes are within the buffer.
        let bytes = unsafe { core::slice::from_raw_parts(self.buffer.as_ptr().add(STRIPE), length) };
        if let Err(error) = self.sink.write(bytes) {
            self.error = error;
        }
    }

    /// Returns the hash of all bytes. The stream must have received more than 16 bytes.
    fn hash(&self) -> u64 {
        // SAFETY: the block has `filled` bytes, and a stripe precedes it in the buffer. If the input has at most
        // SHORT_MAX bytes, the block still holds all of them, because it was never flushed. `short` gets a length of at
        // least SHORT_MIN, even if fewer bytes were written, and the buffer is longer than SHORT_MIN.
        unsafe {
            let block = self.buffer.as_ptr().add(STRIPE);
            if self.total <= SHORT_MAX as u64 {
                let short = self.filled < xxh3::SHORT_MIN;
                xxh3::short(block, if short { xxh3::SHORT_MIN } else { self.filled })
            } else {
                self.accumulators.finish(block, self.filled, self.total)
            }
        }
    }

    /// Ends the stream: writes the remaining bytes and the checksum.
    ///
    /// # Errors
    /// The first error of the sink.
    pub fn finish_with_checksum(&mut self) -> Result<(), i32> {
        let hash = self.hash();
        // SAFETY: `filled` is at most BLOCK, and the buffer has room for the checksum after the block.
        unsafe {
            let end = self.buffer.as_mut_ptr().add(STRIPE + self.filled);
            end.cast::<[u8; CHECKSUM]>().write(hash.to_le_bytes());
            self.write(self.filled + CHECKSUM);
        }
        if self.error == 0 {
            Ok(())
        } else {
            Err(self.error)
        }
    }

    /// Ends the stream and returns the hash of all bytes. Nothing more is written.
    pub fn finish(&self) -> u64 {
        self.hash()
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
        fn write(&mut self, bytes: &[u8]) -> Result<(), i32> {
            self.0.extend_from_slice(bytes);
            Ok(())
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
            let mut stream = Stream::new(Bytes(&mut written));
            stream.extend(&input);
            let expected = XxHash3_64::oneshot(&input);
            assert_eq!(stream.finish(), expected, "length {length}");
            stream.finish_with_checksum().expect("memory");
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
            fn write(&mut self, _: &[u8]) -> Result<(), i32> {
                self.0 += 1;
                Err(28)
            }
        }
        let mut stream = Stream::new(Full(0));
        stream.extend(&input(5000));
        assert_eq!(stream.finish_with_checksum(), Err(28));
        assert_eq!(stream.sink.0, 1);
    }
}
