//! Reads compressed files: gzip, zstd, xz.
use super::{Front, StoredError};
use crate::ForeignFile;
use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum memory of an xz decoder in KiB: four times the memory that `xz -9` needs. An xz file states the size of
/// its dictionary, so without a limit a small file could make the decoder reserve 4 GiB. (The zstd decoder has its own
/// limit of 128 MiB.)
const XZ_MEMORY_KIB: u32 = 256 << 10;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// The gzip format, with one member or several (RFC 1952).
    Gzip,
    /// The Zstandard format, with one frame or several (RFC 8878).
    Zstd,
    /// The xz format, with one stream or several.
    Xz,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
        })
    }
}

impl Compression {
    /// Returns the compression format that the magic number of the bytes shows; `None` if the bytes are not compressed.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match ForeignFile::of_binary(bytes) {
            Some(ForeignFile::Gzip) => Some(Compression::Gzip),
            Some(ForeignFile::Zstd) => Some(Compression::Zstd),
            Some(ForeignFile::Xz) => Some(Compression::Xz),
            _ => None,
        }
    }

    pub(super) fn reader<'r>(
        self,
        bytes: impl Read + Send + 'r,
    ) -> io::Result<Box<dyn Read + Send + 'r>> {
        let bytes = io::BufReader::with_capacity(1 << 16, bytes);
        Ok(match self {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
            Compression::Zstd => Box::new(Frames {
                bytes,
                frame: None,
                any: false,
            }),
            Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(
                bytes,
                true,
                XZ_MEMORY_KIB,
            )),
        })
    }

    /// Decompresses the bytes of a file to at most `limit` bytes.
    ///
    /// # Errors
    /// [`StoredError::Damaged`] if the bytes are damaged, [`StoredError::TooLarge`] if the result would be larger than
    /// `limit`.
    pub fn expand(self, bytes: &[u8], limit: u64) -> Result<Vec<u8>, StoredError> {
        match self.expand_front(bytes, limit)? {
            (expanded, None) => Ok(expanded),
            (_, Some(problem)) => Err(problem),
        }
    }

    /// Decompresses the bytes of a file that may be cut off. If the file ends too early, the result has the bytes
    /// before the cut and, as its second part, the error. If the file has wrong bytes, no bytes are returned: the
    /// decoder may find the damage only at a later checksum, so the bytes that were already decompressed may be wrong
    /// too.
    ///
    /// # Errors
    /// The errors of [`expand`](Self::expand). If the file is cut off after at least one decompressed byte, this is not
    /// an error.
    pub fn expand_front(self, bytes: &[u8], limit: u64) -> Result<Front<Vec<u8>>, StoredError> {
        let mut expanded = Vec::new();
        let ended = AtomicBool::new(false);
        let source = Ending {
            bytes,
            ended: &ended,
        };
        let read = self.reader(source).and_then(|reader| {
            reader
                .take(limit.saturating_add(1))
                .read_to_end(&mut expanded)
        });
        match read {
            Ok(_) if expanded.len() as u64 > limit => Err(StoredError::TooLarge { limit }),
            Ok(_) => Ok((expanded, None)),
            Err(error) => {
                let error = match error.downcast::<StoredError>() {
                    Ok(known) => return Err(known),
                    Err(error) => error,
                };
                let is_cut = ended.load(Ordering::Relaxed);
                let problem = StoredError::Damaged {
                    compression: self,
                    expanded: expanded.len() as u64,
                    is_cut,
                    error,
                };
                if is_cut && !expanded.is_empty() {
                    Ok((expanded, Some(problem)))
                } else {
                    Err(problem)
                }
            }
        }
    }
}

/// The bytes of a file, and a flag that is set if a reader asks for more bytes than the file has.
pub(super) struct Ending<'r> {
    pub(super) bytes: &'r [u8],
    pub(super) ended: &'r AtomicBool,
}

impl Read for Ending<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(out)?;
        if read == 0 && !out.is_empty() {
            self.ended.store(true, Ordering::Relaxed);
        }
        Ok(read)
    }
}

/// Decodes the frames of a zstd file one after the other. The decoder of the library reads only one frame.
struct Frames<R> {
    bytes: R,
    frame: Option<ruzstd::decoding::FrameDecoder>,
    /// Whether a frame was already read. A zstd file has at least one frame, so a file without any is cut off.
    any: bool,
}

impl<R: io::BufRead> Frames<R> {
    /// Begins the next frame, if there is one. Skippable frames, which have no data, are skipped.
    fn begin(&mut self) -> io::Result<bool> {
        use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
        loop {
            if self.bytes.fill_buf()?.is_empty() {
                return if self.any {
                    Ok(false)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
            let mut decoder = self.frame.take().unwrap_or_default();
            match decoder.init(&mut self.bytes) {
                Ok(()) => {
                    self.frame = Some(decoder);
                    self.any = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped =
                        io::copy(&mut (&mut self.bytes).take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(FrameDecoderError::DictNotProvided { dict_id }) => {
                    return Err(StoredError::NeedsDictionary { id: dict_id }.into());
                }
                Err(error) => return Err(invalid(error)),
            }
        }
    }
}

impl<R: io::BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let Some(decoder) = &mut self.frame else {
                if self.begin()? {
                    continue;
                }
                return Ok(0);
            };
            if decoder.can_collect() > 0 {
                return decoder.read(out);
            }
            if !decoder.is_finished() {
                let some = ruzstd::decoding::BlockDecodingStrategy::UptoBytes(1 << 20);
                decoder
                    .decode_blocks(&mut self.bytes, some)
                    .map_err(invalid)?;
                continue;
            }
            let stored = decoder.get_checksum_from_data();
            if stored.is_some() && stored != decoder.get_calculated_checksum() {
                return Err(invalid("the checksum of a frame is wrong"));
            }
            self.frame = None;
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
