//! `profkit show` of heap profiles: the numbers of contexts and bytes, what is hot and cold, and the most important
//! contexts; for people, as JSON, as folded stacks, or as a flame graph.
use super::flame::{self, Weight};
use super::heap::{Heap, ThresholdArgs};
use crate::exit::{self, Failure, Status};
use crate::print::{self, Format};
use crate::show::files::Groups;
use crate::show::{ShowArgs, Sort};
use clap::Args;
use profkit_analysis::heap::{ContextOrder, FrameRule, HeapDumps};
use profkit_data::detect::{FileKind, detect};
use profkit_merge::files::Input;
use profkit_report::flame::{HeapWeight, of_heap, print_folded, unit};
use profkit_report::heap::{DumpsShow, HeapShow, HeapView};
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(next_help_heading = "Heap profiles")]
pub struct HeapArgs {
    /// Show the heap profile in an indexed profile instead of its counters
    #[arg(long)]
    pub memory: bool,

    /// Print folded stacks for flame graphs, with this weight, instead of the usual text
    ///
    /// Each call stack is one line: its functions from the outermost one on, separated by semicolons, then a number.
    /// inferno-flamegraph, flamegraph.pl and speedscope read this form. For sample profiles the
    /// only weight is samples.
    #[arg(long, value_enum, value_name = "WEIGHT", conflicts_with = "flamegraph")]
    pub folded: Option<Weight>,

    /// Write a flame graph of a heap or sample profile for a browser
    ///
    /// For a heap profile, the colour of a function shows how cold or hot its contexts are. For a sample profile, the
    /// graph shows calling contexts, if the profile has any, and inlined functions.
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

    /// Show call stacks whole, and name contexts after the innermost function
    ///
    /// Without this option, frames of standard libraries are counted and not listed, and a context is named after the
    /// first function that belongs to no standard library and is no allocator.
    #[arg(long)]
    pub whole_stacks: bool,

    #[command(flatten)]
    pub thresholds: ThresholdArgs,
}

impl HeapArgs {
    pub fn asks_for_heap(&self) -> bool {
        self.memory || self.folded.is_some() || self.flamegraph.is_some()
    }
}

pub fn run(show: &ShowArgs, input: &Input) -> exit::Result {
    let is_raw = detect(input.bytes()) == FileKind::MemProfRaw;
    let asks_for_parts = show.header || show.sections || show.binary_ids;
    if asks_for_parts && !is_raw {
        return Err(Failure::usage(format_args!(
            "{}: --header, --sections and --binary-ids are for raw heap profiles",
            input.name()
        ))
        .with_hint("without --memory they show those of an indexed file; YAML has none"));
    }
    let heap = &show.heap;
    let has_other_form = heap.folded.is_some() || heap.flamegraph.is_some() || show.by.is_some();
    let is_overview = !show.correlation.is_used()
        && !has_other_form
        && show.format.rows().is_none()
        && show.top.is_none()
        && show.sort.is_none();
    if is_raw && (asks_for_parts || is_overview) {
        return dumps(show, input);
    }
    let (args, format, mangled) = (&show.heap, show.format, show.mangled);
    let shown = Heap::open(&show.correlation, input, FrameRule::All)?;
    let groups = match is_raw {
        true => Groups::of_located(show),
        false => Groups::of(show)?,
    };
    let thresholds = args.thresholds.thresholds();
    let view = HeapShow {
        view: HeapView {
            whole_stacks: args.whole_stacks,
            ..shown.view(input, show.spelling())
        },
        contexts: &shown.heap.profile.contexts(),
        thresholds,
        order: match show.sort {
            Some(Sort::Contexts(order)) => order,
            _ => ContextOrder::default(),
        },
        most: show.top,
        by: groups.as_ref().map(Groups::grouping),
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
        let file = flame::title(input);
        let svg = of_heap(&shown.heap, &file, drawn, &thresholds, mangled);
        flame::write(path, input, svg, unit(drawn))?;
        print::notes(&shown.notes);
        return Heap::finish(&[(input, &shown)]);
    }
    match folded {
        Some(weight) => {
            let mut out = print::stdout();
            print_folded(&shown.heap, weight, mangled, &mut out)
                .and_then(|()| out.flush())
                .map_err(|error| Failure::print(&error))?;
        }
        None => print::answer(&view, format)?,
    }
    // Text and JSON have the notes in them.
    if folded.is_some() || format.rows().is_some() {
        print::notes(&shown.notes);
    }
    match format {
        // The errors are part of the JSON, so they are not printed as text.
        Format::Json if shown.heap.damage.count > 0 => Ok(Status::InputBad),
        _ => Heap::finish(&[(input, &shown)]),
    }
}

/// Shows what dumps tell without the programs that ran.
fn dumps(show: &ShowArgs, input: &Input) -> exit::Result {
    let thresholds = show.heap.thresholds.thresholds();
    let dumps = HeapDumps::parse(input.bytes(), &thresholds)
        .map_err(|error| Failure::file(input.name(), &error))?;
    let view = DumpsShow {
        path: input.name(),
        size: input.len() as u64,
        dumps: &dumps,
        header: show.header,
        sections: show.sections,
        build_ids: show.binary_ids,
    };
    print::answer(&view, show.format)?;
    match show.format {
        Format::Json if dumps.damage.count > 0 => Ok(Status::InputBad),
        Format::Json => Ok(Status::Done),
        _ => exit::done_unless(Failure::inputs(exit::lines_of(input.name(), &dumps.damage))),
    }
}
