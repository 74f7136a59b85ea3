//! Prints the report of a merge on stderr and writes its file.
use crate::call;
use crate::exit::{Failure, Result};
use crate::print;
use profkit_merge::Report;
use profkit_merge::files::{Content, Output, is_stdio};
use profkit_report::merge::MergeReport;
use std::io;
use std::path::Path;

pub fn put(report: &MergeReport<'_>, print: bool, file: Option<&Path>) -> Result<()> {
    call::keep_report(report);
    if print {
        let correlation = report.correlation.filter(|_| !report.correlation_printed);
        if let Some(correlation) = correlation.filter(|_| !report.quiet) {
            print::tell(correlation.document());
        }
        print::tell(report.document());
    }
    file.map_or(Ok(()), |path| write(path, report))
}

/// Writes the report of a merge that failed before it read an input, and returns the failure. If the report cannot be
/// written, this is added to the failure.
pub fn failed(failure: Failure, report: &Report, file: Option<&Path>) -> Failure {
    let full = MergeReport {
        errors: failure.messages(),
        ..MergeReport::new(report)
    };
    let written = file.map_or(Ok(()), |path| write(path, &full));
    match written {
        Ok(()) => failure,
        Err(error) => error.messages().iter().fold(failure, Failure::and),
    }
}

/// Writes the report as Markdown if the name of the file ends in `.md`, otherwise as JSON.
pub fn write(path: &Path, report: &MergeReport<'_>) -> Result<()> {
    let mut bytes = Vec::new();
    let encoded = match path.extension() {
        Some(extension) if extension == "md" => report.markdown(&mut bytes),
        _ => serde_json::to_writer_pretty(&mut bytes, report)
            .map_err(io::Error::from)
            .map(|()| bytes.push(b'\n')),
    };
    encoded.map_err(|error| Failure::input(format_args!("cannot write the report: {error}")))?;
    let output = Output::new(path, Content::Text)?;
    match output.write(|sink| sink.put(&bytes)) {
        Ok(_) => Ok(()),
        // The program that reads our standard output needs no more: this is not an error.
        Err(error) if is_stdio(path) && error.is_broken_pipe() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
