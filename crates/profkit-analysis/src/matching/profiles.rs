//! Finds the profiles that one path stands for: a single file, or the files of a folder, archive or list.
use profkit_data::ForeignFile;
use profkit_data::detect::{FileKind, detect};
use profkit_data::stored::ArchiveFormat;
use profkit_merge::Weight;
use profkit_merge::files::{Input, InputList, InputNote, ListError, ReadError, is_stdio};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The profiles that one path stands for.
#[derive(Debug)]
pub enum Profiles {
    /// The path of a single profile.
    One(Input),
    /// The path of a folder, of an archive with several files, or of a list of paths. From a folder, only files with
    /// the content or the name of a profile are taken.
    Many(Box<InputList>),
}

/// Why no profile can be opened.
#[derive(Debug)]
pub enum ProfilesError {
    /// The file cannot be read.
    Read(ReadError),
    /// The files in the folder, archive or list cannot be found.
    List(ListError),
}

impl Profiles {
    /// Opens the file, or finds the files. A path may also be a pattern such as `runs/*.profraw`, or `ARCHIVE!MEMBER`.
    ///
    /// # Errors
    /// If the file cannot be read, or the files cannot be found.
    pub fn find(path: &Path) -> Result<Self, ProfilesError> {
        let is_folder = path.is_dir();
        if is_folder || path.file_name().is_some_and(ArchiveFormat::is_named_so) && path.exists() {
            let list = collect(&[path.as_os_str().to_owned()], &[])?;
            // A damaged archive may have lost members, which the notes of the list report.
            let is_damaged = !list.files.is_empty() && list.notes.iter().any(InputNote::is_damage);
            if is_folder || list.files.len() > 1 || is_damaged {
                return Ok(Profiles::Many(list));
            }
        }
        let input = match Input::open(path) {
            Ok(input) => input,
            Err(error) => {
                // What is no file may be a pattern, or a file with a weight.
                let list = if path.exists() {
                    None
                } else {
                    collect(&[path.as_os_str().to_owned()], &[]).ok()
                };
                return list.map(Profiles::Many).ok_or(ProfilesError::Read(error));
            }
        };
        if detect(&input) == FileKind::Foreign(ForeignFile::ProfileList) {
            return Ok(Profiles::Many(collect(&[], &[path.to_owned()])?));
        }
        Ok(Profiles::One(input))
    }

    /// Does the same for several paths and lists, which stand for the files of all of them.
    ///
    /// # Errors
    /// If a file cannot be read or found.
    pub fn find_all(paths: &[PathBuf], lists: &[PathBuf]) -> Result<Self, ProfilesError> {
        if let ([path], []) = (paths, lists) {
            return Self::find(path);
        }
        let named: Vec<_> = paths
            .iter()
            .map(|path| path.clone().into_os_string())
            .collect();
        Ok(Profiles::Many(collect(&named, lists)?))
    }

    /// If there is only one file and it counts once, opens it, so that it is read as what it is.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn or_the_only_one(self) -> Result<Self, ProfilesError> {
        match &self {
            Profiles::Many(list) => match list.files.as_slice() {
                [file] if file.weight == Weight::ONE && !is_stdio(&file.path) => {
                    let path = if file.is_member() {
                        PathBuf::from(&file.name)
                    } else {
                        file.path.clone()
                    };
                    let input = Input::open(&path).map_err(ProfilesError::Read)?;
                    Ok(Profiles::One(input))
                }
                _ => Ok(self),
            },
            Profiles::One(_) => Ok(self),
        }
    }
}

fn collect(named: &[OsString], lists: &[PathBuf]) -> Result<Box<InputList>, ProfilesError> {
    InputList::collect(named, lists, None)
        .map(Box::new)
        .map_err(ProfilesError::List)
}
