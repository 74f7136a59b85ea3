//! Counts of the executed code of each binary: ranges of code, branches, and single addresses.
//!
//! All inputs are converted to these counts: recordings and the texts of other tools. The later steps (source lines,
//! layout of code) use only the sums, and no processes, times or single samples. So their time does not depend on the
//! length of a recording.
mod call_stacks;
mod losses;
mod places;
mod read;
mod recording;
mod selection;
mod stacks;
mod table;
mod thread;

pub use call_stacks::CallStacks;
pub use losses::CountLosses;
pub use read::{read, read_releasing};
pub use recording::{CollectOptions, collect};
pub use selection::{Selection, parse_times};
pub(crate) use stacks::SharedStacks;
pub use stacks::{CONTEXT_MEMORY, StackPlace, StackSample, Stacks};

use selection::Selected;
pub(crate) use thread::{PlacedBranch, ThreadSums, increase};

use crate::process::Binary;
use profkit_data::ids::BuildId;
use rustc_hash::FxHashMap;
use stacks::StackTable;
use std::collections::BTreeMap;
use table::{PairCounts, TripleCounts};

/// A place in a binary, stated as an offset or an address. Or the mark for a place outside of the binary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(u64);

impl Place {
    /// The mark for a place that is not in the binary. The place is in another binary, or no file was mapped there.
    pub const ELSEWHERE: Place = Place(u64::MAX);

    /// Makes a place in the binary from its offset or address. [`BinaryKey::numbering`] states which of them is used
    /// for the binary.
    pub fn at(place: u64) -> Place {
        Place(place)
    }

    /// Returns the offset or address of the place; `None` if the place is not in the binary.
    pub fn get(self) -> Option<u64> {
        (self != Place::ELSEWHERE).then_some(self.0)
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(place) => write!(f, "{place:#x}"),
            None => f.write_str("elsewhere"),
        }
    }
}

/// A range of code that was executed between two taken branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeCount {
    /// The target of the first branch, at which the range begins.
    pub start: u64,
    /// The place of the next taken branch instruction. In damaged branch stacks, the end of a range may be before its
    /// start.
    pub end: u64,
    /// The number of times that the range was executed, according to the samples.
    pub count: u64,
}

/// A branch that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCount {
    /// The place of the branch instruction.
    pub from: Place,
    /// The target of the branch. At least one of `from` and `to` is in the binary.
    pub to: Place,
    /// The number of times that the branch was taken, according to the samples.
    pub count: u64,
}

/// A branch that was taken together with the code that ran after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceCount {
    /// The place of the branch instruction.
    pub from: Place,
    /// The target of the branch. At least one of `from` and `to` is in the binary.
    pub to: Place,
    /// The place of the next taken branch, up to which the code ran. `Place::ELSEWHERE` if it is not known: the branch
    /// is the newest one of its sample, or the next one is in another binary.
    pub end: Place,
    /// The number of times that this happened, according to the samples.
    pub count: u64,
}

/// A place at which samples were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressCount {
    /// The place.
    pub place: u64,
    /// The number of samples.
    pub count: u64,
}

/// Sums of samples: how often ranges of code, branches and addresses occurred. Each list is sorted by offset or
/// address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The executed ranges of code.
    pub ranges: Vec<RangeCount>,
    /// The taken branches.
    pub branches: Vec<BranchCount>,
    /// The addresses of the samples themselves.
    pub addresses: Vec<AddressCount>,
    /// The taken branches with the code that ran after each. They are parts of `branches` and `ranges` and not further
    /// counts. Empty unless they were requested ([`CollectOptions::traces`]).
    pub traces: Vec<TraceCount>,
    /// How often the processor had predicted another target for a branch. Empty unless `traces` were requested.
    pub mispredicted: Vec<BranchCount>,
}

impl Sums {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.branches.is_empty() && self.addresses.is_empty()
    }

    /// Returns the sum of the counts of all branches.
    pub fn taken(&self) -> u64 {
        self.branches
            .iter()
            .fold(0, |sum, branch| sum.saturating_add(branch.count))
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.addresses
            .iter()
            .fold(0, |sum, address| sum.saturating_add(address.count))
    }
}

/// Sums of samples, to which more samples can be added. [`Sums`] is the final form.
#[derive(Clone, Debug, Default)]
pub(crate) struct SumTable {
    ranges: PairCounts,
    branches: PairCounts,
    addresses: PairCounts,
    traces: TripleCounts,
    mispredicted: PairCounts,
}

impl SumTable {
    #[inline]
    pub fn range(&mut self, start: u64, end: u64, count: u64) {
        self.ranges.add(start, end, count);
    }

    #[inline]
    pub fn branch(&mut self, from: Place, to: Place, count: u64) {
        self.branches.add(from.0, to.0, count);
    }

    #[inline]
    pub fn address(&mut self, place: u64, count: u64) {
        self.addresses.add(place, 0, count);
    }

    pub fn trace(&mut self, from: Place, to: Place, end: Place, count: u64) {
        self.traces.add((from.0, to.0, end.0), count);
    }

    pub fn mispredicted(&mut self, from: Place, to: Place, count: u64) {
        self.mispredicted.add(from.0, to.0, count);
    }

    pub fn join(&mut self, other: SumTable) {
        self.ranges.join(other.ranges);
        self.branches.join(other.branches);
        self.addresses.join(other.addresses);
        self.traces.join(other.traces);
        self.mispredicted.join(other.mispredicted);
    }

    /// Adds finished sums.
    pub fn add(&mut self, sums: &Sums) {
        for range in &sums.ranges {
            self.range(range.start, range.end, range.count);
        }
        for branch in &sums.branches {
            self.branch(branch.from, branch.to, branch.count);
        }
        for address in &sums.addresses {
            self.address(address.place, address.count);
        }
        for trace in &sums.traces {
            self.trace(trace.from, trace.to, trace.end, trace.count);
        }
        for branch in &sums.mispredicted {
            self.mispredicted(branch.from, branch.to, branch.count);
        }
    }

    pub fn finish(self) -> Sums {
        Sums {
            ranges: self
                .ranges
                .into_sorted()
                .into_iter()
                .map(|(start, end, count)| RangeCount { start, end, count })
                .collect(),
            branches: branches(self.branches),
            addresses: self
                .addresses
                .into_sorted()
                .into_iter()
                .map(|(place, _, count)| AddressCount { place, count })
                .collect(),
            traces: self
                .traces
                .into_sorted()
                .into_iter()
                .map(|((from, to, end), count)| TraceCount {
                    from: Place(from),
                    to: Place(to),
                    end: Place(end),
                    count,
                })
                .collect(),
            mispredicted: branches(self.mispredicted),
        }
    }
}

fn branches(counts: PairCounts) -> Vec<BranchCount> {
    let sorted = counts.into_sorted().into_iter();
    sorted
        .map(|(from, to, count)| BranchCount {
            from: Place(from),
            to: Place(to),
            count,
        })
        .collect()
}

/// The way in which the places in a binary are stated: as offsets, as addresses, or as distances from a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Numbering {
    /// A place is stated as an offset in the file of the binary.
    FileOffset,
    /// A place is stated as a virtual address as the linker assigned it.
    Address,
    /// A place is stated as the distance from the address of the first segment with code, rounded down to whole pages.
    /// llvm-profgen uses this form.
    FromBase,
    /// A place is stated as the distance from the kernel's symbol `_text`, which does not depend on where the kernel
    /// was loaded. For places before the symbol, the distance wraps around.
    FromText,
    /// A place is stated as the distance from the kernel's symbol `_stext`.
    FromStext,
    /// A place is stated as the distance from the start of a kernel module, where its section `.text` begins.
    FromModule,
}

/// The binary to which counts belong.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BinaryKey {
    /// The path on the recorded machine, or a name such as `[kernel.kallsyms]_text`. Empty if the input names no
    /// binary; the counts then belong to the only binary that the user names.
    pub path: Vec<u8>,
    /// The build id; `None` if the input does not state it.
    pub build_id: Option<BuildId>,
    /// Whether the binary is the kernel or a module of the kernel.
    pub kernel: bool,
    /// The way in which the places in the binary are stated, for example as file offsets.
    pub numbering: Numbering,
}

impl BinaryKey {
    /// Returns the key of a binary of a recording.
    pub(crate) fn of(binary: &Binary) -> Self {
        BinaryKey {
            path: binary.path.clone(),
            build_id: binary.build_id.clone(),
            kernel: binary.kernel,
            numbering: binary.numbering(),
        }
    }

    /// Returns the part of the key that is equal for all keys of the same binary. It contains the build id, or the path
    /// if there is no build id. A key with a build id and a key without one never have the same identity, because the
    /// file at a path may have changed.
    fn identity(&self) -> Identity {
        let (has_id, name) = match &self.build_id {
            Some(id) => (true, significant(id).to_vec()),
            None => (false, self.path.clone()),
        };
        Identity {
            has_id,
            name,
            kernel: self.kernel,
            numbering: self.numbering,
        }
    }
}

/// The part of a [`BinaryKey`] that identifies the binary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    has_id: bool,
    /// The build id or the path.
    name: Vec<u8>,
    kernel: bool,
    numbering: Numbering,
}

/// Returns a build id without the zeros that perf appends to short build ids.
fn significant(id: &BuildId) -> &[u8] {
    /// The length in bytes of the shortest build ids that linkers write.
    const SHORTEST: usize = 8;
    let zeros = id.0.iter().rev().take_while(|&&byte| byte == 0).count();
    let len = (id.0.len() - zeros).max(SHORTEST.min(id.0.len()));
    id.0.get(..len).unwrap_or_default()
}

/// Whether two build ids identify the same binary. Zeros at the end are ignored, because perf appends them to short
/// build ids.
pub fn same_build_id(a: &BuildId, b: &BuildId) -> bool {
    significant(a) == significant(b)
}

/// The counts of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryCounts {
    /// The binary.
    pub key: BinaryKey,
    /// The sums of the samples that have no calling context.
    pub sums: Sums,
    /// The sums by calling context. The key is the context as it is written in the input, with the outermost function
    /// first. Only texts of llvm-profgen have contexts. These sums are not included in [`sums`](Self::sums).
    pub contexts: BTreeMap<Vec<u8>, Sums>,
}

/// The counts of all binaries in an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The binaries for which there are counts, in the order of their keys.
    pub binaries: Vec<BinaryCounts>,
    /// The samples with their call chains and branch stacks, from which calling contexts are found. Empty unless they
    /// were requested ([`CollectOptions::stacks`]), and if the samples have no call chains.
    pub stacks: Stacks,
    /// The numbers of samples and branches that were counted or left out.
    pub losses: CountLosses,
}

/// The sums of one binary, to which more samples can be added.
#[derive(Clone, Debug)]
pub(crate) struct BinaryTable {
    key: BinaryKey,
    pub sums: SumTable,
    pub contexts: BTreeMap<Vec<u8>, SumTable>,
}

/// The counts of several binaries, to which more samples can be added. [`Counts`] is the final form.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountTable {
    binaries: Vec<BinaryTable>,
    numbers: FxHashMap<Identity, usize>,
    /// The samples with their call chains and branch stacks, from which calling contexts are found. Each place in them
    /// contains the index of its binary in `binaries`.
    pub stacks: StackTable,
    pub losses: CountLosses,
}

impl CountTable {
    /// Returns the index of a binary in `binaries`, and adds the binary if it is new. Each place in
    /// [`stacks`](Self::stacks) names its binary by this index. Returns `None` if the index does not fit into 32 bits.
    pub fn number(&mut self, key: &BinaryKey) -> Option<u32> {
        self.binary(key);
        let index = self.numbers.get(&key.identity())?;
        u32::try_from(*index).ok()
    }

    /// The sums of a binary.
    pub fn binary(&mut self, key: &BinaryKey) -> &mut BinaryTable {
        let new = self.binaries.len();
        let index = *self.numbers.entry(key.identity()).or_insert(new);
        if index == new {
            self.binaries.push(BinaryTable {
                key: key.clone(),
                sums: SumTable::default(),
                contexts: BTreeMap::new(),
            });
        }
        #[allow(
            clippy::indexing_slicing,
            reason = "each number is that of a binary that was pushed"
        )]
        let binary = &mut self.binaries[index];
        // Several keys with the same identity can have different paths and build ids of different lengths. The path
        // that sorts first and the shortest build id are kept, so that the result does not depend on the order of the
        // keys.
        if key.path < binary.key.path {
            binary.key.path.clone_from(&key.path);
        }
        let len = |id: &Option<BuildId>| id.as_ref().map_or(0, |id| id.0.len());
        if len(&key.build_id) < len(&binary.key.build_id) {
            binary.key.build_id.clone_from(&key.build_id);
        }
        binary
    }

    pub fn add(&mut self, counts: &Counts) {
        for binary in &counts.binaries {
            let table = self.binary(&binary.key);
            table.sums.add(&binary.sums);
            for (context, sums) in &binary.contexts {
                let context = table.contexts.entry(context.clone()).or_default();
                context.add(sums);
            }
        }
        let numbers = counts.binaries.iter().map(|it| self.number(&it.key));
        let numbers: Vec<Option<u32>> = numbers.collect();
        self.stacks.add_finished(&counts.stacks, |index| {
            numbers.get(index).copied().flatten()
        });
        self.losses.add(&counts.losses);
    }

    /// Returns the keys of all binaries in their order, and for each number of a binary its index in that list.
    pub fn keys(self) -> (Vec<BinaryKey>, Vec<usize>) {
        let mut keys: Vec<(BinaryKey, usize)> = self
            .binaries
            .into_iter()
            .enumerate()
            .map(|(number, binary)| (binary.key, number))
            .collect();
        keys.sort();
        let mut order = vec![0; keys.len()];
        for (index, &(_, number)) in keys.iter().enumerate() {
            if let Some(place) = order.get_mut(number) {
                *place = index;
            }
        }
        (keys.into_iter().map(|(key, _)| key).collect(), order)
    }

    pub fn finish(self) -> Counts {
        let numbers = self.numbers;
        let mut binaries: Vec<BinaryCounts> = self
            .binaries
            .into_iter()
            .map(|binary| BinaryCounts {
                key: binary.key,
                sums: binary.sums.finish(),
                contexts: binary
                    .contexts
                    .into_iter()
                    .map(|(context, sums)| (context, sums.finish()))
                    .filter(|(_, sums)| !sums.is_empty())
                    .collect(),
            })
            .filter(|binary| !binary.sums.is_empty() || !binary.contexts.is_empty())
            .collect();
        binaries.sort_by(|a, b| a.key.cmp(&b.key));
        let mut places = vec![None; numbers.len()];
        for (index, binary) in binaries.iter().enumerate() {
            let old = numbers.get(&binary.key.identity());
            if let Some(place) = old.and_then(|old| places.get_mut(*old)) {
                *place = Some(index);
            }
        }
        let stacks = self
            .stacks
            .finish(|binary| places.get(binary as usize).copied().flatten());
        Counts {
            binaries,
            stacks,
            losses: self.losses,
        }
    }
}

impl Counts {
    /// Adds up the counts of several inputs. If several inputs have counts for the same binary, these are added.
    pub fn sum<'c>(inputs: impl IntoIterator<Item = &'c Counts>) -> Counts {
        let mut table = CountTable::default();
        for counts in inputs {
            table.add(counts);
        }
        table.finish()
    }

    /// Adds up the counts of several inputs, which are read one after the other: counts that were added are dropped
    /// before the next input is read. `context_memory` is the maximum memory in bytes for the whole samples of all
    /// inputs together ([`CollectOptions::context_memory`]).
    ///
    /// # Errors
    /// The first error of an input.
    pub fn try_sum<E>(
        inputs: impl IntoIterator<Item = Result<Counts, E>>,
        context_memory: Option<u64>,
    ) -> Result<Counts, E> {
        let mut inputs = inputs.into_iter();
        let first = inputs.next().unwrap_or_else(|| Ok(Counts::default()))?;
        if inputs.size_hint() == (0, Some(0)) {
            return Ok(first);
        }
        let mut table = CountTable {
            stacks: StackTable::within(context_memory),
            ..CountTable::default()
        };
        table.add(&first);
        drop(first);
        for counts in inputs {
            table.add(&counts?);
        }
        Ok(table.finish())
    }
}
