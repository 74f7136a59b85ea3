//! A place whose objects several processes read and change at the same time: a folder, or a folder in an object store.
mod folder;
mod objects;

use crate::remote;
use folder::FolderStore;
use objects::RemoteStore;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

/// An object as the list of a [`Store`] shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// Its name in the store, with `/` between folders.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was written; `None` if the store does not say.
    pub modified: Option<SystemTime>,
}

/// A content of an object. Another content of the same object has another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectVersion(pub Vec<u8>);

/// Objects with names. Every change happens as a whole or not at all, and other processes see it at once.
pub trait Store: Sync {
    /// The name of an object in messages: its path, or its address.
    fn name_of(&self, object: &str) -> String;

    /// The objects below a folder, sorted by name. Temporary files are not among them.
    ///
    /// # Errors
    /// If the store cannot be read. A folder that does not exist is empty.
    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>>;

    /// The bytes of an object and their version; `None` if there is no object of this name.
    ///
    /// # Errors
    /// If the object cannot be read. [`io::ErrorKind::FileTooLarge`] if it has more than `most` bytes.
    fn read(&self, object: &str, most: u64) -> io::Result<Option<(Vec<u8>, ObjectVersion)>>;

    /// Some bytes of an object: fewer if the object ends before.
    ///
    /// # Errors
    /// If the object cannot be read. [`io::ErrorKind::NotFound`] if there is none of this name.
    fn read_range(&self, object: &str, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// Writes an object if there is none of this name. Returns whether it did.
    ///
    /// # Errors
    /// If the object cannot be written.
    fn create(&self, object: &str, bytes: &[u8]) -> io::Result<bool>;

    /// Writes an object if its version is still this one; `None` stands for no object. Returns whether it did.
    ///
    /// # Errors
    /// If the object cannot be written.
    fn swap(&self, object: &str, bytes: &[u8], old: Option<&ObjectVersion>) -> io::Result<bool>;

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// If the object cannot be removed.
    fn remove(&self, object: &str) -> io::Result<()>;

    /// Removes temporary files that a process left behind when it was ended: those that are older than an hour. What cannot be
    /// removed stays.
    fn remove_abandoned(&self) {}
}

impl fmt::Debug for dyn Store + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name_of(""))
    }
}

/// The store at a path: a folder, which is made when the first object is written, or an address such as `s3://BUCKET/FOLDER`.
///
/// ```
/// use profkit_files::open_store;
/// # let folder = tempfile::tempdir()?;
///
/// let store = open_store(folder.path());
/// assert!(store.create("parts/one", b"1")?);
/// assert!(!store.create("parts/one", b"2")?);
/// assert!(store.swap("list", b"one", None)?);
/// // Who has not seen the last content does not replace it.
/// assert!(!store.swap("list", b"two", None)?);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn open_store(path: &Path) -> Box<dyn Store> {
    match remote::uri(path) {
        Some(uri) => Box::new(RemoteStore::new(uri)),
        None => Box::new(FolderStore::new(path)),
    }
}
