//! The sums of one thread.
use super::stacks::{SharedStacks, StackTable};
use super::{BinaryKey, CountLosses, CountTable, Numbering, Place, SumTable};
use crate::process::{Binary, BinaryId};

/// A binary and an offset in it.
pub(crate) type InBinary = (BinaryId, u64);

/// A branch of a branch stack whose ends are found in binaries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedBranch {
    pub from: Option<InBinary>,
    pub to: Option<InBinary>,
    pub mispredicted: bool,
}

/// The sums of one thread for all binaries.
#[derive(Debug, Default)]
pub(crate) struct ThreadSums {
    /// The sums of each binary, with its [`BinaryId`] as index; `None` for a binary without counts. An input can name
    /// very many binaries, so a table is made only when a binary gets its first count.
    binaries: Vec<Option<Box<SumTable>>>,
    /// Whole samples that are not yet in `all_stacks`. Empty unless they were requested.
    stacks: StackTable,
    all_stacks: SharedStacks,
    /// Whether branches are also counted together with the code after them.
    traces: bool,
    pub losses: CountLosses,
}

/// Adds to a count. A text can state any number, so the addition saturates.
pub(crate) fn increase(number: &mut u64, count: u64) {
    *number = number.saturating_add(count);
}

/// Returns the sums of a binary. Makes them if there are none.
#[inline]
fn sums_of(binaries: &mut [Option<Box<SumTable>>], binary: BinaryId) -> Option<&mut SumTable> {
    let sums = binaries.get_mut(binary.index())?;
    Some(sums.get_or_insert_default())
}

impl ThreadSums {
    /// Makes sums for `binaries` binaries. The whole samples of all threads are in `all_stacks`. With `traces`, branches
    /// are also counted together with the code after them.
    pub fn new(binaries: usize, all_stacks: &SharedStacks, traces: bool) -> Self {
        ThreadSums {
            binaries: vec![None; binaries],
            stacks: StackTable::default(),
            all_stacks: all_stacks.clone(),
            traces,
            losses: CountLosses::default(),
        }
    }

    /// Adds `count` samples at a place.
    #[inline]
    pub fn address(&mut self, place: Option<InBinary>, count: u64) {
        match place {
            Some((binary, offset)) => {
                if let Some(sums) = sums_of(&mut self.binaries, binary) {
                    sums.address(offset, count);
                }
            }
            None => increase(&mut self.losses.unmapped_samples, count),
        }
    }

    /// Adds a branch stack that occurred `count` times. The newest branch comes first. `has_every_branch` is true if no
    /// taken branch is missing between two branches of the stack.
    #[inline]
    pub fn stack(
        &mut self,
        branches: impl Iterator<Item = PlacedBranch>,
        has_every_branch: bool,
        count: u64,
    ) {
        let mut newer = None;
        let mut number = 0u64;
        for branch in branches {
            let PlacedBranch { from, to, .. } = branch;
            number += 1;
            if self.traces {
                let next = newer.filter(|_| has_every_branch);
                self.trace(branch, next, count);
            }
            if let (Some((binary, from)), Some((other, to))) = (from, to)
                && binary == other
            {
                if let Some(sums) = sums_of(&mut self.binaries, binary) {
                    sums.branch(Place::at(from), Place::at(to), count);
                }
            } else {
                if let Some((binary, from)) = from
                    && let Some(sums) = sums_of(&mut self.binaries, binary)
                {
                    sums.branch(Place::at(from), Place::ELSEWHERE, count);
                }
                if let Some((binary, to)) = to
                    && let Some(sums) = sums_of(&mut self.binaries, binary)
                {
                    sums.branch(Place::ELSEWHERE, Place::at(to), count);
                }
                if from.is_none() && to.is_none() {
                    increase(&mut self.losses.unmapped_branches, count);
                }
            }
            // The code from the target of this branch to the newer branch was executed without another taken branch.
            if has_every_branch && let (Some((binary, start)), Some((other, end))) = (to, newer) {
                if binary != other {
                    increase(&mut self.losses.gaps, count);
                } else if let Some(sums) = sums_of(&mut self.binaries, binary) {
                    sums.range(start, end, count);
                }
            }
            newer = from;
        }
        if number > 0 {
            increase(&mut self.losses.branches, count.saturating_mul(number));
            increase(&mut self.losses.with_branches, count);
            if !has_every_branch {
                increase(&mut self.losses.without_ranges, count);
            }
        }
    }

    /// Adds a branch, and the code after it up to the branch at `next`.
    fn trace(&mut self, branch: PlacedBranch, next: Option<InBinary>, count: u64) {
        let PlacedBranch { from, to, .. } = branch;
        let in_binary = |spot: Option<InBinary>, binary: BinaryId| {
            spot.filter(|(other, _)| *other == binary)
                .map_or(Place::ELSEWHERE, |(_, offset)| Place::at(offset))
        };
        let binary = |spot: Option<InBinary>| spot.map(|(binary, _)| binary);
        let (of_from, of_to) = (binary(from), binary(to));
        // A branch between two binaries is counted in both.
        for binary in of_to
            .into_iter()
            .chain(of_from.filter(|_| of_from != of_to))
        {
            let (from, to) = (in_binary(from, binary), in_binary(to, binary));
            let end = match of_to {
                Some(target) if target == binary => in_binary(next, binary),
                _ => Place::ELSEWHERE,
            };
            if let Some(sums) = sums_of(&mut self.binaries, binary) {
                sums.trace(from, to, end, count);
                if branch.mispredicted {
                    sums.mispredicted(from, to, count);
                }
            }
        }
    }

    /// Adds a whole sample that occurred `count` times: its call chain and its branch stack.
    pub fn whole(
        &mut self,
        chain: impl Iterator<Item = Option<InBinary>>,
        branches: &[PlacedBranch],
        count: u64,
    ) {
        self.stacks.add(chain, branches, count);
        self.all_stacks.move_many(&mut self.stacks);
    }

    /// Takes the samples with call chains and branch stacks of all threads. The caller must have joined the sums of all
    /// other threads before.
    fn take_stacks(&mut self) -> StackTable {
        self.all_stacks.move_all(&mut self.stacks);
        self.all_stacks.take()
    }

    /// Adds the sums of another thread.
    pub fn join(&mut self, mut other: ThreadSums) {
        for (ours, theirs) in self.binaries.iter_mut().zip(other.binaries) {
            match (ours, theirs) {
                (Some(ours), Some(theirs)) => ours.join(*theirs),
                (ours, theirs) => *ours = ours.take().or(theirs),
            }
        }
        self.all_stacks.move_all(&mut other.stacks);
        self.losses.add(&other.losses);
    }

    /// Converts the sums to counts. The counts are those of a single binary with an unknown path, and they are counts by
    /// address.
    pub fn into_addresses(mut self) -> CountTable {
        let stacks = self.take_stacks();
        let mut table = CountTable {
            losses: self.losses,
            ..CountTable::default()
        };
        let key = BinaryKey {
            path: Vec::new(),
            build_id: None,
            kernel: false,
            numbering: Numbering::Address,
        };
        if let Some(Some(sums)) = self.binaries.into_iter().next() {
            table.binary(&key).sums.join(*sums);
            let number = table.number(&key);
            table.stacks.join(stacks, |_| number);
        }
        table
    }

    /// Converts the sums to counts. `binaries` are the binaries in the order of their [`BinaryId`]s.
    pub fn into_table<'b>(mut self, binaries: impl IntoIterator<Item = &'b Binary>) -> CountTable {
        let stacks = self.take_stacks();
        let mut table = CountTable {
            losses: self.losses,
            ..CountTable::default()
        };
        let mut numbers = vec![None; self.binaries.len()];
        for ((binary, sums), number) in binaries.into_iter().zip(self.binaries).zip(&mut numbers) {
            // A binary that occurs only in call chains has no sums.
            let Some(sums) = sums else {
                continue;
            };
            let key = BinaryKey::of(binary);
            table.binary(&key).sums.join(*sums);
            *number = table.number(&key);
        }
        table
            .stacks
            .join(stacks, |of| numbers.get(of as usize).copied().flatten());
        table
    }
}
