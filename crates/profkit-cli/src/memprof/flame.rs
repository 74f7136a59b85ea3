//! Heap profiles as folded stacks, and as flame graphs.
use super::heap::Heap;
use clap::ValueEnum;
use profkit_data::memprof::{Allocations, Field, MemInfoBlock};
use rustc_hash::FxHashMap;
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

impl Weight {
    /// The weight of a context, of a call stack's sum.
    fn of(self, block: &MemInfoBlock) -> u64 {
        match self {
            Weight::Bytes => block.get(Field::TotalSize),
            Weight::Allocations => block.get(Field::AllocCount),
            Weight::Accesses => block.get(Field::TotalAccessCount),
            Weight::ByteLifetime => {
                let product = u128::from(block.get(Field::TotalSize))
                    * u128::from(block.get(Field::TotalLifetime))
                    / u128::from(block.get(Field::AllocCount).max(1));
                u64::try_from(product).unwrap_or(u64::MAX)
            }
        }
    }

    /// The field without which there is no such weight.
    pub fn field(self) -> Field {
        match self {
            Weight::Bytes => Field::TotalSize,
            Weight::Allocations => Field::AllocCount,
            Weight::Accesses => Field::TotalAccessCount,
            Weight::ByteLifetime => Field::TotalLifetime,
        }
    }
}

/// Names of frames are cut here: a graph has no room for more, and a hostile name stands in many frames.
const MOST_NAME: usize = 1024;

/// A function's name as folded stacks can hold it. Readers of folded stacks take `;` for the end of a name, numbers at
/// the end of a line for weights, `# ` at its beginning for a comment, and trim white space; XML has no U+FFFE and U+FFFF.
fn frame_name(name: &str) -> String {
    let mut name: String = name
        .trim()
        .chars()
        .map(|one| match one {
            ';' => ',',
            '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
            one => one,
        })
        .collect();
    if name.len() > MOST_NAME {
        let end = (0..=MOST_NAME)
            .rev()
            .find(|&end| name.is_char_boundary(end));
        name.truncate(end.unwrap_or(0));
        name.push('…');
    }
    if name.starts_with("# ") {
        name.replace_range(1..2, "_");
    }
    let last = name.rfind(' ');
    if let Some(space) = last
        && name
            .chars()
            .rev()
            .take_while(|&one| one != ' ')
            .all(|one| one.is_ascii_digit() || one == '.')
    {
        name.replace_range(space..=space, "_");
    }
    name
}

/// A stack as text, and its weight.
struct Folded<'a> {
    heap: &'a Heap,
    mangled: bool,
    names: FxHashMap<u64, String>,
}

impl<'a> Folded<'a> {
    fn new(heap: &'a Heap, mangled: bool) -> Self {
        Folded {
            heap,
            mangled,
            names: FxHashMap::default(),
        }
    }

    /// Appends the names of a stack, the outermost function first.
    fn append(&mut self, context: &Allocations, line: &mut String) {
        let mut separator = "";
        for frame in self.heap.heap.profile.stack(context.stack).rev() {
            line.push_str(separator);
            separator = ";";
            let name = self
                .names
                .entry(frame.function)
                .or_insert_with(|| frame_name(&self.heap.name(frame.function, self.mangled)));
            line.push_str(name);
        }
    }
}

/// Prints folded stacks: a line a call stack, with all its contexts.
///
/// # Errors
/// If they cannot be printed.
pub fn print_folded(
    heap: &Heap,
    weight: Weight,
    mangled: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut folded = Folded::new(heap, mangled);
    let mut line = String::new();
    for context in heap.heap.profile.allocations_by_stack() {
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
    use super::{Folded, Weight};
    use crate::memprof::heap::{Heap, to_f64};
    use inferno::flamegraph::color::{BasicPalette, Color, PaletteMap, StrokeColor};
    use inferno::flamegraph::{Options, Palette, TextTruncateDirection, from_lines};
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
            let (cold, hot) = match self.all > 0.0 {
                true => (self.cold / self.all, self.hot / self.all),
                false => (0.0, 0.0),
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
        heap: &Heap,
        weight: Weight,
        thresholds: &Thresholds,
        mangled: bool,
        title: &str,
    ) -> io::Result<Vec<u8>> {
        let contexts = heap.heap.profile.allocations_by_stack();
        let sum: u128 = contexts
            .iter()
            .map(|context| u128::from(weight.of(&context.block)))
            .sum();
        if sum == 0 {
            return Err(io::Error::other(format!(
                "its {} add up to 0: there is nothing to draw",
                weight.unit()
            )));
        }
        let mut divisor: u64 = 1;
        while sum / u128::from(divisor) > MOST_SUM {
            divisor *= 1000;
        }
        let mut folded = Folded::new(heap, mangled);
        let mut lines = Vec::with_capacity(contexts.len());
        let mut kinds: FxHashMap<u64, Kinds> = FxHashMap::default();
        for context in &contexts {
            let own = weight.of(&context.block) / divisor;
            let mut line = String::new();
            folded.append(context, &mut line);
            lines.push(format!("{line} {own}"));
            let hotness = thresholds.hotness(&context.block, true);
            for frame in heap.heap.profile.stack(context.stack) {
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
            if let Some(name) = folded.names.get(function) {
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
        options.title = super::frame_name(title);
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
            (_, 1) => weight.unit().to_owned(),
            _ => format!("× {divisor} {}", weight.unit()),
        };
        let mut svg = Vec::new();
        from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
        Ok(svg)
    }

    impl Weight {
        /// What the weight counts.
        pub fn unit(self) -> &'static str {
            match self {
                Weight::Bytes => "bytes",
                Weight::Allocations => "allocations",
                Weight::Accesses => "accesses",
                Weight::ByteLifetime => "byte milliseconds",
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::frame_name;

    #[test]
    fn names_cannot_be_taken_for_anything_else_in_a_folded_stack() {
        for (name, shown) in [
            ("foo(int, char*)", "foo(int, char*)"),
            ("a.c;b", "a.c,b"),
            ("f 7", "f_7"),
            ("operator new 1.5", "operator new_1.5"),
            ("f 7x", "f 7x"),
            (" padded ", "padded"),
            ("# comment", "#_comment"),
            ("a\u{fffe}b\u{ffff}", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(frame_name(name), shown);
        }
        assert_eq!(
            frame_name(&"é".repeat(2000)),
            format!("{}…", "é".repeat(512))
        );
    }
}
