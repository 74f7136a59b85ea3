//! The sums of all raw profiles that have the same layout.
use super::values::ValueSums;
use super::{Layout, Layouts};
use crate::Weight;
use crate::accumulate::{Scratch, SiteRule};
use profkit_abi::{indexed, raw, variant};
use profkit_data::bytes::Endian;
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::ValueData;
use profkit_data::instr::raw::RawProfile;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct LayoutSums {
    sums: Vec<Sums>,
    staged: Vec<ValueData>,
    scratch: Scratch,
}

#[derive(Debug)]
struct Sums {
    layout: Arc<Layout>,
    counts: Vec<u64>,
    bitmap: Vec<u8>,
    values: ValueSums,
    profiles: u64,
    first_input: usize,
    /// An upper bound: no counter sum is larger than this number.
    bound: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SummedRecord<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) name_ref: NameRef,
    pub(crate) func_hash: FuncHash,
    pub(crate) counts: &'a [u64],
    pub(crate) bitmap: &'a [u8],
    pub(crate) values: Option<&'a ValueData>,
    pub(crate) profiles: u64,
    pub(crate) first_input: usize,
    pub(crate) index: usize,
    /// A number that identifies the program, made from its build ids; 0 if it has none.
    pub(crate) origin: u32,
}

impl LayoutSums {
    /// Returns the number of records; `None` if nothing was added, because the profile must be read record by record.
    pub(crate) fn add_profile(
        &mut self,
        layouts: &Layouts,
        profile: &RawProfile<'_>,
        input: usize,
        weight: Weight,
        rule: SiteRule,
    ) -> Option<usize> {
        if profile.needs_correlation() {
            return None;
        }
        let (layout, slide) = layouts.find_or_learn(profile)?;
        let counters = profile.sections().counters.bytes;
        let LayoutSums {
            sums,
            staged,
            scratch,
        } = self;
        let position = sums
            .iter()
            .position(|sums| Arc::ptr_eq(&sums.layout, &layout));
        let sums = match position {
            Some(position) => sums.get_mut(position)?,
            None => {
                sums.push(Sums::new(Arc::clone(&layout), profile));
                sums.last_mut()?
            }
        };
        let largest_value = sums.values.stage(&layout, profile, slide, staged)?;
        let (added, over) = weight.apply(largest_bits(profile, counters)? | largest_value);
        if over {
            return None;
        }
        let bound = sums.bound.checked_add(added);
        let bound = bound.filter(|&bound| bound <= indexed::MAX_COUNT)?;
        sums.bound = bound;
        sums.add_counters(profile, counters, weight);
        for (sum, &byte) in sums.bitmap.iter_mut().zip(profile.sections().bitmap.bytes) {
            *sum |= byte;
        }
        sums.values
            .add(staged, weight, rule, sums.profiles, scratch);
        if sums.profiles == 0 || input < sums.first_input {
            sums.first_input = input;
        }
        sums.profiles += 1;
        Some(layout.records.len())
    }

    pub(crate) fn have_values(&self) -> bool {
        let mut sums = self.sums.iter();
        sums.any(|sums| !sums.layout.with_values.is_empty())
    }

    pub(crate) fn absorb(&mut self, other: LayoutSums) {
        for theirs in other.sums {
            let same = |sums: &&mut Sums| Arc::ptr_eq(&sums.layout, &theirs.layout);
            // Sums that could exceed the largest count stay separate: the accumulator adds, cuts and reports.
            let fits = |sums: &&mut Sums| {
                let bound = sums.bound.checked_add(theirs.bound);
                bound.is_some_and(|bound| bound <= indexed::MAX_COUNT)
            };
            // Damaged profiles may have other numbers of sites. The accumulator decides which of them came first.
            let sites = |sums: &&mut Sums| sums.values.fits(theirs.values.records());
            match self.sums.iter_mut().filter(same).filter(sites).find(fits) {
                Some(mine) => mine.absorb(&theirs, &mut self.scratch),
                None => self.sums.push(theirs),
            }
        }
    }

    pub(crate) fn vtable_names(&self) -> impl Iterator<Item = &[u8]> {
        self.sums.iter().map(|sums| &*sums.layout.vtable_names)
    }

    pub(crate) fn for_each_record(&self, mut take: impl FnMut(SummedRecord<'_>)) {
        for sums in self.sums.iter().filter(|sums| sums.profiles > 0) {
            let mut values = sums
                .layout
                .with_values
                .iter()
                .zip(sums.values.records())
                .peekable();
            for (index, record) in sums.layout.records.iter().enumerate() {
                let slice = |start: u32, len: u32| start as usize..start as usize + len as usize;
                let counts = sums
                    .counts
                    .get(slice(record.counters_start, record.counters_len));
                let bitmap = sums
                    .bitmap
                    .get(slice(record.bitmap_start, record.bitmap_len));
                let values = values.next_if(|&(&with_values, _)| with_values as usize == index);
                take(SummedRecord {
                    name: sums.layout.name_of(record),
                    name_ref: record.name_ref,
                    func_hash: record.func_hash,
                    counts: counts.unwrap_or_default(),
                    bitmap: bitmap.unwrap_or_default(),
                    values: values.map(|(_, values)| values),
                    profiles: sums.profiles,
                    first_input: sums.first_input,
                    index,
                    origin: sums.layout.origin,
                });
            }
        }
    }
}

impl Sums {
    fn new(layout: Arc<Layout>, profile: &RawProfile<'_>) -> Self {
        let sections = profile.sections();
        Sums {
            counts: vec![0; sections.counters.bytes.len() / profile.dialect().counter_len()],
            bitmap: vec![0; sections.bitmap.bytes.len()],
            values: ValueSums::default(),
            profiles: 0,
            first_input: usize::MAX,
            bound: 0,
            layout,
        }
    }

    fn absorb(&mut self, other: &Sums, scratch: &mut Scratch) {
        if other.profiles == 0 {
            return;
        }
        for (sum, &more) in self.counts.iter_mut().zip(&other.counts) {
            *sum = sum.wrapping_add(more);
        }
        for (sum, &more) in self.bitmap.iter_mut().zip(&other.bitmap) {
            *sum |= more;
        }
        self.values.absorb(&other.values, scratch);
        self.bound += other.bound;
        self.first_input = self.first_input.min(other.first_input);
        self.profiles += other.profiles;
    }

    fn add_counters(&mut self, profile: &RawProfile<'_>, counters: &[u8], weight: Weight) {
        let dialect = profile.dialect();
        if dialect.has(variant::BYTE_COVERAGE) {
            let (one, _) = weight.apply(1);
            for (sum, &byte) in self.counts.iter_mut().zip(counters) {
                *sum += if byte == 0 { one } else { 0 };
            }
            return;
        }
        let (counters, _) = counters.as_chunks::<8>();
        let pairs = self.counts.iter_mut().zip(counters);
        // Compilers vectorise `wrapping_add`. No sum wraps: `add_profile` keeps them below `bound`.
        match (dialect.endian, weight.is_one()) {
            (Endian::Little, true) => {
                pairs.for_each(|(sum, &c)| *sum = sum.wrapping_add(u64::from_le_bytes(c)))
            }
            (Endian::Big, true) => {
                pairs.for_each(|(sum, &c)| *sum = sum.wrapping_add(u64::from_be_bytes(c)))
            }
            (endian, false) => {
                pairs.for_each(|(sum, &c)| *sum = sum.wrapping_add(weight.apply(endian.u64(c)).0))
            }
        }
    }
}

/// Returns the bitwise OR of all counters. No counter exceeds this number. `None` if a counter may be implausible.
fn largest_bits(profile: &RawProfile<'_>, counters: &[u8]) -> Option<u64> {
    let dialect = profile.dialect();
    if dialect.has(variant::BYTE_COVERAGE) {
        return Some(1);
    }
    let (counters, rest) = counters.as_chunks::<8>();
    let bits = counters
        .iter()
        .fold(0, |bits, &counter| bits | u64::from_ne_bytes(counter));
    let bits = dialect.endian.u64(bits.to_ne_bytes());
    (rest.is_empty() && bits < raw::MAX_PLAUSIBLE_COUNT).then_some(bits)
}
