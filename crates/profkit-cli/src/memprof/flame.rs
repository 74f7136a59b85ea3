//! Heap profiles as folded stacks, and as flame graphs.

use clap::ValueEnum;
use profkit_analysis::heap::{FoldedStacks, HeapProfile, HeapWeight, flame_graph};
use profkit_data::memprof::Thresholds;
use profkit_report::flame_svg::{self, Labels};
use std::io::{self, Write};

/// The weight of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Weight {
    /// Bytes allocated
    #[default]
    Bytes,
    /// Number of allocations
    Allocations,
    /// Number of accesses
    Accesses,
    /// Bytes times average lifetime in milliseconds
    ByteLifetime,
}

impl From<Weight> for HeapWeight {
    fn from(weight: Weight) -> Self {
        match weight {
            Weight::Bytes => HeapWeight::Bytes,
            Weight::Allocations => HeapWeight::Allocations,
            Weight::Accesses => HeapWeight::Accesses,
            Weight::ByteLifetime => HeapWeight::ByteLifetime,
        }
    }
}

/// Prints folded stacks: one line per call stack, which sums up all contexts with this stack.
///
/// # Errors
/// If printing fails.
pub fn print_folded(
    heap: &HeapProfile,
    weight: HeapWeight,
    mangled: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut folded = FoldedStacks::new(heap, mangled);
    let mut line = String::new();
    for context in heap.profile.allocations_by_stack() {
        line.clear();
        folded.append(&context, &mut line);
        writeln!(out, "{line} {}", weight.of(&context.block))?;
    }
    Ok(())
}

/// Draws a flame graph as SVG. Frames are coloured by the weight of cold and hot contexts below them. `None` if all
/// weights are 0: there is nothing to draw.
pub fn draw(
    heap: &HeapProfile,
    weight: HeapWeight,
    thresholds: &Thresholds,
    mangled: bool,
    title: &str,
) -> Option<String> {
    let graph = flame_graph(heap, weight, thresholds, mangled);
    let labels = Labels {
        title,
        subtitle: "Blue is cold, sand is warm, red is hot. The colour of a function is a mix of the colours of the contexts below it. Hover over a function for its numbers.",
        unit: unit(weight),
        by_temperature: true,
    };
    (graph.total() > 0).then(|| flame_svg::draw(&graph, &labels))
}

/// Returns the unit of a weight, in the plural: `bytes`.
pub fn unit(weight: HeapWeight) -> &'static str {
    match weight {
        HeapWeight::Bytes => "bytes",
        HeapWeight::Allocations => "allocations",
        HeapWeight::Accesses => "accesses",
        HeapWeight::ByteLifetime => "byte milliseconds",
    }
}
