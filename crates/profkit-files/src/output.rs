//! Writes output files completely or not at all.
use crate::clash::is_stdout;
use crate::input::of_folder;
use crate::remote;
use crate::temporary::Temporary;
use crate::{Screen, is_stdio, system_text};
use profkit_data::bytes::Sink;
use profkit_data::{Error, ErrorKind};
use std::fmt;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of bytes that are collected before a write. A larger buffer is not measurably faster.
const BUFFER: usize = 256 << 10;
/// The largest number of symbolic links that are followed. Linux has the same limit.
const MOST_LINKS: usize = 40;

/// The kind of content that an output receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Binary content, which is not written to a terminal.
    Binary,
    /// Text content. The text may contain names from files, so on a terminal control characters are escaped.
    Text,
}

/// An output to which nothing was written yet. All checks that are possible before the first byte have succeeded.
///
/// A regular file is written completely or not at all. The bytes go to a temporary file in the same folder, and this
/// file replaces the target at the end. The permissions of an existing target are kept, and a symbolic link is
/// followed. Other kinds of files (`/dev/stdout`, `/dev/null`, a FIFO) and all files in `/dev` and `/proc` are written
/// directly.
///
/// ```
/// use profkit_files::{Content, Output};
/// # let folder = tempfile::tempdir()?;
///
/// let path = folder.path().join("merged.profdata");
/// let output = Output::new(&path, Content::Binary)?;
/// let bytes = output.write(|sink| sink.put(b"a profile"))?;
/// assert_eq!((bytes, std::fs::read(&path)?), (9, b"a profile".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Output {
    name: String,
    content: Content,
    target: Target,
    as_is: bool,
}

#[derive(Clone, Debug)]
enum Target {
    Stdout,
    Memory(Arc<Mutex<Vec<u8>>>),
    Direct(PathBuf),
    /// An object in an object store.
    Remote(PathBuf),
    Replace {
        path: PathBuf,
        permissions: Option<Permissions>,
    },
}

impl Output {
    /// Checks whether an output can be written. No byte is written yet. `-` is standard output.
    ///
    /// # Errors
    /// An error if the output is a terminal and the content is binary, if the output is a folder, if the user may not
    /// write the file, or if no file can be created in the output's folder.
    pub fn new(path: &Path, content: Content) -> Result<Self, OutputError> {
        let name = profkit_data::path_text(path);
        if name.is_empty() {
            return Err(OutputError::new(name, OutputProblem::EmptyPath));
        }
        match Self::check(path, content) {
            Ok(target) => Ok(Output {
                name,
                content,
                target,
                as_is: false,
            }),
            Err(problem) => Err(OutputError::new(name, problem)),
        }
    }

    /// Makes an output in memory. It has all bytes or, if a write fails, none.
    ///
    /// ```
    /// use profkit_files::Output;
    /// use std::sync::{Arc, Mutex};
    ///
    /// let bytes = Arc::new(Mutex::new(Vec::new()));
    /// Output::memory(Arc::clone(&bytes)).write(|sink| sink.put(b"a profile"))?;
    /// assert_eq!(*bytes.lock().unwrap(), b"a profile");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory(bytes: Arc<Mutex<Vec<u8>>>) -> Self {
        Output {
            name: "memory".to_owned(),
            content: Content::Binary,
            target: Target::Memory(bytes),
            as_is: false,
        }
    }

    /// Sets whether control characters in text are written to a terminal unchanged, as LLVM's tools do.
    #[must_use]
    pub fn as_is(mut self, as_is: bool) -> Self {
        self.as_is = as_is;
        self
    }

    fn check(path: &Path, content: Content) -> Result<Target, OutputProblem> {
        let target = if is_stdio(path) {
            refuse_terminal(&io::stdout(), content)?;
            Target::Stdout
        } else if let Some(uri) = remote::uri(path) {
            // Shows before the work whether the store can be reached, and lets us in.
            remote::head(uri).map_err(OutputProblem::Io)?;
            Target::Remote(path.to_owned())
        } else {
            match fs::metadata(path) {
                Ok(metadata) if !metadata.is_file() && !metadata.is_dir() || is_device(path) => {
                    Target::Direct(path.to_owned())
                }
                Ok(metadata) => {
                    // Opening the file fails if the path is a folder or the user may not write the file.
                    OpenOptions::new()
                        .write(true)
                        .open(path)
                        .map_err(|error| OutputProblem::Io(of_folder(path, error)))?;
                    Target::Replace {
                        path: follow_links(path).map_err(OutputProblem::Io)?,
                        permissions: Some(metadata.permissions()),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Target::Replace {
                    path: follow_links(path).map_err(OutputProblem::Io)?,
                    permissions: None,
                },
                Err(error) => return Err(OutputProblem::Io(error)),
            }
        };
        if let Target::Replace { path, .. } = &target {
            temporary_beside(path).map_err(|error| cannot_create(path, error))?;
        }
        Ok(target)
    }

    /// Opens the output, calls `write` with it, and returns the number of bytes written. If an error occurs, an
    /// existing target is unchanged.
    ///
    /// # Errors
    /// The error of `write`, or the reason why the bytes could not be written.
    pub fn write(
        self,
        write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
    ) -> Result<u64, OutputError> {
        self.stage(write)?.finish()
    }

    /// Like [`write`](Self::write), but an existing target stays as it is until [`Staged::finish`] is called. A command
    /// with several outputs stages all of them, so that it replaces none if one of them fails. Standard output, pipes and
    /// devices get their bytes at once.
    ///
    /// ```
    /// use profkit_files::{Content, Output};
    /// # let folder = tempfile::tempdir()?;
    ///
    /// let path = |name| folder.path().join(name);
    /// let mut staged = Vec::new();
    /// for (name, bytes) in [("a.profdata", b"one"), ("b.profdata", b"two")] {
    ///     let output = Output::new(&path(name), Content::Binary)?;
    ///     staged.push(output.stage(|sink| sink.put(bytes))?);
    /// }
    /// assert!(!path("a.profdata").exists());
    /// for staged in staged {
    ///     staged.finish()?;
    /// }
    /// assert_eq!(std::fs::read(path("b.profdata"))?, b"two");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The error of `write`, or the reason why the bytes could not be written.
    pub fn stage(
        self,
        write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
    ) -> Result<Staged, OutputError> {
        let name = match self.target {
            Target::Stdout => "standard output".to_owned(),
            _ => self.name.clone(),
        };
        match self.fill(write) {
            Ok((bytes, replace)) => Ok(Staged {
                name,
                bytes,
                replace,
            }),
            Err(problem) => Err(OutputError::new(name, problem)),
        }
    }

    fn fill(
        self,
        write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
    ) -> Result<(u64, Option<Replace>), OutputProblem> {
        let escapes = |terminal: bool| terminal && self.content == Content::Text && !self.as_is;
        match self.target {
            Target::Stdout => {
                let file = io::stdout().lock();
                let terminal = file.is_terminal();
                Ok((fill_file(file, escapes(terminal), write)?, None))
            }
            Target::Memory(to) => {
                let (count, bytes) = fill(Vec::new(), write)?;
                *to.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
                Ok((count, None))
            }
            Target::Direct(path) if !self.as_is && is_stdout(&path) => {
                let file = io::stdout().lock();
                refuse_terminal(&file, self.content)?;
                let terminal = file.is_terminal();
                Ok((fill_file(file, escapes(terminal), write)?, None))
            }
            Target::Direct(path) => {
                // A path such as /dev/stderr may lead to a file that others write to as well.
                let is_shared = is_device(&path) && path.is_file() && !self.as_is;
                let file = OpenOptions::new()
                    .write(true)
                    .append(is_shared)
                    .truncate(!is_shared)
                    .open(&path)
                    .map_err(OutputProblem::Io)?;
                refuse_terminal(&file, self.content)?;
                let terminal = file.is_terminal();
                Ok((fill_file(file, escapes(terminal), write)?, None))
            }
            Target::Remote(path) => {
                let folder = std::env::temp_dir();
                let temporary = Temporary::new("profkit-", &folder)
                    .map_err(|error| OutputProblem::Create { error, folder })?;
                let (bytes, temporary) = fill(temporary, write)?;
                let replace = Replace {
                    temporary: temporary.close(),
                    path,
                    permissions: None,
                };
                Ok((bytes, Some(replace)))
            }
            Target::Replace { path, permissions } => {
                let temporary =
                    temporary_beside(&path).map_err(|error| cannot_create(&path, error))?;
                let (bytes, temporary) = fill(temporary, write)?;
                let replace = Replace {
                    temporary: temporary.close(),
                    path,
                    permissions,
                };
                Ok((bytes, Some(replace)))
            }
        }
    }

    /// The name of the output in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// An output that is complete in a temporary file. If the value is dropped, an existing target is unchanged.
#[derive(Debug)]
#[must_use = "the output is written by `finish`"]
pub struct Staged {
    name: String,
    bytes: u64,
    replace: Option<Replace>,
}

#[derive(Debug)]
struct Replace {
    temporary: Temporary,
    path: PathBuf,
    permissions: Option<Permissions>,
}

impl Staged {
    /// Returns the number of bytes of the output.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Replaces the target by the new bytes, and returns their number.
    ///
    /// # Errors
    /// The reason why the target could not be replaced.
    pub fn finish(self) -> Result<u64, OutputError> {
        let Some(replace) = self.replace else {
            return Ok(self.bytes);
        };
        if let Some(uri) = remote::uri(&replace.path) {
            return match replace.temporary.upload(uri) {
                Ok(()) => Ok(self.bytes),
                Err(error) => Err(OutputError::new(self.name, OutputProblem::Io(error))),
            };
        }
        match replace
            .temporary
            .replace(&replace.path, replace.permissions)
        {
            Ok(()) => Ok(self.bytes),
            Err(error) => Err(OutputError::new(self.name, OutputProblem::Io(error))),
        }
    }
}

fn refuse_terminal(file: &impl IsTerminal, content: Content) -> Result<(), OutputProblem> {
    if content == Content::Binary && file.is_terminal() {
        return Err(OutputProblem::Terminal);
    }
    Ok(())
}

/// In `/dev` and `/proc` a path must not be replaced: it may lead to a file that is this program's standard output.
fn is_device(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}

pub(crate) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = folder_of(&path).join(link),
            // The output path is not a symbolic link, or does not exist.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn temporary_beside(target: &Path) -> io::Result<Temporary> {
    let prefix = match target.file_name() {
        Some(name) => format!(".{}.", name.to_string_lossy()),
        None => return Err(io::ErrorKind::IsADirectory.into()),
    };
    Temporary::new(&prefix, folder_of(target))
}

#[cold]
fn cannot_create(path: &Path, error: io::Error) -> OutputProblem {
    OutputProblem::Create {
        error,
        folder: folder_of(path).to_owned(),
    }
}

/// The error for an output that could not be written: its name, and the reason.
#[derive(Debug)]
pub struct OutputError {
    name: String,
    problem: OutputProblem,
}

/// The reason why an output could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum OutputProblem {
    /// The path of the output is empty.
    EmptyPath,
    /// The output is a terminal, and the content is binary.
    Terminal,
    /// No file can be created in the output's folder.
    Create {
        /// The error of the system. The crate `tempfile` may have wrapped this error in an error of its own.
        error: io::Error,
        /// The folder in which no file can be created.
        folder: PathBuf,
    },
    /// The file could not be opened, or the bytes could not be written.
    Io(io::Error),
    /// The profile contains something that the output format cannot express.
    Data(Error),
    /// Two outputs would be written to one file, or both to standard output.
    Twice {
        /// What the two outputs are, for example "the report".
        outputs: [&'static str; 2],
        /// The other path of this file, if the two outputs name it differently.
        other: Option<String>,
    },
    /// The output would replace a file that the command reads.
    ReplacesInput {
        /// What the output is, for example "the report".
        output: &'static str,
    },
}

impl OutputError {
    #[cold]
    pub(crate) fn new(name: String, problem: OutputProblem) -> Self {
        OutputError { name, problem }
    }

    /// The name of the output in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the reason why the output could not be written.
    pub fn problem(&self) -> &OutputProblem {
        &self.problem
    }

    /// Returns the error of the system, if the system caused the failure.
    pub fn system(&self) -> Option<&io::Error> {
        match &self.problem {
            OutputProblem::Create { error, .. } | OutputProblem::Io(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the command line is wrong: another output must be named, whatever the inputs are.
    pub fn is_usage(&self) -> bool {
        matches!(
            self.problem,
            OutputProblem::EmptyPath
                | OutputProblem::Terminal
                | OutputProblem::Twice { .. }
                | OutputProblem::ReplacesInput { .. }
        )
    }

    /// Whether the output is a pipe and the reader of the pipe has closed it.
    pub fn is_broken_pipe(&self) -> bool {
        self.system()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns a suggestion to the user, if there is a step that helps.
    pub fn hint(&self) -> Option<String> {
        match &self.problem {
            OutputProblem::Terminal => Some("name a file with -o FILE, or ask for text".to_owned()),
            OutputProblem::Data(error) => error.hint().map(str::to_owned),
            OutputProblem::Create { error, folder } => {
                let folder = profkit_data::path_text(folder);
                match error.kind() {
                    io::ErrorKind::NotFound => Some(format!("there is no folder `{folder}`")),
                    io::ErrorKind::PermissionDenied => Some(format!(
                        "outputs are written to a temporary file first, so the folder {folder} must be writable"
                    )),
                    _ => None,
                }
            }
            OutputProblem::Io(error) if error.kind() == io::ErrorKind::IsADirectory => {
                Some(format!("name a file in the folder: -o {}/FILE", self.name))
            }
            OutputProblem::Twice {
                outputs: [_, second],
                ..
            } => Some(format!("choose another path for {second}")),
            OutputProblem::ReplacesInput { output } => {
                Some(format!("choose another path for {output}"))
            }
            OutputProblem::EmptyPath | OutputProblem::Io(_) => None,
        }
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            OutputProblem::EmptyPath => f.write_str("the path of the output is empty"),
            OutputProblem::Terminal => f.write_str("a binary profile is not written to a terminal"),
            OutputProblem::Data(error) => write!(f, "{}: {error}", self.name),
            OutputProblem::Create { error, .. } | OutputProblem::Io(error) => {
                write!(
                    f,
                    "{}: cannot be written: {}",
                    self.name,
                    system_text(error)
                )
            }
            OutputProblem::Twice { outputs, other } => {
                let ([one, two], name) = (outputs, &self.name);
                write!(f, "{one} and {two} cannot both be written to {name}")?;
                match other {
                    Some(other) => write!(f, ", which is the same file as {other}"),
                    None => Ok(()),
                }
            }
            OutputProblem::ReplacesInput { output } => write!(
                f,
                "{}: {output} would replace this file, which the command reads",
                self.name
            ),
        }
    }
}

impl std::error::Error for OutputError {}

/// Calls `write` with a sink that buffers the bytes and passes them to the writer. Returns the number of bytes written.
/// `name` is the name of the writer in messages.
///
/// # Errors
/// The error of `write`, or the reason why the writer did not accept the bytes.
pub fn write_to<W: Write>(
    name: &str,
    to: W,
    write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
) -> Result<u64, OutputError> {
    match fill(to, write) {
        Ok((bytes, _)) => Ok(bytes),
        Err(problem) => Err(OutputError::new(name.to_owned(), problem)),
    }
}

/// If `escape` is true, control characters are escaped.
fn fill_file(
    file: impl Write,
    escape: bool,
    write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
) -> Result<u64, OutputProblem> {
    if escape {
        return fill(Screen::text(file), write).map(|(bytes, _)| bytes);
    }
    fill(file, write).map(|(bytes, _)| bytes)
}

fn fill<W: Write>(
    file: W,
    write: impl FnOnce(&mut dyn Sink) -> profkit_data::Result<()>,
) -> Result<(u64, W), OutputProblem> {
    let mut sink = FileSink {
        file: BufWriter::with_capacity(BUFFER, file),
        bytes: 0,
        error: None,
    };
    let done = write(&mut sink);
    if let Some(error) = sink.error {
        return Err(OutputProblem::Io(error));
    }
    done.map_err(OutputProblem::Data)?;
    let file = sink
        .file
        .into_inner()
        .map_err(|error| OutputProblem::Io(error.into_error()))?;
    Ok((sink.bytes, file))
}

/// A sink that writes to a file. It keeps the operating system's error, so that the error message can contain it.
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

#[cfg(test)]
mod tests;
