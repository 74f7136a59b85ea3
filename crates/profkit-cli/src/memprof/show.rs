//! `profkit show` of heap profiles: the numbers of contexts and bytes, what is hot and cold, and the most important
//! contexts; for people, as JSON, as folded stacks, or as a flame graph.
use super::flame::{self, Weight};
use super::heap::{Heap, JsonFrame, JsonSum, ThresholdArgs, hotness_name, percent};
use crate::exit::{self, Failure, Status};
use crate::print::{Format, stdout_for};
use crate::print::{grouped, plural};
use crate::show::ShowArgs;
use clap::{Args, ValueEnum};
use profkit_analysis::heap::{
    ContextOrder, ContextSum, HeapWeight, LocationSizes, access_density, average, top_contexts,
};
use profkit_data::memprof::{Allocations, Field, Hotness, Thresholds};
use profkit_merge::files::Input;
use profkit_report::show::json::{SCHEMA_VERSION, error as json_error};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The number of contexts that are shown if --top is not given.
const MOST_CONTEXTS: usize = 10;

/// Options of heap profiles.
#[derive(Debug, Args)]
#[command(next_help_heading = "Heap profiles")]
pub struct HeapArgs {
    /// Show the heap profile in an indexed profile instead of its counters
    #[arg(long)]
    pub memory: bool,

    /// The order of the contexts
    #[arg(long, value_enum, default_value_t, value_name = "ORDER")]
    pub by: Order,

    /// Print folded stacks for flame graphs, with this weight, instead of the usual text
    ///
    /// Each call stack is one line: its functions from the outermost one on, separated by semicolons, then a number.
    /// inferno-flamegraph, flamegraph.pl and speedscope read this form.
    #[arg(long, value_enum, value_name = "WEIGHT", conflicts_with = "flamegraph")]
    pub folded: Option<Weight>,

    /// Write a flame graph for a browser; the colour of a function shows how cold or hot its contexts are
    #[arg(long, value_name = "FILE.svg")]
    pub flamegraph: Option<PathBuf>,

    /// The weight that the width of a function shows in the flame graph
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WEIGHT",
        requires = "flamegraph"
    )]
    pub flamegraph_weight: Weight,

    /// The limits that decide which contexts are cold or hot.
    #[command(flatten)]
    pub thresholds: ThresholdArgs,
}

/// An order of contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Most bytes first
    #[default]
    Bytes,
    /// Shortest average lifetime first
    ShortLife,
    /// Fewest accesses per byte and second first
    Cold,
}

impl From<Order> for ContextOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Bytes => ContextOrder::Bytes,
            Order::ShortLife => ContextOrder::ShortLife,
            Order::Cold => ContextOrder::Cold,
        }
    }
}

impl HeapArgs {
    /// Whether the options ask for the heap profile of an indexed profile.
    pub fn asks_for_heap(&self) -> bool {
        self.memory || self.folded.is_some() || self.flamegraph.is_some()
    }
}

/// Shows a heap profile.
///
/// # Errors
/// If nothing of it can be read, or if it is raw and its binaries are not given.
pub fn run(show: &ShowArgs, input: &Input) -> exit::Result {
    let (args, format, mangled) = (&show.heap, show.format, show.mangled);
    if format == Format::Json && (args.folded.is_some() || args.flamegraph.is_some()) {
        return Err(Failure::usage(
            "--folded and --flamegraph write formats of their own: they cannot be combined with --format json",
        ));
    }
    let shown = Heap::open(&show.correlation, input)?;
    let thresholds = args.thresholds.thresholds();
    let print = Print {
        args,
        most: show.top.unwrap_or(MOST_CONTEXTS),
        shown: &shown,
        thresholds,
        contexts: &shown.heap.profile.contexts(),
        mangled,
    };
    let folded = args.folded.map(HeapWeight::from);
    let drawn = HeapWeight::from(args.flamegraph_weight);
    if let Some(weight) = folded.or(args.flamegraph.is_some().then_some(drawn))
        && !shown.heap.profile.has_field(weight.field())
    {
        return Err(Failure::input(format_args!(
            "{}: the profile does not have the field {}",
            input.name(),
            weight.field().name()
        ))
        .with_hint(
            "a profile for compilers has only bytes, allocations and lifetimes; `profkit merge --memprof-full-schema` keeps all fields",
        ));
    }
    if let Some(path) = &args.flamegraph {
        print.flame_graph(path, input)?;
        return Heap::finish(&[(input, &shown)]);
    }
    let mut out = stdout_for(format);
    let printed = match (folded, format) {
        (Some(weight), _) => flame::print_folded(&shown.heap, weight, mangled, &mut out),
        (None, Format::Text) => print.text(input, &mut out),
        (None, Format::Json) => print.json(input, &mut out),
    };
    printed
        .and_then(|()| out.flush())
        .map_err(|error| Failure::print(&error))?;
    match format {
        // The errors are part of the JSON, so they are not printed as text.
        Format::Json if shown.heap.damage.count > 0 => Ok(Status::InputBad),
        _ => Heap::finish(&[(input, &shown)]),
    }
}

struct Print<'a> {
    args: &'a HeapArgs,
    /// The largest number of contexts to show.
    most: usize,
    shown: &'a Heap,
    thresholds: Thresholds,
    contexts: &'a [Allocations],
    mangled: bool,
}

const KINDS: [Hotness; 3] = [Hotness::Cold, Hotness::Warm, Hotness::Hot];

impl Print<'_> {
    fn hotness(&self, context: &Allocations) -> Hotness {
        self.thresholds.hotness(&context.block, true)
    }

    fn sum(&self, kind: Hotness) -> ContextSum {
        let contexts = self.contexts.iter();
        ContextSum::of(contexts.filter(|context| self.hotness(context) == kind))
    }

    fn top(&self) -> Vec<&Allocations> {
        top_contexts(self.contexts, self.args.by.into(), self.most)
    }

    fn text(&self, input: &Input, out: &mut impl Write) -> io::Result<()> {
        let all = ContextSum::of(self.contexts);
        writeln!(out, "{}: {}", input.name(), self.shown.describe())?;
        for note in &self.shown.notes {
            writeln!(out, "note: {note}")?;
        }
        writeln!(out, "Contexts:     {}", grouped(all.contexts))?;
        writeln!(out, "Allocations:  {}", grouped(all.allocations))?;
        writeln!(out, "Bytes:        {}", grouped(all.bytes))?;
        for kind in KINDS {
            let share = self.sum(kind);
            writeln!(
                out,
                "  {:<10}  {}, {} ({:.1}%)",
                hotness_name(kind),
                plural(share.contexts, "context"),
                plural(share.bytes, "byte"),
                percent(share.bytes, all.bytes)
            )?;
        }
        if let Some(data) = &self.shown.heap.profile.data_access {
            writeln!(
                out,
                "Global data:  {} sampled, {} cold",
                data.records.len(),
                data.cold_symbols.len() + data.cold_hashes.len()
            )?;
        }
        let top = self.top();
        if top.is_empty() {
            return Ok(());
        }
        let by = match self.args.by {
            Order::Bytes => "with the most bytes",
            Order::ShortLife => "with the shortest lifetimes",
            Order::Cold => "with the fewest accesses",
        };
        writeln!(out, "\nTop {} {by}:", plural(top.len() as u64, "context"))?;
        for (number, context) in (1..).zip(top) {
            let bytes = context.block.get(Field::TotalSize);
            writeln!(
                out,
                "{number:>4}. {} ({:.1}%) in {}, life {:.0} ms, {:.2} accesses per byte and second, {}",
                plural(bytes, "byte"),
                percent(bytes, all.bytes),
                plural(context.block.get(Field::AllocCount), "allocation"),
                average(&context.block, Field::TotalLifetime),
                access_density(&context.block),
                hotness_name(self.hotness(context))
            )?;
            self.shown.print_stack(context.stack, self.mangled, out)?;
        }
        Ok(())
    }

    fn flame_graph(&self, path: &Path, input: &Input) -> Result<(), Failure> {
        use profkit_merge::files::{Content, Output};
        let output = Output::new(path, Content::Text)?;
        let weight = HeapWeight::from(self.args.flamegraph_weight);
        let file = Path::new(input.name()).file_name();
        let title = format!(
            "Heap of {}: {}",
            file.map_or(input.name().into(), |name| name.to_string_lossy()),
            flame::unit(weight)
        );
        let heap = &self.shown.heap;
        let svg =
            flame::draw(heap, weight, &self.thresholds, self.mangled, &title).ok_or_else(|| {
                Failure::input(format_args!(
                    "{}: there is nothing to draw: the sum of its {} is 0",
                    input.name(),
                    flame::unit(weight)
                ))
            })?;
        output.write(|sink| sink.put(svg.as_bytes()))?;
        for note in &self.shown.notes {
            // A failed write is ignored: stderr is closed.
            let _ = writeln!(crate::print::stderr(), "note: {note}");
        }
        Ok(())
    }

    fn json(&self, input: &Input, out: &mut impl Write) -> io::Result<()> {
        let contexts = self
            .top()
            .into_iter()
            .map(|context| self.json_context(context));
        let damage = &self.shown.heap.damage;
        let report = JsonReport {
            schema: "profkit-show",
            schema_version: SCHEMA_VERSION,
            file: JsonFile {
                path: input.name(),
                size: input.len(),
                kind: "heap",
                form: self.shown.heap.form.to_string(),
                version: self.shown.heap.version,
            },
            notes: &self.shown.notes,
            total: ContextSum::of(self.contexts).into(),
            cold: self.sum(Hotness::Cold).into(),
            warm: self.sum(Hotness::Warm).into(),
            hot: self.sum(Hotness::Hot).into(),
            locations: self.shown.heap.location_sizes().map(Into::into),
            contexts: contexts.collect(),
            errors: damage.first.iter().map(json_error).collect(),
            error_count: damage.count,
        };
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)
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
            stack: self.shown.json_stack(context.stack),
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
    size: usize,
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
