//! Reads profiles from archives: tar, compressed tar, zip. Each file in an archive is a separate input.
use super::{Compression, Ending, Front, MOST_EXPANDED, StoredError, expand_front};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Cursor, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveFormat {
    /// A tar archive, compressed or not.
    Tar,
    /// A zip archive.
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
    /// Whether the name of a file ends as the name of an archive does: in `.tar`, `.tgz`, `.tar.zst`, `.zip` or the
    /// like. Programs use this function to find the archives in a folder without opening every file.
    pub fn is_named_so(name: &OsStr) -> bool {
        const ENDS: &[&str] = &[
            ".tar", ".tgz", ".txz", ".tzst", ".tar.gz", ".tar.xz", ".tar.zst", ".zip",
        ];
        let name = name.as_encoded_bytes().to_ascii_lowercase();
        ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
    }
}

/// A tar or zip archive with a list of its members. This type does not support compressed tar files. `B` is the type of
/// the archive's bytes. A clone of `B` must have the same bytes as the original, as is the case for a slice or an
/// `Arc`.
pub struct Archive<B> {
    format: ArchiveFormat,
    members: Vec<String>,
    source: Source<B>,
    repeated: Vec<(String, u64)>,
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

/// Where the bytes of an archive's members are.
enum Source<B> {
    /// The bytes of a tar file, and the range of each member in them. `lost` is the number of bytes that are missing at
    /// the end of the last member, because the archive is cut off.
    Tar {
        bytes: B,
        places: Vec<Range<usize>>,
        lost: usize,
    },
    /// The bytes of a zip archive. `indices` has the index of each member in the directory of the archive. Clones of
    /// the archive share the directory.
    Zip {
        archive: zip::ZipArchive<Cursor<B>>,
        indices: Vec<usize>,
    },
    /// The archive is damaged and its members are not known.
    Nothing,
}

impl<B: AsRef<[u8]> + Clone> Archive<B> {
    /// Lists the regular files of an archive. If the archive is damaged, the members before the damage are listed, and
    /// [`problem`](Self::problem) returns the reason. To find out whether bytes are an archive, use [`is_archive`].
    pub fn open(bytes: B) -> Self {
        if is_zip(bytes.as_ref()) {
            Self::zip(bytes)
        } else {
            Self::tar(bytes)
        }
    }

    fn tar(bytes: B) -> Self {
        let mut members = Vec::new();
        let mut places = Vec::new();
        let mut problem = None;
        let mut lost = 0;
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
                    lost = size - (end - start);
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
            source: Source::Tar {
                bytes,
                places,
                lost,
            },
            repeated: Vec::new(),
            problem,
        }
    }

    fn zip(bytes: B) -> Self {
        let mut members = Vec::new();
        let mut indices = Vec::new();
        let damaged = |error: zip::result::ZipError| StoredError::DamagedArchive {
            format: ArchiveFormat::Zip,
            error: match error {
                // The library's text for this error is an abbreviation, so it is replaced.
                zip::result::ZipError::InvalidArchive(_) => io::Error::new(
                    io::ErrorKind::InvalidData,
                    "its directory, which is at the end, is missing or damaged",
                ),
                error => io::Error::other(error),
            },
        };
        let (archive, problem) = match zip::ZipArchive::new(Cursor::new(bytes.clone())) {
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
                    repeated: Vec::new(),
                    problem: Some(damaged(error)),
                };
            }
        };
        let repeated = repeated_in_zip(bytes.as_ref(), archive.central_directory_start());
        Archive {
            format: ArchiveFormat::Zip,
            members,
            source: Source::Zip { archive, indices },
            repeated,
            problem,
        }
    }

    /// The names that several files of a zip archive have, and how many files have each. Only the last file of a name is a
    /// member. The files of a tar archive are all members.
    pub fn repeated(&self) -> &[(String, u64)] {
        &self.repeated
    }

    /// The format of the archive: tar or zip.
    pub fn format(&self) -> ArchiveFormat {
        self.format
    }

    /// The bytes of the archive, if members are parts of them; `None` for a zip archive, whose members are decompressed.
    pub fn bytes(&self) -> Option<&B> {
        match &self.source {
            Source::Tar { bytes, .. } => Some(bytes),
            Source::Zip { .. } | Source::Nothing => None,
        }
    }

    /// The names of the regular files in the archive, in the order of the archive.
    pub fn members(&self) -> &[String] {
        &self.members
    }

    /// The reason why some members could not be listed; `None` if the archive is intact.
    pub fn problem(&self) -> Option<&StoredError> {
        self.problem.as_ref()
    }

    /// Returns the bytes of a member. A compressed member is decompressed. If a member is cut off, the bytes before the
    /// cut are returned, together with the error. Several threads may call this function at the same time.
    ///
    /// # Errors
    /// An error if the member is damaged, too large, or compressed in a way that is not supported.
    pub fn read(&self, index: usize) -> Result<Front<Cow<'_, [u8]>>, StoredError> {
        expand_member(self.read_stored(index)?)
    }

    /// Returns the bytes of a member as [`read`](Self::read) does, but does not decompress a compressed member.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn read_stored(&self, index: usize) -> Result<Front<Cow<'_, [u8]>>, StoredError> {
        Ok(match &self.source {
            Source::Tar {
                bytes,
                places,
                lost,
            } => {
                let place = places.get(index).ok_or(StoredError::Changed)?;
                let found = bytes.as_ref().get(place.clone()).unwrap_or_default();
                let is_cut = *lost > 0 && index + 1 == places.len();
                let problem = is_cut.then(|| StoredError::CutMember {
                    found: found.len() as u64,
                    expected: (found.len() as u64).saturating_add(*lost as u64),
                });
                (Cow::Borrowed(found), problem)
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
                (Cow::Owned(read_member(file, ArchiveFormat::Zip)?), None)
            }
            Source::Nothing => return Err(StoredError::Changed),
        })
    }
}

/// Decompresses the bytes of a member, if they are compressed. Otherwise returns them unchanged.
pub fn expand_member(
    (bytes, problem): Front<Cow<'_, [u8]>>,
) -> Result<Front<Cow<'_, [u8]>>, StoredError> {
    Ok(match expand_front(&bytes)? {
        Some((expanded, cut)) => (Cow::Owned(expanded), problem.or(cut)),
        None => (bytes, problem),
    })
}

/// Whether the bytes are an archive that can be read: tar, compressed tar or zip.
pub fn is_archive(bytes: &[u8]) -> bool {
    match Compression::of(bytes) {
        Some(compression) => is_compressed_tar(bytes, compression),
        None => is_tar(bytes) || is_zip(bytes),
    }
}

/// Reads the names in the directory of a zip archive, which begins at `start`.
fn repeated_in_zip(bytes: &[u8], start: u64) -> Vec<(String, u64)> {
    const ENTRY: &[u8] = b"PK\x01\x02";
    let mut rest = usize::try_from(start)
        .ok()
        .and_then(|start| bytes.get(start..))
        .unwrap_or_default();
    let mut times: BTreeMap<&[u8], u64> = BTreeMap::new();
    while rest.starts_with(ENTRY) {
        // The sizes of the name, of more fields and of a comment, which follow the 46 bytes of an entry.
        let size = |at: usize| {
            let bytes = rest.get(at..)?.first_chunk::<2>()?;
            Some(usize::from(u16::from_le_bytes(*bytes)))
        };
        let (Some(name), Some(more), Some(comment)) = (size(28), size(30), size(32)) else {
            break;
        };
        // The names of folders end in a slash.
        if let Some(name) = rest.get(46..46 + name)
            && !name.ends_with(b"/")
        {
            *times.entry(name).or_default() += 1;
        }
        rest = rest.get(46 + name + more + comment..).unwrap_or_default();
    }
    let repeated = times.into_iter().filter(|&(_, times)| times > 1);
    repeated
        .map(|(name, times)| (member_name(name), times))
        .collect()
}

fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Whether the bytes begin with the header of a tar file (POSIX or GNU).
fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// Returns the name of a member as reports print it: as text and without `./` at its start.
fn member_name(bytes: &[u8]) -> String {
    let name = String::from_utf8_lossy(bytes);
    name.strip_prefix("./").unwrap_or(&name).to_owned()
}

/// Reads a member of at most [`MOST_EXPANDED`] bytes.
///
/// # Errors
/// An error if the member is damaged or larger than [`MOST_EXPANDED`].
fn read_member(member: impl Read, format: ArchiveFormat) -> Result<Vec<u8>, StoredError> {
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

/// The maximum number of bytes between the contents of two members of an archive. These bytes are headers, long names
/// and other metadata.
const MOST_BETWEEN: u64 = 1 << 20;

/// A reader that returns at most `left` bytes and then fails. It limits the metadata between two members of an archive.
/// The limit is needed because the library reads metadata completely into memory, and a few compressed bytes can be
/// decompressed to very many.
struct Limited<R> {
    bytes: R,
    left: Arc<AtomicU64>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 && !out.is_empty() {
            return Err(io::Error::other(
                "the metadata before a member are larger than 1 MiB",
            ));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let read = self.bytes.read(out.get_mut(..most).unwrap_or_default())?;
        self.left.store(left - read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A member of a compressed tar archive, whose bytes can be read once.
pub struct TarMember<'a> {
    bytes: &'a mut dyn Read,
    size: u64,
    ended: &'a AtomicBool,
}

impl fmt::Debug for TarMember<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TarMember").field(&self.size).finish()
    }
}

impl TarMember<'_> {
    /// The size of the member in bytes, as the archive states it.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Copies the bytes of the member to `to`. Returns their number. If the archive is cut off within the member, the
    /// bytes before the cut are copied, and the second part of the result is the error.
    ///
    /// # Errors
    /// An error if the member is damaged or larger than [`MOST_EXPANDED`], or if `to` cannot be written to.
    pub fn copy(self, to: &mut dyn Write) -> Result<Front<u64>, StoredError> {
        if self.size > MOST_EXPANDED {
            return Err(StoredError::TooLarge {
                limit: MOST_EXPANDED,
            });
        }
        let mut found = 0;
        let mut buffer = vec![0; COPIED_AT_ONCE];
        let end = loop {
            let read = match self.bytes.read(&mut buffer) {
                Ok(0) => break None,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break Some(error),
            };
            to.write_all(buffer.get(..read).unwrap_or_default())
                .map_err(|error| StoredError::NoRoom { error })?;
            found += read as u64;
        };
        match end {
            None if found == self.size => Ok((found, None)),
            Some(error) if found == 0 || !self.ended.load(Ordering::Relaxed) => {
                Err(StoredError::DamagedArchive {
                    format: ArchiveFormat::Tar,
                    error,
                })
            }
            _ => {
                let problem = StoredError::CutMember {
                    found,
                    expected: self.size,
                };
                Ok((found, Some(problem)))
            }
        }
    }
}

/// The number of bytes of a member that are decompressed and then written.
const COPIED_AT_ONCE: usize = 64 << 10;

/// Calls `each` for every regular file of a compressed tar archive, with the name and the contents of the file. The
/// files come in the order of the archive. The function ends early if `each` returns false.
///
/// # Errors
/// An error if the archive is damaged, and the errors of `each`.
pub fn members_of_compressed_tar(
    bytes: &[u8],
    compression: Compression,
    mut each: impl FnMut(String, TarMember<'_>) -> Result<bool, StoredError>,
) -> Result<(), StoredError> {
    let damaged = |error| StoredError::DamagedArchive {
        format: ArchiveFormat::Tar,
        error,
    };
    let left = Arc::new(AtomicU64::new(MOST_BETWEEN));
    let ended = AtomicBool::new(false);
    let source = Ending {
        bytes,
        ended: &ended,
    };
    let reader = Limited {
        bytes: compression.reader(source).map_err(damaged)?,
        left: Arc::clone(&left),
    };
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        // The unread bytes of this member are skipped before the next one is read.
        left.store(entry.size().saturating_add(MOST_BETWEEN), Ordering::Relaxed);
        if entry.header().entry_type().is_file() {
            let name = member_name(&entry.path_bytes());
            let size = entry.size();
            let member = TarMember {
                bytes: &mut entry,
                size,
                ended: &ended,
            };
            if !each(name, member)? {
                break;
            }
        }
    }
    Ok(())
}

/// Whether the compressed data are a tar archive: the decompressed bytes begin with the header of a tar file.
pub fn is_compressed_tar(bytes: &[u8], compression: Compression) -> bool {
    let mut start = Vec::new();
    let read = compression
        .reader(bytes)
        .and_then(|reader| reader.take(512).read_to_end(&mut start));
    read.is_ok() && is_tar(&start)
}
