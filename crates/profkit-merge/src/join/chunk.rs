//! The functions of some consecutive units. A unit is what a bucket of a table with a chosen number of buckets would hold
//! of all inputs.
use super::{Join, Side, Source, Unjoinable};
use crate::Weight;
use crate::accumulate::{Accumulator, Finished, Incoming, RecordStats, counts, order_of};
use crate::driver::join_order;
use crate::report::EventLog;
use profkit_abi::indexed::MAX_COUNT;
use profkit_data::hash_table::Entry;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::text::{IndexedRecord, TextIndex};
use profkit_data::instr::{FunctionId, FunctionRef, Record, RecordRef};
use std::ops::Range;

/// The number of bytes that the memory gives at once.
const CACHE_LINE: usize = 64;
/// The largest number of functions in a unit. The functions of a unit are searched one by one.
const MOST_FUNCTIONS: usize = 256;

#[derive(Default)]
pub(super) struct Chunk<'d> {
    items: Vec<Item<'d>>,
    groups: Vec<Group>,
    /// For each unit, the number of groups up to its end.
    ends: Vec<u32>,
    /// The sums of plain functions.
    counts: Vec<u64>,
    /// The counters of an input with a weight.
    weighed: Vec<u64>,
    record: Record,
    /// The functions that are not plain.
    pub(super) finished: Finished,
    /// For each input, the bytes of its buckets.
    pub(super) spans: Vec<Span>,
    /// For each input, the number of records.
    pub(super) kept: Vec<u64>,
}

/// The buckets of an input that were read. If the input has fewer buckets than there are units, they are read again and
/// again.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// The bytes of the buckets that were read last, without a gap between them that was read before.
    pub(super) bytes: Range<u64>,
    /// The bytes of the buckets that were read for the first time.
    pub(super) first: Range<u64>,
    /// The number of items of the buckets that were read for the first time.
    pub(super) items: u64,
    /// Whether each of them begins where the one before it ends.
    pub(super) follows: bool,
}

impl Default for Span {
    fn default() -> Self {
        Span {
            bytes: 0..0,
            first: 0..0,
            items: 0,
            follows: true,
        }
    }
}

impl Span {
    #[inline]
    fn cover(&mut self, bytes: &Range<u64>) {
        if self.bytes.is_empty() || bytes.start < self.bytes.end {
            self.bytes = bytes.clone();
        } else {
            self.bytes.end = bytes.end;
        }
    }

    #[inline]
    fn note_first(&mut self, bytes: &Range<u64>, items: u64) {
        self.items += items;
        if self.first.is_empty() {
            self.first = bytes.clone();
        } else {
            self.follows &= self.first.end == bytes.start;
            self.first.end = bytes.end;
        }
    }

    /// Adds the span of later units.
    pub(super) fn add(&mut self, later: &Span) {
        self.follows &= later.follows;
        if !later.first.is_empty() {
            self.note_first(&later.first, later.items);
        }
    }
}

#[derive(Clone, Copy)]
struct Item<'d> {
    entry: Entry<'d>,
    side: u32,
    /// The item of the same function in the next input that has it.
    next: u32,
}

const NONE: u32 = u32::MAX;

/// The items of one function.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    last: u32,
    /// The number of records of all inputs.
    seen: u32,
    sum: Sum,
}

#[derive(Clone, Copy)]
enum Sum {
    /// The function has one record in each input, with the same hash, and nothing but counters.
    Plain {
        func_hash: FuncHash,
        start: u32,
        len: u32,
    },
    Table(FunctionId),
}

/// Adds a record of an input, with its place among the records of all inputs. Fails for what has to be reported, and for
/// uniformity bits, which change the version of the result.
fn add_record(
    record: &Record,
    side: &Side<'_>,
    (number, place): (usize, u64),
    join: &Join<'_>,
    accumulator: &mut Accumulator,
) -> Result<(), Unjoinable> {
    let order = order_of(number, place);
    let mut incoming = Incoming::of_record(record, order, side.weight, join.rules.sites);
    incoming.stats = RecordStats::once(side.origin);
    if !record.uniformity.is_empty() || accumulator.add(incoming).is_some() {
        return Err(Unjoinable);
    }
    Ok(())
}

/// A record of a text as an item of a hash table. Its data are read at its offset.
fn text_entry<'d>(text: &'d [u8], record: IndexedRecord) -> Entry<'d> {
    Entry {
        hash: record.hash,
        key: record.name(text),
        data: &[],
        offset: record.start.into(),
        data_offset: record.start.into(),
    }
}

fn text_start(entry: &Entry<'_>) -> u32 {
    u32::try_from(entry.offset).unwrap_or(u32::MAX)
}

/// A function with the sums of its records.
#[derive(Clone, Copy)]
pub(super) enum Function<'c> {
    Plain(RecordRef<'c>),
    Table(FunctionRef<'c>),
}

/// A function of a chunk. The entry is that of the first input that has it.
#[derive(Clone, Copy)]
pub(super) struct Found<'c, 'd> {
    pub(super) entry: Entry<'d>,
    /// The number of records of all inputs.
    pub(super) seen: u32,
    pub(super) function: Function<'c>,
}

impl<'d> Chunk<'d> {
    /// Reads a range of units, of `units` units.
    pub(super) fn load(
        &mut self,
        join: &Join<'_>,
        sides: &[Side<'d>],
        range: Range<usize>,
        units: usize,
    ) -> Result<(), Unjoinable> {
        self.items.clear();
        self.groups.clear();
        self.ends.clear();
        self.counts.clear();
        self.spans.clear();
        self.spans.resize(sides.len(), Span::default());
        self.kept.clear();
        self.kept.resize(sides.len(), 0);
        for unit in range {
            let start = self.groups.len();
            for (input, side) in (0u32..).zip(sides) {
                self.gather(input, side, unit, units, start)?;
            }
            self.ends
                .push(u32::try_from(self.groups.len()).map_err(|_| Unjoinable)?);
        }
        self.touch_texts(sides);
        self.add_up(join, sides)
    }

    /// Looks at the start of each record of a text. The records of a chunk are all over the text, so that nearly each look
    /// waits for the memory; looks that follow each other without other work between them wait together.
    fn touch_texts(&self, sides: &[Side<'d>]) {
        let mut seen = 0;
        for item in &self.items {
            if let Some(Source::Text { text, .. }) =
                sides.get(item.side as usize).map(|one| &one.source)
            {
                let start = text_start(&item.entry) as usize;
                for line in [start, start + CACHE_LINE] {
                    seen ^= text.get(line).copied().unwrap_or(0);
                }
            }
        }
        std::hint::black_box(seen);
    }

    #[inline]
    fn gather(
        &mut self,
        input: u32,
        side: &Side<'d>,
        unit: usize,
        units: usize,
        start: usize,
    ) -> Result<(), Unjoinable> {
        let buckets = side.bucket_count();
        let mask = units as u64 - 1;
        let mut number = unit & (buckets - 1);
        loop {
            let bucket = match &side.source {
                Source::Indexed { table, .. } => table.bucket(number)?,
                Source::Text { text, index } => {
                    let records = index.bucket(number);
                    for &record in records
                        .iter()
                        .filter(|record| record.hash & mask == unit as u64)
                    {
                        self.insert(input, text_entry(text, record), true, start)?;
                    }
                    None
                }
            };
            if let Some(mut bucket) = bucket {
                let items = bucket.left() as u64;
                while let Some(entry) = bucket.next_item()? {
                    if entry.hash & mask == unit as u64 {
                        self.insert(input, entry, false, start)?;
                    }
                }
                if let Some(span) = self.spans.get_mut(input as usize) {
                    let bytes = bucket.start()..bucket.offset();
                    if unit < buckets && units >= buckets {
                        span.note_first(&bytes, items);
                    }
                    span.cover(&bytes);
                }
            }
            // If the input has more buckets than there are units, several of them belong to the unit.
            number += units;
            if number >= buckets {
                return Ok(());
            }
        }
    }

    /// Fails if an indexed profile has the function twice, or if there are too many functions.
    #[inline]
    fn insert(
        &mut self,
        side: u32,
        entry: Entry<'d>,
        is_text: bool,
        start: usize,
    ) -> Result<(), Unjoinable> {
        let id = u32::try_from(self.items.len()).map_err(|_| Unjoinable)?;
        let item = Item {
            entry,
            side,
            next: NONE,
        };
        let groups = self.groups.get_mut(start..).unwrap_or_default();
        for group in &mut *groups {
            let last = self.items.get_mut(group.last as usize).ok_or(Unjoinable)?;
            if last.entry.hash == entry.hash && last.entry.key == entry.key {
                if last.side == side && !is_text {
                    return Err(Unjoinable);
                }
                last.next = id;
                group.last = id;
                self.items.push(item);
                return Ok(());
            }
        }
        // A function without a name may get one from another input.
        let unnamed = entry.key.is_empty() || NameRef::from_stand_in(entry.key).is_some();
        if unnamed || groups.len() >= MOST_FUNCTIONS {
            return Err(Unjoinable);
        }
        self.items.push(item);
        self.groups.push(Group {
            first: id,
            last: id,
            seen: 0,
            sum: Sum::Table(FunctionId(0)),
        });
        Ok(())
    }

    fn add_up(&mut self, join: &Join<'_>, sides: &[Side<'d>]) -> Result<(), Unjoinable> {
        let mut accumulators: Vec<Accumulator> = Vec::new();
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            match self.plain(group, sides) {
                Some((sum, seen)) => (group.sum, group.seen) = (sum, seen),
                None => {
                    accumulators.resize_with(join.writers, || Accumulator::new(join.rules));
                    group.seen = self.add_records(group, join, sides, &mut accumulators)?;
                }
            }
        }
        self.groups = groups;
        if accumulators.is_empty() {
            self.finished = Finished::default();
            return Ok(());
        }
        let mut sound = true;
        for (into, from) in join_order(join.writers, join.writers) {
            let from = accumulators.get_mut(from).map(std::mem::take);
            if let (Some(from), Some(into)) = (from, accumulators.get_mut(into)) {
                into.merge(from, |_, _| sound = false);
            }
        }
        let sums = accumulators.swap_remove(0);
        for group in &mut self.groups {
            if let Sum::Table(id) = &mut group.sum {
                let item = self.items.get(group.first as usize).ok_or(Unjoinable)?;
                *id = sums
                    .find(item.entry.hash, item.entry.key)
                    .ok_or(Unjoinable)?;
            }
        }
        let mut log = EventLog::default();
        self.finished = sums.finish(None, &mut log);
        let done = &self.finished;
        let odd = done.records_dropped + done.refused + done.overflowed;
        // A collision of a function that is filtered out does not count.
        let mixed = done.collisions > 0 && join.filter.is_some();
        if sound && odd == 0 && !mixed && log.is_empty() {
            Ok(())
        } else {
            Err(Unjoinable)
        }
    }

    /// Adds up the counters of a function whose records are plain and fit each other, and that stay in the range of
    /// counts. `None` for any other function.
    #[inline]
    fn plain(&mut self, group: &Group, sides: &[Side<'d>]) -> Option<(Sum, u32)> {
        let start = self.counts.len();
        let sum = self.plain_sum(group, sides, start);
        if sum.is_none() {
            self.counts.truncate(start);
        }
        sum
    }

    #[inline]
    fn plain_sum(&mut self, group: &Group, sides: &[Side<'d>], start: usize) -> Option<(Sum, u32)> {
        let mut sum: Option<(FuncHash, usize)> = None;
        let mut origin = None;
        let mut next = group.first;
        while let Some(&item) = self.items.get(next as usize) {
            next = item.next;
            let side = sides.get(item.side as usize)?;
            let added = match &side.source {
                Source::Indexed { profile, .. } => {
                    let (func_hash, words) = profile.records_of(&item.entry).plain()?;
                    let words = words.iter().map(|&word| u64::from_le_bytes(word));
                    self.add_plain(&mut sum, func_hash, words, side.weight, start)
                }
                Source::Text { text, .. } => {
                    let mut counts = std::mem::take(&mut self.record.counts);
                    counts.clear();
                    let func_hash =
                        TextIndex::read_plain(text, text_start(&item.entry), &mut counts);
                    let words = counts.iter().copied();
                    let added = func_hash.and_then(|func_hash| {
                        self.add_plain(&mut sum, func_hash, words, side.weight, start)
                    });
                    self.record.counts = counts;
                    added
                }
            };
            added?;
            // Which programs the sum is of is a matter of the report.
            if *origin.get_or_insert(side.origin) != side.origin {
                return None;
            }
        }
        let (func_hash, len) = sum?;
        let (mut next, mut seen) = (group.first, 0);
        while let Some(item) = self.items.get(next as usize) {
            next = item.next;
            seen += 1;
            if let Some(kept) = self.kept.get_mut(item.side as usize) {
                *kept += 1;
            }
        }
        let sum = Sum::Plain {
            func_hash,
            start: u32::try_from(start).ok()?,
            len: u32::try_from(len).ok()?,
        };
        Some((sum, seen))
    }

    /// Adds the counters of a record to the sum that begins at `start`, or begins the sum. `None` if the record does not fit
    /// it, and for a count that is too large.
    #[inline]
    fn add_plain(
        &mut self,
        sum: &mut Option<(FuncHash, usize)>,
        func_hash: FuncHash,
        words: impl ExactSizeIterator<Item = u64> + Clone,
        weight: Weight,
        start: usize,
    ) -> Option<()> {
        let shape = (func_hash, words.len());
        let is_marked = words.clone().next().is_some_and(|count| count > MAX_COUNT);
        let is_first = sum.is_none();
        if *sum.get_or_insert(shape) != shape || is_marked {
            return None;
        }
        let mut over = false;
        if is_first {
            self.counts.extend(words);
            let own = self.counts.get_mut(start..)?;
            if weight.is_one() {
                for &count in &*own {
                    over |= count > MAX_COUNT;
                }
            } else {
                over = counts::scale(own, weight);
            }
        } else if weight.is_one() {
            for (sum, count) in self.counts.get_mut(start..)?.iter_mut().zip(words) {
                let (value, carried) = sum.overflowing_add(count);
                over |= carried | (value > MAX_COUNT);
                *sum = value;
            }
        } else {
            self.weighed.clear();
            self.weighed.extend(words);
            over = counts::add(self.counts.get_mut(start..)?, &self.weighed, weight);
        }
        (!over).then_some(())
    }

    fn add_records(
        &mut self,
        group: &Group,
        join: &Join<'_>,
        sides: &[Side<'d>],
        accumulators: &mut [Accumulator],
    ) -> Result<u32, Unjoinable> {
        let (mut next, mut seen) = (group.first, 0u32);
        while let Some(item) = self.items.get(next as usize) {
            next = item.next;
            let number = item.side as usize;
            let side = sides.get(number).ok_or(Unjoinable)?;
            let accumulator = accumulators.get_mut(number % join.writers);
            let accumulator = accumulator.ok_or(Unjoinable)?;
            match &side.source {
                Source::Text { text, .. } => {
                    let start = text_start(&item.entry);
                    if !TextIndex::read_record(text, start, &mut self.record) {
                        return Err(Unjoinable);
                    }
                    // Records that come later in the text begin later.
                    add_record(
                        &self.record,
                        side,
                        (number, start.into()),
                        join,
                        accumulator,
                    )?;
                    seen = seen.saturating_add(1);
                    if let Some(kept) = self.kept.get_mut(number) {
                        *kept += 1;
                    }
                }
                Source::Indexed { profile, .. } => {
                    let mut records = profile.records_of(&item.entry);
                    let mut ordinal = 0;
                    while records
                        .read_record(&mut self.record)
                        .map_err(|_| Unjoinable)?
                    {
                        let place = (number, records.place(ordinal));
                        ordinal += 1;
                        add_record(&self.record, side, place, join, accumulator)?;
                        seen = seen.saturating_add(1);
                        if let Some(kept) = self.kept.get_mut(number) {
                            *kept += 1;
                        }
                    }
                }
            }
        }
        Ok(seen)
    }

    /// All functions.
    pub(super) fn functions(&self) -> impl Iterator<Item = Found<'_, 'd>> {
        self.groups.iter().filter_map(|group| self.found(group))
    }

    /// The functions of each unit. Inside a unit, they are in the order in which the inputs have them.
    pub(super) fn units(&self) -> impl Iterator<Item = impl Iterator<Item = Found<'_, 'd>>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let range = start..end as usize;
            start = range.end;
            let groups = self.groups.get(range).unwrap_or_default();
            groups.iter().filter_map(|group| self.found(group))
        })
    }

    #[inline]
    fn found(&self, group: &Group) -> Option<Found<'_, 'd>> {
        let item = self.items.get(group.first as usize)?;
        let function = match group.sum {
            Sum::Plain {
                func_hash,
                start,
                len,
            } => Function::Plain(RecordRef {
                func_hash,
                counts: self.counts.get(start as usize..)?.get(..len as usize)?,
                bitmap: &[],
                uniformity: &[],
                values: None,
                order: 0,
            }),
            Sum::Table(id) => Function::Table(self.finished.table.function(id)?),
        };
        Some(Found {
            entry: item.entry,
            seen: group.seen,
            function,
        })
    }
}
