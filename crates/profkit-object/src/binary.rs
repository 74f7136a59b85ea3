//! Opening programs, libraries and debug files without reading more of them than is asked for.
use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::read::{ReadCache, ReadCacheRange};
use object::{FileKind, Object};
use profkit_data::{Error, ErrorKind, Result, Structure};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file that may hold machine code or debug info. Parts of it are read when they are asked for, and kept.
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
    size: u64,
    cache: ReadCache<File>,
}

/// How the parts of a [`BinaryFile`] are read.
pub type FileRange<'data> = ReadCacheRange<'data, File>;
/// An object file inside a [`BinaryFile`]: all of it, or one architecture of a universal Mach-O file.
pub type Image<'data> = object::File<'data, FileRange<'data>>;

/// The most architectures of a universal file that are looked at. Real ones have two to five.
const MOST_ARCHITECTURES: usize = 64;

impl BinaryFile {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be opened, or is no regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(BinaryFile {
            path: path.to_owned(),
            size: metadata.len(),
            cache: ReadCache::new(file),
        })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The object files in it: one, or for a universal Mach-O file one an architecture.
    ///
    /// # Errors
    /// [`ErrorKind::UnrecognizedFormat`] if it is no ELF, PE, COFF or Mach-O file, [`ErrorKind::Malformed`] if it is
    /// one whose headers are damaged.
    pub fn images(&self) -> Result<Vec<Image<'_>>> {
        let whole = self.cache.range(0, self.size);
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
            _ => vec![(0, self.size)],
        };
        ranges
            .into_iter()
            .map(|(offset, size)| {
                let end = offset.checked_add(size).filter(|&end| end <= self.size);
                if end.is_none() {
                    return Err(Error::new(
                        ErrorKind::Truncated,
                        "an architecture lies outside the file",
                    )
                    .at(offset)
                    .within(Structure::UniversalHeader)
                    .found(format_args!("{size} bytes at {offset}"))
                    .expected(format_args!("within {} bytes", self.size)));
                }
                let range = self.cache.range(offset, size);
                object::File::parse(range).map_err(|error| damaged(&error))
            })
            .collect()
    }

    /// The one object file in it, or of several architectures the first that `wanted` accepts.
    ///
    /// # Errors
    /// As [`images`](Self::images); and if none is accepted.
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

/// The architecture of an object file, as Mach-O's tools call it, else as the `object` crate does.
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

/// An error of the `object` crate, which knows no offsets.
#[cold]
pub(crate) fn damaged(error: &object::Error) -> Error {
    Error::new(ErrorKind::Malformed, error.to_string())
        .within(Structure::ObjectFile)
        .with_hint("the file is damaged or cut: build or fetch it again")
}
