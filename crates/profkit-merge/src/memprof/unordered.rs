//! Sums of heap profiles that do not depend on the order of inputs: what parts of merges hold.
use super::{ContextRule, HeapParts, MemProfSum, RawContexts};
use crate::report::HeapDetails;
use profkit_data::memprof::MemProfile;

/// The sum of raw dumps and YAML profiles.
#[derive(Clone, Debug)]
pub(crate) struct HeapSum {
    pub(crate) contexts: RawContexts,
    pub(crate) profiles: MemProfSum,
    /// The number of YAML profiles.
    pub(crate) count: u64,
    /// The number of inputs that are heap profiles.
    pub(crate) files: u64,
    /// How many of them were dropped.
    pub(crate) files_dropped: u64,
}

impl Default for HeapSum {
    fn default() -> Self {
        HeapSum {
            contexts: RawContexts::default(),
            // How contexts with one call stack are put together is decided when the profile is written.
            profiles: MemProfSum::unordered(ContextRule::AddCopies),
            count: 0,
            files: 0,
            files_dropped: 0,
        }
    }
}

impl HeapSum {
    /// Adds what one input holds.
    pub(super) fn add(&mut self, input: &HeapParts) {
        self.contexts.absorb_unordered(&input.contexts);
        for profile in &input.profiles {
            self.profiles.add(profile);
            self.count += 1;
        }
    }

    pub(crate) fn absorb(&mut self, other: &HeapSum) {
        self.contexts.absorb_unordered(&other.contexts);
        self.profiles.add(other.profiles.profile());
        self.count = self.count.saturating_add(other.count);
        self.files = self.files.saturating_add(other.files);
        self.files_dropped = self.files_dropped.saturating_add(other.files_dropped);
    }

    pub(crate) fn finish(self) -> (HeapParts, HeapDetails) {
        let contexts = self.contexts.sorted();
        let details = HeapDetails {
            files: self.files,
            files_dropped: self.files_dropped,
            dumps: contexts.dumps() as u64,
            newest_raw_version: contexts.newest_version(),
            profiles: self.count,
        };
        let profiles = match self.count {
            0 => Vec::new(),
            _ => vec![self.profiles.finish()],
        };
        (HeapParts { contexts, profiles }, details)
    }
}

/// The sum of MemProf sections of indexed profiles.
#[derive(Clone, Debug)]
pub(crate) struct SectionSum {
    pub(crate) profiles: MemProfSum,
    /// The newest version of a section.
    pub(crate) version: u32,
    /// Whether a section has more fields than LLVM writes by default.
    pub(crate) full: bool,
    /// Whether a section is followed by a portable one.
    pub(crate) portable: bool,
}

impl SectionSum {
    pub(crate) fn new(profiles: MemProfSum) -> Self {
        SectionSum {
            profiles,
            version: 0,
            full: false,
            portable: false,
        }
    }

    pub(crate) fn unordered() -> Self {
        Self::new(MemProfSum::unordered(ContextRule::AddCopies))
    }

    pub(crate) fn absorb(&mut self, other: &SectionSum) {
        self.profiles.add(other.profiles.profile());
        self.version = self.version.max(other.version);
        self.full |= other.full;
        self.portable |= other.portable;
    }

    /// The sum, with each call stack as often as in the sections, or once.
    pub(crate) fn finish(self, copies: bool) -> MemProfile {
        let sum = self.profiles.finish();
        if copies {
            return sum;
        }
        let mut once = MemProfSum::unordered(ContextRule::Add);
        once.add(&sum);
        once.finish()
    }
}
