use super::add::AddOutcome;
use super::model::ProfileKind;
use crate::Error;
use crate::limits::SAMPLE_FAULTS;
use crate::summary::Summary;

/// The result of reading a file, without the samples. If some functions are damaged, the samples of the other functions
/// are still added.
#[derive(Clone, Debug, Default)]
pub struct ReadReport {
    /// The kind of the profile in the file. The reader adds the flags of this kind to the kind of the profile that
    /// receives the samples.
    pub kind: ProfileKind,
    /// The number of functions that were added to the profile.
    pub functions: u64,
    /// How many problems of each kind there were while the samples were added: sums that overflowed, functions that
    /// were left out because of a different checksum, and functions that took over a checksum.
    pub outcome: AddOutcome,
    /// The errors of the file. If there are very many errors, only the first ones are in the list. The list is empty if
    /// the file is intact.
    pub faults: Vec<Error>,
    /// The number of all errors in the file, including errors that are not kept in the list.
    pub fault_count: u64,
    /// The number of callers in calling contexts of a text that have no call site. As in LLVM, they count as called at
    /// line 0.
    pub callers_without_site: u64,
    /// The summary that is stored in the file; `None` if there is none.
    pub summary: Option<Summary>,
}

impl ReadReport {
    #[cold]
    pub(super) fn fault(&mut self, error: Error) {
        self.fault_count += 1;
        if self.faults.len() < SAMPLE_FAULTS {
            self.faults.push(error);
        }
    }

    /// Returns the report if the file is intact. A caller that accepts only intact files uses this method.
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
