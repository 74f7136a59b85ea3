//! A MemProf profile in memory.
use super::block::{Field, MemInfoBlock};
use super::data_access::DataAccess;
use crate::ids::NameRef;
use crate::index_vec::{Id, IndexVec};
use crate::llvm_order::dense_map_order;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A frame of an allocation's call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The hash of the function's name ([`guid`]).
    pub function: u64,
    /// The line, counted from the line at which the function is declared. If the code is above that line, the number
    /// wraps around.
    pub line_offset: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// Whether the function is inlined into the function of the next frame.
    pub is_inline: bool,
}

/// The place of a frame in a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLocation {
    /// The file; empty if unknown.
    pub file: Vec<u8>,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// The discriminator, which distinguishes blocks on the same line.
    pub discriminator: u32,
}

pub(super) const FRAME_LEN: usize = 17;

impl Frame {
    /// Encodes the frame as a file stores it: function, line offset, column, inline flag.
    pub(super) fn encode(&self) -> [u8; FRAME_LEN] {
        let mut bytes = [0; FRAME_LEN];
        let parts: [&[u8]; 4] = [
            &self.function.to_le_bytes(),
            &self.line_offset.to_le_bytes(),
            &self.column.to_le_bytes(),
            &[u8::from(self.is_inline)],
        ];
        for (slot, byte) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *slot = *byte;
        }
        bytes
    }
}

/// A scheme that gives ids to frames and call stacks in files. The order of frames and call stacks in a file depends on
/// these ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdScheme {
    /// The scheme of LLVM 15 to 19. The id of a frame is a hash to which its fields are added one after the other, each
    /// with the golden ratio as a constant (`Frame::hash` in LLVM 19's `MemProf.h`). The id of a call stack is a BLAKE3
    /// hash. The tables of frames and of call stacks have the order of LLVM's hash maps, whose keys are these ids.
    Combined,
    /// The scheme of LLVM 20 and later. The ids of frames and call stacks are the first eight bytes of a BLAKE3 hash
    /// (`IndexedMemProfData.h`).
    Blake3,
}

impl IdScheme {
    /// Returns the id that this scheme gives to a frame.
    pub fn frame_id(self, frame: &Frame) -> u64 {
        match self {
            IdScheme::Blake3 => blake3_low(&frame.encode()),
            IdScheme::Combined => {
                let parts = [
                    frame.function,
                    u64::from(frame.line_offset),
                    u64::from(frame.column),
                    u64::from(frame.is_inline),
                ];
                parts.into_iter().fold(0u64, |seed, part| {
                    seed ^ part
                        .wrapping_add(0x9e37_79b9_7f4a_7c15)
                        .wrapping_add(seed << 6)
                        .wrapping_add(seed >> 2)
                })
            }
        }
    }

    /// Returns the id of a call stack, which is computed from the ids of its frames.
    pub fn stack_id(self, frames: impl Iterator<Item = u64>) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for frame in frames {
            hasher.update(&frame.to_le_bytes());
        }
        low(hasher.finalize().as_bytes())
    }
}

fn blake3_low(bytes: &[u8]) -> u64 {
    low(blake3::hash(bytes).as_bytes())
}

fn low(hash: &[u8; 32]) -> u64 {
    hash.first_chunk().map_or(0, |low| u64::from_le_bytes(*low))
}

crate::id_type! {
    /// The index of a frame among the frames of its profile.
    pub struct FrameId of "frames of a MemProf profile";
}

crate::id_type! {
    /// The index of a call stack among the call stacks of its profile.
    pub struct StackId of "call stacks of a MemProf profile";
}

crate::id_type! {
    struct RecordId of "records of a MemProf profile";
}

/// The allocations of one context: their call stack and their statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocSite {
    /// The call stack, innermost frame first. The first frame makes the allocation.
    pub stack: StackId,
    /// The statistics of the context's allocations.
    pub block: MemInfoBlock,
    /// The access histogram: for each eight bytes of the allocations, the number of accesses. Only raw profiles from
    /// version 4 on can have it; otherwise it is empty.
    pub histogram: Vec<u64>,
}

/// Adds the access histogram `later` to `own`. The result is as long as the longer of the two.
pub fn add_histogram(own: &mut Vec<u64>, later: &[u64]) {
    if later.len() > own.len() {
        own.resize(later.len(), 0);
    }
    for (own, later) in own.iter_mut().zip(later) {
        *own = own.saturating_add(*later);
    }
}

/// A call that leads to an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The frames at the call, innermost first.
    pub stack: StackId,
    /// The hashes ([`guid`]) of the functions that are called at this call site. Only sections of version 4 have them;
    /// otherwise the list is empty.
    pub callees: Vec<u64>,
}

/// The record of a function: its allocations, and its calls that lead to allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The hash of the function's name ([`guid`]).
    pub function: u64,
    /// The allocations that this function makes.
    pub alloc_sites: Vec<AllocSite>,
    /// The calls in this function that lead to allocations.
    pub call_sites: Vec<CallSite>,
}

/// A MemProf profile: frames, call stacks and function records. Frames, call stacks and records keep the order in which
/// they were added. YAML lists the records in this order; in an indexed file, the order also depends on hashes.
///
/// ```
/// use profkit_data::memprof::{Frame, MemProfile, guid, yaml};
///
/// let mut profile = MemProfile::default();
/// let function = guid(b"main");
/// let frame = profile.add_frame(Frame { function, line_offset: 3, column: 7, is_inline: false });
/// let stack = profile.add_stack(&[frame]);
/// assert_eq!(profile.stack(stack).count(), 1);
/// profile.record_mut(function);
/// let mut text = Vec::new();
/// yaml::write(&profile, &mut text)?;
/// assert!(text.starts_with(b"---\nHeapProfileRecords:"));
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemProfile {
    frames: IndexVec<FrameId, Frame>,
    frame_ids: FxHashMap<Frame, FrameId>,
    stacks: IndexVec<StackId, Arc<[FrameId]>>,
    stack_ids: FxHashMap<Arc<[FrameId]>, StackId>,
    records: IndexVec<RecordId, Record>,
    record_ids: FxHashMap<u64, RecordId>,
    /// The accesses to global data; `None` if the profile has none.
    pub data_access: Option<DataAccess>,
    /// The names of functions by their hash. The names are known only if the profile was made from a program, because
    /// LLVM's files contain only hashes.
    pub names: FxHashMap<u64, Vec<u8>>,
    /// The places of frames in source files. They are known only if the profile was made from a program with debug info,
    /// or read from a file with a portable section (`portable`).
    pub locations: FxHashMap<Frame, SourceLocation>,
}

impl MemProfile {
    /// Adds a frame if it is new, and returns its index.
    pub fn add_frame(&mut self, frame: Frame) -> FrameId {
        *self
            .frame_ids
            .entry(frame)
            .or_insert_with(|| self.frames.push(frame))
    }

    /// Adds a call stack if it is new, and returns its index. The frames must be frames of this profile.
    pub fn add_stack(&mut self, frames: &[FrameId]) -> StackId {
        if let Some(&id) = self.stack_ids.get(frames) {
            return id;
        }
        let frames: Arc<[FrameId]> = frames.into();
        let id = self.stacks.push(Arc::clone(&frames));
        self.stack_ids.insert(frames, id);
        id
    }

    /// Returns the record of a function. If the profile has none, a record without allocations and calls is added.
    pub fn record_mut(&mut self, function: u64) -> &mut Record {
        let records = &mut self.records;
        let id = *self.record_ids.entry(function).or_insert_with(|| {
            records.push(Record {
                function,
                ..Record::default()
            })
        });
        &mut records[id]
    }

    /// Returns the frames in the order in which they were added.
    pub fn frames(&self) -> &IndexVec<FrameId, Frame> {
        &self.frames
    }

    /// Returns the call stacks in the order in which they were added. Each call stack begins with the frame of the
    /// allocation, followed by its callers.
    pub fn stacks(&self) -> &IndexVec<StackId, Arc<[FrameId]>> {
        &self.stacks
    }

    /// Returns the indices of the frames of a call stack. The frame of the allocation is first, followed by its
    /// callers.
    ///
    /// # Panics
    /// If `stack` is not a call stack of this profile.
    pub fn frame_ids(&self, stack: StackId) -> &[FrameId] {
        &self.stacks[stack]
    }

    /// Returns the frames of a call stack. The frame of the allocation is first, followed by its callers.
    ///
    /// # Panics
    /// If `stack` is not a call stack of this profile.
    pub fn stack(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &Frame> + Clone {
        let frames = self.stacks[stack].iter();
        frames.map(|&frame| &self.frames[frame])
    }

    /// Returns the index of a frame; `None` if the profile does not have the frame.
    pub fn frame_id(&self, frame: &Frame) -> Option<FrameId> {
        self.frame_ids.get(frame).copied()
    }

    /// Returns the index of the call stack with these frames; `None` if the profile does not have the call stack.
    pub fn stack_id(&self, frames: &[FrameId]) -> Option<StackId> {
        self.stack_ids.get(frames).copied()
    }

    /// Returns the function records in the order in which they were added.
    pub fn records(&self) -> &[Record] {
        self.records.as_slice()
    }

    /// Returns the record of a function; `None` if the profile has none.
    pub fn record(&self, function: u64) -> Option<&Record> {
        let &id = self.record_ids.get(&function)?;
        Some(&self.records[id])
    }

    /// Whether the profile has no function records and no accesses to global data.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.data_access.as_ref().is_none_or(DataAccess::is_empty)
    }

    /// Whether any memory info block of the profile has this field.
    pub fn has_field(&self, field: Field) -> bool {
        let sites = self.records.iter().flat_map(|record| &record.alloc_sites);
        sites.into_iter().any(|site| site.block.has(field))
    }

    /// Whether the profile has allocations, but no access to them was counted. Compilers take an allocation context for
    /// cold if its lifetime is long and its access density is low (`MemoryProfileInfo.cpp`). So with such a profile,
    /// compilers take a context for cold if its allocations live 200 seconds or more on average.
    pub fn lacks_accesses(&self) -> bool {
        let sites = self.records.iter().flat_map(|record| &record.alloc_sites);
        let mut allocated = false;
        for site in sites {
            let has = |field| site.block.get(field) != 0;
            if has(Field::TotalAccessCount) || has(Field::TotalLifetimeAccessDensity) {
                return false;
            }
            allocated |= has(Field::TotalSize);
        }
        allocated
    }

    /// Returns a copy of the profile with the frames and call stacks in the order of LLVM 19's hash maps. LLVM 19 uses
    /// this order when it converts a raw profile.
    #[must_use]
    pub fn in_order_of_llvm_19(&self) -> MemProfile {
        let (frame_ids, stack_ids) = self.stored_ids(IdScheme::Combined);
        let mut ordered = MemProfile::default();
        for frame in dense_map_order(frame_ids.as_slice()) {
            ordered.add_frame(self.frames[FrameId::from_index(frame as usize)]);
        }
        let mut scratch = Vec::new();
        for stack in dense_map_order(stack_ids.as_slice()) {
            ordered.copy_stack(self, StackId::from_index(stack as usize), &mut scratch);
        }
        for record in &self.records {
            ordered.copy_record(self, record);
        }
        ordered.data_access.clone_from(&self.data_access);
        ordered.names.clone_from(&self.names);
        ordered.locations.clone_from(&self.locations);
        ordered
    }

    /// The same profile with everything in ascending order: frames, call stacks (from the outermost caller on), records by
    /// function, and what a record has by call stack. Allocations of one record that have the same call stack keep their order.
    /// Locations of frames that the profile does not have are left out.
    #[must_use]
    pub fn sorted(&self) -> MemProfile {
        let mut sorted = MemProfile::default();
        let mut frames: Vec<Frame> = self.frames.iter().copied().collect();
        frames.sort_unstable();
        for frame in frames {
            sorted.add_frame(frame);
        }
        let ids: IndexVec<FrameId, FrameId> = self
            .frames
            .iter()
            .map(|&frame| sorted.add_frame(frame))
            .collect();
        let renumbered = self.stacks.entries().map(|(old, stack)| {
            let stack: Vec<FrameId> = stack.iter().map(|&frame| ids[frame]).collect();
            (stack, old)
        });
        let mut stacks: Vec<_> = renumbered.collect();
        stacks.sort_unstable_by(|(a, _), (b, _)| a.iter().rev().cmp(b.iter().rev()));
        let mut ids: IndexVec<StackId, StackId> = self.stacks.ids().collect();
        for (stack, old) in stacks {
            ids[old] = sorted.add_stack(&stack);
        }
        let mut records: Vec<&Record> = self.records.iter().collect();
        records.sort_unstable_by_key(|record| record.function);
        for record in records {
            let own = sorted.record_mut(record.function);
            own.clone_from(record);
            for site in &mut own.alloc_sites {
                site.stack = ids[site.stack];
            }
            for site in &mut own.call_sites {
                site.stack = ids[site.stack];
                site.callees.sort_unstable();
            }
            own.alloc_sites.sort_by_key(|site| site.stack);
            own.call_sites.sort_by_key(|site| site.stack);
        }
        sorted.data_access = self.data_access.as_ref().map(DataAccess::sorted);
        sorted.names.clone_from(&self.names);
        sorted.locations.clone_from(&self.locations);
        sorted
            .locations
            .retain(|frame, _| self.frame_ids.contains_key(frame));
        sorted
    }

    /// Removes the fields of memory info blocks that the blocks of `other` do not have. `other` must have the same
    /// allocations in each record.
    pub(crate) fn forget_unknown_fields(&mut self, other: &MemProfile) {
        for record in &mut self.records {
            let Some(known) = other.record(record.function) else {
                continue;
            };
            for (site, known) in record.alloc_sites.iter_mut().zip(&known.alloc_sites) {
                let unknown = |field: &Field| !known.block.has(*field);
                Field::ALL
                    .into_iter()
                    .filter(unknown)
                    .for_each(|field| site.block.unset(field));
            }
        }
    }

    /// Returns the ids that `scheme` gives to the frames and call stacks of the profile. Hashes of LLVM 19 are often equal for
    /// frames of one function: line 1, column 26 has that of line 2, column 91. LLVM 19 loses all such frames but one. Here
    /// the later ones get the next id that is free: readers use ids as nothing but keys.
    pub(super) fn stored_ids(
        &self,
        scheme: IdScheme,
    ) -> (IndexVec<FrameId, u64>, IndexVec<StackId, u64>) {
        let mut free = FreeIds::default();
        let frames = self.frames.iter();
        let frames: IndexVec<FrameId, u64> = frames
            .map(|frame| free.take(scheme.frame_id(frame)))
            .collect();
        let stacks = self.stacks.iter();
        let stacks = stacks
            .map(|stack| scheme.stack_id(stack.iter().map(|&frame| frames[frame])))
            .collect();
        (frames, stacks)
    }

    /// Adds a call stack of another profile. Returns its index in this profile. `scratch` is a buffer that is
    /// overwritten.
    pub fn copy_stack(
        &mut self,
        other: &MemProfile,
        stack: StackId,
        scratch: &mut Vec<FrameId>,
    ) -> StackId {
        scratch.clear();
        for &frame in other.stack(stack) {
            scratch.push(self.add_frame(frame));
        }
        self.add_stack(scratch)
    }

    /// Adds the allocations and calls of another profile's function record to the record of the same function. Entries
    /// with equal call stacks are not combined: the record may then have two allocations, or two calls, with the same
    /// call stack.
    pub fn copy_record(&mut self, other: &MemProfile, record: &Record) {
        let mut scratch = Vec::new();
        let mut alloc_sites = Vec::with_capacity(record.alloc_sites.len());
        for site in &record.alloc_sites {
            alloc_sites.push(AllocSite {
                stack: self.copy_stack(other, site.stack, &mut scratch),
                ..site.clone()
            });
        }
        let mut call_sites = Vec::with_capacity(record.call_sites.len());
        for site in &record.call_sites {
            call_sites.push(CallSite {
                stack: self.copy_stack(other, site.stack, &mut scratch),
                callees: site.callees.clone(),
            });
        }
        let own = self.record_mut(record.function);
        own.alloc_sites.append(&mut alloc_sites);
        own.call_sites.append(&mut call_sites);
    }
}

/// Returns the hash of a function's linkage name. Suffixes that later compiler passes add are removed first: `.llvm.`
/// and `.part.` with a number (`getCanonicalFnName` in `SampleProf.h`). The suffix `.__uniq.` is kept.
pub fn guid(linkage_name: &[u8]) -> u64 {
    NameRef::of(canonical_name(linkage_name)).0
}

/// Returns the part of a linkage name that [`guid`] hashes.
pub fn canonical_name(linkage_name: &[u8]) -> &[u8] {
    let mut name = linkage_name;
    for suffix in [b".llvm.".as_slice(), b".part."] {
        let at = name
            .windows(suffix.len())
            .rposition(|window| window == suffix);
        let last_dot = name.iter().rposition(|&byte| byte == b'.');
        if let (Some(at), Some(dot)) = (at, last_dot)
            && (dot == at || dot == at + suffix.len() - 1)
        {
            name = name.get(..at).unwrap_or(name);
        }
    }
    name
}

/// Gives out ids that are different.
#[derive(Default)]
struct FreeIds {
    /// For each id that is taken, a later one; those between them are taken. The steps grow as they are used, because a
    /// profile may have any number of frames with one id.
    next: FxHashMap<u64, u64>,
}

impl FreeIds {
    /// Takes this id, or the next one that is free.
    fn take(&mut self, wanted: u64) -> u64 {
        let (mut id, mut passed) = (wanted, Vec::new());
        while let Some(&next) = self.next.get(&id) {
            passed.push(id);
            id = next;
        }
        let next = id.wrapping_add(1);
        self.next.insert(id, next);
        for one in passed {
            self.next.insert(one, next);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a chain of single steps, this would be twenty billion steps.
    #[test]
    fn any_number_of_equal_ids_become_different_ones() {
        let mut free = FreeIds::default();
        for expected in [u64::MAX - 1, u64::MAX].into_iter().chain(0..200_000) {
            assert_eq!(free.take(u64::MAX - 1), expected);
        }
        assert_eq!(free.take(7), 200_000);
        assert_eq!(free.take(200_002), 200_002);
        assert_eq!([free.take(7), free.take(7)], [200_001, 200_003]);
    }

    #[test]
    fn suffixes_of_later_passes_are_no_part_of_a_name() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"main", b"main"),
            (b"_ZL1fv.llvm.123", b"_ZL1fv"),
            (b"f.part.0.llvm.77", b"f"),
            (b"f.__uniq.12345", b"f.__uniq.12345"),
            (b"f.__uniq.12345.llvm.9", b"f.__uniq.12345"),
            (b"f.llvm.1.cold", b"f.llvm.1.cold"),
        ];
        for (given, expected) in cases {
            assert_eq!(canonical_name(given), expected);
        }
    }
}
