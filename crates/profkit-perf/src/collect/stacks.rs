//! Whole samples, for profiles with calling contexts. A whole sample consists of its call chain and its branch stack.
//! Equal samples are stored once, with their number. If the different samples need too much memory, all samples are
//! shortened: the oldest half of each call chain and of each branch stack is dropped. Then more samples are equal.
use super::thread::{InBinary, PlacedBranch};
use crate::process::BinaryId;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A limit in bytes for the memory of the whole samples. It suits most machines.
pub const CONTEXT_MEMORY: u64 = 2_000_000_000;
/// The memory in bytes for a distinct sample, without its call chain and its branch stack, until its contexts are
/// known. Each of these three constants includes the memory for the copy of the sample that profkit-profgen makes, in
/// which addresses take the place of indices.
const PER_SAMPLE: u64 = 240;
/// The memory in bytes for a frame of a call chain.
const PER_FRAME: u64 = 20;
/// The memory in bytes for a branch of a branch stack.
const PER_BRANCH: u64 = 40;

/// The index of a place in [`Stacks::places`] (a binary and an offset or address in it), or a mark for a place in no
/// mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackPlace(u32);

impl StackPlace {
    /// The mark for a place that is in no mapped file.
    pub const ELSEWHERE: StackPlace = StackPlace(u32::MAX);

    /// Returns the index in [`Stacks::places`]. For a place that is in no mapped file, the index is beyond the end.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A distinct sample, with the number of samples that are equal to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StackSample {
    /// The call chain. It consists of the place of the sample, and then of the return addresses from the innermost
    /// function to the outermost.
    pub chain: Box<[StackPlace]>,
    /// The branch stack. Each element is the place of a branch and its target; the newest branch is first.
    pub branches: Box<[(StackPlace, StackPlace)]>,
    /// The number of samples.
    pub count: u64,
}

/// The distinct samples with a call chain and a branch stack. Equal inputs give the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The places in all samples. Each is a pair: the index of a binary in
    /// [`Counts::binaries`](super::Counts::binaries), and the offset or address in that binary.
    places: Vec<(usize, u64)>,
    /// The samples.
    pub samples: Vec<StackSample>,
    /// How often all call chains and branch stacks were halved. Of a list of `n` elements, the newest `n / 2^halvings`
    /// are kept, rounded up.
    pub halvings: u32,
    /// The number of samples that lack a part of their call chain or branch stack because of [`halvings`](Self::halvings).
    pub shortened: u64,
}

impl Stacks {
    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns the places in all samples. Each is a pair: the index of a binary in
    /// [`Counts::binaries`](super::Counts::binaries), and the offset or address in that binary.
    pub fn places(&self) -> &[(usize, u64)] {
        &self.places
    }
}

/// Places and samples, to which more samples can be added. [`Stacks`] is the final form.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackTable {
    places: Vec<(u32, u64)>,
    numbers: FxHashMap<(u32, u64), StackPlace>,
    /// For each distinct pair of a call chain and a branch stack, the number of samples.
    samples: FxHashMap<Key, u64>,
    /// The memory in bytes that the samples need. It must not exceed `limit`.
    memory: u64,
    limit: Option<u64>,
    /// [`Stacks::halvings`] and [`Stacks::shortened`].
    halvings: u32,
    shortened: u64,
    /// Whether there may be a sample that can be shortened.
    has_long: bool,
}

type Key = (Box<[StackPlace]>, Box<[(StackPlace, StackPlace)]>);

/// Returns the length of a list of `length` elements after it was halved `halvings` times. A list that has elements
/// keeps at least one.
fn halved(length: usize, halvings: u32) -> usize {
    match 1usize.checked_shl(halvings) {
        Some(divisor) => length.div_ceil(divisor),
        None => length.min(1),
    }
}

/// Whether a halving would drop a part of a sample.
fn is_long(chain: usize, branches: usize) -> bool {
    chain > 1 || branches > 1
}

impl StackTable {
    /// Makes a table whose samples are shortened if they need more than `limit` bytes.
    pub fn within(limit: Option<u64>) -> Self {
        StackTable {
            limit,
            ..StackTable::default()
        }
    }

    /// The places in all samples: the index of a binary, and the offset or address in it.
    pub fn places(&self) -> impl Iterator<Item = (u32, u64)> {
        self.places.iter().copied()
    }

    /// Adds a sample that was already halved `halvings` times. `halvings` must not be larger than the number of
    /// halvings of this table.
    fn insert(
        &mut self,
        mut chain: Vec<StackPlace>,
        mut branches: Vec<(StackPlace, StackPlace)>,
        halvings: u32,
        count: u64,
    ) {
        let missing = self.halvings.saturating_sub(halvings);
        if missing > 0 && halvings == 0 && is_long(chain.len(), branches.len()) {
            self.shortened = self.shortened.saturating_add(count);
        }
        chain.truncate(halved(chain.len(), missing));
        branches.truncate(halved(branches.len(), missing));
        let memory = PER_SAMPLE
            + PER_FRAME.saturating_mul(chain.len() as u64)
            + PER_BRANCH.saturating_mul(branches.len() as u64);
        let is_long = is_long(chain.len(), branches.len());
        match self.samples.entry((chain.into(), branches.into())) {
            Entry::Occupied(known) => {
                let sum = known.into_mut();
                *sum = sum.saturating_add(count);
            }
            Entry::Vacant(new) => {
                new.insert(count);
                self.memory = self.memory.saturating_add(memory);
                self.has_long |= is_long;
                self.shorten();
            }
        }
    }

    /// Halves all samples until they need no more than the limit. Samples with one frame and one branch stay.
    ///
    /// The samples may be spread over several tables, which are joined later. A part of the samples never needs more
    /// memory than all samples, so no table is halved more often than a table of all samples would be. The number of
    /// halvings therefore depends neither on the order of the samples nor on the number of tables.
    fn shorten(&mut self) {
        while self.has_long && self.limit.is_some_and(|limit| self.memory > limit) {
            self.halve(self.halvings + 1);
        }
    }

    /// Halves all samples until they are halved `halvings` times.
    fn halve(&mut self, halvings: u32) {
        if halvings <= self.halvings {
            return;
        }
        let before = std::mem::replace(&mut self.halvings, halvings);
        let samples = std::mem::take(&mut self.samples);
        (self.memory, self.has_long) = (0, false);
        // The limit is switched off until all samples are back in the table, because `insert` would otherwise halve
        // them again. The caller then checks the limit.
        let limit = self.limit.take();
        for ((chain, branches), count) in samples {
            self.insert(chain.into(), branches.into(), before, count);
        }
        self.limit = limit;
    }

    /// Returns the index of a place in a binary. Adds the place if it is new.
    fn number(&mut self, binary: u32, place: u64) -> StackPlace {
        let new = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        // The index is too large only if there are more places than any machine has memory for.
        if new == u32::MAX {
            return StackPlace::ELSEWHERE;
        }
        let number = *self
            .numbers
            .entry((binary, place))
            .or_insert(StackPlace(new));
        if number.0 == new {
            self.places.push((binary, place));
        }
        number
    }

    fn place(&mut self, place: Option<InBinary>) -> StackPlace {
        match place {
            Some((BinaryId(binary), offset)) => self.number(binary, offset),
            None => StackPlace::ELSEWHERE,
        }
    }

    /// Adds a sample that occurred `count` times.
    pub fn add(
        &mut self,
        chain: impl Iterator<Item = Option<InBinary>>,
        branches: &[PlacedBranch],
        count: u64,
    ) {
        let mut places: Vec<StackPlace> = Vec::new();
        for place in chain {
            let place = self.place(place);
            // Consecutive frames in unknown files become one frame, because nothing distinguishes them.
            if place != StackPlace::ELSEWHERE || places.last() != Some(&place) {
                places.push(place);
            }
        }
        let branches = branches
            .iter()
            .filter(|branch| branch.from.is_some() || branch.to.is_some());
        let branches = branches
            .map(|branch| (self.place(branch.from), self.place(branch.to)))
            .collect();
        self.insert(places, branches, 0, count);
    }

    /// Adds the samples of another table. `binary` converts the index of a binary in that table to the index in this
    /// one. It returns `None` for a binary that is left out.
    pub fn join(&mut self, other: StackTable, binary: impl Fn(u32) -> Option<u32>) {
        let renumbered: Vec<StackPlace> = other
            .places
            .iter()
            .map(|&(of, place)| match binary(of) {
                Some(of) => self.number(of, place),
                None => StackPlace::ELSEWHERE,
            })
            .collect();
        let place = |place: StackPlace| {
            let number = renumbered.get(place.0 as usize);
            number.copied().unwrap_or(StackPlace::ELSEWHERE)
        };
        self.halve(other.halvings);
        self.shortened = self.shortened.saturating_add(other.shortened);
        for ((chain, branches), count) in other.samples {
            let chain = chain.iter().map(|&it| place(it)).collect();
            let branches = branches.iter().map(|&(a, b)| (place(a), place(b)));
            self.insert(chain, branches.collect(), other.halvings, count);
        }
    }

    /// Adds finished samples. `binary` converts the index of a binary in [`Counts::binaries`](super::Counts::binaries)
    /// to the index in this table. It returns `None` for a binary that is left out.
    pub fn add_finished(&mut self, stacks: &Stacks, binary: impl Fn(usize) -> Option<u32>) {
        let places = stacks.places.iter();
        let renumbered: Vec<StackPlace> = places
            .map(|&(of, place)| match binary(of) {
                Some(of) => self.number(of, place),
                None => StackPlace::ELSEWHERE,
            })
            .collect();
        let place = |place: StackPlace| {
            let number = renumbered.get(place.index());
            number.copied().unwrap_or(StackPlace::ELSEWHERE)
        };
        self.halve(stacks.halvings);
        self.shortened = self.shortened.saturating_add(stacks.shortened);
        for sample in &stacks.samples {
            let chain = sample.chain.iter().map(|&it| place(it)).collect();
            let branches = sample.branches.iter().map(|&(a, b)| (place(a), place(b)));
            self.insert(chain, branches.collect(), stacks.halvings, sample.count);
        }
    }

    /// Converts the table to finished samples. `binary` converts the index of a binary in this table to the final
    /// index. It returns `None` for a binary that is left out.
    pub fn finish(self, binary: impl Fn(u32) -> Option<usize>) -> Stacks {
        // Places that occurred only in dropped parts of samples are left out.
        let mut is_used = vec![self.halvings == 0; self.places.len()];
        if self.halvings > 0 {
            for (chain, branches) in self.samples.keys() {
                let places = branches.iter().flat_map(|&(from, to)| [from, to]);
                for place in places.chain(chain.iter().copied()) {
                    if let Some(is_used) = is_used.get_mut(place.index()) {
                        *is_used = true;
                    }
                }
            }
        }
        let numbered = self.places.iter().zip(0u32..).zip(is_used);
        let mut order: Vec<(usize, u64, u32)> = numbered
            .filter(|&(_, is_used)| is_used)
            .filter_map(|((&(of, place), number), _)| Some((binary(of)?, place, number)))
            .collect();
        order.sort_unstable();
        let mut renumbered = vec![StackPlace::ELSEWHERE; self.places.len()];
        for (&(.., old), new) in order.iter().zip(0u32..) {
            if let Some(number) = renumbered.get_mut(old as usize) {
                *number = StackPlace(new);
            }
        }
        let place = |place: StackPlace| {
            let number = renumbered.get(place.0 as usize);
            number.copied().unwrap_or(StackPlace::ELSEWHERE)
        };
        let mut samples: Vec<StackSample> = self
            .samples
            .into_iter()
            .map(|((chain, branches), count)| StackSample {
                chain: chain.iter().map(|&it| place(it)).collect(),
                branches: branches
                    .iter()
                    .map(|&(a, b)| (place(a), place(b)))
                    .collect(),
                count,
            })
            .collect();
        samples.sort_unstable();
        Stacks {
            places: order.into_iter().map(|(of, at, _)| (of, at)).collect(),
            samples,
            halvings: self.halvings,
            shortened: self.shortened,
        }
    }
}

/// The whole samples of all threads that count the samples of an input, and the limit for their memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStacks {
    table: Arc<Mutex<StackTable>>,
    /// The memory in bytes that the samples of one thread may need before they are moved to `table`.
    part: u64,
}

impl SharedStacks {
    /// A thread's share of the limit is the limit divided by the number of threads. The samples of a thread are moved
    /// when they need more memory than 1/8 of this share, or more than `MOST` bytes. If they were moved earlier, a
    /// frequent sample would be moved again and again.
    const SHARE: u64 = 8;
    const MOST: u64 = 64 << 20;

    /// Makes an empty object without samples. `limit` is for the samples of all threads together.
    pub fn new(limit: Option<u64>) -> Self {
        let threads = rayon::current_num_threads() as u64;
        let share = limit.unwrap_or(u64::MAX) / Self::SHARE / threads.max(1);
        SharedStacks {
            table: Arc::new(Mutex::new(StackTable::within(limit))),
            part: share.min(Self::MOST),
        }
    }

    fn lock(&self) -> MutexGuard<'_, StackTable> {
        // A thread that panics ends the whole run.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the samples of a thread to the shared table if there are many.
    pub fn move_many(&self, samples: &mut StackTable) {
        if samples.memory > self.part {
            self.move_all(samples);
        }
    }

    /// Moves the samples of a thread to the shared table. Later samples of the thread are halved as often as those of
    /// the shared table.
    pub fn move_all(&self, samples: &mut StackTable) {
        let mut table = self.lock();
        table.join(std::mem::take(samples), Some);
        samples.halvings = table.halvings;
    }

    /// Returns the shared table and leaves an empty table in its place.
    pub fn take(&self) -> StackTable {
        std::mem::take(&mut *self.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_testkit::Rng;

    /// A call chain, a branch stack, and a count.
    type Sample = (Vec<u64>, Vec<(u64, u64)>, u64);

    fn samples(number: usize) -> Vec<Sample> {
        let mut rng = Rng::new(5);
        let mut place = move |below: usize| rng.below(below) as u64;
        (0..number)
            .map(|_| {
                let chain = (0..=place(20)).map(|_| place(4)).collect();
                let branches = (0..=place(15)).map(|_| (place(3), place(3))).collect();
                (chain, branches, place(3) + 1)
            })
            .collect()
    }

    fn in_binary(place: u64) -> Option<InBinary> {
        Some((BinaryId(0), place))
    }

    fn add(table: &mut StackTable, (chain, branches, count): &Sample) {
        let branches: Vec<_> = branches
            .iter()
            .map(|&(from, to)| PlacedBranch {
                from: in_binary(from),
                to: in_binary(to),
                mispredicted: false,
            })
            .collect();
        table.add(chain.iter().map(|&it| in_binary(it)), &branches, *count);
    }

    /// The samples that a shared table gets from several threads.
    fn shared(samples: &[Sample], limit: Option<u64>, threads: usize) -> Stacks {
        let shared = SharedStacks::new(limit);
        let mut tables = vec![StackTable::default(); threads];
        for (index, sample) in samples.iter().enumerate() {
            let table = &mut tables[index % threads];
            add(table, sample);
            shared.move_many(table);
        }
        for mut table in tables {
            shared.move_all(&mut table);
        }
        shared.take().finish(|_| Some(0))
    }

    fn total(stacks: &Stacks) -> u64 {
        stacks.samples.iter().map(|sample| sample.count).sum()
    }

    #[test]
    fn lengths_are_halved_and_rounded_up() {
        for length in [0, 1, 2, 3, 7, 31, 32, 127] {
            let twice = halved(halved(length, 2), 3);
            assert_eq!(twice, halved(length, 5), "{length}");
        }
        assert_eq!((halved(32, 1), halved(31, 1), halved(5, 200)), (16, 16, 1));
    }

    #[test]
    fn the_newest_parts_of_all_samples_stay() {
        let samples = samples(2000);
        let whole = shared(&samples, None, 1);
        assert_eq!((whole.halvings, whole.shortened), (0, 0));
        let mut needed = StackTable::default();
        samples.iter().for_each(|sample| add(&mut needed, sample));
        assert_eq!(shared(&samples, Some(needed.memory), 1), whole, "it fits");
        let mut last = u32::MAX;
        for divisor in [1000, 20, 4, 2] {
            let limit = needed.memory / divisor;
            let stacks = shared(&samples, Some(limit), 1);
            assert!((1..=last).contains(&stacks.halvings), "{divisor}");
            last = stacks.halvings;
            assert_eq!(total(&stacks), total(&whole), "no sample is lost");
            // The expected table is made from samples that were shortened before they were added.
            let mut expected = StackTable::default();
            let mut shortened = 0;
            for (chain, branches, count) in &samples {
                let mut sample = (chain.clone(), branches.clone(), *count);
                sample.0.truncate(halved(chain.len(), stacks.halvings));
                sample.1.truncate(halved(branches.len(), stacks.halvings));
                shortened += if sample.0 == *chain && sample.1 == *branches {
                    0
                } else {
                    *count
                };
                add(&mut expected, &sample);
            }
            assert!(expected.memory <= limit || !expected.has_long);
            let expected = expected.finish(|_| Some(0));
            assert_eq!(stacks.samples, expected.samples);
            assert_eq!(stacks.places, expected.places);
            assert_eq!(stacks.shortened, shortened);
        }
    }

    #[test]
    fn neither_order_nor_threads_change_the_result() {
        let mut samples = samples(3000);
        for limit in [0, 20_000, 200_000, 500_000] {
            let expected = shared(&samples, Some(limit), 1);
            assert!(expected.halvings > 0);
            assert_eq!(shared(&samples, Some(limit), 7), expected, "{limit}");
            samples.reverse();
            assert_eq!(shared(&samples, Some(limit), 2), expected, "{limit}");
            // The samples are split into three parts. The finished samples of each part are added to one table.
            let mut sum = StackTable::within(Some(limit));
            for part in samples.chunks(1000) {
                sum.add_finished(&shared(part, Some(limit), 1), |_| Some(0));
            }
            assert_eq!(sum.finish(|_| Some(0)), expected, "{limit}");
        }
    }
}
