//! The metadata for a raw profile that holds only counters.
use crate::correlate::args::BinaryArgs;
use crate::exit::{Failure, Result};
use crate::print;
use profkit_analysis::correlate::{JoinedMetadata, Plan};
use profkit_merge::files::{Input, SingleInput};

/// Finds the binaries of the profiles in a file. Warnings about the binaries go to standard error.
pub fn join(args: &BinaryArgs, input: &Input) -> Result<JoinedMetadata> {
    let mut notes = Vec::new();
    let binaries = args.index(&mut notes, true)?;
    let plan = Plan::new(&SingleInput(input), &binaries);
    for assignment in &plan.assignments {
        let matched = match &assignment.outcome {
            Ok(matched) => matched,
            Err(error) => return Err(Failure::file(input.name(), error)),
        };
        let warnings = matched.warnings.list.iter();
        notes.extend(
            warnings
                .map(|warning| format!("{}: {warning}", profkit_data::path_text(&matched.path))),
        );
    }
    print::notes(&notes);
    Ok(plan.joined)
}
