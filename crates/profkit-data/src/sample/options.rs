//! Options for reading sample profiles.
use super::model::ProfileKind;
use profkit_abi::sample::{BASE_DISCRIMINATOR_BITS, FS_DISCRIMINATOR_BITS};

/// A compiler pass of FS-AFDO (`FSDiscriminatorPass` in LLVM's `Discriminator.h`). Each pass gives different numbers to
/// copies of an instruction that earlier passes did not distinguish. It writes the numbers into six bits of the
/// discriminator, above the bits of the pass before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FsPass {
    /// No pass: bits 0 to 7, which discriminators have without FS-AFDO.
    Base,
    /// The first pass, bits 8 to 13.
    Pass1,
    /// The second pass, bits 14 to 19.
    Pass2,
    /// The third pass, bits 20 to 25.
    Pass3,
    /// The last pass, bits 26 to 31.
    #[default]
    Last,
}

impl FsPass {
    /// All passes in their order, [`Base`](Self::Base) first.
    pub const ALL: [Self; 5] = [
        FsPass::Base,
        FsPass::Pass1,
        FsPass::Pass2,
        FsPass::Pass3,
        FsPass::Last,
    ];

    /// The bits of discriminators that belong to this pass and to those before it.
    pub fn mask(self) -> u32 {
        let bits = BASE_DISCRIMINATOR_BITS + FS_DISCRIMINATOR_BITS * self as u32;
        u32::MAX >> (u32::BITS - bits)
    }
}

/// Options for reading sample profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleReadOptions {
    /// In profiles of FS-AFDO, the last pass whose bits of discriminators are kept. Other bits become 0, and samples
    /// whose locations become equal are added up. Call sites in calling contexts, and profiles that are not of FS-AFDO,
    /// do not change.
    pub fs_pass: FsPass,
    /// Whether text, binary and compact binary profiles are read as profiles of FS-AFDO. These encodings cannot store
    /// this; the extensible binary encoding can.
    pub assume_fs: bool,
    /// The number of names that are read from a file's symbol list (`-profile-symbol-list-cutoff`); `None` for all.
    pub symbols: Option<u64>,
}

impl SampleReadOptions {
    /// The defaults: all bits of discriminators and all symbols are kept.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the last pass whose bits of discriminators are kept.
    #[must_use]
    pub fn fs_pass(mut self, pass: FsPass) -> Self {
        self.fs_pass = pass;
        self
    }

    /// Sets whether encodings that cannot store this are read as profiles of FS-AFDO.
    #[must_use]
    pub fn assume_fs(mut self, assume: bool) -> Self {
        self.assume_fs = assume;
        self
    }

    /// Sets how many names of a file's symbol list are read.
    #[must_use]
    pub fn symbols(mut self, most: Option<u64>) -> Self {
        self.symbols = most;
        self
    }

    /// The kind of a profile whose encoding cannot store whether it is of FS-AFDO.
    pub(super) fn assumed_kind(self) -> ProfileKind {
        if self.assume_fs {
            ProfileKind::FS_DISCRIMINATORS
        } else {
            ProfileKind::NONE
        }
    }

    /// The bits of discriminators that are kept in a profile of this kind; `None` for all.
    pub(super) fn mask(self, kind: ProfileKind) -> Option<u32> {
        let is_cut = kind.contains(ProfileKind::FS_DISCRIMINATORS) && self.fs_pass != FsPass::Last;
        is_cut.then(|| self.fs_pass.mask())
    }
}
