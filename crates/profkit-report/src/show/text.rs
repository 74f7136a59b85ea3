//! Profiles as text for people.
use super::{Context, Details, Layout, Printer, RecordView};
use crate::Grouping;
use crate::rows::group_word;
use crate::{Cell, Column, Console, Style, Table, grouped, percent, plural};
use profkit_abi::value_kind;
use profkit_analysis::doctor::Readers;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::ContextSum;
use profkit_analysis::instr::InstrFacts;
use profkit_analysis::instr::{Share, Totals, counter_sum};
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::ranking::{FunctionNumbers, FunctionOrder, Group, RankedFunction};
use profkit_data::bytes::Endian;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::raw::PointerWidth;
use profkit_data::instr::{InstrKind, KindValues, TemporalTraces};
use profkit_data::releases::{RELEASES, display_compilers, display_range};
use profkit_data::summary::Summary;
use std::io::{self, Write};

/// The number of counters that are printed per row.
const ROW: usize = 8;
/// The largest number of build ids that are listed if `--binary-ids` is not given.
const MOST_IDS: usize = 3;
/// The number of bitmap bytes that are printed per row.
const BITMAP_ROW: usize = 32;

/// Prints text.
#[derive(Debug)]
pub struct TextPrinter<W> {
    out: Console<W>,
    spelling: Spelling,
    /// Whether the size of a memory intrinsic means a range of sizes, as in profiles of LLVM 12 and later.
    ranges: bool,
}

impl<W: Write> TextPrinter<W> {
    /// Makes a printer that writes to `out`.
    pub fn new(out: Console<W>, spelling: Spelling) -> Self {
        TextPrinter {
            out,
            spelling,
            ranges: false,
        }
    }

    fn counts(&mut self, counts: &[u64]) -> io::Result<()> {
        let width = counts.iter().max().map_or(0, |&max| grouped(max).len());
        for (row, chunk) in counts.chunks(ROW).enumerate() {
            let label = if row == 0 { "counts" } else { "" };
            write!(self.out, "  {label:8}")?;
            for &count in chunk {
                write!(self.out, "  {:>width$}", grouped(count))?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn bitmap(&mut self, bitmap: &[u8]) -> io::Result<()> {
        for (row, chunk) in bitmap.chunks(BITMAP_ROW).enumerate() {
            let label = if row == 0 { "bitmap" } else { "" };
            write!(self.out, "  {label:8}  ")?;
            for byte in chunk {
                write!(self.out, "{byte:02x}")?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn values(&mut self, kind: u32, values: &KindValues, context: &Context<'_>) -> io::Result<()> {
        let (title, event) = match kind {
            value_kind::INDIRECT_CALL_TARGET => ("indirect calls", "calls"),
            value_kind::MEM_OP_SIZE => ("memory intrinsic sizes", "calls"),
            _ => ("virtual tables", "uses"),
        };
        writeln!(self.out, "  {title}")?;
        for (index, site) in values.sites().enumerate() {
            let total: u128 = site.iter().map(|one| u128::from(one.count)).sum();
            if site.is_empty() {
                writeln!(self.out, "    site {index}: none")?;
                continue;
            }
            writeln!(self.out, "    site {index}: {} {event}", grouped(total))?;
            let mut sorted = site.to_vec();
            sorted.sort_by_key(|one| std::cmp::Reverse(one.count));
            let width = sorted.first().map_or(0, |one| grouped(one.count).len());
            for one in sorted {
                let count = grouped(one.count);
                let share = percent(u128::from(one.count), total);
                write!(self.out, "      {count:>width$}  {share:>6}  ")?;
                if kind == value_kind::MEM_OP_SIZE {
                    writeln!(self.out, "{}", self.size(one.value))?;
                } else {
                    writeln!(self.out, "{}", self.target(one.value, context))?;
                }
            }
        }
        Ok(())
    }

    fn target(&self, value: u64, context: &Context<'_>) -> String {
        match context.source.name_of(NameRef(value)) {
            Some(name) => names::spelled(name, self.spelling).into_owned(),
            None if value == 0 => "(outside the profiled program)".to_owned(),
            None => format!("(unknown name {})", NameRef(value)),
        }
    }

    /// Returns the text for a size of a memory intrinsic. LLVM's runtime groups sizes above 8 into ranges: the recorded
    /// size 17 means 17 to 31 bytes, 33 means 33 to 63 bytes, and so on.
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

    /// Prints a summary. If `totals` are given, the text also says how much of the program ran.
    fn summary(
        &mut self,
        title: &str,
        summary: &Summary,
        totals: Option<&Totals>,
    ) -> io::Result<()> {
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
        let none = String::new;
        let lines = [
            ("functions", summary.functions, entered),
            ("counters", summary.blocks, above),
            ("sum of counters", summary.total_count, none()),
            ("largest first counter", summary.max_function_count, none()),
            ("largest other counter", summary.max_internal_count, none()),
        ];
        self.out.heading(title)?;
        facts(
            &mut self.out,
            lines.map(|(name, value, remark)| (name, grouped(value), remark)),
        )
    }
}

/// Prints one line per row, with a name, a right-aligned number and a remark.
///
/// # Errors
/// If the writer fails.
pub fn facts<W: Write>(
    out: &mut Console<W>,
    rows: impl IntoIterator<Item = (&'static str, String, String)>,
) -> io::Result<()> {
    let rows = rows.into_iter();
    Table::of_facts(rows.map(|(name, number, remark)| (name.into(), number, remark))).print(out)
}

impl<W: Write> Printer for TextPrinter<W> {
    fn file(&mut self, name: &str, size: u64, facts: &InstrFacts) -> io::Result<()> {
        self.ranges = facts.version.is_some_and(|version| version >= 7);
        self.out.title(name, describe(facts))?;
        let kind = facts.instrumentation;
        let kind = if kind.is_unknown() {
            "not stated (assumed to be front-end)".to_owned()
        } else {
            kind.to_string()
        };
        self.out.fact("instrumentation", kind)?;
        self.out
            .fact("size", format_args!("{} bytes", grouped(size)))
    }

    fn origin(&mut self, ids: &[BuildId], readers: &Readers) -> io::Result<()> {
        for (index, id) in ids.iter().enumerate().take(MOST_IDS) {
            let label = if index == 0 { "build id" } else { "" };
            self.out.fact(label, id)?;
        }
        if ids.len() > MOST_IDS {
            let more = grouped(ids.len() - MOST_IDS);
            self.out
                .fact("", format_args!("and {more} more: --binary-ids"))?;
        }
        let text = read_by(readers);
        self.out.fact("read by", text)
    }

    fn layout(&mut self, layout: &Layout) -> io::Result<()> {
        writeln!(self.out)?;
        if let Some(index) = layout.index {
            writeln!(self.out, "Profile {index} at offset {:#x}", layout.offset)?;
        }
        if let Some(fields) = &layout.header {
            self.out.heading("Header")?;
            for (name, offset, value) in fields {
                let line = format!(
                    "  {offset:#08x}  {name:32}  {value:#018x}  {}",
                    plain_value(name, *value)
                );
                writeln!(self.out, "{}", line.trim_end())?;
            }
        }
        if let Some(sections) = &layout.sections {
            self.out.heading("Sections")?;
            for section in sections {
                let size = grouped(section.size);
                write!(
                    self.out,
                    "  {:#08x}  {:24}  {size:>14} bytes",
                    section.offset,
                    section.structure.to_string()
                )?;
                if section.missing > 0 {
                    write!(self.out, ", {} missing", grouped(section.missing))?;
                }
                writeln!(self.out)?;
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        view: &RecordView<'_>,
        details: Details,
        context: &Context<'_>,
    ) -> io::Result<()> {
        let record = view.record;
        let name = match record.name.as_slice() {
            [] => format!("(unknown name {})", record.name_ref),
            name => names::spelled(name, self.spelling).into_owned(),
        };
        writeln!(self.out)?;
        self.out.heading(name)?;
        let counters = plural(record.counts.len() as u64, "counter");
        write!(self.out, "  hash {}, {counters}", record.func_hash)?;
        match (view.pseudo(), record.counts.first()) {
            (Some(pseudo), _) => writeln!(self.out, ", pseudo-{pseudo}: no counts")?,
            (None, Some(&entry)) if record.counts.len() > 1 => {
                let sum = grouped(counter_sum(record));
                writeln!(self.out, ", first {}, sum {sum}", grouped(entry))?;
            }
            (None, Some(&entry)) => writeln!(self.out, ": {}", grouped(entry))?,
            (None, None) => writeln!(self.out)?,
        }
        if details.counts && view.pseudo().is_none() && record.counts.len() > 1 {
            self.counts(&record.counts)?;
        }
        if details.bitmaps {
            self.bitmap(&record.bitmap)?;
            if !record.uniformity.is_empty() {
                let (uniform, all) = (record.uniform_blocks(), record.counts.len() as u64);
                writeln!(
                    self.out,
                    "  uniform   {} of {}",
                    grouped(uniform),
                    plural(all, "block")
                )?;
            }
        }
        for ((kind, values), wanted) in record.values.kinds().zip(details.values) {
            if wanted && values.site_count() > 0 {
                self.values(kind, values, context)?;
            }
        }
        Ok(())
    }

    fn records_end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn traces(&mut self, traces: &TemporalTraces, context: &Context<'_>) -> io::Result<()> {
        let (kept, seen) = (traces.traces.len(), traces.stream_size);
        writeln!(self.out)?;
        self.out.heading(format_args!(
            "Temporal traces: {} of {} seen",
            kept,
            grouped(seen)
        ))?;
        for (index, trace) in traces.traces.iter().enumerate() {
            let functions = plural(trace.functions.len() as u64, "function");
            writeln!(
                self.out,
                "  trace {index}: weight {}, {functions}",
                grouped(trace.weight)
            )?;
            for function in &trace.functions {
                writeln!(self.out, "    {}", self.target(function.0, context))?;
            }
        }
        Ok(())
    }

    fn binary_ids(&mut self, ids: &[BuildId]) -> io::Result<()> {
        writeln!(self.out)?;
        self.out.heading("Build ids")?;
        if ids.is_empty() {
            writeln!(self.out, "  none")?;
        }
        ids.iter().try_for_each(|id| writeln!(self.out, "  {id}"))
    }

    fn shares(&mut self, totals: &Totals) -> io::Result<()> {
        let all = totals.records - totals.pseudo_records;
        let idle = (all - totals.functions_entered, "never entered");
        hot_and_cold(
            &mut self.out,
            ["functions", "counts"],
            &totals.shares(),
            all,
            idle,
        )
    }

    fn hot(&mut self, hot: &[RankedFunction], order: FunctionOrder, total: u128) -> io::Result<()> {
        writeln!(self.out)?;
        let by = match order {
            FunctionOrder::Sum => "by the sum of their counters",
            FunctionOrder::Max => "by their largest counter",
            FunctionOrder::Entry => "by their first counter",
            FunctionOrder::Name => "by name",
        };
        self.out.heading(top_title(hot.len(), "function", by))?;
        let rows = hot.iter().map(|function| {
            let mut name = names::spelled(&function.name, self.spelling).into_owned();
            if function.instances > 1 {
                name += &format!(" ({} instances)", grouped(function.instances));
            }
            (function.numbers, name)
        });
        ranking_table(&INSTR_TITLES, order, rows.collect(), total, &mut self.out)
    }

    fn groups(&mut self, groups: &[Group], by: Grouping<'_>, total: u128) -> io::Result<()> {
        groups_table(&INSTR_GROUPS, groups, by, total, &mut self.out)
    }

    fn summaries(
        &mut self,
        first: &Summary,
        second: Option<&Summary>,
        totals: &Totals,
        detailed: bool,
    ) -> io::Result<()> {
        writeln!(self.out)?;
        let ran = (second.is_none() && first.functions > 0).then_some(totals);
        if first.functions > 0 || second.is_none() {
            self.summary("Summary", first, ran)?;
        }
        if let Some(second) = second {
            self.summary("Summary of context-sensitive records", second, None)?;
        }
        let mut more = Vec::new();
        if totals.pseudo_records > 0 {
            let remark = "marked as pseudo-hot or pseudo-warm, not in the summary".to_owned();
            more.push((
                "functions without counts",
                grouped(totals.pseudo_records),
                remark,
            ));
        }
        let titles = [
            "indirect call sites",
            "memory intrinsic sites",
            "virtual call sites",
        ];
        for (title, values) in titles.into_iter().zip(&totals.values) {
            if values.sites > 0 {
                let remark = format!(
                    "{} with values, {} values",
                    grouped(values.sites_with_values),
                    grouped(values.values)
                );
                more.push((title, grouped(values.sites), remark));
            }
        }
        if totals.bitmap_records > 0 {
            let remark = plural(totals.bitmap_bytes, "byte");
            more.push((
                "functions with bitmaps",
                grouped(totals.bitmap_records),
                remark,
            ));
        }
        if totals.uniformity_records > 0 {
            more.push((
                "GPU functions",
                grouped(totals.uniformity_records),
                "with uniform blocks noted".to_owned(),
            ));
        }
        if !more.is_empty() {
            writeln!(self.out)?;
            self.out.heading("Beside the counters")?;
            facts(&mut self.out, more)?;
        }
        if detailed {
            for (title, summary) in [("", Some(first)), (" of context-sensitive records", second)] {
                let Some(summary) = summary else { continue };
                writeln!(self.out)?;
                self.out
                    .heading(format_args!("Shares of all counts{title}"))?;
                let rows = summary.cutoffs.iter();
                let rows = rows.map(|cutoff| (cutoff.cutoff, cutoff.blocks, cutoff.min_count));
                cutoffs_table("counters", rows, &mut self.out)?;
            }
        }
        Ok(())
    }

    fn heap(&mut self, sum: ContextSum) -> io::Result<()> {
        writeln!(self.out)?;
        self.out
            .heading("Heap profile in the same file: --memory shows it")?;
        let rows = [
            ("contexts", grouped(sum.contexts), String::new()),
            ("allocations", grouped(sum.allocations), String::new()),
            ("bytes", grouped(sum.bytes), String::new()),
        ];
        facts(&mut self.out, rows)
    }

    /// This function prints no errors: the command prints them on stderr.
    fn end(&mut self, _faults: &Faults) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the title of a list of functions: "Top 10 functions by …". `what` is the singular of the word for the listed
/// things.
pub fn top_title(count: usize, what: &str, by: &str) -> String {
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

/// Prints how many functions make 90 % of all counts, how many the next 9 %, and how many the rest.
///
/// # Arguments
/// `what` is the plural of what is listed, for example functions. `counts` is the plural of what is counted, for
/// example samples. `idle` is the number of listed things without any counts, and `idle_text` describes them.
///
/// # Errors
/// Those of the writer.
pub(crate) fn hot_and_cold(
    out: &mut Console<impl Write>,
    [what, counts]: [&str; 2],
    shares: &[Share],
    all: u64,
    (idle, idle_text): (u64, &str),
) -> io::Result<()> {
    let [hot, warm, nearly] = shares else {
        return Ok(());
    };
    let cold = all - warm.functions;
    let up_to = nearly.functions - warm.functions;
    let mut last = match (cold.saturating_sub(idle), up_to) {
        (0, _) => String::new(),
        (_, 0) => "the last 1%".to_owned(),
        _ => format!("the last 1%; {} reach 99.9%", grouped(up_to)),
    };
    if idle > 0 {
        let separator = if last.is_empty() { "" } else { "; " };
        last += &format!("{separator}{} {idle_text}", grouped(idle));
    }
    let warm_alone = warm.functions - hot.functions;
    let most = format!("have 90% of all {counts}");
    let rows = [
        (Style::Hot, "hot", hot.functions, most),
        (
            Style::Warm,
            "warm",
            warm_alone,
            "have the next 9%".to_owned(),
        ),
        (Style::Cold, "cold", cold, last),
    ];
    writeln!(out)?;
    out.heading(format_args!("Hot and cold {what}"))?;
    let rows = rows
        .map(|(style, name, count, remark)| (Cell::styled(style, name), grouped(count), remark));
    Table::of_facts(rows).print(out)
}

/// The titles of three columns of a table of functions: the sum, the largest and the first count of a function.
pub(crate) type Titles = [&'static str; 3];

const INSTR_TITLES: Titles = ["sum", "largest", "first"];

/// Prints the first functions of a sorted list as a table. The columns are: the number that the functions are sorted
/// by, the sum of the counts, its share of `total`, the share of this and all earlier rows together, a bar, and the
/// name.
///
/// # Errors
/// If the writer fails.
pub(crate) fn ranking_table<W: Write>(
    &[sum_title, max_title, entry_title]: &Titles,
    order: FunctionOrder,
    rows: Vec<(FunctionNumbers, String)>,
    total: u128,
    out: &mut Console<W>,
) -> io::Result<()> {
    let (title, key): (_, fn(&FunctionNumbers) -> u128) = match order {
        FunctionOrder::Max => (max_title, |numbers| numbers.max.into()),
        FunctionOrder::Entry => (entry_title, |numbers| numbers.entry.into()),
        _ => (sum_title, |numbers| numbers.sum),
    };
    let by_sum = matches!(order, FunctionOrder::Sum | FunctionOrder::Name);
    let mut columns = vec![Column::right(title)];
    if !by_sum {
        columns.push(Column::right(sum_title));
    }
    columns.push(Column::right("share"));
    if order == FunctionOrder::Sum {
        columns.push(Column::right("together").optional());
    }
    columns.extend([Column::left("").optional(), Column::left("function")]);
    let mut table = Table::new(columns);
    let largest = rows
        .iter()
        .map(|(numbers, _)| key(numbers))
        .max()
        .unwrap_or(0);
    let mut together = 0;
    for (numbers, name) in rows {
        together += numbers.sum;
        let mut cells: Vec<Cell> = vec![grouped(key(&numbers)).into()];
        if !by_sum {
            cells.push(grouped(numbers.sum).into());
        }
        cells.push(percent(numbers.sum, total).into());
        if order == FunctionOrder::Sum {
            cells.push(percent(together, total).into());
        }
        let bar = out.look().bar(key(&numbers), largest);
        cells.extend([Cell::styled(Style::Bar, bar), name.into()]);
        table.row(cells);
    }
    table.print(out)
}

/// The heading of a table of groups, and the titles of three columns: the number of items in a group, the number of
/// items that ran, and the sum.
pub(crate) type GroupTitles = [&'static str; 4];

const INSTR_GROUPS: GroupTitles = ["Functions", "functions", "entered", "sum"];

/// Prints a table of groups.
///
/// # Errors
/// If the writer fails.
pub(crate) fn groups_table<W: Write>(
    &[what, count, entered, sum]: &GroupTitles,
    groups: &[Group],
    by: Grouping<'_>,
    total: u128,
    out: &mut Console<W>,
) -> io::Result<()> {
    let word = group_word(by.by);
    let mut table = Table::new([
        Column::right(count),
        Column::right(entered),
        Column::right(sum),
        Column::right("share"),
        Column::left("").optional(),
        Column::left(word),
    ]);
    let (unknown, why) = by.unknown();
    let largest = groups.iter().map(|group| group.sum).max().unwrap_or(0);
    for group in groups {
        let name = match &group.name {
            Some(name) => names::printable(name.as_bytes()).into_owned(),
            None => unknown.to_owned(),
        };
        table.row([
            grouped(group.functions).into(),
            grouped(group.entered).into(),
            grouped(group.sum).into(),
            percent(group.sum, total).into(),
            Cell::styled(Style::Bar, out.look().bar(group.sum, largest)),
            name.into(),
        ]);
    }
    writeln!(out)?;
    out.heading(format_args!("{what} by {word}"))?;
    table.print(out)?;
    if let Some(why) = why.filter(|_| groups.iter().any(|group| group.name.is_none())) {
        out.styled(Style::Dim, format_args!("  {unknown}: {why}"))?;
        writeln!(out)?;
    }
    Ok(())
}

/// Prints how many of the hottest counters or lines make each share of all counts. A row has the share in millionths,
/// the number of counters or lines, and the smallest of their counts.
///
/// # Errors
/// If the writer fails.
pub fn cutoffs_table<W: Write>(
    what: &'static str,
    rows: impl IntoIterator<Item = (u64, u64, u64)>,
    out: &mut Console<W>,
) -> io::Result<()> {
    let mut table = Table::new([
        Column::right("share"),
        Column::right(what),
        Column::right("each at least"),
    ]);
    for (share, count, least) in rows {
        let share = format!("{}%", share as f64 / 10_000.0);
        table.row([share.into(), grouped(count).into(), grouped(least).into()]);
    }
    table.print(out)
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
