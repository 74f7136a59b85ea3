//! Prints the report of a merge on stderr and writes its JSON.
use crate::exit::{Failure, Result};
use crate::print;
use profkit_merge::Report;
use profkit_merge::files::{Content, Output, is_stdio};
use profkit_report::merge::MergeReport;
use serde::Serialize;
use std::path::Path;

pub fn put(report: &MergeReport<'_>, print: bool, json: Option<&Path>) -> Result<()> {
    if print {
        let correlation = report.correlation.filter(|_| !report.correlation_printed);
        if let Some(correlation) = correlation.filter(|_| !report.quiet) {
            print::tell(correlation.document());
        }
        print::tell(report.document());
    }
    match json {
        Some(path) => write_json(path, report),
        None => Ok(()),
    }
}

/// Writes the report of a merge that failed before it read an input, and returns the failure. If the report cannot be
/// written, this is added to the failure.
pub fn failed(failure: Failure, report: &Report, json: Option<&Path>) -> Failure {
    let full = MergeReport {
        errors: failure.messages(),
        ..MergeReport::new(report)
    };
    let written = json.map_or(Ok(()), |path| write_json(path, &full));
    match written {
        Ok(()) => failure,
        Err(error) => error.messages().iter().fold(failure, Failure::and),
    }
}

pub fn write_json(path: &Path, report: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(report)
        .map_err(|error| Failure::input(format_args!("cannot write the report: {error}")))?;
    json.push(b'\n');
    let output = Output::new(path, Content::Text)?;
    match output.write(|sink| sink.put(&json)) {
        Ok(_) => Ok(()),
        // The program that reads our standard output needs no more: this is not an error.
        Err(error) if is_stdio(path) && error.is_broken_pipe() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
