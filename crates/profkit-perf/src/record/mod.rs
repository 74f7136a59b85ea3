//! Records: their headers, and the contents of all records except samples.
mod chunks;
mod map;
mod unpack;

pub use chunks::Chunk;
pub(crate) use chunks::Chunks;
pub use map::Mapping;
pub(crate) use map::{comm, is_anonymous, task};

use profkit_data::bytes::Endian;

/// The size in bytes of the header of a record.
pub(crate) const RECORD_HEADER: usize = 8;

/// The kind of a record, as a number in the file. The constants are the kinds that this crate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKind(pub u32);

#[allow(missing_docs, reason = "the names are those of the kernel and of perf")]
impl RecordKind {
    pub const MMAP: RecordKind = RecordKind(1);
    pub const LOST: RecordKind = RecordKind(2);
    pub const COMM: RecordKind = RecordKind(3);
    pub const EXIT: RecordKind = RecordKind(4);
    pub const THROTTLE: RecordKind = RecordKind(5);
    pub const FORK: RecordKind = RecordKind(7);
    pub const SAMPLE: RecordKind = RecordKind(9);
    pub const MMAP2: RecordKind = RecordKind(10);
    pub const AUX: RecordKind = RecordKind(11);
    pub const LOST_SAMPLES: RecordKind = RecordKind(13);
    pub const ATTR: RecordKind = RecordKind(64);
    pub const TRACING_DATA: RecordKind = RecordKind(66);
    pub const BUILD_ID: RecordKind = RecordKind(67);
    pub const AUXTRACE: RecordKind = RecordKind(71);
    pub const EVENT_UPDATE: RecordKind = RecordKind(78);
    pub const FEATURE: RecordKind = RecordKind(80);
    pub const COMPRESSED: RecordKind = RecordKind(81);
    pub const COMPRESSED2: RecordKind = RecordKind(83);

    /// Whether perf or the kernel writes records with this number. After damage, only such records are accepted.
    fn is_known(self) -> bool {
        matches!(self.0, 1..=22 | 64..=86)
    }

    /// Whether the kernel writes records of this kind. Such records end with a block of ids.
    pub(crate) fn is_of_kernel(self) -> bool {
        self.0 < 64
    }

    /// Returns perf's name for the kind. `None` if this version of profkit does not know the kind.
    pub fn name(self) -> Option<&'static str> {
        const KERNEL: [&str; 22] = [
            "MMAP",
            "LOST",
            "COMM",
            "EXIT",
            "THROTTLE",
            "UNTHROTTLE",
            "FORK",
            "READ",
            "SAMPLE",
            "MMAP2",
            "AUX",
            "ITRACE_START",
            "LOST_SAMPLES",
            "SWITCH",
            "SWITCH_CPU_WIDE",
            "NAMESPACES",
            "KSYMBOL",
            "BPF_EVENT",
            "CGROUP",
            "TEXT_POKE",
            "AUX_OUTPUT_HW_ID",
            "CALLCHAIN_DEFERRED",
        ];
        const PERF: [&str; 20] = [
            "ATTR",
            "EVENT_TYPE",
            "TRACING_DATA",
            "BUILD_ID",
            "FINISHED_ROUND",
            "ID_INDEX",
            "AUXTRACE_INFO",
            "AUXTRACE",
            "AUXTRACE_ERROR",
            "THREAD_MAP",
            "CPU_MAP",
            "STAT_CONFIG",
            "STAT",
            "STAT_ROUND",
            "EVENT_UPDATE",
            "TIME_CONV",
            "FEATURE",
            "COMPRESSED",
            "FINISHED_INIT",
            "COMPRESSED2",
        ];
        let (names, first): (&[&str], u32) = if self.0 < 64 {
            (&KERNEL, 1)
        } else {
            (&PERF, 64)
        };
        let index = usize::try_from(self.0.checked_sub(first)?).ok()?;
        names.get(index).copied()
    }
}

/// The header of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordHeader {
    pub kind: RecordKind,
    pub misc: u16,
    /// The size of the record with its header, in bytes.
    pub size: u16,
}

impl RecordHeader {
    /// Reads the header at the start of the bytes. `None` if there are too few bytes.
    pub fn read(bytes: &[u8], endian: Endian) -> Option<RecordHeader> {
        let [a, b, c, d, e, f, g, h] = *bytes.first_chunk::<RECORD_HEADER>()?;
        Some(RecordHeader {
            kind: RecordKind(endian.u32([a, b, c, d])),
            misc: endian.u16([e, f]),
            size: endian.u16([g, h]),
        })
    }

    /// Whether a record can have this size.
    pub fn is_sound(&self) -> bool {
        usize::from(self.size) >= RECORD_HEADER
    }
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'data> {
    /// The offset of the record in the file. For a decompressed record ([`Chunk::is_decompressed`]), the offset among
    /// all decompressed records.
    pub offset: u64,
    /// The kind of the record.
    pub kind: RecordKind,
    /// Flags, whose meaning depends on the kind. The lowest three bits state the mode of the processor.
    pub misc: u16,
    /// The bytes of the record after its header.
    pub body: &'data [u8],
}

/// The records of a [`Chunk`] in the order of the file.
#[derive(Clone, Debug)]
pub struct Records<'data> {
    bytes: &'data [u8],
    offset: u64,
    endian: Endian,
}

impl<'data> Records<'data> {
    pub(crate) fn new(bytes: &'data [u8], offset: u64, endian: Endian) -> Self {
        Records {
            bytes,
            offset,
            endian,
        }
    }
}

impl<'data> Iterator for Records<'data> {
    type Item = Record<'data>;

    #[inline]
    fn next(&mut self) -> Option<Record<'data>> {
        let header = RecordHeader::read(self.bytes, self.endian)?;
        let size = usize::from(header.size);
        let body = self.bytes.get(RECORD_HEADER..size)?;
        let offset = self.offset;
        self.bytes = self.bytes.get(size..)?;
        self.offset += u64::from(header.size);
        Some(Record {
            offset,
            kind: header.kind,
            misc: header.misc,
            body,
        })
    }
}
