//! What reading a sample profile comes to, beside the samples.
use super::add::AddOutcome;
use super::model::ProfileKind;
use crate::Error;
use crate::limits::SAMPLE_FAULTS;
use crate::summary::Summary;

/// What reading came to. Samples of sound functions are added whatever the faults of others.
#[derive(Clone, Debug, Default)]
pub struct ReadReport {
    /// What sort of profile the file is. The reader adds this to the kind of the profile it adds samples to.
    pub kind: ProfileKind,
    /// How many functions were added.
    pub functions: u64,
    /// Overflows, and functions left out because their checksum differs from that of samples added before.
    pub outcome: AddOutcome,
    /// What is wrong with the file; the first ones where there are many. None if the file is sound.
    pub faults: Vec<Error>,
    /// How many faults there are in all.
    pub fault_count: u64,
    /// The summary that the file holds.
    pub summary: Option<Summary>,
}

impl ReadReport {
    /// Takes down a fault.
    #[cold]
    pub(super) fn fault(&mut self, error: Error) {
        self.fault_count += 1;
        if self.faults.len() < SAMPLE_FAULTS {
            self.faults.push(error);
        }
    }

    /// The first fault, for callers that take sound files only.
    ///
    /// # Errors
    /// The first fault.
    pub fn strict(self) -> crate::Result<Self> {
        match self.faults.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(ReadReport {
                faults: Vec::new(),
                ..self
            }),
        }
    }
}
