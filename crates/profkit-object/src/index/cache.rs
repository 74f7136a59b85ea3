//! Stores an index of binaries on disk, as text. Each file has one line `SIZE MTIME IDENTITY CONTENTS IDS PATH`. IDENTITY
//! tells a file from another one that took its place with the same size and time. CONTENTS is the
//! number in [`Contents`], or `-` if the file is not a binary. IDS are separated by commas, or are `-` if there are
//! none. PATH is absolute and extends to the end of the line. A path that contains a line feed or a carriage return is
//! not stored.
use super::{Contents, modified};
use crate::build_id::parse_build_id;
use profkit_data::ids::BuildId;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Characters that a stored path must not contain, because a reader of the cache file would take them for the end of
/// the line.
const LINE_BREAKS: [char; 2] = ['\n', '\r'];
const FIRST_LINE: &str = "profkit binaries 2";
/// The largest size in bytes of a cache file. Larger files are neither read nor written.
const MOST_BYTES: u64 = 256 << 20;
/// The largest number of files in the cache.
const MOST_ENTRIES: usize = 1 << 20;
/// A file is stored in the cache only if its last change is at least this number of nanoseconds ago. A file that
/// changed more recently may change again and keep the same time stamp.
const FRESH_NANOS: u64 = 2_000_000_000;

/// A cache of the build ids that earlier searches found in files.
///
/// ```
/// use profkit_object::index::{BinaryIndex, IndexCache};
///
/// // A cache made by `IndexCache::open` is stored in a file; this one is not.
/// let mut cache = IndexCache::none();
/// let index = BinaryIndex::build(&[std::env::current_exe()?], &mut cache)?;
/// assert_eq!((index.from_cache, index.binaries.len()), (0, 1));
/// cache.save()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct IndexCache {
    file: Option<PathBuf>,
    entries: FxHashMap<PathBuf, Entry>,
    changed: bool,
}

#[derive(Debug)]
struct Entry {
    size: u64,
    modified: u64,
    identity: u64,
    contents: Option<Contents>,
    ids: Vec<BuildId>,
}

impl IndexCache {
    /// Makes an empty cache, which is never stored in a file.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads the cache file at `file`. If it cannot be read or parsed, the cache is empty.
    pub fn open(file: &Path) -> Self {
        let small = fs::metadata(file).is_ok_and(|metadata| metadata.len() <= MOST_BYTES);
        let text = if small {
            fs::read_to_string(file).unwrap_or_default()
        } else {
            String::new()
        };
        IndexCache {
            file: Some(file.to_owned()),
            ..Self::parse(&text)
        }
    }

    /// Makes a cache from the text of a cache file. Lines that cannot be parsed are left out. [`save`](Self::save) does
    /// not write this cache to a file.
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let entries = match lines.next() {
            Some(FIRST_LINE) => lines.filter_map(parse_line).take(MOST_ENTRIES).collect(),
            _ => FxHashMap::default(),
        };
        IndexCache {
            entries,
            ..Self::default()
        }
    }

    /// Returns the text of the cache file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|(path, _)| *path);
        for (path, entry) in entries {
            let contents = match entry.contents {
                Some(Contents(bits)) => bits.to_string(),
                None => "-".to_owned(),
            };
            let ids: Vec<_> = entry.ids.iter().map(ToString::to_string).collect();
            let ids = if ids.is_empty() {
                "-".to_owned()
            } else {
                ids.join(",")
            };
            let path = path.display();
            // Writing to a `String` never fails.
            let _ = writeln!(
                text,
                "{} {} {} {contents} {ids} {path}",
                entry.size, entry.modified, entry.identity
            );
        }
        text
    }

    /// Returns the build ids and contents that the cache has for a file. `None` if the file is not in the cache or has
    /// changed. The contents are `None` if the file is not a binary.
    pub(super) fn get(
        &self,
        path: &Path,
        metadata: &Metadata,
    ) -> Option<(Vec<BuildId>, Option<Contents>)> {
        let entry = self.entries.get(&std::path::absolute(path).ok()?)?;
        let same = entry.size == metadata.len()
            && entry.modified == modified(metadata)
            && entry.identity == identity(metadata);
        same.then(|| (entry.ids.clone(), entry.contents))
    }

    pub(super) fn put(
        &mut self,
        path: &Path,
        metadata: &Metadata,
        ids: &[BuildId],
        contents: Option<Contents>,
    ) {
        let time = modified(metadata);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
        let (Some(_), Ok(path)) = (&self.file, std::path::absolute(path)) else {
            return;
        };
        let fresh = time == 0 || now.saturating_sub(time) < FRESH_NANOS;
        let plain = path
            .to_str()
            .is_some_and(|path| !path.contains(LINE_BREAKS));
        if fresh || !plain || self.entries.len() >= MOST_ENTRIES {
            return;
        }
        self.changed = true;
        self.entries.insert(
            path,
            Entry {
                size: metadata.len(),
                modified: time,
                identity: identity(metadata),
                contents,
                ids: ids.to_vec(),
            },
        );
    }

    /// Writes the cache to its file if it changed. The file is replaced as a whole or not at all, even if two programs
    /// write it at the same time.
    ///
    /// # Errors
    /// If the file cannot be written, for instance because the disk is full. The index can be used all the same.
    pub fn save(&mut self) -> io::Result<()> {
        let (Some(file), true) = (&self.file, self.changed) else {
            return Ok(());
        };
        let text = self.to_text();
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let temporary = PathBuf::from(name);
        let written = fs::File::create(&temporary)
            .and_then(|mut out| out.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&temporary, file));
        if written.is_err() {
            // The incomplete file is removed, because it would only use disk space.
            let _ = fs::remove_file(&temporary);
        }
        self.changed = written.is_err();
        written
    }
}

/// Build systems may set the time of every file to the same value, so the time of change, which only the system sets,
/// and the number of the file count too.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let changed = metadata.ctime().wrapping_mul(1_000_000_000);
    let changed = changed.wrapping_add(metadata.ctime_nsec());
    changed.cast_unsigned() ^ metadata.ino().rotate_left(40)
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> u64 {
    0
}

fn parse_line(line: &str) -> Option<(PathBuf, Entry)> {
    if line.contains(LINE_BREAKS) {
        return None;
    }
    let mut parts = line.splitn(6, ' ');
    let size = parts.next()?.parse().ok()?;
    let modified = parts.next()?.parse().ok()?;
    let identity = parts.next()?.parse().ok()?;
    let contents = match parts.next()? {
        "-" => None,
        bits => Some(Contents(bits.parse().ok()?)),
    };
    let ids = match parts.next()? {
        "-" => Vec::new(),
        ids => ids.split(',').map(parse_build_id).collect::<Option<_>>()?,
    };
    let path = PathBuf::from(parts.next()?);
    Some((
        path,
        Entry {
            size,
            modified,
            identity,
            contents,
            ids,
        },
    ))
}
