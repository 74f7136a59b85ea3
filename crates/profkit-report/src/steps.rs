//! The steps of a merge, as `--verbose` prints them.
use crate::{grouped, plural, size};
use profkit_data::detect::FileKind;
use std::collections::BTreeMap;
use std::time::Duration;

/// Describes a reading step: how many files of each kind were read, how large they are, how long it took, and how many
/// threads were used.
///
/// ```
/// use profkit_data::detect::FileKind;
/// use profkit_report::read_step;
/// use std::time::Duration;
///
/// let kinds = [FileKind::InstrRaw, FileKind::InstrRaw, FileKind::InstrIndexed];
/// assert_eq!(
///     read_step(&kinds, 3_000_000, Duration::from_millis(1500), 2),
///     "read 3 files (3.0 MB) in 1.50 s (2.0 MB/s) with 2 threads: 2 × raw instrumentation profile, 1 × indexed profile"
/// );
/// ```
pub fn read_step<'a>(
    kinds: impl IntoIterator<Item = &'a FileKind>,
    bytes: u64,
    time: Duration,
    threads: usize,
) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for kind in kinds {
        let name = kind.description();
        let name = name
            .split_once(' ')
            .map_or(name, |(article, rest)| match article {
                "a" | "an" => rest,
                _ => name,
            });
        *counts.entry(name).or_default() += 1;
    }
    let files = counts.values().sum();
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let kinds: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{} × {name}", grouped(*count)))
        .collect();
    let rate = u128::from(bytes) * 1000 / time.as_millis().max(1);
    let rate = size(u64::try_from(rate).unwrap_or(u64::MAX));
    format!(
        "read {} ({}) in {} ({rate}/s) with {}: {}",
        plural(files, "file"),
        size(bytes),
        seconds(time),
        plural(threads as u64, "thread"),
        kinds.join(", ")
    )
}

/// A time in seconds with two decimals.
pub fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
