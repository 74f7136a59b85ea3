//! `profkit mip merge`: merges raw files into the profile of their build.
use super::profile::{ImageArgs, VERSIONS, make, open, stage};
use crate::call;
use crate::choice::choice;
use crate::exit::{Failure, Result};
use crate::merge::args::{ReportArgs, ToleranceArgs};
use crate::merge::progress::Progress;
use crate::merge::run::{MergeJob, NoResult, Remarks, Run, StagedProfile};
use crate::merge::write::write_part;
use crate::print::{self, plural};
use clap::Args;
use profkit_data::mip::{MipProfile, MipWriteOptions, ProfileVersion, write};
use profkit_merge::files::{Content, InputList, check_outputs};
use profkit_merge::mip::{MipMergeOptions, MipOutcome, MipTarget, merge_mip};
use profkit_merge::part::Merger;
use profkit_merge::{Inputs, Report, RunOptions, Threads, Weight};
use profkit_mip::profiles::{Profiles, binaries};
use profkit_report::merge::Written;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "\
Raw files are matched to profiles by build id. Files that are of other builds, truncated or
damaged are reported; of a truncated file the records before the cut are kept. Profiles (.mip)
of the same build can be inputs too.

Examples:
  profkit mip merge -p program.mip *.mipraw
  profkit mip merge -p program.mip --binary program runs/
  profkit mip merge -p profiles/ --binary bin/ --strict -f list.txt";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Raw files, profiles, folders of them (all files below them), or - for a file on standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<OsString>,

    /// Read more inputs from a list: one path per line; - reads the list from standard input
    #[arg(short = 'f', long, value_name = "LIST")]
    input_files: Vec<PathBuf>,

    /// The profile to merge into, or a folder with the profiles of several builds; may be repeated
    ///
    /// In a folder, each build has a profile of its own; a new profile is named BUILD-ID.mip.
    #[arg(short, long, value_name = "FILE|DIR", required = true)]
    profile: Vec<PathBuf>,

    /// A binary or map, or a folder with binaries below it: a new profile is made for each build that has none yet; may
    /// be repeated
    #[arg(long, value_name = "BINARY|MAP|DIR")]
    binary: Vec<PathBuf>,

    #[command(flatten)]
    image: ImageArgs,

    /// Version of the profiles that are written; by default that of the existing profile, or 9
    #[arg(long, value_parser = choice(VERSIONS), value_name = "VERSION")]
    format_version: Option<ProfileVersion>,

    /// Write the sum of the inputs as a part, which can be added to others later, and leave the profiles as they are
    ///
    /// Parts (.pkpart) are inputs of mip merge, show, doctor and diff. An input that is in two parts counts once.
    #[arg(long, value_name = "FILE")]
    part: Option<PathBuf>,

    /// Read ids of inputs from a list: the id, a tab, and the path in each line
    ///
    /// Inputs with the same id are one input that was delivered twice; only parts need ids.
    #[arg(long, value_name = "LIST")]
    input_ids: Option<PathBuf>,

    #[command(flatten)]
    report: ReportArgs,

    #[command(flatten)]
    tolerance: ToleranceArgs,

    /// Threads to use; by default one per core, but not more than there are inputs
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

pub fn run(args: &MergeArgs) -> Result {
    let (binaries, unread) = binaries(&args.binary)?;
    let (profiles, mut notes) = profiles(args, &binaries)?;
    for folder in unread {
        print::say(format_args!("warning: {folder}: its binaries are left out"));
    }
    let (report, lists) = (args.report.report.as_deref(), &args.input_files);
    let report = ("the report", report);
    for path in profiles.paths() {
        let part = ("the part", args.part.as_deref());
        check_outputs(&[("the profile", Some(path)), part, report], lists)?;
    }
    let output = args.part.as_deref().or(profiles.paths().next());
    let mut inputs = InputList::collect(&args.inputs, &args.input_files, output)?;
    if let Some(list) = &args.input_ids {
        inputs.read_ids(list)?;
    }
    if inputs.files.iter().any(|file| file.weight != Weight::ONE) {
        return Err(Failure::usage("MIP inputs cannot have weights")
            .with_hint("to count a file several times, name it several times"));
    }
    profiles.leave_out_of(&mut inputs);
    if let Some(path) = report.1 {
        inputs.leave_out_report(path);
        let read = inputs.files.iter().map(|file| &file.path);
        let read = read.chain(lists).chain(&binaries);
        let read = read.chain(&args.image.debug);
        check_outputs(&[report], read)?;
    }
    notes.extend(inputs.notes.iter().map(ToString::to_string));
    if inputs.files.is_empty() {
        let failure = Failure::usage("no inputs");
        return Err(notes
            .iter()
            .fold(failure, Failure::with_hint)
            .with_hint("name raw files, folders of raw files, or a list of them with -f LIST"));
    }
    let progress = Arc::new(Progress::new(inputs.files.len(), !args.report.quiet));
    let options = RunOptions::new()
        .threads(Threads::new(args.threads))
        .progress(Arc::clone(&progress) as _);
    let options = MipMergeOptions::new()
        .run(options)
        .take_profiles(profiles.takes_more());
    let job = MipJob {
        is_unknown: profiles.are_unknown() && args.binary.is_empty(),
        profiles,
        options,
        version: args.format_version,
        report: args.report.report.as_deref(),
        part: args.part.as_deref(),
    };
    let run = Run {
        tolerance: args.tolerance.into(),
        progress: Some(progress),
        ..Run::new(&args.report, notes)
    };
    run.merge(job, &inputs)
}

struct MipJob<'a> {
    profiles: Profiles,
    /// Whether only an input can say of which build the new profile is.
    is_unknown: bool,
    options: MipMergeOptions,
    version: Option<ProfileVersion>,
    report: Option<&'a Path>,
    /// Where the sum is written as a part.
    part: Option<&'a Path>,
}

impl MergeJob for MipJob<'_> {
    /// The profiles, and the bytes of the part if one is written.
    type Merged<'i> = (Vec<MipTarget>, Option<Vec<u8>>);

    fn output(&self) -> Option<&Path> {
        self.part
    }

    fn check(&mut self) -> Result<()> {
        if let Some(part) = self.part {
            call::output(part, Content::Binary)?;
        }
        Ok(())
    }

    fn merge(
        &mut self,
        inputs: &dyn Inputs,
    ) -> std::result::Result<(Self::Merged<'_>, Report), NoResult> {
        let mut targets = std::mem::take(&mut self.profiles.targets);
        let mut part = None;
        let outcome = if self.part.is_some() {
            // What the profiles count already is not in the part.
            let profiles = targets.iter_mut().map(|target| &mut target.profile);
            profiles.for_each(MipProfile::clear_runs);
            let mut merger = Merger::of_mip(targets, self.options.clone());
            merger.add(inputs)?;
            part = Some(merger.encode()?);
            merger.finish_mip()?
        } else {
            merge_mip(targets, inputs, &self.options)?
        };
        let MipOutcome { targets, report } = outcome;
        let details = report.mip.as_ref();
        if details.is_none_or(|details| details.raw_parts + details.profiles == 0) {
            let failure = Failure::input(format_args!(
                "nothing was written, because none of the inputs could be used ({})",
                plural(report.totals.files, "file")
            ));
            let hint = self.is_unknown.then_some(
                "the profile that -p names does not exist yet: to create it, give the profiled program with --binary BINARY, or add an existing profile of that program (.mip) to the inputs",
            );
            return Err(NoResult {
                report: Box::new(report),
                failure: failure.with_hints(hint),
                says_all: false,
            });
        }
        Ok(((targets, part), report))
    }

    fn encode(
        &mut self,
        (targets, part): Self::Merged<'_>,
        report: &Report,
        _: &mut Remarks,
    ) -> Result<Vec<StagedProfile>> {
        if let (Some(path), Some(part)) = (self.part, part) {
            let counts = targets
                .iter()
                .map(|target| target.profile.function_counts());
            let output = call::output(path, Content::Binary)?;
            let functions = counts.clone().map(|(functions, _)| functions).sum();
            let mut staged = write_part(output, &part, functions, Vec::new())?;
            staged.written.covered = Some(counts.map(|(_, covered)| covered).sum());
            staged.written.runs = report.mip.as_ref().map(|details| details.runs);
            return Ok(vec![staged]);
        }
        let added = report.mip.as_ref().map(|details| &details.targets);
        let places = self.profiles.places(&targets)?;
        let mut ready = Vec::new();
        for (index, (target, place)) in targets.iter().zip(&places).enumerate() {
            let added = added.and_then(|targets| targets.get(index));
            let changed = added.is_some_and(|target| target.runs_added > 0);
            if !changed && !place.is_new {
                continue;
            }
            let outputs = [
                ("the profile", Some(&*place.path)),
                ("the report", self.report),
            ];
            check_outputs(&outputs, [""; 0])?;
            let version = self.version.unwrap_or(place.version);
            let (functions, covered) = target.profile.function_counts();
            let written = Written {
                path: profkit_data::path_text(&place.path),
                format: "MIP",
                functions,
                covered: Some(covered),
                runs: Some(target.profile.runs),
                ..Written::default()
            };
            let file = stage(&place.path, &target.profile, version)?;
            ready.push(StagedProfile { file, written });
        }
        Ok(ready)
    }
}

/// The bytes of the profile that is the sum of a store.
pub fn profile_of_sum(store: &str, sum: Merger) -> Result<Vec<u8>> {
    let outcome = sum.finish_mip().map_err(NoResult::from);
    let outcome = outcome.map_err(|error| error.failure)?;
    let [target] = &outcome.targets[..] else {
        return Err(match outcome.targets.len() {
            0 => Failure::input(format_args!("{store}: none of the inputs could be used")),
            builds => Failure::input(format_args!(
                "{store}: the store has MIP profiles of {builds} builds, which have no common profile"
            ))
            .with_hint(format!(
                "write a profile for each build: mkdir FOLDER && profkit mip merge -p FOLDER {store}/parts/mip"
            )),
        });
    };
    let mut bytes = Vec::new();
    write(&target.profile, &MipWriteOptions::new(), &mut bytes)
        .map_err(|error| Failure::file(store, &error))?;
    Ok(bytes)
}

fn profiles(args: &MergeArgs, binaries: &[PathBuf]) -> Result<(Profiles, Vec<String>)> {
    let waits = |folder: &Path| {
        if !args.report.quiet {
            let folder = profkit_data::path_text(folder);
            print::say(format_args!(
                "note: another process merges into a profile in {folder}; waiting until it is done"
            ));
        }
    };
    let mut profiles = Profiles::new(&args.profile, waits)?;
    let mut earlier = (0, 0);
    for path in profiles.files().to_vec() {
        let opened = open(&path)?;
        if opened.profile.runs > 0 {
            earlier = (earlier.0 + 1, earlier.1 + opened.profile.runs);
        }
        profiles.add(&path, opened.profile, opened.version)?;
    }
    let mut notes: Vec<_> = profiles
        .locks
        .failed
        .iter()
        .map(ToString::to_string)
        .collect();
    let (files, runs) = earlier;
    if runs > 0 && args.part.is_none() {
        let has = if files == 1 { "has" } else { "have" };
        notes.push(format!(
            "{} {has} {} already, to which this merge adds; a merge that is repeated counts again, unless the profile is removed first",
            plural(files, "profile"),
            plural(runs, "run"),
        ));
    }
    for path in binaries {
        let made = make(path, &args.image, None)?;
        if profiles.add_new(path, made.profile)? {
            notes.extend(made.notes);
            notes.extend(made.dropped);
        }
    }
    Ok((profiles, notes))
}
