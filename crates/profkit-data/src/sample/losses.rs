//! Counts of what an encoding could not hold.

/// Counts of what was left out of a file because its encoding cannot hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Names of the profile symbol list.
    pub symbols: u64,
    /// Counts of vtables.
    pub vtables: u64,
    /// Checksums of functions.
    pub checksums: u64,
    /// Attributes of functions.
    pub attributes: u64,
    /// Names that were written as a hash only.
    pub names: u64,
    /// Line numbers above 65535. LLVM rejects a file that has them: in text, in locations without a discriminator; in
    /// the binary encodings, in the locations of lines, vtables and callers.
    pub large_lines: u64,
    /// Names that a text profile cannot hold: a name that is empty, contains a line break or a zero byte, or begins
    /// with a blank or `#`. Each occurrence counts.
    pub unspeakable_names: u64,
}

impl Losses {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Losses::default()
    }
}
