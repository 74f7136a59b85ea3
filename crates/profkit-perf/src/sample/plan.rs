//! The positions of the parts of a sample. The parts before the call chain have the same positions in all samples of an
//! event, so these positions are computed once per event.
use super::{Branches, CallChain, Mode, Sample};
use crate::file::{Attr, sample_type};
use crate::record::Record;
use profkit_data::bytes::Endian;

/// The positions of the parts in the samples of an event, as offsets in the body of the record.
#[derive(Clone, Debug)]
pub struct Plan {
    endian: Endian,
    address: Option<usize>,
    thread: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
    period: Option<usize>,
    /// The position of the event's id in samples; `None` if samples contain no id.
    pub id: Option<usize>,
    /// The size in bytes of the parts with fixed positions.
    fixed: usize,
    read: Option<Read>,
    chain: bool,
    raw: bool,
    branches: bool,
    branch_index: bool,
    /// The positions of the fields in the block of ids, which stands at the end of each record that is not a sample.
    pub block: IdBlock,
}

/// The layout of the values of counters in a sample.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Whether a sample contains the values of all events of a group.
    group: bool,
    /// The number of 64-bit words with times, which stand before the values of a group.
    times: usize,
    /// The number of 64-bit words for each value.
    value: usize,
}

/// The block of ids at the end of records that are not samples. The fields are distances from the end of the record, in
/// bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdBlock {
    size: usize,
    time: Option<usize>,
}

impl IdBlock {
    fn of(attr: &Attr) -> IdBlock {
        use sample_type::*;
        if !attr.has_id_block {
            return IdBlock::default();
        }
        let parts = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
        let size = parts.iter().filter(|&&part| attr.has(part)).count() * 8;
        let before = usize::from(attr.has(TID)) * 8;
        IdBlock {
            size,
            time: attr.has(TIME).then(|| size - before),
        }
    }

    /// Returns the body of a record without the block of ids.
    pub fn strip<'data>(&self, body: &'data [u8]) -> &'data [u8] {
        let end = body.len().saturating_sub(self.size);
        body.get(..end).unwrap_or_default()
    }

    /// Reads the time of a record from its block of ids.
    pub fn time(&self, body: &[u8], endian: Endian) -> Option<u64> {
        let start = body.len().checked_sub(self.time?)?;
        Some(endian.u64(*body.get(start..)?.first_chunk()?))
    }
}

/// Reads a sample piece by piece.
struct Reader<'data> {
    body: &'data [u8],
    position: usize,
    endian: Endian,
}

impl<'data> Reader<'data> {
    fn word(&mut self) -> Option<u64> {
        let word = self.body.get(self.position..)?.first_chunk()?;
        self.position += 8;
        Some(self.endian.u64(*word))
    }

    /// Returns the bytes of `count` items of `size` bytes each. `count` comes from the file and may be wrong. `None` if
    /// there are too few bytes.
    fn items(&mut self, count: u64, size: usize) -> Option<&'data [u8]> {
        let len = usize::try_from(count).ok()?.checked_mul(size)?;
        let end = self.position.checked_add(len)?;
        let bytes = self.body.get(self.position..end)?;
        self.position = end;
        Some(bytes)
    }
}

impl Plan {
    pub fn of(attr: &Attr, endian: Endian) -> Plan {
        use sample_type::*;
        let mut fixed = 0;
        let mut place = |part: u64| {
            attr.has(part).then(|| {
                fixed += 8;
                fixed - 8
            })
        };
        let identifier = place(IDENTIFIER);
        let address = place(IP);
        let thread = place(TID);
        let time = place(TIME);
        place(ADDR);
        let id = place(ID);
        place(STREAM_ID);
        let cpu = place(CPU);
        let period = place(PERIOD);
        let read = attr.has(READ).then(|| {
            let bit = |bit: u32| (attr.read_format >> bit & 1 == 1) as usize;
            Read {
                group: bit(3) == 1,
                times: bit(0) + bit(1),
                value: 1 + bit(2) + bit(4),
            }
        });
        Plan {
            endian,
            address,
            thread,
            time,
            cpu,
            period,
            id: identifier.or(id),
            fixed,
            read,
            chain: attr.has(CALLCHAIN),
            raw: attr.has(RAW),
            branches: attr.has_branches(),
            branch_index: attr.branch_index(),
            block: IdBlock::of(attr),
        }
    }

    /// Decodes a sample. `None` if its parts do not fit into the record.
    pub fn decode<'data>(&self, record: &Record<'data>, event: usize) -> Option<Sample<'data>> {
        let body = record.body;
        let fixed = body.get(..self.fixed)?;
        let endian = self.endian;
        let word = |place: Option<usize>| -> u64 {
            place
                .and_then(|place| fixed.get(place..)?.first_chunk())
                .map_or(0, |word| endian.u64(*word))
        };
        // Two 32-bit numbers in one 64-bit word, such as process and thread. If the recording has the other byte order,
        // the bytes of each 32-bit number are reversed separately.
        let pair = |place: Option<usize>| -> (u32, u32) {
            let half = |at: usize| {
                place
                    .and_then(|place| fixed.get(place + at..)?.first_chunk())
                    .map_or(0, |half| endian.u32(*half))
            };
            (half(0), half(4))
        };
        let mut reader = Reader {
            body,
            position: self.fixed,
            endian,
        };
        if let Some(read) = self.read {
            let count = if read.group { reader.word()? } else { 1 };
            // The values of a group are stored as: the number of values, the times, the values. Without a group, the
            // only value stands before the times.
            reader.items(read.times as u64, 8)?;
            reader.items(count, read.value * 8)?;
        }
        let mut chain = CallChain::default();
        if self.chain {
            let count = reader.word()?;
            chain = CallChain::new(reader.items(count, 8)?, endian);
        }
        if self.raw {
            let bytes = reader.body.get(reader.position..)?.first_chunk()?;
            let size = u64::from(endian.u32(*bytes));
            reader.position += 4;
            reader.items(size, 1)?;
        }
        let mut branches = Branches::default();
        if self.branches {
            let count = reader.word()?;
            if self.branch_index {
                reader.word()?;
            }
            branches = Branches::new(reader.items(count, 24)?, endian);
        }
        let (pid, tid) = pair(self.thread);
        Some(Sample {
            offset: record.offset,
            event,
            mode: Mode::of(record.misc),
            address: word(self.address),
            pid,
            tid,
            time: self.time.map(|_| word(self.time)),
            cpu: pair(self.cpu).0,
            period: if self.period.is_some() {
                word(self.period)
            } else {
                0
            },
            chain,
            branches,
        })
    }
}
