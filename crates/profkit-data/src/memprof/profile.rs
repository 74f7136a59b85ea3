//! The owned model of a MemProf profile.
use super::block::{Field, MemInfoBlock};
use super::data_access::DataAccess;
use crate::ids::NameRef;
use crate::index_vec::{Id, IndexVec};
use crate::llvm_order::dense_map_order;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A frame of a call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The function ([`guid`]).
    pub function: u64,
    /// Lines from the line that the function is declared at; wraps where code stands before it.
    pub line_offset: u32,
    /// Column from 1; 0 if unknown.
    pub column: u32,
    /// Whether the function is inlined into the one of the next frame.
    pub is_inline: bool,
}

/// Bytes of a frame in a file.
pub(super) const FRAME_LEN: usize = 17;

impl Frame {
    /// The frame's bytes in a file: function, line offset, column, inline flag.
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

/// How frames and call stacks are numbered in files and sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdScheme {
    /// LLVM 15 to 19: a running combination with the golden ratio for frames (`Frame::hash` in LLVM 19's `MemProf.h`),
    /// BLAKE3 for call stacks; LLVM's maps of these ids give tables their order.
    Combined,
    /// LLVM 20 and later: the first eight bytes of a BLAKE3 hash for both (`IndexedMemProfData.h`).
    Blake3,
}

impl IdScheme {
    /// The id of a frame.
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

    /// The id of a call stack, from those of its frames.
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
    /// A frame, by its place among the frames of its profile.
    pub struct FrameId of "frames of a MemProf profile";
}

crate::id_type! {
    /// A call stack, by its place among the call stacks of its profile.
    pub struct StackId of "call stacks of a MemProf profile";
}

crate::id_type! {
    /// A record, by its place among the records of its profile.
    struct RecordId of "records of a MemProf profile";
}

/// Allocations of one context: a call stack and what is known of the allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocSite {
    /// The call stack, from the allocation outwards.
    pub stack: StackId,
    /// The figures.
    pub block: MemInfoBlock,
    /// Accesses by place in the allocation, eight bytes per element; raw profiles of version 4 may have it.
    pub histogram: Vec<u64>,
}

/// A call on the way to an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The inlined frames at the call, innermost first.
    pub stack: StackId,
    /// The functions called there ([`guid`]), as far as the profile says (version 4).
    pub callees: Vec<u64>,
}

/// What is known of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The function ([`guid`]).
    pub function: u64,
    /// Its allocations.
    pub alloc_sites: Vec<AllocSite>,
    /// Its calls on the way to allocations.
    pub call_sites: Vec<CallSite>,
}

/// A MemProf profile. Frames, stacks and records keep the order in which they were added, for files show it.
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
/// yaml::write(&profile, &yaml::YamlOptions::new(), &mut text)?;
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
    /// Accesses to global data.
    pub data_access: Option<DataAccess>,
    /// The names of functions, where they are known: files of LLVM hold hashes only.
    pub names: FxHashMap<u64, Vec<u8>>,
}

impl MemProfile {
    /// Adds a frame, unless it is there.
    pub fn add_frame(&mut self, frame: Frame) -> FrameId {
        *self
            .frame_ids
            .entry(frame)
            .or_insert_with(|| self.frames.push(frame))
    }

    /// Adds a call stack of frames of this profile, unless it is there.
    pub fn add_stack(&mut self, frames: &[FrameId]) -> StackId {
        if let Some(&id) = self.stack_ids.get(frames) {
            return id;
        }
        let frames: Arc<[FrameId]> = frames.into();
        let id = self.stacks.push(Arc::clone(&frames));
        self.stack_ids.insert(frames, id);
        id
    }

    /// The record of a function, which is made if there is none.
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

    /// The frames, in the order in which they were added.
    pub fn frames(&self) -> &IndexVec<FrameId, Frame> {
        &self.frames
    }

    /// The call stacks, in the order in which they were added, each with its frames from the allocation outwards.
    pub fn stacks(&self) -> &IndexVec<StackId, Arc<[FrameId]>> {
        &self.stacks
    }

    /// The frames of a stack by id, from the allocation outwards.
    ///
    /// # Panics
    /// If the stack is of another profile.
    pub fn frame_ids(&self, stack: StackId) -> &[FrameId] {
        &self.stacks[stack]
    }

    /// The frames of a stack, from the allocation outwards.
    ///
    /// # Panics
    /// If the stack is of another profile.
    pub fn stack(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &Frame> + Clone {
        let frames = self.stacks[stack].iter();
        frames.map(|&frame| &self.frames[frame])
    }

    /// The id of a frame, if it is there.
    pub fn frame_id(&self, frame: &Frame) -> Option<FrameId> {
        self.frame_ids.get(frame).copied()
    }

    /// The call stack of these frames, if it is there.
    pub fn stack_id(&self, frames: &[FrameId]) -> Option<StackId> {
        self.stack_ids.get(frames).copied()
    }

    /// The records, in the order in which they were added.
    pub fn records(&self) -> &[Record] {
        self.records.as_slice()
    }

    /// The record of a function.
    pub fn record(&self, function: u64) -> Option<&Record> {
        let &id = self.record_ids.get(&function)?;
        Some(&self.records[id])
    }

    /// Whether there is nothing in the profile.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.data_access.as_ref().is_none_or(DataAccess::is_empty)
    }

    /// Whether any block has a field.
    pub fn has_field(&self, field: Field) -> bool {
        let sites = self.records.iter().flat_map(|record| &record.alloc_sites);
        sites.into_iter().any(|site| site.block.has(field))
    }

    /// The same profile with frames and stacks in the order in which LLVM 19 hands them from its reader of raw profiles
    /// to its writer: that of its hash maps.
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
        ordered
    }

    /// The ids that files have for frames and call stacks.
    pub(super) fn stored_ids(
        &self,
        scheme: IdScheme,
    ) -> (IndexVec<FrameId, u64>, IndexVec<StackId, u64>) {
        let frames = self.frames.iter();
        let frames: IndexVec<FrameId, u64> = frames.map(|frame| scheme.frame_id(frame)).collect();
        let stacks = self.stacks.iter();
        let stacks = stacks
            .map(|stack| scheme.stack_id(stack.iter().map(|&frame| frames[frame])))
            .collect();
        (frames, stacks)
    }

    /// Adds the stack of another profile.
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

    /// Adds the sites of another profile's record to that of the same function, repeated call stacks too.
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

/// The hash of a function's linkage name, without the suffixes that later passes add: `.llvm.` and `.part.` with a
/// number (`getCanonicalFnName` in `SampleProf.h`). `.__uniq.` stays.
pub fn guid(linkage_name: &[u8]) -> u64 {
    NameRef::of(canonical_name(linkage_name)).0
}

/// The name that [`guid`] hashes.
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

#[cfg(test)]
mod tests {
    use super::*;

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
