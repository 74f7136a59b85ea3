//! The overview of a heap profile: how much was allocated, what is cold and hot, and the largest contexts.
use super::{HeapView, JsonFrame, JsonSum, hotness_name, hotness_style};
use crate::show::json::{SCHEMA_VERSION, error as json_error};
use crate::show::text::{facts, read_by};
use crate::{Cell, Column, Console, Style, Table, bar, grouped, percent, plural, size};
use profkit_analysis::heap::{
    ContextOrder, ContextSum, LocationSizes, access_density, average, top_contexts,
};
use profkit_data::memprof::{Allocations, Field, Hotness, Thresholds};
use serde::Serialize;
use std::io::{self, Write};

/// A heap profile that is shown.
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
    /// The largest number of contexts to show.
    pub most: usize,
}

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
        top_contexts(self.contexts, self.order, self.most)
    }

    /// Prints text for people.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn text<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let all = ContextSum::of(self.contexts);
        let none = String::new;
        out.styled(Style::Heading, self.view.path)?;
        writeln!(out, ": {}", self.view.describe())?;
        writeln!(out, "  size             {} bytes", grouped(self.view.size))?;
        if let Some(readers) = self.view.heap.readers() {
            writeln!(out, "  read by          {}", read_by(&readers))?;
        }
        for note in self.view.notes {
            writeln!(out, "note: {note}")?;
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
                "{number:>4}. {} in {}, life {:.0} ms, {:.2} accesses per byte and second, ",
                plural(context.block.get(Field::TotalSize), "byte"),
                plural(context.block.get(Field::AllocCount), "allocation"),
                average(&context.block, Field::TotalLifetime),
                access_density(&context.block),
            )?;
            out.styled(hotness_style(hotness), hotness_name(hotness))?;
            writeln!(out)?;
            self.view.print_stack(context.stack, out)?;
        }
        out.flush()
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
            let bar = bar(own.into(), largest.into(), out.look().bars);
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
    /// Those of the writer.
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
