//! The order in which functions are considered for inlining. Callers come before the functions that they call,
//! according to the calls in the contexts.
use super::trie::{NodeId, ROOT, Trie, target_count};
use profkit_data::sample::{NameId, head_estimate};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    weight: u64,
}

struct Graph {
    calls: Vec<Vec<Edge>>,
}

/// The functions, callers first. Calls that occurred at most `cold` times are ignored, unless that is 0.
pub fn callers_first(trie: &Trie, cold: u64) -> Vec<NameId> {
    let ranks = trie.names.ranks();
    let mut functions: BTreeMap<u32, NameId> = BTreeMap::new();
    let mut weights: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for id in trie.breadth_first() {
        let node = trie.node(id);
        let rank = ranks.get(node.name).copied().unwrap_or(u32::MAX);
        functions.insert(rank, node.name);
        let Some(parent) = node.parent.filter(|&parent| parent != ROOT) else {
            continue;
        };
        let caller = ranks.get(trie.node(parent).name).copied();
        let weight = weight(trie, parent, id);
        let sum = weights
            .entry((caller.unwrap_or(u32::MAX), rank))
            .or_default();
        *sum = sum.saturating_add(weight);
    }
    let numbers: FxHashMap<u32, usize> = functions
        .keys()
        .enumerate()
        .map(|(number, &rank)| (rank, number))
        .collect();
    let mut graph = Graph {
        calls: vec![Vec::new(); functions.len()],
    };
    for ((from, to), weight) in weights {
        let (Some(&from), Some(&to)) = (numbers.get(&from), numbers.get(&to)) else {
            continue;
        };
        if (cold == 0 || weight > cold)
            && let Some(calls) = graph.calls.get_mut(from)
        {
            calls.push(Edge { from, to, weight });
        }
    }
    let names: Vec<NameId> = functions.into_values().collect();
    let mut order: Vec<usize> = Vec::new();
    for component in graph.components() {
        let sorted = graph.sorted(&component);
        order.extend(sorted.into_iter().rev());
    }
    order.reverse();
    order
        .into_iter()
        .filter_map(|number| names.get(number).copied())
        .collect()
}

pub fn weight(trie: &Trie, caller: NodeId, callee: NodeId) -> u64 {
    let node = trie.node(callee);
    match (&trie.node(caller).samples, &node.samples) {
        (Some(caller), Some(callee)) => {
            head_estimate(callee, true).max(target_count(caller, node.site, node.name))
        }
        _ => 0,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Visit {
    /// The position in the order in which the search meets functions, from 1; 0 before that.
    number: usize,
    lowest: usize,
    is_done: bool,
}

impl Graph {
    fn calls(&self, function: usize) -> &[Edge] {
        self.calls.get(function).map_or(&[], |calls| calls)
    }

    /// Strongly connected components, callees first. Of a component, the function that was met last comes first.
    fn components(&self) -> Vec<Vec<usize>> {
        let mut visits = vec![Visit::default(); self.calls.len()];
        let mut components = Vec::new();
        let mut met = 0;
        let mut stack: Vec<usize> = Vec::new();
        for first in 0..self.calls.len() {
            if visits.get(first).is_some_and(|visit| visit.number > 0) {
                continue;
            }
            // The path of the search: each function on it, with the number of its calls that have been followed.
            let mut way: Vec<(usize, usize)> = vec![(first, 0)];
            while let Some((function, followed)) = way.last_mut() {
                let function = *function;
                let Some(visit) = visits.get_mut(function) else {
                    break;
                };
                if visit.number == 0 {
                    met += 1;
                    visit.number = met;
                    visit.lowest = met;
                    stack.push(function);
                }
                let lowest = visit.lowest;
                if let Some(edge) = self.calls(function).get(*followed) {
                    *followed += 1;
                    let to = edge.to;
                    match visits.get(to) {
                        Some(next) if next.number == 0 => way.push((to, 0)),
                        Some(next) if !next.is_done => {
                            let number = next.number;
                            if let Some(visit) = visits.get_mut(function) {
                                visit.lowest = lowest.min(number);
                            }
                        }
                        _ => {}
                    }
                    continue;
                }
                way.pop();
                if let Some((caller, _)) = way.last()
                    && let Some(caller) = visits.get_mut(*caller)
                {
                    caller.lowest = caller.lowest.min(lowest);
                }
                if visits.get(function).is_some_and(|it| it.number == lowest) {
                    let mut component = Vec::new();
                    while let Some(member) = stack.pop() {
                        if let Some(visit) = visits.get_mut(member) {
                            visit.is_done = true;
                        }
                        component.push(member);
                        if member == function {
                            break;
                        }
                    }
                    components.push(component);
                }
            }
        }
        components
    }

    fn sorted(&self, component: &[usize]) -> Vec<usize> {
        if component.len() <= 1 {
            return component.to_vec();
        }
        let places: FxHashMap<usize, usize> = component
            .iter()
            .enumerate()
            .map(|(place, &function)| (function, place))
            .collect();
        let inside = |edge: &&Edge| places.contains_key(&edge.to);
        let mut edges: Vec<Edge> = component
            .iter()
            .flat_map(|&function| self.calls(function).iter().filter(inside))
            .copied()
            .collect();
        edges.sort_by_key(|edge| std::cmp::Reverse(edge.weight));
        let mut groups: Vec<usize> = (0..component.len()).collect();
        let find = |groups: &mut Vec<usize>, function: usize| {
            let mut at = places.get(&function).copied().unwrap_or(0);
            while let Some(&next) = groups.get(at)
                && next != at
            {
                let after = groups.get(next).copied().unwrap_or(next);
                if let Some(group) = groups.get_mut(at) {
                    *group = after;
                }
                at = next;
            }
            at
        };
        // The calls of the spanning tree, and for each function the number of these calls that lead to it.
        let mut tree: Vec<(usize, usize)> = Vec::new();
        let mut incoming = vec![0usize; component.len()];
        for edge in &edges {
            let (from, to) = (find(&mut groups, edge.from), find(&mut groups, edge.to));
            if from == to {
                continue;
            }
            if let Some(group) = groups.get_mut(to) {
                *group = from;
            }
            tree.push((edge.from, edge.to));
            let place = places.get(&edge.to);
            if let Some(incoming) = place.and_then(|&place| incoming.get_mut(place)) {
                *incoming += 1;
            }
        }
        tree.sort_unstable();
        let mut queue: VecDeque<usize> = VecDeque::new();
        let mut is_queued = vec![false; component.len()];
        for edge in &edges {
            let Some(&place) = places.get(&edge.from) else {
                continue;
            };
            if incoming.get(place) == Some(&0)
                && let Some(queued) = is_queued.get_mut(place)
                && !*queued
            {
                *queued = true;
                queue.push_back(edge.from);
            }
        }
        let mut order = Vec::with_capacity(component.len());
        while let Some(function) = queue.pop_front() {
            order.push(function);
            for edge in self.calls(function) {
                if tree.binary_search(&(edge.from, edge.to)).is_err() {
                    continue;
                }
                let place = places.get(&edge.to);
                if let Some(left) = place.and_then(|&place| incoming.get_mut(place)) {
                    *left -= 1;
                    if *left == 0 {
                        queue.push_back(edge.to);
                    }
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(functions: usize, edges: &[(usize, usize, u64)]) -> Graph {
        let mut calls = vec![Vec::new(); functions];
        for &(from, to, weight) in edges {
            if let Some(calls) = calls.get_mut(from) {
                calls.push(Edge { from, to, weight });
            }
        }
        Graph { calls }
    }

    #[test]
    fn called_functions_come_first_and_circles_together() {
        let graph = graph(4, &[(0, 1, 5), (1, 2, 5), (2, 1, 9), (2, 3, 1)]);
        assert_eq!(graph.components(), [vec![3], vec![2, 1], vec![0]]);
        // The call from 2 to 1 has the larger weight.
        assert_eq!(graph.sorted(&[2, 1]), [2, 1]);
        assert_eq!(graph.sorted(&[1, 2]), [2, 1]);
    }

    #[test]
    fn a_function_that_calls_itself_is_alone() {
        let graph = graph(2, &[(0, 0, 5), (0, 1, 5)]);
        assert_eq!(graph.components(), [vec![1], vec![0]]);
    }
}
