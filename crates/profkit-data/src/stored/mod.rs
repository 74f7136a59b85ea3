//! Profiles that are stored compressed or in archives: told by content, expanded in memory, never on disk.
mod archive;
mod compressed;

use std::fmt;
use std::io;

pub use archive::{
    Archive, ArchiveFormat, is_compressed_tar, members_of_compressed_tar, read_member,
};
pub use compressed::Compression;

/// The most bytes that one stored file may expand to. A profile is larger only by mistake or malice: the largest known
/// ones have some hundred megabytes.
pub const MOST_EXPANDED: u64 = 1 << 30;

/// Why a stored file or archive could not be expanded.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoredError {
    /// The compressed bytes are damaged or end too early.
    Damaged {
        /// How the file is compressed.
        compression: Compression,
        /// How many bytes could be expanded before the damage.
        expanded: u64,
        /// The decoder's reason.
        error: io::Error,
    },
    /// The archive is damaged or ends too early.
    DamagedArchive {
        /// The form of the archive.
        format: ArchiveFormat,
        /// The reader's reason.
        error: io::Error,
    },
    /// The file expands to more than [`MOST_EXPANDED`] bytes.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// A member of the archive is encrypted, or compressed in a way that is not supported.
    UnsupportedMember {
        /// The reader's reason.
        error: io::Error,
    },
    /// The archive no longer has a member that it had before.
    Changed,
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredError::Damaged {
                compression,
                expanded,
                error,
            } => write!(
                f,
                "the {compression} data are damaged or cut after {expanded} expanded bytes: {error}"
            ),
            StoredError::DamagedArchive { format, error } => {
                write!(f, "the {format} archive is damaged or cut: {error}")
            }
            StoredError::TooLarge { limit } => {
                write!(f, "it expands to more than {} GiB", limit >> 30)
            }
            StoredError::UnsupportedMember { error } => {
                write!(f, "the member of the zip archive cannot be read: {error}")
            }
            StoredError::Changed => f.write_str("the archive changed while it was read"),
        }
    }
}

impl std::error::Error for StoredError {}

impl From<StoredError> for io::Error {
    fn from(error: StoredError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// The bytes of a file as they were before they were compressed: `bytes` themselves if they are not compressed, and
/// else what they expand to, several layers deep if need be.
///
/// # Errors
/// If the compressed data are damaged, or expand to more than [`MOST_EXPANDED`] bytes.
pub fn expand(bytes: &[u8]) -> Result<Option<Vec<u8>>, StoredError> {
    /// Nobody compresses a profile more often; a file that contains itself would never end.
    const LAYERS: usize = 3;
    let mut expanded: Option<Vec<u8>> = None;
    for _ in 0..LAYERS {
        let current = expanded.as_deref().unwrap_or(bytes);
        let Some(compression) = Compression::of(current) else {
            break;
        };
        expanded = Some(compression.expand(current, MOST_EXPANDED)?);
    }
    Ok(expanded)
}
