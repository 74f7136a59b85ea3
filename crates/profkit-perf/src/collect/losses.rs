//! How many samples were counted, and what was left out.
use crate::losses::Losses;

/// The numbers of samples and branches, counted and left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CountLosses {
    /// The samples that were counted.
    pub samples: u64,
    /// Samples that the user did not select.
    pub not_selected: u64,
    /// The counted samples that have a branch stack with at least one branch.
    pub with_branches: u64,
    /// The counted samples that have a call chain.
    pub with_chain: u64,
    /// Samples at addresses where no file was mapped.
    pub unmapped_samples: u64,
    /// The branches that were counted, each as often as it is in a branch stack.
    pub branches: u64,
    /// Branches with neither end in a mapped file.
    pub unmapped_branches: u64,
    /// Branches that the processor took by speculation only. They are not counted.
    pub wrong_path: u64,
    /// Branches that were not taken. They are not counted.
    pub not_taken: u64,
    /// Branches after which another binary ran than the one in which they arrived: the branch stack has a gap there.
    pub gaps: u64,
    /// Samples of events that record only some branches, so that nothing is known about the code between the branches.
    pub without_ranges: u64,
    /// Lines of texts that could not be read.
    pub damaged_lines: u64,
    /// What is missing in the recordings.
    pub recording: Losses,
}

impl CountLosses {
    /// The numbers with their names, as files of addresses have them. What is missing in recordings is not among them.
    pub fn numbers(&self) -> [(&'static str, u64); 12] {
        let mut copy = CountLosses {
            recording: Losses::default(),
            ..*self
        };
        copy.numbers_mut().map(|(name, number)| (name, *number))
    }

    pub(crate) fn numbers_mut(&mut self) -> [(&'static str, &mut u64); 12] {
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
