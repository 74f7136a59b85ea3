//! How sample profiles are read.
use super::model::ProfileKind;
use profkit_abi::sample::{BASE_DISCRIMINATOR_BITS, FS_DISCRIMINATOR_BITS};

/// A pass of FS-AFDO (`FSDiscriminatorPass` in LLVM's `Discriminator.h`). Each numbers copies of instructions that the
/// passes before left alike, in six bits of the discriminator above those of the pass before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FsPass {
    /// None: the eight bits that discriminators have without FS-AFDO.
    Base,
    /// The first, up to bit 13.
    Pass1,
    /// The second, up to bit 19.
    Pass2,
    /// The third, up to bit 25.
    Pass3,
    /// The last, up to bit 31: all bits.
    #[default]
    Last,
}

impl FsPass {
    /// All passes, from the base on.
    pub const ALL: [Self; 5] = [
        FsPass::Base,
        FsPass::Pass1,
        FsPass::Pass2,
        FsPass::Pass3,
        FsPass::Last,
    ];

    /// The bits of discriminators that this pass and those before it set.
    pub fn mask(self) -> u32 {
        let bits = BASE_DISCRIMINATOR_BITS + FS_DISCRIMINATOR_BITS * self as u32;
        u32::MAX >> (u32::BITS - bits)
    }
}

/// How sample profiles are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleReadOptions {
    /// In profiles of FS-AFDO, the last pass whose bits of discriminators count: the others become 0, and what then
    /// stands at one place is added up. Profiles that are not of FS-AFDO stay as they are, and so do the call sites of
    /// calling contexts.
    pub fs_pass: FsPass,
    /// Text, binary and compact binary profiles are of FS-AFDO. They cannot say so themselves; files of the extensible
    /// encoding do.
    pub assume_fs: bool,
    /// How many names of a file's symbol list are read (`-profile-symbol-list-cutoff`); `None` for all.
    pub symbols: Option<u64>,
}

impl SampleReadOptions {
    /// All bits of discriminators count.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last pass whose bits of discriminators count.
    #[must_use]
    pub fn fs_pass(mut self, pass: FsPass) -> Self {
        self.fs_pass = pass;
        self
    }

    /// Whether profiles that cannot say so are of FS-AFDO.
    #[must_use]
    pub fn assume_fs(mut self, assume: bool) -> Self {
        self.assume_fs = assume;
        self
    }

    /// How many names of a file's symbol list are read.
    #[must_use]
    pub fn symbols(mut self, most: Option<u64>) -> Self {
        self.symbols = most;
        self
    }

    /// What a file is that cannot say whether it is of FS-AFDO.
    pub(super) fn assumed_kind(self) -> ProfileKind {
        if self.assume_fs {
            ProfileKind::FS_DISCRIMINATORS
        } else {
            ProfileKind::NONE
        }
    }

    /// The bits of discriminators that count in a profile of this kind; `None` for all.
    pub(super) fn mask(self, kind: ProfileKind) -> Option<u32> {
        let is_cut = kind.contains(ProfileKind::FS_DISCRIMINATORS) && self.fs_pass != FsPass::Last;
        is_cut.then(|| self.fs_pass.mask())
    }
}
