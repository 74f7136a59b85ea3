//! Contexts by pseudo probe.
use super::compress::{compress, cut};
use super::missing::Missing;
use super::sizes::Sizes;
use super::trie::{NodeId, ROOT, Trie, add_line, add_target};
use super::{Context, ContextFigures, ContextOptions, Contexts};
use crate::checked::add;
use crate::lines::line_at;
use crate::probes::{CopyId, Probe, ProbeFrame, ProbeMap, functions_of, probes_of};
use crate::program::{FunctionId, Program};
use crate::ranges::disjoint;
use profkit_data::Result;
use profkit_data::limits::{SAMPLE_CONTEXT_DEPTH, SAMPLE_INLINE_DEPTH};
use profkit_data::memprof::canonical_name;
use profkit_data::sample::{Location, NameId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

type Call = (NameId, u32);

struct Builder<'b, 'files> {
    program: &'b Program<'files>,
    map: &'b ProbeMap,
    missing: Option<Missing<'b, 'files>>,
    options: &'b ContextOptions,
    names: FxHashMap<u64, NameId>,
    /// A cache with the frames of lists of calls, which are the keys. It holds at most [`REMEMBERED`] lists.
    frames: FxHashMap<Vec<u64>, Vec<Call>>,
    /// For the current calls: the context of each copy of a function, if there is one. The function in which the code
    /// is decides which missing frames are added, so it is part of the key.
    nodes: FxHashMap<(CopyId, Option<FunctionId>), Option<NodeId>>,
    cut: u64,
}

/// The largest number of lists of calls whose frames are kept in memory.
const REMEMBERED: usize = 1024;

pub fn fill(
    program: &Program<'_>,
    contexts: &Contexts,
    options: &ContextOptions,
    trie: &mut Trie,
    figures: &mut ContextFigures,
) -> Result<Sizes> {
    let mut functions = FxHashSet::default();
    for (context, counts) in &contexts.counts {
        if let Context::Calls(calls) = context {
            let called = calls.iter().filter_map(|&call| program.range_at(call));
            functions.extend(called.map(|range| range.function));
        }
        let (ranges, branches) = (counts.ranges.keys(), counts.branches.keys());
        functions_of(program, ranges.copied(), branches.copied(), &mut functions);
    }
    let map = probes_of(program, &functions)?;
    let missing = options
        .infer_missing_frames
        .then(|| Missing::new(program, contexts, options));
    let mut builder = Builder {
        program,
        map: &map,
        missing,
        options,
        names: FxHashMap::default(),
        frames: FxHashMap::default(),
        nodes: FxHashMap::default(),
        cut: 0,
    };
    for (context, counts) in &contexts.counts {
        if let Context::Calls(calls) = context {
            builder.nodes.clear();
            builder.add_ranges(trie, calls, &counts.ranges);
            builder.add_branches(trie, calls, &counts.branches);
        }
    }
    figures.without_probe = builder.cut;
    figures.searches_given_up = builder.missing.as_ref().map_or(0, Missing::given_up);
    figures.inferred_frames = builder.missing.as_ref().map_or(0, Missing::inferred);
    Ok(Sizes::of_probes(program, &functions, &map, options))
}

impl Builder<'_, '_> {
    fn name(&mut self, trie: &mut Trie, guid: u64) -> Option<NameId> {
        if let Some(&known) = self.names.get(&guid) {
            return Some(known);
        }
        let name = trie.intern(&self.map.descriptions.get(&guid)?.name)?;
        self.names.insert(guid, name);
        Some(name)
    }

    fn named(&mut self, trie: &mut Trie, frames: Vec<ProbeFrame>) -> Option<Vec<Call>> {
        let frames = frames.into_iter();
        frames
            .map(|(guid, index)| Some((self.name(trie, guid)?, index)))
            .collect()
    }

    /// A call without a probe cuts off all outer calls, because a compiler does not know the call site.
    fn frames_of(&mut self, trie: &mut Trie, calls: &[u64]) -> Option<Vec<Call>> {
        let mut probes = Vec::new();
        for &call in calls.iter().rev() {
            let Some(probe) = self.map.call_at(call) else {
                self.cut += 1;
                break;
            };
            probes.push(probe);
        }
        let mut frames = Vec::new();
        for probe in probes.into_iter().rev() {
            let (known, is_cut) = self.map.known_frames(probe);
            if is_cut {
                frames.clear();
            }
            frames.extend(self.named(trie, known)?);
        }
        Some(frames)
    }

    fn node(&mut self, trie: &mut Trie, calls: &[u64], probe: &Probe) -> Option<NodeId> {
        let function = self.program.range_at(probe.address);
        let key = (probe.copy, function.map(|range| range.function));
        if let Some(known) = self.nodes.get(&key) {
            return *known;
        }
        let node = self.find_node(trie, calls, probe);
        self.nodes.insert(key, node);
        node
    }

    fn find_node(&mut self, trie: &mut Trie, calls: &[u64], probe: &Probe) -> Option<NodeId> {
        let inferred = match &mut self.missing {
            Some(missing) => {
                let mut inferred = missing.between(calls, probe.address);
                // The last element is the probe itself, which is not a call.
                inferred.pop();
                inferred
            }
            None => calls.to_vec(),
        };
        let mut frames = match self.frames.get(&inferred) {
            Some(known) => known.clone(),
            None => {
                let frames = self.frames_of(trie, &inferred)?;
                if self.frames.len() >= REMEMBERED {
                    self.frames.clear();
                }
                self.frames.insert(inferred, frames.clone());
                frames
            }
        };
        let (known, is_cut) = self.map.known_frames(probe);
        if is_cut {
            frames.clear();
        }
        frames.extend(self.named(trie, known)?);
        let (leaf, _) = frames.pop()?;
        // Only unlimited recursion makes longer contexts. `compress` would take too long for them.
        cut(&mut frames, Some(SAMPLE_CONTEXT_DEPTH));
        compress(&mut frames, self.options.compress_recursion);
        cut(&mut frames, self.options.max_depth);
        cut(&mut frames, Some(SAMPLE_INLINE_DEPTH - 1));
        let mut node = ROOT;
        let mut site = Location::default();
        for (name, index) in frames {
            node = trie.child(node, site, name);
            site = Location::new(index, 0);
        }
        let node = trie.child(node, site, leaf);
        let copy = self.map.copy(probe.copy)?;
        let samples = trie.samples(node);
        samples.attributes |= u32::from(copy.caller.is_some());
        samples.checksum = self.map.descriptions.get(&copy.guid)?.checksum;
        Some(node)
    }

    fn add_ranges(&mut self, trie: &mut Trie, calls: &[u64], ranges: &BTreeMap<(u64, u64), u64>) {
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        for (first, last, count) in disjoint(ranges) {
            for (number, probe) in self.map.between(first, last) {
                if probe.is_block() && count > 0 {
                    add(counts.entry(number).or_default(), count);
                }
            }
        }
        // The contexts that have samples, each with the copy of a function (itself or inlined) whose probes have them.
        let mut sampled: BTreeSet<(CopyId, NodeId)> = BTreeSet::new();
        for (number, count) in counts {
            let Some(probe) = self.map.probes.get(number) else {
                continue;
            };
            let Some(node) = self.node(trie, calls, probe) else {
                continue;
            };
            sampled.insert((probe.copy, node));
            let samples = trie.samples(node);
            let location = Location::new(probe.index, probe.discriminator);
            add_line(samples, location, count);
            add(&mut samples.total, count);
            if probe.is_entry() {
                add(&mut samples.head, count);
                self.add_inlined_call(trie, node, probe, count);
            }
        }
        // Other probes whose code exists get the count 0; those that were optimised away get none.
        for (copy, node) in sampled {
            let Some(copy) = self.map.copy(copy) else {
                continue;
            };
            let probes = self.map.probes.get(copy.probes.clone());
            for probe in probes.unwrap_or_default() {
                let location = Location::new(probe.index, probe.discriminator);
                line_at(trie.samples(node), location);
            }
        }
    }

    /// No branch enters an inlined function, so the count of its entry probe is the number of calls.
    fn add_inlined_call(&mut self, trie: &mut Trie, node: NodeId, probe: &Probe, count: u64) {
        let map = self.map;
        let caller = map.copy(probe.copy).and_then(|copy| copy.caller);
        let Some(outer) = caller.and_then(|(id, _)| map.copy(id)) else {
            return;
        };
        let inner = trie.node(node);
        let (name, site, parent) = (inner.name, inner.site, inner.parent);
        let Some(parent) = parent.filter(|&parent| parent != ROOT) else {
            return;
        };
        let samples = trie.samples(parent);
        if let Some(description) = map.descriptions.get(&outer.guid) {
            samples.checksum = description.checksum;
        }
        add_line(samples, site, count);
        add(&mut samples.total, count);
        add_target(samples, site, name, count);
    }

    fn add_branches(
        &mut self,
        trie: &mut Trie,
        calls: &[u64],
        branches: &BTreeMap<(Option<u64>, u64), u64>,
    ) {
        for (&(from, to), &count) in branches {
            let Some(probe) = from.and_then(|from| self.map.call_at(from)) else {
                continue;
            };
            let Some(node) = self.node(trie, calls, probe) else {
                continue;
            };
            let samples = trie.samples(node);
            add_line(samples, Location::new(probe.index, 0), count);
            add(&mut samples.total, count);
            if let Some(callee) = self.program.entered_at(to)
                && let Some(callee) = trie.intern(canonical_name(&callee.name))
            {
                let location = Location::new(probe.index, probe.discriminator);
                add_target(trie.samples(node), location, callee, count);
            }
        }
    }
}
