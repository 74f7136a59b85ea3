//! Counts of a recording.
use super::places::PlaceCache;
use super::thread::ThreadSums;
use super::{Counts, Selection};
use crate::file::sample_type;
use crate::process::Processes;
use crate::sample::{Mode, Sample};
use crate::survey::Recording;

/// The options for counting samples.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CollectOptions {
    /// The samples that are counted.
    pub selection: Selection,
    /// Whether branches are counted that the processor took only by speculation, or did not take. llvm-profgen counts
    /// them, because it does not read the marks of such branches.
    pub count_marked: bool,
    /// Whether samples with a call chain and a branch stack are also kept whole. Profiles with calling contexts are
    /// made from them. Equal samples are kept once, with their number.
    pub stacks: bool,
}

/// The facts about an event that counting needs.
#[derive(Clone, Copy)]
struct EventPlan {
    /// Whether samples have an address.
    address: bool,
    /// Whether the branch stacks contain all taken branches.
    every_branch: bool,
}

/// The state of one thread that counts samples.
struct Thread {
    sums: ThreadSums,
    places: PlaceCache,
}

/// Adds up the samples of a recording. Uses the threads of rayon's current pool. The result does not depend on the
/// number of threads.
pub fn collect(recording: &Recording<'_>, options: &CollectOptions) -> Counts {
    let processes = recording.processes();
    let plans: Vec<EventPlan> = recording
        .events()
        .iter()
        .map(|event| EventPlan {
            address: event.attr.has(sample_type::IP),
            every_branch: event.attr.has_every_branch(),
        })
        .collect();
    let selected = (!options.selection.is_all()).then(|| options.selection.of(recording));
    let (sum, losses) = recording.samples(
        || Thread {
            sums: ThreadSums::new(processes.binaries().len()),
            places: PlaceCache::default(),
        },
        |thread, sample| {
            if let Some(selected) = &selected
                && !selected.has(recording, sample)
            {
                thread.sums.losses.not_selected += 1;
                return;
            }
            if let Some(&plan) = plans.get(sample.event) {
                thread.take(processes, plan, sample, options);
            }
        },
        |thread, other| thread.sums.join(other.sums),
    );
    let mut table = sum.sums.into_table(processes.binaries());
    table.losses.recording.add_all(&losses);
    table.finish()
}

impl Thread {
    fn take(
        &mut self,
        processes: &Processes,
        plan: EventPlan,
        sample: &Sample<'_>,
        options: &CollectOptions,
    ) {
        let count_marked = options.count_marked;
        let (pid, time) = (sample.pid, sample.when());
        let places = &mut self.places;
        let losses = &mut self.sums.losses;
        losses.samples += 1;
        losses.with_chain += u64::from(!sample.chain.is_empty());
        if plan.address {
            let in_kernel = sample.mode == Mode::Kernel;
            let place = places.locate(processes, in_kernel, pid, time, sample.address);
            self.sums.address(place, 1);
        }
        let (mut wrong_path, mut not_taken) = (0, 0);
        let branches = sample.branches.iter().filter_map(|branch| {
            if !count_marked && branch.is_wrong_path() {
                wrong_path += 1;
                return None;
            }
            if !count_marked && branch.is_not_taken() {
                not_taken += 1;
                return None;
            }
            let from = places.locate(processes, false, pid, time, branch.from);
            let to = places.locate(processes, false, pid, time, branch.to);
            Some((from, to))
        });
        if options.stacks && plan.every_branch && !sample.chain.is_empty() {
            let branches: Vec<_> = branches.collect();
            let branched = branches.iter().copied();
            self.sums.stack(branched, plan.every_branch, 1);
            let chain = sample.chain.addresses().map(|(mode, address)| {
                places.locate(processes, mode == Mode::Kernel, pid, time, address)
            });
            self.sums.stacks.add(chain, &branches, 1);
        } else {
            self.sums.stack(branches, plan.every_branch, 1);
        }
        self.sums.losses.wrong_path += wrong_path;
        self.sums.losses.not_taken += not_taken;
    }
}
