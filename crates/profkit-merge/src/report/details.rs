//! What only some kinds of profiles have to report.
use serde::Serialize;

/// What a merge of MIP files has to report beside what every merge has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MipDetails {
    /// Raw parts that were added: a raw file holds one per run, or the sum of several runs.
    pub raw_parts: u64,
    /// Profiles among the inputs that were added.
    pub profiles: u64,
    /// Runs that were added.
    pub runs: u64,
    /// Samples that were left out, because what they call is not a function of the profile.
    pub samples_dropped: u64,
    /// The profiles that inputs went into.
    pub targets: Vec<TargetReport>,
}

/// One MIP profile that inputs went into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TargetReport {
    /// What it is called.
    pub name: String,
    /// Its build id or module hash, in words.
    pub identity: String,
    /// Runs that were added.
    pub runs_added: u64,
    /// Runs it has now.
    pub runs: u64,
    /// Functions it has.
    pub functions: u64,
    /// Functions that a run entered.
    pub covered: u64,
}

/// What heap profiles have to report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeapDetails {
    /// Inputs that are raw heap dumps or heap profiles as YAML.
    pub files: u64,
    /// Inputs of which nothing is in the result.
    pub files_dropped: u64,
    /// Raw dumps that were added: a raw file may hold several.
    pub dumps: u64,
    /// The newest raw version of these dumps; 0 without any.
    pub newest_raw_version: u32,
    /// Profiles as YAML that were added.
    pub profiles: u64,
}
