//! Replaces the assembler that GCC starts. GCC's option `-B` names a folder in which `as` is a link to this program.
//! The program instruments the assembly, and then executes the real assembler.
use super::error::{Doing, Error, Result};
use super::run::{Compiler, instrument_file};
use profkit_mip::instrument::Options;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Carries settings to this program when GCC starts it as the assembler: the real assembler, the target triple, and the
/// words of the front end, separated by [`SEPARATOR`].
pub const ENVIRONMENT: &str = "PROFKIT_MIP_ASSEMBLER";
const SEPARATOR: u8 = 0x1f;

/// Makes a link `as` to this program in `folder`, and returns the value for [`ENVIRONMENT`]. `words` are the compiler's
/// arguments; [`AssemblerCall::words`] later returns `setup`.
pub fn prepare(
    folder: &Path,
    compiler: &Compiler,
    words: &[OsString],
    setup: &[OsString],
) -> Result<OsString> {
    let us = crate::this_program::this_program().map_err(|error| Error::System {
        doing: Doing::Find,
        name: "this program".to_owned(),
        error,
    })?;
    let link = folder.join("as");
    std::os::unix::fs::symlink(us, &link).map_err(Error::file(Doing::Make, &link))?;
    let ask = |question: &str| {
        let mut words = words.to_vec();
        words.push(question.into());
        compiler.ask(&words)
    };
    let mut value = OsString::from(ask("-print-prog-name=as")?);
    for word in [OsString::from(ask("-dumpmachine")?)]
        .into_iter()
        .chain(setup.iter().cloned())
    {
        value.push(OsStr::from_bytes(&[SEPARATOR]));
        value.push(word);
    }
    Ok(value)
}

/// Whether this program was started in place of GCC's assembler.
pub fn is_assembler(program: &OsStr) -> bool {
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == "as")
        && std::env::var_os(ENVIRONMENT).is_some()
}

/// A call in which GCC starts this program in place of its assembler.
#[derive(Debug)]
pub struct AssemblerCall {
    /// The assembler that GCC would have started.
    real: OsString,
    /// The target triple of the compiler.
    target: OsString,
    words: Vec<OsString>,
    /// The name by which this program was started, then the assembler's arguments.
    args: Vec<OsString>,
}

impl AssemblerCall {
    /// Reads the settings of this call. `args` begin with the program's name.
    pub fn from_environment(args: Vec<OsString>) -> Self {
        let value = std::env::var_os(ENVIRONMENT).unwrap_or_default().into_vec();
        let mut words = value
            .split(|byte| *byte == SEPARATOR)
            .map(|word| OsString::from_vec(word.to_vec()));
        AssemblerCall {
            real: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            words: words.collect(),
            args,
        }
    }

    /// The words of the front end, as in [`Setup::words`](super::Setup::words) of the process that started GCC.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Instruments the assembly and executes the real assembler in place of this process. Returns only if that fails.
    ///
    /// # Errors
    /// If the assembly cannot be read or instrumented, or the assembler cannot be started.
    pub fn become_assembler(self, options: &Options) -> Result<Infallible> {
        let AssemblerCall {
            real,
            target,
            mut args,
            ..
        } = self;
        let folder = args.first().map(PathBuf::from).unwrap_or_default();
        args.drain(..args.len().min(1));
        let asks = args
            .iter()
            .any(|word| word == "--version" || word == "--help" || word == "-v" && args.len() == 1);
        if !asks {
            // GCC names the input last. With `-pipe`, GCC names no input or the input `-`.
            let is_file = args.last().is_some_and(|last| {
                last != "-"
                    && !last.as_bytes().starts_with(b"-")
                    && args
                        .len()
                        .checked_sub(2)
                        .and_then(|at| args.get(at))
                        .is_none_or(|before| before != "-o")
            });
            let from = if is_file {
                args.pop()
            } else {
                args.pop_if(|last| last == "-")
            }
            .unwrap_or_else(|| "-".into());
            // Messages must show the name of a user's file; that of GCC's temporary file does not matter.
            let marked = is_file && !Path::new(&from).starts_with(std::env::temp_dir());
            let to = folder.with_file_name(format!("{}.s", std::process::id()));
            let mut options = options.clone();
            options.bytecode = true;
            instrument_file(Path::new(&from), &to, &from, marked, &options, || {
                Ok(target.to_string_lossy().into_owned())
            })?;
            args.push(to.into());
        }
        let error = Command::new(&real)
            .args(&args)
            .env_remove(ENVIRONMENT)
            .exec();
        Err(Error::System {
            doing: Doing::StartAssembler,
            name: real.to_string_lossy().into_owned(),
            error,
        })
    }
}
