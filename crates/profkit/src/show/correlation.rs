//! The metadata of a raw profile that holds counters only.
use crate::correlate::args::BinaryArgs;
use crate::correlate::joined::Joined;
use crate::correlate::plan::Plan;
use crate::exit::{Failure, Result};
use crate::io::Input;
use profkit_merge::{InputData, Inputs};
use std::io::{self, Write};

/// Finds the binaries of a file's profiles. What is odd about them is told on standard error.
///
/// # Errors
/// If a binary that was named cannot be read, or a profile has none.
pub fn join(args: &BinaryArgs, input: &Input) -> Result<Joined> {
    let mut notes = Vec::new();
    let binaries = args.index(&mut notes, true)?;
    let plan = Plan::new(&One(input), &[], &binaries);
    for assignment in &plan.assignments {
        let matched = match &assignment.outcome {
            Ok(matched) => matched,
            Err(error) => return Err(Failure::file(input.name(), error)),
        };
        let warnings = matched.warnings.list.iter();
        notes.extend(warnings.map(|warning| format!("{}: {warning}", matched.path.display())));
    }
    for note in &notes {
        // Nobody is left to be told if stderr is closed.
        let _ = writeln!(io::stderr(), "note: {note}");
    }
    Ok(plan.joined)
}

/// An open file as the only input.
struct One<'a>(&'a Input);

impl Inputs for One<'_> {
    fn len(&self) -> usize {
        1
    }

    fn name(&self, _: usize) -> &str {
        self.0.name()
    }

    fn load<'s>(&'s self, _: usize, _: &'s mut Vec<u8>) -> io::Result<InputData<'s>> {
        Ok(InputData::Borrowed(self.0.bytes()))
    }
}
