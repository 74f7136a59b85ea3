//! Runs a merge of sample profiles, from the inputs to the result.
use super::options::SampleMergeOptions;
use super::ordered::OrderedSum;
use super::strategy::strategy;
use super::worker::{Piece, SampleKind};
use crate::driver::{Cancelled, Driver, ReportPart};
use crate::error::{self, GroupConflict};
use crate::kinds;
use crate::options::Policy;
use crate::report::Report;
use profkit_data::detect::Family;
use profkit_data::sample::{
    self, AddOutcome, ColdContexts, ProfileKind, SampleLayout, SampleName, SampleProfile, flatten,
    flatten_as_llvm, nest, trim_cold, unify_hashes,
};
use profkit_files::Inputs;
use std::fmt;
use std::sync::Arc;

/// A merged profile, with the report of the merge.
#[derive(Clone, Debug)]
pub struct SampleOutcome {
    /// The merged profile.
    pub profile: SampleProfile,
    /// The report: what was done with each input.
    pub report: Report,
}

/// The reason why a merge of sample profiles has no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SampleMergeError {
    /// The merge was given no inputs.
    NoInputs,
    /// Some inputs are sample profiles, and others are profiles of a different family. The report says what was done
    /// with each input before this error was found.
    Groups(Box<GroupConflict>, Box<Report>),
    /// Some inputs have a property that others lack, although either all inputs or none must have it.
    Kinds {
        /// The property that only some inputs have.
        what: SampleConflict,
        /// The first input that has the property: its index and name.
        with: (usize, String),
        /// The first input that lacks the property: its index and name.
        without: (usize, String),
        /// The report: what was done with each input before this error was found.
        report: Box<Report>,
    },
    /// An input is damaged, so [`Policy::Llvm`](crate::Policy::Llvm) ends the merge: the index of the input, and the
    /// reader's error.
    Damaged(usize, Box<profkit_data::Error>),
    /// An input cannot be read, so [`Policy::Llvm`](crate::Policy::Llvm) ends the merge: the index of the input, and
    /// the system's error.
    Unreadable(usize, Arc<std::io::Error>),
    /// No input could be used. The report in this variant gives the reason for each input.
    NothingLeft(Box<Report>),
    /// The merge was cancelled.
    Cancelled,
}

impl From<Cancelled> for SampleMergeError {
    fn from(_: Cancelled) -> Self {
        SampleMergeError::Cancelled
    }
}

/// A property of sample profiles that either all inputs must have, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleConflict {
    /// The profile has calling contexts.
    Contexts,
    /// The profile is based on pseudo probes.
    Probes,
}

impl SampleMergeError {
    /// Returns a suggestion to the user, if there is a step that helps.
    pub fn hint(&self) -> Option<&str> {
        match self {
            SampleMergeError::Groups(conflict, _) => Some(conflict.hint),
            SampleMergeError::Kinds { what, .. } => Some(match what {
                SampleConflict::Contexts => {
                    "convert the profiles with contexts to nested profiles first, then merge"
                }
                SampleConflict::Probes => {
                    "profiles of lines and of probes count different things: merge the profiles of each kind separately"
                }
            }),
            SampleMergeError::NothingLeft(report) => {
                report.events.iter().find_map(|event| event.hint.as_deref())
            }
            SampleMergeError::Damaged(_, error) => error.hint(),
            SampleMergeError::NoInputs
            | SampleMergeError::Unreadable(..)
            | SampleMergeError::Cancelled => None,
        }
    }
}

impl fmt::Display for SampleMergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SampleMergeError::NoInputs => f.write_str("no input files"),
            SampleMergeError::Groups(conflict, _) => conflict.fmt(f),
            SampleMergeError::Kinds {
                what,
                with: (_, with),
                without: (_, without),
                ..
            } => {
                let what = match what {
                    SampleConflict::Contexts => "calling contexts",
                    SampleConflict::Probes => "pseudo probes",
                };
                write!(
                    f,
                    "sample profiles with and without {what} cannot be merged: {with} has them, {without} has none"
                )
            }
            SampleMergeError::Damaged(_, error) => error.fmt(f),
            SampleMergeError::Unreadable(_, error) => error.fmt(f),
            SampleMergeError::Cancelled => Cancelled.fmt(f),
            SampleMergeError::NothingLeft(report) => error::nothing_left(f, report),
        }
    }
}

impl std::error::Error for SampleMergeError {}

/// Merges sample profiles of any encoding.
///
/// ```
/// use profkit_merge::sample::{SampleMergeOptions, merge_sample};
///
/// let inputs = [b"main:100:5\n 1: 100\n".as_slice(), b"main:10:1\n 1: 10\n"];
/// let merged = merge_sample(&inputs, &SampleMergeOptions::new())?;
/// assert_eq!(merged.profile.functions()[0].samples.total, 110);
/// # Ok::<(), profkit_merge::sample::SampleMergeError>(())
/// ```
///
/// # Errors
/// If there is no result.
pub fn merge_sample(
    inputs: &(impl Inputs + ?Sized),
    options: &SampleMergeOptions,
) -> Result<SampleOutcome, SampleMergeError> {
    merge(&inputs, options)
}

fn merge(
    inputs: &dyn Inputs,
    options: &SampleMergeOptions,
) -> Result<SampleOutcome, SampleMergeError> {
    if inputs.is_empty() {
        return Err(SampleMergeError::NoInputs);
    }
    let driver = Driver::new(inputs, &options.run);
    let strategy = strategy(options);
    let kind = SampleKind {
        driver: &driver,
        options,
        strategy: &*strategy,
    };
    let indexes: Vec<usize> = (0..inputs.len()).collect();
    let (worker, part) = driver.merge(&kind, &indexes)?;
    add_up(&kind, worker.into_pieces(), part)
}

pub(super) fn add_up(
    kind: &SampleKind<'_, '_>,
    pieces: impl Iterator<Item = Piece>,
    part: ReportPart,
) -> Result<SampleOutcome, SampleMergeError> {
    let mut sum = OrderedSum::new(kind, part);
    for piece in pieces {
        sum.add(piece)?;
    }
    let (mut profile, part) = sum.finish();
    let families = kinds::check_families(&part.families, &[Family::Sample], &kind.driver.inputs);
    let mut report = part.finish(&kind.driver.inputs);
    if let (Err(conflict), Policy::Tolerant) = (families, kind.options.policy) {
        return Err(SampleMergeError::Groups(conflict, Box::new(report)));
    }
    let used = report.totals.files_kept + report.totals.files_repaired;
    if used == 0 && !kind.strategy.has_empty_result() {
        return Err(SampleMergeError::NothingLeft(Box::new(report)));
    }
    finish(&mut profile, kind.options, &mut report);
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
            // When LLVM flattens a profile, it finds functions by the hash of their name. So a function that occurs
            // both with its name and with only the hash of it must become one function before.
            unify_hashes(profile, &mut outcome);
            outcome.absorb(flatten_as_llvm(profile));
        }
        Some(SampleLayout::Flat) => outcome.absorb(flatten(profile)),
        Some(SampleLayout::Nest) => outcome.absorb(nest(profile, options.keep_bases)),
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
