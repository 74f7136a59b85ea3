//! Reads archives of profiles. Each member of an archive is an input of its own, and so is each member of an archive in
//! an archive.
mod spool;

use crate::{InputData, open_stored};
use profkit_data::stored::{
    Archive, ArchiveFormat, Compression, Front, StoredError, choose_member, expand_member,
    is_archive, members_of_compressed_tar,
};
use rustc_hash::FxHashMap;
use spool::{Allowance, Spool};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The maximum depth of archives in archives. An archive that contains itself would be unpacked for ever.
const MOST_NESTED: usize = 3;

/// A part of shared bytes.
#[derive(Clone)]
pub struct Bytes {
    owner: Arc<InputData<'static>>,
    range: Range<usize>,
}

impl Bytes {
    fn whole(data: InputData<'static>) -> Self {
        let range = 0..data.as_ref().len();
        Bytes {
            owner: Arc::new(data),
            range,
        }
    }

    /// Returns the part of these bytes that `part` is a slice of; `None` if it is a slice of other bytes.
    fn part(&self, part: &[u8]) -> Option<Self> {
        let all = (*self.owner).as_ref();
        let start = (part.as_ptr() as usize).checked_sub(all.as_ptr() as usize)?;
        let end = start.checked_add(part.len())?;
        (end <= all.len()).then(|| Bytes {
            owner: Arc::clone(&self.owner),
            range: start..end,
        })
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        let all = (*self.owner).as_ref();
        all.get(self.range.clone()).unwrap_or_default()
    }
}

/// An archive file: the members of the archive, and those of the archives in it.
pub struct ArchiveFile {
    members: Vec<String>,
    /// The container of each member, and its index there.
    places: Vec<(usize, usize)>,
    containers: Vec<Container>,
    problems: Vec<ArchiveProblem>,
    repeated: Vec<(String, u64)>,
}

/// Why members of an archive could not be listed.
#[derive(Debug)]
pub struct ArchiveProblem {
    /// The name of the damaged archive in the archive file; `None` for the archive file itself.
    pub inner: Option<String>,
    pub error: StoredError,
    /// The number of members of this archive that can be read.
    pub members: usize,
}

enum Container {
    /// An archive whose members can be read where they are.
    Direct(Archive<Bytes>),
    /// The unpacked members of a compressed archive.
    Unpacked {
        bytes: Bytes,
        members: Vec<Unpacked>,
    },
}

/// The place of a member among the unpacked bytes.
type Unpacked = Result<Front<Range<usize>>, StoredError>;

impl Container {
    /// The bytes of a member; it is not decompressed.
    fn read(&self, index: usize) -> Result<Front<Cow<'_, [u8]>>, StoredError> {
        match self {
            Container::Direct(archive) => archive.read_stored(index),
            Container::Unpacked { bytes, members } => match members.get(index) {
                Some(Ok((range, problem))) => {
                    let bytes = bytes.as_ref().get(range.clone()).unwrap_or_default();
                    let problem = problem.as_ref().map(StoredError::again);
                    Ok((Cow::Borrowed(bytes), problem))
                }
                Some(Err(error)) => Err(error.again()),
                None => Err(StoredError::Changed),
            },
        }
    }

    /// The bytes of a whole member, shared with the container if they are a part of its bytes.
    fn shared(&self, index: usize, allowance: &mut Allowance) -> Result<Bytes, StoredError> {
        let (found, _) = self.read(index)?;
        let mine = match self {
            Container::Direct(archive) => archive.bytes(),
            Container::Unpacked { bytes, .. } => Some(bytes),
        };
        if let (Cow::Borrowed(found), Some(mine)) = (&found, mine)
            && let Some(part) = mine.part(found)
        {
            return Ok(part);
        }
        allowance.take_unpacked(found.len() as u64)?;
        let mut spool = Spool::new();
        let written = spool.writer(allowance).write_all(&found);
        written
            .and_then(|()| spool.finish())
            .map_err(|error| StoredError::NoRoom { error })
    }
}

impl fmt::Debug for ArchiveFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArchiveFile")
            .field(&self.members.len())
            .finish()
    }
}

impl ArchiveFile {
    /// Opens an archive file and lists its regular files. Returns `None` if the file is not an archive. If the archive
    /// is damaged, the members before the damage are listed, and [`problems`](Self::problems) returns the reason.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        Ok(Self::of(open_stored(path, &mut Vec::new())?).ok())
    }

    /// Opens the archive in these bytes. If they are not an archive, returns the bytes as the error.
    pub fn of(bytes: InputData<'static>) -> Result<Self, InputData<'static>> {
        Self::with_allowance(bytes, &mut Allowance::default())
    }

    fn with_allowance(
        bytes: InputData<'static>,
        allowance: &mut Allowance,
    ) -> Result<Self, InputData<'static>> {
        if !is_archive(bytes.as_ref()) {
            return Err(bytes);
        }
        let mut file = ArchiveFile {
            members: Vec::new(),
            places: Vec::new(),
            containers: Vec::new(),
            problems: Vec::new(),
            repeated: Vec::new(),
        };
        file.add(None, Bytes::whole(bytes), 0, allowance);
        Ok(file)
    }

    /// Lists the members of an archive. `inner` is its name, if it is itself a member.
    fn add(&mut self, inner: Option<&str>, bytes: Bytes, depth: usize, allowance: &mut Allowance) {
        let (container, names, problem) = match Compression::of(bytes.as_ref()) {
            Some(compression) => unpack(bytes.as_ref(), compression, allowance),
            None => {
                let archive = Archive::open(bytes);
                let names = archive.members().to_vec();
                let repeated = archive.repeated().iter();
                self.repeated.extend(repeated.map(|(name, times)| {
                    let name = inner.map_or(name.clone(), |inner| format!("{inner}!{name}"));
                    (name, *times)
                }));
                let problem = archive.problem().map(StoredError::again);
                (Container::Direct(archive), names, problem)
            }
        };
        let too_many = allowance.take_members(names.len()).err();
        let is_too_many = too_many.is_some();
        if let Some(error) = too_many.or(problem) {
            let members = match &container {
                _ if is_too_many => 0,
                Container::Direct(_) => names.len(),
                Container::Unpacked { members, .. } => {
                    members.iter().filter(|member| member.is_ok()).count()
                }
            };
            self.add_problem(inner, error, members);
        }
        if is_too_many {
            return;
        }
        let number = self.containers.len();
        self.containers.push(container);
        for index in self.last_of_each_name(inner, &names) {
            let name = names.get(index).map_or("", String::as_str);
            let name = match inner {
                Some(inner) => format!("{inner}!{name}"),
                None => name.to_owned(),
            };
            match self.archive_in((number, index), &name, depth, allowance) {
                Ok(Some(bytes)) => self.add(Some(&name), bytes, depth + 1, allowance),
                Ok(None) => {
                    self.members.push(name);
                    self.places.push((number, index));
                }
                Err(error) => self.add_problem(Some(&name), error, 0),
            }
        }
    }

    fn add_problem(&mut self, inner: Option<&str>, error: StoredError, members: usize) {
        self.problems.push(ArchiveProblem {
            inner: inner.map(str::to_owned),
            error,
            members,
        });
    }

    /// The bytes of a member that is an archive by its name and its content.
    fn archive_in(
        &self,
        (container, index): (usize, usize),
        name: &str,
        depth: usize,
        allowance: &mut Allowance,
    ) -> Result<Option<Bytes>, StoredError> {
        let file_name = Path::new(name).file_name().unwrap_or(OsStr::new(name));
        if depth == MOST_NESTED || !ArchiveFormat::is_named_so(file_name) {
            return Ok(None);
        }
        let container = self.containers.get(container);
        let bytes = container
            .ok_or(StoredError::Changed)?
            .shared(index, allowance)?;
        Ok(is_archive(bytes.as_ref()).then_some(bytes))
    }

    /// The indexes of the members whose name no later member has: tar appends newer versions of a file, and unpacking
    /// leaves the last one.
    fn last_of_each_name(&mut self, inner: Option<&str>, names: &[String]) -> Vec<usize> {
        let mut last: FxHashMap<String, (usize, u64)> = FxHashMap::default();
        for (index, name) in names.iter().enumerate() {
            let known = last.entry(path_of(name)).or_default();
            *known = (index, known.1 + 1);
        }
        let mut indexes: Vec<usize> = last.values().map(|&(index, _)| index).collect();
        indexes.sort_unstable();
        if indexes.len() < names.len() {
            for &index in &indexes {
                let name = names.get(index).map_or("", String::as_str);
                let times = last.get(&path_of(name)).map_or(1, |&(_, times)| times);
                if times > 1 {
                    let name = inner.map_or(name.to_owned(), |inner| format!("{inner}!{name}"));
                    self.repeated.push((name, times));
                }
            }
        }
        indexes
    }

    /// The names of the members. That of a member of an inner archive is `INNER!MEMBER`.
    pub fn members(&self) -> &[String] {
        &self.members
    }

    pub fn choose(&self, name: Option<&str>) -> io::Result<usize> {
        choose_member(self.members(), name).map_err(|error| match self.problems.first() {
            Some(problem) if self.members.is_empty() => problem.error.again().into(),
            _ => io::Error::other(error),
        })
    }

    pub fn member_name(&self, archive: &str, index: usize) -> String {
        let member = self.members.get(index).map_or("", String::as_str);
        format!("{archive}!{member}")
    }

    /// The reasons why some members could not be listed. There are none if the archive and those in it are intact.
    pub fn problems(&self) -> &[ArchiveProblem] {
        &self.problems
    }

    /// The members that are in the archive several times, and how often. Only the last one of each name is listed.
    pub fn repeated(&self) -> &[(String, u64)] {
        &self.repeated
    }

    /// Returns the bytes of a member. If the member is a compressed file, it is decompressed. If the member is cut off,
    /// its first bytes are returned. Any thread may call this method, for the members in any order.
    pub fn read(&self, index: usize) -> Result<InputData<'_>, StoredError> {
        let &(container, index) = self.places.get(index).ok_or(StoredError::Changed)?;
        let container = self.containers.get(container).ok_or(StoredError::Changed)?;
        Ok(InputData::from(expand_member(container.read(index)?)?))
    }
}

/// The path to which a member is unpacked: `a//b` and `a/./b` are `a/b`.
fn path_of(name: &str) -> String {
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}

/// Decompresses an archive once, and keeps its members.
fn unpack(
    bytes: &[u8],
    compression: Compression,
    allowance: &mut Allowance,
) -> (Container, Vec<String>, Option<StoredError>) {
    let mut names = Vec::new();
    let mut members: Vec<Unpacked> = Vec::new();
    let mut spool = Spool::new();
    let mut end = 0;
    let listed = members_of_compressed_tar(bytes, compression, |name, member| {
        allowance.take_unpacked(member.size())?;
        names.push(name);
        let start = end;
        match member.copy(&mut spool.writer(allowance)) {
            Ok((size, problem)) => {
                end += usize::try_from(size).unwrap_or(usize::MAX);
                members.push(Ok((start..end, problem)));
                Ok(true)
            }
            Err(error) => {
                members.push(Err(error.again()));
                // A member that is too large was not read at all, so the next one can be read.
                match error {
                    StoredError::TooLarge { .. } => Ok(true),
                    error => Err(error),
                }
            }
        }
    });
    let (bytes, unwritten) = match spool.finish() {
        Ok(bytes) => (bytes, None),
        Err(error) => {
            let nothing = Bytes::whole(InputData::Borrowed(&[]));
            members.clear();
            (nothing, Some(StoredError::NoRoom { error }))
        }
    };
    let container = Container::Unpacked { bytes, members };
    (container, names, unwritten.or(listed.err()))
}

#[cfg(test)]
mod tests;
