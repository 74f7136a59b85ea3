//! Parses the command line of a compiler as far as is needed to predict what the compiler will do. The parser finds the
//! inputs, the options with their values, the phase after which the compiler stops, and the files that it writes.
use super::error::Unsupported;
use profkit_merge::files::response;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The family of a compiler: Clang or GCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Clang,
    Gcc,
}

/// The phase after which a compiler driver stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The driver stops after compiling (`-S`).
    Assembly,
    /// The driver stops after assembling (`-c`).
    Object,
    Link,
    /// The driver links objects into one object (`-r`).
    PartialLink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Source code that is compiled to assembly.
    Source,
    /// Assembly that must be preprocessed first.
    PreprocessedAssembly,
    /// Assembly that is not preprocessed.
    Assembly,
    /// Any other file, which is an input of the linker.
    Other,
}

/// The purpose of a compiler option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Stop,
    Output,
    Language,
    Dependencies,
    /// An option that only the linker uses.
    Linker,
    /// An option that only the preprocessor or the compiler uses. The assembler is called without this option.
    Preprocessor,
    SaveTemps,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Option {
        class: Class,
        words: Vec<OsString>,
    },
    Input {
        path: OsString,
        kind: Kind,
        language: Option<OsString>,
    },
}

/// A parsed command line that compiles, assembles or links.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub items: Vec<Item>,
    pub stop: Stop,
    pub output: Option<OsString>,
    /// Whether the command line contains the linker option `--build-id`.
    pub has_build_id: bool,
    pub is_library: bool,
    /// Whether a dependency file is wanted, and whether options name the file (`-MF`) and its target (`-MT`, `-MQ`).
    pub dependencies: Dependencies,
    /// Whether the command line asks for link-time optimisation (`-flto`).
    pub lto: bool,
    pub from_response_file: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    pub wanted: bool,
    pub file_named: bool,
    pub target_named: bool,
}

#[derive(Clone, Debug)]
pub enum Request {
    /// The command line compiles no code, so the compiler is started with its arguments unchanged.
    PassOn,
    /// The command line compiles, assembles or links.
    Work(Box<Parsed>),
}

/// The names of launchers: programs that run a compiler. The word after the launcher names the compiler.
const LAUNCHERS: &[&str] = &[
    "ccache", "sccache", "distcc", "icecc", "env", "nice", "time",
];

/// Returns the index of the compiler's name among the words. Launchers may precede it.
pub fn compiler_at(words: &[OsString]) -> usize {
    let launchers = words.iter().take_while(|word| {
        Path::new(word)
            .file_name()
            .is_some_and(|name| LAUNCHERS.iter().any(|launcher| name == *launcher))
    });
    launchers.count()
}

/// Returns the family that the name shows; `None` for names such as `cc`, which mean several compilers.
pub fn family(compiler: &OsStr) -> Option<Family> {
    let name = Path::new(compiler)
        .file_name()?
        .to_string_lossy()
        .into_owned();
    // The name may begin with a triple and end with a version: aarch64-linux-gnu-g++-12, clang++-22.
    let has = |part: &str| {
        name.match_indices(part).any(|(at, _)| {
            let before = name
                .get(..at)
                .is_none_or(|text| text.is_empty() || text.ends_with('-'));
            let rest = name.get(at + part.len()..).unwrap_or_default();
            before
                && (rest.is_empty()
                    || rest.starts_with('-')
                    || rest.starts_with('.')
                    || rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    if has("clang") || has("clang++") {
        Some(Family::Clang)
    } else if has("gcc") || has("g++") {
        Some(Family::Gcc)
    } else {
        None
    }
}

/// The options whose value may be a separate word, each with its purpose.
const SEPARATE: &[(&str, Class)] = &[
    ("-o", Class::Output),
    ("--output", Class::Output),
    ("-x", Class::Language),
    ("--language", Class::Language),
    ("-MF", Class::Dependencies),
    ("-MT", Class::Dependencies),
    ("-MQ", Class::Dependencies),
    ("-MJ", Class::Dependencies),
    ("-I", Class::Preprocessor),
    ("-D", Class::Preprocessor),
    ("-U", Class::Preprocessor),
    ("-A", Class::Preprocessor),
    ("-F", Class::Preprocessor),
    ("-include", Class::Preprocessor),
    ("-include-pch", Class::Preprocessor),
    ("-imacros", Class::Preprocessor),
    ("-isystem", Class::Preprocessor),
    ("-iquote", Class::Preprocessor),
    ("-idirafter", Class::Preprocessor),
    ("-iprefix", Class::Preprocessor),
    ("-iwithprefix", Class::Preprocessor),
    ("-iwithprefixbefore", Class::Preprocessor),
    ("-isysroot", Class::Other),
    ("-imultilib", Class::Preprocessor),
    ("-cxx-isystem", Class::Preprocessor),
    ("-iframework", Class::Preprocessor),
    ("-ivfsoverlay", Class::Preprocessor),
    ("-Xpreprocessor", Class::Preprocessor),
    ("-aux-info", Class::Preprocessor),
    ("-serialize-diagnostics", Class::Preprocessor),
    ("--serialize-diagnostics", Class::Preprocessor),
    ("-Xlinker", Class::Linker),
    ("-L", Class::Linker),
    ("-l", Class::Linker),
    ("-T", Class::Linker),
    ("-u", Class::Linker),
    ("-z", Class::Linker),
    ("-e", Class::Linker),
    ("--entry", Class::Linker),
    ("-rpath", Class::Linker),
    ("-framework", Class::Linker),
    ("-Tbss", Class::Linker),
    ("-Tdata", Class::Linker),
    ("-Ttext", Class::Linker),
    ("-Xassembler", Class::Other),
    ("-Xclang", Class::Preprocessor),
    ("-mllvm", Class::Preprocessor),
    ("-Xopenmp-target", Class::Other),
    ("-arch", Class::Other),
    ("-target", Class::Other),
    ("-B", Class::Other),
    ("-G", Class::Other),
    ("--param", Class::Preprocessor),
    ("--sysroot", Class::Other),
    ("--config", Class::Other),
    ("-gcc-toolchain", Class::Other),
    ("-resource-dir", Class::Other),
    ("-working-directory", Class::Other),
    ("-specs", Class::Other),
    ("-wrapper", Class::Other),
    ("-dumpbase", Class::Other),
    ("-dumpbase-ext", Class::Other),
    ("-dumpdir", Class::Other),
];

/// Whether this option makes the compiler answer a question or stop before it makes an object.
fn ends_before_code(text: &str) -> bool {
    matches!(
        text,
        "-E" | "-M"
            | "-MM"
            | "-fsyntax-only"
            | "-###"
            | "--version"
            | "--help"
            | "-help"
            | "--target-help"
            | "-dumpmachine"
            | "-dumpversion"
            | "-dumpfullversion"
            | "-dumpspecs"
            | "-emit-llvm"
            | "-emit-ast"
            | "-emit-interface-stubs"
            | "--analyze"
            | "--precompile"
            | "-cc1"
            | "-cc1as"
    ) || text.starts_with("-print-")
        || text.starts_with("--print-")
        || text.starts_with("--help=")
}

fn kind(path: &OsStr, language: Option<&OsStr>) -> Kind {
    if let Some(language) = language {
        let language = language.to_string_lossy();
        return match &*language {
            "assembler" => Kind::Assembly,
            "assembler-with-cpp" => Kind::PreprocessedAssembly,
            _ if language.ends_with("-header") => Kind::Other,
            _ => Kind::Source,
        };
    }
    let extension = Path::new(path)
        .extension()
        .map(|extension| extension.as_bytes())
        .unwrap_or_default();
    match extension {
        b"c" | b"i" | b"cc" | b"cp" | b"cxx" | b"cpp" | b"CPP" | b"c++" | b"C" | b"CC" | b"ii"
        | b"m" | b"mi" | b"mm" | b"M" | b"mii" | b"ll" | b"bc" | b"cppm" | b"ixx" | b"f"
        | b"for" | b"ftn" | b"F" | b"FOR" | b"f90" | b"F90" | b"f95" | b"F95" | b"f03" | b"F03"
        | b"f08" | b"F08" | b"d" | b"go" | b"adb" | b"ads" => Kind::Source,
        b"s" => Kind::Assembly,
        b"S" | b"sx" => Kind::PreprocessedAssembly,
        _ => Kind::Other,
    }
}

/// The options without a separate value whose purpose matters. An option that is in neither list is for all phases.
const EXACT: &[(Class, &[&str])] = &[
    (Class::Stop, &["-c", "-S"]),
    (Class::Dependencies, &["-MD", "-MMD", "-MP", "-MG", "-MV"]),
    (
        Class::Linker,
        &[
            "-r",
            "-shared",
            "-static",
            "-static-pie",
            "-pie",
            "-no-pie",
            "-nopie",
            "-rdynamic",
            "-nostdlib",
            "-nodefaultlibs",
            "-nostartfiles",
            "-nolibc",
            "-static-libgcc",
            "-static-libstdc++",
            "-shared-libgcc",
            "-s",
            "-symbolic",
            "-pthreads",
        ],
    ),
    (Class::SaveTemps, &["-save-temps", "--save-temps"]),
    (
        Class::Preprocessor,
        &[
            "-nostdinc",
            "-nostdinc++",
            "-undef",
            "-P",
            "-C",
            "-CC",
            "-H",
        ],
    ),
];

/// The options whose value is in the same word, by their beginning. The first that fits decides.
const JOINED: &[(Class, &[&str])] = &[
    (Class::Other, &["-object", "-openmp", "-opt"]),
    (Class::SaveTemps, &["-save-temps="]),
    (Class::Output, &["-o", "--output="]),
    (Class::Language, &["-x"]),
    (Class::Dependencies, &["-MF", "-MT", "-MQ", "-Wp,-M"]),
    (
        Class::Linker,
        &["-Wl,", "-l", "-L", "-fuse-ld=", "--ld-path="],
    ),
    (Class::Preprocessor, &["-Wp,", "-I", "-D", "-U", "-i"]),
];

fn class(text: &str) -> Class {
    let find = |list: &[(Class, &[&str])], fits: &dyn Fn(&str) -> bool| {
        let found = list
            .iter()
            .find(|(_, names)| names.iter().any(|name| fits(name)));
        found.map(|(class, _)| *class)
    };
    find(EXACT, &|name| text == name)
        .or_else(|| find(JOINED, &|start| text.starts_with(start)))
        .unwrap_or(Class::Other)
}

/// Parses the words of a command line after the compiler's name.
pub fn parse(words: &[OsString], family: Family) -> Result<Request, Unsupported> {
    let expanded = response::expand(words);
    let mut parser = Parser::new(family);
    parser.parsed.from_response_file = expanded != words;
    let mut rest = expanded.into_iter();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy().into_owned();
        if parser.only_inputs || text == "-" || !text.starts_with('-') {
            parser.input(word);
        } else if text == "--" && family == Family::Clang {
            parser.only_inputs = true;
        } else if let Some((_, class)) = SEPARATE.iter().find(|(name, _)| *name == text) {
            parser.separate(word, &text, *class, rest.next());
        } else {
            parser.single(word, &text)?;
        }
    }
    parser.finish()
}

struct Parser {
    family: Family,
    parsed: Parsed,
    language: Option<OsString>,
    architectures: usize,
    fat_objects: bool,
    /// The last option that makes the compiler write further files.
    side_files: Option<String>,
    split_dwarf: Option<String>,
    pass_on: bool,
    only_inputs: bool,
}

impl Parser {
    fn new(family: Family) -> Self {
        Parser {
            family,
            parsed: Parsed {
                items: Vec::new(),
                stop: Stop::Link,
                output: None,
                has_build_id: false,
                is_library: false,
                dependencies: Dependencies::default(),
                lto: false,
                from_response_file: false,
            },
            language: None,
            architectures: 0,
            fat_objects: false,
            side_files: None,
            split_dwarf: None,
            pass_on: false,
            only_inputs: false,
        }
    }

    fn input(&mut self, path: OsString) {
        self.parsed.items.push(Item::Input {
            kind: kind(&path, self.language.as_deref()),
            path,
            language: self.language.clone(),
        });
    }

    fn set_language(&mut self, name: &OsStr) {
        self.language = (name != "none").then(|| name.to_owned());
    }

    /// Takes an option whose value is the next word.
    fn separate(&mut self, word: OsString, text: &str, class: Class, value: Option<OsString>) {
        let parsed = &mut self.parsed;
        self.pass_on |= ends_before_code(text);
        match (text, &value) {
            ("-o" | "--output", Some(value)) => parsed.output = Some(value.clone()),
            ("-x" | "--language", Some(value)) => self.set_language(value),
            ("-MF", _) => parsed.dependencies.file_named = true,
            ("-MT" | "-MQ", _) => parsed.dependencies.target_named = true,
            ("-arch", _) => self.architectures += 1,
            ("-Xlinker", Some(value)) => {
                parsed.has_build_id |= is_build_id(&value.to_string_lossy());
            }
            _ => {}
        }
        let mut words = vec![word];
        words.extend(value);
        self.parsed.items.push(Item::Option { class, words });
    }

    /// Takes an option that is one word.
    fn single(&mut self, word: OsString, text: &str) -> Result<(), Unsupported> {
        let parsed = &mut self.parsed;
        self.pass_on |= ends_before_code(text);
        let class = class(text);
        match text {
            // If several options name a phase, the driver stops after the earliest of them.
            "-c" if parsed.stop != Stop::Assembly => parsed.stop = Stop::Object,
            "-S" => parsed.stop = Stop::Assembly,
            "-r" if parsed.stop == Stop::Link => parsed.stop = Stop::PartialLink,
            "-MD" | "-MMD" => parsed.dependencies.wanted = true,
            "-shared" => parsed.is_library = true,
            "-flto" => parsed.lto = true,
            "-fno-lto" => parsed.lto = false,
            "-ffat-lto-objects" => self.fat_objects = true,
            "-fno-fat-lto-objects" => self.fat_objects = false,
            "-gno-split-dwarf" => self.split_dwarf = None,
            "--coverage"
            | "-ftest-coverage"
            | "-fprofile-arcs"
            | "-fstack-usage"
            | "-ftime-trace"
            | "-fsave-optimization-record"
            | "-foptimization-record-file" => self.side_files = Some(text.to_owned()),
            "-mx32" | "-m16" => return Err(no_32_bit(text)),
            _ if text.starts_with("-m32") => return Err(no_32_bit(text)),
            _ if text.starts_with("-flto=") => parsed.lto = true,
            _ if text.starts_with("-gsplit-dwarf") => self.split_dwarf = Some(text.to_owned()),
            _ if class == Class::Output => {
                let start = if text.starts_with("--") {
                    "--output="
                } else {
                    "-o"
                };
                let value = word.as_bytes().get(start.len()..).unwrap_or_default();
                parsed.output = Some(OsStr::from_bytes(value).to_owned());
            }
            _ if class == Class::Language => {
                self.set_language(OsStr::new(text.get(2..).unwrap_or_default()));
            }
            _ if text.starts_with("-MF") => parsed.dependencies.file_named = true,
            _ if text.starts_with("-MT") || text.starts_with("-MQ") => {
                parsed.dependencies.target_named = true;
            }
            _ if text.starts_with("-Wp,-M") => {
                parsed.dependencies.wanted = true;
                parsed.dependencies.file_named = true;
            }
            _ if text.starts_with("-Wl,") => {
                parsed.has_build_id |= text.split(',').any(is_build_id);
            }
            _ => {}
        }
        self.parsed.items.push(Item::Option {
            class,
            words: vec![word],
        });
        Ok(())
    }

    fn finish(self) -> Result<Request, Unsupported> {
        let Parsed { stop, lto, .. } = self.parsed;
        let is_clang = self.family == Family::Clang;
        let inputs = || {
            self.parsed.items.iter().filter_map(|item| match item {
                Item::Input { kind, .. } => Some(*kind),
                Item::Option { .. } => None,
            })
        };
        if self.pass_on || inputs().next().is_none() {
            return Ok(Request::PassOn);
        }
        if is_clang && let Some(option) = self.split_dwarf {
            return Err(Unsupported::new(
                format!(
                    "{option} is not possible: profkit lets clang stop at assembly, and clang then names the split debug file after the source file, not after the object file"
                ),
                "keep the debug information in the object file (without -gsplit-dwarf), or use gcc",
            ));
        }
        if self.architectures > 1 {
            return Err(Unsupported::new(
                "-arch is given twice: one call compiles for one architecture only",
                "run the compiler once per -arch, then join the objects with lipo",
            ));
        }
        if is_clang && lto && self.fat_objects {
            return Err(Unsupported::new(
                "-ffat-lto-objects: a link without -flto would take the machine code of these objects, which is not instrumented",
                "build without -ffat-lto-objects",
            ));
        }
        let compiles = inputs().any(|kind| kind != Kind::Other);
        let assembles = inputs().any(|kind| !matches!(kind, Kind::Other | Kind::Source));
        if lto && (stop == Stop::Assembly || stop == Stop::Object && !assembles && is_clang) {
            // The compiler writes bitcode or bytecode. Only the link makes machine code, and instruments that.
            return Ok(Request::PassOn);
        }
        if stop == Stop::Object && !compiles {
            // With `-c`, the compiler precompiles such inputs as headers, ignores or rejects them.
            return Ok(Request::PassOn);
        }
        if is_clang
            && stop == Stop::Link
            && compiles
            && let Some(option) = self.side_files
        {
            return Err(Unsupported::new(
                format!(
                    "{option} is not possible when clang compiles and links in one call: clang would make up the name of the file that this option writes from the name of a temporary object file"
                ),
                "compile with -c, then link",
            ));
        }
        Ok(Request::Work(Box::new(self.parsed)))
    }
}

fn no_32_bit(text: &str) -> Unsupported {
    Unsupported::new(
        format!("{text}: MIP cannot instrument 32-bit x86 code"),
        "compile this part of the build without profkit mip cc",
    )
}

fn is_build_id(text: &str) -> bool {
    let text = text.trim_start_matches('-');
    text == "build-id" || text.starts_with("build-id=")
}
