//! The numbers of samples and branches that were counted or left out.
use crate::losses::Losses;

/// The numbers of samples and branches that were counted or left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CountLosses {
    /// The number of counted samples.
    pub samples: u64,
    /// The number of samples that were left out because the user did not select them.
    pub not_selected: u64,
    /// The number of counted samples that have a branch stack with at least one branch.
    pub with_branches: u64,
    /// The number of counted samples that have a call chain.
    pub with_chain: u64,
    /// The number of samples at addresses where no file was mapped.
    pub unmapped_samples: u64,
    /// The number of counted branches. A branch counts as often as it occurs in branch stacks.
    pub branches: u64,
    /// The number of branches whose two ends are both outside of all mapped files.
    pub unmapped_branches: u64,
    /// The number of branches that the processor took only by speculation. They are left out.
    pub wrong_path: u64,
    /// The number of branches that were left out because they were not taken.
    pub not_taken: u64,
    /// The number of gaps in branch stacks: places where a branch arrives in one binary, but the next branch leaves
    /// from another.
    pub gaps: u64,
    /// The number of samples of events whose branch stacks contain only some of the taken branches. For such samples,
    /// the code between two branches of the stack is unknown.
    pub without_ranges: u64,
    /// The number of counted samples of events that are not precise. Their addresses may be some instructions after the
    /// instruction that caused the event.
    pub imprecise: u64,
    /// The number of lines in text inputs that could not be read.
    pub damaged_lines: u64,
    /// The numbers of records, samples and bytes that are missing in the recordings.
    pub recording: Losses,
}

impl CountLosses {
    /// Returns each number with its name in a file of addresses (the text file in which profkit writes counts). The
    /// losses of recordings are not among the numbers.
    pub fn numbers(&self) -> [(&'static str, u64); 13] {
        let mut copy = CountLosses {
            recording: Losses::default(),
            ..*self
        };
        copy.numbers_mut().map(|(name, number)| (name, *number))
    }

    pub(crate) fn numbers_mut(&mut self) -> [(&'static str, &mut u64); 13] {
        [
            ("samples", &mut self.samples),
            ("not-selected", &mut self.not_selected),
            ("with-branches", &mut self.with_branches),
            ("with-chain", &mut self.with_chain),
            ("unmapped-samples", &mut self.unmapped_samples),
            ("branches", &mut self.branches),
            ("unmapped-branches", &mut self.unmapped_branches),
            ("wrong-path", &mut self.wrong_path),
            ("not-taken", &mut self.not_taken),
            ("gaps", &mut self.gaps),
            ("without-ranges", &mut self.without_ranges),
            ("imprecise", &mut self.imprecise),
            ("damaged-lines", &mut self.damaged_lines),
        ]
    }

    /// Adds the numbers of another input or thread.
    pub(crate) fn add(&mut self, other: &CountLosses) {
        let theirs = other.numbers();
        for ((_, ours), (_, theirs)) in self.numbers_mut().into_iter().zip(theirs) {
            *ours = ours.saturating_add(theirs);
        }
        self.recording.add_all(&other.recording);
    }
}
