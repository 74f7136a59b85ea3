//! Why a job cannot go on.
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a job cannot go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Neither clang nor rustc is installed, or the named one is neither.
    NoCompiler(Option<String>),
    /// The compiler cannot instrument a program: its profile runtime is missing. The text is what it says.
    NoRuntime(String, String),
    /// The compiler cannot make any program. The text is what it says.
    NoProgram(String, String),
    /// Something was asked for that stable rustc does not have.
    RustLacks(&'static str),
    /// perf cannot record anything. The text is what it says.
    NoRecording(String),
    /// The linker cannot be given an order of functions. The text is why.
    NoOrder(String),
    /// The programs that take the place of compilers cannot be written. The text is why.
    NoWrappers(String),
    /// CMake configured the folder of this file before for a compiler, the second text.
    ConfiguredBefore(PathBuf, String),
    /// There is nothing that a benchmark could be run with in turn.
    NothingToExchange,
    /// A program cannot be started.
    Start(String, io::Error),
    /// What should make the build compile everything again ended with a failure. It is of the user, or of profkit.
    Clean {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// Whether the user gave it.
        is_own: bool,
    },
    /// The build failed.
    Build {
        /// How it ended.
        status: ExitStatus,
        /// Whether it was compiled by clang, which the user may never have tried.
        by_clang: bool,
    },
    /// A step ended with a failure.
    Failed(String, ExitStatus),
    /// All training commands ran, and none wrote a profile. The first list is of programs that the build made.
    NothingTrained(Vec<PathBuf>),
    /// All training commands failed, and none wrote a profile.
    AllFailed,
    /// The last build left these programs instrumented: it did not compile again.
    NotRebuilt(Vec<PathBuf>),
    /// The last build wrote none of these programs, which were recorded; if there are none, the first one wrote nothing.
    NotCompiled(Vec<PathBuf>),
    /// No profile could be read.
    Merge(String),
    /// A file or folder cannot be read or written.
    Io(PathBuf, io::Error),
    /// Cargo's configuration cannot be read.
    CargoConfig(String),
}

/// A result whose error ends the job.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Error::NoCompiler(None) => {
                "install clang (13 to 23) or Rust, or name one with --compiler"
            }
            Error::NoCompiler(Some(_)) => "--compiler wants a clang: --compiler clang-22",
            Error::NoRuntime(..) => "install its runtime: Debian's package is libclang-rt-N-dev",
            Error::NoProgram(..) => {
                "try `clang -o a.out FILE.c` by hand: it needs the C library's headers, a linker, and room in TMPDIR"
            }
            Error::RustLacks(_) => "leave out --stages 2 and --sampling for programs of cargo",
            Error::NoRecording(_) => {
                "install perf (Debian's package is linux-perf), and let it record: `sysctl kernel.perf_event_paranoid=2`; without --sampling the build gets counters"
            }
            Error::NoOrder(_) => {
                "install lld (Debian's package is lld-N) and clang of one release; `profkit mip cargo` and `profkit order` are the steps by hand"
            }
            Error::Clean { is_own: true, .. } => {
                "try the command after a build of your own; `rm -rf` of the folder with what is compiled is enough"
            }
            Error::Clean { .. } => {
                "give --clean CMD, with what makes the build compile everything again: `rm -rf` of the folder with what is compiled is enough"
            }
            Error::Build { by_clang: true, .. } => {
                "try the build without profkit, by CC=clang and CXX=clang++: options that only GCC knows have to go"
            }
            Error::NoWrappers(_) => {
                "let XDG_CACHE_HOME be a folder that can be written and stays: a configured build remembers the programs there"
            }
            Error::ConfiguredBefore(..) => {
                "configure in BUILD: `-- sh -c 'cmake --fresh -B DIR … && cmake --build DIR'` (before CMake 3.24: with --clean 'rm -rf DIR')"
            }
            Error::NothingToExchange => {
                "start profkit in the folder that the build writes to, or call the program by its path in --train; without --bench the build is made just the same"
            }
            Error::AllFailed => {
                "what they said is above; try a training command after a build of your own"
            }
            Error::NothingTrained(programs) if programs.is_empty() => {
                "the build did not compile with instrumentation: it had nothing to do (give --clean CMD), or it does not take the compiler from CC, CXX and PATH (a folder that CMake configured before keeps its compiler: configure in BUILD)"
            }
            Error::NothingTrained(_) => {
                "the build is instrumented, so the training ran another program, or one that does not end by returning from main or exit"
            }
            Error::NotRebuilt(_) | Error::NotCompiled(_) => {
                "give --clean CMD, with what makes the build compile everything again"
            }
            Error::CargoConfig(_) => "give the flags in RUSTFLAGS or .cargo/config.toml",
            Error::Merge(_) => {
                "--keep DIR keeps the files; `profkit doctor DIR` says what is wrong with them"
            }
            _ => return None,
        })
    }
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths
        .iter()
        .take(3)
        .map(|path| path.display().to_string())
        .collect();
    match paths.len() {
        0..=3 => shown.join(", "),
        all => format!("{} and {} more", shown.join(", "), all - 3),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoCompiler(None) => write!(f, "neither clang nor rustc was found"),
            Error::NoCompiler(Some(name)) => write!(f, "{name}: this is no clang"),
            Error::NoRuntime(name, said) => write!(f, "{name} cannot instrument a program: {said}"),
            Error::NoProgram(name, said) => {
                write!(f, "{name} cannot make a program with counters: {said}")
            }
            Error::RustLacks(what) => write!(f, "stable rustc lacks {what}"),
            Error::NoRecording(said) => write!(f, "perf cannot record: {said}"),
            Error::NoOrder(why) => write!(f, "functions cannot be placed in order: {why}"),
            Error::Start(name, error) => write!(f, "{name}: cannot be started: {error}"),
            Error::NoWrappers(why) => write!(
                f,
                "the programs that take the place of compilers cannot be written: {why}"
            ),
            Error::ConfiguredBefore(cache, compiler) => write!(
                f,
                "{}: the folder was configured before, for {compiler}, which it keeps: nothing in it is compiled with instrumentation",
                cache.display()
            ),
            Error::NothingToExchange => write!(
                f,
                "no program that the build wrote was found, so --bench has nothing to exchange"
            ),
            Error::Clean {
                command, status, ..
            } => write!(f, "`{command}` ended with {status}"),
            Error::Build { status, .. } => write!(f, "the build ended with {status}"),
            Error::AllFailed => write!(f, "each training command failed, and none wrote a profile"),
            Error::Failed(what, status) => write!(f, "{what} ended with {status}"),
            Error::NothingTrained(programs) => {
                write!(f, "the training wrote no profile")?;
                if !programs.is_empty() {
                    write!(f, "; instrumented are {}", list(programs))?;
                }
                Ok(())
            }
            Error::NotRebuilt(programs) => {
                write!(
                    f,
                    "the build with the profile left instrumented programs: {}",
                    list(programs)
                )
            }
            Error::NotCompiled(programs) if programs.is_empty() => {
                write!(f, "the build wrote no program to record")
            }
            Error::NotCompiled(programs) => write!(
                f,
                "the build with the profile did not compile again: {}",
                list(programs)
            ),
            Error::Merge(text) => write!(f, "no profile of the training can be used: {text}"),
            Error::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Error::CargoConfig(text) => {
                write!(f, "the configuration of cargo cannot be read: {text}")
            }
        }
    }
}

impl std::error::Error for Error {}
