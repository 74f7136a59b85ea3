//! `profkit show` of sample profiles.
use super::args::ShowArgs;
use crate::exit::{self, Failure, Status};
use crate::print::{self, Format};
use profkit_analysis::samples::SampleView;
use profkit_merge::files::Input;
use profkit_report::show::sample::{SampleParts, SampleShow};

/// Shows a sample profile.
///
/// # Errors
/// If nothing of the profile can be read, if an option names a function that is not in the profile, or if the output
/// cannot be printed.
pub fn run(args: &ShowArgs, input: &Input) -> exit::Result {
    let lazy = !args.needs_all_records() && !args.symbols;
    let view = SampleView::open(input.bytes(), lazy.then_some(&args.function))
        .map_err(|error| Failure::file(input.name(), &error))?;
    let show = SampleShow {
        path: input.name(),
        size: input.len() as u64,
        view: &view,
        mangled: args.mangled,
        parts: &SampleParts {
            selection: args.selection(),
            functions: args.shows_functions(),
            sections: args.sections,
            symbols: args.symbols,
            summary: args.shows_summary(),
            detailed: args.detailed_summary,
            top: args.most_functions(),
        },
    };
    let printed = match args.format {
        Format::Text => show.text(&mut print::stdout()),
        Format::Json => show.json(&mut print::json_stdout()),
    };
    printed.map_err(|error| Failure::print(&error))?;
    let report = &view.report;
    let mut failure: Option<Failure> = None;
    let mut fail = |line: String| {
        failure = Some(match failure.take() {
            Some(failure) => failure.and(line),
            None => Failure::input(line),
        });
    };
    if args.format == Format::Text {
        for error in &report.faults {
            fail(format!("{}: {error}", input.name()));
        }
        let more = report.fault_count - report.faults.len() as u64;
        if more > 0 {
            fail(format!("{}: and {more} more errors", input.name()));
        }
    }
    for name in view.missing(&args.function) {
        fail(format!("{}: there is no function {name}", input.name()));
    }
    match failure {
        Some(failure) => Err(failure),
        None if report.fault_count > 0 => Ok(Status::InputBad),
        None => Ok(Status::Done),
    }
}
