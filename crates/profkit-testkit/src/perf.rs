//! Writes recordings of Linux perf, for tests. The layouts are those of the kernel's `perf_event.h` and of perf's
//! `perf.data-file-format.txt`; nothing is shared with the reader.
use crate::simulate::PerfMap;
use crate::{ByteBuilder, Endian};

/// Bits of `sample_type`, in the order of the parts in a sample.
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const CALLCHAIN: u64 = 1 << 5;
const PERIOD: u64 = 1 << 8;
const BRANCH_STACK: u64 = 1 << 11;
const IDENTIFIER: u64 = 1 << 16;

/// The size of an event, in bytes: the kernel's version 5.
const ATTR: u32 = 112;

/// The size of a file's header, in bytes.
const HEADER: u64 = 104;

/// A sample that is written.
#[derive(Clone, Debug, Default)]
pub struct PerfSample {
    /// The number of the event.
    pub event: usize,
    /// The process, and its main thread.
    pub pid: u32,
    /// The time in nanoseconds.
    pub time: u64,
    /// The address.
    pub address: u64,
    /// The entries of the call chain, if events have call chains.
    pub chain: Vec<u64>,
    /// The branches from and to an address, with flags, if events have branch stacks. The newest is the first.
    pub branches: Vec<(u64, u64, u64)>,
    /// Whether the kernel ran.
    pub in_kernel: bool,
}

/// A recording that is written. All events have the same parts.
#[derive(Clone, Debug)]
pub struct PerfWriter {
    endian: Endian,
    sample_type: u64,
    events: Vec<&'static str>,
    records: Vec<u8>,
}

impl PerfWriter {
    /// Starts a recording of these events. Samples have call chains or branch stacks if asked for.
    pub fn new(endian: Endian, events: &[&'static str], chains: bool, branches: bool) -> Self {
        let mut sample_type = IP | TID | TIME | PERIOD | IDENTIFIER;
        if chains {
            sample_type |= CALLCHAIN;
        }
        if branches {
            sample_type |= BRANCH_STACK;
        }
        PerfWriter {
            endian,
            sample_type,
            events: events.to_vec(),
            records: Vec::new(),
        }
    }

    /// The id in the samples of an event.
    fn id(event: usize) -> u64 {
        700 + event as u64
    }

    fn builder(&self) -> ByteBuilder {
        ByteBuilder::new(self.endian)
    }

    /// A bit of a C bit field: machines with big-endian numbers fill it from the other end.
    pub fn bit(&self, bit: u32) -> u64 {
        match self.endian {
            Endian::Little => 1 << bit,
            Endian::Big => 1 << (63 - bit),
        }
    }

    /// Adds a record as it is.
    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) -> &mut Self {
        let size = u16::try_from(8 + body.len()).expect("records are below 64 KiB");
        let record = self
            .builder()
            .u32(kind)
            .u16(misc)
            .u16(size)
            .bytes(body)
            .finish();
        self.records.extend(record);
        self
    }

    /// Adds bytes that need not be a record.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.records.extend(bytes);
        self
    }

    /// A record of the kernel, which ends with process, time and identifier.
    fn kernel_record(&mut self, kind: u32, misc: u16, mut body: ByteBuilder, pid: u32, time: u64) {
        let body = body.u32(pid).u32(pid).u64(time).u64(Self::id(0)).finish();
        self.record(kind, misc, &body);
    }

    /// Text with a zero byte at its end, padded to words.
    fn padded(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
        bytes
    }

    /// A process maps a file.
    pub fn mmap(
        &mut self,
        pid: u32,
        time: u64,
        start: u64,
        len: u64,
        offset: u64,
        path: &str,
    ) -> &mut Self {
        let mut body = self.builder();
        body.u32(pid)
            .u32(pid)
            .u64(start)
            .u64(len)
            .u64(offset)
            .bytes(Self::padded(path));
        self.kernel_record(1, 2, body, pid, time);
        self
    }

    /// A process maps a file with a build id, from its start on.
    pub fn mmap2(
        &mut self,
        pid: u32,
        time: u64,
        start: u64,
        len: u64,
        path: &str,
        build_id: &[u8],
    ) -> &mut Self {
        self.mmap2_at(&PerfMap {
            pid,
            time,
            start,
            len,
            offset: 0,
            path: path.to_owned(),
            build_id: build_id.to_vec(),
        })
    }

    /// A process maps a file; or the kernel has one, if the process is -1.
    pub fn mmap2_at(&mut self, map: &PerfMap) -> &mut Self {
        let mut body = self.builder();
        body.u32(map.pid)
            .u32(map.pid)
            .u64(map.start)
            .u64(map.len)
            .u64(map.offset);
        let mut misc = if map.pid == u32::MAX { 1 } else { 2 };
        if map.build_id.is_empty() {
            // Device, inode and its generation.
            body.zeros(24);
        } else {
            let mut id = map.build_id.clone();
            id.resize(20, 0);
            let size = u8::try_from(map.build_id.len()).expect("at most 20 bytes");
            body.bytes([size, 0, 0, 0]).bytes(&id);
            misc |= 1 << 14;
        }
        body.u32(5).u32(2).bytes(Self::padded(&map.path));
        self.kernel_record(10, misc, body, map.pid, map.time);
        self
    }

    /// A process takes a name; with `exec`, it starts another program.
    pub fn comm(&mut self, pid: u32, time: u64, name: &str, exec: bool) -> &mut Self {
        let mut body = self.builder();
        body.u32(pid).u32(pid).bytes(Self::padded(name));
        self.kernel_record(3, if exec { 1 << 13 } else { 0 }, body, pid, time);
        self
    }

    /// A process forks.
    pub fn fork(&mut self, pid: u32, parent: u32, time: u64) -> &mut Self {
        let mut body = self.builder();
        body.u32(pid).u32(parent).u32(pid).u32(parent).u64(time);
        self.kernel_record(7, 0, body, parent, time);
        self
    }

    /// A process ends.
    pub fn exit(&mut self, pid: u32, time: u64) -> &mut Self {
        let mut body = self.builder();
        body.u32(pid).u32(1).u32(pid).u32(1).u64(time);
        self.kernel_record(4, 0, body, pid, time);
        self
    }

    /// Records of the first event are lost.
    pub fn lost(&mut self, count: u64, time: u64) -> &mut Self {
        let mut body = self.builder();
        body.u64(Self::id(0)).u64(count);
        self.kernel_record(2, 0, body, 0, time);
        self
    }

    /// Adds a sample.
    pub fn sample(&mut self, sample: &PerfSample) -> &mut Self {
        let mut body = self.builder();
        body.u64(Self::id(sample.event))
            .u64(sample.address)
            .u32(sample.pid)
            .u32(sample.pid)
            .u64(sample.time)
            .u64(1000);
        if self.sample_type & CALLCHAIN != 0 {
            body.u64(sample.chain.len() as u64);
            for &address in &sample.chain {
                body.u64(address);
            }
        }
        if self.sample_type & BRANCH_STACK != 0 {
            body.u64(sample.branches.len() as u64);
            for &(from, to, flags) in &sample.branches {
                body.u64(from).u64(to).u64(flags);
            }
        }
        let misc = if sample.in_kernel { 1 } else { 2 };
        self.record(9, misc, &body.finish())
    }

    /// The records so far.
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// Replaces all records, for example by compressed ones.
    pub fn set_records(&mut self, records: Vec<u8>) -> &mut Self {
        self.records = records;
        self
    }

    fn attr(&self, event: usize) -> Vec<u8> {
        let flags = self.bit(8) | self.bit(9) | self.bit(13) | self.bit(18) | self.bit(24);
        // Any branch of programs.
        let branches = if self.sample_type & BRANCH_STACK != 0 {
            1 | 1 << 3
        } else {
            0
        };
        self.builder()
            .u32(4)
            .u32(ATTR)
            .u64(event as u64)
            .u64(1000)
            .u64(self.sample_type)
            .u64(0)
            .u64(flags)
            .zeros(24)
            .u64(branches)
            .zeros(ATTR as usize - 80)
            .finish()
    }

    fn magic(&self) -> &'static [u8] {
        match self.endian {
            Endian::Little => b"PERFILE2",
            Endian::Big => b"2ELIFREP",
        }
    }

    /// The recording as a file with the names of its events.
    pub fn file(&self) -> Vec<u8> {
        let size = self.records.len() as u64;
        [self.head(size), self.records.clone(), self.tail(size)].concat()
    }

    /// What a file has before its `size` bytes of records.
    pub fn head(&self, size: u64) -> Vec<u8> {
        let events = self.events.len() as u64;
        let ids = HEADER;
        let attrs = ids + 8 * events;
        let entry = u64::from(ATTR) + 16;
        let mut file = self.builder();
        file.bytes(self.magic())
            .u64(HEADER)
            .u64(entry)
            .u64(attrs)
            .u64(entry * events)
            .u64(self.data_offset())
            .u64(size)
            .zeros(16)
            // One feature: the names of the events.
            .u64(1 << 12)
            .zeros(24);
        for event in 0..self.events.len() {
            file.u64(Self::id(event));
        }
        for event in 0..self.events.len() {
            file.bytes(self.attr(event))
                .u64(ids + 8 * event as u64)
                .u64(8);
        }
        file.finish()
    }

    /// Where the records of a file begin.
    fn data_offset(&self) -> u64 {
        HEADER + (8 + u64::from(ATTR) + 16) * self.events.len() as u64
    }

    /// What a file has after its `size` bytes of records: the names of the events.
    pub fn tail(&self, size: u64) -> Vec<u8> {
        let events = u32::try_from(self.events.len()).expect("few events");
        let mut names = self.builder();
        names.u32(events).u32(ATTR);
        for (event, name) in self.events.iter().enumerate() {
            let text = Self::padded(name);
            names
                .bytes(self.attr(event))
                .u32(1)
                .u32(u32::try_from(text.len()).expect("a short name"))
                .bytes(&text)
                .u64(Self::id(event));
        }
        let names = names.finish();
        self.builder()
            .u64(self.data_offset() + size + 16)
            .u64(names.len() as u64)
            .bytes(&names)
            .finish()
    }

    /// The recording as perf writes it to a pipe, with the names of its events.
    pub fn pipe(&self) -> Vec<u8> {
        let mut head = PerfWriter {
            records: Vec::new(),
            ..self.clone()
        };
        for (event, name) in self.events.iter().enumerate() {
            let mut attr = self.builder();
            attr.bytes(self.attr(event)).u64(Self::id(event));
            head.record(64, 0, &attr.finish());
            let mut update = self.builder();
            update.u64(2).u64(Self::id(event)).bytes(Self::padded(name));
            head.record(78, 0, &update.finish());
        }
        self.builder()
            .bytes(self.magic())
            .u64(16)
            .bytes(&head.records)
            .bytes(&self.records)
            .finish()
    }
}
