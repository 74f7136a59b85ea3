//! The page of a heap profile.
use super::encode::{index, number};
use super::functions::Interner;
use super::{Allocating, Contexts, Flame, Page};
use profkit_analysis::heap::{ContextSum, HeapFrame};
use profkit_analysis::names;
use profkit_data::memprof::{Allocations, Field, Hotness, Thresholds};
use profkit_report::flame::{HeapWeight, graph_of_heap};
use profkit_report::heap::{HeapView, binary_note};
use profkit_report::{grouped, percent, plural};
use rustc_hash::FxHashMap;

/// The largest number of bars of an access histogram.
const MOST_BARS: usize = 64;

/// The largest number of contexts on a page. The flame graph has all contexts.
const MOST_CONTEXTS: usize = 200_000;

impl Page {
    /// Makes the page of a heap profile.
    pub fn of_heap(view: &HeapView<'_>, thresholds: &Thresholds) -> Self {
        let mut page = Page::new(view.path, view.describe());
        page.kind = "heap";
        page.unit = "bytes";
        page.fact("Size", plural(view.size, "byte"));
        page.add_heap(view, thresholds);
        page.total = page.flame.as_ref().map_or(0, |flame| flame.graph.total());
        page
    }

    /// Adds a heap profile to the page of the instrumentation profile in the same file.
    pub fn add_heap(&mut self, view: &HeapView<'_>, thresholds: &Thresholds) {
        let (page, heap) = (self, view.heap);
        let mut contexts = heap.profile.contexts();
        contexts.sort_by_key(|context| std::cmp::Reverse(context.block.get(Field::TotalSize)));
        let all = ContextSum::of(&contexts);
        page.fact("Contexts", grouped(all.contexts));
        page.fact("Allocations", grouped(all.allocations));
        page.fact("Bytes allocated", grouped(all.bytes));
        for (hotness, title) in [
            (Hotness::Hot, "Hot memory"),
            (Hotness::Warm, "Warm memory"),
            (Hotness::Cold, "Cold memory"),
        ] {
            let of_kind =
                |context: &&Allocations| thresholds.hotness(&context.block, true) == hotness;
            let sum = ContextSum::of(contexts.iter().filter(of_kind));
            page.fact(
                title,
                format_args!(
                    "{} ({}), {}",
                    plural(sum.bytes, "byte"),
                    percent(sum.bytes.into(), all.bytes.into()),
                    plural(sum.contexts, "context")
                ),
            );
        }
        page.notes.extend(view.notes.iter().cloned());
        let graph = graph_of_heap(heap, HeapWeight::Bytes, thresholds, false);
        page.flame = (graph.total() > 0).then_some(Flame {
            graph,
            title: "Heap by call stack",
            unit: "bytes",
            by_temperature: true,
            note: "A function stands below its callers; its width is the number of bytes allocated in it and in what it called. Orange is memory that is accessed often, blue is memory that is rarely accessed and lives long.",
        });
        page.allocating = allocating(view, &contexts);
        if contexts.len() > MOST_CONTEXTS {
            page.left_out.push(format!(
                "the {} contexts with the fewest bytes (they are in the flame graph)",
                grouped(contexts.len() - MOST_CONTEXTS)
            ));
        }
        page.contexts = Some(listed(
            view,
            contexts.get(..MOST_CONTEXTS).unwrap_or(&contexts),
            thresholds,
        ));
        page.damage(&heap.damage);
    }
}

/// Adds up contexts by the function that allocates.
fn allocating(view: &HeapView<'_>, contexts: &[Allocations]) -> Vec<Allocating> {
    let mut sums: FxHashMap<String, Allocating> = FxHashMap::default();
    for context in contexts {
        let site = view.heap.site(context.stack, view.whole_stacks);
        let Some(frame) = view.heap.frames(context.stack).nth(site) else {
            continue;
        };
        let sum = sums.entry(name(&frame)).or_default();
        let field = |field| context.block.get(field);
        sum.bytes = sum.bytes.saturating_add(field(Field::TotalSize));
        sum.allocations = sum.allocations.saturating_add(field(Field::AllocCount));
    }
    let sums = sums.into_iter();
    let mut list: Vec<_> = sums
        .map(|(function, sum)| Allocating { function, ..sum })
        .collect();
    list.sort_unstable_by(|one, other| {
        let by_bytes = other.bytes.cmp(&one.bytes);
        by_bytes.then_with(|| one.function.cmp(&other.function))
    });
    list
}

fn name(frame: &HeapFrame<'_>) -> String {
    match frame.name {
        Some(name) => names::display(name).into_owned(),
        None => format!("{:#018x}", frame.frame.function),
    }
}

/// Encodes contexts with their call stacks.
fn listed(view: &HeapView<'_>, contexts: &[Allocations], thresholds: &Thresholds) -> Contexts {
    let histograms = view.heap.profile.histograms();
    let mut names = Interner::default();
    let mut bytes = Vec::new();
    for context in contexts {
        let field = |field| context.block.get(field);
        let count = field(Field::AllocCount).max(1);
        number(field(Field::TotalSize).into(), &mut bytes);
        number(field(Field::AllocCount).into(), &mut bytes);
        number((field(Field::TotalLifetime) / count).into(), &mut bytes);
        // 0 stands for a density that is not known.
        let density = context.block.known(Field::TotalLifetimeAccessDensity);
        let density = density.map_or(0, |density| u128::from(density / count) + 1);
        number(density, &mut bytes);
        index(
            match thresholds.hotness(&context.block, true) {
                Hotness::Cold => 1,
                Hotness::Warm => 2,
                Hotness::Hot => 3,
            },
            &mut bytes,
        );
        index(view.heap.site(context.stack, view.whole_stacks), &mut bytes);
        let frames: Vec<_> = view.heap.frames(context.stack).collect();
        index(frames.len(), &mut bytes);
        for frame in frames {
            index(names.number(&text(&frame)) - 1, &mut bytes);
        }
        let histogram = histograms.get(&context.stack);
        let histogram = histogram.map_or(&[][..], Vec::as_slice);
        let width = histogram.len().div_ceil(MOST_BARS).max(1);
        index(8 * width, &mut bytes);
        index(histogram.chunks(width).len(), &mut bytes);
        for part in histogram.chunks(width) {
            number(
                part.iter().map(|&accesses| u128::from(accesses)).sum(),
                &mut bytes,
            );
        }
    }
    Contexts {
        count: contexts.len(),
        bytes,
        names: names.block(),
    }
}

/// Returns a frame as text: the function, and the line in the source file or relative to the function's beginning.
fn text(frame: &HeapFrame<'_>) -> String {
    let name = name(frame);
    match frame.location {
        Some(place) => format!("{name}  {}:{}", names::printable(&place.file), place.line),
        None => match frame.binary {
            Some(binary) => match binary_note(binary, frame.name) {
                Some(note) => format!("{name}  {note}"),
                None => name,
            },
            None => format!(
                "{name}  +{}:{}",
                frame.frame.line_offset, frame.frame.column
            ),
        },
    }
}
