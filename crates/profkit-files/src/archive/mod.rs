//! Reads archives of profiles. Each member of an archive is an input of its own.
use crate::{InputData, open_stored};
use profkit_data::stored::{
    Archive, Compression, Front, StoredError, choose_member, expand_member, is_archive,
    members_of_compressed_tar,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of bytes of decompressed members that are kept in memory until they are needed.
const MOST_KEPT: usize = 64 << 20;

#[derive(Clone)]
pub struct Bytes(Arc<InputData<'static>>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

pub enum ArchiveFile {
    Direct(Archive<Bytes>),
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
    /// Opens an archive file and lists its regular files. Returns `None` if the file is not an archive. If the archive
    /// is damaged, the members before the damage are listed, and [`problem`](Self::problem) returns the reason.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        Ok(Self::of(open_stored(path, &mut Vec::new())?).ok())
    }

    /// Opens the archive in these bytes. If they are not an archive, returns the bytes as the error.
    pub fn of(bytes: InputData<'static>) -> Result<Self, InputData<'static>> {
        if !is_archive(bytes.as_ref()) {
            return Err(bytes);
        }
        let bytes = Bytes(Arc::new(bytes));
        Ok(match Compression::of(bytes.as_ref()) {
            Some(compression) => Stream::open(bytes, compression),
            None => ArchiveFile::Direct(Archive::open(bytes)),
        })
    }

    pub fn members(&self) -> &[String] {
        match self {
            ArchiveFile::Direct(archive) => archive.members(),
            ArchiveFile::Stream(stream) => &stream.members,
        }
    }

    pub fn choose(&self, name: Option<&str>) -> io::Result<usize> {
        choose_member(self.members(), name).map_err(|error| match self.problem() {
            Some(problem) if self.members().is_empty() => problem.again().into(),
            _ => io::Error::other(error),
        })
    }

    pub fn member_name(&self, archive: &str, index: usize) -> String {
        let member = self.members().get(index).map_or("", String::as_str);
        format!("{archive}!{member}")
    }

    /// The reason why some members could not be listed; `None` if the archive is intact.
    pub fn problem(&self) -> Option<&StoredError> {
        match self {
            ArchiveFile::Direct(archive) => archive.problem(),
            ArchiveFile::Stream(stream) => stream.problem.as_ref(),
        }
    }

    /// Returns the bytes of a member. If the member is a compressed file, it is decompressed. If the member is cut off,
    /// its first bytes are returned. Any thread may call this method. The members of a compressed tar archive should be
    /// read in order, because the archive must be decompressed from its start again to read an earlier member.
    pub fn read(&self, index: usize) -> Result<InputData<'_>, StoredError> {
        Ok(InputData::from(match self {
            ArchiveFile::Direct(archive) => archive.read(index)?,
            ArchiveFile::Stream(stream) => {
                let (bytes, problem) = stream.read(index)?;
                expand_member((Cow::Owned(bytes), problem))?
            }
        }))
    }
}

pub struct Stream {
    bytes: Bytes,
    compression: Compression,
    members: Vec<String>,
    problem: Option<StoredError>,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    kept: BTreeMap<usize, Front<Vec<u8>>>,
    kept_bytes: usize,
    /// The receiver of the members from index `next` on; `None` if no thread is decompressing the archive.
    coming: Option<Receiver<Result<Front<Vec<u8>>, StoredError>>>,
    next: usize,
}

impl StreamState {
    fn keep(&mut self, index: usize, front: Front<Vec<u8>>) {
        if self.kept_bytes.saturating_add(front.0.len()) <= MOST_KEPT {
            self.kept_bytes += front.0.len();
            self.kept.insert(index, front);
        }
    }
}

impl Stream {
    /// Lists the members. Up to [`MOST_KEPT`] decompressed bytes are kept, so that a small archive is decompressed
    /// once.
    fn open(bytes: Bytes, compression: Compression) -> ArchiveFile {
        let mut state = StreamState::default();
        let mut members = Vec::new();
        let listed = members_of_compressed_tar(bytes.as_ref(), compression, |name, member| {
            let index = members.len();
            members.push(name);
            if state.kept_bytes < MOST_KEPT {
                state.keep(index, member.read()?);
            }
            Ok(true)
        });
        ArchiveFile::Stream(Box::new(Stream {
            bytes,
            compression,
            members,
            problem: listed.err(),
            state: Mutex::new(state),
        }))
    }

    fn read(&self, index: usize) -> Result<Front<Vec<u8>>, StoredError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        if let Some(front) = state.kept.remove(&index) {
            state.kept_bytes -= front.0.len();
            return Ok(front);
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
            // If a skipped member is read later, the archive is decompressed again, and its error is returned.
            if let Ok(member) = member {
                state.keep(at, member);
            }
        }
        state.coming = None;
        Err(StoredError::Changed)
    }

    fn start(&self) -> Receiver<Result<Front<Vec<u8>>, StoredError>> {
        let (sender, receiver) = sync_channel(1);
        let bytes = self.bytes.clone();
        let compression = self.compression;
        std::thread::spawn(move || {
            let ended = members_of_compressed_tar(bytes.as_ref(), compression, |_, member| {
                Ok(sender.send(member.read()).is_ok())
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
