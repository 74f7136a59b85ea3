//! The compiler driver `profkit mip cc`, which instruments the code that it compiles. [docs/guide/mip-cc.md] describes its
//! use.
//!
//! | file | content |
//! |---|---|
//! | `parse.rs` | parses the driver's command line |
//! | `plan.rs` | plans the steps that replace the call of the compiler; a pure function |
//! | `run.rs` | carries out the steps: programs, temporary files, signals |
//! | `bounds.rs` | makes the linker script with which GNU ld's `--gc-sections` removes unused functions |
//! | `lto.rs` | links with Clang's link-time optimisation: instruments the assembly that the linker writes |
//! | `assembler.rs` | replaces the assembler that GCC starts |
//! | `error.rs` | the errors of the driver |
//!
//! [docs/guide/mip-cc.md]: https://github.com/profkit/profkit/blob/main/docs/guide/mip-cc.md
mod assembler;
mod bounds;
mod error;
mod flags;
mod lto;
mod parse;
mod plan;
mod run;
#[cfg(test)]
mod tests;
mod used;

pub use assembler::{AssemblerCall, is_assembler};
pub use error::{Doing, Error, Result, Unsupported};
pub use flags::{Flags, take as take_flags};
pub(crate) use run::{exit_code, instrument_file, is_clang};
pub use used::UsedProfile;

use crate::runtime::{self, Variant};
use parse::Parsed;
use profkit_mip::instrument::Options;
use run::Compiler;
use std::ffi::OsString;
use std::path::PathBuf;

/// The settings of the compiler driver: how code is instrumented and linked.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Whether code is instrumented. If not, the compiler only uses a profile.
    pub instruments: bool,
    /// The options of the instrumenter: what it records, and in which functions.
    pub options: Options,
    /// The MIP runtime to link.
    pub runtime: Runtime,
    /// The words that give the same [`Options`] again, in the process that GCC starts as the assembler.
    pub words: Vec<OsString>,
}

/// The MIP runtime that is linked to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// A variant of the MIP runtime. A shared library never gets the small variant, but the full one.
    BuiltIn(Variant),
    /// A static library or object file with the MIP runtime.
    File(PathBuf),
    /// No runtime is linked.
    None,
}

impl Default for Runtime {
    fn default() -> Self {
        Runtime::BuiltIn(Variant::Full)
    }
}

impl From<PathBuf> for Runtime {
    fn from(name: PathBuf) -> Self {
        runtime::variant_of(name.as_os_str()).map_or(Runtime::File(name), Runtime::BuiltIn)
    }
}

/// A parsed call of a compiler.
#[derive(Debug)]
pub enum Call<'c> {
    /// The call compiles no code. The compiler is started with the unchanged words.
    PassOn(Unchanged<'c>),
    /// The call compiles, assembles or links.
    Work(Work<'c>),
}

/// A call of a compiler that is executed with unchanged words.
#[derive(Debug)]
pub struct Unchanged<'c> {
    compiler: Compiler,
    words: &'c [OsString],
}

/// A call of a compiler that has something to instrument or to link.
#[derive(Debug)]
pub struct Work<'c> {
    compiler: Compiler,
    words: &'c [OsString],
    parsed: Box<Parsed>,
}

impl<'c> Call<'c> {
    /// Parses a command line, which consists of launchers (such as ccache), the compiler and its arguments.
    ///
    /// # Errors
    /// If the command line names no compiler, or contains something that cannot be instrumented.
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
    /// Executes the compiler in place of this process. Returns only if that fails.
    pub fn become_compiler(&self) -> Error {
        self.compiler.replace_us(self.words)
    }
}

impl Work<'_> {
    /// Carries out the command line. If a profile is used, the compiler and its linker get what they can use of it; what
    /// they cannot use is said on standard error. Returns the exit code for this process.
    ///
    /// # Errors
    /// If a program cannot be started, the assembly cannot be instrumented, or there is no runtime.
    pub fn run(&self, setup: &Setup, used: Option<&UsedProfile>) -> Result<u8> {
        run::run(setup, used, &self.compiler, &self.parsed, self.words)
    }
}
