//! What a form of instrumentation profile cannot hold.
use super::InstrKind;

/// What a form of instrumentation profile has no place for: what was left out of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Flags of the kind that the form, or its reader, does not know.
    pub flags: InstrKind,
    /// Records that lost their MC/DC bitmap.
    pub bitmaps: u64,
    /// Records that lost their vtable value sites.
    pub vtable_sites: u64,
    /// Names of vtables.
    pub vtable_names: u64,
    /// Temporal traces.
    pub traces: u64,
    /// Build ids.
    pub binary_ids: u64,
    /// Whether the MemProf section was dropped.
    pub memprof: bool,
}

impl Losses {
    /// Whether everything was written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What was lost, as counts with a plural noun, for messages. Flags are apart.
    pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.bitmaps, "MC/DC bitmaps"),
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
