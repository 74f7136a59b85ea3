//! Balanced partitioning: functions are divided into halves again and again. Functions that are needed at the same time
//! stay in the same half. A *utility node* is a time span of a run with the functions that are needed in it
//! ([`utilities`]).
//!
//! The idea comes from Dhulipala and others ("Compressing graphs and indexes with recursive graph bisection", KDD
//! 2016); Hoag and others (arXiv 2211.09285) use it for start-up. For traces of equal weights the result is exactly the
//! order of LLVM 22 (`BalancedPartitioning.cpp`). For this, single-precision sums are computed in the same sequence,
//! the random numbers are the same, and functions with equal gains are exchanged in the same sequence.
use super::traces::{Trace, utilities};
use profkit_data::mersenne::Mt19937;
use rayon::join;
use std::cmp::Ordering;
use std::hash::Hash;
use std::iter::zip;

/// The limits of the partitioning.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Partitioning {
    /// The largest number of times that a group of functions is divided into halves. Values above the logarithm of the
    /// number of functions change nothing.
    pub depth: u32,
    /// The largest number of rounds in which functions are exchanged between two halves. Each round needs a pass over
    /// the utility nodes of the functions.
    pub iterations: u32,
    /// The probability that a function stays in its half although exchanging it would lower the cost. If it were 0,
    /// functions could move back and forth for ever.
    pub skip: f32,
}

impl Default for Partitioning {
    fn default() -> Self {
        Partitioning {
            depth: 18,
            iterations: 40,
            skip: 0.1,
        }
    }
}

/// The smallest number of functions for which a thread is started. For fewer functions, starting a thread costs more
/// time than it saves.
const PARALLEL: usize = 256;

struct Node<F> {
    function: F,
    /// The position of the function in the initial order. Groups that are not divided any more keep this order.
    place: u32,
    /// The indexes of the utility nodes of the function. Each group has indexes of its own.
    utilities: Vec<u32>,
    left: bool,
}

/// Orders the functions of the traces. The same traces give the same order on every machine, whatever the number of
/// threads. A function is given by an index or a hash of any type.
///
/// ```
/// use profkit_analysis::order::{Partitioning, Trace, balanced};
///
/// // Two runs of one program. Each run calls two of its functions.
/// let traces = [Trace::new(vec![10, 30]), Trace::new(vec![20, 40])];
/// let order = balanced(&traces, &Partitioning::default());
/// assert_eq!(order.len(), 4);
/// ```
pub fn balanced<F>(traces: &[Trace<F>], options: &Partitioning) -> Vec<F>
where
    F: Copy + Ord + Hash + Send,
{
    let utilities = utilities(traces, true);
    let mut nodes: Vec<Node<F>> = zip(0u32.., utilities.functions)
        .map(|(place, (function, utilities))| Node {
            function,
            place,
            utilities,
            left: false,
        })
        .collect();
    let groups = Groups {
        options,
        side_costs: (0u32..).take(nodes.len() + 2).map(side_cost).collect(),
    };
    groups.bisect(&mut nodes, &utilities.weights, 0, 1);
    nodes.into_iter().map(|node| node.function).collect()
}

/// The part that one half contributes to the cost of a utility node, if `count` functions of the node are in this half.
/// The cost of a node is the negated sum of the parts of both halves. The cost is lowest if all functions of the node
/// are in the same half.
#[expect(
    clippy::cast_possible_truncation,
    reason = "LLVM calculates costs in single precision"
)]
fn side_cost(count: u32) -> f32 {
    count as f32 * (f64::from(count) + 1.0).log2() as f32
}

/// The data that all groups share.
struct Groups<'o> {
    options: &'o Partitioning,
    /// A table of [`side_cost`]: the element with index N is the cost part for N functions.
    side_costs: Vec<f32>,
}

impl Groups<'_> {
    /// Orders the functions of a group. `weights` are the weights of the utility nodes. `depth` is the number of times
    /// that all functions were divided to get this group. `bucket` is the index of the group in the tree of halves: the
    /// root has the index 1, and the halves of the group with index n have the indexes 2n and 2n + 1.
    fn bisect<F: Send>(&self, nodes: &mut [Node<F>], weights: &[f32], depth: u32, bucket: u32) {
        nodes.sort_unstable_by_key(|node| node.place);
        if nodes.len() <= 1 || depth >= self.options.depth {
            return;
        }
        let middle = nodes.len().div_ceil(2);
        for (index, node) in nodes.iter_mut().enumerate() {
            node.left = index < middle;
        }
        let mut signatures = Signatures::new(nodes, weights);
        let mut exchange = Exchange::new(bucket, nodes);
        for _ in 0..self.options.iterations {
            signatures.update(&self.side_costs);
            if !exchange.round(nodes, &mut signatures, self.options.skip) {
                break;
            }
        }
        nodes.sort_unstable_by_key(|node| !node.left);
        let middle = nodes.iter().filter(|node| node.left).count();
        let (left, right) = nodes.split_at_mut(middle);
        let weights = &signatures.weights;
        let next = bucket.wrapping_mul(2);
        let parallel = left.len().min(right.len()) >= PARALLEL;
        let mut left = || self.bisect(left, weights, depth + 1, next);
        let mut right = || self.bisect(right, weights, depth + 1, next.wrapping_add(1));
        if parallel {
            join(left, right);
        } else {
            left();
            right();
        }
    }
}

/// The utility nodes of a group. A node is left out if it has only one function of the group, or all of them: then its
/// cost does not depend on the halves.
struct Signatures {
    /// For each utility node: the number of its functions in the left half and in the right half.
    members: Vec<(u32, u32)>,
    /// For each utility node: the cost that is saved if one of its functions moves from the left half to the right
    /// half.
    to_right: Vec<f32>,
    /// For each utility node: the cost that is saved if one of its functions moves from the right half to the left
    /// half.
    to_left: Vec<f32>,
    weights: Vec<f32>,
}

impl Signatures {
    fn new<F>(nodes: &mut [Node<F>], weights: &[f32]) -> Self {
        const UNUSED: u32 = u32::MAX;
        let mut numbers = vec![0u32; weights.len()];
        for utility in nodes.iter().flat_map(|node| &node.utilities) {
            if let Some(count) = numbers.get_mut(*utility as usize) {
                *count += 1;
            }
        }
        let all = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let mut kept = Vec::new();
        for (count, &weight) in zip(&mut numbers, weights) {
            *count = if *count <= 1 || *count == all {
                UNUSED
            } else {
                kept.push(weight);
                u32::try_from(kept.len() - 1).unwrap_or(UNUSED)
            };
        }
        // The loop that adds up the costs is faster if the tables have the fixed length `ROOM`. For few functions,
        // filling such a table costs more time than the loop saves.
        let is_large = nodes.len() >= 128 && kept.len() <= ROOM;
        let room = if is_large { ROOM } else { kept.len() };
        let mut signatures = Signatures {
            members: vec![(0, 0); kept.len()],
            to_right: vec![0.0; room],
            to_left: vec![0.0; room],
            weights: kept,
        };
        for node in nodes {
            node.utilities.retain_mut(|utility| {
                *utility = (numbers.get(*utility as usize).copied()).unwrap_or(UNUSED);
                *utility != UNUSED
            });
            for &utility in &node.utilities {
                if let Some((left, right)) = signatures.members.get_mut(utility as usize) {
                    *(if node.left { left } else { right }) += 1;
                }
            }
        }
        signatures
    }

    /// Computes, for each utility node, the cost that is saved if one of its functions moves to the other half.
    fn update(&mut self, side_costs: &[f32]) {
        let cost = |left: u32, right: u32| {
            let side = |count: u32| side_costs.get(count as usize).copied().unwrap_or(0.0);
            -(side(left) + side(right))
        };
        let gains = zip(&mut self.to_right, &mut self.to_left);
        let members = zip(&self.members, &self.weights);
        for ((&(left, right), &weight), (to_right, to_left)) in zip(members, gains) {
            let now = cost(left, right);
            *to_right = match left.checked_sub(1) {
                Some(fewer) => (now - cost(fewer, right + 1)) * weight,
                None => 0.0,
            };
            *to_left = match right.checked_sub(1) {
                Some(fewer) => (now - cost(left + 1, fewer)) * weight,
                None => 0.0,
            };
        }
    }

    fn move_node<F>(&mut self, node: &mut Node<F>) {
        for &utility in &node.utilities {
            if let Some((left, right)) = self.members.get_mut(utility as usize) {
                let (from, to) = if node.left {
                    (left, right)
                } else {
                    (right, left)
                };
                *from = from.saturating_sub(1);
                *to += 1;
            }
        }
        node.left = !node.left;
    }
}

/// The state in which functions are exchanged between the halves of a group, round after round.
struct Exchange {
    bucket: u32,
    /// The generator of random numbers for the group. It is made when the first number is needed. Its seed is the index
    /// of the group, so that the numbers do not depend on other groups.
    random: Option<Mt19937>,
    /// For each function: the cost that is saved if the function moves to the other half, and the index of the
    /// function.
    gains: Vec<(f32, usize)>,
    /// The indexes of the functions, sorted by the number of their utility nodes.
    by_length: Vec<usize>,
    /// The indexes of the functions in one half, in the order of `by_length`.
    half: Vec<usize>,
    /// The functions of each half that may move, with their gains.
    best: [Vec<(f32, usize)>; 2],
}

impl Exchange {
    fn new<F>(bucket: u32, nodes: &[Node<F>]) -> Self {
        let length = |&index: &usize| nodes.get(index).map_or(0, |node| node.utilities.len());
        let mut by_length: Vec<usize> = (0..nodes.len()).collect();
        by_length.sort_unstable_by_key(length);
        Exchange {
            bucket,
            random: None,
            gains: Vec::new(),
            by_length,
            half: Vec::new(),
            best: [Vec::new(), Vec::new()],
        }
    }

    /// Exchanges pairs of functions between the halves as long as that lowers the cost. Returns whether a function
    /// moved.
    fn round<F>(&mut self, nodes: &mut [Node<F>], signatures: &mut Signatures, skip: f32) -> bool {
        self.compute_gains(nodes, signatures);
        let is_left = |&(_, index): &(f32, usize)| {
            let node = nodes.get(index);
            node.is_some_and(|node: &Node<F>| node.left)
        };
        let middle = partition(&mut self.gains, is_left);
        let (left, right) = self.gains.split_at_mut(middle);
        let [best_left, best_right] = &mut self.best;
        best(left, right, best_left);
        best(right, left, best_right);
        let mut moved = false;
        for (&one, &two) in zip(&*best_left, &*best_right) {
            if one.0 + two.0 <= 0.0 {
                break;
            }
            for (_, index) in [one, two] {
                let random = self.random.get_or_insert_with(|| Mt19937::new(self.bucket));
                if random.unit() <= skip {
                    continue;
                }
                if let Some(node) = nodes.get_mut(index) {
                    signatures.move_node(node);
                    moved = true;
                }
            }
        }
        moved
    }

    /// For each function, adds up the cost that is saved if it moves to the other half.
    fn compute_gains<F>(&mut self, nodes: &[Node<F>], signatures: &Signatures) {
        self.gains.clear();
        self.gains
            .extend((0..nodes.len()).map(|index| (0.0, index)));
        for (left, table) in [(true, &signatures.to_right), (false, &signatures.to_left)] {
            let utilities =
                |&index: &usize| nodes.get(index).map_or(&[][..], |node| &node.utilities);
            let in_half = |index: &usize| nodes.get(*index).is_some_and(|node| node.left == left);
            self.half.clear();
            self.half
                .extend(self.by_length.iter().copied().filter(in_half));
            let (chunks, rest) = self.half.as_chunks::<8>();
            for eight in chunks {
                let sums = eight_sums(table, eight.each_ref().map(utilities));
                zip(eight, sums).for_each(|(&index, sum)| self.gains[index].0 = sum);
            }
            for index in rest {
                self.gains[*index].0 = add_up(table, 0.0, utilities(index));
            }
        }
    }
}

/// Adds the numbers at the given indexes of a table to a sum, in the order of `indexes`. This order decides the last
/// bits of the sum.
fn add_up(table: &[f32], sum: f32, indexes: &[u32]) -> f32 {
    let at = |index: u32| table.get(index as usize).copied().unwrap_or(0.0);
    indexes.iter().fold(sum, |sum, &index| sum + at(index))
}

/// The length of the tables for which there is a fast loop. This loop takes each index modulo the length, so it needs
/// no bounds check. The traces that LLVM keeps have fewer utility nodes than this number.
const ROOM: usize = 4096;

/// Returns the sum that [`add_up`] computes for each of eight lists of indexes. An addition for a list has to wait for
/// the previous addition for this list. Therefore the additions for the eight lists alternate, up to the end of the
/// shortest list. The rest of each longer list is added up by itself, which is slow. So the caller passes lists of
/// about the same length.
fn eight_sums(table: &[f32], lists: [&[u32]; 8]) -> [f32; 8] {
    let shortest = lists.map(<[u32]>::len).into_iter().min().unwrap_or(0);
    let heads = lists.map(|list| list.get(..shortest).unwrap_or_default());
    let mut sums = match <&[f32; ROOM]>::try_from(table) {
        Ok(table) => alternate(|index| table[index as usize % ROOM], heads),
        Err(_) => alternate(
            |index| table.get(index as usize).copied().unwrap_or(0.0),
            heads,
        ),
    };
    for (sum, list) in zip(&mut sums, lists) {
        *sum = add_up(table, *sum, list.get(shortest..).unwrap_or_default());
    }
    sums
}

/// Returns the sum of each of eight lists, which are equally long.
#[inline(always)]
fn alternate(at: impl Fn(u32) -> f32, lists: [&[u32]; 8]) -> [f32; 8] {
    let mut sums = [0.0_f32; 8];
    let [a, b, c, d, e, f, g, h] = lists;
    let (first, second) = (zip(zip(a, b), zip(c, d)), zip(zip(e, f), zip(g, h)));
    for (((&a, &b), (&c, &d)), ((&e, &f), (&g, &h))) in zip(first, second) {
        sums[0] += at(a);
        sums[1] += at(b);
        sums[2] += at(c);
        sums[3] += at(d);
        sums[4] += at(e);
        sums[5] += at(f);
        sums[6] += at(g);
        sums[7] += at(h);
    }
    sums
}

/// Fills `best` with functions of one half, the largest gain first. A function is included if its exchange with some
/// function of the other half would lower the cost. Functions with equal gains keep their order. The other functions of
/// the half are not needed: pairs are exchanged from the largest gains on, and the exchange ends at the first pair that
/// does not lower the cost.
fn best(half: &[(f32, usize)], other: &[(f32, usize)], best: &mut Vec<(f32, usize)>) {
    let most = (other.iter()).fold(f32::NEG_INFINITY, |most, &(gain, _)| most.max(gain));
    best.clear();
    best.extend(half.iter().filter(|(gain, _)| gain + most > 0.0));
    best.sort_by(|one, two| two.0.partial_cmp(&one.0).unwrap_or(Ordering::Equal));
}

/// Moves the items for which `first` is true to the front, as libstdc++'s `std::partition` does: the first item that
/// has to go to the back is exchanged with the last item that has to go to the front. Returns the number of items at
/// the front.
fn partition<T>(items: &mut [T], first: impl Fn(&T) -> bool) -> usize {
    let (mut start, mut end) = (0, items.len());
    loop {
        while start < end && items.get(start).is_some_and(&first) {
            start += 1;
        }
        if start == end {
            return start;
        }
        end -= 1;
        while start < end && !items.get(end).is_some_and(&first) {
            end -= 1;
        }
        if start == end {
            return start;
        }
        items.swap(start, end);
        start += 1;
    }
}
