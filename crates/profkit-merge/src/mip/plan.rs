//! Where in a record section what kind of record is.
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{EntryKind, FunctionId, MipProfile, Modes};

/// What bytes of a record section mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A byte per slot, 0 where something was run.
    Coverage,
    /// A byte per slot, whose cleared bits count.
    Unary,
    /// Eight bytes per slot: count and ordinal.
    Calls,
}

/// Bytes of one kind that follow each other, and the first of their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub kind: Kind,
    pub offset: usize,
    pub len: usize,
    pub slot: usize,
}

/// The slots of one function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    pub kind: Kind,
    pub entry: usize,
    /// The first of its blocks' slots, of kind [`Kind::Coverage`].
    pub blocks: usize,
    pub block_count: usize,
    /// Where its record ends.
    pub end: u64,
}

/// How the record section of an image is laid out, made once of its profile.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    pub(super) segments: Vec<Segment>,
    /// In the order of the profile's functions.
    pub(super) functions: IndexVec<FunctionId, Slots>,
    pub(super) coverage: usize,
    pub(super) unary: usize,
    pub(super) calls: usize,
    pub(super) end: u64,
}

impl RecordPlan {
    /// The plan for a profile's functions. Functions that share a record share its slots.
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
                    end: 0,
                },
            ),
            coverage: 0,
            unary: 0,
            calls: 0,
            end: 0,
        };
        let mut last: Option<(u64, Modes, usize, Slots)> = None;
        for id in order {
            let function = &profile.functions[id];
            let blocks = function.blocks.len();
            let slots = match last {
                Some((offset, modes, count, slots))
                    if offset == function.record_offset
                        && modes == function.modes
                        && count == blocks =>
                {
                    slots
                }
                _ => plan.add(function.record_offset, function.modes, blocks),
            };
            last = Some((function.record_offset, function.modes, blocks, slots));
            plan.functions[id] = slots;
        }
        plan
    }

    /// Adds the record of a function.
    fn add(&mut self, record: u64, modes: Modes, blocks: usize) -> Slots {
        let Ok(offset) = usize::try_from(record) else {
            // Beyond what this machine can hold: no raw file reaches there, and the size check says so.
            self.end = u64::MAX;
            return Slots {
                kind: Kind::Coverage,
                entry: usize::MAX,
                blocks: usize::MAX,
                block_count: 0,
                end: u64::MAX,
            };
        };
        let (kind, size) = match modes.entry() {
            Some(EntryKind::Calls) => (Kind::Calls, 8),
            Some(EntryKind::Unary) => (Kind::Unary, 1),
            _ => (Kind::Coverage, 1),
        };
        let entry = self.segment(kind, offset, size);
        let block_count = if modes.contains(Modes::BLOCK_COVERAGE) {
            blocks
        } else {
            0
        };
        let blocks = if block_count > 0 {
            self.segment(Kind::Coverage, offset.saturating_add(size), block_count)
        } else {
            0
        };
        let end = record.saturating_add((size + block_count) as u64);
        self.end = self.end.max(end);
        Slots {
            kind,
            entry,
            blocks,
            block_count,
            end,
        }
    }

    /// Adds bytes to the last segment if they continue it, else a segment. Returns their first slot.
    fn segment(&mut self, kind: Kind, offset: usize, len: usize) -> usize {
        let (next, slots) = match kind {
            Kind::Coverage => (&mut self.coverage, len),
            Kind::Unary => (&mut self.unary, len),
            Kind::Calls => (&mut self.calls, len / 8),
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

    /// Where the last record ends that is whole in so many bytes.
    pub(super) fn whole_records(&self, bytes: u64) -> u64 {
        let ends = self.functions.iter().map(|slots| slots.end);
        ends.filter(|&end| end <= bytes).max().unwrap_or(0)
    }

    /// How many bytes of a record section records need.
    pub fn end(&self) -> u64 {
        self.end
    }
}
