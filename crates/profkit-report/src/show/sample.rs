//! Sample profiles as text and as JSON.
use super::json::{
    JsonNames, Members, SCHEMA_VERSION, bare_error, heat_json, of_millionths, with, without_nulls,
};
use super::text::{
    GroupTitles, add_groups, cutoffs_table, hot_and_cold, ranking_table, read_by, top_title,
};
use crate::doctor::gcc_releases;
use crate::rows::{GROUP_COLUMNS, group_json, group_word, number};
use crate::{
    Answer, Cell, Console, Document, Grouping, RowForm, Rows, Style, grouped, numbered, percent,
};
use profkit_analysis::heat::HeatLimits;
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::ranking::{FunctionNumbers, FunctionOrder, Group};
use profkit_analysis::samples::{SampleView, numbers, self_samples};
use profkit_analysis::selection::Selection;
use profkit_data::ids::FuncHash;
use profkit_data::sample::gcov::GcovVersion;
use profkit_data::sample::{
    Function, Location, NameId, ProfileKind, SampleForm, SampleName, Samples,
};
use profkit_data::share;
use profkit_data::summary::Summary;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{self, Write};

const GROUP_TITLES: GroupTitles = ["Functions", "functions", "sampled", "own samples"];

const COLUMNS: [&str; 10] = [
    "function",
    "demangled",
    "context",
    "guid",
    "hash",
    "samples",
    "self",
    "max_line",
    "head",
    "header_total",
];

/// The parts of a sample profile that are shown, and options for showing them.
#[derive(Clone, Debug, Default)]
pub struct SampleParts<'a> {
    /// The filter that selects the functions to show.
    pub selection: Selection,
    /// Whether functions are shown.
    pub functions: bool,
    /// Whether the section table is shown.
    pub sections: bool,
    /// Whether the list of the program's symbols is shown.
    pub symbols: bool,
    /// Whether the summary is shown.
    pub summary: bool,
    /// Whether the summary has the table of shares by hottest lines.
    pub detailed: bool,
    /// The largest number of functions in each list of the hottest functions; `None` if the lists are not shown.
    pub top: Option<usize>,
    /// The order of the functions; `None` if no order was asked for.
    pub order: Option<FunctionOrder>,
    /// What the functions are grouped by; `None` if they are not grouped.
    pub by: Option<Grouping<'a>>,
}

/// A sample profile, and the options for showing it.
#[derive(Clone, Copy, Debug)]
pub struct SampleShow<'a> {
    /// The name of the file.
    pub path: &'a str,
    /// The size of the file in bytes.
    pub size: u64,
    /// The profile.
    pub view: &'a SampleView<'a>,
    /// How names are printed.
    pub spelling: Spelling,
    /// What is shown.
    pub parts: &'a SampleParts<'a>,
}

/// The properties of a sample profile. Each has its flag, its name in JSON, and its description in text.
const KINDS: [(ProfileKind, &str, &str); 8] = [
    (
        ProfileKind::CONTEXT_SENSITIVE,
        "context_sensitive",
        "calling contexts",
    ),
    (ProfileKind::PROBE_BASED, "probe_based", "pseudo probes"),
    (
        ProfileKind::PRE_INLINED,
        "pre_inlined",
        "inlining decided by llvm-profgen",
    ),
    (
        ProfileKind::FS_DISCRIMINATORS,
        "fs_discriminators",
        "flow-sensitive discriminators",
    ),
    (
        ProfileKind::MD5_NAMES,
        "md5_names",
        "names known by their hash",
    ),
    (ProfileKind::PARTIAL, "partial", "code of several programs"),
    (ProfileKind::HAS_ATTRIBUTES, "attributes", "attributes"),
    (ProfileKind::HAS_VTABLES, "vtables", "vtables"),
];

/// The name of a profile's encoding.
pub fn encoding_name(view: &SampleView<'_>) -> &'static str {
    match (view.gcov_version(), view.encoding) {
        (Some(version), _) => SampleForm::Gcov(version).name(),
        (None, Some(encoding)) => encoding.name(),
        (None, None) => "unknown",
    }
}

fn kinds(kind: ProfileKind) -> impl Iterator<Item = (ProfileKind, &'static str, &'static str)> {
    KINDS
        .into_iter()
        .filter(move |(flag, ..)| kind.contains(*flag))
}

/// Returns descriptions of the properties of a profile.
pub fn kind_texts(kind: ProfileKind) -> impl Iterator<Item = &'static str> {
    kinds(kind).map(|(.., text)| text)
}

impl SampleShow<'_> {
    fn name(&self, id: NameId) -> Cow<'_, str> {
        self.view.name(id, self.spelling)
    }

    fn shown(&self) -> Vec<&Function> {
        match self.parts.functions {
            true => self.sorted(&self.parts.selection),
            false => Vec::new(),
        }
    }

    fn sorted(&self, selection: &Selection) -> Vec<&Function> {
        let order = self.parts.order.unwrap_or_default();
        self.view.sorted(selection, order)
    }

    /// The groups, and the sum of all groups. `None` if no groups are asked for.
    fn groups(&self) -> Option<(Grouping<'_>, Vec<Group>, u128)> {
        let by = self.parts.by?;
        let order = self.parts.order.unwrap_or_default();
        let group = |name: SampleName<'_>| by.of_sample(name);
        let groups = self.view.groups(&self.parts.selection, group, order);
        let total = groups.iter().map(|group| group.sum).sum();
        Some((by, groups, total))
    }

    fn summary(&self) -> Option<Summary> {
        self.parts.summary.then(|| self.view.summary())
    }

    fn head(&self) -> Document {
        let mut document = Document::default();
        let encoding = encoding_name(self.view);
        document.title(self.path, format_args!("sample profile, {encoding}"));
        let kinds: Vec<_> = kind_texts(self.view.profile.kind).collect();
        if !kinds.is_empty() {
            document.fact("with", kinds.join(", "));
        }
        document.fact("size", format_args!("{} bytes", grouped(self.size)));
        match self.view.gcov_version() {
            Some(version) if version != GcovVersion::Gcc47 => {
                if let Some(releases) = gcc_releases(version) {
                    document.fact("read by", releases);
                }
            }
            _ => document.fact("read by", read_by(&self.view.readers())),
        }
        if let Some((version, sections)) = self.view.sections().filter(|_| self.parts.sections) {
            document.section(format_args!("Sections (version {version})"));
            for entry in sections {
                document.line(format_args!(
                    "  {:#010x}  {:>14} bytes  flags {:#x}  {}",
                    entry.offset,
                    grouped(entry.size),
                    entry.flags,
                    entry.name()
                ));
            }
        }
        document
    }

    fn rest(&self) -> Document {
        let mut document = Document::default();
        if self.parts.symbols {
            let profile = &self.view.profile;
            let count = grouped(profile.symbol_count());
            document.section(format_args!("Symbols of the program: {count}"));
            for symbol in &profile.symbols {
                document.line(format_args!("  {}", names::printable(symbol)));
            }
            for hash in &profile.symbol_hashes {
                document.line(format_args!("  {hash} (MD5)"));
            }
        }
        if let Some(summary) = self.summary() {
            self.add_summary(&mut document, &summary);
        }
        if let Some((by, groups, total)) = self.groups() {
            let most = self.parts.top.unwrap_or(groups.len()).min(groups.len());
            let shown = groups.get(..most).unwrap_or_default();
            add_groups(&mut document, &GROUP_TITLES, shown, by, total);
        } else if let Some(count) = self.parts.top {
            if self.parts.summary {
                self.add_hot_and_cold(&mut document);
            }
            self.add_hot(&mut document, count);
        }
        document
    }

    fn add_summary(&self, document: &mut Document, summary: &Summary) {
        let (sampled, contexts) = self.view.sampled_and_contexts();
        let share = percent(u128::from(sampled), u128::from(summary.functions));
        let functions = format!("{} with samples ({share})", grouped(sampled));
        let mut rows = vec![("functions", summary.functions, &*functions)];
        rows.extend((contexts > 0).then_some(("calling contexts", contexts, "")));
        rows.extend([
            ("lines", summary.blocks, ""),
            ("samples of lines", summary.total_count, ""),
            ("largest line", summary.max_count, ""),
            ("largest head", summary.max_function_count, ""),
        ]);
        document.section("Summary");
        document.facts(rows);
        if self.parts.detailed {
            document.heading("Shares of all samples");
            document.table(cutoffs_table("lines", summary));
        }
    }

    fn add_hot_and_cold(&self, document: &mut Document) {
        let what = match self.view.sampled_and_contexts() {
            (_, 0) => "functions",
            _ => "contexts",
        };
        let words = [what, "samples", "line"];
        hot_and_cold(document, words, &self.view.shares(), self.view.heat());
    }

    fn at(&self, location: Location) -> String {
        let kind = self.view.profile.kind;
        place(location, kind.contains(ProfileKind::PROBE_BASED))
    }

    fn function(&self, function: &Function) -> Document {
        let mut document = Document::default();
        document.line("");
        let samples = &function.samples;
        let (total, head) = (grouped(numbers(samples).sum), grouped(samples.head));
        let marks = marks(samples);
        document.pieces([
            Cell::styled(Style::Heading, self.full_name(function)),
            format!(": {total} samples, head {head}{marks}").into(),
        ]);
        self.add_samples(&mut document, samples, 1);
        document
    }

    fn add_samples(&self, document: &mut Document, samples: &Samples, depth: usize) {
        let pad = "  ".repeat(depth);
        for line in &samples.body {
            let mut text = format!("{pad}{}: {}", self.at(line.location), grouped(line.samples));
            for (name, count) in self.view.targets(samples, line.location) {
                text += &format!("  {} {}", self.name(name), grouped(count));
            }
            document.line(text);
        }
        for target in &samples.vtables {
            let (place, name) = (self.at(target.location), self.name(target.name));
            let count = grouped(target.count);
            document.line(format_args!("{pad}{place}: vtable {name} {count}"));
        }
        for inlined in &samples.inlined {
            let inner = &inlined.samples;
            let (place, name) = (self.at(inlined.location), self.name(inner.name));
            let (total, marks) = (grouped(numbers(inner).sum), marks(inner));
            document.line(format_args!(
                "{pad}{place}: inlined {name}: {total} samples{marks}"
            ));
            self.add_samples(document, inner, depth + 1);
        }
    }

    fn add_hot(&self, document: &mut Document, count: usize) {
        const BY_SAMPLES: &str = "by samples, with those of inlined functions";
        let total = self.view.total();
        let with_numbers = |functions: Vec<_>| {
            let functions = functions.into_iter().take(count);
            let with_numbers = functions.map(|it: &Function| (numbers(&it.samples), it));
            with_numbers.collect::<Vec<_>>()
        };
        if let Some(order) = self.parts.order {
            let by = match order {
                FunctionOrder::Sum => BY_SAMPLES,
                FunctionOrder::Max => "by the samples of their hottest line",
                FunctionOrder::Entry => "by the samples of their entry",
                FunctionOrder::Name => "by name",
            };
            let functions = with_numbers(self.view.sorted(&Selection::everything(), order));
            return self.add_top(document, order, functions, total, by);
        }
        let order = FunctionOrder::Sum;
        let hot = with_numbers(self.view.hottest(count).functions);
        self.add_top(document, order, hot, total, BY_SAMPLES);
        let mut by_self = with_numbers(self.view.hottest_by_self(count));
        for (numbers, function) in &mut by_self {
            numbers.sum = self_samples(&function.samples).into();
        }
        let by = "by samples of their own lines";
        self.add_top(document, order, by_self, total, by);
    }

    fn add_top(
        &self,
        document: &mut Document,
        order: FunctionOrder,
        mut rows: Vec<(FunctionNumbers, &Function)>,
        total: u128,
        by: &str,
    ) {
        rows.retain(|(numbers, _)| numbers.sum > 0);
        if rows.is_empty() {
            return;
        }
        // A function occurs in the list once for each of its calling contexts.
        let has_contexts = rows.iter().any(|(_, it)| !it.callers.is_empty());
        let what = if has_contexts { "context" } else { "function" };
        document.section(top_title(rows.len(), what, by));
        // LLVM's number in the header of a function. It is shown if it differs from the samples.
        let headers: Vec<u64> = rows.iter().map(|(_, it)| it.samples.total).collect();
        let differs = |(_, it): &(FunctionNumbers, &Function)| {
            numbers(&it.samples).sum != it.samples.total.into()
        };
        let headers = rows.iter().any(differs).then_some(headers);
        let rows = rows
            .into_iter()
            .map(|(numbers, it)| (numbers, self.full_name(it)));
        let titles = ["samples", "hottest line", "entry"];
        let rows = rows.collect();
        document.table(ranking_table(
            &titles,
            order,
            rows,
            total,
            headers.as_deref(),
        ));
    }

    /// The name of a function with its callers: `main:3 @ parse`.
    fn full_name(&self, function: &Function) -> String {
        let mut text = String::new();
        for frame in &function.callers {
            text += &format!("{}:{} @ ", self.name(frame.name), self.at(frame.location));
        }
        text + &self.name(function.samples.name)
    }

    /// The name of a function as JSON. A profile may have only its hash.
    fn named(&self, id: NameId) -> Value {
        let name = self.view.profile.names.get(id);
        let guid = json!({ "guid": name.guid().to_string() });
        match name {
            SampleName::Text(name) => with(JsonNames(self.spelling).named(name), guid),
            SampleName::Guid(_) => guid,
        }
    }

    fn function_json(&self, function: &Function) -> Value {
        let samples = &function.samples;
        let callers = function
            .callers
            .iter()
            .map(|frame| with(self.named(frame.name), place_json(frame.location)));
        let own = json!({
            "head": samples.head,
            "self": self_samples(samples),
            "max_line": numbers(samples).max,
            "callers": some(callers),
        });
        with(self.samples_json(samples), own)
    }

    /// A function in the lists of hot functions. `total` is the sum of all samples.
    fn hot_json(&self, function: &Function, total: u128, limits: HeatLimits) -> Value {
        let samples = &function.samples;
        let (numbers, own) = (numbers(samples), self_samples(samples));
        let more = json!({
            "samples": number(numbers.sum),
            "share": share(numbers.sum, total),
            "self": own,
            "self_share": share(own, total),
            "max_line": numbers.max,
            "head": samples.head,
            "header_total": samples.total,
            "heat": limits.heat(numbers.max).to_string(),
        });
        with(self.named(samples.name), more)
    }

    fn samples_json(&self, samples: &Samples) -> Value {
        let target = |name, count: u64| with(self.named(name), json!({ "count": count }));
        let lines = samples.body.iter().map(|line| {
            let targets = self.view.targets(samples, line.location).into_iter();
            let targets: Vec<_> = targets.map(|(name, count)| target(name, count)).collect();
            let line_json = json!({ "samples": line.samples, "targets": targets });
            with(place_json(line.location), line_json)
        });
        let inlined = samples.inlined.iter();
        let inlined =
            inlined.map(|it| with(place_json(it.location), self.samples_json(&it.samples)));
        let vtables = samples.vtables.iter();
        let vtables = vtables.map(|it| with(place_json(it.location), target(it.name, it.count)));
        let above_zero = |number| Some(number).filter(|number| *number != 0);
        let hash = above_zero(samples.checksum);
        let more = json!({
            "samples": number(numbers(samples).sum),
            "header_total": samples.total,
            "lines": lines.collect::<Vec<_>>(),
            "hash": hash.map(|hash| FuncHash(hash).to_string()),
            "attributes": above_zero(samples.attributes.into()),
            "inlined": some(inlined),
            "vtables": some(vtables),
        });
        with(self.named(samples.name), more)
    }
}

fn some(list: impl Iterator<Item = Value>) -> Option<Vec<Value>> {
    let list: Vec<_> = list.collect();
    Some(list).filter(|list| !list.is_empty())
}

fn marks(samples: &Samples) -> String {
    let header = match samples.total {
        total if numbers(samples).sum == total.into() => String::new(),
        total => format!(", header total {}", grouped(total)),
    };
    let checksum = match samples.checksum {
        0 => header,
        checksum => format!("{header}, checksum {checksum:#x}"),
    };
    match samples.attributes {
        0 => checksum,
        attributes => format!("{checksum}, attributes {attributes:#x}"),
    }
}

impl Answer for SampleShow<'_> {
    fn document(&self) -> Document {
        let mut document = self.head();
        for function in self.shown() {
            document.append(self.function(function));
        }
        document.append(self.rest());
        document
    }

    /// Prints the functions one by one: their text can be larger than the profile.
    fn text<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        self.head().print(out)?;
        let mut shown = self.shown().into_iter();
        shown.try_for_each(|function| self.function(function).print(out))?;
        self.rest().print(out)
    }

    fn rows(&self, form: RowForm) -> Rows<'_> {
        let most = self.parts.top.unwrap_or(usize::MAX);
        if let Some((_, groups, total)) = self.groups() {
            let groups = groups.into_iter().take(most);
            let groups = groups.map(move |group| group_json(&group, total));
            return Rows::new(&GROUP_COLUMNS, groups);
        }
        let functions = self.sorted(&self.parts.selection).into_iter().take(most);
        let rows = functions.map(move |function| {
            let mut row = self.function_json(function);
            if form == RowForm::Csv {
                row["context"] = self.full_name(function).into();
            }
            row
        });
        Rows::new(&COLUMNS, rows)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Members::new(out);
        let kinds = kinds(self.view.profile.kind).map(|(_, name, _)| name);
        out.begin(&json!({
            "schema": "profkit-show",
            "schema_version": SCHEMA_VERSION,
            "file": {
                "path": self.path,
                "size": self.size,
                "kind": "sample",
                "encoding": encoding_name(self.view),
                "properties": kinds.collect::<Vec<_>>(),
            },
        }))?;
        if let Some((_, sections)) = self.view.sections().filter(|_| self.parts.sections) {
            let sections = sections.iter().map(|it| {
                json!({ "name": it.name(), "type": it.kind, "flags": it.flags, "offset": it.offset, "size": it.size })
            });
            out.member("sections", &sections.collect::<Vec<_>>())?;
        }
        if self.parts.functions {
            out.array("functions")?;
            for function in self.shown() {
                out.element("functions", &self.function_json(function))?;
            }
        }
        if self.parts.symbols {
            let profile = &self.view.profile;
            let named = profile.symbols.iter();
            let named = named.map(|it| names::printable(it).into_owned());
            let hashes = profile.symbol_hashes.iter().map(u64::to_string);
            out.member("symbols", &named.chain(hashes).collect::<Vec<_>>())?;
        }
        if let Some((by, groups, total)) = self.groups() {
            let groups = groups.iter().map(|group| group_json(group, total));
            out.member("by", &group_word(by.by))?;
            out.member("groups", &groups.collect::<Vec<_>>())?;
        } else if let Some(count) = self.parts.top {
            let (total, limits) = (self.view.total(), self.view.heat_limits());
            let rows = |functions: Vec<_>| -> Vec<_> {
                let functions = functions.into_iter().take(count);
                functions
                    .map(|it: &Function| self.hot_json(it, total, limits))
                    .collect()
            };
            let hot = match self.parts.order {
                Some(order) => self.view.sorted(&Selection::everything(), order),
                None => self.view.hottest(count).functions,
            };
            out.member("heat", &heat_json(self.view.heat()))?;
            out.member("hot", &rows(hot))?;
            out.member("hot_by_self", &rows(self.view.hottest_by_self(count)))?;
        }
        if let Some(summary) = self.summary() {
            let cutoffs = self.parts.detailed.then(|| {
                let cutoffs = summary.cutoffs.iter();
                let cutoffs = cutoffs.map(|it| json!({ "share": of_millionths(it.cutoff), "min_count": it.min_count, "lines": it.blocks }));
                cutoffs.collect::<Vec<_>>()
            });
            let (sampled, contexts) = self.view.sampled_and_contexts();
            let value = json!({
                "functions_with_samples": sampled, "contexts": contexts,
                "functions": summary.functions, "lines": summary.blocks, "samples": summary.total_count,
                "max_line": summary.max_count, "max_head": summary.max_function_count,
                "cutoffs": cutoffs,
            });
            out.member("summary", &without_nulls(value))?;
        }
        let errors: Vec<_> = self.view.report.faults.iter().map(bare_error).collect();
        out.end(&errors, self.view.report.fault_count)
    }
}

/// Notes about how a profile was read that is not damaged.
pub fn notes(view: &SampleView<'_>) -> Vec<String> {
    let callers = view.report.callers_without_site;
    let note = (callers > 0).then(|| {
        format!(
            "{} of calling contexts {} as called at line 0, as in LLVM: {} no call site",
            numbered(callers, "{caller|callers}"),
            if callers == 1 { "counts" } else { "count" },
            if callers == 1 { "it has" } else { "they have" },
        )
    });
    note.into_iter().collect()
}

/// A place in a function: the line relative to the function's first one, or with `probes` the index of a pseudo probe,
/// and `.` with the discriminator if there is one. Lines before the first one are negative.
pub fn place(location: Location, probes: bool) -> String {
    let line = match probes {
        true => location.line.into(),
        false => location.offset(),
    };
    match location.discriminator {
        0 => line.to_string(),
        discriminator => format!("{line}.{discriminator}"),
    }
}

fn place_json(location: Location) -> Value {
    match location.discriminator {
        0 => json!({"line": location.line}),
        discriminator => json!({"line": location.line, "discriminator": discriminator}),
    }
}
