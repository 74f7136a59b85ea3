//! Flame graphs of heap and sample profiles: the frames, and the texts around them.
pub use crate::folded::{HeapWeight, frame_name};

use crate::flame_graph::{FlameBuilder, FlameGraph, Temperature};
use crate::flame_svg::{self, Labels};
use profkit_analysis::heap::HeapProfile;
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::samples::{SampleView, self_samples};
use profkit_data::memprof::{Hotness, Thresholds};
use profkit_data::sample::NameId;
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Returns the unit of a weight, in the plural: `bytes`.
pub fn unit(weight: HeapWeight) -> &'static str {
    match weight {
        HeapWeight::Bytes => "bytes",
        HeapWeight::Allocations => "allocations",
        HeapWeight::Accesses => "accesses",
        HeapWeight::ByteLifetime => "byte milliseconds",
    }
}

/// Draws the flame graph of a heap profile as SVG; `None` if all weights are 0. Colours show cold and hot contexts.
pub fn of_heap(
    heap: &HeapProfile,
    file: &str,
    weight: HeapWeight,
    thresholds: &Thresholds,
    mangled: bool,
) -> Option<String> {
    let graph = graph_of_heap(heap, weight, thresholds, mangled);
    let labels = Labels {
        title: &format!("Heap of {file}: {}", unit(weight)),
        subtitle: "Blue is cold, sand is warm, red is hot. The colour of a function is a mix of the colours of the contexts below it. Hover over a function for its numbers.",
        unit: unit(weight),
        by_temperature: true,
    };
    (graph.total() > 0).then(|| flame_svg::draw(&graph, &labels))
}

/// Draws calling contexts and inlined functions of a sample profile as SVG; `None` without samples.
pub fn of_samples(view: &SampleView<'_>, file: &str, spelling: Spelling) -> Option<String> {
    let graph = graph_of_samples(view, spelling);
    let contexts = view.sampled_and_contexts().1 > 0;
    let labels = Labels {
        title: &format!("Samples of {file}"),
        subtitle: if contexts {
            "A function stands on its callers. Hover over a function for its numbers."
        } else {
            "The profile has no calling contexts: a function stands on the one that it was inlined into. Hover over a function for its numbers."
        },
        unit: "samples",
        by_temperature: false,
    };
    (graph.total() > 0).then(|| flame_svg::draw(&graph, &labels))
}

/// Prints one line per calling context or stack of inlined functions.
pub fn print_folded_samples(
    view: &SampleView<'_>,
    spelling: Spelling,
    out: &mut impl Write,
) -> io::Result<()> {
    print_folded_graph(&graph_of_samples(view, spelling), out)
}

/// Prints one line per stack of a flame graph, with the weight of its innermost frame that no frame above it has.
pub(crate) fn print_folded_graph(graph: &FlameGraph, out: &mut impl Write) -> io::Result<()> {
    // The frames from the root to the current one: the name of each, and its weight without the frames that it called.
    let mut stack: Vec<(String, u128)> = Vec::new();
    let mut close = |stack: &mut Vec<(String, u128)>, depth: usize| {
        while stack.len() > depth {
            let names: Vec<&str> = stack
                .iter()
                .skip(1)
                .map(|(name, _)| name.as_str())
                .collect();
            let names = names.join(";");
            match stack.pop() {
                Some((_, own)) if own > 0 && !names.is_empty() => writeln!(out, "{names} {own}")?,
                _ => {}
            }
        }
        Ok::<_, io::Error>(())
    };
    for frame in graph.frames() {
        close(&mut stack, frame.depth)?;
        if let Some((_, own)) = stack.last_mut() {
            *own = own.saturating_sub(frame.weight);
        }
        stack.push((frame.name.replace([';', '\n'], ":"), frame.weight));
    }
    close(&mut stack, 0)
}

/// Prints one line per call stack. Contexts with the same call stack are added up.
pub fn print_folded(
    heap: &HeapProfile,
    weight: HeapWeight,
    mangled: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut shown: FxHashMap<u64, String> = FxHashMap::default();
    for context in heap.profile.allocations_by_stack() {
        let mut separator = "";
        for frame in heap.profile.stack(context.stack).rev() {
            let name =
                shown
                    .entry(frame.function)
                    .or_insert_with(|| match heap.name(frame.function) {
                        Some(name) => frame_name(&names::spelled(name, mangled.into())),
                        None => format!("{:#018x}", frame.function),
                    });
            write!(out, "{separator}{name}")?;
            separator = ";";
        }
        writeln!(out, " {}", weight.of(&context.block))?;
    }
    Ok(())
}

/// Makes the flame graph of a heap profile: callers below callees, as wide as the sum of `weight` over their contexts.
pub fn graph_of_heap(
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
                    Some(name) => names::spelled(name, mangled.into()).into_owned(),
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

/// Makes the flame graph of a sample profile: a frame is a function in its context, or an inlined function.
pub fn graph_of_samples(view: &SampleView<'_>, spelling: Spelling) -> FlameGraph {
    let mut builder = FlameBuilder::new();
    let mut shown: FxHashMap<NameId, String> = FxHashMap::default();
    for function in view.profile.functions() {
        let callers = function.callers.iter().map(|frame| frame.name);
        let base: Vec<NameId> = callers.chain([function.samples.name]).collect();
        let mut pending = vec![(base, &function.samples)];
        while let Some((stack, samples)) = pending.pop() {
            for &name in &stack {
                let fresh = || view.name(name, spelling).into_owned();
                shown.entry(name).or_insert_with(fresh);
            }
            let names = stack.iter().filter_map(|name| shown.get(name));
            let weight = self_samples(samples);
            if weight > 0 {
                builder.add(names.map(String::as_str), weight, Temperature::Warm);
            }
            for inlined in &samples.inlined {
                let mut stack = stack.clone();
                stack.push(inlined.samples.name);
                pending.push((stack, &inlined.samples));
            }
        }
    }
    builder.layout()
}
