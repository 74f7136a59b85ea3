//! Counts the parts of an instrumentation profile that a file format cannot hold.
use super::InstrKind;

/// The parts of an instrumentation profile that were left out of a file, because the file's format cannot hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// The flags of the profile's kind that were left out, because the file format, or the LLVM release that will read
    /// the file, does not know them.
    pub flags: InstrKind,
    /// The number of records whose MC/DC bitmap was left out.
    pub bitmaps: u64,
    /// The number of records whose uniformity bits were left out ([`Record::uniformity`](super::Record::uniformity)).
    pub uniformity: u64,
    /// The number of records whose vtable value sites were left out.
    pub vtable_sites: u64,
    /// The number of vtable names that were left out.
    pub vtable_names: u64,
    /// The number of temporal traces that were left out.
    pub traces: u64,
    /// The number of build ids that were left out.
    pub binary_ids: u64,
    /// Whether the MemProf section was left out.
    pub memprof: bool,
}

impl Losses {
    /// Whether nothing was left out, so that the file holds the whole profile.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns, for each sort of item that was left out, the number of these items and a plural noun for messages. The
    /// flags that were left out are not included.
    pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.bitmaps, "MC/DC bitmaps"),
            (self.uniformity, "uniformity bitmaps of GPU functions"),
            (self.vtable_sites, "value profiles of vtables"),
            (self.vtable_names, "vtable names"),
            (self.traces, "temporal traces"),
            (self.binary_ids, "build ids"),
            (u64::from(self.memprof), "MemProf sections"),
        ]
        .into_iter()
        .filter(|&(count, _)| count != 0)
    }
}
