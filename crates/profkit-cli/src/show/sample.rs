//! `profkit show` of sample profiles.
use super::args::ShowArgs;
use super::files::Groups;
use crate::exit::{self, Failure};
use crate::memprof::flame;
use crate::print;
use profkit_analysis::samples::SampleView;
use profkit_merge::files::Input;
use profkit_report::flame::{of_samples, print_folded_samples};
use profkit_report::show::sample::{SampleParts, SampleShow, notes};
use std::io::Write;

pub fn run(args: &ShowArgs, input: &Input) -> exit::Result {
    let drawn = args.heap.flamegraph.is_some() || args.heap.folded.is_some();
    let lazy = !args.needs_all_records() && !args.symbols && !drawn;
    let view = SampleView::open(input.bytes(), lazy.then_some(&args.function))
        .map_err(|error| Failure::file(input.name(), &error))?;
    if let Some(path) = &args.heap.flamegraph {
        let svg = of_samples(&view, &flame::title(input), args.spelling());
        flame::write(path, input, svg, "samples")?;
        return finish(args, input, &view);
    }
    if args.heap.folded.is_some() {
        let mut out = print::stdout();
        let printed = print_folded_samples(&view, args.spelling(), &mut out);
        let printed = printed.and_then(|()| out.flush());
        printed.map_err(|error| Failure::print(&error))?;
        return finish(args, input, &view);
    }
    let groups = Groups::of(args)?;
    let show = SampleShow {
        path: input.name(),
        size: input.len() as u64,
        view: &view,
        spelling: args.spelling(),
        parts: &SampleParts {
            selection: args.selection()?,
            functions: args.shows_functions(),
            sections: args.sections,
            symbols: args.symbols,
            summary: args.shows_summary(),
            detailed: args.detailed_summary,
            top: args.most_functions(),
            order: args.order(),
            by: groups.as_ref().map(Groups::grouping),
        },
    };
    print::answer(&show, args.format)?;
    finish(args, input, &view)
}

fn finish(args: &ShowArgs, input: &Input, view: &SampleView<'_>) -> exit::Result {
    let notes = notes(view).into_iter();
    print::notes(notes.map(|note| format!("{}: {note}", input.name())));
    let selection = args.selection()?;
    let any = !args.filters() || view.selects_any(&selection);
    let missing = view.missing(&args.function);
    super::finish(args, input, &view.faults(), &missing, any)
}
