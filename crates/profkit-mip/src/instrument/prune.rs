//! Chooses which blocks of a function get a probe, and how the other blocks are inferred from them.
//!
//! A probed block s *implies* a block b if every run of the function through s also passes b: b dominates s, or b
//! postdominates s. A block b without a probe is inferred from a list D of probed blocks: b ran if and only if a block
//! of D ran. This is exact if each block of D implies b, and if one of these two holds:
//!
//! - no path leads from b to an exit of the function without passing D or b again (b is inferred *forwards*);
//! - no path leads from the entry to b for the first time without passing D (b is inferred *backwards*).
//!
//! The second condition is the first one in the reversed graph. A path from b that does not return to b and whose blocks
//! imply b stays among the blocks that b dominates. So one search from b, which stops at probes, decides the first
//! condition and finds D.
//!
//! Nothing here depends on the target. The law holds for every graph that has at least the edges that the code can
//! take: edges that are never taken cost probes, but do not make an inference wrong. The one assumption is that control
//! which enters a block leaves it by one of its edges: a call that ends the program, or unwinds past the function, does
//! not.

/// The edges of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowBlock {
    /// The blocks that may be executed next.
    pub(super) successors: Vec<usize>,
    /// The part of the function that contains the block. A block is inferred only from blocks of its own part, because
    /// each part has a record of its own.
    pub(super) part: usize,
    /// Whether control may come to the block from outside of the graph, other than at the first block.
    pub(super) enters: bool,
    /// Whether control may leave the function from this block.
    pub(super) leaves: bool,
    /// Whether the block contains a call.
    pub(super) calls: bool,
}

/// How it becomes known whether a block ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The block has a probe.
    Probe,
    /// The block has no probe. It ran if and only if one of these blocks ran, all of which have probes.
    Inferred(Vec<usize>),
}

/// The longest list of blocks from which one block is inferred. Longer lists would make maps larger than the probe is.
const LONGEST_LIST: usize = 64;
/// How many blocks all searches of one function may visit, for each of its blocks. The rest of the function keeps its
/// probes then.
const WORK_PER_BLOCK: usize = 400;

/// Chooses the blocks that get a probe. Block 0 is the function's entry. If `entry_stays`, it has a probe in any case.
pub(super) fn choose(blocks: &[FlowBlock], entry_stays: bool) -> Vec<Choice> {
    let graph = Graph::new(blocks);
    let mut greedy = Greedy::new(blocks, &graph);
    let mut order: Vec<usize> = (0..blocks.len())
        .filter(|&block| block > 0 || !entry_stays)
        .collect();
    // Probes in loops cost the most time, so they are the first to go.
    let depths = graph.depths();
    order.sort_by_key(|&block| std::cmp::Reverse(depths.get(block).copied()));
    for block in order {
        greedy.try_without(block);
    }
    greedy.choices()
}

/// The flow graph with two more nodes: where control comes from, and where it goes.
struct Graph {
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
    entry: usize,
    exit: usize,
    /// The dominator tree.
    over: Tree,
    /// The postdominator tree.
    under: Tree,
}

impl Graph {
    fn new(blocks: &[FlowBlock]) -> Self {
        let count = blocks.len();
        let (entry, exit) = (count, count + 1);
        let mut successors: Vec<Vec<usize>> = blocks
            .iter()
            .map(|block| {
                let mut list: Vec<usize> = block.successors.clone();
                list.retain(|&to| to < count);
                list.sort_unstable();
                list.dedup();
                if block.leaves {
                    list.push(exit);
                }
                list
            })
            .collect();
        let mut first: Vec<usize> = (0..count)
            .filter(|&block| block == 0 || blocks.get(block).is_some_and(|it| it.enters))
            .collect();
        let mut reached = vec![false; count + 2];
        for &block in &first {
            reach(&successors, block, &mut reached);
        }
        for block in 0..count {
            if !reached.get(block).copied().unwrap_or(true) {
                first.push(block);
                reach(&successors, block, &mut reached);
            }
        }
        successors.push(first);
        successors.push(Vec::new());
        // A loop without an exit ends with the program, which may end in any of its calls.
        for calls_only in [true, false] {
            let mut reached = vec![false; count + 2];
            reach(&reversed(&successors), exit, &mut reached);
            for (block, it) in blocks.iter().enumerate() {
                if !reached.get(block).copied().unwrap_or(true)
                    && (it.calls || !calls_only)
                    && let Some(list) = successors.get_mut(block)
                {
                    list.push(exit);
                }
            }
        }
        let predecessors = reversed(&successors);
        Graph {
            over: Tree::new(&successors, &predecessors, entry),
            under: Tree::new(&predecessors, &successors, exit),
            successors,
            predecessors,
            entry,
            exit,
        }
    }

    /// For each block, the number of loops that contain it.
    fn depths(&self) -> Vec<u32> {
        let mut depths = vec![0u32; self.successors.len()];
        let mut inside = vec![usize::MAX; self.successors.len()];
        for (head, predecessors) in self.predecessors.iter().enumerate() {
            let mut todo: Vec<usize> = predecessors
                .iter()
                .copied()
                .filter(|&from| self.over.holds(head, from))
                .collect();
            if todo.is_empty() {
                continue;
            }
            let mut enter = |block: usize, todo: &mut Vec<usize>| {
                if let (Some(mark), Some(depth)) = (inside.get_mut(block), depths.get_mut(block))
                    && *mark != head
                {
                    *mark = head;
                    *depth += 1;
                    if block != head {
                        todo.extend(self.predecessors.get(block).into_iter().flatten());
                    }
                }
            };
            enter(head, &mut todo);
            while let Some(block) = todo.pop() {
                enter(block, &mut todo);
            }
        }
        depths
    }
}

fn reach(edges: &[Vec<usize>], from: usize, reached: &mut [bool]) {
    let mut todo = vec![from];
    while let Some(node) = todo.pop() {
        if let Some(mark) = reached.get_mut(node)
            && !std::mem::replace(mark, true)
        {
            todo.extend(edges.get(node).into_iter().flatten());
        }
    }
}

fn reversed(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, list) in edges.iter().enumerate() {
        for &to in list {
            if let Some(list) = back.get_mut(to) {
                list.push(from);
            }
        }
    }
    back
}

/// A dominator tree, as ranges of numbers: a node dominates those whose number is in its range.
struct Tree {
    ranges: Vec<(usize, usize)>,
}

impl Tree {
    /// The tree of a graph all of whose nodes, except the one where it ends, are reached from `root`.
    fn new(successors: &[Vec<usize>], predecessors: &[Vec<usize>], root: usize) -> Self {
        let count = successors.len();
        let order = postorder(successors, root);
        let mut number = vec![usize::MAX; count];
        for (index, &node) in order.iter().enumerate() {
            if let Some(slot) = number.get_mut(node) {
                *slot = index;
            }
        }
        let at = |list: &[usize], index: usize| list.get(index).copied().unwrap_or(usize::MAX);
        // The immediate dominator of each node, both as numbers of the postorder, in which the root is the last.
        let mut above = vec![usize::MAX; order.len()];
        if let Some(last) = above.last_mut() {
            *last = order.len() - 1;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (index, &node) in order.iter().enumerate().rev().skip(1) {
                let mut common = usize::MAX;
                for &from in predecessors.get(node).into_iter().flatten() {
                    let mut other = at(&number, from);
                    if other == usize::MAX || at(&above, other) == usize::MAX {
                        continue;
                    }
                    if common == usize::MAX {
                        common = other;
                    }
                    while common != other {
                        if common < other {
                            common = at(&above, common);
                        } else {
                            other = at(&above, other);
                        }
                    }
                }
                if let Some(slot) = above.get_mut(index)
                    && *slot != common
                {
                    *slot = common;
                    changed = true;
                }
            }
        }
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (index, &node) in order.iter().enumerate().rev().skip(1) {
            let parent = at(&order, at(&above, index));
            if let Some(list) = below.get_mut(parent) {
                list.push(node);
            }
        }
        let mut ranges = vec![(usize::MAX, 0); count];
        let mut next = 0;
        let mut todo = vec![(root, false)];
        while let Some((node, left)) = todo.pop() {
            let Some(range) = ranges.get_mut(node) else {
                continue;
            };
            if left {
                range.1 = next;
                continue;
            }
            range.0 = next;
            next += 1;
            todo.push((node, true));
            todo.extend(below.get(node).into_iter().flatten().map(|&it| (it, false)));
        }
        Tree { ranges }
    }

    /// Whether `one` dominates `other`. Each node dominates itself.
    fn holds(&self, one: usize, other: usize) -> bool {
        match (self.ranges.get(one), self.ranges.get(other)) {
            (Some(&(start, end)), Some(&(place, _))) => start <= place && place < end,
            _ => false,
        }
    }
}

fn postorder(successors: &[Vec<usize>], root: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(successors.len());
    let mut seen = vec![false; successors.len()];
    let mut todo = vec![(root, 0)];
    if let Some(mark) = seen.get_mut(root) {
        *mark = true;
    }
    while let Some((node, next)) = todo.last_mut() {
        match successors.get(*node).and_then(|list| list.get(*next)) {
            Some(&to) => {
                *next += 1;
                if let Some(mark) = seen.get_mut(to)
                    && !std::mem::replace(mark, true)
                {
                    todo.push((to, 0));
                }
            }
            None => {
                order.push(*node);
                todo.pop();
            }
        }
    }
    order
}

/// Takes away one probe after the other, as long as all blocks can be inferred.
struct Greedy<'g> {
    blocks: &'g [FlowBlock],
    graph: &'g Graph,
    probed: Vec<bool>,
    /// For each block without a probe, the blocks from which it is inferred.
    lists: Vec<Vec<usize>>,
    /// For each block, blocks that were inferred from it at some time.
    users: Vec<Vec<usize>>,
    /// The number of the search that has visited a node last.
    visited: Vec<usize>,
    search: usize,
    work: usize,
}

impl<'g> Greedy<'g> {
    fn new(blocks: &'g [FlowBlock], graph: &'g Graph) -> Self {
        Greedy {
            blocks,
            graph,
            probed: vec![true; blocks.len()],
            lists: vec![Vec::new(); blocks.len()],
            users: vec![Vec::new(); blocks.len()],
            visited: vec![0; blocks.len() + 2],
            search: 0,
            work: blocks.len().saturating_mul(WORK_PER_BLOCK),
        }
    }

    fn set_probed(&mut self, block: usize, probed: bool) {
        if let Some(slot) = self.probed.get_mut(block) {
            *slot = probed;
        }
    }

    /// Takes the probe of `block` away if it, and all blocks that are inferred from it, can still be inferred.
    fn try_without(&mut self, block: usize) {
        self.set_probed(block, false);
        let mut users = self.users.get(block).cloned().unwrap_or_default();
        users.retain(|&user| {
            self.lists
                .get(user)
                .is_some_and(|list| list.contains(&block))
        });
        let mut found = Vec::with_capacity(users.len() + 1);
        for user in std::iter::once(block).chain(users) {
            match self.infer(user) {
                Some(list) => found.push((user, list)),
                None => {
                    self.set_probed(block, true);
                    return;
                }
            }
        }
        for (user, list) in found {
            for &from in &list {
                if let Some(users) = self.users.get_mut(from)
                    && !users.contains(&user)
                {
                    users.push(user);
                }
            }
            if let Some(slot) = self.lists.get_mut(user) {
                *slot = list;
            }
        }
    }

    /// The blocks from which `block` can be inferred. Of two lists, the one is taken that depends on fewer calls to
    /// return. The entry is inferred only if none is in between: a function is seen although a call in it ends the program.
    fn infer(&mut self, block: usize) -> Option<Vec<usize>> {
        let forwards = self.search(block, true);
        if block == 0 {
            return forwards
                .filter(|(_, calls)| *calls == 0)
                .map(|(list, _)| list);
        }
        let backwards = self.search(block, false);
        match (forwards, backwards) {
            (Some(one), Some(other)) => Some(if other.1 < one.1 { other.0 } else { one.0 }),
            (one, other) => one.or(other).map(|(list, _)| list),
        }
    }

    /// Searches from `block` in one direction. Returns the probes where the search ends, and the number of blocks with
    /// calls between them and `block`; `None` if a path leads past all probes.
    fn search(&mut self, block: usize, forwards: bool) -> Option<(Vec<usize>, usize)> {
        let graph = self.graph;
        let (edges, tree) = if forwards {
            (&graph.successors, &graph.over)
        } else {
            (&graph.predecessors, &graph.under)
        };
        let calls = |at: usize| usize::from(self.blocks.get(at).is_some_and(|it| it.calls));
        let part = self.blocks.get(block)?.part;
        let mut crossed = if forwards { calls(block) } else { 0 };
        let mut list = Vec::new();
        self.search += 1;
        let mut todo: Vec<usize> = edges.get(block)?.clone();
        while let Some(node) = todo.pop() {
            let visited = self.visited.get_mut(node)?;
            if node == block || std::mem::replace(visited, self.search) == self.search {
                continue;
            }
            self.work = self.work.checked_sub(1)?;
            if node == graph.entry || node == graph.exit || !tree.holds(block, node) {
                return None;
            }
            let usable = self.blocks.get(node).is_some_and(|it| it.part == part);
            if usable && self.probed.get(node).copied().unwrap_or(false) {
                if list.len() == LONGEST_LIST {
                    return None;
                }
                list.push(node);
                crossed += if forwards { 0 } else { calls(node) };
            } else {
                crossed += calls(node);
                todo.extend(edges.get(node)?);
            }
        }
        // A block that leads nowhere, except to itself, is never inferred.
        (!list.is_empty()).then(|| {
            list.sort_unstable();
            (list, crossed)
        })
    }

    fn choices(self) -> Vec<Choice> {
        self.probed
            .into_iter()
            .zip(self.lists)
            .map(|(probed, list)| {
                if probed {
                    Choice::Probe
                } else {
                    Choice::Inferred(list)
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_testkit::Rng;

    fn block(successors: &[usize]) -> FlowBlock {
        FlowBlock {
            successors: successors.to_vec(),
            leaves: successors.is_empty(),
            ..FlowBlock::default()
        }
    }

    fn graph(successors: &[&[usize]]) -> Vec<FlowBlock> {
        successors.iter().map(|list| block(list)).collect()
    }

    fn probes(blocks: &[FlowBlock], entry_stays: bool) -> Vec<usize> {
        choose(blocks, entry_stays)
            .iter()
            .enumerate()
            .filter(|(_, choice)| **choice == Choice::Probe)
            .map(|(block, _)| block)
            .collect()
    }

    #[test]
    fn what_others_imply_has_no_probe() {
        // if (x) a(); else b(); do c(); while (y);
        let diamond = graph(&[&[1, 2], &[3], &[3], &[3, 4], &[]]);
        assert_eq!(probes(&diamond, true), [0, 1, 2]);
        assert_eq!(probes(&diamond, false), [1, 2]);
        // A chain of blocks needs one probe, a function that is its own loop too.
        assert_eq!(probes(&graph(&[&[1], &[2], &[]]), false).len(), 1);
        assert_eq!(probes(&graph(&[&[0, 1], &[]]), false).len(), 1);
    }

    #[test]
    fn a_loop_without_exit_keeps_the_probe_of_each_block_with_a_call() {
        let mut blocks = graph(&[&[1], &[2], &[1]]);
        blocks[1].calls = true;
        let kept = probes(&blocks, true);
        assert!(kept.contains(&1) || kept.contains(&2), "{kept:?}");
        blocks[1].calls = false;
        assert_eq!(probes(&blocks, true), [0, 1, 2]);
    }

    #[test]
    fn parts_are_not_inferred_from_each_other() {
        let mut blocks = graph(&[&[1, 2], &[3], &[3], &[]]);
        assert_eq!(probes(&blocks, true), [0, 1, 2]);
        blocks[3].part = 1;
        assert_eq!(probes(&blocks, true), [0, 1, 2, 3]);
    }

    #[test]
    fn unknown_ways_in_and_out_cost_probes() {
        let mut blocks = graph(&[&[1], &[2], &[]]);
        blocks[1].enters = true;
        assert_eq!(probes(&blocks, true).len(), 2);
        blocks[1].leaves = true;
        assert_eq!(probes(&blocks, true), [0, 1, 2]);
    }

    /// Walks from the entry, or a block that is entered from outside, until control leaves; `None` if it takes too long.
    fn walk(blocks: &[FlowBlock], rng: &mut Rng) -> Option<Vec<usize>> {
        let starts: Vec<usize> = (0..blocks.len())
            .filter(|&it| it == 0 || blocks[it].enters)
            .collect();
        let mut at = starts[rng.below(starts.len())];
        let mut path = vec![at];
        for _ in 0..200 {
            let ways = blocks[at].successors.len() + usize::from(blocks[at].leaves);
            if ways == 0 {
                return None;
            }
            let way = rng.below(ways);
            let Some(&next) = blocks[at].successors.get(way) else {
                return Some(path);
            };
            at = next;
            path.push(at);
        }
        None
    }

    #[test]
    fn inferred_blocks_are_those_that_ran() {
        let (mut inferred, mut walks) = (0, 0);
        for seed in 0..3000 {
            let mut rng = Rng::new(seed);
            let count = 1 + rng.below(14);
            let blocks: Vec<FlowBlock> = (0..count)
                .map(|at| {
                    let mut successors: Vec<usize> = (0..rng.below(4))
                        .map(|_| match rng.below(3) {
                            0 => rng.below(count),
                            _ => (at + 1 + rng.below(3)).min(count - 1),
                        })
                        .collect();
                    successors.sort_unstable();
                    successors.dedup();
                    FlowBlock {
                        part: usize::from(rng.below(6) == 0 && at > 0),
                        enters: rng.below(20) == 0,
                        leaves: successors.is_empty() || rng.below(8) == 0,
                        calls: rng.below(3) == 0,
                        successors,
                    }
                })
                .collect();
            let choices = choose(&blocks, seed % 2 == 0);
            inferred += choices.iter().filter(|it| **it != Choice::Probe).count();
            for _ in 0..40 {
                let mut ran = vec![false; count];
                // Several calls of the function in one run.
                for _ in 0..=rng.below(2) {
                    for block in walk(&blocks, &mut rng).into_iter().flatten() {
                        walks += 1;
                        ran[block] = true;
                    }
                }
                for (block, choice) in choices.iter().enumerate() {
                    if let Choice::Inferred(list) = choice {
                        let found = list.iter().any(|&from| ran[from]);
                        assert_eq!(found, ran[block], "{seed}: {block} {choice:?} {blocks:#?}");
                        for &from in list {
                            assert_eq!(choices[from], Choice::Probe);
                            assert_eq!(blocks[from].part, blocks[block].part);
                        }
                    }
                }
            }
        }
        assert!(inferred > 2000 && walks > 100_000, "{inferred} {walks}");
    }
}
