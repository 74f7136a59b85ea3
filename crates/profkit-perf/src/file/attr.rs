//! The kernel's structure `perf_event_attr`. It states what an event counts and what its samples contain.
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::{Error, ErrorKind, Result};

/// The bits of [`Attr::sample_type`]. Each bit stands for a part of a sample.
#[allow(missing_docs, reason = "the names are those of the kernel")]
pub mod sample_type {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// This and the next three constants are bits of `branch_sample_type`. This one asks for branches of every kind.
const BRANCH_ANY: u64 = 1 << 3;
const BRANCH_CALL_STACK: u64 = 1 << 11;
const BRANCH_NO_FLAGS: u64 = 1 << 14;
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;

/// The size in bytes of the first published version of `perf_event_attr`.
const LEAST: usize = 64;

/// The kernel's structure `perf_event_attr`, which states what an event counts and what its samples contain. Fields
/// that an older version of the structure does not have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attr {
    /// The kind of the event: 0 hardware, 1 software, 2 tracepoint, 3 hardware cache, 4 raw. The meaning of other
    /// numbers depends on the machine.
    pub kind: u32,
    /// The event among the events of its kind: for example, 0 means cycles if the kind is hardware.
    pub config: u64,
    /// The number of events between two samples. If [`by_frequency`](Self::by_frequency) is true, this is the number of
    /// samples per second instead.
    pub period: u64,
    /// Whether the kernel adapts the period so that it reaches a number of samples per second.
    pub by_frequency: bool,
    /// The precision of the address of a sample. At 0, the address may be some instructions after the instruction that
    /// caused the event. At 3, it is the address of that instruction.
    pub precision: u8,
    /// The parts of a sample. The bits are in the module `sample_type`.
    pub sample_type: u64,
    /// The layout of the counter values that samples may contain (bits of `perf_event_read_format`).
    pub read_format: u64,
    /// Whether records that are not samples end with a block of ids. The block contains the process, the time, the
    /// processor and the event.
    pub has_id_block: bool,
    /// The kinds of branches that the processor records (bits of `perf_branch_sample_type`).
    pub branch_type: u64,
}

/// Reads a number of `size` bytes at an offset. Returns 0 if the number is beyond the end.
fn number(bytes: &[u8], offset: usize, size: usize, endian: Endian) -> u64 {
    let Some(bytes) = bytes.get(offset..) else {
        return 0;
    };
    if size == 4 {
        bytes.first_chunk().map_or(0, |&b| endian.u32(b).into())
    } else {
        bytes.first_chunk().map_or(0, |&b| endian.u64(b))
    }
}

impl Attr {
    /// Reads the structure at the cursor. More bytes may follow the structure. Returns the structure and its size in
    /// bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the stated size is less than that of the first version, [`ErrorKind::Truncated`] if
    /// fewer bytes are left than the stated size.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<(Attr, usize)> {
        let endian = cursor.endian();
        let start = cursor.offset();
        let bytes = cursor.rest();
        // Versions of perf before Linux 2.6.33 write a size of 0.
        let size = match number(bytes, 4, 4, endian) {
            0 => LEAST as u64,
            size => size,
        };
        if size < LEAST as u64 {
            return Err(Error::new(ErrorKind::Malformed, "an event is too small")
                .at(start + 4)
                .found(size)
                .expected(format_args!("{LEAST} bytes or more")));
        }
        let own = cursor.take_u64(size)?;
        let at = |offset, size| number(own, offset, size, endian);
        let flags = at(40, 8);
        // The flags are a C bit field. On machines with big-endian numbers, compilers assign its bits from the other
        // end.
        let flag = |bit: u32, width: u32| {
            let shift = match endian {
                Endian::Little => bit,
                Endian::Big => 64 - bit - width,
            };
            flags >> shift & ((1 << width) - 1)
        };
        let attr = Attr {
            kind: u32::try_from(at(0, 4)).unwrap_or_default(),
            config: at(8, 8),
            period: at(16, 8),
            by_frequency: flag(10, 1) == 1,
            precision: u8::try_from(flag(15, 2)).unwrap_or_default(),
            sample_type: at(24, 8),
            read_format: at(32, 8),
            has_id_block: flag(18, 1) == 1,
            branch_type: at(72, 8),
        };
        Ok((attr, own.len()))
    }

    /// Whether a sample has this part.
    pub fn has(&self, part: u64) -> bool {
        self.sample_type & part != 0
    }

    /// Whether samples have branch stacks.
    pub fn has_branches(&self) -> bool {
        self.has(sample_type::BRANCH_STACK)
    }

    /// Whether the branch stacks contain every taken branch, so that none is missing between two branches of a stack.
    /// The attributes of `perf inject` do not say which branches it has written, but it writes every branch.
    pub fn has_every_branch(&self) -> bool {
        let unsaid = self.branch_type & !BRANCH_HW_INDEX == 0;
        self.has_branches()
            && (unsaid || self.branch_type & BRANCH_ANY != 0)
            && self.branch_type & BRANCH_CALL_STACK == 0
    }

    pub(crate) fn branch_index(&self) -> bool {
        self.branch_type & BRANCH_HW_INDEX != 0
    }

    pub(crate) fn branch_counters(&self) -> bool {
        self.branch_type & BRANCH_COUNTERS != 0
    }

    /// Whether the branch stacks state which branches were predicted.
    pub fn has_predictions(&self) -> bool {
        self.branch_type & BRANCH_NO_FLAGS == 0
    }

    /// Whether samples of both events have the same parts in the same positions.
    pub(crate) fn same_layout(&self, other: &Attr) -> bool {
        let shape = |attr: &Attr| {
            (
                attr.sample_type,
                attr.has(sample_type::READ).then_some(attr.read_format),
                attr.has_branches()
                    .then(|| (attr.branch_index(), attr.branch_counters())),
                attr.has_id_block,
            )
        };
        shape(self) == shape(other)
    }

    /// Returns a name for an event that has no name in the recording. For common events it is perf's name. For other
    /// events it consists of the numbers of the kind and of the event.
    pub fn name(&self) -> String {
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        const SOFTWARE: [&str; 10] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
        ];
        let names: &[&str] = match self.kind {
            0 => &HARDWARE,
            1 => &SOFTWARE,
            _ => &[],
        };
        // On machines with several kinds of processor cores, the upper half of `config` states the kind of core.
        let index = usize::try_from(self.config & 0xffff_ffff).unwrap_or(usize::MAX);
        match names.get(index) {
            Some(name) => (*name).to_owned(),
            None => format!("event {}:{:#x}", self.kind, self.config),
        }
    }
}
