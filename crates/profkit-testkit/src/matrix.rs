//! Builds real raw profiles of the programs in `tests/programs`, with every instrumentation mode that a release
//! supports.
//!
//! A [`Set`] consists of a compiler, a mode and a program. [`Set::build`] compiles the program, runs it several times
//! with different arguments and returns the raw profiles. The result is kept in `target/matrix` until a source, the
//! compiler or a command line changes, so that many tests share one build.
use std::ffi::OsStr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::llvm::LAID;
use crate::{Llvm, RELEASES, repo_root};

/// The compiler that builds a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compiler {
    /// The clang of this LLVM release.
    Clang(u32),
    /// The rustc on `PATH`.
    Rustc,
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compiler::Clang(release) => write!(f, "clang-{release}"),
            Compiler::Rustc => f.write_str("rustc"),
        }
    }
}

/// An instrumentation mode: how a program is instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The mode with front-end counters and coverage mapping.
    Fe,
    /// The mode with front-end counters and value profiling of indirect calls, which is off by default.
    FeValues,
    /// The mode with front-end counters and MC/DC bitmaps.
    Mcdc,
    /// The mode with IR counters and value profiling.
    Ir,
    /// The mode with IR counters of a second, context-sensitive instrumentation. The program is compiled with the
    /// profile of a first instrumentation.
    CsIr,
    /// The mode with IR counters, one of them at the entry of each function.
    EntryFirst,
    /// The mode with IR counters at loop entries.
    LoopEntries,
    /// The mode of function-entry coverage: one byte per function.
    FunctionEntry,
    /// The mode of block coverage: one byte per block.
    BlockCoverage,
    /// The mode with IR counters and a time stamp of each function's first call.
    Temporal,
    /// The mode with IR counters and value profiling of virtual tables.
    Vtables,
    /// The mode with IR counters and without value profiling.
    NoValues,
    /// The mode that tells which functions were entered of those that a sample profile calls cold.
    ColdFunctions,
    /// The mode with front-end counters in a 32-bit program.
    Fe32,
    /// The mode with IR counters and value profiling in a 32-bit program.
    Ir32,
}

/// The folder of the sources as programs name it. Compilers would write its real path into them, so that a program had
/// another build id in each checkout of the repository.
const SOURCE_FOLDER: &str = "/src";

/// The option of clang for this in modes with coverage mapping.
const COVERAGE_FOLDER: &str = "-fcoverage-compilation-dir=/src";

impl Mode {
    /// All instrumentation modes.
    pub const ALL: [Mode; 15] = [
        Mode::Fe,
        Mode::FeValues,
        Mode::Mcdc,
        Mode::Ir,
        Mode::CsIr,
        Mode::EntryFirst,
        Mode::LoopEntries,
        Mode::FunctionEntry,
        Mode::BlockCoverage,
        Mode::Temporal,
        Mode::Vtables,
        Mode::NoValues,
        Mode::ColdFunctions,
        Mode::Fe32,
        Mode::Ir32,
    ];

    /// The name of the mode in folder names and tables.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Fe => "fe",
            Mode::FeValues => "fe-values",
            Mode::Mcdc => "mcdc",
            Mode::Ir => "ir",
            Mode::CsIr => "cs-ir",
            Mode::EntryFirst => "entry-first",
            Mode::LoopEntries => "loop-entries",
            Mode::FunctionEntry => "function-entry",
            Mode::BlockCoverage => "block-coverage",
            Mode::Temporal => "temporal",
            Mode::Vtables => "vtables",
            Mode::NoValues => "no-values",
            Mode::ColdFunctions => "cold-functions",
            Mode::Fe32 => "fe-32",
            Mode::Ir32 => "ir-32",
        }
    }

    /// Whether the compiler's front end inserts the counters. If false, a pass over the IR does.
    pub fn is_front_end(self) -> bool {
        matches!(self, Mode::Fe | Mode::FeValues | Mode::Mcdc | Mode::Fe32)
    }

    /// The options with which clang instruments. For [`Mode::CsIr`], the options of the first instrumentation.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Mode::Fe => &[
                "-fprofile-instr-generate",
                "-fcoverage-mapping",
                COVERAGE_FOLDER,
            ],
            Mode::FeValues => &[
                "-fprofile-instr-generate",
                "-mllvm",
                "-enable-value-profiling",
            ],
            Mode::Mcdc => &[
                "-fprofile-instr-generate",
                "-fcoverage-mapping",
                "-fcoverage-mcdc",
                COVERAGE_FOLDER,
            ],
            Mode::Ir | Mode::CsIr => &["-fprofile-generate"],
            Mode::EntryFirst => &["-fprofile-generate", "-mllvm", "-pgo-instrument-entry=true"],
            Mode::LoopEntries => &[
                "-fprofile-generate",
                "-mllvm",
                "-pgo-instrument-loop-entries",
            ],
            Mode::FunctionEntry => &[
                "-fprofile-generate",
                "-mllvm",
                "-pgo-function-entry-coverage",
            ],
            Mode::BlockCoverage => &["-fprofile-generate", "-mllvm", "-pgo-block-coverage"],
            Mode::Temporal => &[
                "-fprofile-generate",
                "-mllvm",
                "-pgo-temporal-instrumentation",
            ],
            Mode::Vtables => &[
                "-fprofile-generate",
                "-mllvm",
                "-enable-vtable-value-profiling",
            ],
            Mode::NoValues => &["-fprofile-generate", "-mllvm", "-disable-vp"],
            Mode::ColdFunctions => &[
                "-gmlt",
                "-fdebug-compilation-dir=/src",
                "-fdebug-info-for-profiling",
                "-fprofile-generate-cold-function-coverage",
                "-fprofile-sample-use=samples/cold.txt",
                "-mllvm",
                "-pgo-treat-unknown-as-cold",
            ],
            Mode::Fe32 => &[
                "-fprofile-instr-generate",
                "-fcoverage-mapping",
                COVERAGE_FOLDER,
                "-m32",
            ],
            Mode::Ir32 => &["-fprofile-generate", "-m32"],
        }
    }

    /// Returns the first of [`RELEASES`] whose clang supports this mode, and the reason why older releases do not
    /// support it.
    fn since(self) -> (u32, &'static str) {
        match self {
            Mode::FunctionEntry => (14, "-pgo-function-entry-coverage came with LLVM 14"),
            Mode::BlockCoverage => (17, "-pgo-block-coverage came with LLVM 17"),
            Mode::Temporal => (17, "-pgo-temporal-instrumentation came with LLVM 17"),
            Mode::Mcdc => (18, "-fcoverage-mcdc came with LLVM 18"),
            Mode::Vtables => (19, "-enable-vtable-value-profiling came with LLVM 19"),
            Mode::LoopEntries => (20, "-pgo-instrument-loop-entries came with LLVM 20"),
            Mode::ColdFunctions => (
                20,
                "-fprofile-generate-cold-function-coverage came with LLVM 20",
            ),
            _ => (13, ""),
        }
    }

    /// Returns the option, without the file name, that makes a compiler use a profile of this mode.
    fn use_flag(self) -> &'static str {
        if self.is_front_end() {
            "-fprofile-instr-use="
        } else {
            "-fprofile-use="
        }
    }

    fn machine_flags(self) -> &'static [&'static str] {
        match self {
            Mode::Fe32 | Mode::Ir32 => &["-m32"],
            _ => &[],
        }
    }
}

/// A test program in `tests/programs`.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of the program in folder names and tables.
    pub name: &'static str,
    /// The source files to compile.
    pub sources: &'static [&'static str],
    /// The files that the source files include.
    pub headers: &'static [&'static str],
    /// The source files of a shared library that is linked to the program; empty if there is none. With a library, each
    /// run writes two raw profiles, which are concatenated.
    pub library: &'static [&'static str],
    /// The instrumentation modes that are useful for this program.
    pub modes: &'static [Mode],
}

/// All test programs. The first contains every construct of C, and is built in every mode that does not need C++ or
/// MC/DC.
pub static PROGRAMS: [Program; 6] = [
    Program {
        name: "plain",
        sources: &["plain.c", "plain_more.c"],
        headers: &["plain.h"],
        library: &[],
        modes: &[
            Mode::Fe,
            Mode::FeValues,
            Mode::Ir,
            Mode::CsIr,
            Mode::EntryFirst,
            Mode::LoopEntries,
            Mode::FunctionEntry,
            Mode::BlockCoverage,
            Mode::Temporal,
            Mode::NoValues,
            Mode::ColdFunctions,
            Mode::Fe32,
            Mode::Ir32,
        ],
    },
    Program {
        name: "shapes",
        sources: &["shapes.cpp", "shapes_more.cpp"],
        headers: &["shapes.h"],
        library: &[],
        modes: &Mode::ALL,
    },
    Program {
        name: "conditions",
        sources: &["conditions.c"],
        headers: &[],
        library: &[],
        modes: &[Mode::Fe, Mode::Mcdc, Mode::BlockCoverage],
    },
    Program {
        name: "layers",
        sources: &["layers.c"],
        headers: &[],
        library: &[],
        modes: &[Mode::Ir, Mode::CsIr],
    },
    Program {
        name: "host",
        sources: &["host.c"],
        headers: &[],
        library: &["plugin.c"],
        modes: &[Mode::Fe, Mode::Ir, Mode::Temporal],
    },
    Program {
        name: "traits",
        sources: &["traits.rs"],
        headers: &[],
        library: &[],
        modes: &[Mode::Fe, Mode::Ir],
    },
];

impl Program {
    /// Returns the test program with this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn named(name: &str) -> &'static Program {
        let found = PROGRAMS.iter().find(|program| program.name == name);
        found.unwrap_or_else(|| panic!("there is no test program {name}"))
    }

    fn is_rust(&self) -> bool {
        self.sources.iter().any(|source| source.ends_with(".rs"))
    }

    fn is_cxx(&self) -> bool {
        self.sources.iter().any(|source| source.ends_with(".cpp"))
    }
}

/// The arguments of the program in each run: SEED and COUNT.
pub const RUNS: [[&str; 2]; 3] = [["1", "10"], ["3", "50"], ["8", "200"]];

/// The reason why a set of raw profiles cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The compiler is not installed.
    NotInstalled(String),
    /// The compiler does not support the mode, or the mode is not useful for the program.
    Lacks(&'static str),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NotInstalled(what) => write!(f, "{what} is not installed"),
            Unavailable::Lacks(reason) => f.write_str(reason),
        }
    }
}

/// A set of raw profiles, identified by a compiler, an instrumentation mode and a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// The compiler that builds the set.
    pub compiler: Compiler,
    /// The instrumentation mode.
    pub mode: Mode,
    /// The test program.
    pub program: &'static Program,
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mode, program) = (self.mode.name(), self.program.name);
        write!(f, "{}-{mode}-{program}", self.compiler)
    }
}

/// The raw profiles of a [`Set`] that was built.
#[derive(Clone, Debug)]
pub struct RawSet {
    /// The set that was built.
    pub set: Set,
    /// The paths of the raw profiles: one for each run of [`RUNS`].
    pub raws: Vec<PathBuf>,
    /// The paths of the program and of its shared library, if it has one.
    pub binaries: Vec<PathBuf>,
}

impl RawSet {
    /// Runs the program again, and returns the bytes of the raw profile. util-linux's `setarch -R` gives the program
    /// the same addresses in each run. So fixtures made in this way do not change each time they are generated.
    ///
    /// # Panics
    /// If the program cannot be run.
    pub fn run_at_fixed_addresses(&self, run: usize) -> Vec<u8> {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let mut command = Command::new("setarch");
        command.arg("-R").args(self.binaries.first());
        self.set.do_step(self.set.run(command, scratch.path(), run));
        let raw = self.set.finish_run(scratch.path(), run);
        std::fs::read(raw).expect("a readable raw profile")
    }
}

/// Returns the sets for tests that compare profkit with LLVM's tools: all sets if tests run all their cases, else a
/// selection with several modes of every release. All tests use the same selection, so that only few sets are built.
pub fn sets() -> Vec<Set> {
    crate::some_or_all(all_sets(), 7)
}

/// Returns every set whose compiler supports the mode, in a fixed order. The compiler may be missing on this machine.
pub fn all_sets() -> Vec<Set> {
    let compilers = RELEASES.map(Compiler::Clang).into_iter();
    let compilers = compilers.chain([Compiler::Rustc]);
    let mut sets = Vec::new();
    for compiler in compilers {
        for program in &PROGRAMS {
            for &mode in program.modes {
                let set = Set {
                    compiler,
                    mode,
                    program,
                };
                if set.lacks().is_none() {
                    sets.push(set);
                }
            }
        }
    }
    sets
}

impl Set {
    /// Makes a set; the program is given by its name.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn new(compiler: Compiler, mode: Mode, program: &str) -> Set {
        Set {
            compiler,
            mode,
            program: Program::named(program),
        }
    }

    /// Returns the reason why this set cannot exist; `None` if it can. The reason is the program's language or a
    /// compiler that does not support the mode.
    pub fn lacks(&self) -> Option<&'static str> {
        match self.compiler {
            Compiler::Rustc if !self.program.is_rust() => Some("rustc compiles Rust only"),
            Compiler::Clang(_) if self.program.is_rust() => Some("clang compiles no Rust"),
            _ if !self.program.modes.contains(&self.mode) => {
                Some("this program has nothing for this mode")
            }
            Compiler::Clang(release)
                if !self.mode.machine_flags().is_empty() && LAID.contains(&release) =>
            {
                Some("the wheels of this release have no 32-bit profile runtime")
            }
            Compiler::Clang(release) => {
                let (first, reason) = self.mode.since();
                (release < first).then_some(reason)
            }
            Compiler::Rustc => None,
        }
    }

    /// Compiles and runs the program, or returns the result of an earlier call.
    ///
    /// # Errors
    /// If the compiler is not installed or does not support the mode.
    ///
    /// # Panics
    /// If the program cannot be compiled or run.
    pub fn build(&self) -> Result<RawSet, Unavailable> {
        if let Some(reason) = self.lacks() {
            return Err(Unavailable::Lacks(reason));
        }
        let tools = Tools::find(self)?;
        let root = matrix_root();
        let folder = root.join(format!("{self}-{:016x}", self.fingerprint(&tools)));
        if !folder.is_dir() {
            std::fs::create_dir_all(&root).expect("target is writable");
            let fresh = tempfile::tempdir_in(&root).expect("target is writable");
            self.build_in(fresh.path(), &tools);
            // Renaming fails if another test has finished the same set first. The folder of that test is used, because
            // its content is equal.
            if let Err(error) = std::fs::rename(fresh.path(), &folder) {
                assert!(folder.is_dir(), "{}: {error}", folder.display());
            }
        }
        let library = (!self.program.library.is_empty()).then_some("libplugin.so");
        Ok(RawSet {
            set: *self,
            raws: (0..RUNS.len())
                .map(|run| folder.join(raw_name(run)))
                .collect(),
            binaries: ["program"]
                .into_iter()
                .chain(library)
                .map(|name| folder.join(name))
                .collect(),
        })
    }

    /// Returns the command lines that build this set, for a manifest. `OUT` stands for the folder in them.
    pub fn describe(&self) -> Vec<String> {
        let Ok(tools) = Tools::find(self) else {
            return Vec::new();
        };
        let mut lines: Vec<String> = Vec::new();
        for step in self.steps(Path::new("OUT"), &tools) {
            let program = Path::new(step.get_program()).file_name();
            let words = program.into_iter().chain(step.get_args());
            let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
            let words = words.join(" ").replace(&remapped(), "$PWD=/src");
            let environment = step.get_envs().filter_map(|(name, value)| {
                Some(format!(
                    "{}={} ",
                    name.to_string_lossy(),
                    value?.to_string_lossy()
                ))
            });
            lines.push(environment.collect::<String>() + &words);
        }
        lines
    }

    /// Compiles the program with a profile. Returns the bytes of its object files, in the order of the source files.
    ///
    /// # Errors
    /// The messages of the compiler, if it rejects the profile or warns that the profile does not match.
    ///
    /// # Panics
    /// If the compiler is not installed or the temporary folder cannot be written.
    pub fn compile_using(&self, profile: &Path) -> Result<Vec<Vec<u8>>, String> {
        let tools = Tools::find(self).unwrap_or_else(|why| panic!("{why}"));
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let mut objects = Vec::new();
        for source in self.program.sources.iter().chain(self.program.library) {
            let object = scratch.path().join("object.o");
            let mut command = self.compile(&tools);
            if self.compiler == Compiler::Rustc {
                command.args(["--emit=obj", "-Ccodegen-units=1", "-Cmetadata=matrix"]);
                command.arg(joined("-Cprofile-use=", profile));
            } else {
                command
                    .args(["-c", "-fPIC"])
                    .args(self.mode.machine_flags());
                command.arg(joined(self.mode.use_flag(), profile));
            }
            command.arg(source).arg("-o").arg(&object);
            let output = command.output().expect("the compiler starts");
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            if !output.status.success() || !words.is_empty() {
                return Err(words);
            }
            objects.push(std::fs::read(&object).expect("an object file"));
        }
        Ok(objects)
    }

    fn compile(&self, tools: &Tools) -> Command {
        let mut command = match tools {
            Tools::Rustc => Command::new("rustc"),
            Tools::Clang(llvm) if self.program.is_cxx() => Command::new(llvm.clangxx()),
            Tools::Clang(llvm) => Command::new(llvm.clang()),
        };
        command.current_dir(programs_root());
        match tools {
            Tools::Rustc => {
                command.args(["--edition=2024", "-O"]);
                command.arg(format!("--remap-path-prefix={}", remapped()))
            }
            // Optimisation does not change front-end counters. IR counters depend on the passes that optimisation runs
            // before the instrumentation.
            Tools::Clang(_) => command.arg("-O2"),
        };
        command
    }

    /// Returns the commands that build the set in `folder`, in order.
    fn steps(&self, folder: &Path, tools: &Tools) -> Vec<Command> {
        let mut steps = self.link(folder, tools, self.instrument_flags(tools));
        if self.mode == Mode::CsIr
            && let Tools::Clang(llvm) = tools
        {
            let mut run = Command::new(folder.join("program"));
            run.args(RUNS[1]);
            run.env("LLVM_PROFILE_FILE", folder.join("first.profraw"));
            steps.push(run);
            let mut merge = Command::new(llvm.profdata());
            merge.arg("merge").arg(folder.join("first.profraw"));
            merge.arg("-o").arg(folder.join("first.profdata"));
            steps.push(merge);
            let used = joined("-fprofile-use=", &folder.join("first.profdata"));
            let flags = vec![used, "-fcs-profile-generate".into()];
            steps.extend(self.link(folder, tools, flags));
        }
        for run in 0..RUNS.len() {
            let command = Command::new(folder.join("program"));
            steps.push(self.run(command, folder, run));
        }
        steps
    }

    /// Completes a command that starts the program with the arguments and the environment of one run.
    fn run(&self, mut command: Command, folder: &Path, run: usize) -> Command {
        command.args(RUNS[run]);
        let name = if self.program.library.is_empty() {
            raw_name(run)
        } else {
            format!("run-{run}-%m.part")
        };
        command.env("LLVM_PROFILE_FILE", folder.join(name));
        command
    }

    fn instrument_flags(&self, tools: &Tools) -> Vec<std::ffi::OsString> {
        match (tools, self.mode) {
            (Tools::Clang(_), mode) => mode.flags().iter().map(Into::into).collect(),
            (Tools::Rustc, Mode::Ir) => vec!["-Cprofile-generate".into()],
            (Tools::Rustc, _) => vec!["-Cinstrument-coverage".into()],
        }
    }

    fn link(&self, folder: &Path, tools: &Tools, flags: Vec<std::ffi::OsString>) -> Vec<Command> {
        let mut steps = Vec::new();
        if !self.program.library.is_empty() {
            let mut command = self.compile(tools);
            command
                .args(&flags)
                .args(["-shared", "-fPIC", "-Wl,-soname,libplugin.so"]);
            command.args(self.program.library).arg("-o");
            command.arg(folder.join("libplugin.so"));
            steps.push(command);
        }
        let mut command = self.compile(tools);
        command.args(&flags).args(self.program.sources).arg("-o");
        command.arg(folder.join("program"));
        if !self.program.library.is_empty() {
            command.arg(folder.join("libplugin.so"));
            command.arg("-Wl,-rpath,$ORIGIN");
        }
        steps.push(command);
        steps
    }

    fn build_in(&self, folder: &Path, tools: &Tools) {
        for step in self.steps(folder, tools) {
            self.do_step(step);
        }
        for run in 0..RUNS.len() {
            self.finish_run(folder, run);
        }
    }

    fn do_step(&self, mut step: Command) {
        let output = step
            .output()
            .unwrap_or_else(|error| panic!("{self}: {step:?}: {error}"));
        assert!(
            output.status.success(),
            "{self}: {step:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn finish_run(&self, folder: &Path, run: usize) -> PathBuf {
        if !self.program.library.is_empty() {
            concatenate(folder, run);
        }
        let raw = folder.join(raw_name(run));
        let size = std::fs::metadata(&raw).map_or(0, |metadata| metadata.len());
        assert!(size > 0, "{self}: {} was not written", raw.display());
        raw
    }

    /// Returns a hash of everything that the profiles depend on.
    fn fingerprint(&self, tools: &Tools) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        let program = self.program;
        for name in program
            .sources
            .iter()
            .chain(program.headers)
            .chain(program.library)
        {
            let path = programs_root().join(name);
            let source = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
            source.hash(&mut hasher);
        }
        for step in self.steps(Path::new("OUT"), tools) {
            format!("{step:?}").hash(&mut hasher);
        }
        if let Tools::Clang(llvm) = tools {
            let metadata = std::fs::metadata(llvm.clang());
            metadata.map_or(0, |found| found.len()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

enum Tools {
    Clang(Llvm),
    Rustc,
}

impl Tools {
    fn find(set: &Set) -> Result<Tools, Unavailable> {
        match set.compiler {
            Compiler::Rustc => Ok(Tools::Rustc),
            Compiler::Clang(release) => Llvm::find(release)
                .map(Tools::Clang)
                .ok_or_else(|| Unavailable::NotInstalled(format!("LLVM {release}"))),
        }
    }
}

fn joined(flag: &str, path: &Path) -> std::ffi::OsString {
    let mut joined = std::ffi::OsString::from(flag);
    joined.push(path);
    joined
}

/// The folder of the sources and the name that rustc writes for it.
fn remapped() -> String {
    format!("{}={SOURCE_FOLDER}", programs_root().display())
}

fn raw_name(run: usize) -> String {
    format!("run-{run}.profraw")
}

/// Concatenates the profiles of the program and of its library into one file. The signatures in their names (`%m`) are
/// always the same, so the order of the names is too.
fn concatenate(folder: &Path, run: usize) {
    let prefix = format!("run-{run}-");
    let mut parts: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder was made here")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| {
            path.file_name()
                .and_then(OsStr::to_str)
                .is_some_and(|name| name.starts_with(&prefix))
        })
        .collect();
    parts.sort();
    assert_eq!(parts.len(), 2, "a program and a library: {parts:?}");
    let mut whole = Vec::new();
    for part in parts {
        whole.extend(std::fs::read(part).expect("a readable raw profile"));
    }
    std::fs::write(folder.join(raw_name(run)), whole).expect("a writable folder");
}

fn programs_root() -> PathBuf {
    repo_root().join("tests/programs")
}

fn matrix_root() -> PathBuf {
    let target = crate::target_folder();
    target.join("matrix")
}
