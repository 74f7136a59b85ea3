//! Finds the context in which each piece of code ran: goes back through the branches of a sample, and undoes each
//! branch in the call chain.
use super::compress::{compress, cut};
use super::lines::LineStacks;
use super::{Context, ContextCounts, ContextFigures, ContextOptions, Contexts, LineFrame};
use crate::checked::add;
use crate::code::Flow;
use crate::program::Program;
use profkit_data::sample::{Location, NameId, base_discriminator};
use profkit_perf::collect::{Counts, StackPlace};
use rustc_hash::{FxHashMap, FxHashSet};

/// The address of a frame. `None` if the code is outside of the binary.
type Address = Option<u64>;

/// The address of a branch instruction, and its target. `None` if the code is outside of the binary.
type Branch = (Address, Address);

/// A frame whose call is not known: the instruction before the target of a return is no call.
const UNKNOWN: Address = Some(0);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sample {
    chain: Vec<Address>,
    branches: Vec<(Address, Address)>,
}

/// The context of each range and branch of a binary, whose counts are at `binaries` in [`Counts::binaries`].
pub fn unwind(
    program: &Program<'_>,
    counts: &Counts,
    binaries: &[usize],
    options: &ContextOptions,
) -> Contexts {
    unwind_samples(program, Samples::of(program, counts, binaries), options)
}

/// Finds the context of each range and branch that ran according to `samples`.
pub fn unwind_samples(
    program: &Program<'_>,
    samples: Samples,
    options: &ContextOptions,
) -> Contexts {
    let Samples {
        list: samples,
        mut figures,
    } = samples;
    let by_probes = program.has_probes();
    let mut has_foreign = false;
    if by_probes {
        let mut sums: FxHashMap<Vec<u64>, ContextCounts> = FxHashMap::default();
        for (sample, &count) in &samples {
            let mut state = State::new(program, None, sample, count, &mut figures);
            state.run();
            has_foreign |= state.trie.has_foreign_callers();
            state.trie.collect(&mut |chain, leaf| {
                let mut calls: Vec<u64> = chain.iter().filter_map(|&at| at).collect();
                compress(&mut calls, options.compress_recursion);
                cut(&mut calls, options.max_calls.or(options.max_depth));
                leaf.add_to(sums.entry(calls).or_default());
            });
        }
        figures.foreign_callers = has_foreign;
        let counts = sums.into_iter();
        return Contexts {
            counts: counts
                .map(|(calls, counts)| (Context::Calls(calls.into()), counts))
                .collect(),
            by_probes,
            figures,
        };
    }
    let stacks = LineStacks::of(program, addresses(program, &samples));
    let mut sums: FxHashMap<Vec<(NameId, Location)>, ContextCounts> = FxHashMap::default();
    for (sample, &count) in &samples {
        let mut state = State::new(program, Some(&stacks), sample, count, &mut figures);
        state.run();
        has_foreign |= state.trie.has_foreign_callers();
        state.trie.collect(&mut |chain, leaf| {
            let (frames, was_inlined) = expanded(program, &stacks, chain, options);
            // Removing recursion can make two contexts equal: the first then sets `was_inlined` for both.
            let sum = sums.entry(frames).or_insert_with(|| ContextCounts {
                was_inlined,
                ..ContextCounts::default()
            });
            leaf.add_to(sum);
        });
    }
    figures.foreign_callers = has_foreign;
    let frame = |(name, location)| LineFrame {
        name: stacks.name(name).into(),
        location,
    };
    let counts = sums.into_iter();
    Contexts {
        counts: counts
            .map(|(frames, counts)| {
                (
                    Context::Lines(frames.into_iter().map(frame).collect()),
                    counts,
                )
            })
            .collect(),
        by_probes,
        figures,
    }
}

fn expanded(
    program: &Program<'_>,
    stacks: &LineStacks,
    chain: &[Address],
    options: &ContextOptions,
) -> (Vec<(NameId, Location)>, bool) {
    let mut frames = Vec::new();
    let mut was_inlined = false;
    for address in chain.iter().filter_map(|&at| at) {
        let stack = stacks.at(address);
        if stack.is_empty() {
            return (Vec::new(), false);
        }
        was_inlined = stack.len() > 1;
        frames.extend_from_slice(stack);
    }
    if !program.fs_discriminators {
        for (_, location) in &mut frames {
            location.discriminator = base_discriminator(location.discriminator);
        }
    }
    if let Some((leaf, _)) = frames.pop() {
        compress(&mut frames, options.compress_recursion);
        cut(&mut frames, options.max_depth);
        frames.push((leaf, Location::default()));
    }
    (frames, was_inlined)
}

/// The samples of a binary, each different one once, with addresses of the binary.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    list: FxHashMap<Sample, u64>,
    figures: ContextFigures,
}

impl Samples {
    /// The numbers of samples that were used or left out so far.
    pub fn figures(&self) -> &ContextFigures {
        &self.figures
    }

    /// Adds other samples.
    pub fn join(&mut self, other: Samples) {
        for (sample, count) in other.list {
            add(self.list.entry(sample).or_default(), count);
        }
        let (ours, theirs) = (&mut self.figures, other.figures);
        for (ours, theirs) in [
            (&mut ours.samples, theirs.samples),
            (&mut ours.leaf_elsewhere, theirs.leaf_elsewhere),
            (&mut ours.incomplete_chain, theirs.incomplete_chain),
            (&mut ours.invalid_return, theirs.invalid_return),
        ] {
            add(ours, theirs);
        }
        ours.invalid_returns.extend(theirs.invalid_returns);
    }

    /// The branches of each sample, newest first, and how often it occurred. `None`: no instruction begins there.
    pub fn branches(&self) -> impl Iterator<Item = (&[Branch], u64)> {
        let list = self.list.iter();
        list.map(|(sample, &count)| (sample.branches.as_slice(), count))
    }

    /// The number of different samples.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn of(program: &Program<'_>, counts: &Counts, binaries: &[usize]) -> Self {
        let stacks = &counts.stacks;
        let addresses: Vec<Address> = stacks
            .places()
            .iter()
            .map(|(binary, place)| {
                let of_binary = binaries.contains(binary);
                let counted = of_binary.then(|| counts.binaries.get(*binary))??;
                let address = program.address(counted.key.numbering, *place)?;
                program.code.is_code(address).then_some(address)
            })
            .collect();
        let address = |place: StackPlace| addresses.get(place.index()).copied().flatten();
        let mut samples = Samples::default();
        for stack in &stacks.samples {
            let branches = stack
                .branches
                .iter()
                .map(|&(from, to)| (address(from), address(to)));
            let chain = stack.chain.iter().map(|&place| address(place));
            samples.add(program, chain, branches, stack.count);
        }
        samples
    }

    /// `chain` begins with the place of the sample, then return addresses, innermost first. `branches` begin with the
    /// newest. `None`: no instruction begins there.
    pub fn add(
        &mut self,
        program: &Program<'_>,
        chain: impl Iterator<Item = Option<u64>>,
        branches: impl Iterator<Item = (Option<u64>, Option<u64>)>,
        count: u64,
    ) {
        let figures = &mut self.figures;
        let branches: Vec<_> = branches
            .filter(|(from, to)| from.is_some() || to.is_some())
            .collect();
        let mut frames: Vec<Address> = Vec::new();
        for address in chain {
            match address {
                None => {
                    if frames.is_empty() {
                        add(&mut figures.leaf_elsewhere, count);
                    }
                    if frames.last() != Some(&None) {
                        frames.push(None);
                    }
                }
                at if frames.is_empty() => frames.push(at),
                Some(at) => match call_before(program, at) {
                    Some(call) => frames.push(Some(call)),
                    None => {
                        add(&mut figures.invalid_return, count);
                        figures.invalid_returns.insert(at);
                        break;
                    }
                },
            }
        }
        if frames.len() > 1 && frames.last() == Some(&None) {
            frames.pop();
        }
        let Some(&(_, arrived)) = branches.first() else {
            return;
        };
        add(&mut figures.samples, count);
        match frames.first_mut() {
            Some(leaf) if is_complete(program, *leaf) => {
                // No branch was taken since the target of the newest one, so the callers there are the same.
                *leaf = arrived;
            }
            _ => {
                add(&mut figures.incomplete_chain, count);
                return;
            }
        }
        let sample = Sample {
            chain: frames,
            branches,
        };
        add(self.list.entry(sample).or_default(), count);
    }
}

fn call_before(program: &Program<'_>, address: u64) -> Option<u64> {
    let before = program.code.before(address)?;
    (before.flow == Flow::Call).then_some(before.address)
}

/// Whether the call chain has all callers. `address` is the place of the sample; `None` is outside.
pub fn is_complete(program: &Program<'_>, address: Option<u64>) -> bool {
    address.is_none_or(|address| !is_at_the_ends(program, address))
}

/// At the first two instructions, a return and the one before it, the chain may lack the caller's frame.
fn is_at_the_ends(program: &Program<'_>, address: u64) -> bool {
    let code = &program.code;
    let is_start = |at: u64| program.ranges.contains_key(&at);
    let returns = |flow: Option<Flow>| flow == Some(Flow::Return);
    is_start(address)
        || code.before(address).is_some_and(|it| is_start(it.address))
        || returns(code.at(address).map(|it| it.flow))
        || returns(code.after(address).map(|it| it.flow))
}

fn addresses(program: &Program<'_>, samples: &FxHashMap<Sample, u64>) -> Vec<u64> {
    let mut all: FxHashSet<u64> = FxHashSet::default();
    let mut ranges: FxHashSet<(u64, u64)> = FxHashSet::default();
    for sample in samples.keys() {
        all.extend(sample.chain.iter().filter_map(|&at| at));
        let mut newer = None;
        for &(from, to) in &sample.branches {
            all.extend(from);
            all.extend(to);
            // The call instruction before the address to which the return goes.
            all.extend(to.and_then(|to| call_before(program, to)));
            ranges.extend(to.zip(newer));
            newer = from;
        }
    }
    for (start, end) in ranges {
        if program.code.falls_through(start, end) {
            all.extend(program.code.between(start, end).map(|it| it.address));
        }
    }
    let mut all: Vec<u64> = all.into_iter().collect();
    all.sort_unstable();
    all
}

type FrameId = usize;

#[derive(Debug, Default)]
struct Frame {
    address: Address,
    parent: FrameId,
    children: Vec<FrameId>,
    ranges: Vec<(u64, u64)>,
    branches: Vec<(Address, u64)>,
}

struct Leaf<'f> {
    frame: &'f Frame,
    count: u64,
}

impl Leaf<'_> {
    fn add_to(&self, counts: &mut ContextCounts) {
        for &range in &self.frame.ranges {
            let sum = counts.ranges.entry(range).or_default();
            *sum = sum.saturating_add(self.count);
        }
        for &branch in &self.frame.branches {
            let sum = counts.branches.entry(branch).or_default();
            *sum = sum.saturating_add(self.count);
        }
    }
}

#[derive(Debug)]
struct FrameTree {
    frames: Vec<Frame>,
    count: u64,
}

const TREE_ROOT: FrameId = 0;

impl FrameTree {
    #[allow(
        clippy::indexing_slicing,
        reason = "ids are made by this tree, which never removes frames"
    )]
    fn get(&mut self, id: FrameId) -> &mut Frame {
        &mut self.frames[id]
    }

    fn child(&mut self, parent: FrameId, address: Address) -> FrameId {
        let children = self.get(parent).children.clone();
        if let Some(known) = children
            .into_iter()
            .find(|&id| self.get(id).address == address)
        {
            return known;
        }
        let id = self.frames.len();
        self.frames.push(Frame {
            address,
            parent,
            ..Frame::default()
        });
        self.get(parent).children.push(id);
        id
    }

    fn has_foreign_callers(&self) -> bool {
        let mut frames = self.frames.iter().skip(1);
        frames.any(|frame| frame.address.is_none() && !frame.children.is_empty())
    }

    /// `take` gets each frame with its chain. After a frame outside of the binary, which compilers do not know, a new
    /// chain begins.
    fn collect(&self, take: &mut impl FnMut(&[Address], &Leaf<'_>)) {
        // `path` has the frames from the root to the current frame. An element of `stack` has three parts: a frame, the
        // length of the path to the frame's caller, and the position in the path where the frame's chain begins.
        let mut path: Vec<Address> = Vec::new();
        let mut stack: Vec<(FrameId, usize, usize)> = vec![(TREE_ROOT, 0, 0)];
        while let Some((id, length, mut start)) = stack.pop() {
            let Some(frame) = self.frames.get(id) else {
                continue;
            };
            path.truncate(length);
            if id != TREE_ROOT {
                path.push(frame.address);
                if frame.address.is_none() {
                    start = path.len();
                }
            }
            if !frame.ranges.is_empty() || !frame.branches.is_empty() {
                let leaf = Leaf {
                    frame,
                    count: self.count,
                };
                take(path.get(start..).unwrap_or_default(), &leaf);
            }
            stack.extend(
                frame
                    .children
                    .iter()
                    .map(|&child| (child, path.len(), start)),
            );
        }
    }
}

struct State<'s, 'files> {
    program: &'s Program<'files>,
    /// The source lines of addresses; `None` if contexts are by probe.
    stacks: Option<&'s LineStacks>,
    sample: &'s Sample,
    trie: FrameTree,
    leaf: FrameId,
    /// The instruction that was reached while going back in time. Everything after it has been undone.
    at: Address,
    lost: bool,
    figures: &'s mut ContextFigures,
}

impl<'s, 'files> State<'s, 'files> {
    fn new(
        program: &'s Program<'files>,
        stacks: Option<&'s LineStacks>,
        sample: &'s Sample,
        count: u64,
        figures: &'s mut ContextFigures,
    ) -> Self {
        let mut trie = FrameTree {
            frames: vec![Frame::default()],
            count,
        };
        let mut leaf = TREE_ROOT;
        for &address in sample.chain.iter().rev() {
            leaf = trie.child(leaf, address);
        }
        State {
            program,
            stacks,
            sample,
            trie,
            leaf,
            at: sample.chain.first().copied().flatten(),
            lost: false,
            figures,
        }
    }

    fn parent(&mut self) -> FrameId {
        let leaf = self.leaf;
        self.trie.get(leaf).parent
    }

    fn switch(&mut self, address: Address) {
        let leaf = self.leaf;
        if leaf == TREE_ROOT || self.trie.get(leaf).address != address {
            let parent = self.parent();
            self.leaf = self.trie.child(parent, address);
        }
    }

    fn run(&mut self) {
        let sample = self.sample;
        for (index, &(from, to)) in sample.branches.iter().enumerate() {
            add(&mut self.figures.branches, 1);
            // It is not known what ran after the newest branch.
            if index > 0 {
                self.take_back_range(to);
            }
            self.take_back_branch(from, to);
            self.record_branch(from, to);
        }
    }

    fn take_back_range(&mut self, to: Address) {
        let (start, end) = match (to, self.at) {
            (None, None) => {
                add(&mut self.figures.left_and_back, 1);
                return;
            }
            (Some(start), Some(end)) => (start, end),
            _ => {
                add(&mut self.figures.unpaired, 1);
                self.lost = true;
                return;
            }
        };
        if !self.program.code.falls_through(start, end) {
            add(&mut self.figures.impossible, 1);
            self.lost = true;
            return;
        }
        let Some(stacks) = self.stacks else {
            let parent = self.parent();
            self.trie.get(parent).ranges.push((start, end));
            return;
        };
        // The context changes at addresses where the code of inlined functions begins or ends.
        let mut last = end;
        let mut later = end;
        let inside: Vec<u64> = self
            .program
            .code
            .between(start, end)
            .map(|it| it.address)
            .collect();
        for &address in inside.iter().rev().filter(|&&address| address < end) {
            if !stacks.same_callers(later, address) {
                self.switch(Some(later));
                let leaf = self.leaf;
                self.trie.get(leaf).ranges.push((later, last));
                last = address;
            }
            later = address;
        }
        self.switch(Some(start));
        let leaf = self.leaf;
        self.trie.get(leaf).ranges.push((start, last));
        self.at = Some(start);
    }

    fn take_back_branch(&mut self, from: Address, to: Address) {
        let code = &self.program.code;
        let call = to.and_then(|to| call_before(self.program, to));
        if self.lost {
            self.leaf = TREE_ROOT;
            self.leaf = self.trie.child(TREE_ROOT, from);
            self.at = from;
            return;
        }
        let flow = match from {
            Some(from) => code.at(from).map_or(Flow::Next, |it| it.flow),
            None if call.is_some() => Flow::Return,
            None => Flow::Call,
        };
        match flow {
            Flow::Call => {
                let parent = self.parent();
                if parent == TREE_ROOT || self.trie.get(parent).address != from {
                    self.switch(from);
                    if parent != TREE_ROOT {
                        let figures = &mut self.figures;
                        if from.is_none() {
                            add(&mut figures.mismatched_outside, 1);
                        } else {
                            add(&mut figures.mismatched_calls, 1);
                        }
                    }
                } else {
                    self.leaf = parent;
                }
            }
            Flow::Return => {
                let caller = match to {
                    None => None,
                    Some(_) => call.map_or(UNKNOWN, Some),
                };
                self.switch(caller);
                let leaf = self.leaf;
                self.leaf = self.trie.child(leaf, from);
            }
            _ => self.switch(from),
        }
        self.at = from;
    }

    fn record_branch(&mut self, from: Address, to: Address) {
        let Some(to) = to else {
            return;
        };
        let frame = if from.is_none() {
            TREE_ROOT
        } else if self.stacks.is_none() {
            self.parent()
        } else {
            self.leaf
        };
        self.trie.get(frame).branches.push((from, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_begins_anew_after_a_frame_outside() {
        let mut tree = FrameTree {
            frames: vec![Frame::default()],
            count: 3,
        };
        let outer = tree.child(TREE_ROOT, Some(0x10));
        let foreign = tree.child(outer, None);
        let inner = tree.child(foreign, Some(0x20));
        assert_eq!(tree.child(foreign, Some(0x20)), inner);
        tree.get(outer).ranges.push((1, 2));
        tree.get(inner).ranges.push((3, 4));
        let mut found = Vec::new();
        tree.collect(&mut |chain, leaf| {
            let mut counts = ContextCounts::default();
            leaf.add_to(&mut counts);
            found.push((chain.to_vec(), counts.ranges.into_iter().next()));
        });
        found.sort();
        let expected = [
            (vec![Some(0x10)], Some(((1, 2), 3))),
            (vec![Some(0x20)], Some(((3, 4), 3))),
        ];
        assert_eq!(found, expected);
    }
}
