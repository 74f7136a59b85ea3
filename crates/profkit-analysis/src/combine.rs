//! Several profiles as one, for questions about all of them together: they are merged in memory.
use crate::correlate::{Assignment, Binaries, Plan, profiles_in};
use crate::heap::{FrameRule, IndexedBinaries, LoadedHeap, NoBinaries};
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::instr::InstrProfile;
use profkit_data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
use profkit_data::mip::MipWriteOptions;
use profkit_data::sample::{FormOptions, SampleForm};
use profkit_data::{Error, sound_family};
use profkit_merge::files::write_indexed;
use profkit_merge::memprof::{SectionChoice, SectionError, place_section};
use profkit_merge::mip::{MipMergeOptions, merge_mip};
use profkit_merge::sample::{SampleMergeOptions, merge_sample};
use profkit_merge::{
    InputStore, Inputs, MergeError, MergeOptions, Report, RunOptions, Threads, merge_instr,
};
use std::fmt;
use std::io;
use std::sync::Arc;

/// Several profiles as the bytes of one.
#[derive(Debug)]
pub struct Combined {
    /// The bytes of a profile that every reader of this crate reads.
    pub bytes: Vec<u8>,
    /// What was done with each input.
    pub report: Report,
    /// Which binary was found for which raw profiles that hold only counters.
    pub assignments: Vec<Assignment>,
    /// The heap profiles among other profiles.
    pub heap: Option<LoadedHeap>,
}

/// Why several profiles cannot be combined.
#[derive(Debug)]
#[non_exhaustive]
pub enum CombineError {
    /// They cannot be merged with each other.
    Merge(MergeError),
    /// They are MIP profiles of this many builds. Profiles of different builds have nothing in common.
    Builds(usize),
    /// They are MIP raw files without the profile of their build.
    NoMipProfile,
    /// There are raw heap profiles among other profiles, and no binaries that name their functions.
    NeedsBinaries,
    /// The heap profiles cannot be stored in the result.
    Section(SectionError),
    /// The result cannot be encoded.
    Encode(Error),
}

impl fmt::Display for CombineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CombineError::Merge(error) => error.fmt(f),
            CombineError::Builds(builds) => write!(
                f,
                "these are MIP profiles of {builds} builds, which cannot be added to each other"
            ),
            CombineError::NoMipProfile => f.write_str(
                "these are MIP raw files, which hold numbers and no names; the names are in the MIP profile of the build",
            ),
            CombineError::NeedsBinaries => f.write_str(
                "raw heap profiles hold addresses only: use --binaries to name the programs and libraries that ran",
            ),
            CombineError::Section(error) => error.fmt(f),
            CombineError::Encode(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CombineError {}

impl CombineError {
    /// Returns a suggestion to the user, if there is a step that helps.
    pub fn hint(&self) -> Option<&str> {
        match self {
            CombineError::Builds(_) => Some("give the profiles of one build"),
            CombineError::NoMipProfile => {
                Some("`profkit mip merge -p FILE.mip` adds them to a profile")
            }
            CombineError::Section(error) => error.hint(),
            CombineError::Encode(error) => error.hint(),
            CombineError::Merge(_) | CombineError::NeedsBinaries => None,
        }
    }
}

impl From<MergeError> for CombineError {
    fn from(error: MergeError) -> Self {
        CombineError::Merge(error)
    }
}

/// Whether a profile cannot be read without its binary: it is a raw profile that holds only counters.
pub fn needs_binary(data: &[u8]) -> bool {
    detect(data) == FileKind::InstrRaw
        && profiles_in(data)
            .iter()
            .any(|profile| profile.needs_correlation())
}

/// Merges profiles into one. Raw profiles that hold only counters get their functions from the binaries. Raw heap
/// profiles alone are put together as they are, so that they keep what a merge would leave out.
///
/// # Errors
/// If the profiles are of different families or kinds, if none can be read, or if the result cannot be encoded.
pub fn combine(
    inputs: &dyn Inputs,
    binaries: Option<&Binaries>,
    threads: &Threads,
) -> Result<Combined, CombineError> {
    let inputs = InputStore::new(inputs);
    let run = RunOptions::new().threads(threads.clone());
    let kinds: Vec<_> = (0..inputs.len()).map(|index| inputs.kind(index)).collect();
    let is_dump = |kind: &io::Result<FileKind>| matches!(kind, Ok(FileKind::MemProfRaw));
    if !kinds.is_empty() && kinds.iter().all(is_dump) {
        return dumps(&inputs);
    }
    let family = |index| inputs.peek(index, sound_family).ok().flatten();
    let sound = (0..inputs.len()).find_map(family);
    let named = || kinds.iter().flatten().find_map(|kind| kind.family());
    match sound.or_else(named) {
        Some(Family::Sample) => samples(&inputs, run),
        Some(Family::Mip) => mip(&inputs, run),
        _ => instr(&inputs, binaries, run),
    }
}

/// A file of raw heap profiles may hold the dumps of several runs, one after the other.
fn dumps(inputs: &InputStore<'_>) -> Result<Combined, CombineError> {
    let mut bytes = Vec::new();
    let mut report = Report::new();
    for index in 0..inputs.len() {
        report.totals.files += 1;
        match inputs.peek(index, |dump| bytes.extend_from_slice(dump)) {
            Ok(()) => report.totals.files_kept += 1,
            Err(_) => report.totals.files_dropped += 1,
        }
    }
    Ok(Combined {
        bytes,
        report,
        assignments: Vec::new(),
        heap: None,
    })
}

fn samples(inputs: &InputStore<'_>, run: RunOptions) -> Result<Combined, CombineError> {
    let mut options = SampleMergeOptions::new();
    options.run = run;
    let merged = merge_sample(inputs, &options)?;
    let mut bytes = Vec::new();
    let options = FormOptions::for_profile(&merged.profile);
    SampleForm::ExtBinary
        .write(&merged.profile, &options, &mut bytes)
        .map_err(CombineError::Encode)?;
    Ok(Combined {
        bytes,
        report: merged.report,
        assignments: Vec::new(),
        heap: None,
    })
}

fn mip(inputs: &InputStore<'_>, run: RunOptions) -> Result<Combined, CombineError> {
    let options = MipMergeOptions::new().run(run).take_profiles(true);
    let merged = merge_mip(Vec::new(), inputs, &options)?;
    let profile = match merged.targets.as_slice() {
        [] => return Err(CombineError::NoMipProfile),
        [target] => &target.profile,
        several => return Err(CombineError::Builds(several.len())),
    };
    let mut bytes = Vec::new();
    let options = MipWriteOptions::new();
    profkit_data::mip::write(profile, &options, &mut bytes).map_err(CombineError::Encode)?;
    Ok(Combined {
        bytes,
        report: merged.report,
        assignments: Vec::new(),
        heap: None,
    })
}

fn instr(
    inputs: &InputStore<'_>,
    binaries: Option<&Binaries>,
    run: RunOptions,
) -> Result<Combined, CombineError> {
    let threads = run.threads.clone();
    let mut options = MergeOptions::new().run(run);
    let plan = binaries.map(|binaries| threads.install(|| Plan::new(inputs, binaries)));
    let mut assignments = None;
    if let Some(plan) = plan {
        assignments = Some(plan.assignments);
        options = options.correlation(Arc::new(plan.joined));
    }
    let merged = merge_instr(inputs, &options)?;
    let mut profile = merged
        .profiles
        .into_iter()
        .next()
        .map_or_else(InstrProfile::default, |merged| merged.profile);
    let indexed = IndexedWriteOptions::for_version(merged.report.suggested_indexed_version);
    let mut heap = None;
    if let Some(parts) = merged.heap {
        if parts.contexts.dumps() > 0 && binaries.is_none() {
            return Err(CombineError::NeedsBinaries);
        }
        let loaded = match binaries {
            Some(binaries) => {
                let source = IndexedBinaries::of(binaries);
                LoadedHeap::new(
                    &parts,
                    merged.report.clone(),
                    &threads,
                    &source,
                    FrameRule::All,
                )
            }
            None => {
                let source = NoBinaries::default();
                LoadedHeap::new(
                    &parts,
                    merged.report.clone(),
                    &threads,
                    &source,
                    FrameRule::All,
                )
            }
        };
        let choice = SectionChoice::new().portable(true).unknown_densities(true);
        place_section(&mut profile, Some(&loaded.profile), &indexed, choice)
            .map_err(CombineError::Section)?;
        heap = Some(loaded);
    }
    let plan = IndexedPlan::new(&profile, &indexed).map_err(CombineError::Encode)?;
    let mut bytes = Vec::new();
    write_indexed(&plan, &threads, &mut bytes).map_err(CombineError::Encode)?;
    Ok(Combined {
        bytes,
        report: merged.report,
        assignments: assignments.unwrap_or_default(),
        heap,
    })
}
