//! What an encoding could not hold.

/// What was left out of a file because its encoding has no place for it.
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
    /// Names of which only the hash is kept.
    pub names: u64,
    /// Line numbers above 65535, for which LLVM refuses the file: in text those without discriminator, in the binary
    /// family those of lines, vtables and callers.
    pub large_lines: u64,
    /// Names that a text profile cannot hold, for they are empty, have a line break or a zero byte in them, or begin with a
    /// blank or `#`; each time that one is written.
    pub unspeakable_names: u64,
}

impl Losses {
    /// Whether nothing was left out.
    pub fn is_none(&self) -> bool {
        *self == Losses::default()
    }
}
