//! Finds the profiles that one path stands for: a single file, or the files of a folder, archive or list.
use profkit_data::ForeignFile;
use profkit_data::detect::{FileKind, detect};
use profkit_data::stored::ArchiveFormat;
use profkit_merge::files::{Input, InputList, InputNote, ListError, ReadError};
use std::path::Path;

/// The profiles that one path stands for.
#[derive(Debug)]
pub enum Profiles {
    /// The path of a single profile.
    One(Input),
    /// The path of a folder, of an archive with several files, or of a list of paths. From a folder, only files with
    /// the content or the name of a profile are taken.
    Many(InputList),
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
    /// Opens the file, or finds the files.
    ///
    /// # Errors
    /// If the file cannot be read, or the files cannot be found.
    pub fn find(path: &Path) -> Result<Self, ProfilesError> {
        let collect = |named: &[_], lists: &[_]| {
            InputList::collect(named, lists, None).map_err(ProfilesError::List)
        };
        let is_folder = path.is_dir();
        if is_folder || path.file_name().is_some_and(ArchiveFormat::is_named_so) && path.exists() {
            let list = collect(&[path.as_os_str().to_owned()], &[])?;
            // A damaged archive may have lost members, which the notes of the list report.
            let is_damaged = !list.files.is_empty() && list.notes.iter().any(InputNote::is_damage);
            if is_folder || list.files.len() > 1 || is_damaged {
                return Ok(Profiles::Many(list));
            }
        }
        let input = Input::open(path).map_err(ProfilesError::Read)?;
        if detect(&input) == FileKind::Foreign(ForeignFile::ProfileList) {
            return Ok(Profiles::Many(collect(&[], &[path.to_owned()])?));
        }
        Ok(Profiles::One(input))
    }
}
