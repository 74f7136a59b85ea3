//! Traces: for each run, the functions in the order of their first calls. Also the utility nodes that balanced
//! partitioning makes of them.
use profkit_data::Error;
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{FunctionId, Identity, MipProfile, Modes, RawParts, calls_record};
use rustc_hash::FxHashMap;
use std::fmt;

/// The functions that a run called, in the order of their first calls.
pub type Trace = Vec<FunctionId>;

/// Makes a trace from the profile of one run. If the profile is of several runs, functions are sorted by their mean
/// ordinals.
pub fn trace(profile: &MipProfile) -> Trace {
    let mut order = super::by_mean(profile);
    order.retain(|&id| profile.functions[id].order_runs > 0);
    order
}

/// The reason why no trace could be made of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The file is damaged, or is neither a raw file nor a profile.
    Data(Error),
    /// The run is of another build than the profile. The field is the identity of the run's build.
    OtherImage(Identity),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Data(error) => error.fmt(f),
            RunError::OtherImage(image) => {
                write!(f, "the run is of another build than the profile: {image}")
            }
        }
    }
}

impl std::error::Error for RunError {}

/// Makes the traces of the runs in a file: one for each part of a raw file, or one for a profile. A trace names a
/// function by its index in `profile`.
///
/// # Errors
/// If the file cannot be read, or is of another build than `profile`.
pub fn traces_of_run(profile: &MipProfile, bytes: &[u8]) -> Result<Vec<Trace>, RunError> {
    if let Ok(run) = MipProfile::parse(bytes) {
        if run.identity != profile.identity || run.functions.len() != profile.functions.len() {
            return Err(RunError::OtherImage(run.identity));
        }
        return Ok(vec![trace(&run)]);
    }
    let mut traces = Vec::new();
    for part in RawParts::new(bytes) {
        let part = part.map_err(RunError::Data)?;
        let identity = part.id.to_identity();
        if identity != profile.identity {
            return Err(RunError::OtherImage(identity));
        }
        traces.push(trace_of_records(profile, part.records));
    }
    Ok(traces)
}

/// The functions of a run in the order of the ordinals in its records.
fn trace_of_records(profile: &MipProfile, records: &[u8]) -> Trace {
    let word = |offset: u64| -> Option<u32> {
        let offset = usize::try_from(offset).ok()?;
        let bytes = records.get(offset..offset.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let mut called: Vec<(u32, FunctionId)> = profile
        .functions
        .entries()
        .filter(|(_, function)| function.modes.contains(Modes::CALLS))
        .filter_map(|(id, function)| {
            let count = word(function.record_offset)?;
            let ordinal = word(function.record_offset.checked_add(4)?)?;
            Some((calls_record(count, ordinal).ordinal?, id))
        })
        .collect();
    called.sort_unstable();
    called.into_iter().map(|(_, id)| id).collect()
}

/// Returns the utility nodes of each function. A utility node is a time span of a run. Its functions are those that the
/// run needs in this time span.
///
/// In each trace, new nodes begin at positions 1, 2, 4, 8 and so on. A function belongs to all nodes from its first
/// call to the end of the trace, since its pages stay in use. With `leave_out`, two sorts of nodes are left out because
/// they add nothing: nodes with only one function, and nodes with more than half of all functions.
///
/// # Panics
/// If the index of a function in a trace is not below `functions`.
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
