//! Removes or merges calling contexts with few samples, as LLVM's `SampleContextTrimmer` does (`SampleProf.cpp`).
use super::{AddOutcome, Frame, Function, SampleProfile};
use crate::summary::Thresholds;

/// The treatment of cold contexts. A cold context is a calling context with fewer samples than a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdContexts {
    /// Whether to drop cold contexts (`--sample-trim-cold-context`). If `merge` is set too, cold contexts are merged
    /// first, and a merged context is dropped only if it is cold after the merge.
    pub trim: bool,
    /// Whether to add up cold contexts that end with the same frames (`--sample-merge-cold-context`).
    pub merge: bool,
    /// The number of last frames that a merged context keeps, including the frame of the function itself
    /// (`--sample-frame-depth-for-cold-context`).
    pub depth: usize,
    /// The thresholds for hot and for cold counts. Only the threshold for cold counts is used.
    pub thresholds: Thresholds,
}

/// Removes or merges the contexts with fewer than `threshold` samples. In a profile without contexts, each function
/// counts as one context.
pub fn trim_cold(profile: &mut SampleProfile, cold: ColdContexts, threshold: u64) -> AddOutcome {
    let mut outcome = AddOutcome::default();
    if threshold == 0 || !(cold.trim || cold.merge) {
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
        let Function {
            callers,
            mut samples,
        } = function;
        // A context into which LLVM merges other contexts has no attributes, because the attributes of the merged
        // contexts can differ.
        samples.attributes = 0;
        let is_cold = cold.trim && samples.total < threshold;
        if is_cold && profile.find(&callers, samples.name).is_none() {
            continue;
        }
        let mut additions = profile.additions();
        additions.merge(&callers, &samples, |name| name, 1, &mut outcome);
    }
    outcome
}

/// Returns the callers among the last `depth` frames of a context. The last frame is the function itself, so there are
/// at most `depth` − 1 callers.
fn last_frames(callers: &[Frame], depth: usize) -> &[Frame] {
    let kept = depth.saturating_sub(1).min(callers.len());
    callers.get(callers.len() - kept..).unwrap_or_default()
}
