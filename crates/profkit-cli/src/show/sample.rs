//! `profkit show` of sample profiles, for people or as JSON.
use super::args::ShowArgs;
use super::json::{SCHEMA_VERSION, bare_error};
use crate::exit::{self, Failure, Status};
use crate::print::{self, Format};
use profkit_analysis::names;
use profkit_data::sample::ext_binary::ExtBinaryProfile;
use profkit_data::sample::gcov::GcovProfile;
use profkit_data::sample::{
    Function, Location, NameId, ProfileKind, ReadReport, SampleEncoding, SampleName, SampleProfile,
    Samples, encoding, read, summarize,
};
use profkit_data::summary::Summary;
use profkit_merge::files::Input;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Shows a sample profile.
///
/// # Errors
/// If nothing of it can be read, a function that was asked for by name is not there, or the text cannot be printed.
pub fn run(args: &ShowArgs, input: &Input) -> exit::Result {
    let data = input.bytes();
    let mut profile = SampleProfile::new();
    let found = encoding(data);
    let lazy = !args.needs_all_records() && !args.symbols;
    let report = match found {
        Some(SampleEncoding::ExtBinary) if lazy => {
            let opened = ExtBinaryProfile::parse(data)
                .map_err(|error| Failure::file(input.name(), &error))?;
            let wanted: Vec<&[u8]> = args.function.iter().map(String::as_bytes).collect();
            let report = opened.read_functions(&wanted, &mut profile);
            // A demangled name has no hash and no place in the table.
            if missing(args, &profile).is_empty() {
                report
            } else {
                profile = SampleProfile::new();
                read(data, &mut profile, 1)
            }
        }
        _ => read(data, &mut profile, 1),
    };
    if report.functions == 0
        && let Some(error) = report.faults.first()
    {
        return Err(Failure::file(input.name(), error));
    }
    let show = Show {
        args,
        input,
        encoding: found,
        ranks: profile.names.ranks(),
        profile: &profile,
        report: &report,
    };
    let printed = match args.format {
        Format::Text => show.text(&mut print::stdout()),
        Format::Json => show.json(&mut print::json_stdout()),
    };
    printed.map_err(|error| Failure::print(&error))?;
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
    for name in missing(args, &profile) {
        fail(format!("{}: there is no function {name}", input.name()));
    }
    match failure {
        Some(failure) => Err(failure),
        None if report.fault_count > 0 => Ok(Status::InputBad),
        None => Ok(Status::Done),
    }
}

/// The functions that were asked for by name and are not there.
fn missing<'a>(args: &'a ShowArgs, profile: &SampleProfile) -> Vec<&'a str> {
    let functions = || profile.functions().iter().map(|it| it.samples.name);
    let there = |name: &str| functions().any(|id| is_named(profile, id, name));
    let wanted = args.function.iter().map(String::as_str);
    wanted.filter(|name| !there(name)).collect()
}

fn is_named(profile: &SampleProfile, id: NameId, wanted: &str) -> bool {
    match profile.names.get(id) {
        SampleName::Text(name) => names::is_named(name, wanted),
        guid @ SampleName::Guid(_) => {
            guid.to_string() == wanted || guid.guid() == SampleName::Text(wanted.as_bytes()).guid()
        }
    }
}

struct Show<'a> {
    args: &'a ShowArgs,
    input: &'a Input,
    encoding: Option<SampleEncoding>,
    ranks: Vec<u32>,
    profile: &'a SampleProfile,
    report: &'a ReadReport,
}

/// The facts of a profile's kind, with their names in JSON and in text.
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
        match self.encoding {
            Some(SampleEncoding::Text) => "text".to_owned(),
            Some(SampleEncoding::Binary) => "binary".to_owned(),
            Some(SampleEncoding::CompactBinary) => "compact binary".to_owned(),
            Some(SampleEncoding::ExtBinary) => "extensible binary".to_owned(),
            Some(SampleEncoding::Gcov) => match GcovProfile::parse(self.input.bytes()) {
                Ok(gcov) => format!("gcov version {}", gcov.version),
                Err(_) => "gcov".to_owned(),
            },
            None => "unknown".to_owned(),
        }
    }

    fn name(&self, id: NameId) -> String {
        match self.profile.names.get(id) {
            SampleName::Text(name) if !self.args.mangled => {
                names::demangle(name).unwrap_or_else(|| names::printable(name).into_owned())
            }
            SampleName::Text(name) => names::printable(name).into_owned(),
            guid @ SampleName::Guid(_) => guid.to_string(),
        }
    }

    /// The functions to be shown, in LLVM's order.
    fn shown(&self) -> Vec<&Function> {
        let args = self.args;
        if !args.shows_functions() {
            return Vec::new();
        }
        let wanted = |function: &&Function| {
            let id = function.samples.name;
            let contains = |text: &String| match self.profile.names.get(id) {
                SampleName::Text(name) => names::contains(name, text),
                guid @ SampleName::Guid(_) => guid.to_string().contains(text.as_str()),
            };
            args.functions
                || !args.filters()
                || args
                    .function
                    .iter()
                    .any(|name| is_named(self.profile, id, name))
                || args.function_contains.iter().any(contains)
        };
        self.in_order().filter(wanted).collect()
    }

    fn in_order(&self) -> impl Iterator<Item = &Function> {
        let order = self.profile.llvm_order(&self.ranks);
        let functions = self.profile.functions();
        order
            .into_iter()
            .filter_map(|index| functions.get(index as usize))
    }

    /// The samples of a place's call targets, most first.
    fn targets(&self, samples: &Samples, location: Location) -> Vec<(NameId, u64)> {
        let targets = samples.targets_at(location).iter();
        let mut targets: Vec<_> = targets.map(|target| (target.name, target.count)).collect();
        let rank = |id: NameId| self.ranks.get(id.index()).copied().unwrap_or(0);
        targets.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), rank(name)));
        targets
    }

    /// The summary that the file has, or, where all was read and it has none, what it comes to.
    fn summary(&self) -> Option<Summary> {
        if !self.args.shows_summary() {
            return None;
        }
        let own = || summarize(self.profile);
        Some(self.report.summary.clone().unwrap_or_else(own))
    }

    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let size = self.input.len();
        writeln!(
            out,
            "{}: sample profile, {}, {size} bytes",
            self.input.name(),
            self.encoding_name()
        )?;
        let kinds: Vec<_> = KINDS
            .iter()
            .filter(|(kind, ..)| self.profile.kind.contains(*kind))
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
                self.profile.symbols.len()
            )?;
            for symbol in &self.profile.symbols {
                writeln!(out, "  {}", names::printable(symbol))?;
            }
        }
        if let Some(count) = self.args.hot {
            self.hot(out, count)?;
        }
        if let Some(summary) = self.summary() {
            writeln!(out, "\nFunctions: {}", summary.functions)?;
            writeln!(out, "Lines: {}", summary.blocks)?;
            writeln!(out, "Samples of lines: {}", summary.total_count)?;
            writeln!(out, "Largest line: {}", summary.max_count)?;
            writeln!(out, "Largest head: {}", summary.max_function_count)?;
            if self.args.detailed_summary {
                for entry in &summary.cutoffs {
                    let (whole, part) = (entry.cutoff / 10_000, entry.cutoff % 10_000);
                    writeln!(
                        out,
                        "  {whole}.{part:04} % of all samples: {} lines of at least {}",
                        entry.blocks, entry.min_count
                    )?;
                }
            }
        }
        Ok(())
    }

    fn sections(&self, out: &mut impl Write) -> io::Result<()> {
        let Ok(opened) = ExtBinaryProfile::parse(self.input.bytes()) else {
            return Ok(());
        };
        writeln!(out, "  version {}", opened.version())?;
        for entry in opened.sections() {
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
            for (name, count) in self.targets(samples, line.location) {
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

    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    fn hot(&self, out: &mut impl Write, count: usize) -> io::Result<()> {
        let functions = self.profile.functions().iter();
        let total: u128 = functions.map(|it| u128::from(it.samples.total)).sum();
        writeln!(out, "\nFunctions with the most samples:")?;
        for function in self.in_order().take(count) {
            let samples = function.samples.total;
            let share = if total == 0 {
                0.0
            } else {
                samples as f64 * 100.0 / total as f64
            };
            write!(out, "  {samples:>14}  {share:6.2} %  ")?;
            for frame in &function.callers {
                write!(
                    out,
                    "{}:{} @ ",
                    self.name(frame.name),
                    place(frame.location)
                )?;
            }
            writeln!(out, "{}", self.name(function.samples.name))?;
        }
        Ok(())
    }

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let kinds: Vec<_> = KINDS
            .iter()
            .filter(|(kind, ..)| self.profile.kind.contains(*kind))
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
            && let Ok(opened) = ExtBinaryProfile::parse(self.input.bytes())
        {
            let sections: Vec<_> = opened
                .sections()
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
                .profile
                .symbols
                .iter()
                .map(|it| names::printable(it))
                .collect();
            member(out, "symbols", symbols.into())?;
        }
        if let Some(count) = self.args.hot {
            let hot: Vec<_> = self
                .in_order()
                .take(count)
                .map(|it| json!({"name": self.plain(it.samples.name), "total": it.samples.total}))
                .collect();
            member(out, "hot", hot.into())?;
        }
        if let Some(summary) = self.summary() {
            let cutoffs: Vec<_> = summary
                .cutoffs
                .iter()
                .map(|it| json!({"cutoff": it.cutoff, "min_count": it.min_count, "lines": it.blocks}))
                .collect();
            let mut value = json!({
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
        let errors: Vec<_> = self.report.faults.iter().map(bare_error).collect();
        member(out, "errors", errors.into())?;
        member(out, "error_count", self.report.fault_count.into())?;
        out.write_all(b"}\n")
    }

    fn plain(&self, id: NameId) -> String {
        match self.profile.names.get(id) {
            SampleName::Text(name) => names::printable(name).into_owned(),
            guid @ SampleName::Guid(_) => guid.to_string(),
        }
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
            let targets = self.targets(samples, location).into_iter();
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
