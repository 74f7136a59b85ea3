//! Runs a merge of sample profiles, from the inputs to the result.
use super::options::SampleMergeOptions;
use super::ordered::OrderedSum;
use super::strategy::Strategy;
use super::worker::{Piece, SampleKind};
use crate::driver::{Driver, InputStore, MergeKind, ReportPart};
use crate::error::MergeError;
use crate::kinds;
use crate::options::Policy;
use crate::part;
use crate::report::Report;
use profkit_data::detect::Family;
use profkit_data::sample::{
    self, AddOutcome, ColdContexts, ProfileKind, SampleLayout, SampleName, SampleProfile, flatten,
    flatten_as_llvm, nest, nest_keeping_bases, trim_cold, unify_hashes,
};
use profkit_files::Inputs;

/// A merged profile, with the report of the merge.
#[derive(Clone, Debug)]
pub struct SampleOutcome {
    /// The merged profile.
    pub profile: SampleProfile,
    /// The report: what was done with each input.
    pub report: Report,
}

/// A property of sample profiles that either all inputs must have, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleConflict {
    /// The profile has calling contexts.
    Contexts,
    /// The profile is based on pseudo probes.
    Probes,
}

/// Merges sample profiles of any encoding.
///
/// ```
/// use profkit_merge::sample::{SampleMergeOptions, merge_sample};
///
/// let inputs = [b"main:100:5\n 1: 100\n".as_slice(), b"main:10:1\n 1: 10\n"];
/// let merged = merge_sample(&inputs, &SampleMergeOptions::new())?;
/// assert_eq!(merged.profile.functions()[0].samples.total, 110);
/// # Ok::<(), profkit_merge::MergeError>(())
/// ```
///
/// # Errors
/// If there is no result.
pub fn merge_sample(
    inputs: &(impl Inputs + ?Sized),
    options: &SampleMergeOptions,
) -> Result<SampleOutcome, MergeError> {
    merge(&inputs, options)
}

fn merge(inputs: &dyn Inputs, options: &SampleMergeOptions) -> Result<SampleOutcome, MergeError> {
    let store = InputStore::new(inputs);
    if part::is_for(&store, options.order_free, options.policy) {
        return part::merge_samples(&store, options);
    }
    merge_in_order(&store, options)
}

fn merge_in_order(
    inputs: &dyn Inputs,
    options: &SampleMergeOptions,
) -> Result<SampleOutcome, MergeError> {
    if inputs.is_empty() {
        return Err(MergeError::NoInputs);
    }
    let driver = Driver::new(inputs, &options.run);
    let kind = SampleKind {
        driver: &driver,
        options,
        strategy: Strategy::new(options),
        has_parts: false.into(),
    };
    let indexes: Vec<usize> = (0..inputs.len()).collect();
    let (worker, part) = driver.merge(&kind, &indexes)?;
    if kind.is_over() {
        return part::merge_samples(&driver.inputs, options);
    }
    add_up(&kind, worker.into_pieces(), part)
}

pub(super) fn add_up(
    kind: &SampleKind<'_, '_>,
    pieces: impl Iterator<Item = Piece>,
    part: ReportPart,
) -> Result<SampleOutcome, MergeError> {
    let mut sum = OrderedSum::new(kind, part);
    for piece in pieces {
        sum.add(piece)?;
    }
    let (profile, part) = sum.finish();
    conclude(profile, part, kind.options, &kind.driver.inputs)
}

/// Makes the result of the sum of all inputs.
pub(super) fn conclude(
    mut profile: SampleProfile,
    part: ReportPart,
    options: &SampleMergeOptions,
    inputs: &dyn Inputs,
) -> Result<SampleOutcome, MergeError> {
    let families = kinds::check_families(&part.families, &[Family::Sample], inputs);
    let mut report = part.finish(inputs);
    if options.policy == Policy::Tolerant {
        if let Err(conflict) = families {
            return Err(MergeError::Groups(conflict, Box::new(report)));
        }
        if report.totals.files_kept + report.totals.files_repaired == 0 {
            return Err(MergeError::NothingLeft(Box::new(report)));
        }
    }
    finish(&mut profile, options, &mut report);
    Ok(SampleOutcome { profile, report })
}

fn finish(profile: &mut SampleProfile, options: &SampleMergeOptions, report: &mut Report) {
    profile.summary_by_context = options.read.summary_by_context;
    let mut outcome = AddOutcome::default();
    let contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    // LLVM also removes cold functions from profiles without contexts.
    let trims = contexts || options.policy == Policy::Llvm;
    let applies = |cold: &ColdContexts| trims && cold.trim && !cold.merge || contexts && cold.merge;
    if let Some(cold) = options.cold.filter(applies) {
        let threshold = cold.thresholds.cold(&sample::summarize(profile));
        outcome.absorb(trim_cold(profile, cold, threshold.unwrap_or(0)));
    }
    match options.layout {
        Some(SampleLayout::Flat) if options.policy == Policy::Llvm => {
            // LLVM finds functions by the hash of their name, so a name and its hash must become one function before.
            unify_hashes(profile, &mut outcome);
            outcome.absorb(flatten_as_llvm(profile));
        }
        Some(SampleLayout::Flat) => outcome.absorb(flatten(profile)),
        Some(SampleLayout::Nest) if options.keep_bases => {
            outcome.absorb(nest_keeping_bases(profile));
        }
        Some(SampleLayout::Nest) => outcome.absorb(nest(profile)),
        None => {}
    }
    report.totals.records_overflowed += outcome.overflows;
    report.totals.records_dropped += outcome.mismatches;
    if let Some(filter) = &options.filter {
        let before = profile.functions().len();
        let names = profile.names.clone();
        profile.retain(|function| match names.get(function.samples.name) {
            SampleName::Text(text) => filter(text),
            guid @ SampleName::Guid(_) => filter(guid.to_string().as_bytes()),
        });
        report.totals.functions_filtered = (before - profile.functions().len()) as u64;
    }
    report.totals.functions = profile.functions().len() as u64;
}
