//! Counts how often control went from one block to another.
use super::code::CodeMap;
use profkit_perf::collect::{BinaryCounts, Place};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// How control went from one block to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Branch,
    /// Control ran on into the next block.
    FallThrough,
    Call,
    Return,
}

/// How often control went from one block to another. Blocks are numbered through the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    pub kind: Kind,
    pub weight: u64,
}

/// The numbers of branches and ranges that were used or left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowLosses {
    /// The number of branches that have at least one end in the program.
    pub branches: u64,
    /// The number of branches with neither end in a function with known blocks.
    pub outside: u64,
    /// The number of branches that go to the middle of a block and are not returns.
    pub into_middle: u64,
    /// The number of ranges of code between two branches, in functions with known blocks.
    pub ranges: u64,
    /// The number of `ranges` in which some block before the last one does not fall through to the next block.
    pub broken_ranges: u64,
}

/// The control flow of a program according to the samples.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The numbers of branches and ranges that were used or left out.
    pub losses: FlowLosses,
    /// The edges, sorted by the numbers of their blocks.
    pub(super) edges: Vec<Edge>,
    /// How often each block ran.
    pub(super) weights: Vec<u64>,
    /// For each block, how often it was called. Only entries of functions are called; other blocks have 0.
    pub(super) entered: Vec<u64>,
}

/// Sums for a block.
#[derive(Clone, Copy, Debug, Default)]
struct BlockSums {
    into: u64,
    out: u64,
    most_called: u64,
    most_returned: u64,
}

impl Flow {
    /// Counts the control flow of a program. Counts of several recordings are added.
    pub fn new(code: &CodeMap, counts: &[&BinaryCounts]) -> Self {
        let mut adder = Adder {
            code,
            edges: FxHashMap::default(),
            sums: vec![BlockSums::default(); code.block_count()],
            entered: vec![0; code.block_count()],
            losses: FlowLosses::default(),
        };
        for binary in counts {
            let numbering = binary.key.numbering;
            let contexts = binary.contexts.values();
            for sums in contexts.chain([&binary.sums]) {
                for branch in &sums.branches {
                    let from = code.address(branch.from, numbering);
                    let to = code.address(branch.to, numbering);
                    adder.branch(from, to, branch.count);
                }
                for range in &sums.ranges {
                    let start = code.address(Place::at(range.start), numbering);
                    let end = code.address(Place::at(range.end), numbering);
                    if let (Some(start), Some(end)) = (start, end) {
                        adder.range(start, end, range.count);
                    }
                }
            }
        }
        adder.finish()
    }

    /// The edges between blocks of one function that matter for its layout. Returns are left out.
    pub(super) fn jumps_within(&self, first: usize, blocks: usize) -> impl Iterator<Item = &Edge> {
        let all = first..first + blocks;
        self.edges_from(all.clone())
            .iter()
            .filter(move |edge| edge.kind != Kind::Return && all.contains(&edge.to))
    }

    /// The edges that begin in a range of blocks.
    pub(super) fn edges_from(&self, blocks: Range<usize>) -> &[Edge] {
        let start = self.edges.partition_point(|edge| edge.from < blocks.start);
        let end = self.edges.partition_point(|edge| edge.from < blocks.end);
        self.edges.get(start..end).unwrap_or_default()
    }
}

struct Adder<'code> {
    code: &'code CodeMap,
    edges: FxHashMap<(usize, usize, Kind), u64>,
    sums: Vec<BlockSums>,
    entered: Vec<u64>,
    losses: FlowLosses,
}

impl Adder<'_> {
    fn branch(&mut self, from: Option<u64>, to: Option<u64>, count: u64) {
        let code = self.code;
        let add = |sum: &mut u64| *sum = sum.saturating_add(count);
        add(&mut self.losses.branches);
        let source = from.and_then(|address| code.holding(address));
        let target = to.and_then(|address| Some((address, code.reached(address)?)));
        let Some((address, mut sink)) = target else {
            match source {
                // The branch is a call or a jump to code without known blocks.
                Some(source) => self.leave(source, count),
                None => add(&mut self.losses.outside),
            }
            return;
        };
        let Some((function, block)) = code.block(sink) else {
            return;
        };
        let returns = |source: usize| {
            code.block(source)
                .is_some_and(|(_, block)| block.flags.returns())
        };
        let same = source.is_some_and(|source| code.owner(source) == code.owner(sink));
        let is_entry = address == function.address;
        let at_start = address == block.address;
        let comes_back = source.is_none_or(returns);
        let mut kind = if is_entry {
            Kind::Call
        } else if comes_back || !at_start {
            Kind::Return
        } else {
            Kind::Branch
        };
        // A return to the start of a block is one to the block before, which ended with the call.
        if !is_entry && at_start && (comes_back || !same) {
            let before = sink.checked_sub(1).filter(|_| sink > function.first);
            let before = before.filter(|&before| {
                code.block(before).is_some_and(|(_, before)| {
                    before.flags.falls_through()
                        && before.address.saturating_add(before.size) == address
                })
            });
            if let Some(before) = before {
                self.edge(before, sink, Kind::FallThrough, count);
                sink = before;
                kind = Kind::Return;
            }
        }
        if !at_start && !is_entry && !comes_back {
            add(&mut self.losses.into_middle);
        }
        if kind == Kind::Call
            && let Some(entered) = self.entered.get_mut(sink)
        {
            add(entered);
        }
        match source {
            Some(source) => self.edge(source, sink, kind, count),
            None => self.enter(sink, kind, count),
        }
    }

    fn range(&mut self, start: u64, end: u64, count: u64) {
        let (Some(first), Some(last)) = (self.code.reached(start), self.code.holding(end)) else {
            return;
        };
        self.losses.ranges = self.losses.ranges.saturating_add(count);
        let runs_on = |number: usize| {
            let this = self.code.block(number).map(|(_, block)| block);
            let next = self.code.block(number + 1).map(|(_, block)| block);
            matches!((this, next), (Some(this), Some(next))
                if this.flags.falls_through() && next.address >= this.address)
        };
        if first > last
            || self.code.owner(first) != self.code.owner(last)
            || !(first..last).all(runs_on)
        {
            self.losses.broken_ranges = self.losses.broken_ranges.saturating_add(count);
            return;
        }
        for number in first..last {
            self.edge(number, number + 1, Kind::FallThrough, count);
        }
    }

    fn edge(&mut self, from: usize, to: usize, kind: Kind, count: u64) {
        let weight = self.edges.entry((from, to, kind)).or_default();
        *weight = weight.saturating_add(count);
    }

    /// Counts a branch from a block to code without known blocks.
    fn leave(&mut self, source: usize, count: u64) {
        // The block ran at least this often, whether the branch is a call or not.
        if let Some(sums) = self.sums.get_mut(source) {
            sums.most_called = sums.most_called.max(count);
        }
    }

    /// Counts a branch to a block from code without known blocks.
    fn enter(&mut self, sink: usize, kind: Kind, count: u64) {
        if let Some(sums) = self.sums.get_mut(sink) {
            if kind == Kind::Return {
                sums.most_returned = sums.most_returned.max(count);
            } else {
                sums.into = sums.into.saturating_add(count);
            }
        }
    }

    fn finish(mut self) -> Flow {
        let edges = std::mem::take(&mut self.edges);
        let mut edges: Vec<Edge> = edges
            .into_iter()
            .map(|((from, to, kind), weight)| Edge {
                from,
                to,
                kind,
                weight,
            })
            .collect();
        edges.sort_by_key(|edge| (edge.from, edge.to, edge.kind));
        for edge in &edges {
            if let Some(sums) = self.sums.get_mut(edge.from) {
                if edge.kind == Kind::Call {
                    sums.most_called = sums.most_called.max(edge.weight);
                } else {
                    sums.out = sums.out.saturating_add(edge.weight);
                }
            }
            self.enter(edge.to, edge.kind, edge.weight);
        }
        let weight = |sums: &BlockSums| {
            let calls = sums.most_called.max(sums.most_returned);
            calls.max(sums.into).max(sums.out)
        };
        Flow {
            losses: self.losses,
            edges,
            weights: self.sums.iter().map(weight).collect(),
            entered: self.entered,
        }
    }
}
