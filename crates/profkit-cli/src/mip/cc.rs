//! `profkit mip cc`: a compiler driver that instruments the code it compiles. docs/guide/mip-cc.md describes it for users.
pub use profkit_mip_driver::cc::is_assembler;

use super::options::ModeArgs;
use crate::exit::{self, Failure, Result, Status};
use crate::print::OutputArgs;
use clap::{Args, Parser};
use profkit_mip_driver::cc::{AssemblerCall, Call, Error, Runtime, Setup, UsedProfile, take_flags};
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  profkit mip cc -- clang -O2 -c foo.c -o foo.o
  profkit mip cc --mode calls -- g++-12 -O2 -flto a.cc b.cc -o program
  make CC=\"profkit mip cc -- gcc\" CXX=\"profkit mip cc -- g++\"
  cmake -DCMAKE_C_COMPILER_LAUNCHER=\"profkit;mip;cc;--\" \\
      -DCMAKE_C_LINKER_LAUNCHER=\"profkit;mip;cc;--\" ..

  profkit mip cc -- clang -O2 -fmachine-profile-generate foo.c -o foo
  profkit mip cc -- clang -O2 -fmachine-profile-use=foo.mip foo.c -o foo

The last two lines have flags that were proposed for clang; docs/guide/mip-cc.md lists them.
The messages and the exit code are those of the compiler.";

#[derive(Clone, Debug, Parser)]
#[command(after_help = EXAMPLES)]
pub struct CcArgs {
    /// The compiler and its arguments: clang, clang++, gcc or g++, of any version, by name or path; ccache may come
    /// before it
    #[arg(last = true, required = true, value_name = "COMPILER")]
    command: Vec<OsString>,

    /// The instrumented program that the profile of -fmachine-profile-use= is of; by default the file beside the profile
    /// that has its name without .mip
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    #[command(flatten)]
    code: CodeArgs,
}

#[derive(Clone, Debug, Args)]
pub struct CodeArgs {
    /// Link this runtime: full, small (one file, without patterns, pools and signals), api (no file), or a FILE
    #[arg(long, value_name = "RUNTIME", conflicts_with = "no_runtime")]
    runtime: Option<PathBuf>,

    /// Do not link the runtime
    #[arg(long)]
    no_runtime: bool,

    #[command(flatten)]
    mode: ModeArgs,
}

impl CodeArgs {
    /// Returns the settings of the compiler driver. `words` are these options as the user typed them.
    pub fn setup(&self, words: Vec<OsString>) -> Result<Setup> {
        Ok(Setup {
            instruments: true,
            options: self.mode.options()?,
            runtime: match &self.runtime {
                _ if self.no_runtime => Runtime::None,
                Some(name) => name.clone().into(),
                None => Runtime::default(),
            },
            words,
        })
    }
}

pub fn typed_words(subcommand: &str) -> Vec<OsString> {
    std::env::args_os()
        .skip_while(|word| word != subcommand)
        .skip(1)
        .take_while(|word| word != "--")
        .collect()
}

pub fn run(args: &CcArgs) -> Result {
    let (flags, command) = take_flags(&args.command)?;
    let flags = flags.as_ref();
    if args.binary.is_some() && flags.is_none_or(|flags| flags.profile.is_none()) {
        return Err(Failure::usage(
            "--binary names the program of a profile that is used, and no profile is",
        )
        .with_hint("add -fmachine-profile-use=FILE.mip to the compiler's words"));
    }
    match Call::parse(&command)? {
        Call::PassOn(call) => Err(call.become_compiler().into()),
        Call::Work(call) => {
            let mut words = typed_words("cc");
            words.extend(flags.iter().flat_map(|flags| flags.options.clone()));
            let again: CcArgs = parse_again("cc", &words)?;
            let setup = Setup {
                instruments: flags.is_none_or(|flags| flags.generate),
                ..again.code.setup(words)?
            };
            let used = flags.and_then(|flags| flags.profile.clone());
            let used = used.map(|profile| UsedProfile {
                profile,
                binary: args.binary.clone(),
            });
            Ok(Status::Code(call.run(&setup, used.as_ref())?))
        }
    }
}

/// A parser for the options of a command. It also accepts the output options of profkit, which may stand among the
/// options of the command, and ignores their values.
#[derive(Parser)]
struct Words<T: Args> {
    #[command(flatten)]
    command: T,

    #[command(flatten)]
    _output: OutputArgs,
}

/// Parses the options of `mip cc` or `mip cargo` a second time: the compiler or cargo starts profkit in place of
/// another program, and this process gets the options only as the words that [`Setup::words`] has stored.
pub fn parse_again<T: Args>(subcommand: &str, words: &[OsString]) -> Result<T> {
    let all = [subcommand.into()].into_iter().chain(words.iter().cloned());
    Words::try_parse_from(all.chain(["--".into(), "-".into()]))
        .map(|words| words.command)
        .map_err(|error| Failure::usage(error.to_string().trim_end()))
}

pub fn run_assembler(args: Vec<OsString>) -> u8 {
    match become_assembler(args) {
        Err(failure) => exit::finish(Err(failure)),
        Ok(never) => match never {},
    }
}

fn become_assembler(args: Vec<OsString>) -> Result<Infallible> {
    let call = AssemblerCall::from_environment(args);
    let args: CcArgs = parse_again("as", call.words())?;
    let options = args.code.mode.options()?;
    Ok(call.become_assembler(&options)?)
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        if let Error::Print(error) = &error {
            return Failure::print(error);
        }
        let failure = match &error {
            Error::Crate(unsupported) => {
                Failure::usage(format_args!("profkit mip cargo: {unsupported}"))
            }
            Error::Unsupported(unsupported) => {
                Failure::usage(format_args!("profkit mip cc: {unsupported}"))
            }
            _ if error.is_usage() => Failure::usage(&error),
            _ => Failure::input(&error),
        };
        if error.is_missing_compiler() {
            return failure.with_hint(
                "the compiler's name comes first after --: profkit mip cc -- clang -c foo.c",
            );
        }
        failure.with_hints(error.hint())
    }
}
