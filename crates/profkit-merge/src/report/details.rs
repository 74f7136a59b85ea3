//! The parts of a merge report that only some merges have.
use serde::Serialize;

/// The part of a merge report that only MIP merges have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MipDetails {
    /// The number of raw parts that were added: one per run, or one for the sum of several runs.
    pub raw_parts: u64,
    /// The number of MIP profiles among the inputs that were added.
    pub profiles: u64,
    /// The number of runs that were added.
    pub runs: u64,
    /// The number of return-address samples that were left out, because the called function is not in the profile.
    pub samples_dropped: u64,
    /// The number of calls whose samples the tables of the programs had no room for. Their callers are not in the
    /// profile.
    pub calls_not_kept: u64,
    /// The MIP profiles that inputs were merged into.
    pub targets: Vec<TargetReport>,
}

/// A MIP profile that inputs were merged into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TargetReport {
    /// The name of the profile.
    pub name: String,
    /// The build id or the module hash of the profile, as text.
    pub identity: String,
    /// The number of runs that were added to the profile.
    pub runs_added: u64,
    /// The number of runs in the profile after the merge.
    pub runs: u64,
    /// The number of functions in the profile.
    pub functions: u64,
    /// The number of functions that were entered in at least one run.
    pub covered: u64,
}

/// The part of a merge report that only the report of a cancelled merge has. Front ends that catch signals fill it in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cancellation {
    /// What cancelled the merge: the name of a signal, such as `SIGINT`.
    pub by: String,
    /// The number of inputs that were read before the merge was cancelled.
    pub inputs_done: u64,
}

/// The part of a merge report that only merges of heap profiles have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeapDetails {
    /// The number of inputs that are heap profiles: raw dumps or YAML.
    pub files: u64,
    /// The number of inputs that were dropped completely.
    pub files_dropped: u64,
    /// The number of raw heap dumps that were added. A raw file may contain several.
    pub dumps: u64,
    /// The newest raw version of the heap dumps; 0 if there are none.
    pub newest_raw_version: u32,
    /// The number of YAML heap profiles that were added.
    pub profiles: u64,
}
