//! The compiler driver whose code is instrumented: what `profkit mip cc` does. docs/mip-cc.md has the user's view.
//!
//! | file | what it is |
//! |---|---|
//! | `parse.rs` | the driver's command line, as far as it must be understood |
//! | `plan.rs` | the steps that replace the call: a pure function |
//! | `run.rs` | running the steps: programs, temporary files, signals |
//! | `bounds.rs` | what GNU ld needs so that `--gc-sections` drops dead functions |
//! | `assembler.rs` | the program that GCC starts as its assembler |
//! | `error.rs` | why a call cannot be carried out, or was not finished |
mod assembler;
mod bounds;
mod error;
mod parse;
mod plan;
mod run;
#[cfg(test)]
mod tests;

pub use assembler::{AssemblerCall, is_assembler};
pub use error::{Doing, Error, Result, Unsupported};

use crate::instrument::Options;
use parse::Parsed;
use run::Compiler;
use std::ffi::OsString;
use std::path::PathBuf;

/// How code is instrumented and linked.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What the instrumenter records.
    pub options: Options,
    /// Which runtime is linked.
    pub runtime: Runtime,
    /// Words by which the front end makes the same options again when GCC starts it as its assembler. See
    /// [`AssemblerCall::words`].
    pub words: Vec<OsString>,
}

/// The runtime that a link gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// The runtime of this crate.
    #[default]
    BuiltIn,
    /// A runtime in this file.
    File(PathBuf),
    /// No runtime.
    None,
}

/// A call of a compiler, parsed.
#[derive(Debug)]
pub enum Call<'c> {
    /// It compiles no code: the compiler gets the words unchanged.
    PassOn(Unchanged<'c>),
    /// It compiles, assembles or links.
    Work(Work<'c>),
}

/// A call whose words the compiler gets unchanged.
#[derive(Debug)]
pub struct Unchanged<'c> {
    compiler: Compiler,
    words: &'c [OsString],
}

/// A call with something to instrument or link.
#[derive(Debug)]
pub struct Work<'c> {
    compiler: Compiler,
    words: &'c [OsString],
    parsed: Box<Parsed>,
}

impl<'c> Call<'c> {
    /// Parses a command line: launchers, the compiler, its arguments.
    ///
    /// # Errors
    /// If it names no compiler, or asks for what cannot be instrumented.
    pub fn parse(command: &'c [OsString]) -> Result<Self> {
        let at = parse::compiler_at(command);
        let Some((launcher_and_compiler, words)) = command.split_at_checked(at + 1) else {
            return Err(Error::NoCompiler);
        };
        let compiler = Compiler::new(launcher_and_compiler, at)?;
        match parse::parse(words, compiler.family).map_err(Error::Unsupported)? {
            parse::Request::PassOn => Ok(Call::PassOn(Unchanged { compiler, words })),
            parse::Request::Work(parsed) => Ok(Call::Work(Work {
                compiler,
                words,
                parsed,
            })),
        }
    }
}

impl Unchanged<'_> {
    /// Replaces this process by the compiler. Returns only if that fails.
    pub fn become_compiler(&self) -> Error {
        self.compiler.replace_us(self.words)
    }
}

impl Work<'_> {
    /// Carries out the command line. The result is the compiler's exit code.
    ///
    /// # Errors
    /// If a program cannot be started, the assembly cannot be instrumented, or there is no runtime.
    pub fn run(&self, setup: &Setup) -> Result<u8> {
        run::run(setup, &self.compiler, &self.parsed, self.words)
    }
}
