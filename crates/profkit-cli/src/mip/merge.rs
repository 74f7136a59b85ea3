//! `profkit mip merge`: merges raw files into the profile of their build.
use super::profile::{FormatVersion, ImageArgs, make, open, write};
use crate::exit::{Failure, Result};
use crate::merge::args::{ReportArgs, ToleranceArgs};
use crate::merge::progress::Progress;
use crate::merge::run::{MergeJob, NoResult, Remarks, Run};
use crate::print::plural;
use clap::Args;
use profkit_data::mip::{Identity, ProfileVersion};
use profkit_merge::files::InputList;
use profkit_merge::mip::{MipMergeOptions, MipOutcome, MipTarget, merge_mip};
use profkit_merge::{Inputs, Report, RunOptions, Threads, Weight};
use profkit_report::merge::Written;
use std::ffi::OsString;
use std::fs;
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

/// Arguments of `profkit mip merge`.
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

    /// A binary or map, or a folder of binaries: a new profile is made for each of their builds that has none yet; may
    /// be repeated
    #[arg(long, value_name = "BINARY|MAP|DIR")]
    binary: Vec<PathBuf>,

    #[command(flatten)]
    image: ImageArgs,

    /// Version of the profiles that are written; by default that of the existing profile, or 9
    #[arg(long, value_enum, value_name = "VERSION")]
    format_version: Option<FormatVersion>,

    #[command(flatten)]
    report: ReportArgs,

    #[command(flatten)]
    tolerance: ToleranceArgs,

    /// Threads to use; by default one per core, but not more than there are inputs
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// The file of a profile. The file need not exist yet.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    version: ProfileVersion,
    is_new: bool,
}

#[derive(Debug, Default)]
struct Profiles {
    targets: Vec<MipTarget>,
    places: Vec<Place>,
    /// The folder for new profiles; `None` if the user named no folder.
    folder: Option<PathBuf>,
    /// The path that the user named for a profile that does not exist yet. The field becomes `None` when the profile of
    /// a build gets this path. It is `None` from the start if the user named no such path.
    new_file: Option<PathBuf>,
    notes: Vec<String>,
}

/// Runs `profkit mip merge`.
///
/// # Errors
/// If the result cannot be written, for whatever reason.
pub fn run(args: &MergeArgs) -> Result {
    let mut profiles = Profiles::collect(args)?;
    let output = profiles.places.first().map(|place| place.path.clone());
    let mut inputs = InputList::collect(&args.inputs, &args.input_files, output.as_deref())?;
    if inputs.files.iter().any(|file| file.weight != Weight::ONE) {
        return Err(Failure::usage("MIP inputs cannot have weights")
            .with_hint("to count a file several times, name it several times"));
    }
    let own: Vec<_> = profiles
        .places
        .iter()
        .filter_map(|place| fs::canonicalize(&place.path).ok())
        .collect();
    if !own.is_empty() {
        inputs
            .files
            .retain(|file| !fs::canonicalize(&file.path).is_ok_and(|path| own.contains(&path)));
    }
    let mut notes = std::mem::take(&mut profiles.notes);
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
        .take_profiles(profiles.folder.is_some() || profiles.new_file.is_some());
    let job = MipJob {
        profiles,
        options,
        version: args.format_version,
    };
    let run = Run {
        tolerance: args.tolerance.into(),
        progress: Some(progress),
        ..Run::new(&args.report, notes)
    };
    run.merge(job, &inputs)
}

/// A merge of MIP files.
struct MipJob {
    profiles: Profiles,
    options: MipMergeOptions,
    version: Option<FormatVersion>,
}

impl MergeJob for MipJob {
    type Merged = Vec<MipTarget>;

    fn output(&self) -> Option<&Path> {
        None
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    fn merge(
        &mut self,
        inputs: &dyn Inputs,
    ) -> std::result::Result<(Vec<MipTarget>, Report), NoResult> {
        let targets = std::mem::take(&mut self.profiles.targets);
        let MipOutcome { targets, report } =
            merge_mip(targets, inputs, &self.options).map_err(Failure::input)?;
        let details = report.mip.as_ref();
        if details.is_none_or(|details| details.raw_parts + details.profiles == 0) {
            let failure = Failure::input(format_args!(
                "nothing was written, because none of the inputs could be used ({})",
                plural(report.totals.files, "file")
            ));
            return Err(NoResult {
                report: Box::new(report),
                failure,
                says_all: false,
            });
        }
        Ok((targets, report))
    }

    fn write(
        &mut self,
        targets: Vec<MipTarget>,
        _: &dyn Inputs,
        report: &Report,
        _: &mut Remarks,
    ) -> Result<Vec<Written>> {
        let added = report.mip.as_ref().map(|details| &details.targets);
        let mut written = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            let added = added.and_then(|targets| targets.get(index));
            let changed = added.is_some_and(|target| target.runs_added > 0);
            let place = self.profiles.place(index, &target.profile.identity)?;
            if !changed && !place.is_new {
                continue;
            }
            let version = self.version.map_or(place.version, Into::into);
            let bytes = write(&place.path, &target.profile, version)?;
            let (functions, covered) = target.profile.function_counts();
            written.push(Written {
                path: profkit_data::path_text(&place.path),
                bytes,
                format: "MIP",
                functions,
                covered: Some(covered),
                runs: Some(target.profile.runs),
                ..Written::default()
            });
        }
        Ok(written)
    }
}

impl Profiles {
    fn collect(args: &MergeArgs) -> Result<Self> {
        let mut profiles = Profiles::default();
        for path in &args.profile {
            let is_folder = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
            if is_folder {
                profiles.add_folder(path)?;
            } else if path.exists() {
                profiles.add_file(path)?;
            } else if profiles.new_file.replace(path.clone()).is_some() {
                return Err(Failure::usage(format_args!(
                    "{}: -p names a second profile that does not exist yet, so it is unknown which inputs belong to which profile",
                    profkit_data::path_text(path)
                ))
                .with_hint("give a folder: -p FOLDER"));
            }
        }
        let mut binaries = Vec::new();
        for path in &args.binary {
            if path.is_dir() {
                let failed = |error| {
                    Failure::io(
                        "cannot read the folder",
                        profkit_data::path_text(path),
                        &error,
                    )
                };
                for entry in fs::read_dir(path).map_err(failed)? {
                    let path = entry.map_err(failed)?.path();
                    // Binaries without a map are skipped. Damaged binaries are kept, so that their damage is reported.
                    if path.is_file() && has_map(&path) {
                        binaries.push(path);
                    }
                }
            } else {
                binaries.push(path.clone());
            }
        }
        binaries.sort();
        for path in &binaries {
            profiles.add_binary(path, args)?;
        }
        if profiles.targets.is_empty() && profiles.folder.is_none() && args.binary.is_empty() {
            profiles.notes.push(
                "the profile that -p names does not exist yet: to create it, give the profiled program with --binary BINARY, or add an existing profile of that program (.mip) to the inputs".to_owned(),
            );
        }
        Ok(profiles)
    }

    fn add_file(&mut self, path: &Path) -> Result<()> {
        let opened = open(path)?;
        let same = |target: &MipTarget| target.profile.identity == opened.profile.identity;
        if let Some(other) = self.targets.iter().find(|target| same(target)) {
            return Err(Failure::usage(format_args!(
                "{} and {} are profiles of the same build, {}",
                other.name,
                profkit_data::path_text(path),
                opened.profile.identity
            ))
            .with_hint("name one with -p, and the other as an input"));
        }
        self.targets.push(MipTarget {
            name: opened.name,
            profile: opened.profile,
        });
        self.places.push(Place {
            path: path.to_owned(),
            version: opened.version,
            is_new: false,
        });
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path) -> Result<()> {
        if self.folder.replace(folder.to_owned()).is_some() {
            return Err(Failure::usage(
                "-p names several folders, but new profiles can go into only one",
            ));
        }
        fs::create_dir_all(folder).map_err(|error| {
            Failure::io(
                "cannot make the folder",
                profkit_data::path_text(folder),
                &error,
            )
        })?;
        let failed = |error| {
            Failure::io(
                "cannot read the folder",
                profkit_data::path_text(folder),
                &error,
            )
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let named = path.extension().is_some_and(|extension| extension == "mip");
            if named && path.is_file() {
                found.push(path);
            }
        }
        found.sort();
        found.iter().try_for_each(|path| self.add_file(path))
    }

    /// Adds an empty profile for a binary, unless there is a profile of its build already.
    fn add_binary(&mut self, path: &Path, args: &MergeArgs) -> Result<()> {
        let made = make(path, &args.image, None)?;
        let identity = &made.profile.identity;
        if self
            .targets
            .iter()
            .any(|target| target.profile.identity == *identity)
        {
            return Ok(());
        }
        self.notes.extend(made.notes);
        self.notes.extend(made.dropped);
        let target = match (&self.folder, self.new_file.take()) {
            (_, Some(file)) => file,
            (Some(folder), None) => folder.join(file_name(identity)),
            (None, None) => {
                return Err(Failure::usage(format_args!(
                    "{}: the binary is of another build ({identity}) than the profile",
                    profkit_data::path_text(path)
                ))
                .with_hint("to merge profiles of several builds, give a folder: -p FOLDER"));
            }
        };
        self.targets.push(MipTarget {
            name: profkit_data::path_text(&target),
            profile: made.profile,
        });
        self.places.push(Place {
            path: target,
            version: ProfileVersion::V9,
            is_new: true,
        });
        Ok(())
    }

    /// Returns the file for the merged profile with this index. If `places` has no entry for the index, no profile of
    /// this build was there before the merge, and the file is new.
    fn place(&mut self, index: usize, identity: &Identity) -> Result<Place> {
        if let Some(place) = self.places.get(index) {
            // The file name depends on the build id. A profile that was created from a map gets its build id only from
            // the raw files.
            let path = match &self.folder {
                Some(folder) if place.is_new => folder.join(file_name(identity)),
                _ => place.path.clone(),
            };
            return Ok(Place { path, ..*place });
        }
        let path = match (&self.folder, self.new_file.take()) {
            (_, Some(file)) => file,
            (Some(folder), None) => folder.join(file_name(identity)),
            (None, None) => {
                return Err(Failure::input(format_args!(
                    "an input comes from build {identity}, but no profile that -p names is of that build"
                ))
                .with_hint("to merge profiles of several builds, give a folder: -p FOLDER"));
            }
        };
        Ok(Place {
            path,
            version: ProfileVersion::V9,
            is_new: true,
        })
    }
}

fn has_map(path: &Path) -> bool {
    use profkit_object::binary::BinaryFile;
    use profkit_object::mip_sections::MipSections;
    let Ok(file) = BinaryFile::open(path) else {
        return false;
    };
    file.images().is_ok_and(|images| {
        images
            .iter()
            .any(|image| !matches!(MipSections::of(image), Ok(None)))
    })
}

fn file_name(identity: &Identity) -> String {
    match identity {
        Identity::BuildId(id) if !id.0.is_empty() => format!("{id}.mip"),
        Identity::BuildId(_) => "no-build-id.mip".to_owned(),
        Identity::ModuleHash(hash) => format!("{hash:08x}.mip"),
    }
}
