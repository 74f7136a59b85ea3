//! `profkit mip cargo`, which runs cargo so that the crates that it compiles are instrumented. [docs/guide/mip-cargo.md]
//! describes its use.
//!
//! Cargo starts this program in place of rustc, rustc starts it in place of the linker, and cargo starts it in place of
//! rustdoc. Each of these calls is a [`Call`].
//!
//! | file | content |
//! |---|---|
//! | `rustc.rs` | one crate: rustc also writes assembly, and the objects in libraries are replaced |
//! | `link.rs` | one link: the objects of the crate are replaced, and the runtime is added |
//! | `units.rs` | codegen units: from rustc's assembly to instrumented objects |
//!
//! [docs/guide/mip-cargo.md]: https://github.com/profkit/profkit/blob/main/docs/guide/mip-cargo.md
mod link;
mod rustc;
#[cfg(test)]
mod tests;
mod units;

use crate::cc::{self, Doing, Error, Result};
use crate::runtime::cache_folder;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A hash of the settings. Each instrumented crate depends on this variable, so that cargo compiles it again.
const TRACKED: &str = "PROFKIT_MIP_CARGO";

/// The variable that is set if functions are to have the names of a plain build.
const SAME_NAMES: &str = "PROFKIT_MIP_SAME_NAMES";
/// Carries the settings of [`run`] to later calls, separated by [`SEPARATOR`]: the folder with links to this program,
/// the current folder, the user's rustdoc, and the command-line words.
const SETTINGS: &str = "PROFKIT_MIP_CARGO_SETTINGS";
const SEPARATOR: u8 = 0x1f;

/// The settings of `profkit mip cargo`.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How code is instrumented and linked. `cc.words` are the words before cargo's arguments ([`Call::words`]).
    pub cc: cc::Setup,
    /// Whether all crates of the program are instrumented. If false, only the crates of the workspace are.
    pub dependencies: bool,
    /// Whether functions have the names that they have in a build without profkit: only with `dependencies`.
    pub same_names: bool,
}

fn join(words: impl IntoIterator<Item = OsString>) -> OsString {
    let words: Vec<OsString> = words.into_iter().collect();
    words.join(OsStr::from_bytes(&[SEPARATOR]))
}

fn split(value: OsString) -> Vec<OsString> {
    let bytes = value.into_vec();
    let words = bytes.split(|byte| *byte == SEPARATOR);
    words
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect()
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn cannot_start(program: &OsStr, error: io::Error) -> Error {
    Error::System {
        doing: Doing::StartTool,
        name: program.to_string_lossy().into_owned(),
        error,
    }
}

fn this_program() -> Result<PathBuf> {
    crate::this_program::this_program().map_err(Error::file(Doing::Find, Path::new("this program")))
}

fn link_to_us(link: &Path) -> Result<()> {
    let us = this_program()?;
    if fs::read_link(link).is_ok_and(|old| old == us) {
        return Ok(());
    }
    let made = link
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| std::os::unix::fs::symlink(us, link));
    match made {
        // Another process has made this link, which is right: its path has a hash of this program's path.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(Error::file(Doing::Make, link)),
    }
}

/// Messages about variables that name a wrapper of rustc: cargo starts profkit instead of it.
pub fn notes() -> impl Iterator<Item = String> {
    let names = ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"];
    names.into_iter().filter_map(|name| {
        let wrapper = std::env::var_os(name).filter(|wrapper| !wrapper.is_empty())?;
        let wrapper = wrapper.display();
        Some(format!(
            "{name}={wrapper} is not used: cargo starts profkit in its place"
        ))
    })
}

/// Executes cargo with these arguments in place of this process. Returns only if that fails.
///
/// # Errors
/// If there is no folder for links to this program, or cargo cannot be started.
pub fn run(arguments: &[OsString], setup: &Setup) -> Error {
    match prepare(arguments, setup) {
        Ok(mut command) => {
            let error = command.exec();
            cannot_start(command.get_program(), error)
        }
        Err(error) => error,
    }
}

fn prepare(arguments: &[OsString], setup: &Setup) -> Result<Command> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let us = this_program()?;
    let current = Path::new("the current folder");
    let here = std::env::current_dir().map_err(Error::file(Doing::Find, current))?;
    // Cargo compares the path of the wrapper with that of the last build, so the path must be the same in all builds.
    let links = cache_folder()
        .ok_or(Error::NoCache)?
        .join("profkit")
        .join(format!("mip-cargo-{:016x}", hash(&us)));
    let (rustc, rustdoc) = (links.join("rustc"), links.join("rustdoc"));
    for link in [&rustc, &rustdoc] {
        link_to_us(link)?;
    }
    let options = format!("{:?} {:?}", setup.cc.options, setup.cc.runtime);
    let tracked = hash((env!("CARGO_PKG_VERSION"), options));
    let settings = [
        links.into(),
        here.into(),
        variable("RUSTDOC").unwrap_or_else(|| "rustdoc".into()),
    ];
    let cargo = variable("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(arguments)
        .env(TRACKED, format!("{tracked:016x}"))
        .env(
            SETTINGS,
            join(settings.into_iter().chain(setup.cc.words.iter().cloned())),
        )
        // With incremental compilation, rustc writes no assembly for code from its cache.
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTDOC", rustdoc);
    if setup.dependencies {
        command
            .env("RUSTC_WRAPPER", rustc)
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            // With the wrapper, the answer of rustc to `-vV` depends on the settings (see `rustc::version`). The key of
            // cargo's cache of such answers does not contain these settings, so the cache is turned off.
            .env("CARGO_CACHE_RUSTC_INFO", "0");
        if setup.same_names {
            // Names also depend on this variable, empty or not.
            command
                .env(SAME_NAMES, "1")
                .env_remove("RUSTC_WORKSPACE_WRAPPER");
        }
    } else {
        command
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", rustc);
    }
    Ok(command)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Rustc,
    Rustdoc,
    Linker,
}

/// A call in which cargo or rustc starts this program in place of rustc, rustdoc or the linker.
#[derive(Debug)]
pub struct Call {
    role: Role,
    links: PathBuf,
    folder: PathBuf,
    rustdoc: OsString,
    words: Vec<OsString>,
    args: Vec<OsString>,
}

impl Call {
    /// What this process must do if cargo or rustc started it in place of rustc, rustdoc or the linker; otherwise
    /// `None`. `args` begin with the program's name.
    pub fn of_process(args: &[OsString]) -> Option<Self> {
        let (program, args) = args.split_first()?;
        let mut settings = split(std::env::var_os(SETTINGS)?).into_iter();
        let links = PathBuf::from(settings.next()?);
        let program = Path::new(program);
        let role = if program == links.join("rustc") {
            Role::Rustc
        } else if program == links.join("rustdoc") {
            Role::Rustdoc
        } else if program.parent() == Some(&links.join("linker")) {
            Role::Linker
        } else {
            return None;
        };
        Some(Call {
            role,
            links,
            folder: settings.next()?.into(),
            rustdoc: settings.next()?,
            words: settings.collect(),
            args: args.to_vec(),
        })
    }

    /// Returns the command-line words of `profkit mip cargo`, up to cargo's arguments.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Calls a function in the folder in which `profkit mip cargo` was started, then returns to the current folder.
    /// Relative paths in the command-line words start from that first folder.
    ///
    /// # Errors
    /// If one of the two folders cannot be entered.
    pub fn in_folder<T>(&self, function: impl FnOnce() -> T) -> Result<T> {
        let enter = |folder: &Path| {
            std::env::set_current_dir(folder).map_err(Error::file(Doing::Enter, folder))
        };
        let here = std::env::current_dir().map_err(Error::file(Doing::Find, Path::new(".")))?;
        enter(&self.folder)?;
        let value = function();
        enter(&here)?;
        Ok(value)
    }

    /// Carries out the call. Returns the exit code for this process.
    ///
    /// # Errors
    /// If a program cannot be started, or the crate cannot be instrumented or linked.
    pub fn run(&self, setup: &cc::Setup) -> Result<u8> {
        match self.role {
            Role::Rustc => rustc::compile(self, setup),
            Role::Rustdoc => Err(self.document()),
            Role::Linker => link::link(self, setup),
        }
    }

    /// Executes rustdoc. Its test programs get a runtime that writes no raw files: only the map of the same program
    /// fits a raw file, and each test is a program of its own.
    fn document(&self) -> Error {
        let mut command = Command::new(&self.rustdoc);
        command.args(&self.args);
        if self.args.iter().any(|word| word == "--test") {
            let linked = rustc::Options::parse(&self.args);
            if let Err(error) = link::replace_linker(&mut command, &self.links, &linked, None) {
                return error;
            }
        }
        let error = command.exec();
        cannot_start(&self.rustdoc, error)
    }
}
