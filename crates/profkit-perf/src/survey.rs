//! A recording and the first pass over its records, which finds events, processes and losses.
use crate::events::{self, Event, Events};
use crate::figures::Figures;
use crate::file::{BuildIdEntry, Features, Form, Head, Section};
use crate::limits;
use crate::losses::Losses;
use crate::process::{Binary, KERNEL, Processes, offset_of_mapping};
use crate::record::{self, Chunk, Chunks, Mapping, Record, RecordKind};
use crate::sample::{Mode, Sample};
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::ids::BuildId;
use profkit_data::{Error, ErrorKind, Result};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A recording of Linux perf, after the first pass over its records.
///
/// ```no_run
/// use profkit_perf::Recording;
///
/// let bytes = std::fs::read("perf.data")?;
/// let recording = Recording::open(&bytes)?;
/// // The sum of something over all samples, with several threads.
/// let (branches, losses) = recording.samples(
///     || 0,
///     |sum, sample| *sum += sample.branches.iter().count(),
///     |sum, other| *sum += other,
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Recording<'data> {
    head: Head<'data>,
    sections: Vec<Section<'data>>,
    features: Features<'data>,
    events: Events,
    processes: Processes,
    counts: BTreeMap<RecordKind, u64>,
    losses: Losses,
    compressed: bool,
    release: &'data Release<'data>,
}

/// A function that is called with bytes of a recording after one pass has read all records in them. The bytes may be
/// read again, but not soon. So the owner of a mapped file can free their memory.
pub type Release<'a> = dyn Fn(&[u8]) + Sync + 'a;

impl std::fmt::Debug for Recording<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording")
            .field("head", &self.head)
            .field("events", &self.events)
            .field("counts", &self.counts)
            .field("losses", &self.losses)
            .field("compressed", &self.compressed)
            .finish_non_exhaustive()
    }
}

/// A record that changes the name, the parent or the mappings of a process.
enum Change<'data> {
    Map(Mapping<'data>),
    Exec { pid: u32, name: &'data [u8] },
    Rename { pid: u32, name: &'data [u8] },
    Fork { pid: u32, parent: u32 },
}

/// The results of the first pass over the records.
struct Survey<'data> {
    endian: Endian,
    events: Vec<Event>,
    /// The names of events in a pipe, which are separate records. The key is an id of the event.
    names: FxHashMap<u64, &'data [u8]>,
    features: Features<'data>,
    build_ids: Vec<BuildIdEntry<'data>>,
    counts: BTreeMap<RecordKind, u64>,
    losses: Losses,
}

impl<'data> Recording<'data> {
    /// Opens a recording, which is a file or the stream that perf wrote to a pipe. Reads everything except the samples.
    ///
    /// # Errors
    /// [`ErrorKind::Empty`] and [`ErrorKind::BadMagic`] if the bytes are no recording, [`ErrorKind::BadHeader`] if its
    /// header is damaged, [`ErrorKind::Malformed`] if it has no event, and [`ErrorKind::Unsupported`] if its samples
    /// could belong to several events. Damage in single records is not an error ([`losses`](Self::losses)).
    pub fn open(data: &'data [u8]) -> Result<Self> {
        Self::open_folder(data, &[])
    }

    /// Opens a recording that perf wrote to a folder with `--threads`. `head` is the file `data` of the folder; `parts`
    /// are the files `data.0`, `data.1` and so on, which contain only records.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_folder(head: &'data [u8], parts: &[&'data [u8]]) -> Result<Self> {
        Self::open_releasing(head, parts, &|_| {})
    }

    /// Opens a recording as [`open_folder`](Self::open_folder) does. After a pass has read a run of records, `release`
    /// is called with their bytes, so that a large file needs little memory.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_releasing(
        head: &'data [u8],
        parts: &[&'data [u8]],
        release: &'data Release<'data>,
    ) -> Result<Self> {
        let data = head;
        if data.is_empty() {
            return Err(Error::new(ErrorKind::Empty, "the file is empty"));
        }
        let mut head = Head::parse(data)?;
        let mut sections = vec![head.records];
        if !parts.is_empty() {
            head.form = Form::Folder;
            sections.extend(parts.iter().map(|&bytes| Section { offset: 0, bytes }));
        }
        let (features, damaged_features) = Features::of_file(data, &head);
        let events = if head.form == Form::Pipe {
            Vec::new()
        } else {
            events::of_file(data, &head)?
        };
        let mut survey = Survey {
            endian: head.endian,
            events,
            names: FxHashMap::default(),
            build_ids: Vec::new(),
            features,
            counts: BTreeMap::new(),
            losses: Losses {
                unfinished: head.unfinished,
                damaged_features,
                ..Losses::default()
            },
        };
        let in_pipe = head.form == Form::Pipe;
        // The records that describe the recording are never compressed.
        if in_pipe || survey.features.build_ids.is_empty() {
            for chunk in Chunks::new(sections.clone(), head.endian, true) {
                let Some(records) = chunk.borrowed() else {
                    break;
                };
                for record in records {
                    survey.description(&record, &head);
                }
                chunk.in_file().into_iter().for_each(release);
            }
        }
        let events = Events::new(
            std::mem::take(&mut survey.events),
            &survey.names,
            &survey.features,
            head.endian,
        )?;
        let mut chunks = Chunks::new(sections.clone(), head.endian, in_pipe);
        let mut changes = Changes::default();
        let mut compressed = survey.features.compressed;
        for chunk in &mut chunks {
            compressed |= chunk.is_decompressed();
            changes.of_chunk(&chunk, &events, &mut survey);
            if let Some(bytes) = chunk.in_file() {
                release(bytes);
            }
        }
        let mut losses = survey.losses;
        let damage = chunks.losses();
        losses.skipped_bytes = damage.skipped_bytes;
        losses.first_skipped = damage.first_skipped;
        losses.cut_at = damage.cut_at;
        losses.compression.clone_from(&damage.compression);
        for (&kind, count) in chunks.passed() {
            *survey.counts.entry(kind).or_default() += count;
        }
        let traces = survey.counts.get(&RecordKind::AUXTRACE);
        losses.traces = traces.copied().unwrap_or(0);
        let mut ids = std::mem::take(&mut survey.features.build_ids);
        ids.append(&mut survey.build_ids);
        let processes = changes.apply(&ids, &mut losses);
        Ok(Recording {
            head,
            sections,
            features: survey.features,
            events,
            processes,
            counts: survey.counts,
            losses,
            compressed,
            release,
        })
    }

    /// Returns the form of the recording.
    pub fn form(&self) -> Form {
        self.head.form
    }

    /// Returns the byte order of the recorded machine.
    pub fn endian(&self) -> Endian {
        self.head.endian
    }

    /// Whether records are compressed.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Returns the content of the feature sections, which describe how and where the recording was made.
    pub fn features(&self) -> &Features<'data> {
        &self.features
    }

    /// The events.
    pub fn events(&self) -> &[Event] {
        self.events.list()
    }

    /// Returns the mappings of each process over time.
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Returns the number of records of each kind.
    pub fn record_counts(&self) -> &BTreeMap<RecordKind, u64> {
        &self.counts
    }

    /// Returns the losses of the recording, except for damage inside samples, which [`samples`](Self::samples) reports.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns an iterator over all records, in chunks.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'data>> + Send + 'data {
        let in_pipe = self.head.form == Form::Pipe;
        Chunks::new(self.sections.clone(), self.head.endian, in_pipe)
    }

    /// Calls `take` for each mapping of a file, in the order of the records. Damaged records are left out.
    pub fn mappings(&self, mut take: impl FnMut(&Mapping<'_>)) {
        for chunk in self.chunks() {
            for record in chunk.records() {
                let second = record.kind == RecordKind::MMAP2;
                if !second && record.kind != RecordKind::MMAP {
                    continue;
                }
                let plan = self.events.block(record.body);
                let body = plan.map_or(record.body, |plan| plan.block.strip(record.body));
                if let Ok(mapping) = Mapping::parse(body, record.misc, second, self.head.endian) {
                    take(&mapping);
                }
            }
        }
    }

    /// Decodes all samples with the threads of rayon's current pool, and adds up a result over them. `new` makes an
    /// empty result for a thread, `take` adds a sample to it, and `join` adds the result of another thread. The samples
    /// come in no particular order. Returns the result and all losses, including those that only decoding finds.
    pub fn samples<T: Send>(
        &self,
        new: impl Fn() -> T + Sync,
        take: impl Fn(&mut T, &Sample<'_>) + Sync,
        join: impl Fn(&mut T, T) + Sync,
    ) -> (T, Losses) {
        let (sum, found) = self
            .chunks()
            .par_bridge()
            .fold(
                || (new(), Losses::default()),
                |(mut sum, mut losses), chunk| {
                    for record in chunk.records() {
                        if record.kind == RecordKind::SAMPLE
                            && let Some(sample) = self.events.decode(&record, &mut losses)
                        {
                            take(&mut sum, &sample);
                        }
                    }
                    if let Some(bytes) = chunk.in_file() {
                        (self.release)(bytes);
                    }
                    (sum, losses)
                },
            )
            .reduce(
                || (new(), Losses::default()),
                |(mut sum, mut losses), (other, theirs)| {
                    join(&mut sum, other);
                    losses.add(&theirs);
                    (sum, losses)
                },
            );
        let mut losses = self.losses.clone();
        losses.add(&found);
        (sum, losses)
    }

    /// Returns the place at which a sample was taken: the binary and the offset in it. `None` if no file was mapped
    /// there.
    pub fn locate(&self, sample: &Sample<'_>) -> Option<crate::Located> {
        let in_kernel = sample.mode == Mode::Kernel;
        self.processes
            .locate_in_mode(in_kernel, sample.pid, Some(sample.when()), sample.address)
    }

    /// Returns the number of samples of each event, each binary and each process.
    pub fn figures(&self) -> Figures {
        Figures::of(self)
    }
}

impl Sample<'_> {
    /// Returns the time of the sample. If the recording has no times, returns the offset of the record instead, because
    /// the records of such a recording are in the order of time.
    pub fn when(&self) -> u64 {
        self.time.unwrap_or(self.offset)
    }
}

impl<'data> Survey<'data> {
    /// Reads a record of a pipe that describes the recording: an event, its name, or a feature.
    fn description(&mut self, record: &Record<'data>, head: &Head<'data>) {
        let mut cursor = Cursor::new(record.body, record.offset + 8, self.endian);
        let read = match record.kind {
            RecordKind::ATTR if self.events.len() < limits::EVENTS => {
                Event::of_record(record.body, self.endian).map(|event| self.events.push(event))
            }
            RecordKind::EVENT_UPDATE => self.update(&mut cursor),
            RecordKind::FEATURE => cursor.u64().and_then(|number| {
                let section = Section {
                    offset: cursor.offset(),
                    bytes: cursor.rest(),
                };
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                self.features.take(number, section, head)
            }),
            // perf writes records with build ids only to pipes, but `perf inject -b` also writes them to files.
            RecordKind::BUILD_ID => BuildIdEntry::parse(&mut cursor, record.misc)
                .map(|entry| self.build_ids.push(entry)),
            _ => Ok(()),
        };
        self.losses.damaged_features += u64::from(read.is_err());
    }

    /// Reads a record that changes an event. Only a change of the name is kept.
    fn update(&mut self, cursor: &mut Cursor<'data>) -> Result<()> {
        const NAME: u64 = 2;
        let what = cursor.u64()?;
        let id = cursor.u64()?;
        if what == NAME {
            let text = cursor.rest();
            let end = memchr::memchr(0, text).unwrap_or(text.len());
            self.names.insert(id, text.get(..end).unwrap_or_default());
        }
        Ok(())
    }

    /// Counts a record by its kind. Also counts the losses that the record reports.
    fn count(&mut self, record: &Record<'_>) {
        *self.counts.entry(record.kind).or_default() += 1;
        let word = |at: usize| {
            let word = record.body.get(at..).and_then(|body| body.first_chunk());
            word.map(|word| self.endian.u64(*word))
        };
        let losses = &mut self.losses;
        let sum = match record.kind {
            RecordKind::LOST => word(8).map(|lost| (&mut losses.lost_records, lost)),
            RecordKind::LOST_SAMPLES => word(0).map(|lost| (&mut losses.lost_samples, lost)),
            RecordKind::THROTTLE => Some((&mut losses.throttled, 1)),
            // Bit 0 of the flags means that the trace was cut, and bit 3 that two traces collided.
            RecordKind::AUX => {
                word(16).map(|flags| (&mut losses.cut_traces, u64::from(flags & 0b1001 != 0)))
            }
            _ => return,
        };
        match sum {
            Some((sum, number)) => *sum = sum.saturating_add(number),
            None => losses.damaged_records += 1,
        }
    }
}

/// The changes that records make to the mappings and names of processes, each with its time. This list does not borrow
/// from the recording: the paths, names and build ids in it are copies.
#[derive(Default)]
struct Changes {
    list: Vec<(u64, OwnedChange)>,
    /// The number of bytes of the records from which the changes come, without the headers of the records.
    bytes: usize,
}

/// A [`Change`] that owns its paths and names.
enum OwnedChange {
    Map {
        pid: u32,
        range: (u64, u64),
        page_offset: u64,
        path: Vec<u8>,
        build_id: Vec<u8>,
        anonymous: bool,
    },
    Exec(u32, Vec<u8>),
    Rename(u32, Vec<u8>),
    Fork(u32, u32),
}

impl Change<'_> {
    fn into_owned(self) -> OwnedChange {
        match self {
            Change::Map(mapping) => OwnedChange::Map {
                pid: mapping.pid,
                range: (mapping.start, mapping.start.saturating_add(mapping.len)),
                page_offset: mapping.page_offset,
                path: mapping.path.to_vec(),
                anonymous: mapping.is_anonymous(),
                build_id: mapping.build_id,
            },
            Change::Exec { pid, name } => OwnedChange::Exec(pid, name.to_vec()),
            Change::Rename { pid, name } => OwnedChange::Rename(pid, name.to_vec()),
            Change::Fork { pid, parent } => OwnedChange::Fork(pid, parent),
        }
    }
}

impl Changes {
    fn of_chunk<'data>(
        &mut self,
        chunk: &Chunk<'data>,
        events: &Events,
        survey: &mut Survey<'data>,
    ) {
        for record in chunk.records() {
            survey.count(&record);
            let endian = survey.endian;
            let mut body = record.body;
            let mut time = None;
            if record.kind.is_of_kernel()
                && record.kind != RecordKind::SAMPLE
                && let Some(plan) = events.block(body)
            {
                time = plan.block.time(body, endian);
                body = plan.block.strip(body);
            }
            let change = match record.kind {
                RecordKind::MMAP | RecordKind::MMAP2 => {
                    let second = record.kind == RecordKind::MMAP2;
                    Mapping::parse(body, record.misc, second, endian)
                        .map(|mapping| mapping.executable.then_some(Change::Map(mapping)))
                }
                RecordKind::COMM => record::comm(body, endian).map(|(pid, tid, name)| {
                    // Bit 13 of `misc` means that the process has started another program.
                    if record.misc & 1 << 13 != 0 {
                        Some(Change::Exec { pid, name })
                    } else {
                        (pid == tid).then_some(Change::Rename { pid, name })
                    }
                }),
                RecordKind::FORK => record::task(body, endian).map(|task| {
                    time = time.or(Some(task.time).filter(|&time| time != 0));
                    (task.pid != task.parent).then_some(Change::Fork {
                        pid: task.pid,
                        parent: task.parent,
                    })
                }),
                _ => Ok(None),
            };
            match change {
                Ok(None) => {}
                Ok(Some(_)) if self.bytes >= limits::CHANGE_BYTES => {
                    survey.losses.mappings_over_limit += 1;
                }
                Ok(Some(change)) => {
                    self.bytes += record.body.len();
                    let when = time.unwrap_or(record.offset);
                    self.list.push((when, change.into_owned()));
                }
                Err(_) => survey.losses.damaged_records += 1,
            }
        }
    }

    /// Applies the changes to the processes in the order of time.
    fn apply(mut self, build_ids: &[BuildIdEntry<'_>], losses: &mut Losses) -> Processes {
        self.list.sort_by_key(|(time, _)| *time);
        let by_path: FxHashMap<&[u8], &BuildIdEntry<'_>> = build_ids
            .iter()
            .filter(|entry| !entry.id.is_empty())
            .map(|entry| (entry.path, entry))
            .collect();
        let mut processes = Processes::default();
        for (time, change) in self.list {
            match change {
                OwnedChange::Map {
                    pid,
                    range,
                    page_offset,
                    path,
                    build_id,
                    anonymous,
                } => {
                    let page_offset = offset_of_mapping(&path, range.0, page_offset);
                    let binary = (!anonymous).then(|| {
                        let known = by_path.get(path.as_slice()).or_else(|| {
                            // perf appends a symbol of the kernel to the name of the kernel's mapping:
                            // "[kernel.kallsyms]_text".
                            let end = path.iter().position(|&byte| byte == b']')?;
                            by_path.get(path.get(..=end)?)
                        });
                        let build_id = match known {
                            _ if !build_id.is_empty() => Some(build_id),
                            known => known.map(|entry| entry.id.clone()),
                        };
                        processes.number(Binary {
                            kernel: pid == KERNEL || known.is_some_and(|entry| entry.kernel),
                            path,
                            build_id: build_id.map(BuildId),
                        })
                    });
                    let kept = processes.map(pid, time, range, page_offset, binary);
                    losses.mappings_over_limit += u64::from(!kept);
                }
                OwnedChange::Exec(pid, name) => {
                    processes.exec(pid, time);
                    processes.rename(pid, time, &name);
                }
                OwnedChange::Rename(pid, name) => processes.rename(pid, time, &name),
                OwnedChange::Fork(pid, parent) => processes.fork(pid, parent, time),
            }
        }
        processes
    }
}
