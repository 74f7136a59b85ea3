//! The zstd stream of compressed records. A recording has one stream, and each of its compressed records contains a
//! piece of it. perf does not write the end of the stream.
use crate::limits::{CHUNK, INFLATE_FLOOR, INFLATE_RATIO};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fmt;
use std::io::{self, Read};

/// An empty last block, which is appended to the stream. Without it, the decoder would not return the last bytes.
const LAST_BLOCK: &[u8] = &[1, 0, 0];

/// A reader for the pieces of the stream, in their order.
struct Pieces<'data> {
    pieces: std::vec::IntoIter<&'data [u8]>,
    current: &'data [u8],
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.pieces.next() {
                Some(piece) => self.current = piece,
                None => return Ok(0),
            }
        }
        self.current.read(buffer)
    }
}

/// Decompresses the stream, some megabytes at a time.
pub struct Unpack<'data> {
    /// The pieces of the stream; `None` after decompression has begun.
    pieces: Option<Vec<&'data [u8]>>,
    /// The decoder. `None` before decompression begins, and after the end of the stream.
    decoder: Option<StreamingDecoder<Pieces<'data>, FrameDecoder>>,
    buffer: Vec<u8>,
    /// The number of bytes at the start of the buffer that the caller has used.
    used: usize,
    /// The number of bytes decompressed so far.
    produced: u64,
    /// The number of bytes after which decompression stops.
    limit: u64,
}

impl fmt::Debug for Unpack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpack")
            .field("produced", &self.produced)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// If fewer unused bytes than this are in the buffer, more are decompressed. The number is larger than two records of
/// the largest size.
const LOW: usize = 256 << 10;

impl<'data> Unpack<'data> {
    pub fn new(pieces: Vec<&'data [u8]>) -> Self {
        let packed: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        let limit = packed.saturating_mul(INFLATE_RATIO).max(INFLATE_FLOOR);
        Self::with_limit(pieces, limit)
    }

    fn with_limit(mut pieces: Vec<&'data [u8]>, limit: u64) -> Self {
        pieces.push(LAST_BLOCK);
        Unpack {
            pieces: Some(pieces),
            decoder: None,
            buffer: Vec::new(),
            used: 0,
            produced: 0,
            limit,
        }
    }

    /// Returns the decompressed bytes that are not used yet, and the offset of the first of them in the decompressed
    /// stream.
    pub fn bytes(&self) -> (u64, &[u8]) {
        let bytes = self.buffer.get(self.used..).unwrap_or_default();
        (self.produced - bytes.len() as u64, bytes)
    }

    /// Marks the next `len` bytes as used.
    pub fn advance(&mut self, len: usize) {
        self.used += len;
    }

    /// Decompresses more bytes if few unused ones are left in the buffer. After an error, the stream is treated as
    /// ended; bytes from before the error are kept.
    pub fn fill(&mut self) -> Result<(), String> {
        if self.buffer.len() - self.used >= LOW {
            return Ok(());
        }
        if let Some(pieces) = self.pieces.take() {
            let reader = Pieces {
                pieces: pieces.into_iter(),
                current: &[],
            };
            self.decoder = Some(StreamingDecoder::new(reader).map_err(|error| error.to_string())?);
        }
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        self.buffer.drain(..self.used);
        self.used = 0;
        let before = self.buffer.len();
        let read = decoder
            .by_ref()
            .take(CHUNK as u64)
            .read_to_end(&mut self.buffer);
        let added = self.buffer.len() - before;
        self.produced += added as u64;
        if let Err(error) = read {
            self.decoder = None;
            return Err(error.to_string());
        }
        if added < CHUNK {
            self.decoder = None;
        } else if self.produced > self.limit {
            self.decoder = None;
            return Err(format!(
                "the records would be larger than {} bytes, which is the limit for records of this compressed size",
                self.limit
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    #[test]
    fn a_stream_without_bounds_ends_at_the_limit() {
        let packed = compress_to_vec(&vec![0; 4 * CHUNK][..], CompressionLevel::Fastest);
        let mut unpack = Unpack::with_limit(vec![&packed], CHUNK as u64 + 1);
        unpack.fill().expect("the first chunk is within the limit");
        unpack.advance(CHUNK);
        let error = unpack.fill().expect_err("the second is not");
        assert_eq!(
            error,
            "the records would be larger than 8388609 bytes, which is the limit for records of this compressed size"
        );
        assert_eq!(unpack.bytes().1.len(), CHUNK);
        unpack.advance(CHUNK);
        unpack.fill().expect("the stream has ended");
        assert_eq!(unpack.bytes().1.len(), 0);
    }
}
