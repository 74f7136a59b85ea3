//! Finds the debug info of a program that does not contain it: separate files by build id or by `.gnu_debuglink`, dSYM
//! bundles, and the `.dwo` and `.dwp` files of split DWARF.
//!
//! Files are searched where gdb searches them ("Separate Debug Files" in its manual). For a program `/dir/app` with
//! debug link `app.debug` these are `/dir/app.debug`, `/dir/.debug/app.debug` and `/usr/lib/debug/dir/app.debug`. For a
//! program with build id `abcdef` it is `/usr/lib/debug/.build-id/ab/cdef.debug`.
use crate::binary::{BinaryFile, Image, damaged};
use crate::build_id::build_id;
use flate2::Crc;
use object::Object;
use profkit_data::ids::BuildId;
use profkit_data::{Result, path_from_bytes};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// The folder in which distributions install debug files.
pub const SYSTEM_DEBUG_FOLDER: &str = "/usr/lib/debug";

/// The folders in which to look for separate debug files.
///
/// ```
/// use profkit_data::ids::BuildId;
/// use profkit_object::debug_files::DebugFolders;
/// use std::path::Path;
///
/// let id = BuildId(vec![0xab, 0xcd, 0xef]);
/// let path = DebugFolders::build_id_path(Path::new("/usr/lib/debug"), &id, ".debug");
/// assert_eq!(path.as_deref(), Some(Path::new("/usr/lib/debug/.build-id/ab/cdef.debug")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugFolders {
    /// The folders to search, in order. Each of them has a `.build-id` tree, or the same subfolders as the file system.
    pub folders: Vec<PathBuf>,
}

impl Default for DebugFolders {
    /// Returns the default: only [`SYSTEM_DEBUG_FOLDER`] is searched.
    fn default() -> Self {
        DebugFolders {
            folders: vec![PathBuf::from(SYSTEM_DEBUG_FOLDER)],
        }
    }
}

/// A file that has the path of a debug file but does not belong to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The path of the file.
    pub path: PathBuf,
    /// The reason why the file was rejected.
    pub reason: String,
}

/// The result of searching for the debug file of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// The path of the debug file, if one was found.
    pub path: Option<PathBuf>,
    /// Files that have the right path, but belong to another build or cannot be read.
    pub rejected: Vec<Rejected>,
}

/// The facts in a program by which its separate debug file can be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugLink {
    /// The build id of the program; `None` if the program has none.
    pub build_id: Option<BuildId>,
    /// The file name and the CRC-32 in the section `.gnu_debuglink`. `None` if the program has no such section.
    pub link: Option<(PathBuf, u32)>,
}

impl DebugLink {
    /// Reads the build id and the debug link of an object file.
    ///
    /// # Errors
    /// If the notes or the `.gnu_debuglink` section are damaged.
    pub fn of(image: &Image<'_>) -> Result<Self> {
        let link = image.gnu_debuglink().map_err(|error| damaged(&error))?;
        Ok(DebugLink {
            build_id: build_id(image)?,
            link: link.map(|(name, crc)| (path_from_bytes(name), crc)),
        })
    }
}

impl DebugFolders {
    /// Returns the path for a build id in a folder: `.build-id/ab/cdef`, followed by `suffix`. With the suffix
    /// `.debug`, this is the path of the debug file; without a suffix, it is the path of the program itself. `None` if
    /// the build id is shorter than two bytes.
    pub fn build_id_path(folder: &Path, id: &BuildId, suffix: &str) -> Option<PathBuf> {
        let digits = id.to_string();
        let (first, rest) = digits.split_at_checked(2)?;
        if rest.is_empty() {
            return None;
        }
        let mut path = folder.join(".build-id");
        path.push(first);
        path.push(format!("{rest}{suffix}"));
        Some(path)
    }

    /// Finds the debug info of the program at `path`. `link` has the program's build id and debug link. The debug info
    /// can be in a dSYM bundle beside the program, in a file found by build id, or in a file found by debug link. A
    /// file whose build id, UUID or checksum does not match is rejected.
    pub fn locate(&self, path: &Path, link: &DebugLink) -> Located {
        let mut located = Located::default();
        let dsym = dsym_files(path);
        if let Some(id) = &link.build_id {
            let trees = self
                .folders
                .iter()
                .filter_map(|folder| Self::build_id_path(folder, id, ".debug"));
            for candidate in dsym.into_iter().chain(trees) {
                if located.take_by_id(candidate, id) {
                    return located;
                }
            }
        }
        if let Some((name, crc)) = &link.link {
            for candidate in self.link_candidates(path, name) {
                if located.take_by_crc(candidate, path, *crc) {
                    return located;
                }
            }
        }
        located
    }

    fn link_candidates(&self, path: &Path, name: &Path) -> Vec<PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut candidates = vec![folder.join(name), folder.join(".debug").join(name)];
        // A debug folder contains the same subfolders as the file system, so the absolute path of the program is
        // needed.
        if let Ok(absolute) = fs::canonicalize(path)
            && let Some(parent) = absolute.parent()
        {
            let relative: PathBuf = parent
                .components()
                .filter(|part| matches!(part, Component::Normal(_)))
                .collect();
            let mirrors = self.folders.iter();
            candidates.extend(mirrors.map(|folder| folder.join(&relative).join(name)));
        }
        candidates
    }
}

impl Located {
    fn take_by_id(&mut self, candidate: PathBuf, id: &BuildId) -> bool {
        let ids = match ids_of(&candidate) {
            Ok(None) => return false,
            Ok(Some(ids)) => ids,
            Err(reason) => {
                self.reject(candidate, reason);
                return false;
            }
        };
        if ids.contains(id) {
            self.path = Some(candidate);
            return true;
        }
        let found = match ids.first() {
            Some(found) => format!("build id {found}"),
            None => "no build id".to_owned(),
        };
        self.reject(candidate, format!("found {found}, expected {id}"));
        false
    }

    fn take_by_crc(&mut self, candidate: PathBuf, program: &Path, crc: u32) -> bool {
        // A debug link may name the program itself. The program is not a separate debug file, so it is rejected.
        if !candidate.is_file() || same_file(&candidate, program) {
            return false;
        }
        match crc_of(&candidate) {
            Ok(found) if found == crc => {
                self.path = Some(candidate);
                true
            }
            Ok(found) => {
                let reason = format!("found checksum {found:#010x}, expected {crc:#010x}");
                self.reject(candidate, reason);
                false
            }
            Err(error) => {
                self.reject(candidate, error.to_string());
                false
            }
        }
    }

    fn reject(&mut self, path: PathBuf, reason: String) {
        self.rejected.push(Rejected { path, reason });
    }
}

/// Returns the build ids in a file; `None` if the file does not exist.
fn ids_of(path: &Path) -> std::result::Result<Option<Vec<BuildId>>, String> {
    let file = match BinaryFile::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut ids = Vec::new();
    for image in file.images().map_err(|error| error.to_string())? {
        ids.extend(build_id(&image).map_err(|error| error.to_string())?);
    }
    Ok(Some(ids))
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Computes the checksum that `.gnu_debuglink` uses: CRC-32 (IEEE) of the whole file.
///
/// # Errors
/// If the file cannot be read.
pub fn crc_of(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut crc = Crc::new();
    let mut block = vec![0; 1 << 16];
    loop {
        let len = file.read(&mut block)?;
        if len == 0 {
            return Ok(crc.sum());
        }
        crc.update(block.get(..len).unwrap_or_default());
    }
}

/// Returns the files with debug info in a dSYM bundle, sorted. `path` is the path of the bundle, or of a program with
/// the bundle `PROGRAM.dSYM` in the same folder. Empty if there is no bundle.
pub fn dsym_files(path: &Path) -> Vec<PathBuf> {
    let bundle = if path.is_dir() {
        path.to_owned()
    } else {
        with_suffix(path, ".dSYM")
    };
    let Ok(entries) = fs::read_dir(bundle.join("Contents/Resources/DWARF")) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// Returns the path of a program's `.dwp` file: `PROGRAM.dwp`, the name that `llvm-dwp` and `dwp` use. `None` if there
/// is no such file.
pub fn dwp_file(program: &Path) -> Option<PathBuf> {
    Some(with_suffix(program, ".dwp")).filter(|path| path.is_file())
}

/// Finds a `.dwo` file by the name (`DW_AT_dwo_name`, `DW_AT_GNU_dwo_name`) and the compilation folder
/// (`DW_AT_comp_dir`) in a compile unit. If there is no such file, a file with that name in the folder of the program
/// is used, because the compilation folder may have been moved.
pub fn dwo_file(program: &Path, compilation_folder: &[u8], name: &[u8]) -> Option<PathBuf> {
    let name = path_from_bytes(name);
    let folder = path_from_bytes(compilation_folder);
    let beside = program.parent().unwrap_or(Path::new(""));
    let mut candidates = vec![folder.join(&name), beside.join(&name)];
    candidates.extend(name.file_name().map(|name| beside.join(name)));
    candidates.into_iter().find(|path| path.is_file())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
