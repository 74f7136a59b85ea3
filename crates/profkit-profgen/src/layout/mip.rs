//! The order of functions from the calls of a MIP profile.
use super::functions::{Item, cluster};
use profkit_data::mip::{FunctionId, MipProfile};
use std::collections::BTreeMap;

/// Returns the functions that any run called. Functions that call each other often are placed close together (call-chain
/// clustering, as the layout of a program does), and those with the most calls per byte come first. Without
/// call edges, functions are ordered by calls per byte alone.
///
/// `None` if the profile has no call counts, but only coverage. Counts of unary counters end at 8, and are used as they
/// are.
///
/// ```
/// use profkit_data::mip::{CallEdge, Function, FunctionId, MipProfile};
/// use profkit_profgen::layout::by_calls;
///
/// let function = |name: &str, calls| Function {
///     name: name.into(), calls, called_runs: 1, size: 32, ..Function::default()
/// };
/// let functions = [function("main", 1), function("rare", 2), function("hot", 90)];
/// let mut profile = MipProfile { functions: functions.into_iter().collect(), ..MipProfile::default() };
/// let id = |index| profile.functions.id(index).unwrap();
/// let edge = CallEdge { caller: Some(id(1)), call_site: 7, callee: id(2), weight: 90 };
/// profile.edges = vec![edge];
/// let names: Vec<_> = by_calls(&profile).unwrap().iter().map(|&id| &*profile.functions[id].name).collect();
/// assert_eq!(names, [&b"rare"[..], b"hot", b"main"]);
/// ```
pub fn by_calls(profile: &MipProfile) -> Option<Vec<FunctionId>> {
    let functions = &profile.functions;
    if functions.iter().all(|function| function.calls == 0) {
        return None;
    }
    let ids: Vec<FunctionId> = functions
        .ids()
        .filter(|&id| functions[id].is_covered())
        .collect();
    let index_of: BTreeMap<FunctionId, usize> =
        ids.iter().enumerate().map(|(at, &id)| (id, at)).collect();
    let mut calls: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for edge in &profile.edges {
        let caller = edge.caller.and_then(|caller| index_of.get(&caller));
        if let (Some(&caller), Some(&callee)) = (caller, index_of.get(&edge.callee))
            && caller != callee
        {
            let weight = calls.entry((callee, caller)).or_default();
            *weight = weight.saturating_add(edge.weight);
        }
    }
    // Edges of programs with a ring of samples are parts of the calls, so calls are compared with the sum of all edges.
    let mut sampled = vec![0u64; ids.len()];
    for edge in &profile.edges {
        let sum = index_of
            .get(&edge.callee)
            .and_then(|&at| sampled.get_mut(at));
        if let Some(sum) = sum {
            *sum = sum.saturating_add(edge.weight);
        }
    }
    let items: Vec<Item> = ids
        .iter()
        .zip(&sampled)
        .map(|(&id, &sampled)| {
            let function = &functions[id];
            Item {
                size: function.size.into(),
                weight: function.calls,
                entered: if sampled > 0 { sampled } else { function.calls },
            }
        })
        .collect();
    let order = cluster(&items, &calls);
    Some(
        order
            .into_iter()
            .filter_map(|at| ids.get(at).copied())
            .collect(),
    )
}
