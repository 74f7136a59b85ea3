//! Counts the parts of a sample profile that an encoding cannot hold.
use crate::loss_counts::fmt_counts;
use std::fmt;

/// The number of parts that were left out of a file because its encoding cannot hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// The number of names of the profile symbol list that were left out.
    pub symbols: u64,
    /// The number of vtable counts that were left out.
    pub vtables: u64,
    /// The number of function checksums that were left out.
    pub checksums: u64,
    /// The number of function attributes that were left out.
    pub attributes: u64,
    /// The number of names whose text was left out. Only the hash of the name was written.
    pub names: u64,
    /// The number of locations whose line number is above 65535. LLVM rejects a file with such a location. In the text
    /// encoding, only locations without a discriminator are counted, because with a discriminator LLVM accepts larger
    /// line numbers. In the binary encodings, the locations of samples, vtables and the frames of calling contexts are
    /// counted.
    pub large_lines: u64,
    /// The number of names that a text profile cannot hold. Such a name is empty, contains a line break or a zero byte,
    /// or begins with a blank or `#`; or it is the hash of an inlined function, whose first digits would be read as a count.
    /// A name that occurs several times is counted each time.
    pub unspeakable_names: u64,
}

impl Losses {
    /// Whether the file holds the whole profile: nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Losses::default()
    }

    /// Returns the counts that are not 0, each with a plural noun for messages. The iterator is empty if and only if
    /// nothing was left out.
    pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.symbols, "names from the symbol list"),
            (self.vtables, "vtables"),
            (self.checksums, "checksums"),
            (self.attributes, "attributes"),
            (self.names, "names as text"),
            (self.large_lines, "line numbers above 65535"),
            (self.unspeakable_names, "names that a text cannot hold"),
        ]
        .into_iter()
        .filter(|&(count, _)| count != 0)
    }
}

/// Writes the [`counts`](Losses::counts) in one line, or `nothing` if there are none.
impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_counts(f, self.counts())
    }
}
