//! Writes recordings of Linux perf, for tests. The layouts are those of the kernel's `perf_event.h` and of perf's
//! `perf.data-file-format.txt`. This module shares no code with the reader.
use crate::simulate::PerfMap;
use crate::{ByteBuilder, Endian};

/// This and the next constants are the bits of `sample_type` that are used here. A sample has its parts in the order of
/// these bits, except that the identifier comes first.
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const CALLCHAIN: u64 = 1 << 5;
const PERIOD: u64 = 1 << 8;
const BRANCH_STACK: u64 = 1 << 11;
const IDENTIFIER: u64 = 1 << 16;

/// The size in bytes of `perf_event_attr` if it has all fields up to those of `PERF_ATTR_SIZE_VER5`.
const ATTR: u32 = 112;

/// The size in bytes of a file's header.
const HEADER: u64 = 104;

/// A sample for the writer.
#[derive(Clone, Debug, Default)]
pub struct PerfSample {
    /// The number of the event.
    pub event: usize,
    /// The id of the process, and of its main thread.
    pub pid: u32,
    /// The time in nanoseconds.
    pub time: u64,
    /// The address.
    pub address: u64,
    /// The entries of the call chain. They are written only if events have call chains.
    pub chain: Vec<u64>,
    /// The branches: the address of each, its target and its flags. The newest branch is first. They are written only
    /// if events have branch stacks.
    pub branches: Vec<(u64, u64, u64)>,
    /// Whether the sample was taken in the kernel.
    pub in_kernel: bool,
    /// The period; 0 for the period of the event, 1000.
    pub period: u64,
}

/// Builds a recording. All its events have the same parts in their samples.
#[derive(Clone, Debug)]
pub struct PerfWriter {
    endian: Endian,
    sample_type: u64,
    events: Vec<&'static str>,
    records: Vec<u8>,
    precise: bool,
    branch_type: u64,
}

impl PerfWriter {
    /// Starts a recording with these events. If `chains` is true, samples have call chains; if `branches` is true,
    /// branch stacks.
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
            precise: false,
            // The bits for branches of every kind in user mode.
            branch_type: 1 | 1 << 3,
        }
    }

    /// Declares which branches are in branch stacks (`branch_sample_type`).
    pub fn branch_type(&mut self, kinds: u64) -> &mut Self {
        self.branch_type = kinds;
        self
    }

    /// Declares the addresses of samples as precise (`precise_ip`).
    pub fn precise(&mut self) -> &mut Self {
        self.precise = true;
        self
    }

    /// Returns the id that the samples of an event contain.
    fn id(event: usize) -> u64 {
        700 + event as u64
    }

    fn builder(&self) -> ByteBuilder {
        ByteBuilder::new(self.endian)
    }

    /// Returns the mask of a bit in a C bit field. On machines with big-endian numbers, bits are assigned from the
    /// other end.
    pub fn bit(&self, bit: u32) -> u64 {
        match self.endian {
            Endian::Little => 1 << bit,
            Endian::Big => 1 << (63 - bit),
        }
    }

    /// Adds a record with this kind, flags and body.
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

    /// Adds bytes, which need not be a valid record.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.records.extend(bytes);
        self
    }

    /// Adds a record of the kernel. At its end are the process, the time, and the identifier of the recording's first
    /// event.
    fn kernel_record(&mut self, kind: u32, misc: u16, mut body: ByteBuilder, pid: u32, time: u64) {
        let body = body.u32(pid).u32(pid).u64(time).u64(Self::id(0)).finish();
        self.record(kind, misc, &body);
    }

    /// Returns the text with a zero byte at its end, and with more zero bytes up to a multiple of 8.
    fn padded(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
        bytes
    }

    /// Adds the record of a process that maps a file.
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

    /// Adds the record of a process that maps a file with a build id, from the start of the file.
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

    /// Adds the record of a process that maps a file, or of the kernel's mapping if the process is -1.
    pub fn mmap2_at(&mut self, map: &PerfMap) -> &mut Self {
        let mut body = self.builder();
        body.u32(map.pid)
            .u32(map.pid)
            .u64(map.start)
            .u64(map.len)
            .u64(map.offset);
        let mut misc = if map.pid == u32::MAX { 1 } else { 2 };
        if map.build_id.is_empty() {
            // The device, the inode and its generation.
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

    /// Adds the record of a process that gets a name. If `exec` is true, the process has started another program.
    pub fn comm(&mut self, pid: u32, time: u64, name: &str, exec: bool) -> &mut Self {
        let mut body = self.builder();
        body.u32(pid).u32(pid).bytes(Self::padded(name));
        self.kernel_record(3, if exec { 1 << 13 } else { 0 }, body, pid, time);
        self
    }

    /// Adds the record of a process that forks.
    pub fn fork(&mut self, pid: u32, parent: u32, time: u64) -> &mut Self {
        let mut body = self.builder();
        body.u32(pid).u32(parent).u32(pid).u32(parent).u64(time);
        self.kernel_record(7, 0, body, parent, time);
        self
    }

    /// Adds the record of a process that ends.
    pub fn exit(&mut self, pid: u32, time: u64) -> &mut Self {
        let mut body = self.builder();
        body.u32(pid).u32(1).u32(pid).u32(1).u64(time);
        self.kernel_record(4, 0, body, pid, time);
        self
    }

    /// Adds a record that reports lost records of the first event.
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
            .u64(if sample.period == 0 {
                1000
            } else {
                sample.period
            });
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

    /// Replaces all records, for example by compressed records.
    pub fn set_records(&mut self, records: Vec<u8>) -> &mut Self {
        self.records = records;
        self
    }

    fn attr(&self, event: usize) -> Vec<u8> {
        let mut flags = self.bit(8) | self.bit(9) | self.bit(13) | self.bit(18) | self.bit(24);
        if self.precise {
            flags |= self.bit(16);
        }
        let branches = if self.sample_type & BRANCH_STACK != 0 {
            self.branch_type
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

    /// Returns the recording as a file. The names of its events are in a feature section.
    pub fn file(&self) -> Vec<u8> {
        let size = self.records.len() as u64;
        [self.head(size), self.records.clone(), self.tail(size)].concat()
    }

    /// Returns the bytes that come before the records in a file. `size` is the size of the records in bytes.
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
            // The file has one feature, the names of the events.
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

    /// Returns the offset of the records in a file.
    fn data_offset(&self) -> u64 {
        HEADER + (8 + u64::from(ATTR) + 16) * self.events.len() as u64
    }

    /// Returns the bytes that come after the records in a file: the names of the events. `size` is the size of the
    /// records in bytes.
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

    /// Returns the recording in the form that perf writes to a pipe, with the names of its events.
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
