//! The steps that merges of all kinds have in common: check, merge, judge, write, report.
use super::advice::name_commands;
use super::args::ReportArgs;
use super::progress::Progress;
use super::report::{FullReport, HeapModule, Written};
use crate::correlate::report::CorrelationReport;
use crate::exit::{Failure, Result, Status};
use profkit_merge::files::{Content, Output};
use profkit_merge::{Inputs, Report};
use std::path::Path;
use std::sync::Arc;

/// A kind of profile that the command merges.
pub trait MergeJob {
    /// What the library's merge gives beside its report.
    type Merged;

    /// The file that the result goes to, if it is one file.
    fn output(&self) -> Option<&Path>;

    /// Checks that results can be written, before anything is read.
    ///
    /// # Errors
    /// If they cannot.
    fn check(&mut self) -> Result<()>;

    /// Lets the library merge the inputs.
    ///
    /// # Errors
    /// If there is no result.
    fn merge(
        &mut self,
        inputs: &dyn Inputs,
    ) -> std::result::Result<(Self::Merged, Report), NoResult>;

    /// Does what is to be done before the report decides whether anything is written.
    ///
    /// # Errors
    /// If there is no result.
    fn complete(
        &mut self,
        merged: &mut Self::Merged,
        report: &Report,
        remarks: &mut Remarks,
    ) -> Result<()> {
        let _ = (merged, report, remarks);
        Ok(())
    }

    /// Encodes and writes what was merged.
    ///
    /// # Errors
    /// If something would get lost that must not, or an output cannot be written.
    fn write(
        &mut self,
        merged: Self::Merged,
        inputs: &dyn Inputs,
        report: &Report,
        remarks: &mut Remarks,
    ) -> Result<Vec<Written>>;
}

/// What the command has to say beside the library's report.
#[derive(Debug, Default)]
pub struct Remarks {
    /// Lines for people.
    pub notes: Vec<String>,
    /// The modules of raw heap profiles.
    pub heap_modules: Vec<HeapModule>,
}

/// Why a merge has no result.
#[derive(Debug)]
pub enum NoResult {
    /// No input could be used; the report says why for each.
    NothingLeft(Box<Report>, Failure),
    /// Anything else.
    Failed(Failure),
}

/// What is the same for every kind of merge.
#[derive(Debug)]
pub struct Run<'a> {
    /// What to do with damaged input, and how to report it.
    pub args: &'a ReportArgs,
    /// What there is to say already.
    pub remarks: Remarks,
    /// Which profile went to which binary.
    pub correlation: Option<CorrelationReport>,
    /// Whether that was printed already.
    pub correlation_printed: bool,
    /// The bar that shows how far the merge is.
    pub progress: Option<Arc<Progress>>,
}

impl<'a> Run<'a> {
    /// A run with notes on how the inputs were named.
    pub fn new(args: &'a ReportArgs, notes: Vec<String>) -> Self {
        Run {
            args,
            remarks: Remarks {
                notes,
                heap_modules: Vec::new(),
            },
            correlation: None,
            correlation_printed: false,
            progress: None,
        }
    }

    /// Merges the inputs, writes what comes out, and reports it.
    ///
    /// # Errors
    /// Whatever keeps the result from being written; what there is to say about the inputs has then been printed.
    pub fn merge<J: MergeJob>(mut self, mut job: J, inputs: &dyn Inputs) -> Result {
        self.check_stdout(job.output())?;
        job.check()?;
        if let Some(path) = &self.args.report {
            // Known before the profile is written, not after.
            Output::new(path, Content::Text)?;
        }
        let merged = job.merge(inputs);
        if let Some(progress) = &self.progress {
            progress.finish();
        }
        let (mut merged, mut report) = match merged {
            Ok(merged) => merged,
            Err(NoResult::NothingLeft(mut report, failure)) => {
                name_commands(&mut report);
                self.put(&report, &[], true)?;
                return Err(failure);
            }
            Err(NoResult::Failed(failure)) => return Err(failure),
        };
        name_commands(&mut report);
        job.complete(&mut merged, &report, &mut self.remarks)?;
        if self.args.strict && !report.is_clean() {
            self.put(&report, &[], true)?;
            return Err(Failure::input(
                "nothing was written, because --strict allows nothing to be repaired or dropped",
            ));
        }
        let written = job.write(merged, inputs, &report, &mut self.remarks)?;
        self.put(&report, &written, !self.args.quiet)?;
        Ok(Status::Done)
    }

    /// Standard output takes one thing only.
    fn check_stdout(&self, output: Option<&Path>) -> Result<()> {
        match (&self.args.report, output) {
            (Some(report), Some(output)) if output == report => Err(Failure::usage(format_args!(
                "the profile and the report cannot both be written to {}",
                profkit_data::path_text(report)
            ))),
            _ => Ok(()),
        }
    }

    /// Prints the report, which `--quiet` does not keep from saying why there is no result, and writes it as JSON where
    /// that was asked for.
    fn put(&self, report: &Report, outputs: &[Written], print: bool) -> Result<()> {
        let full = FullReport {
            report,
            correlation: self.correlation.as_ref(),
            correlation_printed: self.correlation_printed,
            heap_modules: &self.remarks.heap_modules,
            notes: &self.remarks.notes,
            outputs,
        };
        full.put(print, self.args.report.as_deref())
    }
}

/// Ends a command where something would get lost under `--strict`.
///
/// # Errors
/// If there are losses.
pub fn refuse_losses(name: &str, losses: &[String], strict: bool) -> Result<()> {
    match losses {
        [first, rest @ ..] if strict => {
            let failure = Failure::input(format_args!("{name}: {first}"));
            let add = |failure: Failure, loss| failure.and(format_args!("{name}: {loss}"));
            Err(rest
                .iter()
                .fold(failure, add)
                .with_hint("nothing was written, because --strict allows nothing to get lost"))
        }
        _ => Ok(()),
    }
}
