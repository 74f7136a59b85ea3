//! Archives of profiles: tar, compressed tar, zip. Each member is an input of its own.
use super::{Compression, MOST_EXPANDED, StoredError, expand};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The form of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveFormat {
    /// tar, compressed or not.
    Tar,
    /// zip.
    Zip,
}

impl fmt::Display for ArchiveFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArchiveFormat::Tar => "tar",
            ArchiveFormat::Zip => "zip",
        })
    }
}

impl ArchiveFormat {
    /// Whether a file has the name of an archive: `.tar`, `.tgz`, `.tar.zst`, `.zip` and so on. For front ends that must
    /// not open every file of a folder to find its archives.
    pub fn is_named_so(name: &OsStr) -> bool {
        const ENDS: &[&str] = &[
            ".tar", ".tgz", ".txz", ".tzst", ".tar.gz", ".tar.xz", ".tar.zst", ".zip",
        ];
        let name = name.as_encoded_bytes().to_ascii_lowercase();
        ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
    }
}

/// A tar or zip archive that is not compressed as a whole, with a list of its members. `B` is the bytes of its file; a
/// clone of it must be the same bytes, as with a slice or an `Arc`.
pub struct Archive<B> {
    format: ArchiveFormat,
    members: Vec<String>,
    source: Source<B>,
    problem: Option<StoredError>,
}

impl<B> fmt::Debug for Archive<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("format", &self.format)
            .field("members", &self.members.len())
            .finish()
    }
}

/// How the bytes of a member are reached.
enum Source<B> {
    /// A tar file: the place of each member.
    Tar { bytes: B, places: Vec<Range<usize>> },
    /// A zip file: the index of each member in its directory. Clones share the directory.
    Zip {
        archive: zip::ZipArchive<Cursor<B>>,
        indices: Vec<usize>,
    },
    /// A damaged archive whose members are not known.
    Nothing,
}

impl<B: AsRef<[u8]> + Clone> Archive<B> {
    /// Lists the regular files of an archive; `None` if the bytes are no archive. If the archive is damaged, the members
    /// before the damage are listed, and [`problem`](Self::problem) tells the reason.
    pub fn open(bytes: B) -> Option<Self> {
        let start = bytes.as_ref();
        if is_tar(start) {
            Some(Self::tar(bytes))
        } else if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
            Some(Self::zip(bytes))
        } else {
            None
        }
    }

    fn tar(bytes: B) -> Self {
        let mut members = Vec::new();
        let mut places = Vec::new();
        let mut problem = None;
        let mut archive = tar::Archive::new(Cursor::new(bytes.clone()));
        let listed = archive.entries_with_seek().and_then(|entries| {
            for entry in entries {
                let entry = entry?;
                if !entry.header().entry_type().is_file() {
                    continue;
                }
                let end = bytes.as_ref().len();
                let start = usize::try_from(entry.raw_file_position())
                    .unwrap_or(end)
                    .min(end);
                let size = usize::try_from(entry.size()).unwrap_or(end);
                members.push(member_name(&entry.path_bytes()));
                places.push(start..start.saturating_add(size).min(end));
                if size > end - start {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        });
        if let Err(error) = listed {
            problem = Some(StoredError::DamagedArchive {
                format: ArchiveFormat::Tar,
                error,
            });
        }
        Archive {
            format: ArchiveFormat::Tar,
            members,
            source: Source::Tar { bytes, places },
            problem,
        }
    }

    fn zip(bytes: B) -> Self {
        let mut members = Vec::new();
        let mut indices = Vec::new();
        let damaged = |error: zip::result::ZipError| StoredError::DamagedArchive {
            format: ArchiveFormat::Zip,
            error: io::Error::other(error),
        };
        let (archive, problem) = match zip::ZipArchive::new(Cursor::new(bytes)) {
            Ok(mut archive) => {
                let mut problem = None;
                for index in 0..archive.len() {
                    match archive.by_index_raw(index) {
                        Ok(file) if file.is_file() => {
                            members.push(member_name(file.name_raw()));
                            indices.push(index);
                        }
                        Ok(_) => {}
                        Err(error) => problem = Some(damaged(error)),
                    }
                }
                (archive, problem)
            }
            Err(error) => {
                return Archive {
                    format: ArchiveFormat::Zip,
                    members,
                    source: Source::Nothing,
                    problem: Some(damaged(error)),
                };
            }
        };
        Archive {
            format: ArchiveFormat::Zip,
            members,
            source: Source::Zip { archive, indices },
            problem,
        }
    }

    /// The form of the archive.
    pub fn format(&self) -> ArchiveFormat {
        self.format
    }

    /// The names of the regular files in it, in the archive's order.
    pub fn members(&self) -> &[String] {
        &self.members
    }

    /// Why some members could not be listed, if the archive is damaged.
    pub fn problem(&self) -> Option<&StoredError> {
        self.problem.as_ref()
    }

    /// The bytes of a member, expanded if it is compressed itself. Any thread may call this.
    ///
    /// # Errors
    /// If the member is damaged, too large, or compressed in a way that is not supported.
    pub fn read(&self, index: usize) -> Result<Cow<'_, [u8]>, StoredError> {
        let data = match &self.source {
            Source::Tar { bytes, places } => {
                let place = places.get(index).ok_or(StoredError::Changed)?;
                Cow::Borrowed(bytes.as_ref().get(place.clone()).unwrap_or_default())
            }
            Source::Zip { archive, indices } => {
                let index = *indices.get(index).ok_or(StoredError::Changed)?;
                let mut archive = archive.clone();
                let file =
                    archive
                        .by_index(index)
                        .map_err(|error| StoredError::UnsupportedMember {
                            error: io::Error::other(error),
                        })?;
                Cow::Owned(read_member(file, ArchiveFormat::Zip)?)
            }
            Source::Nothing => return Err(StoredError::Changed),
        };
        match expand(&data)? {
            Some(expanded) => Ok(Cow::Owned(expanded)),
            None => Ok(data),
        }
    }
}

/// Whether the bytes begin with the header of a tar file (POSIX or GNU).
fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// A member's name as reports show it.
fn member_name(bytes: &[u8]) -> String {
    let name = String::from_utf8_lossy(bytes);
    name.strip_prefix("./").unwrap_or(&name).to_owned()
}

/// Reads a member of at most [`MOST_EXPANDED`] bytes.
///
/// # Errors
/// If it is damaged, or larger.
pub fn read_member(member: impl Read, format: ArchiveFormat) -> Result<Vec<u8>, StoredError> {
    let mut bytes = Vec::new();
    member
        .take(MOST_EXPANDED + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| StoredError::DamagedArchive { format, error })?;
    if bytes.len() as u64 > MOST_EXPANDED {
        return Err(StoredError::TooLarge {
            limit: MOST_EXPANDED,
        });
    }
    Ok(bytes)
}

/// The most bytes of headers, long names and other records that may stand between two members of an archive.
const MOST_BETWEEN: u64 = 1 << 20;

/// A reader that fails once it has given `left` bytes: between two members of an archive stand names and other records,
/// which are read whole, and a few bytes may expand to any length.
struct Limited<R> {
    bytes: R,
    left: Arc<AtomicU64>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 && !out.is_empty() {
            return Err(io::Error::other(
                "the records before a member are larger than 1 MiB",
            ));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let read = self.bytes.read(out.get_mut(..most).unwrap_or_default())?;
        self.left.store(left - read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Calls `each` with the name and bytes of every regular file of a compressed tar, in order, until it returns false.
///
/// # Errors
/// If the archive is damaged, and the errors of `each`.
pub fn members_of_compressed_tar(
    bytes: &[u8],
    compression: Compression,
    mut each: impl FnMut(String, &mut dyn Read) -> Result<bool, StoredError>,
) -> Result<(), StoredError> {
    let damaged = |error| StoredError::DamagedArchive {
        format: ArchiveFormat::Tar,
        error,
    };
    let left = Arc::new(AtomicU64::new(MOST_BETWEEN));
    let reader = Limited {
        bytes: compression.reader(bytes).map_err(damaged)?,
        left: Arc::clone(&left),
    };
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        // The rest of this member is skipped before the next one is read.
        left.store(entry.size().saturating_add(MOST_BETWEEN), Ordering::Relaxed);
        if entry.header().entry_type().is_file() {
            let name = member_name(&entry.path_bytes());
            if !each(name, &mut entry)? {
                break;
            }
        }
    }
    Ok(())
}

/// Whether the compressed data, once decompressed, start with the header of a tar file.
pub fn is_compressed_tar(bytes: &[u8], compression: Compression) -> bool {
    let mut start = Vec::new();
    let read = compression
        .reader(bytes)
        .and_then(|reader| reader.take(512).read_to_end(&mut start));
    read.is_ok() && is_tar(&start)
}
