//! The first walk through the inputs: finds the size of the result, its summaries, and what the report says.
use super::chunk::{Chunk, Found, Function, Span};
use super::order::{Intervals, Tally, Turns};
use super::{Facts, Join, MOST_LOOKS, SORTED_SINCE, Side, Source, Unjoinable, Watch, WatchPart};
use crate::accumulate::sum_of;
use crate::driver::{Cancelled, Driver};
use crate::engine::suggested_version;
use profkit_abi::value_kind;
use profkit_data::hash_table::TableShape;
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{FunctionEncoder, IndexedWriteOptions, Summaries};
use profkit_data::instr::{Losses, RecordRef};
use std::ops::Range;

/// What a walk through a range of units has found.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) facts: Facts,
    pub(super) summaries: Summaries,
    pub(super) losses: Losses,
    /// The number of records that are written.
    pub(super) records: u64,
    /// The length in bytes of all items of the result's table.
    items_len: u64,
    /// The names of the functions that are written.
    tally: Tally,
    /// For each function that is written, the low bits of the hash of its name.
    hashes: Vec<u32>,
    spans: Vec<Span>,
}

/// The size of the result, and the order of its functions.
pub(super) struct Size {
    pub(super) turns: Turns,
    pub(super) buckets: usize,
    /// The length in bytes of the items and of the numbers before the items of each bucket.
    pub(super) payload_len: u64,
}

/// The number of parts per thread, so that all threads are busy until the end.
const PARTS_PER_THREAD: usize = 4;
/// The number of units from which several threads are worth starting.
const PARALLEL_FROM: usize = 1 << 12;

/// The number of names for each one of the sample, and the smallest and largest number of names of the sample.
const SAMPLE_SHARE: u64 = 32;
const LEAST_SAMPLE: u64 = 4 << 10;
const LARGEST_SAMPLE: u64 = 64 << 10;

impl Join<'_> {
    /// Measures the result. `None` if the inputs cannot be joined.
    pub(super) fn measure(
        &self,
        driver: &Driver<'_>,
        write: &dyn Fn(u32) -> IndexedWriteOptions,
        watch: &dyn Watch,
    ) -> Result<Option<(Measured, Size, IndexedWriteOptions)>, Cancelled> {
        let Some(sides) = self.sides() else {
            return Ok(None);
        };
        let inputs = sides.iter().map(|side| {
            let (kind, word) = side.kind();
            (kind, word, side.item_count() > 0)
        });
        let write = write(suggested_version(inputs));
        let Some((units, encoder)) = plan(&sides, &write) else {
            return Ok(None);
        };
        let walk = Walk {
            join: self,
            sides: &sides,
            encoder: &encoder,
            units,
        };
        let Ok(intervals) = walk.intervals() else {
            return Ok(None);
        };
        let mut measured = walk.all(driver, &intervals, watch)?;
        let mut size = measured.as_mut().and_then(|all| all.size(&intervals));
        if measured.is_some() && size.is_none() && !intervals.is_whole() {
            // The first buckets were no random sample.
            let whole = Intervals::whole();
            watch.forget();
            measured = walk.all(driver, &whole, watch)?;
            size = measured.as_mut().and_then(|all| all.size(&whole));
        }
        Ok(measured.zip(size).map(|(all, size)| (all, size, write)))
    }
}

/// The first walk through the inputs.
#[derive(Clone, Copy)]
struct Walk<'w, 'd> {
    join: &'w Join<'w>,
    sides: &'w [Side<'d>],
    encoder: &'w FunctionEncoder,
    units: usize,
}

impl Walk<'_, '_> {
    /// Finds the intervals of names from a sample of the inputs.
    fn intervals(&self) -> Result<Intervals, Unjoinable> {
        let items = self.sides.iter().map(|side| side.item_count()).max();
        let items = items.unwrap_or(0).max(1);
        let wanted = (items / SAMPLE_SHARE).clamp(LEAST_SAMPLE, LARGEST_SAMPLE);
        if wanted > items / 2 {
            return Ok(Intervals::whole());
        }
        let units = (self.units as u64).saturating_mul(wanted) / items;
        let units = usize::try_from(units)
            .map_err(|_| Unjoinable)?
            .clamp(1, self.units);
        let sample = self.range(0..units, &Intervals::whole(), None)?;
        let times = self.units as f64 / units as f64;
        Ok(Intervals::of_sample(&sample.tally, times))
    }

    /// Walks through all units. `None` if the inputs cannot be joined.
    fn all(
        &self,
        driver: &Driver<'_>,
        intervals: &Intervals,
        watch: &dyn Watch,
    ) -> Result<Option<Measured>, Cancelled> {
        let (units, threads) = (self.units, &driver.run.threads);
        let parts = match units {
            ..PARALLEL_FROM => 1,
            _ => threads.count() * PARTS_PER_THREAD,
        };
        let part = |number: usize| units * number / parts..units * (number + 1) / parts;
        let measured = threads.run(parts, |number| {
            driver.check_cancelled()?;
            let mut watch = watch.part();
            Ok(self.range(part(number), intervals, Some(&mut *watch)))
        });
        let mut all: Option<Measured> = None;
        for part in measured {
            let Ok(part) = part? else {
                return Ok(None);
            };
            match &mut all {
                None => all = Some(part),
                Some(all) => all.absorb(part),
            }
        }
        Ok(all.filter(|all| all.is_whole(self.sides)))
    }

    fn range(
        &self,
        range: Range<usize>,
        intervals: &Intervals,
        mut watch: Option<&mut dyn WatchPart>,
    ) -> Result<Measured, Unjoinable> {
        let mut measured = Measured {
            summaries: self.encoder.summaries(),
            tally: Tally::new(intervals),
            spans: vec![Span::default(); self.sides.len()],
            ..Measured::default()
        };
        measured.facts.kept = vec![0; self.sides.len()];
        let first = self.sides.first().map(|side| side.origin);
        let is_mixed = !self.sides.iter().all(|side| Some(side.origin) == first);
        let filter = self.join.filter.as_deref();
        self.join.walk(self.sides, range, self.units, |chunk| {
            measured.note_inputs(chunk);
            for found in chunk.functions() {
                let records = found.function.record_count();
                if filter.is_some_and(|keep| !keep(found.entry.key)) {
                    measured.facts.functions_filtered += records;
                    measured.facts.names_filtered += 1;
                } else {
                    measured.facts.functions += records;
                    measured.facts.names += 1;
                    measured.facts.records_merged += u64::from(found.seen);
                    if is_mixed {
                        found.function.for_each_record(|record| {
                            measured.facts.counts += sum_of(*record);
                        });
                    }
                    if let Some(watch) = &mut watch {
                        found
                            .function
                            .for_each_record(|record| watch.record(record));
                    }
                    measured.add(&found, self.encoder, intervals)?;
                }
            }
            Ok(())
        })?;
        Ok(measured)
    }
}

/// Returns the number of units of the first walk. `None` if the inputs cannot be joined.
fn plan(sides: &[Side<'_>], write: &IndexedWriteOptions) -> Option<(usize, FunctionEncoder)> {
    if write.version < SORTED_SINCE {
        return None;
    }
    let encoder = FunctionEncoder::new(write).ok()?;
    let units = sides.iter().map(|side| side.bucket_count()).max()?;
    let items = sides.iter().map(|side| side.item_count());
    let items = items.fold(0, u64::saturating_add);
    let looks = (units as u64).saturating_mul(sides.len() as u64);
    let fits = looks <= items.saturating_mul(MOST_LOOKS as u64) && u32::try_from(units).is_ok();
    fits.then_some((units, encoder))
}

impl Measured {
    fn note_inputs(&mut self, chunk: &Chunk<'_>) {
        self.facts.collisions.note(&chunk.finished);
        for (all, span) in self.spans.iter_mut().zip(&chunk.spans) {
            all.add(span);
        }
        for (all, kept) in self.facts.kept.iter_mut().zip(&chunk.kept) {
            *all += kept;
        }
    }

    #[inline]
    fn add(
        &mut self,
        found: &Found<'_, '_>,
        encoder: &FunctionEncoder,
        intervals: &Intervals,
    ) -> Result<(), Unjoinable> {
        let data_len = match &found.function {
            Function::Plain(record) => encoder.plain_len(record.counts),
            Function::Table(function) => {
                function
                    .records()
                    .for_each(|record| self.note_vtables(&record));
                encoder.data_len(function, &mut self.losses)
            }
        };
        let Some(data_len) = data_len else {
            return Ok(());
        };
        found.function.for_each_record(|record| {
            self.summaries.add(record.func_hash, record.counts);
        });
        let (name, hash) = (found.entry.key, found.entry.hash);
        self.records += found.function.record_count();
        self.items_len += 24 + name.len() as u64 + data_len;
        let low = hash & u64::from(u32::MAX);
        self.hashes.push(u32::try_from(low).unwrap_or(0));
        self.tally.add(intervals, (name, hash)).ok_or(Unjoinable)
    }

    fn note_vtables(&mut self, record: &RecordRef<'_>) {
        let vtables = record
            .values
            .and_then(|values| values.kind(value_kind::VTABLE_TARGET));
        for entry in vtables.into_iter().flat_map(|kind| kind.entries()) {
            self.facts.vtables.insert(NameRef(entry.value));
        }
    }

    fn absorb(&mut self, later: Measured) {
        self.facts.absorb(later.facts);
        self.summaries.merge(later.summaries);
        self.losses.add_records(&later.losses);
        self.records += later.records;
        self.items_len += later.items_len;
        self.tally.absorb(later.tally);
        self.hashes.extend(later.hashes);
        for (all, span) in self.spans.iter_mut().zip(&later.spans) {
            all.add(span);
        }
    }

    /// Whether every item of every input was read, and the buckets of each fill its table without gaps. Then every way of
    /// reading the input finds the same items in the same order.
    fn is_whole(&self, sides: &[Side<'_>]) -> bool {
        self.spans.iter().zip(sides).all(|(span, side)| {
            let Source::Indexed { table, .. } = &side.source else {
                return true;
            };
            let items = table.entry_count();
            let begins = items == 0 || span.first.start == table.payload_offset();
            span.follows && span.items == items && begins
        })
    }

    /// `None` for a result that is too small, and if the intervals do not have the names that decide its order.
    fn size(&mut self, intervals: &Intervals) -> Option<Size> {
        let shape = TableShape::of(usize::try_from(self.tally.count()).ok()?)?;
        let buckets = shape.buckets();
        let turns = self.tally.turns(intervals, shape)?;
        let hashes = std::mem::take(&mut self.hashes);
        let mut used = vec![0u64; buckets / 64];
        for hash in hashes {
            let bucket = hash as usize & (buckets - 1);
            if let Some(bits) = used.get_mut(bucket / 64) {
                *bits |= 1 << (bucket % 64);
            }
        }
        let used: u64 = used.iter().map(|bits| u64::from(bits.count_ones())).sum();
        Some(Size {
            turns,
            buckets,
            payload_len: self.items_len + 2 * used,
        })
    }
}

impl Facts {
    fn absorb(&mut self, later: Facts) {
        for (all, kept) in self.kept.iter_mut().zip(later.kept) {
            *all += kept;
        }
        self.vtables.extend(later.vtables);
        self.functions += later.functions;
        self.names += later.names;
        self.functions_filtered += later.functions_filtered;
        self.names_filtered += later.names_filtered;
        self.records_merged += later.records_merged;
        self.collisions.absorb(later.collisions);
        self.counts += later.counts;
    }
}

impl Function<'_> {
    #[inline]
    fn for_each_record(&self, mut see: impl FnMut(&RecordRef<'_>)) {
        match self {
            Function::Plain(record) => see(record),
            Function::Table(function) => function.records().for_each(|record| see(&record)),
        }
    }

    fn record_count(&self) -> u64 {
        match self {
            Function::Plain(_) => 1,
            Function::Table(function) => function.records().count() as u64,
        }
    }
}
