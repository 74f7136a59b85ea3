//! The samples of a recording by call stack.
use super::places::PlaceCache;
use super::selection::Selected;
use super::stacks::{SharedStacks, StackTable, Stacks};
use super::{BinaryKey, CountTable, Selection};
use crate::file::sample_type;
use crate::losses::Losses;
use crate::process::{Binary, Processes};
use crate::sample::{Mode, Sample};
use crate::survey::Recording;

/// The samples of a recording by call stack. In a recording without call chains, each stack is the place of the sample.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallStacks {
    /// The binaries of the places in [`stacks`](Self::stacks), in the order of their keys.
    pub binaries: Vec<BinaryKey>,
    /// The distinct stacks with their numbers of samples. They have no branches. The places name their binary by its
    /// index in [`binaries`](Self::binaries).
    pub stacks: Stacks,
    /// The number of samples in all stacks.
    pub samples: u64,
    /// The number of samples that have a call chain.
    pub with_chain: u64,
    /// The number of selected samples that are in no stack, because their event does not record addresses.
    pub without_address: u64,
    /// What was lost while the recording was made or read.
    pub losses: Losses,
}

/// What one thread has counted.
struct Thread {
    stacks: StackTable,
    all: SharedStacks,
    places: PlaceCache,
    samples: u64,
    with_chain: u64,
    without_address: u64,
}

impl Thread {
    fn take(&mut self, processes: &Processes, sample: &Sample<'_>) {
        let (pid, time) = (sample.pid, sample.when());
        self.samples += 1;
        self.with_chain += u64::from(!sample.chain.is_empty());
        // With precise events, the chain begins where the interrupt came, a few instructions after the sample. A chain
        // may also lack the kernel's part: then its first address is that of a caller.
        let own = std::iter::once((sample.mode, sample.address));
        let in_kernel = |mode| mode == Mode::Kernel;
        let first = sample.chain.addresses().next();
        let is_own = first.is_some_and(|(mode, address)| {
            address == sample.address || in_kernel(mode) == in_kernel(sample.mode)
        });
        let callers = sample.chain.addresses().skip(usize::from(is_own));
        let places = &mut self.places;
        let chain = own
            .chain(callers)
            .map(|(mode, address)| places.locate(processes, in_kernel(mode), pid, time, address));
        self.stacks.add(chain, &[], 1);
        self.all.move_many(&mut self.stacks);
    }
}

impl CallStacks {
    /// Counts the selected samples by call stack. The stacks need at most `memory` bytes
    /// ([`CONTEXT_MEMORY`](super::CONTEXT_MEMORY) is a good limit): if they need more, the outer half of every stack is
    /// dropped, again and again until they fit ([`Stacks::halvings`]). Uses the threads of rayon's current pool. The
    /// result does not depend on the number of threads.
    pub fn of(recording: &Recording<'_>, selection: &Selection, memory: u64) -> Self {
        let processes = recording.processes();
        let selected: Selected<'_> = selection.of(recording);
        let events = recording.events().iter();
        let addressed: Vec<bool> = events
            .map(|event| event.attr.has(sample_type::IP))
            .collect();
        let all = SharedStacks::new(Some(memory));
        let (mut sum, losses) = recording.samples(
            || Thread {
                stacks: StackTable::default(),
                all: all.clone(),
                places: PlaceCache::default(),
                samples: 0,
                with_chain: 0,
                without_address: 0,
            },
            |thread, sample| {
                if !selected.has(recording, sample) {
                    return;
                }
                match addressed.get(sample.event) {
                    Some(true) => thread.take(processes, sample),
                    _ => thread.without_address += 1,
                }
            },
            |thread, mut other| {
                thread.all.move_all(&mut other.stacks);
                thread.samples += other.samples;
                thread.with_chain += other.with_chain;
                thread.without_address += other.without_address;
            },
        );
        all.move_all(&mut sum.stacks);
        let (binaries, stacks) = named(all.take(), processes.binaries());
        CallStacks {
            binaries,
            stacks,
            samples: sum.samples,
            with_chain: sum.with_chain,
            without_address: sum.without_address,
            losses,
        }
    }
}

/// Finishes stacks whose places have the numbers of the recording's binaries. Binaries that occur in no stack are left
/// out, and binaries with the same identity become one.
fn named(stacks: StackTable, binaries: &[Binary]) -> (Vec<BinaryKey>, Stacks) {
    let mut used = vec![false; binaries.len()];
    for (binary, _) in stacks.places() {
        if let Some(used) = used.get_mut(binary as usize) {
            *used = true;
        }
    }
    let mut table = CountTable::default();
    let numbers: Vec<Option<u32>> = binaries
        .iter()
        .zip(used)
        .map(|(binary, used)| used.then(|| table.number(&BinaryKey::of(binary))).flatten())
        .collect();
    let (keys, order) = table.keys();
    let mut joined = StackTable::default();
    joined.join(stacks, |binary| {
        numbers.get(binary as usize).copied().flatten()
    });
    let stacks = joined.finish(|number| order.get(number as usize).copied());
    (keys, stacks)
}
