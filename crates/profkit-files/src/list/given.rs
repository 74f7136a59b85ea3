//! Inputs that a program names: paths as they are, and bytes in memory.
use super::{InputFile, InputList, Result};
use crate::Weight;
use std::fmt;
use std::path::{Path, PathBuf};

/// An input that a program names, and not the words of a command line: see [`InputList::of`].
#[derive(Debug)]
pub struct GivenInput {
    /// Where the bytes are.
    pub source: InputSource,
    /// The factor that multiplies the counts.
    pub weight: Weight,
    /// What identifies the input wherever it is merged ([`crate::Inputs::id`]); `None` for that of the file. The files of a folder
    /// or an archive have ids of their own.
    pub id: Option<String>,
    /// Whether a path without a file is one more input that cannot be read, which the merge reports, and not an error.
    pub missing_ok: bool,
}

/// Where the bytes of a [`GivenInput`] are.
pub enum InputSource {
    /// In a file, or in the files of a folder or an archive.
    Path(PathBuf),
    /// In memory, perhaps compressed.
    Memory {
        /// The name of the input in messages.
        name: String,
        /// The object that has the bytes.
        bytes: Box<dyn AsRef<[u8]> + Send + Sync>,
    },
}

impl fmt::Debug for InputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputSource::Path(path) => path.fmt(f),
            InputSource::Memory { name, .. } => name.fmt(f),
        }
    }
}

/// The bytes of inputs in memory.
#[derive(Default)]
pub(super) struct Memory(pub(super) Vec<Box<dyn AsRef<[u8]> + Send + Sync>>);

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} inputs", self.0.len())
    }
}

impl InputList {
    /// Collects inputs as [`collect`](Self::collect) does, but takes each path as it is: a comma in it is a part of its
    /// name.
    ///
    /// ```
    /// use profkit_files::{GivenInput, InputList, InputSource, Inputs, Weight};
    ///
    /// let source = InputSource::Memory { name: "monday".to_owned(), bytes: Box::new(b"main\n1\n1\n5\n") };
    /// let given = GivenInput { source, weight: Weight::ONE, id: None, missing_ok: false };
    /// let inputs = InputList::of(vec![given], None)?;
    /// assert_eq!(inputs.name(0), "monday");
    /// # Ok::<(), profkit_files::ListError>(())
    /// ```
    ///
    /// # Errors
    /// An error if a file does not exist, or if a folder cannot be read.
    pub fn of(given: Vec<GivenInput>, output: Option<&Path>) -> Result<Self> {
        let mut list = InputList::without(output);
        for given in given {
            let GivenInput {
                source, weight, id, ..
            } = given;
            let before = list.files.len();
            match source {
                InputSource::Path(path) => {
                    list.add(InputFile::new(path.clone(), weight), None)?;
                    if given.missing_ok && list.missing.pop().is_some() {
                        list.files.push(InputFile::new(path, weight));
                    }
                }
                InputSource::Memory { name, bytes } => {
                    list.files.push(InputFile {
                        name,
                        memory: Some(list.memory.0.len()),
                        ..InputFile::new(PathBuf::from("-"), weight)
                    });
                    list.memory.0.push(bytes);
                }
            }
            if let Some([added]) = list.files.get_mut(before..) {
                added.id = id;
            }
        }
        list.collected()
    }
}
