//! Counts the parts of a heap profile that an output format cannot hold.
use super::profile::MemProfile;

losses! {
    /// The number of parts that were left out of a file because its format cannot hold them.
    pub struct Losses {
        /// The number of allocation sites whose access histogram was left out.
        histograms = "access histograms",
        /// The number of functions whose name was left out. Only the hash of the name was written.
        names = "names of functions",
    }
}

impl Losses {
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
