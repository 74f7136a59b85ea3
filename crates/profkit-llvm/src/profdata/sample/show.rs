//! Reproduces `show --sample`.
use super::super::values::detailed_summary;
use super::checks::header_fault;
use super::{fault, json, read_options};
use crate::command_line::Parsed;
use crate::lines::Lines;
use crate::messages::{Fault, Session};
use crate::output::{self, Output};
use profkit_abi::sample::{block, flag, section};
use profkit_data::ErrorKind;
use profkit_data::index_vec::IndexVec;
use profkit_data::sample::ext_binary::{ExtBinaryProfile, Section};
use profkit_data::sample::{
    AddOutcome, Function, Location, NameId, ProfileKind, ReadReport, SampleEncoding, SampleName,
    SampleNames, SampleProfile, Samples, head_estimate, llvm_encoding, read_with, summarize,
};
use profkit_data::summary::Summary;

/// Runs `show --sample` on a file.
pub fn run(
    name: &[u8],
    parsed: &Parsed,
    format: Option<&str>,
    output: Output,
    session: &Session<'_>,
) -> Result<(), Fault> {
    if format == Some("yaml") {
        return Err(Fault::new(
            "YAML output is not supported for sample profiles",
        ));
    }
    let is_json = format == Some("json");
    let bytes = session.read(name)?;
    let data = bytes.as_ref();
    let found = llvm_encoding(data);
    if found.is_none() {
        let error = ErrorKind::UnrecognizedFormat.error("no sample profile");
        return Err(fault(name, data, &error));
    }
    if parsed.flag("show-sec-info-only") {
        return sections(name, parsed, data, output, session);
    }
    if parsed.flag("show-composite-info-only") {
        return blocks(name, parsed, data, output, session);
    }
    let filter = parsed.text("function");
    let all = parsed.flag("all-functions") || filter.is_empty();
    // LLVM cannot show a single function as JSON. It reports this only after it has read everything.
    let needs_all = all
        || is_json
        || parsed.flag("show-prof-sym-list")
        || parsed.flag("detailed-summary")
        || parsed.flag("hot-func-list")
        || parsed.number("topn").is_some_and(|top| top > 0);
    let options = read_options(parsed);
    let mut profile = SampleProfile::new();
    let report = match (needs_all, found) {
        (false, Some(SampleEncoding::ExtBinary)) => {
            let opened = ExtBinaryProfile::parse_with(data, &options)
                .map_err(|error| fault(name, data, &error))?;
            opened.read_functions(&[filter], &mut profile)
        }
        _ => read_with(data, &mut profile, 1, &options),
    };
    sound(name, data, &report)?;
    if !all && is_json {
        return Err(Fault::new(
            "the JSON format is supported only when all functions are to be printed",
        ));
    }
    let show = Show {
        names: &profile.names,
        ranks: profile.names.ranks(),
        contexts: profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE),
    };
    output::write(session, output, parsed.output(), |lines| {
        if is_json && all {
            json::profile(lines, &profile, &show);
        } else if all {
            for index in profile.llvm_order(&show.ranks) {
                if let Some(function) = profile.functions().get(index as usize) {
                    show.function(lines, function);
                }
            }
        } else {
            show.one(lines, &profile, filter);
        }
        if parsed.flag("show-prof-sym-list") {
            lines
                .text(b"======== Dump profile symbol list ========")
                .end();
            for symbol in &profile.symbols {
                lines.text(symbol).end();
            }
        }
        if !needs_all {
            return Ok(());
        }
        let summary = report
            .summary
            .clone()
            .unwrap_or_else(|| summarize(&profile));
        if parsed.flag("detailed-summary") {
            totals(lines, &summary);
        }
        let top = parsed.number("topn").unwrap_or(0);
        if parsed.flag("hot-func-list") || top > 0 {
            show.hot(lines, &profile, &summary, top);
        }
        Ok(())
    })
}

/// Returns an error if reading found any problem in the profile, because LLVM's tool shows nothing of a damaged file.
pub(super) fn sound(name: &[u8], data: &[u8], report: &ReadReport) -> Result<(), Fault> {
    match report.faults.first() {
        Some(error) => Err(fault(name, data, error)),
        None if report.outcome != AddOutcome::default() => Err(Fault::of(name, "Counter overflow")),
        None => Ok(()),
    }
}

/// Runs `--show-sec-info-only`.
fn sections(
    name: &[u8],
    parsed: &Parsed,
    data: &[u8],
    output: Output,
    session: &Session<'_>,
) -> Result<(), Fault> {
    if let Some(check) = header_fault(data) {
        return Err(Fault::of(name, check.text));
    }
    if llvm_encoding(data) != Some(SampleEncoding::ExtBinary) {
        session.warning(
            b"",
            "-show-sec-info-only is only supported for sample profile in extbinary format and is \
             ignored for other formats.",
        );
        return output::write(session, output, parsed.output(), |_| Ok(()));
    }
    let opened = ExtBinaryProfile::parse_with(data, &read_options(parsed));
    let opened = opened.map_err(|error| fault(name, data, &error))?;
    output::write(session, output, parsed.output(), |lines| {
        let mut total = 0u64;
        for entry in opened.sections() {
            // LLVM 22 does not know the kinds of sections that later releases have added.
            let name = match entry.kind {
                section::COMPOSITE | section::COMPOSITE_OFFSETS => "UnknownSection",
                _ => entry.name(),
            };
            lines.text(name).text(b" - Offset: ").number(entry.offset);
            lines.text(b", Size: ").number(entry.size);
            lines
                .text(b", Flags: {")
                .text(flags(entry))
                .text(b"}")
                .end();
            total = total.wrapping_add(entry.size);
        }
        let first = opened.sections().first();
        let header = first.map_or(data.len() as u64, |entry| entry.offset);
        let ends = opened.sections().iter();
        let ends = ends.map(|entry| entry.offset.wrapping_add(entry.size));
        let size = ends.max().unwrap_or(0);
        lines.text(b"Header Size: ").number(header).end();
        lines.text(b"Total Sections Size: ").number(total).end();
        lines.text(b"File Size: ").number(size).end();
        Ok(())
    })
}

/// Runs `--show-composite-info-only`, an option of LLVM's development branch after release 23.
fn blocks(
    name: &[u8],
    parsed: &Parsed,
    data: &[u8],
    output: Output,
    session: &Session<'_>,
) -> Result<(), Fault> {
    let read = match llvm_encoding(data) {
        Some(SampleEncoding::ExtBinary) => ExtBinaryProfile::parse(data)
            .and_then(|opened| opened.blocks())
            .map_err(|error| fault(name, data, &error))?,
        _ => None,
    };
    let functions = read.unwrap_or_else(|| {
        session.warning(name, "no composite profile section; nothing to show");
        Vec::new()
    });
    output::write(session, output, parsed.output(), |lines| {
        for function in functions {
            pad(lines, 2 * function.depth);
            let what: &[u8] = match function.depth {
                0 => b"Function: ",
                _ => b"Nested function: ",
            };
            lines.text(what).text(&function.name).end();
            let detail = 2 * (function.depth + 1);
            pad(lines, detail);
            lines
                .text(b"Profile blocks: ")
                .number(function.blocks.len() as u64)
                .end();
            for it in &function.blocks {
                let kind = if it.kind == block::SAMPLES {
                    "LBR"
                } else {
                    "unknown"
                };
                pad(lines, detail);
                lines.text(b"Type: ").number(it.kind);
                lines.text(format!(" ({kind}), Payload size: "));
                lines.number(it.size).end();
            }
        }
        Ok(())
    })
}

/// Returns the words for the flags of a section (`getSecFlagsStr`).
fn flags(entry: &Section) -> String {
    let mut words = Vec::new();
    if entry.has(flag::COMPRESSED) {
        words.push("compressed");
    }
    if entry.has(flag::FLAT) {
        words.push("flat");
    }
    let mut known = |bit: u64, word: &'static str| {
        if entry.has(bit) {
            words.push(word);
        }
    };
    match entry.kind {
        section::NAMES => {
            if entry.has(flag::FIXED_MD5_NAMES) {
                known(flag::FIXED_MD5_NAMES, "fixlenmd5");
            } else {
                known(flag::MD5_NAMES, "md5");
            }
            known(flag::UNIQUE_SUFFIX, "uniq");
        }
        section::SUMMARY => {
            known(flag::PARTIAL, "partial");
            known(flag::CONTEXT_SENSITIVE, "context");
            known(flag::PRE_INLINED, "preInlined");
            known(flag::FS_DISCRIMINATORS, "fs-discriminator");
        }
        section::FUNCTION_OFFSETS => known(flag::ORDERED, "ordered"),
        section::METADATA => {
            known(flag::PROBE_BASED, "probe");
            known(flag::ATTRIBUTES, "attr");
        }
        _ => {}
    }
    words.join(",")
}

/// Returns the name of a function. If `contexts` is true, the function's callers stand before it, in LLVM's notation of
/// contexts.
pub fn context(names: &SampleNames, function: &Function, contexts: bool) -> Vec<u8> {
    let mut text = Vec::new();
    if contexts {
        for frame in &function.callers {
            spell(&mut text, names.get(frame.name));
            text.push(b':');
            text.extend_from_slice(place(frame.location).as_bytes());
            text.extend_from_slice(b" @ ");
        }
    }
    spell(&mut text, names.get(function.samples.name));
    text
}

fn spell(text: &mut Vec<u8>, name: SampleName<'_>) {
    match name {
        SampleName::Text(name) => text.extend_from_slice(name),
        SampleName::Guid(_) => text.extend_from_slice(name.to_string().as_bytes()),
    }
}

fn place(location: Location) -> String {
    match location.discriminator {
        0 => location.line.to_string(),
        discriminator => format!("{}.{discriminator}", location.line),
    }
}

/// Prints the same text as `ProfileSummary::printSummary` and `printDetailedSummary`.
fn totals(lines: &mut Lines<'_>, summary: &Summary) {
    for (what, value) in [
        ("Total functions: ", summary.functions),
        ("Maximum function count: ", summary.max_function_count),
        ("Maximum internal block count: ", summary.max_internal_count),
        ("Total number of blocks: ", summary.blocks),
        ("Total count: ", summary.total_count),
    ] {
        lines.text(what).number(value).end();
    }
    detailed_summary(lines, summary);
}

fn pad(lines: &mut Lines<'_>, width: usize) {
    lines.text(" ".repeat(width));
}

/// The data of a profile that are needed to print its functions.
pub(super) struct Show<'p> {
    pub(super) names: &'p SampleNames,
    pub(super) ranks: IndexVec<NameId, u32>,
    contexts: bool,
}

impl Show<'_> {
    pub(super) fn name(&self, id: NameId) -> Vec<u8> {
        let mut text = Vec::new();
        spell(&mut text, self.names.get(id));
        text
    }

    fn rank(&self, id: NameId) -> u32 {
        self.ranks.get(id).copied().unwrap_or(u32::MAX)
    }

    /// Returns the call targets of a line, sorted by count (descending), then by name.
    pub(super) fn targets(&self, samples: &Samples, location: Location) -> Vec<(NameId, u64)> {
        let targets = samples.targets_at(location).iter();
        let mut targets: Vec<_> = targets.map(|target| (target.name, target.count)).collect();
        targets.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), self.rank(name)));
        targets
    }

    /// Returns the functions that are inlined at each line, sorted by line and name.
    pub(super) fn inlined<'s>(&self, samples: &'s Samples) -> Vec<(Location, &'s Samples)> {
        let inlined = samples.inlined.iter();
        let mut inlined: Vec<_> = inlined.map(|it| (it.location, &it.samples)).collect();
        inlined.sort_by_key(|(location, samples)| (*location, self.rank(samples.name)));
        inlined
    }

    fn function(&self, lines: &mut Lines<'_>, function: &Function) {
        lines.text(b"Function: ");
        lines
            .text(context(self.names, function, self.contexts))
            .text(b": ");
        self.samples(lines, &function.samples, 0);
    }

    /// Prints the function with this name. If the profile has no such function, prints LLVM's text for this case. LLVM
    /// never finds a function by its name if the profile has contexts.
    fn one(&self, lines: &mut Lines<'_>, profile: &SampleProfile, name: &[u8]) {
        let wanted = SampleName::Text(name).guid();
        let mut functions = profile.functions().iter().filter(|_| !self.contexts);
        match functions.find(|function| self.names.get(function.samples.name).guid() == wanted) {
            Some(function) => self.function(lines, function),
            None => {
                lines.text(b"Function: : ");
                self.samples(lines, &Samples::default(), 0);
            }
        }
    }

    fn samples(&self, lines: &mut Lines<'_>, samples: &Samples, indent: usize) {
        if samples.checksum > 0 {
            lines.text(b"CFG checksum ").number(samples.checksum).end();
        }
        lines.number(samples.total).text(b", ").number(samples.head);
        lines.text(b", ").number(samples.body.len() as u64);
        lines.text(b" sampled lines").end();
        pad(lines, indent);
        if samples.body.is_empty() {
            lines
                .text(b"No samples collected in the function's body")
                .end();
        } else {
            lines
                .text(b"Samples collected in the function's body {")
                .end();
            for line in &samples.body {
                pad(lines, indent + 2);
                lines
                    .text(place(line.location))
                    .text(b": ")
                    .number(line.samples);
                let targets = self.targets(samples, line.location);
                if !targets.is_empty() {
                    lines.text(b", calls:");
                }
                for (name, count) in targets {
                    lines
                        .text(b" ")
                        .text(self.name(name))
                        .text(b":")
                        .number(count);
                }
                lines.end();
                self.vtables(lines, samples, line.location, indent + 2);
            }
            pad(lines, indent);
            lines.text(b"}").end();
        }
        pad(lines, indent);
        if samples.inlined.is_empty() {
            lines.text(b"No inlined callsites in this function").end();
            return;
        }
        lines
            .text(b"Samples collected in inlined callsites {")
            .end();
        let inlined = self.inlined(samples);
        for (index, &(location, inner)) in inlined.iter().enumerate() {
            pad(lines, indent + 2);
            lines.text(place(location)).text(b": inlined callee: ");
            lines.text(self.name(inner.name)).text(b": ");
            self.samples(lines, inner, indent + 4);
            if inlined.get(index + 1).is_none_or(|next| next.0 != location) {
                self.vtables(lines, samples, location, indent + 2);
            }
        }
        pad(lines, indent);
        lines.text(b"}").end();
    }

    fn vtables(&self, lines: &mut Lines<'_>, samples: &Samples, location: Location, indent: usize) {
        let mut vtables: Vec<_> = samples.vtables_at(location).iter().collect();
        if vtables.is_empty() {
            return;
        }
        vtables.sort_by_key(|vtable| self.rank(vtable.name));
        pad(lines, indent);
        lines.text(place(location)).text(b": vtables: ");
        for vtable in vtables {
            lines
                .text(self.name(vtable.name))
                .text(b":")
                .number(vtable.count)
                .text(b" ");
        }
        lines.end();
    }

    /// Prints the same text as `showHotFunctionList`.
    fn hot(&self, lines: &mut Lines<'_>, profile: &SampleProfile, summary: &Summary, top: u64) {
        const HOT_CUTOFF: u64 = 990_000;
        let entry = summary
            .cutoffs
            .iter()
            .find(|entry| entry.cutoff == HOT_CUTOFF);
        let threshold = entry.map_or(0, |entry| entry.min_count);
        let functions = profile.functions();
        let mut total = 0u64;
        let mut hot_total = 0u64;
        let mut hot: Vec<(&Function, u64)> = Vec::new();
        for index in profile.llvm_order(&self.ranks) {
            let Some(function) = functions.get(index as usize) else {
                continue;
            };
            let samples = function.samples.total;
            total = total.wrapping_add(samples);
            // The largest count of a function without lines is 0. So such a function is hot if the threshold is 0.
            let largest = largest(&function.samples);
            if largest >= threshold {
                hot_total = hot_total.wrapping_add(samples);
                hot.push((function, largest));
            }
        }
        let share = |part: u64, whole: u64| match whole {
            0 => 0.0,
            _ => part as f64 / whole as f64 * 100.0,
        };
        let (count, all) = (hot.len() as u64, functions.len() as u64);
        // LLVM divides by the number of functions even if this is 0. On x86-64 the result is a negative NaN.
        let functions_share = match all {
            0 => "-nan".to_owned(),
            _ => format!("{:.2}", share(count, all)),
        };
        lines.number(count).text(b" out of ").number(all);
        lines.text(format!(
            " functions with profile ({functions_share}%) are considered hot functions (max sample >= {threshold})."
        ));
        lines.end();
        lines.number(hot_total).text(b" out of ").number(total);
        let counts = share(hot_total, total);
        lines
            .text(format!(
                " profile counts ({counts:.2}%) are from hot functions."
            ))
            .end();
        columns(
            lines,
            ["Total sample (%)", "Max sample", "Entry sample"],
            b"Function name",
        );
        let shown = if top == 0 { u64::MAX } else { top };
        for (function, largest) in hot
            .into_iter()
            .take(usize::try_from(shown).unwrap_or(usize::MAX))
        {
            let samples = function.samples.total;
            let share = match total {
                0 => 0.0,
                _ => samples as f64 * 100.0 / total as f64,
            };
            let sum = format!("{samples} ({share:.2}%)");
            let entry = head_estimate(&function.samples, self.contexts).to_string();
            let name = context(self.names, function, self.contexts);
            columns(lines, [&sum, &largest.to_string(), &entry], &name);
        }
    }
}

/// Prints a row of a table, padded as in LLVM's output, with at least one blank before each column.
fn columns(lines: &mut Lines<'_>, cells: [&str; 3], last: &[u8]) {
    const STARTS: [usize; 4] = [0, 24, 42, 58];
    let mut row: Vec<u8> = Vec::new();
    for (cell, start) in cells
        .iter()
        .map(|cell| cell.as_bytes())
        .chain([last])
        .zip(STARTS)
    {
        let width = start.max(row.len() + 1);
        row.resize(width, b' ');
        row.extend_from_slice(cell);
    }
    lines.text(&row).end();
}

/// Returns the largest number of samples in any line, including the lines of inlined functions; 0 if there are no
/// lines.
fn largest(samples: &Samples) -> u64 {
    let own = samples.body.iter().map(|line| line.samples);
    let inlined = samples.inlined.iter().map(|it| largest(&it.samples));
    own.chain(inlined).max().unwrap_or(0)
}
