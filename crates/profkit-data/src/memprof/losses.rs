//! What a form of heap profile cannot hold.
use super::profile::MemProfile;

/// What was left out of a file because its form has no place for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Allocation sites whose accesses by place were left out.
    pub histograms: u64,
    /// Functions whose name is known and was left out: their hash is written.
    pub names: u64,
}

impl Losses {
    /// Whether everything was written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those of a form that has neither histograms nor names.
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
