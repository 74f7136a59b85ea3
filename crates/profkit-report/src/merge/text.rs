//! The report of a merge as text. It has a line per message, a line about what was written, and tables of numbers that
//! deserve attention.
use super::MergeReport;
use crate::{Cell, Console, Document, Look, Style, grouped, percent, plural, quoted, size};
use profkit_analysis::filter::{Amount, Filtered, Unit};
use profkit_data::instr::Target;
use profkit_data::printable;
use profkit_merge::report::MipDetails;
use profkit_merge::report::{Mismatches, SharedFunctions};
use profkit_merge::{Event, Reason, Report, Totals};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The largest number of events per reason in the text. The JSON of `--report` has up to a hundred times as many.
const LINES_PER_REASON: usize = 10;
const LINES_PER_FILE: usize = 3;
/// The largest number of inputs whose lines stand together.
const FILES_WITH_BLOCKS: usize = 10;

impl MergeReport<'_> {
    /// The text for people: messages, what was written, and tables unless all was merged unchanged.
    pub fn document(&self) -> Document {
        let mut document = Document::default();
        for note in self.notes.iter().filter(|_| !self.quiet) {
            document.line(format_args!("note: {note}"));
        }
        let repeated = &self.report.repeated;
        for name in repeated
            .iter()
            .take(LINES_PER_REASON)
            .filter(|_| !self.quiet)
        {
            let name = printable(name.as_bytes());
            document.line(format_args!(
                "note: {name}: left out, because its counts are in another input"
            ));
        }
        if repeated.len() > LINES_PER_REASON && !self.quiet {
            let more = plural((repeated.len() - LINES_PER_REASON) as u64, "more input");
            document.line(format_args!("note: {more} left out for the same reason"));
        }
        add_events(&mut document, self.report, self.quiet);
        for written in self.outputs {
            for loss in &written.losses {
                document.line(format_args!("warning: {}: {loss}", written.name()));
            }
        }
        if let Some(shared) = &self.report.shared {
            // Two builds of one program have nearly all functions in common, and are often merged: the table says so.
            if shared.functions * 10 < self.report.totals.functions * 9 {
                add_shared(&mut document, shared);
            }
        }
        if let Some(mismatched) = &self.report.mismatched {
            add_mismatched(&mut document, mismatched);
        }
        if self.targets.len() > 1 {
            add_targets(&mut document, self.targets);
        }
        let mip = self.report.mip.as_ref();
        if let Some(mip) = mip.filter(|mip| mip.samples_dropped > 0) {
            let samples = plural(mip.samples_dropped, "sample");
            document.line(format_args!(
                "warning: {samples} left out, because the called function is not in the profile"
            ));
        }
        if let Some(mip) = mip.filter(|mip| mip.calls_not_kept > 0) {
            let calls = plural(mip.calls_not_kept, "call");
            document.line(format_args!(
                "warning: the callers of {calls} are not known, because the program's table of return addresses was full; instrument it with a larger --return-addresses"
            ));
        }
        let is_summary = match mip {
            Some(_) => !self.outputs.is_empty(),
            None => self.dry_run || !self.outputs.is_empty(),
        };
        if is_summary && !self.quiet {
            if !document.is_empty() {
                document.line("");
            }
            match mip {
                Some(mip) => self.add_mip_lines(&mut document, mip),
                None => self.add_line(&mut document),
            }
            add_files(&mut document, &self.report.totals);
            if mip.is_none() {
                self.add_functions(&mut document);
            }
            for filtered in self.filtered {
                add_filtered(&mut document, filtered);
            }
        }
        document
    }

    /// Writes the whole report as Markdown, for job summaries.
    pub fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut document = Document::default();
        document.title(
            "profkit merge",
            if self.errors.is_empty() {
                "done"
            } else {
                "failed"
            },
        );
        document.append(
            MergeReport {
                quiet: false,
                ..*self
            }
            .document(),
        );
        if let Some(correlation) = self.correlation {
            document.append(correlation.document());
        }
        for error in self.errors {
            document.line(format_args!("error: {error}"));
        }
        let look = Look {
            markdown: true,
            ..Look::default()
        };
        document.print(&mut Console::text(out, look))
    }

    fn add_line(&self, document: &mut Document) {
        let totals = &self.report.totals;
        let mut pieces: Vec<Cell> = match self.outputs {
            [] => vec!["nothing was written, as --dry-run asks for".into()],
            [one] => {
                let form = match one.indexed_version {
                    Some(version) => format!("indexed version {version}"),
                    None => one.format.to_owned(),
                };
                let size = size(one.bytes);
                vec![
                    "wrote ".into(),
                    Cell::styled(Style::Heading, one.name()),
                    format!(" ({size}, {form})").into(),
                ]
            }
            many => {
                let bytes = many.iter().map(|written| written.bytes).sum();
                let profiles = plural(many.len() as u64, "profile");
                vec![format!("wrote {profiles} ({})", size(bytes)).into()]
            }
        };
        let contexts = self.outputs.iter().filter_map(|written| written.contexts);
        let contexts: u64 = contexts.sum();
        let mut what = Vec::new();
        // A profile that is a heap profile alone has no functions with counters; YAML has functions with contexts.
        if contexts == 0 || self.function_count() > 0 {
            what.push(plural(self.function_count(), "function"));
        }
        if contexts > 0 {
            what.push(plural(contexts, "heap context"));
        }
        let (what, files, size) = (what.join(" and "), used_files(totals), size(totals.bytes));
        pieces.push(format!(": {what} from {files} ({size})").into());
        document.pieces(pieces);
    }

    fn add_mip_lines(&self, document: &mut Document, mip: &MipDetails) {
        for written in self.outputs {
            let numbers = format!(
                ": {} of {} covered, {}",
                grouped(written.covered.unwrap_or(0)),
                plural(written.functions, "function"),
                plural(written.runs.unwrap_or(0), "run"),
            );
            let name = Cell::styled(Style::Heading, written.name());
            document.pieces(["wrote ".into(), name, numbers.into()]);
        }
        let files = used_files(&self.report.totals);
        document.line(format_args!(
            "merged {} from {files}",
            plural(mip.runs, "run")
        ));
    }

    /// The number of functions in the outputs, or in the result of a dry run.
    fn function_count(&self) -> u64 {
        match self.outputs {
            [] => self.report.totals.functions,
            outputs => outputs.iter().map(|written| written.functions).sum(),
        }
    }

    /// Adds the table of the functions, unless all functions were merged unchanged.
    fn add_functions(&self, document: &mut Document) {
        let totals = &self.report.totals;
        let warning = |name: &str| Cell::styled(Style::Warning, name);
        let limited = "the sum is above the largest count".to_owned();
        let none = String::new;
        let rows = [
            ("in more than one program".into(), totals.collisions, none()),
            ("filtered out".into(), totals.functions_filtered, none()),
            (
                warning("dropped from inputs"),
                totals.records_dropped,
                none(),
            ),
            (
                warning("with a limited count"),
                totals.records_overflowed,
                limited,
            ),
        ];
        let first = match self.outputs {
            [] => ("in the result", totals.functions),
            _ => ("written", self.function_count()),
        };
        add_numbers(document, "Functions", first, rows);
    }
}

/// Adds the table of what was cut.
fn add_filtered(document: &mut Document, filtered: &Filtered) {
    if filtered.is_unchanged() {
        document.line("nothing was cut");
        return;
    }
    let all = filtered.all();
    let (title, unit) = match filtered.unit {
        Unit::Function => ("Functions that were kept and cut", "counts"),
        Unit::CallingContext => ("Calling contexts that were kept and cut", "counts"),
        Unit::HeapContext => ("Heap contexts that were kept and cut", "bytes"),
    };
    let row = |name: &str, amount: Amount| {
        let share = percent(amount.counts, all.counts);
        (
            name.to_owned(),
            grouped(amount.units),
            format!("{share} of all {unit}"),
        )
    };
    let cut = [
        ("cut by name", filtered.by_name),
        ("cut as cold", filtered.cold),
        ("cut, as others are hotter", filtered.not_hottest),
        ("cut to stay within the size", filtered.by_size),
    ];
    let cut = cut.into_iter().filter(|(_, amount)| amount.units > 0);
    document.section(title);
    document.facts(
        [("kept", filtered.kept)]
            .into_iter()
            .chain(cut)
            .map(|(name, amount)| row(name, amount)),
    );
    let removed = [
        (filtered.values, "value"),
        (filtered.symbols, "name of the list of symbols"),
    ];
    for (count, what) in removed.into_iter().filter(|(count, _)| *count > 0) {
        let what = match count {
            1 => format!("1 {what} was"),
            count => format!(
                "{} {} were",
                grouped(count),
                what.replacen("value", "values", 1)
                    .replacen("name ", "names ", 1)
            ),
        };
        document.line(format_args!("{what} removed"));
    }
    if filtered.redacted {
        document.line("names and paths were redacted: no compiler can use this profile");
    }
}

/// The number of files that were used: `5 files`, or `4 of 5 files`.
fn used_files(totals: &Totals) -> String {
    let used = totals.files_kept + totals.files_repaired;
    let all = plural(totals.files, "file");
    if used < totals.files {
        format!("{} of {all}", grouped(used))
    } else {
        all
    }
}

/// Adds the table of the files, unless all files were merged unchanged.
fn add_files(document: &mut Document, totals: &Totals) {
    let share = |files: u64| percent(files.into(), totals.files.into());
    let row = |style, name: &str, files| (Cell::styled(style, name), files, share(files));
    let rows = [
        row(Style::Warning, "repaired", totals.files_repaired),
        row(Style::Error, "dropped", totals.files_dropped),
        row(Style::Dim, "empty", totals.files_empty),
    ];
    add_numbers(document, "Files", ("kept", totals.files_kept), rows);
}

/// Adds a table of numbers under a title, unless all numbers but the first are 0.
fn add_numbers(
    document: &mut Document,
    title: &str,
    (label, first): (&str, u64),
    rows: impl IntoIterator<Item = (Cell, u64, String)>,
) {
    let rows = rows.into_iter().filter(|(_, number, _)| *number > 0);
    let first = (label.into(), first, String::new());
    let rows: Vec<_> = [first].into_iter().chain(rows).collect();
    if rows.len() > 1 {
        document.section(title);
        document.facts(rows);
    }
}

/// Names the functions of several programs that were added to each other.
fn add_shared(document: &mut Document, shared: &SharedFunctions) {
    let names = shared.first.iter();
    let names: Vec<_> = names.map(|name| printable(name).to_string()).collect();
    let more = shared.functions.saturating_sub(names.len() as u64);
    let more = match more {
        0 => String::new(),
        more => format!(" and {} more", grouped(more)),
    };
    let (functions, are) = match shared.functions {
        1 => ("1 function", "is"),
        _ => (&*plural(shared.functions, "function"), "are"),
    };
    document.line(format_args!(
        "warning: {functions} with the same name and hash {are} in programs of different build ids, and added up, with {} of all counts: {}{more}",
        percent(shared.counts, shared.all_counts),
        names.join(", "),
    ));
    document.line(
        "hint: that is right for code that the programs share; --by-build-id DIR keeps the programs apart",
    );
}

/// Says that the inputs are of several targets, whose counts are added to each other. The hint is for `merge`.
fn add_targets(document: &mut Document, targets: &BTreeMap<Target, u64>) {
    add_target_names(document, targets);
    let device = targets.keys().last().map(Target::to_string);
    document.line(format_args!(
        "hint: a compiler needs a profile for each target: --target host merges the inputs of the host alone, and --target {} those of this device",
        quoted(&device.unwrap_or_default()),
    ));
}

/// Says that the inputs are of several targets, whose counts are added to each other.
pub fn add_target_names(document: &mut Document, targets: &BTreeMap<Target, u64>) {
    let named = |(target, inputs): (&Target, &u64)| {
        let target = target.to_string();
        format!(
            "{} ({})",
            printable(target.as_bytes()),
            plural(*inputs, "input")
        )
    };
    document.line(format_args!(
        "warning: the inputs are of code for {} targets, and counts of functions with the same name and hash are added up: {}",
        grouped(targets.len() as u64),
        targets.iter().map(named).collect::<Vec<_>>().join(", "),
    ));
}

/// Says which inputs contradict each other, and the share of the counts that was left out.
fn add_mismatched(document: &mut Document, mismatched: &Mismatches) {
    document.line(format_args!(
        "warning: {} with {} of all counts {} left out, because {} other records of the same functions:",
        plural(mismatched.records, "record"),
        percent(mismatched.counts, mismatched.all_counts),
        if mismatched.records == 1 { "was" } else { "were" },
        if mismatched.records == 1 {
            "it contradicts"
        } else {
            "they contradict"
        },
    ));
    let side = |name: &str, inputs: u64| match inputs {
        0 | 1 => printable(name.as_bytes()).to_string(),
        _ => {
            let more = plural(inputs - 1, "more input");
            format!("{} and {more}", printable(name.as_bytes()))
        }
    };
    for sides in &mismatched.sides {
        document.line(format_args!(
            "  {}: kept from {}, left out from {} ({} of all counts)",
            plural(sides.functions, "function"),
            side(&sides.kept, sides.kept_inputs),
            side(&sides.dropped, sides.dropped_inputs),
            percent(sides.counts, mismatched.all_counts),
        ));
    }
    if mismatched.more_sides > 0 {
        document.line(format_args!(
            "  and {}",
            plural(mismatched.more_sides, "further pair")
        ));
    }
}

/// Adds a line per event. Inputs with events of several reasons come first, each with its lines together; the other
/// events stand by reason and then by hint, which follows its lines. `quiet` leaves notes out.
fn add_events(document: &mut Document, report: &Report, quiet: bool) {
    // Events with the reason `HashGenerationUnknown` are left out of the text: the version of a raw profile does not
    // tell how function hashes were computed. Nearly every coverage profile has such an event, and there it is harmless.
    let is_idle = |event: &Event| {
        event.reason == Reason::HashGenerationUnknown || quiet && event.reason.is_note()
    };
    let mut by_input: BTreeMap<usize, Vec<&Event>> = BTreeMap::new();
    for event in report.events.iter().filter(|event| !is_idle(event)) {
        by_input.entry(event.input).or_default().push(event);
    }
    by_input.retain(|_, events| {
        let first = events.first().map(|event| event.reason);
        events.iter().any(|event| Some(event.reason) != first)
    });
    while by_input.len() > FILES_WITH_BLOCKS {
        by_input.pop_last();
    }
    for events in by_input.values() {
        add_events_of_input(document, events);
    }
    let rest = || {
        let events = report.events.iter();
        events.filter(|event| !is_idle(event) && !by_input.contains_key(&event.input))
    };
    let mut reasons: Vec<Reason> = Vec::new();
    for event in rest() {
        if !reasons.contains(&event.reason) {
            reasons.push(event.reason);
        }
    }
    let more = report.omitted.keys().copied();
    let more = more
        .filter(|&reason| reason != Reason::HashGenerationUnknown && !(quiet && reason.is_note()));
    let more: Vec<Reason> = more.filter(|reason| !reasons.contains(reason)).collect();
    reasons.extend(more);
    let mut lines: BTreeMap<usize, usize> = BTreeMap::new();
    for &reason in &reasons {
        let events = rest().filter(|event| event.reason == reason);
        let omitted = report.omitted.get(&reason).copied().unwrap_or(0);
        add_events_of(document, events.collect(), omitted, &mut lines);
    }
}

/// Adds the lines about one input, and then their hints.
fn add_events_of_input(document: &mut Document, events: &[&Event]) {
    let label = |event: &Event| match event.reason.is_note() {
        true => "note",
        false => "warning",
    };
    let mut hints: Vec<&str> = Vec::new();
    for event in events.iter().take(LINES_PER_FILE) {
        document.line(format_args!("{}: {event}", label(event)));
        let hint = event.hint.as_deref();
        hints.extend(hint.filter(|hint| !hints.contains(hint)));
    }
    let more = events.len().saturating_sub(LINES_PER_FILE);
    if let (Some(first), 1..) = (events.first(), more) {
        let more = grouped(more);
        let label = label(first);
        document.line(format_args!(
            "{label}: … and {more} more about {}",
            first.file
        ));
    }
    for hint in hints {
        document.line(format_args!("hint: {hint}"));
    }
}

/// Adds the lines of the events that have the same reason. `omitted` more such events were not kept. `lines` has the
/// number of lines about each input.
fn add_events_of(
    document: &mut Document,
    events: Vec<&Event>,
    omitted: u64,
    lines: &mut BTreeMap<usize, usize>,
) {
    let is_note = events.iter().any(|event| event.reason.is_note());
    let label = if is_note { "note" } else { "warning" };
    let mut hints: Vec<Option<&str>> = Vec::new();
    for event in &events {
        if !hints.contains(&event.hint.as_deref()) {
            hints.push(event.hint.as_deref());
        }
    }
    let mut shown = 0;
    // The hint for the last lines, and the hints for events that have no line.
    let mut pending: Option<&str> = None;
    let mut without_lines = Vec::new();
    let add_hint = |document: &mut Document, hint: Option<&str>| {
        if let Some(hint) = hint {
            document.line(format_args!("hint: {hint}"));
        }
    };
    for &hint in &hints {
        let shown_before = shown;
        let of_hint = || events.iter().filter(|event| event.hint.as_deref() == hint);
        for event in of_hint() {
            let of_file = lines.entry(event.input).or_default();
            if shown < LINES_PER_REASON && *of_file < LINES_PER_FILE {
                *of_file += 1;
                shown += 1;
                add_hint(document, pending.take());
                document.line(format_args!("{label}: {event}"));
            }
        }
        if shown > shown_before {
            pending = hint;
        } else if let (Some(hint), Some(first)) = (hint, of_hint().next()) {
            let others = of_hint().any(|event| event.file != first.file);
            without_lines.push((hint, &first.file, others));
        }
    }
    // If all events have the same hint, it follows the line about the events that have no line of their own.
    if hints.len() > 1 {
        add_hint(document, pending.take());
    }
    let more = (events.len() - shown) as u64 + omitted;
    if more > 0 {
        let what = if shown == 0 {
            "about the files named above"
        } else {
            "of this kind"
        };
        let more = grouped(more);
        document.line(format_args!("{label}: … and {more} more {what}"));
    }
    add_hint(document, pending);
    for (hint, file, others) in without_lines {
        let others = if others { " and others" } else { "" };
        document.line(format_args!("hint: for {file}{others}: {hint}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Written;
    use crate::{Console, Look};
    use profkit_merge::{Action, Event};

    fn printed(report: &MergeReport<'_>, look: Look) -> String {
        let mut out = Console::text(Vec::new(), look);
        report.document().print(&mut out).unwrap();
        String::from_utf8(std::mem::take(out.get_mut())).unwrap()
    }

    fn event(file: &str, function: Option<&str>, reason: Reason, hint: Option<&str>) -> Event {
        Event {
            input: 0,
            file: file.to_owned(),
            function: function.map(|name| name.as_bytes().to_vec()),
            offset: Some(0x2a0),
            place: None,
            action: Action::Dropped,
            reason,
            message: "a counter is above 2^56".to_owned(),
            found: Some("7".to_owned()),
            expected: None,
            hint: hint.map(str::to_owned),
            llvm: None,
            error: None,
            kind: None,
        }
    }

    fn written(path: &str) -> Written {
        Written {
            path: path.to_owned(),
            bytes: 3_043_392,
            format: "indexed",
            indexed_version: Some(12),
            functions: 16_531,
            build_ids: vec!["b142".to_owned()],
            ..Written::default()
        }
    }

    #[test]
    fn a_line_break_in_a_function_name_does_not_break_the_line_of_its_event() {
        let event = event("a", Some("b\nc"), Reason::ImplausibleCounter, None);
        assert!(event.to_string().starts_with("a: dropped function `b\\nc`"));
    }

    #[test]
    fn events_are_grouped_by_reason_and_capped_with_hints_once() {
        let mut report = Report::default();
        for number in 0..12 {
            let file = format!("{number}.profraw");
            let hint = Some("find out who writes such counters");
            let reason = Reason::ImplausibleCounter;
            let event = event(&file, Some("main"), reason, hint);
            report.events.push(Event {
                input: number,
                ..event
            });
            if number == 5 {
                let cut = super::tests::event("cut", None, Reason::Truncated, None);
                report.events.push(Event { input: 99, ..cut });
            }
        }
        report.omitted.insert(Reason::ImplausibleCounter, 1998);
        report.totals = Totals {
            files: 13,
            files_kept: 0,
            files_repaired: 12,
            files_dropped: 1,
            bytes: 403_180_800,
            functions: 16_531,
            records_dropped: 2010,
            collisions: 3,
            ..Totals::default()
        };
        let mut lossy = written("out.profdata");
        lossy.losses.push("left out 3 build ids".to_owned());
        let full = MergeReport {
            notes: &["a and b are the same file, which is counted for each".to_owned()],
            outputs: &[lossy],
            ..MergeReport::new(&report)
        };
        insta::assert_snapshot!(printed(&full, Look::default()), @"
        note: a and b are the same file, which is counted for each
        warning: 0.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 1.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 2.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 3.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 4.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 5.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 6.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 7.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 8.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 9.profraw: dropped function `main`: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: … and 2,000 more of this kind
        hint: find out who writes such counters
        warning: cut: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: out.profdata: left out 3 build ids

        wrote out.profdata (3.0 MB, indexed version 12): 16,531 functions from 12 of 13 files (403.2 MB)

        Files
          kept       0
          repaired  12  92.3%
          dropped    1  7.7%

        Functions
          written                   16,531
          in more than one program       3
          dropped from inputs        2,010
        ");
        let many = MergeReport {
            outputs: &[written("a"), written("b")],
            ..full
        };
        let many = printed(&many, Look::default());
        let last: Vec<&str> = many
            .lines()
            .skip_while(|line| !line.starts_with("wrote"))
            .collect();
        insta::assert_snapshot!(last.join("\n"), @r"
        wrote 2 profiles (6.1 MB): 33,062 functions from 12 of 13 files (403.2 MB)

        Files
          kept       0
          repaired  12  92.3%
          dropped    1  7.7%

        Functions
          written                   33,062
          in more than one program       3
          dropped from inputs        2,010
        ");
    }

    #[test]
    fn a_hint_follows_its_events_and_names_the_file_if_its_event_has_no_line() {
        let mut report = Report::default();
        for number in 0..12 {
            let hint = match number {
                0 | 2 => "copy the file again".to_owned(),
                1 => "run the program again".to_owned(),
                _ => format!("look at {number}"),
            };
            let file = format!("{number}.profraw");
            let event = event(&file, None, Reason::Truncated, Some(&hint));
            report.events.push(Event {
                input: number,
                ..event
            });
        }
        insta::assert_snapshot!(printed(&MergeReport::new(&report), Look::default()), @"
        warning: 0.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        warning: 2.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: copy the file again
        warning: 1.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: run the program again
        warning: 3.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: look at 3
        warning: 4.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: look at 4
        warning: 5.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: look at 5
        warning: 6.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: look at 6
        warning: 7.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: look at 7
        warning: 8.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: look at 8
        warning: 9.profraw: dropped: a counter is above 2^56 (at offset 0x2a0): found 7
        hint: look at 9
        warning: … and 2 more of this kind
        hint: for 10.profraw: look at 10
        hint: for 11.profraw: look at 11
        ");
    }

    #[test]
    fn the_first_words_of_lines_are_coloured() {
        let mut report = Report::default();
        let hint = Some("look at it");
        report.events = vec![event("a", None, Reason::Truncated, hint)];
        report.totals = Totals {
            files: 2,
            files_kept: 1,
            files_dropped: 1,
            functions: 1,
            ..Totals::default()
        };
        let full = MergeReport {
            outputs: &[written("out")],
            ..MergeReport::new(&report)
        };
        let look = Look {
            colour: true,
            ..Look::default()
        };
        let text = printed(&full, look).replace('\u{1b}', "");
        for styled in [
            "[1m[33mwarning:[0m a: ",
            "[32mhint:[0m look at it",
            "wrote [1mout[0m (3.0 MB",
            "[1mFiles[0m\n",
            "[1m[31mdropped[0m",
        ] {
            assert!(text.contains(styled), "{styled}: {text}");
        }
    }
}
