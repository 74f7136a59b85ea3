//! Formats the counts of what was left out of a file. The `Losses` types of all profile families use this text.
use std::fmt;

/// Writes counts of what a file cannot hold as `NOUN: COUNT, NOUN: COUNT`, or `nothing` if there are none.
pub(crate) fn fmt_counts(
    f: &mut fmt::Formatter<'_>,
    counts: impl Iterator<Item = (u64, &'static str)>,
) -> fmt::Result {
    let mut separator = "";
    for (count, what) in counts {
        write!(f, "{separator}{what}: {count}")?;
        separator = ", ";
    }
    if separator.is_empty() {
        f.write_str("nothing")?;
    }
    Ok(())
}
