//! Writing outputs: whole or not at all.
use crate::exit::{Failure, Result};
use crate::io::is_stdio;
use profkit_data::bytes::Sink;
use profkit_data::{Error, ErrorKind};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How much is gathered before a write. Larger saves system calls that no longer show; costs that much memory.
const BUFFER: usize = 256 << 10;
/// How many symbolic links are followed, as Linux does.
const MOST_LINKS: usize = 40;

/// What sort of bytes an output gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Not for eyes: refused on a terminal.
    Binary,
    /// Text.
    Text,
}

/// An output that can be written, as far as can be known before the first byte.
///
/// A regular file appears whole or not at all: the bytes go to a temporary file in the same folder, which is renamed
/// over the target when all is written. The permissions of a target that is there are kept, and a symbolic link is
/// followed. What is no regular file (`/dev/stdout`, `/dev/null`, a FIFO) is written directly, and so is whatever
/// lies in `/dev` or `/proc`.
#[derive(Clone, Debug)]
pub struct Output {
    name: String,
    content: Content,
    target: Target,
}

#[derive(Clone, Debug)]
enum Target {
    Stdout,
    Direct(PathBuf),
    Replace {
        path: PathBuf,
        permissions: Option<Permissions>,
    },
}

impl Output {
    /// Checks that an output can be written, and writes nothing yet. `-` is standard output.
    ///
    /// # Errors
    /// If the output is a terminal that must not get this content, a folder, a file that may not be written, or in a
    /// folder that takes no files.
    pub fn new(path: &Path, content: Content) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(Failure::usage("the path of the output is empty"));
        }
        Self::try_new(path, content).map_err(|error| error.failure(&path.display().to_string()))
    }

    /// As [`new`](Self::new), for callers with their own words for errors.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn try_new(path: &Path, content: Content) -> std::result::Result<Self, OutputError> {
        let target = if is_stdio(path) {
            refuse_terminal(&io::stdout(), content)?;
            Target::Stdout
        } else {
            match fs::metadata(path) {
                Ok(metadata) if !metadata.is_file() && !metadata.is_dir() || is_device(path) => {
                    Target::Direct(path.to_owned())
                }
                Ok(metadata) => {
                    // Opened for nothing but to fail for folders and files that we may not write.
                    OpenOptions::new()
                        .write(true)
                        .open(path)
                        .map_err(OutputError::Io)?;
                    Target::Replace {
                        path: follow_links(path).map_err(OutputError::Io)?,
                        permissions: Some(metadata.permissions()),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Target::Replace {
                    path: follow_links(path).map_err(OutputError::Io)?,
                    permissions: None,
                },
                Err(error) => return Err(OutputError::Io(error)),
            }
        };
        if let Target::Replace { path, .. } = &target {
            temporary_beside(path).map_err(|error| cannot_create(path, error))?;
        }
        Ok(Output {
            name: path.display().to_string(),
            content,
            target,
        })
    }

    /// Fills the output with what `write` writes, and says how many bytes that were.
    ///
    /// # Errors
    /// What `write` returns, and whatever keeps the bytes from being written. An existing target is then as it was.
    pub fn write(
        self,
        write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
    ) -> Result<u64> {
        let name = match self.target {
            Target::Stdout => "standard output".to_owned(),
            _ => self.name.clone(),
        };
        self.try_write(write).map_err(|error| error.failure(&name))
    }

    /// As [`write`](Self::write), for callers with their own words for errors.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn try_write(
        self,
        write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
    ) -> std::result::Result<u64, OutputError> {
        match self.target {
            Target::Stdout => {
                let (bytes, _) = fill(io::stdout().lock(), write)?;
                Ok(bytes)
            }
            Target::Direct(path) => {
                let file = OpenOptions::new()
                    .write(true)
                    .truncate(true)
                    .open(&path)
                    .map_err(OutputError::Io)?;
                refuse_terminal(&file, self.content)?;
                let (bytes, _) = fill(file, write)?;
                Ok(bytes)
            }
            Target::Replace { path, permissions } => {
                let temporary =
                    temporary_beside(&path).map_err(|error| cannot_create(&path, error))?;
                let (bytes, temporary) = fill(temporary, write)?;
                match permissions {
                    Some(permissions) => fs::set_permissions(temporary.path(), permissions),
                    None => Ok(()),
                }
                .and_then(|()| {
                    let replaced = temporary.persist(&path);
                    replaced.map(drop).map_err(|error| error.error)
                })
                .map_err(OutputError::Io)?;
                Ok(bytes)
            }
        }
    }

    /// What the output is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn refuse_terminal(
    file: &impl IsTerminal,
    content: Content,
) -> std::result::Result<(), OutputError> {
    if content == Content::Binary && file.is_terminal() {
        return Err(OutputError::Terminal);
    }
    Ok(())
}

/// `/dev/stdout` may lead to a regular file, which the shell has opened for us: it must not be replaced.
fn is_device(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}

/// The file behind symbolic links, which need not exist.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = folder_of(&path).join(link),
            // No link, or nothing there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn temporary_beside(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any program creates files: the umask takes away what the user does not want.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let prefix = match target.file_name() {
        Some(name) => format!(".{}.", name.to_string_lossy()),
        None => return Err(io::ErrorKind::IsADirectory.into()),
    };
    builder
        .prefix(&prefix)
        .suffix(".tmp")
        .tempfile_in(folder_of(target))
}

#[cold]
fn cannot_create(path: &Path, error: io::Error) -> OutputError {
    OutputError::Create {
        error,
        folder: folder_of(path).to_owned(),
    }
}

/// Why an output is not written.
#[derive(Debug)]
pub enum OutputError {
    /// It is a terminal, and the content is not for eyes.
    Terminal,
    /// The folder takes no file.
    Create {
        /// Why; perhaps wrapped by `tempfile`.
        error: io::Error,
        /// The folder.
        folder: PathBuf,
    },
    /// The file cannot be opened, or did not take the bytes.
    Io(io::Error),
    /// The writer refused the model.
    Data(Error),
}

impl OutputError {
    /// What the system says, if it was the system.
    pub fn system(&self) -> Option<&io::Error> {
        match self {
            OutputError::Create { error, .. } => {
                // `tempfile` wraps the system's error in one that names its own file, which means nothing to the user.
                let inner = error.get_ref().and_then(|wrapped| wrapped.source());
                let system = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
                Some(system.unwrap_or(error))
            }
            OutputError::Io(error) => Some(error),
            OutputError::Terminal | OutputError::Data(_) => None,
        }
    }

    #[cold]
    fn failure(self, name: &str) -> Failure {
        let failure = match &self {
            OutputError::Terminal => {
                Failure::usage("a binary profile is not written to a terminal")
                    .with_hint("name a file with -o FILE, or ask for text")
            }
            OutputError::Data(error) => Failure::file(name, error),
            OutputError::Create { error, .. } | OutputError::Io(error) => {
                Failure::io("cannot write", name, self.system().unwrap_or(error))
            }
        };
        let OutputError::Create { error, folder } = &self else {
            return failure;
        };
        let folder = folder.display();
        match error.kind() {
            io::ErrorKind::NotFound => {
                failure.with_hint(format_args!("the folder {folder} does not exist"))
            }
            io::ErrorKind::PermissionDenied => failure.with_hint(format_args!(
                "outputs are written to a temporary file first, so the folder {folder} must be writable"
            )),
            _ => failure,
        }
    }
}

/// Lets `write` fill `file`, and says which side failed if one did.
fn fill<W: Write>(
    file: W,
    write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
) -> std::result::Result<(u64, W), OutputError> {
    let mut sink = FileSink {
        file: BufWriter::with_capacity(BUFFER, file),
        bytes: 0,
        error: None,
    };
    let done = write(&mut sink);
    if let Some(error) = sink.error {
        return Err(OutputError::Io(error));
    }
    done.map_err(OutputError::Data)?;
    let file = sink
        .file
        .into_inner()
        .map_err(|error| OutputError::Io(error.into_error()))?;
    Ok((sink.bytes, file))
}

/// A sink over a file, which keeps the system's error for the message.
struct FileSink<W: Write> {
    file: BufWriter<W>,
    bytes: u64,
    error: Option<io::Error>,
}

impl<W: Write> Sink for FileSink<W> {
    fn put(&mut self, bytes: &[u8]) -> profkit_data::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| {
            self.error = Some(error);
            Error::new(ErrorKind::WriteFailed, "the output takes no more bytes")
        })
    }
}

/// Buffered standard output for what a command prints. [`Failure::print`] makes a failure of its errors.
pub fn printer() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(BUFFER, io::stdout().lock())
}

#[cfg(test)]
mod tests;
