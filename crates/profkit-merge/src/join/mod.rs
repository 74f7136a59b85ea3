//! Joins indexed profiles and texts bucket by bucket, without a table of all functions.
//!
//! The function table of an indexed profile is a hash table, and its functions stand in the order of their buckets. The low
//! bits of a name's hash select the bucket. So the records of a function are in buckets whose numbers are equal in all inputs
//! with equal numbers of buckets, and have equal low bits in others. All inputs are walked through side by side, twice: first
//! to find the size of the result, its summary and the report, then to write the result.
//!
//! A text has no buckets. A list of where its records begin, in the order of their buckets, takes their place
//! ([`TextIndex`]): its records are read where they are, as those of an indexed profile are.
//!
//! Which items of a bucket come first depends on how many names of the whole result sort before theirs, but only on the
//! number of doublings of the table that so many insertions have caused ([`TableShape`]). So a dozen names, those whose
//! insertion doubles the table, decide the order of every bucket.
//!
//! Functions whose records have only counters, and fit each other, are added here. All others of a range of buckets go
//! through an [`Accumulator`](crate::accumulate::Accumulator), so that the rules stand in one place. Whatever would make an
//! event of the report, and every oddity of an input, ends the join ([`Unjoinable`]): the accumulators of
//! [`merge_instr`](crate::merge_instr) then merge the inputs, and report them.
mod chunk;
mod measure;
mod order;
mod text;
mod write;

use crate::Weight;
use crate::accumulate::Rules;
use crate::driver::{Cancelled, Driver, InputStore, OpenedInput};
use crate::engine::{Collisions, Strategy, origin_of};
use crate::options::{MergeOptions, NameFilter};
use chunk::Chunk;
use order::Turns;
use profkit_data::detect::FileKind;
use profkit_data::hash_table::{DamagedBucket, HashTable};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{
    IndexedProfile, IndexedReadOptions, IndexedWriteOptions, Summaries,
};
use profkit_data::instr::text::TextIndex;
use profkit_data::instr::{InstrKind, InstrSource, Losses, RecordRef};
use profkit_files::{InputData, Inputs};
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
pub use text::JoinedText;
pub use write::JoinedPlan;

/// Looks at the records of a result that is not kept in memory.
pub trait RecordVisitor: Default + Send {
    /// Called once for each record of the result, in any order.
    fn record(&mut self, record: &RecordRef<'_>);

    /// Adds what another visitor has seen.
    fn absorb(&mut self, other: Self);
}

/// Makes visitors for parts of the result. Only the calls of a visitor depend on its type, so that everything else is
/// compiled, and optimised, with this crate.
pub(crate) trait Watch: Sync {
    fn part(&self) -> Box<dyn WatchPart + '_>;

    /// Forgets what was seen, because all parts will be seen again.
    fn forget(&self);
}

pub(crate) trait WatchPart {
    fn record(&mut self, record: &RecordRef<'_>);
}

/// A visitor of all parts.
#[derive(Default)]
pub(crate) struct Watcher<V>(Mutex<V>);

impl<V: RecordVisitor> Watcher<V> {
    fn lock(&self) -> MutexGuard<'_, V> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seen(self) -> V {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: RecordVisitor> Watch for Watcher<V> {
    fn part(&self) -> Box<dyn WatchPart + '_> {
        Box::new(PartWatcher {
            own: V::default(),
            all: self,
        })
    }

    fn forget(&self) {
        *self.lock() = V::default();
    }
}

struct PartWatcher<'w, V: RecordVisitor> {
    own: V,
    all: &'w Watcher<V>,
}

impl<V: RecordVisitor> WatchPart for PartWatcher<'_, V> {
    fn record(&mut self, record: &RecordRef<'_>) {
        self.own.record(record);
    }
}

impl<V: RecordVisitor> Drop for PartWatcher<'_, V> {
    fn drop(&mut self) {
        self.all.lock().absorb(std::mem::take(&mut self.own));
    }
}

/// A visitor that does not look at records.
impl RecordVisitor for () {
    fn record(&mut self, _: &RecordRef<'_>) {}

    fn absorb(&mut self, (): Self) {}
}

/// Inputs that cannot be joined bucket by bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unjoinable;

impl From<DamagedBucket> for Unjoinable {
    fn from(_: DamagedBucket) -> Self {
        Unjoinable
    }
}

/// The functions of a merge whose inputs are joined while the result is written.
pub struct Joined<'i> {
    join: Join<'i>,
    write: IndexedWriteOptions,
    turns: Turns,
    pub(crate) facts: Facts,
    summaries: Summaries,
    losses: Losses,
    records: u64,
    payload_len: u64,
    buckets: usize,
}

/// What the rest of a merge has to know of the functions that were joined.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The number of records of each input.
    pub(crate) kept: Vec<u64>,
    /// The virtual tables in the value data of the result.
    pub(crate) vtables: FxHashSet<NameRef>,
    pub(crate) functions: u64,
    pub(crate) names: u64,
    pub(crate) functions_filtered: u64,
    pub(crate) names_filtered: u64,
    pub(crate) records_merged: u64,
    /// The functions that programs of different build ids have in common.
    pub(crate) collisions: Collisions,
    /// The sum of the counters of all functions; 0 if the inputs are of one program.
    pub(crate) counts: u128,
}

/// The inputs and the rules of a join.
struct Join<'i> {
    data: Vec<InputData<'i>>,
    /// For each input that is a text, where its records are.
    texts: Vec<Option<TextIndex>>,
    weights: Vec<Weight>,
    rules: Rules,
    /// The number of LLVM's writers that the merge imitates; 1 if the order of inputs does not matter.
    writers: usize,
    reading: IndexedReadOptions,
    filter: Option<NameFilter>,
}

/// One input, opened.
struct Side<'d> {
    source: Source<'d>,
    weight: Weight,
    origin: u32,
}

enum Source<'d> {
    Indexed {
        profile: Box<IndexedProfile<'d>>,
        table: HashTable<'d>,
    },
    Text {
        text: &'d [u8],
        index: &'d TextIndex,
    },
}

impl Side<'_> {
    fn bucket_count(&self) -> usize {
        match &self.source {
            Source::Indexed { table, .. } => table.bucket_count(),
            Source::Text { index, .. } => index.bucket_count(),
        }
    }

    fn item_count(&self) -> u64 {
        match &self.source {
            Source::Indexed { table, .. } => table.entry_count(),
            Source::Text { index, .. } => index.record_count() as u64,
        }
    }

    /// The kind and the version word of the profile.
    fn kind(&self) -> (InstrKind, u64) {
        match &self.source {
            Source::Indexed { profile, .. } => {
                let records = profile.records();
                (records.kind(), records.version_word())
            }
            Source::Text { index, .. } => (index.kind(), 0),
        }
    }
}

/// A first version whose functions are inserted in the order of their names, which is what the order of the buckets is
/// computed from.
const SORTED_SINCE: u32 = 10;
/// The largest number of inputs that are joined, because all of them are open.
const MOST_INPUTS: usize = 10_000;
/// The largest number of bytes of inputs that are in memory and not mapped.
const MOST_HELD: usize = 64 << 20;
/// If the inputs have few functions for the number of buckets of the largest, most time would pass with looking for their
/// buckets. This is the largest number of buckets that are looked at for one function.
const MOST_LOOKS: usize = 8;

/// Joins the inputs of the driver, which takes them out of `store`, if they can be joined: then returns the functions of the
/// result. Otherwise gives the inputs back to the store. `write` returns the options of the writer for the version that suits the inputs.
pub(crate) fn join<'i>(
    store: &InputStore<'i>,
    driver: &Driver<'_>,
    strategy: Strategy,
    options: &MergeOptions,
    write: &dyn Fn(u32) -> IndexedWriteOptions,
    watch: &dyn Watch,
) -> Result<Option<Joined<'i>>, Cancelled> {
    let count = store.len();
    let fits = count <= MOST_INPUTS
        && !options.normalize
        && !options.separate_by_build_id
        && options.remapping.is_none();
    if !fits {
        return Ok(None);
    }
    let mut data = Vec::with_capacity(count);
    let mut is_text = Vec::with_capacity(count);
    let mut held = 0;
    let mut fits = true;
    for index in 0..count {
        driver.check_cancelled()?;
        let Ok(opened) = store.take_to_hold(index) else {
            fits = false;
            break;
        };
        held += opened.held();
        let kind = OpenedInput::new(0, InputData::Borrowed(opened.as_ref())).kind;
        let is_known = matches!(kind, FileKind::InstrIndexed | FileKind::InstrText);
        fits = opened.problem().is_none() && held <= MOST_HELD && is_known;
        is_text.push(kind == FileKind::InstrText);
        data.push(opened);
        if !fits {
            break;
        }
    }
    let texts = if fits {
        let text = |index: usize| -> Result<_, Cancelled> {
            driver.check_cancelled()?;
            let data = data
                .get(index)
                .filter(|_| is_text.get(index) == Some(&true));
            Ok(data.map(|data| TextIndex::new(data.as_ref())))
        };
        let texts = driver.run.threads.run(count, text);
        texts.into_iter().collect::<Result<Vec<_>, _>>()?
    } else {
        Vec::new()
    };
    // A text without an index has something to report.
    fits &= !texts.iter().any(|text| matches!(text, Some(None)));
    let join = Join {
        data,
        texts: texts.into_iter().map(Option::flatten).collect(),
        weights: (0..count).map(|index| store.weight(index)).collect(),
        rules: strategy.rules,
        writers: strategy.writers.unwrap_or(1).clamp(1, count.max(1)),
        reading: IndexedReadOptions::new()
            .salvage(!strategy.is_llvm)
            .llvm_checks(strategy.is_llvm)
            .table_is_checked(true),
        filter: options.filter.clone(),
    };
    let measured = match fits {
        true => join.measure(driver, write, watch)?,
        false => None,
    };
    match measured {
        Some((measured, size, write)) => {
            let joined = Joined {
                join,
                write,
                turns: size.turns,
                buckets: size.buckets,
                payload_len: size.payload_len,
                facts: measured.facts,
                summaries: measured.summaries,
                losses: measured.losses,
                records: measured.records,
            };
            Ok(Some(joined))
        }
        None => {
            join.give_back(store);
            Ok(None)
        }
    }
}

impl<'i> Join<'i> {
    fn give_back(self, store: &InputStore<'i>) {
        for (index, data) in self.data.into_iter().enumerate() {
            store.keep(index, data);
        }
    }

    /// Opens the inputs. `None` if one is damaged, as far as that is seen without its functions.
    fn sides(&self) -> Option<Vec<Side<'_>>> {
        let mut sides = Vec::with_capacity(self.data.len());
        for ((data, text), &weight) in self.data.iter().zip(&self.texts).zip(&self.weights) {
            if let Some(index) = text {
                sides.push(Side {
                    source: Source::Text {
                        text: data.as_ref(),
                        index,
                    },
                    weight,
                    origin: 0,
                });
                continue;
            }
            let profile = IndexedProfile::parse_with(data.as_ref(), &self.reading).ok()?;
            if profile.is_damaged() {
                return None;
            }
            sides.push(Side {
                origin: origin_of(&profile.binary_ids().unwrap_or_default()),
                weight,
                source: Source::Indexed {
                    table: *profile.table(),
                    profile: Box::new(profile),
                },
            });
        }
        Some(sides)
    }

    /// Walks through a range of units of all inputs, and calls `see` with each chunk. Mapped bytes that
    /// were read are given back to the system.
    fn walk<'d>(
        &self,
        sides: &[Side<'d>],
        range: Range<usize>,
        units: usize,
        mut see: impl FnMut(&Chunk<'d>) -> Result<(), Unjoinable>,
    ) -> Result<(), Unjoinable> {
        let step = (CHUNK_ITEMS / sides.len().max(1)).max(LEAST_UNITS);
        let window = (WINDOW / sides.len().max(1) as u64).max(LEAST_WINDOW);
        let mut chunk = Chunk::default();
        let mut read = vec![0..0; sides.len()];
        let mut start = range.start;
        while start < range.end {
            let end = (start + step).min(range.end);
            chunk.load(self, sides, start..end, units)?;
            see(&chunk)?;
            for ((read, span), data) in read.iter_mut().zip(&chunk.spans).zip(&self.data) {
                let bytes = &span.bytes;
                if bytes.is_empty() {
                    continue;
                }
                if read.end - read.start >= window || bytes.start < read.end {
                    data.release(read.clone());
                    *read = bytes.clone();
                } else if read.is_empty() {
                    *read = bytes.clone();
                } else {
                    read.end = bytes.end;
                }
            }
            start = end;
        }
        for (read, data) in read.into_iter().zip(&self.data) {
            data.release(read);
        }
        Ok(())
    }
}

/// About how many items a chunk has.
const CHUNK_ITEMS: usize = 2048;
const LEAST_UNITS: usize = 8;
/// The number of mapped bytes of all inputs that a walk keeps before it gives them back.
const WINDOW: u64 = 4 << 20;
const LEAST_WINDOW: u64 = 128 << 10;

impl<'i> Joined<'i> {
    /// The number of functions of the result, of which each has one or several records.
    pub fn function_count(&self) -> u64 {
        self.facts.names
    }

    pub(crate) fn give_back(self, store: &InputStore<'i>) {
        self.join.give_back(store);
    }

    /// The inputs, which are open.
    pub(crate) fn held<'h>(&'h self, inputs: &'h dyn Inputs) -> Held<'h> {
        Held {
            inputs,
            data: &self.join.data,
        }
    }

    /// Whether the result is written with these options, for which it was measured.
    pub fn is_for(&self, options: &IndexedWriteOptions) -> bool {
        self.write == *options
    }
}

impl fmt::Debug for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined")
            .field("inputs", &self.join.data.len())
            .field("functions", &self.facts.names)
            .finish_non_exhaustive()
    }
}

/// Inputs that are open already.
pub(crate) struct Held<'h> {
    inputs: &'h dyn Inputs,
    data: &'h [InputData<'h>],
}

impl Inputs for Held<'_> {
    fn len(&self) -> usize {
        self.data.len()
    }

    fn name(&self, index: usize) -> Cow<'_, str> {
        self.inputs.name(index)
    }

    fn weight(&self, index: usize) -> Weight {
        self.inputs.weight(index)
    }

    fn open<'s>(&'s self, index: usize, _: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        let data = self.data.get(index).ok_or(io::ErrorKind::NotFound)?;
        Ok(InputData::Borrowed(data.as_ref()))
    }
}
