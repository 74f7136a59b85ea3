//! `profkit verify`: makes a profile again, and compares the bytes.
use crate::call::{self, Call};
use crate::choice::choice;
use crate::exit::{Failure, Result, Status, must_exist};
use crate::merge::manifest::not_of_a_manifest;
use crate::print::{self, FORMATS, Format};
use clap::Args;
use profkit_analysis::diff::{DiffOptions, ProfileDiff};
use profkit_analysis::manifest::{Hashed, Manifest};
use profkit_analysis::overlap::ComparedProfile;
use profkit_analysis::selection::Selection;
use profkit_data::path_text;
use profkit_merge::Inputs;
use profkit_merge::files::{GivenInput, InputFile, InputList, InputSource, is_stdio};
use profkit_report::diff::DiffReport;
use profkit_report::verify::{ManifestCheck, VerifyReport};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
The runs are merged with the options of the manifest beside the profile (PROFILE.manifest.json, which
profkit merge --manifest writes) and with those after --. Files that options name, such as
--remapping-file, are not in a manifest: give them after --. Runs get the weights of the manifest.

The exit code is 0 if the bytes are the same, and 1 if they differ: then functions and counts are compared
as profkit diff does. Other runs than those of the manifest may give the same bytes too, if the profile
was made with --stable; what the manifest does not have is said.

Examples:
  profkit merge runs/ --stable --manifest -o app.profdata
  profkit verify app.profdata runs/
  profkit verify old.profdata runs/ -- --sparse --llvm 19
  profkit verify app.profdata new-runs/ -- --like app.profdata";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The profile that is compared
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,

    /// The runs that it was made of, as for profkit merge: [WEIGHT,]FILE, folders, archives
    #[arg(value_name = "RUNS", required = true)]
    runs: Vec<OsString>,

    /// Options of profkit merge, in addition to those of the manifest
    #[arg(value_name = "OPTION", last = true, allow_hyphen_values = true)]
    options: Vec<OsString>,

    /// Read the manifest from this file [default: PROFILE.manifest.json, if there is one]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,

    /// Show at most this many functions that differ
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Output format; docs/formats/manifest.md describes the JSON
    #[arg(long, value_parser = choice(FORMATS), default_value = "text", value_name = "FORMAT")]
    format: Format,
}

pub fn run(args: &VerifyArgs) -> Result {
    must_exist(&args.profile)?;
    let old = crate::merge::manifest::read(&args.profile)?;
    let (path, manifest) = match args.manifest()? {
        Some((path, manifest)) => (path, Some(manifest)),
        None => (String::new(), None),
    };
    let mut other_files = Vec::new();
    if let Some(manifest) = &manifest {
        other_files = args.other_files(manifest)?;
    }
    let list = InputList::collect(&args.runs, &[], None)?;
    print::notes(&list.notes);
    let mut hashes = Vec::with_capacity(list.len());
    let mut weights = Vec::new();
    for (index, file) in (0..).zip(&list.files) {
        let mut hash = String::new();
        let look = &mut |data: &[u8]| hash = Hashed::of("", data).sha256;
        // The merge reports an input that cannot be read.
        let _ = list.look_at(index, look);
        let stated = manifest.as_ref().and_then(|it| it.weight_of(&hash));
        let stated = stated.filter(|weight| file.weight.is_one() && !weight.is_one());
        weights.extend(stated.map(|weight| (index, weight)));
        hashes.push(hash);
    }
    let inputs = match weights.is_empty() {
        true => Vec::new(),
        false => {
            let mut inputs = given(&list)?;
            for (index, weight) in weights {
                if let Some(input) = inputs.get_mut(index) {
                    input.weight = weight;
                }
            }
            inputs
        }
    };
    let new = args.merged(manifest.as_ref(), inputs)?;
    let check = manifest.as_ref().map(|manifest| {
        let (missing, others) = manifest.compare_inputs(&hashes);
        ManifestCheck {
            name: &path,
            versions: [&manifest.profkit, env!("CARGO_PKG_VERSION")],
            mismatch: manifest.mismatch(&path, &old),
            missing,
            others,
            other_files,
        }
    });
    let name = path_text(&args.profile);
    let mut report = VerifyReport {
        profile: &name,
        inputs: list.len() as u64,
        bytes: [&old, &new],
        manifest: check,
        diff: None,
    };
    if report.is_same() {
        print::answer(&report, args.format)?;
        return Ok(Status::Done);
    }
    let opened = ComparedProfile::open_all(&[&old, &new]);
    // A profile that cannot be read has other bytes; `profkit doctor` says what is wrong with it.
    let opened: std::result::Result<Vec<_>, _> = opened.into_iter().collect();
    let opened = opened.unwrap_or_default();
    let options = DiffOptions {
        selection: Selection::everything(),
        most: args.top,
    };
    let diff = match opened.as_slice() {
        [old, new] => ProfileDiff::of(old, new, &options).ok(),
        _ => None,
    };
    if let ([old, new], Some(diff)) = (opened.as_slice(), &diff) {
        report.diff = Some(DiffReport {
            paths: [&name, "made again"],
            profiles: [old, new],
            diff,
            spelling: Default::default(),
        });
    }
    print::answer(&report, args.format)?;
    Ok(Status::InputBad)
}

impl VerifyArgs {
    /// The manifest, and its name in messages.
    fn manifest(&self) -> Result<Option<(String, Manifest)>> {
        let beside = Manifest::path_beside(&self.profile);
        let path = match &self.manifest {
            Some(path) => path,
            None if beside.is_file() => &beside,
            None => return Ok(None),
        };
        let name = path_text(path);
        let manifest = Manifest::parse(&crate::merge::manifest::read(path)?);
        let manifest = manifest.map_err(|error| Failure::file(&name, &error))?;
        if let Some(word) = not_of_a_manifest(&manifest.options) {
            return Err(Failure::input(format_args!(
                "{name}: {word:?} is no option that a manifest may have"
            ))
            .with_hint("profkit merge did not write this manifest: do not trust it, and give the options after --"));
        }
        Ok(Some((name, manifest)))
    }

    /// Says which files of options have other bytes than those of the manifest. Fails if an option that named a file is not
    /// among the given ones.
    fn other_files(&self, manifest: &Manifest) -> Result<Vec<String>> {
        let mut others = Vec::new();
        for needed in &manifest.option_files {
            let option = needed.option.as_str();
            let Some(path) = self.file_of(option) else {
                return Err(Failure::usage(format_args!(
                    "the profile was made with {option} {}, which the manifest knows by its hash alone",
                    needed.file.name
                ))
                .with_hint(format_args!("give the file after --: -- {option} FILE")));
            };
            // The programs of --binaries are found by build id, also in folders.
            if option == "--binaries" {
                continue;
            }
            let name = path_text(&path);
            let given = Hashed::of(&name, &crate::merge::manifest::read(&path)?);
            if given.sha256 != needed.file.sha256 {
                others.push(format!(
                    "{option} {name} is not the file of the manifest: SHA-256 {}, not {}",
                    given.sha256, needed.file.sha256
                ));
            }
        }
        Ok(others)
    }

    /// The file that a given option names: `--option FILE` or `--option=FILE`.
    fn file_of(&self, option: &str) -> Option<PathBuf> {
        let mut words = self.options.iter();
        while let Some(word) = words.next() {
            let word = word.to_string_lossy();
            match word.strip_prefix(option) {
                Some("") => return words.next().map(PathBuf::from),
                Some(rest) => {
                    if let Some(path) = rest.strip_prefix('=') {
                        return Some(PathBuf::from(path));
                    }
                }
                None => {}
            }
        }
        None
    }

    /// The profile that a merge makes. `inputs` replace the runs of the command line, if there are any.
    fn merged(&self, manifest: Option<&Manifest>, inputs: Vec<GivenInput>) -> Result<Vec<u8>> {
        let mut words: Vec<OsString> = vec!["merge".into(), "--quiet".into(), "-o-".into()];
        let options = manifest.map_or(&[][..], |manifest| &manifest.options);
        words.extend(options.iter().map(OsString::from));
        words.extend(self.options.iter().cloned());
        if inputs.is_empty() {
            words.push("--".into());
            words.extend(self.runs.iter().cloned());
        }
        let answer = call::call(Call {
            args: words,
            inputs,
            cancel: Default::default(),
        });
        answer.messages.lines().for_each(print::say);
        match answer.failure {
            Some(failure) => Err(failure),
            None => Ok(answer.output),
        }
    }
}

/// The inputs of a list, one by one: files by their paths, members of archives and standard input by their bytes.
fn given(list: &InputList) -> Result<Vec<GivenInput>> {
    let one = |(index, file): (usize, &InputFile)| {
        let source = if file.is_member() || is_stdio(&file.path) {
            let mut bytes = Vec::new();
            list.look_at(index, &mut |data| bytes = data.to_owned())
                .map_err(|error| Failure::io("cannot be read", &file.name, &error))?;
            InputSource::Memory {
                name: file.name.clone(),
                bytes: Box::new(bytes),
            }
        } else {
            InputSource::Path(file.path.clone())
        };
        Ok(GivenInput {
            source,
            weight: file.weight,
            id: None,
            missing_ok: false,
        })
    };
    list.files.iter().enumerate().map(one).collect()
}
