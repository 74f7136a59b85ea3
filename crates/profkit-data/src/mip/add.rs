//! Adds MIP profiles of the same image (an executable or a shared library) to each other.
use super::edges::{EdgeMap, key, sorted};
use super::{Function, FunctionId, MipProfile};
use crate::index_vec::IndexVec;
use crate::tables::{StackId, Tables};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The reason why a MIP profile, or a function in it, was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The whole profile was not added, because it belongs to a different image, or because its record section has a
    /// different address.
    Profile {
        /// The identity or the section address of the profile that was not added.
        found: String,
        /// The identity or the section address of the receiving profile, to which the other profile should have been
        /// added.
        expected: String,
    },
    /// A function was not added, because its code differs between the two profiles.
    Function {
        /// The name of the function.
        name: Vec<u8>,
        /// The control-flow signature of the function in the added profile.
        found: u32,
        /// The control-flow signature of the function in the receiving profile.
        expected: u32,
    },
}

/// Adds a profile to another one of the same image. Counts are added, and so are the sums of the ordinals of first
/// calls ([`Function::order_sum`]). Of the two values of [`Function::order_min`], the smaller one is kept.
///
/// If both profiles have the same functions, the order of the functions is kept. If not, the functions of both profiles
/// are sorted by the offset of their record. If functions contradict each other, those of `into` are kept. As long as
/// nothing is rejected, the result does not depend on the order in which profiles are added, and adding
/// [`MipProfile::default`] changes nothing.
pub fn add_profile(into: &mut MipProfile, from: &MipProfile) -> Vec<Refusal> {
    let empty = MipProfile::default();
    if *from == empty {
        return Vec::new();
    }
    if *into == empty {
        *into = from.clone();
        return Vec::new();
    }
    if let Some(refused) = other_image(into, from) {
        return vec![refused];
    }
    let mut refused = Vec::new();
    into.runs = into.runs.saturating_add(from.runs);
    into.width = into.width.or(from.width);
    into.section_size = into.section_size.or(from.section_size);
    let same = into.functions.len() == from.functions.len()
        && into
            .functions
            .iter()
            .zip(&from.functions)
            .all(|(one, two)| one.same_code(two));
    // For each function of the profile `from`, its index in the profile `into`; `None` if it was not added.
    let places: IndexVec<FunctionId, Option<FunctionId>> = if same {
        for (function, more) in into.functions.iter_mut().zip(&from.functions) {
            add_function(function, more);
            if function.location.is_none() {
                function.location = copy_stack(more.location, &from.tables, &mut into.tables);
            }
        }
        from.functions.ids().map(Some).collect()
    } else {
        unite(into, from, &mut refused)
    };
    let mut edges: EdgeMap = into
        .edges
        .iter()
        .map(|edge| (key(edge), edge.weight))
        .collect();
    for edge in &from.edges {
        let caller = match edge.caller {
            None => None,
            Some(caller) => match places[caller] {
                Some(caller) => Some(caller),
                // The calling function was not added, so its call edges are not added either.
                None => continue,
            },
        };
        let Some(callee) = places[edge.callee] else {
            continue;
        };
        let sum = edges.entry((caller, edge.call_site, callee)).or_insert(0);
        *sum = sum.saturating_add(edge.weight);
    }
    into.edges = sorted(edges);
    refused
}

fn other_image(into: &MipProfile, from: &MipProfile) -> Option<Refusal> {
    let refuse = |found: String, expected: String| Some(Refusal::Profile { found, expected });
    if into.identity != from.identity {
        return refuse(from.identity.to_string(), into.identity.to_string());
    }
    if into.section_address != from.section_address {
        let place = |address: Option<u64>| match address {
            Some(address) => format!("records at {address:#x}"),
            None => "addresses relative to the records".to_owned(),
        };
        return refuse(place(from.section_address), place(into.section_address));
    }
    match (into.section_size, from.section_size) {
        (Some(one), Some(two)) if one != two => refuse(
            format!("{two} bytes of records"),
            format!("{one} bytes of records"),
        ),
        _ => None,
    }
}

fn add_function(function: &mut Function, more: &Function) {
    function.raw_runs = function.raw_runs.saturating_add(more.raw_runs);
    function.called_runs = function.called_runs.saturating_add(more.called_runs);
    function.calls = function.calls.saturating_add(more.calls);
    function.calls_at_least |= more.calls_at_least;
    function.order_sum = function.order_sum.saturating_add(more.order_sum);
    function.order_runs = function.order_runs.saturating_add(more.order_runs);
    function.order_min = match (function.order_min, more.order_min) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    };
    for (block, more) in function.blocks.iter_mut().zip(&more.blocks) {
        block.runs = block.runs.saturating_add(more.runs);
    }
}

/// Adds the functions of `from` to those of `into`. A function is new if no function of `into` has its key
/// ([`Function::key`]). At the end, all functions are sorted by key. Returns the new index of each function of `from`,
/// or `None` if the function was not added.
fn unite(
    into: &mut MipProfile,
    from: &MipProfile,
    refused: &mut Vec<Refusal>,
) -> IndexVec<FunctionId, Option<FunctionId>> {
    let mut known: FxHashMap<(u64, u64, Vec<u8>), FunctionId> = FxHashMap::default();
    let owned = |function: &Function| {
        let (record, address, name) = function.key();
        (record, address, name.to_vec())
    };
    for (id, function) in into.functions.entries() {
        known.insert(owned(function), id);
    }
    let mut places: IndexVec<FunctionId, _> = IndexVec::with_capacity(from.functions.len());
    for more in &from.functions {
        let place = match known.get(&owned(more)) {
            None => {
                let mut function = more.clone();
                function.location = copy_stack(more.location, &from.tables, &mut into.tables);
                Some(into.functions.push(function))
            }
            Some(&id) => {
                let function = &mut into.functions[id];
                if function.same_code(more) {
                    add_function(function, more);
                    if function.location.is_none() {
                        function.location =
                            copy_stack(more.location, &from.tables, &mut into.tables);
                    }
                    Some(id)
                } else {
                    refused.push(Refusal::Function {
                        name: more.name.clone(),
                        found: more.signature,
                        expected: function.signature,
                    });
                    None
                }
            }
        };
        places.push(place);
    }
    let mut order: Vec<FunctionId> = into.functions.ids().collect();
    order.sort_by(|&one, &two| into.functions[one].key().cmp(&into.functions[two].key()));
    let mut sorted = IndexVec::with_capacity(order.len());
    // For each function of the profile, its index after sorting.
    let mut moved: IndexVec<FunctionId, FunctionId> = into.functions.ids().collect();
    for id in order {
        moved[id] = sorted.push(std::mem::take(&mut into.functions[id]));
    }
    into.functions = sorted;
    for edge in &mut into.edges {
        edge.caller = edge.caller.map(|caller| moved[caller]);
        edge.callee = moved[edge.callee];
    }
    for place in places.iter_mut().flatten() {
        *place = moved[*place];
    }
    places
}

/// Copies a stack of source locations from the tables `from` to the tables `into`. Returns `None` if there is no stack
/// to copy, or if `into` is full. The function then has no location, but keeps its counts.
fn copy_stack(stack: Option<StackId>, from: &Tables, into: &mut Tables) -> Option<StackId> {
    let frames: Vec<_> = from
        .frames(stack)
        .map(|mut frame| {
            frame.path = frame.path.map(|path| Cow::Owned(path.into_owned()));
            frame
        })
        .collect();
    into.intern_stack(&frames).ok().flatten()
}
