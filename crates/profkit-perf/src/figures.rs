//! Counts the samples of each event, each binary and each process of a recording.
use crate::losses::Losses;
use crate::process::BinaryId;
use crate::sample::Mode;
use crate::survey::Recording;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The samples of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventFigures {
    /// The number of samples.
    pub samples: u64,
    /// The sum of the samples' periods, which is an estimate of the number of times that the event happened.
    pub period: u64,
    /// The number of samples that have a branch stack with at least one branch.
    pub with_branches: u64,
    /// The number of branches in all branch stacks.
    pub branches: u64,
    /// The number of entries in the largest branch stack.
    pub depth: usize,
    /// The number of samples that have a call chain.
    pub with_chain: u64,
}

/// The number of samples and branches in a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BinaryFigures {
    /// The binary.
    pub binary: BinaryId,
    /// The number of samples in the binary.
    pub samples: u64,
    /// The number of branches that leave from the binary, in all branch stacks.
    pub branches: u64,
}

/// The number of samples in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessFigures {
    /// The process.
    pub pid: u32,
    /// The name that the process had at its last sample.
    pub name: Vec<u8>,
    /// The number of samples.
    pub samples: u64,
    /// The number of samples at addresses where no file was mapped.
    pub unmapped: u64,
}

/// The number of samples of each event, each binary and each process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// The figures of each event, in the order of [`Recording::events`].
    pub events: Vec<EventFigures>,
    /// The binaries that have samples, those with the most samples first.
    pub binaries: Vec<BinaryFigures>,
    /// The processes, those with the most samples first.
    pub processes: Vec<ProcessFigures>,
    /// The number of samples in each mode of the processor.
    pub modes: BTreeMap<Mode, u64>,
    /// The number of samples at addresses where no file was mapped.
    pub unmapped: u64,
    /// The times of the first and of the last sample, in nanoseconds. `None` if no sample has a time.
    pub times: Option<(u64, u64)>,
    /// The numbers of records, samples and bytes that were lost while the recording was made or read.
    pub losses: Losses,
}

/// The numbers that one thread has counted.
#[derive(Default)]
struct Sums {
    events: Vec<EventFigures>,
    binaries: FxHashMap<BinaryId, (u64, u64)>,
    /// For each process: the number of its samples, the number of its samples at addresses where no file was mapped,
    /// and the time of its last sample.
    processes: FxHashMap<u32, (u64, u64, u64)>,
    modes: BTreeMap<Mode, u64>,
    times: Option<(u64, u64)>,
}

fn wider(a: Option<(u64, u64)>, b: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

impl Sums {
    fn join(&mut self, other: Sums) {
        for (ours, theirs) in self.events.iter_mut().zip(other.events) {
            ours.samples += theirs.samples;
            ours.period = ours.period.saturating_add(theirs.period);
            ours.with_branches += theirs.with_branches;
            ours.branches += theirs.branches;
            ours.depth = ours.depth.max(theirs.depth);
            ours.with_chain += theirs.with_chain;
        }
        for (binary, (samples, branches)) in other.binaries {
            let sum = self.binaries.entry(binary).or_default();
            sum.0 += samples;
            sum.1 += branches;
        }
        for (pid, (samples, unmapped, last)) in other.processes {
            let sum = self.processes.entry(pid).or_default();
            sum.0 += samples;
            sum.1 += unmapped;
            sum.2 = sum.2.max(last);
        }
        for (mode, samples) in other.modes {
            *self.modes.entry(mode).or_default() += samples;
        }
        self.times = wider(self.times, other.times);
    }
}

impl Figures {
    pub(crate) fn of(recording: &Recording<'_>) -> Figures {
        let events = recording.events().len();
        let processes = recording.processes();
        let new = || Sums {
            events: vec![EventFigures::default(); events],
            ..Sums::default()
        };
        let (sums, losses) = recording.samples(
            new,
            |sums, sample| {
                let place = recording.locate(sample);
                let mut branches = 0;
                for branch in sample.branches.iter() {
                    branches += 1;
                    let from = processes.locate_in_mode(
                        false,
                        sample.pid,
                        Some(sample.when()),
                        branch.from,
                    );
                    if let Some(from) = from {
                        sums.binaries.entry(from.binary).or_default().1 += 1;
                    }
                }
                if let Some(event) = sums.events.get_mut(sample.event) {
                    event.samples += 1;
                    event.period = event.period.saturating_add(sample.period);
                    event.with_branches += u64::from(branches > 0);
                    event.branches += branches;
                    event.depth = event.depth.max(sample.branches.places());
                    event.with_chain += u64::from(!sample.chain.is_empty());
                }
                let process = sums.processes.entry(sample.pid).or_default();
                process.0 += 1;
                process.2 = process.2.max(sample.when());
                match place {
                    Some(place) => sums.binaries.entry(place.binary).or_default().0 += 1,
                    None => process.1 += 1,
                }
                *sums.modes.entry(sample.mode).or_default() += 1;
                sums.times = wider(sums.times, sample.time.map(|time| (time, time)));
            },
            Sums::join,
        );
        let mut binaries: Vec<BinaryFigures> = sums
            .binaries
            .into_iter()
            .map(|(binary, (samples, branches))| BinaryFigures {
                binary,
                samples,
                branches,
            })
            .collect();
        binaries.sort_by_key(|figures| {
            let weight = (figures.samples, figures.branches);
            (std::cmp::Reverse(weight), figures.binary)
        });
        let unmapped = sums.processes.values().map(|sum| sum.1).sum();
        let mut list: Vec<ProcessFigures> = sums
            .processes
            .into_iter()
            .map(|(pid, (samples, unmapped, last))| ProcessFigures {
                pid,
                name: processes.name(pid, Some(last)).unwrap_or_default().to_vec(),
                samples,
                unmapped,
            })
            .collect();
        list.sort_by_key(|process| (std::cmp::Reverse(process.samples), process.pid));
        Figures {
            events: sums.events,
            binaries,
            processes: list,
            modes: sums.modes,
            unmapped,
            times: sums.times,
            losses,
        }
    }
}
