//! Carries out a plan of the compiler driver: starts programs, makes temporary files, handles signals.
use super::error::{Doing, Error, Result};
use super::parse::{self, Family, Parsed, Stop};
use super::plan::{self, Group, Places, Step};
use super::used::UsedProfile;
use super::{Runtime, Setup, assembler, bounds, lto};
use crate::runtime::{self, Variant};
use profkit_merge::files::response;
use profkit_mip::instrument::{Options, Target, instrument};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// Longer commands get a response file if the user's had one. The system's own limit is much larger.
const LONG_COMMAND: usize = 32 << 10;

/// The compiler that the user named, with its launchers.
#[derive(Debug)]
pub struct Compiler {
    program: OsString,
    /// The words between the started program and the user's arguments: launchers and the compiler after a launcher.
    before: Vec<OsString>,
    pub family: Family,
}

impl Compiler {
    /// Finds out which compiler `words` name: launchers, and then the compiler at index `at`.
    pub fn new(words: &[OsString], at: usize) -> Result<Self> {
        let (Some(program), Some(name)) = (words.first(), words.get(at)) else {
            return Err(Error::NoCompiler);
        };
        let mut compiler = Compiler {
            program: program.clone(),
            before: words.get(1..).unwrap_or_default().to_vec(),
            family: Family::Gcc,
        };
        compiler.family = match parse::family(name) {
            Some(family) => family,
            // The name does not show the family: it is `cc`, `c++` or a name that only a distribution uses.
            None => {
                let output = compiler.ask(&["--version".into()])?;
                if output.contains("clang") {
                    Family::Clang
                } else if output.contains("Free Software Foundation") {
                    Family::Gcc
                } else {
                    return Err(Error::UnknownCompiler {
                        name: name.to_string_lossy().into_owned(),
                    });
                }
            }
        };
        Ok(compiler)
    }

    pub fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).args(words);
        command
    }

    pub fn cannot_start(&self, error: io::Error) -> Error {
        Error::System {
            doing: Doing::Start,
            name: self.name(),
            error,
        }
    }

    pub fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Starts the compiler with these words, waits for it, and returns what it wrote to standard output.
    pub fn ask(&self, words: &[OsString]) -> Result<String> {
        let output = self
            .command(words)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(|error| self.cannot_start(error))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Executes the compiler in place of this process. Returns only if that fails.
    pub fn replace_us(&self, words: &[OsString]) -> Error {
        let error = self.command(words).exec();
        self.cannot_start(error)
    }

    /// Returns the number of the compiler's release, such as 22; `None` if the compiler prints none.
    pub fn release(&self) -> Result<Option<u32>> {
        let version = self.ask(&["-dumpversion".into()])?;
        Ok(version.split('.').next().and_then(|it| it.parse().ok()))
    }

    /// Returns the target triple for which the compiler compiles with these words.
    pub fn target(&self, words: &[OsString]) -> Result<String> {
        let mut words = words.to_vec();
        words.push("-dumpmachine".into());
        self.ask(&words)
    }

    /// The further words of the linker. A linker script that they name is written to `folder`.
    fn linker_words(
        &self,
        parsed: &Parsed,
        has_runtime: bool,
        folder: &Path,
    ) -> Result<Vec<OsString>> {
        let file = folder.join("records.ld");
        let words = bounds::words(parsed, has_runtime, &file);
        if words.is_empty() || !bounds::is_gnu_ld(&self.ask(&bounds::question(parsed))?) {
            return Ok(Vec::new());
        }
        fs::write(&file, bounds::script()).map_err(Error::file(Doing::Write, &file))?;
        Ok(words)
    }
}

/// Whether a compiler driver (the path or name of a program) is Clang.
pub fn is_clang(driver: &OsString) -> Result<bool> {
    match Compiler::new(std::slice::from_ref(driver), 0) {
        Ok(compiler) => Ok(compiler.family == Family::Clang),
        Err(Error::System { name, error, .. }) => Err(Error::System {
            doing: Doing::StartTool,
            name,
            error,
        }),
        Err(error) => Err(error),
    }
}

struct Cleaner(Arc<Mutex<Vec<PathBuf>>>);

impl Cleaner {
    fn start(temporary: &Path) -> Result<Self> {
        let paths = Arc::new(Mutex::new(vec![temporary.to_owned()]));
        let mut signals =
            Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|error| Error::System {
                doing: Doing::Catch,
                name: "signals".to_owned(),
                error,
            })?;
        let ours = Arc::clone(&paths);
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                for path in ours.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    // The path may be of a file or of a folder, so one of these two calls fails.
                    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
                }
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
        Ok(Cleaner(paths))
    }

    /// The output files of the current steps, which are removed if a signal ends the process.
    fn set_outputs(&self, outputs: &[PathBuf]) {
        let mut paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.truncate(1);
        paths.extend_from_slice(outputs);
    }
}

/// Carries out a command line of the compiler driver. Returns the exit code.
pub fn run(
    setup: &Setup,
    used: Option<&UsedProfile>,
    compiler: &Compiler,
    parsed: &Parsed,
    words: &[OsString],
) -> Result<u8> {
    let temporary = tempfile::Builder::new()
        .prefix("profkit-cc-")
        .tempdir()
        .map_err(Error::file(Doing::MakeFolder, &std::env::temp_dir()))?;
    let cleaner = Cleaner::start(temporary.path())?;
    let with_profile = use_profile(used, compiler, parsed, words, temporary.path())?;
    let (parsed, words) = match &with_profile {
        Some((parsed, words)) => (&**parsed, &**words),
        None => (parsed, words),
    };
    if !setup.instruments {
        let status = compiler.command(words).status();
        let status = status.map_err(|error| compiler.cannot_start(error))?;
        return Ok(exit_code(status).unwrap_or(0));
    }
    let links = matches!(parsed.stop, Stop::Link | Stop::PartialLink);
    // GCC passes all code through its assembler, with link-time optimisation too.
    let lto = links && compiler.family == Family::Clang && lto::is_needed(parsed)?;
    let parsed = &Parsed {
        lto: lto || parsed.lto,
        ..parsed.clone()
    };
    let runtime = match &setup.runtime {
        _ if parsed.stop != Stop::Link => None,
        Runtime::None => None,
        Runtime::File(file) => Some(file.clone()),
        Runtime::BuiltIn(variant) => {
            let target = compiler.target(words)?;
            // The small runtime has one file name for all images of a process, so a library gets the full one.
            let for_library = *variant == Variant::Small && parsed.is_library;
            let variant = if for_library { Variant::Full } else { *variant };
            Some(runtime::place(&target, variant, temporary.path())?)
        }
    };
    let linker = compiler.linker_words(parsed, runtime.is_some(), temporary.path())?;
    let places = Places {
        temporary: temporary.path(),
        runtime: runtime.as_deref(),
        linker: &linker,
    };
    let mut job = Job {
        compiler,
        options: &setup.options,
        words,
        folder: temporary.path(),
        rsp: 0,
        assembler: None,
        parsed,
    };
    if compiler.family == Family::Gcc {
        job.assembler = Some(assembler::prepare(
            temporary.path(),
            compiler,
            words,
            &setup.words,
        )?);
    }
    let plan = plan::plan(parsed, words, compiler.family, places);
    for folder in &plan.folders {
        fs::create_dir_all(folder).map_err(Error::file(Doing::Make, folder))?;
    }
    let mut code = None;
    for group in &plan.groups {
        cleaner.set_outputs(&group.discard);
        match job.group(group) {
            Ok(None) => {}
            Ok(Some(failed)) => code = code.max(Some(failed)),
            Err(error) => {
                discard(group);
                return Err(error);
            }
        }
        cleaner.set_outputs(&[]);
    }
    if let (None, Some(link)) = (code, &plan.link) {
        code = if lto {
            lto::link(&mut job, link)?
        } else {
            job.run(link)?
        };
    }
    Ok(code.unwrap_or(0))
}

/// Adds the words with which the compiler uses a profile. Says what of the profile cannot be used.
fn use_profile(
    used: Option<&UsedProfile>,
    compiler: &Compiler,
    parsed: &Parsed,
    words: &[OsString],
    folder: &Path,
) -> Result<Option<(Box<Parsed>, Vec<OsString>)>> {
    let Some(used) = used else {
        return Ok(None);
    };
    let made = used.words(compiler, parsed, folder)?;
    for note in made.notes {
        // Without standard error, the notes are lost and the build goes on.
        let _ = writeln!(io::stderr(), "note: {note}");
    }
    let words = [words, &made.words].concat();
    match parse::parse(&words, compiler.family).map_err(Error::Unsupported)? {
        parse::Request::Work(parsed) => Ok(Some((parsed, words))),
        parse::Request::PassOn => Ok(None),
    }
}

fn discard(group: &Group) {
    for path in &group.discard {
        // The removal fails if the file was never written. This failure does not matter.
        let _ = fs::remove_file(path);
    }
}

pub struct Job<'a> {
    pub compiler: &'a Compiler,
    pub options: &'a Options,
    pub words: &'a [OsString],
    pub folder: &'a Path,
    rsp: usize,
    /// The value of [`assembler::ENVIRONMENT`] for GCC, which starts this program as its assembler.
    assembler: Option<OsString>,
    pub parsed: &'a Parsed,
}

impl Job<'_> {
    /// Carries out the steps of a group. Returns the exit code of the step that failed, or `None` if all succeeded.
    fn group(&mut self, group: &Group) -> Result<Option<u8>> {
        for step in &group.steps {
            let failed = match step {
                Step::Run(words) => self.run(words)?,
                Step::Instrument {
                    from,
                    to,
                    source,
                    marked,
                } => {
                    self.instrument(from, to, source, *marked)?;
                    None
                }
                Step::Show(file) => {
                    let bytes = fs::read(file).map_err(Error::file(Doing::Read, file))?;
                    io::stdout()
                        .lock()
                        .write_all(&bytes)
                        .map_err(Error::Print)?;
                    None
                }
            };
            if failed.is_some() {
                discard(group);
                return Ok(failed);
            }
        }
        Ok(None)
    }

    /// Starts the compiler. Returns its exit code, or `None` if it succeeded.
    pub fn run(&mut self, words: &[OsString]) -> Result<Option<u8>> {
        let status = self
            .command(words)?
            .status()
            .map_err(|error| self.compiler.cannot_start(error))?;
        Ok(exit_code(status))
    }

    /// Returns the command that starts the compiler with these words.
    pub fn command(&mut self, words: &[OsString]) -> Result<Command> {
        let length: usize = words.iter().map(|word| word.len()).sum();
        let mut command = if self.parsed.from_response_file && length > LONG_COMMAND {
            let file = self.folder.join(format!("{}.rsp", self.rsp));
            self.rsp += 1;
            fs::write(&file, response::text(words)).map_err(Error::file(Doing::Write, &file))?;
            let mut word = OsString::from("@");
            word.push(&file);
            self.compiler.command(&[word])
        } else {
            self.compiler.command(words)
        };
        if let Some(assembler) = &self.assembler {
            command.env(assembler::ENVIRONMENT, assembler);
        }
        Ok(command)
    }

    fn instrument(&self, from: &Path, to: &Path, source: &OsStr, marked: bool) -> Result<()> {
        instrument_file(from, to, source, marked, self.options, || {
            self.compiler.target(self.words)
        })
    }
}

/// Returns the exit code that a shell would report, or `None` if the program succeeded.
pub fn exit_code(status: ExitStatus) -> Option<u8> {
    if status.success() {
        return None;
    }
    let number = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Some(u8::try_from(number).unwrap_or(1))
}

/// The name of the source file in the compiler's directive `.file "NAME"`. Compilers give their assembler a temporary
/// file, whose name tells the user nothing.
fn source_named_by(text: &[u8]) -> Option<&[u8]> {
    text.split(|&byte| byte == b'\n').find_map(|line| {
        let arguments = line.trim_ascii().strip_prefix(b".file")?.trim_ascii();
        arguments.strip_prefix(b"\"")?.strip_suffix(b"\"")
    })
}

/// Instruments assembly; `-` is standard input. `source` is the name in messages, with `marked` also in those of the
/// assembler. `target` asks the compiler, if the text does not show the target.
pub fn instrument_file(
    from: &Path,
    to: &Path,
    source: &OsStr,
    marked: bool,
    options: &Options,
    target: impl FnOnce() -> Result<String>,
) -> Result<()> {
    let mut text = Vec::new();
    if from == Path::new("-") {
        io::stdin().lock().read_to_end(&mut text).map(drop)
    } else {
        fs::File::open(from).and_then(|mut file| file.read_to_end(&mut text).map(drop))
    }
    .map_err(Error::file(Doing::Read, from))?;
    let of_compiler = Path::new(source).starts_with(std::env::temp_dir());
    let name = match source_named_by(&text).filter(|_| of_compiler) {
        Some(name) => String::from_utf8_lossy(name),
        None => source.to_string_lossy(),
    };
    let made = match instrument(&text, &name, None, options) {
        Ok(made) => made,
        Err(error) => {
            let Ok(target) = target()?.parse::<Target>() else {
                return Err(error.into());
            };
            instrument(&text, &name, Some(target), options)?
        }
    };
    let mut bytes = Vec::new();
    if marked {
        // This line makes the assembler show the name and the line numbers of the user's file in its messages.
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        bytes.extend_from_slice(format!("# 1 \"{quoted}\"\n").as_bytes());
    }
    bytes.extend_from_slice(&made.text);
    fs::write(to, bytes).map_err(Error::file(Doing::Write, to))
}
