//! Trimming and merging cold contexts (`SampleContextTrimmer` in `SampleProf.cpp`).
use super::{AddOutcome, Frame, Function, ProfileKind, SampleProfile};

/// What is done with contexts whose samples are below a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdContexts {
    /// Contexts that are cold, and stay so when merged, are dropped (`--sample-trim-cold-context`).
    pub trim: bool,
    /// Cold contexts are added up by their last frames (`--sample-merge-cold-context`).
    pub merge: bool,
    /// How many frames, the function itself included, merged contexts keep (`--sample-frame-depth-for-cold-context`).
    pub depth: usize,
    /// The share of all samples, in millionths, that is in counts which are not cold (`-profile-summary-cutoff-cold`);
    /// [`COLD_CUTOFF`] in LLVM.
    pub cutoff: u32,
}

/// All but the last millionth of the samples are in counts that are not cold.
pub const COLD_CUTOFF: u32 = 999_999;

/// Trims and merges the contexts with less than `threshold` samples. Nothing is done to a profile without contexts.
pub fn trim_cold(profile: &mut SampleProfile, cold: ColdContexts, threshold: u64) -> AddOutcome {
    let mut outcome = AddOutcome::default();
    let has_contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    if !has_contexts || threshold == 0 || !(cold.trim || cold.merge) {
        return outcome;
    }
    let mut merged = SampleProfile::new();
    let mut additions = merged.additions();
    for function in profile.take_functions() {
        if function.samples.total >= threshold {
            profile.push(function);
        } else if cold.merge {
            let Function { callers, samples } = function;
            let kept = last_frames(&callers, cold.depth);
            additions.merge(kept, &samples, |name| name, 1, &mut outcome);
        }
    }
    drop(additions);
    for function in merged.take_functions() {
        let Function { callers, samples } = function;
        let is_cold = cold.trim && samples.total < threshold;
        if is_cold && profile.find(&callers, samples.name).is_none() {
            continue;
        }
        let mut additions = profile.additions();
        additions.merge(&callers, &samples, |name| name, 1, &mut outcome);
    }
    outcome
}

/// The callers that a context of `depth` frames has; the function is one of them.
fn last_frames(callers: &[Frame], depth: usize) -> &[Frame] {
    let kept = depth.saturating_sub(1).min(callers.len());
    callers.get(callers.len() - kept..).unwrap_or_default()
}
