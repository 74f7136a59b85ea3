//! Counts the parts of a heap profile that an output format cannot hold.
use super::profile::MemProfile;
use crate::loss_counts::fmt_counts;
use std::fmt;

/// The number of parts that were left out of a file because its format cannot hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// The number of allocation sites whose access histogram was left out.
    pub histograms: u64,
    /// The number of functions whose name was left out. Only the hash of the name was written.
    pub names: u64,
}

impl Losses {
    /// Whether the file holds the whole heap profile: nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the counts that are not 0, each with a plural noun for messages. The iterator is empty if and only if
    /// nothing was left out.
    pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.histograms, "access histograms"),
            (self.names, "names of functions"),
        ]
        .into_iter()
        .filter(|&(count, _)| count != 0)
    }

    /// Returns the losses of a format that can hold neither histograms nor function names.
    pub(super) fn without_histograms_and_names(profile: &MemProfile) -> Self {
        let sites = profile
            .records()
            .iter()
            .flat_map(|record| &record.alloc_sites);
        Losses {
            histograms: sites.filter(|site| !site.histogram.is_empty()).count() as u64,
            names: profile.names.len() as u64,
        }
    }
}

/// Writes the [`counts`](Losses::counts) in one line, or `nothing` if there are none.
impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_counts(f, self.counts())
    }
}
