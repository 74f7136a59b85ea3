//! Options for reading sample profiles.
use super::model::ProfileKind;
use profkit_abi::sample::{BASE_DISCRIMINATOR_BITS, FS_DISCRIMINATOR_BITS};

/// A compiler pass of FS-AFDO that sets discriminators (`FSDiscriminatorPass` in LLVM's `Discriminator.h`). Each pass
/// gives different numbers to copies of an instruction that earlier passes did not distinguish. Each pass has six bits
/// of the discriminator for its numbers, above the bits of the pass before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FsPass {
    /// No pass of FS-AFDO: bits 0 to 7, which discriminators also have without FS-AFDO.
    Base,
    /// The first pass of FS-AFDO, which sets bits 8 to 13 of discriminators.
    Pass1,
    /// The second pass of FS-AFDO, which sets bits 14 to 19 of discriminators.
    Pass2,
    /// The third pass of FS-AFDO, which sets bits 20 to 25 of discriminators.
    Pass3,
    /// The last pass of FS-AFDO, which sets bits 26 to 31 of discriminators.
    #[default]
    Last,
}

impl FsPass {
    /// All passes in the order in which they run, [`Base`](Self::Base) first.
    pub const ALL: [Self; 5] = [
        FsPass::Base,
        FsPass::Pass1,
        FsPass::Pass2,
        FsPass::Pass3,
        FsPass::Last,
    ];

    /// Returns the bits of discriminators that this pass and the passes before it set.
    pub fn mask(self) -> u32 {
        let bits = BASE_DISCRIMINATOR_BITS + FS_DISCRIMINATOR_BITS * self as u32;
        u32::MAX >> (u32::BITS - bits)
    }
}

/// Options for reading sample profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleReadOptions {
    /// In profiles of FS-AFDO, the last pass whose discriminator bits are kept. The bits of later passes become 0, and
    /// samples whose locations become equal are added up. Call sites in calling contexts do not change, and profiles
    /// without FS-AFDO do not change.
    pub fs_pass: FsPass,
    /// Whether text, binary and compact binary profiles are read as profiles of FS-AFDO. These encodings do not state
    /// whether a profile comes from FS-AFDO; only the extensible binary encoding does.
    pub assume_fs: bool,
    /// The maximum number of names to read from a file's symbol list (`-profile-symbol-list-cutoff`); `None` reads all.
    pub symbols: Option<u64>,
    /// Whether summaries of the profile count each calling context as a separate function
    /// (`-profile-summary-contextless=0`).
    pub summary_by_context: bool,
    /// Whether profiles are read as LLVM 22 reads them.
    ///
    /// Extensible binary profiles are then read like this:
    /// - Only the low half of the number that states a section's kind is used.
    /// - Bytes after the last item of a section are damage. Metadata are damage if they refer to a function by an index
    ///   beyond the table of names or contexts.
    /// - A missing name table is accepted, and so are metadata of inlined functions without samples.
    /// - A compressed section may end before or after its stated end.
    ///
    /// Text profiles are then read like this:
    /// - The text ends at its first zero byte.
    /// - The head line of a function may be a number or `A:B`.
    /// - The character after the first colon of an indented line is skipped.
    /// - A part of a call site in a calling context counts as 0 if it is not a number.
    /// - A metadata line without attributes resets the attributes.
    pub llvm_checks: bool,
}

setters!(SampleReadOptions {
    fs_pass: FsPass,
    assume_fs: bool,
    symbols: Option<u64>,
    summary_by_context: bool,
    llvm_checks: bool,
});

impl SampleReadOptions {
    /// Returns the kind that is assumed for a profile whose encoding does not state whether the profile comes from
    /// FS-AFDO.
    pub(super) fn assumed_kind(self) -> ProfileKind {
        if self.assume_fs {
            ProfileKind::FS_DISCRIMINATORS
        } else {
            ProfileKind::NONE
        }
    }

    /// Returns a mask with the discriminator bits that are kept in a profile of this kind; `None` keeps all bits.
    pub(super) fn mask(self, kind: ProfileKind) -> Option<u32> {
        let is_cut = kind.contains(ProfileKind::FS_DISCRIMINATORS) && self.fs_pass != FsPass::Last;
        is_cut.then(|| self.fs_pass.mask())
    }
}
