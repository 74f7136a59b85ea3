//! The overview of a heap profile: how much was allocated, what is cold and hot, and the largest contexts.
use super::{HeapView, JsonFrame, hotness_name, hotness_style};
use crate::document::write_json;
use crate::rows::{group_word, number};
use crate::show::json::{SCHEMA_VERSION, error as json_error, without_nulls};
use crate::show::text::{GroupTitles, add_groups, read_by, temperatures};
use crate::{
    Answer, Cell, Document, Grouping, RowForm, Rows, Style, Table, grouped, percent, plural, size,
    tenths,
};
use profkit_analysis::heap::{
    ContextOrder, ContextSum, LocationSizes, access_density, average, top_contexts,
};
use profkit_analysis::names;
use profkit_analysis::ranking::{FunctionOrder, Group, GroupBy, Groups};
use profkit_data::ids::NameRef;
use profkit_data::memprof::{Allocations, Field, Hotness, StackId, Thresholds};
use profkit_data::share;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};

/// A heap profile, and the options for showing it.
#[derive(Clone, Copy, Debug)]
pub struct HeapShow<'a> {
    /// The profile and its file.
    pub view: HeapView<'a>,
    /// The contexts of the profile.
    pub contexts: &'a [Allocations],
    /// The limits that decide which contexts are cold or hot.
    pub thresholds: Thresholds,
    /// The order of the contexts.
    pub order: ContextOrder,
    /// The largest number of contexts, groups or rows to show. `None` if the user did not ask for a number.
    pub most: Option<usize>,
    /// What the contexts are grouped by; `None` if they are not grouped.
    pub by: Option<Grouping<'a>>,
}

/// The access histograms of call stacks.
type Histograms = FxHashMap<StackId, Vec<u64>>;

const MOST_CONTEXTS: usize = 10;

/// The largest number of parts in which text shows an access histogram.
const MOST_PARTS: usize = 16;

const CONTEXT_TITLES: GroupTitles = ["Contexts", "contexts", "allocations", "bytes"];

const COLUMNS: [&str; 8] = [
    "heat",
    "bytes",
    "allocations",
    "average_lifetime_ms",
    "accesses",
    "lifetime_access_density",
    "function",
    "stack",
];

impl HeapShow<'_> {
    fn hotness(&self, context: &Allocations) -> Hotness {
        self.thresholds.hotness(&context.block, true)
    }

    fn sum(&self, kind: Hotness) -> ContextSum {
        let contexts = self.contexts.iter();
        ContextSum::of(contexts.filter(|context| self.hotness(context) == kind))
    }

    fn top(&self) -> Vec<&Allocations> {
        top_contexts(
            self.contexts,
            self.order,
            self.most.unwrap_or(MOST_CONTEXTS),
        )
    }

    /// Groups the contexts by the function that allocates: numbers of contexts and allocations, and bytes.
    fn groups(&self, by: Grouping<'_>) -> Vec<Group> {
        let mut groups = Groups::default();
        for context in self.contexts {
            let heap = self.view.heap;
            let site = heap.site(context.stack, self.view.whole_stacks);
            let site = heap.frames(context.stack).nth(site);
            let name = site.and_then(|site| match (by.by, site.location) {
                (GroupBy::File, Some(place)) => Some(names::printable(&place.file).into_owned()),
                (GroupBy::File, None) if site.binary.is_some() => site
                    .binary
                    .map(|binary| names::printable(binary.as_bytes()).into_owned()),
                _ => match site.name {
                    Some(name) => by.of(name),
                    None => by.of_hash(NameRef(site.frame.function)),
                },
            });
            let field = |field| context.block.get(field);
            let bytes = field(Field::TotalSize).into();
            groups.add(name, 1, field(Field::AllocCount), bytes);
        }
        groups.into_sorted(FunctionOrder::Sum)
    }

    fn add_top(&self, document: &mut Document, top: &[&Allocations], all: ContextSum) {
        let by = match self.order {
            ContextOrder::Bytes => "with the most bytes",
            ContextOrder::Allocations => "with the most allocations",
            ContextOrder::ShortLife => "with the shortest lifetimes",
            ContextOrder::Cold => "with the fewest accesses",
        };
        let count = plural(top.len() as u64, "context");
        document.section(format_args!("Top {count} {by}"));
        let columns = [
            ">bytes",
            ">share",
            ">together?",
            ">allocations",
            "<?",
            "<",
            "<allocated in",
        ];
        let mut table = Table::new(columns);
        let bytes = |context: &Allocations| context.block.get(Field::TotalSize);
        let largest = top.iter().map(|context| bytes(context)).max().unwrap_or(0);
        let mut together = 0;
        for context in top {
            let own = bytes(context);
            together += u128::from(own);
            let hotness = self.hotness(context);
            let site = self.view.site(context.stack);
            table.row([
                own.into(),
                percent(own.into(), all.bytes.into()).into(),
                percent(together, all.bytes.into()).into(),
                context.block.get(Field::AllocCount).into(),
                Cell::bar(Style::Bar, own, largest),
                Cell::styled(hotness_style(hotness), hotness_name(hotness)),
                site.into(),
            ]);
        }
        document.table(table);
        document.section("Call stacks");
        let histograms = self.view.heap.profile.histograms();
        for (number, context) in (1..).zip(top) {
            let hotness = self.hotness(context);
            let density = match access_density(&context.block) {
                Some(density) => tenths(density),
                None => "unknown".to_owned(),
            };
            let numbers = format!(
                "{number:>4}. {} in {}, life {:.0} ms, {density} accesses per byte and second, ",
                plural(context.block.get(Field::TotalSize), "byte"),
                plural(context.block.get(Field::AllocCount), "allocation"),
                average(&context.block, Field::TotalLifetime),
            );
            let kind = Cell::styled(hotness_style(hotness), hotness_name(hotness));
            document.pieces([numbers.into(), kind]);
            self.view.add_stack(context.stack, document);
            if let Some(histogram) = histograms.get(&context.stack) {
                document.line(format_args!(
                    "        accesses by offset: {}",
                    in_short(histogram)
                ));
            }
        }
    }

    fn json_context(&self, context: &Allocations, histograms: &Histograms) -> JsonContext {
        let block = &context.block;
        JsonContext {
            heat: hotness_name(self.hotness(context)),
            fields: block
                .fields()
                .map(|field| (field.name(), block.get(field)))
                .collect(),
            average_lifetime_ms: average(block, Field::TotalLifetime),
            lifetime_access_density: access_density(block),
            histogram: histograms.get(&context.stack).cloned(),
            stack: self.view.json_stack(context.stack),
        }
    }
}

impl Answer for HeapShow<'_> {
    fn document(&self) -> Document {
        let all = ContextSum::of(self.contexts);
        let mut document = Document::default();
        document.title(self.view.path, self.view.describe());
        document.fact("size", format_args!("{} bytes", grouped(self.view.size)));
        if let Some(readers) = self.view.heap.readers() {
            document.fact("read by", read_by(&readers));
        }
        for note in self.view.notes {
            document.line(format_args!("note: {note}"));
        }
        let unknown = |context: &&Allocations| {
            let block = &context.block;
            block.has(Field::TotalAccessCount) && !block.has(Field::TotalLifetimeAccessDensity)
        };
        let unknown = self.contexts.iter().filter(unknown).count();
        if unknown > 0 {
            document.line(format_args!(
                "note: the access density of {} is not known, because LLVM 14 and 15 do not record it: it is counted as warm",
                plural(unknown as u64, "context")
            ));
        }
        if let Some(by) = self.by {
            let groups = self.groups(by);
            let most = self.most.unwrap_or(groups.len()).min(groups.len());
            let shown = groups.get(..most).unwrap_or_default();
            add_groups(&mut document, &CONTEXT_TITLES, shown, by, all.bytes.into());
            return document;
        }
        document.section("Summary");
        let per_allocation = all.bytes.checked_div(all.allocations);
        let per_allocation = per_allocation.map(|bytes| format!("{} per allocation", size(bytes)));
        let mut rows = vec![
            ("contexts", all.contexts, String::new()),
            ("allocations", all.allocations, String::new()),
            ("bytes", all.bytes, per_allocation.unwrap_or_default()),
        ];
        if let Some(data) = &self.view.heap.profile.data_access {
            let cold = grouped(data.cold_symbols.len() + data.cold_hashes.len());
            let variables = data.records.len() as u64;
            rows.push((
                "global variables",
                variables,
                format!("sampled; {cold} cold"),
            ));
        }
        document.facts(rows);
        document.section("Hot and cold memory");
        let sums = [Hotness::Hot, Hotness::Warm, Hotness::Cold].map(|kind| self.sum(kind));
        let contexts = sums.map(|sum| plural(sum.contexts, "context"));
        let bytes = sums.map(|sum| {
            let share = percent(sum.bytes.into(), all.bytes.into());
            format!("{} ({share})", plural(sum.bytes, "byte"))
        });
        document.facts(temperatures(contexts, bytes));
        let top = self.top();
        if !top.is_empty() {
            self.add_top(&mut document, &top, all);
        }
        document
    }

    fn rows(&self, form: RowForm) -> Rows<'_> {
        let most = self.most.unwrap_or(usize::MAX);
        if let Some(by) = self.by {
            let all = ContextSum::of(self.contexts).bytes.into();
            let groups = self.groups(by).into_iter().take(most);
            let rows = groups.map(move |group| heap_group(&group, all));
            return Rows::new(&GROUP_COLUMNS_OF_HEAP, rows);
        }
        let contexts = top_contexts(self.contexts, self.order, most).into_iter();
        let histograms = self.view.heap.profile.histograms();
        let rows = contexts.map(move |context| {
            let mut row = json!(self.json_context(context, &histograms));
            if form == RowForm::Csv {
                let names = self.view.names(context.stack);
                row["bytes"] = context.block.get(Field::TotalSize).into();
                row["accesses"] = context.block.known(Field::TotalAccessCount).into();
                row["allocations"] = context.block.get(Field::AllocCount).into();
                row["function"] = self.view.site(context.stack).into();
                row["stack"] = names.join(" < ").into();
            }
            row
        });
        Rows::new(&COLUMNS, rows)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let histograms = self.view.heap.profile.histograms();
        let contexts = self
            .top()
            .into_iter()
            .map(|context| self.json_context(context, &histograms));
        let damage = &self.view.heap.damage;
        let report = JsonReport {
            schema: "profkit-show",
            schema_version: SCHEMA_VERSION,
            file: JsonFile {
                path: self.view.path,
                size: self.view.size,
                kind: "heap",
                form: self.view.heap.form.to_string(),
                version: self.view.heap.version,
                indexed_version: self.view.heap.indexed_version,
            },
            notes: self.view.notes,
            total: ContextSum::of(self.contexts),
            cold: self.sum(Hotness::Cold),
            warm: self.sum(Hotness::Warm),
            hot: self.sum(Hotness::Hot),
            locations: self.view.heap.location_sizes(),
            by: self.by.map(|by| group_word(by.by)),
            groups: self.by.map(|by| {
                let all = ContextSum::of(self.contexts).bytes.into();
                let groups = self.groups(by);
                groups.iter().map(|group| heap_group(group, all)).collect()
            }),
            contexts: contexts.collect(),
            errors: damage.first.iter().map(json_error).collect(),
            error_count: damage.count,
        };
        write_json(out, &report)
    }
}

const GROUP_COLUMNS_OF_HEAP: [&str; 5] = ["group", "contexts", "allocations", "bytes", "share"];

/// A group of contexts as JSON. `total` is the number of bytes of all contexts.
fn heap_group(group: &Group, total: u128) -> Value {
    without_nulls(json!({
        "group": group.name,
        "contexts": group.functions,
        "allocations": group.entered,
        "bytes": number(group.sum),
        "share": share(group.sum, total),
    }))
}

/// An access histogram in one line: at most [`MOST_PARTS`] sums, each over equally many elements, and the number of
/// bytes for each.
fn in_short(histogram: &[u64]) -> String {
    let width = histogram.len().div_ceil(MOST_PARTS).max(1);
    let parts = histogram.chunks(width).map(|part| {
        let sum = part.iter().fold(0u64, |sum, &n| sum.saturating_add(n));
        grouped(sum)
    });
    let parts = parts.collect::<Vec<_>>().join(" ");
    match width {
        1 => parts,
        _ => format!("{parts} (each of {} bytes)", grouped(8 * width)),
    }
}

#[derive(Serialize)]
struct JsonReport<'a> {
    schema: &'static str,
    schema_version: u32,
    file: JsonFile<'a>,
    notes: &'a [String],
    total: ContextSum,
    cold: ContextSum,
    warm: ContextSum,
    hot: ContextSum,
    #[serde(skip_serializing_if = "Option::is_none")]
    locations: Option<LocationSizes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<Value>>,
    contexts: Vec<JsonContext>,
    errors: Vec<serde_json::Value>,
    error_count: u64,
}

#[derive(Serialize)]
struct JsonFile<'a> {
    path: &'a str,
    size: u64,
    kind: &'static str,
    form: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed_version: Option<u32>,
}

#[derive(Serialize)]
struct JsonContext {
    heat: &'static str,
    fields: std::collections::BTreeMap<&'static str, u64>,
    average_lifetime_ms: f64,
    /// `None` if it is not known.
    lifetime_access_density: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Vec<u64>>,
    stack: Vec<JsonFrame>,
}
