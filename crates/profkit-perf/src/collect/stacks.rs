//! Whole samples: the functions that were active and the branches that were taken, for profiles with calling contexts.
//! Equal samples are kept once.
use super::thread::InBinary;
use crate::process::BinaryId;
use rustc_hash::FxHashMap;

/// A place in one of several binaries, by its number; or a place in none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackPlace(u32);

impl StackPlace {
    /// A place that is in no mapped file.
    pub const ELSEWHERE: StackPlace = StackPlace(u32::MAX);

    /// The index in [`Stacks::places`]; beyond its end for a place that is in no mapped file.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Samples that are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StackSample {
    /// The call chain: the place of the sample, then the return addresses, the innermost first.
    pub chain: Box<[StackPlace]>,
    /// The branch stack: where branches left and where they arrived, the newest first.
    pub branches: Box<[(StackPlace, StackPlace)]>,
    /// The number of samples.
    pub count: u64,
}

/// The different samples with a call chain and a branch stack, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The index of the binary in [`Counts::binaries`](super::Counts::binaries), and the place in it.
    places: Vec<(usize, u64)>,
    /// The samples.
    pub samples: Vec<StackSample>,
}

impl Stacks {
    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The places: the index of the binary in [`Counts::binaries`](super::Counts::binaries), and the place in the binary.
    pub fn places(&self) -> &[(usize, u64)] {
        &self.places
    }
}

/// Places and samples that are being added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackTable {
    places: Vec<(u32, u64)>,
    numbers: FxHashMap<(u32, u64), StackPlace>,
    /// The number of samples of each chain and branch stack.
    samples: FxHashMap<Key, u64>,
}

type Key = (Box<[StackPlace]>, Box<[(StackPlace, StackPlace)]>);

impl StackTable {
    /// Returns the number of a place of a binary.
    fn number(&mut self, binary: u32, place: u64) -> StackPlace {
        let new = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        // More places than numbers would take more memory than machines have.
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
            // Code of unknown files is one frame, however many functions it has.
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

    /// Adds the samples of another table, whose binaries have other numbers here. `None` is a binary that is left out.
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

    /// Adds samples that are finished.
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

    /// Finishes the samples. `binary` returns the final index of a binary.
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
