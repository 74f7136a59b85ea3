//! Sums of the profiles of one layout.
use super::same::mask;
use super::{Layout, Layouts, Slide};
use crate::Weight;
use crate::accumulate::{Scratch, SiteRule, merge_kind, scale_values};
use profkit_abi::{indexed, raw, value_kind, variant};
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::raw::RawProfile;
use profkit_data::instr::{ValueData, value_data};
use std::sync::Arc;

/// One thread's sums: an entry a layout that it met.
#[derive(Debug, Default)]
pub(crate) struct LayoutSums {
    sums: Vec<Sums>,
    /// Values of the profile that is being added, one entry a record with sites.
    staged: Vec<ValueData>,
    scratch: Scratch,
}

#[derive(Debug)]
struct Sums {
    layout: Arc<Layout>,
    counts: Vec<u64>,
    bitmap: Vec<u8>,
    /// One entry a record with sites; none before the first profile.
    values: Vec<ValueData>,
    /// How many profiles went in.
    profiles: u64,
    /// The first input that went in.
    first_input: usize,
    /// No sum is above this.
    bound: u64,
}

/// One record's sums over the profiles of a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SummedRecord<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) name_ref: NameRef,
    pub(crate) func_hash: FuncHash,
    pub(crate) counts: &'a [u64],
    pub(crate) bitmap: &'a [u8],
    pub(crate) values: Option<&'a ValueData>,
    /// How many profiles went in.
    pub(crate) profiles: u64,
    /// The first input that went in.
    pub(crate) first_input: usize,
    /// Which record of the profile.
    pub(crate) index: usize,
    /// A number for the program, by its build ids; 0 without.
    pub(crate) origin: u32,
}

impl LayoutSums {
    /// Adds a file that holds one raw profile of a usual sort, known or not. Returns how many records that were;
    /// `None`, with nothing added, for any other file.
    pub(crate) fn add_file(
        &mut self,
        layouts: &Layouts,
        file: &[u8],
        input: usize,
        weight: Weight,
        rule: SiteRule,
    ) -> Option<usize> {
        let profile = RawProfile::parse(file).ok()?;
        if profile.needs_correlation() {
            return None;
        }
        let (layout, slide) = layouts.find_or_learn(&profile)?;
        let counters = profile.sections().counters.bytes;
        let LayoutSums {
            sums,
            staged,
            scratch,
        } = self;
        let largest = largest_bits(&profile, counters)? | stage(&layout, &profile, slide, staged)?;
        let (added, over) = weight.apply(largest);
        if over {
            return None;
        }
        let position = sums
            .iter()
            .position(|sums| Arc::ptr_eq(&sums.layout, &layout));
        let sums = match position {
            Some(position) => sums.get_mut(position)?,
            None => {
                sums.push(Sums::new(Arc::clone(&layout), &profile));
                sums.last_mut()?
            }
        };
        let bound = sums
            .bound
            .checked_add(added)
            .filter(|&bound| bound <= indexed::MAX_COUNT)?;
        if !sums.fits(staged) {
            return None;
        }
        sums.bound = bound;
        sums.add_counters(&profile, counters, weight);
        for (sum, &byte) in sums.bitmap.iter_mut().zip(profile.sections().bitmap.bytes) {
            *sum |= byte;
        }
        sums.add_values(staged, weight, rule, scratch);
        if sums.profiles == 0 || input < sums.first_input {
            sums.first_input = input;
        }
        sums.profiles += 1;
        Some(layout.records.len())
    }

    /// The blobs of virtual tables' names of all layouts.
    pub(crate) fn vtable_names(&self) -> impl Iterator<Item = &[u8]> {
        self.sums.iter().map(|sums| &*sums.layout.vtable_names)
    }

    /// Gives every record of every layout, layouts in the order in which they were met.
    pub(crate) fn for_each_record(&self, mut take: impl FnMut(SummedRecord<'_>)) {
        for sums in self.sums.iter().filter(|sums| sums.profiles > 0) {
            let mut values = sums.layout.with_values.iter().zip(&sums.values).peekable();
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
            values: Vec::new(),
            profiles: 0,
            first_input: usize::MAX,
            bound: 0,
            layout,
        }
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
        // Wrapping, because `bound` says that no sum gets near the end; plain loops, so that they are vectorised.
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

    /// Whether staged values have as many sites as those that went in before.
    fn fits(&self, staged: &[ValueData]) -> bool {
        let sites = |values: &ValueData| {
            values
                .kinds()
                .map(|(_, kind)| kind.site_count())
                .collect::<Vec<_>>()
        };
        self.values.is_empty()
            || self.values.len() == staged.len()
                && self
                    .values
                    .iter()
                    .zip(staged)
                    .all(|(mine, theirs)| sites(mine) == sites(theirs))
    }

    fn add_values(
        &mut self,
        staged: &[ValueData],
        weight: Weight,
        rule: SiteRule,
        scratch: &mut Scratch,
    ) {
        if self.values.is_empty() {
            self.values.extend_from_slice(staged);
            if !weight.is_one() {
                for values in &mut self.values {
                    scale_values(values, weight);
                }
            }
            return;
        }
        for (mine, theirs) in self.values.iter_mut().zip(staged) {
            for ((_, mine), (_, theirs)) in mine.kinds_mut().zip(theirs.kinds()) {
                merge_kind(mine, theirs, weight, rule, scratch);
            }
        }
    }
}

/// All bits of all counters: at least the largest. `None` if one may be implausible.
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

/// Decodes the value data of a profile, with name hashes in place of addresses, one entry a record that has sites.
/// Returns all bits of their counts; `None` if they are damaged or followed by something else than padding.
fn stage(
    layout: &Layout,
    profile: &RawProfile<'_>,
    slide: Slide,
    staged: &mut Vec<ValueData>,
) -> Option<u64> {
    let section = &profile.sections().value_data;
    let mut cursor = Cursor::new(section.bytes, section.offset, profile.dialect().endian);
    staged.resize_with(layout.with_values.len(), ValueData::default);
    let mut bits = 0;
    let mask = mask(profile.dialect().width.bytes());
    for values in staged.iter_mut() {
        value_data::decode(&mut cursor, values).ok()?;
        for (kind, sites) in values.kinds_mut() {
            for entry in sites.entries_mut() {
                bits |= entry.count;
                match kind {
                    value_kind::INDIRECT_CALL_TARGET => {
                        entry.value = layout
                            .addresses
                            .function(entry.value.wrapping_sub(slide.0) & mask)
                            .0;
                    }
                    value_kind::VTABLE_TARGET => {
                        entry.value = layout
                            .addresses
                            .vtable(entry.value.wrapping_sub(slide.0) & mask)
                            .0;
                    }
                    _ => {}
                }
            }
        }
    }
    cursor.rest().iter().all(|&byte| byte == 0).then_some(bits)
}
