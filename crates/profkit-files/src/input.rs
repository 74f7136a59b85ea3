//! Opens input files.
use crate::archive::ArchiveFile;
use crate::remote;
use crate::system_text;
use crate::{InputData, Inputs};
use memmap2::Mmap;
use profkit_data::stored::{MemberError, expand, expand_front, split_member};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// The smallest size in bytes of files that are mapped. Smaller files are read into a buffer that is reused, which is
/// faster than mapping and unmapping each file: both take the same time at 256 KiB, and mapping half the time at 1 MiB, because
/// nothing is copied. Each thread may need a buffer of this size.
const MAP_FROM: u64 = 512 << 10;

/// The smallest size in bytes of files that are mapped although they are small, because many of them are open at once.
const HOLD_FROM: u64 = 16 << 10;

/// The name of standard input in messages.
pub const STDIN_NAME: &str = "<stdin>";

/// Whether a path means standard input or output.
pub fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// An input file whose bytes are in memory or mapped. A compressed file is decompressed.
#[derive(Debug)]
pub struct Input {
    name: String,
    data: InputData<'static>,
    /// The memory map that `data` owns; `None` if the file is not mapped.
    map: Option<MappedFile>,
}

/// A file whose bytes are mapped.
#[derive(Clone, Debug)]
pub struct MappedFile(Arc<Mmap>);

impl MappedFile {
    pub(super) fn new(map: Mmap) -> Self {
        MappedFile(Arc::new(map))
    }

    /// Gives memory back to the system. `bytes` is a part of the file that the caller will not read soon; if it is read
    /// nevertheless, the system reads the file again. Nothing happens if `bytes` is not a part of this file.
    #[cfg(unix)]
    #[allow(unsafe_code)]
    pub fn release(&self, bytes: &[u8]) {
        let map = &self.0;
        let start = (bytes.as_ptr() as usize).wrapping_sub(map.as_ptr() as usize);
        if start > map.len() || bytes.len() > map.len() - start {
            return;
        }
        // If this fails, the memory stays occupied, which is harmless. SAFETY: the map is read-only, so this process
        // has changed no page. When a page that was given back is read again, it has the bytes of the file.
        let _ = unsafe {
            map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, bytes.len())
        };
    }

    /// Does nothing on this platform: the system itself takes back the memory of mapped files.
    #[cfg(not(unix))]
    pub fn release(&self, _bytes: &[u8]) {}
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Input {
    /// Opens a file; for `-`, reads standard input to its end. The path `ARCHIVE!MEMBER` means a file in a tar or zip
    /// archive; the path of an archive with only one file means this file. If a compressed file is cut off, its first
    /// bytes are read ([`problem`](Self::problem)).
    ///
    /// # Errors
    /// An error if the file cannot be opened or read; a [`MemberError`] if the file is an archive and none of its files
    /// can be chosen.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mut name = if is_stdio(path) {
            STDIN_NAME.to_owned()
        } else {
            profkit_data::path_text(path)
        };
        match Self::load(path, &mut name) {
            Ok((data, map)) => Ok(Input { name, data, map }),
            Err(error) => Err(ReadError { name, error }),
        }
    }

    /// Makes an input of bytes in memory. `name` is its name in messages.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Input {
            name: name.into(),
            data: InputData::Buffer(bytes),
            map: None,
        }
    }

    /// Reads a file. If the path is that of an archive, `name` is set to the name of the member that is read.
    fn load(
        path: &Path,
        name: &mut String,
    ) -> io::Result<(InputData<'static>, Option<MappedFile>)> {
        let member = archive_of(path);
        let file = member.map_or(path, |(archive, _)| archive);
        let stored = match remote::uri(path) {
            Some(uri) => object_at(uri)?,
            None => open_stored(file, &mut Vec::new())?,
        };
        let map = match &stored {
            InputData::Mapped(map) => Some(map.clone()),
            _ => None,
        };
        let archive = match ArchiveFile::of(stored) {
            Ok(archive) => archive,
            Err(_) if member.is_some() => return Err(io::Error::other(MemberError::NotAnArchive)),
            Err(stored) => {
                let data = expanded(stored)?;
                let mapped = matches!(data, InputData::Mapped(_));
                return Ok((data, map.filter(|_| mapped)));
            }
        };
        let index = archive.choose(member.map(|(_, member)| member))?;
        if member.is_none() {
            *name = archive.member_name(name, index);
        }
        let data = archive.read(index)?;
        Ok((owned(data.as_ref(), data.problem()), None))
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_ref()
    }

    /// The reason why only the first bytes of the file could be read; `None` if all bytes were read.
    pub fn problem(&self) -> Option<&str> {
        self.data.problem()
    }

    /// Gives memory back to the system. `bytes` is a part of [`bytes`](Self::bytes) that the caller will not read soon;
    /// if it is read nevertheless, the system reads the file again. Nothing happens if the file is not mapped or
    /// `bytes` is not a part of this file.
    pub fn release(&self, bytes: &[u8]) {
        if let Some(map) = &self.map {
            map.release(bytes);
        }
    }
}

impl Input {
    /// As [`release`](Self::release), for bytes that are counted from the start of the file.
    pub fn release_range(&self, bytes: Range<u64>) {
        self.data.release(bytes);
    }
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

/// The error for a file that cannot be opened or read.
#[derive(Debug)]
pub struct ReadError {
    /// The name of the file in messages.
    pub name: String,
    /// The reason why the file cannot be opened or read.
    pub error: io::Error,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: cannot be read: {}",
            self.name,
            system_text(&self.error)
        )
    }
}

impl std::error::Error for ReadError {}

/// An open file as the only input of a merge.
///
/// ```
/// use profkit_files::{Input, Inputs, SingleInput};
/// # let file = tempfile::NamedTempFile::new()?;
/// # let path = file.path();
///
/// std::fs::write(path, b"main\n1\n1\n5\n")?;
/// let input = Input::open(path)?;
/// // Functions that take several inputs take `&SingleInput(&input)`, and the file is not opened again.
/// let inputs = SingleInput(&input);
/// assert_eq!((inputs.len(), inputs.name(0).as_ref()), (1, input.name()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SingleInput<'a>(pub &'a Input);

impl Inputs for SingleInput<'_> {
    fn len(&self) -> usize {
        1
    }

    fn name(&self, _: usize) -> Cow<'_, str> {
        self.0.name().into()
    }

    fn open<'s>(&'s self, _: usize, _: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        Ok(match self.0.problem() {
            None => InputData::Borrowed(self.0.bytes()),
            problem => owned(self.0.bytes(), problem),
        })
    }
}

fn owned(bytes: &[u8], problem: Option<&str>) -> InputData<'static> {
    match problem {
        Some(problem) => InputData::Cut(bytes.to_vec(), problem.to_owned()),
        None => InputData::Buffer(bytes.to_vec()),
    }
}

/// Reads a file into `buffer` (the old contents are replaced), or maps the file if it is large. Pipes, other files
/// without a known size, and files that cannot be mapped are also read into the buffer. The path `-` means standard
/// input. A compressed file (gzip, zstd, xz) is decompressed into `buffer`.
///
/// # Errors
/// An error if the file cannot be opened, read or decompressed, or if it is a folder.
pub fn read_into(path: &Path, buffer: &mut Vec<u8>) -> io::Result<Option<Mmap>> {
    if let Some(uri) = remote::uri(path) {
        let stored = object_at(uri)?;
        *buffer = expand(stored.as_ref())?.unwrap_or_else(|| stored.as_ref().to_vec());
        return Ok(None);
    }
    let map = read_stored(path, buffer)?;
    let stored = map.as_deref().unwrap_or(buffer);
    if let Some(expanded) = expand(stored)? {
        *buffer = expanded;
        return Ok(None);
    }
    Ok(map)
}

/// Reads or maps a file as [`read_into`] does, but does not decompress it.
///
/// # Errors
/// An error if the file cannot be opened or read, or if it is a folder.
pub fn read_stored(path: &Path, buffer: &mut Vec<u8>) -> io::Result<Option<Mmap>> {
    read_or_map(path, MAP_FROM, buffer)
}

fn read_or_map(path: &Path, map_from: u64, buffer: &mut Vec<u8>) -> io::Result<Option<Mmap>> {
    buffer.clear();
    if is_stdio(path) {
        io::stdin().lock().read_to_end(buffer)?;
        return Ok(None);
    }
    let mut file = File::open(path).map_err(|error| of_folder(path, error))?;
    let metadata = file.metadata()?;
    let large = metadata.is_file() && metadata.len() >= map_from;
    if large && let Ok(map) = map(&file) {
        return Ok(Some(map));
    }
    if let Ok(len) = usize::try_from(metadata.len().min(MAP_FROM)) {
        // One byte more, so that the buffer is not enlarged when the reader looks for the end of the file.
        buffer.reserve(len + 1);
    }
    file.read_to_end(buffer)?;
    Ok(None)
}

/// Windows denies the access to a folder that is opened as a file. The error says then what it is, as on other systems.
pub(crate) fn of_folder(path: &Path, error: io::Error) -> io::Error {
    match cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied && path.is_dir() {
        true => io::Error::new(io::ErrorKind::IsADirectory, "Is a directory"),
        false => error,
    }
}

/// Opens a file as an input of a merge, without decompressing the file. Tools that do not accept compressed files use
/// this function.
///
/// # Errors
/// The same as [`read_stored`].
pub fn open_stored(path: &Path, buffer: &mut Vec<u8>) -> io::Result<InputData<'static>> {
    Ok(match read_stored(path, buffer)? {
        Some(map) => InputData::Mapped(MappedFile::new(map)),
        None => InputData::Buffer(std::mem::take(buffer)),
    })
}

/// Opens a file, and returns its bytes in the form that [`Inputs::open`] returns. A compressed file is decompressed; if
/// the compressed file is cut off, the bytes before the cut are returned.
///
/// # Errors
/// The same as [`read_into`], except that a compressed file that is only cut off is no error.
pub fn open_file(path: &Path, buffer: &mut Vec<u8>) -> io::Result<InputData<'static>> {
    expanded(match remote::uri(path) {
        Some(uri) => object_at(uri)?,
        None => open_stored(path, buffer)?,
    })
}

/// Opens a file as [`open_stored`] does, but maps all but the smallest files: they stay open while many others are open
/// too.
///
/// # Errors
/// The same as [`open_stored`].
pub fn hold_stored(path: &Path) -> io::Result<InputData<'static>> {
    let mut buffer = Vec::new();
    Ok(match read_or_map(path, HOLD_FROM, &mut buffer)? {
        Some(map) => InputData::Mapped(MappedFile::new(map)),
        None => InputData::Buffer(buffer),
    })
}

/// Opens a file as [`open_file`] does, and maps it as [`hold_stored`] does.
///
/// # Errors
/// The same as [`open_file`].
pub fn hold_file(path: &Path) -> io::Result<InputData<'static>> {
    expanded(hold_stored(path)?)
}

/// Bytes in memory, decompressed if they are compressed.
pub(crate) fn expanded_slice(bytes: &[u8]) -> io::Result<InputData<'_>> {
    Ok(match expand_front(bytes)? {
        None => InputData::Borrowed(bytes),
        Some((bytes, problem)) => InputData::from((Cow::Owned(bytes), problem)),
    })
}

/// The bytes of an object in an object store; they are not decompressed.
pub(super) fn object_at(uri: &str) -> io::Result<InputData<'static>> {
    match remote::head(uri)? {
        Some(object) => remote::get(&object),
        None => {
            let why = "the store has no object of this name";
            Err(io::Error::new(io::ErrorKind::NotFound, why))
        }
    }
}

pub(super) fn expanded(stored: InputData<'static>) -> io::Result<InputData<'static>> {
    Ok(match expand_front(stored.as_ref())? {
        None => stored,
        Some((bytes, problem)) => InputData::from((Cow::Owned(bytes), problem)),
    })
}

/// Splits `ARCHIVE!MEMBER`. `None` if there is a file with the whole path, or if no part of it is an archive.
pub(super) fn archive_of(path: &Path) -> Option<(&Path, &str)> {
    if is_stdio(path) || path.exists() {
        return None;
    }
    split_member(path.to_str()?)
        .map(|(archive, member)| (Path::new(archive), member))
        .find(|(archive, _)| archive.is_file())
}

/// Maps a file. If another process changes the file, the mapped bytes change too: readers check every length against
/// the slice and never rely on bytes that they have read before. If it shortens the file, this program ends with
/// SIGBUS, and leaves no incomplete output, because outputs get their names when they are complete.
#[allow(unsafe_code)]
pub(super) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only, and a borrow of its bytes cannot outlive the map. Another process may change the
    // file, and then the bytes of the map change too. Readers are prepared for this: they accept any bytes, and never
    // assume that bytes which they have read stay the same.
    unsafe { Mmap::map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn small_files_are_read_and_large_ones_mapped_with_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile");
        let mut buffer = vec![7; 100];
        std::fs::write(&path, b"small").unwrap();
        assert!(read_into(&path, &mut buffer).unwrap().is_none());
        assert_eq!(buffer, b"small");

        let block = [0xa5; 1 << 16];
        let mut file = File::create(&path).unwrap();
        for _ in 0..MAP_FROM / block.len() as u64 {
            file.write_all(&block).unwrap();
        }
        let map = read_into(&path, &mut buffer).unwrap().expect("a map");
        assert_eq!(map.len() as u64, MAP_FROM);
        assert!(map.iter().all(|&byte| byte == 0xa5));
        assert!(buffer.is_empty());
        drop(map);
        assert_eq!(Input::open(&path).unwrap().bytes().len() as u64, MAP_FROM);
    }

    #[test]
    fn released_bytes_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        let bytes: Vec<u8> = (0..MAP_FROM * 2)
            .map(|at| (at / 999).to_le_bytes()[0])
            .collect();
        std::fs::write(&path, &bytes).unwrap();
        let input = Input::open(&path).unwrap();
        assert!(input.map.is_some());
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
            let of_file = text
                .lines()
                .skip_while(|line| !line.ends_with("/recording"));
            let line = of_file.into_iter().find(|line| line.starts_with("Rss:"));
            line.map(str::to_owned)
        };
        assert_eq!(input.bytes(), bytes);
        let before = resident();
        input.release(&input.bytes()[1..]);
        if cfg!(target_os = "linux") {
            assert_eq!(resident().as_deref(), Some("Rss:                   0 kB"));
            assert_ne!(before, resident());
        }
        assert_eq!(input.bytes(), bytes);
        // Releasing bytes that belong to no map leaves all bytes as they are.
        input.release(&bytes);
        input.release(b"");
        std::fs::write(&path, b"small").unwrap();
        let small = Input::open(&path).unwrap();
        small.release(small.bytes());
        assert_eq!(small.bytes(), b"small");
    }

    #[test]
    fn what_cannot_be_opened_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| Input::open(path).unwrap_err().to_string();
        let missing = message(&folder.path().join("no.profraw"));
        assert!(
            missing.ends_with("/no.profraw: cannot be read: No such file or directory"),
            "{missing}"
        );
        let is_folder = message(folder.path());
        assert!(is_folder.ends_with(": Is a directory"), "{is_folder}");
    }
}
