//! Profiles as text for people.
use super::{Details, Head, Layout, Printer, Rest, pseudo};
use crate::rows::group_word;
use crate::{Cell, Console, Document, Grouping, Style, Table, grouped, percent, plural};
use profkit_abi::value_kind;
use profkit_analysis::doctor::Readers;
use profkit_analysis::heat::HeatCounts;
use profkit_analysis::instr::{InstrFacts, InstrReader, Share, Totals, counter_sum};
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::ranking::{FunctionNumbers, FunctionOrder, Group};
use profkit_data::bytes::Endian;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::raw::PointerWidth;
use profkit_data::instr::{InstrKind, KindValues, Record, TemporalTraces};
use profkit_data::releases::{RELEASES, display_compilers, display_range};
use profkit_data::summary::Summary;
use rustc_hash::FxHashSet;
use std::fmt::Write as _;
use std::io::{self, Write};

const ROW: usize = 8;
const MOST_IDS: usize = 3;
const BITMAP_ROW: usize = 32;

/// Prints text.
#[derive(Debug)]
pub struct TextPrinter<W> {
    out: Console<W>,
    text: Text,
}

#[derive(Debug)]
struct Text {
    spelling: Spelling,
    /// Whether the size of a memory intrinsic means a range of sizes, as in profiles of LLVM 12 and later.
    ranges: bool,
}

impl<W: Write> TextPrinter<W> {
    /// Makes a printer that writes to `out`.
    pub fn new(out: Console<W>, spelling: Spelling) -> Self {
        let ranges = false;
        let text = Text { spelling, ranges };
        TextPrinter { out, text }
    }
}

impl<W: Write> Printer for TextPrinter<W> {
    fn head(&mut self, head: &Head<'_>) -> io::Result<()> {
        self.text.ranges = head.facts.version.is_some_and(|version| version >= 7);
        head.document().print(&mut self.out)
    }

    fn record(
        &mut self,
        record: &Record,
        details: Details,
        source: &InstrReader<'_>,
    ) -> io::Result<()> {
        let document = self.text.record(record, details, source);
        document.print(&mut self.out)
    }

    fn rest(&mut self, rest: &Rest<'_>, source: &InstrReader<'_>) -> io::Result<()> {
        self.text.rest(rest, source).print(&mut self.out)?;
        self.out.flush()
    }
}

impl Head<'_> {
    /// The text for people.
    pub fn document(&self) -> Document {
        let mut document = Document::default();
        document.title(self.name, describe(self.facts));
        document.fact("instrumentation", stated(self.facts.instrumentation));
        let size = grouped(self.size);
        document.fact("size", format_args!("{size} bytes"));
        for layout in &self.layouts {
            add_layout(&mut document, layout);
        }
        document
    }
}

/// What a profile counts, in words.
pub(crate) fn stated(kind: InstrKind) -> String {
    if kind.is_unknown() {
        "not stated (assumed to be front-end)".to_owned()
    } else {
        kind.to_string()
    }
}

pub(crate) fn add_layout(document: &mut Document, layout: &Layout) {
    document.line("");
    if let Some(index) = layout.index {
        let offset = layout.offset;
        document.line(format_args!("Profile {index} at offset {offset:#x}"));
    }
    if let Some(fields) = &layout.header {
        document.heading("Header");
        for (name, offset, value) in fields {
            let plain = plain_value(name, *value);
            let line = format!("  {offset:#08x}  {name:32}  {value:#018x}  {plain}");
            document.line(line.trim_end());
        }
    }
    if let Some(sections) = &layout.sections {
        document.heading("Sections");
        for section in sections {
            let (offset, name) = (section.offset, section.structure.to_string());
            let size = grouped(section.size);
            let missing = match section.missing {
                0 => String::new(),
                missing => format!(", {} missing", grouped(missing)),
            };
            document.line(format_args!(
                "  {offset:#08x}  {name:24}  {size:>14} bytes{missing}"
            ));
        }
    }
}

/// Adds rows of `per_row` things each; the first row has a label.
fn add_rows<T>(
    document: &mut Document,
    label: &str,
    things: &[T],
    per_row: usize,
    text: impl Fn(&mut String, &T),
) {
    for (row, chunk) in things.chunks(per_row).enumerate() {
        let label = if row == 0 { label } else { "" };
        let mut line = format!("  {label:8}");
        chunk.iter().for_each(|thing| text(&mut line, thing));
        document.line(line);
    }
}

impl Text {
    fn record(&self, record: &Record, details: Details, source: &InstrReader<'_>) -> Document {
        let mut document = Document::default();
        document.section(match record.name.as_slice() {
            [] => format!("(unknown name {})", record.name_ref),
            name => names::spelled(name, self.spelling).into_owned(),
        });
        let counters = plural(record.counts.len() as u64, "counter");
        let counts = match (pseudo(record), record.counts.as_slice()) {
            (Some(pseudo), _) => format!(", pseudo-{pseudo}: no counts"),
            (None, [entry]) => format!(": {}", grouped(*entry)),
            (None, [entry, ..]) => {
                let sum = grouped(counter_sum(record));
                format!(", first {}, sum {sum}", grouped(*entry))
            }
            (None, []) => String::new(),
        };
        let hash = record.func_hash;
        document.line(format_args!("  hash {hash}, {counters}{counts}"));
        if details.counts && pseudo(record).is_none() && record.counts.len() > 1 {
            let largest = record.counts.iter().max();
            let width = largest.map_or(0, |&max| grouped(max).len());
            add_rows(
                &mut document,
                "counts",
                &record.counts,
                ROW,
                |line, &count| {
                    let _ = write!(line, "  {:>width$}", grouped(count));
                },
            );
        }
        if details.bitmaps {
            let bytes: Vec<_> = record
                .bitmap
                .chunks(BITMAP_ROW)
                .map(|row| BuildId(row.to_vec()))
                .collect();
            add_rows(&mut document, "bitmap", &bytes, 1, |line, bytes| {
                let _ = write!(line, "  {bytes}");
            });
            if !record.uniformity.is_empty() {
                let uniform = grouped(record.uniform_blocks());
                let all = plural(record.counts.len() as u64, "block");
                document.line(format_args!("  uniform   {uniform} of {all}"));
            }
        }
        for ((kind, values), wanted) in record.values.kinds().zip(details.values) {
            if wanted && values.site_count() > 0 {
                self.values(&mut document, kind, values, source);
            }
        }
        document
    }

    fn values(
        &self,
        document: &mut Document,
        kind: u32,
        values: &KindValues,
        source: &InstrReader<'_>,
    ) {
        let (title, event) = match kind {
            value_kind::INDIRECT_CALL_TARGET => ("indirect calls", "calls"),
            value_kind::MEM_OP_SIZE => ("memory intrinsic sizes", "calls"),
            _ => ("virtual tables", "uses"),
        };
        document.line(format_args!("  {title}"));
        for (index, site) in values.sites().enumerate() {
            let total: u128 = site.iter().map(|one| u128::from(one.count)).sum();
            if site.is_empty() {
                document.line(format_args!("    site {index}: none"));
                continue;
            }
            let calls = grouped(total);
            document.line(format_args!("    site {index}: {calls} {event}"));
            let mut sorted = site.to_vec();
            sorted.sort_by_key(|one| std::cmp::Reverse(one.count));
            let width = sorted.first().map_or(0, |one| grouped(one.count).len());
            for one in sorted {
                let count = grouped(one.count);
                let share = percent(u128::from(one.count), total);
                let value = match kind {
                    value_kind::MEM_OP_SIZE => self.size(one.value),
                    value_kind::VTABLE_TARGET if one.value == 0 => "(no known vtable)".to_owned(),
                    _ => self.target(one.value, source),
                };
                document.line(format_args!("      {count:>width$}  {share:>6}  {value}"));
            }
        }
    }

    fn target(&self, value: u64, source: &InstrReader<'_>) -> String {
        match source.name_of(NameRef(value)) {
            Some(name) => names::spelled(name, self.spelling).into_owned(),
            None if value == 0 => "(outside the profiled program)".to_owned(),
            None => format!("(unknown name {})", NameRef(value)),
        }
    }

    /// The size of a memory intrinsic. LLVM's runtime groups sizes above 8: 17 means 17 to 31 bytes, 33 means 33 to 63.
    fn size(&self, size: u64) -> String {
        match size {
            1 => "1 byte".to_owned(),
            513 if self.ranges => "513 bytes or more".to_owned(),
            9.. if self.ranges && (size - 1).is_power_of_two() && size < 513 => {
                format!("{size} to {} bytes", 2 * (size - 1) - 1)
            }
            _ => format!("{} bytes", grouped(size)),
        }
    }

    fn rest(&self, rest: &Rest<'_>, source: &InstrReader<'_>) -> Document {
        let mut document = Document::default();
        if let Some((groups, by, total)) = rest.groups {
            add_groups(&mut document, &INSTR_GROUPS, groups, by, total);
        }
        if let Some((ids, readers)) = &rest.origin {
            for (index, id) in ids.iter().enumerate().take(MOST_IDS) {
                let label = if index == 0 { "build id" } else { "" };
                document.fact(label, id);
            }
            if ids.len() > MOST_IDS {
                let more = grouped(ids.len() - MOST_IDS);
                document.fact("", format_args!("and {more} more: --binary-ids"));
            }
            document.fact("read by", read_by(readers));
        }
        if let Some((kept, seen)) = rest.trace_counts {
            let (kept, seen) = (grouped(kept), grouped(seen));
            document.fact("traces", format_args!("{kept} of {seen} seen: --traces"));
        }
        if let Some(traces) = &rest.traces {
            self.traces(&mut document, traces, source);
        }
        if let Some(ids) = &rest.binary_ids {
            document.section("Build ids");
            if ids.is_empty() {
                document.line("  none");
            }
            ids.iter()
                .for_each(|id| document.line(format_args!("  {id}")));
        }
        let totals = &rest.totals;
        if let Some((first, second)) = &rest.summaries {
            let of_second = second.as_ref();
            summaries(&mut document, first, of_second, totals, rest.detailed);
        }
        if rest.shares {
            let words = ["functions", "counts", "counter"];
            hot_and_cold(&mut document, words, &totals.shares(), totals.heat);
        }
        if let Some((hot, order)) = &rest.hot {
            let by = match order {
                FunctionOrder::Sum => "by the sum of their counters",
                FunctionOrder::Max => "by their largest counter",
                FunctionOrder::Entry => "by their first counter",
                FunctionOrder::Name => "by name",
            };
            document.section(top_title(hot.len(), "function", by));
            let mut seen = FxHashSet::default();
            let rows = hot.iter().map(|function| {
                let mut name = names::spelled(&function.name, self.spelling).into_owned();
                if function.instances > 1 {
                    name += &format!(" ({} instances)", grouped(function.instances));
                }
                // Several functions of one name differ in their hash.
                let again = !function.name.is_empty() && !seen.insert(&function.name);
                if let Some(hash) = function.hash.filter(|_| again) {
                    name += &format!(" (hash {hash})");
                }
                (function.numbers, name)
            });
            document.table(ranking_table(
                &INSTR_TITLES,
                *order,
                rows.collect(),
                totals.sum,
                None,
            ));
        }
        if let Some(sum) = rest.heap {
            document.section("Heap profile in the same file: --memory shows it");
            document.facts([
                ("contexts", sum.contexts, ""),
                ("allocations", sum.allocations, ""),
                ("bytes", sum.bytes, ""),
            ]);
        }
        document
    }

    fn traces(&self, document: &mut Document, traces: &TemporalTraces, source: &InstrReader<'_>) {
        let (kept, seen) = (traces.traces.len(), grouped(traces.stream_size));
        document.section(format_args!("Temporal traces: {kept} of {seen} seen"));
        for (index, trace) in traces.traces.iter().enumerate() {
            let functions = plural(trace.functions.len() as u64, "function");
            let weight = grouped(trace.weight);
            document.line(format_args!(
                "  trace {index}: weight {weight}, {functions}"
            ));
            for function in &trace.functions {
                let name = self.target(function.0, source);
                document.line(format_args!("    {name}"));
            }
        }
    }
}

fn summaries(
    document: &mut Document,
    first: &Summary,
    second: Option<&Summary>,
    totals: &Totals,
    detailed: bool,
) {
    document.line("");
    let ran = (second.is_none() && first.functions > 0).then_some(totals);
    if first.functions > 0 || second.is_none() {
        add_summary(document, "Summary", first, ran);
    }
    if let Some(second) = second {
        add_summary(
            document,
            "Summary of context-sensitive records",
            second,
            None,
        );
    }
    let sites = [
        "indirect call sites",
        "memory intrinsic sites",
        "virtual call sites",
    ];
    let sites = sites
        .into_iter()
        .zip(&totals.values)
        .map(|(title, values)| {
            let with_values = grouped(values.sites_with_values);
            let mut remark = format!(
                "{with_values} with values, {} values",
                grouped(values.values)
            );
            if values.full_sites > 0 {
                remark += &format!(
                    "; {} with 24 or 255, the most that are kept: others may be missing",
                    grouped(values.full_sites)
                );
            }
            (title, values.sites, remark)
        });
    let pseudo = "marked as pseudo-hot or pseudo-warm, not in the summary".to_owned();
    let bitmaps = plural(totals.bitmap_bytes, "byte");
    let uniform = "with uniform blocks noted".to_owned();
    let first_row = [("functions without counts", totals.pseudo_records, pseudo)];
    let last_rows = [
        ("functions with bitmaps", totals.bitmap_records, bitmaps),
        ("GPU functions", totals.uniformity_records, uniform),
    ];
    let rows = first_row.into_iter().chain(sites).chain(last_rows);
    let rows: Vec<_> = rows.filter(|(_, count, _)| *count > 0).collect();
    if !rows.is_empty() {
        document.section("Beside the counters");
        document.facts(rows);
    }
    let of_second = " of context-sensitive records";
    for (title, summary) in [("", Some(first)), (of_second, second)] {
        let Some(summary) = summary.filter(|_| detailed) else {
            continue;
        };
        document.section(format_args!("Shares of all counts{title}"));
        document.table(cutoffs_table("counters", summary));
    }
}

/// Adds a summary. If `totals` are given, the text also says how much of the program ran.
fn add_summary(document: &mut Document, title: &str, summary: &Summary, totals: Option<&Totals>) {
    let ran = |part: u64, whole: u64, what: &str| {
        let share = percent(u128::from(part), u128::from(whole));
        format!("{} {what} ({share})", grouped(part))
    };
    let (entered, above) = totals.map_or_else(Default::default, |totals| {
        (
            ran(totals.functions_entered, summary.functions, "entered"),
            ran(totals.counters_above_zero, summary.blocks, "above 0"),
        )
    });
    document.heading(title);
    document.facts([
        ("functions", summary.functions, &*entered),
        ("counters", summary.blocks, &*above),
        ("sum of counters", summary.total_count, ""),
        ("largest first counter", summary.max_function_count, ""),
        ("largest other counter", summary.max_internal_count, ""),
    ]);
}

/// The title of a list: `Top 10 functions by …`. `what` is the singular of what is listed.
pub(crate) fn top_title(count: usize, what: &str, by: &str) -> String {
    format!("Top {} {by}", plural(count as u64, what))
}

/// Returns a text that names the LLVM releases which can read a profile.
pub fn read_by(readers: &Readers) -> String {
    match (&readers.tool, &readers.compilers) {
        // If the newest known release reads an indexed profile or a text, then later releases do too.
        (_, Some(compilers))
            if RELEASES.last().map(|last| last.release) == Some(*compilers.start()) =>
        {
            format!("LLVM {} or later", compilers.start())
        }
        (_, Some(compilers)) => format!("LLVM {}", display_compilers(compilers)),
        (Some(tool), None) => format!(
            "llvm-profdata {}; compilers after `profkit merge`",
            display_compilers(tool)
        ),
        (None, None) => {
            "no release of LLVM; `profkit merge` makes a profile for compilers".to_owned()
        }
    }
}

/// Adds how many functions are hot, warm and cold, and how few make most of all counts. `what` is listed, `counts` are
/// counted, and each function has several of what the third word says.
pub(crate) fn hot_and_cold(
    document: &mut Document,
    [what, counts, one]: [&str; 3],
    shares: &[Share],
    heat: HeatCounts,
) {
    let [most, nearly, all_but_few] = shares else {
        return;
    };
    document.section(format_args!("Hot and cold {what}"));
    let hot = format!("have a {one} among those that make 99% of all {counts}");
    let cold = match heat.cold {
        0 => String::new(),
        _ => format!("their largest {one} is among the last millionth"),
    };
    let mut rows = temperatures([heat.hot, heat.warm, heat.cold], [hot, String::new(), cold]);
    rows.push((
        Cell::styled(Style::Dim, "never ran"),
        heat.never_ran,
        String::new(),
    ));
    document.facts(rows);
    let [most, nearly, all_but_few] =
        [most, nearly, all_but_few].map(|share| grouped(share.functions));
    document.wrapped(
        "  ",
        format_args!(
            "{what} that together have 90% of all {counts}: {most}; 99%: {nearly}; 99.9%: {all_but_few}"
        ),
    );
}

/// The rows of a table of hot, warm and cold things.
pub(crate) fn temperatures<C, R>(numbers: [C; 3], remarks: [R; 3]) -> Vec<(Cell, C, R)> {
    let names = [
        (Style::Hot, "hot"),
        (Style::Warm, "warm"),
        (Style::Cold, "cold"),
    ];
    let names = names.map(|(style, name)| Cell::styled(style, name));
    let rows = names.into_iter().zip(numbers).zip(remarks);
    rows.map(|((name, number), remark)| (name, number, remark))
        .collect()
}

/// The titles of three columns of a table of functions: the sum, the largest and the first count of a function.
pub(crate) type Titles = [&'static str; 3];

const INSTR_TITLES: Titles = ["sum", "largest", "first"];

/// The first functions of a sorted list, with the number that sorts them, their sum, shares of `total`, and a bar;
/// `headers` are the numbers in the headers of the functions of a sample profile.
pub(crate) fn ranking_table(
    &[sum_title, max_title, entry_title]: &Titles,
    order: FunctionOrder,
    rows: Vec<(FunctionNumbers, String)>,
    total: u128,
    headers: Option<&[u64]>,
) -> Table {
    let (title, key): (_, fn(&FunctionNumbers) -> u128) = match order {
        FunctionOrder::Max => (max_title, |numbers| numbers.max.into()),
        FunctionOrder::Entry => (entry_title, |numbers| numbers.entry.into()),
        _ => (sum_title, |numbers| numbers.sum),
    };
    let by_sum = matches!(order, FunctionOrder::Sum | FunctionOrder::Name);
    let (title, sum) = (format!(">{title}"), format!(">{sum_title}"));
    let mut columns = vec![&*title];
    columns.extend((!by_sum).then_some(&*sum));
    columns.push(">share");
    columns.extend((order == FunctionOrder::Sum).then_some(">together?"));
    columns.extend(headers.map(|_| ">header total?"));
    columns.extend(["<?", "<function"]);
    let mut table = Table::new(columns);
    let largest = rows.iter().map(|(numbers, _)| key(numbers)).max();
    let mut together = 0;
    for (at, (numbers, name)) in rows.into_iter().enumerate() {
        together += numbers.sum;
        let mut cells: Vec<Cell> = vec![key(&numbers).into()];
        cells.extend((!by_sum).then(|| numbers.sum.into()));
        cells.push(percent(numbers.sum, total).into());
        cells.extend((order == FunctionOrder::Sum).then(|| percent(together, total).into()));
        cells.extend(headers.map(|list| list.get(at).copied().unwrap_or(0).into()));
        cells.push(Cell::bar(Style::Bar, key(&numbers), largest.unwrap_or(0)));
        cells.push(name.into());
        table.row(cells);
    }
    table
}

/// The heading of a table of groups, and three titles: the items of a group, those that ran, the sum.
pub(crate) type GroupTitles = [&'static str; 4];

const INSTR_GROUPS: GroupTitles = ["Functions", "functions", "entered", "sum"];

pub(crate) fn add_groups(
    document: &mut Document,
    &[what, count, entered, sum]: &GroupTitles,
    groups: &[Group],
    by: Grouping<'_>,
    total: u128,
) {
    let word = group_word(by.by);
    let numbers = [count, entered, sum, "share"].map(|title| format!(">{title}"));
    let names = ["<?".to_owned(), format!("<{word}")];
    let mut table = Table::new(numbers.into_iter().chain(names));
    let (unknown, why) = by.unknown();
    let largest = groups.iter().map(|group| group.sum).max().unwrap_or(0);
    for group in groups {
        let name = match &group.name {
            Some(name) => names::printable(name.as_bytes()).into_owned(),
            None => unknown.to_owned(),
        };
        table.row([
            group.functions.into(),
            group.entered.into(),
            group.sum.into(),
            percent(group.sum, total).into(),
            Cell::bar(Style::Bar, group.sum, largest),
            name.into(),
        ]);
    }
    document.section(format_args!("{what} by {word}"));
    document.table(table);
    if let Some(why) = why.filter(|_| groups.iter().any(|group| group.name.is_none())) {
        let why = format!("  {unknown}: {why}");
        document.pieces([Cell::styled(Style::Dim, why)]);
    }
}

/// How many of the hottest counters or lines make each share of all counts, and the smallest of their counts.
pub(crate) fn cutoffs_table(what: &str, summary: &Summary) -> Table {
    let mut table = Table::new([">share", &format!(">{what}"), ">each at least"]);
    for cutoff in &summary.cutoffs {
        // Shares are in millionths.
        let share = format!("{}%", cutoff.cutoff as f64 / 10_000.0);
        table.row([share.into(), cutoff.blocks.into(), cutoff.min_count.into()]);
    }
    table
}

/// Describes a profile, for example `raw profile version 10 (LLVM 19 to 22), 64-bit little-endian`.
pub fn describe(facts: &InstrFacts) -> String {
    let mut text = format!("{} profile", facts.form);
    if let Some(version) = facts.version {
        text += &format!(" version {version}");
    }
    if let Some(writers) = &facts.writers {
        text += &format!(" ({})", display_range(writers));
    }
    if let Some((width, endian)) = facts.machine {
        text += &format!(", {}-bit {}", bits(width), endian_name(endian));
    }
    text
}

/// The number of bits of a pointer.
pub fn bits(width: PointerWidth) -> usize {
    8 * width.bytes()
}

/// The name of a byte order.
pub fn endian_name(endian: Endian) -> &'static str {
    match endian {
        Endian::Little => "little-endian",
        Endian::Big => "big-endian",
    }
}

/// Returns a word of the header as a decimal number for people. Empty for addresses and the magic.
fn plain_value(name: &str, value: u64) -> String {
    match name {
        "Magic" => String::new(),
        "Version" => {
            let flags = InstrKind::from_version_word(value);
            format!("{}, {flags}", value & profkit_abi::variant::VERSION_MASK)
        }
        _ if value < 1 << 40 => grouped(value),
        _ if value > u64::MAX - (1 << 40) => format!("-{}", grouped(value.wrapping_neg())),
        _ => String::new(),
    }
}
