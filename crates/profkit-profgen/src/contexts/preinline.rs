//! Decides which contexts a compiler shall inline. The samples of each other context are added to the context of its
//! function that has no callers.
use super::PreinlineOptions;
use super::inline_order::{callers_first, weight};
use super::queue::Queue;
use super::sizes::Sizes;
use super::trie::{NodeId, ROOT, Trie};
use crate::finish::SHOULD_BE_INLINED;
use profkit_data::sample::{AddOutcome, Location, NameId};
use profkit_data::summary::{Summary, Thresholds};
use rustc_hash::FxHashMap;
use std::cmp::{Ordering, Reverse};

/// LLVM's attribute of a context whose function is inlined in the recorded program.
const WAS_INLINED: u32 = 1;

/// Functions at or above the summary's count for this cutoff, in millionths, are as hot as possible.
const VERY_HOT: u64 = 100_000;

#[derive(Clone, Copy, Debug)]
struct Candidate {
    count: u64,
    size: u64,
    hash: u64,
    node: NodeId,
}

impl Candidate {
    /// The greater candidate is considered first: one without code, with more calls, with less code, with the larger
    /// hash.
    fn order(&self, other: &Self) -> Ordering {
        let key = |it: &Self| (it.size == 0, it.count, Reverse(it.size), it.hash);
        key(self).cmp(&key(other))
    }
}

struct Preinliner<'p> {
    trie: &'p mut Trie,
    sizes: &'p Sizes,
    options: PreinlineOptions,
    cold: u64,
    very_hot: u64,
    /// The nodes of each function with samples, before contexts were moved; `moved` leads to the present ones.
    contexts: FxHashMap<NameId, Vec<NodeId>>,
    moved: FxHashMap<NodeId, NodeId>,
    inlined: u64,
}

pub fn preinline(
    trie: &mut Trie,
    sizes: &Sizes,
    options: PreinlineOptions,
    (summary, thresholds): (&Summary, &Thresholds),
) -> u64 {
    let cold = thresholds.cold(summary).unwrap_or(0);
    let order = callers_first(trie, cold);
    let mut contexts: FxHashMap<NameId, Vec<NodeId>> = FxHashMap::default();
    for id in trie.breadth_first() {
        let node = trie.node(id);
        if node.samples.is_some() {
            contexts.entry(node.name).or_default().push(id);
        }
    }
    let mut preinliner = Preinliner {
        trie,
        sizes,
        options,
        cold,
        very_hot: summary.count_at(VERY_HOT).unwrap_or(0),
        contexts,
        moved: FxHashMap::default(),
        inlined: 0,
    };
    for function in order {
        preinliner.decide(function);
    }
    let inlined = preinliner.inlined;
    for id in trie.breadth_first() {
        let node = trie.node_mut(id);
        if node.parent != Some(ROOT) && !node.inlined {
            node.samples = None;
        }
    }
    inlined
}

impl Preinliner<'_> {
    fn decide(&mut self, function: NameId) {
        let Some(base) = self.base(function) else {
            return;
        };
        if self.trie.node(base).samples.is_none() {
            return;
        }
        let options = self.options;
        let own = self.size(base);
        let mut size = own;
        // LLVM computes the largest size in a 32-bit integer, so only the low 32 bits are kept.
        let limit = u64::from(options.growth_limit).wrapping_mul(own) & u64::from(u32::MAX);
        let limit = limit
            .min(options.limit_max.into())
            .max(options.limit_min.into());
        let mut queue = Queue::new(Candidate::order);
        self.add_candidates(base, &mut queue);
        while size < limit
            && let Some(candidate) = queue.pop()
        {
            if !self.is_inlined(&candidate) {
                continue;
            }
            let node = self.trie.node_mut(candidate.node);
            node.inlined = true;
            if let Some(samples) = &mut node.samples {
                samples.attributes |= SHOULD_BE_INLINED;
            }
            self.inlined += 1;
            size = size.saturating_add(candidate.size);
            self.add_candidates(candidate.node, &mut queue);
        }
    }

    fn size(&mut self, node: NodeId) -> u64 {
        if self.options.code_sizes {
            return self.sizes.of(self.trie, node);
        }
        let samples = self.trie.node(node).samples.as_ref();
        samples.map_or(0, |samples| samples.body.len() as u64)
    }

    fn add_candidates(&mut self, caller: NodeId, queue: &mut Queue<Candidate>) {
        for node in self.trie.children(caller) {
            if self.trie.node(node).samples.is_none() {
                continue;
            }
            let size = self.size(node);
            let name = self.trie.node(node).name;
            queue.push(Candidate {
                count: weight(self.trie, caller, node),
                size,
                hash: self.trie.hash(name),
                node,
            });
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a threshold is an estimate, and is rounded as LLVM rounds it"
    )]
    fn is_inlined(&self, candidate: &Candidate) -> bool {
        let options = &self.options;
        let samples = self.trie.node(candidate.node).samples.as_ref();
        let was_inlined = samples.is_some_and(|it| it.attributes & WAS_INLINED != 0);
        if options.replay {
            return was_inlined;
        }
        let threshold = if candidate.count <= self.cold {
            options.cold_threshold.cast_unsigned()
        } else {
            let (low, high) = (self.cold as f64, self.very_hot as f64);
            let hotness = ((candidate.count as f64 - low) / (high - low)).min(1.0);
            let threshold = f64::from(options.hot_threshold) * hotness * 100.0
                + f64::from(options.cold_threshold)
                + 1.0;
            let factor = if was_inlined {
                options.was_inlined_factor
            } else {
                1
            };
            // As in LLVM's tool on x86-64, only the low 32 bits of the threshold are kept.
            (threshold as i64 as u32).wrapping_mul(factor)
        };
        candidate.size < threshold.into()
    }

    /// Adds the contexts that are not inlined to the one without callers; `None` if none is left.
    fn base(&mut self, function: NameId) -> Option<NodeId> {
        let mut base = self.trie.find(ROOT, Location::default(), function);
        for first in self.contexts.get(&function).cloned().unwrap_or_default() {
            let mut node = first;
            while let Some(&next) = self.moved.get(&node) {
                node = next;
            }
            let state = self.trie.node(node);
            if state.inlined || state.merged || Some(node) == base {
                continue;
            }
            base = Some(self.promote(node, ROOT));
        }
        base
    }

    /// Moves a context and what is called in it to another caller, or adds it to the one that is there.
    fn promote(&mut self, from: NodeId, caller: NodeId) -> NodeId {
        let node = self.trie.node(from);
        let (name, old_site, parent) = (node.name, node.site, node.parent);
        let site = if caller == ROOT {
            Location::default()
        } else {
            old_site
        };
        let to = match self.trie.find(caller, site, name) {
            None => {
                let key = self.trie.key(name, site);
                self.trie.node_mut(caller).children.insert(key, from);
                let node = self.trie.node_mut(from);
                node.parent = Some(caller);
                node.site = site;
                from
            }
            Some(to) => {
                self.merge(from, to);
                for child in self.trie.children(from) {
                    self.promote(child, to);
                }
                self.trie.node_mut(from).children.clear();
                to
            }
        };
        if caller == ROOT
            && let Some(parent) = parent
        {
            let key = self.trie.key(name, old_site);
            self.trie.node_mut(parent).children.remove(&key);
        }
        to
    }

    fn merge(&mut self, from: NodeId, to: NodeId) {
        let Some(theirs) = self.trie.node_mut(from).samples.take() else {
            return;
        };
        let is_inlined = self.trie.node(from).inlined;
        let node = self.trie.node_mut(to);
        match &mut node.samples {
            Some(ours) => {
                let mut outcome = AddOutcome::default();
                ours.adding()
                    .merge(&theirs, false, |name| name, 1, &mut outcome);
                ours.attributes |= theirs.attributes & SHOULD_BE_INLINED;
                self.trie.node_mut(from).merged = true;
            }
            None => {
                node.samples = Some(theirs);
                node.inlined = is_inlined;
                self.moved.insert(from, to);
            }
        }
    }
}
