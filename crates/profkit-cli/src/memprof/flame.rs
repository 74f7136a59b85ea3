//! Heap profiles as folded stacks, and as flame graphs.
use clap::ValueEnum;
use profkit_analysis::heap::{FoldedStacks, HeapProfile, HeapWeight};
use std::io::{self, Write};

/// What stacks are weighed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Weight {
    /// Bytes allocated
    #[default]
    Bytes,
    /// Allocations
    Allocations,
    /// Accesses
    Accesses,
    /// Bytes times average life in milliseconds
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

/// Prints folded stacks: one line per call stack, with all its contexts.
///
/// # Errors
/// If they cannot be printed.
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
    use crate::memprof::heap::to_f64;
    use inferno::flamegraph::color::{BasicPalette, Color, PaletteMap, StrokeColor};
    use inferno::flamegraph::{Options, Palette, TextTruncateDirection, from_lines};
    use profkit_analysis::heap::{FoldedStacks, HeapProfile, HeapWeight, frame_name};
    use profkit_data::memprof::{Hotness, Thresholds};
    use rustc_hash::FxHashMap;
    use std::io;

    /// Sums above this are shown in larger units: the graph is laid out in 64 bits.
    const MOST_SUM: u128 = u64::MAX as u128 / 2;

    /// The weights of a function's contexts by kind.
    #[derive(Default)]
    struct Kinds {
        cold: f64,
        hot: f64,
        all: f64,
    }

    impl Kinds {
        /// Blue for cold, red for hot, a sandy colour between.
        fn color(&self) -> Color {
            const WARM: [f64; 3] = [240.0, 200.0, 110.0];
            const COLD: [f64; 3] = [110.0, 165.0, 235.0];
            const HOT: [f64; 3] = [235.0, 95.0, 75.0];
            let (cold, hot) = if self.all > 0.0 {
                (self.cold / self.all, self.hot / self.all)
            } else {
                (0.0, 0.0)
            };
            let mut parts =
                WARM.into_iter()
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
    }

    /// Draws a flame graph as SVG. Functions are coloured by the weight of cold and hot contexts below them.
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
        let contexts = heap.profile.allocations_by_stack();
        let sum: u128 = contexts
            .iter()
            .map(|context| u128::from(weight.of(&context.block)))
            .sum();
        if sum == 0 {
            return Err(io::Error::other(format!(
                "its {} add up to 0: there is nothing to draw",
                unit(weight)
            )));
        }
        let mut divisor: u64 = 1;
        while sum / u128::from(divisor) > MOST_SUM {
            divisor *= 1000;
        }
        let mut folded = FoldedStacks::new(heap, mangled);
        let mut lines = Vec::with_capacity(contexts.len());
        let mut kinds: FxHashMap<u64, Kinds> = FxHashMap::default();
        for context in &contexts {
            let own = weight.of(&context.block) / divisor;
            let mut line = String::new();
            folded.append(context, &mut line);
            lines.push(format!("{line} {own}"));
            let hotness = thresholds.hotness(&context.block, true);
            for frame in heap.profile.stack(context.stack) {
                let kinds = kinds.entry(frame.function).or_default();
                kinds.all += to_f64(own);
                match hotness {
                    Hotness::Cold => kinds.cold += to_f64(own),
                    Hotness::Hot => kinds.hot += to_f64(own),
                    Hotness::Warm => {}
                }
            }
        }
        // Functions that are called alike share a colour.
        let mut by_name: FxHashMap<&str, Kinds> = FxHashMap::default();
        for (function, own) in &kinds {
            if let Some(name) = folded.name(*function) {
                let sum = by_name.entry(name).or_default();
                sum.cold += own.cold;
                sum.hot += own.hot;
                sum.all += own.all;
            }
        }
        let mut colors = PaletteMap::default();
        colors.insert(
            "",
            Color {
                r: 225,
                g: 225,
                b: 225,
            },
        );
        for (name, kinds) in by_name {
            colors.insert(name, kinds.color());
        }
        let mut options = Options::default();
        options.title = frame_name(title);
        options.subtitle = Some(
            "blue: cold, sand: warm, red: hot, mixed as the contexts below a function are"
                .to_owned(),
        );
        options.colors = Palette::Basic(BasicPalette::Mem);
        options.deterministic = true;
        // Neighbours may have one colour.
        options.stroke_color = StrokeColor::Color(Color {
            r: 255,
            g: 255,
            b: 255,
        });
        options.palette_map = Some(&mut colors);
        options.text_truncate_direction = TextTruncateDirection::Right;
        options.count_name = match (weight, divisor) {
            (_, 1) => unit(weight).to_owned(),
            _ => format!("× {divisor} {}", unit(weight)),
        };
        let mut svg = Vec::new();
        from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
        Ok(svg)
    }
}

/// What a weight counts.
#[cfg(feature = "flamegraph")]
pub fn unit(weight: HeapWeight) -> &'static str {
    match weight {
        HeapWeight::Bytes => "bytes",
        HeapWeight::Allocations => "allocations",
        HeapWeight::Accesses => "accesses",
        HeapWeight::ByteLifetime => "byte milliseconds",
    }
}
