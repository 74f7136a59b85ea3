//! The sums of heap profiles in parts. docs/formats/part.md describes the format.
use super::bytes::{In, Out};
use crate::engine::{Collected, Group};
use crate::memprof::{ContextRule, HeapSum, MemProfSum, RawContexts, SectionSum};
use profkit_data::Result;
use profkit_data::ids::BuildId;
use profkit_data::index_vec::Id;
use profkit_data::memprof::raw::Module;
use profkit_data::memprof::{
    AddressId, AllocSite, CallSite, DataAccess, DataRecord, Datum, Field, Frame, FrameId,
    MemInfoBlock, MemProfile, SourceLocation, StackId,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A call stack has at most this many frames in common with the last one: what a reader allocates is then in proportion to
/// the section. Deeper stacks repeat their inner frames.
const MOST_SHARED: usize = 128;
/// The newest version of a MemProf section.
const NEWEST_SECTION: u32 = 4;

/// `None` if the inputs have no heap profiles.
pub(super) fn encode(sum: &Collected) -> Option<Out> {
    let sections = (0..).zip(sum.sorted_groups());
    let sections =
        sections.filter_map(|(number, group)| Some((number, group.memprof.sum.as_ref()?)));
    let sections: Vec<(u64, &SectionSum)> = sections.collect();
    if sum.heap.is_none() && sections.is_empty() {
        return None;
    }
    let mut out = Out::default();
    out.flag(sum.heap.is_some());
    if let Some(heap) = &sum.heap {
        let contexts = heap.contexts.sorted();
        out.number(heap.files);
        out.number(heap.files_dropped);
        out.number(heap.count);
        out.count(contexts.dumps());
        out.number(u64::from(contexts.newest_version()));
        put_contexts(&mut out, &contexts);
        put_profile(&mut out, heap.profiles.profile());
    }
    out.count(sections.len());
    for (group, section) in sections {
        out.number(group);
        out.number(u64::from(section.version));
        out.flag(section.full);
        out.flag(section.portable);
        put_profile(&mut out, section.profiles.profile());
    }
    Some(out)
}

/// Reads the section. The sums of MemProf sections become those of `groups`.
pub(super) fn decode(source: &mut In<'_>, groups: &mut [Group]) -> Result<Option<HeapSum>> {
    let heap = source.optional(|source| {
        let mut sum = HeapSum {
            files: source.tally()?,
            files_dropped: source.tally()?,
            count: source.tally()?,
            ..HeapSum::default()
        };
        let dumps = source.tally()?;
        let dumps = usize::try_from(dumps).map_err(|_| {
            source
                .wrong("a number is too large to be true")
                .found(dumps)
        })?;
        let newest = source.small()?;
        sum.contexts = contexts(source)?;
        sum.contexts.add_dumps(dumps, newest);
        sum.profiles = sum_of(&profile(source)?);
        Ok(sum)
    })?;
    for _ in 0..source.count(9)? {
        let number = source.size()?;
        let version = source.small()?;
        if version > NEWEST_SECTION {
            return Err(source
                .wrong("the version of the MemProf section is not known")
                .found(version));
        }
        let section = SectionSum {
            version,
            full: source.flag()?,
            portable: source.flag()?,
            profiles: sum_of(&profile(source)?),
        };
        let place = groups.get_mut(number).map(|group| &mut group.memprof.sum);
        let Some(place @ None) = place else {
            return Err(source
                .wrong("there is no group with this number, or it has two sections")
                .found(number));
        };
        *place = Some(section);
    }
    Ok(heap)
}

fn sum_of(profile: &MemProfile) -> MemProfSum {
    let mut sum = MemProfSum::unordered(ContextRule::AddCopies);
    sum.add(profile);
    sum
}

fn put_contexts(out: &mut Out, contexts: &RawContexts) {
    out.count(contexts.modules().len());
    for module in contexts.modules() {
        match module {
            Module::None => out.number(0),
            Module::Linked {
                build_id: BuildId(id),
            } => {
                out.number(1);
                out.bytes(id);
            }
            Module::Mapping {
                number,
                file_offset,
                len,
                fixed,
            } => {
                out.number(2);
                out.count(*number);
                out.number(*file_offset);
                out.number(*len);
                out.flag(fixed.is_some());
                fixed.iter().for_each(|&start| out.number(start));
            }
        }
    }
    out.count(contexts.addresses().len());
    let (mut module, mut last) = (0, 0);
    for &(of, address) in contexts.addresses() {
        out.count(of.index() - module);
        if of.index() > module {
            (module, last) = (of.index(), 0);
        }
        out.number(address - last);
        last = address;
    }
    let mut blocks = Blocks::default();
    let mut stacks = Stacks::default();
    out.count(contexts.stacks().len());
    for (stack, allocated) in contexts.all() {
        stacks.put(out, stack);
        out.flag(allocated.is_some());
        blocks.0.extend(allocated);
    }
    blocks.put(out);
}

fn contexts(source: &mut In<'_>) -> Result<RawContexts> {
    let mut contexts = RawContexts::default();
    let mut modules = Vec::new();
    for _ in 0..source.count(1)? {
        modules.push(match source.number()? {
            0 => Module::None,
            1 => Module::Linked {
                build_id: BuildId(source.bytes()?),
            },
            2 => Module::Mapping {
                number: source.size()?,
                file_offset: source.number()?,
                len: source.number()?,
                fixed: source.optional(In::number)?,
            },
            other => {
                return Err(source
                    .wrong("the kind of a module is not known")
                    .found(other));
            }
        });
    }
    let mut addresses: Vec<AddressId> = Vec::new();
    let (mut module, mut last) = (0usize, 0u64);
    for _ in 0..source.count(2)? {
        let more = source.size()?;
        if more > 0 {
            (module, last) = (module.saturating_add(more), 0);
        }
        let address = last.checked_add(source.number()?);
        last = address.ok_or_else(|| source.wrong("an address has more than 64 bits"))?;
        let of = modules.get(module).ok_or_else(|| {
            source
                .wrong("there is no module with this number")
                .found(module)
        })?;
        addresses.push(contexts.add_address(of, last));
    }
    let mut stacks = Stacks::default();
    let mut all: Vec<(Vec<AddressId>, bool)> = Vec::new();
    for _ in 0..source.count(3)? {
        let stack = stacks.read(source, &addresses)?;
        all.push((stack, source.flag()?));
    }
    let blocks = blocks(source)?;
    let mut blocks = blocks.iter();
    for (stack, has_block) in all {
        let allocated =
            match has_block {
                false => None,
                true => Some(blocks.next().ok_or_else(|| {
                    source.wrong("there are fewer blocks than call stacks with one")
                })?),
            };
        contexts.add_unordered(
            &stack,
            allocated.map(|(block, histogram)| (block, histogram.as_slice())),
        );
    }
    match blocks.next() {
        None => Ok(contexts),
        Some(_) => Err(source.wrong("there are more blocks than call stacks with one")),
    }
}

/// Call stacks by the numbers of their frames, each after the last one.
#[derive(Default)]
struct Stacks(Vec<usize>);

impl Stacks {
    fn put<I: Id>(&mut self, out: &mut Out, stack: &[I]) {
        let outermost_first = || stack.iter().rev().map(|frame| frame.index());
        let same = self
            .0
            .iter()
            .copied()
            .zip(outermost_first())
            .take(MOST_SHARED);
        let same = same.take_while(|(a, b)| a == b).count();
        out.count(same);
        out.count(stack.len() - same);
        outermost_first()
            .skip(same)
            .for_each(|frame| out.count(frame));
        self.0.clear();
        self.0.extend(outermost_first());
    }

    /// Reads a call stack; `ids` are the frames by their numbers.
    fn read<I: Copy>(&mut self, source: &mut In<'_>, ids: &[I]) -> Result<Vec<I>> {
        let same = source.size()?;
        if same > self.0.len() || same > MOST_SHARED {
            return Err(source
                .wrong("a call stack repeats more frames than it can")
                .found(same));
        }
        self.0.truncate(same);
        for _ in 0..source.count(1)? {
            self.0.push(source.size()?);
        }
        let known = self.0.iter().rev().map(|&frame| {
            let id = ids.get(frame).copied();
            id.ok_or_else(|| {
                source
                    .wrong("there is no frame with this number")
                    .found(frame)
            })
        });
        known.collect()
    }
}

/// Statistics with their histograms, written field by field: the values of one field are alike.
#[derive(Default)]
struct Blocks<'a>(Vec<(&'a MemInfoBlock, &'a [u64])>);

impl Blocks<'_> {
    fn put(&self, out: &mut Out) {
        out.count(self.0.len());
        for (block, _) in &self.0 {
            let bits = block.fields().map(|field| 1 << (field.id() - 1));
            out.number(bits.fold(0, |bits, bit: u64| bits | bit));
        }
        for field in Field::ALL {
            for (block, _) in &self.0 {
                block
                    .known(field)
                    .into_iter()
                    .for_each(|value| out.number(value));
            }
        }
        for (_, histogram) in &self.0 {
            out.count(histogram.len());
            histogram.iter().for_each(|&count| out.number(count));
        }
    }
}

fn blocks(source: &mut In<'_>) -> Result<Vec<(MemInfoBlock, Vec<u64>)>> {
    let mut masks = Vec::new();
    for _ in 0..source.count(2)? {
        let mask = source.number()?;
        if mask >> Field::ALL.len() != 0 {
            return Err(source
                .wrong("a block has fields that are not known")
                .found(mask));
        }
        masks.push(mask);
    }
    let mut blocks = vec![(MemInfoBlock::default(), Vec::new()); masks.len()];
    for field in Field::ALL {
        for (mask, (block, _)) in masks.iter().zip(&mut blocks) {
            if mask >> (field.id() - 1) & 1 != 0 {
                let value = source.number()?;
                if value > field.max() {
                    return Err(source
                        .wrong("a value is too large for its field")
                        .found(value));
                }
                block.set(field, value);
            }
        }
    }
    for (_, histogram) in &mut blocks {
        for _ in 0..source.count(1)? {
            histogram.push(source.number()?);
        }
    }
    Ok(blocks)
}

fn put_profile(out: &mut Out, profile: &MemProfile) {
    let profile = profile.sorted();
    let records = profile.records();
    let callees = records
        .iter()
        .flat_map(|record| record.call_sites.iter().flat_map(|site| &site.callees));
    let functions: BTreeSet<u64> = profile
        .frames()
        .iter()
        .map(|frame| frame.function)
        .chain(records.iter().map(|record| record.function))
        .chain(callees.copied())
        .chain(profile.names.keys().copied())
        .collect();
    let functions: Vec<u64> = functions.into_iter().collect();
    let function = |hash: u64| functions.binary_search(&hash).unwrap_or(0);
    out.count(functions.len());
    functions.iter().for_each(|&hash| out.fixed(hash));
    out.count(profile.names.len());
    let mut names: Vec<_> = profile.names.iter().collect();
    names.sort_unstable();
    let mut last = 0;
    for (&hash, name) in names {
        out.count(function(hash) - last);
        out.bytes(name);
        last = function(hash);
    }
    out.count(profile.frames().len());
    let mut last = 0;
    for frame in profile.frames() {
        out.count(function(frame.function) - last);
        out.number(u64::from(frame.line_offset));
        out.number(u64::from(frame.column) << 1 | u64::from(frame.is_inline));
        last = function(frame.function);
    }
    let located = profile.frames().entries();
    let located =
        located.filter_map(|(id, frame)| Some((id.index(), profile.locations.get(frame)?)));
    let located: Vec<_> = located.collect();
    out.count(located.len());
    let (mut last, mut file): (_, &[u8]) = (0, &[]);
    for (frame, location) in located {
        out.count(frame - last);
        out.after(file, &location.file);
        for number in [location.line, location.column, location.discriminator] {
            out.number(u64::from(number));
        }
        (last, file) = (frame, &location.file);
    }
    let mut stacks = Stacks::default();
    out.count(profile.stacks().len());
    for stack in profile.stacks() {
        stacks.put(out, stack);
    }
    put_records(out, &profile, &function);
    out.flag(profile.data_access.is_some());
    profile
        .data_access
        .iter()
        .for_each(|data| put_accesses(out, data));
}

fn put_records(out: &mut Out, profile: &MemProfile, function: &dyn Fn(u64) -> usize) {
    let mut blocks = Blocks::default();
    let mut numbers: FxHashMap<(&MemInfoBlock, &[u64]), usize> = FxHashMap::default();
    let records = profile.records();
    out.count(records.len());
    let mut last_record = 0;
    for record in records {
        out.count(function(record.function) - last_record);
        last_record = function(record.function);
        out.count(record.alloc_sites.len());
        let mut last = 0;
        for site in &record.alloc_sites {
            out.count(site.stack.index() - last);
            last = site.stack.index();
            let block = (&site.block, site.histogram.as_slice());
            let next = blocks.0.len();
            let number = *numbers.entry(block).or_insert(next);
            // Each function that is inlined at an allocation has it.
            out.count(next - number);
            if number == next {
                blocks.0.push(block);
            }
        }
        out.count(record.call_sites.len());
        let mut last = 0;
        for site in &record.call_sites {
            out.count(site.stack.index() - last);
            last = site.stack.index();
            out.count(site.callees.len());
            site.callees
                .iter()
                .for_each(|&callee| out.count(function(callee)));
        }
    }
    blocks.put(out);
}

fn profile(source: &mut In<'_>) -> Result<MemProfile> {
    let mut profile = MemProfile::default();
    let mut functions = Vec::new();
    for _ in 0..source.count(8)? {
        functions.push(source.0.u64()?);
    }
    let function = |source: &In<'_>, number: usize| -> Result<u64> {
        let hash = functions.get(number).copied();
        hash.ok_or_else(|| {
            source
                .wrong("there is no function with this number")
                .found(number)
        })
    };
    let mut at = 0;
    for _ in 0..source.count(2)? {
        let number = later(source, &mut at)?;
        let hash = function(source, number)?;
        profile.names.insert(hash, source.bytes()?);
    }
    let mut frames: Vec<FrameId> = Vec::new();
    let mut at = 0;
    for _ in 0..source.count(3)? {
        let number = later(source, &mut at)?;
        let line_offset = source.small()?;
        let column = source.number()?;
        frames.push(profile.add_frame(Frame {
            function: function(source, number)?,
            line_offset,
            column: u32::try_from(column >> 1).map_err(|_| {
                source
                    .wrong("a number has more than 32 bits")
                    .found(column >> 1)
            })?,
            is_inline: column & 1 != 0,
        }));
    }
    let mut at = 0;
    let mut file = Vec::new();
    for _ in 0..source.count(6)? {
        let number = later(source, &mut at)?;
        source.after(&mut file)?;
        let location = SourceLocation {
            file: file.clone(),
            line: source.small()?,
            column: source.small()?,
            discriminator: source.small()?,
        };
        let frame = frames
            .get(number)
            .and_then(|&frame| profile.frames().get(frame));
        let frame = *frame.ok_or_else(|| {
            source
                .wrong("there is no frame with this number")
                .found(number)
        })?;
        profile.locations.insert(frame, location);
    }
    let mut stacks: Vec<StackId> = Vec::new();
    let mut shared = Stacks::default();
    for _ in 0..source.count(2)? {
        let stack = shared.read(source, &frames)?;
        stacks.push(profile.add_stack(&stack));
    }
    records(source, &mut profile, &stacks, &function)?;
    profile.data_access = source.optional(accesses)?;
    Ok(profile)
}

/// The next number of an ascending list.
fn later(source: &mut In<'_>, at: &mut usize) -> Result<usize> {
    let more = source.size()?;
    *at = at.saturating_add(more);
    Ok(*at)
}

type FindFunction<'a> = dyn Fn(&In<'_>, usize) -> Result<u64> + 'a;

fn records(
    source: &mut In<'_>,
    profile: &mut MemProfile,
    stacks: &[StackId],
    function: &FindFunction<'_>,
) -> Result<()> {
    let stack = |source: &mut In<'_>, at: &mut usize| -> Result<StackId> {
        let number = later(source, at)?;
        let id = stacks.get(number).copied();
        id.ok_or_else(|| {
            source
                .wrong("there is no call stack with this number")
                .found(number)
        })
    };
    let mut found = Vec::new();
    let mut next = 0usize;
    let mut at = 0;
    for _ in 0..source.count(3)? {
        let number = later(source, &mut at)?;
        let hash = function(source, number)?;
        let mut sites = Vec::new();
        let mut last = 0;
        for _ in 0..source.count(2)? {
            let stack = stack(source, &mut last)?;
            let before = source.size()?;
            let number = if before == 0 {
                next += 1;
                next - 1
            } else {
                let number = next.checked_sub(before);
                number.ok_or_else(|| {
                    source
                        .wrong("there is no block with this number")
                        .found(before)
                })?
            };
            sites.push((stack, number));
        }
        let mut calls = Vec::new();
        let mut last = 0;
        for _ in 0..source.count(2)? {
            let stack = stack(source, &mut last)?;
            let mut callees = Vec::new();
            for _ in 0..source.count(1)? {
                let number = source.size()?;
                callees.push(function(source, number)?);
            }
            calls.push(CallSite { stack, callees });
        }
        found.push((hash, sites, calls));
    }
    let blocks = blocks(source)?;
    if blocks.len() != next {
        return Err(source
            .wrong("the number of blocks is not that of the records")
            .found(blocks.len())
            .expected(next));
    }
    for (hash, sites, calls) in found {
        let record = profile.record_mut(hash);
        for (stack, number) in sites {
            let (block, histogram) = blocks.get(number).cloned().unwrap_or_default();
            record.alloc_sites.push(AllocSite {
                stack,
                block,
                histogram,
            });
        }
        record.call_sites.extend(calls);
    }
    Ok(())
}

fn put_accesses(out: &mut Out, data: &DataAccess) {
    out.count(data.records.len());
    for record in &data.records {
        match &record.datum {
            Datum::Symbol(symbol) => {
                out.flag(false);
                out.bytes(symbol);
            }
            Datum::Literal(hash) => {
                out.flag(true);
                out.fixed(*hash);
            }
        }
        out.number(record.access_count);
        out.count(record.locations.len());
        for (file, line) in &record.locations {
            out.bytes(file);
            out.number(u64::from(*line));
        }
    }
    out.count(data.cold_symbols.len());
    data.cold_symbols
        .iter()
        .for_each(|symbol| out.bytes(symbol));
    out.count(data.cold_hashes.len());
    data.cold_hashes.iter().for_each(|&hash| out.fixed(hash));
}

fn accesses(source: &mut In<'_>) -> Result<DataAccess> {
    let mut data = DataAccess::default();
    for _ in 0..source.count(4)? {
        let datum = match source.flag()? {
            false => Datum::Symbol(source.bytes()?),
            true => Datum::Literal(source.0.u64()?),
        };
        let access_count = source.number()?;
        let mut locations = Vec::new();
        for _ in 0..source.count(2)? {
            locations.push((source.bytes()?, source.small()?));
        }
        data.records.push(DataRecord {
            datum,
            access_count,
            locations,
        });
    }
    for _ in 0..source.count(1)? {
        data.cold_symbols.push(source.bytes()?);
    }
    for _ in 0..source.count(8)? {
        data.cold_hashes.push(source.0.u64()?);
    }
    Ok(data)
}
