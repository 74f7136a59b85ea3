//! Finds and opens the files that are needed to symbolise a program.
use super::{Bytes, Options, SplitFiles, Symbolizer};
use crate::binary::{BinaryFile, Image};
use crate::debug_files::{DebugFolders, DebugLink, Rejected, dwo_file, dwp_file};
use crate::packed_symbols;
use profkit_data::{Error, ErrorKind, Result, path_text, system_text};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a program: the program itself, its separate debug file, and its package of split debug info. The debug
/// file and the package may be missing.
#[derive(Debug)]
pub struct ProgramFiles {
    binary: BinaryFile,
    debug_file: Option<BinaryFile>,
    /// The symbols that are packed in the program, if neither it nor a debug file has its symbol table. An error if they are
    /// damaged.
    packed: Result<Option<BinaryFile>>,
    package: Option<BinaryFile>,
    split: BesideProgram,
    rejected: Vec<Rejected>,
}

impl ProgramFiles {
    /// Opens a program or library, its separate debug file (found by its build id or debug link), and `PROGRAM.dwp`.
    ///
    /// # Errors
    /// If a file cannot be opened, or the program is not an object file.
    pub fn open(path: &Path, folders: &DebugFolders) -> Result<Self> {
        let binary = open(path)?;
        let located = folders.locate(path, &DebugLink::of(&only_image(&binary)?)?);
        let packed = match located.path {
            Some(_) => Ok(None),
            None => packed_symbols::of(&only_image(&binary)?, path),
        };
        Ok(ProgramFiles {
            binary,
            debug_file: located.path.as_deref().map(open).transpose()?,
            packed,
            package: dwp_file(path).as_deref().map(open).transpose()?,
            split: BesideProgram {
                program: path.to_owned(),
            },
            rejected: located.rejected,
        })
    }

    /// Uses this file as the separate debug file, instead of the one that was found.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn with_debug_file(mut self, path: &Path) -> Result<Self> {
        self.debug_file = Some(open(path)?);
        self.packed = Ok(None);
        Ok(self)
    }

    /// Leaves out the symbols that are packed in the program (`.gnu_debugdata`), which LLVM's tools do not read.
    #[must_use]
    pub fn without_packed_symbols(mut self) -> Self {
        self.packed = Ok(None);
        self
    }

    /// Uses this package of split debug info, instead of `PROGRAM.dwp`.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn with_package(mut self, path: &Path) -> Result<Self> {
        self.package = Some(open(path)?);
        Ok(self)
    }

    /// The program itself.
    ///
    /// # Errors
    /// If the file is damaged, or has several architectures.
    pub fn program(&self) -> Result<Image<'_>> {
        only_image(&self.binary)
    }

    /// The separate debug file, if there is one; otherwise the symbols that are packed in the program, if there are some.
    ///
    /// # Errors
    /// If the file is damaged, or has several architectures.
    pub fn debug_image(&self) -> Result<Option<Image<'_>>> {
        let packed = self.packed.as_ref().ok().and_then(Option::as_ref);
        let debug = self.debug_file.as_ref().or(packed);
        debug.map(only_image).transpose()
    }

    /// Whether the symbols of functions are packed in the program (`.gnu_debugdata`). Those that the dynamic symbols have
    /// are not among them.
    pub fn has_packed_symbols(&self) -> bool {
        matches!(self.packed, Ok(Some(_)))
    }

    /// The reason why the symbols that are packed in the program cannot be read.
    pub fn packed_problem(&self) -> Option<&Error> {
        self.packed.as_ref().err()
    }

    /// The path of the separate debug file, if there is one.
    pub fn debug_file(&self) -> Option<&Path> {
        self.debug_file.as_ref().map(BinaryFile::path)
    }

    /// The files that have the path of a debug file but do not belong to this program.
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }

    /// Makes a symboliser for the program.
    ///
    /// # Errors
    /// If a file is damaged, or has several architectures.
    pub fn symbolizer(&self, options: &Options) -> Result<Symbolizer<'_>> {
        let binary = only_image(&self.binary)?;
        let debug_file = self.debug_image()?;
        let package = self.package.as_ref().map(only_image).transpose()?;
        Symbolizer::from_objects(
            &binary,
            (debug_file.as_ref(), self.has_packed_symbols()),
            package.as_ref(),
            Some(&self.split),
            options,
        )
    }
}

/// Finds `.dwo` files at the path that the compiler wrote into the unit, or in the folder of the program.
#[derive(Debug)]
pub(crate) struct BesideProgram {
    pub(crate) program: PathBuf,
}

impl SplitFiles for BesideProgram {
    fn split_file(&self, compilation_directory: &[u8], name: &[u8]) -> Option<Bytes> {
        let path = dwo_file(&self.program, compilation_directory, name)?;
        std::fs::read(path)
            .ok()
            .map(|bytes| Arc::new(bytes) as Bytes)
    }
}

fn open(path: &Path) -> Result<BinaryFile> {
    let name = || path_text(path);
    let file = BinaryFile::open(path).map_err(|error| {
        Error::new(
            ErrorKind::UnrecognizedFormat,
            format!("cannot be opened: {}", system_text(&error)),
        )
        .within(name())
    })?;
    file.linked_if_module()
        .map_err(|error| error.within(name()))
}

fn only_image(file: &BinaryFile) -> Result<Image<'_>> {
    let name = || path_text(file.path());
    let mut images = file.images().map_err(|error| error.within(name()))?;
    match (images.pop(), images.len()) {
        (Some(image), 0) => Ok(image),
        (_, more) => Err(Error::new(
            ErrorKind::Unsupported,
            "only a file with one architecture can be symbolised",
        )
        .within(name())
        .found(format!("a universal file of {} architectures", more + 1))
        .with_hint("extract one: lipo -thin ARCHITECTURE")),
    }
}
