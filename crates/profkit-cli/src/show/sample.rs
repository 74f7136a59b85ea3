//! `profkit show` of sample profiles, for people or as JSON.
use super::args::ShowArgs;
use crate::exit::{self, Failure, Status};
use crate::print::{self, Format, grouped, percent, plural};
use profkit_analysis::names;
use profkit_analysis::samples::{SampleView, self_samples};
use profkit_data::sample::{Function, Location, NameId, ProfileKind, SampleEncoding, Samples};
use profkit_data::summary::Summary;
use profkit_merge::files::Input;
use profkit_report::bar;
use profkit_report::show::json::{SCHEMA_VERSION, bare_error};
use profkit_report::show::text::{lines, top_title};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{self, Write};

/// Shows a sample profile.
///
/// # Errors
/// If nothing of it can be read, if a function that was named is not in it, or if the output cannot be printed.
pub fn run(args: &ShowArgs, input: &Input) -> exit::Result {
    let lazy = !args.needs_all_records() && !args.symbols;
    let view = SampleView::open(input.bytes(), lazy.then_some(&args.function))
        .map_err(|error| Failure::file(input.name(), &error))?;
    let show = Show {
        args,
        input,
        view: &view,
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

struct Show<'a> {
    args: &'a ShowArgs,
    input: &'a Input,
    view: &'a SampleView<'a>,
}

/// The properties of a profile's kind: the flag, its name in JSON, and its description in text.
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

impl Show<'_> {
    fn encoding_name(&self) -> String {
        let name = match self.view.encoding {
            Some(SampleEncoding::Text) => "text",
            Some(SampleEncoding::Binary) => "binary",
            Some(SampleEncoding::CompactBinary) => "compact binary",
            Some(SampleEncoding::ExtBinary) => "extensible binary",
            Some(SampleEncoding::Gcov) => match self.view.gcov_version() {
                Some(version) => return format!("gcov version {version}"),
                None => "gcov",
            },
            None => "unknown",
        };
        name.to_owned()
    }

    fn name(&self, id: NameId) -> Cow<'_, str> {
        self.view.name(id, self.args.mangled)
    }

    /// The functions to show.
    fn shown(&self) -> Vec<&Function> {
        self.view.selected(&self.args.selection())
    }

    /// The summary, if the options ask for it.
    fn summary(&self) -> Option<Summary> {
        self.args.shows_summary().then(|| self.view.summary())
    }

    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let size = self.input.len();
        writeln!(
            out,
            "{}: sample profile, {}, {} bytes",
            self.input.name(),
            self.encoding_name(),
            grouped(size)
        )?;
        let kinds: Vec<_> = KINDS
            .iter()
            .filter(|(kind, ..)| self.view.profile.kind.contains(*kind))
            .map(|(_, _, text)| *text)
            .collect();
        if !kinds.is_empty() {
            writeln!(out, "  with {}", kinds.join(", "))?;
        }
        if self.args.sections {
            self.sections(out)?;
        }
        for function in self.shown() {
            self.function(out, function)?;
        }
        if self.args.symbols {
            writeln!(
                out,
                "\nSymbols of the program: {}",
                self.view.profile.symbols.len()
            )?;
            for symbol in &self.view.profile.symbols {
                writeln!(out, "  {}", names::printable(symbol))?;
            }
        }
        if let Some(summary) = self.summary() {
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
            writeln!(out, "\nSummary")?;
            let rows = rows.into_iter();
            let rows: Vec<_> = rows
                .map(|(name, count, note)| (name, grouped(count), note))
                .collect();
            lines(out, &rows)?;
            if self.args.detailed_summary {
                writeln!(out, "Shares of all samples")?;
                for entry in &summary.cutoffs {
                    let (whole, part) = (entry.cutoff / 10_000, entry.cutoff % 10_000);
                    let lines = plural(entry.blocks, "line");
                    let least = grouped(entry.min_count);
                    writeln!(out, "  {whole}.{part:04}%: {lines} of at least {least}")?;
                }
            }
        }
        if let Some(count) = self.args.most_functions() {
            self.hot(out, count)?;
        }
        Ok(())
    }

    fn sections(&self, out: &mut impl Write) -> io::Result<()> {
        let Some((version, sections)) = self.view.sections() else {
            return Ok(());
        };
        writeln!(out, "  version {version}")?;
        for entry in sections {
            writeln!(
                out,
                "  {:#010x} {:>10} bytes  flags {:#x}  {}",
                entry.offset,
                entry.size,
                entry.flags,
                entry.name()
            )?;
        }
        Ok(())
    }

    fn function(&self, out: &mut impl Write, function: &Function) -> io::Result<()> {
        writeln!(out)?;
        for frame in &function.callers {
            write!(
                out,
                "{}:{} @ ",
                self.name(frame.name),
                place(frame.location)
            )?;
        }
        let samples = &function.samples;
        write!(
            out,
            "{}: {} samples, head {}",
            self.name(samples.name),
            samples.total,
            samples.head
        )?;
        self.samples(out, samples, 1)
    }

    fn samples(&self, out: &mut impl Write, samples: &Samples, depth: usize) -> io::Result<()> {
        if samples.checksum != 0 {
            write!(out, ", checksum {:#x}", samples.checksum)?;
        }
        if samples.attributes != 0 {
            write!(out, ", attributes {:#x}", samples.attributes)?;
        }
        writeln!(out)?;
        let pad = "  ".repeat(depth);
        for line in &samples.body {
            write!(out, "{pad}{}: {}", place(line.location), line.samples)?;
            for (name, count) in self.view.targets(samples, line.location) {
                write!(out, "  {} {count}", self.name(name))?;
            }
            writeln!(out)?;
        }
        for target in &samples.vtables {
            let name = self.name(target.name);
            writeln!(
                out,
                "{pad}{}: vtable {name} {}",
                place(target.location),
                target.count
            )?;
        }
        for inlined in &samples.inlined {
            let inner = &inlined.samples;
            let name = self.name(inner.name);
            write!(
                out,
                "{pad}{}: inlined {name}: {} samples",
                place(inlined.location),
                inner.total
            )?;
            self.samples(out, inner, depth + 1)?;
        }
        Ok(())
    }

    fn hot(&self, out: &mut impl Write, count: usize) -> io::Result<()> {
        let hot = self.view.hottest(count);
        let rows = hot.functions.iter().map(|it| (it.samples.total, *it));
        self.top(
            out,
            rows.collect(),
            hot.total,
            "samples, with those of inlined functions",
        )?;
        let by_self = self.view.hottest_by_self(count).into_iter();
        let rows = by_self.map(|it| (self_samples(&it.samples), it)).collect();
        self.top(out, rows, hot.total, "samples of their own lines")
    }

    /// Prints one list of functions with their shares and bars.
    fn top(
        &self,
        out: &mut impl Write,
        mut rows: Vec<(u64, &Function)>,
        total: u128,
        by: &str,
    ) -> io::Result<()> {
        rows.retain(|(samples, _)| *samples > 0);
        let largest = rows.first().map_or(0, |(samples, _)| *samples);
        if largest == 0 {
            return Ok(());
        }
        writeln!(out, "\n{}", top_title(rows.len(), by))?;
        let width = grouped(largest).len();
        let style = print::bar_style();
        let rows = rows.into_iter().map(|(samples, function)| {
            let bar = bar(u128::from(samples), u128::from(largest), style);
            (samples, bar, function)
        });
        for (samples, bar, function) in rows {
            let share = percent(u128::from(samples), total);
            write!(
                out,
                "  {:>width$}  {share:>6}  {bar:20}  ",
                grouped(samples)
            )?;
            for frame in &function.callers {
                let name = self.name(frame.name);
                write!(out, "{name}:{} @ ", place(frame.location))?;
            }
            writeln!(out, "{}", self.name(function.samples.name))?;
        }
        Ok(())
    }

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let kinds: Vec<_> = KINDS
            .iter()
            .filter(|(kind, ..)| self.view.profile.kind.contains(*kind))
            .map(|(_, name, _)| *name)
            .collect();
        let head = json!({
            "schema": "profkit-show",
            "schema_version": SCHEMA_VERSION,
            "file": {
                "path": self.input.name(),
                "size": self.input.len(),
                "kind": "sample",
                "encoding": self.encoding_name(),
                "properties": kinds,
            },
        });
        let head = head.to_string();
        out.write_all(head.strip_suffix('}').unwrap_or(&head).as_bytes())?;
        let member =
            |out: &mut dyn Write, name: &str, value: Value| write!(out, ",\n\"{name}\":{value}");
        if self.args.sections
            && let Some((_, sections)) = self.view.sections()
        {
            let sections: Vec<_> = sections
                .iter()
                .map(|it| json!({"name": it.name(), "type": it.kind, "flags": it.flags, "offset": it.offset, "size": it.size}))
                .collect();
            member(out, "sections", sections.into())?;
        }
        if self.args.shows_functions() {
            out.write_all(b",\n\"functions\":[")?;
            let mut separator = "\n";
            for function in self.shown() {
                write!(out, "{separator}{}", self.function_json(function))?;
                separator = ",\n";
            }
            out.write_all(b"\n]")?;
        }
        if self.args.symbols {
            let symbols: Vec<_> = self
                .view
                .profile
                .symbols
                .iter()
                .map(|it| names::printable(it))
                .collect();
            member(out, "symbols", symbols.into())?;
        }
        if let Some(count) = self.args.most_functions() {
            let row = |it: &Function| json!({"name": self.plain(it.samples.name), "total": it.samples.total, "self": self_samples(&it.samples)});
            let hot: Vec<_> = self
                .view
                .hottest(count)
                .functions
                .into_iter()
                .map(row)
                .collect();
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
            if self.args.detailed_summary
                && let Some(members) = value.as_object_mut()
            {
                members.insert("cutoffs".to_owned(), cutoffs.into());
            }
            member(out, "summary", value)?;
        }
        let errors: Vec<_> = self.view.report.faults.iter().map(bare_error).collect();
        member(out, "errors", errors.into())?;
        member(out, "error_count", self.view.report.fault_count.into())?;
        out.write_all(b"}\n")
    }

    fn plain(&self, id: NameId) -> Cow<'_, str> {
        self.view.name(id, true)
    }

    fn function_json(&self, function: &Function) -> Value {
        let mut value = self.samples_json(&function.samples);
        if let Some(members) = value.as_object_mut() {
            members.insert("head".to_owned(), function.samples.head.into());
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

fn place(location: Location) -> String {
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
