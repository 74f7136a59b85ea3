//! Recordings of real hardware, which are not part of this repository.
use crate::repo_root;
use std::io::Write as _;
use std::path::PathBuf;

/// The environment variable that CI sets to 1 where the recordings are available. A test that would be skipped because
/// they are missing then fails instead.
pub const REQUIRE_DATA_VARIABLE: &str = "PROFKIT_REQUIRE_DATA";

/// Returns the recordings of Linux perf in `shared/data/perf` beside the repository. If the folder is missing, prints
/// the reason and returns an empty list.
///
/// # Panics
/// If the folder is missing and [`REQUIRE_DATA_VARIABLE`] is 1.
pub fn perf_recordings() -> Vec<PathBuf> {
    let root = repo_root().join("../shared/data/perf");
    let mut list = Vec::new();
    for folder in ["autofdo", "quipper", "zstd"] {
        let entries = std::fs::read_dir(root.join(folder));
        let files = entries.into_iter().flatten().flatten();
        list.extend(files.map(|entry| entry.path()));
    }
    list.retain(|path| path.file_name().is_some_and(|name| name != "test.binary"));
    list.sort();
    if list.is_empty() {
        let reason = format!("{} has no recordings", root.display());
        assert!(
            std::env::var_os(REQUIRE_DATA_VARIABLE).is_none_or(|value| value != "1"),
            "{reason}, and {REQUIRE_DATA_VARIABLE}=1 forbids skipping"
        );
        let _ = writeln!(std::io::stderr(), "skipped: {reason}");
    }
    list
}
