//! Balanced partitioning: functions are divided into halves again and again, so that functions that are needed at the
//! same time stay together.
//!
//! The idea is that of Dhulipala and others ("Compressing graphs and indexes with recursive graph bisection", KDD
//! 2016); Hoag and others (arXiv 2211.09285) use it for start-up. This implementation has the cost function, the
//! initial order and the limits of LLVM's implementation, but other random numbers.
use super::traces::{Trace, utility_nodes};
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::FunctionId;
use rayon::join;
use std::cmp::Ordering;

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
    /// One exchange in this many is skipped at random. Otherwise, functions could move back and forth for ever.
    pub skip_one_in: u64,
}

impl Default for Partitioning {
    fn default() -> Self {
        Partitioning {
            depth: 18,
            iterations: 40,
            skip_one_in: 10,
        }
    }
}

/// The smallest number of functions for which a thread is started. For fewer functions, starting a thread costs more
/// time than it saves.
const PARALLEL: usize = 512;

struct Node {
    function: FunctionId,
    /// The position of the function in the initial order. Groups that are not divided any more keep this order.
    place: usize,
    utilities: Vec<u32>,
    left: bool,
}

/// Orders the functions of the traces. The same traces give the same order on every machine, whatever the number of
/// threads.
///
/// ```
/// use profkit_analysis::order::{Partitioning, balanced, trace};
/// use profkit_data::mip::{Function, MipProfile};
///
/// // Two runs of one program. Each run calls two of its four functions.
/// let run = |ordinals: [u64; 4]| MipProfile {
///     functions: ordinals.into_iter().map(|order_sum| Function {
///         calls: order_sum.min(1), called_runs: order_sum.min(1), order_sum, order_runs: order_sum.min(1),
///         ..Function::default()
///     }).collect(),
///     ..MipProfile::default()
/// };
/// let traces = [trace(&run([1, 0, 2, 0])), trace(&run([0, 1, 0, 2]))];
/// let order = balanced(4, &traces, &Partitioning::default());
/// assert_eq!(order.len(), 4);
/// ```
///
/// # Panics
/// If the index of a function in a trace is not below `functions`.
pub fn balanced(functions: usize, traces: &[Trace], options: &Partitioning) -> Vec<FunctionId> {
    let utilities = utility_nodes(functions, traces, true);
    let mut earliest = IndexVec::parallel_to(&utilities, None::<usize>);
    for trace in traces {
        for (place, &function) in trace.iter().enumerate() {
            let earliest = &mut earliest[function];
            *earliest = Some(earliest.map_or(place, |known| known.min(place)));
        }
    }
    let mut nodes: Vec<(usize, Node)> = earliest
        .ids()
        .zip(utilities)
        .zip(earliest)
        .filter_map(|((function, utilities), earliest)| {
            Some((
                earliest?,
                Node {
                    function,
                    place: 0,
                    utilities,
                    left: false,
                },
            ))
        })
        .collect();
    nodes.sort_by_key(|(earliest, node)| (*earliest, node.function));
    let mut nodes: Vec<Node> = nodes.into_iter().map(|(_, node)| node).collect();
    for (place, node) in nodes.iter_mut().enumerate() {
        node.place = place;
    }
    bisect(&mut nodes, 0, 1, options);
    nodes.into_iter().map(|node| node.function).collect()
}

/// Orders the functions of a group. `bucket` is the index of the group in the tree of halves: the root has the index 1,
/// and the halves of the group with index n have the indexes 2n and 2n + 1.
fn bisect(nodes: &mut [Node], depth: u32, bucket: u64, options: &Partitioning) {
    if nodes.len() <= 1 || depth >= options.depth {
        nodes.sort_by_key(|node| node.place);
        return;
    }
    let middle = nodes.len().div_ceil(2);
    nodes.sort_by_key(|node| node.place);
    for (index, node) in nodes.iter_mut().enumerate() {
        node.left = index < middle;
    }
    let mut random = Random(bucket);
    let mut counts = Counts::of(nodes);
    for _ in 0..options.iterations {
        if !exchange(nodes, &mut counts, &mut random, options) {
            break;
        }
    }
    nodes.sort_by_key(|node| !node.left);
    let middle = nodes.iter().filter(|node| node.left).count();
    let (left, right) = nodes.split_at_mut(middle);
    let halves = (
        |left: &mut [Node]| bisect(left, depth + 1, bucket.wrapping_mul(2), options),
        |right: &mut [Node]| {
            bisect(
                right,
                depth + 1,
                bucket.wrapping_mul(2).wrapping_add(1),
                options,
            )
        },
    );
    if left.len() < PARALLEL {
        halves.0(left);
        halves.1(right);
    } else {
        join(|| halves.0(left), || halves.1(right));
    }
}

/// For each utility node: the number of its functions in each half.
struct Counts {
    /// The utility nodes of the group, sorted.
    utilities: Vec<u32>,
    /// The number of functions in the left and in the right half.
    members: Vec<(u32, u32)>,
    /// The cost that is saved if a function of the node moves from left to right, and from right to left.
    gains: Vec<(f64, f64)>,
}

impl Counts {
    fn of(nodes: &[Node]) -> Self {
        let mut utilities: Vec<u32> = nodes
            .iter()
            .flat_map(|node| node.utilities.iter().copied())
            .collect();
        utilities.sort_unstable();
        utilities.dedup();
        let none = vec![(0, 0); utilities.len()];
        let mut counts = Counts {
            gains: vec![(0.0, 0.0); utilities.len()],
            utilities,
            members: none,
        };
        for node in nodes {
            counts.add(node, node.left, 1);
        }
        counts
    }

    fn add(&mut self, node: &Node, left: bool, change: i32) {
        for utility in &node.utilities {
            if let Ok(index) = self.utilities.binary_search(utility)
                && let Some((on_left, on_right)) = self.members.get_mut(index)
            {
                let side = if left { on_left } else { on_right };
                *side = side.saturating_add_signed(change);
            }
        }
    }

    fn update(&mut self) {
        for (&(left, right), gain) in self.members.iter().zip(&mut self.gains) {
            let now = cost(left, right);
            let to_right = if left > 0 {
                now - cost(left - 1, right.saturating_add(1))
            } else {
                0.0
            };
            let to_left = if right > 0 {
                now - cost(left.saturating_add(1), right - 1)
            } else {
                0.0
            };
            *gain = (to_right, to_left);
        }
    }

    fn gain(&self, node: &Node) -> f64 {
        let one = |utility: &u32| {
            let index = self.utilities.binary_search(utility).ok()?;
            let (to_right, to_left) = self.gains.get(index)?;
            Some(if node.left { *to_right } else { *to_left })
        };
        node.utilities.iter().filter_map(one).sum()
    }
}

/// The cost of a utility node. The cost is lowest if all functions of the node are in the same half.
fn cost(left: u32, right: u32) -> f64 {
    let side = |count: u32| f64::from(count) * (f64::from(count) + 1.0).log2();
    -(side(left) + side(right))
}

/// Exchanges pairs of functions between the halves as long as that lowers the cost. Returns whether a function moved.
fn exchange(
    nodes: &mut [Node],
    counts: &mut Counts,
    random: &mut Random,
    options: &Partitioning,
) -> bool {
    counts.update();
    let mut sides: [Vec<(f64, usize)>; 2] = [Vec::new(), Vec::new()];
    let [left, right] = &mut sides;
    for (index, node) in nodes.iter().enumerate() {
        let side = if node.left { &mut *left } else { &mut *right };
        side.push((counts.gain(node), index));
    }
    for side in &mut sides {
        side.sort_by(|one, other| other.0.partial_cmp(&one.0).unwrap_or(Ordering::Equal));
    }
    let [left, right] = &sides;
    let mut moved = false;
    for (one, other) in left.iter().zip(right) {
        if one.0 + other.0 <= 0.0 {
            break;
        }
        for &(_, index) in [one, other] {
            if random.one_in(options.skip_one_in) {
                continue;
            }
            if let Some(node) = nodes.get_mut(index) {
                counts.add(node, node.left, -1);
                node.left = !node.left;
                counts.add(node, node.left, 1);
                moved = true;
            }
        }
    }
    moved
}

/// Random numbers by splitmix64 (Steele, Lea, Flood 2014). The seed is the index of the group, so the random numbers of
/// a group do not depend on other groups.
struct Random(u64);

impl Random {
    fn one_in(&mut self, count: u64) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(count) == Some(0)
    }
}
