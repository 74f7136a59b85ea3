//! A heap profile as a flame graph.
use super::folded::HeapWeight;
use super::profile::HeapProfile;
use crate::flame::{FlameBuilder, FlameGraph, Temperature};
use crate::names;
use profkit_data::memprof::{Hotness, Thresholds};
use rustc_hash::FxHashMap;

/// Makes the flame graph of a heap profile. Callers are below the functions that they call. The width of a frame is the
/// sum of `weight` over its contexts. A function without a name is shown by its GUID. With `mangled`, names are not
/// demangled.
pub fn flame_graph(
    heap: &HeapProfile,
    weight: HeapWeight,
    thresholds: &Thresholds,
    mangled: bool,
) -> FlameGraph {
    let mut builder = FlameBuilder::new();
    let mut shown: FxHashMap<u64, String> = FxHashMap::default();
    for context in heap.profile.allocations_by_stack() {
        let stack: Vec<u64> = heap
            .profile
            .stack(context.stack)
            .rev()
            .map(|frame| frame.function)
            .collect();
        for &function in &stack {
            shown
                .entry(function)
                .or_insert_with(|| match heap.name(function) {
                    Some(name) => names::display(name, mangled).into_owned(),
                    None => format!("{function:#018x}"),
                });
        }
        let temperature = match thresholds.hotness(&context.block, true) {
            Hotness::Cold => Temperature::Cold,
            Hotness::Warm => Temperature::Warm,
            Hotness::Hot => Temperature::Hot,
        };
        let stack = stack.iter().filter_map(|function| shown.get(function));
        builder.add(
            stack.map(String::as_str),
            weight.of(&context.block),
            temperature,
        );
    }
    builder.layout()
}
