//! An output that is one file, or a folder with a file for each of several results.
use crate::{Content, Output, OutputError, OutputProblem, is_remote, is_stdio};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// A file for all results, or a folder with a file for each result. Nothing was written yet.
///
/// ```
/// use profkit_files::{Content, Outputs};
/// # let folder = tempfile::tempdir()?;
///
/// // The path ends with a separator, so it is a folder. It is made with its first file.
/// let outputs = Outputs::new(&folder.path().join("profiles/"), Content::Binary)?;
/// assert!(matches!(outputs, Outputs::Folder(..)));
/// outputs.file("app.prof".as_ref())?.write(|sink| sink.put(b"a profile"))?;
/// assert_eq!(std::fs::read(folder.path().join("profiles/app.prof"))?, b"a profile");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum Outputs {
    /// One file, or standard output.
    File(Output),
    /// A folder, with the kind of content of its files.
    Folder(PathBuf, Content),
}

impl Outputs {
    /// Checks whether an output can be written. A path is a folder if there is a folder at this path, or if the path
    /// ends with a separator. No byte is written yet, and no folder is made.
    ///
    /// # Errors
    /// The errors of [`Output::new`] for the file, or for a file in the folder if the output is a folder. An error if a
    /// path that ends with a separator leads to something that is no folder.
    pub fn new(path: &Path, content: Content) -> Result<Self, OutputError> {
        let ends_with_separator = path
            .as_os_str()
            .as_encoded_bytes()
            .last()
            .is_some_and(|&byte| std::path::is_separator(char::from(byte)));
        if is_stdio(path) || !ends_with_separator && !path.is_dir() {
            return Output::new(path, content).map(Outputs::File);
        }
        if is_remote(path) {
            return Ok(Outputs::Folder(path.to_owned(), content));
        }
        match fs::metadata(path) {
            Ok(_) => {
                Output::new(&path.join("profile"), content)?;
            }
            // The folder is made later.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Self::error(path, error)),
        }
        Ok(Outputs::Folder(path.to_owned(), content))
    }

    #[cold]
    fn error(path: &Path, error: std::io::Error) -> OutputError {
        OutputError::new(profkit_data::path_text(path), OutputProblem::Io(error))
    }

    /// Returns the path of the file for the result with this name; `None` if the output is a single file.
    pub fn path(&self, name: &OsStr) -> Option<PathBuf> {
        match self {
            Outputs::File(_) => None,
            Outputs::Folder(folder, _) => Some(folder.join(name)),
        }
    }

    /// Returns the file for the result with this name. If the output is a single file, returns this file for all names.
    /// A folder that does not exist is made.
    ///
    /// # Errors
    /// An error if the folder cannot be made; the errors of [`Output::new`].
    pub fn file(&self, name: &OsStr) -> Result<Output, OutputError> {
        match self {
            Outputs::File(output) => Ok(output.clone()),
            Outputs::Folder(folder, content) => {
                if !is_remote(folder) {
                    fs::create_dir_all(folder).map_err(|error| Self::error(folder, error))?;
                }
                Output::new(&folder.join(name), *content)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_an_existing_one_or_ends_with_a_separator() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let is_folder = |name: &str| {
            let outputs = Outputs::new(&path(name), Content::Text);
            outputs.map(|outputs| matches!(outputs, Outputs::Folder(..)))
        };
        fs::create_dir(path("there")).unwrap();
        fs::write(path("file"), b"").unwrap();
        assert!(is_folder("there").unwrap());
        assert!(is_folder("new/").unwrap());
        assert!(is_folder("new/deep/").unwrap());
        assert!(!is_folder("new").unwrap());
        assert!(!is_folder("file").unwrap());
        is_folder("file/").unwrap_err();
        assert!(!path("new").exists(), "a check makes no folder");
        let outputs = Outputs::new(&path("new/deep/"), Content::Text).unwrap();
        for name in ["a", "b"] {
            let output = outputs.file(name.as_ref()).unwrap();
            output.write(|sink| sink.put(name.as_bytes())).unwrap();
            assert_eq!(
                fs::read(path("new/deep").join(name)).unwrap(),
                name.as_bytes()
            );
        }
        // A file where a folder should be made.
        let outputs = Outputs::new(&path("other/"), Content::Text).unwrap();
        fs::write(path("other"), b"").unwrap();
        outputs.file("a".as_ref()).unwrap_err();
    }
}
