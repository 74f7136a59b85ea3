//! An index of binaries by build id. Folders are searched once, and only the headers and notes of files are read. The
//! results are stored on disk ([`IndexCache`]), so that the next search reads only files that changed.
mod cache;

pub use cache::IndexCache;

use crate::binary::{BinaryFile, Image};
use crate::build_id::build_id;
use crate::correlate::CounterSection;
use crate::correlate::binary::{SectionSet, has_sections};
use crate::debug_files::DebugFolders;
use object::Object;
use profkit_data::ids::BuildId;
use profkit_data::{ErrorKind, system_text};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The largest nesting depth of folders that are searched.
const MOST_FOLDERS: usize = 256;

/// A set of flags: one for each part of a binary that is useful for profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents(u8);

impl Contents {
    /// The file has the sections for correlation (`__llvm_covdata`, `__llvm_covnames`).
    pub const CORRELATION: Self = Contents(1);
    /// The file has the sections of an instrumented program (`__llvm_prf_data`, `__llvm_prf_names`).
    pub const RUNTIME: Self = Contents(2);
    /// The file has a counter section.
    pub const COUNTERS: Self = Contents(4);
    /// The file has debug info.
    pub const DWARF: Self = Contents(8);

    /// Whether this set of flags contains all flags in `other`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the parts of an object file that are useful for profiles.
    pub fn of(image: &Image<'_>) -> Self {
        let mut contents = 0;
        if has_sections(image, SectionSet::Correlation) {
            contents |= Self::CORRELATION.0;
        }
        if has_sections(image, SectionSet::Runtime) {
            contents |= Self::RUNTIME.0;
        }
        if CounterSection::of(image).is_ok() {
            contents |= Self::COUNTERS.0;
        }
        if image.section_by_name(".debug_info").is_some() {
            contents |= Self::DWARF.0;
        }
        Contents(contents)
    }
}

/// A file with machine code or debug info in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedBinary {
    /// The path of the file.
    pub path: PathBuf,
    /// The build ids of the file: one, or one per architecture. Empty if there is none.
    pub ids: Vec<BuildId>,
    /// The parts of the file that are useful for profiles.
    pub contents: Contents,
    /// Whether the caller named this file. False if the file was found in a folder that the caller named.
    pub named: bool,
}

/// An index of binaries by build id.
///
/// ```
/// use profkit_object::index::{BinaryIndex, IndexCache};
///
/// let program = std::env::current_exe()?;
/// let index = BinaryIndex::build(&[program.clone()], &mut IndexCache::none())?;
/// assert_eq!(index.binaries[0].path, program);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct BinaryIndex {
    /// All binaries in the index. The binaries of one folder are sorted by path.
    pub binaries: Vec<IndexedBinary>,
    by_id: FxHashMap<BuildId, Vec<usize>>,
    /// The folders with a `.build-id` tree. In such a tree, the path of a file is made from its build id, so the tree
    /// need not be searched.
    trees: Vec<PathBuf>,
    /// Files that look like binaries but cannot be read, each with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
    /// The number of files whose build ids were in the cache.
    pub from_cache: u64,
    /// The number of files that were read to find their build ids.
    pub looked_at: u64,
}

/// The error of building an index of binaries.
#[derive(Debug)]
pub struct IndexError {
    /// The file or folder that caused the error.
    pub path: PathBuf,
    /// The description of the problem.
    pub reason: String,
    /// A suggestion to the user; `None` if there is none.
    pub hint: Option<String>,
}

impl std::fmt::Display for IndexError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for IndexError {}

impl BinaryIndex {
    /// Indexes files and folders.
    ///
    /// # Errors
    /// If a given path does not exist, or is a file but not a binary. Unreadable files in folders are no error; they
    /// are listed in [`unreadable`](Self::unreadable).
    pub fn build(paths: &[PathBuf], cache: &mut IndexCache) -> Result<Self, IndexError> {
        let mut index = BinaryIndex::default();
        let mut seen = FxHashSet::default();
        for path in paths {
            let failed = |error: &io::Error| IndexError {
                path: path.clone(),
                reason: format!("cannot be read: {}", system_text(error)),
                hint: None,
            };
            let metadata = fs::metadata(path).map_err(|error| failed(&error))?;
            if metadata.is_dir() {
                let mut files = Vec::new();
                index
                    .walk(path, 0, &mut files)
                    .map_err(|error| failed(&error))?;
                files.sort_unstable();
                for file in files {
                    index.add_found(file, cache, &mut seen);
                }
            } else {
                index.add_named(path, &metadata, cache, &mut seen)?;
            }
        }
        for (number, binary) in index.binaries.iter().enumerate() {
            for id in &binary.ids {
                let same = index.by_id.entry(id.clone()).or_default();
                if same.last() != Some(&number) {
                    same.push(number);
                }
            }
        }
        Ok(index)
    }

    fn walk(&mut self, folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
        if depth == MOST_FOLDERS {
            return Err(io::Error::other("folders nest too deeply"));
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let path = entry.path();
            if kind.is_dir() {
                if entry.file_name() == ".build-id" {
                    self.trees.push(folder.to_owned());
                } else {
                    self.walk(&path, depth + 1, files)?;
                }
            } else if kind.is_file() || (kind.is_symlink() && path.is_file()) {
                // A symbolic link to a folder is not followed. If its target is in a folder that is searched, the
                // target is found there. If the target is elsewhere, the user did not ask for it.
                files.push(path);
            }
        }
        Ok(())
    }

    fn add_found(
        &mut self,
        path: PathBuf,
        cache: &mut IndexCache,
        seen: &mut FxHashSet<(u64, u64)>,
    ) {
        let Ok(metadata) = fs::metadata(&path) else {
            return;
        };
        if !first_time(&metadata, seen) {
            return;
        }
        self.looked_at += 1;
        if let Some((ids, contents)) = cache.get(&path, &metadata) {
            self.from_cache += 1;
            if contents.is_some() {
                self.push(path, ids, contents.unwrap_or_default(), false);
            }
            return;
        }
        match examine(&path) {
            Ok(Some((ids, contents))) => {
                cache.put(&path, &metadata, &ids, Some(contents));
                self.push(path, ids, contents, false);
            }
            Ok(None) => cache.put(&path, &metadata, &[], None),
            Err(error) => self.unreadable.push((path, error)),
        }
    }

    fn add_named(
        &mut self,
        path: &Path,
        metadata: &Metadata,
        cache: &mut IndexCache,
        seen: &mut FxHashSet<(u64, u64)>,
    ) -> Result<(), IndexError> {
        if !first_time(metadata, seen) {
            return Ok(());
        }
        self.looked_at += 1;
        let failed = |reason: String, hint: Option<String>| IndexError {
            path: path.to_owned(),
            reason,
            hint,
        };
        if let Some((ids, Some(contents))) = cache.get(path, metadata) {
            self.from_cache += 1;
            self.push(path.to_owned(), ids, contents, true);
            return Ok(());
        }
        let file = BinaryFile::open(path).map_err(|error| failed(system_text(&error), None))?;
        let images = file
            .images()
            .map_err(|error| failed(error.to_string(), error.hint().map(str::to_owned)))?;
        let (ids, contents) = facts(&images).map_err(|error| failed(error, None))?;
        cache.put(path, metadata, &ids, Some(contents));
        self.push(path.to_owned(), ids, contents, true);
        Ok(())
    }

    fn push(&mut self, path: PathBuf, ids: Vec<BuildId>, contents: Contents, named: bool) {
        self.binaries.push(IndexedBinary {
            path,
            ids,
            contents,
            named,
        });
    }

    /// Returns the binaries with a build id: first those found by searching folders, then those in `.build-id` trees.
    pub fn find(&self, id: &BuildId) -> Vec<IndexedBinary> {
        let mut found: Vec<IndexedBinary> = self
            .by_id
            .get(id)
            .into_iter()
            .flatten()
            .filter_map(|&number| self.binaries.get(number).cloned())
            .collect();
        for tree in &self.trees {
            for suffix in ["", ".debug"] {
                let Some(path) = DebugFolders::build_id_path(tree, id, suffix) else {
                    continue;
                };
                // The build id in the file is checked, because users may have put a file of another build into the
                // `.build-id` tree.
                if let Ok(Some((ids, contents))) = examine(&path)
                    && ids.contains(id)
                    && !found.iter().any(|binary| binary.path == path)
                {
                    found.push(IndexedBinary {
                        path,
                        ids,
                        contents,
                        named: false,
                    });
                }
            }
        }
        found
    }

    /// Whether there are folders with a `.build-id` tree. [`find`](Self::find) may then return files that are not in
    /// [`binaries`](Self::binaries).
    pub fn has_trees(&self) -> bool {
        !self.trees.is_empty()
    }
}

/// Whether this file is not yet in `seen`, the files that were found so far, and adds it. A file that was found under
/// another name (a hard link) is in `seen`.
fn first_time(metadata: &Metadata, seen: &mut FxHashSet<(u64, u64)>) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        seen.insert((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = (metadata, seen);
        true
    }
}

/// Reads the build ids of a file, and finds its parts that are useful for profiles. `None` if the file is not a binary
/// or does not exist.
fn examine(path: &Path) -> Result<Option<(Vec<BuildId>, Contents)>, String> {
    let file = match BinaryFile::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(system_text(&error)),
    };
    match file.images() {
        Ok(images) => facts(&images).map(Some),
        Err(error) => match error.kind() {
            ErrorKind::UnrecognizedFormat | ErrorKind::Archive => Ok(None),
            _ => Err(error.to_string()),
        },
    }
}

fn facts(images: &[Image<'_>]) -> Result<(Vec<BuildId>, Contents), String> {
    let mut ids = Vec::new();
    let mut contents = 0;
    for image in images {
        ids.extend(build_id(image).map_err(|error| error.to_string())?);
        contents |= Contents::of(image).0;
    }
    Ok((ids, Contents(contents)))
}

/// Returns the time of a file's last change in nanoseconds of Unix time; 0 if the system does not provide it.
fn modified(metadata: &Metadata) -> u64 {
    let modified = metadata.modified().ok();
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0))
}
