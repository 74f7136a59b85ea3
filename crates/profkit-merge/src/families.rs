//! Finds out the family of each input of a merge, before the inputs are merged.
use crate::files::{InputList, is_stdio};
use crate::mip::MipOutcome;
use crate::sample::{SampleMergeOptions, SampleOutcome, merge_sample};
use crate::{InputStore, Inputs, MergeError, MergeOptions, MergeOutcome, Report, merge_instr};
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::instr::{InstrKind, InstrReader, InstrSource, Target};
use profkit_data::{Weight, sound_family};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

/// The result of [`merge`], by the family of the inputs.
#[derive(Debug)]
pub enum Merged {
    /// Instrumentation profiles and heap profiles were merged.
    Instr(MergeOutcome),
    /// Sample profiles were merged.
    Sample(SampleOutcome),
    /// MIP files were merged. Only parts of merges give this.
    Mip(MipOutcome),
}

impl Merged {
    /// The report of the merge.
    pub fn report(&self) -> &Report {
        match self {
            Merged::Instr(outcome) => &outcome.report,
            Merged::Sample(outcome) => &outcome.report,
            Merged::Mip(outcome) => &outcome.report,
        }
    }

    pub(crate) fn report_mut(&mut self) -> &mut Report {
        match self {
            Merged::Instr(outcome) => &mut outcome.report,
            Merged::Sample(outcome) => &mut outcome.report,
            Merged::Mip(outcome) => &mut outcome.report,
        }
    }
}

/// Merges profiles of any family but MIP ([`merge_mip`](crate::mip::merge_mip) needs the maps of the programs too). The
/// first sound input decides the family.
///
/// ```
/// use profkit_merge::{MergeOptions, Merged, merge};
///
/// let samples = b"main:100:5\n 1: 100\n".as_slice();
/// let Merged::Sample(merged) = merge(&[samples, samples], &MergeOptions::new())? else {
///     panic!("these are sample profiles");
/// };
/// assert_eq!(merged.profile.functions()[0].samples.total, 200);
/// # Ok::<(), profkit_merge::MergeError>(())
/// ```
///
/// # Errors
/// Those of [`merge_instr`] and [`merge_sample`].
pub fn merge(
    inputs: &(impl Inputs + ?Sized),
    options: &MergeOptions,
) -> Result<Merged, MergeError> {
    let opened = InputStore::new(&inputs);
    if !are_samples(&opened) {
        return merge_instr(&opened, options).map(Merged::Instr);
    }
    merge_sample(&opened, &SampleMergeOptions::like(options)).map(Merged::Sample)
}

/// Whether the first sound input is a sample profile, or the first input of any family if none is sound. Inputs that
/// cannot be read are skipped: the merge reports them.
pub fn are_samples(inputs: &InputStore<'_>) -> bool {
    first_family(inputs) == Some(Family::Sample)
}

fn first_family(inputs: &InputStore<'_>) -> Option<Family> {
    let first = |family: &dyn Fn(&[u8]) -> Option<Family>| {
        (0..inputs.len()).find_map(|index| inputs.peek(index, family).ok().flatten())
    };
    first(&sound_family).or_else(|| first(&|bytes| detect(bytes).family()))
}

/// The family whose merge takes these inputs. Heap profiles are merged with instrumentation profiles.
pub(crate) fn family_of(inputs: &InputStore<'_>) -> Family {
    match first_family(inputs) {
        Some(family @ (Family::Sample | Family::Mip)) => family,
        _ => Family::Instr,
    }
}

/// Leaves out the profiles of other families than `wanted`. Returns their number. The merge reports other files.
pub fn keep_family(inputs: &mut InputList, wanted: Family) -> u64 {
    let opened = InputStore::new(inputs);
    let is_other = |index| {
        let family = kind(inputs, &opened, index).map(FileKind::family);
        matches!(family, Ok(Some(family)) if family != wanted)
    };
    let others: Vec<bool> = (0..inputs.len())
        .map(|index| inputs.can_reopen(index) && is_other(index))
        .collect();
    drop(opened);
    retain(inputs, &others)
}

/// Leaves out the instrumentation profiles of the other level, IR or front end, and the profiles of other families.
/// Returns their number. The merge reports other files, and profiles that do not say what they are of.
pub fn keep_level(inputs: &mut InputList, is_ir: bool) -> u64 {
    let opened = InputStore::new(inputs);
    let is_other = |bytes: &[u8]| {
        let found = detect(bytes);
        match found.family() {
            Some(Family::Instr) => {
                let level = InstrReader::salvage(found, bytes, None).map(|source| source.kind());
                level.is_ok_and(|kind| !kind.is_unknown() && kind.contains(InstrKind::IR) != is_ir)
            }
            family => family.is_some(),
        }
    };
    let others: Vec<bool> = (0..inputs.len())
        .map(|index| {
            inputs.can_reopen(index) && opened.peek(index, is_other).is_ok_and(|other| other)
        })
        .collect();
    drop(opened);
    retain(inputs, &others)
}

/// The targets of the inputs, by the names of their files, each with the number of its inputs.
pub fn targets(inputs: &InputList) -> BTreeMap<Target, u64> {
    Target::count(inputs.files.iter().map(|file| file.name.as_str()))
}

/// Leaves out the inputs of other targets than `wanted`. Returns their number.
pub fn keep_target(inputs: &mut InputList, wanted: &Target) -> u64 {
    let files = inputs.files.iter();
    let others: Vec<bool> = files
        .map(|file| Target::of_file(&file.name) != *wanted)
        .collect();
    retain(inputs, &others)
}

/// Leaves out the inputs that are marked, and returns their number.
fn retain(inputs: &mut InputList, others: &[bool]) -> u64 {
    let count = others.iter().filter(|&&other| other).count() as u64;
    let mut others = others.iter();
    inputs.files.retain(|_| others.next() != Some(&true));
    count
}

/// The inputs that are not heap profiles, and those that cannot be read: only they may need a binary.
pub fn not_heap_profiles(inputs: &InputList, opened: &InputStore<'_>) -> Vec<usize> {
    (0..inputs.files.len())
        .filter(|&index| {
            let kind = kind(inputs, opened, index);
            !kind.is_ok_and(|kind| kind.family() == Some(Family::MemProf))
        })
        .collect()
}

/// The first heap profile with a weight. Heap profiles are added as they are, so it would have no effect.
pub fn weighted_heap_profile(inputs: &InputList, opened: &InputStore<'_>) -> Option<String> {
    let mut files = inputs.files.iter().enumerate();
    let found = files.find(|(index, file)| {
        file.weight != Weight::ONE
            && kind(inputs, opened, *index).is_ok_and(|kind| kind.family() == Some(Family::MemProf))
    });
    found.map(|(_, file)| file.name.clone())
}

/// The first of these files that is a program or object file: most likely it was meant for an option.
pub fn program_among(
    inputs: &InputList,
    opened: &InputStore<'_>,
    named: &[OsString],
) -> Option<String> {
    let mut files = inputs.files.iter().enumerate();
    let found = files.find(|(index, file)| {
        named.iter().any(|name| *name == file.path.as_os_str())
            && kind(inputs, opened, *index).is_ok_and(|kind| kind == FileKind::ObjectFile)
    });
    found.map(|(_, file)| file.name.clone())
}

/// The whole file is read only if its first bytes do not show the kind.
fn kind(inputs: &InputList, opened: &InputStore<'_>, index: usize) -> io::Result<FileKind> {
    let file = inputs.files.get(index).filter(|file| !is_stdio(&file.path));
    if file.is_some() && opened.can_reopen(index) {
        // The first bytes do not show which kind of profile a text, a compressed file or an archive holds.
        let kind = detect(&inputs.front(index, 8)?);
        if kind.family().is_some() && !kind.is_text() {
            return Ok(kind);
        }
    }
    opened.kind(index)
}
