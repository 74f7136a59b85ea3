//! `profkit show`: prints the contents of a profile, for people or as JSON. Records are printed as they are read, so
//! memory does not grow with their number.
mod args;
pub(crate) mod correlation;
pub(crate) mod files;
mod kinds;
pub mod recording;
mod sample;

pub use args::{By, ShowArgs, Sort};
pub use kinds::is_given;

use crate::exit::{self, Failure, Status};
use crate::memprof::show as heap;
use crate::print::{Format, RowFormat, stdout_for};
use clap::ArgMatches;
use kinds::Kind;
use profkit_analysis::doctor::Readers;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::{ContextSum, HeapProfile};
use profkit_analysis::instr::{InstrFacts, Totals, layouts, numbers, read_selected, sort_records};
use profkit_analysis::names::Spelling;
use profkit_analysis::ranking::{Groups, Ranking};
use profkit_analysis::selection::Selection;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::indexed::IndexedHeader;
use profkit_data::instr::raw::RawMetadataSource;
use profkit_data::instr::{InstrKind, InstrReader, InstrSource, Record, not_an_instr_profile};
use profkit_data::{Profile, ReadOptions, open_as};
use profkit_merge::files::{Input, check_outputs};
use profkit_report::Grouping;
use profkit_report::mip::{MipForm, MipFunctions, MipShow};
use profkit_report::show::json::JsonPrinter;
use profkit_report::show::text::TextPrinter;
use profkit_report::show::{Context, Layout, Printer, RecordView, RowPrinter};
use std::io;

/// Shows a profile. `matches` shows which options are on the command line.
///
/// # Errors
/// If the file cannot be opened, if an option does not fit the kind of the profile, or if nothing of the profile can be
/// read. If only a later part of the file is damaged, the result is not an error, but [`Status::InputBad`].
pub fn run(args: &ShowArgs, matches: &ArgMatches) -> exit::Result {
    let drawn = ("the flame graph", args.heap.flamegraph.as_deref());
    let read = args.correlation.binaries.iter().chain([&args.file]);
    check_outputs(&[drawn], read)?;
    let head = recording::head_of_folder(&args.file);
    let input = crate::io::open(head.as_deref().unwrap_or(&args.file))?;
    let found = detect(&input);
    let kind = Kind::of(args, found, &input);
    if let Some(kind) = kind {
        kinds::check(args, matches, kind, &input)?;
    }
    match kind {
        Some(Kind::Heap) => return heap::run(args, &input),
        Some(Kind::Sample) => return sample::run(args, &input),
        Some(Kind::Mip) => return mip(args, found, &input),
        Some(Kind::Recording) => return recording::run(args, &input),
        _ => {}
    }
    let out = stdout_for(args.format.document());
    let spelling = args.spelling();
    let mut printer: Box<dyn Printer> = match (args.format.rows(), args.format.document()) {
        (Some(form), _) => Box::new(RowPrinter::new(out, form, args.by.is_some(), spelling)),
        (None, Format::Text) => Box::new(TextPrinter::new(out, spelling)),
        (None, Format::Json) => Box::new(JsonPrinter::new(out, spelling)),
    };
    let joined = if args.correlation.is_used() {
        Some(correlation::join(&args.correlation, &input)?)
    } else {
        None
    };
    let metadata = joined
        .as_ref()
        .map(|joined| joined as &dyn RawMetadataSource);
    let source = match InstrReader::salvage(found, &input, metadata) {
        Ok(source) => source,
        Err(error) => {
            header_alone(args, &input, &mut *printer).map_err(|error| Failure::print(&error))?;
            return Err(Failure::file(input.name(), &error));
        }
    };
    let checked = source.check_text();
    checked.map_err(|error| Failure::file(input.name(), &error))?;
    let groups = files::Groups::of(args)?;
    let mut show = Show {
        args,
        by: groups.as_ref().map(files::Groups::grouping),
        input: &input,
        printer: &mut *printer,
        faults: Faults::default(),
    };
    let selection = args.selection();
    let missing = show
        .everything(source, &selection)
        .map_err(|error| Failure::print(&error))?;
    let faults = std::mem::take(&mut show.faults);
    finish(args, &input, &faults, &missing)
}

/// Shows a MIP profile.
fn mip(args: &ShowArgs, found: FileKind, input: &Input) -> exit::Result {
    let opened = open_as(found, input, &ReadOptions::new());
    let (profile, version) = match opened {
        Ok(Profile::Mip(profile, version)) => (profile, version),
        Ok(_) => return Err(Failure::file(input.name(), &not_an_instr_profile(found))),
        Err(error) => return Err(Failure::file(input.name(), &error)),
    };
    if let Some(groups) = files::Groups::of(args)? {
        let show = MipFunctions {
            path: input.name(),
            profile: &profile,
            form: match found {
                FileKind::MipYaml => MipForm::Yaml(version),
                _ => MipForm::Profile(version),
            },
            wanted: &|_| true,
            mangled: args.mangled,
            by: Some(groups.grouping()),
        };
        let mut out = stdout_for(args.format.document());
        match (args.format.rows(), args.format.document()) {
            (Some(form), _) => show.group_rows(form, args.top.unwrap_or(usize::MAX), out),
            (None, Format::Text) => show.text(&mut out),
            (None, Format::Json) => show.json(&mut out),
        }
        .map_err(|error| Failure::print(&error))?;
        return Ok(Status::Done);
    }
    let show = MipShow {
        path: input.name(),
        size: input.len() as u64,
        profile: &profile,
        version,
        spelling: args.spelling(),
        order: args.order().unwrap_or_default(),
        top: args.top,
    };
    let mut out = stdout_for(args.format.document());
    match (args.format.rows(), args.format.document()) {
        (Some(form), _) => show.rows(form, out),
        (None, Format::Text) => show.text(&mut out),
        (None, Format::Json) => show.json(&mut out),
    }
    .map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}

/// Shows only the header, which can often be read even if the rest of the file is damaged.
fn header_alone(args: &ShowArgs, input: &Input, printer: &mut dyn Printer) -> io::Result<()> {
    let Ok(header) = IndexedHeader::parse(input) else {
        return Ok(());
    };
    if args.header && args.format == RowFormat::Text {
        let facts = InstrFacts::of_indexed(&header);
        printer.file(input.name(), input.len() as u64, &facts)?;
        printer.layout(&Layout {
            index: None,
            offset: 0,
            header: Some(header.named_fields()),
            sections: None,
        })?;
        printer.end(&Faults::default())?;
    }
    Ok(())
}

fn finish(args: &ShowArgs, input: &Input, faults: &Faults, missing: &[&str]) -> exit::Result {
    let mut failure: Option<Failure> = None;
    if args.format != RowFormat::Json {
        for error in &faults.first {
            let line = format!("{}: {error}", input.name());
            failure = Some(match failure {
                Some(failure) => failure.and(line),
                None => Failure::input(line),
            });
        }
        let more = faults.more();
        failure = failure.map(|failure| {
            let failure = match more {
                0 => failure,
                more => failure.and(format_args!("{}: and {more} more errors", input.name())),
            };
            let hint = faults.first.iter().find_map(|error| error.hint());
            failure.with_hints(hint)
        });
    }
    for name in missing {
        let line = format!("{}: there is no function `{name}`", input.name());
        failure = Some(match failure {
            Some(failure) => failure.and(line),
            None => Failure::input(line)
                .with_hint("--function-contains TEXT finds functions whose name contains the text"),
        });
    }
    match failure {
        Some(failure) => Err(failure),
        None if faults.count > 0 => Ok(Status::InputBad),
        None => Ok(Status::Done),
    }
}

struct Show<'a> {
    args: &'a ShowArgs,
    by: Option<Grouping<'a>>,
    input: &'a Input,
    printer: &'a mut dyn Printer,
    faults: Faults,
}

impl Show<'_> {
    /// Prints all parts that the options ask for. Returns the names of functions that were asked for but do not exist.
    fn everything<'s>(
        &mut self,
        mut source: InstrReader<'_>,
        selection: &'s Selection,
    ) -> io::Result<Vec<&'s str>> {
        let args = self.args;
        let facts = InstrFacts::of(&source);
        self.printer
            .file(self.input.name(), self.input.len() as u64, &facts)?;
        if args.header || args.sections {
            self.layouts(&source)?;
        }
        let order = args.order().unwrap_or_default();
        // Instances of a generic function are united only in text for people, unless the options ask for all instances.
        let unite = args.format == RowFormat::Text && args.spelling() == Spelling::Demangled;
        let mut totals = Totals::new(
            Ranking::new(order, args.most_functions().unwrap_or(0), unite),
            facts.instrumentation.contains(InstrKind::CONTEXT_SENSITIVE),
        );
        let (details, printer) = (args.details(), &mut *self.printer);
        let by = self.by;
        let mut groups = Groups::default();
        // If the functions are sorted, or only the first rows are wanted, all records have to be read before one is
        // printed.
        let first = args.top.filter(|_| args.format.rows().is_some());
        let keeps = args.shows_functions() && (args.sort.is_some() || first.is_some());
        let mut kept: Vec<Record> = Vec::new();
        let missing = read_selected(
            &mut source,
            selection,
            args.needs_all_records().then_some(&mut totals),
            &mut self.faults,
            |record, source| {
                if let Some(by) = by {
                    let sum = numbers(record).sum;
                    groups.add(by.of(&record.name), 1, u64::from(sum > 0), sum);
                } else if keeps {
                    kept.push(record.clone());
                } else {
                    printer.record(&RecordView { record }, details, &Context { source })?;
                }
                Ok::<(), io::Error>(())
            },
        )?;
        sort_records(&mut kept, order);
        kept.truncate(first.unwrap_or(usize::MAX));
        for record in &kept {
            let context = Context { source: &source };
            printer.record(&RecordView { record }, details, &context)?;
        }
        if let Some(by) = by {
            let groups = groups.into_sorted(order);
            let total = groups.iter().map(|group| group.sum).sum();
            let most = args.top.unwrap_or(groups.len()).min(groups.len());
            printer.groups(groups.get(..most).unwrap_or_default(), by, total)?;
            printer.end(&self.faults)?;
            return Ok(missing);
        }
        if args.shows_functions() {
            self.printer.records_end()?;
        }
        if args.is_overview() {
            let ids = source.binary_ids();
            let ids = self.faults.or_default(ids);
            let readers = Readers::of(&facts, totals.oldest_text_reader);
            self.printer.origin(&ids, &readers)?;
        }
        if args.traces {
            let traces = source.temporal_traces();
            let traces = self.faults.or_default(traces);
            self.printer.traces(&traces, &Context { source: &source })?;
        }
        if args.binary_ids {
            let ids = source.binary_ids();
            let ids = self.faults.or_default(ids);
            self.printer.binary_ids(&ids)?;
        }
        if args.shows_summary() {
            let (first, second) = totals.finish();
            self.printer
                .summaries(&first, second.as_ref(), &totals, args.detailed_summary)?;
        }
        // Counters of single-byte coverage show only whether a block ran, so their sums do not show which functions are
        // hot.
        let counts = !facts
            .instrumentation
            .contains(InstrKind::SINGLE_BYTE_COVERAGE);
        if args.is_overview() && counts {
            self.printer.shares(&totals)?;
        }
        let asks = args.top.is_some() || args.sort.is_some() && !args.shows_functions();
        if asks || args.is_overview() && counts && totals.sum > 0 {
            let mut hot = std::mem::take(&mut totals.ranking).into_sorted();
            hot.retain(|function| function.numbers.sum > 0);
            self.printer.hot(&hot, order, totals.sum)?;
        }
        if args.is_overview() && facts.instrumentation.contains(InstrKind::MEMPROF) {
            let heap = HeapProfile::from_indexed(self.input.bytes());
            if let Some(heap) = self.faults.or_none(heap) {
                self.printer
                    .heap(ContextSum::of(&heap.profile.contexts()))?;
            }
        }
        self.printer.end(&self.faults)?;
        Ok(missing)
    }

    fn layouts(&mut self, source: &InstrReader<'_>) -> io::Result<()> {
        let found = layouts(source, self.input);
        let several = found.len() > 1;
        for (index, layout) in (1..).zip(found) {
            self.printer.layout(&Layout {
                index: several.then_some(index),
                offset: layout.offset,
                header: self.args.header.then_some(layout.header),
                sections: self.args.sections.then_some(layout.sections),
            })?;
        }
        Ok(())
    }
}
