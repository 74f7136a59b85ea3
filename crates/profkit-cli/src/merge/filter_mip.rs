//! MIP profiles in `profkit filter`.
use super::args::Format;
use super::convert;
use super::filter::{Cut, FilterArgs, too_small};
use super::run::{MergeJob, NoResult, Remarks, Run, StagedProfile, refuse_losses};
use crate::call;
use crate::exit::{Failure, Result};
use profkit_data::detect::FileKind;
use profkit_data::mip::{MipForm, MipProfile, MipWriteOptions, ProfileVersion, write, yaml};
use profkit_merge::files::{Content, Input, SingleInput};
use profkit_merge::{Inputs, Report};
use profkit_report::merge::Written;
use std::path::{Path, PathBuf};

pub fn filter(args: &FilterArgs, cut: Cut, kind: FileKind, input: &Input) -> Result {
    refuse_kind(kind)?;
    let given = [
        (args.to.is_some(), "--to"),
        (args.version.llvm.is_some(), "--llvm"),
        (args.version.indexed_version.is_some(), "--indexed-version"),
        (args.drop_symbol_list, "--drop-symbol-list"),
    ];
    if let Some((_, option)) = given.iter().find(|(given, _)| *given) {
        let failure = Failure::usage(format_args!("{option} means nothing for a MIP profile"));
        return Err(match *option {
            "--drop-symbol-list" => failure,
            _ => failure.with_hint(KEEPS_FORM),
        });
    }
    if Format::of_name(&args.output).is_some() {
        return Err(Failure::usage(format_args!(
            "{}: this is the name of another kind of profile, and the input is a MIP profile",
            profkit_data::path_text(&args.output)
        ))
        .with_hint(KEEPS_FORM));
    }
    let job = MipCut {
        input,
        output: args.output.clone(),
        strict: args.report.strict,
        cut,
    };
    let replaced = convert::replaced(&args.input, &args.output);
    Run::new(&args.report, replaced).merge(job, &SingleInput(input))
}

const KEEPS_FORM: &str = "the result has the form of the input; `profkit mip mip2yaml` and `yaml2mip` turn a profile (.mip) into YAML and back";

fn refuse_kind(kind: FileKind) -> Result<()> {
    let (what, hint) = match kind {
        FileKind::Part(_) => (
            "a part of a merge of MIP files holds what is not decided yet",
            "`profkit mip merge -p PROFILE PART` adds it to the profile of its build, which can be filtered",
        ),
        FileKind::MipRaw | FileKind::MipReturnAddresses => (
            "a raw MIP file holds counts without names",
            "`profkit mip merge -p PROFILE --binary PROGRAM` adds it to the profile of its build, which can be filtered",
        ),
        FileKind::MipMap => (
            "a MIP map lists functions and has no counts",
            "`profkit mip create` makes a profile of it, which can be filtered",
        ),
        _ => return Ok(()),
    };
    Err(Failure::usage(format_args!("{what}, so it cannot be filtered")).with_hint(hint))
}

struct MipCut<'a> {
    input: &'a Input,
    output: PathBuf,
    strict: bool,
    cut: Cut,
}

impl MergeJob for MipCut<'_> {
    type Merged<'i> = (MipProfile, MipForm);

    fn output(&self) -> Option<&Path> {
        Some(&self.output)
    }

    fn check(&mut self) -> Result<()> {
        Ok(call::output(&self.output, Content::Binary).map(drop)?)
    }

    fn merge(
        &mut self,
        _: &dyn Inputs,
    ) -> std::result::Result<(Self::Merged<'_>, Report), NoResult> {
        let bytes = self.input.bytes();
        let mut report = Report::new();
        report.totals.files = 1;
        report.totals.bytes = bytes.len() as u64;
        match MipProfile::open(bytes) {
            Ok(opened) => {
                report.totals.files_kept = 1;
                report.totals.functions = opened.0.function_counts().0;
                Ok((opened, report))
            }
            Err(error) => {
                report.totals.files_dropped = 1;
                Err(NoResult {
                    report: Box::new(report),
                    failure: Failure::file(self.input.name(), &error),
                    says_all: true,
                })
            }
        }
    }

    fn encode(
        &mut self,
        (mut profile, form): Self::Merged<'_>,
        _: &Report,
        remarks: &mut Remarks,
    ) -> Result<Vec<StagedProfile>> {
        let name = profkit_data::path_text(&self.output);
        let failure = |error| Failure::file(&name, &error);
        let mut filtered = self.cut.mip(&mut profile).map_err(failure)?;
        if let Some(limit) = self.cut.size_limit() {
            let size = |profile: &MipProfile| Ok(encoded(profile, form)?.len() as u64);
            let fits = filtered.fit_mip(&mut profile, limit, size);
            if !fits.map_err(failure)? {
                return Err(too_small(&name, limit));
            }
        }
        remarks.filtered.push(filtered);
        self.cut.check_rest(&name, remarks)?;
        let losses: Vec<String> = lost_runs(&mut profile, form).into_iter().collect();
        refuse_losses(&name, &losses, self.strict)?;
        let bytes = encoded(&profile, form).map_err(failure)?;
        let content = match form {
            MipForm::Yaml(_) => Content::Text,
            _ => Content::Binary,
        };
        let file = call::output(&self.output, content)?.stage(|sink| sink.put(&bytes))?;
        let (functions, covered) = profile.function_counts();
        let written = Written {
            path: name,
            format: match form {
                MipForm::Yaml(_) => "MIP as YAML",
                _ => "MIP",
            },
            functions,
            covered: Some(covered),
            runs: Some(profile.runs),
            losses,
            ..Written::default()
        };
        Ok(vec![StagedProfile { file, written }])
    }
}

/// Version 8 states the number of runs only by the functions. Returns what is said if the file states fewer.
fn lost_runs(profile: &mut MipProfile, form: MipForm) -> Option<String> {
    let called = profile.functions.iter().map(|one| one.called_runs);
    let left = called.max().unwrap_or(0);
    if form.version() != Some(ProfileVersion::V8) || left >= profile.runs {
        return None;
    }
    let runs = std::mem::replace(&mut profile.runs, left);
    Some(format!(
        "MIP version 8 states the number of runs only by the functions: {left} of {runs} are left"
    ))
}

fn encoded(profile: &MipProfile, form: MipForm) -> profkit_data::Result<Vec<u8>> {
    let version = form.version().unwrap_or_default();
    let options = MipWriteOptions::new().version(version);
    let mut bytes = Vec::new();
    match form {
        MipForm::Yaml(_) => yaml::write(profile, &options, &mut bytes)?,
        MipForm::Profile(_) | MipForm::Map => write(profile, &options, &mut bytes)?,
    };
    Ok(bytes)
}
