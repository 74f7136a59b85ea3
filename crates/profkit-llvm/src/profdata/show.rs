//! Runs `show` for instrumentation profiles: prints functions, totals and lists as `showInstrProfile` in
//! `llvm-profdata.cpp` does.
use super::correlate;
use super::input::Profile;
use super::memprof;
use super::options::SHOW_KIND;
use super::thresholds::{no_cutoff, thresholds};
use super::values::{ValueStatistics, detailed_summary};
use crate::command_line::Parsed;
use crate::lines::Lines;
use crate::messages::{Fault, Session};
use crate::output;
use profkit_abi::{indexed, value_kind};
use profkit_data::Error;
use profkit_data::ids::FuncHash;
use profkit_data::instr::text::TextWriter;
use profkit_data::instr::{InstrKind, Record};
use profkit_data::summary::{RecordSums, Summary, SummaryBuilder, Thresholds};
use profkit_merge::files::Content;

#[derive(Clone, Debug, Default)]
struct Options {
    all_functions: bool,
    /// A function is shown if its name contains this text. If the text is empty, no function is selected by its name.
    function: Vec<u8>,
    counts: bool,
    call_targets: bool,
    vtables: bool,
    sizes: bool,
    context_sensitive: bool,
    covered: bool,
    text: bool,
    detailed_summary: bool,
    cutoffs: Vec<u32>,
    hot_functions: bool,
    thresholds: Thresholds,
    top: u64,
    value_cutoff: u64,
    only_below_cutoff: bool,
    binary_ids: bool,
    version: bool,
    traces: bool,
}

impl Options {
    fn new(parsed: &Parsed) -> Self {
        let mut options = Options {
            all_functions: parsed.flag("all-functions"),
            function: parsed.text("function").to_vec(),
            counts: parsed.flag("counts"),
            call_targets: parsed.flag("ic-targets"),
            vtables: parsed.flag("show-vtables"),
            sizes: parsed.flag("memop-sizes"),
            context_sensitive: parsed.flag("showcs"),
            covered: parsed.flag("covered"),
            text: parsed.flag("text"),
            detailed_summary: parsed.flag("detailed-summary"),
            cutoffs: parsed
                .numbers("detailed-summary-cutoffs")
                .filter_map(|cutoff| u32::try_from(cutoff).ok())
                .collect(),
            hot_functions: parsed.flag("hot-func-list"),
            thresholds: thresholds(parsed),
            top: parsed.number("topn").unwrap_or(0),
            value_cutoff: parsed.number("value-cutoff").unwrap_or(0),
            only_below_cutoff: parsed.flag("list-below-cutoff"),
            binary_ids: parsed.flag("binary-ids"),
            version: parsed.flag("profile-version"),
            traces: parsed.flag("temporal-profile-traces"),
        };
        if options.cutoffs.is_empty() && (options.detailed_summary || options.hot_functions) {
            options.cutoffs = indexed::SUMMARY_CUTOFFS.to_vec();
        }
        options.cutoffs.sort_unstable();
        options
    }

    fn shows(&self, name: &[u8]) -> bool {
        self.all_functions
            || !self.function.is_empty() && memchr::memmem::find(name, &self.function).is_some()
    }

    /// Whether the output says nothing about single records, and needs nothing but the sums of their counters.
    fn shows_no_records(&self) -> bool {
        let lists = self.covered || self.only_below_cutoff || self.hot_functions;
        let functions = self.all_functions || !self.function.is_empty();
        !lists && !functions && self.cutoffs.is_empty() && self.top == 0 && self.value_cutoff == 0
    }

    /// Whether the output contains names that must be looked up by hash.
    fn looks_up_names(&self) -> bool {
        let functions = self.all_functions || !self.function.is_empty();
        functions && (self.call_targets || self.vtables || self.text) || self.traces
    }
}

/// Runs `show`.
pub fn run(program: &str, parsed: &Parsed, session: &Session<'_>) -> Result<(), Fault> {
    let name = parsed
        .positionals
        .first()
        .map_or(b"".as_slice(), Vec::as_slice);
    let debug_info = parsed.text("debug-info");
    if name.is_empty() && debug_info.is_empty() {
        return Err(Fault::new(
            "the positional argument '<profdata-file>' is required unless '--debug-info' is provided",
        ));
    }
    if name == parsed.output() {
        return Err(Fault::bare(
            &format!("{program} show"),
            "Input file name cannot be the same as the output file name!",
        ));
    }
    let format = if parsed.flag("json") {
        Some("json")
    } else {
        parsed.word("show-format")
    };
    let options = Options::new(parsed);
    let output = output::create(session, parsed.output(), Content::Text)?;
    if options.all_functions && !options.function.is_empty() {
        session.warning(b"", "-function argument ignored: showing all functions");
    }
    if !debug_info.is_empty() {
        return correlate::show(parsed, format, output, session);
    }
    match parsed.word(SHOW_KIND) {
        Some("sample") => return super::sample::show(name, parsed, format, output, session),
        Some("memory") => {
            if format == Some("json") {
                return Err(Fault::new("JSON output is not supported for MemProf"));
            }
            return output::write(session, output, parsed.output(), |lines| {
                memprof::show(session, name, parsed, lines)
            });
        }
        _ => {}
    }
    match format {
        Some("json") => {
            return Err(Fault::new(
                "JSON output is not supported for instr profiles",
            ));
        }
        Some("yaml") => {
            return Err(Fault::new(
                "YAML output is not supported for instr profiles",
            ));
        }
        _ => {}
    }
    let bytes = session.read(name)?;
    let mut profile = Profile::open(bytes.as_ref(), session.release(), options.looks_up_names())
        .map_err(|error| Fault::profile(name, &error))?;
    output::write(session, output, parsed.output(), |lines| {
        Show::new(&options, name, lines).show(&mut profile)
    })
}

struct Show<'o, 's, 'l> {
    options: &'o Options,
    /// The name of the input in messages.
    input: &'o [u8],
    lines: &'l mut Lines<'s>,
    /// The summary, if cutoffs are asked for.
    summary: SummaryBuilder,
    /// The summary without cutoffs, if none is asked for.
    totals: Summary,
    shown: u64,
    below_cutoff: u64,
    calls: ValueStatistics,
    vtables: ValueStatistics,
    sizes: ValueStatistics,
    /// The functions with their largest counts, for `--topn` and `--hot-func-list`.
    largest: Vec<(Vec<u8>, u64)>,
}

impl<'o, 's, 'l> Show<'o, 's, 'l> {
    fn new(options: &'o Options, input: &'o [u8], lines: &'l mut Lines<'s>) -> Self {
        Show {
            options,
            input,
            lines,
            summary: SummaryBuilder::new(),
            totals: Summary::default(),
            shown: 0,
            below_cutoff: 0,
            calls: ValueStatistics::default(),
            vtables: ValueStatistics::default(),
            sizes: ValueStatistics::default(),
            largest: Vec::new(),
        }
    }

    fn show(mut self, profile: &mut Profile<'_>) -> Result<(), Fault> {
        let options = self.options;
        let is_ir = profile.kind().is_ir();
        if options.text {
            if is_ir {
                self.lines.text(b":ir").end();
            }
        } else if options.only_below_cutoff {
            self.lines
                .text(b"The list of functions with the maximum counter less than ")
                .number(options.value_cutoff)
                .text(b":")
                .end();
        }
        let mut record = Record::default();
        let (done, mut shown) = self.sound_names(profile, is_ir, &mut record);
        if !done {
            // A record at a time, as far as LLVM reads it. What was shown already is passed over.
            while self.checked(profile.read_record(&mut record))? {
                if shown > 0 {
                    shown -= 1;
                    continue;
                }
                self.selected(profile, &record, is_ir);
                if self.lines.is_broken() {
                    break;
                }
            }
        }
        if options.text || options.covered {
            return Ok(());
        }
        self.tail(profile)
    }

    /// Shows the records of an indexed profile in one pass over its bytes, until something is damaged. Returns whether
    /// nothing is, and the number of records that were shown.
    fn sound_names(
        &mut self,
        profile: &Profile<'_>,
        is_ir: bool,
        record: &mut Record,
    ) -> (bool, u64) {
        let options = self.options;
        let Some(indexed) = profile.indexed() else {
            return (false, 0);
        };
        let shows_none = options.shows_no_records();
        let mut read = 0;
        let sound = indexed.scan(|mut names| {
            if let Some((func_hash, counts)) = names.plain().filter(|_| shows_none) {
                let counts = counts.iter().map(|&bytes| u64::from_le_bytes(bytes));
                let sums = RecordSums::of(counts);
                if !self.is_of_other_stage(func_hash, is_ir) && !sums.is_pseudo() {
                    self.totals.add_record(&sums);
                }
                read += 1;
                return true;
            }
            loop {
                match names.read_record(record) {
                    Ok(true) => self.selected(profile, record, is_ir),
                    Ok(false) => return true,
                    Err(_) => return false,
                }
                read += 1;
                if self.lines.is_broken() {
                    return false;
                }
            }
        });
        (sound || self.lines.is_broken(), read)
    }

    fn is_of_other_stage(&self, hash: FuncHash, is_ir: bool) -> bool {
        is_ir && hash.is_context_sensitive() != self.options.context_sensitive
    }

    fn selected(&mut self, profile: &Profile<'_>, record: &Record, is_ir: bool) {
        if self.is_of_other_stage(record.func_hash, is_ir) {
            return;
        }
        if self.options.text && self.options.shows(&record.name) {
            text_record(self.lines, profile, record);
        } else {
            self.record(profile, record, is_ir);
        }
    }

    fn checked<T>(&self, result: Result<T, Error>) -> Result<T, Fault> {
        result.map_err(|error| Fault::profile(self.input, &error))
    }

    fn record(&mut self, profile: &Profile<'_>, record: &Record, is_ir: bool) {
        let options = self.options;
        let shows = options.shows(&record.name);
        let pseudo = record.is_pseudo();
        if !pseudo && options.cutoffs.is_empty() {
            let sums = RecordSums::of(record.counts.iter().copied());
            self.totals.add_record(&sums);
        } else if !pseudo {
            self.summary.add_counts(&record.counts);
        }
        if options.covered {
            if record.counts.iter().any(|&count| count != 0) {
                self.lines.text(&record.name).end();
            }
            return;
        }
        if pseudo {
            if shows {
                self.begin(record);
                let hot = record.counts.first() == Some(&indexed::PSEUDO_HOT);
                let marker: &[u8] = if hot {
                    b"    <PseudoHot>"
                } else {
                    b"    <PseudoWarm>"
                };
                self.lines.text(marker).end();
            }
            return;
        }
        let largest = record.counts.iter().copied().max().unwrap_or(0);
        if largest < options.value_cutoff {
            self.below_cutoff += 1;
            if options.only_below_cutoff {
                let sum = record
                    .counts
                    .iter()
                    .fold(0, |sum: u64, &count| sum.wrapping_add(count));
                self.lines.text(b"  ").text(&record.name).text(b": (Max = ");
                self.lines.number(largest).text(b" Sum = ").number(sum);
                self.lines.text(b")").end();
            }
            return;
        }
        if options.only_below_cutoff {
            return;
        }
        if options.top > 0 || options.hot_functions {
            self.largest.push((record.name.clone(), largest));
        }
        if shows {
            self.begin(record);
            self.lines.end();
            self.details(profile, record, is_ir);
        }
    }

    /// Prints the lines that every shown function has. The last line gets its line break from the caller, because a
    /// marker for hot or warm may follow in this line.
    fn begin(&mut self, record: &Record) {
        let lines = &mut *self.lines;
        if self.shown == 0 {
            lines.text(b"Counters:\n");
        }
        self.shown += 1;
        lines.text(b"  ").text(&record.name);
        lines.text(b":\n    Hash: 0x").hex(record.func_hash.0);
        lines
            .text(b"\n    Counters: ")
            .number(record.counts.len() as u64);
    }

    fn details(&mut self, profile: &Profile<'_>, record: &Record, is_ir: bool) {
        let options = self.options;
        let lines = &mut *self.lines;
        let sites = |kind| {
            record
                .values
                .kind(kind)
                .map_or(0, |kind| kind.site_count() as u64)
        };
        if !is_ir {
            let first = record.counts.first().copied().unwrap_or(0);
            lines
                .text(b"    Function count: ")
                .number(first)
                .text(b"\n");
        }
        if options.call_targets {
            let count = sites(value_kind::INDIRECT_CALL_TARGET);
            lines
                .text(b"    Indirect Call Site Count: ")
                .number(count)
                .text(b"\n");
        }
        if options.vtables {
            let count = sites(value_kind::VTABLE_TARGET);
            lines
                .text(b"    Number of instrumented vtables: ")
                .number(count)
                .text(b"\n");
        }
        let size_sites = sites(value_kind::MEM_OP_SIZE);
        if options.sizes && size_sites > 0 {
            lines
                .text(b"    Number of Memory Intrinsics Calls: ")
                .number(size_sites)
                .text(b"\n");
        }
        if options.counts {
            lines.text(b"    Block counts: [");
            let counts = match (is_ir, record.counts.as_slice()) {
                (false, [_, counts @ ..]) => counts,
                (_, counts) => counts,
            };
            let mut separator: &[u8] = b"";
            for &count in counts {
                lines.text(separator).number(count).flush_if_full();
                separator = b", ";
            }
            lines.text(b"]\n");
            // LLVM's reader of raw profiles does not make the bits; those of a text are never there.
            if profile.indexed().is_some() && !record.uniformity.is_empty() {
                uniformity(lines, record, usize::from(!is_ir));
            }
        }
        if options.call_targets {
            lines.text(b"    Indirect Target Results:\n");
            let values = record.values.kind(value_kind::INDIRECT_CALL_TARGET);
            self.calls.show(lines, values, Some(profile));
        }
        if options.vtables {
            lines.text(b"    VTable Results:\n");
            let values = record.values.kind(value_kind::VTABLE_TARGET);
            self.vtables.show(lines, values, Some(profile));
        }
        if options.sizes && size_sites > 0 {
            lines.text(b"    Memory Intrinsic Size Results:\n");
            let values = record.values.kind(value_kind::MEM_OP_SIZE);
            self.sizes.show(lines, values, None);
        }
        lines.flush_if_full();
    }

    fn tail(mut self, profile: &mut Profile<'_>) -> Result<(), Fault> {
        let options = self.options;
        let kind = profile.kind();
        let summary = match options.cutoffs.is_empty() {
            true => std::mem::take(&mut self.totals),
            false => std::mem::take(&mut self.summary).finish_with(&options.cutoffs),
        };
        let lines = &mut *self.lines;
        if kind.is_ir() {
            let flag = |set| u64::from(kind.contains(set));
            lines.text(b"Instrumentation level: IR  entry_first = ");
            lines.number(flag(InstrKind::ENTRY_FIRST));
            lines.text(b"  instrument_loop_entries = ");
            lines.number(flag(InstrKind::LOOP_ENTRIES)).end();
        } else {
            lines.text(b"Instrumentation level: Front-end").end();
        }
        let mut total = |name: &str, number| lines.text(name).number(number).end();
        if options.all_functions || !options.function.is_empty() {
            total("Functions shown: ", self.shown);
        }
        total("Total functions: ", summary.functions);
        total("Maximum function count: ", summary.max_function_count);
        total("Maximum internal block count: ", summary.max_internal_count);
        total("Total number of blocks: ", summary.blocks);
        total("Total count: ", summary.total_count);
        if options.value_cutoff > 0 {
            let above = summary.functions.wrapping_sub(self.below_cutoff);
            for (sign, count) in [("<", self.below_cutoff), (">=", above)] {
                lines
                    .text(b"Number of functions with maximum count (")
                    .text(sign)
                    .text(b" ");
                lines
                    .number(options.value_cutoff)
                    .text(b"): ")
                    .number(count)
                    .end();
            }
        }
        self.largest_functions(&summary)?;
        if self.shown > 0 && options.call_targets {
            self.lines
                .text(b"Statistics for indirect call sites profile:\n");
            self.calls.totals(self.lines);
        }
        if self.shown > 0 && options.vtables {
            self.lines.text(b"Statistics for vtable profile:\n");
            self.vtables.totals(self.lines);
        }
        if self.shown > 0 && options.sizes {
            self.lines
                .text(b"Statistics for memory intrinsic calls sizes profile:\n");
            self.sizes.totals(self.lines);
        }
        if options.detailed_summary {
            detailed_summary(self.lines, &summary);
        }
        if options.binary_ids
            && let Some(ids) = self.checked(profile.binary_ids())?
        {
            self.lines.text(b"Binary IDs: \n");
            for id in ids {
                for &byte in &id.0 {
                    self.lines.hex_byte(byte);
                }
                self.lines.end();
            }
        }
        if options.version {
            self.lines
                .text(b"Profile version: ")
                .number(profile.version())
                .end();
        }
        if options.traces {
            self.traces(profile)?;
        }
        Ok(())
    }

    fn largest_functions(&mut self, summary: &Summary) -> Result<(), Fault> {
        let options = self.options;
        let lines = &mut *self.lines;
        self.largest
            .sort_by_key(|&(_, largest)| std::cmp::Reverse(largest));
        if options.top > 0 {
            lines.text(b"Top ").number(options.top);
            lines.text(b" functions with the largest internal block counts: \n");
            let top = usize::try_from(options.top).unwrap_or(usize::MAX);
            for (name, largest) in self.largest.iter().take(top) {
                lines
                    .text(b"  ")
                    .text(name)
                    .text(b", max count = ")
                    .number(*largest)
                    .end();
            }
        }
        if options.hot_functions {
            let threshold = options.thresholds.hot(summary).ok_or_else(no_cutoff)?;
            lines
                .text(b"# Hot count threshold: ")
                .number(threshold)
                .end();
            for (name, _) in self
                .largest
                .iter()
                .take_while(|(_, largest)| *largest >= threshold)
            {
                lines.text(name).end();
            }
        }
        Ok(())
    }

    fn traces(&mut self, profile: &mut Profile<'_>) -> Result<(), Fault> {
        let traces = self.checked(profile.temporal_traces())?;
        let lines = &mut *self.lines;
        lines
            .text(b"Temporal Profile Traces (samples=")
            .number(traces.traces.len() as u64);
        lines
            .text(b" seen=")
            .number(traces.stream_size)
            .text(b"):")
            .end();
        for (index, trace) in (0u64..).zip(&traces.traces) {
            lines.text(b"  Temporal Profile Trace ").number(index);
            lines.text(b" (weight=").number(trace.weight);
            lines
                .text(b" count=")
                .number(trace.functions.len() as u64)
                .text(b"):")
                .end();
            for &function in &trace.functions {
                let name = profile.name(function).unwrap_or_default();
                lines.text(b"    ").text(name).end();
            }
        }
        Ok(())
    }
}

fn text_record(lines: &mut Lines<'_>, profile: &Profile<'_>, record: &Record) {
    let mut writer = TextWriter::new(lines);
    let written = writer.record(
        &record.name,
        record.func_hash,
        &record.counts,
        &record.bitmap,
        Some(&record.values),
        &|name_ref| profile.name(name_ref),
    );
    // The error can be ignored, because `lines` keeps the first error of its sink.
    let _ = written.and_then(|()| writer.finish());
}

/// Prints for each block whether all threads of a wave entered it together: U if so, D if they diverged.
fn uniformity(lines: &mut Lines<'_>, record: &Record, skipped: usize) {
    lines.text(b"    Block uniformity: [");
    let mut separator: &[u8] = b"";
    for block in record.block_uniformity().skip(skipped) {
        let letter: &[u8] = if block { b"U" } else { b"D" };
        lines.text(separator).text(letter).flush_if_full();
        separator = b", ";
    }
    lines.text(b"]\n");
}
