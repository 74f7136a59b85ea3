//! Examines the files that linkers read: whether objects and static libraries contain LLVM's bitcode, and which members
//! a library has.
use object::read::archive::{ArchiveFile, ArchiveMember};
use object::read::{ReadCache, ReadRef as _};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The first bytes of LLVM's bitcode files: without a wrapper, and with a wrapper (LLVM's `docs/BitCodeFormat`, "magic
/// numbers").
const BITCODE: [[u8; 4]; 2] = [*b"BC\xC0\xDE", [0xDE, 0xC0, 0x17, 0x0B]];

/// Whether these bytes begin a bitcode file.
#[must_use]
pub fn is_bitcode(bytes: &[u8]) -> bool {
    BITCODE.iter().any(|magic| bytes.starts_with(magic))
}

/// The place of bitcode in a file: the file itself, or a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bitcode {
    /// The file contains no bitcode, or cannot be read.
    No,
    /// The file is bitcode.
    File,
    /// The file is a library, and at least one member is bitcode.
    Member,
}

/// Finds out whether a file contains bitcode. In a library, only the headers and the first bytes of the members are
/// read.
#[must_use]
pub fn bitcode_in(path: &Path) -> Bitcode {
    find(path).unwrap_or(Bitcode::No)
}

fn find(path: &Path) -> Option<Bitcode> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let data = &ReadCache::new(fs::File::open(path).ok()?);
    let begins = |at| data.read_bytes_at(at, 4).is_ok_and(is_bitcode);
    if begins(0) {
        return Some(Bitcode::File);
    }
    let library = ArchiveFile::parse(data).ok()?;
    for member in library.members() {
        let member = member.ok()?;
        let found = if library.is_thin() {
            let name = std::str::from_utf8(member.name()).ok()?;
            let start = fs::File::open(of_thin(path, name)).and_then(|mut file| {
                let mut start = [0; 4];
                io::Read::read_exact(&mut file, &mut start).map(|()| start)
            });
            start.is_ok_and(|start| is_bitcode(&start))
        } else {
            begins(member.file_range().0)
        };
        if found {
            return Some(Bitcode::Member);
        }
    }
    None
}

/// Returns the path of the file with a member of a thin library. The name of the member is a path relative to the
/// library.
fn of_thin(library: &Path, member: &str) -> PathBuf {
    library.with_file_name("").join(member)
}

/// A member of a library: its name, its bytes, and the symbols by which a linker finds it.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The name of the member. In a thin library, the folder is left out.
    pub name: &'a str,
    /// The bytes of the object.
    pub data: Cow<'a, [u8]>,
    /// The symbols of the member in the library's index, in the order of the index.
    pub symbols: Vec<&'a str>,
}

/// The reason why the members of a library cannot be read.
#[derive(Debug)]
pub enum LibraryError {
    /// The library is damaged. The text describes the damage.
    Damaged(String),
    /// The file of a member of a thin library cannot be read. The fields are the path of the file and the error.
    Member(PathBuf, io::Error),
}

impl From<object::Error> for LibraryError {
    #[cold]
    fn from(error: object::Error) -> Self {
        LibraryError::Damaged(error.to_string())
    }
}

impl From<std::str::Utf8Error> for LibraryError {
    #[cold]
    fn from(error: std::str::Utf8Error) -> Self {
        LibraryError::Damaged(error.to_string())
    }
}

/// Returns the members of a static library. `path` is the path of the library, and `bytes` are its contents. The
/// members of a thin library are read from their own files.
///
/// # Errors
/// If the library is damaged, or the file of a member cannot be read.
pub fn members<'a>(path: &Path, bytes: &'a [u8]) -> Result<Vec<Member<'a>>, LibraryError> {
    let library = ArchiveFile::parse(bytes)?;
    // A member of an ordinary library is identified by its offset. The members of a thin library have no offset, but
    // their names differ. So offset and name together identify a member of any library.
    let key = |member: &ArchiveMember<'a>| (member.file_range().0, member.name());
    let mut symbols: HashMap<_, Vec<&str>> = HashMap::new();
    for symbol in library.symbols()?.into_iter().flatten() {
        let symbol = symbol?;
        let member = library.member(symbol.offset())?;
        let name = std::str::from_utf8(symbol.name())?;
        symbols.entry(key(&member)).or_default().push(name);
    }
    let mut members = Vec::new();
    for member in library.members() {
        let member = member?;
        let name = std::str::from_utf8(member.name())?;
        let data = if library.is_thin() {
            let file = of_thin(path, name);
            match fs::read(&file) {
                Ok(data) => Cow::Owned(data),
                Err(error) => return Err(LibraryError::Member(file, error)),
            }
        } else {
            Cow::Borrowed(member.data(bytes)?)
        };
        members.push(Member {
            name: name.rsplit('/').next().unwrap_or(name),
            data,
            symbols: symbols.remove(&key(&member)).unwrap_or_default(),
        });
    }
    Ok(members)
}
