//! Links a program or a shared library that rustc has compiled. The work is done as by the command `profkit mip cc`,
//! but within this process ([`cc::Call`]): it adds the runtime and a build id.
use super::rustc::Options;
use super::{Call, cannot_start, join, link_to_us, split, units};
use crate::cc::{self, Doing, Error, Result, Runtime};
use crate::runtime;
use profkit_abi::mip::{record, symbol};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Carries the settings of a link from rustc's call to the linker's: the linker, the target, and the path of the
/// crate's output files without their extension, which is empty if the crate is not instrumented.
const LINK: &str = "PROFKIT_MIP_CARGO_LINK";

/// The user's linker and the target. The linker is a compiler driver, so it can also assemble.
#[derive(Debug)]
pub struct Tools {
    pub linker: OsString,
    pub target: String,
}

impl Tools {
    pub fn of(options: &Options) -> Self {
        Tools {
            // By default, rustc uses `cc` as the linker for all targets that have a MIP runtime.
            linker: options.codegen("linker").unwrap_or("cc").into(),
            target: options.target().unwrap_or_else(|| runtime::HOST.to_owned()),
        }
    }

    /// Assembles a file. `clang` is true if the linker is clang.
    pub fn assemble(&self, clang: bool, assembly: &Path, object: &Path) -> Result<()> {
        let mut command = Command::new(&self.linker);
        let text = fs::read(assembly).map_err(Error::file(Doing::Read, assembly))?;
        if clang {
            command.arg(format!("--target={}", self.target));
        } else if memchr::memmem::find(&text, b"\n\t.file\t1 ").is_some() {
            // GNU as accepts a folder in `.file` only with DWARF 5. Without numbered `.file` directives, the option
            // would make it generate debug info for the assembly itself.
            command.arg("-Wa,--gdwarf-5");
        }
        let status = command
            .args(["-c", "-x", "assembler", "-o"])
            .args([object, assembly])
            .status()
            .map_err(|error| cannot_start(&self.linker, error))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Assembler {
            program: self.linker.to_string_lossy().into_owned(),
        })
    }
}

/// Makes rustc or rustdoc start this program as its linker. `objects` is `None` if the crate is not instrumented.
pub fn replace_linker(
    command: &mut Command,
    links: &Path,
    options: &Options,
    objects: Option<&Path>,
) -> Result<()> {
    let tools = Tools::of(options);
    // rustc derives the syntax of the arguments from the linker's file name.
    let name = Path::new(&tools.linker).file_name().unwrap_or_default();
    let link = links.join("linker").join(name);
    link_to_us(&link)?;
    let mut option = OsString::from("-Clinker=");
    option.push(link);
    let objects = objects.unwrap_or(Path::new("")).into();
    let settings = join([tools.linker, tools.target.into(), objects]);
    command.arg(option).env(LINK, settings);
    Ok(())
}

/// Carries out a call of the linker.
pub fn link(call: &Call, setup: &cc::Setup) -> Result<u8> {
    let mut settings = split(std::env::var_os(LINK).unwrap_or_default()).into_iter();
    let mut next = || settings.next().unwrap_or_default();
    let tools = Tools {
        linker: next(),
        target: next().to_string_lossy().into_owned(),
    };
    let objects = PathBuf::from(next());
    let mut setup = setup.clone();
    if let Runtime::File(file) = &mut setup.runtime {
        *file = call.folder.join(&*file);
    }
    let temporary =
        tempfile::tempdir().map_err(Error::file(Doing::MakeFolder, &std::env::temp_dir()))?;
    if objects.as_os_str().is_empty() {
        let [source, object] = ["idle.s", "idle.o"].map(|name| temporary.path().join(name));
        fs::write(&source, idle_runtime()).map_err(Error::file(Doing::Write, &source))?;
        tools.assemble(cc::is_clang(&tools.linker)?, &source, &object)?;
        setup.runtime = Runtime::File(object);
    } else {
        units::replace_objects(&objects, &tools, &setup.options)?;
    }
    let command: Vec<OsString> = [OsStr::new(&tools.linker)]
        .into_iter()
        .map(OsStr::to_owned)
        .chain(call.args.iter().cloned())
        .collect();
    match cc::Call::parse(&command)? {
        cc::Call::PassOn(call) => Err(call.become_compiler()),
        cc::Call::Work(call) => call.run(&setup, None),
    }
}

/// The assembly of a runtime that never writes a raw file, for build scripts, procedural macros and tests in docs.
fn idle_runtime() -> String {
    let mut text = String::from("\t.data\n\t.balign 8\n");
    for (name, value) in [
        (symbol::HOOK, 0),
        (symbol::ORDINAL, record::FIRST_ORDINAL),
        (symbol::RING_NEXT, 0),
    ] {
        text.push_str(&format!(
            "\t.globl {name}\n\t.hidden {name}\n{name}:\n\t.4byte {value}, 0\n"
        ));
    }
    text.push_str("\t.section .note.GNU-stack,\"\",%progbits\n");
    text
}
