//! Joins the parts of a closed day.
use super::opened::Opened;
use super::{FoldError, FoldOptions, Ledger, LedgerRow, MOST_INPUTS, PartName};
use profkit_files::Store;
use std::collections::BTreeMap;

/// What a compaction has done.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Compacted {
    /// The parts that were made, each with the number of parts that it replaces.
    pub joined: Vec<(PartName, LedgerRow, u64)>,
    /// The number of parts that were removed because others have their inputs, those that were just joined not among
    /// them.
    pub removed: u64,
    /// What was taken off the ledger, or made again.
    pub repaired: Vec<String>,
    /// The ledger as it is afterwards.
    pub ledger: Ledger,
}

/// Makes one part of those of each kind, key and day, if the day is over ([`FoldOptions::every`]). The parts that were
/// joined are removed when the ledger does not name them any more.
///
/// # Errors
/// [`FoldError`].
pub fn compact(store: &dyn Store, options: &FoldOptions) -> Result<Compacted, FoldError> {
    let mut made: Vec<PartName> = Vec::new();
    let mut compacted = Opened::work(store, options, |opened, _| {
        for name in &made {
            opened.remove_useless(name)?;
        }
        let mut compacted = Compacted {
            repaired: std::mem::take(&mut opened.repaired),
            ..Compacted::default()
        };
        let mut replaced = Vec::new();
        for (place, names) in groups(&opened.ledger, options) {
            let row = |name: &PartName| opened.ledger.parts.get(name).map_or(0, |row| row.inputs);
            let inputs: u64 = names.iter().map(row).sum();
            let count = names.len() as u64;
            if options.dry_run {
                let row = LedgerRow { inputs, bytes: 0 };
                compacted.joined.push((place, row, count));
                continue;
            }
            options.check_cancelled()?;
            let merger = opened.sum(&names.iter().collect::<Vec<_>>(), options.merge_options())?;
            let bytes = merger.encode()?;
            let name = place.with(&bytes);
            for name in &names {
                opened.ledger.parts.remove(name);
            }
            replaced.extend(names);
            made.push(name.clone());
            let row = opened.add(&name, &bytes, merger.inputs() as u64)?;
            compacted.joined.push((name, row, count));
        }
        if options.dry_run {
            compacted.ledger = std::mem::take(&mut opened.ledger);
            return Ok(Some(compacted));
        }
        if !opened.swap()? {
            return Ok(None);
        }
        for name in replaced.iter().filter(|name| !made.contains(name)) {
            opened.remove(&name.object())?;
        }
        Ok(Some(compacted))
    })?;
    if !options.dry_run {
        (compacted.removed, compacted.ledger) = Opened::work(store, options, |opened, _| {
            let removed = opened.remove_leftovers()?;
            Ok(Some((removed, std::mem::take(&mut opened.ledger))))
        })?;
    }
    Ok(compacted)
}

/// The parts that are to be joined, by the place of their sum.
fn groups(ledger: &Ledger, options: &FoldOptions) -> BTreeMap<PartName, Vec<PartName>> {
    let mut groups: BTreeMap<PartName, Vec<PartName>> = BTreeMap::new();
    let mut inputs: BTreeMap<PartName, u64> = BTreeMap::new();
    for (name, row) in &ledger.parts {
        let place = PartName {
            bucket: name.bucket.within(options.every),
            digest: 0,
            ..name.clone()
        };
        let sum = inputs.entry(place.clone()).or_default();
        if !place.bucket.is_closed(options.now) || *sum + row.inputs > MOST_INPUTS as u64 {
            continue;
        }
        *sum += row.inputs;
        groups.entry(place).or_default().push(name.clone());
    }
    groups.retain(|_, names| names.len() > 1);
    groups
}
