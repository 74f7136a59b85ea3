//! The steps of every merge, whatever the kind of profile: check, merge, decide whether to write, write, report.
use super::args::ReportArgs;
use super::cancel;
use super::progress::Progress;
use super::report;
use crate::call;
use crate::exit::{Cause, Failure, Result, Status};
use crate::print::{grouped, plural};
use profkit_analysis::filter::Filtered;
use profkit_data::instr::Target;
use profkit_merge::files::{Content, Output, Staged, check_outputs, may_become_report};
use profkit_merge::report::{Shortfall, Tolerance};
use profkit_merge::sample::SampleConflict;
use profkit_merge::{Inputs, MergeError, Reason, Report};
use profkit_report::merge::{
    CorrelationReport, HeapModule, MergeReport, Written, name_commands, way_out,
};
use profkit_report::seconds;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub trait MergeJob {
    type Merged<'i>;

    fn output(&self) -> Option<&Path>;

    fn check(&mut self) -> Result<()>;

    fn merge<'i>(
        &mut self,
        inputs: &'i dyn Inputs,
    ) -> std::result::Result<(Self::Merged<'i>, Report), NoResult>;

    fn complete(
        &mut self,
        merged: &mut Self::Merged<'_>,
        report: &Report,
        remarks: &mut Remarks,
    ) -> Result<()> {
        let _ = (merged, report, remarks);
        Ok(())
    }

    /// Encodes the result, and stages each file of it.
    fn encode(
        &mut self,
        merged: Self::Merged<'_>,
        report: &Report,
        remarks: &mut Remarks,
    ) -> Result<Vec<StagedProfile>>;
}

/// An encoded profile. The file of its name is not replaced yet.
#[derive(Debug)]
pub struct StagedProfile {
    pub file: Staged,
    pub written: Written,
}

#[derive(Debug, Default)]
pub struct Remarks {
    pub notes: Vec<String>,
    pub heap_modules: Vec<HeapModule>,
    pub filtered: Vec<Filtered>,
}

#[derive(Debug)]
pub struct NoResult {
    pub report: Box<Report>,
    pub failure: Failure,
    /// Whether the failure's messages already contain everything that the report would add. The report is then not
    /// printed, but only written as JSON.
    pub says_all: bool,
}

impl From<Failure> for NoResult {
    fn from(failure: Failure) -> Self {
        NoResult {
            failure,
            report: Box::new(Report::new()),
            says_all: true,
        }
    }
}

impl From<MergeError> for NoResult {
    fn from(error: MergeError) -> Self {
        let failure = match &error {
            MergeError::Part(error) if error.is_usage() => Failure::usage(error),
            error => Failure::input(error),
        };
        let says_all = !matches!(error, MergeError::NothingLeft(_));
        let failure = match &error {
            // The report has the hints about single inputs.
            MergeError::NothingLeft(_) => failure,
            MergeError::Groups(conflict, _) => failure.with_hint(way_out(conflict)),
            MergeError::Kinds {
                what: SampleConflict::Contexts,
                ..
            } => failure.with_hint(
                "`profkit convert --layout nest` turns a profile with contexts into one without",
            ),
            error => failure.with_hints(error.hint()),
        };
        NoResult {
            failure: failure.because(Cause::Merge(error.clone())),
            report: match error {
                MergeError::Groups(_, report)
                | MergeError::NothingLeft(report)
                | MergeError::Kinds { report, .. } => report,
                _ => Box::new(Report::new()),
            },
            says_all,
        }
    }
}

#[derive(Debug)]
pub struct Run<'a> {
    pub args: &'a ReportArgs,
    pub remarks: Remarks,
    /// The report of which binary belongs to which raw profile; `None` if no profile needed a binary.
    pub correlation: Option<CorrelationReport>,
    pub correlation_printed: bool,
    pub sums: Vec<String>,
    /// The targets of the inputs, each with the number of its inputs.
    pub targets: BTreeMap<Target, u64>,
    pub dry_run: bool,
    pub tolerance: Tolerance,
    pub progress: Option<Arc<Progress>>,
    pub threads: usize,
}

impl<'a> Run<'a> {
    pub fn new(args: &'a ReportArgs, notes: Vec<String>) -> Self {
        Run {
            args,
            remarks: Remarks {
                notes,
                ..Remarks::default()
            },
            correlation: None,
            correlation_printed: false,
            sums: Vec::new(),
            targets: BTreeMap::new(),
            dry_run: false,
            tolerance: Tolerance::default(),
            progress: None,
            threads: 1,
        }
    }

    fn has_devices(&self) -> bool {
        self.targets.keys().any(|target| *target != Target::Host)
    }

    pub fn merge<J: MergeJob>(mut self, mut job: J, inputs: &dyn Inputs) -> Result {
        let profile = job.output().filter(|_| !self.dry_run);
        let outputs = [
            ("the profile", profile),
            ("the report", self.args.report.as_deref()),
        ];
        check_outputs(&outputs, [""; 0])?;
        if !self.dry_run {
            job.check()?;
        }
        if let Some(path) = &self.args.report {
            // A bad path of the report stops the command before the profile is written.
            Output::new(path, Content::Text)?;
        }
        cancel::watch(self.args.report.as_deref());
        self.progress.iter().for_each(cancel::count);
        let merged = job.merge(inputs);
        if let Some(progress) = &self.progress {
            progress.finish(self.threads);
        }
        let (merged, mut report, print) = match merged {
            Ok((merged, report)) => (Ok(merged), report, true),
            Err(none) => (Err(none.failure), *none.report, !none.says_all),
        };
        name_commands(&mut report);
        // An input that is also the output holds the result of earlier merges, whose counts are meant to be added.
        report.events.retain(|event| {
            event.reason != Reason::MayCountTwice || !self.sums.contains(&event.file)
        });
        let mut written = Vec::new();
        let done = merged
            .and_then(|merged| self.check_result(&mut job, merged, &report))
            .and_then(|merged| {
                if !self.dry_run {
                    self.write(job, merged, &report, &mut written)?;
                }
                self.most_were_dropped(&report, &written)
            });
        self.put(&report, &written, done.as_ref().err(), print)?;
        done.map(|()| Status::Done)
    }

    /// Writes all files of the result, or none if one of them cannot be encoded. If a file cannot be replaced, `written`
    /// has those before it.
    fn write<J: MergeJob>(
        &mut self,
        mut job: J,
        merged: J::Merged<'_>,
        report: &Report,
        written: &mut Vec<Written>,
    ) -> Result<()> {
        let start = Instant::now();
        for profile in job.encode(merged, report, &mut self.remarks)? {
            let bytes = profile.file.finish()?;
            written.push(Written {
                bytes,
                ..profile.written
            });
        }
        if let Some(progress) = &self.progress {
            let time = seconds(start.elapsed());
            let count = plural(written.len() as u64, "profile");
            progress.say(format_args!("encoded and wrote {count} in {time}"));
        }
        Ok(())
    }

    /// Completes the result of the merge, and fails if the result must not be written.
    fn check_result<'i, J: MergeJob>(
        &mut self,
        job: &mut J,
        mut merged: J::Merged<'i>,
        report: &Report,
    ) -> Result<J::Merged<'i>> {
        job.complete(&mut merged, report, &mut self.remarks)?;
        let totals = &report.totals;
        let nothing = |why: &str| format!("nothing was written, because {why}");
        if self.args.strict && !report.is_clean() {
            return Err(Failure::input(
                "nothing was written: some data were repaired or dropped, and --strict does not allow that",
            ));
        }
        if self.args.strict && self.targets.len() > 1 {
            return Err(Failure::input(
                "nothing was written: the inputs are of several targets, whose counts would be added up, and --strict does not allow that",
            ));
        }
        if totals.functions == 0 && totals.functions_filtered > 0 && report.heap.is_none() {
            return Err(Failure::input(nothing(&format!(
                "the options that select functions filter out all functions of the inputs: {}",
                plural(totals.functions_filtered, "function")
            )))
            .with_hint("--function takes a whole name; --function-contains a part of one, and --function-regex a regular expression"));
        }
        let files = plural(totals.files, "input");
        match self.tolerance.check(totals) {
            Some(Shortfall::TooManyDropped) => Err(Failure::gate(nothing(&format!(
                "{} of {files} were dropped, more than --max-dropped allows",
                grouped(totals.files_lost())
            )))),
            Some(Shortfall::TooFewUsed) => Err(Failure::gate(nothing(&format!(
                "--min-files asks for {} usable inputs, and the merge has only {} (of {files})",
                grouped(self.tolerance.min_files.unwrap_or_default()),
                grouped(totals.files_kept + totals.files_repaired)
            )))),
            Some(Shortfall::MostDropped) | None => Ok(merged),
        }
    }

    /// Fails if most inputs were dropped and the user did not allow it. This is called after the result has been
    /// written.
    fn most_were_dropped(&self, report: &Report, written: &[Written]) -> Result<()> {
        let totals = &report.totals;
        if self.tolerance.check(totals) != Some(Shortfall::MostDropped) {
            return Ok(());
        }
        let dropped = totals.files_lost();
        let what = match written {
            [] => "the result would hold".to_owned(),
            // Who calls a command gets the error in place of the profile.
            [one] if call::is_active() && matches!(&*one.path, "-" | "memory") => {
                "the result would hold".to_owned()
            }
            [one] => format!("{} was written, but it holds", one.name()),
            _ => "the result was written, but it holds".to_owned(),
        };
        let others = totals.files.saturating_sub(dropped);
        let others = if others == 1 { "input" } else { "inputs" };
        Err(Failure::input(format_args!(
            "{} of {} were dropped; {what} only the other {others}",
            grouped(dropped),
            plural(totals.files, "input"),
        ))
        .with_hint(format_args!(
            "if that is all right, allow it: --max-dropped {dropped}"
        )))
    }

    fn put(
        &self,
        report: &Report,
        outputs: &[Written],
        failure: Option<&Failure>,
        print: bool,
    ) -> Result<()> {
        let full = MergeReport {
            report,
            correlation: self.correlation.as_ref(),
            correlation_printed: self.correlation_printed,
            heap_modules: &self.remarks.heap_modules,
            targets: if self.has_devices() {
                &self.targets
            } else {
                const { &BTreeMap::new() }
            },
            filtered: &self.remarks.filtered,
            notes: &self.remarks.notes,
            outputs,
            errors: failure.map_or(&[], Failure::messages),
            quiet: self.args.quiet,
            dry_run: self.dry_run && failure.is_none(),
        };
        // A report about a failure does not replace a file that is perhaps a profile, at a mistaken path of the report.
        let path = self.args.report.as_deref();
        let path = path.filter(|path| failure.is_none() || may_become_report(path));
        report::put(&full, print, path)?;
        self.args.annotate.write(|list| list.merge(report));
        Ok(())
    }
}

pub fn refuse_losses(name: &str, losses: &[String], strict: bool) -> Result<()> {
    match losses {
        [first, rest @ ..] if strict => {
            let failure = Failure::input(format_args!(
                "{name}: not written, because --strict turns this warning into an error: {first}"
            ));
            let add = |failure: Failure, loss| failure.and(format_args!("{name}: {loss}"));
            Err(rest.iter().fold(failure, add).with_hint(
                "to write the output without these data, run the command again without --strict",
            ))
        }
        _ => Ok(()),
    }
}
