//! Contexts by source line.
use super::sizes::Sizes;
use super::trie::{NodeId, ROOT, Trie, add_line, add_target, raise_line};
use super::{Context, ContextOptions, Contexts, LineFrame};
use crate::checked::add;
use crate::probes::functions_of;
use crate::program::Program;
use crate::ranges::disjoint;
use profkit_data::limits::SAMPLE_INLINE_DEPTH;
use profkit_data::memprof::canonical_name;
use profkit_data::sample::{
    Location, NameId, SampleName, SampleNames, base_discriminator, duplication_factor,
    head_estimate,
};
use profkit_object::symbolize::FrameId;
use rustc_hash::{FxHashMap, FxHashSet};

/// The mask for a line offset. Line offsets in sample profiles have 16 bits.
const OFFSET_MASK: u32 = 0xffff;

#[derive(Debug, Default)]
pub struct LineStacks {
    names: SampleNames,
    addresses: FxHashMap<u64, usize>,
    stacks: Vec<Box<[(NameId, Location)]>>,
}

impl LineStacks {
    pub fn of(program: &Program<'_>, addresses: Vec<u64>) -> Self {
        let locations = program.symbolizer.symbolize(&addresses);
        let mut stacks = LineStacks::default();
        let mut known: FxHashMap<FrameId, Option<usize>> = FxHashMap::default();
        for (index, &address) in addresses.iter().enumerate() {
            let Some(leaf) = locations.leaf(index) else {
                continue;
            };
            let stack = *known.entry(leaf).or_insert_with(|| {
                let frames = std::iter::successors(Some(leaf), |&frame| locations.caller(frame));
                let mut frames: Vec<_> = frames.filter_map(|id| locations.frame(id)).collect();
                frames.reverse();
                let mut stack = Vec::new();
                for frame in frames {
                    let Some(name) = frame.function.filter(|name| !name.is_empty()) else {
                        break;
                    };
                    let line = frame.line.wrapping_sub(frame.function_line) & OFFSET_MASK;
                    let name = stacks.names.insert(SampleName::Text(name))?;
                    stack.push((name, Location::new(line, frame.discriminator)));
                }
                stacks.stacks.push(stack.into());
                Some(stacks.stacks.len() - 1)
            });
            stacks.addresses.extend(stack.map(|stack| (address, stack)));
        }
        stacks
    }

    /// The inline stack at an address; empty if the address has no source line.
    pub fn at(&self, address: u64) -> &[(NameId, Location)] {
        let stack = self.addresses.get(&address);
        stack
            .and_then(|&stack| self.stacks.get(stack))
            .map_or(&[], |stack| stack)
    }

    pub fn same_callers(&self, one: u64, two: u64) -> bool {
        match (self.at(one).split_last(), self.at(two).split_last()) {
            (Some((_, one)), Some((_, two))) => one == two,
            _ => false,
        }
    }

    pub fn name(&self, name: NameId) -> &[u8] {
        match self.names.get(name) {
            SampleName::Text(name) => name,
            SampleName::Guid(_) => b"",
        }
    }
}

pub fn fill(
    program: &Program<'_>,
    contexts: &Contexts,
    options: &ContextOptions,
    trie: &mut Trie,
) -> Sizes {
    let mut pieces = Vec::new();
    let mut addresses = Vec::new();
    for counts in contexts.counts.values() {
        let ranges = disjoint(&counts.ranges);
        for &(first, last, _) in &ranges {
            addresses.extend(program.code.between(first, last).map(|it| it.address));
        }
        addresses.extend(counts.branches.keys().filter_map(|(from, _)| *from));
        pieces.push(ranges);
    }
    addresses.sort_unstable();
    addresses.dedup();
    let stacks = LineStacks::of(program, addresses);
    let whole = program.fs_discriminators;
    let base = |location: Location| {
        let discriminator = if whole {
            location.discriminator
        } else {
            base_discriminator(location.discriminator)
        };
        Location::new(location.line, discriminator)
    };
    for ((context, counts), pieces) in contexts.counts.iter().zip(pieces) {
        let Context::Lines(frames) = context else {
            continue;
        };
        let Some(node) = node_of(trie, frames) else {
            continue;
        };
        if node != ROOT {
            let samples = trie.samples(node);
            samples.attributes |= u32::from(counts.was_inlined);
            for (first, last, count) in pieces {
                for instruction in program.code.between(first, last) {
                    let Some(&(_, line)) = stacks.at(instruction.address).last() else {
                        continue;
                    };
                    let factor = if whole {
                        1
                    } else {
                        duplication_factor(line.discriminator)
                    };
                    raise_line(samples, base(line), count.saturating_mul(factor.into()));
                    add(&mut samples.total, count);
                }
            }
        }
        for (&(from, to), &count) in &counts.branches {
            let Some(callee) = program.entered_at(to) else {
                continue;
            };
            let Some(callee) = trie.intern(canonical_name(&callee.name)) else {
                continue;
            };
            let mut site = Location::default();
            let line = from.and_then(|from| stacks.at(from).last());
            if node != ROOT
                && let Some(&(_, line)) = line
            {
                add_target(trie.samples(node), base(line), callee, count);
                site = line;
            }
            let callee = trie.child(node, site, callee);
            add(&mut trie.samples(callee).head, count);
        }
    }
    infer_calls(trie);
    let mut functions = FxHashSet::default();
    if Sizes::is_wanted(options) {
        let by_line = contexts.counts.iter();
        for (_, counts) in by_line.filter(|(it, _)| matches!(it, Context::Lines(_))) {
            let (ranges, branches) = (counts.ranges.keys(), counts.branches.keys());
            functions_of(program, ranges.copied(), branches.copied(), &mut functions);
        }
    }
    Sizes::of_lines(program, &functions, options)
}

fn node_of(trie: &mut Trie, frames: &[LineFrame]) -> Option<NodeId> {
    let mut node = ROOT;
    let mut site = Location::default();
    // Only unlimited recursion makes longer contexts. Their outermost frames are dropped.
    let left_out = frames.len().saturating_sub(SAMPLE_INLINE_DEPTH);
    for frame in frames.iter().skip(left_out) {
        let name = trie.intern(&frame.name)?;
        node = trie.child(node, site, name);
        site = frame.location;
    }
    Some(node)
}

/// No branch enters an inlined function, so the caller's line gets its entry count.
fn infer_calls(trie: &mut Trie) {
    // `depth_first` returns callees before their callers.
    for id in depth_first(trie) {
        let node = trie.node(id);
        let (name, site) = (node.name, node.site);
        let (Some(samples), Some(parent)) = (&node.samples, node.parent) else {
            continue;
        };
        if samples.head > 0 || parent == ROOT {
            continue;
        }
        let mut count = head_estimate(samples, true);
        if count == 0 && samples.body.is_empty() {
            count = 1;
        }
        let caller = trie.samples(parent);
        add_target(caller, site, name, count);
        add_line(caller, site, count);
        add(&mut caller.total, count);
    }
}

fn depth_first(trie: &Trie) -> Vec<NodeId> {
    let mut list = Vec::new();
    let mut stack = vec![ROOT];
    while let Some(id) = stack.pop() {
        list.push(id);
        stack.extend(trie.node(id).children.values());
    }
    list.reverse();
    list.pop();
    list
}
