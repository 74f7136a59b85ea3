//! Counts of what ran, by binary: ranges of code, branches, and single addresses.
//!
//! All inputs end here: recordings, and the texts of other tools. What comes after it (source lines, layout) sees no
//! process, no time and no sample any more, only sums, so that its time does not depend on the length of a recording.
mod losses;
mod places;
mod read;
mod recording;
mod selection;
mod stacks;
mod table;
mod thread;

pub use losses::CountLosses;
pub use read::{read, read_releasing};
pub use recording::{CollectOptions, collect};
pub use selection::{Selection, parse_times};
pub use stacks::{StackPlace, StackSample, Stacks};

pub(crate) use thread::{ThreadSums, increase};

use profkit_data::ids::BuildId;
use rustc_hash::FxHashMap;
use stacks::StackTable;
use std::collections::BTreeMap;
use table::PairCounts;

/// A place in a binary, or somewhere else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(u64);

impl Place {
    /// A place that is not in the binary: in another one, or where no file was mapped.
    pub const ELSEWHERE: Place = Place(u64::MAX);

    /// A place in the binary. What the number means, the binary says ([`BinaryKey::numbering`]).
    pub fn at(place: u64) -> Place {
        Place(place)
    }

    /// The place; `None` if it is not in the binary.
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

/// Code that ran from one taken branch to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeCount {
    /// Where a branch arrived.
    pub start: u64,
    /// Where the next branch left: the place of that branch instruction. Damaged branch stacks have ranges that end
    /// before they start.
    pub end: u64,
    /// How often it ran in the samples.
    pub count: u64,
}

/// A branch that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCount {
    /// The place of the branch instruction.
    pub from: Place,
    /// Where it went. At least one end is in the binary.
    pub to: Place,
    /// How often it was taken in the samples.
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

/// Sums of samples, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Code between taken branches.
    pub ranges: Vec<RangeCount>,
    /// Taken branches.
    pub branches: Vec<BranchCount>,
    /// The places of the samples themselves.
    pub addresses: Vec<AddressCount>,
}

impl Sums {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.branches.is_empty() && self.addresses.is_empty()
    }

    /// How often branches were taken in all samples.
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

/// Sums that are being added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct SumTable {
    ranges: PairCounts,
    branches: PairCounts,
    addresses: PairCounts,
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

    pub fn join(&mut self, other: SumTable) {
        self.ranges.join(other.ranges);
        self.branches.join(other.branches);
        self.addresses.join(other.addresses);
    }

    /// Adds sums that are finished.
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
    }

    pub fn finish(self) -> Sums {
        Sums {
            ranges: self
                .ranges
                .into_sorted()
                .into_iter()
                .map(|(start, end, count)| RangeCount { start, end, count })
                .collect(),
            branches: self
                .branches
                .into_sorted()
                .into_iter()
                .map(|(from, to, count)| BranchCount {
                    from: Place(from),
                    to: Place(to),
                    count,
                })
                .collect(),
            addresses: self
                .addresses
                .into_sorted()
                .into_iter()
                .map(|(place, _, count)| AddressCount { place, count })
                .collect(),
        }
    }
}

/// What the numbers of places mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Numbering {
    /// Offsets in the file of the binary.
    FileOffset,
    /// Virtual addresses, as the linker assigned them.
    Address,
    /// Distances from the address of the first segment with code, rounded down to whole pages, as llvm-profgen writes
    /// them.
    FromBase,
    /// Distances from the kernel's symbol `_text`, wherever the kernel was loaded. Places before it wrap around.
    FromText,
    /// Distances from the kernel's symbol `_stext`.
    FromStext,
}

/// Which binary counts belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BinaryKey {
    /// The path on the recorded machine, or a name such as `[kernel.kallsyms]_text`. Empty if the input names no binary,
    /// so that the counts belong to the only binary that the user names.
    pub path: Vec<u8>,
    /// The build id, if the input has it.
    pub build_id: Option<BuildId>,
    /// Whether it is the kernel or a module of the kernel.
    pub kernel: bool,
    /// What the numbers of its places mean.
    pub numbering: Numbering,
}

impl BinaryKey {
    /// What two keys of one binary have in common. Build ids decide if there are any, otherwise paths do. Binaries with
    /// and without a build id are never the same, because a path can have had several contents.
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

/// What decides whether two keys are of one binary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    has_id: bool,
    /// The build id or the path.
    name: Vec<u8>,
    kernel: bool,
    numbering: Numbering,
}

/// A build id without the zeros with which perf fills short ids up.
fn significant(id: &BuildId) -> &[u8] {
    /// The shortest ids that linkers write.
    const SHORTEST: usize = 8;
    let zeros = id.0.iter().rev().take_while(|&&byte| byte == 0).count();
    let len = (id.0.len() - zeros).max(SHORTEST.min(id.0.len()));
    id.0.get(..len).unwrap_or_default()
}

/// Whether two build ids are of one binary. Zeros at the end do not count, because perf fills short ids up with them.
pub fn same_build_id(a: &BuildId, b: &BuildId) -> bool {
    significant(a) == significant(b)
}

/// The counts of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryCounts {
    /// The binary.
    pub key: BinaryKey,
    /// The sums of all samples.
    pub sums: Sums,
    /// The sums by the functions that were active, outermost first, as text of the input. Only texts of llvm-profgen have
    /// them. They are not in [`sums`](Self::sums).
    pub contexts: BTreeMap<Vec<u8>, Sums>,
}

/// What ran, by binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The binaries that have counts, in the order of their keys.
    pub binaries: Vec<BinaryCounts>,
    /// The samples themselves, if they were asked for ([`CollectOptions::stacks`]) and have call chains.
    pub stacks: Stacks,
    /// The numbers of samples, and what was left out.
    pub losses: CountLosses,
}

/// The sums of a binary that are being added up.
#[derive(Clone, Debug)]
pub(crate) struct BinaryTable {
    key: BinaryKey,
    pub sums: SumTable,
    pub contexts: BTreeMap<Vec<u8>, SumTable>,
}

/// Counts of several binaries that are being added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountTable {
    binaries: Vec<BinaryTable>,
    numbers: FxHashMap<Identity, usize>,
    /// The samples, by the index of the binary here.
    pub stacks: StackTable,
    pub losses: CountLosses,
}

impl CountTable {
    /// The number of a binary in [`stacks`](Self::stacks).
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
        // The result does not depend on the order in which the paths of a binary were met.
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
    /// Adds the counts of several inputs. The counts of a binary that several inputs have are added.
    pub fn sum<'c>(inputs: impl IntoIterator<Item = &'c Counts>) -> Counts {
        let mut table = CountTable::default();
        for counts in inputs {
            table.add(counts);
        }
        table.finish()
    }
}
