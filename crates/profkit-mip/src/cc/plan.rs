//! Turns a driver's command line into the steps that replace it. Pure: it looks at no file and starts no program.
use super::parse::{Class, Family, Item, Kind, Parsed, Stop};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run the compiler with these words.
    Run(Vec<OsString>),
    /// Instrument a file of assembly.
    Instrument {
        /// The file of assembly to read; `-` is standard input.
        from: PathBuf,
        /// The file to write: the same file or another.
        to: PathBuf,
        /// The user's file, which messages name.
        source: OsString,
        /// Whether the assembly must name the user's file. Without that, the assembler's messages would name `to`.
        marked: bool,
    },
    /// Copy a file to standard output.
    Show(PathBuf),
}

/// Steps in their order. When one fails, the rest of the group is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub steps: Vec<Step>,
    /// Outputs to remove when a step fails.
    pub discard: Vec<PathBuf>,
}

/// All steps of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// One group per input that is compiled or assembled.
    pub groups: Vec<Group>,
    /// The link, which runs if no group failed.
    pub link: Option<Vec<OsString>>,
    /// Folders to create first.
    pub folders: Vec<PathBuf>,
}

/// Facts about the system that the plan needs.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// A folder for files that exist only during the call.
    pub temporary: &'a Path,
    /// The runtime; None links none.
    pub runtime: Option<&'a Path>,
    /// Words for the linker; they follow the runtime.
    pub linker: &'a [OsString],
}

fn os(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The file name without its extension; drivers name their outputs by it.
fn stem(input: &OsStr) -> OsString {
    Path::new(input).file_stem().unwrap_or(input).to_owned()
}

fn with_extension(stem: &OsStr, extension: &str) -> PathBuf {
    let mut name = stem.to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// Whether an output cannot hold assembly for a while, because it is not an ordinary file in a folder.
fn is_special(output: &OsStr) -> bool {
    output == "-" || Path::new(output).starts_with("/dev")
}

/// The words that a link gets after the user's words.
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

/// Plans a call. `words` are the user's words; response files are not yet replaced.
pub fn plan(parsed: &Parsed, words: &[OsString], family: Family, places: Places<'_>) -> Plan {
    let compiled = inputs(parsed)
        .filter(|(_, kind, _)| *kind != Kind::Other)
        .count();
    let one_output =
        parsed.output.is_some() && parsed.stop != Stop::Link && parsed.stop != Stop::PartialLink;
    if one_output && compiled > 1 {
        // The compiler prints the error for this itself.
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

/// GCC starts our assembler (`-B`), so that everything else stays as in a plain build. Only `-S` runs no assembler.
fn gcc(parsed: &Parsed, words: &[OsString], places: Places<'_>) -> Plan {
    let mut run = vec![OsString::from("-B"), places.temporary.join("").into()];
    let language = matches!(last_language(parsed), Some(Some(_)));
    let special = parsed.output.as_ref().filter(|output| is_special(output));
    if parsed.stop == Stop::Assembly && special.is_some() {
        // The compiler writes the assembly to another file first.
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

/// The language in force after the last word.
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

/// Clang has its assembler inside. So a source is compiled to assembly under the output's own name, instrumented,
/// assembled into the output, and linked. With the output's own name, files that are named after the output (dependency
/// files, for example) get the right name.
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
        // With `-save-temps` the user keeps the assembly that was assembled.
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
        group
            .steps
            .push(Step::Run(assemble_words(parsed, &assembly, &object)));
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
        plan.link = Some(if objects.is_empty() {
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

/// Words that compile (`-S`) or preprocess (`-E`) one input into `text`.
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
        // Dependency files are named after the program or the source, not after an object that the user never sees.
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

/// Words that assemble.
fn assemble_words(parsed: &Parsed, assembly: &Path, object: &Path) -> Vec<OsString> {
    // Options that only the compiler uses must not cause a warning now.
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
    run.extend(os(&["-c", "-x", "assembler"]));
    run.extend([assembly.into(), OsString::from("-o"), object.into()]);
    run
}

fn clang_link(parsed: &Parsed, objects: &[(usize, PathBuf)], places: Places<'_>) -> Vec<OsString> {
    let mut run = os(&["-Qunused-arguments"]);
    let mut number = 0;
    for item in &parsed.items {
        match item {
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
