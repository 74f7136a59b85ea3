//! Converts return-address samples to call edges.
use super::{CallEdge, FunctionId, MipProfile, Sample};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Adds return-address samples as call edges. `samples` gives the weight of each sample. Returns the total weight of
/// the samples whose callee is not a function of the profile.
pub fn add_samples(profile: &mut MipProfile, samples: &FxHashMap<Sample, u64>) -> u64 {
    if samples.is_empty() {
        return 0;
    }
    let mut callees: FxHashMap<u64, FunctionId> = FxHashMap::default();
    let mut callers: Vec<(u64, u64, FunctionId)> = Vec::with_capacity(profile.functions.len());
    for (id, function) in profile.functions.entries() {
        callees.entry(function.record_offset).or_insert(id);
        let end = function.address.saturating_add(function.size.into());
        callers.push((function.address, end, id));
    }
    callers.sort_unstable();
    let section = profile.section_address.unwrap_or(0);
    let mut unknown = 0u64;
    let mut edges: EdgeMap = profile
        .edges
        .iter()
        .map(|edge| (key(edge), edge.weight))
        .collect();
    for (sample, &weight) in samples {
        let Some(&callee) = callees.get(&u64::from(sample.record_offset)) else {
            unknown = unknown.saturating_add(weight);
            continue;
        };
        // The code and the records of an image are less than 2 GiB apart, so a signed 32-bit offset is enough.
        let distance = i64::from(sample.return_offset.cast_signed());
        let address = section.wrapping_add_signed(distance);
        // The byte before the return address belongs to the call instruction. The return address itself may already
        // belong to the next function.
        let call = address.wrapping_sub(1);
        let before = callers.partition_point(|&(start, ..)| start <= call);
        let caller = before
            .checked_sub(1)
            .and_then(|last| callers.get(last))
            .filter(|&&(_, end, _)| call < end);
        let key = match caller {
            Some(&(start, _, caller)) => {
                let site = u32::try_from(address.wrapping_sub(start)).unwrap_or(u32::MAX);
                (Some(caller), site, callee)
            }
            // The caller is in a different image, or in code without instrumentation. Return addresses in other images
            // differ from run to run, so the edge does not state the return address.
            None => (None, 0, callee),
        };
        let sum = edges.entry(key).or_insert(0);
        *sum = sum.saturating_add(weight);
    }
    profile.edges = sorted(edges);
    unknown
}

/// The key of a call edge: the caller, the return address as an offset from the caller's start, the callee. The caller
/// is `None`, and the offset 0, if the caller is not a function of the profile.
pub(super) type EdgeKey = (Option<FunctionId>, u32, FunctionId);

pub(super) type EdgeMap = BTreeMap<EdgeKey, u64>;

pub(super) fn key(edge: &CallEdge) -> EdgeKey {
    (edge.caller, edge.call_site, edge.callee)
}

pub(super) fn sorted(edges: EdgeMap) -> Vec<CallEdge> {
    edges
        .into_iter()
        .map(|((caller, call_site, callee), weight)| CallEdge {
            caller,
            call_site,
            callee,
            weight,
        })
        .collect()
}
