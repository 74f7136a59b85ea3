//! Runs as sequences of first calls, and the utility nodes that balanced partitioning works on.
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{FunctionId, MipProfile};
use rustc_hash::FxHashMap;

/// The functions that a run called, by their first call.
pub type Trace = Vec<FunctionId>;

/// The trace of a profile of one run; of one of several, in the order of the means.
pub fn trace(profile: &MipProfile) -> Trace {
    let mut order = super::by_mean(profile);
    order.retain(|&id| profile.functions[id].order_runs > 0);
    order
}

/// For each function, the utility nodes that it belongs to: a node stands for a time at which a run needs it.
///
/// In each trace a new node begins at places 1, 2, 4, 8 and so on, and a function belongs to all nodes from its first
/// call to the end of the trace, since its pages stay in use. Nodes that add nothing are left out: those of one
/// function, and those of more than half of all.
///
/// # Panics
/// If a trace has a function that is none of that many.
pub fn utility_nodes(
    functions: usize,
    traces: &[Trace],
    leave_out: bool,
) -> IndexVec<FunctionId, Vec<u32>> {
    let mut nodes: IndexVec<FunctionId, Vec<u32>> = vec![Vec::new(); functions].into();
    let mut node = 0_u32;
    for trace in traces {
        let mut cutoff = 1_usize;
        let mut first: FxHashMap<FunctionId, u32> = FxHashMap::default();
        for (place, &function) in trace.iter().enumerate() {
            if place >= cutoff {
                node = node.saturating_add(1);
                cutoff = place.saturating_mul(2);
            }
            first.entry(function).or_insert(node);
        }
        for (function, first) in first {
            nodes[function].extend(first..=node);
        }
        node = node.saturating_add(1);
    }
    if leave_out {
        let mut members: FxHashMap<u32, usize> = FxHashMap::default();
        let used = nodes.iter().filter(|nodes| !nodes.is_empty()).count();
        nodes
            .iter()
            .flatten()
            .for_each(|&node| *members.entry(node).or_default() += 1);
        for nodes in &mut nodes {
            nodes.retain(|node| {
                members
                    .get(node)
                    .is_some_and(|&count| count > 1 && count * 2 <= used)
            });
        }
    }
    nodes
}
