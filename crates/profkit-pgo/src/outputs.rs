//! The programs and libraries that a build wrote.
use object::{Object, ObjectKind, ObjectSection};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum depth of folders in which outputs are looked for.
const DEPTH: usize = 12;

/// The name of the folder that belongs to a job alone.
pub(crate) const SCRATCH: &str = "profkit-pgo-runs";

/// A program or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub path: PathBuf,
    /// The size in bytes.
    pub size: u64,
    /// Whether it has counters of LLVM's instrumentation.
    pub instrumented: bool,
}

/// The outputs in these folders that were written since a time, sorted by path.
pub(crate) fn written_since(folders: &[PathBuf], since: SystemTime) -> Vec<Output> {
    files_since(folders, since)
        .into_iter()
        .filter_map(read)
        .collect()
}

/// The wheels of Python in these folders that were written since a time.
pub(crate) fn wheels_since(folders: &[PathBuf], since: SystemTime) -> Vec<PathBuf> {
    let mut found = files_since(folders, since);
    found.retain(|path| path.extension().is_some_and(|end| end == "whl"));
    found
}

/// The files in which CMake keeps how folders were configured.
pub(crate) fn caches(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = files_since(folders, SystemTime::UNIX_EPOCH);
    found.retain(|path| path.ends_with("CMakeCache.txt"));
    found
}

/// The files in these folders that were written since a time, sorted, each once.
fn files_since(folders: &[PathBuf], since: SystemTime) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // One folder may be in another, and be named in another way.
    for folder in folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok())
    {
        walk(&folder, since, 0, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn walk(folder: &Path, since: SystemTime, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() {
            // What cargo keeps for itself has the same files under other names, and CMake keeps programs that it tried.
            let own = ["deps", "build", ".fingerprint", "incremental"]
                .iter()
                .any(|name| path.ends_with(name));
            let of_cargo = own && folder.join(".fingerprint").is_dir();
            // Jobs that keep their profiles leave instrumented programs in their own folders.
            if depth < DEPTH
                && !of_cargo
                && !path.ends_with(SCRATCH)
                && !path.ends_with(".git")
                && !path.ends_with("CMakeFiles")
            {
                walk(&path, since, depth + 1, found);
            }
        } else if metadata.is_file() && metadata.modified().is_ok_and(|time| time >= since) {
            found.push(path);
        }
    }
}

/// `None` if the file is no program and no shared library.
pub(crate) fn read(path: PathBuf) -> Option<Output> {
    let mut magic = [0; 4];
    File::open(&path).ok()?.read_exact(&mut magic).ok()?;
    if !matches!(&magic, b"\x7fELF" | b"\xcf\xfa\xed\xfe") {
        return None;
    }
    let bytes = fs::read(&path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    if !matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic) {
        return None;
    }
    let counters = |name: &str| name.starts_with("__llvm_prf_c");
    let instrumented = file
        .sections()
        .any(|section| section.name().is_ok_and(counters));
    Some(Output {
        size: bytes.len() as u64,
        instrumented,
        path,
    })
}
