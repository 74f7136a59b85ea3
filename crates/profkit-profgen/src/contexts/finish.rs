//! Makes a profile from the tree of contexts.
use super::preinline::preinline;
use super::sizes::Sizes;
use super::trie::{NodeId, ROOT, Trie};
use super::{ContextFigures, ContextOptions};
use crate::checked::Figures;
use crate::finish::{density, drop_ambiguous};
use crate::lines::{FinishedProfile, raise_lines_to_targets, total_of_lines};
use profkit_data::sample::{
    AddOutcome, ColdContexts, Frame, Function, ProfileKind, SampleProfile, nest,
    nest_keeping_bases, summarize, trim_cold,
};
use profkit_data::summary::Summary;

/// If asked for, the total becomes the sum of the lines. By source line, a line counts at least the calls in it.
pub fn sum_up(trie: &mut Trie, kind: ProfileKind, options: &ContextOptions) {
    for id in trie.breadth_first() {
        if let Some(samples) = &mut trie.node_mut(id).samples {
            if options.totals_of_lines {
                total_of_lines(samples);
            }
            if !kind.contains(ProfileKind::PROBE_BASED) {
                raise_lines_to_targets(samples);
            }
        }
    }
}

pub fn finish(
    mut trie: Trie,
    sizes: &Sizes,
    kind: ProfileKind,
    options: &ContextOptions,
    figures: &mut ContextFigures,
) -> FinishedProfile {
    let summary = summary(&trie);
    if let Some(how) = options.preinline {
        let thresholds = (&summary, &options.thresholds);
        figures.inlined = preinline(&mut trie, sizes, how, thresholds);
    }
    let mut profile = profile(trie);
    profile.kind = kind | ProfileKind::CONTEXT_SENSITIVE;
    if options.preinline.is_some() {
        profile.kind |= ProfileKind::PRE_INLINED;
    }
    trim(&mut profile, &summary, options);
    if options.nest {
        if options.keep_bases {
            nest_keeping_bases(&mut profile);
        } else {
            nest(&mut profile);
        }
    }
    drop_ambiguous(&mut profile);
    let density = density(&profile, options.density_cutoff);
    FinishedProfile {
        profile,
        figures: Figures::default(),
        density,
        warnings: Vec::new(),
    }
}

/// All contexts of a function are added up before: each of them alone would look cold.
fn summary(trie: &Trie) -> Summary {
    let mut sum = SampleProfile::new();
    let mut outcome = AddOutcome::default();
    let mut additions = sum.additions();
    for id in trie.breadth_first() {
        if let Some(samples) = &trie.node(id).samples {
            additions.merge(&[], samples, |name| name, 1, &mut outcome);
        }
    }
    drop(additions);
    summarize(&sum)
}

fn profile(mut trie: Trie) -> SampleProfile {
    let mut profile = SampleProfile::new();
    let mut stack: Vec<(NodeId, Vec<Frame>)> = vec![(ROOT, Vec::new())];
    while let Some((id, callers)) = stack.pop() {
        for child in trie.children(id) {
            let mut callers = callers.clone();
            if id != ROOT {
                callers.push(Frame {
                    name: trie.node(id).name,
                    location: trie.node(child).site,
                });
            }
            if let Some(samples) = trie.node_mut(child).samples.take() {
                profile.push(Function {
                    callers: callers.clone().into(),
                    samples,
                });
            }
            stack.push((child, callers));
        }
    }
    profile.names = trie.names;
    profile
}

fn trim(profile: &mut SampleProfile, summary: &Summary, options: &ContextOptions) {
    let threshold = options.thresholds.hot(summary).unwrap_or(0);
    let is_preinlined = options.preinline.is_some();
    let merge = options.merge_cold.unwrap_or(!is_preinlined);
    if threshold == 0 || !(options.trim_cold || merge) {
        return;
    }
    if is_preinlined && !merge {
        // Contexts with callers were chosen for inlining; only functions without callers are dropped.
        profile
            .retain(|function| !function.callers.is_empty() || function.samples.total >= threshold);
        return;
    }
    let cold = ColdContexts {
        trim: options.trim_cold,
        merge,
        depth: options.cold_depth,
        thresholds: options.thresholds,
    };
    trim_cold(profile, cold, threshold);
}
