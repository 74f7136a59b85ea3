//! `profkit show` of heap profiles: the numbers of contexts and bytes, what is hot and cold, and the most important
//! contexts; for people, as JSON, as folded stacks, or as a flame graph.
use super::flame::{self, Weight};
use super::heap::{Heap, ThresholdArgs};
use crate::exit::{self, Failure, Status};
use crate::print::{Format, stdout_for};
use crate::show::ShowArgs;
use clap::{Args, ValueEnum};
use profkit_analysis::heap::{ContextOrder, HeapWeight};
use profkit_merge::files::Input;
use profkit_report::heap::HeapShow;
use std::io::Write;
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

    /// The quantity that the width of a function shows in the flame graph
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
/// If nothing of the profile can be read, or if the profile is raw and its binaries are not given.
pub fn run(show: &ShowArgs, input: &Input) -> exit::Result {
    let (args, format, mangled) = (&show.heap, show.format, show.mangled);
    if format == Format::Json && (args.folded.is_some() || args.flamegraph.is_some()) {
        return Err(Failure::usage(
            "--folded and --flamegraph write formats of their own: they cannot be combined with --format json",
        ));
    }
    let shown = Heap::open(&show.correlation, input)?;
    let thresholds = args.thresholds.thresholds();
    let view = HeapShow {
        view: shown.view(input, mangled),
        contexts: &shown.heap.profile.contexts(),
        thresholds,
        order: args.by.into(),
        most: show.top.unwrap_or(MOST_CONTEXTS),
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
        flame_graph(show, path, input, &shown)?;
        return Heap::finish(&[(input, &shown)]);
    }
    let mut out = stdout_for(format);
    let printed = match (folded, format) {
        (Some(weight), _) => flame::print_folded(&shown.heap, weight, mangled, &mut out),
        (None, Format::Text) => view.text(&mut out),
        (None, Format::Json) => view.json(&mut out),
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

fn flame_graph(show: &ShowArgs, path: &Path, input: &Input, shown: &Heap) -> Result<(), Failure> {
    use profkit_merge::files::{Content, Output};
    let output = Output::new(path, Content::Text)?;
    let weight = HeapWeight::from(show.heap.flamegraph_weight);
    let file = Path::new(input.name()).file_name();
    let title = format!(
        "Heap of {}: {}",
        file.map_or(input.name().into(), |name| name.to_string_lossy()),
        flame::unit(weight)
    );
    let heap = &shown.heap;
    let thresholds = show.heap.thresholds.thresholds();
    let svg = flame::draw(heap, weight, &thresholds, show.mangled, &title).ok_or_else(|| {
        Failure::input(format_args!(
            "{}: there is nothing to draw: the sum of its {} is 0",
            input.name(),
            flame::unit(weight)
        ))
    })?;
    output.write(|sink| sink.put(svg.as_bytes()))?;
    for note in &shown.notes {
        // A failed write is ignored: stderr is closed.
        let _ = writeln!(crate::print::stderr(), "note: {note}");
    }
    Ok(())
}
