//! Compiles one crate. rustc also writes assembly, which is instrumented and assembled. The new objects replace those
//! of rustc: in a library after rustc has ended, in a program when rustc starts the linker (`link.rs`).
use super::{Call, SAME_NAMES, TRACKED, cannot_start, link, units};
use crate::cc::{self, Doing, Error, Result, Unsupported};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The options of rustc or rustdoc, as names and values. Codegen options have the name `-C`.
#[derive(Debug)]
pub struct Options(Vec<(String, String)>);

impl Options {
    pub fn parse(args: &[OsString]) -> Self {
        let mut found = Vec::new();
        let mut rest = args.iter().map(|word| word.to_string_lossy());
        while let Some(word) = rest.next() {
            let (name, value) = match &*word {
                "-C" | "--codegen" => ("-C", rest.next()),
                "--crate-name" | "--crate-type" | "--emit" | "--out-dir" | "--target"
                | "--print" => (&*word, rest.next()),
                _ => match word.strip_prefix("-C") {
                    Some(value) => ("-C", Some(value.into())),
                    None => match word.split_once('=') {
                        Some(("--codegen", value)) => ("-C", Some(value.into())),
                        Some((name, value)) => (name, Some(value.into())),
                        None => (&*word, None),
                    },
                },
            };
            found.push((name.to_owned(), value.unwrap_or_default().into_owned()));
        }
        Options(found)
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let options = self.0.iter().filter(move |(own, _)| own == name);
        options.flat_map(|(_, value)| value.split(','))
    }

    pub fn codegen(&self, name: &str) -> Option<&str> {
        let options = self.0.iter().rev().filter(|(own, _)| own == "-C");
        options
            .map(|(_, value)| value.split_once('=').unwrap_or((value, "")))
            .find_map(|(own, value)| (own == name).then_some(value))
    }

    /// The target that the command line names. Of a JSON file, its name without the extension.
    pub fn target(&self) -> Option<String> {
        let target = self.values("--target").last()?;
        let stem = Path::new(target).file_stem()?.to_string_lossy();
        Some(if target.ends_with(".json") {
            stem.into_owned()
        } else {
            target.to_owned()
        })
    }

    fn emits(&self, kind: &str) -> bool {
        self.values("--emit")
            .any(|value| value == kind || value.split('=').next() == Some(kind))
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }

    fn has_type(&self, kinds: &[&str]) -> bool {
        self.values("--crate-type")
            .any(|kind| kinds.contains(&kind))
    }

    /// The path of the crate's output files without their extension; `None` if no machine code is made.
    fn outputs(&self) -> Option<PathBuf> {
        let name = self.values("--crate-name").last()?;
        let folder = self.values("--out-dir").last()?;
        let extra = self.codegen("extra-filename").unwrap_or_default();
        (self.emits("link") && !self.has("--print"))
            .then(|| Path::new(folder).join(format!("{name}{extra}")))
    }

    fn is_for_build(&self) -> bool {
        let script = |name: &str| name.starts_with("build_script_");
        !self.has("--test")
            && (self.has_type(&["proc-macro"])
                || self.has_type(&["bin"]) && self.values("--crate-name").any(script))
    }

    /// Whether rustc starts the linker for this command line.
    fn links(&self) -> bool {
        self.has("--test")
            || !self.has("--crate-type")
            || self.has_type(&["bin", "dylib", "cdylib", "proc-macro"])
    }

    fn unsupported(&self) -> Option<Unsupported> {
        let split = self.codegen("split-debuginfo").unwrap_or("off");
        if split != "off" {
            return Some(Unsupported::new(
                format!(
                    "-Csplit-debuginfo={split}: the debug information would be in files that are made without the instrumentation"
                ),
                "keep it in the program: set CARGO_PROFILE_DEV_SPLIT_DEBUGINFO=off (or that of your profile)",
            ));
        }
        if self.links() && self.codegen("linker-plugin-lto").is_some() {
            return Some(Unsupported::new(
                "-Clinker-plugin-lto: the linker makes the machine code, so there is no assembly of it",
                "use lto = \"thin\" or lto = \"fat\" in the profile: then rustc makes the machine code",
            ));
        }
        None
    }
}

/// Replaces each argument `@FILE` by those in the file, one per line, as cargo writes long command lines.
fn expand(args: &[OsString]) -> Result<Vec<OsString>> {
    let mut all = Vec::new();
    for word in args {
        let Some(name) = word.as_bytes().strip_prefix(b"@") else {
            all.push(word.clone());
            continue;
        };
        let file = Path::new(OsStr::from_bytes(name));
        let text = fs::read_to_string(file).map_err(Error::file(Doing::Read, file))?;
        all.extend(text.lines().map(OsString::from));
    }
    Ok(all)
}

pub fn compile(call: &Call, setup: &cc::Setup) -> Result<u8> {
    let Some((rustc, args)) = call.args.split_first() else {
        return Err(Error::NoCompiler);
    };
    let args = expand(args)?;
    let options = Options::parse(&args);
    let mut command = Command::new(rustc);
    command.args(&args);
    if args == ["-vV"] && call.words.iter().any(|word| word == "--dependencies") {
        return version(command);
    }
    let Some(outputs) = options.outputs() else {
        let error = command.exec();
        return Err(cannot_start(rustc, error));
    };
    let own = !options.is_for_build();
    if own && let Some(reason) = options.unsupported() {
        return Err(Error::Crate(reason));
    }
    // With `lto`, libraries are bitcode: rustc makes machine code when it compiles the program.
    let has_code = own && options.codegen("linker-plugin-lto").is_none();
    let objects = has_code.then_some(outputs.as_path());
    if options.links() {
        link::replace_linker(&mut command, &call.links, &options, objects)?;
    }
    if has_code {
        command.arg("--emit=asm");
    }
    let status = command
        .status()
        .map_err(|error| cannot_start(rustc, error))?;
    if let Some(code) = cc::exit_code(status) {
        units::remove_assembly(&outputs)?;
        return Ok(code);
    }
    if has_code {
        let tools = link::Tools::of(&options);
        for extension in ["rlib", "a"] {
            let name = outputs.file_name().unwrap_or_default().to_string_lossy();
            let library = outputs.with_file_name(format!("lib{name}.{extension}"));
            if library.exists() {
                units::replace_members(&library, &outputs, &tools, &setup.options)?;
            }
        }
        if !options.emits("asm") {
            units::remove_assembly(&outputs)?;
        }
    }
    if own {
        track(&outputs)?;
    }
    Ok(0)
}

/// Adds [`TRACKED`] to the crate's dependency file. This also marks the crate as instrumented ([`is_tracked`]).
fn track(outputs: &Path) -> Result<()> {
    let file = dependency_file(outputs);
    let line = format!(
        "\n# env-dep:{TRACKED}={}\n",
        std::env::var(TRACKED).unwrap_or_default()
    );
    match fs::OpenOptions::new().append(true).open(&file) {
        // There is no dependency file, because the command line did not ask for one.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        opened => opened
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(Error::file(Doing::Write, &file)),
    }
}

pub fn is_tracked(outputs: &Path) -> bool {
    let mark = format!("# env-dep:{TRACKED}=");
    fs::read_to_string(dependency_file(outputs))
        .is_ok_and(|text| text.lines().any(|line| line.starts_with(&mark)))
}

fn dependency_file(outputs: &Path) -> PathBuf {
    let mut name = outputs.to_owned().into_os_string();
    name.push(".d");
    name.into()
}

/// Answers `-vV` with one more line, a hash of the settings, so that cargo compiles all crates again if they changed. What
/// the answer is also decides the hashes in the names of functions.
fn version(mut command: Command) -> Result<u8> {
    let output = command
        .output()
        .map_err(|error| cannot_start(command.get_program(), error))?;
    let line = match std::env::var_os(SAME_NAMES) {
        Some(_) => String::new(),
        None => format!(
            "profkit-mip: {}\n",
            std::env::var(TRACKED).unwrap_or_default()
        ),
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(&[&*output.stdout, line.as_bytes()].concat())
        .map_err(Error::Print)?;
    Ok(cc::exit_code(output.status).unwrap_or(0))
}
