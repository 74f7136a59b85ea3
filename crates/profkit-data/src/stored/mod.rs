//! Reads profiles that are stored compressed or in archives. Compressed files and archives are recognised by their
//! content and decompressed in memory.
mod archive;
mod compressed;
mod member;

use std::fmt;
use std::io;

pub use archive::{
    Archive, ArchiveFormat, TarMember, expand_member, is_archive, is_compressed_tar,
    members_of_compressed_tar,
};
pub use compressed::Compression;
use compressed::Ending;
pub use member::{MemberError, choose_member, split_member};

/// Bytes of a file. The second value is `None` if these are all bytes of the file; otherwise it is the reason why the
/// other bytes cannot be read.
pub type Front<B> = (B, Option<StoredError>);

/// The maximum number of bytes to which one stored file may be decompressed. The largest known profiles have some
/// hundred megabytes, so a file above this limit is a mistake or an attack.
pub const MOST_EXPANDED: u64 = 1 << 30;

/// The reason why a stored file or an archive could not be decompressed.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoredError {
    /// The compressed bytes are damaged or end too early.
    Damaged {
        /// The compression format of the file.
        compression: Compression,
        /// The number of bytes that were decompressed before the damage.
        expanded: u64,
        /// Whether the compressed bytes end too early; `false` if they are wrong.
        is_cut: bool,
        /// The error of the library that decompresses the file.
        error: io::Error,
    },
    /// The archive is damaged or ends too early.
    DamagedArchive {
        /// The format of the archive: tar or zip.
        format: ArchiveFormat,
        /// The error of the library that reads the archive.
        error: io::Error,
    },
    /// The archive is cut off within a member.
    CutMember {
        /// The number of bytes of the member that the archive still has.
        found: u64,
        /// The number of bytes that the member should have.
        expected: u64,
    },
    /// The file would be decompressed to more than [`MOST_EXPANDED`] bytes.
    TooLarge {
        /// The maximum number of bytes to which the file may be decompressed.
        limit: u64,
    },
    /// The zstd data were compressed with a dictionary.
    NeedsDictionary {
        /// The id of the dictionary.
        id: u32,
    },
    /// A member of the archive is encrypted, or compressed in a way that is not supported.
    UnsupportedMember {
        /// The error of the library that reads the archive.
        error: io::Error,
    },
    /// The members of a compressed archive need a temporary file, which cannot be written.
    NoRoom {
        /// The error of writing the temporary file.
        error: io::Error,
    },
    /// The archive, with the archives in it, has too many members.
    TooManyMembers {
        /// The maximum number of members.
        limit: usize,
    },
    /// The archive changed after its members were listed: a listed member is missing.
    Changed,
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredError::Damaged {
                compression,
                expanded,
                is_cut: true,
                ..
            } => write!(
                f,
                "the {compression} data are cut off after {expanded} decompressed bytes"
            ),
            StoredError::Damaged {
                compression,
                expanded,
                error,
                ..
            } => write!(
                f,
                "the {compression} data are damaged or cut after {expanded} decompressed bytes: {error}"
            ),
            StoredError::DamagedArchive { format, error } => {
                write!(f, "the {format} archive is damaged or cut: {error}")
            }
            StoredError::CutMember { found, expected } => write!(
                f,
                "the archive is cut off within this file: found {found} bytes, expected {expected}"
            ),
            StoredError::TooLarge { limit } => {
                write!(
                    f,
                    "the data are larger than {} GiB after decompression",
                    limit >> 30
                )
            }
            StoredError::NeedsDictionary { id } => write!(
                f,
                "the zstd data need a dictionary, which profkit does not have: found dictionary id {id:#x}"
            ),
            StoredError::UnsupportedMember { error } => {
                write!(f, "the member of the zip archive cannot be read: {error}")
            }
            StoredError::NoRoom { error } => write!(
                f,
                "the archive cannot be unpacked into a temporary file: {}",
                crate::system_text(error)
            ),
            StoredError::TooManyMembers { limit } => {
                write!(f, "the archive has more than {limit} files")
            }
            StoredError::Changed => f.write_str("the archive changed while it was read"),
        }
    }
}

impl StoredError {
    /// Returns a copy of the error, for a caller that reports the same error in a second place.
    pub fn again(&self) -> Self {
        let same = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
        match self {
            StoredError::Damaged {
                compression,
                expanded,
                is_cut,
                error,
            } => StoredError::Damaged {
                compression: *compression,
                expanded: *expanded,
                is_cut: *is_cut,
                error: same(error),
            },
            StoredError::DamagedArchive { format, error } => StoredError::DamagedArchive {
                format: *format,
                error: same(error),
            },
            &StoredError::CutMember { found, expected } => {
                StoredError::CutMember { found, expected }
            }
            &StoredError::TooLarge { limit } => StoredError::TooLarge { limit },
            &StoredError::NeedsDictionary { id } => StoredError::NeedsDictionary { id },
            StoredError::UnsupportedMember { error } => {
                StoredError::UnsupportedMember { error: same(error) }
            }
            StoredError::NoRoom { error } => StoredError::NoRoom { error: same(error) },
            &StoredError::TooManyMembers { limit } => StoredError::TooManyMembers { limit },
            StoredError::Changed => StoredError::Changed,
        }
    }

    /// Returns a sentence that says what the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            StoredError::Damaged { .. } => {
                "copy the compressed file again, or give the uncompressed original"
            }
            StoredError::DamagedArchive {
                format: ArchiveFormat::Zip,
                ..
            } => {
                "copy the archive again; if that is not possible, `zip -FF ARCHIVE --out REPAIRED.zip` saves what is left"
            }
            StoredError::DamagedArchive { .. } | StoredError::CutMember { .. } => {
                "copy the archive again, or give the files that it was made from"
            }
            StoredError::TooLarge { .. } => {
                "expand the file, check that it is a profile, and give the expanded file"
            }
            StoredError::NeedsDictionary { .. } => {
                "expand the file first: zstd -d -D DICTIONARY FILE"
            }
            StoredError::UnsupportedMember { .. } => {
                "unpack the archive with the program that made it, and give the files"
            }
            StoredError::NoRoom { .. } => {
                "let the environment variable TMPDIR name a folder with more room, or unpack the archive and give the folder"
            }
            StoredError::TooManyMembers { .. } => "unpack the archive and give the folder",
            StoredError::Changed => "run the command again when nothing writes to the archive",
        }
    }
}

impl std::error::Error for StoredError {}

impl From<StoredError> for io::Error {
    fn from(error: StoredError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Decompresses the bytes of a file. If the result is compressed too, it is decompressed again. Returns `None` if the
/// bytes are not compressed.
///
/// # Errors
/// An error if the compressed data are damaged, or if the result would be larger than [`MOST_EXPANDED`] bytes.
pub fn expand(bytes: &[u8]) -> Result<Option<Vec<u8>>, StoredError> {
    match expand_front(bytes)? {
        Some((_, Some(problem))) => Err(problem),
        expanded => Ok(expanded.map(|(bytes, _)| bytes)),
    }
}

/// Decompresses bytes that may be cut off, as [`expand`] does. If they are cut off, the result has the bytes before the
/// cut and, as its second part, the error.
///
/// # Errors
/// The errors of [`expand`]. If the bytes are cut off after at least one decompressed byte, this is not an error.
#[allow(
    clippy::type_complexity,
    reason = "one part is the decompressed bytes; the other is the error, if the file is cut off"
)]
pub fn expand_front(bytes: &[u8]) -> Result<Option<(Vec<u8>, Option<StoredError>)>, StoredError> {
    /// The maximum number of times that a file is decompressed. Without this limit, a compressed file that contains
    /// itself would be decompressed forever.
    const LAYERS: usize = 3;
    let mut front: Option<Front<Vec<u8>>> = None;
    for _ in 0..LAYERS {
        let current = front.as_ref().map_or(bytes, |(bytes, _)| bytes);
        let Some(compression) = Compression::of(current) else {
            break;
        };
        let (bytes, problem) = compression.expand_front(current, MOST_EXPANDED)?;
        let outer = front.and_then(|(_, problem)| problem);
        front = Some((bytes, outer.or(problem)));
    }
    Ok(front)
}
