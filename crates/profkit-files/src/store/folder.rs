//! A folder as a store. Objects are files that appear and are replaced by renaming; who replaces one holds the lock of the
//! folder, because a rename cannot ask for what it replaces.
use super::{ObjectVersion, Store, StoredObject};
use crate::FolderLocks;
use crate::temporary::Temporary;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How the names of temporary files begin.
const TEMPORARY: &str = ".fold.";

pub(super) struct FolderStore {
    folder: PathBuf,
}

impl FolderStore {
    pub(super) fn new(folder: &Path) -> Self {
        let folder = folder.to_owned();
        FolderStore { folder }
    }

    fn path(&self, object: &str) -> PathBuf {
        self.folder.join(object)
    }

    /// The bytes in a temporary file beside the object.
    fn stage(&self, object: &str, bytes: &[u8]) -> io::Result<(PathBuf, Temporary)> {
        let path = self.path(object);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let mut temporary = Temporary::new(TEMPORARY, folder)?;
        temporary.write_all(bytes)?;
        // A rename that survives a loss of power must not name a file without its bytes.
        temporary.sync()?;
        Ok((path, temporary.close()))
    }
}

impl Store for FolderStore {
    fn name_of(&self, object: &str) -> String {
        match object {
            "" => profkit_data::path_text(&self.folder),
            _ => profkit_data::path_text(&self.path(object)),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(self.path(&folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                let metadata = match entry.metadata() {
                    // Removed since the folder was read.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    metadata => metadata?,
                };
                if metadata.is_dir() {
                    folders.push(name);
                } else if !name.ends_with(".tmp") {
                    found.push(StoredObject {
                        name,
                        size: metadata.len(),
                        modified: metadata.modified().ok(),
                    });
                }
            }
        }
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn read(&self, object: &str, most: u64) -> io::Result<Option<(Vec<u8>, ObjectVersion)>> {
        let file = match File::open(self.path(object)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(Some((bytes.clone(), ObjectVersion(bytes)))),
        }
    }

    fn read_range(&self, object: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path(object))?;
        file.seek(SeekFrom::Start(range.start))?;
        let mut bytes = Vec::new();
        file.take(range.end.saturating_sub(range.start))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, object: &str, bytes: &[u8]) -> io::Result<bool> {
        if self.path(object).exists() {
            return Ok(false);
        }
        let (path, temporary) = self.stage(object, bytes)?;
        match temporary.put_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            done => done.map(|()| true),
        }
    }

    fn swap(&self, object: &str, bytes: &[u8], old: Option<&ObjectVersion>) -> io::Result<bool> {
        let (path, temporary) = self.stage(object, bytes)?;
        let locks = FolderLocks::of([self.folder.as_path()], |_| {});
        if let Some(failure) = locks.failed.first() {
            let text = format!("the folder cannot be locked: {}", failure.error);
            return Err(io::Error::new(failure.error.kind(), text));
        }
        let now = match old {
            None => self.read(object, 0),
            Some(ObjectVersion(old)) => self.read(object, old.len() as u64),
        };
        let now = match now {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Ok(false),
            now => now?.map(|(_, version)| version),
        };
        if now.as_ref() != old {
            return Ok(false);
        }
        temporary.replace(&path, None).map(|()| true)
    }

    fn remove(&self, object: &str) -> io::Result<()> {
        match fs::remove_file(self.path(object)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn remove_abandoned(&self) {
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                // That of a symbolic link says that it is none of both.
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if metadata.is_dir() {
                    folders.push(entry.path());
                } else if metadata.is_file()
                    && name.starts_with(TEMPORARY)
                    && name.ends_with(".tmp")
                    && metadata.modified().is_ok_and(is_abandoned)
                {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

/// Whether nobody writes a temporary file any more that was changed at this time.
fn is_abandoned(changed: SystemTime) -> bool {
    changed
        .elapsed()
        .is_ok_and(|age| age > Duration::from_secs(3600))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_of_many_creates_and_one_swaps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let created = AtomicUsize::new(0);
        let retries = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (path, created, retries) = (&path, &created, &retries);
                scope.spawn(move || {
                    let store = FolderStore::new(path);
                    for round in 0..10 {
                        let bytes = format!("{thread}");
                        let name = format!("parts/{round}");
                        let new = store.create(&name, bytes.as_bytes()).unwrap();
                        created.fetch_add(usize::from(new), Ordering::Relaxed);
                        loop {
                            let old = store.read("sum", 9).unwrap();
                            let (number, version) = old.map_or((0, None), |(bytes, version)| {
                                let text = String::from_utf8(bytes).unwrap();
                                (text.parse::<u32>().unwrap(), Some(version))
                            });
                            let next = (number + 1).to_string();
                            if store
                                .swap("sum", next.as_bytes(), version.as_ref())
                                .unwrap()
                            {
                                break;
                            }
                            retries.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let store = FolderStore::new(&path);
        assert_eq!(store.read("sum", 2).unwrap().unwrap().0, b"80");
        assert_eq!(created.into_inner(), 10);
        let names: Vec<_> = store.list("parts").unwrap();
        assert_eq!((names.len(), names[3].name.as_str()), (10, "parts/3"));
        // Nothing else is left behind.
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
        assert_eq!(store.read_range("sum", 1..9).unwrap(), b"0");
        let error = store.read("sum", 1).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
        store.remove("sum").unwrap();
        store.remove("sum").unwrap();
        assert_eq!(store.read("sum", 0).unwrap(), None);
        assert!(store.list("none").unwrap().is_empty());
    }

    #[test]
    fn what_ended_processes_left_is_removed_after_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::new(folder.path());
        store.create("parts/ir/one", b"1").unwrap();
        let path = |name: &str| folder.path().join(name);
        let old = SystemTime::now() - Duration::from_secs(3700);
        for (name, time) in [
            (".fold.a.tmp", old),
            ("parts/ir/.fold.b.tmp", old),
            ("parts/ir/.fold.c.tmp", SystemTime::now()),
            ("parts/ir/.other.tmp", old),
        ] {
            let file = File::create(path(name)).unwrap();
            file.set_modified(time).unwrap();
        }
        store.remove_abandoned();
        for (name, stays) in [
            (".fold.a.tmp", false),
            ("parts/ir/.fold.b.tmp", false),
            ("parts/ir/.fold.c.tmp", true),
            ("parts/ir/.other.tmp", true),
            ("parts/ir/one", true),
        ] {
            assert_eq!(path(name).exists(), stays, "{name}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_or_locked_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let store = FolderStore::new(&file.join("store"));
        assert!(store.create("parts/a", b"").is_err());
        fs::create_dir(folder.path().join(".profkit-lock.tmp")).unwrap();
        let store = FolderStore::new(folder.path());
        let error = store.swap("list", b"", None).unwrap_err().to_string();
        assert!(
            error.starts_with("the folder cannot be locked: "),
            "{error}"
        );
    }
}
