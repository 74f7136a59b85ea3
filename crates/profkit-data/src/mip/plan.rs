//! Finds out which bytes of a MIP record section belong to which kind of record.
use super::{EntryKind, Function, FunctionId, MipProfile};
use crate::index_vec::IndexVec;
use profkit_abi::mip::record;

/// The meaning of the bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Coverage of a function or block: one byte, which is 0 if the code was executed.
    Coverage,
    /// A unary counter of calls: one byte, in which the number of cleared bits is the count.
    Unary,
    /// A count of calls, and the ordinal of the first call: eight bytes.
    Calls,
    /// A count of calls with the distance to the next sampled call, and the ordinal of the first call: sixteen bytes.
    SampledCalls,
}

/// A range of adjacent bytes in the record section that have the same meaning ([`Kind`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The meaning of the bytes.
    pub kind: Kind,
    /// The offset of the first byte in the record section.
    pub offset: usize,
    /// The number of bytes in the range.
    pub len: usize,
    /// The slot of the range's first record. For each kind of record there is an array of sums. It has one sum for each
    /// record, which adds up all runs. The slot is the index of the record's sum in this array.
    pub slot: usize,
}

/// The slots of a function. For each kind of record there is an array of sums, with one sum for each record, which adds
/// up all runs. A slot is the index of a sum in its array.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// The kind of the function's entry record, which shows whether and how often the function was entered.
    pub kind: Kind,
    /// The slot of the entry record: the index of its sum in the array of sums for `kind`.
    pub entry: usize,
    /// The slot of the function's first block: the index of its sum in the array of coverage sums. The slots of the
    /// other blocks follow.
    pub blocks: usize,
    /// The number of blocks that have such a sum; 0 if block coverage is off.
    pub block_count: usize,
    /// The slot of the function's first inferred block: the index of its sum in the array of sums of inferred blocks. The
    /// slots of the other inferred blocks follow.
    pub inferred: usize,
    /// The offset at which the record of the function ends.
    pub end: u64,
}

/// A record from which it is known whether a block ran: its kind, and its offset in the record section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The meaning of the bytes.
    pub kind: Kind,
    /// The offset of the first byte in the record section.
    pub offset: usize,
}

impl Sign {
    /// Whether these records say that the block ran.
    #[inline(always)]
    pub fn shows(self, records: &[u8]) -> bool {
        match self.kind {
            Kind::Coverage => records.get(self.offset) == Some(&0),
            Kind::Unary => records.get(self.offset).is_some_and(|&byte| byte != 0xff),
            Kind::Calls | Kind::SampledCalls => {
                let size = match self.kind {
                    Kind::Calls => record::CALLS_SIZE,
                    _ => record::SAMPLED_CALLS_SIZE,
                };
                let record = records.get(self.offset..self.offset.saturating_add(size));
                record.is_some_and(|record| record.iter().any(|&byte| byte != 0xff))
            }
        }
    }
}

/// The layout of the record section of an image. The layout is made once, from the MIP profile of the image.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    /// The segments (ranges of adjacent bytes with the same meaning), in the order of their offsets.
    pub segments: Vec<Segment>,
    /// For each function of the profile, in the same order: its slots, that is, the indexes of its sums.
    pub functions: IndexVec<FunctionId, Slots>,
    /// The number of slots (sums) for coverage bytes.
    pub coverage: usize,
    /// The number of slots (sums) for unary counters.
    pub unary: usize,
    /// The number of slots (sums) for call counts.
    pub calls: usize,
    /// For each inferred block, where its signs end in `signs`. It ran in a run if one of them shows it.
    pub inferred: Vec<usize>,
    /// The signs of all inferred blocks.
    pub signs: Vec<Sign>,
    end: u64,
}

impl RecordPlan {
    /// Makes the plan for the functions of a profile. If several functions share a record, they also share the sums of
    /// this record.
    pub fn new(profile: &MipProfile) -> Self {
        let mut order: Vec<FunctionId> = profile.functions.ids().collect();
        order.sort_by_key(|&id| {
            let function = &profile.functions[id];
            (function.record_offset, function.modes)
        });
        let mut plan = RecordPlan {
            segments: Vec::new(),
            functions: IndexVec::parallel_to(
                &profile.functions,
                Slots {
                    kind: Kind::Coverage,
                    entry: 0,
                    blocks: 0,
                    block_count: 0,
                    inferred: 0,
                    end: 0,
                },
            ),
            coverage: 0,
            unary: 0,
            calls: 0,
            inferred: Vec::new(),
            signs: Vec::new(),
            end: 0,
        };
        let mut last: Option<(&Function, Slots)> = None;
        for id in order {
            let function = &profile.functions[id];
            let slots = match last {
                Some((before, slots))
                    if before.record_offset == function.record_offset
                        && before.modes == function.modes
                        && before.blocks.len() == function.blocks.len()
                        && before.inference == function.inference =>
                {
                    slots
                }
                _ => plan.add(function),
            };
            last = Some((function, slots));
            plan.functions[id] = slots;
        }
        plan
    }

    fn add(&mut self, function: &Function) -> Slots {
        let record = function.record_offset;
        let Ok(offset) = usize::try_from(record) else {
            // The offset of the record exceeds the address space of this machine, so no raw file can contain the
            // record. The plan requires the largest possible size, so that every raw file is rejected as too short.
            self.end = u64::MAX;
            return Slots {
                kind: Kind::Coverage,
                entry: usize::MAX,
                blocks: usize::MAX,
                block_count: 0,
                inferred: usize::MAX,
                end: u64::MAX,
            };
        };
        let (kind, size) = match function.modes.entry() {
            Some(EntryKind::Calls) => (Kind::Calls, record::CALLS_SIZE),
            Some(EntryKind::SampledCalls) => (Kind::SampledCalls, record::SAMPLED_CALLS_SIZE),
            Some(EntryKind::Unary) => (Kind::Unary, 1),
            _ => (Kind::Coverage, 1),
        };
        let entry = self.segment(kind, offset, size);
        let block_count = function.recorded_blocks();
        let first = offset.saturating_add(size);
        let blocks = if block_count > 0 {
            self.segment(Kind::Coverage, first, block_count)
        } else {
            0
        };
        let inferred = self.inferred.len();
        if let Some(inference) = &function.inference {
            // The sign of each block with a byte, in the order of the numbers of blocks.
            let mut next = first;
            let mut signs = vec![Sign { kind, offset }];
            for list in inference.lists().skip(1) {
                signs.push(Sign {
                    kind: Kind::Coverage,
                    offset: next,
                });
                next += usize::from(list.is_empty());
            }
            for list in inference.lists().filter(|list| !list.is_empty()) {
                let of_list = list.iter().filter_map(|&from| signs.get(from as usize));
                self.signs.extend(of_list);
                self.inferred.push(self.signs.len());
            }
        }
        let end = record.saturating_add((size + block_count) as u64);
        self.end = self.end.max(end);
        Slots {
            kind,
            entry,
            blocks,
            block_count,
            inferred,
            end,
        }
    }

    /// Adds bytes to the last segment if they have the same kind as the segment and follow it directly. Otherwise
    /// starts a new segment. Returns the slot of the first record in these bytes: the index of its sum.
    fn segment(&mut self, kind: Kind, offset: usize, len: usize) -> usize {
        let (next, slots) = match kind {
            Kind::Coverage => (&mut self.coverage, len),
            Kind::Unary => (&mut self.unary, len),
            Kind::Calls => (&mut self.calls, len / record::CALLS_SIZE),
            Kind::SampledCalls => (&mut self.calls, len / record::SAMPLED_CALLS_SIZE),
        };
        let slot = *next;
        *next += slots;
        match self.segments.last_mut() {
            Some(last) if last.kind == kind && last.offset + last.len == offset => last.len += len,
            _ => self.segments.push(Segment {
                kind,
                offset,
                len,
                slot,
            }),
        }
        slot
    }

    /// Returns the offset at which the last complete record ends if only the first `bytes` bytes of the record section
    /// exist.
    pub fn whole_records(&self, bytes: u64) -> u64 {
        let ends = self.functions.iter().map(|slots| slots.end);
        ends.filter(|&end| end <= bytes).max().unwrap_or(0)
    }

    /// The size in bytes that a record section must have to contain all records.
    pub fn end(&self) -> u64 {
        self.end
    }
}
