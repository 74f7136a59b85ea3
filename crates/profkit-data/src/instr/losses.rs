//! Counts the parts of an instrumentation profile that a file format cannot hold.
use super::InstrKind;
use crate::loss_counts::fmt_counts;
use std::fmt;

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
    /// The number of functions that were left out of a text, because no reader would find their names in it.
    pub unreadable_names: u64,
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

    /// Adds what was left out of further records.
    pub fn add_records(&mut self, other: &Losses) {
        self.bitmaps += other.bitmaps;
        self.uniformity += other.uniformity;
        self.vtable_sites += other.vtable_sites;
    }

    /// Returns the counts that are not 0, each with a plural noun for messages. The iterator is empty if and only if
    /// nothing was left out. For the [`flags`](Self::flags), an item has only their number; the `Display` text of the
    /// losses also names the flags.
    pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.flags.count(), "flags of the profile's kind"),
            (self.bitmaps, "MC/DC bitmaps"),
            (self.uniformity, "GPU uniformity bitmaps"),
            (self.vtable_sites, "vtable value profiles"),
            (self.vtable_names, "vtable names"),
            (
                self.unreadable_names,
                "functions whose names would make the text unreadable",
            ),
            (self.traces, "temporal traces"),
            (self.binary_ids, "build ids"),
            (u64::from(self.memprof), "MemProf sections"),
        ]
        .into_iter()
        .filter(|&(count, _)| count != 0)
    }
}

/// One line: `flags of the profile's kind: 1 (loop entries), MC/DC bitmaps: 3`, or `nothing`.
impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.flags.is_unknown() {
            return fmt_counts(f, self.counts());
        }
        let others = Losses {
            flags: InstrKind::UNKNOWN,
            ..self.clone()
        };
        let (count, flags) = (self.flags.count(), self.flags);
        write!(f, "flags of the profile's kind: {count} ({flags})")?;
        if others.is_empty() {
            return Ok(());
        }
        f.write_str(", ")?;
        fmt_counts(f, others.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_flags_are_counted_and_named() {
        let mut losses = Losses::default();
        assert_eq!(losses.to_string(), "nothing");
        assert_eq!(losses.counts().count(), 0);
        losses.flags = InstrKind::LOOP_ENTRIES;
        assert_eq!(
            losses.to_string(),
            "flags of the profile's kind: 1 (loop entries)"
        );
        assert_eq!(
            losses.counts().collect::<Vec<_>>(),
            [(1, "flags of the profile's kind")]
        );
        losses.traces = 2;
        losses.memprof = true;
        assert_eq!(
            losses.to_string(),
            "flags of the profile's kind: 1 (loop entries), temporal traces: 2, MemProf sections: 1"
        );
    }
}
