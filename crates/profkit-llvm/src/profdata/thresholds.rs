//! The hidden options that decide which counts are hot and cold (`ProfileSummaryBuilder.cpp`).
use crate::command_line::Parsed;
use crate::messages::Fault;
use profkit_data::summary::Thresholds;

/// Returns the thresholds that the options set. With them the summary divides counts into hot, warm and cold ones.
pub fn thresholds(parsed: &Parsed) -> Thresholds {
    let defaults = Thresholds::default();
    let cutoff = |name, default| parsed.number(name).unwrap_or(default);
    Thresholds {
        hot_cutoff: cutoff("profile-summary-cutoff-hot", defaults.hot_cutoff),
        cold_cutoff: cutoff("profile-summary-cutoff-cold", defaults.cold_cutoff),
        hot_count: parsed.number("profile-summary-hot-count"),
        cold_count: parsed.number("profile-summary-cold-count"),
    }
}

/// Returns LLVM's error for a profile summary whose detailed list has no entry with the wanted cutoff or a higher one.
pub fn no_cutoff() -> Fault {
    Fault::bare(
        "LLVM ERROR",
        "Desired percentile exceeds the maximum cutoff",
    )
}
