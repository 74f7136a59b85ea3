//! Selects the counts of one program from the counts of a recording.
use profkit_data::ids::BuildId;
use profkit_data::{Error, ErrorKind, Result, printable};
use profkit_perf::collect::{BinaryCounts, Counts};
use std::path::Path;

/// The largest number of binaries that a message lists.
const MOST: usize = 5;

/// Returns the counts of a program: those with its build id. If there are none, returns the counts that have the name
/// of its file and no build id. Counts that name no binary are returned too.
///
/// # Errors
/// [`ErrorKind::CannotCorrelate`] if there are no counts of the program. The message lists the binaries that have
/// counts.
pub fn counts_of<'c>(
    counts: &'c Counts,
    path: &Path,
    id: Option<&BuildId>,
) -> Result<Vec<&'c BinaryCounts>> {
    let found = crate::find(counts, path, id, true).counts;
    if found.is_empty() {
        return Err(not_recorded(counts, id));
    }
    Ok(found)
}

#[cold]
fn not_recorded(counts: &Counts, id: Option<&BuildId>) -> Error {
    let text =
        |id: Option<&BuildId>| id.map_or("no build id".to_owned(), |id| format!("build id {id}"));
    let mut binaries: Vec<&BinaryCounts> = counts.binaries.iter().collect();
    binaries
        .sort_by_key(|binary| std::cmp::Reverse(binary.sums.taken().max(binary.sums.samples())));
    let list = binaries.iter().take(MOST).map(|binary| {
        let id = text(binary.key.build_id.as_ref());
        format!("{} ({id})", printable(&binary.key.path))
    });
    let mut list: Vec<String> = list.collect();
    if binaries.len() > MOST {
        list.push(format!("{} more", binaries.len() - MOST));
    }
    let found = if list.is_empty() {
        "no samples".to_owned()
    } else {
        format!("samples of {}", list.join(", "))
    };
    Error::new(
        ErrorKind::CannotCorrelate,
        format!("the recording has no sample of a program with {}", text(id)),
    )
    .found(found)
    .with_hint(
        "give the program that was recorded: `profkit show` of the recording lists the binaries",
    )
}
