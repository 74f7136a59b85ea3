//! Traces: for each run, the functions in the order of their first calls. This module also makes the utility nodes that
//! balanced partitioning needs.
use profkit_data::Error;
use profkit_data::mip::{FunctionId, Identity, MipProfile, Modes, RawParts, calls_record};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::hash::Hash;

/// The functions that a run called, in the order of their first calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace<F> {
    /// The functions.
    pub functions: Vec<F>,
    /// The weight of the run. A trace of weight 2 counts as much as two equal traces.
    pub weight: u64,
}

impl<F> Trace<F> {
    /// A trace of weight 1.
    pub fn new(functions: Vec<F>) -> Self {
        Trace {
            functions,
            weight: 1,
        }
    }
}

/// Makes a trace from the profile of one run. If the profile is the sum of several runs, functions are sorted by the
/// mean ordinals of their first calls.
pub fn trace(profile: &MipProfile) -> Trace<FunctionId> {
    let mut order = super::by_mean(profile);
    order.retain(|&id| profile.functions[id].order_runs > 0);
    Trace::new(order)
}

/// The reason why no trace could be made of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The file is damaged, or is neither a raw file nor a profile.
    Data(Error),
    /// The run belongs to a different build than the profile. The field is the identity of the run's build.
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

/// Makes the traces of the runs in a file. A raw file gives one trace for each of its parts, where a part holds the
/// records of one run. A MIP profile gives one trace. A trace names a function by its index in `profile`.
///
/// # Errors
/// If the file cannot be read, or belongs to a different build than `profile`.
pub fn traces_of_run(
    profile: &MipProfile,
    bytes: &[u8],
) -> Result<Vec<Trace<FunctionId>>, RunError> {
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

fn trace_of_records(profile: &MipProfile, records: &[u8]) -> Trace<FunctionId> {
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
    Trace::new(called.into_iter().map(|(_, id)| id).collect())
}

/// The utility nodes that were made from some traces, and the functions that belong to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Utilities<F> {
    /// The functions with the indexes of their utility nodes, sorted by the earliest position of the function in any
    /// trace, then by function.
    pub functions: Vec<(F, Vec<u32>)>,
    /// The weight of each utility node, divided by the smallest weight of any trace.
    pub weights: Vec<f32>,
}

/// Makes the utility nodes of traces, as LLVM does (`TemporalProfTraceTy::createBPFunctionNodes`). A utility node is a
/// time span of a run, and has the functions that the run needs in this time span.
///
/// In each trace, new nodes begin at positions 1, 2, 4, 8 and so on. A function belongs to all nodes from its first
/// call to the end of the trace, since its pages stay in use. If `leave_out` is true, two sorts of nodes are left out
/// because they add nothing: nodes with only one function, and nodes with more than half of all functions.
pub fn utilities<F: Copy + Ord + Hash>(traces: &[Trace<F>], leave_out: bool) -> Utilities<F> {
    struct FunctionNodes<F> {
        function: F,
        earliest: usize,
        /// The index of the last trace in which the function was found.
        seen_in: usize,
        utilities: Vec<u32>,
    }
    let least = traces.iter().map(|trace| trace.weight).min();
    let mut ids: FxHashMap<F, usize> = FxHashMap::default();
    let mut known: Vec<FunctionNodes<F>> = Vec::new();
    let mut weights: Vec<f32> = Vec::new();
    let mut first = Vec::new();
    for (number, trace) in traces.iter().enumerate() {
        let mut node = u32::try_from(weights.len()).unwrap_or(u32::MAX);
        let mut cutoff = 1_usize;
        for (place, &function) in trace.functions.iter().enumerate() {
            if place >= cutoff {
                node = node.saturating_add(1);
                cutoff = place.saturating_mul(2);
            }
            let id = *ids.entry(function).or_insert_with(|| {
                known.push(FunctionNodes {
                    function,
                    earliest: place,
                    seen_in: usize::MAX,
                    utilities: Vec::new(),
                });
                known.len() - 1
            });
            if let Some(known) = known.get_mut(id) {
                known.earliest = known.earliest.min(place);
                if known.seen_in != number {
                    known.seen_in = number;
                    first.push((id, node));
                }
            }
        }
        for (id, first) in first.drain(..) {
            if let Some(known) = known.get_mut(id) {
                known.utilities.extend(first..=node);
            }
        }
        weights.resize(
            node as usize + 1,
            relative(trace.weight, least.unwrap_or(1)),
        );
    }
    if leave_out {
        let mut members = vec![0_usize; weights.len()];
        for utility in known.iter().flat_map(|known| &known.utilities) {
            if let Some(count) = members.get_mut(*utility as usize) {
                *count += 1;
            }
        }
        let functions = known.len();
        let is_useful = |utility: &u32| {
            let count = members.get(*utility as usize);
            count.is_some_and(|&count| count > 1 && count * 2 <= functions)
        };
        for known in &mut known {
            known.utilities.retain(is_useful);
        }
    }
    known.sort_unstable_by_key(|known| (known.earliest, known.function));
    Utilities {
        functions: (known.into_iter())
            .map(|known| (known.function, known.utilities))
            .collect(),
        weights,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the partitioning calculates in single precision"
)]
fn relative(weight: u64, least: u64) -> f32 {
    (weight as f64 / least.max(1) as f64) as f32
}

/// Returns the area under the curve of page faults. For each call in each trace, the number of pages that the trace has
/// touched so far is added to the area. Each page is assumed to hold `per_page` functions of the order. Functions that
/// are not in the order are left out. The smaller the area, the better the order.
pub fn page_fault_area<F: Copy + Eq + Hash>(
    order: &[F],
    traces: &[Trace<F>],
    per_page: usize,
) -> u64 {
    let places = order.iter().enumerate();
    let pages: FxHashMap<F, usize> = places
        .map(|(place, &function)| (function, place / per_page.max(1)))
        .collect();
    let mut area = 0_u64;
    for trace in traces {
        let mut touched = FxHashSet::default();
        for page in trace.functions.iter().filter_map(|name| pages.get(name)) {
            touched.insert(*page);
            area = area.saturating_add(touched.len() as u64);
        }
    }
    area
}
