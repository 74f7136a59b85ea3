//! Where the debug info of a program is, if it is not in the program: separate files by build id or by
//! `.gnu_debuglink`, dSYM bundles, and the `.dwo` and `.dwp` files of split DWARF.
//!
//! The places are those where gdb looks ("Separate Debug Files" in its manual): for a program `/dir/app` with debug
//! link `app.debug` these are `/dir/app.debug`, `/dir/.debug/app.debug` and `/usr/lib/debug/dir/app.debug`; by build
//! id `/usr/lib/debug/.build-id/ab/cdef.debug`.
use crate::binary::{BinaryFile, Image, damaged};
use crate::build_id::build_id;
use flate2::Crc;
use object::Object;
use profkit_data::Result;
use profkit_data::ids::BuildId;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Where distributions put debug files.
pub const SYSTEM_DEBUG_FOLDER: &str = "/usr/lib/debug";

/// Where to look for debug files.
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
    /// Folders that have a `.build-id` tree or mirror the file system, asked in order.
    pub folders: Vec<PathBuf>,
}

impl Default for DebugFolders {
    /// [`SYSTEM_DEBUG_FOLDER`] alone.
    fn default() -> Self {
        DebugFolders {
            folders: vec![PathBuf::from(SYSTEM_DEBUG_FOLDER)],
        }
    }
}

/// A file that should have held the debug info of a program, but does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The file.
    pub path: PathBuf,
    /// Why it is not the one.
    pub reason: String,
}

/// What looking for a debug file gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// The debug file.
    pub path: Option<PathBuf>,
    /// Files at the right place that are not the right ones.
    pub rejected: Vec<Rejected>,
}

/// What a program says about its separate debug file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugLink {
    /// Its build id.
    pub build_id: Option<BuildId>,
    /// Name and CRC-32 from `.gnu_debuglink`.
    pub link: Option<(OsString, u32)>,
}

impl DebugLink {
    /// Reads both from an object file.
    ///
    /// # Errors
    /// If its notes or its `.gnu_debuglink` section are damaged.
    pub fn of(image: &Image<'_>) -> Result<Self> {
        let link = image.gnu_debuglink().map_err(|error| damaged(&error))?;
        Ok(DebugLink {
            build_id: build_id(image)?,
            link: link.map(|(name, crc)| (os_string(name), crc)),
        })
    }
}

impl DebugFolders {
    /// The path of a build id below a folder: `.build-id/ab/cdef.debug`, or without suffix the program itself.
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

    /// The file with the debug info of the program at `path`, which says `link` about it: a dSYM bundle beside it,
    /// or a file by build id, or by debug link. Ids, UUIDs and checksums are compared; what does not fit is rejected.
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

    fn link_candidates(&self, path: &Path, name: &OsStr) -> Vec<PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut candidates = vec![folder.join(name), folder.join(".debug").join(name)];
        // The mirror below a debug folder is by absolute path.
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
        // A link may name the program itself.
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

/// The build ids in a file; `None` if there is no such file.
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

/// The checksum of `.gnu_debuglink`: CRC-32 (IEEE) of the whole file.
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

/// The files with debug info of a dSYM bundle: of the bundle at `path`, or of `PROGRAM.dSYM` beside the program at
/// `path`. Sorted; none if there is no bundle.
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

/// The `.dwp` file of a program: `PROGRAM.dwp`, where `llvm-dwp` and `dwp` put it.
pub fn dwp_file(program: &Path) -> Option<PathBuf> {
    Some(with_suffix(program, ".dwp")).filter(|path| path.is_file())
}

/// A `.dwo` file, by the name that a compile unit states (`DW_AT_dwo_name`, `DW_AT_GNU_dwo_name`) and its
/// compilation folder (`DW_AT_comp_dir`). A file of that name beside the program counts too: builds move.
pub fn dwo_file(program: &Path, compilation_folder: &[u8], name: &[u8]) -> Option<PathBuf> {
    let name = PathBuf::from(os_string(name));
    let folder = PathBuf::from(os_string(compilation_folder));
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

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}
