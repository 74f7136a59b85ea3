//! `profkit show`: prints the contents of a profile, for people or as JSON. Records are printed as they are read, so
//! memory does not grow with their number.
mod args;
pub(crate) mod correlation;
pub(crate) mod files;
mod kinds;
pub mod recording;
mod sample;

pub use args::{BY, ShowArgs, Sort};
pub use kinds::is_given;

use crate::exit::{self, Failure, Status};
use crate::memprof::show as heap;
use crate::print::{self, Format, stdout_for};
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
use profkit_report::show::{Head, Layout, Printer, Rest, RowPrinter};
use std::io::{self, Write};

pub fn run(args: &ShowArgs, matches: &ArgMatches) -> exit::Result {
    let drawn = ("the flame graph", args.heap.flamegraph.as_deref());
    let read = args.correlation.binaries.iter().chain(&args.files);
    check_outputs(&[drawn], read.chain(&args.input_files))?;
    if let [file] = args.files.as_slice()
        && let Some(head) = recording::head_of_folder(file)
    {
        let input = crate::io::open(&head)?;
        kinds::check(args, matches, Kind::Recording, &input)?;
        return recording::run(args, &input, Some(file));
    }
    let binaries = Some(&args.correlation);
    let opened = crate::io::open_profiles(&args.files, &args.input_files, binaries)?;
    let input = &opened.input;
    let found = detect(input);
    let kind = Kind::of(args, found, input);
    if let Some(kind) = kind {
        kinds::check(args, matches, kind, input)?;
    }
    let status = match kind {
        Some(Kind::Heap) => heap::run(args, input)?,
        Some(Kind::Sample) => sample::run(args, input)?,
        Some(Kind::Mip) => mip(args, found, input)?,
        Some(Kind::Recording) => recording::run(args, input, None)?,
        _ => instr(args, found, input)?,
    };
    Ok(opened.then(status))
}

fn instr(args: &ShowArgs, found: FileKind, input: &Input) -> exit::Result {
    let out = stdout_for(args.format);
    let spelling = args.spelling();
    let printer: Box<dyn Printer> = match args.format {
        Format::Text | Format::Markdown => Box::new(TextPrinter::new(out, spelling)),
        Format::Json => Box::new(JsonPrinter::new(out, spelling)),
        Format::Rows(form) => Box::new(RowPrinter::new(out, form, args.by.is_some(), spelling)),
    };
    let joined = if args.correlation.is_used() && found == FileKind::InstrRaw {
        Some(correlation::join(&args.correlation, input)?)
    } else {
        None
    };
    let metadata = joined
        .as_ref()
        .map(|joined| joined as &dyn RawMetadataSource);
    let source = match InstrReader::salvage(found, input, metadata) {
        Ok(source) => source,
        Err(error) => {
            header_alone(args, input).map_err(|error| Failure::print(&error))?;
            return Err(Failure::file(input.name(), &error));
        }
    };
    let checked = source.check_text();
    checked.map_err(|error| Failure::file(input.name(), &error))?;
    let groups = files::Groups::of(args)?;
    let show = Show {
        args,
        by: groups.as_ref().map(files::Groups::grouping),
        input,
        printer,
        faults: Faults::default(),
    };
    let selection = args.selection()?;
    let (faults, missing, any) = show
        .everything(source, &selection)
        .map_err(|error| Failure::print(&error))?;
    finish(args, input, &faults, &missing, any)
}

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
            most: args.top.unwrap_or(usize::MAX),
        };
        print::answer(&show, args.format)?;
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
    print::answer(&show, args.format)?;
    Ok(Status::Done)
}

/// Shows only the header, which can often be read even if the rest of the file is damaged.
fn header_alone(args: &ShowArgs, input: &Input) -> io::Result<()> {
    let Ok(header) = IndexedHeader::parse(input) else {
        return Ok(());
    };
    if !args.header || !args.format.is_for_people() {
        return Ok(());
    }
    let head = Head {
        name: input.name(),
        size: input.len() as u64,
        facts: &InstrFacts::of_indexed(&header),
        layouts: vec![Layout {
            index: None,
            offset: 0,
            header: Some(header.named_fields()),
            sections: None,
        }],
    };
    let mut out = print::stdout();
    head.document().print(&mut out)?;
    out.flush()
}

/// Reports the errors of the file, which JSON has in it, and the functions that were asked for and do not exist.
/// `any` says whether a function was selected.
fn finish(
    args: &ShowArgs,
    input: &Input,
    faults: &Faults,
    missing: &[&str],
    any: bool,
) -> exit::Result {
    let name = input.name();
    let shown = Some(faults).filter(|_| args.format != Format::Json);
    let lines = shown
        .into_iter()
        .flat_map(|faults| exit::lines_of(name, faults));
    let none = |function| format!("{name}: there is no function `{function}`");
    let parts = args.function_contains.iter();
    let parts = parts.map(|part| format!("whose name contains `{part}`"));
    let patterns = args.function_regex.iter();
    let patterns = patterns.map(|pattern| format!("whose name matches `{pattern}`"));
    let unmatched = parts.chain(patterns).filter(|_| !any && missing.is_empty());
    let unmatched = unmatched.map(|what| format!("{name}: there is no function {what}"));
    let failure = Failure::inputs(lines.chain(missing.iter().map(none)).chain(unmatched));
    let hint = match shown.filter(|faults| faults.count > 0) {
        Some(faults) => faults.first.iter().find_map(|error| error.hint()),
        None if missing.is_empty() => Some("`profkit show --functions` lists all functions"),
        None => Some("--function-contains TEXT finds functions whose name contains the text"),
    };
    match exit::done_unless(failure.with_hints(hint))? {
        Status::Done if faults.count > 0 => Ok(Status::InputBad),
        status => Ok(status),
    }
}

struct Show<'a> {
    args: &'a ShowArgs,
    by: Option<Grouping<'a>>,
    input: &'a Input,
    printer: Box<dyn Printer>,
    faults: Faults,
}

impl Show<'_> {
    /// Prints all parts that the options ask for. Returns the errors of the file, the names of functions that were asked
    /// for but do not exist, and whether any function was selected.
    fn everything<'s>(
        mut self,
        mut source: InstrReader<'_>,
        selection: &'s Selection,
    ) -> io::Result<(Faults, Vec<&'s str>, bool)> {
        let (args, by) = (self.args, self.by);
        let facts = InstrFacts::of(&source);
        self.printer.head(&Head {
            name: self.input.name(),
            size: self.input.len() as u64,
            facts: &facts,
            layouts: self.layouts(&source),
        })?;
        let order = args.order().unwrap_or_default();
        // Instances of a generic function are united only in text for people, unless the options ask for all instances.
        let unite = args.format.is_for_people() && args.spelling() == Spelling::Demangled;
        let ranking = || Ranking::new(order, args.most_functions().unwrap_or(0), unite);
        let needs_totals = args.needs_all_records();
        // The records themselves are not needed if none is shown.
        let summed = match &source {
            InstrReader::Indexed(reader) if needs_totals && selection.is_empty() => {
                let (profile, input) = (reader.profile(), self.input);
                let detailed = args.detailed_summary || !args.format.is_for_people();
                Totals::of_indexed(profile, detailed, ranking, &|part| {
                    input.release_range(part)
                })
            }
            _ => None,
        };
        let is_summed = summed.is_some();
        let mut totals = summed.unwrap_or_else(|| {
            let two_stages = facts.instrumentation.contains(InstrKind::CONTEXT_SENSITIVE);
            Totals::new(ranking(), two_stages)
        });
        let (details, printer) = (args.details(), &mut *self.printer);
        let mut groups = Groups::default();
        // If the functions are sorted, or only the first rows are wanted, all records have to be read before one is
        // printed.
        let first = args.top.filter(|_| args.format.rows().is_some());
        let keeps = args.shows_functions() && (args.sort.is_some() || first.is_some());
        let mut kept: Vec<Record> = Vec::new();
        let mut any = false;
        let each = |record: &Record, source: &InstrReader<'_>| {
            any = true;
            if let Some(by) = by {
                let sum = numbers(record).sum;
                groups.add(by.of(&record.name), 1, u64::from(sum > 0), sum);
            } else if keeps {
                kept.push(record.clone());
            } else {
                printer.record(record, details, source)?;
            }
            Ok::<(), io::Error>(())
        };
        let missing = if is_summed {
            Vec::new()
        } else {
            let totals = needs_totals.then_some(&mut totals);
            read_selected(&mut source, selection, totals, &mut self.faults, each)?
        };
        sort_records(&mut kept, order);
        kept.truncate(first.unwrap_or(usize::MAX));
        for record in &kept {
            printer.record(record, details, &source)?;
        }
        let groups = groups.into_sorted(order);
        let mut rest = match by {
            Some(by) => {
                let total = groups.iter().map(|group| group.sum).sum();
                let most = args.top.unwrap_or(groups.len()).min(groups.len());
                let shown = groups.get(..most).unwrap_or_default();
                Rest {
                    groups: Some((shown, by, total)),
                    ..Rest::default()
                }
            }
            None => self.rest(&mut source, &facts, totals),
        };
        rest.faults = self.faults;
        self.printer.rest(&rest, &source)?;
        Ok((rest.faults, missing, any))
    }

    fn rest<'r>(
        &mut self,
        source: &mut InstrReader<'_>,
        facts: &InstrFacts,
        mut totals: Totals,
    ) -> Rest<'r> {
        let args = self.args;
        let mut rest = Rest {
            functions: args.shows_functions(),
            detailed: args.detailed_summary,
            ..Rest::default()
        };
        if args.is_overview() {
            let ids = self.faults.or_default(source.binary_ids());
            rest.origin = Some((ids, Readers::of(facts, totals.oldest_text_reader)));
            if !args.traces && facts.instrumentation.contains(InstrKind::TEMPORAL) {
                let traces = self.faults.or_default(source.temporal_traces());
                rest.trace_counts = Some((traces.traces.len() as u64, traces.stream_size));
            }
        }
        if args.traces {
            let traces = source.temporal_traces();
            rest.traces = Some(self.faults.or_default(traces));
        }
        if args.binary_ids {
            let ids = source.binary_ids();
            rest.binary_ids = Some(self.faults.or_default(ids));
        }
        if args.shows_summary() {
            rest.summaries = Some(totals.finish());
        }
        // Counters of single-byte coverage show only whether a block ran, so their sums do not show which functions are
        // hot.
        let counts = !facts
            .instrumentation
            .contains(InstrKind::SINGLE_BYTE_COVERAGE);
        rest.shares = args.is_overview() && counts;
        let asks = args.top.is_some() || args.sort.is_some() && !args.shows_functions();
        if asks || args.is_overview() && counts && totals.sum > 0 {
            let mut hot = std::mem::take(&mut totals.ranking).into_sorted();
            hot.retain(|function| function.numbers.sum > 0);
            rest.hot = Some((hot, args.order().unwrap_or_default()));
        }
        if args.is_overview() && facts.instrumentation.contains(InstrKind::MEMPROF) {
            let heap = HeapProfile::from_indexed(self.input.bytes());
            let heap = self.faults.or_none(heap);
            rest.heap = heap.map(|heap| ContextSum::of(&heap.profile.contexts()));
        }
        rest.totals = totals;
        rest
    }

    fn layouts(&self, source: &InstrReader<'_>) -> Vec<Layout> {
        let (header, sections) = (self.args.header, self.args.sections);
        if !header && !sections {
            return Vec::new();
        }
        let found = layouts(source, self.input);
        let several = found.len() > 1;
        let found = (1..).zip(found).map(|(index, layout)| Layout {
            index: several.then_some(index),
            offset: layout.offset,
            header: header.then_some(layout.header),
            sections: sections.then_some(layout.sections),
        });
        found.collect()
    }
}
