//! The report of a merge of any kind, as text ([`std::fmt::Display`]) and as JSON ([`serde::Serialize`]).
mod advice;
mod correlation;
mod losses;

use crate::{grouped, plural, size};
use profkit_merge::report::MipDetails;
use profkit_merge::{Reason, Report, Totals};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

pub use advice::{name_commands, way_out};
pub use correlation::{CorrelationReport, ProgramReport};
pub use losses::{indexed_losses, left_out, sample_losses, text_losses};

/// The largest number of events per reason in the text. The JSON of `--report` has up to a hundred times as many.
const LINES_PER_REASON: usize = 10;
/// The largest number of events per input in the text.
const LINES_PER_FILE: usize = 3;

/// A profile that was written.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Written {
    /// The path of the profile; `-` for standard output.
    pub path: String,
    /// The size of the profile in bytes.
    pub bytes: u64,
    /// The format of the profile: `indexed`, `text`, `MIP` and so on.
    pub format: &'static str,
    /// The version of an indexed profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed_version: Option<u32>,
    /// The number of functions (names) in the profile.
    pub functions: u64,
    /// MIP profiles: the number of functions that a run entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered: Option<u64>,
    /// MIP profiles: the number of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// The build ids of the programs that the profile is about.
    pub build_ids: Vec<String>,
    /// Messages about data that the format cannot represent.
    pub losses: Vec<String>,
}

impl Written {
    /// The name of the output in messages.
    pub fn name(&self) -> &str {
        if self.path == "-" {
            "standard output"
        } else {
            &self.path
        }
    }
}

/// A module of raw heap profiles, with the number of its addresses that were symbolised.
#[derive(Clone, Debug, Serialize)]
pub struct HeapModule {
    /// The module's name in messages: the build id, or the mapping.
    pub module: Option<String>,
    /// The binary that supplied the module's functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// The number of addresses of call stacks in this module.
    pub addresses: u64,
    /// The number of addresses in this module that could not be symbolised.
    pub unknown: u64,
    /// The number of contexts with an address that could not be symbolised.
    pub contexts: u64,
    /// The reason why addresses could not be symbolised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The whole report: what happened to the inputs, and the facts that a front end adds to it.
#[derive(Debug, Serialize)]
pub struct MergeReport<'a> {
    /// The library's report: what happened to the inputs.
    #[serde(flatten)]
    pub report: &'a Report,
    /// The binary of each raw profile that needed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<&'a CorrelationReport>,
    /// Whether `correlation` has been printed already.
    #[serde(skip)]
    pub correlation_printed: bool,
    /// The modules of raw heap profiles, with the numbers of their addresses that were symbolised.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub heap_modules: &'a [HeapModule],
    /// Notes about the inputs and the merge, one line each.
    pub notes: &'a [String],
    /// The profiles that were written. Empty if there is an error that stopped the merge.
    pub outputs: &'a [Written],
    /// Why nothing was written, or why the result is not to be trusted.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub errors: &'a [String],
    /// Whether to print warnings only.
    #[serde(skip)]
    pub quiet: bool,
    /// Whether `--dry-run` was given, so that no profile is written.
    #[serde(skip)]
    pub dry_run: bool,
}

impl<'a> MergeReport<'a> {
    /// Makes a report to which the front end adds nothing yet.
    pub fn new(report: &'a Report) -> Self {
        MergeReport {
            report,
            correlation: None,
            correlation_printed: false,
            heap_modules: &[],
            notes: &[],
            outputs: &[],
            errors: &[],
            quiet: false,
            dry_run: false,
        }
    }
}

impl fmt::Display for MergeReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in self.notes.iter().filter(|_| !self.quiet) {
            writeln!(f, "note: {note}")?;
        }
        write_events(f, self.report, self.quiet)?;
        for written in self.outputs {
            for loss in &written.losses {
                writeln!(f, "warning: {}: {loss}", written.name())?;
            }
        }
        if let Some(mip) = &self.report.mip {
            return self.write_mip(f, mip);
        }
        if (self.dry_run || !self.outputs.is_empty()) && !self.quiet {
            writeln!(f, "{}", totals(&self.report.totals, self.outputs))?;
        }
        Ok(())
    }
}

impl MergeReport<'_> {
    /// Writes the lines that only merges of MIP files have, and the last line with the totals.
    fn write_mip(&self, f: &mut fmt::Formatter<'_>, mip: &MipDetails) -> fmt::Result {
        if mip.samples_dropped > 0 {
            writeln!(
                f,
                "warning: {} left out, because the called function is not in the profile",
                plural(mip.samples_dropped, "sample")
            )?;
        }
        if self.outputs.is_empty() || self.quiet {
            return Ok(());
        }
        for written in self.outputs {
            writeln!(
                f,
                "wrote {}: {} of {} covered, {}",
                written.name(),
                grouped(written.covered.unwrap_or(0)),
                plural(written.functions, "function"),
                plural(written.runs.unwrap_or(0), "run"),
            )?;
        }
        let totals = &self.report.totals;
        let used = totals.files_kept + totals.files_repaired;
        write!(f, "merged {} from ", plural(mip.runs, "run"))?;
        if used < totals.files {
            write!(f, "{} of ", grouped(used))?;
        }
        writeln!(f, "{}", plural(totals.files, "file"))
    }
}

/// Writes one line per event. Events with the same reason are printed together, followed by their hints. Equal hints
/// are printed once. With `quiet`, notes are left out.
pub fn write_events(f: &mut impl fmt::Write, report: &Report, quiet: bool) -> fmt::Result {
    let mut reasons: Vec<Reason> = Vec::new();
    for event in &report.events {
        // Events with this reason are only in the JSON: nearly every coverage profile has such an event, and the event
        // is harmless in a coverage profile.
        let idle = event.reason == Reason::HashGenerationUnknown || quiet && event.reason.is_note();
        if !idle && !reasons.contains(&event.reason) {
            reasons.push(event.reason);
        }
    }
    let mut lines: BTreeMap<usize, usize> = BTreeMap::new();
    for reason in reasons {
        let label = if reason.is_note() { "note" } else { "warning" };
        let events = || report.events.iter().filter(|event| event.reason == reason);
        let mut shown = 0;
        for event in events() {
            let of_file = lines.entry(event.input).or_default();
            if shown < LINES_PER_REASON && *of_file < LINES_PER_FILE {
                *of_file += 1;
                shown += 1;
                writeln!(f, "{label}: {event}")?;
            }
        }
        let rest = (events().count() - shown) as u64;
        let more = rest + report.omitted.get(&reason).copied().unwrap_or(0);
        match (more, shown) {
            (0, _) => {}
            (_, 0) => writeln!(f, "{label}: … and {} more about these files", grouped(more))?,
            _ => writeln!(f, "{label}: … and {} more of this kind", grouped(more))?,
        }
        let mut hints: Vec<&str> = Vec::new();
        for event in events() {
            if let Some(hint) = event.hint.as_deref()
                && !hints.contains(&hint)
            {
                hints.push(hint);
                writeln!(f, "hint: {hint}")?;
            }
        }
    }
    Ok(())
}

/// The line with the totals, and a row for each number that is not 0.
fn totals(totals: &Totals, outputs: &[Written]) -> String {
    let mut line = match outputs {
        [] => "nothing was written, as --dry-run asks for".to_owned(),
        [one] => {
            let form = match one.indexed_version {
                Some(version) => format!("indexed version {version}"),
                None => one.format.to_owned(),
            };
            format!("wrote {} ({}, {form})", one.name(), size(one.bytes))
        }
        many => {
            let bytes = many.iter().map(|written| written.bytes).sum();
            let profiles = plural(many.len() as u64, "profile");
            format!("wrote {profiles} ({})", size(bytes))
        }
    };
    let functions = match outputs {
        [] => totals.functions,
        _ => outputs.iter().map(|written| written.functions).sum(),
    };
    let _ = write!(line, ": {} from ", plural(functions, "function"));
    let used = totals.files_kept + totals.files_repaired;
    if used < totals.files {
        let _ = write!(line, "{} of ", grouped(used));
    }
    let _ = write!(
        line,
        "{} ({})",
        plural(totals.files, "file"),
        size(totals.bytes)
    );
    let rows = [
        (totals.files_repaired, "files repaired"),
        (totals.files_dropped, "files dropped"),
        (totals.files_empty, "files empty"),
        (totals.records_dropped, "functions dropped from inputs"),
        (
            totals.records_overflowed,
            "functions with a count limited to the largest value",
        ),
        (
            totals.collisions,
            "functions occur in more than one program",
        ),
        (totals.functions_filtered, "functions filtered out"),
    ];
    let rows = rows.into_iter().filter(|(number, _)| *number > 0);
    let rows: Vec<_> = rows.map(|(number, what)| (grouped(number), what)).collect();
    let width = rows.iter().map(|(number, _)| number.len()).max();
    for (number, what) in rows {
        // For the number 1, the words are put into the singular: "1 function dropped".
        let what = match number.as_str() {
            "1" => what
                .replacen("functions", "function", 1)
                .replacen("files", "file", 1)
                .replacen("occur ", "occurs ", 1),
            _ => what.to_owned(),
        };
        let _ = write!(line, "\n  {number:>0$} {what}", width.unwrap_or(0));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_merge::{Action, Event};

    fn event(file: &str, function: Option<&str>, reason: Reason, hint: Option<&str>) -> Event {
        Event {
            input: 0,
            file: file.to_owned(),
            function: function.map(|name| name.as_bytes().to_vec()),
            offset: Some(0x2a0),
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
        assert!(
            event
                .to_string()
                .starts_with("a: dropped function `b\\nc`: ")
        );
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
        insta::assert_snapshot!(full, @r"
        note: a and b are the same file, which is counted for each
        warning: 0.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 1.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 2.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 3.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 4.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 5.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 6.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 7.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 8.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: 9.profraw: dropped function `main`: a counter is above 2^56 at offset 0x2a0: found 7
        warning: … and 2,000 more of this kind
        hint: find out who writes such counters
        warning: cut: dropped: a counter is above 2^56 at offset 0x2a0: found 7
        warning: out.profdata: left out 3 build ids
        wrote out.profdata (3.0 MB, indexed version 12): 16,531 functions from 12 of 13 files (403.1 MB)
             12 files repaired
              1 file dropped
          2,010 functions dropped from inputs
              3 functions occur in more than one program
        ");
        let many = MergeReport {
            outputs: &[written("a"), written("b")],
            ..full
        };
        let many = many.to_string();
        let last: Vec<&str> = many
            .lines()
            .skip_while(|line| !line.starts_with("wrote"))
            .collect();
        insta::assert_snapshot!(last.join("\n"), @r"
        wrote 2 profiles (6.0 MB): 33,062 functions from 12 of 13 files (403.1 MB)
             12 files repaired
              1 file dropped
          2,010 functions dropped from inputs
              3 functions occur in more than one program
        ");
    }
}
