//! The report of reading a sample profile.
use super::add::AddOutcome;
use super::model::ProfileKind;
use crate::Error;
use crate::limits::SAMPLE_FAULTS;
use crate::summary::Summary;

/// The result of reading a file, apart from the samples. The samples of sound functions are added even if other
/// functions have faults.
#[derive(Clone, Debug, Default)]
pub struct ReadReport {
    /// The kind of profile in the file. The reader adds it to the kind of the profile that receives the samples.
    pub kind: ProfileKind,
    /// The number of functions that were added.
    pub functions: u64,
    /// The number of overflows, and of functions that were left out because their checksum differs from the checksum of
    /// samples added before.
    pub outcome: AddOutcome,
    /// The faults of the file. If there are many, only the first ones. Empty if the file is sound.
    pub faults: Vec<Error>,
    /// The number of all faults.
    pub fault_count: u64,
    /// The summary stored in the file, if there is one.
    pub summary: Option<Summary>,
}

impl ReadReport {
    /// Counts a fault, and stores it if there are not too many yet.
    #[cold]
    pub(super) fn fault(&mut self, error: Error) {
        self.fault_count += 1;
        if self.faults.len() < SAMPLE_FAULTS {
            self.faults.push(error);
        }
    }

    /// Returns the report, or the first fault as an error. For callers that accept only sound files.
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
