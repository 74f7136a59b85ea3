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

/// Returns the family of a compiler (GCC or Clang), if its name shows it. `None` for names such as `cc`, which mean
/// different compilers on different systems.
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

/// Parses the words of a command line after the compiler's name.
pub fn parse(words: &[OsString], family: Family) -> Result<Request, Unsupported> {
    let expanded = response::expand(words);
    let from_response_file = expanded.len() != words.len() || expanded != words;
    let mut items = Vec::new();
    let mut stop = Stop::Link;
    let mut language: Option<OsString> = None;
    let mut output = None;
    let mut dependencies = Dependencies::default();
    let mut has_build_id = false;
    let mut is_library = false;
    let mut architectures = 0;
    let mut lto = false;
    let mut fat_objects = false;
    let mut side_files = None;
    let mut split_dwarf = None;
    let mut pass_on = false;
    let mut rest = expanded.into_iter();
    let mut only_inputs = false;
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy().into_owned();
        if only_inputs || text == "-" || !text.starts_with('-') {
            let kind = kind(&word, language.as_deref());
            items.push(Item::Input {
                path: word,
                kind,
                language: language.clone(),
            });
            continue;
        }
        if text == "--" && family == Family::Clang {
            only_inputs = true;
            continue;
        }
        pass_on |= ends_before_code(&text);
        if let Some((_, class)) = SEPARATE.iter().find(|(name, _)| *name == text) {
            let value = rest.next();
            match (text.as_str(), &value) {
                ("-o" | "--output", Some(value)) => output = Some(value.clone()),
                ("-x" | "--language", Some(value)) => {
                    language = (value != "none").then(|| value.clone())
                }
                ("-MF", _) => dependencies.file_named = true,
                ("-MT" | "-MQ", _) => dependencies.target_named = true,
                ("-arch", _) => architectures += 1,
                ("-Xlinker", Some(value)) => has_build_id |= is_build_id(&value.to_string_lossy()),
                _ => {}
            }
            let mut words = vec![word];
            words.extend(value);
            items.push(Item::Option {
                class: *class,
                words,
            });
            continue;
        }
        let class = match text.as_str() {
            "-c" => {
                if stop != Stop::Assembly {
                    stop = Stop::Object;
                }
                Class::Stop
            }
            // If several options name a phase, the driver stops after the earliest of them.
            "-S" => {
                stop = Stop::Assembly;
                Class::Stop
            }
            "-r" => {
                if stop == Stop::Link {
                    stop = Stop::PartialLink;
                }
                Class::Linker
            }
            "-MD" | "-MMD" => {
                dependencies.wanted = true;
                Class::Dependencies
            }
            "-MP" | "-MG" | "-MV" => Class::Dependencies,
            "-shared" => {
                is_library = true;
                Class::Linker
            }
            "-static" | "-static-pie" | "-pie" | "-no-pie" | "-nopie" | "-rdynamic"
            | "-nostdlib" | "-nodefaultlibs" | "-nostartfiles" | "-nolibc" | "-static-libgcc"
            | "-static-libstdc++" | "-shared-libgcc" | "-s" | "-symbolic" | "-pthreads" => {
                Class::Linker
            }
            "-fno-lto" => {
                lto = false;
                Class::Other
            }
            "-ffat-lto-objects" | "-fno-fat-lto-objects" => {
                fat_objects = text == "-ffat-lto-objects";
                Class::Other
            }
            "-save-temps" | "--save-temps" => Class::SaveTemps,
            "-nostdinc" | "-nostdinc++" | "-undef" | "-P" | "-C" | "-CC" | "-H" => {
                Class::Preprocessor
            }
            _ if text == "-flto" || text.starts_with("-flto=") => {
                lto = true;
                Class::Other
            }
            _ if text.starts_with("-m32") || text == "-mx32" || text == "-m16" => {
                return Err(Unsupported {
                    message: format!("{text}: MIP cannot instrument 32-bit x86 code"),
                    hint: Some("compile this part of the build without profkit mip cc"),
                });
            }
            _ if text.starts_with("-save-temps=") => Class::SaveTemps,
            _ if text.starts_with("-o") && !is_word_option_with_o(&text) => {
                output = Some(
                    OsStr::from_bytes(word.as_bytes().get(2..).unwrap_or_default()).to_owned(),
                );
                Class::Output
            }
            _ if text.starts_with("--output=") => {
                output = text.strip_prefix("--output=").map(OsString::from);
                Class::Output
            }
            _ if text.starts_with("-x") => {
                let name = text.get(2..).unwrap_or_default();
                language = (name != "none").then(|| OsString::from(name));
                Class::Language
            }
            _ if text.starts_with("-MF") => {
                dependencies.file_named = true;
                Class::Dependencies
            }
            _ if text.starts_with("-MT") || text.starts_with("-MQ") => {
                dependencies.target_named = true;
                Class::Dependencies
            }
            _ if text.starts_with("-Wp,-M") => {
                dependencies.wanted = true;
                dependencies.file_named = true;
                Class::Dependencies
            }
            _ if text.starts_with("-Wl,") => {
                has_build_id |= text.split(',').any(is_build_id);
                Class::Linker
            }
            _ if text.starts_with("-Wp,") => Class::Preprocessor,
            _ if text.starts_with("-Wa,") => Class::Other,
            _ if text.starts_with("-l")
                || text.starts_with("-L")
                || text.starts_with("-fuse-ld=")
                || text.starts_with("--ld-path=") =>
            {
                Class::Linker
            }
            _ if text.starts_with("-I")
                || text.starts_with("-D")
                || text.starts_with("-U")
                || text.starts_with("-i") =>
            {
                Class::Preprocessor
            }
            "-gno-split-dwarf" => {
                split_dwarf = None;
                Class::Other
            }
            _ if text.starts_with("-gsplit-dwarf") => {
                split_dwarf = Some(text.clone());
                Class::Other
            }
            "--coverage"
            | "-ftest-coverage"
            | "-fprofile-arcs"
            | "-fstack-usage"
            | "-ftime-trace"
            | "-fsave-optimization-record"
            | "-foptimization-record-file" => {
                side_files = Some(text.clone());
                Class::Other
            }
            _ => Class::Other,
        };
        items.push(Item::Option {
            class,
            words: vec![word],
        });
    }
    let inputs = || {
        items.iter().filter_map(|item| match item {
            Item::Input { kind, .. } => Some(*kind),
            Item::Option { .. } => None,
        })
    };
    if pass_on || inputs().next().is_none() {
        return Ok(Request::PassOn);
    }
    if family == Family::Clang
        && let Some(option) = split_dwarf
    {
        return Err(Unsupported::new(
            format!(
                "{option} is not possible: profkit lets clang stop at assembly, and clang then names the split debug file after the source file, not after the object file"
            ),
            "keep the debug information in the object file (without -gsplit-dwarf), or use gcc",
        ));
    }
    if architectures > 1 {
        return Err(Unsupported::new(
            "-arch is given twice: one call compiles for one architecture only",
            "run the compiler once per -arch, then join the objects with lipo",
        ));
    }
    if family == Family::Clang && lto && fat_objects {
        return Err(Unsupported::new(
            "-ffat-lto-objects: a link without -flto would take the machine code of these objects, which is not instrumented",
            "build without -ffat-lto-objects",
        ));
    }
    let compiles = inputs().any(|kind| kind != Kind::Other);
    let assembles = inputs().any(|kind| !matches!(kind, Kind::Other | Kind::Source));
    if lto
        && (stop == Stop::Assembly || stop == Stop::Object && !assembles && family == Family::Clang)
    {
        // The compiler writes bitcode (Clang) or bytecode (GCC), which cannot be instrumented. Only the link makes
        // machine code of it, and instruments that.
        return Ok(Request::PassOn);
    }
    if stop == Stop::Object && !compiles {
        // No input is a source or assembly file. With `-c`, the compiler precompiles such inputs as headers, ignores
        // them, or rejects them, so there is nothing to instrument.
        return Ok(Request::PassOn);
    }
    if family == Family::Clang
        && stop == Stop::Link
        && compiles
        && let Some(option) = side_files
    {
        return Err(Unsupported::new(
            format!(
                "{option} is not possible when clang compiles and links in one call: clang would make up the name of the file that this option writes from the name of a temporary object file"
            ),
            "compile with -c, then link",
        ));
    }
    Ok(Request::Work(Box::new(Parsed {
        items,
        stop,
        output,
        has_build_id,
        is_library,
        dependencies,
        lto,
        from_response_file,
    })))
}

fn is_word_option_with_o(text: &str) -> bool {
    ["-object", "-openmp", "-opt"]
        .iter()
        .any(|name| text.starts_with(name))
}

fn is_build_id(text: &str) -> bool {
    let text = text.trim_start_matches('-');
    text == "build-id" || text.starts_with("build-id=")
}
