//! What GCC starts as its assembler: this program by the name `as`, in a folder that `-B` names. It instruments the
//! assembly and becomes the real assembler.
use super::CcArgs;
use super::run::{Compiler, instrument_file};
use crate::exit::{self, Failure, Result};
use clap::Parser;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The environment that tells the assembler what to do: the real assembler, the triple, then the words before `--`,
/// parted by [`SEPARATOR`].
pub const ENVIRONMENT: &str = "PROFKIT_MIP_ASSEMBLER";
const SEPARATOR: u8 = 0x1f;

/// Puts the name `as` into the folder, and gives the value of [`ENVIRONMENT`].
pub fn prepare(folder: &Path, compiler: &Compiler, words: &[OsString]) -> Result<OsString> {
    let us = std::env::current_exe()
        .map_err(|error| Failure::io("cannot find", "this program", &error))?;
    let link = folder.join("as");
    std::os::unix::fs::symlink(us, &link)
        .map_err(|error| Failure::io("cannot make", link.display(), &error))?;
    let ask = |question: &str| {
        let mut words = words.to_vec();
        words.push(question.into());
        compiler.ask(&words)
    };
    let mut value = OsString::from(ask("-print-prog-name=as")?);
    let typed = std::env::args_os()
        .skip_while(|word| word != "cc")
        .skip(1)
        .take_while(|word| word != "--");
    for word in [OsString::from(ask("-dumpmachine")?)]
        .into_iter()
        .chain(typed)
    {
        value.push(OsStr::from_bytes(&[SEPARATOR]));
        value.push(word);
    }
    Ok(value)
}

/// Whether the program was started as GCC's assembler.
pub fn is_assembler(program: &OsStr) -> bool {
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == "as")
        && std::env::var_os(ENVIRONMENT).is_some()
}

#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    cc: CcArgs,
}

/// Runs as the assembler.
pub fn run(args: Vec<OsString>) -> ExitCode {
    match become_assembler(args) {
        Err(failure) => exit::finish(Err(failure)),
        Ok(never) => match never {},
    }
}

fn become_assembler(mut args: Vec<OsString>) -> Result<std::convert::Infallible> {
    let value = std::env::var_os(ENVIRONMENT).unwrap_or_default().into_vec();
    let mut words = value
        .split(|byte| *byte == SEPARATOR)
        .map(|word| OsString::from_vec(word.to_vec()));
    let real = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let command_line = [OsString::from("as")]
        .into_iter()
        .chain(words)
        .chain(["--".into(), "as".into()]);
    let options = Options::try_parse_from(command_line)
        .map_err(|error| Failure::usage(error.to_string().trim_end()))?
        .cc
        .mode
        .options()?;
    let folder = args.first().map(PathBuf::from).unwrap_or_default();
    args.drain(..args.len().min(1));
    let asks = args
        .iter()
        .any(|word| word == "--version" || word == "--help" || word == "-v" && args.len() == 1);
    if !asks {
        // GCC names the input last; with -pipe there is none or -.
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
        // A name of the user's own stays in the assembler's messages; GCC's temporary ones need not.
        let marked = is_file && !Path::new(&from).starts_with(std::env::temp_dir());
        let to = folder.with_file_name(format!("{}.s", std::process::id()));
        instrument_file(Path::new(&from), &to, &from, marked, &options, || {
            Ok(target.to_string_lossy().into_owned())
        })?;
        args.push(to.into());
    }
    let error = Command::new(&real)
        .args(&args)
        .env_remove(ENVIRONMENT)
        .exec();
    Err(Failure::io("cannot start", real.to_string_lossy(), &error))
}
