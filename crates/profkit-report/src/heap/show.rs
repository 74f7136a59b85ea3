//! The overview of a heap profile: how much was allocated, what is cold and hot, and the largest contexts.
use super::{HeapView, JsonFrame, JsonSum, hotness_name, hotness_style};
use crate::rows::{RowForm, RowWriter, group_word, number};
use crate::show::json::{SCHEMA_VERSION, error as json_error};
use crate::show::text::{GroupTitles, facts, groups_table, read_by};
use crate::{
    Cell, Column, Console, Grouping, Style, Table, grouped, percent, plural, size, tenths,
};
use profkit_analysis::heap::{
    ContextOrder, ContextSum, LocationSizes, access_density, average, top_contexts,
};
use profkit_analysis::names;
use profkit_analysis::ranking::{FunctionOrder, Group, GroupBy, Groups};
use profkit_data::ids::NameRef;
use profkit_data::memprof::{Allocations, Field, Hotness, Thresholds};
use profkit_data::share;
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

/// The number of contexts that are shown if no other number is asked for.
const MOST_CONTEXTS: usize = 10;

const CONTEXT_TITLES: GroupTitles = ["Contexts", "contexts", "allocations", "bytes"];

/// The columns of contexts.
const COLUMNS: [&str; 7] = [
    "kind",
    "bytes",
    "allocations",
    "average_lifetime_ms",
    "lifetime_access_density",
    "function",
    "stack",
];

const KINDS: [Hotness; 3] = [Hotness::Hot, Hotness::Warm, Hotness::Cold];

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

    /// Prints text for people.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn text<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let all = ContextSum::of(self.contexts);
        let none = String::new;
        out.title(self.view.path, self.view.describe())?;
        out.fact("size", format_args!("{} bytes", grouped(self.view.size)))?;
        if let Some(readers) = self.view.heap.readers() {
            out.fact("read by", read_by(&readers))?;
        }
        for note in self.view.notes {
            writeln!(out, "note: {note}")?;
        }
        if let Some(by) = self.by {
            let groups = self.groups(by);
            let most = self.most.unwrap_or(groups.len()).min(groups.len());
            let shown = groups.get(..most).unwrap_or_default();
            groups_table(&CONTEXT_TITLES, shown, by, all.bytes.into(), out)?;
            return out.flush();
        }
        writeln!(out)?;
        out.heading("Summary")?;
        let per_allocation = all.bytes.checked_div(all.allocations);
        let per_allocation = per_allocation.map(|bytes| format!("{} per allocation", size(bytes)));
        let mut rows = vec![
            ("contexts", grouped(all.contexts), none()),
            ("allocations", grouped(all.allocations), none()),
            (
                "bytes",
                grouped(all.bytes),
                per_allocation.unwrap_or_default(),
            ),
        ];
        if let Some(data) = &self.view.heap.profile.data_access {
            let cold = data.cold_symbols.len() + data.cold_hashes.len();
            rows.push((
                "global variables",
                grouped(data.records.len()),
                format!("sampled; {} cold", grouped(cold)),
            ));
        }
        facts(out, rows)?;
        writeln!(out)?;
        out.heading("Hot and cold memory")?;
        let rows = KINDS.map(|kind| {
            let sum = self.sum(kind);
            let name = Cell::styled(hotness_style(kind), hotness_name(kind));
            let share = percent(sum.bytes.into(), all.bytes.into());
            let bytes = format!("{} ({share})", plural(sum.bytes, "byte"));
            (name, plural(sum.contexts, "context"), bytes)
        });
        Table::of_facts(rows).print(out)?;
        let top = self.top();
        if top.is_empty() {
            return out.flush();
        }
        self.table(&top, all, out)?;
        writeln!(out)?;
        out.heading("Call stacks")?;
        for (number, context) in (1..).zip(top) {
            let hotness = self.hotness(context);
            write!(
                out,
                "{number:>4}. {} in {}, life {:.0} ms, {} accesses per byte and second, ",
                plural(context.block.get(Field::TotalSize), "byte"),
                plural(context.block.get(Field::AllocCount), "allocation"),
                average(&context.block, Field::TotalLifetime),
                tenths(access_density(&context.block)),
            )?;
            out.styled(hotness_style(hotness), hotness_name(hotness))?;
            writeln!(out)?;
            self.view.print_stack(context.stack, out)?;
        }
        out.flush()
    }

    /// Groups the contexts by the function that allocates. A group has the number of its contexts, the number of its
    /// contexts with allocations, and the number of bytes allocated.
    fn groups(&self, by: Grouping<'_>) -> Vec<Group> {
        let mut groups = Groups::default();
        for context in self.contexts {
            let site = self.view.heap.frames(context.stack).next();
            let name = site.and_then(|site| match (by.by, site.location) {
                (GroupBy::File, Some(place)) => Some(names::printable(&place.file).into_owned()),
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

    /// Prints the contexts, or the groups, as rows.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn rows<W: Write>(&self, form: RowForm, out: W) -> io::Result<()> {
        let most = self.most.unwrap_or(usize::MAX);
        if let Some(by) = self.by {
            let all = ContextSum::of(self.contexts);
            let mut rows = RowWriter::new(out, form, &GROUP_COLUMNS_OF_HEAP);
            for group in self.groups(by).iter().take(most) {
                rows.row(&heap_group(group, all.bytes.into()))?;
            }
            return rows.end();
        }
        let mut rows = RowWriter::new(out, form, &COLUMNS);
        for context in top_contexts(self.contexts, self.order, most) {
            let mut value = serde_json::to_value(self.json_context(context))?;
            if form == RowForm::Csv
                && let Some(members) = value.as_object_mut()
            {
                let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
                let frames: Vec<_> = self.view.heap.frames(context.stack).collect();
                let names = frames
                    .iter()
                    .map(|frame| self.view.name(frame.frame.function));
                let names: Vec<_> = names.collect();
                put("bytes", context.block.get(Field::TotalSize).into());
                put("allocations", context.block.get(Field::AllocCount).into());
                put("function", names.first().map(|name| name.as_ref()).into());
                put("stack", names.join(" < ").into());
            }
            rows.row(&value)?;
        }
        rows.end()
    }

    fn table<W: Write>(
        &self,
        top: &[&Allocations],
        all: ContextSum,
        out: &mut Console<W>,
    ) -> io::Result<()> {
        let by = match self.order {
            ContextOrder::Bytes => "with the most bytes",
            ContextOrder::ShortLife => "with the shortest lifetimes",
            ContextOrder::Cold => "with the fewest accesses",
        };
        writeln!(out)?;
        out.heading(format_args!(
            "Top {} {by}",
            plural(top.len() as u64, "context")
        ))?;
        let mut table = Table::new([
            Column::right("bytes"),
            Column::right("share"),
            Column::right("together").optional(),
            Column::left("").optional(),
            Column::left(""),
            Column::left("allocated in"),
        ]);
        let bytes = |context: &Allocations| context.block.get(Field::TotalSize);
        let largest = top.iter().map(|context| bytes(context)).max().unwrap_or(0);
        let mut together = 0;
        for context in top {
            let own = bytes(context);
            together += u128::from(own);
            let hotness = self.hotness(context);
            let bar = out.look().bar(own.into(), largest.into());
            let mut frames = self.view.heap.frames(context.stack);
            let site = frames.next();
            let site = site.map(|site| self.view.name(site.frame.function).into_owned());
            table.row([
                grouped(own).into(),
                percent(own.into(), all.bytes.into()).into(),
                percent(together, all.bytes.into()).into(),
                Cell::styled(Style::Bar, bar),
                Cell::styled(hotness_style(hotness), hotness_name(hotness)),
                site.unwrap_or_default().into(),
            ]);
        }
        table.print(out)
    }

    /// Prints one JSON object.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let contexts = self
            .top()
            .into_iter()
            .map(|context| self.json_context(context));
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
            },
            notes: self.view.notes,
            total: ContextSum::of(self.contexts).into(),
            cold: self.sum(Hotness::Cold).into(),
            warm: self.sum(Hotness::Warm).into(),
            hot: self.sum(Hotness::Hot).into(),
            locations: self.view.heap.location_sizes().map(Into::into),
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
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
        out.flush()
    }

    fn json_context(&self, context: &Allocations) -> JsonContext {
        let block = &context.block;
        JsonContext {
            kind: hotness_name(self.hotness(context)),
            fields: block
                .fields()
                .map(|field| (field.name(), block.get(field)))
                .collect(),
            average_lifetime_ms: average(block, Field::TotalLifetime),
            lifetime_access_density: access_density(block),
            stack: self.view.json_stack(context.stack),
        }
    }
}

/// The columns of a table of groups of contexts.
const GROUP_COLUMNS_OF_HEAP: [&str; 5] = ["group", "contexts", "allocations", "bytes", "share"];

/// A group of contexts as JSON. `total` is the number of bytes of all contexts.
fn heap_group(group: &Group, total: u128) -> Value {
    let mut value = json!({
        "contexts": group.functions,
        "allocations": group.entered,
        "bytes": number(group.sum),
        "share": share(group.sum, total),
    });
    if let (Some(name), Some(members)) = (&group.name, value.as_object_mut()) {
        members.insert("group".to_owned(), name.as_str().into());
    }
    value
}

#[derive(Serialize)]
struct JsonReport<'a> {
    schema: &'static str,
    schema_version: u32,
    file: JsonFile<'a>,
    notes: &'a [String],
    total: JsonSum,
    cold: JsonSum,
    warm: JsonSum,
    hot: JsonSum,
    #[serde(skip_serializing_if = "Option::is_none")]
    locations: Option<TableSizes>,
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
}

#[derive(Serialize)]
struct TableSizes {
    stacks: u64,
    table_bytes: u64,
    frame_bytes: u64,
    plain_bytes: u64,
}

impl From<LocationSizes> for TableSizes {
    fn from(sizes: LocationSizes) -> Self {
        TableSizes {
            stacks: sizes.stacks,
            table_bytes: sizes.table_bytes,
            frame_bytes: sizes.frame_bytes,
            plain_bytes: sizes.plain_bytes,
        }
    }
}

#[derive(Serialize)]
struct JsonContext {
    kind: &'static str,
    fields: std::collections::BTreeMap<&'static str, u64>,
    average_lifetime_ms: f64,
    lifetime_access_density: f64,
    stack: Vec<JsonFrame>,
}
