//! The report of a merge as text. It has a line per message, a line about what was written, and tables of numbers that
//! deserve attention.
use super::MergeReport;
use crate::{Cell, Console, Style, Table, grouped, percent, plural, size};
use profkit_merge::report::MipDetails;
use profkit_merge::{Reason, Report, Totals};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};

/// The largest number of events per reason in the text. The JSON of `--report` has up to a hundred times as many.
const LINES_PER_REASON: usize = 10;
/// The largest number of events per input in the text.
const LINES_PER_FILE: usize = 3;

impl MergeReport<'_> {
    /// Prints text for people: notes, warnings and hints, then a line about what was written. Tables of the files and
    /// of the functions follow, unless all of them were merged unchanged.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn text<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let mut said = false;
        for note in self.notes.iter().filter(|_| !self.quiet) {
            labelled(Label::Note, note, out)?;
            said = true;
        }
        said |= print_events(self.report, self.quiet, out)?;
        for written in self.outputs {
            for loss in &written.losses {
                let loss = format_args!("{}: {loss}", written.name());
                labelled(Label::Warning, loss, out)?;
                said = true;
            }
        }
        let mip = self.report.mip.as_ref();
        if let Some(mip) = mip.filter(|mip| mip.samples_dropped > 0) {
            let samples = plural(mip.samples_dropped, "sample");
            let why = "left out, because the called function is not in the profile";
            labelled(Label::Warning, format_args!("{samples} {why}"), out)?;
            said = true;
        }
        let is_summary = match mip {
            Some(_) => !self.outputs.is_empty(),
            None => self.dry_run || !self.outputs.is_empty(),
        };
        if !is_summary || self.quiet {
            return Ok(());
        }
        if said {
            writeln!(out)?;
        }
        match mip {
            Some(mip) => self.mip_lines(mip, out)?,
            None => self.line(out)?,
        }
        print_files(&self.report.totals, out)?;
        match mip {
            Some(_) => Ok(()),
            None => self.functions(out),
        }
    }

    /// Prints the line that says what was written, how many functions were written, and from how many files.
    fn line<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let totals = &self.report.totals;
        match self.outputs {
            [] => write!(out, "nothing was written, as --dry-run asks for")?,
            [one] => {
                let form = match one.indexed_version {
                    Some(version) => format!("indexed version {version}"),
                    None => one.format.to_owned(),
                };
                write!(out, "wrote ")?;
                out.styled(Style::Heading, one.name())?;
                write!(out, " ({}, {form})", size(one.bytes))?;
            }
            many => {
                let bytes = many.iter().map(|written| written.bytes).sum();
                let profiles = plural(many.len() as u64, "profile");
                write!(out, "wrote {profiles} ({})", size(bytes))?;
            }
        }
        let functions = plural(self.function_count(), "function");
        write!(out, ": {functions} from {}", used_files(totals))?;
        writeln!(out, " ({})", size(totals.bytes))
    }

    /// Prints the lines about a merge of MIP files.
    fn mip_lines<W: Write>(&self, mip: &MipDetails, out: &mut Console<W>) -> io::Result<()> {
        for written in self.outputs {
            write!(out, "wrote ")?;
            out.styled(Style::Heading, written.name())?;
            writeln!(
                out,
                ": {} of {} covered, {}",
                grouped(written.covered.unwrap_or(0)),
                plural(written.functions, "function"),
                plural(written.runs.unwrap_or(0), "run"),
            )?;
        }
        let files = used_files(&self.report.totals);
        writeln!(out, "merged {} from {files}", plural(mip.runs, "run"))
    }

    /// The number of functions in the outputs. In a dry run, which has no outputs, the number of functions in the
    /// result.
    fn function_count(&self) -> u64 {
        match self.outputs {
            [] => self.report.totals.functions,
            outputs => outputs.iter().map(|written| written.functions).sum(),
        }
    }

    /// Prints the table of the functions, unless all functions were merged unchanged.
    fn functions<W: Write>(&self, out: &mut Console<W>) -> io::Result<()> {
        let totals = &self.report.totals;
        let row = |name: Cell, functions, remark: &str| (name, functions, remark.to_owned());
        let warning = |name: &str| Cell::styled(Style::Warning, name);
        let rows = [
            row("in more than one program".into(), totals.collisions, ""),
            row("filtered out".into(), totals.functions_filtered, ""),
            row(warning("dropped from inputs"), totals.records_dropped, ""),
            row(
                warning("with a limited count"),
                totals.records_overflowed,
                "the sum is above the largest count",
            ),
        ];
        let (label, count) = match self.outputs {
            [] => ("in the result", totals.functions),
            _ => ("written", self.function_count()),
        };
        print_numbers("Functions", (label, count), rows, out)
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

/// Prints the table of the files, unless all files were merged unchanged.
fn print_files<W: Write>(totals: &Totals, out: &mut Console<W>) -> io::Result<()> {
    let share = |files: u64| percent(files.into(), totals.files.into());
    let row = |style, name: &str, files| (Cell::styled(style, name), files, share(files));
    let rows = [
        row(Style::Warning, "repaired", totals.files_repaired),
        row(Style::Error, "dropped", totals.files_dropped),
        row(Style::Dim, "empty", totals.files_empty),
    ];
    print_numbers("Files", ("kept", totals.files_kept), rows, out)
}

/// Prints a table of numbers under a title, unless all numbers but the first are 0.
fn print_numbers<W: Write>(
    title: &str,
    (label, first): (&str, u64),
    rows: impl IntoIterator<Item = (Cell, u64, String)>,
    out: &mut Console<W>,
) -> io::Result<()> {
    let rows = rows.into_iter().filter(|(_, number, _)| *number > 0);
    let mut rows: Vec<_> = rows
        .map(|(name, number, remark)| (name, grouped(number), remark))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.insert(0, (label.into(), grouped(first), String::new()));
    writeln!(out)?;
    out.heading(title)?;
    Table::of_facts(rows).print(out)
}

/// The first word of a line.
#[derive(Clone, Copy, Debug)]
enum Label {
    Note,
    Warning,
    Hint,
}

/// Prints a line whose first word has a colour.
fn labelled<W: Write>(label: Label, text: impl Display, out: &mut Console<W>) -> io::Result<()> {
    let (style, word) = match label {
        Label::Note => (Style::Note, "note:"),
        Label::Warning => (Style::Warning, "warning:"),
        Label::Hint => (Style::Hint, "hint:"),
    };
    out.styled(style, word)?;
    writeln!(out, " {text}")
}

/// Prints one line per event. Events with the same reason are printed together, and among these the events with the same
/// hint, followed by the hint. With `quiet`, notes are left out. Returns whether a line was printed.
fn print_events<W: Write>(report: &Report, quiet: bool, out: &mut Console<W>) -> io::Result<bool> {
    let mut reasons: Vec<Reason> = Vec::new();
    for event in &report.events {
        // Events with the reason `HashGenerationUnknown` are left out of the text: the version of a raw profile does
        // not tell how function hashes were computed. Nearly every coverage profile has such an event, and there it is
        // harmless.
        let idle = event.reason == Reason::HashGenerationUnknown || quiet && event.reason.is_note();
        if !idle && !reasons.contains(&event.reason) {
            reasons.push(event.reason);
        }
    }
    let mut lines: BTreeMap<usize, usize> = BTreeMap::new();
    for &reason in &reasons {
        let label = if reason.is_note() {
            Label::Note
        } else {
            Label::Warning
        };
        let events = || report.events.iter().filter(|event| event.reason == reason);
        let mut hints: Vec<Option<&str>> = Vec::new();
        for event in events() {
            if !hints.contains(&event.hint.as_deref()) {
                hints.push(event.hint.as_deref());
            }
        }
        let mut shown = 0;
        // The hint for the last lines, and the hints for events that have no line.
        let mut pending = None;
        let mut without_lines = Vec::new();
        for &hint in &hints {
            let shown_before = shown;
            let of_hint = || events().filter(|event| event.hint.as_deref() == hint);
            for event in of_hint() {
                let of_file = lines.entry(event.input).or_default();
                if shown < LINES_PER_REASON && *of_file < LINES_PER_FILE {
                    *of_file += 1;
                    shown += 1;
                    if let Some(hint) = pending.take() {
                        labelled(Label::Hint, hint, out)?;
                    }
                    labelled(label, event, out)?;
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
        if hints.len() > 1
            && let Some(hint) = pending.take()
        {
            labelled(Label::Hint, hint, out)?;
        }
        let rest = (events().count() - shown) as u64;
        let more = rest + report.omitted.get(&reason).copied().unwrap_or(0);
        match (more, shown) {
            (0, _) => {}
            (more, shown) => {
                let what = if shown == 0 {
                    "about the files named above"
                } else {
                    "of this kind"
                };
                let more = grouped(more);
                labelled(label, format_args!("… and {more} more {what}"), out)?;
            }
        }
        if let Some(hint) = pending {
            labelled(Label::Hint, hint, out)?;
        }
        for (hint, file, others) in without_lines {
            let others = if others { " and others" } else { "" };
            labelled(Label::Hint, format_args!("for {file}{others}: {hint}"), out)?;
        }
    }
    Ok(!reasons.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Look;
    use crate::merge::Written;
    use profkit_merge::{Action, Event};

    fn printed(report: &MergeReport<'_>, look: Look) -> String {
        let mut out = Console::text(Vec::new(), look);
        report.text(&mut out).unwrap();
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

        wrote out.profdata (3.0 MB, indexed version 12): 16,531 functions from 12 of 13 files (403.1 MB)

        Files
          kept       0
          repaired  12  92.3%
          dropped    1  7.6%

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
        wrote 2 profiles (6.0 MB): 33,062 functions from 12 of 13 files (403.1 MB)

        Files
          kept       0
          repaired  12  92.3%
          dropped    1  7.6%

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
