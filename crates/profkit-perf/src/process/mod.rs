//! What each process had mapped at which time, and from there: which binary an address belongs to.
mod space;

use crate::limits;
use profkit_data::ids::BuildId;
use rustc_hash::FxHashMap;
use space::Space;

/// The number of a binary in a recording: an index of [`Processes::binaries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BinaryId(pub(crate) u32);

impl BinaryId {
    /// The index in [`Processes::binaries`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A file that processes had mapped, or the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    /// The path that the recording has: the path on the recorded machine, or a name such as `[kernel.kallsyms]_text`.
    pub path: Vec<u8>,
    /// The build id, if the recording has it.
    pub build_id: Option<BuildId>,
    /// Whether it is the kernel or a module of the kernel.
    pub kernel: bool,
}

/// An address of a process, as a place in a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The binary.
    pub binary: BinaryId,
    /// The offset in the file of the binary: address - start of the mapping + offset of the mapping. For the kernel
    /// itself this is the address - start + address of the symbol that the mapping names.
    pub offset: u64,
}

/// A mapping: addresses from `start` to `end` are the file from `page_offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapped {
    start: u64,
    page_offset: u64,
    /// `None` for memory that is not of a file.
    binary: Option<BinaryId>,
    /// From when on the mapping is there.
    from: u64,
}

/// What a process had mapped from some time on: from its first record on, or after an `exec`.
#[derive(Clone, Debug, Default)]
struct Generation {
    from: u64,
    /// Where a forked process has its first mappings from: the process and the time.
    parent: Option<(u32, u64)>,
    space: Space,
}

/// The mappings of all processes over time.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    binaries: Vec<Binary>,
    numbers: FxHashMap<Binary, BinaryId>,
    processes: FxHashMap<u32, Vec<Generation>>,
    names: FxHashMap<u32, Vec<(u64, Vec<u8>)>>,
    pieces: usize,
    covered: usize,
}

/// The last item of a list in the order of time that is not later than `time`; the first item if all are later.
fn latest<T>(list: &[T], time: u64, from: impl Fn(&T) -> u64) -> Option<&T> {
    let end = list.partition_point(|item| from(item) <= time);
    list.get(end.saturating_sub(1))
}

/// The process whose mappings are those of the kernel.
pub(crate) const KERNEL: u32 = u32::MAX;

impl Processes {
    /// The binaries that processes had mapped.
    pub fn binaries(&self) -> &[Binary] {
        &self.binaries
    }

    /// A binary by its number.
    pub fn binary(&self, id: BinaryId) -> Option<&Binary> {
        self.binaries.get(id.index())
    }

    /// The name of a process at a time: of its program, cut to 15 bytes by the kernel.
    pub fn name(&self, pid: u32, time: Option<u64>) -> Option<&[u8]> {
        let names = self.names.get(&pid)?;
        let time = time.unwrap_or(u64::MAX);
        let name = latest(names, time, |(from, _)| *from)?;
        Some(&name.1)
    }

    /// The number of a binary; a new one if it was not seen before.
    pub(crate) fn number(&mut self, binary: Binary) -> BinaryId {
        if let Some(&id) = self.numbers.get(&binary) {
            return id;
        }
        let id = BinaryId(u32::try_from(self.binaries.len()).unwrap_or(u32::MAX));
        self.binaries.push(binary.clone());
        self.numbers.insert(binary, id);
        id
    }

    /// The process takes another name.
    pub(crate) fn rename(&mut self, pid: u32, time: u64, name: &[u8]) {
        let name = name.get(..limits::PROCESS_NAME).unwrap_or(name);
        self.names
            .entry(pid)
            .or_default()
            .push((time, name.to_vec()));
    }

    /// The process starts another program: its mappings are gone.
    pub(crate) fn exec(&mut self, pid: u32, time: u64) {
        let generations = self.processes.entry(pid).or_default();
        generations.push(Generation {
            from: time,
            ..Generation::default()
        });
    }

    /// A new process has the mappings of its parent.
    pub(crate) fn fork(&mut self, pid: u32, parent: u32, time: u64) {
        let generations = self.processes.entry(pid).or_default();
        generations.push(Generation {
            from: time,
            parent: Some((parent, time)),
            space: Space::default(),
        });
        if let Some(name) = self.name(parent, Some(time)).map(<[u8]>::to_vec) {
            self.rename(pid, time, &name);
        }
    }

    /// A process maps a file, or memory without a file. Memory without a file does not replace a file: programs that move
    /// their code to large pages do this, and the code is still that of the file. Returns whether the mapping was kept.
    pub(crate) fn map(
        &mut self,
        pid: u32,
        time: u64,
        (start, end): (u64, u64),
        page_offset: u64,
        binary: Option<BinaryId>,
    ) -> bool {
        if start >= end {
            return true;
        }
        if self.pieces >= limits::MAP_PIECES || self.covered >= limits::MAP_COVERS {
            return false;
        }
        let generations = self.processes.entry(pid).or_default();
        if generations.is_empty() {
            generations.push(Generation::default());
        }
        let Some(generation) = generations.last_mut() else {
            return true;
        };
        let mapped = Mapped {
            start,
            page_offset,
            binary,
            from: time,
        };
        let (added, covered) = generation.space.insert(start, end, mapped);
        self.pieces += added;
        self.covered += covered;
        true
    }

    /// The place of an address of a process at a time. `None` if nothing was mapped there, or no file.
    pub fn locate(&self, pid: u32, time: Option<u64>, address: u64) -> Option<Located> {
        let (mut pid, mut time) = (pid, time.unwrap_or(u64::MAX));
        for _ in 0..limits::FORK_DEPTH {
            let generations = self.processes.get(&pid)?;
            // Records about programs that ran before the recording began can have a later time than the first sample.
            let generation = latest(generations, time, |generation| generation.from)?;
            if let Some(mapped) = generation.space.at(address, time) {
                return Some(Located {
                    binary: mapped.binary?,
                    offset: (address - mapped.start).wrapping_add(mapped.page_offset),
                });
            }
            (pid, time) = generation.parent?;
        }
        None
    }

    /// The place of an address: in the kernel's mappings for addresses of the kernel, otherwise in those of the process.
    pub fn locate_in_mode(
        &self,
        in_kernel: bool,
        pid: u32,
        time: Option<u64>,
        address: u64,
    ) -> Option<Located> {
        let pid = if in_kernel || address >> 63 == 1 {
            KERNEL
        } else {
            pid
        };
        self.locate(pid, time, address)
    }
}
