//! Reads archives of profiles. Each member of an archive is an input of its own.
use super::open_stored;
use crate::InputData;
use profkit_data::stored::{
    Archive, ArchiveFormat, Compression, StoredError, expand, is_compressed_tar,
    members_of_compressed_tar, read_member,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The largest number of bytes that are kept of members that are not needed yet.
const MOST_KEPT: usize = 64 << 20;

/// The bytes of the archive file. All readers of its members share them.
#[derive(Clone)]
pub struct Bytes(Arc<InputData<'static>>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// An archive file, and the list of its members.
pub enum ArchiveFile {
    /// A tar or zip archive. Each member can be read directly.
    Direct(Archive<Bytes>),
    /// A compressed tar archive. It can be read only from its start.
    Stream(Box<Stream>),
}

impl fmt::Debug for ArchiveFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArchiveFile")
            .field(&self.members().len())
            .finish()
    }
}

impl ArchiveFile {
    /// Opens an archive file and lists its regular files. `None` if the file is not an archive. If the archive is
    /// damaged, the members before the damage are listed, and [`problem`](Self::problem) returns the reason.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let bytes = Bytes(Arc::new(open_stored(path, &mut Vec::new())?));
        Ok(match Compression::of(bytes.as_ref()) {
            Some(compression) => Stream::open(bytes, compression),
            None => Archive::open(bytes).map(ArchiveFile::Direct),
        })
    }

    /// The names of the regular files in the archive, in the order of the archive.
    pub fn members(&self) -> &[String] {
        match self {
            ArchiveFile::Direct(archive) => archive.members(),
            ArchiveFile::Stream(stream) => &stream.members,
        }
    }

    /// If the archive is damaged: the reason why some members could not be listed.
    pub fn problem(&self) -> Option<&StoredError> {
        match self {
            ArchiveFile::Direct(archive) => archive.problem(),
            ArchiveFile::Stream(stream) => stream.problem.as_ref(),
        }
    }

    /// Returns the bytes of a member. A member that is compressed itself is decompressed. Any thread may call this. The
    /// members of a compressed tar archive should be read in order, because reading an earlier member means
    /// decompressing the archive from its start.
    ///
    /// # Errors
    /// If the member is damaged, too large, or compressed with an unsupported method.
    pub fn read(&self, index: usize) -> Result<InputData<'_>, StoredError> {
        match self {
            ArchiveFile::Direct(archive) => Ok(match archive.read(index)? {
                Cow::Borrowed(bytes) => InputData::Borrowed(bytes),
                Cow::Owned(bytes) => InputData::Buffer(bytes),
            }),
            ArchiveFile::Stream(stream) => {
                let bytes = stream.read(index)?;
                Ok(InputData::Buffer(expand(&bytes)?.unwrap_or(bytes)))
            }
        }
    }
}

/// A compressed tar archive. One thread decompresses it and sends the members, one after the other, to the readers.
pub struct Stream {
    bytes: Bytes,
    compression: Compression,
    members: Vec<String>,
    problem: Option<StoredError>,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    /// Members that were decompressed already and are not needed yet, by index.
    kept: BTreeMap<usize, Vec<u8>>,
    kept_bytes: usize,
    /// The receiver of the remaining members. The first of them has the index `next`.
    coming: Option<Receiver<Result<Vec<u8>, StoredError>>>,
    next: usize,
}

impl StreamState {
    fn keep(&mut self, index: usize, bytes: Vec<u8>) {
        if self.kept_bytes.saturating_add(bytes.len()) <= MOST_KEPT {
            self.kept_bytes += bytes.len();
            self.kept.insert(index, bytes);
        }
    }
}

impl Stream {
    /// Lists the members of an archive. Members are kept while they fit into [`MOST_KEPT`] bytes, so that a small
    /// archive is decompressed only once.
    fn open(bytes: Bytes, compression: Compression) -> Option<ArchiveFile> {
        let mut state = StreamState::default();
        let mut members = Vec::new();
        let mut is_archive = false;
        let listed = members_of_compressed_tar(bytes.as_ref(), compression, |name, member| {
            is_archive = true;
            let index = members.len();
            members.push(name);
            if state.kept_bytes < MOST_KEPT {
                state.keep(index, read_member(member, ArchiveFormat::Tar)?);
            }
            Ok(true)
        });
        if !is_archive && !is_compressed_tar(bytes.as_ref(), compression) {
            return None;
        }
        Some(ArchiveFile::Stream(Box::new(Stream {
            bytes,
            compression,
            members,
            problem: listed.err(),
            state: Mutex::new(state),
        })))
    }

    fn read(&self, index: usize) -> Result<Vec<u8>, StoredError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        if let Some(bytes) = state.kept.remove(&index) {
            state.kept_bytes -= bytes.len();
            return Ok(bytes);
        }
        if state.coming.is_none() || state.next > index {
            state.coming = Some(self.start());
            state.next = 0;
        }
        while let Some(member) = state.coming.as_ref().and_then(|coming| coming.recv().ok()) {
            let at = state.next;
            state.next += 1;
            if at == index {
                return member;
            }
            // The error of a skipped member is ignored here. Whoever reads that member later gets the error, because
            // the archive is then decompressed again.
            if let Ok(member) = member {
                state.keep(at, member);
            }
        }
        state.coming = None;
        Err(StoredError::Changed)
    }

    /// Starts a thread that decompresses the archive from the first member. The thread ends at the end of the archive,
    /// or when the receiver is dropped.
    fn start(&self) -> Receiver<Result<Vec<u8>, StoredError>> {
        let (sender, receiver) = sync_channel(1);
        let bytes = self.bytes.clone();
        let compression = self.compression;
        std::thread::spawn(move || {
            let ended = members_of_compressed_tar(bytes.as_ref(), compression, |_, member| {
                let member = read_member(member, ArchiveFormat::Tar);
                Ok(sender.send(member).is_ok())
            });
            if let Err(error) = ended {
                let _ = sender.send(Err(error));
            }
        });
        receiver
    }
}

#[cfg(test)]
mod tests;
