//! Locks folders, so that processes that read a file, change it and write it back do so one after the other.
use crate::walk::FileId;
use crate::{path_without_links, system_text};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The name of the lock file in a locked folder. Names of this form are those of temporary files, which are never inputs.
const NAME: &str = ".profkit-lock.tmp";

/// Locks on folders. While they exist, no other [`FolderLocks`] of any process holds one of these folders. A lock is a lock
/// of the operating system on a file in the folder, so that of a process that was killed is free. The file is removed
/// when the lock is given back; a file that a killed process did not remove is used again.
#[derive(Debug, Default)]
pub struct FolderLocks {
    held: Vec<Held>,
    /// The folders that could not be locked.
    pub failed: Vec<LockFailure>,
}

/// A folder that could not be locked, because its file system has no locks or the folder is not writable.
#[derive(Debug)]
pub struct LockFailure {
    /// The folder.
    pub folder: PathBuf,
    /// The error of the system.
    pub error: io::Error,
}

impl fmt::Display for LockFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cannot be locked ({}): if another process changes the same file at the same time, what one of them adds is lost",
            profkit_data::path_text(&self.folder),
            system_text(&self.error)
        )
    }
}

#[derive(Debug)]
struct Held {
    #[cfg(unix)]
    path: PathBuf,
    _file: File,
}

impl FolderLocks {
    /// Locks the folders of some files, or the folders themselves, and waits for processes that hold them. Links are
    /// followed. Calls `waits` with a folder before it waits for it. A folder that does not exist is not locked.
    pub fn of<'p>(
        paths: impl IntoIterator<Item = &'p Path>,
        mut waits: impl FnMut(&Path),
    ) -> FolderLocks {
        // In the order of their names, so that two processes never wait for each other.
        let mut folders = BTreeSet::new();
        for path in paths {
            let path = path_without_links(path);
            let folder = if path.is_dir() {
                Some(&*path)
            } else {
                path.parent()
            };
            folders.extend(folder.filter(|folder| folder.is_dir()).map(Path::to_owned));
        }
        let mut locks = FolderLocks::default();
        for folder in folders {
            match lock(&folder, &mut waits) {
                Ok(held) => locks.held.push(held),
                Err(error) => locks.failed.push(LockFailure { folder, error }),
            }
        }
        locks
    }
}

#[cfg(unix)]
impl Drop for Held {
    fn drop(&mut self) {
        // The file is removed before it is unlocked: who waits for it sees that it is gone, and makes a new one. If it
        // cannot be removed, the next process uses it.
        let _ = fs::remove_file(&self.path);
    }
}

fn lock(folder: &Path, waits: &mut dyn FnMut(&Path)) -> io::Result<Held> {
    let path = folder.join(NAME);
    let mut told = false;
    loop {
        let mut options = OpenOptions::new();
        let all = options.read(true).write(true).create(true).truncate(false);
        let file = match all.open(&path) {
            // The lock file of another user.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(&path)?,
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                if !told {
                    waits(folder);
                    told = true;
                }
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_at(&file, &path) {
            return Ok(Held {
                #[cfg(unix)]
                path,
                _file: file,
            });
        }
    }
}

/// Whether the open file still has its name. If not, the process that held the lock before has removed it.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |metadata: io::Result<fs::Metadata>| {
        metadata
            .ok()
            .and_then(|metadata| FileId::of(path, &metadata))
    };
    let held = id(file.metadata());
    held.is_some() && held == id(fs::metadata(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_thread_at_a_time_holds_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        // A file that a killed process left behind changes nothing.
        fs::write(folder.path().join(NAME), "").unwrap();
        let counter = folder.path().join("counter");
        fs::write(&counter, "0").unwrap();
        let waited = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (counter, inner, waited) = (&counter, &inner, &waited);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let mut paths = [counter.as_path(), inner];
                        // The order of the paths does not matter.
                        paths.rotate_left(thread % 2);
                        let locks = FolderLocks::of(paths, |_| {
                            waited.fetch_add(1, Ordering::Relaxed);
                        });
                        assert!(locks.failed.is_empty());
                        assert_eq!(locks.held.len(), 2);
                        let number: u32 = fs::read_to_string(counter).unwrap().parse().unwrap();
                        fs::write(counter, (number + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&counter).unwrap(), "160");
        assert!(waited.into_inner() > 0);
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, if cfg!(unix) { 2 } else { 3 });
    }

    #[test]
    fn what_cannot_be_locked_is_said() {
        let nowhere = Path::new("/no/such/folder/file");
        assert!(FolderLocks::of([nowhere], |_| {}).held.is_empty());
        let folder = tempfile::tempdir().unwrap();
        // A folder in the place of the lock file cannot be opened for writing.
        fs::create_dir(folder.path().join(NAME)).unwrap();
        let locks = FolderLocks::of([folder.path()], |_| {});
        assert_eq!((locks.held.len(), locks.failed.len()), (0, 1));
        let said = locks.failed[0].to_string();
        assert!(
            said.contains("cannot be locked (") && said.contains("is lost"),
            "{said}"
        );
    }
}
