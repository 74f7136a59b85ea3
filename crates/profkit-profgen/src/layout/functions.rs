//! The order of functions. Functions that often call each other are placed close together.
use super::FunctionLayout;
use super::code::CodeMap;
use super::flow::{Flow, Kind};
use std::collections::BTreeMap;

/// The order of functions in the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FunctionOrder {
    /// Functions are placed near those that call them (call-chain clustering).
    #[default]
    Calls,
    /// The functions that ran keep the order of the program. They are separated from the functions that did not run.
    Original,
}

/// The size in bytes up to which a cluster can grow: that of a large page.
const LARGEST_CLUSTER: u64 = 2 << 20;
/// A callee is placed after a caller that makes at least 1 / `LEAST_SHARE` of its calls.
const LEAST_SHARE: u64 = 10;
/// The factor by which a cluster's weight per byte may fall when functions are added to it.
const DENSITY_SHARE: u128 = 8;

#[derive(Clone, Debug, Default)]
struct Cluster {
    functions: Vec<usize>,
    size: u64,
    weight: u64,
}

impl Cluster {
    /// Whether `self` has less weight per byte than `other`, even if the weight of `self` is multiplied by `factor`.
    fn is_sparser(&self, other: &Cluster, factor: u128) -> bool {
        let (own, others) = (u128::from(self.weight), u128::from(other.weight));
        own.saturating_mul(u128::from(other.size.max(1)))
            .saturating_mul(factor)
            < others.saturating_mul(u128::from(self.size.max(1)))
    }
}

pub fn order(
    code: &CodeMap,
    flow: &Flow,
    functions: &[FunctionLayout],
    order: FunctionOrder,
) -> Vec<usize> {
    if order == FunctionOrder::Original {
        return (0..functions.len()).collect();
    }
    let index_of: BTreeMap<usize, usize> = functions
        .iter()
        .enumerate()
        .map(|(index, layout)| (layout.function, index))
        .collect();
    // For each pair of callee and caller, the number of calls.
    let mut calls: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for edge in flow.edges.iter().filter(|edge| edge.kind == Kind::Call) {
        let owner = |block| index_of.get(&code.owner(block)?).copied();
        if let (Some(from), Some(to)) = (owner(edge.from), owner(edge.to))
            && from != to
        {
            let weight = calls.entry((to, from)).or_default();
            *weight = weight.saturating_add(edge.weight);
        }
    }
    let items: Vec<Item> = functions
        .iter()
        .map(|layout| {
            let mapped = code.functions.get(layout.function);
            let sizes = layout
                .hot
                .iter()
                .filter_map(|&block| Some(mapped?.blocks.get(block)?.size));
            let weights = layout
                .hot
                .iter()
                .filter_map(|&block| flow.weights.get(mapped?.first + block));
            Item {
                size: sizes.fold(0, u64::saturating_add),
                weight: weights.fold(0, |sum, &weight| sum.saturating_add(weight)),
                entered: layout.entered,
            }
        })
        .collect();
    cluster(&items, &calls)
}

/// A function to be placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// The size in bytes.
    pub(super) size: u64,
    /// How often the code ran. Functions with more weight per byte come first.
    pub(super) weight: u64,
    /// The number of calls of the function.
    pub(super) entered: u64,
}

/// Orders functions by call-chain clustering. `calls` has the number of calls for each pair of callee and caller, which
/// are indices of `items`.
pub(super) fn cluster(items: &[Item], calls: &BTreeMap<(usize, usize), u64>) -> Vec<usize> {
    let mut clusters: Vec<Cluster> = items
        .iter()
        .enumerate()
        .map(|(index, item)| Cluster {
            functions: vec![index],
            size: item.size,
            weight: item.weight,
        })
        .collect();
    let mut cluster_of: Vec<usize> = (0..items.len()).collect();
    let entered = |index: usize| items.get(index).map_or(0, |item| item.entered);
    let mut hottest: Vec<usize> = (0..items.len()).collect();
    hottest.sort_by_key(|&index| (std::cmp::Reverse(entered(index)), index));
    for callee in hottest {
        // Take the caller with the most calls. Of several such callers, take the first.
        let callers = calls.range((callee, 0)..=(callee, usize::MAX));
        let Some((caller, weight)) = callers
            .map(|(&(_, caller), &weight)| (caller, weight))
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
        else {
            continue;
        };
        let cluster = |function: usize| cluster_of.get(function).copied().unwrap_or(function);
        let (from, to) = (cluster(caller), cluster(callee));
        // Every function of a cluster but the first has to stay after the one before it.
        let (Some(source), Some(sink)) = (clusters.get(from), clusters.get(to)) else {
            continue;
        };
        let joined = Cluster {
            functions: [&*source.functions, &*sink.functions].concat(),
            size: source.size.saturating_add(sink.size),
            weight: source.weight.saturating_add(sink.weight),
        };
        if from == to
            || sink.functions.first() != Some(&callee)
            || joined.size > LARGEST_CLUSTER
            || weight.saturating_mul(LEAST_SHARE) < entered(callee)
            || joined.is_sparser(source, DENSITY_SHARE)
        {
            continue;
        }
        for &function in &sink.functions {
            if let Some(cluster) = cluster_of.get_mut(function) {
                *cluster = from;
            }
        }
        if let Some(sink) = clusters.get_mut(to) {
            *sink = Cluster::default();
        }
        if let Some(source) = clusters.get_mut(from) {
            *source = joined;
        }
    }
    clusters.retain(|cluster| !cluster.functions.is_empty());
    // The densest cluster comes first. The sort is stable, so clusters of equal density keep their order.
    clusters.sort_by(|one, two| {
        let left = u128::from(one.weight).saturating_mul(u128::from(two.size.max(1)));
        let right = u128::from(two.weight).saturating_mul(u128::from(one.size.max(1)));
        right.cmp(&left)
    });
    clusters
        .into_iter()
        .flat_map(|cluster| cluster.functions)
        .collect()
}
