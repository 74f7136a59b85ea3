//! Counts of what a form of heap profile cannot hold.
use super::profile::MemProfile;

/// Counts of what was left out of a file because its form cannot hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// The number of allocation sites whose access histogram was left out.
    pub histograms: u64,
    /// The number of functions whose name was left out. Only the hash of the name was written.
    pub names: u64,
}

impl Losses {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The losses of a form that holds neither histograms nor names.
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
