//! The outputs of a simulation: a file in perf's form, or the text of `perf script`. Both are written while the
//! simulation runs, so a recording can be larger than the memory.
use crate::{Endian, PerfSample, PerfWriter};
use std::io::{self, Seek, SeekFrom, Write};

/// A piece of code that a process maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfMap {
    /// The process.
    pub pid: u32,
    /// The time in nanoseconds.
    pub time: u64,
    /// The address.
    pub start: u64,
    /// The size in bytes.
    pub len: u64,
    /// The offset in the file.
    pub offset: u64,
    /// The path of the file.
    pub path: String,
    /// The build id; empty if there is none.
    pub build_id: Vec<u8>,
}

/// An event of a recording.
#[derive(Clone, Debug)]
pub enum PerfEvent<'e> {
    /// A process maps code.
    Map(&'e PerfMap),
    /// A process gets a name, or starts another program.
    Name {
        /// The process.
        pid: u32,
        /// The time.
        time: u64,
        /// The name.
        name: &'e str,
        /// Whether the process starts another program.
        exec: bool,
    },
    /// A process forks.
    Fork {
        /// The new process.
        pid: u32,
        /// The process that forks.
        parent: u32,
        /// The time.
        time: u64,
    },
    /// A process ends.
    Exit {
        /// The process.
        pid: u32,
        /// The time.
        time: u64,
    },
    /// Records were lost.
    Lost {
        /// The number of lost records.
        count: u64,
        /// When.
        time: u64,
    },
    /// A sample.
    Sample(&'e PerfSample),
}

/// A receiver of the events of a recording. The events come in the order of time.
pub trait PerfSink {
    /// Receives an event.
    ///
    /// # Errors
    /// If it cannot be written.
    fn event(&mut self, event: &PerfEvent<'_>) -> io::Result<()>;
}

impl PerfSink for PerfWriter {
    fn event(&mut self, event: &PerfEvent<'_>) -> io::Result<()> {
        match event {
            PerfEvent::Map(map) => self.mmap2_at(map),
            PerfEvent::Name {
                pid,
                time,
                name,
                exec,
            } => self.comm(*pid, *time, name, *exec),
            PerfEvent::Fork { pid, parent, time } => self.fork(*pid, *parent, *time),
            PerfEvent::Exit { pid, time } => self.exit(*pid, *time),
            PerfEvent::Lost { count, time } => self.lost(*count, *time),
            PerfEvent::Sample(sample) => self.sample(sample),
        };
        Ok(())
    }
}

/// Writes a recording to a file, piece by piece.
#[derive(Debug)]
pub struct PerfFile<W: Write + Seek> {
    writer: PerfWriter,
    file: W,
    size: u64,
}

/// The records are written to the file when they have this number of bytes.
const PIECE: usize = 1 << 20;

impl<W: Write + Seek> PerfFile<W> {
    /// Starts a file. `writer` determines the events of the recording.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(writer: PerfWriter, mut file: W) -> io::Result<Self> {
        file.write_all(&writer.head(0))?;
        Ok(PerfFile {
            writer,
            file,
            size: 0,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.size += self.writer.records().len() as u64;
        self.file.write_all(self.writer.records())?;
        self.writer.set_records(Vec::new());
        Ok(())
    }

    /// Returns the number of bytes of records so far, including those that are not written yet.
    pub fn size(&self) -> u64 {
        self.size + self.writer.records().len() as u64
    }

    /// Writes the remaining records, the end of the file, and the sizes in the header.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.file.write_all(&self.writer.tail(self.size))?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.writer.head(self.size))?;
        self.file.flush()
    }
}

impl<W: Write + Seek> PerfSink for PerfFile<W> {
    fn event(&mut self, event: &PerfEvent<'_>) -> io::Result<()> {
        self.writer.event(event)?;
        if self.writer.records().len() > PIECE {
            self.flush()?;
        }
        Ok(())
    }
}

/// Writes a recording in the form of `perf script --show-mmap-events -F ip,brstack`.
#[derive(Debug)]
pub struct PerfScript<W: Write> {
    file: W,
    chains: bool,
}

impl<W: Write> PerfScript<W> {
    /// Starts a text. With call chains, a sample has one line for each address in its call chain.
    pub fn new(file: W, chains: bool) -> Self {
        PerfScript { file, chains }
    }

    /// Returns the writer to which the text was written.
    pub fn into_inner(self) -> W {
        self.file
    }
}

/// Whether an entry of a call chain is a marker and not an address.
fn is_marker(address: u64) -> bool {
    address >= 0u64.wrapping_sub(4095)
}

impl<W: Write> PerfSink for PerfScript<W> {
    fn event(&mut self, event: &PerfEvent<'_>) -> io::Result<()> {
        match event {
            PerfEvent::Map(map) => {
                // `perf script` prints -1 for the kernel.
                let pid = map.pid.cast_signed();
                let seconds = map.time / 1_000_000_000;
                let micro = map.time / 1000 % 1_000_000;
                writeln!(
                    self.file,
                    "program {pid} [000] {seconds:5}.{micro:06}: PERF_RECORD_MMAP2 {pid}/{pid}: [{:#x}({:#x}) @ {:#x} 00:00 0 0]: r-xp {}",
                    map.start, map.len, map.offset, map.path
                )
            }
            PerfEvent::Sample(sample) => {
                if self.chains {
                    for address in sample.chain.iter().filter(|it| !is_marker(**it)) {
                        writeln!(self.file, "{address:>17x}")?;
                    }
                } else {
                    write!(self.file, "{:>17x} ", sample.address)?;
                }
                for (from, to, flags) in &sample.branches {
                    let mark = if flags & 1 != 0 { 'M' } else { 'P' };
                    let cycles = flags >> 4 & 0xffff;
                    write!(self.file, " {from:#x}/{to:#x}/{mark}/-/-/{cycles}")?;
                }
                self.file.write_all(b"\n")?;
                if self.chains {
                    self.file.write_all(b"\n")?;
                }
                Ok(())
            }
            PerfEvent::Name { .. }
            | PerfEvent::Fork { .. }
            | PerfEvent::Exit { .. }
            | PerfEvent::Lost { .. } => Ok(()),
        }
    }
}

/// Passes each event to two receivers.
impl<A: PerfSink, B: PerfSink> PerfSink for (&mut A, &mut B) {
    fn event(&mut self, event: &PerfEvent<'_>) -> io::Result<()> {
        self.0.event(event)?;
        self.1.event(event)
    }
}

/// Returns a writer for simulated recordings. They have one event, which counts taken branches.
pub(super) fn writer(chains: bool) -> PerfWriter {
    PerfWriter::new(
        Endian::Little,
        &["br_inst_retired.near_taken:u"],
        chains,
        true,
    )
}
