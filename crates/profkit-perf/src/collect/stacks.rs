//! Whole samples, for profiles with calling contexts. A whole sample consists of its call chain and its branch stack.
//! Equal samples are stored once, with their number.
use super::thread::InBinary;
use crate::process::BinaryId;
use rustc_hash::FxHashMap;

/// The index of a place in [`Stacks::places`], or a mark for a place in no mapped file.
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
    /// The places. Each is the index of a binary in [`Counts::binaries`](super::Counts::binaries), and a place in that
    /// binary.
    places: Vec<(usize, u64)>,
    /// The samples.
    pub samples: Vec<StackSample>,
}

impl Stacks {
    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns the places. Each is the index of a binary in [`Counts::binaries`](super::Counts::binaries), and a place
    /// in that binary.
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
}

type Key = (Box<[StackPlace]>, Box<[(StackPlace, StackPlace)]>);

impl StackTable {
    /// Returns the index of a place in a binary. Adds the place if it is new.
    fn number(&mut self, binary: u32, place: u64) -> StackPlace {
        let new = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        // Only more places than any machine has memory for would reach this number.
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
        branches: &[(Option<InBinary>, Option<InBinary>)],
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
            .filter(|(from, to)| from.is_some() || to.is_some());
        let branches = branches
            .map(|&(from, to)| (self.place(from), self.place(to)))
            .collect();
        let sum = self.samples.entry((places.into(), branches)).or_default();
        *sum = sum.saturating_add(count);
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
        for ((chain, branches), count) in other.samples {
            let chain = chain.iter().map(|&it| place(it)).collect();
            let branches = branches.iter().map(|&(a, b)| (place(a), place(b)));
            let sum = self.samples.entry((chain, branches.collect())).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Adds finished samples. `binary` converts the index of a binary in [`Counts::binaries`](super::Counts::binaries)
    /// to the index in this table. It returns `None` for a binary that is left out.
    pub fn add_finished(&mut self, stacks: &Stacks, binary: impl Fn(usize) -> Option<u32>) {
        let mut other = StackTable {
            places: stacks
                .places
                .iter()
                .map(|&(of, place)| (binary(of).unwrap_or(u32::MAX), place))
                .collect(),
            ..StackTable::default()
        };
        for sample in &stacks.samples {
            let key = (sample.chain.clone(), sample.branches.clone());
            other.samples.insert(key, sample.count);
        }
        self.join(other, |of| (of != u32::MAX).then_some(of));
    }

    /// Converts the table to finished samples. `binary` converts the index of a binary in this table to the final
    /// index. It returns `None` for a binary that is left out.
    pub fn finish(self, binary: impl Fn(u32) -> Option<usize>) -> Stacks {
        let numbered = self.places.iter().zip(0u32..);
        let mut order: Vec<(usize, u64, u32)> = numbered
            .filter_map(|(&(of, place), number)| Some((binary(of)?, place, number)))
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
        }
    }
}
