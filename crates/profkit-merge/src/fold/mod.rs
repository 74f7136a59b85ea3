//! Folds new inputs into a store of parts, each once, however often and from however many processes it is called.
//!
//! A store has a **ledger**, which names the parts that count, and the parts, which know the ids of their inputs. A
//! fold leaves out the inputs whose ids a part of the ledger has, writes what is new as one part per kind, key and day,
//! and then replaces the ledger, provided that no other process has replaced it since it was read. So nothing that is
//! killed or that runs at the same time can make an input count twice or get lost:
//!
//! | a process is ended | what the next one finds | what it does |
//! |---|---|---|
//! | before a part is written | the store as it was | folds the inputs |
//! | before the ledger is replaced | a part that the ledger does not name, with new inputs | puts it into the ledger |
//! | after that | the ledger has the inputs | nothing |
//! | while compacting, before parts are removed | parts whose inputs other parts of the ledger have | leaves them; a compaction a day later removes them |
//!
//! ```
//! use profkit_files::{Shard, open_store};
//! use profkit_merge::fold::{FoldOptions, fold, sum};
//! use profkit_merge::{MergeOptions, Weight};
//! # let folder = tempfile::tempdir()?;
//!
//! let run = |id: &str| Shard {
//!     id: id.to_owned(),
//!     name: format!("{id}.proftext"),
//!     weight: Weight::ONE,
//!     bytes: b":ir\nmain\n1234\n1\n90\n",
//! };
//! let store = open_store(folder.path());
//! let times = [None, None];
//! fold(&*store, &[run("monday")], &times, &FoldOptions::new())?;
//! let outcome = fold(&*store, &[run("monday"), run("tuesday")], &times, &FoldOptions::new())?;
//! assert_eq!((outcome.known, outcome.ledger.inputs()), (1, 2));
//! let merged = sum(&*store, &MergeOptions::new())?.finish_instr()?;
//! assert_eq!(merged.profiles[0].profile.tables[0].functions().next().unwrap().records().next().unwrap().counts, [180]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod bucket;
mod compact;
mod error;
mod inputs;
mod ledger;
mod opened;
#[cfg(test)]
mod tests;

use crate::options::MergeOptions;
use crate::part::Merger;
use crate::{Cancelled, MergeError, Report, RunOptions};
pub use bucket::{Bucket, Every};
pub use compact::{Compacted, compact};
pub use error::FoldError;
use inputs::{Candidate, Candidates};
pub use ledger::{LEDGER_NAME, LEDGER_VERSION, Ledger, LedgerRow, PartKind, PartName};
use opened::Opened;
use profkit_files::{Inputs, Store};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// How often a fold begins again because another process has replaced the ledger. Each time one of them is done.
const MOST_TRIES: u32 = 1000;
/// The largest number of inputs of a part. A store with more has several parts of a day.
const MOST_INPUTS: usize = 1 << 20;
/// The number of bytes of parts that are read before they are added up.
const BATCH: usize = 64 << 20;

/// Options of [`fold`] and [`compact`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoldOptions {
    /// Whether each program, known by its build ids, has parts of its own.
    pub by_build_id: bool,
    /// How long the time is whose inputs become one part.
    pub every: Every,
    /// The time of inputs that have none.
    pub now: SystemTime,
    /// Whether a ledger that is damaged is made again from the parts, and parts that are missing or damaged are taken off
    /// it.
    pub repair: bool,
    /// Whether only the answer is made, and the store is not changed.
    pub dry_run: bool,
    /// The threads of the merges, the receiver of their progress, and the flag that cancels them.
    pub run: RunOptions,
}

impl FoldOptions {
    /// Makes the default options.
    pub fn new() -> Self {
        FoldOptions {
            by_build_id: false,
            every: Every::Day,
            now: SystemTime::now(),
            repair: false,
            dry_run: false,
            run: RunOptions::new(),
        }
    }

    setters! {
        by_build_id: bool,
        every: Every,
        now: SystemTime,
        repair: bool,
        dry_run: bool,
        run: RunOptions,
    }

    fn merge_options(&self) -> MergeOptions {
        MergeOptions::new().run(self.run.clone())
    }

    fn check_cancelled(&self) -> Result<(), FoldError> {
        match &self.run.cancel {
            Some(cancel) if cancel.load(std::sync::atomic::Ordering::Relaxed) => {
                Err(MergeError::from(Cancelled).into())
            }
            _ => Ok(()),
        }
    }
}

impl Default for FoldOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// What a fold has done.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FoldOutcome {
    /// The number of inputs that were in the store before.
    pub known: u64,
    /// The names of inputs of the store that were written again since: their new content does not count.
    pub rewritten: Vec<String>,
    /// The parts that were added.
    pub folded: Vec<Folded>,
    /// Parts of a process that ended before it could put them into the ledger. They count as well.
    pub adopted: Vec<(PartName, LedgerRow)>,
    /// Inputs that were not folded. A later fold tries them again.
    pub left_out: Vec<LeftOut>,
    /// Objects among the parts that are none of the ledger.
    pub strays: Vec<Stray>,
    /// What was taken off the ledger, or made again.
    pub repaired: Vec<String>,
    /// The ledger as it is after the fold.
    pub ledger: Ledger,
    /// How often the fold began again because another process was faster.
    pub retries: u32,
}

/// A part that was added.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Folded {
    /// The name of the part. The digest is 0 if the part was not made.
    pub name: PartName,
    /// What the ledger says of it.
    pub row: LedgerRow,
    /// The names of the inputs that were named, in their order.
    pub inputs: Vec<String>,
    /// The report of the merge of these inputs.
    pub report: Report,
}

/// An input that was not folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the input.
    pub input: String,
    /// Why it was left out.
    pub why: Why,
}

/// Why an input was not folded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It could not be read, for this reason.
    Unreadable(String),
    /// It is no profile, or nothing of it can be used, for this reason.
    NoProfile(String),
    /// It has no id by which it would be recognised.
    NoId,
    /// It is a part of which some inputs are in the store and others are not: the number of those that are.
    Overlap(u64),
    /// It has an input of the store with another content.
    TwoContents,
    /// It is a part that was made with other options.
    OtherOptions,
    /// The merge refuses it, for this reason.
    Refused(String),
}

/// An object among the parts of a store that is none of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The name of the object in messages.
    pub name: String,
    /// What it is.
    pub what: StrayKind,
}

/// What a stray object is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StrayKind {
    /// All its inputs are in other parts: a compaction removes it.
    Leftover,
    /// Some of its inputs are in other parts.
    Overlap,
    /// It is no part, is damaged, or has another name than a part of this store, for this reason.
    Other(String),
}

/// Folds the inputs that a store does not have into it. `times` are those when the inputs were written; an input without one is of
/// [`FoldOptions::now`].
///
/// # Errors
/// [`FoldError`]. Parts may have been written; the next fold finds them.
pub fn fold(
    store: &dyn Store,
    inputs: &dyn Inputs,
    times: &[Option<SystemTime>],
    options: &FoldOptions,
) -> Result<FoldOutcome, FoldError> {
    if !options.dry_run {
        store.remove_abandoned();
    }
    let mut candidates = Candidates::of(inputs, times, options);
    let mut made: FxHashMap<PartName, Folded> = FxHashMap::default();
    Opened::work(store, options, |opened, retries| {
        for name in made.keys() {
            opened.remove_useless(name)?;
        }
        let mut outcome = FoldOutcome {
            retries,
            repaired: std::mem::take(&mut opened.repaired),
            ..FoldOutcome::default()
        };
        let mut wanted = candidates.ids();
        let strays = opened.strays(&mut wanted, &mut outcome.strays)?;
        let mut known = opened.known(&wanted)?;
        opened.adopt(strays, &mut known, &mut outcome);
        if candidates.recognise(&known) {
            let late = candidates.ids();
            let late: FxHashSet<u64> = late.difference(&wanted).copied().collect();
            known.extend(opened.known(&late)?);
        }
        for (place, group) in group(candidates.new_ones(&mut known, &mut outcome)) {
            for group in group.chunks(MOST_INPUTS) {
                options.check_cancelled()?;
                let indexes: Vec<usize> = group.iter().map(|one| one.index).collect();
                if options.dry_run {
                    let count = group.iter().map(|one| one.ids.len() as u64).sum();
                    outcome.folded.push(Folded {
                        name: place.clone(),
                        row: LedgerRow {
                            inputs: count,
                            bytes: 0,
                        },
                        inputs: names_of(inputs, &indexes),
                        report: Report::new(),
                    });
                } else if let Some(part) =
                    inputs::make(inputs, indexes, options, &mut outcome.left_out)?
                {
                    let name = place.with(&part.bytes);
                    let row = opened.add(&name, &part.bytes, part.inputs)?;
                    let folded = Folded {
                        name: name.clone(),
                        row,
                        inputs: names_of(inputs, &part.indexes),
                        report: part.report,
                    };
                    made.insert(name, folded);
                }
            }
        }
        if !options.dry_run && !opened.swap()? {
            return Ok(None);
        }
        // What an earlier try of this fold has made was adopted like a part of another process.
        outcome.adopted.retain(|(name, _)| !made.contains_key(name));
        made.retain(|name, _| opened.ledger.parts.contains_key(name));
        outcome
            .folded
            .extend(std::mem::take(&mut made).into_values());
        outcome.folded.sort_by(|a, b| a.name.cmp(&b.name));
        outcome.left_out.sort_by(|a, b| a.input.cmp(&b.input));
        outcome.ledger = std::mem::take(&mut opened.ledger);
        Ok(Some(outcome))
    })
}

fn names_of(inputs: &dyn Inputs, indexes: &[usize]) -> Vec<String> {
    let names = indexes.iter().map(|&index| inputs.name(index).into_owned());
    names.collect()
}

/// The inputs of each part that will be made. The digests of the names are 0.
fn group(new: Vec<&Candidate>) -> BTreeMap<PartName, Vec<&Candidate>> {
    let mut groups: BTreeMap<PartName, Vec<&Candidate>> = BTreeMap::new();
    for candidate in new {
        let Some((kind, key)) = &candidate.what else {
            continue;
        };
        let name = PartName {
            kind: *kind,
            key: key.clone(),
            bucket: candidate.bucket,
            digest: 0,
        };
        groups.entry(name).or_default().push(candidate);
    }
    groups
}

/// Whether parts of these kinds have a common profile. Each kind is listed once.
fn fit(kinds: &[PartKind]) -> bool {
    let is_instr = |kind: &PartKind| match kind {
        PartKind::Ir | PartKind::FrontEnd | PartKind::Instr | PartKind::Heap => true,
        PartKind::Sample | PartKind::Mip => false,
    };
    let levels = [PartKind::Ir, PartKind::FrontEnd];
    kinds.len() == 1 || kinds.iter().all(is_instr) && !levels.iter().all(|one| kinds.contains(one))
}

/// The sum of all parts of a store: [`Merger::encode`] makes one part of it, [`Merger::finish`] the profile.
///
/// # Errors
/// [`FoldError`]: [`Kinds`](FoldError::Kinds) if the store has profiles that cannot be added up.
pub fn sum(store: &dyn Store, options: &MergeOptions) -> Result<Merger, FoldError> {
    let fold = FoldOptions::new().run(options.run.clone());
    Opened::work(store, &fold, |opened, _| {
        let names: Vec<&PartName> = opened.ledger.parts.keys().collect();
        if names.is_empty() {
            let name = store.name_of("");
            return Err(FoldError::Empty { name });
        }
        let mut kinds: Vec<PartKind> = names.iter().map(|name| name.kind).collect();
        kinds.dedup();
        if !fit(&kinds) {
            return Err(FoldError::Kinds {
                name: store.name_of(""),
                found: kinds,
            });
        }
        opened.sum(&names, options.clone()).map(Some)
    })
}
