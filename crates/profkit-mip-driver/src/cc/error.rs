//! The errors of the compiler driver: a call cannot be carried out, or was not completed.
use crate::runtime;
use profkit_merge::files::{OutputError, system_text};
use profkit_mip::instrument;
use std::fmt;
use std::io;
use std::path::Path;

/// A command line with an option or input that cannot be instrumented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What cannot be instrumented, and the reason.
    pub message: String,
    /// What the user can do instead; `None` if there is nothing that helps.
    pub hint: Option<&'static str>,
}

impl Unsupported {
    pub(crate) fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Unsupported {
            message: message.into(),
            hint: Some(hint),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The operation of the driver that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doing {
    /// The driver was reading a file.
    Read,
    /// The driver was writing a file.
    Write,
    /// The driver was making a folder or a symbolic link.
    Make,
    /// The driver was making a folder for temporary files.
    MakeFolder,
    /// The driver was removing a file.
    Remove,
    /// The driver was entering a folder.
    Enter,
    /// The driver was asking the system for the path of this program or of the current folder.
    Find,
    /// The driver was registering signal handlers.
    Catch,
    /// The driver was starting the compiler.
    Start,
    /// The driver was starting GCC's assembler.
    StartAssembler,
    /// The driver was starting cargo, rustc, rustdoc or the linker of rustc.
    StartTool,
}

/// The reason why a call of a compiler cannot be carried out, or was not completed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The command line names no compiler. At most it contains launchers, such as ccache.
    NoCompiler,
    /// The compiler is neither Clang nor GCC.
    UnknownCompiler {
        /// The name of the compiler as the user typed it.
        name: String,
    },
    /// The command line contains something that cannot be instrumented. The variant holds the reason.
    Unsupported(Unsupported),
    /// A crate cannot be instrumented. The variant holds the reason.
    Crate(Unsupported),
    /// A profile that the build uses, or the program that it is of, cannot be used.
    Profile {
        /// The name of the file.
        name: String,
        /// What is wrong with the file.
        error: profkit_data::Error,
    },
    /// Neither `XDG_CACHE_HOME` nor `HOME` is set, so there is no folder for links to this program.
    NoCache,
    /// rustc wrote no assembly file for an object.
    NoAssembly {
        /// The name of the object.
        object: String,
    },
    /// The compiler driver rejected the instrumented assembly, and has reported the reason.
    Assembler {
        /// The name of the program.
        program: String,
    },
    /// A library whose code is to be instrumented cannot be read.
    Library {
        /// The path of the library.
        name: String,
        /// What is wrong with the library.
        problem: String,
    },
    /// A library with instrumented objects cannot be written.
    WriteLibrary(OutputError),
    /// The system reported an error.
    System {
        /// The operation that failed.
        doing: Doing,
        /// The file or program that the operation was for.
        name: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The assembly could not be written to standard output.
    Print(io::Error),
    /// There is no MIP runtime to link.
    Runtime(runtime::Error),
    /// The assembly cannot be instrumented.
    Instrument(instrument::Error),
}

/// The result type of the functions in this module.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn file(doing: Doing, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let name = profkit_data::path_text(path);
        move |error| Error::System { doing, name, error }
    }

    /// Whether the cause is the command line or the environment, and not source code or this machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::NoCompiler
            | Error::UnknownCompiler { .. }
            | Error::Unsupported(_)
            | Error::Crate(_)
            | Error::NoCache => true,
            Error::Runtime(error) => error.is_usage(),
            Error::System { .. }
            | Error::Profile { .. }
            | Error::NoAssembly { .. }
            | Error::Assembler { .. }
            | Error::Library { .. }
            | Error::WriteLibrary(_)
            | Error::Print(_)
            | Error::Instrument(_) => false,
        }
    }

    /// Returns a suggestion to the user; `None` if there is nothing that helps.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Unsupported(unsupported) | Error::Crate(unsupported) => {
                unsupported.hint.map(str::to_owned)
            }
            Error::Profile { error, .. } => error.hint().map(str::to_owned),
            Error::Runtime(error) => error.hint(),
            Error::WriteLibrary(error) => error.hint(),
            Error::UnknownCompiler { .. } => Some(
                "name clang or gcc as the compiler; if this is a linker, let the compiler choose it: -fuse-ld=lld (with cargo: -Clink-arg=-fuse-ld=lld)"
                    .to_owned(),
            ),
            Error::NoCache => Some("set XDG_CACHE_HOME to a folder that can be written".to_owned()),
            Error::NoAssembly { .. } => {
                Some("build without -Cincremental and without other wrappers of rustc".to_owned())
            }
            Error::Assembler { .. } => Some(
                "another compiler may accept it: with cargo, name it as the linker of your target (for example CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=clang)"
                    .to_owned(),
            ),
            Error::System {
                doing: Doing::StartTool,
                name,
                error,
            } if error.kind() == io::ErrorKind::NotFound => Some(format!(
                "install it, or give its path: {}",
                match name.rsplit('/').next().unwrap_or_default() {
                    "cargo" => "CARGO=/path/to/cargo",
                    "rustdoc" => "RUSTDOC=/path/to/rustdoc",
                    _ => "the option linker of the target in .cargo/config.toml",
                }
            )),
            _ => None,
        }
    }

    /// Whether the compiler could not be started because it does not exist.
    pub fn is_missing_compiler(&self) -> bool {
        matches!(self, Error::System { doing: Doing::Start, error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

impl From<runtime::Error> for Error {
    #[cold]
    fn from(error: runtime::Error) -> Self {
        Error::Runtime(error)
    }
}

impl From<instrument::Error> for Error {
    #[cold]
    fn from(error: instrument::Error) -> Self {
        Error::Instrument(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoCompiler => f.write_str("the command line names no compiler"),
            Error::UnknownCompiler { name } => write!(
                f,
                "{name} is neither Clang nor GCC, according to its name and to what it prints for --version"
            ),
            Error::Unsupported(unsupported) | Error::Crate(unsupported) => unsupported.fmt(f),
            Error::Profile { name, error } => write!(f, "{name}: {error}"),
            Error::NoCache => f.write_str(
                "neither XDG_CACHE_HOME nor HOME is set, so there is no folder for the symbolic links through which cargo starts profkit",
            ),
            Error::NoAssembly { object } => {
                write!(f, "rustc wrote no assembly of {object}, so it cannot be instrumented")
            }
            Error::Assembler { program } => {
                write!(f, "{program} cannot assemble the instrumented code (its messages are above)")
            }
            Error::Library { name, problem } => {
                write!(f, "{name}: the library cannot be read: {problem}")
            }
            Error::WriteLibrary(error) => error.fmt(f),
            Error::System { doing, name, error } => {
                let doing = match doing {
                    Doing::Read => "read",
                    Doing::Write => "write",
                    Doing::Make => "make",
                    Doing::MakeFolder => "make a folder in",
                    Doing::Find => "find",
                    Doing::Remove => "remove",
                    Doing::Enter => "enter",
                    Doing::Catch => "catch",
                    Doing::Start | Doing::StartAssembler | Doing::StartTool => "start",
                };
                write!(f, "cannot {doing} {name}: {}", system_text(error))
            }
            Error::Print(error) => {
                write!(f, "cannot write standard output: {}", system_text(error))
            }
            Error::Runtime(error) => error.fmt(f),
            Error::Instrument(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
