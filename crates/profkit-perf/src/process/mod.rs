//! The mappings of each process over time. Finds the binary to which an address belongs.
mod space;

use crate::collect::Numbering;
use crate::limits;
use profkit_data::ids::BuildId;
use rustc_hash::FxHashMap;
use space::Space;

/// The index of a binary in [`Processes::binaries`], which identifies the binary in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BinaryId(pub(crate) u32);

impl BinaryId {
    /// The index in [`Processes::binaries`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A file that at least one process had mapped, or the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    /// The path in the recording. It is the path on the recorded machine, or a name such as `[kernel.kallsyms]_text`.
    pub path: Vec<u8>,
    /// The build id; `None` if the recording does not state it.
    pub build_id: Option<BuildId>,
    /// Whether the binary is the kernel or a module of the kernel.
    pub kernel: bool,
}

/// The name that perf gives to the mapping of the kernel. The name of a symbol of the kernel may follow it.
const KERNEL_NAME: &[u8] = b"[kernel.kallsyms]";

/// Returns the name of a kernel module from its path in a recording. The path is that of the module's file, such as
/// `/lib/modules/6.1.0/kernel/net/xt-mark.ko.xz`. If perf does not find the file, the path has the form `[xt_mark]`.
/// `None` if the path is not that of a module. Two names are of the same module even if one has `-` where the other has
/// `_` ([`same_module`]).
pub fn module_name(path: &[u8]) -> Option<&[u8]> {
    if let Some(name) = path.strip_prefix(b"[") {
        // The name of the kernel itself contains a dot: `[kernel.kallsyms]`, `[guest.kernel.kallsyms]`.
        return name.strip_suffix(b"]").filter(|name| !name.contains(&b'.'));
    }
    let file = path.rsplit(|&byte| byte == b'/').next()?;
    let packed: [&[u8]; 3] = [b".xz", b".gz", b".zst"];
    let plain = packed.iter().find_map(|end| file.strip_suffix(*end));
    plain.unwrap_or(file).strip_suffix(b".ko")
}

/// Whether two paths are of the same kernel module.
pub fn same_module(a: &[u8], b: &[u8]) -> bool {
    let same = |a: u8, b: u8| a == b || matches!((a, b), (b'-', b'_') | (b'_', b'-'));
    module_name(a)
        .zip(module_name(b))
        .is_some_and(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(a, b)))
}

impl Binary {
    /// Returns the way in which the places in the binary are stated, for example as file offsets.
    pub fn numbering(&self) -> Numbering {
        match self.path.strip_prefix(KERNEL_NAME) {
            Some(b"_stext") => Numbering::FromStext,
            Some(_) => Numbering::FromText,
            None if self.kernel && module_name(&self.path).is_some() => Numbering::FromModule,
            None => Numbering::FileOffset,
        }
    }
}

/// Returns the offset or address that stands for the first byte of a mapping. For a file, this is the mapping's offset
/// in the file. For the kernel, it is the distance of the mapping from one of the kernel's symbols, which does not
/// depend on where the kernel was loaded. `page_offset` is then the address at which that symbol was loaded. If
/// `page_offset` is 0, the symbol is assumed to be at the start of the mapping.
pub(crate) fn offset_of_mapping(path: &[u8], start: u64, page_offset: u64) -> u64 {
    match (path.starts_with(KERNEL_NAME), page_offset) {
        (false, _) => page_offset,
        (true, 0) => 0,
        (true, symbol) => start.wrapping_sub(symbol),
    }
}

/// The file at an address of a process: a binary, and an offset in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The binary.
    pub binary: BinaryId,
    /// The offset in the file of the binary, which is the address minus the start of the mapping plus the offset of the
    /// mapping. For the kernel, the distance from the symbol that the mapping names.
    pub offset: u64,
}

/// A mapping. The bytes at `start` are those of the file from `page_offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapped {
    start: u64,
    page_offset: u64,
    /// The mapped binary. `None` if the memory does not come from a file.
    binary: Option<BinaryId>,
    /// The time at which the mapping was made.
    from: u64,
}

/// A range of addresses of a process during a range of times. Either the same mapping covers all of it, or no mapping
/// covers any of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pid: u32,
    /// The first and the last address of the window.
    addresses: (u64, u64),
    /// The first and the last time of the window.
    times: (u64, u64),
    /// The mapped binary, and the number that must be added to an address to get the offset in the binary. `None` if no
    /// file is mapped.
    target: Option<(BinaryId, u64)>,
}

impl Window {
    fn narrow_addresses(&mut self, (first, last): (u64, u64)) {
        self.addresses = (self.addresses.0.max(first), self.addresses.1.min(last));
    }

    fn narrow_times(&mut self, (first, last): (u64, u64)) {
        self.times = (self.times.0.max(first), self.times.1.min(last));
    }

    /// A window without any address.
    pub const EMPTY: Window = Window {
        pid: 0,
        addresses: (1, 0),
        times: (1, 0),
        target: None,
    };

    /// Whether the window covers this address of this process at this time.
    #[inline]
    pub fn has(&self, pid: u32, time: u64, address: u64) -> bool {
        let inside = |(first, last): (u64, u64), number| first <= number && number <= last;
        pid == self.pid && inside(self.addresses, address) && inside(self.times, time)
    }

    /// Returns the binary and the offset for an address. The window must cover the address. `None` if no file is
    /// mapped.
    #[inline]
    pub fn place(&self, address: u64) -> Option<(BinaryId, u64)> {
        let (binary, delta) = self.target?;
        Some((binary, address.wrapping_add(delta)))
    }
}

/// The mappings of a process while it ran one program. They begin at the first record of the process, at an `exec`, or
/// at the fork that made the process.
#[derive(Clone, Debug, Default)]
struct Generation {
    from: u64,
    /// For a forked process: the parent and the time of the fork. The process inherits the mappings that the parent had
    /// at that time.
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

/// Returns the last item that is not later than `time`, or the first item if all are later. `list` must be sorted by
/// time. `from` returns the time of an item.
fn latest<T>(list: &[T], time: u64, from: impl Fn(&T) -> u64) -> Option<&T> {
    let end = list.partition_point(|item| from(item) <= time);
    list.get(end.saturating_sub(1))
}

/// Returns the first and the last time that [`latest`] treats like `time`: for all times between them, it returns the
/// same item.
fn times_of<T>(list: &[T], time: u64, from: impl Fn(&T) -> u64) -> (u64, u64) {
    let end = list.partition_point(|item| from(item) <= time);
    // The first item is also returned for all earlier times.
    let first = match end {
        0 | 1 => 0,
        end => list.get(end - 1).map_or(0, &from),
    };
    let next = list.get(end.max(1));
    let last = next.map_or(u64::MAX, |item| from(item).saturating_sub(1));
    (first, last)
}

/// A process id that no real process has. The mappings of the kernel are stored under this id.
pub(crate) const KERNEL: u32 = u32::MAX;

impl Processes {
    /// Returns the binaries that processes had mapped, in the order of their [`BinaryId`]s.
    pub fn binaries(&self) -> &[Binary] {
        &self.binaries
    }

    /// Returns the binary with this number.
    pub fn binary(&self, id: BinaryId) -> Option<&Binary> {
        self.binaries.get(id.index())
    }

    /// Returns the name of the program that a process ran at the given time. The kernel cuts names to 15 bytes.
    pub fn name(&self, pid: u32, time: Option<u64>) -> Option<&[u8]> {
        let names = self.names.get(&pid)?;
        let time = time.unwrap_or(u64::MAX);
        let name = latest(names, time, |(from, _)| *from)?;
        Some(&name.1)
    }

    /// Returns the id of a binary. Adds the binary if it is new.
    pub(crate) fn number(&mut self, binary: Binary) -> BinaryId {
        if let Some(&id) = self.numbers.get(&binary) {
            return id;
        }
        let id = BinaryId(u32::try_from(self.binaries.len()).unwrap_or(u32::MAX));
        self.binaries.push(binary.clone());
        self.numbers.insert(binary, id);
        id
    }

    /// Stores the name that a process has from `time` on.
    pub(crate) fn rename(&mut self, pid: u32, time: u64, name: &[u8]) {
        let name = name.get(..limits::PROCESS_NAME).unwrap_or(name);
        self.names
            .entry(pid)
            .or_default()
            .push((time, name.to_vec()));
    }

    /// Stores the fact that a process starts another program. This ends all mappings of the process.
    pub(crate) fn exec(&mut self, pid: u32, time: u64) {
        let generations = self.processes.entry(pid).or_default();
        generations.push(Generation {
            from: time,
            ..Generation::default()
        });
    }

    /// Stores a new process, which inherits the mappings and the name of its parent.
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

    /// Adds a mapping to a process: of a file, or of memory that does not come from a file. Such memory does not
    /// replace a mapped file. The reason is that programs copy their code to large pages of such memory, and the code
    /// there is still that of the file. Returns false if a limit was reached and the mapping was left out.
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

    /// Returns the binary and the offset to which an address of a process belonged at the given time. `None` if no file
    /// was mapped there.
    pub fn locate(&self, pid: u32, time: Option<u64>, address: u64) -> Option<Located> {
        let (mut pid, mut time) = (pid, time.unwrap_or(u64::MAX));
        for _ in 0..limits::FORK_DEPTH {
            let generations = self.processes.get(&pid)?;
            // A program that ran before the recording began may have samples before its first record. For these
            // samples, the first program that the process ran is used.
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

    /// Returns a window around an address and a time. [`locate`](Self::locate) finds the same mapping for all addresses
    /// and times in the window.
    pub(crate) fn window(&self, pid: u32, time: u64, address: u64) -> Window {
        let mut window = Window {
            pid,
            addresses: (0, u64::MAX),
            times: (0, u64::MAX),
            target: None,
        };
        let (mut process, mut at) = (pid, time);
        for depth in 0..limits::FORK_DEPTH {
            let Some(generations) = self.processes.get(&process) else {
                break;
            };
            let Some(generation) = latest(generations, at, |generation| generation.from) else {
                break;
            };
            let (around, found) = generation.space.around(address, at);
            window.narrow_addresses(around);
            // If the mapping comes from an ancestor, the times are not narrowed: the process inherited what the
            // ancestor had mapped at the time of the fork, whatever the time of the sample is.
            if depth == 0 {
                window.narrow_times(times_of(generations, at, |generation| generation.from));
                if let Some((_, times)) = found {
                    window.narrow_times(times);
                }
            }
            if let Some((mapped, _)) = found {
                let delta = mapped.page_offset.wrapping_sub(mapped.start);
                window.target = mapped.binary.map(|binary| (binary, delta));
                break;
            }
            let Some(parent) = generation.parent else {
                break;
            };
            (process, at) = parent;
        }
        window
    }

    /// Returns the process id under which the mapping of an address is stored: [`KERNEL`] for an address of the kernel,
    /// otherwise `pid`.
    #[inline]
    pub(crate) fn space_of(in_kernel: bool, pid: u32, address: u64) -> u32 {
        if in_kernel || address >> 63 == 1 {
            KERNEL
        } else {
            pid
        }
    }

    /// Returns the binary and the offset for an address. An address of the kernel is looked up in the kernel's
    /// mappings, any other address in those of the process.
    pub fn locate_in_mode(
        &self,
        in_kernel: bool,
        pid: u32,
        time: Option<u64>,
        address: u64,
    ) -> Option<Located> {
        self.locate(Self::space_of(in_kernel, pid, address), time, address)
    }
}
