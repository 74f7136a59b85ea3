//! Opens programs, libraries and debug files. They are mapped into memory, so that only the parts that are needed are read.
use crate::kernel_module;
use memmap2::Mmap;
use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{FileKind, Object, ObjectKind, ReadRef};
use profkit_data::{Error, ErrorKind, Result, Structure, stored};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file that may contain machine code or debug info.
///
/// ```
/// use profkit_object::binary::BinaryFile;
/// use profkit_object::build_id::build_id;
///
/// let file = BinaryFile::open(&std::env::current_exe()?)?;
/// for image in file.images()? {
///     if let Some(id) = build_id(&image)? {
///         println!("{id}");
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BinaryFile {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Memory(Vec<u8>),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Memory(bytes) => bytes,
        }
    }
}

/// An object file inside a [`BinaryFile`]: the whole file, or one architecture of a universal Mach-O file.
pub type Image<'data> = object::File<'data>;

/// The largest number of architectures that are read from a universal file. Real files have two to five.
const MOST_ARCHITECTURES: usize = 64;

/// The largest nesting depth of folders that are searched.
const MOST_FOLDERS: usize = 256;

/// Returns the programs and libraries in a folder and in the folders below it, sorted by path. Symbolic links are not
/// followed.
///
/// # Errors
/// If a folder cannot be read, or if folders nest too deeply.
pub fn programs_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(folder, 0, &mut files)?;
    files.sort_unstable();
    files.retain(|file| BinaryFile::open(file).is_ok_and(|file| file.is_linked()));
    Ok(files)
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if depth == MOST_FOLDERS {
        return Err(io::Error::other("folders nest too deeply"));
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), depth + 1, files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

impl BinaryFile {
    /// Opens a file that may contain machine code. A compressed kernel module (`.ko.xz`, `.ko.zst`, `.ko.gz`) is
    /// decompressed in memory.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a regular file, or is a compressed kernel module that cannot be
    /// decompressed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if kernel_module::is_packed(path) {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let bytes = stored::expand(&bytes)?.unwrap_or(bytes);
            return Ok(BinaryFile::in_memory(path, bytes));
        }
        // Pipes and devices have no size, and are no binaries.
        if metadata.len() == 0 {
            return Ok(BinaryFile::in_memory(path, Vec::new()));
        }
        let bytes = match map(&file) {
            Ok(map) => Bytes::Mapped(map),
            // Not every file system maps files.
            Err(_) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Bytes::Memory(bytes)
            }
        };
        Ok(BinaryFile {
            path: path.to_owned(),
            bytes,
        })
    }

    /// The bytes of a file that is in the file at a path, or was decompressed.
    pub(crate) fn in_memory(path: &Path, bytes: Vec<u8>) -> Self {
        BinaryFile {
            path: path.to_owned(),
            bytes: Bytes::Memory(bytes),
        }
    }

    /// Links a kernel module in memory, so that its code, symbols and debug info have addresses. Other files stay as
    /// they are.
    ///
    /// # Errors
    /// The errors of [`images`](Self::images); [`ErrorKind::Malformed`] if a kernel module is damaged.
    pub fn linked_if_module(mut self) -> Result<Self> {
        let is_module = matches!(&*self.images()?, [image] if kernel_module::is_module(image));
        if is_module {
            self.bytes = Bytes::Memory(kernel_module::link(self.bytes.get())?);
        }
        Ok(self)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.get().len() as u64
    }

    /// The object files in this file. A universal Mach-O file has one object file for each architecture. Every other
    /// file has one object file.
    ///
    /// # Errors
    /// [`ErrorKind::UnrecognizedFormat`] if the file is not an ELF, PE, COFF or Mach-O file, [`ErrorKind::Malformed`]
    /// if its headers are damaged.
    pub fn images(&self) -> Result<Vec<Image<'_>>> {
        let whole = self.bytes.get();
        let kind = FileKind::parse(whole).map_err(|_| not_a_binary())?;
        let ranges: Vec<(u64, u64)> = match kind {
            FileKind::MachOFat32 => MachOFatFile32::parse(whole)
                .map_err(|error| damaged(&error))?
                .arches()
                .iter()
                .map(FatArch::file_range)
                .take(MOST_ARCHITECTURES)
                .collect(),
            FileKind::MachOFat64 => MachOFatFile64::parse(whole)
                .map_err(|error| damaged(&error))?
                .arches()
                .iter()
                .map(FatArch::file_range)
                .take(MOST_ARCHITECTURES)
                .collect(),
            FileKind::Archive => {
                return Err(Error::new(
                    ErrorKind::Archive,
                    "the file is an archive of object files",
                )
                .with_hint("give the program or library that was linked from it"));
            }
            _ => vec![(0, self.size())],
        };
        ranges
            .into_iter()
            .map(|(offset, size)| {
                let range = whole.read_bytes_at(offset, size);
                let Ok(range) = range else {
                    return Err(Error::new(
                        ErrorKind::Truncated,
                        "the part for an architecture lies outside the file",
                    )
                    .at(offset)
                    .within(Structure::UniversalHeader)
                    .found(format_args!("{size} bytes at {offset}"))
                    .expected(format_args!("within {} bytes", self.size())));
                };
                object::File::parse(range).map_err(|error| damaged(&error))
            })
            .collect()
    }

    /// Whether the file is a program or a library that a linker wrote, and not an object file or something else.
    pub fn is_linked(&self) -> bool {
        let linked = |image: &Image<'_>| {
            matches!(image.kind(), ObjectKind::Executable | ObjectKind::Dynamic)
        };
        self.images().is_ok_and(|images| images.iter().any(linked))
    }

    /// Returns the only object file in this file. If there are several architectures, returns the first one that
    /// `wanted` accepts.
    ///
    /// # Errors
    /// The same as [`images`](Self::images); and if `wanted` accepts none of several architectures.
    pub fn image(&self, wanted: impl Fn(&Image<'_>) -> bool) -> Result<Image<'_>> {
        let mut found = Vec::new();
        for image in self.images()? {
            if wanted(&image) {
                return Ok(image);
            }
            found.push(format!("{:?}", image.architecture()));
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            "the file is for another kind of machine",
        )
        .found(found.join(", ")))
    }
}

/// Maps a file. If another process changes the file, the mapped bytes change too; if it shortens the file, this program ends
/// with SIGBUS.
#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only, and a borrow of its bytes cannot outlive the map. Another process may change the file, and
    // then the bytes of the map change too. object, gimli and our readers accept any bytes, and check every length and offset
    // that they use.
    unsafe { Mmap::map(file) }
}

/// Returns the name of an object file's architecture: the name that Mach-O's tools use if they have one, otherwise the
/// name that the `object` crate uses.
pub fn architecture_name(image: &Image<'_>) -> String {
    use object::Architecture;
    match image.architecture() {
        Architecture::Aarch64 => "arm64".to_owned(),
        Architecture::X86_64 => "x86_64".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[cold]
fn not_a_binary() -> Error {
    Error::new(
        ErrorKind::UnrecognizedFormat,
        "the file is not an ELF, PE, COFF or Mach-O file",
    )
    .at(0)
    .within(Structure::FirstBytes)
    .with_hint("give a program, a library, or a file with its debug info")
}

/// Converts an error of the `object` crate. The result has no offset, because that crate does not report one.
#[cold]
pub(crate) fn damaged(error: &object::Error) -> Error {
    Error::new(ErrorKind::Malformed, error.to_string())
        .within(Structure::ObjectFile)
        .with_hint("the file is damaged or cut: build or fetch it again")
}
