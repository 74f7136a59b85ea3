//! `profkit merge --manifest`: the file that says what a profile was made of.
use super::args::MergeArgs;
use crate::exit::{Failure, Result};
use crate::print;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, Command};
use profkit_analysis::manifest::{Hashed, Input, Manifest, OptionFile};
use profkit_data::path_text;
use profkit_merge::Inputs;
use profkit_merge::files::{Content, InputList, Output, is_stdio};
use profkit_object::producers::producers;
use std::path::{Path, PathBuf};

/// The options that do not decide what is in a profile.
const OF_THE_RUN: [&str; 20] = [
    "output",
    "input-files",
    "input-ids",
    "threads",
    "report",
    "annotate",
    "quiet",
    "verbose",
    "strict",
    "max-dropped",
    "min-files",
    "manifest",
    "dry-run",
    "no-index-cache",
    "debuginfod",
    "debuginfod-budget",
    "debug-file-directory",
    "color",
    "no-pager",
    "by-build-id",
];

/// The options that name files whose contents decide what is in a profile.
const FILES: [&str; 5] = [
    "binaries",
    "remapping-file",
    "supplement-with",
    "symbol-list",
    "like",
];

#[derive(Debug)]
pub struct ManifestFile {
    output: PathBuf,
    profile: PathBuf,
    options: Vec<String>,
    files: Vec<(String, PathBuf)>,
}

impl ManifestFile {
    /// The manifest that the command line asks for.
    pub fn new(args: &MergeArgs, matches: &ArgMatches) -> Result<Option<Self>> {
        let Some(named) = &args.stable.manifest else {
            return Ok(None);
        };
        let profile = args.destination.output.as_deref();
        let Some(profile) = profile.filter(|path| !is_stdio(path)) else {
            return Err(Failure::usage(
                "--manifest is about a profile in a file, and standard output is none",
            )
            .with_hint("use -o FILE"));
        };
        let (options, files) = words(matches);
        let output = named.clone();
        Ok(Some(ManifestFile {
            output: output.unwrap_or_else(|| Manifest::path_beside(profile)),
            profile: profile.to_owned(),
            options,
            files,
        }))
    }

    /// Writes the manifest of the profile, which is written already.
    pub fn write(self, args: &MergeArgs, inputs: &InputList) -> Result<()> {
        let name = path_text(&self.profile);
        let data = read(&self.profile)?;
        let mut manifest = Manifest::new(self.options, Hashed::of(&name, &data), &data);
        for index in 0..inputs.len() {
            let (name, weight) = (inputs.name(index), inputs.weight(index));
            // An input that cannot be read is in the report of the merge, and nothing of it is in the profile.
            let _ = inputs.look_at(index, &mut |data| {
                manifest.inputs.push(Input::of(&name, data, weight));
            });
        }
        manifest.inputs.sort_unstable();
        for (option, path) in self.files.iter().filter(|(option, _)| option != "binaries") {
            let file = Hashed::of(&path_text(path), &read(path)?);
            let option = format!("--{option}");
            manifest.option_files.push(OptionFile { option, file });
        }
        if args.correlation.is_used() {
            let found = args.correlation.index(&mut Vec::new(), false)?;
            for binary in &found.index.binaries {
                let data = read(&binary.path)?;
                manifest.tool_chain.extend(producers(&data));
                let option = "--binaries".to_owned();
                let file = Hashed::of(&path_text(&binary.path), &data);
                manifest.option_files.push(OptionFile { option, file });
            }
        }
        manifest.option_files.sort_unstable();
        manifest.option_files.dedup();
        manifest.tool_chain.sort_unstable();
        manifest.tool_chain.dedup();
        let json = manifest
            .to_json()
            .map_err(|error| Failure::io("cannot be written", path_text(&self.output), &error))?;
        Output::new(&self.output, Content::Text)?.write(|sink| sink.put(&json))?;
        if !args.report.quiet {
            print::wrote(&self.output);
        }
        Ok(())
    }
}

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::io("cannot be read", path_text(path), &error))
}

/// The first word of a manifest's options that [`ManifestFile::new`] does not write. A manifest may come from a stranger: an
/// option such as `--report=FILE` would write a file, and `--debuginfod` would ask servers.
pub fn not_of_a_manifest(options: &[String]) -> Option<&String> {
    let command = MergeArgs::augment_args(Command::new("merge"));
    let is_known = |word: &&String| {
        let name = word.strip_prefix("--");
        let name = name.and_then(|rest| rest.split('=').next());
        name.is_some_and(|name| {
            let mut known = command.get_arguments();
            known.any(|argument| argument.get_long() == Some(name))
                && !OF_THE_RUN.contains(&name)
                && !FILES.contains(&name)
        })
    };
    options.iter().find(|word| !is_known(word))
}

/// The options on the command line that decide what is in the profile, and the files that others of them name.
fn words(matches: &ArgMatches) -> (Vec<String>, Vec<(String, PathBuf)>) {
    let (mut words, mut files) = (Vec::new(), Vec::new());
    let command = MergeArgs::augment_args(Command::new("merge"));
    for argument in command.get_arguments() {
        let Some(long) = argument.get_long() else {
            continue;
        };
        let id = argument.get_id().as_str();
        let is_given = matches!(matches.try_contains_id(id), Ok(true))
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        if !is_given || OF_THE_RUN.contains(&long) {
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        if FILES.contains(&long) {
            files.extend(values.map(|path| (long.to_owned(), PathBuf::from(path))));
        } else if matches!(argument.get_action(), ArgAction::SetTrue) {
            words.push(format!("--{long}"));
        } else {
            let mut values = values.map(|value| value.to_string_lossy()).peekable();
            if values.peek().is_none() {
                words.push(format!("--{long}"));
            }
            words.extend(values.map(|value| format!("--{long}={value}")));
        }
    }
    words.sort_unstable();
    (words, files)
}
