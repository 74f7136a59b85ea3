//! Changing the layout of sample profiles: contexts to nested functions, nested functions to flat ones
//! (`ProfileConverter` in `SampleProf.h` and `SampleProf.cpp`).
use profkit_data::sample::{
    AddOutcome, BodyLine, Frame, Function, Hints, Inlined, Location, NameId, ProfileKind,
    SampleProfile, Samples,
};
use std::collections::BTreeMap;

/// How the functions of a profile are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleLayout {
    /// Inlined functions stand below those that they were inlined into; there are no contexts.
    Nest,
    /// Every function stands once, for itself.
    Flat,
}

/// `ContextDuplicatedIntoBase`.
const DUPLICATED_INTO_BASE: u32 = 4;

/// How often a function was entered, as far as its samples tell (`getHeadSamplesEstimate`): the samples of what stands
/// first in it, at least 1 if there are any samples. With `contexts` the head itself, if it is known.
pub fn head_estimate(samples: &Samples, contexts: bool) -> u64 {
    if contexts && samples.head > 0 {
        return samples.head;
    }
    let line = samples.body.first();
    let site = samples.inlined.first();
    let count = match (line, site) {
        (Some(line), None) => line.samples,
        (Some(line), Some(site)) if line.location < site.location => line.samples,
        (_, Some(site)) => samples
            .inlined
            .iter()
            .take_while(|inlined| inlined.location == site.location)
            .fold(0, |sum: u64, inlined| {
                sum.wrapping_add(head_estimate(&inlined.samples, contexts))
            }),
        (None, None) => 0,
    };
    match count {
        0 => u64::from(samples.total > 0),
        count => count,
    }
}

/// Lays every function out for itself. Of a profile with contexts, those of a function are added up. Returns what did
/// not fit.
pub fn flatten(profile: &mut SampleProfile) -> AddOutcome {
    let mut outcome = AddOutcome::default();
    let contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    for function in profile.take_functions() {
        if contexts {
            let before = profile.functions().len();
            let index = profile.find_or_add(&[], function.samples.name);
            if let Some(samples) = profile.samples_mut(index) {
                samples.merge(
                    &function.samples,
                    index == before,
                    |name| name,
                    1,
                    &mut outcome,
                );
            }
        } else {
            flatten_instance(profile, &function.samples, &mut outcome);
        }
    }
    profile.kind = profile.kind.without(ProfileKind::CONTEXT_SENSITIVE);
    outcome
}

fn flatten_instance(profile: &mut SampleProfile, instance: &Samples, outcome: &mut AddOutcome) {
    let before = profile.functions().len();
    let index = profile.find_or_add(&[], instance.name);
    let mut total = instance.total;
    if let Some(flat) = profile.samples_mut(index) {
        if index == before {
            flat.attributes = instance.attributes;
            flat.checksum = instance.checksum;
            flat.vtables.clone_from(&instance.vtables);
        }
        let hints = &mut Hints::default();
        for line in &instance.body {
            flat.add_line(hints, line.location, line.samples, 1, outcome);
        }
        for target in &instance.targets {
            flat.add_target(
                hints,
                target.location,
                target.name,
                target.count,
                1,
                outcome,
            );
        }
        let hints = &mut Hints::default();
        for Inlined { location, samples } in &instance.inlined {
            let head = head_estimate(samples, false);
            flat.add_line(hints, *location, head, 1, outcome);
            flat.add_target(hints, *location, samples.name, head, 1, outcome);
            total = total.saturating_sub(samples.total).wrapping_add(head);
        }
    }
    for inlined in &instance.inlined {
        flatten_instance(profile, &inlined.samples, outcome);
    }
    if let Some(flat) = profile.samples_mut(index) {
        let sum = &mut flat.total;
        outcome.accumulate(sum, total, 1);
        flat.head = head_estimate(flat, false);
    }
}

/// Puts the functions of a profile with contexts below their callers, where the caller's context has samples of its
/// own. With `keep_bases` such a function is also added to its own samples without callers
/// (`-generate-merged-base-profiles`), and marked so. Returns what did not fit. Nothing is done to a profile without
/// contexts.
pub fn nest(profile: &mut SampleProfile, keep_bases: bool) -> AddOutcome {
    let mut outcome = AddOutcome::default();
    if !profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE) {
        return outcome;
    }
    let mut root = Node::default();
    for function in profile.take_functions() {
        let Function { callers, samples } = function;
        let mut node = &mut root;
        let mut location = Location::default();
        for Frame {
            name,
            location: site,
        } in callers
        {
            node = node.children.entry((location, name)).or_default();
            location = site;
        }
        let name = samples.name;
        node.children.entry((location, name)).or_default().samples = Some(samples);
    }
    let mut nesting = Nesting {
        profile,
        keep_bases,
        outcome: &mut outcome,
    };
    for ((_, name), node) in root.children {
        if let Some(samples) = nesting.nest(name, node) {
            nesting.add_base(&samples);
        }
    }
    profile.kind = profile.kind.without(ProfileKind::CONTEXT_SENSITIVE);
    outcome
}

/// A node of the tree of contexts.
#[derive(Default)]
struct Node {
    samples: Option<Samples>,
    children: BTreeMap<(Location, NameId), Node>,
}

struct Nesting<'p> {
    profile: &'p mut SampleProfile,
    keep_bases: bool,
    outcome: &'p mut AddOutcome,
}

impl Nesting<'_> {
    /// The samples of a node with its children in them; children of a node without samples become functions.
    fn nest(&mut self, name: NameId, node: Node) -> Option<Samples> {
        let mut samples = node.samples;
        for ((location, child_name), child) in node.children {
            let Some(mut child) = self.nest(child_name, child) else {
                continue;
            };
            let Some(parent) = &mut samples else {
                self.add_base(&child);
                continue;
            };
            if self.keep_bases {
                self.add_base(&child);
                child.attributes |= DUPLICATED_INTO_BASE;
            }
            self.outcome.accumulate(&mut parent.total, child.total, 1);
            let moved = remove_call(parent, location, child.name);
            parent.total = parent.total.saturating_sub(moved);
            let (inner, is_new) = parent.inlined_at(&mut Hints::default(), location, child.name);
            // LLVM's `emplace`: what is inlined there already stays.
            if is_new {
                *inner = child;
            }
        }
        debug_assert!(samples.as_ref().is_none_or(|samples| samples.name == name));
        samples
    }

    fn add_base(&mut self, samples: &Samples) {
        let before = self.profile.functions().len();
        let index = self.profile.find_or_add(&[], samples.name);
        if let Some(base) = self.profile.samples_mut(index) {
            if index == before {
                base.attributes = samples.attributes;
            }
            base.merge(samples, index == before, |name| name, 1, self.outcome);
        }
    }
}

/// Takes the samples of a call, which now stand in the inlined function, off its line; returns how many these were
/// (`removeCalledTargetAndBodySample`).
fn remove_call(samples: &mut Samples, location: Location, callee: NameId) -> u64 {
    let find = |line: &BodyLine| line.location.cmp(&location);
    let Ok(line) = samples.body.binary_search_by(find) else {
        return 0;
    };
    let target = samples
        .targets
        .binary_search_by_key(&(location, callee), |target| (target.location, target.name));
    let Ok(target) = target else { return 0 };
    let count = samples.targets.remove(target).count;
    let Some(found) = samples.body.get_mut(line) else {
        return 0;
    };
    let count = count.min(found.samples);
    found.samples -= count;
    if found.samples == 0 {
        samples.body.remove(line);
        samples.targets.retain(|target| target.location != location);
    }
    count
}
