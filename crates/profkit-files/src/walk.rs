//! Finds the files in a folder, and the files that match a pattern.
use crate::system_text;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// The maximum nesting depth of folders.
const MOST_FOLDERS: usize = 256;

#[derive(Debug, PartialEq, Eq, Hash)]
#[cfg(unix)]
pub(super) struct FileId(u64, u64);
#[derive(Debug, PartialEq, Eq, Hash)]
#[cfg(not(unix))]
pub(super) struct FileId(PathBuf);

impl FileId {
    /// The id of an object in an object store. No file system has its device number.
    #[cfg(unix)]
    pub(super) fn of_object(uri: &str) -> Self {
        use std::hash::BuildHasher;
        FileId(u64::MAX, rustc_hash::FxBuildHasher.hash_one(uri))
    }

    #[cfg(not(unix))]
    pub(super) fn of_object(uri: &str) -> Self {
        FileId(uri.into())
    }

    #[cfg(unix)]
    pub(super) fn of(_: &Path, metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(FileId(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    pub(super) fn of(path: &Path, _: &Metadata) -> Option<Self> {
        canonical(path).ok().map(FileId)
    }
}

/// The path of a file that exists, without links. Not every file system of Windows can tell it: there the absolute path stands
/// for it.
pub(super) fn canonical(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(_) if cfg!(windows) && fs::metadata(path).is_ok() => std::path::absolute(path),
        found => found,
    }
}

#[derive(Default)]
pub(super) struct Walk {
    pub(super) found: BTreeSet<PathBuf>,
    links: BTreeSet<PathBuf>,
    folders: FxHashMap<FileId, PathBuf>,
    files: FxHashMap<FileId, PathBuf>,
    pub(super) same: Vec<(PathBuf, PathBuf)>,
    /// Paths to neither files nor folders, each with its kind. They are never opened: opening a pipe can block for
    /// ever.
    pub(super) odd: BTreeMap<PathBuf, String>,
}

impl Walk {
    /// Adds the regular files below a folder. Links are followed later, so that a file that is also there is found
    /// first.
    pub(super) fn folder(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        if depth == MOST_FOLDERS {
            return Err(io::Error::other("folders nest too deeply"));
        }
        if let Some(id) = FileId::of(folder, &fs::metadata(folder)?) {
            if let Some(other) = self.folders.get(&id) {
                self.same.push((folder.to_owned(), other.clone()));
                return Ok(());
            }
            self.folders.insert(id, folder.to_owned());
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let file_type = entry.file_type()?;
            if file_type.is_symlink() {
                self.links.insert(path);
            } else if file_type.is_dir() {
                if self.folder(&path, depth + 1).is_err() {
                    self.found.insert(path);
                }
            } else if !file_type.is_file() {
                self.odd.insert(path, kind_of(file_type).to_owned());
            } else if !is_temporary(&entry.file_name()) {
                self.found.insert(path);
            }
        }
        Ok(())
    }

    pub(super) fn follow_links(&mut self) {
        for path in &self.found {
            let metadata = fs::metadata(path).ok();
            if let Some(id) = metadata.and_then(|metadata| FileId::of(path, &metadata)) {
                self.files.entry(id).or_insert_with(|| path.clone());
            }
        }
        while let Some(link) = self.links.pop_first() {
            let metadata = match fs::metadata(&link) {
                Ok(metadata) => metadata,
                Err(error) => {
                    let what = format!("a link that leads nowhere ({})", system_text(&error));
                    self.odd.insert(link, what);
                    continue;
                }
            };
            let known = FileId::of(&link, &metadata).and_then(|id| self.files.get(&id));
            if let Some(other) = known {
                self.same.push((link, other.clone()));
            } else if metadata.is_file() {
                self.found.insert(link);
            } else if !metadata.is_dir() {
                let what = format!("a link to {}", kind_of(metadata.file_type()));
                self.odd.insert(link, what);
            } else if self.folder(&link, 0).is_err() {
                self.found.insert(link);
            }
        }
    }
}

fn kind_of(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe; to read a pipe, give its own path as an input";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    let _ = kind;
    "a device"
}

/// Returns the files that match a name that no file has: shells pass on quoted patterns and those that no file matches.
/// If the name is no pattern, returns `error`.
pub(super) fn matches_of(path: &Path, error: io::Error) -> io::Result<Vec<PathBuf>> {
    let text = path.to_str().unwrap_or_default();
    if text.starts_with("http://") || text.starts_with("https://") {
        return Err(io::Error::other(format!(
            "an input must be a file: download this one first: curl -fLO '{}'",
            text.replace('\'', "%27")
        )));
    }
    if !text.contains(['*', '?', '[']) {
        return Err(error);
    }
    let hidden_only_by_name = glob::MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..glob::MatchOptions::default()
    };
    let found = glob::glob_with(text, hidden_only_by_name).map_err(io::Error::other)?;
    // A folder that cannot be read is returned like a file, and is reported when it is opened.
    let path = |entry: glob::GlobResult| entry.unwrap_or_else(|error| error.path().to_owned());
    let found: Vec<PathBuf> = found.map(path).collect();
    if found.is_empty() {
        let why = "no file matches this pattern";
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    Ok(found)
}

/// Whether a file name is that of a temporary file of [`Output`](super::Output). A running profkit still writes to such
/// a file, or a profkit that was killed has not removed it.
fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && name.ends_with(b".tmp")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// No user can open a path of more than 4096 bytes. Permissions of a folder would not stop root.
    #[test]
    fn a_folder_that_cannot_be_read_is_found_and_the_rest_is_walked() {
        let folder = tempfile::tempdir().unwrap();
        let script = "n=$(printf %0250d 0); i=0; echo x > a; while [ $i -lt 17 ]; do mkdir $n && cd $n; i=$((i+1)); done";
        let made = Command::new("sh")
            .stderr(std::process::Stdio::null())
            .args(["-c", script])
            .current_dir(folder.path())
            .status();
        assert!(made.unwrap().success());
        let mut walk = Walk::default();
        walk.folder(folder.path(), 0).unwrap();
        let found: Vec<_> = walk.found.iter().collect();
        assert_eq!(found.len(), 2, "{found:?}");
        let unreadable = found.iter().find(|path| !path.ends_with("a")).unwrap();
        assert!(unreadable.starts_with(folder.path().join("0".repeat(250))));
        assert!(fs::read_dir(unreadable).is_err());
    }
}
