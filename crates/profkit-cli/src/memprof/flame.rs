//! Heap profiles as folded stacks, and as flame graphs.
use clap::ValueEnum;
use profkit_analysis::heap::{FoldedStacks, HeapProfile, HeapWeight};
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

#[cfg(feature = "flamegraph")]
pub use graph::flame_graph;

#[cfg(feature = "flamegraph")]
mod graph {
    use super::unit;
    use inferno::flamegraph::color::{BasicPalette, Color, PaletteMap, StrokeColor};
    use inferno::flamegraph::{Options, Palette, TextTruncateDirection, from_lines};
    use profkit_analysis::heap::{FlameFunction, FlameStacks, HeapProfile, HeapWeight, frame_name};
    use profkit_data::memprof::Thresholds;
    use std::io;

    /// Blue for cold, red for hot, a sandy colour for what is between.
    fn color(function: &FlameFunction) -> Color {
        const WARM: [f64; 3] = [240.0, 200.0, 110.0];
        const COLD: [f64; 3] = [110.0, 165.0, 235.0];
        const HOT: [f64; 3] = [235.0, 95.0, 75.0];
        let (cold, hot) = (function.cold, function.hot);
        let mut parts = WARM
            .into_iter()
            .zip(COLD)
            .zip(HOT)
            .map(|((warm, cold_part), hot_part)| {
                let mixed = warm * (1.0 - cold - hot) + cold_part * cold + hot_part * hot;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a mean of numbers below 256"
                )]
                let part = mixed.clamp(0.0, 255.0) as u8;
                part
            });
        let mut next = || parts.next().unwrap_or(0);
        Color {
            r: next(),
            g: next(),
            b: next(),
        }
    }

    /// Draws a flame graph as SVG. The colour of a function comes from the weight of the cold and hot contexts that it
    /// leads to.
    ///
    /// # Errors
    /// If there is nothing to draw.
    pub fn flame_graph(
        heap: &HeapProfile,
        weight: HeapWeight,
        thresholds: &Thresholds,
        mangled: bool,
        title: &str,
    ) -> io::Result<Vec<u8>> {
        let Some(stacks) = FlameStacks::new(heap, weight, thresholds, mangled) else {
            return Err(io::Error::other(format!(
                "its {} add up to 0: there is nothing to draw",
                unit(weight)
            )));
        };
        let mut colors = PaletteMap::default();
        colors.insert(
            "",
            Color {
                r: 225,
                g: 225,
                b: 225,
            },
        );
        for function in &stacks.functions {
            colors.insert(function.name.as_str(), color(function));
        }
        let mut options = Options::default();
        options.title = frame_name(title);
        options.subtitle = Some(
            "blue: cold, sand: warm, red: hot; a function's colour is mixed from the contexts that it leads to"
                .to_owned(),
        );
        options.colors = Palette::Basic(BasicPalette::Mem);
        options.deterministic = true;
        // Two functions side by side may have the same colour.
        options.stroke_color = StrokeColor::Color(Color {
            r: 255,
            g: 255,
            b: 255,
        });
        options.palette_map = Some(&mut colors);
        options.text_truncate_direction = TextTruncateDirection::Right;
        options.count_name = match (weight, stacks.divisor) {
            (_, 1) => unit(weight).to_owned(),
            (_, divisor) => format!("× {divisor} {}", unit(weight)),
        };
        let mut svg = Vec::new();
        from_lines(
            &mut options,
            stacks.lines.iter().map(String::as_str),
            &mut svg,
        )?;
        Ok(svg)
    }
}

/// The name of a weight's unit.
#[cfg(feature = "flamegraph")]
pub fn unit(weight: HeapWeight) -> &'static str {
    match weight {
        HeapWeight::Bytes => "bytes",
        HeapWeight::Allocations => "allocations",
        HeapWeight::Accesses => "accesses",
        HeapWeight::ByteLifetime => "byte milliseconds",
    }
}
