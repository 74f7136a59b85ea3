//! Computes the summary of a sample profile (LLVM's `SampleProfileSummaryBuilder` in `ProfileSummaryBuilder.cpp`).
use super::add::AddOutcome;
use super::model::{ProfileKind, SampleProfile, Samples};
use crate::summary::{Summary, SummaryBuilder};
use profkit_abi::indexed::SUMMARY_CUTOFFS;
use profkit_abi::sample::attribute;

/// Computes the summary of a profile, with LLVM's sixteen default cutoffs.
pub fn summarize(profile: &SampleProfile) -> Summary {
    summarize_with(profile, &SUMMARY_CUTOFFS)
}

/// Computes the summary of a profile with the given cutoffs, which are in millionths and ascending.
///
/// The summary is made of the counts of all lines. If a function has several calling contexts, the contexts are added
/// up first, unless [`SampleProfile::summary_by_context`] is set. Inlined functions whose samples are also in the base
/// profile are skipped.
pub fn summarize_with(profile: &SampleProfile, cutoffs: &[u32]) -> Summary {
    let mut builder = SummaryBuilder::new();
    if profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE) && !profile.summary_by_context {
        // The functions are copied without the table of names. The ids of names in the copy are therefore the ids in
        // `profile`.
        let mut merged = SampleProfile::new();
        let mut outcome = AddOutcome::default();
        let mut additions = merged.additions();
        for function in profile.functions() {
            additions.merge(&[], &function.samples, |name| name, 1, &mut outcome);
        }
        drop(additions);
        for function in merged.functions() {
            add(&mut builder, &function.samples);
        }
    } else {
        for function in profile.functions() {
            add(&mut builder, &function.samples);
        }
    }
    builder.finish_with(cutoffs)
}

fn add(builder: &mut SummaryBuilder, samples: &Samples) {
    builder.add_function(samples.head);
    add_lines(builder, samples);
}

fn add_lines(builder: &mut SummaryBuilder, samples: &Samples) {
    for line in &samples.body {
        builder.add_count(line.samples);
    }
    for inlined in &samples.inlined {
        if inlined.samples.attributes & attribute::DUPLICATED_INTO_BASE == 0 {
            add_lines(builder, &inlined.samples);
        }
    }
}
