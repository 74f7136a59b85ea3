//! Inputs of which nothing can be read, among others. What the report says about such an input must not depend on the
//! inputs beside it, so the reader of its own family reads it, whatever the family of the merge is.
use super::sum::Sum;
use crate::driver::{Driver, OpenedInput, Outcome, ReportPart, RunOptions};
use crate::engine;
use crate::error::MergeError;
use crate::mip::{self, MipMergeOptions};
use crate::options::MergeOptions;
use crate::sample::{self, SampleMergeOptions};
use profkit_data::detect::{Family, FileKind};
use profkit_data::sound_family;
use profkit_files::Subset;

/// The family whose reader says what is wrong with a file.
fn reader_of(kind: FileKind) -> Family {
    match kind.family() {
        Some(family @ (Family::Sample | Family::Mip)) => family,
        _ => Family::Instr,
    }
}

/// The inputs that are left to the readers of other families.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsound(Vec<(Family, usize)>);

impl Unsound {
    /// Takes an input of a merge of this family if nothing can be read of it and another reader says why. Returns whether
    /// it was taken.
    pub(crate) fn take(&mut self, input: &OpenedInput<'_>, family: Family) -> bool {
        let reader = reader_of(input.kind);
        let takes = reader != family && sound_family(input.bytes()).is_none();
        if takes {
            self.0.push((reader, input.index));
        }
        takes
    }

    pub(crate) fn absorb(&mut self, other: Unsound) {
        self.0.extend(other.0);
    }

    /// What the readers of their families say about the inputs.
    pub(crate) fn report(mut self, driver: &Driver<'_>) -> Result<ReportPart, MergeError> {
        self.0.sort_unstable();
        let mut run = RunOptions::new().threads(driver.run.threads.clone());
        run.cancel.clone_from(&driver.run.cancel);
        let mut report = ReportPart::default();
        for same in self.0.chunk_by(|(one, _), (other, _)| one == other) {
            let Some(&(family, _)) = same.first() else {
                continue;
            };
            let indexes: Vec<usize> = same.iter().map(|&(_, index)| index).collect();
            let inputs = Subset::new(&driver.inputs, indexes.clone());
            let mut sum = match family {
                Family::Sample => {
                    let options = SampleMergeOptions::new().run(run.clone());
                    Sum::Sample(sample::collect(&inputs, &options)?)
                }
                Family::Mip => {
                    let options = MipMergeOptions::new().run(run.clone());
                    Sum::Mip(mip::collect(&[], &inputs, &options)?)
                }
                _ => Sum::Instr(engine::collect(
                    &inputs,
                    &MergeOptions::new().run(run.clone()),
                )?),
            };
            sum.renumber(&|number| indexes.get(number).copied().unwrap_or(number));
            report.absorb(sum.into_report());
            for &index in &indexes {
                driver.progress(index, Outcome::Dropped);
            }
        }
        Ok(report)
    }
}
