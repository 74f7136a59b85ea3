//! `profkit merge` and `profkit convert`: what was typed, what is needed for it, the library's call, and the report.
mod args;
mod convert;
pub mod inputs;
mod job;
mod progress;
mod report;
mod write;

pub use args::MergeArgs;
pub use convert::{ConvertArgs, convert};

use crate::exit::{Failure, Result};
use crate::io::read_into;
use args::Format;
use inputs::InputList;
use job::{Destination, Form, Job};
use profkit_merge::{MergeOptions, Remapping, TraceOptions, ValueWeights};
use progress::Progress;
use regex::bytes::Regex;
use std::path::Path;

/// Runs `profkit merge`.
///
/// # Errors
/// Whatever keeps the result from being written.
pub fn merge(args: MergeArgs) -> Result {
    let (filter, no_filter) = (
        pattern("--function", args.function.as_deref())?,
        pattern("--no-function", args.no_function.as_deref())?,
    );
    let traces = TraceOptions {
        reservoir_size: args.temporal_profile_trace_reservoir_size,
        max_length: args.temporal_profile_max_trace_length,
    };
    let mut options = MergeOptions::new()
        .threads(args.threads)
        .normalize(args.normalize)
        .value_weights(match args.form.version.llvm {
            Some(_) => ValueWeights::AsLlvm,
            None => ValueWeights::Exact,
        })
        .traces(traces)
        .separate_by_build_id(args.destination.by_build_id.is_some());
    if filter.is_some() || no_filter.is_some() {
        options = options.filter(move |name| {
            filter.as_ref().is_none_or(|filter| filter.is_match(name))
                && !no_filter
                    .as_ref()
                    .is_some_and(|filter| filter.is_match(name))
        });
    }
    if let Some(path) = &args.remapping_file {
        options = options.remapping(read_remapping(path)?);
    }
    let destination = match (&args.destination.output, &args.destination.by_build_id) {
        (Some(file), _) => Destination::File(file.clone()),
        (None, Some(folder)) => Destination::Folder(folder.clone()),
        (None, None) => return Err(Failure::usage("an output is needed: -o FILE")),
    };
    let format = if args.form.text {
        Format::Text
    } else {
        args.form.output_format
    };
    let form = Form::new(format, &args.form.version)?;
    let output = args.destination.output.as_deref();
    if args.inputs.is_empty() && args.input_files.is_empty() {
        return Err(Failure::usage("no inputs")
            .with_hint("name profiles, folders of profiles, or a list of them with -f LIST"));
    }
    let mut inputs = InputList::collect(&args.inputs, &args.input_files, output)?;
    let notes = std::mem::take(&mut inputs.notes);
    if inputs.files.is_empty() {
        let failure = Failure::input("the folders and lists that were named hold nothing to merge");
        return Err(notes.iter().fold(failure, Failure::with_hint));
    }
    inputs.progress = Progress::new(inputs.files.len(), !args.report.quiet);
    Job {
        options,
        sparse: args.sparse,
        form,
        destination,
        report: args.report,
    }
    .run(&inputs, notes, || inputs.progress.finish())
}

/// A regular expression over names, which are bytes.
fn pattern(option: &str, text: Option<&str>) -> Result<Option<Regex>> {
    let Some(text) = text else {
        return Ok(None);
    };
    let built = regex::bytes::RegexBuilder::new(text).unicode(false).build();
    built.map(Some).map_err(|error| {
        // The crate draws a picture over several lines, of which the last says what is wrong.
        let error = error.to_string();
        let reason = error.lines().next_back().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        Failure::usage(format_args!(
            "{option} {text}: not a regular expression: {reason}"
        ))
    })
}

fn read_remapping(path: &Path) -> Result<Remapping> {
    let name = path.display();
    let mut buffer = Vec::new();
    let map =
        read_into(path, &mut buffer).map_err(|error| Failure::io("cannot read", &name, &error))?;
    Remapping::parse(map.as_deref().unwrap_or(&buffer)).map_err(|error| {
        Failure::input(format_args!("{name}: {error}"))
            .with_hint("a line is OLD NEW, two mangled names with one space between")
    })
}
