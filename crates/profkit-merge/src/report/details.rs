//! The parts of a report that only some kinds of merges have.
use serde::Serialize;

/// The part of the report that only MIP merges have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MipDetails {
    /// Raw parts that were added. A raw file has one part per run, or one part for the sum of several runs.
    pub raw_parts: u64,
    /// Profiles among the inputs that were added.
    pub profiles: u64,
    /// Runs that were added.
    pub runs: u64,
    /// Samples that were left out, because the function that they call is not in the profile.
    pub samples_dropped: u64,
    /// The profiles that inputs were merged into.
    pub targets: Vec<TargetReport>,
}

/// One MIP profile that inputs were merged into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TargetReport {
    /// The name of the profile.
    pub name: String,
    /// Its build id or module hash, as text.
    pub identity: String,
    /// Runs that were added.
    pub runs_added: u64,
    /// Runs that the profile has after the merge.
    pub runs: u64,
    /// Functions that the profile has.
    pub functions: u64,
    /// Functions that at least one run entered.
    pub covered: u64,
}

/// The part of the report that only heap profiles have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeapDetails {
    /// Inputs that are raw heap dumps or YAML heap profiles.
    pub files: u64,
    /// Inputs of which nothing could be added.
    pub files_dropped: u64,
    /// Raw dumps that were added. A raw file may have several.
    pub dumps: u64,
    /// The newest raw version of these dumps; 0 if there are none.
    pub newest_raw_version: u32,
    /// YAML profiles that were added.
    pub profiles: u64,
}
