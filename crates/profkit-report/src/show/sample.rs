//! Sample profiles as text and as JSON.
use super::json::{SCHEMA_VERSION, bare_error};
use super::text::{
    GroupTitles, cutoffs_table, facts, groups_table, hot_and_cold, ranking_table, read_by,
    top_title,
};
use crate::doctor::gcc_releases;
use crate::rows::{GROUP_COLUMNS, RowForm, RowWriter, group_json, group_word};
use crate::{Console, Grouping, Style, grouped, percent};
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::ranking::{FunctionNumbers, FunctionOrder, Group};
use profkit_analysis::samples::{SampleView, numbers, self_samples};
use profkit_analysis::selection::Selection;
use profkit_data::sample::gcov::GcovVersion;
use profkit_data::sample::{
    Function, Location, NameId, ProfileKind, SampleForm, SampleName, Samples,
};
use profkit_data::summary::Summary;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{self, Write};

const GROUP_TITLES: GroupTitles = ["Functions", "functions", "sampled", "own samples"];

/// The columns of functions.
const COLUMNS: [&str; 6] = ["name", "context", "total", "self", "max_line", "head"];

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
    /// Whether the summary includes the table that shows how many of the hottest lines together make each share of all
    /// samples.
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

/// Returns descriptions of the properties of a profile.
pub fn kind_texts(kind: ProfileKind) -> impl Iterator<Item = &'static str> {
    let set = KINDS
        .into_iter()
        .filter(move |(flag, ..)| kind.contains(*flag));
    set.map(|(.., text)| text)
}

impl SampleShow<'_> {
    fn name(&self, id: NameId) -> Cow<'_, str> {
        self.view.name(id, self.spelling)
    }

    /// The functions to show.
    fn shown(&self) -> Vec<&Function> {
        if self.parts.functions {
            self.sorted()
        } else {
            Vec::new()
        }
    }

    /// The selected functions, sorted as they are printed.
    fn sorted(&self) -> Vec<&Function> {
        let order = self.parts.order.unwrap_or_default();
        self.view.sorted(&self.parts.selection, order)
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

    /// The summary; `None` if it is not asked for.
    fn summary(&self) -> Option<Summary> {
        self.parts.summary.then(|| self.view.summary())
    }

    /// Prints text for people.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn text<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        out.title(
            self.path,
            format_args!("sample profile, {}", encoding_name(self.view)),
        )?;
        let kinds: Vec<_> = KINDS
            .iter()
            .filter(|(kind, ..)| self.view.profile.kind.contains(*kind))
            .map(|(_, _, text)| *text)
            .collect();
        if !kinds.is_empty() {
            out.fact("with", kinds.join(", "))?;
        }
        out.fact("size", format_args!("{} bytes", grouped(self.size)))?;
        match self.view.gcov_version() {
            Some(version) if version != GcovVersion::Gcc47 => {
                if let Some(releases) = gcc_releases(version) {
                    out.fact("read by", releases)?;
                }
            }
            _ => out.fact("read by", read_by(&self.view.readers()))?,
        }
        if self.parts.sections {
            self.sections(out)?;
        }
        for function in self.shown() {
            self.function(out, function)?;
        }
        if self.parts.symbols {
            writeln!(out)?;
            let profile = &self.view.profile;
            out.heading(format_args!(
                "Symbols of the program: {}",
                grouped(profile.symbol_count())
            ))?;
            for symbol in &profile.symbols {
                writeln!(out, "  {}", names::printable(symbol))?;
            }
            for hash in &profile.symbol_hashes {
                writeln!(out, "  {hash} (MD5)")?;
            }
        }
        if let Some(summary) = self.summary() {
            self.summary_text(&summary, out)?;
        }
        if let Some((by, groups, total)) = self.groups() {
            let most = self.parts.top.unwrap_or(groups.len()).min(groups.len());
            let shown = groups.get(..most).unwrap_or_default();
            groups_table(&GROUP_TITLES, shown, by, total, out)?;
        } else if let Some(count) = self.parts.top {
            if self.parts.summary {
                self.hot_and_cold(out)?;
            }
            self.hot(out, count)?;
        }
        out.flush()
    }

    fn summary_text<W: Write>(&self, summary: &Summary, out: &mut Console<W>) -> io::Result<()> {
        let (sampled, contexts) = self.view.sampled_and_contexts();
        let share = percent(u128::from(sampled), u128::from(summary.functions));
        let functions = format!("{} with samples ({share})", grouped(sampled));
        let mut rows = vec![("functions", summary.functions, functions)];
        if contexts > 0 {
            rows.push(("calling contexts", contexts, String::new()));
        }
        rows.extend([
            ("lines", summary.blocks, String::new()),
            ("samples of lines", summary.total_count, String::new()),
            ("largest line", summary.max_count, String::new()),
            ("largest head", summary.max_function_count, String::new()),
        ]);
        writeln!(out)?;
        out.heading("Summary")?;
        let rows = rows.into_iter();
        facts(
            out,
            rows.map(|(name, count, note)| (name, grouped(count), note)),
        )?;
        if self.parts.detailed {
            out.heading("Shares of all samples")?;
            let rows = summary.cutoffs.iter();
            let rows = rows.map(|cutoff| (cutoff.cutoff, cutoff.blocks, cutoff.min_count));
            cutoffs_table("lines", rows, out)?;
        }
        Ok(())
    }

    fn hot_and_cold(&self, out: &mut Console<impl Write>) -> io::Result<()> {
        let functions = self.view.profile.functions();
        let idle = functions.iter().filter(|it| it.samples.total == 0).count() as u64;
        let (_, contexts) = self.view.sampled_and_contexts();
        let what = if contexts > 0 {
            "contexts"
        } else {
            "functions"
        };
        let shares = self.view.shares();
        let all = functions.len() as u64;
        hot_and_cold(
            out,
            [what, "samples"],
            &shares,
            all,
            (idle, "without samples"),
        )
    }

    fn sections<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let Some((version, sections)) = self.view.sections() else {
            return Ok(());
        };
        writeln!(out)?;
        out.heading(format_args!("Sections (version {version})"))?;
        for entry in sections {
            writeln!(
                out,
                "  {:#010x}  {:>14} bytes  flags {:#x}  {}",
                entry.offset,
                grouped(entry.size),
                entry.flags,
                entry.name()
            )?;
        }
        Ok(())
    }

    fn function(&self, out: &mut Console<impl Write>, function: &Function) -> io::Result<()> {
        writeln!(out)?;
        out.styled(Style::Heading, self.full_name(function))?;
        let samples = &function.samples;
        write!(
            out,
            ": {} samples, head {}",
            grouped(samples.total),
            grouped(samples.head)
        )?;
        self.samples(out, samples, 1)
    }

    fn samples(
        &self,
        out: &mut Console<impl Write>,
        samples: &Samples,
        depth: usize,
    ) -> io::Result<()> {
        if samples.checksum != 0 {
            write!(out, ", checksum {:#x}", samples.checksum)?;
        }
        if samples.attributes != 0 {
            write!(out, ", attributes {:#x}", samples.attributes)?;
        }
        writeln!(out)?;
        let pad = "  ".repeat(depth);
        for line in &samples.body {
            write!(
                out,
                "{pad}{}: {}",
                place(line.location),
                grouped(line.samples)
            )?;
            for (name, count) in self.view.targets(samples, line.location) {
                write!(out, "  {} {}", self.name(name), grouped(count))?;
            }
            writeln!(out)?;
        }
        for target in &samples.vtables {
            let name = self.name(target.name);
            writeln!(
                out,
                "{pad}{}: vtable {name} {}",
                place(target.location),
                grouped(target.count)
            )?;
        }
        for inlined in &samples.inlined {
            let inner = &inlined.samples;
            let name = self.name(inner.name);
            write!(
                out,
                "{pad}{}: inlined {name}: {} samples",
                place(inlined.location),
                grouped(inner.total)
            )?;
            self.samples(out, inner, depth + 1)?;
        }
        Ok(())
    }

    fn hot<W: Write>(&self, out: &mut Console<W>, count: usize) -> io::Result<()> {
        let total = self.view.hottest(0).total;
        if let Some(order) = self.parts.order {
            let by = match order {
                FunctionOrder::Sum => "by samples, with those of inlined functions",
                FunctionOrder::Max => "by the samples of their hottest line",
                FunctionOrder::Entry => "by the samples of their entry",
                FunctionOrder::Name => "by name",
            };
            let functions = self
                .view
                .sorted(&Selection::everything(), order)
                .into_iter();
            let rows = functions.take(count).map(|it| (numbers(&it.samples), it));
            return self.top(out, order, rows.collect(), total, by);
        }
        let hot = self.view.hottest(count).functions.into_iter();
        let rows = hot.map(|it| (numbers(&it.samples), it)).collect();
        let by = "by samples, with those of inlined functions";
        self.top(out, FunctionOrder::Sum, rows, total, by)?;
        let by_self = self.view.hottest_by_self(count).into_iter();
        let own = |it: &Function| FunctionNumbers {
            sum: self_samples(&it.samples).into(),
            ..FunctionNumbers::default()
        };
        let rows = by_self.map(|it| (own(it), it)).collect();
        self.top(
            out,
            FunctionOrder::Sum,
            rows,
            total,
            "by samples of their own lines",
        )
    }

    /// Prints one list of functions with their shares and bars.
    fn top<W: Write>(
        &self,
        out: &mut Console<W>,
        order: FunctionOrder,
        mut rows: Vec<(FunctionNumbers, &Function)>,
        total: u128,
        by: &str,
    ) -> io::Result<()> {
        rows.retain(|(numbers, _)| numbers.sum > 0);
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        // A function occurs in the list once for each of its calling contexts.
        let has_contexts = rows
            .iter()
            .any(|(_, function)| !function.callers.is_empty());
        let what = if has_contexts { "context" } else { "function" };
        out.heading(top_title(rows.len(), what, by))?;
        let rows = rows.into_iter();
        let rows = rows.map(|(numbers, function)| (numbers, self.full_name(function)));
        let titles = ["samples", "hottest line", "entry"];
        ranking_table(&titles, order, rows.collect(), total, out)
    }

    /// Prints the functions, or the groups, as rows.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn rows<W: Write>(&self, form: RowForm, out: W) -> io::Result<()> {
        let most = self.parts.top.unwrap_or(usize::MAX);
        if let Some((_, groups, total)) = self.groups() {
            let mut rows = RowWriter::new(out, form, &GROUP_COLUMNS);
            for group in groups.iter().take(most) {
                rows.row(&group_json(group, total))?;
            }
            return rows.end();
        }
        let mut rows = RowWriter::new(out, form, &COLUMNS);
        for function in self.sorted().into_iter().take(most) {
            let mut value = self.function_json(function);
            if form == RowForm::Csv
                && let Some(members) = value.as_object_mut()
            {
                let context = self.full_name(function);
                members.insert("context".to_owned(), context.into());
            }
            rows.row(&value)?;
        }
        rows.end()
    }

    /// The name of a function with its callers: `main:3 @ parse`.
    fn full_name(&self, function: &Function) -> String {
        let mut text = String::new();
        for frame in &function.callers {
            text += &format!("{}:{} @ ", self.name(frame.name), place(frame.location));
        }
        text + &self.name(function.samples.name)
    }

    /// Prints one JSON object.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let kinds: Vec<_> = KINDS
            .iter()
            .filter(|(kind, ..)| self.view.profile.kind.contains(*kind))
            .map(|(_, name, _)| *name)
            .collect();
        let head = json!({
            "schema": "profkit-show",
            "schema_version": SCHEMA_VERSION,
            "file": {
                "path": self.path,
                "size": self.size,
                "kind": "sample",
                "encoding": encoding_name(self.view),
                "properties": kinds,
            },
        });
        let head = head.to_string();
        out.write_all(head.strip_suffix('}').unwrap_or(&head).as_bytes())?;
        let member =
            |out: &mut dyn Write, name: &str, value: Value| write!(out, ",\n\"{name}\":{value}");
        if self.parts.sections
            && let Some((_, sections)) = self.view.sections()
        {
            let sections: Vec<_> = sections
                .iter()
                .map(|it| json!({"name": it.name(), "type": it.kind, "flags": it.flags, "offset": it.offset, "size": it.size}))
                .collect();
            member(out, "sections", sections.into())?;
        }
        if self.parts.functions {
            out.write_all(b",\n\"functions\":[")?;
            let mut separator = "\n";
            for function in self.shown() {
                write!(out, "{separator}{}", self.function_json(function))?;
                separator = ",\n";
            }
            out.write_all(b"\n]")?;
        }
        if self.parts.symbols {
            let profile = &self.view.profile;
            let named = profile
                .symbols
                .iter()
                .map(|it| names::printable(it).into_owned());
            let hashes = profile.symbol_hashes.iter().map(u64::to_string);
            let symbols: Vec<String> = named.chain(hashes).collect();
            member(out, "symbols", symbols.into())?;
        }
        if let Some((by, groups, total)) = self.groups() {
            let groups = groups.iter().map(|group| group_json(group, total));
            member(out, "by", group_word(by.by).into())?;
            member(out, "groups", groups.collect())?;
        } else if let Some(count) = self.parts.top {
            let row = |it: &Function| json!({"name": self.plain(it.samples.name), "total": it.samples.total, "self": self_samples(&it.samples), "max_line": numbers(&it.samples).max, "head": it.samples.head});
            let hot = match self.parts.order {
                Some(order) => self.view.sorted(&Selection::everything(), order),
                None => self.view.hottest(count).functions,
            };
            let hot: Vec<_> = hot.into_iter().take(count).map(row).collect();
            member(out, "hot", hot.into())?;
            let by_self: Vec<_> = self
                .view
                .hottest_by_self(count)
                .into_iter()
                .map(row)
                .collect();
            member(out, "hot_by_self", by_self.into())?;
        }
        if let Some(summary) = self.summary() {
            let cutoffs: Vec<_> = summary
                .cutoffs
                .iter()
                .map(|it| json!({"cutoff": it.cutoff, "min_count": it.min_count, "lines": it.blocks}))
                .collect();
            let (sampled, contexts) = self.view.sampled_and_contexts();
            let mut value = json!({
                "functions_with_samples": sampled, "contexts": contexts,
                "functions": summary.functions, "lines": summary.blocks, "samples": summary.total_count,
                "max_line": summary.max_count, "max_head": summary.max_function_count,
            });
            if self.parts.detailed
                && let Some(members) = value.as_object_mut()
            {
                members.insert("cutoffs".to_owned(), cutoffs.into());
            }
            member(out, "summary", value)?;
        }
        let errors: Vec<_> = self.view.report.faults.iter().map(bare_error).collect();
        member(out, "errors", errors.into())?;
        member(out, "error_count", self.view.report.fault_count.into())?;
        out.write_all(b"}\n")?;
        out.flush()
    }

    fn plain(&self, id: NameId) -> Cow<'_, str> {
        self.view.name(id, Spelling::Mangled)
    }

    fn function_json(&self, function: &Function) -> Value {
        let mut value = self.samples_json(&function.samples);
        if let Some(members) = value.as_object_mut() {
            members.insert("head".to_owned(), function.samples.head.into());
            members.insert("self".to_owned(), self_samples(&function.samples).into());
            members.insert("max_line".to_owned(), numbers(&function.samples).max.into());
            if !function.callers.is_empty() {
                let callers = function.callers.iter().map(|frame| {
                    let mut caller = place_json(frame.location);
                    if let Some(members) = caller.as_object_mut() {
                        members.insert("name".to_owned(), self.plain(frame.name).into());
                    }
                    caller
                });
                members.insert("callers".to_owned(), callers.collect());
            }
        }
        value
    }

    fn samples_json(&self, samples: &Samples) -> Value {
        let with = |location: Location, more: Value| {
            let mut value = place_json(location);
            if let (Some(members), Value::Object(more)) = (value.as_object_mut(), more) {
                members.extend(more);
            }
            value
        };
        let targets = |location| -> Vec<Value> {
            let targets = self.view.targets(samples, location).into_iter();
            targets
                .map(|(name, count)| json!({"name": self.plain(name), "count": count}))
                .collect()
        };
        let mut value = json!({
            "name": self.plain(samples.name),
            "total": samples.total,
            "lines": samples.body.iter().map(|line| {
                with(line.location, json!({"samples": line.samples, "targets": targets(line.location)}))
            }).collect::<Vec<_>>(),
        });
        let Some(members) = value.as_object_mut() else {
            return value;
        };
        let mut add = |name: &str, value: Value| {
            members.insert(name.to_owned(), value);
        };
        if samples.checksum != 0 {
            add("checksum", samples.checksum.into());
        }
        if samples.attributes != 0 {
            add("attributes", samples.attributes.into());
        }
        if !samples.inlined.is_empty() {
            let inlined = samples.inlined.iter();
            add(
                "inlined",
                inlined
                    .map(|it| with(it.location, self.samples_json(&it.samples)))
                    .collect(),
            );
        }
        if !samples.vtables.is_empty() {
            let vtables = samples.vtables.iter().map(|target| {
                with(
                    target.location,
                    json!({"name": self.plain(target.name), "count": target.count}),
                )
            });
            add("vtables", vtables.collect());
        }
        value
    }
}

/// Returns a place in a function in the form of the text encoding: the line, and after a dot the discriminator if there
/// is one.
pub fn place(location: Location) -> String {
    match location.discriminator {
        0 => location.line.to_string(),
        discriminator => format!("{}.{discriminator}", location.line),
    }
}

fn place_json(location: Location) -> Value {
    match location.discriminator {
        0 => json!({"line": location.line}),
        discriminator => json!({"line": location.line, "discriminator": discriminator}),
    }
}
