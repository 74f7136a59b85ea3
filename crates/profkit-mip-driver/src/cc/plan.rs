//! Converts a compiler's command line to the steps that replace it. This is a pure function: it reads no file and
//! starts no program.
use super::parse::{Class, Family, Item, Kind, Parsed, Stop};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A step that the compiler driver carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start the compiler with these command-line words.
    Run(Vec<OsString>),
    /// Instrument an assembly file.
    Instrument {
        /// The assembly file to read; `-` is standard input.
        from: PathBuf,
        /// The assembly file to write. It may be the same file as `from`.
        to: PathBuf,
        /// The input file that the user named. Messages about the assembly show this name.
        source: OsString,
        /// Whether the assembly gets the name of the user's file, which messages of the assembler then show.
        marked: bool,
    },
    Show(PathBuf),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub steps: Vec<Step>,
    pub discard: Vec<PathBuf>,
}

/// All steps that replace one call of a compiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The groups of steps: one group for each input that is compiled or assembled.
    pub groups: Vec<Group>,
    /// The words of the last call of the compiler, usually the link. It is made only if no group failed.
    pub link: Option<Vec<OsString>>,
    pub folders: Vec<PathBuf>,
}

/// The paths and words that the planner, a pure function, cannot find out itself.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub temporary: &'a Path,
    /// The file with the MIP runtime; `None` if no runtime is linked.
    pub runtime: Option<&'a Path>,
    pub linker: &'a [OsString],
}

fn os(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The name without folder and extension, from which compiler drivers derive names of outputs.
fn stem(input: &OsStr) -> OsString {
    Path::new(input).file_stem().unwrap_or(input).to_owned()
}

fn with_extension(stem: &OsStr, extension: &str) -> PathBuf {
    let mut name = stem.to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// The assembly for standard output or a device is instrumented in a temporary file, other assembly in place.
fn is_special(output: &OsStr) -> bool {
    output == "-" || Path::new(output).starts_with("/dev")
}

/// The words to add to a link. `language` says that an option `-x` would apply to them.
fn link_words(parsed: &Parsed, language: bool, places: Places<'_>) -> Vec<OsString> {
    let mut words = Vec::new();
    if parsed.stop == Stop::PartialLink {
        words.extend_from_slice(places.linker);
    }
    if parsed.stop != Stop::Link {
        return words;
    }
    if let Some(runtime) = places.runtime {
        if language {
            words.extend(os(&["-x", "none"]));
        }
        words.push(runtime.into());
        words.extend_from_slice(places.linker);
    }
    if !parsed.has_build_id {
        words.push("-Wl,--build-id".into());
    }
    words
}

fn inputs(parsed: &Parsed) -> impl Iterator<Item = (&OsString, Kind, Option<&OsString>)> {
    parsed.items.iter().filter_map(|item| match item {
        Item::Input {
            path,
            kind,
            language,
        } => Some((path, *kind, language.as_ref())),
        Item::Option { .. } => None,
    })
}

/// Plans the steps of a call. `words` are those of the user: response files are not expanded.
pub fn plan(parsed: &Parsed, words: &[OsString], family: Family, places: Places<'_>) -> Plan {
    let compiled = inputs(parsed)
        .filter(|(_, kind, _)| *kind != Kind::Other)
        .count();
    let one_output =
        parsed.output.is_some() && parsed.stop != Stop::Link && parsed.stop != Stop::PartialLink;
    if one_output && compiled > 1 {
        // Several inputs cannot have one output. The compiler itself reports this error.
        return Plan {
            link: Some(words.to_vec()),
            ..Plan::default()
        };
    }
    match family {
        Family::Gcc => gcc(parsed, words, places),
        Family::Clang => clang(parsed, words, places),
    }
}

/// With `-B`, GCC starts this program as its assembler, and everything else is as in a normal build. With `-S` it
/// starts none, so further steps instrument the assembly.
fn gcc(parsed: &Parsed, words: &[OsString], places: Places<'_>) -> Plan {
    let mut run = vec![OsString::from("-B"), places.temporary.join("").into()];
    let language = matches!(last_language(parsed), Some(Some(_)));
    let special = parsed.output.as_ref().filter(|output| is_special(output));
    if parsed.stop == Stop::Assembly && special.is_some() {
        // The output is not an ordinary file, so the compiler writes the assembly to a temporary file first.
        run.extend(parsed.items.iter().flat_map(|item| match item {
            Item::Option {
                class: Class::Output,
                ..
            } => Vec::new(),
            Item::Option { words, .. } => words.clone(),
            Item::Input { path, .. } => vec![path.clone()],
        }));
    } else {
        run.extend(words.iter().cloned());
    }
    run.extend(link_words(parsed, language, places));
    if parsed.stop != Stop::Assembly {
        return Plan {
            link: Some(run),
            ..Plan::default()
        };
    }
    let mut group = Group {
        steps: vec![],
        ..Group::default()
    };
    let mut after = Vec::new();
    for (path, kind, _) in inputs(parsed) {
        if kind != Kind::Source {
            continue;
        }
        let output = match &parsed.output {
            Some(output) if is_special(output) => {
                let file = places.temporary.join("out.s");
                run.extend([OsString::from("-o"), file.clone().into()]);
                after.push(instrument_in_place(&file, path));
                if output == "-" || output == "/dev/stdout" {
                    after.push(Step::Show(file));
                }
                continue;
            }
            Some(output) => PathBuf::from(output),
            None => with_extension(&stem(path), ".s"),
        };
        after.push(instrument_in_place(&output, path));
        group.discard.push(output);
    }
    group.steps.push(Step::Run(run));
    group.steps.extend(after);
    Plan {
        groups: vec![group],
        ..Plan::default()
    }
}

fn instrument_in_place(file: &Path, source: &OsStr) -> Step {
    Step::Instrument {
        from: file.to_owned(),
        to: file.to_owned(),
        source: source.to_owned(),
        marked: false,
    }
}

fn last_language(parsed: &Parsed) -> Option<Option<&OsString>> {
    parsed.items.iter().rev().find_map(|item| match item {
        Item::Option {
            class: Class::Language,
            words,
        } => {
            let text = words
                .iter()
                .map(|word| word.to_string_lossy())
                .collect::<String>();
            let value = words.last();
            Some((!text.ends_with("none")).then_some(value).flatten())
        }
        _ => None,
    })
}

/// Clang starts no assembler: each source is compiled to assembly, instrumented, and assembled. Clang derives names of
/// other files from its output, so it first writes the assembly to a file with the name of the output.
fn clang(parsed: &Parsed, words: &[OsString], places: Places<'_>) -> Plan {
    let links = matches!(parsed.stop, Stop::Link | Stop::PartialLink);
    let mut plan = Plan::default();
    let mut objects = Vec::new();
    for (number, (path, kind, language)) in inputs(parsed).enumerate() {
        if kind == Kind::Other {
            continue;
        }
        let folder = places.temporary.join(number.to_string());
        plan.folders.push(folder.clone());
        let stem = stem(path);
        let mut group = Group::default();
        if parsed.stop == Stop::Assembly {
            if kind == Kind::Assembly {
                continue;
            }
            let (file, shown) = match &parsed.output {
                Some(output) if is_special(output) => (
                    places.temporary.join("out.s"),
                    output == "-" || output == "/dev/stdout",
                ),
                Some(output) => (PathBuf::from(output), false),
                None => (with_extension(&stem, ".s"), false),
            };
            group.steps.push(Step::Run(compile_words(
                parsed, path, language, "-S", &file, false,
            )));
            group.steps.push(instrument_in_place(&file, path));
            group.discard.push(file.clone());
            if shown {
                group.steps.push(Step::Show(file));
            }
            plan.groups.push(group);
            continue;
        }
        let object = match &parsed.output {
            _ if links => folder.join(with_extension(&stem, ".o")),
            Some(output) if output == "-" => folder.join("out.o"),
            Some(output) => PathBuf::from(output),
            None => with_extension(&stem, ".o"),
        };
        let text = match &parsed.output {
            Some(output) if !links && is_special(output) => folder.join("out.text"),
            _ => object.clone(),
        };
        if parsed.lto && kind == Kind::Source {
            // The object is bitcode. The link makes assembly of it, which is instrumented (`lto.rs`).
            group.steps.push(Step::Run(compile_words(
                parsed, path, language, "-c", &object, links,
            )));
            objects.push((number, object));
            plan.groups.push(group);
            continue;
        }
        // With `-save-temps`, the kept assembly file is the instrumented one.
        let keeps = parsed.items.iter().find_map(|item| match item {
            Item::Option {
                class: Class::SaveTemps,
                words,
            } => Some(
                words
                    .iter()
                    .any(|word| word.to_string_lossy().ends_with("=obj")),
            ),
            _ => None,
        });
        let assembly = match keeps {
            Some(true) if !links => object.with_extension("s"),
            Some(_) if kind != Kind::Assembly => with_extension(&stem, ".s"),
            Some(_) | None => folder.join(with_extension(&stem, ".s")),
        };
        let from = match kind {
            Kind::Assembly => PathBuf::from(path),
            Kind::PreprocessedAssembly => {
                group.steps.push(Step::Run(compile_words(
                    parsed, path, language, "-E", &text, links,
                )));
                text.clone()
            }
            Kind::Source | Kind::Other => {
                group.steps.push(Step::Run(compile_words(
                    parsed, path, language, "-S", &text, links,
                )));
                text.clone()
            }
        };
        group.steps.push(Step::Instrument {
            from,
            to: assembly.clone(),
            source: path.clone(),
            marked: kind == Kind::Assembly,
        });
        group.steps.push(Step::Run(assemble_words(
            parsed,
            &assembly,
            &object,
            kind != Kind::Source,
        )));
        if parsed
            .output
            .as_deref()
            .is_some_and(|output| !links && output == "-")
        {
            group.steps.push(Step::Show(object.clone()));
        }
        if !links && !is_special(object.as_os_str()) {
            group.discard.push(object.clone());
        }
        objects.push((number, object));
        plan.groups.push(group);
    }
    if links {
        plan.link = Some(if objects.is_empty() && !parsed.lto {
            let language = matches!(last_language(parsed), Some(Some(_)));
            let mut all = words.to_vec();
            all.extend(link_words(parsed, language, places));
            all
        } else {
            clang_link(parsed, &objects, places)
        });
    } else if plan.groups.is_empty() {
        plan.link = Some(words.to_vec());
    }
    plan
}

/// The words that compile one input (`stop` is `-S` or `-c`) or preprocess it (`-E`) to the file `text`.
fn compile_words(
    parsed: &Parsed,
    path: &OsStr,
    language: Option<&OsString>,
    stop: &str,
    text: &Path,
    links: bool,
) -> Vec<OsString> {
    let mut run = Vec::new();
    for item in &parsed.items {
        match item {
            Item::Option {
                class: Class::Stop | Class::Output | Class::Language,
                ..
            }
            | Item::Input { .. } => {}
            Item::Option {
                class: Class::Linker,
                ..
            } if links => {}
            Item::Option { words, .. } => run.extend(words.iter().cloned()),
        }
    }
    if links && parsed.dependencies.wanted {
        // The object has a temporary name, so the dependency file and its target get that of the program or source.
        let named_after = parsed.output.clone();
        if !parsed.dependencies.file_named {
            let file = named_after.as_ref().map_or_else(
                || with_extension(&stem(path), ".d"),
                |output| PathBuf::from(output).with_extension("d"),
            );
            run.extend([OsString::from("-MF"), file.into()]);
        }
        if !parsed.dependencies.target_named {
            let target = named_after.unwrap_or_else(|| with_extension(&stem(path), ".o").into());
            run.extend([OsString::from("-MQ"), target]);
        }
    }
    run.push(stop.into());
    if let Some(language) = language {
        run.extend([OsString::from("-x"), language.clone()]);
    }
    run.extend([path.to_owned(), OsString::from("-o"), text.into()]);
    run
}

/// Returns the words that assemble the file `assembly` to the file `object`. `warn` says whether a person wrote the
/// assembly, so that the assembler's warnings are of use. What the compiler wrote was checked when it was written,
/// inline assembly too.
pub fn assemble_words(
    parsed: &Parsed,
    assembly: &Path,
    object: &Path,
    warn: bool,
) -> Vec<OsString> {
    // `-Qunused-arguments` prevents warnings about options of the compiler that the assembler does not use.
    let mut run = os(&["-Qunused-arguments"]);
    for item in &parsed.items {
        if let Item::Option {
            class: Class::Other,
            words,
        } = item
        {
            run.extend(words.iter().cloned());
        }
    }
    if !warn {
        run.push("-Wa,--no-warn".into());
    }
    run.extend(os(&["-c", "-x", "assembler"]));
    run.extend([assembly.into(), OsString::from("-o"), object.into()]);
    run
}

fn clang_link(parsed: &Parsed, objects: &[(usize, PathBuf)], places: Places<'_>) -> Vec<OsString> {
    let mut run = os(&["-Qunused-arguments"]);
    let mut number = 0;
    for item in &parsed.items {
        match item {
            // With link-time optimisation, the link needs options of the compiler too, such as `-mllvm`.
            Item::Option {
                class: Class::Preprocessor,
                words,
            } if parsed.lto => run.extend(words.iter().cloned()),
            Item::Option {
                class:
                    Class::Language | Class::Dependencies | Class::SaveTemps | Class::Preprocessor,
                ..
            } => {}
            Item::Option { words, .. } => run.extend(words.iter().cloned()),
            Item::Input { path, .. } => {
                let object = objects.iter().find(|(of, _)| *of == number);
                run.push(object.map_or_else(|| path.clone(), |(_, object)| object.into()));
                number += 1;
            }
        }
    }
    run.extend(link_words(parsed, false, places));
    run
}
